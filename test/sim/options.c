/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The options of a seed. Swarm testing: each kind of fault is wholly off in about half of the
 * seeds, and sizes are drawn from ranges that differ by orders of magnitude, because some bugs need
 * the absence of a fault to show.
 */

#include "sim.h"
#include <stdio.h>

static uint64_t below(struct snib__prng *p, uint64_t n)
{
        return snib__prng_below(p, n);
}

static bool coin(struct snib__prng *p)
{
        return below(p, 2) == 0;
}

static int share(struct snib__prng *p, int most)
{
        return coin(p) ? 0 : 1 + (int)below(p, (uint64_t)most);
}

static snib__ns pick(struct snib__prng *p, const snib__ns *from, size_t n)
{
        return from[below(p, n)];
}

#define PICK(p, ...) pick((p), (const snib__ns[]){__VA_ARGS__}, sizeof((snib__ns[]){__VA_ARGS__}) / sizeof(snib__ns))

static snib__ns mean(struct snib__prng *p, snib__ns least, snib__ns most)
{
        return coin(p) ? 0 : least + (snib__ns)below(p, (uint64_t)(most - least));
}

void sim_options_draw_faults(struct sim_options *o, struct snib__prng *p)
{
        o->cuts = mean(p, SNIB__S / 2, 6 * SNIB__S);
        o->half_opens = mean(p, 2 * SNIB__S, 10 * SNIB__S);
        o->pauses = mean(p, SNIB__S / 2, 6 * SNIB__S);
        o->pause_max = 3 * o->lease_max;
        o->crashes = mean(p, SNIB__S, 8 * SNIB__S);
        o->closes = mean(p, 4 * SNIB__S, 20 * SNIB__S);
        o->restarts = mean(p, 3 * SNIB__S, 15 * SNIB__S);
        o->losses = below(p, 4) ? 0 : mean(p, 3 * SNIB__S, 15 * SNIB__S);
        o->steps = below(p, 4) ? 0 : mean(p, 3 * SNIB__S, 15 * SNIB__S);
        o->split_share = share(p, 500);
        o->loss_share = share(p, 100);
        o->hostile_share = below(p, 3) ? 0 : share(p, 150);
        o->note_loss_share = share(p, 300);
        o->note_dup_share = share(p, 300);
}

/* Most seeds have one kind of thing, some two. Every ninth or so has multilocks, and then nothing
 * else. */
static enum sim_subject draw_subject(struct snib__prng *p)
{
        static const enum sim_subject from[] = {
            SIM_PLAIN,     SIM_PLAIN,    SIM_PLAIN,    SIM_PLAIN,  SIM_PLAIN, SIM_FAIR,  SIM_FAIR,      SIM_FAIR,
            SIM_SPIN,      SIM_ELECTION, SIM_ELECTION, SIM_RW,     SIM_RW,    SIM_RW,    SIM_SEMAPHORE, SIM_SEMAPHORE,
            SIM_SEMAPHORE, SIM_PERMIT,   SIM_PERMIT,   SIM_PERMIT, SIM_LATCH, SIM_LATCH, SIM_REGISTER,  SIM_REGISTER};

        return from[below(p, sizeof(from) / sizeof(from[0]))];
}

static void draw_application(struct sim_options *o, struct snib__prng *p)
{
        o->think = PICK(p, 50 * SNIB__MS, 200 * SNIB__MS, SNIB__S);
        o->hold = PICK(p, 20 * SNIB__MS, 200 * SNIB__MS, SNIB__S, 2 * SNIB__S);
        o->max_hold_share = share(p, 200);
        o->fixed_share = share(p, 600);
        o->try_share = share(p, 400);
        o->timed_share = share(p, 600);
        o->once_only_share = share(p, 100);
        o->cancel_share = share(p, 300);
        o->reenter_share = share(p, 400);
        o->renew_share = share(p, 200);
        o->query_share = share(p, 100);
        o->force_share = below(p, 3) ? 0 : share(p, 60);
        o->plain_share = share(p, 1000);
        o->share_owner = coin(p);
        o->read_share = 500 + (int)below(p, 450);
        o->observe_share = share(p, 600);
        o->admin_share = share(p, 300);
        o->delete_share = share(p, 200);
        o->limit = 1 + (int)below(p, 6);
        o->burst_share = coin(p) ? 0 : 500 + (int)below(p, 490);
}

