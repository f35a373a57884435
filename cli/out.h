/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_OUT_H
#define SNIB_CLI_OUT_H

/*
 * Everything the command prints goes through here: answers on stdout, the rest on stderr, safe for
 * a terminal whatever bytes a name contains, or as JSON: one object a line, "schema":1, times as
 * integers of milliseconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct out_mode {
        bool json;
        bool quiet;
        bool verbose;
};

void snib__out_mode(struct out_mode mode);
struct out_mode snib__out_mode_now(void);

/* True if stderr is a terminal that can repaint a line. */
bool snib__out_can_repaint(void);

/* True if the locale is one of UTF-8: our ornaments may go beyond ASCII. */
bool snib__out_utf8(void);

/* Colours of a stream, "" where they are not wanted (no terminal, NO_COLOR, TERM=dumb). */
const char *snib__out_bold(FILE *f);
const char *snib__out_plain(FILE *f);

/* One error line, also with --quiet. `code` is the library's constant name or NULL. Answers
 * `exit`. */
int snib__out_fail(int exit, const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What has to be known, also with --quiet. `event` names it in JSON. */
void snib__out_warn(const char *event, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A remark on stderr: not with --quiet. `event` names it in JSON. */
void snib__out_note(const char *event, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Why the answer is no: one sentence on stderr, not with --quiet, ended by the exit code. In JSON
 * an object with `event`, the name, the code, the sentence, and what `facts` adds (NULL: nothing).
 * The one way to say so, for every command. Answers `exit`. */
struct json;
struct out_no {
        int exit;
        const char *event; /* "busy", "gave_up", "not_done" */
        const char *name;
        void (*facts)(struct json *j, const void *arg);
        const void *arg;
};
int snib__out_no(const struct out_no *no, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether all that was printed on stdout until now was taken: 0, or EXIT_FAILURE_OWN after a
 * message, which comes once. */
int snib__out_written(void);

/* The bytes with everything a terminal could obey or misread written as \xNN. Truncates with "...".
 * Answers `ret`. */
#define SNIB__SAFE_MAX 4200
const char *snib__out_safe(const char *bytes, size_t length, char *ret, size_t size);

/* "31ms", "6.2s", "4m12s", "2h10m", "6d02h"; "-" for a negative number. Answers `ret`. */
#define SNIB__DURATION_MAX 32
const char *snib__out_duration(int64_t ms, char *ret);

/* One JSON object, collected and written with one call, so that lines of several processes do not
 * mix. */
struct json {
        char *text;
        size_t length;
        FILE *f;
        bool more;
};
void snib__json_begin(struct json *j);
void snib__json_bytes(struct json *j, const char *key, const char *bytes, size_t length);
void snib__json_text(struct json *j, const char *key, const char *text);
void snib__json_int(struct json *j, const char *key, int64_t value);
void snib__json_bool(struct json *j, const char *key, bool value);
/* A name: as text, and in hex besides if it is not UTF-8. */
void snib__json_name(struct json *j, const char *bytes, size_t length);
void snib__json_end(struct json *j, FILE *to);

#endif
