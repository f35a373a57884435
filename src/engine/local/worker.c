/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs work under the gate: at once on the caller's thread when nobody is in the way, else on the
 * one thread per store that may wait. Not a pool, and it knows nothing of locks. The thread waits
 * for the gate with an open file description of its own, so it and the inline path exclude each
 * other like two processes do, and nobody holds a mutex while it waits for another process.
 *
 * The wait of the kernel call cannot be bounded without signals, which a library does not use; so
 * it is the callers' patience that is bounded: they take their work back. A thread that hangs at
 * the gate of a store that is closed is left behind with its own memory and ends when the gate
 * opens.
 */

#include "engine/local/worker.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "engine/local/store.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct snib__worker {
        pthread_mutex_t lock;
        pthread_cond_t more;     /* for the thread: work, or quit */
        pthread_cond_t finished; /* for snib__worker_wait() */
        struct snib__list queue;
        struct snib__store *store; /* not touched any more once `quit` is set */
        int gate_fd;
        pthread_t thread;
        bool started;
        bool at_gate;
        bool quit;
        bool abandoned;
};

/* Stop signals and all others that can be held back. Two system calls, a tenth of a microsecond
 * each. */
static void block_signals(sigset_t *ret_old)
{
        sigset_t all;

        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, ret_old);
}

static void restore_signals(const sigset_t *old)
{
        (void)pthread_sigmask(SIG_SETMASK, old, NULL);
}

static bool run_with_gate(struct snib__store *s, struct snib__work *work)
{
        sigset_t old;
        bool got;

        /* ^Z of a single-threaded program must not stop it at the gate. Without a terminal there is
         * no ^Z. */
        if (s->terminal)
                block_signals(&old);
        got = snib__gate_try(s->gate_fd);
        if (got) {
                work->run(work);
                snib__gate_leave(s->gate_fd);
        }
        if (s->terminal)
                restore_signals(&old);
        return got && !work->again;
}

static bool run_without_gate(struct snib__work *work)
{
        work->run(work);
        return !work->again;
}

bool snib__worker_now(struct snib__store *store, struct snib__work *work)
{
        bool ran;

        if (pthread_mutex_trylock(&store->lock) != 0)
                return false;
        work->patient = false;
        work->again = false;
        ran = !work->gate && run_without_gate(work);
        if (!ran && work->gate) {
                work->again = false;
                ran = run_with_gate(store, work);
        }
        (void)pthread_mutex_unlock(&store->lock);
        if (ran && work->after)
                work->after(work);
        return ran;
}

static struct snib__work *front(struct snib__worker *w)
{
        return snib__list_empty(&w->queue) ? NULL : snib__container(w->queue.next, struct snib__work, link);
}

static void run_patiently(struct snib__worker *w, struct snib__work *work)
{
        struct snib__store *s = w->store;

        (void)pthread_mutex_lock(&s->lock);
        work->patient = true;
        work->again = false;
        work->run(work);
        (void)pthread_mutex_unlock(&s->lock);
}

static void finish(struct snib__worker *w, struct snib__work *work)
{
        if (work->after)
                work->after(work);
        (void)pthread_mutex_lock(&w->lock);
        work->finished = true;
        if (work->deliver)
                work->deliver(work); /* from here on it is somebody else's */
        (void)pthread_cond_broadcast(&w->finished);
        (void)pthread_mutex_unlock(&w->lock);
}

/* Takes the first work of the queue, when `gated` is what it needs. Called and left with the
 * lock. */
static struct snib__work *take(struct snib__worker *w, bool gated)
{
        struct snib__work *work = front(w);

        if (!work || (work->gate && !gated))
                return NULL;
        snib__list_remove(&work->link);
        return work;
}

/* Waits at the gate for whoever is first, then runs whoever is first by then: the one it waited for
 * may have been taken back. */
static void step(struct snib__worker *w)
{
        bool gated = front(w)->gate;
        struct snib__work *work;

        w->at_gate = true;
        (void)pthread_mutex_unlock(&w->lock);
        if (gated)
                gated = snib__gate_wait(w->gate_fd);
        (void)pthread_mutex_lock(&w->lock);
        w->at_gate = false;
        work = w->quit ? NULL : take(w, gated);
        (void)pthread_mutex_unlock(&w->lock);
        if (work)
                run_patiently(w, work);
        if (gated)
                snib__gate_leave(w->gate_fd); /* not by closing: a child may have a copy */
        if (work && work->again) {
                (void)pthread_mutex_lock(&w->lock);
                snib__list_append(w->queue.next, &work->link); /* before the first */
                return;
        }
        if (work)
                finish(w, work);
        (void)pthread_mutex_lock(&w->lock);
}

static void *main_loop(void *arg)
{
        struct snib__worker *w = arg;
        bool abandoned;

        (void)pthread_mutex_lock(&w->lock);
        while (!w->quit) {
                if (front(w))
                        step(w);
                else
                        (void)pthread_cond_wait(&w->more, &w->lock);
        }
        abandoned = w->abandoned;
        (void)pthread_mutex_unlock(&w->lock);
        if (abandoned)
                snib__worker_free(w);
        return NULL;
}

