/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client itself: its lock, opening, closing. Not the waiting (drive.c), not the threads
 * (keeper.c, dispatch.c).
 */

#include "runtime/client.h"
#include "base/alloc.h"
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/text.h"
#include "runtime/multi.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_DEFAULT_MS 3000
#define TIMEOUT_MIN_MS 1
#define TIMEOUT_MAX_MS 3600000
/* Longer than this without a look at the engine's descriptors, and the next call looks first. */
#define STALE_AFTER SNIB__S

void snib__client_lock(struct snib_client *c)
{
        (void)pthread_mutex_lock(&c->lock);
        c->now = snib__os_now();
}

void snib__client_unlock(struct snib_client *c)
{
        if (c->beds_woken)
                snib__sleep_unlock(c);
        else
                (void)pthread_mutex_unlock(&c->lock);
}

void snib__client_enter(struct snib_client *c)
{
        (void)atomic_fetch_add(&c->inside, 1);
        snib__client_lock(c);
        c->activity++;
        if (c->now - c->processed_at < STALE_AFTER || c->baton.driver)
                return;
        /* Nobody looked for a while: what came in meanwhile, such as the end of the connection,
         * comes before a new request. */
        c->processed_at = c->now;
        c->engine->ops->process(c->engine, NULL, c->now);
        snib__notes_take(c);
}

void snib__client_leave(struct snib_client *c)
{
        snib__drive_settle(c);
        snib__client_unlock(c);
        snib__client_left(c);
}

void snib__client_left(struct snib_client *c)
{
        snib__dispatch_here(c);
        (void)atomic_fetch_sub(&c->inside, 1);
}

void snib__client_wake(struct snib_client *c, struct snib__wait *w)
{
        if (c->polling && c->baton.driver == &w->member)
                snib__drive_kick(c); /* another thread did what it polls for */
        else if (w->asleep)
                snib__sleep_end(c, w, SNIB__AWAKE);
}

void snib__client_wake_over(struct snib_client *c, struct snib__wait *w)
{
        (void)atomic_fetch_add_explicit(&c->coming, 1, memory_order_relaxed);
        c->gather_until = snib__after(c->processed_at, SNIB__GATHER);
        snib__sleep_end(c, w, SNIB__OVER);
}

void snib__client_trace(struct snib_client *c, const char *format, ...)
{
        char line[512];
        va_list ap;

        if (!c->trace)
                return;
        va_start(ap, format);
        (void)vsnprintf(line, sizeof(line), format, ap);
        va_end(ap);
        c->trace(c->trace_arg, line);
}

