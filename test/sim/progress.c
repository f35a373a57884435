/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The invariants of progress: what should have happened by now, before every event of the settled
 * phase, and what is left at the end (L1, L2, L5, S4, S12 for observers). Names are those of
 * doc/design/sim.md.
 */

#include "sim.h"
#include <snib/error.h>
#include <string.h>

/* The longest sleep of one who is told nothing, with its jitter and the drift of clocks: the safety
 * net's (core/internal.h: SNIB__POLL_MAX), or what the engine says. */
static snib__ns poll_most(const struct sim *w, int kind)
{
        const struct sim_options *o = &w->options;
        snib__ns poll = !sim_untold(w) || kind == SNIB_KIND_SPIN ? 0 : o->look ? o->look : o->poll;

        if (!poll)
                poll = SNIB__S;
        return poll + poll / 16 + poll / 100;
}

/* By so much the clock of the server's scripts may be ahead of the world's. */
#define SIM_SCRIPT_MS 2

/* ---- who could get in ---- */

static bool queues(const struct sim *w, const struct sim_log *log)
{
        return w->options.store == SIM_QUEUE ? log->kind != SNIB_KIND_SPIN : log->kind == SNIB_KIND_FAIR;
}

/* Somebody who lives stands before it, or anywhere if it stands nowhere. */
static bool has_others_before(const struct sim *w, const struct sim_truth *t, const struct sim_log *log)
{
        for (int i = 0; i < t->places && t->place[i].log != log; i++)
                if (t->place[i].ends > w->now && !t->place[i].log->observer)
                        return true;
        return false;
}

/* Those who sit leave room for one of this kind. */
static bool has_room(const struct sim *w, const struct sim_truth *t, const struct sim_hold *h)
{
        int writers = 0, others = 0;

        for (int i = 0; i < t->seats; i++) {
                const struct sim_log *log = t->seat[i].log;

                if (!sim_seat_lives(w, &t->seat[i]))
                        continue;
                others++;
                if (log->kind == SNIB_KIND_WRITE)
                        writers++;
        }
        if (h->log->kind == SNIB_KIND_READ)
                return writers == 0;
        if (h->log->kind == SNIB_KIND_PERMITS)
                return t->exists && t->limit - others >= h->log->n;
        return others == 0;
}

/* The write hold of a reader's owner, which lets it in; NULL: there is none. */
static const struct sim_log *own_writer(const struct sim *w, const struct sim_truth *t, const struct sim_log *log)
{
        for (int i = 0; i < t->seats && log->kind == SNIB_KIND_READ; i++) {
                const struct sim_log *writer = t->seat[i].log;

                if (sim_seat_lives(w, &t->seat[i]) && writer->kind == SNIB_KIND_WRITE && writer->owner == log->owner &&
                    writer->client == log->client && writer->incarnation == log->incarnation)
                        return writer;
        }
        return NULL;
}

static bool sits(const struct sim *w, const struct sim_truth *t, const struct sim_log *log)
{
        for (int i = 0; i < t->seats; i++)
                if (t->seat[i].log == log && sim_seat_lives(w, &t->seat[i]))
                        return true;
        return false;
}

/* What an observer compares. */
static int64_t state(const struct sim *w, const struct sim_truth *t, int kind)
{
        if (kind == SNIB_KIND_REGISTER)
                return t->version;
        if (kind == SNIB_KIND_LATCH)
                return t->exists;
        for (int i = 0; i < t->seats; i++)
                if (sim_seat_lives(w, &t->seat[i]))
                        return t->seat[i].token;
        return 0;
}

static bool is_open(const struct sim *w, const struct sim_truth *t, const struct sim_hold *h)
{
        const struct sim_log *log = h->log, *writer;

        if (log->observer)
                return state(w, t, log->kind) != h->hold.token;
        if (log->kind == SNIB_KIND_LATCH)
                return !t->exists;
        if (sits(w, t, log))
                return true; /* it was let in and need only hear of it */
        writer = own_writer(w, t, log);
        if (writer && !writer->left) /* else it is, or will be, nobody's */
                return true;
        if (queues(w, log) && has_others_before(w, t, log))
                return false;
        if (log->kind == SNIB_KIND_SEMAPHORE)
                return t->exists && t->exists_until > w->now && t->value >= log->n;
        return has_room(w, t, h);
}

void sim_check_open(struct sim *w, struct sim_hold *h, bool unsaid)
{
        if (!is_open(w, w->store->truth(w, h->name), h)) {
                h->open_since = SNIB__NEVER;
        } else if (h->open_since == SNIB__NEVER) {
                h->open_since = w->now;
                h->open_unsaid = unsaid;
        }
}

/* ---- order ---- */

/* By arrival: those who stay keep their order, and who comes goes to the end. `revive`: whose time
 * is over has its place back when it asks again. */
