/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks of arguments, and the copying of structs that carry their size. A caller compiled with
 * older or newer headers has a shorter or longer struct: what both sides know is copied, nothing
 * beyond the caller's memory is touched, and nothing the caller set is silently ignored. A size of
 * 0
 * is that of the first version, so that a zeroed struct works. Pure; any thread.
 */

#include "api/internal.h"
#include "base/error.h"
#include <string.h>

/* What the caller says its struct's size is; 0 stands for `first`. */
static size_t size_of(const void *given, size_t first)
{
        size_t size;

        memcpy(&size, given, sizeof(size));
        return size ? size : first;
}

/* Until 0.1.0 is released every field is one of the first version. With the first field that is
 * appended after it, the line of its struct goes. */
_Static_assert(SNIB__FIRST_OPTIONS == sizeof(struct snib_options), "name its last field in api/internal.h");
_Static_assert(SNIB__FIRST_LOCK_OPTIONS == sizeof(struct snib_lock_options), "name its last field in api/internal.h");
_Static_assert(SNIB__FIRST_MULTILOCK_OPTIONS == sizeof(struct snib_multilock_options), "name its last field");
_Static_assert(SNIB__FIRST_LOCK_INFO == sizeof(struct snib_lock_info), "name its last field in api/internal.h");
_Static_assert(SNIB__FIRST_PERMITS_INFO == sizeof(struct snib_permits_info), "name its last field in api/internal.h");

/* Larger than any struct of ours will ever be: a size that was never set. */
#define SIZE_ABSURD 65536

static int size_check(size_t size, const char *what, struct snib_error *err)
{
        if (size > sizeof(size_t) && size <= SIZE_ABSURD)
                return 0;
        return snib__error(err, SNIB_EINVAL,
                           "the field size of %s is %zu; set it with the _INIT macro of the struct, or leave it 0",
                           what, size);
}

int snib__options_copy(void *ret, size_t known, size_t first, const void *given, const char *what,
                       struct snib_error *err)
{
        size_t size;
        int r;

        memset(ret, 0, known);
        if (!given)
                return 0;
        size = size_of(given, first);
        if ((r = size_check(size, what, err)) < 0)
                return r;
        for (size_t i = known; i < size; i++)
                if (((const unsigned char *)given)[i])
                        return snib__error(
                            err, SNIB_EINVAL,
                            "%s sets a field that this version (%s) of the library does not know; clear it "
                            "or use a newer library",
                            what, SNIB_VERSION);
        memcpy(ret, given, size < known ? size : known);
        return 0;
}

int snib__result_check(const void *ret, const char *what, struct snib_error *err)
{
        return ret ? size_check(size_of(ret, SIZE_ABSURD), what, err) : snib__null(what, err);
}

int snib__result_copy(void *ret, const void *ours, size_t known, size_t first, const char *what, struct snib_error *err)
{
        size_t size;
        int r = snib__result_check(ret, what, err);

        if (r < 0)
                return r;
        size = size_of(ret, first);
        memset(ret, 0, size);
        memcpy(ret, ours, size < known ? size : known);
        memcpy(ret, &size, sizeof(size));
        return 0;
}

int snib__lease_check(int64_t lease_ms, const char *what, struct snib_error *err)
{
        if (lease_ms == 0 || (lease_ms >= SNIB_LEASE_MIN_MS && lease_ms <= SNIB_LEASE_MAX_MS))
                return 0;
        return snib__error(err, SNIB_ELEASE,
                           "%s is %lld ms; choose a lease from %lld ms to %lld ms (365 days), or 0 for the default",
                           what, (long long)lease_ms, (long long)SNIB_LEASE_MIN_MS, (long long)SNIB_LEASE_MAX_MS);
}

int snib__patience_check(int64_t wait_ms, struct snib__patience *ret, struct snib_error *err)
{
        if (wait_ms < SNIB_FOREVER)
                return snib__error(err, SNIB_EINVAL,
                                   "wait_ms is %lld; use 0 to try once, a positive number of milliseconds, or "
                                   "SNIB_FOREVER",
                                   (long long)wait_ms);
        ret->once = wait_ms == 0;
        ret->wait = wait_ms == SNIB_FOREVER || wait_ms > SNIB__NEVER / SNIB__MS ? SNIB__NEVER : wait_ms * SNIB__MS;
        return 0;
}

int snib__number_check(int64_t number, int64_t least, int64_t most, const char *what, struct snib_error *err)
{
        if (number >= least && number <= most)
                return 0;
        return snib__error(err, number < least ? SNIB_EINVAL : SNIB_ELIMIT, "%s is %lld; use %lld to %lld", what,
                           (long long)number, (long long)least, (long long)most);
}

int snib__delta_check(int64_t delta, struct snib_error *err)
{
        if (delta != 0 && delta >= -SNIB_PERMITS_MAX && delta <= SNIB_PERMITS_MAX)
                return 0;
        return snib__error(err, delta == 0 ? SNIB_EINVAL : SNIB_ELIMIT,
                           "delta is %lld; use a number other than 0, from -%lld to %lld", (long long)delta,
                           (long long)SNIB_PERMITS_MAX, (long long)SNIB_PERMITS_MAX);
}

int snib__null(const char *what, struct snib_error *err)
{
        return snib__error(err, SNIB_EINVAL, "the argument %s is NULL; pass a valid pointer", what);
}

int snib__alive(const struct snib_client *c, struct snib_error *err)
{
        if (!atomic_load_explicit(&c->inert, memory_order_relaxed))
                return 0;
        return snib__error(err, SNIB_EFORK,
                           "the client was opened before fork and is inert in the child; open another one here");
}
