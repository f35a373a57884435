/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A user of a real server who lacks one right: each command that the client and its scripts use,
 * and each pattern of keys, taken away in turn, from the start and before each step of a life of
 * each object. A step works, or is refused with SNIB_EPERM and a text that names the right; and
 * whatever was refused: no lock is left without an end, no permit is lost, and with the right given
 * back all works. What is used is not listed here: it is asked of the server, and read in the
 * scripts. $SNIB_REDIS_SERVER is the server; rights.py runs this with those that can be had.
 */

#include "engine/redis/script.h"
#include "fault.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RIGHTS_MAX 96
#define LEASE_MS 20000

/* The one user, its client, and one object of each kind. */
struct scene {
        struct redis_server *server;
        redisContext *admin;
        snib_client *client;
        snib_lock *lock[4], *other[4]; /* plain, fenced, fair, spin; and as a second owner */
        snib_rwlock *rw, *rw2, *rw3;
        snib_election *election;
        snib_semaphore *semaphore;
        snib_permits *permits;
        snib_latch *latch;
        snib_register *reg;
        snib_grant *grant[3];
        char id[SNIB_PERMIT_ID_MAX];
        bool expired;  /* what was held is so no more */
        int which;     /* of the locks */
        int64_t free;  /* what the semaphore must have, as far as it was answered; -1: it is not there */
        int64_t limit; /* of the permits; -1: they are not there */
        struct snib_error err;
};

static char rights[RIGHTS_MAX][64]; /* commands */
static int right_count;
static char patterns[RIGHTS_MAX][128]; /* of keys */
static int pattern_count;

/* ---- a life of each object, in steps: 1 or 0 an answer, negative refused */

#define STEP(name) static int name(struct scene *s)

static int acquired(snib_grant **grant, int r)
{
        if (r != 1)
                *grant = NULL;
        return r;
}

static int ended(struct scene *s, int which)
{
        snib_grant *grant = s->grant[which];
        int r;

        s->grant[which] = NULL;
        r = grant ? snib_grant_release(grant, &s->err) : 0;
        return s->expired && r == SNIB_ELOST ? 0 : r;
}

STEP(lock_try)
{
        return s->grant[0] ? 1 : acquired(&s->grant[0], snib_lock_try(s->lock[s->which], &s->grant[0], &s->err));
}

STEP(renew)
{
        return s->grant[0] ? snib_grant_renew(s->grant[0], &s->err) : 0;
}

STEP(lock_busy)
{
        int r = s->grant[1] ? 1 : acquired(&s->grant[1], snib_lock_try(s->other[s->which], &s->grant[1], &s->err));

        return r; /* 1 if the first was refused */
}

/* Stands in the queue, and leaves it. In so short a time a busy machine may not hear of either. */
STEP(lock_wait)
{
        snib_grant *grant = NULL;
        int r = s->grant[1] ? 1 : snib_lock_acquire(s->other[s->which], 1, &grant, &s->err);

        if (r == SNIB_EUNKNOWN)
                r = snib_lock_acquire(s->other[s->which], 1000, &grant, &s->err);
        s->grant[1] = grant ? grant : s->grant[1];
        return r;
}

STEP(lock_query)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        return snib_lock_query(s->lock[s->which], &info, &s->err);
}

STEP(release)
{
        return ended(s, 0);
}

STEP(release_other)
{
        return ended(s, 1);
}

/* Who was forced learns of it: what is left of its grant is thrown away. */
static int forced(struct scene *s, int r)
{
        for (int i = 0; i < 3 && r >= 0; i++) {
                if (s->grant[i])
                        (void)snib_grant_release(s->grant[i], NULL);
                s->grant[i] = NULL;
        }
        return r;
}

STEP(lock_force)
{
        return forced(s, snib_lock_force_release(s->other[s->which], &s->err));
}

STEP(rw_read)
{
        return s->grant[0] ? 1 : acquired(&s->grant[0], snib_lock_try(snib_rwlock_read(s->rw), &s->grant[0], &s->err));
}

STEP(rw_read_too)
{
        return s->grant[1] ? 1 : acquired(&s->grant[1], snib_lock_try(snib_rwlock_read(s->rw2), &s->grant[1], &s->err));
}

STEP(rw_write)
{
        return s->grant[2] ? 1 : acquired(&s->grant[2], snib_lock_try(snib_rwlock_write(s->rw), &s->grant[2], &s->err));
}