static void check_queue(struct sim *w, int name, const struct sim_seen *before, const struct sim_truth *after,
                        bool revive)
{
        int last = -1;

        for (int i = 0; i < after->places; i++) {
                int at = 0;

                if (after->place[i].ends <= w->now)
                        continue;
                while (at < before->places &&
                       (before->place[at].log != after->place[i].log || (!revive && before->place[at].ends <= w->now)))
                        at++;
                if (at < last)
                        sim_fail(w, SIM_UNSAFE, "L3", "%s: #%d has come before somebody who was before it",
                                 w->names[name], after->place[i].log->number);
                last = at;
        }
}

static bool stands(const struct sim_truth *t, const struct sim_log *log)
{
        for (int i = 0; i < t->places; i++)
                if (t->place[i].log == log)
                        return true;
        return false;
}

/* Nobody who waits is overtaken, but by a reader under its own writer. */
static void check_newcomer(struct sim *w, const struct sim_log *log, const struct sim_seen *before,
                           const struct sim_truth *after)
{
        for (int i = 0; i < before->places && before->place[i].log != log; i++) {
                const struct sim_log *first = before->place[i].log;

                if (first->observer || before->place[i].ends <= w->now || !stands(after, first) ||
                    own_writer(w, after, log))
                        continue;
                sim_fail(w, SIM_UNSAFE, first->kind == SNIB_KIND_WRITE && log->kind == SNIB_KIND_READ ? "L4" : "L3",
                         "%s went to #%d before #%d", w->names[log->name], log->number, first->number);
                return;
        }
}

/* Whom a release or a force made holder at once: the first that lives and can be told. */
static void check_heir(struct sim *w, const struct sim_log *heir, const struct sim_seen *before)
{
        for (int i = 0; i < before->places; i++) {
                const struct sim_place *p = &before->place[i];
                bool lives = p->ends > w->now + SIM_SCRIPT_MS * SNIB__MS;

                if (p->log == heir && p->ends > w->now - SIM_SCRIPT_MS * SNIB__MS && !p->deaf)
                        return;
                if (p->log == heir || (lives && !p->deaf && p->log != before->seat[0].log))
                        break;
        }
        sim_fail(w, SIM_UNSAFE, "L3", "%s was handed to #%d, who was not the first to be told", w->names[heir->name],
                 heir->number);
}

/* A lock that is not fair, on Redis: what is free is anybody's, but what is handed on is not. */
static void check_waiters(struct sim *w, int name, const struct sim_seen *before, const struct sim_truth *after)
{
        const struct sim_log *heir = after->seats ? after->seat[0].log : NULL;

        check_queue(w, name, before, after, true);
        for (int i = 0; heir && w->settled && i < after->places; i++)
                if (after->place[i].log == heir)
                        sim_fail(w, SIM_UNSAFE, "L3", "%s: #%d holds and waits", w->names[name], heir->number);
        if (heir && before->seats && before->seat[0].log != heir && sim_seat_lives(w, &before->seat[0]))
                check_heir(w, heir, before);
}

void sim_check_order(struct sim *w, int name, const struct sim_seen *before, const struct sim_truth *after)
{
        if (w->options.store == SIM_BYTES && w->options.subject[name] == SIM_PLAIN)
                check_waiters(w, name, before, after);
        if (w->options.store != SIM_QUEUE && w->options.subject[name] != SIM_FAIR)
                return;
        check_queue(w, name, before, after, false);
        for (int i = 0; i < after->seats; i++) {
                bool sat = after->seat[i].log->ended; /* its time was over, until the clock went back */

                for (int k = 0; k < before->seats; k++)
                        sat |= before->seat[k].log == after->seat[i].log;
                if (!sat)
                        check_newcomer(w, after->seat[i].log, before, after);
        }
}

/* ---- progress ---- */

/* Since when this waiter could have heard of what happens to its name; SNIB__NEVER: it could
 * not. */
static snib__ns attentive_since(const struct sim *w, const struct sim_client *c, const struct sim_hold *h)
{
        snib__ns since = snib__max(snib__max(c->linked_at, c->running_at), snib__max(h->since, w->settled_at));

        since = snib__max(since, c->part_at[h->name]);
        if (c->facts->traits & SNIB__TRAIT_WATCH && h->log->kind != SNIB_KIND_SPIN)
                since = snib__max(since, h->watching_at);
        return since;
}

/* A way there and back, three times; where one wake-up is passed on, for each that it may go
 * through. */
static snib__ns trips(const struct sim *w, const struct sim_log *log)
{
        bool many = log && (log->kind == SNIB_KIND_READ || log->kind == SNIB_KIND_WRITE ||
                            log->kind == SNIB_KIND_SEMAPHORE || log->kind == SNIB_KIND_PERMITS);

        return (many ? SIM_OWNERS : 1) * (6 * sim_delay_calm(w) + 6 * w->options.lateness) + SNIB__MS;
}

