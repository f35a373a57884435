/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_CLIENT_H
#define SNIB_RUNTIME_CLIENT_H

/*
 * What the files of runtime/ share: the client, its pooled records, and who may touch what.
 * doc/design/runtime.md tells the whole story.
 *
 * Lock order: registry, then a client's lock. Nothing blocks with either held, and no user code
 * runs under them.
 *
 * Memory: grants, questions, listings and asynchronous calls are pooled. A record goes back to its
 * pool, never to the heap, until the client closes; each pool has a chain of all its records that
 * only grows, so that a forked child can walk and free it whatever the other threads were doing.
 */

#include "core/core.h"
#include "engine/engine.h"
#include "runtime/baton.h"
#include "runtime/look.h"
#include "runtime/os.h"
#include <snib/snib.h>

/* An idle client with holds is watched by the keeper from this long after the last call on, after
 * many calls up to the second figure, so that a loss told by the engine is delivered soon. A busy
 * caller does not pay for it: see keeper.c. */
#define SNIB__IDLE_AFTER (50 * SNIB__MS)
#define SNIB__IDLE_AFTER_MAX (400 * SNIB__MS)
/* A request is kept for others to leave with it at most for so long after their threads were woken:
 * on a busy machine they may be long in coming. */
#define SNIB__GATHER SNIB__MS
/* Longest owner key: "k:" and what the program gave. */
#define SNIB__OWNER_KEY_MAX 208
/* Name and owner key, each with a NUL. */
#define SNIB__GRANT_TEXT_MAX (SNIB_NAME_MAX + 1 + SNIB__OWNER_KEY_MAX + 1)
#define SNIB__ABOUT_MAX 64

/* What a call was about, for the text of an error: handle and record may be in other use by
 * then. */
struct snib__about {
        int kind;                   /* enum snib_kind */
        bool change;                /* of a number or a value: its unknown outcome is not settled by time */
        char name[SNIB__ABOUT_MAX]; /* cut */
};

/* A user callback that is due. Embedded in what it belongs to. */
struct snib__event {
        struct snib__list link;
        void (*run)(struct snib_client *c, struct snib__event *event); /* without the client's lock */
};

enum { SNIB__ASLEEP = 0, SNIB__AWAKE, SNIB__OVER };

/* One who waits: a blocking call, on its stack, or an asynchronous one, in struct snib__async.
 * Under the client's lock but for `word`. */
struct snib__wait {
        struct snib__baton_member member;
        _Atomic uint32_t word; /* while asleep: what for, see drive.c. Nobody else touches it after SNIB__OVER */
        bool asleep;
        bool done;
        struct snib__bed *bed;     /* while asleep; NULL: it sleeps on `word` */
        uint32_t bit;              /* there */
        snib__ns deadline;         /* of waits that core does not end: opening, closing. Otherwise SNIB__NEVER */
        struct snib__event *event; /* asynchronous: queued when done. NULL: wake the thread */
        /* Of a member, in place of both: see multi.h. */
        void (*ended)(struct snib_client *c, struct snib__wait *w);
        struct snib__list of_object; /* in snib__object.waits */
        struct snib_grant *grant;    /* what the call is about: core forgets it with the answer */
        struct snib_lock_info *info; /* where to say what was found, when the answer comes; NULL: not wanted */
        struct snib__about about;
        struct snib__call call;
};

/* A request that no hold stands behind. */
struct snib__question {
        struct snib__ask ask;
        struct snib__wait *wait; /* NULL: nobody waits any more */
        struct snib__question *next_all;
        struct snib__list pooled;
        void *_Atomic data; /* a copy of what the request carries: a value, ids of permits. Kept while pooled */
        size_t room;
        struct snib_value found; /* what was read, copied when the answer came */
        size_t asker_length;
        char asker[SNIB__OWNER_KEY_MAX];
        char name[SNIB_NAME_MAX + 1];
};

struct snib__listed {
        struct snib__listed *next;
        struct snib__reply reply;
        size_t length;
        char name[];
};

/* A listing of all locks under way. */
struct snib__inventory {
        uint64_t cookie; /* 0: nobody waits for it */
        struct snib__wait *wait;
        struct snib__inventory *next_all;
        struct snib__list pooled;
        struct snib__listed *first, **last;
        int64_t count;
        int result;
        struct snib__fault fault;
};

