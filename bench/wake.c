/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long after a release in one process the waiter in another has the lock. Two processes pass
 * one lock to and fro: one holds it, the other waits, sleeps for certain, and is granted it; the
 * time between is from the beginning of the release to the end of the acquire, on the clock that
 * all processes of a machine share. Beside snib stands what any client of Redisson's format must do
 * at least: subscribe, and try again when the message comes; and a bare socket that is handed the
 * lock as snib is, by the same scripts: what is between that and snib is snib's client.
 *
 * Peers are started a second time each for it. Not measured: more than one waiter; crowd.c does
 * that.
 */

#include "bench.h"
#include "engine/redis/script.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME "bench:wake"
#define CHANNEL "redisson_lock__channel:{" NAME "}"
#define LEASE_MS "30000"
#define WAIT_MS 30000
#define OWN 3
#define SYSTEMS_MAX (BENCH_PEERS + OWN)
/* Nothing tells when the waiter of somebody else's library has gone to sleep. */
#define SETTLE_NS 3000000

/* --- what a fork does: the protocol of peer.c, for one lock
 * -------------------------------------------------------------- */

void bench_wake_serve(const struct bench_wake_holder *h, FILE *in, FILE *out)
{
        char line[64];

        fprintf(out, "ready to be told\n");
        while (!fflush(out) && fgets(line, sizeof(line), in) && strcmp(line, "end\n") != 0) {
                int64_t instant = bench_now();

                if (!strncmp(line, "wait ", 5)) {
                        h->wait(h->mine);
                        fprintf(out, "granted %" PRId64 "\n", bench_now());
                } else {
                        h->release(h->mine);
                        fprintf(out, "released %" PRId64 "\n", instant);
                }
        }
}

static void seat_wait(void *mine)
{
        if (!bench_seat_take(mine, WAIT_MS))
                bench_die("nobody woke it in %d ms", WAIT_MS);
}

static void seat_release(void *mine)
{
        bench_seat_give(mine);
}

static void snib_main(FILE *in, FILE *out, const char *url)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct bench_seat seat;
        snib_client *client;

        if (snib_open(&client, url, NULL, &err) < 0)
                bench_die("%s", err.text);
        bench_seat_begin(&seat, client, BENCH_LOCK, "wake");
        bench_wake_serve(&(struct bench_wake_holder){&seat, seat_wait, seat_release}, in, out);
        bench_seat_end(&seat);
        snib_close(client);
}

/* A connection for commands and one that hears of releases, or of grants. */
struct bare {
        redisContext *commands, *messages;
        char id[64];
        const char *question, *streak; /* NULL: it does not stand in the queue */
};

static void next_message(struct bare *b)
{
        void *reply;

        if (redisGetReply(b->messages, &reply) != REDIS_OK)
                bench_die("no message: %s", b->messages->errstr);
        freeReplyObject(reply);
}

static bool bare_ask(struct bare *b)
{
        return bench_redis_ask(b->commands, SNIB__SCRIPT_ACQUIRE,
                               (const char *[]){"1", NAME, b->id, LEASE_MS, "0", b->question, NULL});
}

static void bare_wait(void *mine)
{
        while (!bare_ask(mine))
                next_message(mine);
}

static void handed_wait(void *mine)
{
        if (!bare_ask(mine))
                next_message(mine);
}

static void bare_release(void *mine)
{
        struct bare *b = mine;

        if (!bench_redis_ask(b->commands, SNIB__SCRIPT_RELEASE,
                             (const char *[]){"1", NAME, b->id, CHANNEL, b->streak, NULL}))
                bench_die("a bare release failed");
}

static void bare_begin(struct bare *b, const char *url)
{
        b->commands = bench_redis_connect(url);
        b->messages = bench_redis_connect(url);
        snprintf(b->id, sizeof(b->id), "6d4b7c1e-5a02-4c33-9f9a-%012x:1", (unsigned)getpid());
}

static void bare_main(FILE *in, FILE *out, const char *url)
{
        struct bare b = {0};

        bare_begin(&b, url);
        freeReplyObject(redisCommand(b.messages, "SUBSCRIBE " CHANNEL));
        bench_wake_serve(&(struct bench_wake_holder){&b, bare_wait, bare_release}, in, out);
}

