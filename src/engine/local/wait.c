/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What this client waits for: its ids in queues, and the processes that stand before them. Decides
 * when to look, never what is true: that is in the file.
 *
 * A waiter is woken by a datagram. In case that cannot come, it looks by itself when a process
 * before it ends (pidfd), when the first lease of a holder is over, and, if such a process cannot
 * be watched (another PID namespace), every 100 ms, at first sooner: a process may be gone for its
 * pidfd while its byte is still kept by one it shared descriptors with, which is about to end too
 * (a supervisor that first ends what ran under the lock). One thread at a time, the client's.
 */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "engine/local/client.h"
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Peers that nobody waits for are kept for the next time, up to this many: two processes that take
 * turns need not open a pidfd every time. */
#define PEERS_IDLE_MAX 32
#define TICK_MS 100

static int compare_id(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return strcmp(snib__container(a, struct snib__local_wait, by_id)->id.text,
                      snib__container(b, struct snib__local_wait, by_id)->id.text);
}

static int compare_due(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        snib__ns x = snib__container(a, struct snib__local_wait, by_due)->due;
        snib__ns y = snib__container(b, struct snib__local_wait, by_due)->due;

        return (x > y) - (x < y);
}

static int compare_peer(const struct snib__tree_node *a, const struct snib__tree_node *b)
{
        return strcmp(snib__container(a, struct snib__peer, node)->uuid,
                      snib__container(b, struct snib__peer, node)->uuid);
}

void snib__waits_init(struct snib__local *c)
{
        snib__tree_init(&c->waits, compare_id);
        snib__tree_init(&c->waits_due, compare_due);
        snib__tree_init(&c->peers, compare_peer);
        snib__list_init(&c->peers_idle);
}

static void peer_free(struct snib__local *c, struct snib__peer *p)
{
        snib__tree_remove(&c->peers, &p->node);
        if (snib__list_linked(&p->idle)) {
                snib__list_remove(&p->idle);
                c->peers_idle_count--;
        }
        if (p->pidfd >= 0) {
                /* A pidfd closed while a forked copy is open would go on to be reported. */
                (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, p->pidfd, NULL);
                (void)close(p->pidfd);
        }
        free(p);
}

static struct snib__peer *peer_find(struct snib__local *c, const char *uuid)
{
        struct snib__peer key;
        struct snib__tree_node *n;

        memcpy(key.uuid, uuid, sizeof(key.uuid));
        n = snib__tree_seek(&c->peers, &key.node);
        if (!n || strcmp(snib__container(n, struct snib__peer, node)->uuid, uuid) != 0)
                return NULL;
        return snib__container(n, struct snib__peer, node);
}

/* Then its end is ours, or its close() tells us. */
static bool same_process(const struct snib__local *c, const struct snib__peer_row *row)
{
        return row->pid == c->pid && row->pid_namespace == c->store->pid_namespace;
}

/* The pid may have been given to another process meanwhile; the caller tests the byte after
 * this. */
static void peer_watch(struct snib__local *c, struct snib__peer *p, const struct snib__peer_row *row)
{
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};

        if (row->pid_namespace != c->store->pid_namespace || row->pid <= 0 || row->pid > INT32_MAX)
                return;
        p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)row->pid, 0);
        if (p->pidfd >= 0 && epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, p->pidfd, &event) < 0) {
                (void)close(p->pidfd);
                p->pidfd = -1;
        }
}

static struct snib__peer *peer_get(struct snib__local *c, const struct snib__peer_row *row)
{
        struct snib__peer *p = peer_find(c, row->uuid);

        if (p) {
                if (snib__list_linked(&p->idle)) {
                        snib__list_remove(&p->idle);
                        c->peers_idle_count--;
                }
                return p;
        }
        p = snib__alloc(sizeof(*p));
        if (!p)
                return NULL;
        snib__list_init(&p->sights);
        memcpy(p->uuid, row->uuid, sizeof(p->uuid));
        p->slot = row->slot;
        p->pidfd = -1;
        p->tick_ms = 1;
        p->ours = same_process(c, row);
        if (!p->ours)
                peer_watch(c, p, row);
        snib__tree_add(&c->peers, &p->node);
        return p;
}