/* Whom to tell how an asynchronous call ended: one of the callbacks is set. */
struct snib__then {
        snib_acquired_callback *acquired;
        snib_done_callback *done;
        snib_info_callback *info;
        snib_value_callback *value;
        snib_read_callback *read;
        void *arg;
};

struct snib__async {
        struct snib__wait wait;
        struct snib__event event;
        struct snib__async *next_all;
        struct snib__list pooled;
        struct snib__question *question; /* NULL: it is a call about a hold */
        struct snib__then then;
        struct snib_lock_info info;
};

/* The callback of a grant whose loss somebody wants to be told of. */
struct snib__loss {
        struct snib__event event;
        struct snib_grant *grant;
        snib_loss_callback *told; /* NULL: nobody any more */
        void *arg;
};

struct snib_grant {
        struct snib__hold hold;
        struct snib_client *client;
        union {
                struct snib__list pooled;    /* while free */
                struct snib__list followers; /* else: members of multilocks that hold it */
        };
        void *_Atomic text;   /* name, NUL, asker's owner key, NUL; kept while pooled */
        uint16_t room;        /* of `text` */
        uint8_t asker_length; /* at most SNIB__OWNER_KEY_MAX */
        bool due : 1;         /* the loss callback is queued, or was taken from the queue and has not begun */
        bool in_callback : 1; /* the record is not to be used again before the callback returned */
        bool freed : 1;       /* core is done with it */
        int loss_fd;          /* -1: none wanted yet */
        struct snib__loss *_Atomic loss; /* NULL: none was ever wanted of this record */
};

/* Grants come by the dozen: a client may have 100,000. */
#define SNIB__GRANTS_BLOCK 16
struct snib__grants {
        struct snib__grants *next_all;
        struct snib_grant of[SNIB__GRANTS_BLOCK];
};

static inline struct snib_grant *snib__grant_of(struct snib__hold *h)
{
        return snib__container(h, struct snib_grant, hold);
}

/* The handle of every noun: a name, as what kind it is used, and how. The public structs contain
 * it. */
struct snib__object {
        struct snib_client *client;
        struct snib__list waits; /* calls that go on through this handle */
        char *name;
        size_t name_length;
        char *owner; /* "k:" and the key; NULL: the calling thread */
        size_t owner_length;
        int kind; /* enum snib_kind */
        bool reentrant;
        bool fixed;
        snib__ns lease;
        snib__ns max_hold;
};

/* Where up to 32 threads sleep: see sleep.c. */
struct snib__bed {
        _Atomic uint32_t calls; /* counts wake-ups */
        uint32_t taken, woken;  /* bits, under the client's lock */
};
#define SNIB__BEDS 32 /* so many bits, too, tell them apart */

/* Ends the sleep of one thread that waits for several clients, and so in none of them. Any thread
 * rings it, with or without a lock. */
struct snib__bell {
        _Atomic uint32_t state; /* sleep.c's */
        int fd; /* readable when it was rung, for a thread that polls; -1: it sleeps. Constant while attended */
};

/* A timerfd on CLOCK_BOOTTIME. It may go off too early; that costs a look. */
struct snib__alarm {
        int fd;
        snib__ns due; /* SNIB__NEVER: it is off */
};

/* The thread that renews and serves notices while nobody waits (SNIB_THREADS_KEEPER), or drives
 * always (SNIB_THREADS_IO). */
struct snib__keeper {
        pthread_t thread;
        bool started;
        bool quit;
        bool always;
        bool sleeping;
        struct snib__baton_member member;
        snib__ns sleeps_until; /* while sleeping */
        uint64_t activity_seen;
        snib__ns patience; /* so long after calls were seen it looks for others */
        int wake_fd;       /* ends its sleep, as the alarm does */
        struct snib__alarm timer;
};

/* Runs user callbacks, one at a time, in the order they fell due. */
struct snib__dispatcher {
        pthread_t thread;
        bool started;
        bool quit;
        bool running; /* a callback is; a second thread must not overtake it */
        _Atomic uint32_t word;
        bool asleep;
        struct snib__list queue;
        snib__ns gather_until; /* the callback that runs, or is to, is quick if it returns before */
};

struct snib_client {
        struct snib_client *_Atomic next_client; /* in the registry */
        atomic_bool inert;                       /* this is a forked child's copy */
        atomic_int inside;                       /* threads inside a call: the last thing a call touches */
        pthread_mutex_t lock;

