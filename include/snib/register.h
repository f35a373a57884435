/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_REGISTER_H
#define SNIB_REGISTER_H

/*
 * A register: a value with a version. Reading gives both; a write can be made to happen only if the version is still
 * the one that was read. That is the optimistic lock: nobody waits, and whoever was overtaken tries again.
 *
 *     static int add_one(void *arg, const struct snib_value *old, struct snib_value *ret_new) ...
 *     snib_register_update(reg, add_one, NULL, 2000, NULL, NULL);
 *
 * A version is never used twice for one name, not even after a deletion. Thread class: a handle is thread-safe.
 */

#include <snib/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_register snib_register;

/* Most bytes of a value. Beyond it: SNIB_ELIMIT. */
#define SNIB_REGISTER_MAX ((size_t)1048576)

/* A value that was read. `bytes` is the caller's, ends with a NUL that is not counted, and is given back with
 * snib_value_free(). */
struct snib_value {
        void *bytes; /* NULL: none */
        size_t length;
        int64_t version; /* 0: there is no value */
};
/* clang-format off */
#define SNIB_VALUE_INIT { NULL, 0, 0 }
/* clang-format on */

/* Frees value->bytes and empties it. NULL is allowed. */
SNIB_API void snib_value_free(struct snib_value *value);

/* Makes a handle; no I/O. As snib_semaphore_new(). */
SNIB_API int snib_register_new(snib_client *client, const char *name, size_t name_len, snib_register **ret_register,
                               struct snib_error *err);
SNIB_API void snib_register_free(snib_register *reg);

/* 1 and *ret_value, or 0: there is none (version 0). Blocks at most one time-out. */
SNIB_API int snib_register_read(snib_register *reg, struct snib_value *ret_value, struct snib_error *err);

#define SNIB_ANY_VERSION ((int64_t)-1)

/*
 * Writes if the version is `expected`: 1 and *ret_version is the new one; 0 it is another, *ret_version says which (0:
 * there is no value), and nothing was changed. expected 0: only if there is none; SNIB_ANY_VERSION: in any case.
 * ret_version may be NULL. Executed once whatever happens to the answer. Blocks at most one time-out. The bytes are
 * copied. Errors beside the usual: SNIB_ELIMIT.
 */
SNIB_API int snib_register_write(snib_register *reg, const void *bytes, size_t length, int64_t expected,
                                 int64_t *ret_version, struct snib_error *err);
/* Removes the value if the version is `expected`: 1, 0 as of write. */
SNIB_API int snib_register_delete(snib_register *reg, int64_t expected, struct snib_error *err);

/* Waits until the version is another than `last_version`: 1 and *ret_value (version 0: deleted), 0 no change in time.
 * Blocks. snib_register_cancel() ends it. */
SNIB_API int snib_register_wait(snib_register *reg, int64_t last_version, int64_t wait_ms, struct snib_value *ret_value,
                                struct snib_error *err);
/* Ends every wait through this handle with SNIB_ECANCELLED; answers how many. */
SNIB_API int snib_register_cancel(snib_register *reg);

/*
 * Read, change, write if nobody was faster, else again with a growing random pause. `change(arg, old, ret_new)` gets
 * the value there is (version 0: none) and fills ret_new->bytes and length, with memory that stays its own and need
 * only live until it is called again or the update is over; it answers 0 to write, anything else to stop, which is then
 * answered as it is when it is negative, else as 0. Answers 1 written and *ret_version (may be NULL); 0 stopped or not
 * in time. Blocks.
 */
typedef int snib_change_callback(void *arg, const struct snib_value *old, struct snib_value *ret_new);
SNIB_API int snib_register_update(snib_register *reg, snib_change_callback *change, void *arg, int64_t wait_ms,
                                  int64_t *ret_version, struct snib_error *err);

/* Without waiting. `value` lives during the callback. */
typedef void snib_read_callback(void *arg, int result, const struct snib_value *value, const struct snib_error *err);
SNIB_API int snib_register_read_async(snib_register *reg, snib_read_callback *done, void *arg, struct snib_error *err);
/* `value` of the callback is the version. */
SNIB_API int snib_register_write_async(snib_register *reg, const void *bytes, size_t length, int64_t expected,
                                       snib_value_callback *done, void *arg, struct snib_error *err);
SNIB_API int snib_register_wait_async(snib_register *reg, int64_t last_version, int64_t wait_ms,
                                      snib_value_callback *changed, void *arg, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
