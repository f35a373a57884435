/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client machine of core/core.h: its containers, the dispatch of events to the part of a hold's
 * life they concern, and the effects. Not the behaviour itself: that is in wait.c, held.c,
 * release.c and ask.c. Pure; one thread at a time.
 *
 * Every entry point first does what is due, so that no event is looked at by a hold whose deadline
 * has already passed.
 */

#include "core/internal.h"
#include <string.h>

static int compare_names(struct snib__name a, struct snib__name b)
{
        if (a.length != b.length)
                return a.length < b.length ? -1 : 1;
        return memcmp(a.bytes, b.bytes, a.length);
}

static const struct snib__hold *owner_hold(const struct snib__tree_node *n)
{
        return snib__container(n, const struct snib__hold, by_owner);
}

/* The two sides of a read-write lock are two holds of one owner. */
static int compare_side(int a, int b)
{
        int x = a == SNIB_KIND_READ ? 1 : a == SNIB_KIND_WRITE ? 2 : 0;
        int y = b == SNIB_KIND_READ ? 1 : b == SNIB_KIND_WRITE ? 2 : 0;

        return x - y;
}

struct owner_key {
        struct snib__name name, owner;
        int kind;
};

static int compare_owner_key(const struct snib__tree_node *n, const void *key)
{
        const struct owner_key *k = key;
        int r = compare_names(owner_hold(n)->name, k->name);

        if (!r)
                r = compare_names(owner_hold(n)->owner, k->owner);
        return r ? r : compare_side(owner_hold(n)->kind, k->kind);
}

static int compare_owner(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return compare_owner_key(a,
                                 &(struct owner_key){owner_hold(b)->name, owner_hold(b)->owner, owner_hold(b)->kind});
}

static const struct snib__hold *wait_hold(const struct snib__tree_node *n)
{
        return snib__container(n, const struct snib__hold, by_wait);
}

static int compare_wait_name(const struct snib__tree_node *n, const void *name)
{
        return compare_names(wait_hold(n)->name, *(const struct snib__name *)name);
}

