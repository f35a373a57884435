/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The Redis engine and what can happen to a real server: killed, stopped, full, flushed, rotated,
 * read-only, busy. Each test has a server of its own. Named after the rows of the fault catalogue.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <snib/error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kit.h"
#include "proc.h"

static struct snib__reply with(struct pump *p, enum snib__verb verb, const char *name, struct snib__id id)
{
        struct snib__op op = pump_op(p, verb, name, id, 30000);

        return pump_do(p, &op);
}

static void refused(struct snib__reply r, int code, const char *part)
{
        assert_int_equal(r.status, SNIB__FAILED);
        if (r.error != code || !strstr(r.error_text, part))
                fail_msg("%d \"%s\", expected %d with \"%s\"", r.error, r.error_text, code, part);
}

static void watch_and_see(struct pump *p, const char *name)
{
        p->engine->ops->watch(p->engine, &(struct snib__topic){.name = {name, strlen(name)}}, pump_now());
        (void)pump_wait(p, SNIB__NOTE_WATCHING);
}

/* A message to the channel of `x` arrives. */
static void notified(struct pump *p)
{
        pump_forget(p);
        assert_int_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 0"), 1);
        (void)pump_wait(p, SNIB__NOTE_CHANGED);
}

static void F48_release_works_on_a_full_server(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__id id = pump_id(p);

        (void)state;
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
        kit_do("CONFIG SET maxmemory-policy noeviction");
        kit_do("CONFIG SET maxmemory 1");
        refused(with(p, SNIB__ACQUIRE, "y", pump_id(p)), SNIB_EREFUSED, "maxmemory");
        assert_int_equal(redis_server_int(kit_server, "EXISTS y"), 0);
        assert_int_equal(with(p, SNIB__RENEW, "x", id).status, SNIB__RENEWED);
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
        assert_int_equal(with(p, SNIB__RELEASE, "x", id).status, SNIB__RELEASED);
        assert_int_equal(redis_server_int(kit_server, "EXISTS x"), 0);
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, "f", pump_id(p), 1000);
        op.kind = SNIB_KIND_FENCED;
        refused(pump_do(p, &op), SNIB_EREFUSED, "maxmemory");
        assert_int_equal(redis_server_int(kit_server, "DBSIZE"), 1); /* the client's own record, from before */
        pump_close(p);
}

static void F51_a_flushed_script_is_sent_again(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__id id = pump_id(p);

        (void)state;
        for (int i = 0; i < 4; i++) {
                assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
                if (i % 2)
                        kit_do("SCRIPT FLUSH");
                assert_int_equal(with(p, SNIB__RENEW, "x", id).status, SNIB__RENEWED);
                assert_int_equal(with(p, SNIB__RELEASE, "x", id).status, SNIB__RELEASED);
                id = pump_id(p);
        }
        pump_close(p);
}

/* An acquire and its release are both under way when the scripts are gone: the release must not be
 * executed first. */
static void F51_a_flushed_script_turns_no_order_round(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__id id = pump_id(p);
        struct snib__op acquire, release;
        uint32_t first, second;

        (void)state;
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
        assert_int_equal(with(p, SNIB__RELEASE, "x", id).status, SNIB__RELEASED);
        kit_do("SCRIPT FLUSH");
        id = pump_id(p);
        acquire = pump_op(p, SNIB__ACQUIRE, "x", id, 30000);
        release = pump_op(p, SNIB__RELEASE, "x", id, 0);
        first = pump_submit(p, &acquire);
        second = pump_submit(p, &release);
        struct snib__reply r = pump_answer(p, first);
        assert_int_equal(r.status, SNIB__FAILED);
        assert_int_equal(r.error, SNIB_ENOTREADY);
        assert_int_equal(pump_answer(p, second).status, SNIB__GONE);
        assert_int_equal(redis_server_int(kit_server, "EXISTS x"), 0);
        pump_close(p);
}

