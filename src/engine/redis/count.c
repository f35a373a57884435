/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Semaphores, permits, latches and registers: their rows, and what their answers mean. All answers
 * are arrays of integers that begin with a status; -1 is "something else stands there", -2 "out of
 * range".
 *
 * What counts is remembered by the server under the request's id (see the scripts). Of a request
 * that was sent once and answered nobody will ask again, so its memory is taken back at once: a
 * busy server does not fill with them.
 */

#include "base/error.h"
#include "engine/redis/internal.h"
#include <string.h>

/* ---- permit ids */

/* The 16 bytes that 32 hex digits stand for. */
static bool raw_id(const char *hex, char *ret)
{
        for (int i = 0; i < 32; i++) {
                char c = hex[i];
                int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
                if (digit < 0)
                        return false;
                ret[i / 2] = (char)(i % 2 ? ret[i / 2] | digit : digit << 4);
        }
        return hex[32] == 0;
}

size_t snib__count_ids_length(const struct snib__op *op)
{
        if (snib__family_of(op->kind) != SNIB__FAMILY_PERMITS ||
            (op->verb != SNIB__ACQUIRE && op->verb != SNIB__RELEASE && op->verb != SNIB__RENEW))
                return 0;
        return 16 * (op->permits ? op->permit_count : (size_t)op->n);
}

bool snib__count_ids(const struct snib__op *op, char *ret)
{
        size_t count = snib__count_ids_length(op) / 16;
        char hex[33];

        for (size_t i = 0; i < count; i++)
                if (!raw_id(op->permits                                 ? op->permits[i]
                            : snib__permit_id(&op->id, (int64_t)i, hex) ? hex
                                                                        : "",
                            ret + 16 * i))
                        return false;
        return true;
}

/* ---- answers */

/* What is told of the number that stands there; absent: of none. */
static bool number(const struct snib__resp_value *v, size_t count, struct snib__reply *ret)
{
        ret->held = count > 2;
        ret->holders = -1;
        if (count > 3 || (count == 3 && v[2].type != SNIB__RESP_INTEGER))
                return false;
        if (count == 3)
                ret->value = v[2].integer;
        else if (snib__family_of(ret->kind) == SNIB__FAMILY_LATCH ||
                 snib__family_of(ret->kind) == SNIB__FAMILY_REGISTER)
                ret->value = 0;
        return true;
}

/* {-1}, {-2}: true, and the request is answered. */
static bool refused(struct redis *r, struct request *q, const struct snib__resp_value *v)
{
        if (v[1].integer == -1)
                snib__decode_wrong_kind(r, q,
                                        snib__family_of(q->op.kind) == SNIB__FAMILY_REGISTER
                                            ? "a hash of another make"
                                            : "a text that is no number");
        else if (v[1].integer == -2)
                snib__redis_fail(r, q, SNIB_ELIMIT,
                                 "the number would be out of range; permits and counts are a 32 bit integer");
        return v[1].integer == -1 || v[1].integer == -2;
}

static bool yes_or_no(const struct snib__resp_value *v)
{
        return v[1].integer == 0 || v[1].integer == 1;
}

/* The answer came too late for who asked: a repetition is under way, and more of them may
 * follow. */
static bool repeated(const struct redis *r, const struct request *q)
{
        snib__list_each (it, &r->commands.net.in_flight) {
                const struct request *later = snib__container(it, struct request, flight.link);
                if (later->tag.object == q->tag.object && later->tag.cookie == q->tag.cookie &&
                    later->kind == REQUEST_OP && snib__id_equal(&later->op.id, &q->op.id))
                        return true;
        }
        return false;
}

/* Of a request that was sent once, or of which every copy was answered, and here is its answer, the
 * server need not remember anything; but only once the answer was acted upon: whoever gave up
 * meanwhile undoes it by its id, in a request that must come first, or did not hear it and asks
 * again (redis_unheard()). Looked at now and then again: the repetition's answer may come with this
 * one. */
static void forget(struct redis *r, struct request *q)
{
        q->forget = (q->tag.attempt == 1 || q->op.settled) && !repeated(r, q);
}

