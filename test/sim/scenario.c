/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Scenarios: a script of what applications and faults do, and the trace that must follow, in one
 * file of scenarios/.
 *
 *     store watch             store, kind, clients, delay, lease, op_timeout, engine_timeout, share_owner, until
 *     at 10 c0.0 acquire      time in ms, client, thread, verb; then try, plain, fixed, or a number
 *     at 12 c1 cut            crash, cut, pause MS, silence up|down|both; "at 20 - restart MS", "at 20 - empty MS"
 *     ----                    here begins the trace
 *
 * Times of day are world time. After `until` comes what comes in every seed: calm, quiet, and
 * nothing may be left; that part is checked but not written down.
 */

#include "sim.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64
#define TEXT_MAX 65536

struct action {
        struct sim_event event;
        int client, owner, number;
        char verb[16], word[16];
};

static struct action actions[LINES_MAX];
static int action_count;

/* A number of 0 or more, -1 if the text is none. */
static int64_t number_of(const char *text)
{
        char *end;
        long long n = strtoll(text, &end, 10);

        return end != text && *end == 0 && n >= 0 && n < 1000000 ? n : -1;
}

/* Milliseconds, perhaps with a fraction; -1. */
static snib__ns time_of(const char *text)
{
        char *end;
        double ms = strtod(text, &end);

        return end != text && *end == 0 && ms >= 0 && ms < 1e6 ? (snib__ns)(ms * (double)SNIB__MS) : -1;
}

static bool set_option(struct sim_options *o, const char *key, const char *value)
{
        static const char *const stores[] = {"queue", "watch", "bytes"};
        static const char *const kinds[] = {"plain",     "fair",    "spin",  "election", "rw",
                                            "semaphore", "permits", "latch", "register"};
        const struct {
                const char *key;
                snib__ns *at, *too;
        } times[] = {{"delay", &o->delay_min, &o->delay_max},
                     {"lease", &o->lease_min, &o->lease_max},
                     {"op_timeout", &o->op_timeout, NULL},
                     {"engine_timeout", &o->engine_timeout, NULL},
                     {"until", &o->safety, NULL}};

        if (strcmp(key, "share_owner") == 0)
                return (o->share_owner = number_of(value) == 1);
        if (strcmp(key, "clients") == 0)
                return (o->clients = (int)number_of(value)) > 0 && o->clients <= SIM_CLIENTS;
        for (int i = 0; strcmp(key, "store") == 0 && i < SIM_STORES; i++) {
                if (strcmp(value, stores[i]) != 0)
                        continue;
                o->store = (enum sim_store)i;
                return true;
        }
        for (int i = 0; strcmp(key, "kind") == 0 && i < SIM_SUBJECTS; i++) {
                if (strcmp(value, kinds[i]) != 0)
                        continue;
                o->subject[0] = (enum sim_subject)i;
                return true;
        }
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
                if (strcmp(key, times[i].key) != 0)
                        continue;
                *times[i].at = time_of(value);
                if (times[i].too)
                        *times[i].too = *times[i].at;
                return *times[i].at >= 0;
        }
        return false;
}

static void act_on_client(struct sim *w, const struct action *a, struct sim_client *c)
{
        struct sim_options before = w->options;

        if (strcmp(a->verb, "crash") == 0) {
                sim_client_crash(w, c);
        } else if (strcmp(a->verb, "pause") == 0) {
                sim_client_pause(w, c, time_of(a->word));
        } else if (strcmp(a->verb, "cut") == 0) {
                w->store->cut(w, c, true);
        } else if (strcmp(a->verb, "silence") == 0) {
                w->store->half_open(w, c, strcmp(a->word, "down") != 0, strcmp(a->word, "up") != 0);
        } else {
                w->options.try_share = strcmp(a->word, "try") == 0 ? 1000 : 0;
                w->options.plain_share = strcmp(a->word, "plain") == 0 ? 1000 : 0;
                w->options.fixed_share = strcmp(a->word, "fixed") == 0 ? 1000 : 0;
                w->options.limit = number_of(a->word) > 0 ? (int)number_of(a->word) : 1;
                if (!sim_app_do(w, c, a->owner, a->verb, w->options.limit))
                        sim_fail(w, SIM_CRASHED, "script", "line %d: cannot %s now", a->number, a->verb);
                w->options = before;
        }
}