static void F52_other_kinds_of_keys_are_left_alone(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        static const char *const names[] = {"text", "list", "rw", "hash"};

        (void)state;
        kit_do("SET text 1");
        kit_do("RPUSH list 1");
        kit_do("HSET rw mode read b2a3c0de-1111-4222-8333-444455556666:42 1");
        kit_do("HSET hash a 1 b 2");
        for (size_t i = 0; i < 4; i++) {
                struct snib__op op = pump_op(p, SNIB__ACQUIRE, names[i], pump_id(p), 1000);
                refused(pump_do(p, &op), SNIB_EKIND, "use another name, or remove the key");
                op.kind = SNIB_KIND_FENCED;
                refused(pump_do(p, &op), SNIB_EKIND, "use another name, or remove the key");
                refused(with(p, SNIB__FORCE, names[i], op.id), SNIB_EKIND, "use another name, or remove the key");
                refused(with(p, SNIB__QUERY, names[i], op.id), SNIB_EKIND, "use another name, or remove the key");
                refused(with(p, SNIB__RENEW, names[i], op.id), SNIB_EKIND, "use another name, or remove the key");
                refused(with(p, SNIB__RELEASE, names[i], op.id), SNIB_EKIND, "use another name, or remove the key");
        }
        refused(with(p, SNIB__ACQUIRE, "rw", pump_id(p)), SNIB_EKIND, "read-write lock");
        assert_int_equal(redis_server_int(kit_server, "GET text"), 1);
        assert_int_equal(redis_server_int(kit_server, "LLEN list"), 1);
        assert_int_equal(redis_server_int(kit_server, "HLEN rw"), 2);
        assert_int_equal(redis_server_int(kit_server, "HLEN hash"), 2);
        assert_int_equal(redis_server_int(kit_server, "PTTL hash"), -1);
        kit_do("SET redisson_lock_token:{f} x");
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, "f", pump_id(p), 1000);
        op.kind = SNIB_KIND_FENCED;
        refused(pump_do(p, &op), SNIB_EREFUSED, "\"ERR value is not an integer or out of range\"; look");
        assert_int_equal(redis_server_int(kit_server, "EXISTS f"), 0);
        pump_close(p);
}

