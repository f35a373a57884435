/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_REDIS_RESP_H
#define SNIB_ENGINE_REDIS_RESP_H

/*
 * Replies of a Redis server: hiredis' reader with our own object functions, which write into two
 * arrays that are kept from reply to reply, so that nothing is allocated per reply once they are
 * large enough. Bytes are hostile; every size has a limit that is checked before memory is taken.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reading stops with an error beyond these. SCAN's batches need the thousands, the rest needs ten
 * values of a kilobyte.
 */
#define SNIB__RESP_DEPTH_MAX 6
#define SNIB__RESP_VALUES_MAX 65536
#define SNIB__RESP_LINE_MAX ((size_t)64 << 10)
#define SNIB__RESP_BULK_MAX ((size_t)1 << 20)
#define SNIB__RESP_REPLY_MAX ((size_t)8 << 20)

enum snib__resp_type {
        SNIB__RESP_OTHER = 0, /* what RESP2 does not have */
        SNIB__RESP_STRING,
        SNIB__RESP_STATUS,
        SNIB__RESP_ERROR,
        SNIB__RESP_INTEGER,
        SNIB__RESP_NIL,
        SNIB__RESP_ARRAY
};

/* One value of a reply. The values of a reply stand in the order of their bytes: an array's
 * elements follow it. */
struct snib__resp_value {
        enum snib__resp_type type;
        int64_t integer;
        size_t elements; /* of an array */
        size_t text;     /* where its bytes begin, for snib__resp_text() */
        size_t length;
};

struct snib__resp;

struct snib__resp *snib__resp_new(void);
void snib__resp_free(struct snib__resp *r);

/* Adds bytes. False: no memory. */
bool snib__resp_feed(struct snib__resp *r, const char *bytes, size_t length);

/* 1: *ret_values and *ret_count are the next reply, valid until the next call; 0: needs more bytes;
 * -1: protocol error, for ever. */
int snib__resp_next(struct snib__resp *r, const struct snib__resp_value **ret_values, size_t *ret_count);

/* What is wrong, after -1. */
const char *snib__resp_error(const struct snib__resp *r);
/* True if the error is a lack of memory here. */
bool snib__resp_no_memory(const struct snib__resp *r);

/* The bytes of a string, status or error, followed by a NUL. */
const char *snib__resp_text(const struct snib__resp *r, const struct snib__resp_value *v);

#endif