/* What came to the interface of engines later: drawn apart, so that what a seed drew before
 * stays. */
static void draw_variations(struct sim_options *o)
{
        struct snib__prng prng = {o->seed ^ 0xfac75ULL}, *p = &prng;

        o->token_block = below(p, 4) ? SNIB__TOKEN_BLOCK : 1;
        o->lease_given = below(p, 4) ? 0 : o->lease_min / 2 + (snib__ns)below(p, (uint64_t)o->lease_max);
        o->untold = below(p, 4) == 0;
        if (o->untold)
                o->poll = PICK(p, 0, 100 * SNIB__MS, 300 * SNIB__MS, 1500 * SNIB__MS);
        if (o->untold && coin(p))
                o->look = PICK(p, 50 * SNIB__MS, 200 * SNIB__MS, 700 * SNIB__MS, 1200 * SNIB__MS);
        o->parts = below(p, 3) == 0;
        o->memory_share = below(p, 4) ? 0 : 1 + (int)below(p, 30);
        o->leave_share = below(p, 4) ? 0 : 1 + (int)below(p, 400);
}

void sim_options_draw(struct sim_options *ret, uint64_t seed)
{
        struct snib__prng prng = {seed ^ 0x5deece66dULL}, *p = &prng, other = {seed};
        struct sim_options *o = ret;

        *o = (struct sim_options){.seed = seed};
        o->store = (enum sim_store)below(p, SIM_STORES);
        o->clients = 2 + (int)below(p, SIM_CLIENTS - 1);
        o->owners = 1 + (int)below(p, SIM_OWNERS);
        o->names = below(p, 4) ? 1 : 2;
        for (int i = 0; i < o->names; i++)
                o->subject[i] = draw_subject(p);
        if (below(&other, 9) == 0)
                o->fleet = SIM_MULTI + (enum sim_subject)below(&other, 3);
        o->lease_min = PICK(p, 300 * SNIB__MS, SNIB__S, 2 * SNIB__S);
        o->lease_max = o->lease_min * (snib__ns)(1 + below(p, 3));
        o->delay_min = PICK(p, 20000, SNIB__MS / 5, SNIB__MS);
        o->delay_max = o->delay_min * (snib__ns)(1 + below(p, 30));
        o->tail_share = share(p, 100);
        o->tail_max = PICK(p, 50 * SNIB__MS, 500 * SNIB__MS, 2500 * SNIB__MS);
        o->lateness = PICK(p, 10000, SNIB__MS, 20 * SNIB__MS);
        o->ppm = coin(p) ? 0 : 900;
        o->op_timeout = PICK(p, 100 * SNIB__MS, 500 * SNIB__MS, 2 * SNIB__S);
        o->engine_timeout = PICK(p, 200 * SNIB__MS, SNIB__S, 20 * SNIB__S);
        o->safety = (5 + (snib__ns)below(p, 11)) * SNIB__S;
        sim_options_draw_faults(o, p);
        draw_application(o, p);
        draw_variations(o);
}

