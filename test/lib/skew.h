/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_SKEW_H
#define SNIB_TEST_SKEW_H

/*
 * Shifts the clocks of another program while it runs. The program is started with skew_shim.so
 * preloaded; the shim adds what stands in a shared file.
 *
 *     struct skew *k = skew_new(getenv("SNIB_SKEW_SHIM"));
 *     skew_begin(k);              // children started from here on are skewed
 *     server = redis_server_start(NULL);
 *     skew_end(k);
 *     skew_wall_ms(k, 40000);     // its wall clock is 40 s ahead from now on
 *
 * Sleeps and time-outs of the kernel are not shifted. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

/* What the shim reads. */
struct skew_file {
        _Atomic int64_t wall_ns; /* CLOCK_REALTIME, gettimeofday(), time() */
        _Atomic int64_t boot_ns; /* CLOCK_BOOTTIME: a suspend */
};

struct skew;

/* `shim` is the path of skew_shim.so. */
struct skew *skew_new(const char *shim);
void skew_free(struct skew *k);

/* Environment of the children that are started between the two. */
void skew_begin(struct skew *k);
void skew_end(struct skew *k);

/* The same as "A=b" strings, NULL-terminated, for proc_exec(). */
const char *const *skew_env(struct skew *k);

void skew_wall_ms(struct skew *k, int64_t ms);
void skew_boot_ms(struct skew *k, int64_t ms);

#endif
