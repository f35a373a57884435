/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIM_H
#define SNIB_TEST_SIM_H

/*
 * The simulated world: one seed, one event queue, one thread. doc/design/sim.md says what it is for.
 *
 * World time is true time in ns since the start. Every client reads it through a clock of its own (rate, offset), the
 * server through another. Nothing here looks at a real clock, an address or a global that another seed left behind, so
 * a seed says the same on every build.
 *
 *   application (app.c) ─calls─▶ snib__core ─effects─▶ driver (client.c) ─▶ engine ─▶ network ─▶ server
 *                                    ▲────────notes────────────┘
 *   engine + network + server: simnet.c and server.c (messages, the model), or bytes.c (the redis engine, RESP,
 * scripts) checks.c looks at everything after every event.
 */

#include "base/list.h"
#include "base/prng.h"
#include "base/time.h"
#include "base/tree.h"
#include "core/core.h"
#include "engine/engine.h"
#include "model/lock.h"
#include <stdio.h>

#define SIM_CLIENTS 6
#define SIM_OWNERS 3
#define SIM_NAMES 2
#define SIM_HOLDS 24 /* of one client at a time, those still being released included */
#define SIM_LOGS 4096
#define SIM_WAITERS 128

struct sim;

/* Something that will happen. Embedded in what it happens to. */
struct sim_event {
        struct snib__tree_node node;
        snib__ns due;
        void (*run)(struct sim *w, struct sim_event *e);
};

enum sim_store {
        SIM_QUEUE, /* messages; the server keeps a queue and says whose turn it is */
        SIM_WATCH, /* messages; waiters watch a name */
        SIM_BYTES, /* the redis engine over simulated connections to scripts that run here */
        SIM_STORES
};

/* Everything drawn at the start of a seed; rates are mean times between two faults, 0: none; shares are per mille. */
struct sim_options {
        uint64_t seed;
        enum sim_store store;
        int clients, owners, names;
        snib__ns lease_min, lease_max;
        snib__ns delay_min, delay_max; /* one way, ordinary */
        int tail_share;                /* messages that take up to tail_max */
        snib__ns tail_max;
        snib__ns lateness; /* of a thread that has something to do */
        int ppm;           /* clock rates are within +- this */
        snib__ns op_timeout, engine_timeout;
        snib__ns safety;      /* length of the phase with faults */
        snib__ns think, hold; /* mean times of the application */
        bool scripted;        /* a scenario: nobody acts of his own accord */
        bool share_owner;     /* two threads of a client use one owner key */
        int max_hold_share, fixed_share, try_share, timed_share, once_only_share;
        int cancel_share, reenter_share, renew_share, query_share, force_share, plain_share;
        snib__ns cuts, half_opens, pauses, crashes, closes, restarts, losses, steps;
        snib__ns pause_max;
        int split_share; /* pieces of a byte stream that are cut small */
        int loss_share, hostile_share, note_loss_share, note_dup_share;
};

enum sim_verdict { SIM_FINE = 0, SIM_UNSAFE = 1, SIM_STUCK = 2, SIM_CRASHED = 3 };

/* What became of a hold id, for ever. */
struct sim_log {
        int number;
        int client;
        uint32_t incarnation;
        int name;
        bool release_sent;          /* a RELEASE of this id was handed to the engine */
        bool stale;                 /* ended by force or a loss of data, or cut short by a step of the server's clock */
        snib__ns stale_at, sent_at; /* since when; when its latest request was sent */
        bool fenced;
        bool installed; /* the server made it holder once */
        bool ended;     /* and ended that */
        bool ended_by_release;
        int told;          /* LOST effects */
        snib__ns freed_at; /* the client's core forgot it; 0: not yet */
        int64_t token;     /* last one the server gave it */
};

enum sim_object { SIM_HOLD = 1, SIM_ASK };

struct sim_hold {
        enum sim_object object;
        bool used;
        int name;
        int owner;
        snib__ns since;
        struct sim_log *log;
        char owner_key[16];
        struct snib__hold hold;
};

struct sim_ask {
        enum sim_object object;
        bool used;
        int name;
        struct snib__ask ask;
};

/* One thread of an application: at most one call under way, any number of acquires to pay back. */
struct sim_owner {
        struct sim_event act;
        int client, index;
        int name;
        int depth;
        struct sim_hold *hold; /* what it has or wants */
        bool calling;
        snib__ns call_limit; /* local time by which the call must be answered */
        struct snib__call call;
        struct sim_ask ask;
};