void snib__count_forget(struct redis *r, struct request *q, snib__ns now)
{
        static const char command[] = "UNLINK";
        struct request *f = repeated(r, q) ? NULL : snib__redis_request(r, REQUEST_FORGET, now);
        size_t length = snib__name_write_id(NAME_REQUEST, q->op.name, &q->op.id, r->scratch);

        if (f && !snib__command_send(&r->commands, f, 2, (const char *[]){command, r->scratch},
                                     (const size_t[]){sizeof(command) - 1, length}, now))
                snib__redis_request_free(r, f);
}

/* ACQUIRE of a semaphore. {1, free}: taken; {0, free}, {0}: not. */
static bool taken(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        if (refused(r, q, v))
                return true;
        if (!yes_or_no(v) || !number(v, count, &q->reply))
                return false;
        q->reply.status = v[1].integer ? SNIB__GRANTED : SNIB__BUSY;
        if (v[1].integer)
                forget(r, q);
        snib__redis_complete(r, q);
        return true;
}

/* QUERY of a semaphore or latch. {1, number}; {0}: it does not exist. */
static bool counted(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        (void)now;
        if (refused(r, q, v))
                return true;
        if (!yes_or_no(v) || (v[1].integer == 1) != (count == 3) || !number(v, count, &q->reply))
                return false;
        if (snib__family_of(q->op.kind) == SNIB__FAMILY_LATCH &&
            q->reply.value <= 0) { /* Java can leave one that is not above 0 */
                q->reply.value = 0;
                q->reply.held = false;
        }
        q->reply.status = SNIB__INFO;
        snib__redis_complete(r, q);
        return true;
}

/* ACQUIRE of a latch: is it open? */
static bool awaited(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        if (!counted(r, q, v, count, now))
                return false;
        if (q->reply.status == SNIB__INFO)
                q->reply.status = q->reply.held ? SNIB__BUSY : SNIB__GRANTED;
        return true;
}

/* OBSERVE of a latch: has it a count? */
static bool latch_observed(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count,
                           snib__ns now)
{
        if (!counted(r, q, v, count, now))
                return false;
        q->reply.token = q->reply.held;
        if (q->reply.status == SNIB__INFO && q->reply.token == q->op.token)
                q->reply.status = SNIB__BUSY;
        return true;
}

/* SET to DELETE. {1, value}, {1}: done; {0, value}, {0}: a condition was not met. */
static bool changed(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        if (refused(r, q, v))
                return true;
        if (!yes_or_no(v) || !number(v, count, &q->reply))
                return false;
        q->reply.status = SNIB__DONE;
        q->reply.applied = v[1].integer == 1;
        if (q->reply.applied)
                forget(r, q);
        snib__redis_complete(r, q);
        return true;
}

/* RELEASE and RENEW. {1}: it was held; {0}: not by this id. */
static bool kept(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        if (refused(r, q, v))
                return true;
        if (!yes_or_no(v) || count != 2)
                return false;
        q->reply.status = v[1].integer == 0 ? SNIB__GONE : q->op.verb == SNIB__RENEW ? SNIB__RENEWED : SNIB__RELEASED;
        if (q->row == &snib__release_ids_row && v[1].integer)
                forget(r, q);
        snib__redis_complete(r, q);
        return true;
}

/* ACQUIRE of permits. {1, token}, {2, token}: held now; {0, free, until the first expires}, {0}:
 * not enough; {3}: gone.
 */
static bool granted(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;

        if (refused(r, q, v))
                return true;
        if (v[1].integer == 1 || v[1].integer == 2) {
                if (count != 3 || !snib__decode_token(r, &v[2], &p->token))
                        return false;
                /* The token is the instant of the acquire: a confirmation knows it only from the
                 * client. */
                if (v[1].integer == 2 && q->op.token > 0)
                        p->token = q->op.token;
                p->status = SNIB__GRANTED;
        } else if (v[1].integer == 0 && (count == 2 || count == 4)) {
                if (!number(v, count == 4 ? 3 : 2, p) ||
                    (count == 4 && (v[3].type != SNIB__RESP_INTEGER || v[3].integer < -1)))
                        return false;
                p->left_ms = count == 4 ? v[3].integer : -1;
                p->status = SNIB__BUSY;
        } else if (v[1].integer == 3 && count == 2 && q->op.token > 0) {
                p->status = SNIB__GONE;
        } else {
                return false;
        }
        snib__redis_complete(r, q);
        return true;
}