static void handed_main(FILE *in, FILE *out, const char *url)
{
        struct bare b = {.question = "1", .streak = "1"};

        bare_begin(&b, url);
        freeReplyObject(redisCommand(b.messages, "SUBSCRIBE snib_granted:%b", b.id, strcspn(b.id, ":")));
        bench_wake_serve(&(struct bench_wake_holder){&b, handed_wait, bare_release}, in, out);
}

/* --- the observer --- */

struct system {
        const char *name;
        struct bench_peer *pair[2];
        double rounds[BENCH_ROUNDS_MAX]; /* us */
};

/* ns; not a number if it failed */
static double instant(struct bench_peer *p, const char *word)
{
        const char *answer = bench_peer_hear(p, word);

        return answer ? strtod(answer, NULL) : NAN;
}

/* The first holds it, then the second does. us */
static double wake_once(struct bench_peer *holder, struct bench_peer *waiter)
{
        bench_peer_tell(waiter, "wait " NAME);
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
        bench_peer_tell(holder, "release");
        double released = instant(holder, "released");
        return (instant(waiter, "granted") - released) / 1e3;
}

double bench_wake_round(struct bench_peer *const *pair, int64_t run_ms)
{
        static double wakes[BENCH_VALUES_MAX];
        int64_t until = bench_now() + run_ms * 1000000;
        int count = 0, holder = 0;

        bench_peer_tell(pair[0], "wait " NAME);
        instant(pair[0], "granted");
        for (; count < 3 || (count < BENCH_VALUES_MAX && bench_now() < until); count++, holder = !holder)
                wakes[count] = wake_once(pair[holder], pair[!holder]);
        bench_peer_tell(pair[holder], "release");
        instant(pair[holder], "released");
        return isnan(wakes[count - 1]) ? NAN : bench_median(wakes, count);
}

static int begin_all(struct system *all, const char *url)
{
        static const struct {
                const char *name;
                bench_peer_main *serve;
        } own[OWN] = {{"message, then retry", bare_main}, {"snib", snib_main}, {"bare, handed on", handed_main}};
        int count = 0;

        for (; count < OWN; count++) {
                all[count] = (struct system){.name = own[count].name};
                for (int i = 0; i < 2; i++)
                        all[count].pair[i] = bench_peer_fork(own[count].name, own[count].serve, url);
        }
        for (const struct bench_contender *c; (c = bench_peer_at(count - OWN)); count++) {
                all[count] = (struct system){.name = c->name};
                for (int i = 0; i < 2; i++)
                        all[count].pair[i] = bench_peer_again(c->peer);
        }
        return count;
}

static void tell(const struct system *s, const struct system *base, int rounds)
{
        double ratios[BENCH_ROUNDS_MAX];

        for (int i = 0; i < rounds; i++)
                ratios[i] = s->rounds[i] / base->rounds[i];
        printf("%-24s %10.1f %8.2f\n", s->name, bench_median(s->rounds, rounds), bench_median(ratios, rounds));
        bench_report_row("wake", 1, s->name);
        bench_report_figure("p50_us", s->rounds, rounds);
}

void bench_wake(const struct bench_plan *plan, const char *url)
{
        struct system all[SYSTEMS_MAX];
        int count = begin_all(all, url);

        printf("\nWake-up: from the release in one process to the grant of its only waiter in another\n"
               "%-24s %10s %8s\n",
               "", "p50 us", "ratio");
        for (int i = 0; i < count; i++)
                bench_wake_round(all[i].pair, plan->warm_ms);
        for (int round = 0; round < plan->rounds; round++)
                for (int i = 0; i < count; i++)
                        all[i].rounds[round] = bench_wake_round(all[i].pair, plan->run_ms);
        for (int i = 0; i < count; i++) {
                tell(&all[i], &all[0], plan->rounds);
                bench_peer_end(all[i].pair[0]);
                bench_peer_end(all[i].pair[1]);
        }
}
