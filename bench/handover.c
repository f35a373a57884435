/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables of hand-over: which crowds (crowd.c) of which objects, beside one socket alone and
 * beside other libraries, and what is printed of them. A line is one system at one size, with a
 * value for each round.
 */

#include "crowd.h"
#include <math.h>
#include <stdio.h>

#define PEER_CROWD 32
#define LINES_MAX (15 + 2 * BENCH_PEERS)

static const struct {
        const char *name, *head;
        int width, digits;
        bool server; /* asked of one */
} figures[FIGURES] = {
    [RATE] = {"grants_per_s", "grants/s", 9, 0, false},
    [RATIO] = {"ratio", "ratio", 6, 2, true}, /* to the bare loop on the same processors */
    [MEAN] = {"mean_ms", "mean", 8, 2, false},
    [LONGEST] = {"longest_ms", "longest", 8, 1, false},
    [LATEST] = {"longest_to_mean", "ratio", 6, 1, false},
    [SERVED] = {"served", "served", 6, 2, false}, /* who was served most or least often, beside the mean */
    [GAP] = {"gap_ms", "gap", 6, 1, false},
    [POLLS] = {"polls", "polls", 6, 0, false},
    [CPU] = {"cpu_us", "CPU us", 7, 1, false},
    [SWITCHES] = {"switches", "switch", 6, 1, false},
    [SCRIPTS] = {"scripts", "scripts", 7, 2, true},
    [SUBSCRIPTIONS] = {"subscriptions", "(un)sub", 7, 2, true},
    [FORGETS] = {"unlinks", "unlink", 6, 2, true},
    [REQUESTS] = {"requests", "all", 5, 2, true},
    [EXECUTED] = {"executed", "executed", 8, 1, true},
    [CHANNELS] = {"channels", "channel", 7, 0, true},
    [SUBSCRIBERS] = {"subscribers", "sub'er", 6, 0, true},
};

/* One system at one size, a value for each round. */
struct line {
        char system[48];
        int size; /* members */
        double rounds[FIGURES][BENCH_ROUNDS_MAX];
};

static void put(struct line *l, int round, const double *values)
{
        for (int i = 0; i < FIGURES; i++)
                l->rounds[i][round] = values[i];
}

static void clear(double *values)
{
        for (int i = 0; i < FIGURES; i++)
                values[i] = NAN;
}

static void print_head(bool server)
{
        printf("%-33s", "");
        for (int i = 0; i < FIGURES; i++)
                if (server || !figures[i].server)
                        printf(" %*s", figures[i].width, figures[i].head);
        printf("\n");
}

static void tell(const struct line *l, const char *scenario, int rounds, bool server)
{
        bench_report_row(scenario, l->size, l->system);
        printf("%-28s %4d", l->system, l->size);
        for (int i = 0; i < FIGURES; i++) {
                double middle = bench_median(l->rounds[i], rounds);

                if (!server && figures[i].server)
                        continue;
                bench_report_figure(figures[i].name, l->rounds[i], rounds);
                if (isfinite(middle))
                        printf(" %*.*f", figures[i].width, figures[i].digits, middle);
                else
                        printf(" %*s", figures[i].width, "");
        }
        printf("\n");
        fflush(stdout);
}

/* --- what is run in a round
 * --------------------------------------------------------------------------------------------- */

/* Of one noun on one engine. */
struct scene {
        const struct bench_plan *plan;
        enum bench_noun noun;
        const char *url;
        struct redis_server *server;
        double bare; /* grants a second of the round */
        int round, lines;
        struct line line[LINES_MAX];
};

static struct line *next_line(struct scene *s, int size, const char *who, const char *what)
{
        struct line *l = &s->line[s->lines++];

        l->size = size;
        snprintf(l->system, sizeof(l->system), "%s, %s", who, what);
        return l;
}

/* One socket, and nobody else: what the scripts cost. */
static void run_bare(struct scene *s, const char *what)
{
        struct crowd_load load[2] = {crowd_load_at(s->server, 0)};
        int64_t run_ms = s->plan->run_ms;
        double values[FIGURES];

        clear(values);
        s->bare = values[RATE] = bench_redis_bare_rate(s->noun, s->url, run_ms);
        load[1] = crowd_load_at(s->server, 0);
        crowd_set_load(load, s->bare * (double)run_ms / 1e3, values);
        values[RATIO] = 1;
        values[CHANNELS] = values[SUBSCRIBERS] = NAN;
        put(next_line(s, 1, bench_noun_text(s->noun), what), s->round, values);
}

