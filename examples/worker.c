/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The worker of the examples of event loops: no loop is mentioned here. All callbacks run inside
 * worker_process(), in the thread of the loop.
 */

#include "worker.h"
#include <stdio.h>

static void stop(struct worker *w, const char *why)
{
        if (why)
                fprintf(stderr, "%s\n", why);
        w->over(w->arg);
}

static int acquire(struct worker *w, struct snib_error *err);

static void released(void *arg, int result, const struct snib_error *err)
{
        struct snib_error why = SNIB_ERROR_INIT;
        struct worker *w = arg;

        if (result == SNIB_ELOST) {
                printf("paid back after the loss; once more\n");
                if (acquire(w, &why) < 0)
                        stop(w, why.text);
        } else if (result == 1) {
                printf("released\n");
                w->releases++;
                stop(w, NULL);
        } else {
                stop(w, err->text);
        }
}

static void give_back(struct worker *w)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *grant = w->grant;

        w->grant = NULL;
        if (snib_grant_release_async(grant, released, w, &err) < 0)
                stop(w, err.text);
}

/* Told before another owner can hold the lock: from here on nothing is done under it. */
static void lost(void *arg, snib_grant *grant, int reason)
{
        struct worker *w = arg;

        printf("lost: %s\n", snib_loss_text(reason));
        if (w->grant != grant)
                return; /* it was being released */
        w->losses++;
        give_back(w);
}

static void acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct snib_error why = SNIB_ERROR_INIT;
        struct worker *w = arg;

        if (result != 1) {
                stop(w, result == 0 ? "the lock was not free within five seconds" : err->text);
                return;
        }
        printf("acquired under token %lld\n", (long long)snib_grant_token(grant));
        w->grant = grant;
        w->ticks = 0;
        if (snib_grant_on_loss(grant, lost, w, &why) < 0)
                stop(w, why.text);
}

static int acquire(struct worker *w, struct snib_error *err)
{
        return snib_lock_acquire_async(w->lock, 5000, acquired, w, err);
}

int worker_start(struct worker *w, const char *url, const char *name, void (*over)(void *arg), void *arg)
{
        struct snib_options options = {.threads = SNIB_THREADS_NONE};
        struct snib_error err = SNIB_ERROR_INIT;

        *w = (struct worker){.over = over, .arg = arg};
        if (snib_open(&w->client, url, &options, &err) < 0 || snib_open(&w->admin, url, NULL, &err) < 0 ||
            snib_lock_new(w->client, name, NULL, &w->lock, &err) < 0 ||
            snib_lock_new(w->admin, name, NULL, &w->taken_away, &err) < 0 || acquire(w, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return -1;
        }
        return 0;
}

void worker_tick(struct worker *w)
{
        struct snib_error err = SNIB_ERROR_INIT;

        if (!w->grant || !snib_grant_valid(w->grant))
                return;
        printf("working, %lld ms left\n", (long long)snib_grant_left_ms(w->grant));
        if (++w->ticks != 3)
                return;
        if (w->losses > 0)
                give_back(w);
        else if (snib_lock_force_release(w->taken_away, &err) < 0) /* blocks, as it is another program that does it */
                stop(w, err.text);
}

void worker_process(struct worker *w)
{
        int result = snib_process(w->client);

        if (result < 0)
                stop(w, snib_strerror(result));
}

int worker_end(struct worker *w)
{
        snib_lock_free(w->lock);
        snib_lock_free(w->taken_away);
        snib_close(w->client);
        snib_close(w->admin);
        return w->losses == 1 && w->releases == 1 ? 0 : 1;
}
