/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Redis engine as the runtime sees it: requests in, notes out, two connections in between. No
 * system call is made here; bytes move in the transport. Invariants: every submitted request is in
 * flight, or told, exactly once; requests on locks go over the commands connection only, so they
 * keep their order; a note's memory lives until the next process().
 *
 * What is submitted is kept until flush() or process(): whether company is worth waiting for is the
 * runtime's decision.
 */

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "engine/redis/internal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request that carried more than this gives the memory back when it is used again. */
#define KEPT_MAX ((size_t)16 << 10)

static struct redis *redis_of(struct snib__engine *e)
{
        return snib__container(e, struct redis, base);
}

void snib__redis_trace(struct redis *r, const char *format, ...)
{
        char line[512];
        va_list list;

        if (!r->trace)
                return;
        va_start(list, format);
        vsnprintf(line, sizeof(line), format, list);
        va_end(list);
        r->trace(r->trace_arg, line);
}

/* ---- requests */

void snib__redis_request_trim(struct request *q)
{
        if (q->bytes_room <= KEPT_MAX)
                return;
        free(q->bytes);
        q->bytes = NULL;
        q->bytes_room = 0;
}

struct request *snib__redis_request(struct redis *r, enum request_kind kind, snib__ns now)
{
        struct snib__list *first = snib__list_take(&r->free);
        struct request *q = first ? snib__container(first, struct request, letter.link) : snib__alloc(sizeof(*q));

        if (!q)
                return NULL;
        snib__redis_request_trim(q);
        q->kind = kind;
        q->by_text = q->forget = false;
        q->tag = (struct snib__tag){0};
        q->op.verb = 0;
        q->op.id.text[0] = 0;
        q->reply = (struct snib__reply){.left_ms = -1, .waiters = -1, .value = -1, .limit = -1};
        return q;
}

/* Last in, first out: it is warm. */
void snib__redis_request_free(struct redis *r, struct request *q)
{
        snib__list_append(r->free.next, &q->letter.link);
}

/* ---- letters */

static bool write_reply(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        struct request *q = snib__container(l, struct request, letter);

        (void)owner;
        *ret = (struct snib__note){.kind = SNIB__NOTE_REPLY, .tag = q->tag, .reply = q->reply};
        return q->kind == REQUEST_RENEWALS && snib__renewals_next(q, ret); /* one answer for many */
}

static void take_back(void *owner, struct snib__letter *l, snib__ns now)
{
        struct request *q = snib__container(l, struct request, letter);
        struct redis *r = owner;

        if (q->forget)
                snib__count_forget(r, q, now);
        if (q->kind == REQUEST_RENEWALS)
                snib__renewals_free(r, q);
        else
                snib__redis_request_free(r, q);
}

static bool write_up(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        (void)owner, (void)l;
        *ret = (struct snib__note){.kind = SNIB__NOTE_LINK_UP};
        return false;
}

static bool write_down(void *owner, struct snib__letter *l, struct snib__note *ret)
{
        const struct redis *r = owner;

        (void)l;
        *ret = (struct snib__note){.kind = SNIB__NOTE_LINK_DOWN, .reply = snib__reply_failed(0, &r->down_error)};
        return false;
}

static const struct snib__letter_kind reply_letter = {.write = write_reply, .back = take_back},
                                      up_letter = {.write = write_up}, down_letter = {.write = write_down};

void snib__redis_complete(struct redis *r, struct request *q)
{
        snib__outbox_post(&r->outbox, &q->letter, &reply_letter);
}

void snib__redis_fail(struct redis *r, struct request *q, int code, const char *format, ...)
{
        char text[SNIB_ERROR_TEXT_MAX];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        q->error = (struct snib_error)SNIB_ERROR_INIT;
        snib__error(&q->error, code, "%s", text);
        q->reply = snib__reply_failed(q->reply.kind, &q->error);
        snib__redis_complete(r, q);
}

/* ---- what connections report */

