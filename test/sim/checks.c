/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of holding: what clients believe against what the server has, after every event.
 * Numbers are in numbers.c, what should have happened by now in progress.c. Names are those of
 * doc/design/sim.md.
 *
 * Weakened precisely where a mode promises nothing: a hold that ended because the server lost its
 * data, or because its lease clock stepped, or by force, may be believed in until its owner hears
 * of it (S2);
 * its writes are then refused by the resource because of their token (S1). Tokens may fall only if
 * data was lost and the wall clock went back (S3).
 */

#include "sim.h"
#include <snib/error.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_log *sim_log_new(struct sim *w, struct sim_client *c, int name, int kind)
{
        struct sim_log *log = sim_alloc(w, sizeof(*log));

        log->number = w->log_count;
        log->client = c->index;
        log->incarnation = c->incarnation;
        log->name = name;
        log->kind = kind;
        log->n = 1;
        w->logs[w->log_count++] = log;
        return log;
}

struct sim_log *sim_log_of(struct sim *w, const struct snib__id *id)
{
        const char *colon = strrchr(id->text, ':'); /* "left:" may stand before it */
        long number = colon ? strtol(colon + 1, NULL, 10) : -1;

        return number >= 0 && number < w->log_count ? w->logs[number] : NULL;
}

bool sim_log_alive(const struct sim *w, const struct sim_log *log)
{
        const struct sim_client *c = &w->clients[log->client];

        return c->alive && c->incarnation == log->incarnation;
}

bool sim_seat_lives(const struct sim *w, const struct sim_seat *s)
{
        return s->ends > w->now;
}

/* Whether the token of such a hold is the time of the acquire. */
static bool clock_token(const struct sim *w, int kind)
{
        return w->options.store == SIM_BYTES && kind != SNIB_KIND_FENCED && kind != SNIB_KIND_ELECTION;
}

/* The invariant that says "at most one", and that tokens rise. */
static const char *one(const struct sim_log *log, const char *otherwise)
{
        return log->kind == SNIB_KIND_ELECTION ? "S12" : otherwise;
}

/* ---- the server ---- */

/* No promise covers this hold any more, until its client hears of it. */
static void excuse(const struct sim *w, struct sim_log *log)
{
        log->stale = true;
        log->stale_at = w->now;
}

/* Commands that arrive together are a microsecond apart, by a clock that is so much ahead of
 * `now`. */
#define COMMANDS_AHEAD (100 * SNIB__MS / 1000)

static void seat_ended(struct sim *w, int actor, const struct sim_seat *s)
{
        struct sim_log *log = s->log;

        log->ended = --log->live == 0;
        if (s->ends <= w->now + COMMANDS_AHEAD)
                return;
        if (actor == log->client && log->release_sent)
                log->ended_by_release = w->clients[actor].forces == 0; /* else it may have been its own force */
        else if (actor >= 0 && w->clients[actor].forces > 0)
                excuse(w, log);
        else
                sim_fail(w, SIM_UNSAFE, "S5", "#%d of client %d was ended by client %d", log->number, log->client,
                         actor);
}

static void seat_began(struct sim *w, struct sim_seen *seen, const struct sim_seat *s)
{
        struct sim_log *log = s->log;
        bool back = log->installed && log->token == s->token; /* its time was over, until the clock went back */

        if (log->live++ > 0)
                return;
        log->installed = true;
        log->token = s->token;
        if (s->token && s->token <= seen->last_token && !back)
                sim_fail(w, SIM_UNSAFE, one(log, "S3"), "#%d got token %lld after %lld", log->number,
                         (long long)s->token, (long long)seen->last_token);
        if (s->token)
                seen->last_token = snib__max(seen->last_token, s->token);
}

static void seat_went_on(struct sim *w, int actor, const struct sim_seat *before, const struct sim_seat *s)
{
        if (s->expires_ms != before->expires_ms && actor != s->log->client)
                sim_fail(w, SIM_UNSAFE, "S5", "the lease of #%d of client %d was changed by client %d", s->log->number,
                         s->log->client, actor);
}

