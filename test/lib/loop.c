/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Waits for the descriptor of a client and calls the client, as a program with an event loop does;
 * see loop.h. Not for a client that another thread drives. The thread that owns the client.
 */

#include "loop.h"
#include "wait.h"
#include <poll.h>

bool loop_reaches(snib_client *c, int mode, atomic_int *flag, int want, int64_t ms)
{
        int64_t until = wait_now_ms() + ms * wait_slow();

        if (mode != SNIB_THREADS_NONE)
                return eventually(atomic_load(flag) >= want, ms);
        while (atomic_load(flag) < want && wait_now_ms() < until) {
                struct pollfd p = {.fd = snib_fd(c), .events = (short)snib_events(c)};
                int64_t left_ms = snib_timeout_ms(c);

                (void)poll(&p, 1, left_ms < 0 || left_ms > 1000 ? 1000 : (int)left_ms);
                if (snib_process(c) != 0)
                        return false;
        }
        return atomic_load(flag) >= want;
}