        /* Constant after open. */
        int threads; /* enum snib_threads */
        snib__ns timeout;
        snib__ns lease;
        char uuid[37];
        char *place; /* the URL without what does not say where: user, password, time-outs */
        char *url;   /* as it can be shown, and handed on: complete, without a password */
        struct snib__who who;
        void (*trace)(void *arg, const char *line);
        void *trace_arg;

        /* Under the lock. */
        snib__ns now; /* when it was taken: it is held for a moment, and all that happens meanwhile happens then */
        struct snib__core core;
        struct snib__engine *engine;
        bool closing;
        uint64_t activity; /* counts calls */
        uint64_t hold_number;
        uint64_t listing_number;
        int background; /* asynchronous calls and listings without an answer: somebody must drive */
        struct snib__wait *opener, *closer;
        struct snib__list members; /* of multilocks: they are told of the close */
        snib__ns silent_since;     /* while requests are under way: since when no reply has come */
        struct snib__fault link_fault;

        struct snib__baton baton;
        struct snib__interest wanted; /* as the last step left it */
        bool polling;                 /* the driver is in poll, without the lock, with the two below */
        snib__ns polled_until;
        struct snib__interest polled;
        bool kicked;       /* wake_fd is set */
        int asleep;        /* those who sleep and were not woken */
        atomic_int coming; /* those whose wait ended while they slept, and who have not run since */
        int unsent;        /* requests submitted since the engine was last told to send */
        snib__ns gather_until;
        struct snib__look look;
        snib__ns processed_at;

        int epoll;   /* what whoever drives polls: the engine's descriptors and the next two. Also snib_fd() */
        int wake_fd; /* ends a poll; makes snib_fd() readable */
        struct snib__alarm timer;
        struct snib__interest registered;
        snib__ns loop_until; /* SNIB_THREADS_NONE: what snib_timeout_ms() promised last */

        struct snib__bed beds[SNIB__BEDS];
        uint32_t beds_full, beds_woken; /* bits; woken: when the lock is given up */

        struct snib__keeper keeper;
        struct snib__dispatcher dispatcher;

        struct snib__grants *_Atomic grants_all;
        struct snib__question *_Atomic questions_all;
        struct snib__inventory *_Atomic listings_all;
        struct snib__async *_Atomic asyncs_all;
        struct snib__list grants, questions, listings, asyncs; /* free ones */
};

/* client.c */
void snib__client_lock(struct snib_client *c);
/* Unlocks, then wakes those who were to be woken. */
void snib__client_unlock(struct snib_client *c);
/* Around every call of the program that may wait or run callbacks: with the lock in between. */
void snib__client_enter(struct snib_client *c);
void snib__client_leave(struct snib_client *c);
/* The part of it that is done without the lock. */
void snib__client_left(struct snib_client *c);
/* It has something to do: to drive, or to see that it is done. */
void snib__client_wake(struct snib_client *c, struct snib__wait *w);
/* It sleeps, and is done. */
void snib__client_wake_over(struct snib_client *c, struct snib__wait *w);
__attribute__((format(printf, 2, 3))) void snib__client_trace(struct snib_client *c, const char *format, ...);

/* registry.c: all clients of the process, for fork and the end of threads. */
int snib__registry_add(struct snib_client *c);
void snib__registry_remove(struct snib_client *c);
/* The calling thread's owner key "t:<number>" and its length; NULL when thread-specific memory
 * cannot be had. */
const char *snib__registry_thread(size_t *ret_length);

/* pool.c: NULL when memory is short. All under the lock. */
/* An id that no hold and no request of this client had or will have. */
void snib__id_fresh(struct snib_client *c, struct snib__id *ret);
/* `owner` is who asks; an `anonymous` hold is nobody's, and the owner only said for `mine`. */
struct snib_grant *snib__grant_new(struct snib_client *c, const struct snib__object *object, struct snib__name owner,
                                   bool anonymous);
/* Who asked for it, also if it is anonymous. */
struct snib__name snib__grant_asker(const struct snib_grant *g);
void snib__grant_free(struct snib_grant *g);
/* Where to say who is told of its loss; at first nobody is. */
struct snib__loss *snib__grant_loss_told(struct snib_grant *g);
struct snib__question *snib__question_new(struct snib_client *c);
/* Copies what a request carries into memory that lives as long as the question; NULL when memory is
 * short. */