struct sim_client {
        int index;
        uint32_t incarnation;
        bool alive, running, closing;
        snib__ns close_limit;
        snib__ns offset;
        int64_t ppm;
        char uuid[37];
        struct snib__core core;
        const struct snib__engine_ops *ops;
        struct snib__engine *engine;
        struct sim_event wake, resume, restart;
        snib__ns poked; /* when it looks at what has arrived; SNIB__NEVER: nothing has */
        struct sim_owner owners[SIM_OWNERS];
        struct sim_hold holds[SIM_HOLDS];
        int watches[SIM_NAMES];
        int forces; /* FORCE requests sent, by earlier incarnations too */
        /* since when, in world time; SNIB__NEVER: not */
        snib__ns linked_at, running_at, watching_at[SIM_NAMES];
};

/* What the server says about a name at this instant. A hold whose time is over is none. */
struct sim_truth {
        bool held;
        struct snib__id id;
        int64_t token; /* 0: not known */
        int64_t expires_ms;
};

struct sim_seen {
        struct sim_truth truth;
        snib__ns free_since, held_since;
        bool free_by_expiry;
        int64_t last_token;
        /* the guarded resource */
        int64_t written_token;
        int written_by;
};

struct sim_store_ops {
        void (*start)(struct sim *w);
        void (*stop)(struct sim *w);
        void (*open)(struct sim *w, struct sim_client *c);
        void (*cut)(struct sim *w, struct sim_client *c, bool told);
        /* Ends everything that may be silently broken, and says so to the client. */
        void (*heal)(struct sim *w, struct sim_client *c);
        void (*half_open)(struct sim *w, struct sim_client *c, bool up, bool down);
        void (*vanish)(struct sim *w, struct sim_client *c); /* the process is gone: so are its connections */
        void (*restart)(struct sim *w, bool keep_data, snib__ns down);
        void (*step)(struct sim *w, snib__ns by); /* of the wall clock */
        void (*truth)(struct sim *w, int name, struct sim_truth *ret);
        /* Calls `each` for every id that stands in a queue. */
        void (*queue)(struct sim *w, int name, void (*each)(struct sim *w, const struct snib__id *id));
        snib__ns (*expiry)(struct sim *w, int64_t expires_ms); /* in world time */
};

struct sim {
        struct sim_options options;
        struct snib__prng prng;
        snib__ns now;
        struct snib__tree events;
        struct sim_client clients[SIM_CLIENTS];
        char names[SIM_NAMES][16];
        struct sim_log *logs[SIM_LOGS];
        int log_count;
        const struct sim_store_ops *store;
        void *store_data;
        int64_t server_ppm;
        snib__ns back;                /* how much longer leases can be because the server's clock went back */
        bool data_lost, stepped_back; /* both: tokens may fall */
        struct sim_seen seen[SIM_NAMES];

        /* phases */
        bool calm;    /* faults are over, delays small */
        bool settled; /* and their consequences too */
        bool quiet;   /* nobody begins anything */
        snib__ns settled_at;
        int calm_crashes, calm_cuts;
        struct sim_event phase, fault[8];

        /* the outcome */
        enum sim_verdict verdict;
        char invariant[8];
        char text[256];
        uint64_t hash;
        uint64_t event_count, acquired, polls;
        bool tracing;
        FILE *out; /* of the trace, NULL: standard output */

        /* memory of this seed */
        struct sim_chunk *chunks, *chunk;
        size_t chunk_used;
        struct snib__list spare[2];
};

/* world.c */
/* Runs one seed to its end; w is zero or was used before. */
enum sim_verdict sim_run(struct sim *w, uint64_t seed, bool tracing);
/* The store of every seed from here on, -1: as drawn. */
extern int sim_only_store;
/* The same with given options; `plan` adds its events. The trace goes to w->out until the calm. */
enum sim_verdict sim_run_scripted(struct sim *w, const struct sim_options *options, void (*plan)(struct sim *w));
void sim_done(struct sim *w);
void *sim_alloc(struct sim *w, size_t size);
void sim_at(struct sim *w, struct sim_event *e, snib__ns due);
void sim_not(struct sim *w, struct sim_event *e);
uint64_t sim_draw(struct sim *w, uint64_t below);
bool sim_chance(struct sim *w, int per_mille);
snib__ns sim_between(struct sim *w, snib__ns least, snib__ns most);
snib__ns sim_delay(struct sim *w);
/* The longest way of a message while calm. */
snib__ns sim_delay_calm(const struct sim *w);
/* The first violation counts. */
__attribute__((format(printf, 4, 5))) void sim_fail(struct sim *w, enum sim_verdict verdict, const char *invariant,
                                                    const char *format, ...);