static void run_action(struct sim *w, struct sim_event *e)
{
        const struct action *a = snib__container(e, struct action, event);

        if (strcmp(a->verb, "restart") == 0 || strcmp(a->verb, "empty") == 0)
                w->store->restart(w, a->verb[0] == 'r', time_of(a->word));
        else if (a->client < 0 || !w->clients[a->client].alive)
                sim_fail(w, SIM_CRASHED, "script", "line %d: no such client", a->number);
        else
                act_on_client(w, a, &w->clients[a->client]);
}

static bool add_action(const char *line, int number)
{
        struct action *a = &actions[action_count];
        char who[16];
        double ms;

        memset(a, 0, sizeof(*a));
        if (action_count == LINES_MAX || sscanf(line, "at %lf %15s %15s %15s", &ms, who, a->verb, a->word) < 3)
                return false;
        a->number = number;
        a->client = who[0] == 'c' ? who[1] - '0' : -1;
        a->owner = who[0] == 'c' && who[2] == '.' ? who[3] - '0' : 0;
        a->event.due = (snib__ns)(ms * (double)SNIB__MS);
        a->event.run = run_action;
        action_count++;
        return a->client < SIM_CLIENTS && a->owner >= 0 && a->owner < SIM_OWNERS;
}

/* Reads up to the trace. False: nonsense in line *ret_number. */
static bool read_script(FILE *f, struct sim_options *o, char *script, int *ret_number)
{
        char line[256], key[32], value[32];

        *o = (struct sim_options){.clients = 2,
                                  .owners = SIM_OWNERS,
                                  .names = 1,
                                  .limit = 1,
                                  .scripted = true,
                                  .token_block = SNIB__TOKEN_BLOCK};
        o->lateness = 1;
        o->think = o->hold = 100 * SNIB__MS;
        action_count = 0;
        script[0] = 0;
        for (*ret_number = 1; fgets(line, sizeof(line), f); ++*ret_number) {
                size_t used = strlen(script);

                if (used + strlen(line) >= TEXT_MAX)
                        return false;
                memcpy(script + used, line, strlen(line) + 1);
                if (strncmp(line, "----", 4) == 0)
                        return true;
                if (line[0] == '#' || line[0] == '\n')
                        continue;
                if (strncmp(line, "at ", 3) == 0
                        ? !add_action(line, *ret_number)
                        : sscanf(line, "%31s %31s", key, value) != 2 || !set_option(o, key, value))
                        return false;
        }
        return false;
}

static void plan(struct sim *w)
{
        for (int i = 0; i < action_count; i++)
                sim_at(w, &actions[i].event, actions[i].event.due);
}

static bool rewrite(const char *path, const char *script, const char *trace)
{
        FILE *f = fopen(path, "w");

        if (!f)
                return false;
        fprintf(f, "%s%s", script, trace);
        return fclose(f) == 0;
}

static void explain(const char *path, const char *expected, const char *trace)
{
        int line = 1;

        for (; *expected && *expected == *trace; expected++, trace++)
                line += *trace == '\n';
        printf("# %s: trace line %d is not as it was (sim --rewrite FILE writes the new one)\n# from here: %.120s\n",
               path, line, trace);
}

enum sim_verdict sim_scenario(struct sim *w, const char *path, bool write)
{
        static char script[TEXT_MAX], expected[TEXT_MAX];
        struct sim_options options;
        char *trace = NULL;
        size_t length = 0;
        int number;
        FILE *f = fopen(path, "r");
        enum sim_verdict v;

        if (!f || !read_script(f, &options, script, &number)) {
                printf("# %s: %s in line %d\n", path, f ? "nonsense" : "cannot be read", f ? number : 0);
                if (f)
                        fclose(f);
                return SIM_CRASHED;
        }
        expected[fread(expected, 1, sizeof(expected) - 1, f)] = 0;
        fclose(f);
        w->out = open_memstream(&trace, &length);
        v = sim_run_scripted(w, &options, plan);
        fclose(w->out);
        w->out = NULL;
        if (v != SIM_FINE)
                printf("# %s: %s: %s\n", path, w->invariant, w->text);
        if (write && !rewrite(path, script, trace))
                v = SIM_CRASHED;
        if (!write && strcmp(trace, expected) != 0) {
                explain(path, expected, trace);
                v = v != SIM_FINE ? v : SIM_UNSAFE;
        }
        free(trace);
        return v;
}
