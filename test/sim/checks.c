/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of reliability: what clients believe against what the server has, after every event; what should have
 * happened by now, before every event of the settled phase; what is left at the end. Names are those of
 * doc/design/sim.md.
 *
 * Weakened precisely where a mode promises nothing: a hold that ended because the server lost its data, or because its
 * lease clock stepped, or by force, may be believed in until its owner hears of it (S2);
 * its writes are then refused by the resource because of their token (S1). Tokens may fall only if data was lost and
 * the wall clock went back (S3).
 */

#include "sim.h"
#include <snib/error.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* The safety net's longest sleep with its jitter; core/internal.h: SNIB__POLL_MAX. */
#define CLOCK_TOKENS(w) ((w)->options.store == SIM_BYTES) /* without fencing the token is the time of the acquire */
#define POLL_MAX (SNIB__S + SNIB__S / 16)

struct sim_log *sim_log_new(struct sim *w, struct sim_client *c, int name)
{
        struct sim_log *log = sim_alloc(w, sizeof(*log));

        log->number = w->log_count;
        log->client = c->index;
        log->incarnation = c->incarnation;
        log->name = name;
        w->logs[w->log_count++] = log;
        return log;
}

struct sim_log *sim_log_of(struct sim *w, const struct snib__id *id)
{
        const char *colon = strchr(id->text, ':');
        long number = colon ? strtol(colon + 1, NULL, 10) : -1;

        return number >= 0 && number < w->log_count ? w->logs[number] : NULL;
}

bool sim_log_alive(const struct sim *w, const struct sim_log *log)
{
        const struct sim_client *c = &w->clients[log->client];

        return c->alive && c->incarnation == log->incarnation;
}

/* ---- the server ---- */

/* No promise covers this hold any more, until its client hears of it. */
static void excuse(const struct sim *w, struct sim_log *log)
{
        log->stale = true;
        log->stale_at = w->now;
}

static void hold_ended(struct sim *w, int actor, struct sim_seen *seen)
{
        struct sim_log *log = sim_log_of(w, &seen->truth.id);
        snib__ns expiry = w->store->expiry(w, seen->truth.expires_ms);

        log->ended = true;
        seen->free_since = snib__min(w->now, expiry);
        seen->free_by_expiry = expiry <= w->now;
        if (expiry <= w->now)
                return;
        if (actor == log->client && log->release_sent)
                log->ended_by_release = w->clients[actor].forces == 0; /* else it may have been its own force */
        else if (actor >= 0 && w->clients[actor].forces > 0)
                excuse(w, log);
        else
                sim_fail(w, SIM_UNSAFE, "S5", "#%d of client %d was ended by client %d", log->number, log->client,
                         actor);
}

static void hold_began(struct sim *w, struct sim_seen *seen, const struct sim_truth *t)
{
        struct sim_log *log = sim_log_of(w, &t->id);

        if (!log) {
                sim_fail(w, SIM_UNSAFE, "S4", "the server installed a hold that nobody asked for: %s", t->id.text);
                return;
        }
        seen->held_since = w->now;
        log->installed = true;
        log->token = t->token;
        if (t->token && t->token <= seen->last_token)
                sim_fail(w, SIM_UNSAFE, "S3", "#%d got token %lld after %lld", log->number, (long long)t->token,
                         (long long)seen->last_token);
        if (t->token)
                seen->last_token = t->token;
}

static void hold_went_on(struct sim *w, int actor, const struct sim_seen *seen, const struct sim_truth *t)
{
        struct sim_log *log = sim_log_of(w, &t->id);

        if (t->expires_ms == seen->truth.expires_ms)
                return;
        if (actor != log->client)
                sim_fail(w, SIM_UNSAFE, "S5", "the lease of #%d of client %d was changed by client %d", log->number,
                         log->client, actor);
}

static bool same_hold(const struct sim_truth *a, const struct sim_truth *b)
{
        return a->held && b->held && snib__id_equal(&a->id, &b->id) && a->token == b->token;
}

void sim_check_server(struct sim *w, int actor)
{
        for (int i = 0; i < w->options.names; i++) {
                struct sim_seen *seen = &w->seen[i];
                struct sim_truth t;

                w->store->truth(w, i, &t);
                if (seen->truth.held && w->store->expiry(w, seen->truth.expires_ms) <= w->now) {
                        hold_ended(w, actor, seen);
                        seen->truth.held = false;
                }
                if (same_hold(&seen->truth, &t)) {
                        hold_went_on(w, actor, seen, &t);
                } else {
                        if (seen->truth.held)
                                hold_ended(w, actor, seen);
                        if (t.held)
                                hold_began(w, seen, &t);
                }
                seen->truth = t;
        }
}