static const struct sim_seat *find(const struct sim_seat *in, int count, const struct sim_seat *s)
{
        for (int i = 0; i < count; i++)
                if (in[i].log == s->log && in[i].index == s->index && in[i].token == s->token)
                        return &in[i];
        return NULL;
}

static bool same_owner(const struct sim_log *a, const struct sim_log *b)
{
        return a->client == b->client && a->incarnation == b->incarnation && a->owner == b->owner;
}

/* Whether these two may hold at the same time. */
static bool together(const struct sim_log *a, const struct sim_log *b)
{
        if (a->kind == SNIB_KIND_PERMITS)
                return true;
        if (a->kind == SNIB_KIND_READ && b->kind == SNIB_KIND_READ)
                return true;
        return same_owner(a, b) && a->kind + b->kind == SNIB_KIND_READ + SNIB_KIND_WRITE;
}

/* Those who live hold at the same time; `began`: some of them did just now. */
static void check_together(struct sim *w, const struct sim_seen *seen, const struct sim_truth *t, bool began)
{
        for (int i = 0; i < seen->seats; i++) {
                const struct sim_log *a = seen->seat[i].log;

                for (int k = 0; k < i && a->kind != SNIB_KIND_PERMITS; k++)
                        if (!together(a, seen->seat[k].log))
                                sim_fail(w, SIM_UNSAFE, a->kind >= SNIB_KIND_READ ? "S10" : one(a, "S1"),
                                         "#%d and #%d hold at the same time", seen->seat[k].log->number, a->number);
                if (a->kind == SNIB_KIND_PERMITS && began && a->live != a->n && !a->stale &&
                    !find(seen->seat, i, &seen->seat[i]) && !a->release_sent && w->clients[a->client].forces == 0)
                        sim_fail(w, SIM_UNSAFE, "S8", "#%d asked for %d permits and has %d", a->number, a->n, a->live);
        }
        if (began && t->exists && seen->seats && seen->seat[0].log->kind == SNIB_KIND_PERMITS && seen->seats > t->limit)
                sim_fail(w, SIM_UNSAFE, "S8", "%d permits are out, and there are %lld", seen->seats,
                         (long long)t->limit);
}

/* Takes over who holds now. True: some ended by time, which nobody announced. */
static bool compare(struct sim *w, int actor, struct sim_seen *seen, const struct sim_truth *t)
{
        struct sim_seat now[SIM_SEATS];
        bool by_time = false, began = false;
        int count = 0;

        for (int i = 0; i < t->seats; i++)
                if (sim_seat_lives(w, &t->seat[i]))
                        now[count++] = t->seat[i];
        for (int i = 0; i < seen->seats; i++) {
                const struct sim_seat *s = find(now, count, &seen->seat[i]);

                by_time |= !s && !sim_seat_lives(w, &seen->seat[i]);
                if (s)
                        seat_went_on(w, actor, &seen->seat[i], s);
                else
                        seat_ended(w, actor, &seen->seat[i]);
        }
        for (int i = 0; i < count; i++) {
                if (find(seen->seat, seen->seats, &now[i]))
                        continue;
                seat_began(w, seen, &now[i]);
                began = true;
        }
        memcpy(seen->seat, now, (size_t)count * sizeof(now[0]));
        seen->seats = count;
        check_together(w, seen, t, began);
        return by_time;
}

/* When time alone changes something next. */
static snib__ns next_end(const struct sim *w, const struct sim_truth *t)
{
        snib__ns next = t->exists && t->exists_until > w->now ? t->exists_until : SNIB__NEVER;

        for (int i = 0; i < t->seats; i++)
                if (t->seat[i].ends > w->now)
                        next = snib__min(next, t->seat[i].ends);
        for (int i = 0; i < t->places; i++)
                if (t->place[i].ends > w->now)
                        next = snib__min(next, t->place[i].ends);
        return next;
}