/* Nobody looks at it any more. */
static void peer_idle(struct snib__local *c, struct snib__peer *p)
{
        if (p->pidfd < 0) {
                peer_free(c, p);
                return;
        }
        snib__list_append(&c->peers_idle, &p->idle);
        if (++c->peers_idle_count > PEERS_IDLE_MAX)
                peer_free(c, snib__container(c->peers_idle.next, struct snib__peer, idle));
}

static void unwatch(struct snib__local *c, struct snib__local_wait *w)
{
        for (; w->sights > 0; w->sights--) {
                struct snib__sight *sight = &w->sight[w->sights - 1];

                snib__list_remove(&sight->of_peer);
                if (snib__list_empty(&sight->peer->sights))
                        peer_idle(c, sight->peer);
        }
}

void snib__wait_at(struct snib__local *c, struct snib__local_wait *wait, snib__ns due)
{
        snib__tree_remove(&c->waits_due, &wait->by_due);
        wait->due = due;
        if (due != SNIB__NEVER)
                snib__tree_add(&c->waits_due, &wait->by_due);
}

/* When the lease of a holder is over the first of the queue looks at once, the others a little
 * later, in case the first is stopped. */
static snib__ns lease_over(struct snib__local *c, const struct snib__before *b)
{
        int64_t spread = b->first ? 2 : 100;
        snib__ns over = b->holder_expires_ms < INT64_MAX / SNIB__MS ? b->holder_expires_ms * SNIB__MS : SNIB__NEVER;

        return snib__after(over, (b->first ? 0 : spread * SNIB__MS) +
                                     (snib__ns)snib__prng_below(&c->prng, (uint64_t)(spread * SNIB__MS)));
}

/* Of a process that cannot be watched: soon, then less and less often. */
static snib__ns next_tick(struct snib__local *c, struct snib__peer *p)
{
        snib__ns tick = (p ? p->tick_ms : TICK_MS) * SNIB__MS;

        if (p)
                p->tick_ms = p->tick_ms * 2 < TICK_MS ? p->tick_ms * 2 : TICK_MS;
        return tick + (snib__ns)snib__prng_below(&c->prng, (uint64_t)tick / 4);
}

static bool sees(const struct snib__local_wait *w, const struct snib__before *b)
{
        if (w->sights != b->count)
                return false;
        for (int i = 0; i < b->count; i++)
                if (strcmp(w->sight[i].peer->uuid, b->peer[i].uuid) != 0)
                        return false;
        return true;
}

/* Looks at the processes before it from now on. True: one of them died between the transaction and
 * the pidfd. */
static bool watch(struct snib__local *c, struct snib__local_wait *w, const struct snib__before *b)
{
        bool died = false;

        unwatch(c, w);
        for (int i = 0; i < b->count; i++) {
                struct snib__sight *sight = &w->sight[w->sights];

                sight->peer = peer_get(c, &b->peer[i]);
                if (!sight->peer)
                        continue;
                sight->wait = w;
                snib__list_append(&sight->peer->sights, &sight->of_peer);
                w->sights++;
                died |= !snib__live_test(c->store, b->peer[i].slot);
        }
        return died;
}

static void watch_before(struct snib__local *c, struct snib__local_wait *w, const struct snib__before *b, snib__ns now)
{
        snib__ns due = lease_over(c, b);

        if (!sees(w, b) && watch(c, w, b))
                due = now;
        if (w->sights < b->count)
                due = snib__min(due, snib__after(now, next_tick(c, NULL)));
        for (int i = 0; i < w->sights; i++)
                if (w->sight[i].peer->pidfd < 0 && !w->sight[i].peer->ours)
                        due = snib__min(due, snib__after(now, next_tick(c, w->sight[i].peer)));
        snib__wait_at(c, w, due);
}