static void F54_killed_connections_come_back(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__id id = pump_id(p);

        (void)state;
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
        watch_and_see(p, "x");
        kit_do("CLIENT KILL TYPE pubsub");
        (void)pump_wait(p, SNIB__NOTE_WATCHING);
        notified(p);
        kit_do("CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(pump_wait(p, SNIB__NOTE_LINK_DOWN).note.reply.error, SNIB_EUNREACHABLE);
        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        assert_int_equal(with(p, SNIB__RENEW, "x", id).status, SNIB__RENEWED);
        notified(p);
        pump_close(p);
}

static void F55_password(void **state)
{
        char url[256], path[128];
        struct pump *p;
        FILE *file;

        (void)state;
        kit_do("CONFIG SET requirepass one");
        redis_server_auth(kit_server, "one");
        p = pump_open(redis_server_url(kit_server), 1);
        for (int i = 0; i < 2; i++) /* not once and then silence */
                assert_int_equal(pump_wait(p, SNIB__NOTE_LINK_DOWN).note.reply.error, SNIB_EAUTH);
        refused(with(p, SNIB__ACQUIRE, "x", pump_id(p)), SNIB_EUNREACHABLE, "password");
        pump_close(p);
        snprintf(url, sizeof(url), "redis://:wrongsecret@127.0.0.1:%d", redis_server_port(kit_server));
        p = pump_open(url, 1);
        struct pump_note n = pump_wait(p, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.note.reply.error, SNIB_EAUTH);
        assert_null(strstr(n.text, "wrongsecret"));
        pump_close(p);
        snprintf(url, sizeof(url), "redis://default:one@127.0.0.1:%d", redis_server_port(kit_server));
        p = pump_connect(url, 1);
        watch_and_see(p, "x");
        pump_close(p);
        /* Rotation: the file is read again at every dial. */
        snprintf(path, sizeof(path), "%s/password", redis_server_dir(kit_server));
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("one\n", file);
        fclose(file);
        snprintf(url, sizeof(url), "%s?password_file=%s", redis_server_url(kit_server), path);
        p = pump_connect(url, 1);
        watch_and_see(p, "x");
        kit_do("CONFIG SET requirepass two");
        redis_server_auth(kit_server, "two");
        kit_do("CLIENT KILL TYPE normal SKIPME yes");
        assert_int_equal(pump_wait(p, SNIB__NOTE_LINK_DOWN).note.reply.error, SNIB_EUNREACHABLE);
        assert_int_equal(pump_wait(p, SNIB__NOTE_LINK_DOWN).note.reply.error, SNIB_EAUTH);
        file = fopen(path, "w");
        assert_non_null(file);
        fputs("two", file);
        fclose(file);
        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", pump_id(p)).status, SNIB__GRANTED);
        kit_do("CLIENT KILL TYPE pubsub");
        (void)pump_wait(p, SNIB__NOTE_WATCHING);
        pump_close(p);
}

static void F55_F144_missing_rights_are_named(void **state)
{
        char url[128];
        struct pump *p;

        (void)state;
        kit_do("ACL SETUSER few on >secret ~lock* &* +ping +subscribe +unsubscribe");
        snprintf(url, sizeof(url), "redis://few:secret@127.0.0.1:%d", redis_server_port(kit_server));
        p = pump_connect(url, 1);
        refused(with(p, SNIB__ACQUIRE, "lock1", pump_id(p)), SNIB_EPERM, "eval");
        /* What a user needs, and no more: the client's own record may be missing. */
        kit_do("ACL SETUSER few +eval +evalsha +hlen +hset +hget +hgetall +hexists +hdel +del +pexpire +pttl +time "
               "+publish +pubsub|numsub");
        struct snib__id id = pump_id(p);
        assert_int_equal(with(p, SNIB__ACQUIRE, "lock1", id).status, SNIB__GRANTED);
        assert_int_equal(with(p, SNIB__QUERY, "lock1", id).status, SNIB__INFO);
        assert_int_equal(with(p, SNIB__RENEW, "lock1", id).status, SNIB__RENEWED);
        assert_int_equal(with(p, SNIB__RELEASE, "lock1", id).status, SNIB__RELEASED);
        refused(with(p, SNIB__ACQUIRE, "other", pump_id(p)), SNIB_EPERM, "grant ~other");
        /* No hold without a lease, whatever is missing. */
        static const char *const needed[] = {"pexpire", "time", "hset", "hlen"};
        for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
                char command[64];
                snprintf(command, sizeof(command), "ACL SETUSER few -%s", needed[i]);
                kit_do("%s", command);
                refused(with(p, SNIB__ACQUIRE, "lock1", pump_id(p)), SNIB_EPERM, "; grant +");
                assert_int_equal(redis_server_int(kit_server, "EXISTS lock1"), 0);
                snprintf(command, sizeof(command), "ACL SETUSER few +%s", needed[i]);
                kit_do("%s", command);
        }
        /* Without the channel the release works all the same; the waiters poll. */
        kit_do("ACL SETUSER few resetchannels");
        id = pump_id(p);
        assert_int_equal(with(p, SNIB__ACQUIRE, "lock1", id).status, SNIB__GRANTED);
        assert_int_equal(with(p, SNIB__RELEASE, "lock1", id).status, SNIB__RELEASED);
        assert_int_equal(redis_server_int(kit_server, "EXISTS lock1"), 0);
        pump_close(p);
}