void *snib__question_keep(struct snib__question *q, const void *data, size_t length);
void snib__question_free(struct snib_client *c, struct snib__question *q);
/* Frees what was read and leaves an empty value. */
void snib__value_free(struct snib_value *value);
struct snib__inventory *snib__inventory_new(struct snib_client *c);
void snib__inventory_free(struct snib_client *c, struct snib__inventory *l);
struct snib__async *snib__async_new(struct snib_client *c);
void snib__async_free(struct snib_client *c, struct snib__async *a);
/* Everything, at close and in a child. */
void snib__pool_done(struct snib_client *c);

/* sleep.c: all under the lock but for snib__sleep() */
/* It is asleep from now on, whoever wakes it; then unlock, and sleep. */
void snib__sleep_begin(struct snib_client *c, struct snib__wait *w);
/* Until it is woken, or its deadline. */
void snib__sleep(struct snib__wait *w);
/* It is to wake, with SNIB__AWAKE or SNIB__OVER: after the unlock, if it has a bed. */
void snib__sleep_end(struct snib_client *c, struct snib__wait *w, uint32_t word);
/* Unlocks, then wakes those who are to wake. */
void snib__sleep_unlock(struct snib_client *c);
/* Without a lock. Somebody hears the bell from now on. He looks at everything after this: what was
 * rung before is forgotten. */
void snib__bell_attend(struct snib__bell *b);
/* Nobody does any more. */
void snib__bell_desert(struct snib__bell *b);
bool snib__bell_attended(const struct snib__bell *b);
/* False: nobody hears it. */
bool snib__bell_ring(struct snib__bell *b);
/* Until it is rung, or `until`. Of a bell without a descriptor. */
void snib__bell_sleep(struct snib__bell *b, snib__ns until);

/* drive.c: all under the lock; those marked so drop it in between. */
/* Does whatever is due and can be done without waiting: timers, effects, what the engine has
 * finished already. */
void snib__drive_step(struct snib_client *c);
/* Waits until w->done. Drops the lock. */
void snib__drive_wait(struct snib_client *c, struct snib__wait *w);
/* The same, and leaves the client, as the last thing a call does. */
void snib__drive_wait_and_leave(struct snib_client *c, struct snib__wait *w);
/* One turn of the driver, after a step: polls, processes. May look for answers before it sleeps, if
 * it says so. Drops the lock. */
void snib__drive_turn(struct snib_client *c, snib__ns until, bool may_look);
/* To be called after any change by one who does not go on to drive: whoever must know, will. */
void snib__drive_settle(struct snib_client *c);
/* Ends the driver's poll. */
void snib__drive_kick(struct snib_client *c);
/* Something is under way that needs driving though nobody may be waiting for it. */
bool snib__drive_urgent(const struct snib_client *c);
/* When somebody has to act next if nothing happens. Asks the engine anew: c->wanted is as it is
 * now. */
snib__ns snib__drive_deadline(struct snib_client *c);
/* Brings the epoll set in line with c->wanted. */
void snib__drive_register(struct snib_client *c);
/* Sends what the engine kept, unless more is about to come. */
void snib__drive_send(struct snib_client *c);
/* An alarm goes off at `due`, or before. */
void snib__alarm_set(struct snib__alarm *a, snib__ns due);
void snib__alarm_clear(struct snib__alarm *a);

/* effects.c */
void snib__effects_run(struct snib_client *c, snib__ns now);
void snib__notes_take(struct snib_client *c);
void snib__wait_finish(struct snib_client *c, struct snib__wait *w);
void snib__inventory_begin(struct snib_client *c, struct snib__inventory *l, snib__ns now);

/* keeper.c */
int snib__keeper_start(struct snib_client *c, struct snib_error *err);
void snib__keeper_stop(struct snib_client *c);
/* There is nobody else to drive: makes sure that the keeper looks in time. */
void snib__keeper_settle(struct snib_client *c);
void snib__keeper_kick(struct snib_client *c);

/* loop.c: SNIB_THREADS_NONE. */
void snib__loop_settle(struct snib_client *c);

/* dispatch.c */
int snib__dispatch_start(struct snib_client *c, struct snib_error *err);
void snib__dispatch_queue(struct snib_client *c, struct snib__event *event);
/* Runs what is due, in this thread, if the client has no dispatcher thread. Without the lock. */
void snib__dispatch_here(struct snib_client *c);
void snib__dispatch_stop(struct snib_client *c);

#endif
