/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who steps a multilock's machine, and when: the thread that waits for it, if one does; otherwise
 * what is posted to a member's client, where its callbacks run. What is told by a client comes
 * under that client's lock and only sets atomics, then rings for the one who waits, or posts. A
 * member's end is noted before the bell is rung, and one who stops waiting deserts the bell before
 * he looks for ends: one of the two sees the other.
 *
 * A client that closes tells its members and then waits for what they posted; that takes the
 * record's lock. So whoever has the record's lock and finds a member there may use its client until
 * he gives the lock back.
 *
 * A record is referred to by whoever may still touch it, and freed by the last, who may have a
 * client's lock: by then its members are detached.
 */

#include "base/alloc.h"
#include "base/error.h"
#include "runtime/multi.h"
#include <stdlib.h>
#include <string.h>

void snib__multi_ref(struct snib_multigrant *g)
{
        (void)atomic_fetch_add(&g->refs, 1);
}

void snib__multi_unref(struct snib_multigrant *g)
{
        int fd = atomic_load(&g->loss_fd);

        if (atomic_fetch_sub(&g->refs, 1) != 1)
                return;
        snib__os_close(&fd);
        snib__os_close(&g->bell.fd);
        (void)pthread_mutex_destroy(&g->lock);
        free(g);
}

static size_t number_of(const struct snib__member *p)
{
        return (size_t)(p - p->of->members);
}

static void post(struct snib__member *p)
{
        snib__multi_ref(p->of);
        if (!snib__member_post(p))
                snib__multi_unref(p->of);
}

void snib__multigrant_ended(struct snib__member *p)
{
        struct snib_multigrant *g = p->of;

        atomic_store(&p->ended, true);
        if (!snib__bell_ring(&g->bell))
                post(p);
        snib__multi_unref(g); /* of the call: last */
}

void snib__multigrant_lost(struct snib__member *p, int reason)
{
        int fd;

        if (snib__multi_lost(&p->of->machine, number_of(p), reason, p->gone)) {
                fd = atomic_load(&p->of->loss_fd);
                if (fd >= 0)
                        snib__os_event_set(fd);
        }
        post(p);
}

void snib__multigrant_closed(struct snib__member *p)
{
        snib__multi_closed(&p->of->machine, number_of(p));
        (void)snib__bell_ring(&p->of->bell);
        post(p);
}

/* One callback that is due, with the lock held, which is dropped around it. False: there is
 * none. */
static bool tell(struct snib_multigrant *g)
{
        const struct snib__multi *m = &g->machine;
        snib_multilocked_callback *acquired = m->answered ? g->acquired : NULL;
        snib_multiloss_callback *lost = atomic_load(&m->loss) ? g->lost : NULL;
        snib_done_callback *done = m->released ? g->done : NULL;
        struct snib_error err = g->err;
        int result = m->result;

        if (acquired)
                g->acquired = NULL;
        else if (lost)
                g->lost = NULL; /* once */
        else if (done)
                g->done = NULL;
        else
                return false;
        (void)pthread_mutex_unlock(&g->lock);
        if (acquired)
                acquired(g->acquired_arg, result, result == 1 ? g : NULL, result < 0 ? &err : NULL);
        else if (lost)
                lost(g->lost_arg, g, atomic_load(&m->loss));
        else
                done(g->done_arg, result, result < 0 ? &err : NULL);
        (void)pthread_mutex_lock(&g->lock);
        return true;
}

static bool something_to_tell(const struct snib_multigrant *g)
{
        return (g->machine.answered && g->acquired) || (atomic_load(&g->machine.loss) && g->lost) ||
               (g->machine.released && g->done);
}

bool snib__multi_post(struct snib_multigrant *g)
{
        for (size_t i = 0; i < g->machine.count; i++) {
                if (!snib__member_is_there(&g->members[i]))
                        continue;
                snib__multi_ref(g);
                if (!snib__member_post_locked(&g->members[i]))
                        snib__multi_unref(g);
                return true;
        }
        return false;
}

/* Nothing is under way at any member and nobody has a call left: the record is its referrers'
 * only. */