bool snib__redis_reply(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count, snib__ns now,
                       const char **ret_why)
{
        struct snib__who who;

        switch (q->kind) {
        case REQUEST_OP:
                return snib__op_reply(r, q, v, count, now, ret_why);
        case REQUEST_OP_WHO:
                if (!snib__who_reply(r, &q->reply.holder.id, v, count, now, &q->reply.holder.who))
                        return false;
                q->reply.foreign = snib__who_foreign(r, &q->reply.holder.id);
                snib__redis_complete(r, q);
                return true;
        case REQUEST_RENEWALS:
                return snib__renewals_reply(r, q, v, count, now);
        case REQUEST_WAITERS:
                return snib__op_waiters_reply(r, q, v, count);
        case REQUEST_SUBSCRIBE:
        case REQUEST_UNSUBSCRIBE:
                return snib__watch_reply(r, q, v, count, now);
        case REQUEST_SCAN:
        case REQUEST_LIST_LOCK:
        case REQUEST_LIST_WHO:
                return snib__listing_reply(r, q, v, count, now);
        case REQUEST_WHO_GET:
                if (!snib__who_reply(r, &q->op.id, v, count, now, &who))
                        return false;
                break;
        case REQUEST_WHO_SET: /* whatever the server thinks of it */
        case REQUEST_FORGET:
        case REQUEST_PING: /* it lives */
        case REQUEST_HANDSHAKE:
                break;
        }
        snib__redis_request_free(r, q);
        return true;
}

void snib__redis_orphan(struct redis *r, struct request *q, bool sent, const char *why)
{
        switch (q->kind) {
        case REQUEST_OP:
                snib__redis_fail(r, q, sent ? SNIB_EUNKNOWN : SNIB_EUNREACHABLE, "%s", why);
                break;
        case REQUEST_RENEWALS:
                snib__renewals_orphan(r, q, sent, why);
                break;
        case REQUEST_OP_WHO: /* what was asked is answered */
                snib__redis_complete(r, q);
                break;
        case REQUEST_SCAN:
        case REQUEST_LIST_LOCK:
        case REQUEST_LIST_WHO:
                snib__listing_orphan(r, q, why);
                break;
        default:
                snib__redis_request_free(r, q);
        }
}

void snib__redis_link_up(struct link *l, snib__ns now)
{
        struct redis *r = l->redis;

        if (l->net.config.role == SNIB__REDIS_SUBSCRIPTIONS) {
                snib__watch_subscribe_all(r, now);
                return;
        }
        r->who_due = now;
        snib__outbox_withdraw(&r->up);
        snib__outbox_post(&r->outbox, &r->up, &up_letter);
}

void snib__redis_link_down(struct link *l, const struct snib_error *why)
{
        struct redis *r = l->redis;

        if (l->net.config.role == SNIB__REDIS_SUBSCRIPTIONS) {
                snib__watch_disconnected(r);
                return;
        }
        r->down_error = *why;
        snib__outbox_withdraw(&r->down);
        snib__outbox_post(&r->outbox, &r->down, &down_letter);
}

/* ---- the interface */

int snib__redis_open_with(struct snib__engine **ret, const struct snib__engine_config *config,
                          const struct snib__transport *transport, void *transport_arg, snib__ns now,
                          struct snib_error *err)
{
        struct redis *r = snib__alloc(sizeof(*r));
        int n;

        if (!r)
                return snib__error(err, SNIB_ENOMEM, "out of memory");
        n = snib__redis_configure(&r->config, config->url, config->timeout_ms, err);
        if (n < 0) {
                explicit_bzero(r, sizeof(*r));
                free(r);
                return n;
        }
        r->base.ops = &snib__redis_engine;
        r->transport = transport;
        r->transport_arg = transport_arg;
        r->prng.state = config->seed;
        r->trace = config->trace;
        r->trace_arg = config->trace_arg;
        memcpy(r->uuid, config->uuid, sizeof(r->uuid));
        r->who = config->who;
        snib__tree_init(&r->channels, snib__watch_compare);
        snib__outbox_init(&r->outbox, r);
        snib__list_init(&r->free);
        snib__list_init(&r->idle);
        snib__list_init(&r->free_batches);
        snib__list_init(&r->listings);
        snib__list_init(&r->spent_listings);
        r->down_error = (struct snib_error)SNIB_ERROR_INIT;
        snib__error(&r->down_error, SNIB_EUNREACHABLE, "not connected to the server yet");
        snib__redis_link_init(&r->commands, r, SNIB__REDIS_COMMANDS, now);
        snib__redis_link_init(&r->subscriptions, r, SNIB__REDIS_SUBSCRIPTIONS, now);
        *ret = &r->base;
        return 0;
}

