/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A crowd of threads that wait for one lock on a real Redis: they hold one subscription together,
 * and a release hands the lock to one of them, once. Counted at the server: subscriptions,
 * connections and scripts run; and in the core: questions that nothing but the clock asked, the
 * safety net, which are no wake-ups.
 */

#include "lib/redis_server.h"
#include "lib/wait.h"
#include "runtime/client.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CROWD 300

static struct redis_server *server;

struct crowd {
        snib_client *client;
        snib_lock *lock;
        int64_t last; /* plain: the lock protects it */
        int served;
        atomic_int failed;
};

static void *come_and_go(void *arg)
{
        struct crowd *c = arg;
        snib_grant *g = NULL;

        if (snib_lock_acquire(c->lock, SNIB_FOREVER, &g, NULL) != 1) {
                atomic_fetch_add(&c->failed, 1);
                return NULL;
        }
        if (snib_grant_token(g) <= c->last)
                atomic_fetch_add(&c->failed, 1);
        c->last = snib_grant_token(g);
        c->served++;
        if (snib_grant_release(g, NULL) != 1)
                atomic_fetch_add(&c->failed, 1);
        return NULL;
}

/* How many wait with nothing under way. */
static int at_rest(snib_client *c)
{
        int count = 0;

        snib__client_lock(c);
        snib__list_each (it, &c->core.holds)
                count += snib__container(it, struct snib__hold, all)->state == SNIB__WAITING;
        if (c->core.outstanding)
                count = -1;
        snib__client_unlock(c);
        return count;
}

static int64_t polls(snib_client *c)
{
        int64_t n;

        snib__client_lock(c);
        n = (int64_t)c->core.polls;
        snib__client_unlock(c);
        return n;
}

/* The number behind a word of the server's INFO; 0: the word is not there. */
static int64_t info_number(const char *section, const char *word)
{
        redisReply *r = redis_server_do(server, "INFO %s", section);
        const char *at = r && r->str ? strstr(r->str, word) : NULL;
        int64_t n = at ? strtoll(at + strlen(word), NULL, 10) : 0;

        freeReplyObject(r);
        return n;
}

/* How many scripts the server has run. */
static int64_t scripts(void)
{
        return info_number("commandstats", "cmdstat_eval:calls=") +
               info_number("commandstats", "cmdstat_evalsha:calls=");
}

/* The subscribers of all channels together. */
static int64_t subscriptions(void)
{
        redisReply *channels = redis_server_do(server, "PUBSUB CHANNELS *");
        int64_t n = 0;

        for (size_t i = 0; channels && i < channels->elements; i++) {
                redisReply *r = redis_server_do(server, "PUBSUB NUMSUB %s", channels->element[i]->str);

                n += r && r->elements == 2 ? r->element[1]->integer : 1000;
                freeReplyObject(r);
        }
        freeReplyObject(channels);
        return n;
}

static void a_crowd_holds_one_subscription_and_one_asks_for_all(void **state)
{
        struct crowd c = {0};
        pthread_t t[CROWD];
        snib_grant *g;
        int64_t run, polled;

        assert_int_equal(snib_open(&c.client, redis_server_url(server), NULL, NULL), 0);
        assert_int_equal(snib_lock_new(c.client, "wanted by all", NULL, &c.lock, NULL), 0);
        assert_int_equal(snib_lock_try(c.lock, &g, NULL), 1);
        run = scripts();
        for (int i = 0; i < CROWD; i++)
                assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &c), 0);
        /* The lock's, that it is ours, and the client's own: asked for when the lock was found
         * taken. */
        assert_true(eventually(at_rest(c.client) == CROWD && subscriptions() == 3, 60000));
        assert_int_equal(info_number("clients", "connected_clients:"), 3); /* two, and the test's own */

        /* One of them asked, and asked again when it had subscribed. */
        polled = polls(c.client);
        assert_true(scripts() - run <= 2 + polled);
        run = scripts();
        c.last = snib_grant_token(g);
        assert_int_equal(snib_grant_release(g, NULL), 1);
        for (int i = 0; i < CROWD; i++)
                (void)pthread_join(t[i], NULL);
        run = scripts() - run;
        /* A poll that was under way when they were counted may be run by the server after. */
        polled = polls(c.client) - polled + 1;
        print_message("# %d threads: %lld scripts, %lld of them polls\n", CROWD, (long long)run, (long long)polled - 1);
        assert_int_equal(atomic_load(&c.failed), 0);
        assert_int_equal(c.served, CROWD);
        /* For each hold that the server gave: its acquire, its release, and the question of the
         * next who asks for all.
         */
        assert_true(run - polled <= 3 * (CROWD + 1));
        assert_true(eventually(subscriptions() == 1, 10000));
        snib_lock_free(c.lock);
        snib_close(c.client);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_crowd_holds_one_subscription_and_one_asks_for_all),
        };
        int r;

        if (redis_server_skips_all())
                return 0;
        server = redis_server_start(&(struct redis_server_options){.tcp = true});
        r = cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
        redis_server_free(server);
        return r;
}
