/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_REGISTER_H
#define SNIB_REGISTER_H

/*
 * A register is a value with a version. A read gives both. A write can depend on the version: it
 * happens only if the version is still the one that was read. That is the optimistic lock: a client
 * does not wait, and tries again if another was faster.
 *
 *     static int add_one(void *arg, const struct snib_value *old, struct snib_value *ret_new) ...
 *     snib_register_update(reg, add_one, NULL, 2000, NULL, NULL);
 *
 * A version is never used twice for one name, not even after a deletion. Thread class: a handle is
 * thread-safe.
 */

#include <snib/semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct snib_register snib_register;

/* Most bytes of a value. Beyond it: SNIB_ELIMIT. */
#define SNIB_REGISTER_MAX ((size_t)1048576)

/* A value that was read. `bytes` is the caller's; free it with snib_value_free(). A NUL that is not
 * counted follows it. */
struct snib_value {
        void *bytes; /* NULL: none */
        size_t length;
        int64_t version; /* 0: there is no value */
};
/* clang-format off */
#define SNIB_VALUE_INIT { NULL, 0, 0 }
/* clang-format on */

/* Frees the bytes of a value, and empties it. NULL is allowed. Never blocks. */
SNIB_API void snib_value_free(struct snib_value *value);

/* Makes a handle of a register. `name` and name_len are as of snib_semaphore_new(). No I/O, never
 * blocks. Errors: as snib_semaphore_new(). */
SNIB_API int snib_register_new(snib_client *client, const char *name, size_t name_len, snib_register **ret_register,
                               struct snib_error *err);

/* Frees the handle of a register. NULL is allowed. No call may be going on. */
SNIB_API void snib_register_free(snib_register *reg);

/* Reads the value and its version. Answers 1 and *ret_value, or 0 if there is no value (version 0).
 * Blocks at most one time-out. Thread-safe. */
SNIB_API int snib_register_read(snib_register *reg, struct snib_value *ret_value, struct snib_error *err);

/* Write or delete whatever the version is. */
#define SNIB_ANY_VERSION ((int64_t)-1)

/*
 * Writes a value if the version is `expected`. Answers 1, and *ret_version is the new version. It
 * answers 0 if the version is another; *ret_version says which (0: there is no value), and nothing
 * was changed. With an `expected` of 0 it writes only if there is no value, with SNIB_ANY_VERSION
 * in any case. ret_version may be NULL. The bytes are copied. The write happens once, whatever
 * happens to the answer. Blocks at most one time-out. Thread-safe. Errors beside the usual:
 * SNIB_ELIMIT.
 */
SNIB_API int snib_register_write(snib_register *reg, const void *bytes, size_t length, int64_t expected,
                                 int64_t *ret_version, struct snib_error *err);

/* Removes the value if the version is `expected`. Answers 1, or 0 if the version is another;
 * nothing was changed then. `expected` is as of snib_register_write(). Blocks at most one time-out.
 * Thread-safe. */
SNIB_API int snib_register_delete(snib_register *reg, int64_t expected, struct snib_error *err);

/* Waits until the version differs from `last_version`. Answers 1 and *ret_value (version 0: the
 * value was deleted), or 0 if nothing changed in time. snib_register_cancel() ends the wait.
 * Blocks. Thread-safe. */
SNIB_API int snib_register_wait(snib_register *reg, int64_t last_version, int64_t wait_ms, struct snib_value *ret_value,
                                struct snib_error *err);

/* Ends every wait through this handle of a register. Each ends with SNIB_ECANCELLED. Answers how
 * many. Never blocks. Thread-safe. */
SNIB_API int snib_register_cancel(snib_register *reg);

/*
 * Makes the new value of snib_register_update() from the old one. `old` is the present value
 * (version 0: there is none). It fills ret_new->bytes and ret_new->length; that memory stays its
 * own, and must live until it is called again or the update is over. It answers 0 to write, or
 * another number to stop.
 */
typedef int snib_change_callback(void *arg, const struct snib_value *old, struct snib_value *ret_new);

/*
 * Reads, lets `change` make a new value, and writes it if no other client was faster. Otherwise
 * it tries again after a random pause that grows. Answers 1 and *ret_version, the new version
 * (ret_version may be NULL), or 0 if it was not written in time or `change` stopped it. If `change`
 * answers a negative number, that is the answer. Blocks. Thread-safe.
 */
SNIB_API int snib_register_update(snib_register *reg, snib_change_callback *change, void *arg, int64_t wait_ms,
                                  int64_t *ret_version, struct snib_error *err);

/* Called once when a read that was not waited for is done. `result` is that of
 * snib_register_read(); `value` and `err` live during the callback. */
typedef void snib_read_callback(void *arg, int result, const struct snib_value *value, const struct snib_error *err);

/* Reads the value without waiting. `done` runs exactly once if this answers 0; it never runs if
 * this answers an error. Never blocks. Thread-safe. */
SNIB_API int snib_register_read_async(snib_register *reg, snib_read_callback *done, void *arg, struct snib_error *err);

/* Writes a value without waiting. `done` runs exactly once if this answers 0, with what
 * snib_register_write() would answer; its `value` is the version. Never blocks. Thread-safe. */
SNIB_API int snib_register_write_async(snib_register *reg, const void *bytes, size_t length, int64_t expected,
                                       snib_value_callback *done, void *arg, struct snib_error *err);

/* Waits for another version without blocking. `changed` runs exactly once if this answers 0, with
 * what snib_register_wait() would answer; its `value` is the version. Never blocks. Thread-safe. */
SNIB_API int snib_register_wait_async(snib_register *reg, int64_t last_version, int64_t wait_ms,
                                      snib_value_callback *changed, void *arg, struct snib_error *err);

#ifdef __cplusplus
}
#endif
#endif