static int redis_open(struct snib__engine **ret, const struct snib__engine_config *config, snib__ns now,
                      struct snib_error *err)
{
        return snib__redis_open_with(ret, config, &snib__socket_transport, NULL, now, err);
}

static void send_renewals(struct redis *r, snib__ns now)
{
        if (r->renewals)
                snib__renewals_send(r, now);
}

static void send_op(struct redis *r, struct request *q, snib__ns now)
{
        send_renewals(r, now);
        if (!snib__op_send(r, q, now))
                snib__redis_fail(r, q, SNIB_EUNREACHABLE, "%s", snib__redis_no_room);
}

struct request *snib__redis_op(struct redis *r, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        struct request *q = snib__redis_request(r, REQUEST_OP, now);

        if (!q || !snib__op_keep(q, op)) {
                if (q)
                        snib__redis_request_free(r, q);
                return NULL;
        }
        q->tag = tag;
        q->row = snib__op_row(op);
        q->reply.kind = op->kind;
        q->reply.token = op->verb == SNIB__QUERY || op->verb == SNIB__FORCE ? -1 : 0;
        return q;
}

static bool redis_submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        struct redis *r = redis_of(e);
        const struct row *row = snib__op_row(op);
        bool ready = r->commands.net.state == SNIB__LINK_READY;
        struct request *q;

        if (op->leave)
                snib__who_left(r, op->lease_ms);
        if (ready && row && row->script == SNIB__SCRIPT_RENEW && op->name.length <= SNIB_NAME_MAX)
                return snib__renewals_add(r, tag, op, now);
        q = snib__redis_op(r, tag, op, now);
        if (q && !row)
                snib__redis_fail(r, q, SNIB_EUNSUPPORTED, "%s", snib__kind_refusal(op->kind, op->verb, false));
        else if (q && !ready)
                snib__redis_fail(r, q, SNIB_EUNREACHABLE, "%s", r->down_error.text);
        else if (q)
                send_op(r, q, now);
        return q;
}

static void redis_flush(struct snib__engine *e)
{
        struct redis *r = redis_of(e);

        send_renewals(r, r->renewals_at);
        snib__link_flush(&r->commands.net);
        snib__link_flush(&r->subscriptions.net);
}

/* SCAN by type came with 6.0. */
static bool lists(const struct redis *r)
{
        return strspn(r->version, "0123456789") != 1 || r->version[0] >= '6'; /* it may not have said */
}

static bool redis_list(struct snib__engine *e, struct snib__tag tag, snib__ns now)
{
        struct redis *r = redis_of(e);
        struct request *q;

        send_renewals(r, now);
        if (lists(r))
                return snib__listing_start(r, tag, now);
        q = snib__redis_request(r, REQUEST_OP, now);
        if (!q)
                return false;
        q->tag = tag;
        snib__redis_fail(r, q, SNIB_EUNSUPPORTED,
                         "it needs Redis 6.0 or later, and the server is %s; ask about single names instead",
                         r->version);
        return true;
}

static void redis_watch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now)
{
        snib__watch_add(redis_of(e), topic, now);
}

static void redis_unwatch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now)
{
        snib__watch_remove(redis_of(e), topic, now);
}

/* Of the first and of the second connection. */
static unsigned commands_wish(const struct redis *r)
{
        return SNIB__LINK_WANTED | (r->watched ? SNIB__LINK_LISTENING : 0);
}

