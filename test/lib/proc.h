/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_PROC_H
#define SNIB_TEST_PROC_H

/*
 * A child process of a test. It is killed when the thread that started it ends, however that
 * happens.
 *
 *     struct proc p;
 *     proc_start(&p, holder, url);           // static void holder(struct proc *me, void *arg)
 *     assert_int_equal(proc_hear(&p, 5000), 'h');
 *     proc_kill(&p, SIGKILL);
 *
 * Both sides have `in` and `out`; one byte is a message. Start children before clients and threads
 * are made: a fork carries over the calling thread only. Thread class: one thread at a time, the
 * one that started it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
        pid_t pid; /* 0: ended */
        int in;
        int out;
};

/* fork(2), in a build with a sanitizer once the other threads sleep (or after a few seconds): its
 * allocator has locks, and one that another thread holds stays locked in the child for ever. */
pid_t proc_fork(void);

/* Forks; the child runs run() and ends with 0 when that returns. */
void proc_start(struct proc *p, void (*run)(struct proc *me, void *arg), void *arg);

/* Forks and executes `argv` (argv[0] a path), its standard input and output being the pipes. `env`:
 * "A=b" strings put into its environment, NULL-terminated, or NULL. */
void proc_exec(struct proc *p, const char *const *argv, const char *const *env);

/* Sends a byte. */
void proc_say(struct proc *p, char what);
/* The next byte, 0 after ms or at the end. */
char proc_hear(struct proc *p, int64_t ms);
/* Exactly `size` bytes within ms. */
bool proc_take(struct proc *p, void *ret, size_t size, int64_t ms);
void proc_give(struct proc *p, const void *bytes, size_t size);

void proc_stop(struct proc *p);            /* SIGSTOP, and waits until it is stopped */
void proc_resume(struct proc *p);          /* SIGCONT */
int proc_kill(struct proc *p, int signal); /* sends the signal, waits for the end: the status of waitpid() */
int proc_wait(struct proc *p, int64_t ms); /* its end by itself: the status, or -1 (then it was killed) */

#endif