STEP(rw_write_busy)
{
        snib_grant *none = NULL;
        int r = snib_lock_try(snib_rwlock_write(s->rw3), &none, &s->err);

        if (r == 1)
                (void)snib_grant_release(none, NULL);
        return r;
}

STEP(rw_query)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        return snib_lock_query(snib_rwlock_read(s->rw), &info, &s->err);
}

STEP(renew_write)
{
        return s->grant[2] ? snib_grant_renew(s->grant[2], &s->err) : 0;
}

STEP(release_write)
{
        return ended(s, 2);
}

STEP(rw_force_read)
{
        return forced(s, snib_lock_force_release(snib_rwlock_read(s->rw2), &s->err));
}

STEP(rw_force_write)
{
        return forced(s, snib_lock_force_release(snib_rwlock_write(s->rw2), &s->err));
}

STEP(election_win)
{
        return s->grant[0] ? 1 : acquired(&s->grant[0], snib_election_campaign(s->election, 0, &s->grant[0], &s->err));
}

STEP(election_leader)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        return snib_election_leader(s->election, &info, &s->err);
}

STEP(election_depose)
{
        return forced(s, snib_election_depose(s->election, &s->err));
}

STEP(semaphore_set)
{
        int r = snib_semaphore_set(s->semaphore, 5, 0, &s->err);

        s->free = r == 1 ? 5 : s->free;
        return r;
}

/* Of what was answered with 1 it is known what it did; what was refused did nothing. */
static int counts(struct scene *s, int r, int64_t by)
{
        if (r == 1 && s->free >= 0)
                s->free += by;
        return r;
}

STEP(semaphore_try)
{
        return counts(s, snib_semaphore_try(s->semaphore, 2, &s->err), -2);
}

STEP(semaphore_release)
{
        return s->free >= 0 ? counts(s, snib_semaphore_release(s->semaphore, 1, &s->err), 1) : 0;
}

STEP(semaphore_add)
{
        return s->free >= 0 ? counts(s, snib_semaphore_add(s->semaphore, 3, NULL, &s->err), 3) : 0;
}

STEP(semaphore_query)
{
        int64_t n;

        return snib_semaphore_query(s->semaphore, &n, &s->err);
}

STEP(semaphore_drain)
{
        int64_t n = 0;
        int r = snib_semaphore_drain(s->semaphore, &n, &s->err);

        return r < 0 ? r : counts(s, 1, -n);
}

STEP(semaphore_delete)
{
        int r = snib_semaphore_delete(s->semaphore, &s->err);

        s->free = r >= 0 ? -1 : s->free;
        return r;
}

STEP(permits_set)
{
        int r = snib_permits_set(s->permits, 4, &s->err);

        s->limit = r == 1 ? 4 : s->limit;
        return r;
}

STEP(permits_try)
{
        return s->grant[0] ? 1 : acquired(&s->grant[0], snib_permits_try(s->permits, 2, &s->grant[0], &s->err));
}

STEP(permits_try_one)
{
        int r = s->grant[1] ? 1 : acquired(&s->grant[1], snib_permits_try(s->permits, 1, &s->grant[1], &s->err));

        if (r == 1)
                (void)snib_grant_permit_id(s->grant[1], 0, s->id);
        return r;
}

STEP(permits_query)
{
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;

        return snib_permits_query(s->permits, &info, &s->err);
}

STEP(permits_renew_id)
{
        int r = s->id[0] ? snib_permits_renew_id(s->permits, s->id, LEASE_MS, &s->err) : 0;

        return s->expired && r == SNIB_ENOTOWNER ? 0 : r;
}

STEP(permits_release_id)
{
        const char *id = s->id;
        int r = s->id[0] ? snib_permits_release_ids(s->permits, &id, 1, &s->err) : 0;

        r = s->expired && r == SNIB_ENOTOWNER ? 0 : r;
        s->expired |= r == 1;
        return r;
}

/* The leases of all that are out are over: whoever comes next takes them back. */
STEP(permits_expire)
{
        fault_do(s->server, "EVAL %s 1 {app:perm}:timeout",
                 "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 1, id) end");
        s->expired = true;
        return 1;
}

static int limits(struct scene *s, int r, int64_t to)
{
        s->limit = r == 1 ? to : s->limit;
        return r;
}

