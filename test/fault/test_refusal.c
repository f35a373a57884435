/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A real server that says no: full, read-only, without replicas, other password, missing right, a
 * key of another type. For each: what acquire answers, that release works where it can, and that a
 * hold is never called lost while its lease runs.
 */

#include "fault.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A server, a client on it and two owners of one name. */
struct scene {
        struct redis_server *server;
        snib_client *client;
        snib_lock *lock;
        snib_lock *other;
        struct snib_error err;
};

static void scene_begin(struct scene *s, const char *const *args, int64_t lease_ms)
{
        *s = (struct scene){.server = fault_server(args), .err = SNIB_ERROR_INIT};
        s->client = fault_open(redis_server_url(s->server), 500);
        s->lock = fault_lock(s->client, "stock", "a", lease_ms);
        s->other = fault_lock(s->client, "stock", "b", lease_ms);
}

static void scene_end(struct scene *s)
{
        snib_lock_free(s->lock);
        snib_lock_free(s->other);
        snib_close(s->client);
        redis_server_free(s->server);
}

/* One try that must fail with a negative code, an explaining text, and nothing held. */
static int refused(struct scene *s, snib_lock *lock, const char *says)
{
        snib_grant *grant = NULL;
        int r = snib_lock_try(lock, &grant, &s->err);

        if (r >= 0)
                fail_msg("the try answered %d", r);
        assert_null(grant);
        assert_int_equal(s->err.code, r);
        if (!strcasestr(s->err.text, says))
                fail_msg("%s: the text does not say \"%s\": %s", snib_error_name(r), says, s->err.text);
        return r;
}

static void F48_a_full_server_renews_and_releases(void **state)
{
        struct scene s;
        struct fault_loss loss;

        scene_begin(&s, NULL, 0);
        snib_grant *grant = fault_acquire(s.lock, 0);
        snib_lock *free_one = fault_lock(s.client, "another", "a", 0);
        fault_watch(grant, &loss);
        fault_do(s.server, "CONFIG SET maxmemory 1");
        int r = refused(&s, free_one, "OOM");
        assert_true(snib_error_class(r) == SNIB_CLASS_REFUSED || snib_error_class(r) == SNIB_CLASS_UNAVAILABLE);
        assert_false(fault_key(s.server, "another"));
        assert_false(eventually(atomic_load(&loss.calls) > 0, fault_lease_ms() * 2)); /* renewed all the while */
        assert_true(snib_grant_valid(grant));
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_false(fault_key(s.server, "stock"));
        fault_do(s.server, "CONFIG SET maxmemory 0");
        (void)fault_passes(free_one, 2000);
        snib_lock_free(free_one);
        scene_end(&s);
}

static void F48_a_full_server_releases_fenced_locks(void **state)
{
        struct scene s;
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FENCED, .owner = "f"};

        scene_begin(&s, NULL, 0);
        snib_lock *fenced = fault_lock_with(s.client, "fenced", &o);
        snib_grant *grant = fault_acquire(fenced, 0);
        int64_t token = snib_grant_token(grant);
        fault_do(s.server, "CONFIG SET maxmemory 1");
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_false(fault_key(s.server, "fenced"));
        (void)refused(&s, fenced, "OOM");
        assert_false(fault_key(s.server, "fenced"));
        fault_do(s.server, "CONFIG SET maxmemory 0");
        assert_true(fault_passes(fenced, 2000) > token);
        snib_lock_free(fenced);
        scene_end(&s);
}

