/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_PUMP_H
#define SNIB_TEST_PUMP_H

/*
 * Drives one engine from a test, without the runtime: submits, polls, processes, and keeps the
 * notes until the test asks for them. Nothing here sleeps: it waits in poll() for what the engine
 * is interested in. Failures to get what a test waits for end the test program, unless the call
 * says otherwise. One thread.
 */

#include "engine/engine.h"

#define PUMP_NOTES 4096
#define PUMP_PATIENCE_MS 20000

struct pump_note {
        struct snib__note note; /* name and error_text point to the copies below */
        char name[1024];
        char text[SNIB_ERROR_TEXT_MAX];
};

struct pump {
        struct snib__engine *engine;
        char uuid[37];
        struct snib__who who;
        uint32_t attempts;
        uint64_t holds;
        size_t first, count; /* of the ring */
        struct pump_note notes[PUMP_NOTES];
};

snib__ns pump_now(void);

/* Opens the engine of `url` with a uuid made of `number`; ends the program if that fails. Does not
 * wait for the connection. */
struct pump *pump_open(const char *url, unsigned number);
/* The same, and waits for LINK_UP. */
struct pump *pump_connect(const char *url, unsigned number);
/* The same over an engine that the caller opened; `who` and uuid are those of pump_config(). */
struct pump *pump_over(struct snib__engine *engine, unsigned number);
/* What pump_open() opens with: config.url must be freed by pump_config_done(). */
void pump_config(struct snib__engine_config *ret, const char *url, unsigned number);
void pump_config_done(struct snib__engine_config *config);
void pump_close(struct pump *p);

/* A fresh hold id. */
struct snib__id pump_id(struct pump *p);

/* One turn: waits at most until `until` for something to happen, processes it, keeps the notes. */
void pump_turn(struct pump *p, snib__ns until);

/* The next note of this kind (any tag), oldest first. False after `ms`. */
bool pump_try(struct pump *p, enum snib__note_kind kind, int64_t ms, struct pump_note *ret);
/* The same; ends the program after PUMP_PATIENCE_MS. */
struct pump_note pump_wait(struct pump *p, enum snib__note_kind kind);
/* Throws away what is kept. */
void pump_forget(struct pump *p);

uint32_t pump_submit(struct pump *p, const struct snib__op *op);
/* Starts a listing. */
uint32_t pump_list(struct pump *p);
/* Submits and waits for the answer. error_text of the reply lives until the next call. */
struct snib__reply pump_do(struct pump *p, const struct snib__op *op);
struct snib__reply pump_answer(struct pump *p, uint32_t attempt);

/* Shorthand for ops. */
struct snib__op pump_op(struct pump *p, enum snib__verb verb, const char *name, struct snib__id id, int64_t lease_ms);

#endif