static void open_all(struct sim *w, int name, bool unsaid)
{
        for (int i = 0; i < w->options.clients; i++) {
                struct sim_client *c = &w->clients[i];

                if (!c->alive)
                        continue;
                snib__list_each (it, &c->core.holds) {
                        struct snib__hold *hold = snib__container(it, struct snib__hold, all);
                        struct sim_hold *h = snib__container(hold, struct sim_hold, hold);

                        if (h->name == name && (hold->state == SNIB__ASKING || hold->state == SNIB__WAITING))
                                sim_check_open(w, h, unsaid);
                }
        }
}

void sim_check_server(struct sim *w, int actor)
{
        for (int i = 0; i < w->options.names; i++) {
                struct sim_seen *seen = &w->seen[i];
                const struct sim_truth *t = w->store->truth(w, i);
                bool unsaid = actor < 0 || t->edition == seen->edition || sim_untold(w);

                if (t->edition == seen->edition && w->now < seen->next_end)
                        continue;
                if (t->edition != seen->edition)
                        sim_check_order(w, i, seen, t);
                unsaid |= compare(w, actor, seen, t);
                memcpy(seen->place, t->place, (size_t)t->places * sizeof(t->place[0]));
                seen->places = t->places;
                if (t->edition != seen->edition)
                        sim_check_number(w, i, actor, t);
                seen->edition = t->edition;
                seen->next_end = next_end(w, t);
                open_all(w, i, unsaid);
        }
}

void sim_check_data_lost(struct sim *w)
{
        for (int i = 0; i < w->options.names; i++) {
                struct sim_seen *seen = &w->seen[i];

                for (int k = 0; k < seen->seats; k++) {
                        seen->seat[k].log->ended = true;
                        seen->seat[k].log->live = 0;
                        excuse(w, seen->seat[k].log);
                }
                seen->seats = 0;
        }
        for (int i = 0; i < w->log_count; i++)
                if (w->logs[i]->kind == SNIB_KIND_REGISTER)
                        excuse(w, w->logs[i]); /* that it was executed is forgotten */
        w->data_lost = true;
        sim_check_tokens(w);
        sim_check_server(w, -1);
}

void sim_check_leases_cut(struct sim *w)
{
        for (int i = 0; i < w->options.names; i++)
                for (int k = 0; k < w->seen[i].seats; k++)
                        excuse(w, w->seen[i].seat[k].log);
}

void sim_check_clock(struct sim *w)
{
        for (int i = 0; i < w->options.names; i++) {
                struct sim_seen *seen = &w->seen[i];
                const struct sim_truth *t = w->store->truth(w, i);

                for (int k = 0; k < seen->seats; k++) {
                        const struct sim_seat *s = find(t->seat, t->seats, &seen->seat[k]);

                        if (s)
                                seen->seat[k] = *s;
                }
                memcpy(seen->place, t->place, (size_t)t->places * sizeof(t->place[0]));
                seen->places = t->places;
        }
        sim_check_server(w, -1);
}

void sim_check_tokens(struct sim *w)
{
        for (int i = 0; i < w->options.names; i++) {
                struct sim_seen *seen = &w->seen[i];

                if (w->data_lost && w->stepped_back)
                        seen->last_token = seen->written_token = 0;
                else if (seen->written_token && w->stepped_back && clock_token(w, w->logs[seen->written_by]->kind))
                        seen->written_token = 0;
        }
}

/* ---- the client ---- */

/* What may end what others hold, or sets a number whatever it was. */
static void check_ask(struct sim *w, struct sim_client *c, const struct snib__effect *e)
{
        struct sim_ask *a = snib__container(e->ask, struct sim_ask, ask);
        enum snib__verb verb = e->op->verb;

        c->forces +=
            verb == SNIB__FORCE || verb == SNIB__RELEASE || (verb == SNIB__DELETE && e->op->kind == SNIB_KIND_PERMITS);
        c->resets += verb == SNIB__RESIZE || verb == SNIB__DRAIN;
        c->deletes += verb == SNIB__DELETE;
        if (a->log && verb == SNIB__ADD && !a->log->account)
                sim_account_open(w, a->log, e->op->n);
}