/* The server becomes a replica of nobody: it can be read, not written. */
static void F46_a_read_only_server_is_waited_for(void **state)
{
        static const char *const stale[] = {"yes", "no"}; /* -READONLY, -MASTERDOWN */

        for (int i = 0; i < 2; i++) {
                struct scene s;
                struct fault_loss loss;

                scene_begin(&s, NULL, 20000);
                snib_grant *grant = fault_acquire(s.lock, 0);
                snib_lock *free_one = fault_lock(s.client, "another", "a", 20000);
                fault_watch(grant, &loss);
                fault_do(s.server, "CONFIG SET replica-serve-stale-data %s", stale[i]);
                fault_do(s.server, "REPLICAOF 127.0.0.1 1");
                assert_int_equal(snib_error_class(refused(&s, free_one, i ? "MASTERDOWN" : "READONLY")),
                                 SNIB_CLASS_UNAVAILABLE);
                assert_true(snib_grant_renew(grant, NULL) < 0);
                assert_true(snib_grant_valid(grant)); /* its lease runs */
                assert_int_equal(atomic_load(&loss.calls), 0);
                fault_do(s.server, "REPLICAOF NO ONE");
                assert_true(eventually(snib_grant_renew(grant, NULL) == 1, 5000));
                (void)fault_passes(free_one, 5000);
                assert_result(snib_grant_release(grant, NULL), 1);
                snib_lock_free(free_one);
                scene_end(&s);
        }
}

static void F46_a_server_read_only_for_too_long_is_a_loss(void **state)
{
        struct scene s;
        struct fault_loss loss;
        int64_t acquired;

        scene_begin(&s, NULL, 0);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_watch(grant, &loss);
        fault_do(s.server, "REPLICAOF 127.0.0.1 1");
        acquired = wait_now_ms();
        (void)fault_lost(grant, &loss, fault_lease_ms() * 2);
        assert_true(atomic_load(&loss.at_ms) < acquired + fault_lease_ms() + fault_late_ms());
        fault_do(s.server, "REPLICAOF NO ONE");
        assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
        (void)fault_passes(s.other, 5000);
        scene_end(&s);
}

static void F49_noreplicas_on_release_abandons_the_hold(void **state)
{
        struct scene s;
        int64_t lease = fault_lease_ms() * 2;

        scene_begin(&s, NULL, lease);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_do(s.server, "CONFIG SET min-replicas-to-write 1");
        int64_t start = wait_now_ms();
        int r = snib_grant_release(grant, &s.err);
        assert_true(r < 0);
        assert_true(r != SNIB_ENOTOWNER);
        if (!strstr(s.err.text, "NOREPLICAS") && r != SNIB_EUNKNOWN)
                fail_msg("%s: %s", snib_error_name(r), s.err.text);
        /* Nothing renews it: the lease that ran at the release ends it. */
        assert_true(eventually(!fault_key(s.server, "stock"), lease * 2));
        assert_true(wait_now_ms() - start <= lease + fault_late_ms());
        fault_do(s.server, "CONFIG SET min-replicas-to-write 0");
        (void)fault_passes(s.other, 2000);
        scene_end(&s);
}

static void F49_noreplicas_that_pass_let_the_release_through(void **state)
{
        struct scene s;

        scene_begin(&s, NULL, 20000);
        snib_grant *grant = fault_acquire(s.lock, 0);
        fault_do(s.server, "CONFIG SET min-replicas-to-write 1");
        assert_true(snib_grant_release(grant, NULL) < 0);
        assert_true(fault_key(s.server, "stock"));
        fault_do(s.server, "CONFIG SET min-replicas-to-write 0");
        assert_true(
            eventually(!fault_key(s.server, "stock"), 5000)); /* repeated in the background, long before its lease */
        scene_end(&s);
}

static void F55_no_password(void **state)
{
        static const char *const args[] = {"--requirepass", "Secret-1", NULL};
        struct redis_server *server = fault_server(args);
        struct snib_error err = SNIB_ERROR_INIT;
        char url[256];
        snib_client *none = NULL;

        assert_result(snib_open(&none, redis_server_url(server), NULL, &err), SNIB_EAUTH);
        snprintf(url, sizeof(url), "redis+unix://:Wrong-2@%s", redis_server_socket(server));
        assert_result(snib_open(&none, url, NULL, &err), SNIB_EAUTH);
        assert_null(strstr(err.text, "Wrong-2"));
        snprintf(url, sizeof(url), "redis+unix://:Secret-1@%s", redis_server_socket(server));
        snib_client *client = fault_open(url, 0);
        snib_lock *lock = fault_lock(client, "stock", "a", 0);
        (void)fault_passes(lock, 0);
        snib_lock_free(lock);
        snib_close(client);
        redis_server_free(server);
}