static unsigned subscriptions_wish(const struct redis *r)
{
        return r->watched ? SNIB__LINK_WANTED | SNIB__LINK_LISTENING : 0;
}

static void redis_interest(struct snib__engine *e, snib__ns now, struct snib__interest *ret)
{
        struct redis *r = redis_of(e);
        snib__ns tidy_at = snib__watch_due(r);
        bool told = false;

        ret->count = 0;
        ret->deadline = SNIB__NEVER;
        ret->kept = r->renewals != NULL;
        ret->changes = 0;
        snib__link_interest(&r->commands.net, commands_wish(r), ret);
        snib__link_interest(&r->subscriptions.net, subscriptions_wish(r), ret);
        ret->tidying = tidy_at != SNIB__NEVER;
        ret->deadline = snib__min(ret->deadline, tidy_at);
        if (r->who_used && r->commands.net.state == SNIB__LINK_READY)
                ret->deadline = snib__min(ret->deadline, r->who_due);
        snib__list_each (it, &r->listings) {
                told |= snib__container(it, struct listing, link)->phase == LISTING_TOLD;
        }
        if (told || !snib__outbox_empty(&r->outbox))
                ret->deadline = now;
}

static void recycle(struct redis *r, snib__ns now)
{
        snib__outbox_recycle(&r->outbox, now);
        for (struct snib__list *it = snib__list_take(&r->spent_listings); it; it = snib__list_take(&r->spent_listings))
                snib__listing_free(r, snib__container(it, struct listing, link));
        if (r->sweep)
                snib__watch_sweep(r);
}

/* When all that the last turn told has been taken. */
static void go_on_listing(struct redis *r, snib__ns now)
{
        struct snib__list *next;

        if (!snib__outbox_empty(&r->outbox))
                return;
        for (struct snib__list *it = r->listings.next; it != &r->listings; it = next) {
                struct listing *l = snib__container(it, struct listing, link);
                next = it->next;
                if (l->phase == LISTING_TOLD)
                        snib__listing_advance(r, l, now);
        }
}

static void redis_process(struct snib__engine *e, const struct snib__interest *ready, snib__ns now)
{
        struct redis *r = redis_of(e);

        send_renewals(r, now);
        recycle(r, now);
        go_on_listing(r, now);
        snib__watch_expire(r, now);
        snib__link_process(&r->commands.net, commands_wish(r), ready, now);
        snib__link_process(&r->subscriptions.net, subscriptions_wish(r), ready, now);
        snib__who_refresh(r, now);
        snib__link_flush(&r->commands.net);
}

/* Whoever asks again must find what the server remembers of it. */
static void redis_unheard(struct snib__engine *e, struct snib__tag tag)
{
        snib__list_each (it, &redis_of(e)->outbox.taken) {
                struct snib__letter *l = snib__container(it, struct snib__letter, link);
                struct request *q = snib__container(l, struct request, letter);
                if (l->kind == &reply_letter && q->tag.object == tag.object && q->tag.cookie == tag.cookie &&
                    q->tag.attempt == tag.attempt)
                        q->forget = false;
        }
}

static bool redis_next(struct snib__engine *e, struct snib__note *ret)
{
        return snib__outbox_next(&redis_of(e)->outbox, ret);
}

static void free_requests(struct snib__list *list)
{
        for (struct snib__list *it = snib__list_take(list); it; it = snib__list_take(list)) {
                struct request *q = snib__container(it, struct request, letter.link);
                free(q->bytes);
                free(q);
        }
}

/* Takes what is in flight back, to be freed. */
static void ground(struct redis *r, struct link *l)
{
        for (struct snib__flight *f = snib__link_landed(&l->net); f; f = snib__link_landed(&l->net))
                snib__redis_request_free(r, snib__container(f, struct request, flight));
}

static void free_letters(struct redis *r)
{
        for (struct snib__letter *l; (l = snib__outbox_drain(&r->outbox));)
                if (l->kind == &reply_letter)
                        snib__list_append(&r->free, &l->link);
                else if (l->kind == &snib__granted_letter)
                        snib__granted_free(l);
}