STEP(permits_add)
{
        return s->limit >= 0 ? limits(s, snib_permits_add(s->permits, 2, NULL, &s->err), s->limit + 2) : 0;
}

STEP(permits_resize)
{
        return limits(s, snib_permits_resize(s->permits, 7, &s->err), 7);
}

STEP(permits_force)
{
        return forced(s, snib_permits_force_release(s->permits, &s->err));
}

STEP(permits_delete)
{
        int r = snib_permits_delete(s->permits, &s->err);

        s->limit = r >= 0 ? -1 : s->limit;
        return r;
}

STEP(latch_set)
{
        return snib_latch_set(s->latch, 2, &s->err);
}

STEP(latch_down)
{
        return snib_latch_count_down(s->latch, 1, NULL, &s->err);
}

STEP(latch_query)
{
        int64_t n;

        return snib_latch_query(s->latch, &n, &s->err);
}

STEP(latch_await)
{
        return snib_latch_await(s->latch, 0, &s->err);
}

STEP(latch_delete)
{
        return snib_latch_delete(s->latch, &s->err);
}

STEP(register_write)
{
        return snib_register_write(s->reg, "a", 1, SNIB_ANY_VERSION, NULL, &s->err);
}

STEP(register_read)
{
        struct snib_value value = SNIB_VALUE_INIT;
        int r = snib_register_read(s->reg, &value, &s->err);

        snib_value_free(&value);
        return r;
}

STEP(register_delete)
{
        return snib_register_delete(s->reg, SNIB_ANY_VERSION, &s->err);
}

static int nothing(void *arg, const char *name, size_t name_len, const struct snib_lock_info *info)
{
        (void)arg, (void)name, (void)name_len, (void)info;
        return 0;
}

STEP(list)
{
        int64_t n = snib_list(s->client, nothing, NULL, &s->err);

        return n < 0 ? (int)n : 1;
}

STEP(describe)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        return snib_describe(s->client, "app:perm", 0, &info, &s->err);
}

#define STEPS_MAX 20
static const struct life {
        const char *what;
        int which;
        struct {
                const char *what;
                int (*run)(struct scene *s);
        } step[STEPS_MAX];
} lives[] = {
#define S(step)             \
        {                   \
#step, step \
        }
#define LOCK(name, which)                                                                                  \
        {                                                                                                  \
                name, which,                                                                               \
                {                                                                                          \
                        S(lock_try), S(renew), S(lock_busy), S(lock_wait), S(lock_query), S(release),      \
                            S(release_other), S(lock_try), S(list), S(lock_force), S(lock_try), S(release) \
                }                                                                                          \
        }
    LOCK("lock", 0),
    LOCK("fenced lock", 1),
    LOCK("fair lock", 2),
    LOCK("spin lock", 3),
    {"readers",
     0,
     {S(rw_read), S(rw_read_too), S(rw_write_busy), S(renew), S(rw_query), S(release), S(release_other), S(rw_read),
      S(rw_force_read), S(release)}},
    {"writer",
     0,
     {S(rw_write), S(renew_write), S(rw_write_busy), S(rw_read), S(rw_query), S(release_write), S(release), S(rw_write),
      S(rw_force_write), S(release_write)}},
    {"election",
     0,
     {S(election_win), S(renew), S(election_leader), S(release), S(election_win), S(election_depose), S(release)}},
    {"semaphore",
     0,
     {S(semaphore_set), S(semaphore_try), S(semaphore_release), S(semaphore_query), S(semaphore_add),
      S(semaphore_drain), S(semaphore_release), S(semaphore_delete)}},
    {"permits",
     0,
     {S(permits_set), S(permits_try), S(permits_try_one), S(permits_query), S(renew), S(permits_renew_id),
      S(permits_release_id), S(release), S(describe), S(permits_add), S(permits_resize), S(permits_try),
      S(permits_force), S(release), S(release_other), S(permits_delete)}},
    {"expired permits",
     0,
     {S(permits_set), S(permits_try), S(permits_expire), S(permits_try_one), S(permits_expire), S(permits_add),
      S(permits_try), S(permits_expire), S(permits_release_id), S(permits_try), S(permits_expire), S(permits_force),
      S(permits_try_one), S(release), S(release_other)}},
    {"latch",
     0,
     {S(latch_set), S(latch_query), S(latch_await), S(latch_down), S(latch_down), S(latch_set), S(latch_delete)}},
    {"register", 0, {S(register_write), S(register_read), S(register_write), S(register_delete)}},
};