static void F55_a_rotated_password_refuses_reconnection_only(void **state)
{
        static const char *const args[] = {"--requirepass", "Old-1", NULL};
        struct redis_server *server = fault_server(args);
        struct snib_error err = SNIB_ERROR_INIT;
        char url[256];
        struct fault_loss loss;
        snib_grant *none = NULL;

        redis_server_auth(server, "Old-1");
        snprintf(url, sizeof(url), "redis+unix://:Old-1@%s", redis_server_socket(server));
        snib_client *client = fault_open(url, 500);
        snib_lock *lock = fault_lock(client, "stock", "a", 0);
        snib_lock *kept = fault_lock(client, "kept", "a", 0);
        snib_grant *grant = fault_acquire(lock, 0);
        snib_grant *later = fault_acquire(kept, 0);
        fault_do(server, "CONFIG SET requirepass New-2");
        assert_result(snib_grant_renew(grant, NULL), 1);
        assert_result(snib_grant_release(grant, NULL), 1); /* the connection stays who it was */

        fault_watch(later, &loss);
        int64_t cut = wait_now_ms();
        assert_true(fault_kill(server, "normal") >= 1);
        (void)fault_lost(later, &loss, fault_lease_ms() * 2);
        assert_true(atomic_load(&loss.at_ms) <= cut + fault_lease_ms() + fault_late_ms());
        int r = snib_lock_try(lock, &none, &err);
        assert_true(r == SNIB_EAUTH || r == SNIB_EUNREACHABLE);
        assert_null(strstr(err.text, "Old-1"));
        assert_result(snib_grant_release(later, NULL), SNIB_ELOST);

        fault_do(server, "CONFIG SET requirepass Old-1"); /* the operator takes it back */
        assert_true(fault_passes(lock, 5000) > 0);
        snib_lock_free(kept);
        snib_lock_free(lock);
        snib_close(client);
        redis_server_free(server);
}

static void F55_both_connections_authenticate_again(void **state)
{
        struct redis_server *server = fault_server(NULL);
        char url[256];

        fault_do(server, "ACL SETUSER app on >one ~* &* +@all");
        snprintf(url, sizeof(url), "redis+unix://app:one@%s", redis_server_socket(server));
        snib_client *client = fault_open(url, 500);
        snib_lock *lock = fault_lock(client, "stock", "a", 20000);
        snib_lock *other = fault_lock(client, "stock", "b", 20000);
        for (int i = 0; i < 3; i++) {
                snib_grant *grant = fault_acquire(lock, 2000);
                snib_grant *none = NULL;

                assert_result(snib_lock_acquire(other, 50 * wait_slow(), &none, NULL),
                              0); /* so that it has subscribed */
                assert_true(redis_server_int(server, "CLIENT KILL USER app") >= 1);
                assert_true(eventually(snib_grant_renew(grant, NULL) == 1, 5000));
                assert_result(snib_lock_acquire(other, 50 * wait_slow(), &none, NULL), 0);
                assert_result(snib_grant_release(grant, NULL), 1);
        }
        assert_true(fault_calls(server, "auth") + fault_calls(server, "hello") >= 3);
        snib_lock_free(other);
        snib_lock_free(lock);
        snib_close(client);
        redis_server_free(server);
}

/* A user that lacks one right. `rights` is appended to all rights. */
static snib_client *user_without(struct redis_server *server, const char *rights, int *ret_open, struct snib_error *err)
{
        struct snib_options o = {.size = sizeof(struct snib_options), .timeout_ms = 500};
        char rule[256];
        char url[256];
        char *rest = NULL;
        const char *argv[16] = {"ACL", "SETUSER", "app", "reset", "on", ">pw", "~*", "&*", "+@all"};
        int argc = 9;
        snib_client *client = NULL;

        snprintf(rule, sizeof(rule), "%s", rights);
        for (char *word = strtok_r(rule, " ", &rest); word && argc < 16; word = strtok_r(NULL, " ", &rest))
                argv[argc++] = word;
        redisContext *admin = redisConnectUnix(redis_server_socket(server));
        assert_non_null(admin);
        fault_done(redisCommandArgv(admin, argc, argv, NULL), rights);
        redisFree(admin);
        snprintf(url, sizeof(url), "redis+unix://app:pw@%s", redis_server_socket(server));
        *ret_open = snib_open(&client, url, &o, err);
        return client;
}

