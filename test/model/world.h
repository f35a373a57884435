/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_MODEL_WORLD_H
#define SNIB_TEST_MODEL_WORLD_H

/*
 * What the exploration of the model plays with: actors that ask for something over and over with
 * their own id, others that change or question, a record, and what the history of answers says
 * about all of them.
 */

#include "model/record.h"

#define ACTORS 4
#define OTHERS 10
#define REMEMBERED 2
#define PERMITS 2 /* most that one actor asks for */

/* Somebody who wants to sit, or to observe. */
struct actor {
        int kind;
        int64_t n;
        int64_t lease_ms;
        int under; /* READ: 1 + the actor whose write hold lets it in; 0 nobody */
        bool observer;
};

/* Which version a WRITE or DELETE names. */
enum expecting { ANY_VERSION, PRESENT_VERSION, STALE_VERSION, NO_VERSION };

/* A request that is nobody's hold. */
struct other {
        const char *text;
        enum snib__verb verb; /* 0: the last change once more, with its id */
        int kind;
        int64_t n;
        int64_t ttl_ms;
        bool if_exists;
        enum expecting expecting;
        int permits; /* RELEASE, RENEW: which permits of actor 0, as bits */
};

struct scenario {
        const char *name;
        int depth; /* of all sequences */
        int actors, others;
        struct actor actor[ACTORS];
        struct other other[OTHERS];
};

extern const struct scenario scenarios[];
extern const int scenario_count;

/* LATE: a copy of an acquire that arrives after its undoing. */
enum kind { ACQUIRE, ENQUEUE, RELEASE, RENEW, BURY, LATE, OTHER };

struct action {
        enum kind kind;
        int who;         /* actor, or number of the other */
        int64_t wait_ms; /* before it */
};

/* What the history says about one actor. */
struct belief {
        int out;     /* bits: its permits, or bit 0: its hold */
        int claimed; /* of these, those it has confirmed */
        int64_t until[PERMITS];
        int64_t token;
        int turn;               /* of the queue, 0 not in it */
        uint32_t asked, number; /* acquires so far; what the latest said as its number */
        int64_t stays;
        int64_t seen; /* observer */
        int life;     /* SEMAPHORE: how many acquires it has undone; each has an id of its own */
        int64_t undone_at;
        int mark; /* how many requests were remembered when it was undone */
};

/* The latest change that was executed. */
struct latest {
        int other; /* 1 + its number, 0 none */
        int serial;
        int64_t at;
        int mark; /* as above */
        bool applied;
        int64_t value;
};

struct world {
        const struct scenario *scenario;
        struct snib__clock now;
        struct belief b[ACTORS];
        int64_t highest; /* token given out so far */
        int turns, serial, remembered;
        enum snib__family made; /* what exists */
        int64_t value;          /* free permits, limit, or count */
        int64_t vanishes;       /* with its TTL */
        int64_t version;
        struct latest latest;
        struct snib__record record;
        struct snib__holder holder[ACTORS * PERMITS];
        struct snib__waiter queue[ACTORS + 1];
        struct snib__done done[REMEMBERED];
};

/* Whether these two actors differ in nothing but their names. */
bool world_alike(const struct scenario *s, int x, int y);
struct world world_new(const struct scenario *scenario);
/* The number of an actor's place in the queue, observers included, 0 if it has none. */
int world_place(const struct world *w, int x);
/* What an observer compares. */
int64_t world_state(const struct world *w, int kind);
/* Whether the action makes sense now. */
bool world_can(const struct world *w, struct action a);
/* Does one action. NULL, or what is wrong. */
const char *world_take(struct world *w, struct action a);

#endif