static int compare_wait(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        const struct snib__hold *x = wait_hold(a), *y = wait_hold(b);
        int r = compare_names(x->name, y->name);

        return r ? r : (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

void snib__core_init(struct snib__core *c, const struct snib__core_config *config)
{
        memset(c, 0, sizeof(*c));
        c->config = *config;
        c->prng.state = config->seed;
        snib__list_init(&c->holds);
        snib__list_init(&c->asks);
        snib__list_init(&c->dirty_holds);
        snib__list_init(&c->dirty_asks);
        snib__list_init(&c->answered);
        snib__list_init(&c->postponed);
        snib__tree_init(&c->by_owner, compare_owner);
        snib__tree_init(&c->by_wait, compare_wait);
        snib__timers_init(c);
}

/* The hold's one timer: its next action, or the end of what its state lasts at most. */
static void rearm(struct snib__core *c, struct snib__hold *h)
{
        snib__ns due = h->wake_at;

        if (h->state == SNIB__HELD || h->state == SNIB__RELEASING || h->state == SNIB__LOST)
                due = snib__min(due, h->deadline);
        if (h->state == SNIB__IDLE)
                due = SNIB__NEVER;
        snib__timer_set(c, &h->timer, due);
}

void snib__hold_set(struct snib__core *c, struct snib__hold *h, enum snib__hold_state state)
{
        h->state = state;
        rearm(c, h);
}

void snib__hold_wake_at(struct snib__core *c, struct snib__hold *h, snib__ns when)
{
        h->wake_at = when;
        rearm(c, h);
}

void snib__hold_dirty(struct snib__core *c, struct snib__hold *h)
{
        if (!snib__list_linked(&h->dirty))
                snib__list_append(&c->dirty_holds, &h->dirty);
}

static void set_outstanding(struct snib__core *c, struct snib__hold *h, bool value)
{
        int change = (int)value - (int)h->outstanding;

        c->outstanding += change;
        c->renewing += h->verb == SNIB__RENEW ? change : 0;
        h->outstanding = value;
        snib__assert(c->outstanding >= 0);
}

void snib__hold_submit(struct snib__core *c, struct snib__hold *h, enum snib__verb verb, snib__ns now)
{
        set_outstanding(c, h, false); /* nobody listens to an earlier answer */
        snib__held_leave(h);
        h->attempt++;
        h->verb = verb;
        h->sent_at = now;
        h->submit = true;
        set_outstanding(c, h, true);
        snib__hold_dirty(c, h);
        snib__hold_wake_at(c, h, snib__after(now, c->config.op_timeout));
}

void snib__hold_forget(struct snib__core *c, struct snib__hold *h)
{
        set_outstanding(c, h, false);
        h->submit = false;
}

void snib__hold_finish(struct snib__core *c, struct snib__hold *h)
{
        snib__assert(snib__list_empty(&h->calls));
        c->farewells -= h->farewell;
        h->farewell = false;
        snib__assert(atomic_load_explicit(&h->valid_until, memory_order_relaxed) == 0);
        snib__tree_remove(&c->by_owner, &h->by_owner);
        snib__tree_remove(&c->by_wait, &h->by_wait);
        snib__hold_forget(c, h);
        h->cookie = 0;
        h->wake_at = SNIB__NEVER;
        snib__list_remove(&h->all);
        snib__hold_set(c, h, SNIB__IDLE);
        snib__hold_dirty(c, h);
}

void snib__fault_set(struct snib__fault *f, const struct snib__reply *r)
{
        size_t n = r->error_text ? strnlen(r->error_text, sizeof(f->text) - 1) : 0;

        f->code = r->error;
        f->engine_code = r->engine_code;
        if (n)
                memcpy(f->text, r->error_text, n);
        f->text[n] = 0;
}

const struct snib__fault snib__heard;

void snib__call_answer(struct snib__core *c, struct snib__call *call, int result, const struct snib__fault *fault)
{
        snib__assert(call->hold);
        call->hold = NULL;
        call->result = result;
        if (!fault)
                call->fault.engine_code = call->fault.text[0] = 0;
        else if (fault != SNIB__HEARD)
                call->fault = *fault;
        call->fault.code = fault ? result : 0;
        snib__timer_set(c, &call->timer, SNIB__NEVER);
        snib__list_remove(&call->link);
        snib__list_append(&c->answered, &call->link);
}

static struct snib__call *call_of(struct snib__list *link)
{
        return snib__container(link, struct snib__call, link);
}

void snib__hold_failed(struct snib__hold *h, const struct snib__reply *r)
{
        h->fault = (int16_t)r->error;
        snib__list_each (it, &h->calls)
                snib__fault_set(&call_of(it)->fault, r);
}

snib__ns snib__hold_backoff(struct snib__core *c, struct snib__hold *h, snib__ns most)
{
        h->failures += h->failures < UINT8_MAX;
        return snib__backoff(c, h->failures, most);
}

void snib__calls_answer(struct snib__core *c, struct snib__hold *h, enum snib__call_kind kind, int result,
                        const struct snib__fault *fault)
{
        for (struct snib__list *it = h->calls.next, *next; it != &h->calls; it = next) {
                next = it->next;
                if (call_of(it)->kind == kind)
                        snib__call_answer(c, call_of(it), result, fault);
        }
}

bool snib__calls_want(const struct snib__hold *h, enum snib__call_kind kind)
{
        snib__list_each (it, (struct snib__list *)&h->calls)
                if (call_of(it)->kind == kind)
                        return true;
        return false;
}

snib__ns snib__backoff(struct snib__core *c, int failures, snib__ns most)
{
        int doublings = failures < 1 ? 0 : failures > 20 ? 20 : failures - 1;
        snib__ns limit = snib__min(snib__max(most, SNIB__BACKOFF_MIN), SNIB__BACKOFF_MIN << doublings);

        return limit / 4 + (snib__ns)snib__prng_below(&c->prng, (uint64_t)(limit - limit / 4));
}

bool snib__reply_passing(const struct snib__reply *r)
{
        return r->error == SNIB_EUNKNOWN || r->error == SNIB_EUNREACHABLE || r->error == SNIB_ENOTREADY;
}

bool snib__hold_momentary(const struct snib__hold *h)
{
        return h->observe || snib__kind_momentary(h->kind);
}

snib__ns snib__lease_trusted(snib__ns lease)
{
        if (SNIB__BUG(no_drift_margin))
                return lease;
        return lease - lease / 500 - 2 * SNIB__MS;
}

struct snib__hold *snib__core_find(struct snib__core *c, struct snib__name name, struct snib__name owner, int kind)
{
        struct owner_key key = {name, owner, kind};
        struct snib__tree_node *n = snib__tree_seek_key(&c->by_owner, compare_owner_key, &key);

        return n && compare_owner_key(n, &key) == 0 ? (struct snib__hold *)owner_hold(n) : NULL;
}

static void attach(struct snib__core *c, struct snib__hold *h, struct snib__call *call)
{
        call->hold = h;
        call->timer.node.tag = SNIB__TIMER_CALL;
        if (!snib__list_empty(&h->calls)) {
                /* What those who wait have heard goes for this one, too. */
                call->fault = call_of(h->calls.next)->fault;
                call->holder = call_of(h->calls.next)->holder;
                atomic_store(&call->heard, atomic_load(&call_of(h->calls.next)->heard));
        }
        snib__list_append(&h->calls, &call->link);
        snib__timer_set(c, &call->timer, call->once ? SNIB__NEVER : call->deadline);
}

void snib__core_begin(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        snib__assert(h->state == SNIB__IDLE);
        snib__assert(h->name.length > 0 && snib__id_set(&h->id) && h->lease > 0);
        snib__list_init(&h->calls);
        h->cookie = ++c->cookies;
        h->n = h->n > 1 ? h->n : 1;
        h->timer.node.tag = SNIB__TIMER_HOLD;
        h->wake_at = h->deadline = SNIB__NEVER;
        snib__list_append(&c->holds, &h->all);
        if (h->owner.length == 0)
                h->owner = (struct snib__name){h->id.text, strlen(h->id.text)};
        snib__tree_add(&c->by_owner, &h->by_owner);
        attach(c, h, call);
        snib__wait_begin(c, h, now);
}

void snib__core_join(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        attach(c, h, call);
        if (h->state == SNIB__LOST || !h->reentrant)
                snib__call_answer(c, call, h->state == SNIB__LOST ? SNIB_ELOST : SNIB_EREENTRY, NULL);
        else if (h->state == SNIB__HELD)
                snib__held_join(c, h, now);
        else
                snib__wait_joined(c, h, call, now);
}

void snib__core_renew(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        attach(c, h, call);
        if (h->state != SNIB__HELD)
                snib__call_answer(c, call, SNIB_ELOST, NULL);
        else if (!h->outstanding)
                snib__hold_submit(c, h, SNIB__RENEW, now);
}

void snib__core_release(struct snib__core *c, struct snib__hold *h, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        snib__assert(h->depth > 0);
        snib__assert(h->state == SNIB__HELD || h->state == SNIB__LOST);
        attach(c, h, call);
        h->depth--;
        if (SNIB__BUG(cohort_after_loss) && h->state == SNIB__LOST && !h->depth && snib__cohort_hand_over(c, h, now))
                return;
        if (h->state == SNIB__LOST) {
                snib__call_answer(c, call, SNIB_ELOST, NULL);
                snib__lost_maybe_finish(c, h);
        } else if (h->depth > 0 || snib__calls_want(h, SNIB__CALL_ACQUIRE)) {
                snib__call_answer(c, call, 0, NULL);
        } else if (call->leave > now) {
                snib__leave_begin(c, h, call->leave, now);
        } else if (!snib__cohort_hand_over(c, h, now)) {
                snib__release_begin(c, h, now);
        }
}

void snib__core_cancel(struct snib__core *c, struct snib__call *call, int code, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = call->hold;
        if (!h)
                return;
        snib__call_answer(c, call, code, NULL);
        if (call->kind != SNIB__CALL_ACQUIRE || snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return;
        if (h->state == SNIB__ASKING || h->state == SNIB__WAITING)
                snib__wait_leave(c, h, now);
        else if (h->state == SNIB__HELD)
                snib__held_idle(c, h, now);
}

void snib__core_hurry(struct snib__core *c, struct snib__call *call, snib__ns now)
{
        snib__core_tick(c, now);
        if (call->hold)
                snib__wait_call_over(c, call, now);
}

void snib__core_disown(struct snib__core *c, struct snib__hold *h, int reason, snib__ns now)
{
        snib__core_tick(c, now);
        if (h->state == SNIB__HELD)
                snib__held_lose(c, h, reason, now);
}

/* What somebody had, or was giving back, is worth waiting for; what was only asked for is not. */
static void close_hold(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        h->farewell = h->state == SNIB__HELD || snib__calls_want(h, SNIB__CALL_RELEASE);
        c->farewells += h->farewell;
        snib__calls_answer(c, h, SNIB__CALL_ACQUIRE, SNIB_ECLOSED, NULL);
        snib__calls_answer(c, h, SNIB__CALL_RENEW, SNIB_ECLOSED, NULL);
        if (h->state == SNIB__ASKING || h->state == SNIB__WAITING)
                snib__wait_leave(c, h, now);
        if (h->state == SNIB__CANCELLING)
                snib__cancelling_close(c, h, now);
        else if (h->state == SNIB__HELD)
                snib__held_lose(c, h, SNIB_LOSS_CLOSED, now);
        if (h->state == SNIB__LOST) {
                h->depth = 0;
                snib__lost_maybe_finish(c, h);
        }
}

void snib__core_close(struct snib__core *c, snib__ns now)
{
        snib__core_tick(c, now);
        for (struct snib__list *it = c->holds.next, *next; it != &c->holds; it = next) {
                next = it->next;
                close_hold(c, snib__container(it, struct snib__hold, all), now);
        }
        for (struct snib__list *it = c->asks.next, *next; it != &c->asks; it = next) {
                next = it->next;
                snib__ask_answer(c, snib__container(it, struct snib__ask, link), SNIB_ECLOSED);
        }
}

static void dispatch_reply(struct snib__core *c, struct snib__hold *h, const struct snib__reply *r, snib__ns now)
{
        switch (h->state) {
        case SNIB__ASKING:
                snib__wait_reply(c, h, r, now);
                break;
        case SNIB__CANCELLING:
                snib__cancelling_reply(c, h, r, now);
                break;
        case SNIB__HELD:
                snib__held_reply(c, h, r, now);
                break;
        case SNIB__RELEASING:
        case SNIB__LOST:
                snib__release_reply(c, h, r, now);
                break;
        case SNIB__WAITING:
        case SNIB__IDLE:
                break; /* nothing is outstanding in these states */
        }
}

bool snib__core_reply_hold(struct snib__core *c, struct snib__hold *h, uint64_t cookie, uint32_t attempt,
                           const struct snib__reply *r, snib__ns now)
{
        snib__core_tick(c, now);
        if (h->cookie != cookie || cookie == 0)
                return false;
        if (!SNIB__BUG(reply_matched_by_id_only) && (h->attempt != attempt || !h->outstanding))
                return false;
        set_outstanding(c, h, false);
        dispatch_reply(c, h, r, now);
        snib__held_resume(c, now);
        return true;
}

/* The holds of one name in one of the two trees: the first, then by snib__tree_next() while
 * same_name(). */
struct snib__hold *snib__wait_first(struct snib__core *c, struct snib__name name)
{
        struct snib__tree_node *n = snib__tree_seek_key(&c->by_wait, compare_wait_name, &name);

        return n && compare_wait_name(n, &name) == 0 ? (struct snib__hold *)wait_hold(n) : NULL;
}

struct snib__hold *snib__wait_next(struct snib__hold *h)
{
        struct snib__tree_node *n = snib__tree_next(&h->by_wait);

        return n && compare_names(wait_hold(n)->name, h->name) == 0 ? (struct snib__hold *)wait_hold(n) : NULL;
}

/* The latch was open when it was asked for, and something happened to it: it was set. By the time
 * of the next question it may be open again, so that one is to be answered whatever is found. */
static void latch_noticed(struct snib__hold *h)
{
        if (h->observe && h->kind == SNIB_KIND_LATCH && (h->state == SNIB__WAITING || h->attempt > 1))
                h->token = SNIB__ANY_STATE;
}

void snib__core_changed(struct snib__core *c, struct snib__name name, bool all, snib__ns now)
{
        struct snib__hold *next;
        bool taken = false;

        snib__core_tick(c, now);
        if (SNIB__BUG(notification_dropped))
                return;
        for (struct snib__hold *h = snib__wait_first(c, name); h; h = next) {
                next = snib__wait_next(h);
                if (h->silent)
                        continue;
                latch_noticed(h);
                if (h->observe && !(taken && SNIB__BUG(observer_waits_its_turn)))
                        snib__wait_poke(c, h, false, now); /* takes nothing from anybody */
                else if (!taken || (all && h->kind != SNIB_KIND_WRITE))
                        snib__wait_poke(c, h, true, now); /* of several writers at most one gets in */
                taken |= !h->observe;
        }
}

void snib__core_watching(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns since,
                         snib__ns now)
{
        struct snib__hold *next;

        snib__core_tick(c, now);
        for (struct snib__hold *h = snib__wait_first(c, name); h; h = next) {
                next = snib__wait_next(h);
                if (!h->watched || since < h->sent_at || (since == h->sent_at && h->watch_asked) ||
                    (snib__id_set(id) && !snib__id_equal(id, &h->id)))
                        continue;
                if (!(h->attempt > 1 ? SNIB__BUG(no_retry_after_reconnecting) : SNIB__BUG(no_retry_after_subscribing)))
                        snib__wait_poke(c, h, false, now);
                h->watch_asked = true;
        }
}

static struct snib__hold *waiter(struct snib__core *c, struct snib__name name, const struct snib__id *id)
{
        struct snib__hold *h = snib__wait_first(c, name);

        while (h && !snib__id_equal(&h->id, id))
                h = snib__wait_next(h);
        return SNIB__BUG(notification_dropped) ? NULL : h;
}

void snib__core_granted(struct snib__core *c, struct snib__name name, const struct snib__id *id, uint32_t attempt,
                        const struct snib__reply *r, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = waiter(c, name, id);
        if (!h)
                return;
        latch_noticed(h);
        h->streak = r->streak; /* also if it has to ask whether it holds: others wait for the end of the streak */
        if (!snib__wait_granted(c, h, attempt, r, now))
                snib__wait_poke(c, h, false, now);
}

void snib__core_next_in_line(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = waiter(c, name, id);
        if (h && h->state == SNIB__WAITING)
                snib__hold_wake_at(c, h, snib__min(h->wake_at, snib__after(now, SNIB__YIELD)));
        else if (h)
                snib__wait_poke(c, h, false, now);
}

struct snib__hold *snib__core_held(struct snib__core *c, struct snib__name name, const struct snib__id *id)
{
        struct owner_key key = {.name = name, .owner = {"", 0}};
        struct snib__tree_node *n = snib__tree_seek_key(&c->by_owner, compare_owner_key, &key);

        for (; n; n = snib__tree_next(n)) {
                struct snib__hold *h = (struct snib__hold *)owner_hold(n);

                if (compare_names(h->name, name) != 0)
                        return NULL;
                if (snib__id_equal(&h->id, id))
                        return h->state == SNIB__HELD ? h : NULL;
        }
        return NULL;
}

int64_t snib__core_silent(struct snib__core *c, struct snib__name name)
{
        int64_t n = 0;

        for (struct snib__hold *h = snib__wait_first(c, name); h; h = snib__wait_next(h))
                n += h->silent;
        return n;
}

void snib__core_ended(struct snib__core *c, struct snib__name name, const struct snib__id *id, snib__ns now)
{
        struct snib__hold *h;

        snib__core_tick(c, now);
        h = snib__core_held(c, name, id);
        if (h)
                snib__held_check(c, h, now);
}

/* The link is back: what was tried in vain is tried again at once, what is held is checked, who
 * waits may have missed a change. */
static void relink(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (h->silent)
                return;
        if (h->state == SNIB__WAITING) {
                if (!SNIB__BUG(no_retry_after_reconnecting))
                        snib__wait_poke(c, h, false, now);
        } else if (h->state == SNIB__HELD)
                snib__held_check(c, h, now);
        else if (!h->outstanding && h->wake_at != SNIB__NEVER)
                snib__release_wake(c, h, now);
}

void snib__core_link(struct snib__core *c, bool up, int error, int engine_code, const char *text, snib__ns now)
{
        struct snib__reply why = {
            .status = SNIB__FAILED, .error = error, .engine_code = engine_code, .error_text = text};

        snib__core_tick(c, now);
        if (!up && c->downs == 0)
                c->down_since = now;
        c->link_up = up;
        c->downs = up ? 0 : c->downs + 1;
        for (struct snib__list *it = c->holds.next, *next; it != &c->holds; it = next) {
                struct snib__hold *h = snib__container(it, struct snib__hold, all);

                next = it->next;
                if (up)
                        relink(c, h, now);
                else if (h->state == SNIB__WAITING && !h->silent) {
                        snib__hold_failed(h, &why);
                        snib__wait_link_down(c, h, now);
                }
        }
        for (struct snib__list *it = c->asks.next, *next; up && it != &c->asks; it = next) {
                next = it->next;
                snib__ask_retry_now(c, snib__container(it, struct snib__ask, link), now);
        }
}

/* An answer that did not come in time is one whose fate is unknown. */
static void time_out(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        static const struct snib__reply late = {
            .status = SNIB__FAILED, .error = SNIB_EUNKNOWN, .error_text = "the engine did not answer in time"};

        snib__hold_forget(c, h);
        dispatch_reply(c, h, &late, now);
}

static void wake_hold(struct snib__core *c, struct snib__hold *h, snib__ns now)
{
        if (h->state == SNIB__HELD && now >= h->deadline)
                snib__held_wake(c, h, now);
        else if ((h->state == SNIB__RELEASING || h->state == SNIB__LOST) && now >= h->deadline)
                snib__release_wake(c, h, now);
        else if (h->outstanding)
                time_out(c, h, now);
        else if (h->state == SNIB__WAITING)
                snib__wait_wake(c, h, now);
        else if (h->state == SNIB__HELD)
                snib__held_wake(c, h, now);
        else
                snib__release_wake(c, h, now);
}

static void wake_call(struct snib__core *c, struct snib__call *call, snib__ns now)
{
        if (call->kind == SNIB__CALL_ACQUIRE)
                snib__wait_call_over(c, call, now);
        else
                snib__release_call_over(c, call, now);
}

static void wake(struct snib__core *c, struct snib__timer *t, snib__ns now)
{
        switch ((enum snib__timer_of)t->node.tag) {
        case SNIB__TIMER_HOLD:
                wake_hold(c, snib__container(t, struct snib__hold, timer), now);
                break;
        case SNIB__TIMER_CALL:
                wake_call(c, snib__container(t, struct snib__call, timer), now);
                break;
        case SNIB__TIMER_ASK:
                snib__ask_wake(c, snib__container(t, struct snib__ask, timer), now);
                break;
        }
}

void snib__core_tick(struct snib__core *c, snib__ns now)
{
        struct snib__timer *t;

        while ((t = snib__timer_first(c)) && t->due <= now) {
                snib__timer_set(c, t, SNIB__NEVER);
                wake(c, t, now);
        }
        snib__held_resume(c, now);
}

snib__ns snib__core_deadline(const struct snib__core *c)
{
        const struct snib__timer *t = snib__timer_first(c);

        return t ? t->due : SNIB__NEVER;
}

static bool effect(struct snib__effect *ret, enum snib__effect_kind kind, struct snib__hold *h)
{
        *ret = (struct snib__effect){.kind = kind, .hold = h};
        return true;
}

/* The write hold of the same owner lets a reader in, also one that began to wait before the owner
 * had it. */
static void name_own_writer(struct snib__core *c, const struct snib__hold *h, struct snib__id *ret)
{
        const struct snib__hold *writer = snib__core_find(c, h->name, h->owner, SNIB_KIND_WRITE);

        if (writer && writer->state == SNIB__HELD)
                *ret = writer->id;
}

/* What a hold asks for, in the core's own op: the fields that no hold sets stay zero. */
static void fill_op(struct snib__core *c, struct snib__hold *h, struct snib__op *op)
{
        op->verb = h->verb;
        op->kind = h->kind;
        op->enqueue = h->verb == SNIB__ACQUIRE && h->queued;
        op->n = h->n;
        op->settled = !h->stray;
        op->number = h->attempt;
        op->streak = h->generous ? SNIB__STREAK_MAX : h->streak;
        op->name = h->name;
        op->id = h->id;
        op->who = c->config.who;
        op->lease_ms = h->lease / SNIB__MS;
        op->leave = h->leaving;
        if (h->leaving)
                op->lease_ms = (snib__max(h->leave_end - h->sent_at, 1) + SNIB__MS - 1) / SNIB__MS;
        op->token = 0;
        op->under.text[0] = 0;
        if (h->verb != SNIB__ACQUIRE)
                return;
        if (h->observe)
                op->verb = SNIB__OBSERVE;
        if (h->observe || !SNIB__BUG(token_not_compared_on_reentry))
                op->token = h->token - h->passed;
        if (h->kind == SNIB_KIND_READ && !SNIB__BUG(own_writer_not_named))
                name_own_writer(c, h, &op->under);
}

static bool submit_hold(struct snib__core *c, struct snib__hold *h, struct snib__effect *ret)
{
        effect(ret, SNIB__EFFECT_SUBMIT, h);
        fill_op(c, h, &c->op);
        h->submit = false;
        ret->op = &c->op;
        ret->cookie = h->cookie;
        ret->attempt = h->attempt;
        return true;
}

/* The next effect of a dirty hold, in the order in which they make sense; false if it has none
 * left. */
static bool next_of_hold(struct snib__core *c, struct snib__hold *h, struct snib__effect *ret)
{
        if (h->lost_pending) {
                h->lost_pending = false;
                c->losses--;
                return effect(ret, SNIB__EFFECT_LOST, h);
        }
        if (h->unwatch_pending) {
                h->unwatch_pending = false;
                return effect(ret, SNIB__EFFECT_UNWATCH, h);
        }
        if (h->watch_pending) {
                h->watch_pending = false;
                return effect(ret, SNIB__EFFECT_WATCH, h);
        }
        if (h->submit)
                return submit_hold(c, h, ret);
        snib__list_remove(&h->dirty);
        return h->state == SNIB__IDLE && effect(ret, SNIB__EFFECT_FREE, h);
}

/* Whoever was told of it goes to the end: where all are lost the next one is the first. */
static bool next_loss(struct snib__core *c, struct snib__effect *ret)
{
        snib__list_each (it, &c->dirty_holds) {
                struct snib__hold *h = snib__container(it, struct snib__hold, dirty);

                if (!h->lost_pending)
                        continue;
                snib__list_remove(&h->dirty);
                snib__list_append(&c->dirty_holds, &h->dirty);
                return next_of_hold(c, h, ret);
        }
        return false;
}

bool snib__core_next(struct snib__core *c, struct snib__effect *ret)
{
        if (c->losses > 0 && next_loss(c, ret))
                return true;
        if (!snib__list_empty(&c->answered)) {
                struct snib__call *call = call_of(snib__list_take(&c->answered));

                effect(ret, SNIB__EFFECT_ANSWER, NULL);
                ret->call = call;
                return true;
        }
        while (!snib__list_empty(&c->dirty_asks)) {
                struct snib__ask *a = snib__container(snib__list_take(&c->dirty_asks), struct snib__ask, dirty);

                effect(ret, a->answered ? SNIB__EFFECT_ANSWER_ASK : SNIB__EFFECT_SUBMIT, NULL);
                ret->ask = a;
                ret->op = &a->op;
                ret->cookie = a->cookie;
                ret->attempt = a->attempt;
                if (a->answered || a->submit) {
                        a->submit = false;
                        return true;
                }
        }
        while (!snib__list_empty(&c->dirty_holds))
                if (next_of_hold(c, snib__container(c->dirty_holds.next, struct snib__hold, dirty), ret))
                        return true;
        return false;
}

static const char *check_hold(const struct snib__core *c, const struct snib__hold *h)
{
        bool held = atomic_load_explicit(&h->valid_until, memory_order_relaxed) != 0;
        bool waits = h->state == SNIB__ASKING || h->state == SNIB__WAITING;

        if (h->state == SNIB__HELD && snib__hold_momentary(h))
                return "what is momentary is never held";
        if (h->state != SNIB__HELD && !waits && snib__list_linked(&h->postponed))
                return "only what is held is renewed";
        if (held != (h->state == SNIB__HELD))
                return "valid exactly while held";
        if (waits != snib__tree_linked(&h->by_wait))
                return "among the waiters exactly while asking or waiting";
        if (h->state == SNIB__ASKING && !h->outstanding)
                return "asking has a question under way";
        if (h->state == SNIB__WAITING && h->outstanding)
                return "waiting has no question under way";
        if (waits && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return "somebody waits for every wait";
        if (h->state == SNIB__HELD && h->depth == 0 && !snib__calls_want(h, SNIB__CALL_ACQUIRE))
                return "a hold that nobody has is released";
        if (h->silent && (h->state != SNIB__WAITING || h->queued || h->in_doubt || h->watched))
                return "who waits silently has no place at the engine";
        if (h->silent && !snib__cohort_speaker(c, h) && !SNIB__BUG(cohort_silence))
                return "somebody asks for whoever waits silently";
        if ((waits || h->state == SNIB__HELD || h->outstanding) && !h->silent && !snib__timer_armed(&h->timer))
                return "whatever goes on has a time limit";
        if (h->watched && !waits)
                return "only waiters watch";
        return NULL;
}

const char *snib__core_check(const struct snib__core *c, snib__ns now)
{
        int outstanding = 0, renewing = 0;

        snib__list_each (it, (struct snib__list *)&c->holds) {
                const struct snib__hold *h = snib__container(it, struct snib__hold, all);
                const char *broken = check_hold(c, h);

                if (broken)
                        return broken;
                outstanding += h->outstanding;
                renewing += h->outstanding && h->verb == SNIB__RENEW;
        }
        snib__list_each (it, (struct snib__list *)&c->asks)
                outstanding += snib__container(it, struct snib__ask, link)->outstanding;
        if (outstanding != c->outstanding)
                return "the count of outstanding requests is right";
        if (renewing != c->renewing)
                return "the count of renewals under way is right";
        if (outstanding == 0 && !snib__list_empty((struct snib__list *)&c->postponed))
                return "a renewal waits only for others";
        return NULL;
}