void sim_check_data_lost(struct sim *w)
{
        for (int i = 0; i < SIM_NAMES; i++) {
                struct sim_seen *seen = &w->seen[i];

                if (seen->truth.held) {
                        struct sim_log *log = sim_log_of(w, &seen->truth.id);

                        log->ended = true;
                        excuse(w, log);
                }
                seen->truth.held = false;
                seen->free_since = w->now;
        }
        w->data_lost = true;
        sim_check_tokens(w);
}

void sim_check_leases_cut(struct sim *w)
{
        for (int i = 0; i < SIM_NAMES; i++)
                if (w->seen[i].truth.held)
                        excuse(w, sim_log_of(w, &w->seen[i].truth.id));
}

void sim_check_tokens(struct sim *w)
{
        for (int i = 0; i < SIM_NAMES; i++) {
                struct sim_seen *seen = &w->seen[i];

                if (w->data_lost && w->stepped_back)
                        seen->last_token = seen->written_token = 0;
                else if (seen->written_token && w->stepped_back && CLOCK_TOKENS(w) &&
                         !w->logs[seen->written_by]->fenced)
                        seen->written_token = 0;
        }
}

/* ---- the client ---- */

void sim_check_submit(struct sim *w, struct sim_client *c, const struct snib__effect *e)
{
        struct sim_hold *h = e->hold ? snib__container(e->hold, struct sim_hold, hold) : NULL;

        if (h)
                h->log->sent_at = w->now;
        if (e->op.verb == SNIB__FORCE)
                c->forces++;
        if (h && e->op.verb == SNIB__RELEASE)
                h->log->release_sent = true;
        if (h && e->op.verb == SNIB__RENEW && e->hold->state != SNIB__HELD)
                sim_fail(w, SIM_UNSAFE, "S6", "client %d renews #%d, which it does not hold", c->index, h->log->number);
        if (h && e->op.verb == SNIB__RENEW && h->log->release_sent)
                sim_fail(w, SIM_UNSAFE, "S6", "client %d renews #%d after releasing it", c->index, h->log->number);
}

/* What was asked after the excuse began is answered by the server as it is now: there is no excuse any more. */
void sim_check_heard(struct sim_hold *h, uint32_t attempt, const struct snib__reply *r)
{
        struct sim_log *log = h->log;

        if (h->hold.outstanding && attempt == h->hold.attempt && log->sent_at > log->stale_at &&
            (r->status == SNIB__GRANTED || r->status == SNIB__RENEWED))
                log->stale = false;
}

static void check_released(struct sim *w, const struct snib__call *call, const struct sim_log *log)
{
        if (call->result == 1 && !log->ended)
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
                check_released(w, call, h->log);
        if (call->kind != SNIB__CALL_ACQUIRE || call->result != 1)
                return;
        /* The pause between the answer and the caller: F8. */
        if (atomic_load(&h->hold.valid_until) <= sim_local(w, c) && h->hold.state == SNIB__HELD)
                sim_fail(w, SIM_UNSAFE, "S2", "client %d is given #%d, whose time is over", c->index, h->log->number);
}

/* ---- beliefs ---- */

static void write_to_resource(struct sim *w, struct sim_hold *h)
{
        struct sim_seen *seen = &w->seen[h->name];
        int64_t token = h->hold.token;
        bool excused = h->log->stale;

        if ((excused && w->data_lost && w->stepped_back) ||
            (h->hold.kind != SNIB_KIND_FENCED && w->stepped_back && CLOCK_TOKENS(w)))
                return;
        if (token == seen->written_token && seen->written_by != h->log->number)
                sim_fail(w, SIM_UNSAFE, "S1", "#%d and #%d share token %lld", seen->written_by, h->log->number,
                         (long long)token);
        if (token < seen->written_token && !excused)
                sim_fail(w, SIM_UNSAFE, "S1", "#%d writes with token %lld after #%d wrote with %lld", h->log->number,
                         (long long)token, seen->written_by, (long long)seen->written_token);
        if (token > seen->written_token) {
                seen->written_token = token;
                seen->written_by = h->log->number;
        }
}

