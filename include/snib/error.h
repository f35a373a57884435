/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ERROR_H
#define SNIB_ERROR_H

/*
 * Results and errors. A call answers an int. Positive or zero is an answer, negative is one of
 * the codes below. A code belongs to a class that says what a program can do about it.
 *
 * A call takes an optional `struct snib_error *err` for detail. It may be NULL. It is filled only
 * on failure and owns nothing. The text never holds a password or the id of a hold.
 *
 *     struct snib_error err = SNIB_ERROR_INIT;
 *     int r = snib_open(&client, "redis://cache1", NULL, &err);
 *     if (r < 0)
 *             fprintf(stderr, "%s\n", err.text);
 */

#include <snib/export.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a caller can do about an error. */
enum snib_error_class {
        SNIB_CLASS_USAGE = 1,       /* a bug in the calling program; nothing was changed */
        SNIB_CLASS_UNAVAILABLE = 2, /* not reached, certainly not executed; retry is safe */
        SNIB_CLASS_UNKNOWN = 3,     /* sent, fate unknown; only a check or the end of the lease resolves it */
        SNIB_CLASS_LOST = 4,        /* you no longer hold what you held; stop touching the protected thing */
        SNIB_CLASS_REFUSED = 5,     /* the server said no; the same request will not do better */
        SNIB_CLASS_CANCELLED = 6,   /* you asked for it */
        SNIB_CLASS_RESOURCE = 7,    /* out of memory, descriptors or threads */
        SNIB_CLASS_CORRUPT = 8      /* nonsense on the wire or in the file */
};

/*
 * The one table of errors: X(code name, number, class, what it means). It makes the enum, the
 * texts of snib_strerror() and the list in the manual. Numbers are ABI.
 */
#define SNIB_ERRORS(X)                                                                                       \
        X(SNIB_EINVAL, -1, SNIB_CLASS_USAGE, "an argument is not valid")                                     \
        X(SNIB_ENAME, -2, SNIB_CLASS_USAGE, "the name is not valid")                                         \
        X(SNIB_ELEASE, -3, SNIB_CLASS_USAGE, "the lease is not valid")                                       \
        X(SNIB_EURL, -4, SNIB_CLASS_USAGE, "the URL is not valid")                                           \
        X(SNIB_EUNSUPPORTED, -5, SNIB_CLASS_USAGE, "the engine cannot do this")                              \
        X(SNIB_EFORK, -6, SNIB_CLASS_USAGE, "the handle was made before fork and is inert in the child")     \
        X(SNIB_ECLOSED, -7, SNIB_CLASS_CANCELLED, "the client is closed")                                    \
        X(SNIB_ENOTOWNER, -8, SNIB_CLASS_USAGE, "not held by this owner")                                    \
        X(SNIB_EREENTRY, -9, SNIB_CLASS_USAGE, "already held by this owner, and the lock is not re-entrant") \
        X(SNIB_EUNREACHABLE, -10, SNIB_CLASS_UNAVAILABLE, "the engine cannot be reached")                    \
        X(SNIB_ENOTREADY, -11, SNIB_CLASS_UNAVAILABLE, "the engine is not ready to serve")                   \
        X(SNIB_EUNKNOWN, -12, SNIB_CLASS_UNKNOWN, "the outcome is unknown")                                  \
        X(SNIB_ELOST, -13, SNIB_CLASS_LOST, "the lock was lost")                                             \
        X(SNIB_EAUTH, -14, SNIB_CLASS_REFUSED, "the server refused the user or the password")                \
        X(SNIB_EPERM, -15, SNIB_CLASS_REFUSED, "permission denied")                                          \
        X(SNIB_EKIND, -16, SNIB_CLASS_REFUSED, "the name is in use by something of another kind")            \
        X(SNIB_EREFUSED, -17, SNIB_CLASS_REFUSED, "the server refused the request")                          \
        X(SNIB_ECANCELLED, -18, SNIB_CLASS_CANCELLED, "the wait was cancelled")                              \
        X(SNIB_ENOMEM, -19, SNIB_CLASS_RESOURCE, "out of memory")                                            \
        X(SNIB_ESYSTEM, -20, SNIB_CLASS_RESOURCE, "a system call failed")                                    \
        X(SNIB_EPROTOCOL, -21, SNIB_CLASS_CORRUPT, "the server's answer makes no sense")                     \
        X(SNIB_ECORRUPT, -22, SNIB_CLASS_CORRUPT, "the stored data makes no sense")                          \
        X(SNIB_EUPGRADE, -23, SNIB_CLASS_USAGE, "a read lock cannot become a write lock; release it first")  \
        X(SNIB_ELIMIT, -24, SNIB_CLASS_USAGE, "a number is beyond its limit")                                \
        X(SNIB_ECONFIG, -25, SNIB_CLASS_USAGE, "the place that is configured cannot be one")

enum snib_error_code {
#define SNIB_ERROR_ENUM(name, number, cls, text) name = (number),
        SNIB_ERRORS(SNIB_ERROR_ENUM)
#undef SNIB_ERROR_ENUM
            SNIB_OK = 0
};

#define SNIB_ERROR_TEXT_MAX 320

/* Detail of a failure. Begin with SNIB_ERROR_INIT, or zeroed: both work. */
struct snib_error {
        size_t size;                    /* SNIB_ERROR_INIT; 0 stands for the struct of version 0.1 */
        int code;                       /* one of enum snib_error_code */
        int engine_code;                /* the engine's own number (errno, SQLite result code), 0 if there is none */
        char text[SNIB_ERROR_TEXT_MAX]; /* one line: what was wrong, with which argument, what to do */
};

/* clang-format off */
#define SNIB_ERROR_INIT { sizeof(struct snib_error), 0, 0, { 0 } }
/* clang-format on */

/* Tells the class of a negative result, one of enum snib_error_class. It is 0 for any other number.
 * Thread-safe, never blocks. */
SNIB_API int snib_error_class(int code);

/* Says in a few words what a result means, as static text. Never NULL. Thread-safe, never
 * blocks. */
SNIB_API const char *snib_strerror(int code);

/* Names a result's constant, as static text: "SNIB_ELOST". It is "SNIB_OK" for 0 and every positive
 * number, and "(not an error code of snib)" for a negative number that is no code. Never NULL.
 * Thread-safe, never blocks. */
SNIB_API const char *snib_error_name(int code);

#ifdef __cplusplus
}
#endif
#endif