/* One line of the trace; (client, what, number) go into the hash. client -1: the server or the world. */
__attribute__((format(printf, 5, 6))) void sim_trace(struct sim *w, int client, const char *what, int64_t number,
                                                     const char *format, ...);

/* options.c */
void sim_options_draw(struct sim_options *ret, uint64_t seed);
void sim_options_print(const struct sim_options *o);

/* client.c */
void sim_client_start(struct sim *w, struct sim_client *c);
void sim_client_crash(struct sim *w, struct sim_client *c);
void sim_client_pause(struct sim *w, struct sim_client *c, snib__ns length);
void sim_client_close(struct sim *w, struct sim_client *c);
/* Something has arrived for it. */
void sim_client_poke(struct sim *w, struct sim_client *c);
/* Pulls effects after a call of the core. */
void sim_client_pump(struct sim *w, struct sim_client *c);
void sim_client_schedule(struct sim *w, struct sim_client *c);
bool sim_client_idle(const struct sim_client *c);
snib__ns sim_local(const struct sim *w, const struct sim_client *c);
/* The first instant of world time at which the client's clock shows `local`. */
snib__ns sim_world_time(const struct sim_client *c, snib__ns local);

/* app.c */
void sim_app_start(struct sim *w, struct sim_client *c);
void sim_app_stop(struct sim *w, struct sim_client *c);
void sim_app_answered(struct sim *w, struct sim_client *c, struct snib__call *call);
void sim_app_answered_ask(struct sim *w, struct sim_client *c, struct snib__ask *ask);
void sim_app_lost(struct sim *w, struct sim_client *c, struct snib__hold *hold);

/* From the quiet on a scripted thread gives back by itself. */
void sim_app_wake(struct sim *w, struct sim_client *c);
/* A scripted act: acquire, release, renew, cancel, force, query. False: it makes no sense now. */
bool sim_app_do(struct sim *w, struct sim_client *c, int owner, const char *verb);

/* scenario.c */
/* Runs a file of scenarios/: fine if nothing is violated and the trace is as written there; or writes it there. */
enum sim_verdict sim_scenario(struct sim *w, const char *path, bool write);

/* explore.c */
/* Every order of events of small worlds of 2 to `callers` callers, as tests. 0 if all are well. */
int sim_explore(int callers);
/* Whether the smallest of them finds something wrong. */
bool sim_explore_finds(void);

/* checks.c */
struct sim_log *sim_log_new(struct sim *w, struct sim_client *c, int name);
/* NULL if the id is none of ours. */
struct sim_log *sim_log_of(struct sim *w, const struct snib__id *id);
bool sim_log_alive(const struct sim *w, const struct sim_log *log);
/* The server did something on behalf of `actor` (client index, or -1: of itself). Called after the fact. */
void sim_check_server(struct sim *w, int actor);
/* The server's data is gone. */
void sim_check_data_lost(struct sim *w);
/* All leases may end early from here on. */
void sim_check_leases_cut(struct sim *w);
/* Data was lost or the wall clock went back. */
void sim_check_tokens(struct sim *w);
void sim_check_submit(struct sim *w, struct sim_client *c, const struct snib__effect *e);
/* The client is about to be told. */
void sim_check_heard(struct sim_hold *h, uint32_t attempt, const struct snib__reply *r);
void sim_check_answer(struct sim *w, struct sim_client *c, const struct snib__call *call, const struct sim_hold *h);
/* Before an event: what should have happened by now. */
void sim_check_progress(struct sim *w);
/* After an event: who believes what. */
void sim_check_beliefs(struct sim *w);
/* Nothing may be left: at once of those that live, after a lease of anybody. */
void sim_check_left(struct sim *w, bool of_anybody);

/* simnet.c, server.c */
extern const struct sim_store_ops sim_messages;
/* bytes.c */
extern const struct sim_store_ops sim_bytes;

#endif
