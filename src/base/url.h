/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_URL_H
#define SNIB_BASE_URL_H

/*
 * The one URL parser. Pure: no I/O, no environment. Splits
 *
 *     scheme:[//[user[:password]@]host[:port]][/path][?key=value[&key=value...]]
 *
 * with percent-decoding after splitting. `local:`, `local:/dir`, `local:dir`, `mem:`, `mem:name`
 * (no "//": everything up to '?' is path), `redis://[::1]:6379/0`,
 * `redis+unix:///run/redis.sock?db=1`. Every byte is hostile: fixed sizes, clear errors, no
 * password in any error text.
 */

#include "base/time.h"
#include <snib/error.h>
#include <stdbool.h>

#define SNIB__URL_PART_MAX 256
#define SNIB__URL_PATH_MAX 1024
#define SNIB__URL_OPTIONS_MAX 16

struct snib__url_option {
        char key[32];
        char value[SNIB__URL_PART_MAX];
        bool used; /* set by snib__url_option; what is left unused is an unknown option */
};

struct snib__url {
        char scheme[32];
        bool has_authority; /* "//" was there */
        char user[SNIB__URL_PART_MAX];
        char password[SNIB__URL_PART_MAX];
        bool has_password;
        char host[SNIB__URL_PART_MAX]; /* without brackets */
        int port;                      /* 0: none given */
        char path[SNIB__URL_PATH_MAX]; /* as written, with its leading '/' if there is one */
        int options;
        struct snib__url_option option[SNIB__URL_OPTIONS_MAX];
};

/* 0 or SNIB_EURL. Wipe with snib__url_wipe() after use, for the password. */
int snib__url_parse(const char *text, struct snib__url *ret, struct snib_error *err);
void snib__url_wipe(struct snib__url *url);

/* The value of an option and marks it used; NULL if it is not there. */
const char *snib__url_option(struct snib__url *url, const char *key);

/* SNIB_EURL naming the first option nobody asked for, and those that exist; 0 if all were used.
 * `known` is a text such as "timeout, db". */
int snib__url_unused(const struct snib__url *url, const char *known, struct snib_error *err);

/* The URL written again, so that it is read as the same but for the password, which is left out.
 * Answers the length it has, as snprintf() does; what does not fit is cut off. */
size_t snib__url_format(const struct snib__url *url, char *ret, size_t size);

/* The URL with the password replaced by "***", for display. Truncates. */
void snib__url_mask(const char *text, char *ret, size_t size);

#endif