static void check_waiter(struct sim *w, const struct sim_client *c, const struct sim_hold *h)
{
        snib__ns since = attentive_since(w, c, h), waits;
        const char *invariant = h->log->observer && h->log->kind == SNIB_KIND_ELECTION ? "S12" : "L1";

        if (since == SNIB__NEVER || h->open_since == SNIB__NEVER || h->log->forgotten)
                return;
        waits = w->now - snib__max(since, h->open_since);
        if (!h->open_unsaid && h->log->kind != SNIB_KIND_SPIN && waits > trips(w, h->log))
                sim_fail(w, SIM_UNSAFE, invariant, "%s is free for #%d of client %d for %lld us, and it waits",
                         w->names[h->name], h->log->number, c->index, (long long)waits / 1000);
        if (waits > poll_most(w, h->log->kind) + trips(w, h->log))
                sim_fail(w, SIM_UNSAFE, "L2", "%s fell free %lld ms ago, and #%d of client %d waits", w->names[h->name],
                         (long long)(waits / SNIB__MS), h->log->number, c->index);
}

static void check_known(struct sim *w, const struct sim_log *log)
{
        if (!log->freed_at || log->left || !sim_log_alive(w, log) || w->clients[log->client].closing)
                return;
        if (w->now - snib__max(log->freed_at, w->settled_at) > trips(w, log))
                sim_fail(w, SIM_UNSAFE, "S4", "#%d of client %d is on the server, and its client has forgotten it",
                         log->number, log->client);
}

static void check_client(struct sim *w, struct sim_client *c)
{
        snib__list_each (it, &c->core.holds) {
                struct snib__hold *hold = snib__container(it, struct snib__hold, all);

                if (hold->state == SNIB__ASKING || hold->state == SNIB__WAITING)
                        check_waiter(w, c, snib__container(hold, struct sim_hold, hold));
        }
        for (int k = 0; k < SIM_OWNERS_ALL; k++)
                if (c->owners[k].calling && sim_local(w, c) > c->owners[k].call_limit)
                        sim_fail(w, SIM_STUCK, "L5", "client %d: a call is not answered in time", c->index);
}

void sim_check_progress(struct sim *w)
{
        sim_check_server(w, -1);
        for (int i = 0; i < w->options.names; i++) {
                const struct sim_truth *t = w->store->truth(w, i);

                for (int k = 0; k < t->seats; k++)
                        if (sim_seat_lives(w, &t->seat[k]))
                                check_known(w, t->seat[k].log);
                for (int k = 0; k < t->places; k++)
                        if (t->place[k].ends > w->now)
                                check_known(w, t->place[k].log);
        }
        for (int i = 0; i < w->options.clients; i++) {
                struct sim_client *c = &w->clients[i];

                if (c->alive && c->running && !c->closing)
                        check_client(w, c);
        }
}

/* Whoever runs, and is connected for long, renews what it is to keep. */
void sim_check_lost(struct sim *w, const struct sim_client *c, const struct sim_hold *h)
{
        const struct snib__hold *hold = &h->hold;
        snib__ns since = snib__max(snib__max(c->linked_at, c->running_at), w->settled_at), lease = hold->lease;

        since = snib__max(since, c->part_at[h->name]);
        if (w->options.store != SIM_BYTES && w->options.lease_given)
                lease = snib__min(lease, w->options.lease_given);
        if (!w->settled || !hold->keep || hold->max_hold || since == SNIB__NEVER || w->now - since < 2 * lease ||
            lease < 10 * trips(w, h->log) || c->closing)
                return;
        if (hold->loss == SNIB_LOSS_EXPIRED || hold->loss == SNIB_LOSS_UNREACHABLE)
                sim_fail(w, SIM_UNSAFE, "L7", "client %d did not renew #%d in time", c->index, h->log->number);
}

/* ---- the end ---- */

void sim_check_left(struct sim *w, bool of_anybody)
{
        sim_check_server(w, -1);
        for (int i = 0; i < w->options.names; i++) {
                const struct sim_truth *t = w->store->truth(w, i);

                for (int k = 0; k < t->seats; k++)
                        if (sim_seat_lives(w, &t->seat[k]) &&
                            (of_anybody || (sim_log_alive(w, t->seat[k].log) && !t->seat[k].log->left)))
                                sim_fail(w, SIM_UNSAFE, "S4", "%s is held on the server by #%d, and all is released",
                                         w->names[i], t->seat[k].log->number);
                for (int k = 0; k < t->places; k++)
                        if (t->place[k].ends > w->now && (of_anybody || sim_log_alive(w, t->place[k].log)))
                                sim_fail(w, SIM_UNSAFE, "S4", "#%d still waits on the server", t->place[k].log->number);
                for (int k = 0; k < w->options.clients; k++)
                        if (w->clients[k].alive && w->clients[k].watches[i])
                                sim_fail(w, SIM_UNSAFE, "R1", "client %d still watches %s", k, w->names[i]);
        }
}
