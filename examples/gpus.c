/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slots on a device as permits that expire: at most two jobs run at once, on however many machines,
 * and a job that crashes gives its slot back when its lease ends. Four jobs here are four threads;
 * they might as well be processes.
 *
 *     gpus [URL]
 */

#include <pthread.h>
#include <snib/snib.h>
#include <stdatomic.h>
#include <stdio.h>

#define SLOTS 2
#define JOBS 4

struct device {
        snib_permits *slots;
        atomic_int busy, most, done;
};

static void compute(struct device *d, snib_grant *slot)
{
        int busy = atomic_fetch_add(&d->busy, 1) + 1;
        char id[SNIB_PERMIT_ID_MAX] = "";

        if (busy > atomic_load(&d->most))
                atomic_store(&d->most, busy);
        (void)snib_grant_permit_id(slot, 0, id);
        printf("permit %s, %d of %d slots busy\n", id, busy, SLOTS);
        /* A long job asks now and then whether it still has its slot. */
        if (snib_grant_valid(slot))
                atomic_fetch_add(&d->done, 1);
        atomic_fetch_sub(&d->busy, 1);
}

static void *job(void *arg)
{
        struct device *d = arg;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *slot;

        if (snib_permits_acquire(d->slots, 1, 10000, &slot, &err) == 1) {
                compute(d, slot);
                if (snib_grant_release(slot, &err) == 1)
                        return NULL;
        }
        fprintf(stderr, "%s\n", err.text);
        return NULL;
}

static void run(struct device *d)
{
        pthread_t threads[JOBS];
        int started = 0;

        while (started < JOBS && pthread_create(&threads[started], NULL, job, d) == 0)
                started++;
        for (int i = 0; i < started; i++)
                pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
        struct snib_lock_options options = {.size = sizeof(struct snib_lock_options), .lease_ms = 10000};
        struct snib_error err = SNIB_ERROR_INIT;
        struct device d = {0};
        snib_client *client;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        /* Everybody sets the number of slots; the first one does it. */
        if (snib_permits_new(client, "example:gpus", &options, &d.slots, &err) < 0 ||
            snib_permits_set(d.slots, SLOTS, &err) < 0)
                fprintf(stderr, "%s\n", err.text);
        else
                run(&d);
        snib_permits_free(d.slots);
        snib_close(client);
        return atomic_load(&d.done) == JOBS && atomic_load(&d.most) <= SLOTS ? 0 : 1;
}