/* Called with the lock. */
static int start(struct snib__worker *w, struct snib_error *err)
{
        sigset_t old;
        int r;

        if (w->started)
                return 0;
        block_signals(&old);
        r = pthread_create(&w->thread, NULL, main_loop, w);
        restore_signals(&old);
        if (r)
                return snib__error_errno(err, SNIB_ESYSTEM, r, "cannot start the thread that waits at the gate");
        w->started = true;
        return 0;
}

int snib__worker_new(struct snib__worker **ret_worker, struct snib__store *store, const struct snib__place *place,
                     struct snib_error *err)
{
        struct snib__worker *w = snib__alloc(sizeof(*w));
        pthread_condattr_t attr;
        int r;

        if (!w)
                return snib__error(err, SNIB_ENOMEM, "out of memory");
        w->gate_fd = -1;
        w->store = store;
        snib__list_init(&w->queue);
        (void)pthread_mutex_init(&w->lock, NULL);
        (void)pthread_condattr_init(&attr);
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        (void)pthread_cond_init(&w->more, NULL);
        (void)pthread_cond_init(&w->finished, &attr);
        (void)pthread_condattr_destroy(&attr);
        r = snib__place_file(place, "gate", &w->gate_fd, err);
        if (r < 0)
                snib__worker_free(w);
        else
                *ret_worker = w;
        return r;
}

void snib__worker_free(struct snib__worker *w)
{
        if (!w)
                return;
        if (w->gate_fd >= 0)
                (void)close(w->gate_fd);
        (void)pthread_cond_destroy(&w->more);
        (void)pthread_cond_destroy(&w->finished);
        (void)pthread_mutex_destroy(&w->lock);
        free(w);
}

void snib__worker_stop(struct snib__worker *w)
{
        bool join, leave;

        (void)pthread_mutex_lock(&w->lock);
        snib__assert(front(w) == NULL);
        w->quit = true;
        leave = w->started && w->at_gate;
        join = w->started && !w->at_gate;
        w->abandoned = leave;
        if (leave)
                (void)pthread_detach(w->thread);
        (void)pthread_cond_signal(&w->more);
        (void)pthread_mutex_unlock(&w->lock);
        if (leave)
                return;
        if (join)
                (void)pthread_join(w->thread, NULL);
        snib__worker_free(w);
}

int snib__worker_add(struct snib__worker *w, struct snib__work *work, struct snib_error *err)
{
        int r;

        (void)pthread_mutex_lock(&w->lock);
        r = start(w, err);
        if (r == 0) {
                work->finished = false;
                snib__list_append(&w->queue, &work->link);
                (void)pthread_cond_signal(&w->more);
        }
        (void)pthread_mutex_unlock(&w->lock);
        return r;
}

static bool cancel(struct snib__worker *w, struct snib__work *work)
{
        snib__list_each (l, &w->queue) {
                if (l == &work->link) {
                        snib__list_remove(l);
                        return true;
                }
        }
        return false;
}

bool snib__worker_cancel(struct snib__worker *w, struct snib__work *work)
{
        bool taken;

        (void)pthread_mutex_lock(&w->lock);
        taken = cancel(w, work);
        (void)pthread_mutex_unlock(&w->lock);
        return taken;
}

/* The point of CLOCK_MONOTONIC that lies as far ahead as `deadline` does on CLOCK_BOOTTIME. */
static struct timespec monotonic(snib__ns deadline)
{
        struct timespec boot, mono;
        snib__ns ns;

        (void)clock_gettime(CLOCK_BOOTTIME, &boot);
        (void)clock_gettime(CLOCK_MONOTONIC, &mono);
        ns = deadline - ((snib__ns)boot.tv_sec * SNIB__S + boot.tv_nsec) + (snib__ns)mono.tv_sec * SNIB__S +
             mono.tv_nsec;
        ns = snib__max(ns, 0);
        return (struct timespec){.tv_sec = (time_t)(ns / SNIB__S), .tv_nsec = (long)(ns % SNIB__S)};
}

bool snib__worker_wait(struct snib__worker *w, struct snib__work *work, snib__ns deadline)
{
        struct timespec until = monotonic(deadline);
        bool finished;

        (void)pthread_mutex_lock(&w->lock);
        while (!work->finished && pthread_cond_timedwait(&w->finished, &w->lock, &until) != ETIMEDOUT)
                ;
        while (!work->finished && !cancel(w, work))
                (void)pthread_cond_wait(&w->finished, &w->lock);
        finished = work->finished;
        (void)pthread_mutex_unlock(&w->lock);
        return finished;
}

void snib__worker_lock(struct snib__worker *w)
{
        (void)pthread_mutex_lock(&w->lock);
}

void snib__worker_unlock(struct snib__worker *w)
{
        (void)pthread_mutex_unlock(&w->lock);
}

void snib__worker_before_fork(struct snib__worker *w)
{
        (void)pthread_mutex_lock(&w->lock);
}

void snib__worker_after_fork(struct snib__worker *w, bool child)
{
        (void)pthread_mutex_unlock(&w->lock);
        if (!child)
                return;
        /* Its thread is not in the child; who waited on these is gone as well, and would be waited
         * for when they are destroyed. */
        (void)pthread_cond_init(&w->more, NULL);
        (void)pthread_cond_init(&w->finished, NULL);
        if (w->gate_fd >= 0)
                (void)close(w->gate_fd);
        w->gate_fd = -1;
}