void sim_options_fleet(struct sim_options *o, enum sim_subject fleet)
{
        static const enum sim_subject kinds[] = {SIM_PLAIN, SIM_PLAIN, SIM_FAIR, SIM_SPIN, SIM_RW};
        struct snib__prng prng = {o->seed ^ 0xf1ee7ULL}, *p = &prng;

        o->fleet = fleet;
        o->token_block = SNIB__TOKEN_BLOCK; /* those of several servers are compared: by their clocks */
        o->clients = 2 + (int)below(p, 2);
        o->owners = (int)below(p, 3);
        o->teams = 1 + (int)below(p, SIM_TEAMS);
        o->node_timeout = PICK(p, 60 * SNIB__MS, 200 * SNIB__MS, SNIB__S);
        o->servers = fleet == SIM_MULTI ? 1 + (int)below(p, 3) : fleet == SIM_RED ? 3 + 2 * (int)below(p, 2) : 1;
        o->names = fleet == SIM_RED ? 1 : 2 + (int)below(p, fleet == SIM_STRIPED ? 3 : 2);
        if (fleet == SIM_MULTI && o->servers > 1)
                o->names = 1 + (int)below(p, 2);
        o->foreign_share = fleet == SIM_MULTI ? share(p, 1000) : 0;
        for (int i = 0; i < o->names; i++)
                o->subject[i] = fleet == SIM_STRIPED ? SIM_PLAIN : kinds[below(p, fleet == SIM_MULTI ? 5 : 3)];
        if (fleet == SIM_STRIPED)
                o->plain_share = 1000;
}

static void print_time(const char *name, snib__ns t)
{
        if (t)
                printf("  %s=%.3fms", name, (double)t / SNIB__MS);
        else
                printf("  %s=off", name);
}

void sim_options_print(const struct sim_options *o)
{
        static const char *const stores[] = {"messages+queue", "messages+watch", "bytes"};
        static const char *const subjects[] = {"plain",     "fair",    "spin",  "election", "rw",
                                               "semaphore", "permits", "latch", "register"};
        static const char *const fleets[] = {"multilocks", "red multilocks", "striped locks"};

        printf("seed %llu: store=%s clients=%d owners=%d names=%d ppm=%d token_block=%d\n", (unsigned long long)o->seed,
               stores[o->store], o->clients, o->owners, o->names, o->ppm, o->token_block);
        if (o->fleet)
                printf("  %s: servers=%d teams=%d foreign=%d node_timeout=%.0fms\n", fleets[o->fleet - SIM_MULTI],
                       o->servers, o->teams, o->foreign_share, (double)o->node_timeout / SNIB__MS);
        for (int i = 0; i < o->names; i++)
                printf("  name%d: %s, limit %d\n", i, subjects[o->subject[i]], o->limit);
        print_time("lease_min", o->lease_min);
        print_time("lease_max", o->lease_max);
        print_time("delay_min", o->delay_min);
        print_time("delay_max", o->delay_max);
        print_time("tail_max", o->tail_max);
        print_time("lateness", o->lateness);
        print_time("op_timeout", o->op_timeout);
        print_time("engine_timeout", o->engine_timeout);
        print_time("safety", o->safety);
        print_time("think", o->think);
        print_time("hold", o->hold);
        print_time("lease_given", o->lease_given);
        if (o->untold && o->store == SIM_WATCH)
                printf("  untold");
        if (o->parts)
                printf("  parts");
        print_time("poll", o->poll);
        print_time("look", o->look);
        printf("\n  one in so long:");
        print_time("cuts", o->cuts);
        print_time("half_opens", o->half_opens);
        print_time("pauses", o->pauses);
        print_time("crashes", o->crashes);
        print_time("closes", o->closes);
        print_time("restarts", o->restarts);
        print_time("data_losses", o->losses);
        print_time("clock_steps", o->steps);
        printf("\n  per mille: tail=%d split=%d loss=%d hostile=%d note_loss=%d note_dup=%d no_memory=%d leave=%d",
               o->tail_share, o->split_share, o->loss_share, o->hostile_share, o->note_loss_share, o->note_dup_share,
               o->memory_share, o->leave_share);
        printf(" max_hold=%d fixed=%d try=%d timed=%d not_reentrant=%d cancel=%d reenter=%d renew=%d query=%d force=%d "
               "not_fenced=%d share_owner=%d read=%d observe=%d admin=%d delete=%d burst=%d\n",
               o->max_hold_share, o->fixed_share, o->try_share, o->timed_share, o->once_only_share, o->cancel_share,
               o->reenter_share, o->renew_share, o->query_share, o->force_share, o->plain_share, o->share_owner,
               o->read_share, o->observe_share, o->admin_share, o->delete_share, o->burst_share);
}
