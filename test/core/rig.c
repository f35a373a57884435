/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rig of the core's tests: the effects as text, and the events that a test makes. Not the
 * tests, and nothing that knows what is right. One thread; time is a number.
 */

#include "rig.h"
#include "base/assert.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void snib__assert_fail(const char *condition, const char *file, int line)
{
        fprintf(stderr, "%s:%d: %s\n", file, line, condition);
        abort();
}

const struct snib__name stock = {"stock", 5};
const struct snib__name me = {"t:1", 3};

static void say(struct rig *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct rig *r, const char *format, ...)
{
        size_t used = strlen(r->trace);
        va_list ap;

        va_start(ap, format);
        vsnprintf(r->trace + used, sizeof(r->trace) - used, format, ap);
        va_end(ap);
}

static const char *verb_text(enum snib__verb verb)
{
        static const char *const texts[] = {"?",   "acquire", "release", "renew", "query", "force", "observe",
                                            "set", "resize",  "add",     "drain", "write", "delete"};

        return texts[verb];
}

void pull(struct rig *r)
{
        struct snib__effect e;

        while (snib__core_next(&r->core, &e)) {
                switch (e.kind) {
                case SNIB__EFFECT_LOST:
                        say(r, "lost %s; ",
                            e.hold->loss == SNIB_LOSS_EXPIRED       ? "expired"
                            : e.hold->loss == SNIB_LOSS_TAKEN       ? "taken"
                            : e.hold->loss == SNIB_LOSS_GONE        ? "gone"
                            : e.hold->loss == SNIB_LOSS_UNREACHABLE ? "unreachable"
                            : e.hold->loss == SNIB_LOSS_MAX_HOLD    ? "max-hold"
                                                                    : "otherwise");
                        break;
                case SNIB__EFFECT_ANSWER:
                        say(r, "answer %d; ", e.call->result);
                        break;
                case SNIB__EFFECT_ANSWER_ASK:
                        say(r, "answer-ask %d; ", e.ask->result);
                        break;
                case SNIB__EFFECT_SUBMIT:
                        say(r, "%s#%u; ", verb_text(e.op->verb), e.attempt);
                        r->hold = e.hold;
                        r->cookie = e.cookie;
                        r->attempt = e.attempt;
                        r->op = *e.op;
                        if (r->full)
                                snib__core_refused(&r->core, &e, r->now);
                        break;
                case SNIB__EFFECT_WATCH:
                        say(r, "watch; ");
                        break;
                case SNIB__EFFECT_UNWATCH:
                        say(r, "unwatch; ");
                        break;
                case SNIB__EFFECT_FREE:
                        say(r, "free; ");
                        break;
                }
        }
        assert_null(snib__core_check(&r->core, r->now));
}

void rig_init(struct rig *r, bool queues)
{
        struct snib__core_config config = {.queues = queues ? SNIB__KINDS_ALL & ~SNIB__KIND_BIT(SNIB_KIND_SPIN)
                                                            : SNIB__KIND_BIT(SNIB_KIND_FAIR),
                                           .watches = !queues,
                                           .token_block = SNIB__TOKEN_BLOCK,
                                           .op_timeout = 3 * SNIB__S,
                                           .renewals = 2,
                                           .phases = 1,
                                           .neighbours = 1,
                                           .seed = 1};

        memset(r, 0, sizeof(*r));
        r->now = 1000 * SNIB__S;
        snib__core_init(&r->core, &config);
        snib__core_link(&r->core, true, 0, 0, NULL, r->now);
}

void hold_init(struct snib__hold *h, const char *id)
{
        memset(h, 0, sizeof(*h));
        h->name = stock;
        h->owner = me;
        h->reentrant = true;
        h->keep = true;
        h->lease = 30 * SNIB__S;
        snprintf(h->known.id.text, sizeof(h->known.id.text), "%s", id);
}

struct snib__call call_init(enum snib__call_kind kind, bool once, snib__ns deadline)
{
        return (struct snib__call){.kind = kind, .once = once, .deadline = deadline};
}

void reply(struct rig *r, enum snib__status status, int64_t token)
{
        struct snib__reply a = {.status = status, .token = token, .left_ms = 500};

        snib__core_reply_hold(&r->core, r->hold, r->cookie, r->attempt, &a, r->now);
}

void refuse(struct rig *r, int code)
{
        struct snib__reply a = {.status = SNIB__FAILED, .error = code};

        snib__core_reply_hold(&r->core, r->hold, r->cookie, r->attempt, &a, r->now);
}

void no_memory(struct rig *r, const char *text)
{
        r->full = true;
        expect(r, text);
        r->full = false;
}

void pass(struct rig *r, snib__ns time)
{
        r->now += time;
        snib__core_tick(&r->core, r->now);
}
