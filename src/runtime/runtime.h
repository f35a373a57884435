/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_RUNTIME_RUNTIME_H
#define SNIB_RUNTIME_RUNTIME_H

/*
 * What api/ calls. Arguments are checked already, durations are nanoseconds, the client is not inert. Results and
 * errors are those of the public functions.
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
};

/* How long an acquire waits. */
struct snib__patience {
        bool once;
        snib__ns wait; /* SNIB__NEVER */
};

/* client.c */
int snib__client_open(struct snib_client **ret, const struct snib__client_config *config, struct snib_error *err);
void snib__client_close(struct snib_client *c);

/* loop.c */
int snib__loop_fd(struct snib_client *c);
int64_t snib__loop_timeout_ms(struct snib_client *c);
int snib__loop_process(struct snib_client *c);

/* hold.c */
int snib__acquire(struct snib_lock *lock, struct snib__patience patience, struct snib_grant **ret_grant,
                  struct snib_lock_info *ret_holder, struct snib_error *err);
int snib__acquire_async(struct snib_lock *lock, struct snib__patience patience, snib_acquired_callback *acquired,
                        void *arg, struct snib_error *err);
int snib__release(struct snib_grant *g, struct snib_error *err);
int snib__release_async(struct snib_grant *g, snib_done_callback *done, void *arg, struct snib_error *err);
int snib__release_mine(struct snib_lock *lock, struct snib_error *err);
int snib__renew(struct snib_grant *g, struct snib_error *err);
int snib__cancel(struct snib_lock *lock);
/* The handle is about to be freed: what still waits through it does so without it. */
void snib__lock_detach(struct snib_lock *lock);
struct snib_grant *snib__grant_mine(struct snib_lock *lock);
int snib__grant_loss_fd(struct snib_grant *g);
int snib__grant_on_loss(struct snib_grant *g, snib_loss_callback *lost, void *arg, struct snib_error *err);
int snib__grant_depth(struct snib_grant *g);
int snib__grant_loss(struct snib_grant *g);

/* ask.c */
int snib__force(struct snib_lock *lock, struct snib_error *err);
int snib__query(struct snib_lock *lock, struct snib_lock_info *ret_info, struct snib_error *err);
int snib__query_async(struct snib_lock *lock, snib_info_callback *done, void *arg, struct snib_error *err);
int64_t snib__list(struct snib_client *c, snib_list_callback *each, void *arg, struct snib_error *err);
/* `r` as the public struct; `owner` is whose view it is. Under the lock. */
void snib__info_fill(struct snib_client *c, struct snib__name name, struct snib__name owner,
                     const struct snib__reply *r, struct snib_lock_info *ret);

/* fault.c */
/* The error of a failed call about a lock: its own text, or a general one for the code. */
int snib__fault_error(struct snib_error *err, int code, const struct snib__fault *fault, const char *about);
/* The name as `about`: cut with "..." if it is long. */
void snib__about_set(char about[SNIB__ABOUT_MAX], struct snib__name name);

#endif
