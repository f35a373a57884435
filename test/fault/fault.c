/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What fault.h promises: asserting wrappers of the public calls, and INFO. Not a second client.
 * Called on the main thread of a test unless noted; loss callbacks come from the library's threads.
 */

#include "fault.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t fault_lease_ms(void)
{
        return 600 * wait_slow();
}

int64_t fault_late_ms(void)
{
        return 300 * wait_slow();
}

snib_client *fault_open(const char *url, int64_t timeout_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_options o = {.size = sizeof(struct snib_options), .timeout_ms = timeout_ms, .label = "fault"};
        snib_client *client = NULL;
        int r = snib_open(&client, url, &o, &err);

        if (r < 0)
                fail_msg("open %s: %s: %s", url, snib_error_name(r), err.text);
        return client;
}

snib_lock *fault_lock_with(snib_client *client, const char *name, const struct snib_lock_options *options)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_lock *lock = NULL;
        int r = snib_lock_new(client, name, options, &lock, &err);

        if (r < 0)
                fail_msg("lock %s: %s: %s", name, snib_error_name(r), err.text);
        return lock;
}

snib_lock *fault_lock(snib_client *client, const char *name, const char *owner, int64_t lease_ms)
{
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options),
                                      .owner = owner,
                                      .lease_ms = lease_ms ? lease_ms : fault_lease_ms()};

        return fault_lock_with(client, name, &o);
}

struct fault_pair fault_pair(const char *name, int64_t lease_ms)
{
        struct fault_pair p = {.server = fault_server(NULL)};

        p.a = fault_open(redis_server_url(p.server), 0);
        p.b = fault_open(redis_server_url(p.server), 0);
        p.lock = fault_lock(p.a, name, "a", lease_ms);
        p.other = fault_lock(p.b, name, "b", lease_ms);
        return p;
}

void fault_pair_done(struct fault_pair *p)
{
        snib_lock_free(p->other);
        snib_lock_free(p->lock);
        snib_close(p->b);
        snib_close(p->a);
        redis_server_free(p->server);
}

snib_grant *fault_acquire(snib_lock *lock, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *grant = NULL;
        int r = snib_lock_acquire(lock, wait_ms * wait_slow(), &grant, &err);

        if (r != 1)
                fail_msg("acquire: %d %s: %s", r, snib_error_name(r), err.text);
        assert_non_null(grant);
        assert_true(snib_grant_valid(grant));
        assert_true(snib_grant_token(grant) > 0);
        return grant;
}

int64_t fault_passes(snib_lock *lock, int64_t wait_ms)
{
        snib_grant *grant = fault_acquire(lock, wait_ms);
        int64_t token = snib_grant_token(grant);

        assert_result(snib_grant_release(grant, NULL), 1);
        return token;
}

static void note_loss(void *arg, snib_grant *grant, int reason)
{
        struct fault_loss *loss = arg;

        atomic_store(&loss->valid, snib_grant_valid(grant));
        atomic_store(&loss->at_ms, wait_now_ms());
        atomic_store(&loss->reason, reason);
        atomic_fetch_add(&loss->calls, 1);
}

void fault_watch(snib_grant *grant, struct fault_loss *loss)
{
        *loss = (struct fault_loss){.calls = 0};
        assert_result(snib_grant_on_loss(grant, note_loss, loss, NULL), 0);
        assert_true(snib_grant_loss_fd(grant) >= 0);
}

int fault_lost(snib_grant *grant, struct fault_loss *loss, int64_t ms)
{
        if (!eventually(atomic_load(&loss->calls) > 0, ms))
                fail_msg("no loss was told within %lld ms; valid %d, left %lld", (long long)ms, snib_grant_valid(grant),
                         (long long)snib_grant_left_ms(grant));
        assert_true(wait_readable(snib_grant_loss_fd(grant), 1000));
        assert_int_equal(atomic_load(&loss->calls), 1);
        assert_false(atomic_load(&loss->valid));
        assert_false(snib_grant_valid(grant));
        assert_int_equal(snib_grant_loss(grant), atomic_load(&loss->reason));
        return atomic_load(&loss->reason);
}

static void *wait_for_lock(void *arg)
{
        struct fault_waiter *w = arg;

        w->result = snib_lock_acquire(w->lock, w->wait_ms, &w->grant, NULL);
        w->got_ms = wait_now_ms();
        atomic_store(&w->done, true);
        return NULL;
}

void fault_wait(struct fault_waiter *w, snib_lock *lock, int64_t wait_ms)
{
        *w = (struct fault_waiter){.lock = lock, .wait_ms = wait_ms};
        assert_int_equal(pthread_create(&w->thread, NULL, wait_for_lock, w), 0);
}

int fault_join(struct fault_waiter *w)
{
        pthread_join(w->thread, NULL);
        return w->result;
}

int fault_run(const char *name, struct CMUnitTest *tests, int count, int of_server)
{
        const char *why = redis_server_unavailable();

        if (of_server == count && redis_server_skips_all())
                return 0;
        if (why && of_server)
                printf("# the last %d tests are left out: %s\n", of_server, why);
        return _cmocka_run_group_tests(name, tests, (size_t)(why ? count - of_server : count), NULL, NULL);
}

static struct redis_server *server(const char *const *args, bool tcp)
{
        return redis_server_start(&(struct redis_server_options){.tcp = tcp, .args = args});
}

struct redis_server *fault_server(const char *const *args)
{
        return server(args, false);
}

struct redis_server *fault_server_tcp(const char *const *args)
{
        return server(args, true);
}

bool fault_key(struct redis_server *s, const char *name)
{
        return redis_server_int(s, "EXISTS %s", name) == 1;
}

long long fault_pttl(struct redis_server *s, const char *name)
{
        return redis_server_int(s, "PTTL %s", name);
}

/* The number that follows `key` in an answer of INFO. */
static long long number_after(redisReply *r, const char *key)
{
        const char *at = r && r->type == REDIS_REPLY_STRING ? strstr(r->str, key) : NULL;
        long long n = at ? strtoll(at + strlen(key), NULL, 10) : -1;

        freeReplyObject(r);
        return n;
}

long long fault_calls(struct redis_server *s, const char *command)
{
        char key[64];
        long long n;

        snprintf(key, sizeof(key), "cmdstat_%s:calls=", command);
        n = number_after(redis_server_do(s, "INFO commandstats"), key);
        return n < 0 ? 0 : n;
}

long long fault_info(struct redis_server *s, const char *field)
{
        char key[64];

        snprintf(key, sizeof(key), "\n%s:", field);
        return number_after(redis_server_do(s, "INFO everything"), key);
}

void fault_done(redisReply *reply, const char *what)
{
        if (!reply)
                fail_msg("%s: the server cannot be reached", what);
        else if (reply->type == REDIS_REPLY_ERROR)
                fail_msg("%s: %s", what, reply->str);
        freeReplyObject(reply);
}

long long fault_kill(struct redis_server *s, const char *type)
{
        return redis_server_int(s, "CLIENT KILL TYPE %s SKIPME yes", type);
}

long long fault_subscribers(struct redis_server *s, const char *name)
{
        redisReply *r = redis_server_do(s, "PUBSUB NUMSUB redisson_lock__channel:{%s}", name);
        long long n = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 ? r->element[1]->integer : -1;

        freeReplyObject(r);
        return n;
}

long fault_memory_kb(const char *what)
{
        FILE *f = fopen("/proc/self/status", "re");
        char line[256];
        long kb = 0;

        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                if (!strncmp(line, what, strlen(what)))
                        kb = strtol(line + strlen(what), NULL, 10);
        fclose(f);
        return kb;
}