/* Each command the library needs, taken away: the error names it, and no key is left behind that
 * only an operator can remove. */
static void F144_a_missing_right_is_named(void **state)
{
        static const struct {
                const char *rights, *says;
        } cases[] = {{"-evalsha -eval", "eval"}, {"-pexpire", "+pexpire"}, {"-hset", "+hset"},
                     {"-hdel", "+hdel"},         {"-hlen", "+hlen"},       {"resetkeys ~other:*", "~stock"}};
        struct redis_server *server = fault_server(NULL);

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct snib_error err = SNIB_ERROR_INIT;
                int r;
                snib_grant *grant = NULL;
                snib_client *client = user_without(server, cases[i].rights, &r, &err);

                if (r == 0) {
                        snib_lock *lock = fault_lock(client, "stock", "a", fault_lease_ms());
                        r = snib_lock_try(lock, &grant, &err);
                        if (r == 1)
                                r = snib_grant_release(grant, &err);
                        snib_lock_free(lock);
                }
                if (r != SNIB_EPERM || !strcasestr(err.text, cases[i].says))
                        fail_msg("%s: %s: %s", cases[i].rights, snib_error_name(r), err.text);
                snib_close(client);
                if (!eventually(!fault_key(server, "stock"), fault_lease_ms() * 2))
                        fail_msg("%s: the lock stays, PTTL %lld", cases[i].rights, fault_pttl(server, "stock"));
        }
        redis_server_free(server);
}

/* Without the right to publish or subscribe waiters are slower; nothing else changes. */
static void F144_no_channel_rights_cost_speed_only(void **state)
{
        struct redis_server *server = fault_server(NULL);
        struct snib_error err = SNIB_ERROR_INIT;
        int r;
        snib_client *client = user_without(server, "resetchannels", &r, &err);

        assert_result(r, 0);
        snib_lock *lock = fault_lock(client, "stock", "a", 20000);
        snib_lock *other = fault_lock(client, "stock", "b", 20000);
        snib_grant *grant = fault_acquire(lock, 0);
        snib_grant *none = NULL;
        r = snib_lock_acquire(other, 50 * wait_slow(), &none, &err);
        if (r != 0 && r != SNIB_EPERM) /* it may also say that it cannot wait */
                fail_msg("%s: %s", snib_error_name(r), err.text);
        assert_result(snib_grant_release(grant, NULL), 1);
        assert_false(fault_key(server, "stock"));
        (void)fault_passes(other, 3000);
        snib_lock_free(other);
        snib_lock_free(lock);
        snib_close(client);
        redis_server_free(server);
}

/* What is no lock is refused by name and left as it is, by every call. */
static void F52_a_key_of_another_type_is_an_error(void **state)
{
        static const char *const commands[] = {"SET stock 42",
                                               "RPUSH stock a b",
                                               "HSET stock mode read b2a3c0de-1111-4222-8333-444455556666:1 1",
                                               "HSET stock mode write b2a3c0de-1111-4222-8333-444455556666:1:write 1",
                                               "HSET stock f1 1 f2 2",
                                               "HSET stock email a@b.c",
                                               "HSET stock email 1",
                                               "HSET stock b2a3c0de-1111-4222-8333-444455556666:1 0",
                                               "HSET stock b2a3c0de-1111-4222-8333-444455556666:1 x",
                                               "HSET stock mode read",
                                               "HSET stock mode read path /a",
                                               "HSET stock mode dark path /a",
                                               "ZADD stock 1 a"};

        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
                struct scene s;
                struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
                snib_grant *grant = NULL;
                char command[128];

                scene_begin(&s, NULL, 0);
                (void)fault_passes(s.lock, 0);
                snprintf(command, sizeof(command), "%s", commands[i]);
                redisContext *admin = redisConnectUnix(redis_server_socket(s.server));
                fault_done(redisCommand(admin, command), command); /* no % in it */
                redisReply *before = redisCommand(admin, "DUMP stock");
                assert_result(refused(&s, s.lock, "stock"), SNIB_EKIND);
                assert_result(snib_lock_acquire(s.lock, 2000, &grant, &s.err), SNIB_EKIND); /* at once, no hang */
                assert_result(snib_lock_force_release(s.lock, &s.err), SNIB_EKIND);
                int r = snib_lock_query(s.lock, &info, &s.err);
                assert_true(r == SNIB_EKIND || r == 1);
                redisReply *after = redisCommand(admin, "DUMP stock");
                assert_int_equal(before->len, after->len);
                assert_memory_equal(before->str, after->str, before->len);
                freeReplyObject(before);
                freeReplyObject(after);
                redisFree(admin);
                scene_end(&s);
        }
}