static void redis_close(struct snib__engine *e)
{
        struct redis *r = redis_of(e);

        snib__renewals_send(r, 0);
        snib__who_remove(r, 0);
        snib__link_flush(&r->commands.net);
        ground(r, &r->commands);
        ground(r, &r->subscriptions);
        free_letters(r);
        for (struct snib__list *it = snib__list_take(&r->listings); it; it = snib__list_take(&r->listings))
                snib__listing_free(r, snib__container(it, struct listing, link));
        for (struct snib__list *it = snib__list_take(&r->spent_listings); it; it = snib__list_take(&r->spent_listings))
                snib__listing_free(r, snib__container(it, struct listing, link));
        free_requests(&r->free);
        free_requests(&r->free_batches);
        snib__redis_link_done(&r->commands);
        snib__redis_link_done(&r->subscriptions);
        snib__watch_done(r);
        explicit_bzero(&r->config, sizeof(r->config));
        free(r);
}

static void redis_forked(struct snib__engine *e)
{
        struct redis *r = redis_of(e);

        snib__link_forked(&r->commands.net);
        snib__link_forked(&r->subscriptions.net);
}

static const char *const schemes[] = {"redis", "redis+unix", NULL};

const struct snib__facts snib__redis_facts = {
    .info = {.size = sizeof(struct snib_engine_info),
             .name = "redis",
             .schemes = "redis:// redis+unix://",
             .summary = "one Redis or Valkey server, sharing locks with Redisson clients",
             .exclusion = "the server's single thread and its clock: at most one holder per name while the server "
                          "keeps its data and its "
                          "clock is not set forward",
             .on_crash = "holds survive as far as the server had saved them (appendfsync always: all); holds it forgot "
                         "are told as lost and "
                         "may be granted anew at once",
             .on_pause = "a hold ends with its lease; the holder learns of it before it does anything else, and its "
                         "token is lower than "
                         "the next one",
             .on_partition = "a holder that cannot reach the server is told of the loss before its lease ends there",
             .on_failover = "this URL names one server; a replica put in its place may lack the last writes: two "
                            "holders are possible, "
                            "with different tokens only if clocks agree",
             .caps = SNIB_CAP_FENCING | SNIB_CAP_CLOCK_TOKENS | SNIB_CAP_CROSS_PROCESS | SNIB_CAP_CROSS_MACHINE |
                     SNIB_CAP_SURVIVES_RESTART | SNIB_CAP_LOCK | SNIB_CAP_FENCED | SNIB_CAP_FAIR | SNIB_CAP_RWLOCK |
                     SNIB_CAP_DOWNGRADE | SNIB_CAP_SEMAPHORE | SNIB_CAP_PERMITS | SNIB_CAP_LATCH | SNIB_CAP_ELECTION |
                     SNIB_CAP_REGISTER | SNIB_CAP_LOCK_QUEUE},
    .traits = SNIB__TRAIT_WATCH | SNIB__TRAIT_SOCKET,
    .queues = SNIB__KIND_BIT(SNIB_KIND_LOCK) | SNIB__KIND_BIT(SNIB_KIND_FENCED) | SNIB__KIND_BIT(SNIB_KIND_FAIR),
    .token_block = SNIB__TOKEN_BLOCK,
};
static const struct snib__facts *const forms[] = {&snib__redis_facts, NULL};

static const struct snib__facts *redis_facts(const struct snib__engine *e)
{
        (void)e;
        return &snib__redis_facts;
}

const struct snib__engine_ops snib__redis_engine = {
    .schemes = schemes,
    .forms = forms,
    .facts = redis_facts,
    .open = redis_open,
    .submit = redis_submit,
    .list = redis_list,
    .watch = redis_watch,
    .unwatch = redis_unwatch,
    .interest = redis_interest,
    .flush = redis_flush,
    .process = redis_process,
    .unheard = redis_unheard,
    .next = redis_next,
    .close = redis_close,
    .forked = redis_forked,
};
