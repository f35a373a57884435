/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An event loop without any thread of the library: poll what snib says, call snib_process(). Any
 * loop does it with the same four calls; the other descriptors of the program go into the same
 * poll().
 *
 *     loop [URL]
 */

#include <poll.h>
#include <snib/snib.h>
#include <stdio.h>
#include <stdlib.h>

struct state {
        int result; /* of the acquire */
        int over;
};

static void released(void *arg, int result, const struct snib_error *err)
{
        struct state *state = arg;

        printf("released: %s\n", result == 1 ? "yes" : err->text);
        state->over = 1;
}

static void acquired(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct state *state = arg;
        struct snib_error why = SNIB_ERROR_INIT;

        state->result = result;
        printf("acquired: %s\n", result == 1 ? "yes" : result == 0 ? "not in time" : err->text);
        state->over = result != 1;
        if (result == 1 && snib_grant_release_async(grant, released, state, &why) < 0) {
                fprintf(stderr, "%s\n", why.text);
                state->over = 1;
        }
}

static void turn(snib_client *client)
{
        int64_t timeout = snib_timeout_ms(client);
        struct pollfd fd = {.fd = snib_fd(client), .events = (short)snib_events(client)};

        poll(&fd, 1, timeout < 0 || timeout > 60000 ? 60000 : (int)timeout);
        if (snib_process(client) < 0) {
                fprintf(stderr, "the client cannot go on\n");
                exit(1);
        }
}

int main(int argc, char **argv)
{
        struct snib_options options = {.size = sizeof(struct snib_options), .threads = SNIB_THREADS_NONE};
        struct snib_error err = SNIB_ERROR_INIT;
        struct state state = {0, 0};
        snib_client *client;
        snib_lock *lock;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, &options, &err) < 0 ||
            snib_lock_new(client, "example:loop", NULL, &lock, &err) < 0 ||
            snib_lock_acquire_async(lock, 2000, acquired, &state, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        while (!state.over)
                turn(client);
        snib_lock_free(lock);
        snib_close(client);
        return state.result == 1 ? 0 : 1;
}