static void F52_a_held_key_replaced_is_a_loss(void **state)
{
        static const char *const commands[] = {"SET stock 42", "DEL stock", "RENAME stock elsewhere", "FLUSHALL",
                                               "HSET stock mode read"};

        for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
                struct scene s;
                struct fault_loss loss;
                redisContext *admin;

                scene_begin(&s, NULL, 0);
                snib_grant *grant = fault_acquire(s.lock, 0);
                fault_watch(grant, &loss);
                admin = redisConnectUnix(redis_server_socket(s.server));
                fault_done(redisCommand(admin, commands[i]), commands[i]);
                if (i == 4)
                        fault_done(redisCommand(admin, "HDEL stock %s", snib_grant_owner(grant)), "HDEL");
                int64_t start = wait_now_ms();
                int reason = fault_lost(grant, &loss, fault_lease_ms());
                assert_true(reason == SNIB_LOSS_GONE || reason == SNIB_LOSS_TAKEN || reason == SNIB_LOSS_REFUSED);
                /* Told by the next renewal, a third of the lease; or, where the engine refuses, at
                 * its end. */
                assert_true(atomic_load(&loss.at_ms) - start <= fault_lease_ms() + fault_late_ms());
                assert_result(snib_grant_release(grant, NULL), SNIB_ELOST);
                redisFree(admin);
                scene_end(&s);
        }
}

static void F52_a_waiter_learns_of_the_wrong_type(void **state)
{
        struct scene s;
        snib_grant *none = NULL;

        scene_begin(&s, NULL, 0);
        snib_grant *grant = fault_acquire(s.lock, 0);
        assert_result(snib_lock_try(s.other, &none, NULL), 0);
        fault_do(s.server, "SET stock 42");
        int64_t start = wait_now_ms();
        assert_result(snib_lock_acquire(s.other, 10000, &none, &s.err), SNIB_EKIND);
        assert_true(wait_now_ms() - start < 3000 * wait_slow());
        (void)snib_grant_release(grant, NULL);
        scene_end(&s);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F48_a_full_server_renews_and_releases),
            cmocka_unit_test(F48_a_full_server_releases_fenced_locks),
            cmocka_unit_test(F46_a_read_only_server_is_waited_for),
            cmocka_unit_test(F46_a_server_read_only_for_too_long_is_a_loss),
            cmocka_unit_test(F49_noreplicas_on_release_abandons_the_hold),
            cmocka_unit_test(F49_noreplicas_that_pass_let_the_release_through),
            cmocka_unit_test(F55_no_password),
            cmocka_unit_test(F55_a_rotated_password_refuses_reconnection_only),
            cmocka_unit_test(F55_both_connections_authenticate_again),
            cmocka_unit_test(F144_a_missing_right_is_named),
            cmocka_unit_test(F144_no_channel_rights_cost_speed_only),
            cmocka_unit_test(F52_a_key_of_another_type_is_an_error),
            cmocka_unit_test(F52_a_held_key_replaced_is_a_loss),
            cmocka_unit_test(F52_a_waiter_learns_of_the_wrong_type),
        };

        return fault_run_all("refusal", tests);
}