static int uuid_make(char ret[37], struct snib_error *err)
{
        unsigned char b[16];
        int r = snib__os_random(b, sizeof(b));

        if (r < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -r, "getrandom");
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 */
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* variant 1 */
        (void)snprintf(ret, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
                       b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
        return 0;
}

static void who_fill(struct snib__who *who, const char *label)
{
        snib__os_host(who->host, sizeof(who->host));
        if (label)
                (void)snprintf(who->label, sizeof(who->label), "%s", label);
        else
                snib__os_program(who->label, sizeof(who->label));
        who->pid = snib__os_pid();
}

static int timeout_choose(struct snib__url *url, int64_t option_ms, int64_t *ret_ms, struct snib_error *err)
{
        const char *text = snib__url_option(url, "timeout");
        int64_t ms = option_ms ? option_ms : TIMEOUT_DEFAULT_MS;

        if (text && snib__duration_parse(text, &ms) < 0)
                return snib__error(err, SNIB_EURL,
                                   "the option timeout of the URL is \"%s\", which is no duration; write 2s or 500ms",
                                   text);
        if (ms < TIMEOUT_MIN_MS || ms > TIMEOUT_MAX_MS)
                return snib__error(err, text ? SNIB_EURL : SNIB_EINVAL,
                                   "the timeout is %lld ms; choose one from %d ms to %d ms (one hour)", (long long)ms,
                                   TIMEOUT_MIN_MS, TIMEOUT_MAX_MS);
        *ret_ms = ms;
        return 0;
}

/* Looking for answers only makes sense where another processor can make them. */
static int spin_choose(struct snib_client *c, struct snib__url *url, int64_t option_us, struct snib_error *err)
{
        const char *text = snib__url_option(url, "spin");
        int64_t us = option_us ? option_us : SNIB_SPIN_DEFAULT_US;
        int length = 0;

        if (text && !strcmp(text, "off"))
                us = SNIB_SPIN_OFF;
        else if (text && (sscanf(text, "%4" SCNd64 "us%n", &us, &length) != 1 || !length || text[length] || us < 1 ||
                          us > SNIB_SPIN_MAX_US))
                return snib__error(err, SNIB_EURL, "the option spin of the URL is \"%s\"; write off, or 1us to %lldus",
                                   text, (long long)SNIB_SPIN_MAX_US);
        if (us > 0 && snib__os_processors() > 1)
                snib__look_init(&c->look, us * SNIB__US);
        return 0;
}

static int descriptors_open(struct snib_client *c, struct snib_error *err)
{
        c->wake_fd = snib__os_event_new();
        if (c->wake_fd < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -c->wake_fd, "eventfd");
        c->timer.fd = snib__os_timer_new();
        if (c->timer.fd < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -c->timer.fd, "timerfd_create");
        if (c->threads != SNIB_THREADS_NONE) {
                c->keeper.wake_fd = snib__os_event_new();
                if (c->keeper.wake_fd < 0)
                        return snib__error_errno(err, SNIB_ESYSTEM, -c->keeper.wake_fd, "eventfd");
                c->keeper.timer.fd = snib__os_timer_new();
                if (c->keeper.timer.fd < 0)
                        return snib__error_errno(err, SNIB_ESYSTEM, -c->keeper.timer.fd, "timerfd_create");
        }
        c->epoll = snib__os_epoll_new();
        if (c->epoll < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -c->epoll, "epoll_create1");
        int r = snib__os_epoll_set(c->epoll, c->wake_fd, POLLIN);
        if (r == 0)
                r = snib__os_epoll_set(c->epoll, c->timer.fd, POLLIN);
        return r < 0 ? snib__error_errno(err, SNIB_ESYSTEM, -r, "epoll_ctl") : 0;
}

/* What of a URL says where: the same for all who write it alike, whoever they are and however long
 * they wait. */
static char *place_of(const struct snib__url *url)
{
        char text[sizeof(url->scheme) + sizeof(url->host) + sizeof(url->path) + SNIB__URL_PART_MAX + 32];
        const char *db = "";

        for (int i = 0; i < url->options; i++)
                if (!strcmp(url->option[i].key, "db"))
                        db = url->option[i].value;
        (void)snprintf(text, sizeof(text), "%s://%s:%d%s?%s", url->scheme, url->host, url->port, url->path, db);
        return snib__copy(text, strlen(text));
}

static char *url_of(const struct snib__url *url)
{
        size_t size = snib__url_format(url, NULL, 0) + 1;
        char *text = snib__alloc(size);

        if (text)
                (void)snib__url_format(url, text, size);
        return text;
}

/* Of what is known and not there yet it is said what does instead. */
static int scheme_error(const char *scheme, struct snib_error *err)
{
        static const char *const planned[][2] = {
            {"rediss", "TLS is not in this build yet; use redis:// through a tunnel, or redis+unix:// on one machine"},
            {"redis+cluster",
             "clusters are not in this build yet; use redis:// with a server that is not in a cluster"},
            {"redis+sentinel", "Sentinel is not in this build yet; use redis:// with the address of the server"},
        };

        for (size_t i = 0; i < sizeof(planned) / sizeof(planned[0]); i++)
                if (!strcmp(scheme, planned[i][0]))
                        return snib__error(err, SNIB_EURL, "%s://: %s", planned[i][0], planned[i][1]);
        return snib__error(err, SNIB_EURL,
                           "the scheme \"%s\" of the URL is unknown; this build has local:, redis://, redis+unix:// "
                           "and mem:",
                           scheme);
}

static int engine_open(struct snib_client *c, const struct snib__client_config *config, int64_t *ret_timeout_ms,
                       struct snib_error *err)
{
        struct snib__url url;
        struct snib__engine_config ec = {.url = &url, .who = c->who, .trace = c->trace, .trace_arg = c->trace_arg};
        const struct snib__engine_ops *ops;
        int r = snib__url_parse(config->url, &url, err);

        if (r < 0)
                return r;
        ops = snib__engine_find(url.scheme);
        if (r == 0 && !ops)
                r = scheme_error(url.scheme, err);
        if (r == 0)
                r = timeout_choose(&url, config->timeout_ms, ret_timeout_ms, err);
        if (r == 0 && (ops->forms[0]->traits & SNIB__TRAIT_SOCKET))
                r = spin_choose(c, &url, config->spin_us, err);
        if (r == 0)
                r = snib__os_random(&ec.seed, sizeof(ec.seed));
        if (r == 0) {
                memcpy(ec.uuid, c->uuid, sizeof(ec.uuid));
                ec.timeout_ms = *ret_timeout_ms;
                r = snib__engine_open(&c->engine, ops, &ec, snib__os_now(), err);
        }
        if (r == 0) {
                c->place = place_of(&url);
                c->url = url_of(&url);
                if (!c->place || !c->url)
                        r = snib__error(err, SNIB_ENOMEM, "no memory for a client");
        }
        snib__url_wipe(&url);
        return r;
}

static void core_start(struct snib_client *c, int64_t timeout_ms)
{
        const struct snib__facts *f = c->engine->ops->facts(c->engine);
        struct snib__core_config config = {.queues = f->queues,
                                           .watches = f->traits & SNIB__TRAIT_WATCH,
                                           .token_block = f->token_block,
                                           .poll = f->poll,
                                           .renewals = SNIB__RENEWALS_MAX,
                                           .phases = SNIB__PHASES,
                                           .neighbours = SNIB__NEIGHBOURS,
                                           .op_timeout = timeout_ms * SNIB__MS,
                                           .who = &c->who};

        c->timeout = timeout_ms * SNIB__MS;
        if (snib__os_random(&config.seed, sizeof(config.seed)) < 0)
                config.seed = (uint64_t)snib__os_now(); /* jitter only */
        snib__core_init(&c->core, &config);
}

static int link_wait(struct snib_client *c, int64_t open_ms, struct snib_error *err)
{
        snib__ns limit = open_ms ? snib__min(open_ms * SNIB__MS, c->timeout) : c->timeout;
        struct snib__wait w = {.deadline = snib__after(snib__os_now(), limit)};
        struct snib__fault *f = &c->link_fault;

        snib__client_lock(c);
        c->opener = &w;
        snib__drive_wait(c, &w);
        c->opener = NULL;
        snib__client_unlock(c);
        if (!w.done)
                return snib__error(err, SNIB_EUNREACHABLE,
                                   "the engine did not answer within %lld ms; check the address, or allow more time",
                                   (long long)(limit / SNIB__MS));
        return f->code ? snib__error_engine(err, f->code, f->engine_code, "%s",
                                            f->text[0] ? f->text : snib__strerror(f->code))
                       : 0;
}

static void client_init(struct snib_client *c, const struct snib__client_config *config)
{
        pthread_mutexattr_t attributes;

        /* Held for a microsecond or two: whoever finds it taken does better to look again than to
         * sleep. */
        (void)pthread_mutexattr_init(&attributes);
        (void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
        (void)pthread_mutex_init(&c->lock, &attributes);
        (void)pthread_mutexattr_destroy(&attributes);
        c->threads = config->threads;
        c->lease = config->lease;
        c->trace = config->trace;
        c->trace_arg = config->trace_arg;
        c->wake_fd = c->timer.fd = c->epoll = c->keeper.wake_fd = c->keeper.timer.fd = -1;
        c->timer.due = SNIB__NEVER;
        c->keeper.always = config->threads == SNIB_THREADS_IO;
        snib__baton_init(&c->baton);
        snib__list_init(&c->members);
        snib__list_init(&c->grants);
        snib__list_init(&c->questions);
        snib__list_init(&c->listings);
        snib__list_init(&c->asyncs);
        snib__list_init(&c->dispatcher.queue);
        who_fill(&c->who, config->label);
}

/* Copes with any half-made client. In a forked child the engine is left alone: what it shares with
 * the parent is not ours. */
static struct snib_client *client_free(struct snib_client *c)
{
        if (!c)
                return NULL;
        if (c->engine && !atomic_load(&c->inert))
                c->engine->ops->close(c->engine);
        snib__pool_done(c);
        snib__os_close(&c->wake_fd);
        snib__os_close(&c->timer.fd);
        snib__os_close(&c->epoll);
        snib__os_close(&c->keeper.wake_fd);
        snib__os_close(&c->keeper.timer.fd);
        if (!atomic_load(&c->inert))
                (void)pthread_mutex_destroy(&c->lock);
        free(c->place);
        free(c->url);
        free(c);
        return NULL;
}

static void client_freep(struct snib_client **c)
{
        (void)client_free(*c);
}

int snib__client_open(struct snib_client **ret, const struct snib__client_config *config, struct snib_error *err)
{
        struct snib_client *made = snib__alloc(sizeof(*made));
        int64_t timeout_ms;
        int r;

        if (!made)
                return snib__error(err, SNIB_ENOMEM, "no memory for a client");
        client_init(made, config);
        _cleanup_(client_freep) struct snib_client *c = made;

        if ((r = uuid_make(c->uuid, err)) < 0 || (r = descriptors_open(c, err)) < 0 ||
            (r = engine_open(c, config, &timeout_ms, err)) < 0)
                return r;
        core_start(c, timeout_ms);
        if ((r = snib__registry_add(c)) < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, -r, "pthread_key_create");
        r = link_wait(c, config->open_ms, err);
        if (config->unreachable_ok && (r == SNIB_EUNREACHABLE || r == SNIB_ENOTREADY))
                r = 0;
        if (r == 0 && c->keeper.always)
                r = snib__keeper_start(c, err);
        if (r < 0) {
                snib__registry_remove(c);
                return r;
        }
        snib__client_trace(c, "open uuid=%s engine=%s", c->uuid, c->engine->ops->facts(c->engine)->info.name);
        *ret = TAKE(c);
        return 0;
}

/* Listings are not core's: what waits for one ends here. */
static void listings_end(struct snib_client *c)
{
        for (struct snib__inventory *l = atomic_load(&c->listings_all); l; l = l->next_all) {
                if (!l->wait)
                        continue;
                l->result = SNIB_ECLOSED;
                snib__wait_finish(c, l->wait);
        }
}

/* Ends all calls, releases all holds; waits for at most one time-out that what was held is said to
 * be released, and not for what was withdrawn or lost before. Then waits for the threads that were
 * inside to have left. */
static void drain(struct snib_client *c)
{
        struct snib__wait w = {.deadline = snib__after(snib__os_now(), c->timeout)};

        snib__client_lock(c);
        c->closing = true;
        c->closer = &w;
        snib__core_close(&c->core, snib__os_now());
        listings_end(c);
        snib__drive_step(c);
        w.done = c->core.farewells == 0;
        snib__drive_wait(c, &w);
        c->closer = NULL;
        snib__members_closed(c);
        snib__drive_settle(c);
        snib__client_unlock(c);
        while (atomic_load(&c->inside) > 0)
                snib__os_yield(); /* they have their answers and are on their way out */
}

void snib__client_close(struct snib_client *c)
{
        if (atomic_load(&c->inert)) {
                (void)client_free(c);
                return;
        }
        snib__registry_remove(c);
        drain(c);
        snib__dispatch_stop(c);
        snib__keeper_stop(c);
        snib__client_trace(c, "close uuid=%s", c->uuid);
        (void)client_free(c);
}