/* QUERY and FORCE of permits. {1, free, out, until the first expires}; {1, free, out}: what was
 * forced; {0}: none. */
static bool described(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;
        bool query = q->op.verb == SNIB__QUERY;

        (void)now;
        if (refused(r, q, v))
                return true;
        if (!yes_or_no(v) || count != (!v[1].integer ? 2 : query ? 5 : 4))
                return false;
        for (size_t i = 2; i < count; i++)
                if (v[i].type != SNIB__RESP_INTEGER)
                        return false;
        p->status = SNIB__INFO;
        if (v[1].integer) {
                p->value = v[2].integer;
                p->holders = v[3].integer;
                p->left_ms = query ? v[4].integer : -1;
                if (p->holders < 0 || p->left_ms < -1 || __builtin_add_overflow(p->value, p->holders, &p->limit))
                        return false;
        }
        p->held = query ? v[1].integer == 1 : p->holders > 0;
        snib__redis_complete(r, q);
        return true;
}

/* QUERY and OBSERVE of a register. {1, version, value}; {0}: there is none; {2}: it is the one that
 * is known. */
static bool read_value(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now)
{
        struct snib__reply *p = &q->reply;
        bool there = v[1].integer == 1;

        (void)now;
        if (refused(r, q, v))
                return true;
        if (v[1].integer < 0 || v[1].integer > 2 || count != (there ? 4 : 2) ||
            (v[1].integer == 2 && q->op.verb != SNIB__OBSERVE) ||
            (there && (v[2].type != SNIB__RESP_INTEGER || v[2].integer <= 0 || v[3].type != SNIB__RESP_STRING)))
                return false;
        p->status = v[1].integer == 2 ? SNIB__BUSY : SNIB__INFO;
        p->token = p->value = there ? v[2].integer : v[1].integer == 2 ? q->op.token : 0;
        p->held = p->value > 0;
        if (there && !snib__op_keep_answer(q, snib__decode_text(r, &v[3]), v[3].length))
                snib__redis_fail(r, q, SNIB_ENOMEM, "out of memory");
        else
                snib__redis_complete(r, q);
        return true;
}

/* ---- rows: what a kind has, by verb */

/* clang-format off */
/* Keys: what stands there, and the server's memory of the request. */
#define COUNT 2, {PUT_NAME, PUT_REQUEST_KEY
#define PERMITS 2, {PUT_NAME, NAME_PERMITS
#define PERMITS_ONCE 3, {PUT_NAME, NAME_PERMITS, PUT_REQUEST_KEY
#define CHANGED {SNIB__SCRIPT_PERMITS_CHANGE, PERMITS_ONCE, PUT_VERB, PUT_N, PUT_IF_EXISTS, NAME_SEMAPHORE_CHANNEL, \
                 PUT_DONE_MS, PUT_REPEATED}, changed}

