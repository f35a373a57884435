/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who lives: byte N of file "live" is held by client N for its whole life, as an
 * open-file-description byte lock. It belongs to the open file description (and its copies in
 * forked children, which close them), not to a process, and the kernel drops it on any death. Not
 * who a client is: its row tells. Stateless; any thread.
 */

#include "engine/local/store.h"
#include <fcntl.h>

static struct flock range(short type, int64_t start, int64_t length)
{
        return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

bool snib__live_take(int fd, int64_t slot)
{
        struct flock l = range(F_WRLCK, slot, 1);

        return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

static bool held(int fd, int64_t start, int64_t length)
{
        struct flock l = range(F_WRLCK, start, length);

        /* When the kernel does not say, nobody is declared dead. */
        return fcntl(fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
}

bool snib__live_test(const struct snib__store *s, int64_t slot)
{
        return slot < 0 || held(s->live_fd, slot, 1);
}

bool snib__live_any(const struct snib__store *s)
{
        return held(s->live_fd, 0, 0);
}