static void F38_killed_without_persistence(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, "x", pump_id(p), 30000);

        (void)state;
        op.kind = SNIB_KIND_FENCED;
        int64_t token = pump_do(p, &op).token;
        assert_true(token > 0);
        redis_server_kill(kit_server);
        (void)pump_wait(p, SNIB__NOTE_LINK_DOWN);
        refused(pump_do(p, &op), SNIB_EUNREACHABLE, "");
        redis_server_restart(kit_server);
        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        struct snib__reply r = with(p, SNIB__RENEW, "x", op.id);
        assert_int_equal(r.status, SNIB__GONE);
        assert_false(r.held);
        op.id = pump_id(p);
        assert_true(pump_do(p, &op).token > token);
        pump_close(p);
}

static void killed_with_persistence(void **state)
{
        static const char *const args[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
        struct redis_server *kept = redis_server_start(&(struct redis_server_options){.tcp = true, .args = args});
        struct pump *p = pump_connect(redis_server_url(kept), 1);
        struct snib__op op = pump_op(p, SNIB__ACQUIRE, "x", pump_id(p), 30000);

        (void)state;
        int64_t token = pump_do(p, &op).token;
        redis_server_kill(kept);
        (void)pump_wait(p, SNIB__NOTE_LINK_DOWN);
        redis_server_restart(kept);
        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        op.token = token;
        struct snib__reply r = pump_do(p, &op);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_int_equal(r.token, token);
        pump_close(p);
        redis_server_free(kept);
}

static void F27_a_stopped_server_ends_commands_and_handshakes(void **state)
{
        char url[128];
        struct pump *p, *q;
        snib__ns before;

        (void)state;
        snprintf(url, sizeof(url), "%s?timeout=300ms", redis_server_url(kit_server));
        p = pump_connect(url, 1);
        redis_server_pause(kit_server);
        before = pump_now();
        refused(with(p, SNIB__ACQUIRE, "x", pump_id(p)), SNIB_EUNKNOWN, "in time");
        assert_true(pump_now() - before >= 299 * SNIB__MS && pump_now() - before < 3 * SNIB__S);
        q = pump_open(url, 2);
        struct pump_note n = pump_wait(q, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.note.reply.error, SNIB_EUNREACHABLE);
        assert_non_null(strstr(n.text, "said nothing"));
        redis_server_resume(kit_server);
        (void)pump_wait(q, SNIB__NOTE_LINK_UP);
        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        assert_int_equal(with(p, SNIB__QUERY, "x", (struct snib__id){{0}}).status, SNIB__INFO);
        pump_close(p);
        pump_close(q);
}

static void F19_a_silent_server_is_found_while_somebody_waits(void **state)
{
        char url[128];
        struct pump *p;
        snib__ns before;

        (void)state;
        snprintf(url, sizeof(url), "%s?timeout=300ms", redis_server_url(kit_server));
        p = pump_connect(url, 1);
        watch_and_see(p, "x");
        redis_server_pause(kit_server);
        before = pump_now();
        assert_int_equal(pump_wait(p, SNIB__NOTE_LINK_DOWN).note.reply.error, SNIB_EUNREACHABLE);
        assert_true(pump_now() - before < 4 * SNIB__S);
        redis_server_resume(kit_server);
        (void)pump_wait(p, SNIB__NOTE_LINK_UP);
        /* The other connection was given up too, or had just not been: either way messages come. */
        struct pump_note n;
        do
                assert_int_not_equal(redis_server_int(kit_server, "PUBLISH redisson_lock__channel:{x} 0"), INT64_MIN);
        while (!pump_try(p, SNIB__NOTE_CHANGED, 50, &n));
        pump_close(p);
}

/* A port whose queue of connections is full: SYNs go unanswered. */
static void F27_a_connect_that_nobody_answers_ends(void **state)
{
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof(a);
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), filler[8];
        char url[128];

        (void)state;
        assert_int_equal(bind(listener, (struct sockaddr *)&a, size), 0);
        assert_int_equal(listen(listener, 0), 0);
        assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &size), 0);
        for (int i = 0; i < 8; i++) {
                filler[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
                (void)connect(filler[i], (struct sockaddr *)&a, size);
        }
        snprintf(url, sizeof(url), "redis://127.0.0.1:%d?connect_timeout=200ms", ntohs(a.sin_port));
        struct pump *p = pump_open(url, 1);
        struct pump_note n = pump_wait(p, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.note.reply.error, SNIB_EUNREACHABLE);
        assert_non_null(strstr(n.text, "did not take the connection"));
        pump_close(p);
        for (int i = 0; i < 8; i++)
                close(filler[i]);
        close(listener);
}