static bool is_over(struct snib_multigrant *g)
{
        if (g->machine.phase != SNIB__MULTI_OVER || g->over || something_to_tell(g))
                return false;
        g->over = true;
        for (size_t i = 0; i < g->machine.count; i++)
                if (snib__member_is_there(&g->members[i]))
                        snib__member_detach(&g->members[i]);
        return true;
}

static void paused(void *arg, int result, const struct snib_error *err)
{
        struct snib_multigrant *g = arg;

        (void)result, (void)err;
        (void)pthread_mutex_lock(&g->lock);
        g->pause_until = SNIB__NEVER;
        (void)pthread_mutex_unlock(&g->lock);
        snib__multi_run(g);
        snib__multi_unref(g);
}

/* A client that can pause for us, pinned. */
static struct snib_client *pin_one(struct snib_multigrant *g)
{
        for (size_t i = 0; i < g->machine.count; i++)
                if (snib__member_is_there(&g->members[i]) && snib__member_pin(&g->members[i]))
                        return g->members[i].client;
        return NULL;
}

/* Nobody waits: somebody has to look again at `due`. Drops the lock for a moment. True: step again
 * now. */
static bool pause_for(struct snib_multigrant *g, snib__ns due)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_client *c;
        int r;

        if (due >= g->pause_until || snib__bell_attended(&g->bell) || !(c = pin_one(g)))
                return false;
        g->pause_until = due;
        snib__multi_ref(g);
        (void)pthread_mutex_unlock(&g->lock);
        r = snib__pause_async(c, snib__max(due - snib__os_now(), 0), paused, g, &err);
        snib__member_unpin(c);
        (void)pthread_mutex_lock(&g->lock);
        if (r == 0)
                return false;
        snib__multi_unref(g);
        g->pause_until = SNIB__NEVER;
        if (g->machine.phase != SNIB__MULTI_PAUSING)
                return false; /* what is under way ends by itself */
        g->err = err;         /* nobody would look again: better an error than a hang */
        snib__multi_give_up(&g->machine, r, snib__os_now());
        return true;
}

/* Steps; `here`: this is where callbacks run. */
static void run(struct snib_multigrant *g, bool here)
{
        bool over;

        (void)pthread_mutex_lock(&g->lock);
        while (pause_for(g, snib__multi_advance(g)) || (here && tell(g)))
                ;
        if (!here && something_to_tell(g))
                (void)snib__multi_post(g);
        over = is_over(g);
        (void)snib__bell_ring(&g->bell); /* who waits may have to look again earlier than he thinks */
        (void)pthread_mutex_unlock(&g->lock);
        if (over)
                snib__multi_unref(g);
}

void snib__multi_run(struct snib_multigrant *g)
{
        run(g, false);
}

void snib__multigrant_posted(struct snib__member *p)
{
        struct snib_multigrant *g = p->of;

        run(g, true);
        snib__multi_unref(g);
}

/* ---- one who waits */

/* A client of the application's event loop: whoever waits drives it meanwhile. */
static bool is_idle(const struct snib__member *p)
{
        return p->client->threads == SNIB_THREADS_NONE;
}

/* The clients of members that nobody else drives, each once, pinned. */
static int pin_idle(struct snib_multigrant *g, struct snib_client **ret)
{
        int n = 0;

        for (size_t i = 0; i < g->machine.count; i++) {
                struct snib__member *p = &g->members[i];
                bool known = false;

                if (!snib__member_is_there(p) || !is_idle(p))
                        continue;
                for (int k = 0; k < n; k++)
                        known |= ret[k] == p->client;
                if (!known && snib__member_pin(p))
                        ret[n++] = p->client;
        }
        return n;
}

/* Until the bell rings, or `due`. */
static void sleep_or_drive(struct snib_multigrant *g, struct snib_client *const *idle, int count, snib__ns due)
{
        if (g->bell.fd < 0)
                snib__bell_sleep(&g->bell, due);
        else
                snib__loop_turn(idle, count, g->bell.fd, due);
        for (int i = 0; i < count; i++)
                snib__member_unpin(idle[i]);
}

