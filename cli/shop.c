/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A flash sale, for real: worker processes, one file, and the classic mistake of reading and
 * writing in two steps. The only difference between the runs is the lock around them. Workers die
 * with their parent. Each process has one thread of ours; with a lock, each has a client of its
 * own.
 */

#include "shop.h"
#include "out.h"
#include "session.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct counters {
        _Atomic int sold;
        _Atomic int failed;
};

static int read_stock(int fd)
{
        char text[16] = "";

        return pread(fd, text, sizeof(text) - 1, 0) > 0 ? (int)strtol(text, NULL, 10) : 0; /* we wrote it */
}

/* Always as many bytes, in place: a reader sees one number or the other, never half a file. */
static int write_stock(int fd, int stock)
{
        char text[16];
        int n = snprintf(text, sizeof(text), "%08d\n", stock);

        return pwrite(fd, text, (size_t)n, 0) == n ? 0 : -1;
}

/* True if there was something to sell. */
static bool sell_one(int fd, int think_us, struct counters *counters)
{
        struct timespec think = {.tv_nsec = think_us * 1000L};
        int stock = read_stock(fd);

        if (stock <= 0)
                return false;
        nanosleep(&think, NULL); /* the customer's card is charged */
        if (write_stock(fd, stock - 1) < 0)
                return false;
        atomic_fetch_add(&counters->sold, 1);
        return true;
}

static int sell_locked(const char *url, int go, int fd, int think_us, struct counters *counters)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_options options = {.size = sizeof(struct snib_options), .label = "shop"};
        snib_client *client = NULL;
        snib_lock *lock = NULL;
        snib_grant *grant;
        bool more = true;
        char byte;

        int r = snib_open(&client, url, &options, &err);
        if (r >= 0)
                r = snib_lock_new(client, "stock", NULL, &lock, &err);
        while (read(go, &byte, 1) < 0 && errno == EINTR)
                ;
        while (r >= 0 && more) {
                r = snib_lock_acquire(lock, SNIB_FOREVER, &grant, &err);
                if (r < 0)
                        break;
                more = sell_one(fd, think_us, counters);
                r = snib_grant_release(grant, &err);
        }
        if (r < 0)
                snib__out_fail(1, snib_error_name(r), "shop: %s", err.text[0] ? err.text : snib_strerror(r));
        snib_lock_free(lock);
        snib_close(client);
        return r < 0 ? 1 : 0;
}

static int sell_unlocked(int go, int fd, int think_us, struct counters *counters)
{
        char byte;

        while (read(go, &byte, 1) < 0 && errno == EINTR)
                ;
        /* A late writer can put sold items back on the shelf: without a bound this need not end. */
        for (int i = 0; i < SNIB__SHOP_STOCK && sell_one(fd, think_us, counters); i++)
                ;
        return 0;
}

static void worker(pid_t parent, const char *url, int go, int fd, int think_us, struct counters *counters)
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        int r = url ? sell_locked(url, go, fd, think_us, counters) : sell_unlocked(go, fd, think_us, counters);
        if (r)
                atomic_fetch_add(&counters->failed, 1);
        _exit(r);
}

/* Starts the workers, lets them go all at once, waits for their end. */
static void open_doors(const char *url, int fd, int think_us, struct counters *counters, struct shop_result *ret)
{
        pid_t pids[SNIB__SHOP_WORKERS] = {0};
        pid_t parent = getpid();
        int go[2];
        int status;

        if (pipe2(go, O_CLOEXEC) < 0) {
                ret->failed = SNIB__SHOP_WORKERS;
                return;
        }
        fflush(NULL);
        for (int i = 0; i < SNIB__SHOP_WORKERS; i++) {
                pids[i] = fork();
                if (pids[i] == 0) {
                        close(go[1]);
                        /* Some think longer than others: half to one and a half times. */
                        worker(parent, url, go[0], fd, think_us / 2 + think_us * i / SNIB__SHOP_WORKERS, counters);
                }
        }
        int64_t start = snib__clock_boot();
        close(go[1]); /* the doors */
        close(go[0]);
        for (int i = 0; i < SNIB__SHOP_WORKERS; i++)
                if (pids[i] < 0 || waitpid(pids[i], &status, 0) != pids[i] || status != 0)
                        ret->failed++;
        ret->took_ms = (snib__clock_boot() - start) / 1000000;
        ret->sold = atomic_load(&counters->sold);
}

int snib__shop_sell(const char *directory, const char *url, int think_us, struct shop_result *ret)
{
        char path[4200];
        struct counters *counters =
            mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        memset(ret, 0, sizeof(*ret));
        if (counters == MAP_FAILED)
                return -1;
        snprintf(path, sizeof(path), "%s/stock", directory);
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        int r = fd < 0 ? -1 : write_stock(fd, SNIB__SHOP_STOCK);
        if (r == 0)
                open_doors(url, fd, think_us, counters, ret);
        if (fd >= 0)
                close(fd);
        munmap(counters, sizeof(*counters));
        return r;
}
