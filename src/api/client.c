/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/client.h: opening, closing, and driving by an event loop. Checks and conversions only; what
 * a client is stands in runtime/client.h. Any thread.
 */

#include "api/internal.h"
#include "base/duration.h"
#include "base/error.h"
#include <stdlib.h>

int snib_duration_parse(const char *text, int64_t *ret_ms)
{
        return text && ret_ms ? snib__duration_parse(text, ret_ms) : SNIB_EINVAL;
}

static int threads_check(int threads, struct snib_error *err)
{
        if (threads >= SNIB_THREADS_KEEPER && threads <= SNIB_THREADS_NONE)
                return 0;
        return snib__error(err, SNIB_EINVAL,
                           "options.threads is %d; use SNIB_THREADS_KEEPER, SNIB_THREADS_IO or SNIB_THREADS_NONE",
                           threads);
}

static int timeout_check(int64_t timeout_ms, struct snib_error *err)
{
        if (timeout_ms >= 0)
                return 0;
        return snib__error(err, SNIB_EINVAL, "options.timeout_ms is %lld; use a positive number, or 0 for the default",
                           (long long)timeout_ms);
}

static int spin_check(int64_t spin_us, struct snib_error *err)
{
        if (spin_us >= SNIB_SPIN_OFF && spin_us <= SNIB_SPIN_MAX_US)
                return 0;
        return snib__error(err, SNIB_EINVAL, "options.spin_us is %lld; use 0 to %lld microseconds, or SNIB_SPIN_OFF",
                           (long long)spin_us, (long long)SNIB_SPIN_MAX_US);
}

static int open_check(int64_t open_ms, struct snib_error *err)
{
        if (open_ms >= 0 && open_ms <= INT32_MAX)
                return 0;
        return snib__error(err, SNIB_EINVAL, "options.open_ms is %lld; use 1 to %d milliseconds, or 0 for no limit",
                           (long long)open_ms, INT32_MAX);
}

static const char *url_choose(const char *url)
{
        const char *env;

        if (url)
                return url;
        env = getenv("SNIB_URL");
        return env && *env ? env : "local:";
}

int snib_open(snib_client **ret_client, const char *url, const struct snib_options *options, struct snib_error *err)
{
        struct snib_options o;
        struct snib__client_config config;
        int r;

        if (!ret_client)
                return snib__null("ret_client", err);
        if ((r = snib__options_copy(&o, sizeof(o), SNIB__FIRST_OPTIONS, options, "options", err)) < 0 ||
            (r = threads_check(o.threads, err)) < 0 || (r = timeout_check(o.timeout_ms, err)) < 0 ||
            (r = spin_check(o.spin_us, err)) < 0 || (r = open_check(o.open_ms, err)) < 0 ||
            (r = snib__lease_check(o.lease_ms, "options.lease_ms", err)) < 0)
                return r;
        config = (struct snib__client_config){.url = url_choose(url),
                                              .threads = o.threads,
                                              .lease = (o.lease_ms ? o.lease_ms : SNIB_LEASE_DEFAULT_MS) * SNIB__MS,
                                              .timeout_ms = o.timeout_ms,
                                              .label = o.label,
                                              .unreachable_ok = o.unreachable_ok != 0,
                                              .spin_us = o.spin_us,
                                              .open_ms = o.open_ms,
                                              .trace = o.trace,
                                              .trace_arg = o.trace_arg};
        return snib__client_open(ret_client, &config, err);
}

void snib_close(snib_client *client)
{
        if (client)
                snib__client_close(client);
}

const char *snib_client_url(const snib_client *client)
{
        return client ? client->url : "";
}

int snib_local_directory(char *ret_path, size_t size, struct snib_error *err)
{
        if (!ret_path)
                return snib__null("ret_path", err);
        return snib__engine_find("local")->directory(ret_path, size, err);
}

/* The functions of the loop have no `err`: 0 or a code. */
static int loop_check(const snib_client *client)
{
        if (!client)
                return SNIB_EINVAL;
        return snib__alive(client, NULL);
}

int snib_fd(snib_client *client)
{
        int r = loop_check(client);

        if (r < 0)
                return r;
        return client->threads == SNIB_THREADS_NONE ? snib__loop_fd(client) : SNIB_EUNSUPPORTED;
}

int snib_events(snib_client *client)
{
        int r = loop_check(client);

        return r < 0 ? r : POLLIN;
}

int64_t snib_timeout_ms(snib_client *client)
{
        int r = loop_check(client);

        if (r < 0)
                return r == SNIB_EFORK ? -1 : r;
        return client->threads == SNIB_THREADS_NONE ? snib__loop_timeout_ms(client) : -1;
}

int snib_process(snib_client *client)
{
        int r = loop_check(client);

        if (r < 0)
                return r;
        return client->threads == SNIB_THREADS_NONE ? snib__loop_process(client) : 0;
}
