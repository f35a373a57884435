/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_API_INTERNAL_H
#define SNIB_API_INTERNAL_H

/*
 * What the files of api/ share: the checks of arguments. api/ checks, converts milliseconds to
 * nanoseconds, refuses inert handles, and calls the runtime; nothing else.
 */

#include "model/op.h"
#include "runtime/runtime.h"
#include <stddef.h>

/*
 * What a size of 0 in a caller's struct stands for: the struct up to the last field it had in the
 * first version, 0.1. A field that is appended later changes none of these; until 0.1.0 is released
 * every field is of the first version, and goes here.
 */
#define SNIB__FIRST_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))
#define SNIB__FIRST_OPTIONS SNIB__FIRST_SIZE(snib_options, open_ms)
#define SNIB__FIRST_LOCK_OPTIONS SNIB__FIRST_SIZE(snib_lock_options, max_hold_ms)
#define SNIB__FIRST_MULTILOCK_OPTIONS SNIB__FIRST_SIZE(snib_multilock_options, node_timeout_ms)
#define SNIB__FIRST_LOCK_INFO SNIB__FIRST_SIZE(snib_lock_info, next_left_ms)
#define SNIB__FIRST_PERMITS_INFO SNIB__FIRST_SIZE(snib_permits_info, waiters)
#define SNIB__FIRST_ENGINE_INFO SNIB__FIRST_SIZE(snib_engine_info, caps)

/* Copies a caller's struct of options, which begins with its size, into ours of `known` bytes,
 * which is zeroed first: what both know. A size of 0 stands for `first`. SNIB_EINVAL for a size
 * that cannot be, or for a longer struct that sets something this library does not know. `what`
 * names the argument. */
int snib__options_copy(void *ret, size_t known, size_t first, const void *given, const char *what,
                       struct snib_error *err);

/* Copies our struct of `known` bytes into the caller's, as much as both know. A size of 0 stands
 * for
 * `first`. SNIB_EINVAL for a size that cannot be. */
int snib__result_copy(void *ret, const void *ours, size_t known, size_t first, const char *what,
                      struct snib_error *err);

/* Whether a caller's result struct is there, with a size that can be. */
int snib__result_check(const void *ret, const char *what, struct snib_error *err);

/* 0, or SNIB_ELEASE naming the argument, the value and the range. 0 ms means default. */
int snib__lease_check(int64_t lease_ms, const char *what, struct snib_error *err);

/* 0, or SNIB_EINVAL. */
int snib__patience_check(int64_t wait_ms, struct snib__patience *ret, struct snib_error *err);

/* 0; SNIB_EINVAL below the range, SNIB_ELIMIT above it. */
int snib__number_check(int64_t number, int64_t least, int64_t most, const char *what, struct snib_error *err);

/* The argument `delta` of a change of permits: not 0, and within the limit both ways. */
int snib__delta_check(int64_t delta, struct snib_error *err);

/* SNIB_EINVAL: the argument is NULL. */
int snib__null(const char *what, struct snib_error *err);

/* 0, or SNIB_EFORK in a forked child. */
int snib__alive(const struct snib_client *c, struct snib_error *err);

/* lock.c: what a constant of enum snib_lock_kind means; NULL if it is none. */
struct snib__lock_kind {
        int kind; /* enum snib_kind */
        bool there, reentrant;
};
const struct snib__lock_kind *snib__lock_kind(int kind);

/* object.c: the handle that every noun is made of. */
struct snib_lock {
        struct snib__object object;
};
/* The object of any noun's handle; of NULL it is NULL. */
#define SNIB__OBJECT(handle) ((handle) ? &(handle)->object : NULL)
/* The caller's options as our own copy. Of a noun that is no lock, `kind` must be 0. */
int snib__object_options(struct snib_lock_options *ret, const struct snib_lock_options *given, bool lock,
                         struct snib_error *err);
/* Fills a zeroed handle; `o` is what snib__object_options() gave. On an error snib__object_done()
 * is still due. */
int snib__object_init(struct snib__object *object, struct snib_client *client, const char *name, int kind,
                      const struct snib_lock_options *o, struct snib_error *err);
void snib__object_done(struct snib__object *object);
/* The same for nouns that are nothing but a handle. */
int snib__object_new(struct snib__object **ret, struct snib_client *client, const char *name, int kind,
                     const struct snib_lock_options *o, struct snib_error *err);
void snib__object_free(struct snib__object *object);
/* 0, or SNIB_EINVAL for a handle that is NULL, or SNIB_EFORK. */
int snib__object_check(const struct snib__object *object, const char *what, struct snib_error *err);
/* 0, or SNIB_ENAME; given_length 0: it ends at its NUL. */
int snib__name_check(const char *name, size_t given_length, size_t *ret_length, struct snib_error *err);

/* Whom the number that a request brings is for: the caller, who waits for it, or a callback. */
struct snib__receiver {
        bool later;
        int64_t *ret_value; /* NULL: not wanted */
        snib_value_callback *done;
        void *arg;
};

static inline struct snib__receiver snib__here(int64_t *ret_value)
{
        return (struct snib__receiver){.ret_value = ret_value};
}

static inline struct snib__receiver snib__later(snib_value_callback *done, void *arg)
{
        return (struct snib__receiver){.later = true, .done = done, .arg = arg};
}

/* As snib__ask() or snib__ask_async(), for the many requests that bring one number, of a result of
 * 1. */
int snib__count(struct snib__object *object, const struct snib__op *op, struct snib__receiver to,
                struct snib_error *err);
/* The acquire of what is held by one, of a handle that was checked. */
int snib__take(struct snib__object *object, int64_t wait_ms, struct snib_grant **ret_grant, struct snib_error *err);
int snib__take_async(struct snib__object *object, int64_t wait_ms, snib_acquired_callback *acquired, void *arg,
                     struct snib_error *err);
/* Fills the caller's struct, the argument `what`, with what is there. */
int snib__describe(struct snib__object *object, struct snib_lock_info *ret_info, const char *what,
                   struct snib_error *err);
int snib__describe_async(struct snib__object *object, snib_info_callback *done, void *arg, struct snib_error *err);
/* Ends the waits through a handle that may be NULL or inert. */
int snib__object_cancel(struct snib__object *object);

#endif