static void F25_names_are_looked_up(void **state)
{
        char url[128];
        struct pump *p;

        (void)state;
        snprintf(url, sizeof(url), "redis://localhost:%d", redis_server_port(kit_server));
        p = pump_connect(url, 1);
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", pump_id(p)).status, SNIB__GRANTED);
        pump_close(p);
        p = pump_open("redis://no-such-host.invalid", 1);
        struct pump_note n = pump_wait(p, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.note.reply.error, SNIB_EUNREACHABLE);
        assert_non_null(strstr(n.text, "no-such-host.invalid"));
        pump_close(p);
        p = pump_open("redis://no-such-host.invalid", 1);
        pump_turn(p, pump_now());
        pump_close(p); /* while the look-up goes on */
}

static void a_closed_port_and_a_missing_socket(void **state)
{
        struct pump *p = pump_open("redis://127.0.0.1:1", 1);

        (void)state;
        for (int i = 0; i < 3; i++) {
                struct pump_note n = pump_wait(p, SNIB__NOTE_LINK_DOWN);
                assert_int_equal(n.note.reply.error, SNIB_EUNREACHABLE);
                assert_int_equal(n.note.reply.engine_code, ECONNREFUSED);
                assert_non_null(strstr(n.text, "127.0.0.1:1"));
        }
        pump_close(p);
        p = pump_open("redis://[::1]:1", 1);
        assert_non_null(strstr(pump_wait(p, SNIB__NOTE_LINK_DOWN).text, "[::1]:1"));
        pump_close(p);
        p = pump_open("redis+unix:///nonexistent/socket", 1);
        assert_int_equal(pump_wait(p, SNIB__NOTE_LINK_DOWN).note.reply.engine_code, ENOENT);
        pump_close(p);
}

static void F46_a_replica_refuses_writes(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);

        (void)state;
        kit_do("REPLICAOF 127.0.0.1 1");
        refused(with(p, SNIB__ACQUIRE, "x", pump_id(p)), SNIB_ENOTREADY, "replica");
        kit_do("CONFIG SET replica-serve-stale-data no");
        refused(with(p, SNIB__ACQUIRE, "x", pump_id(p)), SNIB_ENOTREADY, "MASTERDOWN");
        kit_do("REPLICAOF NO ONE");
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", pump_id(p)).status, SNIB__GRANTED);
        pump_close(p);
}

static void F47_a_busy_server_is_not_ready(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        redisContext *other = redisConnectUnix(redis_server_socket(kit_server));
        struct snib__reply r;
        int done = 0;

        (void)state;
        assert_true(other && !other->err);
        assert_int_equal(with(p, SNIB__QUERY, "x", (struct snib__id){{0}}).status, SNIB__INFO);
        kit_do("CONFIG SET busy-reply-threshold 20");
        assert_int_equal(redisAppendCommand(other, "EVAL %s 0", "while true do end"), REDIS_OK);
        while (!done)
                assert_int_equal(redisBufferWrite(other, &done), REDIS_OK);
        do /* until the server has read it */
                r = with(p, SNIB__ACQUIRE, "x", pump_id(p));
        while (r.status == SNIB__GRANTED || r.status == SNIB__BUSY);
        refused(r, SNIB_ENOTREADY, "BUSY");
        kit_do("SCRIPT KILL");
        redisFree(other);
        do /* until the script has seen it */
                r = with(p, SNIB__QUERY, "x", (struct snib__id){{0}});
        while (r.status == SNIB__FAILED && r.error == SNIB_ENOTREADY);
        assert_int_equal(r.status, SNIB__INFO);
        pump_close(p);
}