static void run_crowd(struct scene *s, int processes, int threads, const char *what)
{
        struct crowd_cast cast = {
            .noun = s->noun, .url = s->url, .server = s->server, .processes = processes, .threads = threads};
        double values[FIGURES];

        clear(values);
        crowd_run(s->plan, &cast, values);
        values[RATIO] = values[RATE] / s->bare;
        put(next_line(s, processes * threads, bench_noun_text(s->noun), what), s->round, values);
}

/* The server and all who want it on one processor, and what a socket alone does there: nobody waits
 * for a processor to be woken. */
static void run_on_one_core(struct scene *s, const int *processes)
{
        bench_share_a_core();
        run_bare(s, "bare, same core");
        for (; *processes; processes++)
                run_crowd(s, *processes, 1, "processes, same core");
        bench_spread_again();
}

/* Other libraries have what is most like a plain lock. */
static void run_peers(struct scene *s)
{
        static const char *const modes[] = {"same", "clients"};
        const struct bench_contender *c;
        double of_run[BENCH_FIGURES], values[FIGURES];

        for (int mode = 0; mode < 2; mode++)
                for (int i = 0; (c = bench_peer_at(i)); i++) {
                        clear(values);
                        bench_peer_run(c->peer, modes[mode], PEER_CROWD, s->plan->warm_ms, s->plan->crowd_ms, of_run);
                        values[RATE] = of_run[BENCH_RATE];
                        values[RATIO] = values[RATE] / s->bare;
                        values[LONGEST] = of_run[BENCH_LONGEST] / 1e3;
                        values[CPU] = of_run[BENCH_CPU];
                        values[SWITCHES] = of_run[BENCH_VOLUNTARY] + of_run[BENCH_INVOLUNTARY];
                        put(next_line(s, PEER_CROWD, c->name, mode ? "clients" : "threads"), s->round, values);
                }
}

/* The plain lock shows the growth; of the others fewer sizes tell as much, and where nothing is
 * subscribed, and fenced and spin locks are locks, fewer still. */
static void run_round(struct scene *s)
{
        static const int many[] = {1, 8, 32, 128, 300, 1000, 0}, some[] = {8, 32, 300, 0}, few[] = {8, 0};
        static const int many_processes[] = {8, 32, 128, 0};
        bool plain = s->noun == BENCH_LOCK;
        const int *threads = !s->server ? few : plain ? many : some;
        const int *processes = s->server && plain ? many_processes : few;

        s->lines = 0;
        if (s->server)
                run_bare(s, "bare and alone");
        for (; *threads; threads++)
                run_crowd(s, 1, *threads, "threads");
        for (const int *p = processes; *p; p++)
                run_crowd(s, *p, 1, "processes");
        if (s->server && plain) {
                run_peers(s);
                run_on_one_core(s, processes);
        }
}

static void run_noun(struct scene *s)
{
        int rounds = s->server && s->noun == BENCH_LOCK ? s->plan->crowd_rounds : 1;

        for (s->round = 0; s->round < rounds; s->round++)
                run_round(s);
        for (int i = 0; i < s->lines; i++)
                tell(&s->line[i], s->server ? "crowds" : "crowds-local", rounds, s->server != NULL);
}

void bench_crowd(const struct bench_plan *plan, const char *url, struct redis_server *server)
{
        static const enum bench_noun wanted[] = {BENCH_LOCK,  BENCH_FENCED,    BENCH_FAIR,   BENCH_SPIN,
                                                 BENCH_WRITE, BENCH_SEMAPHORE, BENCH_PERMITS};
        static struct scene s;

        printf("\nHand-over on %s: all want one name; one run of %lld ms each, of a plain lock on Redis %d. Waits in "
               "ms.%s\n",
               server ? "Redis" : "local", (long long)plan->crowd_ms, plan->crowd_rounds,
               server ? " Then requests of clients for each grant,\nall commands that the server executed, "
                        "those inside scripts among them; and who is subscribed at the end"
                      : "");
        print_head(server != NULL);
        for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
                if (!server && (wanted[i] == BENCH_FENCED || wanted[i] == BENCH_SPIN))
                        continue;
                s = (struct scene){.plan = plan, .noun = wanted[i], .url = url, .server = server};
                run_noun(&s);
        }
}
