/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SIM_H
#define SNIB_TEST_SIM_H

/*
 * The simulated world: one seed, one event queue, one thread. doc/design/sim.md says what it is
 * for.
 *
 * World time is true time in ns since the start. Every client reads it through a clock of its own
 * (rate, offset), the server through another. Nothing here looks at a real clock, an address or a
 * global that another seed left behind, so a seed says the same on every build.
 *
 *   application (app.c) ─calls─▶ snib__core ─effects─▶ driver (client.c) ─▶ engine ─▶ network ─▶
 *   server
 *                                    ▲────────notes────────────┘
 *   engine + network + server: simnet.c and server.c (messages, the model), or bytes.c (the redis
 *   engine, RESP,
 * scripts) checks.c looks at everything after every event.
 */

#include "base/list.h"
#include "base/prng.h"
#include "base/time.h"
#include "base/tree.h"
#include "core/core.h"
#include "engine/engine.h"
#include "model/record.h"
#include <stdio.h>

#define SIM_CLIENTS 6
#define SIM_OWNERS 3
#define SIM_NAMES 4
#define SIM_SERVERS 5 /* with multilocks there are several */
#define SIM_TEAMS 2   /* threads of a process that take multilocks; they take each member as an owner of its own */
#define SIM_OWNERS_ALL (SIM_OWNERS + SIM_TEAMS * SIM_NAMES)
#define SIM_HOLDS 24 /* of one client at a time, those still being released included */
#define SIM_LOGS 8192
#define SIM_LOGS_KEPT 256 /* of them, for giving back what was taken */
#define SIM_WAITERS 128
#define SIM_SEATS 128 /* on one name at a time */
#define SIM_PERMITS 3 /* taken at once */
/* A seed with more events than this is stuck in a loop. */
#define SIM_EVENTS_MAX 3000000

struct sim;
struct sim_fleet;
struct sim_member;

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

/* What stands under a name. Kinds that exclude each other do not wake each other, so a name has
 * one. */
enum sim_subject {
        SIM_PLAIN, /* plain and fenced locks */
        SIM_FAIR,
        SIM_SPIN,
        SIM_ELECTION,
        SIM_RW,
        SIM_SEMAPHORE,
        SIM_PERMIT,
        SIM_LATCH,
        SIM_REGISTER,
        /* fleet.c: worlds of one or several servers */
        SIM_MULTI,
        SIM_RED,
        SIM_STRIPED,
        SIM_SUBJECTS
};

/* Everything drawn at the start of a seed; rates are mean times between two faults, 0: none; shares
 * are per mille. */
struct sim_options {
        uint64_t seed;
        enum sim_store store;
        int clients, owners, names;
        enum sim_subject subject[SIM_NAMES];
        int limit; /* of permits, of a semaphore, of a latch */
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
        int read_share, observe_share, admin_share, delete_share;
        int burst_share; /* of plain locks: pauses and holds that are over at once */
        snib__ns cuts, half_opens, pauses, crashes, closes, restarts, losses, steps;
        snib__ns pause_max;
        int split_share; /* pieces of a byte stream that are cut small */
        int loss_share, hostile_share, note_loss_share, note_dup_share;
        int memory_share;     /* requests that the engine does not take */
        int token_block;      /* tokens of a grant; messages */
        int leave_share;      /* releases that leave the hold to a lease; of locks */
        snib__ns lease_given; /* the longest that the server of messages gives, 0: what is asked for */
        snib__ns poll, look;  /* of an engine that nobody tells of a change: what it says of itself, and in an answer */
        bool untold;          /* it is one: messages with watches, without them */
        bool parts;           /* messages: each name has a link of its own, which is also cut alone */
        /* a fleet */
        enum sim_subject fleet; /* SIM_MULTI, SIM_RED, SIM_STRIPED; else one server alone */
        int servers, teams;
        int foreign_share; /* acquires of multilocks in somebody else's order */
        snib__ns node_timeout;
};

