/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A count-down latch: one waits until several others have done their part, wherever they run. A
 * part is counted once, also when its answer was lost on the way and it was sent again.
 *
 *     gather [URL]
 */

#include <pthread.h>
#include <snib/snib.h>
#include <stdio.h>

#define PARTS 3

struct part {
        snib_latch *latch;
        int number;
        int result;
        pthread_t thread;
};

static void *work(void *arg)
{
        struct part *part = arg;

        part->result = part->number * part->number;
        snib_latch_count_down(part->latch, 1, NULL, NULL);
        return NULL;
}

/* The sum of all parts, or -1: not in time. */
static int gather(snib_latch *latch, struct snib_error *err)
{
        struct part parts[PARTS];
        int sum = 0, started = 0, open;

        if (snib_latch_set(latch, PARTS, err) < 0)
                return -1;
        for (; started < PARTS; started++) {
                parts[started] = (struct part){.latch = latch, .number = started + 1};
                if (pthread_create(&parts[started].thread, NULL, work, &parts[started]) != 0)
                        break;
        }
        open = snib_latch_await(latch, started == PARTS ? 10000 : 0, err);
        for (int i = 0; i < started; i++) {
                pthread_join(parts[i].thread, NULL);
                sum += parts[i].result;
        }
        return open == 1 ? sum : -1;
}

int main(int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *client;
        snib_latch *latch;
        int sum = -1;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        if (snib_latch_new(client, "example:gather", 0, &latch, &err) == 0) {
                sum = gather(latch, &err);
                snib_latch_delete(latch, NULL); /* open already, unless something went wrong */
                snib_latch_free(latch);
        }
        if (sum < 0)
                fprintf(stderr, "%s\n", err.code ? err.text : "not in time");
        printf("the sum is %d\n", sum);
        snib_close(client);
        return sum == 14 ? 0 : 1;
}