#define LIVES (sizeof(lives) / sizeof(lives[0]))

/* ---- the user */

static void grant_to(struct scene *s, const char *keys, const char *commands)
{
        char rule[4096];
        char *rest = NULL;
        const char *argv[RIGHTS_MAX + 16] = {"ACL", "SETUSER", "app"};
        int argc = 3;

        snprintf(rule, sizeof(rule), "on >pw resetkeys %s &* +@all %s", keys, commands);
        for (char *word = strtok_r(rule, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                argv[argc++] = word;
        if (!s->admin)
                s->admin = redisConnectUnix(redis_server_socket(s->server));
        assert_non_null(s->admin);
        fault_done(redisCommandArgv(s->admin, argc, argv, NULL), commands);
}

static void all_rights(struct scene *s)
{
        grant_to(s, "~*", "");
}

static snib_client *as_user(struct scene *s, int *ret_open)
{
        struct snib_options o = {.timeout_ms = 2000};
        char url[256];
        snib_client *client = NULL;

        snprintf(url, sizeof(url), "redis+unix://app:pw@%s", redis_server_socket(s->server));
        *ret_open = snib_open(&client, url, &o, &s->err);
        return client;
}

static void scene_begin(struct scene *s)
{
        static const int kinds[] = {SNIB_LOCK_REENTRANT, SNIB_LOCK_FENCED, SNIB_LOCK_FAIR, SNIB_LOCK_SPIN};
        static const char *const names[] = {"app:lock", "app:fenced", "app:fair", "app:spin"};
        struct snib_lock_options o = {.lease_ms = LEASE_MS}, own = o;
        int r;

        *s = (struct scene){.server = fault_server(NULL), .err = SNIB_ERROR_INIT, .free = -1, .limit = -1};
        all_rights(s);
        s->client = as_user(s, &r);
        assert_result(r, 0);
        for (int i = 0; i < 4; i++) {
                own.kind = kinds[i];
                own.owner = "a";
                s->lock[i] = fault_lock_with(s->client, names[i], &own);
                own.owner = "b";
                s->other[i] = fault_lock_with(s->client, names[i], &own);
        }
        own.kind = 0;
        assert_result(snib_rwlock_new(s->client, "app:rw", &own, &s->rw, NULL), 0);
        own.owner = "a";
        assert_result(snib_rwlock_new(s->client, "app:rw", &own, &s->rw2, NULL), 0);
        own.owner = "c";
        assert_result(snib_rwlock_new(s->client, "app:rw", &own, &s->rw3, NULL), 0);
        assert_result(snib_election_new(s->client, "app:election", &o, &s->election, NULL), 0);
        assert_result(snib_semaphore_new(s->client, "app:sem", 0, &s->semaphore, NULL), 0);
        assert_result(snib_permits_new(s->client, "app:perm", &o, &s->permits, NULL), 0);
        assert_result(snib_latch_new(s->client, "app:latch", 0, &s->latch, NULL), 0);
        assert_result(snib_register_new(s->client, "app:reg", 0, &s->reg, NULL), 0);
}

static void scene_end(struct scene *s)
{
        for (int i = 0; i < 4; i++) {
                snib_lock_free(s->lock[i]);
                snib_lock_free(s->other[i]);
        }
        snib_rwlock_free(s->rw);
        snib_rwlock_free(s->rw2);
        snib_rwlock_free(s->rw3);
        snib_election_free(s->election);
        snib_semaphore_free(s->semaphore);
        snib_permits_free(s->permits);
        snib_latch_free(s->latch);
        snib_register_free(s->reg);
        snib_close(s->client);
        redisFree(s->admin);
        redis_server_free(s->server);
}

/* ---- what is used */

static void add_to(char list[][64], int *count, const char *text, size_t length)
{
        char word[64];

        assert_true(length < sizeof(word) && *count < RIGHTS_MAX);
        for (size_t i = 0; i < length; i++)
                word[i] = (char)tolower((unsigned char)text[i]);
        word[length] = 0;
        for (int i = 0; i < *count; i++)
                if (!strcmp(list[i], word))
                        return;
        memcpy(list[(*count)++], word, length + 1);
}

/* Commands that stand in the scripts, also those that no step here comes to. */
static void read_scripts(void)
{
        for (int i = 0; i < SNIB__SCRIPTS; i++)
                for (const char *at = snib__redis_scripts_built_in[i].text; (at = strstr(at, "call('"));) {
                        at += 6;
                        add_to(rights, &right_count, at, strcspn(at, "'"));
                }
}

/* Commands that the server was sent or ran in scripts. */
static void read_statistics(struct scene *s)
{
        redisReply *r = redis_server_do(s->server, "INFO commandstats");

        assert_int_equal(r->type, REDIS_REPLY_STRING);
        for (const char *at = r->str; (at = strstr(at, "cmdstat_"));) {
                at += 8;
                if (strncmp(at, "info", 4) != 0 && strncmp(at, "config", 6) != 0 && strncmp(at, "keys", 4) != 0)
                        add_to(rights, &right_count, at, strcspn(at, ":"));
        }
        freeReplyObject(r);
}

static bool is_uuid(const char *text)
{
        return strlen(text) >= 36 && strspn(text, "0123456789abcdef-") == 36;
}

/* The keys there are, with a '*' from the first uuid in the name on. */
static void read_keys(struct scene *s)
{
        redisReply *r = redis_server_do(s->server, "KEYS *");

        for (size_t i = 0; i < r->elements; i++) {
                char name[128];
                int n = 0;

                snprintf(name, sizeof(name), "%s", r->element[i]->str);
                for (char *at = name; *at; at++)
                        if (is_uuid(at))
                                memcpy(at, "*", 2);
                while (n < pattern_count && strcmp(patterns[n], name) != 0)
                        n++;
                if (n == pattern_count)
                        snprintf(patterns[pattern_count++], sizeof(patterns[0]), "%s", name);
        }
        freeReplyObject(r);
}

/* ---- the matrix */

static void over(struct scene *s)
{
        all_rights(s);
        for (int i = 0; i < 3; i++) {
                if (s->grant[i])
                        (void)snib_grant_release(s->grant[i], NULL);
                s->grant[i] = NULL;
        }
        fault_do(s->server, "FLUSHALL");
        s->free = s->limit = -1;
        s->id[0] = 0;
        s->expired = false;
}

/* What may stand for ever: numbers and values, which belong to nobody. */
static bool may_stay(const char *key)
{
        static const char *const names[] = {"app:sem", "app:perm", "{app:perm}:timeout", "app:latch", "app:reg"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strcmp(key, names[i]))
                        return true;
        return !strncmp(key, "redisson_lock_token:", 20);
}

static void nothing_is_lost(struct scene *s, const char *where)
{
        redisReply *r = redis_server_do(s->server, "KEYS *");

        for (size_t i = 0; i < r->elements; i++)
                if (fault_pttl(s->server, r->element[i]->str) == -1 && !may_stay(r->element[i]->str))
                        fail_msg("%s: %s is left without an end", where, r->element[i]->str);
        freeReplyObject(r);
        if (s->free >= 0 && redis_server_int(s->server, "GET app:sem") != s->free)
                fail_msg("%s: the semaphore has %lld, not %lld", where, redis_server_int(s->server, "GET app:sem"),
                         (long long)s->free);
        if (s->limit >= 0) {
                static const char sum[] = "return redis.call('GET', KEYS[1]) + redis.call('ZCARD', KEYS[2])";
                long long n = redis_server_int(s->server, "EVAL %s 2 app:perm {app:perm}:timeout", sum);

                if (n != s->limit)
                        fail_msg("%s: of %lld permits %lld are free or out", where, (long long)s->limit, n);
        }
}

/* One life; from step `from` on the user lacks a right, which a refusal must name. Without: all
 * must work. Answers how many steps there are. */
static int live(struct scene *s, const struct life *life, int from, const char *keys, const char *commands,
                const char *name)
{
        int i = 0;

        s->which = life->which;
        for (; i < STEPS_MAX && life->step[i].run; i++) {
                int r;

                if (i == from)
                        grant_to(s, keys, commands);
                s->err.text[0] = 0;
                r = life->step[i].run(s);
                if (r >= 0 || (i >= from && from >= 0 && r == SNIB_EPERM && strcasestr(s->err.text, name)))
                        continue;
                fail_msg("%s, step %d %s, without %s since %d: %s: %s", life->what, i, life->step[i].what, name, from,
                         snib_error_name(r), s->err.text);
        }
        return i;
}

static void taken_away(struct scene *s, const char *keys, const char *commands, const char *name)
{
        char where[256];

        for (const struct life *life = lives; life < lives + LIVES; life++) {
                int steps = 1;

                for (int from = 0; from < steps; from++) {
                        steps = live(s, life, from, keys, commands, name);
                        all_rights(s);
                        snprintf(where, sizeof(where), "%.40s without %.120s since step %d", life->what, name, from);
                        nothing_is_lost(s, where);
                        over(s);
                }
                (void)live(s, life, -1, NULL, NULL, "nothing");
                over(s);
        }
}

/* Of a plain, a fenced and a fair lock one owner holds it, another stands in the queue. */
static void queue_up(struct scene *s, struct fault_waiter w[3])
{
        static const char *const queued[] = {"LLEN snib_queue:{app:lock}", "LLEN snib_queue:{app:fenced}",
                                             "LLEN redisson_lock_queue:{app:fair}"};

        for (int i = 0; i < 3; i++) {
                s->grant[i] = fault_acquire(s->lock[i], 0);
                fault_wait(&w[i], s->other[i], 20000);
        }
        for (int i = 0; i < 3; i++)
                assert_true(eventually(redis_server_int(s->server, queued[i]) == 1, 5000));
}

static void taken_over(struct fault_waiter w[3], const char *name)
{
        for (int i = 0; i < 3; i++) {
                int r = fault_join(&w[i]);

                if (r == 1)
                        assert_result(snib_grant_release(w[i].grant, NULL), 1);
                else if (r != SNIB_EPERM || !name) /* it asked while the right was missing */
                        fail_msg("lock %d, without %s: who waited was answered %s", i, name ? name : "nothing",
                                 snib_error_name(r));
        }
}

/* Who releases lacks a right: who waits gets the lock all the same, or by force, if the release is
 * refused. */
static void handed_over(struct scene *s, const char *keys, const char *commands, const char *name)
{
        struct fault_waiter w[3];

        queue_up(s, w);
        grant_to(s, keys, commands);
        for (int i = 0; i < 3; i++) {
                int r = ended(s, i);

                if (r != 1 && (r != SNIB_EPERM || !strcasestr(s->err.text, name)))
                        fail_msg("lock %d, hand-over without %s: %s: %s", i, name, snib_error_name(r), s->err.text);
                if (r != 1) {
                        all_rights(s);
                        (void)snib_lock_force_release(s->lock[i], NULL);
                        grant_to(s, keys, commands);
                }
        }
        nothing_is_lost(s, "hand-over");
        all_rights(s);
        taken_over(w, name);
        nothing_is_lost(s, "hand-over");
        over(s);
}

static void record(struct scene *s)
{
        struct fault_waiter w[3];

        fault_do(s->server, "CONFIG RESETSTAT");
        for (const struct life *life = lives; life < lives + LIVES; life++) {
                s->which = life->which;
                for (int i = 0; i < STEPS_MAX && life->step[i].run; i++) {
                        if (life->step[i].run != permits_expire && life->step[i].run(s) < 0)
                                fail_msg("%s, step %d: %s", life->what, i, s->err.text);
                        read_keys(s);
                }
        }
        queue_up(s, w);
        read_keys(s);
        for (int i = 0; i < 3; i++)
                assert_result(ended(s, i), 1);
        taken_over(w, NULL);
        read_statistics(s);
        read_scripts();
        over(s);
}

static void F144_each_command_taken_away_is_named_and_nothing_is_lost(void **state)
{
        struct scene s;

        (void)state;
        scene_begin(&s);
        record(&s);
        print_message("# %d commands\n", right_count);
        assert_true(right_count > 40);
        for (int i = 0; i < right_count; i++) {
                char rule[80];

                snprintf(rule, sizeof(rule), "-%.63s", rights[i]);
                taken_away(&s, "~*", rule, rights[i]);
                handed_over(&s, "~*", rule, rights[i]);
        }
        scene_end(&s);
}

/* All patterns but one, or that one for reading only. */
static void without_pattern(struct scene *s, int which, const char *all_that_is_left)
{
        char keys[4096] = "";

        for (int k = 0, at = 0; k < pattern_count; k++)
                if (k != which || all_that_is_left[0])
                        at += snprintf(keys + at, sizeof(keys) - (size_t)at, "%s%s ",
                                       k != which ? "~" : all_that_is_left, patterns[k]);
        taken_away(s, keys, "", patterns[which]);
        handed_over(s, keys, "", patterns[which]);
}

/* From Redis 7 on a key can be given for reading only. */
static bool knows_read_only(struct scene *s)
{
        redisReply *r = redis_server_do(s->server, "ACL SETUSER other %s", "%R~x");
        bool known = r->type == REDIS_REPLY_STATUS;

        if (!known)
                print_message("# keys for reading only are left out: %s\n", r->str);
        freeReplyObject(r);
        return known;
}

static void F144_each_key_taken_away_is_named_and_nothing_is_lost(void **state)
{
        struct scene s;
        bool read_only;

        (void)state;
        scene_begin(&s);
        record(&s);
        read_only = knows_read_only(&s);
        print_message("# %d key patterns\n", pattern_count);
        assert_true(pattern_count > 10);
        for (int i = 0; i < pattern_count; i++) {
                without_pattern(&s, i, "");
                if (read_only)
                        without_pattern(&s, i, "%R~");
        }
        scene_end(&s);
}

static void F144_no_channels_cost_speed_only(void **state)
{
        struct scene s;

        (void)state;
        scene_begin(&s);
        for (const struct life *life = lives; life < lives + LIVES; life++) {
                grant_to(&s, "~*", "resetchannels");
                (void)live(&s, life, -1, NULL, NULL, "a channel");
                over(&s);
        }
        scene_end(&s);
}

static void F144_opening_names_the_missing_command(void **state)
{
        struct scene s;

        (void)state;
        scene_begin(&s);
        record(&s);
        for (int i = 0; i < right_count; i++) {
                char rule[80];
                int r;

                snprintf(rule, sizeof(rule), "-%.63s", rights[i]);
                grant_to(&s, "~*", rule);
                snib_client *client = as_user(&s, &r);
                if (r != 0 && (r != SNIB_EPERM || !strcasestr(s.err.text, rights[i])))
                        fail_msg("without %s: %s: %s", rights[i], snib_error_name(r), s.err.text);
                snib_close(client);
        }
        scene_end(&s);
}

/* The line of doc/design/redis.md, its password given. */
static void paste(struct scene *s)
{
        static char text[65536];
        FILE *f = fopen(getenv("SNIB_REDIS_MD"), "re");
        const char *argv[RIGHTS_MAX] = {0};
        char *rest = NULL;
        int argc = 0;

        assert_non_null(f);
        text[fread(text, 1, sizeof(text) - 1, f)] = 0;
        fclose(f);
        char *line = strstr(text, "\nACL SETUSER app "), *end = line ? strstr(line, "\n```") : NULL;
        assert_non_null(end);
        *end = 0;
        for (char *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
                assert_true(argc < RIGHTS_MAX);
                argv[argc++] = strcmp(word, ">PASSWORD") != 0 ? word : ">pw";
        }
        redisContext *admin = redisConnectUnix(redis_server_socket(s->server));
        assert_non_null(admin);
        fault_done(redisCommandArgv(admin, argc, argv, NULL), "the line of redis.md");
        redisFree(admin);
}

/* The rights that are to be pasted are enough: every step works, and who waits is told at once. */
static void F144_the_documented_rights_are_enough(void **state)
{
        struct fault_waiter w[3];
        struct scene s;

        (void)state;
        scene_begin(&s);
        paste(&s);
        for (const struct life *life = lives; life < lives + LIVES; life++)
                (void)live(&s, life, -1, NULL, NULL, "anything");
        queue_up(&s, w);
        for (int i = 0; i < 3; i++)
                assert_result(ended(&s, i), 1);
        taken_over(w, NULL);
        scene_end(&s);
}

int main(void)
{
        struct CMUnitTest tests[] = {
            cmocka_unit_test(F144_each_command_taken_away_is_named_and_nothing_is_lost),
            cmocka_unit_test(F144_each_key_taken_away_is_named_and_nothing_is_lost),
            cmocka_unit_test(F144_no_channels_cost_speed_only),
            cmocka_unit_test(F144_the_documented_rights_are_enough),
            cmocka_unit_test(F144_opening_names_the_missing_command),
        };

        return fault_run_all("rights", tests);
}
