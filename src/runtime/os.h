/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_OS_H
#define SNIB_RUNTIME_OS_H

/*
 * Every system call the runtime makes, and nothing else: no policy, no state. Engines have their
 * own. All functions are thread-safe; all descriptors are close-on-exec and non-blocking.
 */

#include "base/time.h"
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CLOCK_BOOTTIME: counts suspend, does not jump. The vdso answers; no system call.
 * Async-signal-safe. */
snib__ns snib__os_now(void);

/* Waits at most `timeout` (0: not at all, SNIB__NEVER: without limit). An error counts as "nothing
 * is ready": revents are then 0. */
void snib__os_poll(struct pollfd *fds, int count, snib__ns timeout);

/* An eventfd that is readable from _set until _clear. A descriptor or -errno. */
int snib__os_event_new(void);
void snib__os_event_set(int fd);
void snib__os_event_clear(int fd);

/* A timerfd on CLOCK_BOOTTIME: it is readable once `due` has passed, also when that happened in a
 * suspend. */
int snib__os_timer_new(void);
void snib__os_timer_set(int fd, snib__ns due);

/* An epoll descriptor, level-triggered. `events` are POLLIN and POLLOUT. Setting works for a
 * descriptor that is in the set already, and for one whose number was closed and used again. */
int snib__os_epoll_new(void);
int snib__os_epoll_set(int epoll, int fd, short events);
/* Waits until something is ready, at most `limit_ms` (0: not at all, -1: without limit). Says how
 * many are. */
struct snib__ready {
        int fd;
        short events;
};
#define SNIB__READY_MAX 12
int snib__os_epoll_wait(int epoll, struct snib__ready ret[SNIB__READY_MAX], int limit_ms);

/* Sleeps while *word is `expected`, at most until `until`. */
void snib__os_sleep(_Atomic uint32_t *word, uint32_t expected, snib__ns until);
/* Wakes whoever sleeps on the address. Reads nothing there: the word may be gone by now. */
void snib__os_wake(_Atomic uint32_t *word);
/* The same with one word for up to 32: whoever sleeps under a bit is woken by a call whose `bits`
 * have it. */
void snib__os_sleep_bit(_Atomic uint32_t *word, uint32_t expected, uint32_t bit);
void snib__os_wake_bits(_Atomic uint32_t *word, uint32_t bits);

void snib__os_yield(void);
/* How many processors this process may use, at least 1. */
int snib__os_processors(void);

/* 0 or -errno. */
int snib__os_random(void *bytes, size_t length);

/* A joinable thread with all signals blocked, so that the program's handlers never run on it: 0 or
 * -errno. */
int snib__os_thread_start(pthread_t *ret, void *(*run)(void *), void *arg, const char *name);

void snib__os_close(int *fd);

/* Texts about this process; truncated, never empty-handed: "" if unknown. */
void snib__os_host(char *ret, size_t size);
void snib__os_program(char *ret, size_t size);
int64_t snib__os_pid(void);

#endif