static void check_belief(struct sim *w, struct sim_client *c, struct sim_hold *h, snib__ns until)
{
        struct sim_truth t;

        if (c->running)
                write_to_resource(w, h);
        if (h->log->stale)
                return;
        w->store->truth(w, h->name, &t);
        if (!t.held || !snib__id_equal(&t.id, &h->hold.id))
                sim_fail(w, SIM_UNSAFE, "S2", "client %d believes it holds %s by #%d, the server has %s", c->index,
                         w->names[h->name], h->log->number, t.held ? t.id.text : "nobody");
        else if (sim_world_time(c, until) > w->store->expiry(w, t.expires_ms))
                sim_fail(w, SIM_UNSAFE, "S2", "client %d will believe in #%d for %lld us longer than the server",
                         c->index, h->log->number,
                         (long long)(sim_world_time(c, until) - w->store->expiry(w, t.expires_ms)) / 1000);
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

/* ---- progress ---- */

/* Since when this waiter could have heard of what happens to its name; SNIB__NEVER: it could not. */
static snib__ns attentive_since(const struct sim *w, const struct sim_client *c, const struct sim_hold *h)
{
        snib__ns since = snib__max(snib__max(c->linked_at, c->running_at), snib__max(h->since, w->settled_at));

        if (c->ops->traits & SNIB__TRAIT_WATCH)
                since = snib__max(since, c->watching_at[h->name]);
        return since;
}

static void check_waiter(struct sim *w, const struct sim_client *c, const struct sim_hold *h)
{
        const struct sim_seen *seen = &w->seen[h->name];
        snib__ns trips = 6 * sim_delay_calm(w) + 6 * w->options.lateness + SNIB__MS;
        snib__ns since = attentive_since(w, c, h);

        if (since == SNIB__NEVER)
                return;
        if (seen->truth.held) {
                /* It may be this one's turn, and it does not know. */
                if (h->hold.state == SNIB__WAITING && snib__id_equal(&seen->truth.id, &h->hold.id) &&
                    w->now - snib__max(since, seen->held_since) > trips)
                        sim_fail(w, SIM_UNSAFE, "L1", "#%d of client %d holds %s for %lld us and does not know",
                                 h->log->number, c->index, w->names[h->name],
                                 (long long)(w->now - snib__max(since, seen->held_since)) / 1000);
                return;
        }
        since = snib__max(since, seen->free_since);
        if (!seen->free_by_expiry && w->now - since > trips)
                sim_fail(w, SIM_UNSAFE, "L1", "%s is free for %lld us, and #%d of client %d waits", w->names[h->name],
                         (long long)(w->now - since) / 1000, h->log->number, c->index);
        if (w->now - since > POLL_MAX + POLL_MAX / 100 + trips)
                sim_fail(w, SIM_UNSAFE, "L2", "the lease on %s is over for %lld ms, and #%d of client %d waits",
                         w->names[h->name], (long long)((w->now - since) / SNIB__MS), h->log->number, c->index);
}

static void check_known(struct sim *w, const struct snib__id *id)
{
        struct sim_log *log = sim_log_of(w, id);
        snib__ns trips = 6 * sim_delay_calm(w) + 6 * w->options.lateness + SNIB__MS;

        if (!log || !log->freed_at || !sim_log_alive(w, log) || w->clients[log->client].closing)
                return;
        if (w->now - snib__max(log->freed_at, w->settled_at) > trips)
                sim_fail(w, SIM_UNSAFE, "S4", "#%d of client %d is on the server, and its client has forgotten it",
                         log->number, log->client);
}

void sim_check_progress(struct sim *w)
{
        sim_check_server(w, -1);
        for (int i = 0; i < w->options.names; i++) {
                if (w->seen[i].truth.held)
                        check_known(w, &w->seen[i].truth.id);
                w->store->queue(w, i, check_known);
        }
        for (int i = 0; i < w->options.clients; i++) {
                struct sim_client *c = &w->clients[i];

                if (!c->alive || !c->running || c->closing)
                        continue;
                snib__list_each (it, &c->core.holds) {
                        struct snib__hold *hold = snib__container(it, struct snib__hold, all);

                        if (hold->state == SNIB__ASKING || hold->state == SNIB__WAITING)
                                check_waiter(w, c, snib__container(hold, struct sim_hold, hold));
                }
                for (int k = 0; k < w->options.owners; k++)
                        if (c->owners[k].calling && sim_local(w, c) > c->owners[k].call_limit)
                                sim_fail(w, SIM_STUCK, "L5", "client %d: a call is not answered in time", i);
        }
}

/* ---- the end ---- */

static void nobody_queues(struct sim *w, const struct snib__id *id)
{
        struct sim_log *log = sim_log_of(w, id);

        if (!log || sim_log_alive(w, log) || w->phase.run == NULL)
                sim_fail(w, SIM_UNSAFE, "S4", "%s still waits on the server", id->text);
}

void sim_check_left(struct sim *w, bool of_anybody)
{
        sim_check_server(w, -1);
        for (int i = 0; i < w->options.names; i++) {
                const struct sim_truth *t = &w->seen[i].truth;

                if (t->held && (of_anybody || sim_log_alive(w, sim_log_of(w, &t->id))))
                        sim_fail(w, SIM_UNSAFE, "S4", "%s is held on the server by %s, and all is released",
                                 w->names[i], t->id.text);
                w->store->queue(w, i, nobody_queues);
                for (int k = 0; k < w->options.clients; k++)
                        if (w->clients[k].alive && w->clients[k].watches[i])
                                sim_fail(w, SIM_UNSAFE, "R1", "client %d still watches %s", k, w->names[i]);
        }
}