static struct snib__local_wait *wait_new(struct snib__local *c, const struct snib__item *item)
{
        struct snib__local_wait *w = snib__alloc(sizeof(*w));

        if (!w)
                return NULL;
        w->id = item->op.id;
        w->due = SNIB__NEVER;
        w->length = item->op.name.length;
        memcpy(w->name, item->name, w->length);
        snib__tree_add(&c->waits, &w->by_id);
        return w;
}

void snib__wait_put(struct snib__local *c, const struct snib__item *item, snib__ns now)
{
        struct snib__local_wait *w = snib__wait_find(c, &item->op.id, item->op.name);

        if (!w)
                w = wait_new(c, item);
        if (!w)
                return;
        w->granted = false;
        watch_before(c, w, &item->before, now);
}

struct snib__local_wait *snib__wait_find(const struct snib__local *c, const struct snib__id *id, struct snib__name name)
{
        struct snib__local_wait key;
        struct snib__tree_node *n;
        struct snib__local_wait *w;

        key.id = *id;
        n = snib__tree_seek(&c->waits, &key.by_id);
        w = n ? snib__container(n, struct snib__local_wait, by_id) : NULL;
        if (!w || !snib__id_equal(&w->id, id) || w->length != name.length ||
            memcmp(w->name, name.bytes, name.length) != 0)
                return NULL;
        return w;
}

void snib__wait_remove(struct snib__local *c, struct snib__local_wait *wait)
{
        unwatch(c, wait);
        snib__tree_remove(&c->waits, &wait->by_id);
        snib__tree_remove(&c->waits_due, &wait->by_due);
        free(wait);
}

void snib__waits_all_at(struct snib__local *c, snib__ns due)
{
        for (struct snib__tree_node *n = snib__tree_first(&c->waits); n; n = snib__tree_next(n)) {
                struct snib__local_wait *w = snib__container(n, struct snib__local_wait, by_id);
                if (!w->granted)
                        snib__wait_at(c, w, due);
        }
}

void snib__waits_peer_ended(struct snib__local *c, struct snib__peer *peer, snib__ns now)
{
        (void)epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, peer->pidfd, NULL);
        (void)close(peer->pidfd);
        peer->pidfd = -1;
        if (snib__list_empty(&peer->sights)) {
                peer_free(c, peer);
                return;
        }
        snib__list_each (l, &peer->sights)
                snib__wait_at(c, snib__container(l, struct snib__sight, of_peer)->wait, now);
}

snib__ns snib__waits_deadline(const struct snib__local *c)
{
        struct snib__tree_node *n = snib__tree_first(&c->waits_due);

        return n ? snib__container(n, struct snib__local_wait, by_due)->due : SNIB__NEVER;
}

struct snib__local_wait *snib__waits_due(const struct snib__local *c, snib__ns now)
{
        struct snib__tree_node *n = snib__tree_first(&c->waits_due);
        struct snib__local_wait *w = n ? snib__container(n, struct snib__local_wait, by_due) : NULL;

        return w && w->due <= now ? w : NULL;
}

void snib__waits_done(struct snib__local *c)
{
        for (struct snib__tree_node *n; (n = snib__tree_first(&c->waits));)
                snib__wait_remove(c, snib__container(n, struct snib__local_wait, by_id));
        for (struct snib__tree_node *n; (n = snib__tree_first(&c->peers));)
                peer_free(c, snib__container(n, struct snib__peer, node));
}

void snib__waits_forked(struct snib__local *c)
{
        for (struct snib__tree_node *n = snib__tree_first(&c->peers); n; n = snib__tree_next(n)) {
                struct snib__peer *p = snib__container(n, struct snib__peer, node);
                if (p->pidfd >= 0)
                        (void)close(p->pidfd);
                p->pidfd = -1;
        }
}