enum sim_verdict { SIM_FINE = 0, SIM_UNSAFE = 1, SIM_STUCK = 2, SIM_CRASHED = 3 };

/* What a request that changes a number has done to it by the client's knowledge. */
enum sim_account {
        SIM_NO_ACCOUNT = 0,
        SIM_OPEN,   /* it is executed or not */
        SIM_CLOSED, /* it is known which */
};

/* What became of an id, for ever. */
struct sim_log {
        int number;
        int client;
        uint32_t incarnation;
        int name;
        int kind;  /* enum snib_kind */
        int owner; /* number of its key; holds of different owners exclude each other */
        int n;
        bool observer, asked;       /* it observes; it is of a request without a hold */
        bool release_sent;          /* a RELEASE of this id was handed to the engine */
        bool left;                  /* or its last RENEW: it stays until its lease ends, nobody's */
        bool stale;                 /* ended by force or a loss of data, or cut short by a step of the server's clock */
        snib__ns stale_at, sent_at; /* since when; when its latest request was sent */
        int live;                   /* seats it has on the server */
        bool installed;             /* the server gave it a seat, or wrote its value */
        bool ended;                 /* and took the last one away */
        bool ended_by_release;
        int told;          /* LOST effects */
        int passed;        /* times the client handed it from one thread to the next */
        snib__ns heard_at; /* when it last heard that it holds, by its clock */
        snib__ns freed_at; /* the client's core forgot it; 0: not yet */
        int64_t token;     /* last one the server gave it */
        char permit[SIM_PERMITS][33];
        /* a number */
        enum sim_account account;
        int64_t delta;  /* what it adds when it is executed */
        int epoch;      /* of the number when it was sent */
        int order;      /* of its execution, 0: none */
        bool forgotten; /* by the server, which was asked again */
        /* a register */
        int64_t expected, version;
        char data[24];
};

enum sim_object { SIM_HOLD = 1, SIM_ASK };

struct sim_hold {
        enum sim_object object;
        bool used;
        int name;
        int owner;
        snib__ns since;
        snib__ns watching_at; /* since when its watch is in effect; SNIB__NEVER: it is not */
        snib__ns open_since;  /* since when the server would let it in; SNIB__NEVER: it would not */
        bool open_unsaid;     /* and tells nobody, because it is so by time */
        bool watch_sent;      /* its watch is its own, not one that it took over */
        bool handed_on;       /* its hold is another thread's now */
        struct sim_log *log;
        char owner_key[16];
        struct snib__hold hold;
};

struct sim_ask {
        enum sim_object object;
        bool used;
        bool step; /* its thread goes on when it is answered */
        int name;
        struct sim_log *log;
        struct snib__ask ask;
};

/* What a thread has of one side of a name: any number of acquires to pay back. */
struct sim_stake {
        struct sim_hold *hold; /* what it has or wants */
        int depth;
};

/* One thread of an application: at most one call under way. */
struct sim_owner {
        struct sim_event act;
        struct sim_member *member; /* it acts for a member of a multilock; NULL: of its own accord */
        int client, index;
        int name;
        struct sim_stake stake[2]; /* 1: the read side */
        int side;                  /* of the call under way */
        bool calling;
        snib__ns call_limit; /* local time by which the call must be answered */
        int taken;           /* of a semaphore */
        int64_t seen;        /* term or version that it knows */
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
        struct snib__who who;
        struct snib__core core;
        const struct snib__engine_ops *ops;
        const struct snib__facts *facts;
        struct snib__engine *engine;
        struct sim_event wake, resume, restart;
        snib__ns poked; /* when it looks at what has arrived; SNIB__NEVER: nothing has */
        struct sim_owner owners[SIM_OWNERS_ALL];
        struct sim_hold holds[SIM_HOLDS];
        int watches[SIM_NAMES];
        snib__ns watching_at[SIM_NAMES]; /* since when one of its watches is in effect */
        snib__ns part_at[SIM_NAMES];     /* since when the link of this name is up */
        int forces;                      /* requests sent that end the holds of others, by earlier incarnations too */
        int resets, deletes;             /* the same of those that set a number whatever it was, and that delete */
        /* since when, in world time; SNIB__NEVER: not */
        snib__ns linked_at, running_at;
};