void sim_check_submit(struct sim *w, struct sim_client *c, const struct snib__effect *e)
{
        struct sim_hold *h = e->hold ? snib__container(e->hold, struct sim_hold, hold) : NULL;

        if (!h) {
                check_ask(w, c, e);
                return;
        }
        h->log->sent_at = w->now;
        if (e->op->kind == SNIB_KIND_SEMAPHORE && e->op->verb == SNIB__ACQUIRE && !h->log->account)
                sim_account_open(w, h->log, -e->op->n);
        if (e->op->verb == SNIB__RELEASE)
                h->log->release_sent = true;
        if (e->op->verb == SNIB__RENEW && e->op->leave)
                h->log->left = true;
        else if (e->op->verb == SNIB__RENEW && e->hold->state != SNIB__HELD)
                sim_fail(w, SIM_UNSAFE, "S6", "client %d renews #%d, which it does not hold", c->index, h->log->number);
        if (e->op->verb == SNIB__RENEW && h->log->release_sent)
                sim_fail(w, SIM_UNSAFE, "S6", "client %d renews #%d after releasing it", c->index, h->log->number);
}

void sim_check_refused(struct sim *w, const struct sim_client *c, const struct snib__effect *e)
{
        bool waits =
            e->hold ? e->hold->request.outstanding && !e->hold->request.submit && e->hold->request.attempt == e->attempt
                    : e->ask->request.outstanding && !e->ask->request.submit && e->ask->request.attempt == e->attempt;

        if (waits)
                sim_fail(w, SIM_UNSAFE, "R4", "client %d waits for the answer to a request that did not leave",
                         c->index);
}

/* What was asked after the excuse began is answered by the server as it is now: there is no excuse
 * any more. */
void sim_check_heard(struct sim_hold *h, uint32_t attempt, const struct snib__reply *r, snib__ns now)
{
        struct sim_log *log = h->log;

        if (h->hold.request.outstanding && attempt == h->hold.request.attempt && log->sent_at > log->stale_at &&
            (r->status == SNIB__GRANTED || r->status == SNIB__RENEWED))
                log->stale = false;
        if (h->hold.request.outstanding && attempt == h->hold.request.attempt && r->status == SNIB__GRANTED)
                log->heard_at = now;
}

static void check_released(struct sim *w, const struct sim_client *c, const struct snib__call *call,
                           const struct sim_hold *h)
{
        const struct sim_log *log = h->log;

        if (h->handed_on) {
                if (call->result != 1)
                        sim_fail(w, SIM_UNSAFE, "S11", "a hold is handed on, and the one who gave it back is told %d",
                                 call->result);
                return;
        }
        if (call->result == 1 && log->release_sent && call->leave > sim_local(w, c) + SNIB__MS)
                sim_fail(w, SIM_UNSAFE, "S11", "#%d was to stay at the server, and was released", log->number);
        if (call->result == 1 && !log->ended && !log->left)
                sim_fail(w, SIM_UNSAFE, "S11", "the release of #%d is confirmed but did not happen", log->number);
        if (call->result == SNIB_ELOST && log->told == 0 && log->ended_by_release)
                sim_fail(w, SIM_UNSAFE, "S11", "#%d was released, and its owner is told that it had been lost",
                         log->number);
}

void sim_check_answer(struct sim *w, struct sim_client *c, const struct snib__call *call, const struct sim_hold *h)
{
        if (call->result == SNIB_EPROTOCOL || call->result == SNIB_ECORRUPT)
                sim_fail(w, SIM_UNSAFE, "R3", "client %d: %s", c->index, call->fault.text);
        if (call->kind == SNIB__CALL_RELEASE)
                check_released(w, c, call, h);
        if (call->kind != SNIB__CALL_ACQUIRE || call->result != 1)
                return;
        if (h->log->account)
                sim_account_close(w, h->log, true);
        /* The pause between the answer and the caller: F8. */
        if (atomic_load(&h->hold.valid_until) <= sim_local(w, c) && h->hold.state == SNIB__HELD)
                sim_fail(w, SIM_UNSAFE, "S2", "client %d is given #%d, whose time is over", c->index, h->log->number);
}