void snib__multi_wait(struct snib_multigrant *g, const bool *flag)
{
        struct snib_client *idle[SNIB_MULTILOCK_MAX];
        snib__ns due;
        bool done;
        int count;

        for (;;) {
                snib__bell_attend(&g->bell);
                (void)pthread_mutex_lock(&g->lock);
                due = snib__multi_advance(g);
                done = *flag;
                count = done ? 0 : pin_idle(g, idle);
                (void)pthread_mutex_unlock(&g->lock);
                if (done)
                        break;
                sleep_or_drive(g, idle, count, due);
        }
        snib__bell_desert(&g->bell);
        snib__multi_run(g); /* what came in between, and what goes on without us */
}

/* ---- the record */

static void member_init(struct snib_multigrant *g, size_t i, struct snib__object *object)
{
        struct snib__member *p = &g->members[i];
        struct snib__multi_member *m = &g->machine.members[i];

        p->of = g;
        p->object = object;
        snib__text_clean(p->name, sizeof(p->name), object->name, object->name_length);
        m->lease = object->lease;
        m->heard = &p->wait.call.heard;
        m->lasts = object->fixed ? object->lease : SNIB__NEVER;
        if (object->max_hold > 0)
                m->lasts = snib__min(m->lasts, object->max_hold);
}

static uint64_t seed(void)
{
        uint64_t r = 0;

        return snib__os_random(&r, sizeof(r)) < 0 ? (uint64_t)snib__os_now() : r;
}

static struct snib_multigrant *record_new(struct snib_multilock *m, const struct snib__patience *patience)
{
        struct snib__multi_config config = {.count = m->count,
                                            .red = m->red,
                                            .node_timeout = m->node_timeout,
                                            .once = patience->once,
                                            .deadline = snib__after(snib__os_now(), patience->wait),
                                            .order = m->order,
                                            .seed = seed()};
        struct snib_multigrant *g =
            snib__alloc(sizeof(*g) + m->count * (sizeof(g->members[0]) + sizeof(g->machine.members[0])));

        if (!g)
                return NULL;
        (void)pthread_mutex_init(&g->lock, NULL);
        atomic_init(&g->refs, 2); /* its own and the caller's */
        atomic_init(&g->loss_fd, -1);
        g->bell.fd = -1;
        snib__multi_init(&g->machine, &config, (struct snib__multi_member *)&g->members[m->count]);
        g->multilock = m;
        g->pause_until = SNIB__NEVER;
        for (size_t i = 0; i < m->count; i++)
                member_init(g, i, m->members[i]);
        return g;
}

static int attach(struct snib_multigrant *g, struct snib_error *err)
{
        const char *owner = snib__registry_thread(&g->owner_length);
        int r = owner ? 0 : snib__no_memory(err);

        if (r < 0)
                return r;
        memcpy(g->owner, owner, g->owner_length);
        for (size_t i = 0; i < g->machine.count && r == 0; i++) {
                r = snib__member_attach(&g->members[i], err);
                if (r == 0 && g->bell.fd < 0 && is_idle(&g->members[i])) {
                        g->bell.fd = snib__os_event_new();
                        if (g->bell.fd < 0)
                                r = snib__error_errno(err, SNIB_ESYSTEM, -g->bell.fd, "eventfd");
                }
        }
        return r;
}

int snib__multi_new(struct snib_multilock *m, const struct snib__patience *patience,
                    snib_multilocked_callback *acquired, void *arg, struct snib_multigrant **ret,
                    struct snib_error *err)
{
        struct snib_multigrant *g = record_new(m, patience);
        int r;

        if (!g)
                return snib__no_memory(err);
        r = attach(g, err);
        if (r < 0) {
                (void)pthread_mutex_lock(&g->lock);
                g->machine.phase = SNIB__MULTI_OVER;
                (void)is_over(g);
                (void)pthread_mutex_unlock(&g->lock);
                snib__multi_unref(g);
                snib__multi_unref(g);
                return r;
        }
        g->acquired = acquired;
        g->acquired_arg = arg;
        (void)pthread_mutex_lock(&m->lock);
        snib__list_append(&m->waits, &g->of_multilock); /* from here on another thread may cancel, and answer it */
        (void)pthread_mutex_unlock(&m->lock);
        *ret = g;
        return 0;
}