static const struct row rows[][SNIB__DELETE + 1] = {
    [SNIB_KIND_SEMAPHORE] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_SEMAPHORE_ACQUIRE, COUNT, PUT_N, PUT_DONE_MS}, taken},
        [SNIB__RELEASE] = {SNIB__SCRIPT_SEMAPHORE_UNDO, COUNT, NAME_SEMAPHORE_CHANNEL, PUT_DONE_MS}, kept},
        [SNIB__QUERY] = {SNIB__SCRIPT_SEMAPHORE_QUERY, 1, {PUT_NAME}, counted},
        [SNIB__SET] = {SNIB__SCRIPT_SEMAPHORE_SET, COUNT, PUT_N, PUT_TTL, NAME_SEMAPHORE_CHANNEL, PUT_DONE_MS,
                        PUT_REPEATED}, changed},
        [SNIB__ADD] = {SNIB__SCRIPT_SEMAPHORE_ADD, COUNT, PUT_N, PUT_IF_EXISTS, NAME_SEMAPHORE_CHANNEL, PUT_DONE_MS,
                        PUT_REPEATED}, changed},
        [SNIB__DRAIN] = {SNIB__SCRIPT_SEMAPHORE_DRAIN, COUNT, PUT_DONE_MS, PUT_REPEATED}, changed},
        [SNIB__DELETE] = {SNIB__SCRIPT_SEMAPHORE_DELETE, COUNT, PUT_DONE_MS, PUT_REPEATED}, changed}},
    [SNIB_KIND_PERMITS] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_PERMITS_ACQUIRE, PERMITS, PUT_LEASE, PUT_TOKEN, PUT_DATA,
                           NAME_SEMAPHORE_CHANNEL}, granted},
        [SNIB__RELEASE] = {SNIB__SCRIPT_PERMITS_RELEASE, PERMITS, PUT_DATA, NAME_SEMAPHORE_CHANNEL}, kept},
        [SNIB__RENEW] = {SNIB__SCRIPT_PERMITS_RENEW, PERMITS, PUT_LEASE, PUT_DATA, NAME_SEMAPHORE_CHANNEL}, kept},
        [SNIB__QUERY] = {SNIB__SCRIPT_PERMITS_QUERY, PERMITS}, described},
        [SNIB__FORCE] = {SNIB__SCRIPT_PERMITS_FORCE, PERMITS, NAME_SEMAPHORE_CHANNEL}, described},
        [SNIB__SET] = CHANGED,
        [SNIB__RESIZE] = CHANGED,
        [SNIB__ADD] = CHANGED,
        [SNIB__DELETE] = {SNIB__SCRIPT_PERMITS_DELETE, PERMITS_ONCE, PUT_DONE_MS, PUT_REPEATED}, changed}},
    [SNIB_KIND_LATCH] = {
        [SNIB__ACQUIRE] = {SNIB__SCRIPT_SEMAPHORE_QUERY, 1, {PUT_NAME}, awaited},
        [SNIB__QUERY] = {SNIB__SCRIPT_SEMAPHORE_QUERY, 1, {PUT_NAME}, counted},
        [SNIB__OBSERVE] = {SNIB__SCRIPT_SEMAPHORE_QUERY, 1, {PUT_NAME}, latch_observed},
        [SNIB__SET] = {SNIB__SCRIPT_LATCH_SET, COUNT, PUT_N, NAME_LATCH_CHANNEL, PUT_DONE_MS, PUT_REPEATED}, changed},
        [SNIB__ADD] = {SNIB__SCRIPT_LATCH_ADD, COUNT, PUT_N, NAME_LATCH_CHANNEL, PUT_DONE_MS, PUT_REPEATED}, changed},
        [SNIB__DELETE] = {SNIB__SCRIPT_LATCH_DELETE, COUNT, NAME_LATCH_CHANNEL, PUT_DONE_MS, PUT_REPEATED}, changed}},
    [SNIB_KIND_REGISTER] = {
        [SNIB__QUERY] = {SNIB__SCRIPT_REGISTER_QUERY, 1, {PUT_NAME}, read_value},
        [SNIB__OBSERVE] = {SNIB__SCRIPT_REGISTER_QUERY, 1, {PUT_NAME, PUT_TOKEN}, read_value},
        [SNIB__WRITE] = {SNIB__SCRIPT_REGISTER_WRITE, COUNT, PUT_EXPECTED, PUT_DATA, NAME_REGISTER_CHANNEL,
                         PUT_DONE_MS, PUT_REPEATED}, changed},
        [SNIB__DELETE] = {SNIB__SCRIPT_REGISTER_DELETE, COUNT, PUT_EXPECTED, NAME_REGISTER_CHANNEL, PUT_DONE_MS,
                           PUT_REPEATED}, changed}},
};

const struct row snib__release_ids_row = {
    SNIB__SCRIPT_PERMITS_RELEASE, PERMITS_ONCE, PUT_DATA, NAME_SEMAPHORE_CHANNEL, PUT_DONE_MS, PUT_REPEATED}, kept};
/* clang-format on */

const struct row *snib__count_row(int kind, enum snib__verb verb)
{
        const struct row *row = kind >= 0 && kind < (int)(sizeof(rows) / sizeof(rows[0])) ? &rows[kind][verb] : NULL;

        return row && row->decode ? row : NULL;
}