static void F49_too_few_replicas(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__id id = pump_id(p);

        (void)state;
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
        kit_do("CONFIG SET min-replicas-to-write 1");
        refused(with(p, SNIB__ACQUIRE, "y", pump_id(p)), SNIB_ENOTREADY, "replicas");
        refused(with(p, SNIB__RELEASE, "x", id), SNIB_ENOTREADY, "replicas");
        kit_do("CONFIG SET min-replicas-to-write 0");
        assert_int_equal(with(p, SNIB__RELEASE, "x", id).status, SNIB__RELEASED);
        pump_close(p);
}

static void F54_too_many_clients(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1), *q;

        (void)state;
        (void)redis_server_int(kit_server, "DBSIZE"); /* the administrator is connected */
        kit_do("CONFIG SET maxclients 2");
        q = pump_open(redis_server_url(kit_server), 2);
        struct pump_note n = pump_wait(q, SNIB__NOTE_LINK_DOWN);
        assert_int_equal(n.note.reply.error, SNIB_ENOTREADY);
        kit_do("CONFIG SET maxclients 100");
        (void)pump_wait(q, SNIB__NOTE_LINK_UP);
        pump_close(p);
        pump_close(q);
}

static void F107_a_forked_child_leaves_the_connection_alone(void **state)
{
        struct pump *p = pump_connect(redis_server_url(kit_server), 1);
        struct snib__id id = pump_id(p);
        int status;

        (void)state;
        watch_and_see(p, "x");
        assert_int_equal(with(p, SNIB__ACQUIRE, "x", id).status, SNIB__GRANTED);
        pid_t child = proc_fork();
        if (child == 0) {
                p->engine->ops->forked(p->engine);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(with(p, SNIB__RENEW, "x", id).status, SNIB__RENEWED);
        notified(p);
        pump_close(p);
}

static void closing_leaves_no_descriptor(void **state)
{
        int before = dup(0), after;

        (void)state;
        close(before);
        for (int i = 0; i < 20; i++) {
                struct pump *p = pump_connect(redis_server_url(kit_server), 1);
                watch_and_see(p, "x");
                pump_close(p);
        }
        after = dup(0);
        close(after);
        assert_int_equal(after, before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_start, kit_stop)

int main(void)
{
        static const struct CMUnitTest tests[] = {
            TEST(F48_release_works_on_a_full_server),
            TEST(F51_a_flushed_script_is_sent_again),
            TEST(F51_a_flushed_script_turns_no_order_round),
            TEST(F52_other_kinds_of_keys_are_left_alone),
            TEST(F54_killed_connections_come_back),
            TEST(F55_password),
            TEST(F55_F144_missing_rights_are_named),
            TEST(F38_killed_without_persistence),
            TEST(killed_with_persistence),
            TEST(F27_a_stopped_server_ends_commands_and_handshakes),
            TEST(F19_a_silent_server_is_found_while_somebody_waits),
            TEST(F27_a_connect_that_nobody_answers_ends),
            TEST(F25_names_are_looked_up),
            TEST(a_closed_port_and_a_missing_socket),
            TEST(F46_a_replica_refuses_writes),
            TEST(F47_a_busy_server_is_not_ready),
            TEST(F49_too_few_replicas),
            TEST(F54_too_many_clients),
            TEST(F107_a_forked_child_leaves_the_connection_alone),
            TEST(closing_leaves_no_descriptor),
        };

        return kit_run(tests, NULL, NULL);
}
