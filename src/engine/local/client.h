/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_LOCAL_CLIENT_H
#define SNIB_LOCAL_CLIENT_H

/*
 * One client of the local engine: its liveness byte, its socket, what it has asked and what it
 * waits for. Private to the folder.
 */

#include "base/prng.h"
#include "base/tree.h"
#include "engine/local/local.h"
#include "engine/local/mail.h"
#include "engine/local/store.h"
#include "engine/local/worker.h"
#include "engine/outbox.h"

/* How many that stand before a waiter are watched. Whoever waits behind more looks by itself within
 * a poll. */
#define SNIB__BEFORE_MAX 8

/* What an item asks. */
enum snib__task {
        SNIB__TASK_OP,    /* what was submitted; ends in a REPLY */
        SNIB__TASK_LOOK,  /* how a waiter of this client stands; ends whoever is dead or over, if that is found to be
                             necessary */
        SNIB__TASK_LIST,  /* one line of a listing */
        SNIB__TASK_ENTER, /* open */
        SNIB__TASK_LEAVE  /* close */
};

/* Where an id stands after a transaction. */
enum snib__standing { SNIB__STANDS_NOT = 0, SNIB__STANDS_QUEUED = 1, SNIB__STANDS_HOLDER = 2 };

/* Who stands before a waiter: those who sit for the first one and for an observer, else the waiter
 * before it. Watching these processes is enough for everybody: who is before them is watched by
 * them. */
struct snib__before {
        enum snib__standing standing;
        bool first;                /* nobody who waits stands before it */
        int64_t holder_expires_ms; /* the first lease among those who sit; INT64_MAX */
        int count;                 /* of `peer`: clients of other processes, each once */
        struct snib__peer_row peer[SNIB__BEFORE_MAX];
};

/* A request on its way to its note. Items are pooled; after warm-up nothing is allocated. */
struct snib__item {
        struct snib__work work;     /* work.link: in the worker's queue, then in the client's `done` */
        struct snib__letter letter; /* its link: in the outbox, spare or outstanding */
        struct snib__local *client;
        enum snib__task task;
        struct snib__op op; /* its name points at `name` */
        snib__ns due;       /* patience ends */
        bool new_hold;      /* ACQUIRE began a hold */
        bool mailed;        /* mail about its id came before its answer */
        bool granted;       /* and core was told that it holds */
        void *payload;      /* what op.data or op.permits point at, once it is with the worker */
        void *data;         /* what note.reply.data points at */
        size_t data_room;
        struct snib__note note;
        struct snib__before before;
        struct snib__mail *mail;
        size_t mails, mail_room;
        struct snib_error error; /* with FAILED */
        char name[SNIB_NAME_MAX + 1];
};

/* The process of a client that stands before waiters of ours. */
struct snib__peer {
        struct snib__tree_node node; /* by uuid */
        struct snib__list sights;    /* empty: kept for the next time */
        struct snib__list idle;
        char uuid[SNIB__UUID_LENGTH + 1];
        int64_t slot;
        int pidfd;   /* -1: no notice of its death can be had, or it came */
        int tick_ms; /* then: how soon to look again */
        bool ours;   /* a client of this process: its end is ours, or its close() tells us */
};

/* A waiter of ours watches a peer. */
struct snib__sight {
        struct snib__list of_peer;
        struct snib__local_wait *wait;
        struct snib__peer *peer;
};

struct snib__local_wait {
        struct snib__tree_node by_id;
        struct snib__tree_node by_due;
        int sights;
        struct snib__sight sight[SNIB__BEFORE_MAX];
        struct snib__id id;
        snib__ns due; /* look at this time */
        bool granted; /* its GRANTED is on the way to core */
        bool looking; /* a look is under way */
        size_t length;
        char name[SNIB_NAME_MAX + 1];
};

struct snib__local {
        struct snib__engine base;
        struct snib__store *store;
        pid_t pid; /* that opened it: a forked copy is inert */
        char uuid[SNIB__UUID_LENGTH + 1];
        struct snib__who who;
        int64_t timeout_ms;
        struct snib__prng prng;
        int64_t slot;
        int live_fd; /* holds byte `slot` */
        int mail_fd;
        int event_fd;    /* the worker has put something into `done` */
        int epoll_fd;    /* of the two above and the peers' pidfds */
        snib__ns polled; /* when the descriptors were last looked at */
        int64_t holds;   /* at least as many as are left to bury at close */
        struct snib__outbox outbox;
        struct snib__list spare, outstanding;
        struct snib__list done; /* under the worker's lock */
        struct snib__tree waits, waits_due, peers;
        struct snib__list peers_idle;
        unsigned peers_idle_count;
        void (*trace)(void *arg, const char *line);
        void *trace_arg;
};

/* item.c: the run and after functions of items. */
void snib__item_run(struct snib__work *work);
void snib__item_after(struct snib__work *work);
/* Makes the answer of an error, with the text in item->error. */
void snib__item_fail(struct snib__item *item, int code);
/* Answers a QUERY from what is there, and changes nothing. With store.lock; an SQLite result
 * code. */
int snib__item_peek(struct snib__item *item, int64_t now_ms);

/* local.c */
void snib__local_look(struct snib__local *c, struct snib__local_wait *wait, snib__ns now);

/* wait.c: all in the client's thread. */
void snib__waits_init(struct snib__local *c);
/* A waiter of ours is queued behind `before`. Without memory for it, core's own repetition of the
 * ACQUIRE has to do. */
void snib__wait_put(struct snib__local *c, const struct snib__item *item, snib__ns now);
struct snib__local_wait *snib__wait_find(const struct snib__local *c, const struct snib__id *id,
                                         struct snib__name name);
void snib__wait_remove(struct snib__local *c, struct snib__local_wait *wait);
/* Looks at it at `due`; SNIB__NEVER: no more. */
void snib__wait_at(struct snib__local *c, struct snib__local_wait *wait, snib__ns due);
void snib__waits_all_at(struct snib__local *c, snib__ns due);
/* The process of a peer has ended. */
void snib__waits_peer_ended(struct snib__local *c, struct snib__peer *peer, snib__ns now);
snib__ns snib__waits_deadline(const struct snib__local *c);
struct snib__local_wait *snib__waits_due(const struct snib__local *c, snib__ns now);
void snib__waits_done(struct snib__local *c);
/* Async-signal-safe. */
void snib__waits_forked(struct snib__local *c);

#endif
