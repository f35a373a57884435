/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The runtime's system calls (Linux). Not a portability layer: another system gets a file of its
 * own. No state; any thread.
 */

#include "runtime/os.h"
#include "base/cleanup.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static struct timespec timespec_of(snib__ns t)
{
        return (struct timespec){.tv_sec = (time_t)(t / SNIB__S), .tv_nsec = (long)(t % SNIB__S)};
}

snib__ns snib__os_now(void)
{
        struct timespec t;

        (void)clock_gettime(CLOCK_BOOTTIME, &t);
        return (snib__ns)t.tv_sec * SNIB__S + t.tv_nsec;
}

void snib__os_poll(struct pollfd *fds, int count, snib__ns timeout)
{
        struct timespec limit = timespec_of(timeout > 0 ? timeout : 0);

        if (ppoll(fds, (nfds_t)count, timeout == SNIB__NEVER ? NULL : &limit, NULL) >= 0)
                return;
        for (int i = 0; i < count; i++)
                fds[i].revents = 0;
}

int snib__os_event_new(void)
{
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

        return fd < 0 ? -errno : fd;
}

void snib__os_event_set(int fd)
{
        uint64_t one = 1;
        ssize_t n;

        do
                n = write(fd, &one, sizeof(one));
        while (n < 0 && errno == EINTR);
}

void snib__os_event_clear(int fd)
{
        uint64_t count;
        ssize_t n;

        do
                n = read(fd, &count, sizeof(count));
        while (n < 0 && errno == EINTR);
}

int snib__os_timer_new(void)
{
        int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);

        return fd < 0 ? -errno : fd;
}

void snib__os_timer_set(int fd, snib__ns due)
{
        /* All zero would disarm it; 1 ns after boot is as good as "now". */
        struct itimerspec spec = {.it_value = timespec_of(due > 0 ? due : 1)};

        if (due == SNIB__NEVER)
                spec.it_value = (struct timespec){0};
        (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

int snib__os_epoll_new(void)
{
        int fd = epoll_create1(EPOLL_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

int snib__os_epoll_set(int epoll, int fd, short events)
{
        struct epoll_event e = {.data.fd = fd};

        e.events = (events & POLLIN ? (uint32_t)EPOLLIN : 0u) | (events & POLLOUT ? (uint32_t)EPOLLOUT : 0u);
        if (!epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e))
                return 0;
        if (errno == ENOENT && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
                return 0;
        return -errno;
}

int snib__os_epoll_wait(int epoll, struct snib__ready ret[SNIB__READY_MAX], int limit_ms)
{
        _unset_ struct epoll_event events[SNIB__READY_MAX];
        int n = epoll_wait(epoll, events, SNIB__READY_MAX, limit_ms);

        for (int i = 0; i < n; i++)
                ret[i] = (struct snib__ready){.fd = events[i].data.fd, .events = (short)events[i].events};
        return n < 0 ? 0 : n;
}

void snib__os_sleep(_Atomic uint32_t *word, uint32_t expected, snib__ns until)
{
        snib__ns now = snib__os_now();

        while (atomic_load_explicit(word, memory_order_acquire) == expected && now < until) {
                struct timespec limit = timespec_of(until - now);

                (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, until == SNIB__NEVER ? NULL : &limit, NULL,
                              0);
                now = snib__os_now();
        }
}

void snib__os_wake(_Atomic uint32_t *word)
{
        (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void snib__os_sleep_bit(_Atomic uint32_t *word, uint32_t expected, uint32_t bit)
{
        (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL, bit);
}

void snib__os_wake_bits(_Atomic uint32_t *word, uint32_t bits)
{
        (void)syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
}

void snib__os_yield(void)
{
        (void)sched_yield();
}

int snib__os_processors(void)
{
        cpu_set_t set;

        return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

int snib__os_random(void *bytes, size_t length)
{
        ssize_t n;

        do
                n = getrandom(bytes, length, 0); /* up to 256 bytes come in one piece */
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)length ? 0 : n < 0 ? -errno : -EIO;
}

int snib__os_thread_start(pthread_t *ret, void *(*run)(void *), void *arg, const char *name)
{
        sigset_t all, before;
        int r;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(ret, NULL, run, arg);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!r)
                (void)pthread_setname_np(*ret, name);
        return -r;
}

void snib__os_close(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd);
        *fd = -1;
}

void snib__os_host(char *ret, size_t size)
{
        if (gethostname(ret, size) < 0)
                ret[0] = 0;
        ret[size - 1] = 0;
}

void snib__os_program(char *ret, size_t size)
{
        (void)snprintf(ret, size, "%s", program_invocation_short_name ? program_invocation_short_name : "");
}

int64_t snib__os_pid(void)
{
        return getpid();
}