struct sim_seat {
        struct sim_log *log;
        int index;     /* of the permit */
        int64_t token; /* 0: not known */
        int64_t expires_ms;
        snib__ns ends; /* the same in world time */
};

struct sim_place {
        struct sim_log *log;
        snib__ns ends;
        int64_t deaf; /* its client has no connection on which it could be told */
};

/* What the server says about a name. A seat or place whose time is over is none. */
struct sim_truth {
        uint64_t edition; /* another after every change */
        int seats, places;
        struct sim_seat seat[SIM_SEATS];
        struct sim_place place[SIM_WAITERS]; /* first come first */
        bool exists;                         /* a number or a value */
        int64_t value;                       /* free permits of a semaphore, count */
        snib__ns exists_until;               /* of a semaphore with a time to live */
        int64_t reserved;                    /* permits of those who have not heard yet that they have them */
        int64_t limit;                       /* of permits */
        int64_t version;
        struct sim_log *writer; /* of the value */
};

/* What the checks know of a name. */
struct sim_seen {
        uint64_t edition;
        snib__ns next_end; /* of what the truth says lives */
        int seats, places;
        struct sim_seat seat[SIM_SEATS];
        struct sim_place place[SIM_WAITERS];
        int64_t last_token;
        /* the guarded resource */
        int64_t written_token;
        int written_by;
        uint64_t written_cookie; /* of the record, which several may have in turn */
        /* the number: what it was when it was made, and what has been done to it since, at least
         * and at most */
        bool exists;
        snib__ns exists_until;
        int64_t value, version, base, low, high;
        int epoch;
};

