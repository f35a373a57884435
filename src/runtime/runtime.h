/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_RUNTIME_H
#define SNIB_RUNTIME_RUNTIME_H

/*
 * What api/ calls. Arguments are checked already, durations are nanoseconds, the client is not
 * inert. Results and errors are those of the public functions.
 */

#include "runtime/client.h"

struct snib__client_config {
        const char *url; /* NULL: the environment's */
        int threads;
        snib__ns lease;
        int64_t timeout_ms; /* 0: default */
        const char *label;  /* NULL: default */
        void (*trace)(void *arg, const char *line);
        void *trace_arg;
        bool unreachable_ok;
        int64_t spin_us; /* 0: default; negative: off */
        int64_t open_ms; /* 0: no limit but the time-out */
};

/* How long an acquire waits. */
struct snib__patience {
        bool once;
        snib__ns wait; /* SNIB__NEVER */
};

/* What an acquire asks for. */
struct snib__want {
        struct snib__patience patience;
        int64_t n;    /* permits; 0 counts as 1 */
        bool observe; /* wait until the state is another than `seen`, and take nothing */
        int64_t seen;
        bool generous;           /* at its end others have their turn: snib__hold */
        struct snib__name owner; /* on whose behalf; empty: the handle's owner key, else the calling thread */
};

/* client.c */
int snib__client_open(struct snib_client **ret, const struct snib__client_config *config, struct snib_error *err);
void snib__client_close(struct snib_client *c);

/* loop.c */
int snib__loop_fd(struct snib_client *c);
int64_t snib__loop_timeout_ms(struct snib_client *c);
int snib__loop_process(struct snib_client *c);
/* A turn in place of the application's loop: polls and processes `count` clients, each once, at
 * most SNIB_MULTILOCK_MAX. Ends at `until`, or when `fd` is readable. */
void snib__loop_turn(struct snib_client *const *clients, int count, int fd, snib__ns until);

/* The error of a call on a client that is being closed, or that has no memory. */
int snib__closed(struct snib_error *err);
int snib__no_memory(struct snib_error *err);

/* async.c: the frame of every asynchronous call. */
/* Enters the client and makes the record. If that answers 0, what is asked for is to be begun with
 * its `wait`. In any case snib__async_leave() is then told how it went, and answers the same. */
int snib__async_enter(struct snib_client *c, const struct snib__then *then, struct snib__async **ret,
                      struct snib_error *err);
int snib__async_leave(struct snib_client *c, struct snib__async *a, int result);

/* hold.c */
/* ret_grant: NULL for what is momentary. ret_info: of a result of 0, and of what is momentary; may
 * be NULL. */
int snib__acquire(struct snib__object *object, const struct snib__want *want, struct snib_grant **ret_grant,
                  struct snib_lock_info *ret_info, struct snib_error *err);
int snib__acquire_async(struct snib__object *object, const struct snib__want *want, const struct snib__then *then,
                        struct snib_error *err);
/* The owner in whose name the calling thread would acquire: its memory lives as long as the handle,
 * or the thread. */
struct snib__name snib__owner_of(const struct snib__object *object);
int snib__release(struct snib_grant *g, struct snib_error *err);
/* A release that leaves the hold at the engine for `lease`, nobody's. */
int snib__leave(struct snib_grant *g, snib__ns lease, struct snib_error *err);
int snib__release_async(struct snib_grant *g, const struct snib__then *then, struct snib_error *err);
/* Both only hand the call of `w`, a zeroed one, to core, under the client's lock: 0, or an error
 * and nothing was done. */
int snib__acquire_start(struct snib__object *object, const struct snib__want *want, struct snib__wait *w,
                        struct snib_error *err);
int snib__release_start(struct snib_grant *g, snib__ns patience, struct snib__wait *w, struct snib_error *err);
int snib__release_mine(struct snib__object *object, struct snib_error *err);
int snib__renew(struct snib_grant *g, struct snib_error *err);
int snib__cancel(struct snib__object *object);
/* The handle is about to be freed: what still waits through it does so without it. */
void snib__object_detach(struct snib__object *object);
struct snib_grant *snib__grant_mine(struct snib__object *object);
int snib__grant_loss_fd(struct snib_grant *g);
int snib__grant_on_loss(struct snib_grant *g, snib_loss_callback *lost, void *arg, struct snib_error *err);
int snib__grant_depth(struct snib_grant *g);
int snib__grant_loss(struct snib_grant *g);
int snib__grant_trouble(struct snib_grant *g, struct snib_error *err);

/* ask.c */
/* A request that waits for nobody: QUERY, FORCE, SET to DELETE, RELEASE and RENEW of permits by id.
 * `op` says the verb and what it needs of n, if_exists, lease_ms, ttl_ms, expected, data and
 * permits; all else is filled in here. Answers as struct snib__ask does, DRAIN always 1. What is
 * asked for is copied. */
struct snib__asked {
        struct snib__reply reply;    /* without data */
        struct snib_lock_info *info; /* may be NULL */
        struct snib_value *value;    /* of a register's QUERY, the caller's from then on; may be NULL */
};
int snib__ask(struct snib__object *object, const struct snib__op *op, struct snib__asked *ret, struct snib_error *err);
int snib__ask_async(struct snib__object *object, const struct snib__op *op, const struct snib__then *then,
                    struct snib_error *err);
/* Nothing happens for `length`: 0, or an error (the client was closed). */
int snib__pause(struct snib_client *c, snib__ns length, struct snib_error *err);
int snib__pause_async(struct snib_client *c, snib__ns length, snib_done_callback *done, void *arg,
                      struct snib_error *err);
/* A random number in [0, below), for back-off. */
int64_t snib__random_below(struct snib_client *c, int64_t below);
int64_t snib__list(struct snib_client *c, snib_list_callback *each, void *arg, struct snib_error *err);
/* `r` as the public struct; `owner` is whose view it is. Under the lock. */
void snib__info_fill(struct snib_client *c, struct snib__name name, struct snib__name owner,
                     const struct snib__reply *r, struct snib_lock_info *ret);
/* Core answered. Under the lock. */
void snib__question_answered(struct snib_client *c, struct snib__question *q);

/* fault.c */
/* The error of a failed call: its own text, or a general one for the code. */
int snib__fault_error(struct snib_error *err, int code, const struct snib__fault *fault,
                      const struct snib__about *about);
/* The name is cut with "..." if it is long. */
void snib__about_set(struct snib__about *about, int kind, struct snib__name name);

#endif