void sim_check_forgotten(struct sim *w, struct sim_hold *h)
{
        h->log->freed_at = w->now;
        if (h->log->account == SIM_OPEN && !h->log->forgotten)
                sim_account_close(w, h->log, false); /* never taken, or given back */
}

/* ---- beliefs ---- */

static void write_to_resource(struct sim *w, struct sim_hold *h)
{
        struct sim_seen *seen = &w->seen[h->name];
        int64_t token = h->hold.token;
        bool excused = h->log->stale;

        if (h->log->kind == SNIB_KIND_READ || h->log->kind == SNIB_KIND_PERMITS)
                return;
        if ((excused && w->data_lost && w->stepped_back) || (w->stepped_back && clock_token(w, h->log->kind)))
                return;
        if (token == seen->written_token &&
            (seen->written_by != h->log->number || seen->written_cookie != h->hold.cookie))
                sim_fail(w, SIM_UNSAFE, one(h->log, "S1"), "two holds, #%d and #%d, share token %lld", seen->written_by,
                         h->log->number, (long long)token);
        if (token < seen->written_token && !excused)
                sim_fail(w, SIM_UNSAFE, one(h->log, "S1"), "#%d writes with token %lld after #%d wrote with %lld",
                         h->log->number, (long long)token, seen->written_by, (long long)seen->written_token);
        if (token > seen->written_token) {
                seen->written_token = token;
                seen->written_by = h->log->number;
                seen->written_cookie = h->hold.cookie;
        }
}

static void check_belief(struct sim *w, struct sim_client *c, struct sim_hold *h, snib__ns until)
{
        const struct sim_truth *t = w->store->truth(w, h->name);
        snib__ns ends = SNIB__NEVER;
        int seats = 0;

        if (c->running)
                write_to_resource(w, h);
        if (h->log->stale)
                return;
        for (int i = 0; i < t->seats; i++) {
                if (t->seat[i].log != h->log || !sim_seat_lives(w, &t->seat[i]))
                        continue;
                seats++;
                ends = snib__min(ends, t->seat[i].ends);
        }
        if (seats < (h->log->kind == SNIB_KIND_PERMITS ? h->log->n : 1))
                sim_fail(w, SIM_UNSAFE, "S2", "client %d believes it holds %s by #%d, the server has %d of it",
                         c->index, w->names[h->name], h->log->number, seats);
        else if (sim_world_time(c, until) > ends)
                sim_fail(w, SIM_UNSAFE, "S2", "client %d will believe in #%d for %lld us longer than the server",
                         c->index, h->log->number, (long long)(sim_world_time(c, until) - ends) / 1000);
}

void sim_check_beliefs(struct sim *w)
{
        for (int i = 0; i < w->options.clients; i++) {
                struct sim_client *c = &w->clients[i];
                snib__ns now = sim_local(w, c);

                if (!c->alive)
                        continue;
                snib__list_each (it, &c->core.holds) {
                        struct snib__hold *hold = snib__container(it, struct snib__hold, all);
                        snib__ns until = atomic_load_explicit(&hold->valid_until, memory_order_relaxed);

                        if (until > now)
                                check_belief(w, c, snib__container(hold, struct sim_hold, hold), until);
                        else if (hold->state == SNIB__HELD && c->running && w->now > c->running_at &&
                                 now - hold->deadline > 2 * w->options.lateness + SNIB__MS)
                                sim_fail(w, SIM_UNSAFE, "S7", "client %d does not notice the end of a hold", c->index);
                }
        }
}