struct sim_store_ops {
        void (*start)(struct sim *w);
        void (*stop)(struct sim *w);
        void (*open)(struct sim *w, struct sim_client *c);
        void (*cut)(struct sim *w, struct sim_client *c, bool told);
        /* NULL, or: cuts the link of one name alone. */
        void (*cut_part)(struct sim *w, struct sim_client *c, int name);
        /* Ends everything that may be silently broken, and says so to the client. */
        void (*heal)(struct sim *w, struct sim_client *c);
        void (*half_open)(struct sim *w, struct sim_client *c, bool up, bool down);
        void (*vanish)(struct sim *w, struct sim_client *c); /* the process is gone: so are its connections */
        void (*restart)(struct sim *w, bool keep_data, snib__ns down);
        void (*step)(struct sim *w, snib__ns by); /* of the wall clock */
        const struct sim_truth *(*truth)(struct sim *w, int name);
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
        struct sim_fleet *fleet; /* NULL: this world is alone */
        int server;              /* its number in the fleet */
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

/* Those who wait without a queue are told nothing. */
static inline bool sim_untold(const struct sim *w)
{
        return w->options.store == SIM_WATCH && w->options.untold;
}

/* world.c */
/* Runs one seed to its end; w is zero or was used before. */
enum sim_verdict sim_run(struct sim *w, uint64_t seed, bool tracing);
/* The store of every seed from here on, -1: as drawn. */
extern int sim_only_store;
/* What stands under all names of every seed from here on, -1: as drawn. */
extern int sim_only_subject;
/* The same with given options; `plan` adds its events. The trace goes to w->out until the calm. */
enum sim_verdict sim_run_scripted(struct sim *w, const struct sim_options *options, void (*plan)(struct sim *w));
void sim_done(struct sim *w);
/* The two halves of a run, for a fleet: makes the world of one server; runs one event, at its
 * time. */
void sim_world_start(struct sim *w, const struct sim_options *options, bool tracing);
void sim_world_step(struct sim *w, struct sim_event *e);
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
/* One line of the trace; (client, what, number) go into the hash. client -1: the server or the
 * world. */
__attribute__((format(printf, 5, 6))) void sim_trace(struct sim *w, int client, const char *what, int64_t number,
                                                     const char *format, ...);

/* options.c */
void sim_options_draw(struct sim_options *ret, uint64_t seed);
void sim_options_print(const struct sim_options *o);
/* The faults of one more server. */
void sim_options_draw_faults(struct sim_options *o, struct snib__prng *p);
/* Those of a fleet, from those of a world alone. */
void sim_options_fleet(struct sim_options *o, enum sim_subject fleet);

/* fleet.c: several servers, and the processes that are a client of each */
/* Plays one seed of a fleet; w is what is reported. */
void sim_fleet_run(struct sim *w, const struct sim_options *options, bool tracing);
/* The worlds that the processes of `w` live in: 1 and w itself, if it is alone. */
int sim_fleet_servers(const struct sim *w);
struct sim *sim_fleet_server(struct sim *w, int i);
/* All threads of all processes have come to rest. */
bool sim_fleet_idle(const struct sim *w);
/* The clock of a process is one. */
void sim_fleet_clock(const struct sim *w, struct sim_client *c);
/* The process of this client is gone, or will be (this client alone). */
void sim_fleet_crashed(struct sim *w, const struct sim_client *c);
void sim_fleet_closed(struct sim *w, const struct sim_client *c);
/* The name that a thread takes alone. */
int sim_fleet_name(struct sim *w);

/* team.c: what a member's owner hears */
void sim_member_answered(struct sim *w, struct sim_owner *o, const struct snib__call *call);
void sim_member_lost(struct sim_owner *o, const struct snib__hold *hold);
/* And how it asks. */
void sim_member_terms(const struct sim_owner *o, struct snib__hold *hold);

/* client.c */
void sim_client_start(struct sim *w, struct sim_client *c);
void sim_client_crash(struct sim *w, struct sim_client *c);
void sim_client_pause(struct sim *w, struct sim_client *c, snib__ns length);
void sim_client_close(struct sim *w, struct sim_client *c);
/* It hears nothing of what it watches until its watches are in effect again: of this name, -1: of
 * any. */
void sim_client_deaf(struct sim_client *c, int name);
/* Something has arrived for it. */
void sim_client_poke(struct sim *w, struct sim_client *c);
/* Pulls effects after a call of the core. */
void sim_client_pump(struct sim *w, struct sim_client *c);
void sim_client_schedule(struct sim *w, struct sim_client *c);
bool sim_client_idle(const struct sim_client *c);
snib__ns sim_local(const struct sim *w, const struct sim_client *c);
/* The first instant of world time at which the client's clock shows `local`. */
snib__ns sim_world_time(const struct sim_client *c, snib__ns local);

/* cohort.c */
/* After every call of the core: what is known of an id follows it to the record that has it now. */
void sim_cohort_follow(struct sim *w, struct sim_client *c);

/* app.c */
void sim_app_start(struct sim *w, struct sim_client *c);
void sim_app_stop(struct sim *w, struct sim_client *c);
void sim_app_answered(struct sim *w, struct sim_client *c, struct snib__call *call);
void sim_app_answered_ask(struct sim *w, struct sim_client *c, struct snib__ask *ask);
/* Nobody begins anything any more: who might wait for ever gives up; a scripted thread gives back
 * by itself. */
void sim_app_quiet(struct sim *w, struct sim_client *c);
void sim_app_lost(struct sim *w, struct sim_client *c, struct snib__hold *hold);
/* Calls for a member of a multilock; `side` as in struct sim_owner. */
bool sim_app_member_acquire(struct sim *w, struct sim_client *c, struct sim_owner *o, int side, bool once,
                            snib__ns wait);
void sim_app_member_release(struct sim *w, struct sim_client *c, struct sim_owner *o, snib__ns wait);
void sim_app_member_cancel(struct sim *w, struct sim_client *c, struct sim_owner *o);
void sim_app_member_hurry(struct sim *w, struct sim_client *c, struct sim_owner *o);
/* A scripted act; `n` is how many. False: it makes no sense now. */
bool sim_app_do(struct sim *w, struct sim_client *c, int owner, const char *verb, int n);

/* scenario.c */
/* Runs a file of scenarios/: fine if nothing is violated and the trace is as written there; or
 * writes it there. */
enum sim_verdict sim_scenario(struct sim *w, const char *path, bool write);

/* explore.c */
/* Every order of events of small worlds of 2 to `callers` callers, as tests. 0 if all are well. */
int sim_explore(int callers);
/* Whether the smallest of them finds something wrong. */
bool sim_explore_finds(void);

/* checks.c: who holds what */
struct sim_log *sim_log_new(struct sim *w, struct sim_client *c, int name, int kind);
/* NULL if the id is none of ours. */
struct sim_log *sim_log_of(struct sim *w, const struct snib__id *id);
bool sim_log_alive(const struct sim *w, const struct sim_log *log);
/* The server did something on behalf of `actor` (client index, or -1: of itself). Called after the
 * fact. */
void sim_check_server(struct sim *w, int actor);
/* The server's data is gone. */
void sim_check_data_lost(struct sim *w);
/* All leases may end early from here on. */
void sim_check_leases_cut(struct sim *w);
/* The same leases end at other times than it seemed. */
void sim_check_clock(struct sim *w);
/* Data was lost or the wall clock went back. */
void sim_check_tokens(struct sim *w);
void sim_check_submit(struct sim *w, struct sim_client *c, const struct snib__effect *e);
/* The engine did not take it. */
void sim_check_refused(struct sim *w, const struct sim_client *c, const struct snib__effect *e);
/* The client is about to be told. */
void sim_check_heard(struct sim_hold *h, uint32_t attempt, const struct snib__reply *r, snib__ns now);
void sim_check_answer(struct sim *w, struct sim_client *c, const struct snib__call *call, const struct sim_hold *h);
/* The client's core has done with it. */
void sim_check_forgotten(struct sim *w, struct sim_hold *h);
/* After an event: who believes what. */
void sim_check_beliefs(struct sim *w);
bool sim_seat_lives(const struct sim *w, const struct sim_seat *s);

/* numbers.c: permits, counts, values */
/* The log's request will add `delta` if it is executed. */
void sim_account_open(struct sim *w, struct sim_log *log, int64_t delta);
void sim_account_close(struct sim *w, struct sim_log *log, bool executed);
void sim_check_number(struct sim *w, int name, int actor, const struct sim_truth *t);
void sim_check_answer_ask(struct sim *w, struct sim_client *c, const struct sim_ask *a);

/* progress.c: what should have happened by now */
/* Nobody is overtaken: from what was seen to what is. */
void sim_check_order(struct sim *w, int name, const struct sim_seen *before, const struct sim_truth *after);
/* Whether the server would let it in now; `unsaid`: what has changed was not announced. */
void sim_check_open(struct sim *w, struct sim_hold *h, bool unsaid);
/* Before an event. */
void sim_check_progress(struct sim *w);
/* Its client lost it. */
void sim_check_lost(struct sim *w, const struct sim_client *c, const struct sim_hold *h);
/* Nothing may be left: at once of those that live, after a lease of anybody. */
void sim_check_left(struct sim *w, bool of_anybody);

/* simnet.c, server.c */
extern const struct sim_store_ops sim_messages;
/* bytes.c */
extern const struct sim_store_ops sim_bytes;

#endif
