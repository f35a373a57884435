/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the requests of the interop suite do, by the public interface alone: one function a verb, in
 * a table. An actor keeps a handle for every object and lease it named and the grants it was given;
 * nothing here is shared by threads.
 */

#include "worker.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MEMBERS_MAX 8
#define COUNT_WAIT_MS 2000
#define LOOK_PAUSE_NS 5000000

/* A handle, or a grant of it. */
struct kept {
        struct kept *next;
        char *kind;
        char *name;
        int64_t lease_ms;
        snib_lock *lock;
        snib_multilock *multilock;
        snib_semaphore *semaphore;
        snib_permits *permits;
        snib_latch *latch;
        snib_grant *grant;
        snib_multigrant *multigrant;
};

/* A request that is being executed. */
struct call {
        struct actor *actor;
        const char *name;
        char **args; /* after the name */
        int count;   /* of args */
        char *answer;
        struct snib_error err;
};

__attribute__((format(printf, 2, 3))) static void say(struct call *call, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        vsnprintf(call->answer, ANSWER_MAX, format, args);
        va_end(args);
}

/* The usual answer: the number, or the error with its name. */
static void say_result(struct call *call, int64_t r)
{
        if (r < 0)
                say(call, "error %s %s", snib_error_name((int)r), call->err.text);
        else
                say(call, "%" PRId64, r);
}

static const char *text(const struct call *call, int index)
{
        return index < call->count ? call->args[index] : "";
}

static int64_t number(const struct call *call, int index)
{
        return strtoll(text(call, index), NULL, 10);
}

/* Remembers a handle or grant at the front, so that what came last is found first. */
static struct kept *keep(struct call *call, const char *kind, int64_t lease_ms)
{
        struct kept *k = calloc(1, sizeof(*k));

        if (!k)
                abort();
        *k = (struct kept){
            .next = call->actor->kept, .kind = strdup(kind), .name = strdup(call->name), .lease_ms = lease_ms};
        call->actor->kept = k;
        return k;
}

static void forget(struct actor *actor, struct kept *k)
{
        struct kept **at = &actor->kept;

        while (*at != k)
                at = &(*at)->next;
        *at = k->next;
        free(k->kind);
        free(k->name);
        free(k);
}

static int is_grant(const struct kept *k)
{
        return k->grant || k->multigrant;
}

static struct kept *find_grant(struct call *call, const char *kind)
{
        for (struct kept *k = call->actor->kept; k; k = k->next)
                if (is_grant(k) && strcmp(k->kind, kind) == 0 && strcmp(k->name, call->name) == 0)
                        return k;
        return NULL;
}

static struct snib_lock_options lock_options(struct call *call, const char *kind, int64_t lease_ms)
{
        static const char *const kinds[] = {"lock", "non-reentrant", "fenced", "fair", "non-reentrant-fair", "spin"};
        struct snib_lock_options o = {.size = sizeof(struct snib_lock_options),
                                      .owner = call->actor->name,
                                      .lease_ms = lease_ms,
                                      .fixed_lease = lease_ms != 0};

        for (int i = 0; i < (int)(sizeof(kinds) / sizeof(kinds[0])); i++)
                if (strcmp(kind, kinds[i]) == 0)
                        o.kind = i;
        return o;
}

/* Plain locks, joined by commas in the name. */
static int make_multilock(struct call *call, struct kept *k)
{
        struct snib_lock_options options = lock_options(call, "lock", k->lease_ms);
        snib_lock *members[MEMBERS_MAX];
        char *names = strdup(call->name), *rest;
        size_t count = 0;
        int r = names ? 0 : SNIB_ENOMEM;

        for (char *n = strtok_r(names, ",", &rest); r == 0 && n && count < MEMBERS_MAX; n = strtok_r(NULL, ",", &rest))
                r = snib_lock_new(call->actor->client, n, &options, &members[count++], &call->err);
        free(names);
        return r < 0 ? r : snib_multilock_new(members, count, NULL, &k->multilock, &call->err);
}

/* The name at every server. */
static int make_red(struct call *call, struct kept *k)
{
        struct snib_multilock_options red = {.size = sizeof(red), .red = 1};
        struct snib_lock_options options = lock_options(call, "lock", k->lease_ms);
        snib_lock *members[SERVERS_MAX];
        size_t count = 0;
        int r = 0;

        for (; r == 0 && call->actor->clients[count]; count++)
                r = snib_lock_new(call->actor->clients[count], call->name, &options, &members[count], &call->err);
        return r < 0 ? r : snib_multilock_new(members, count, &red, &k->multilock, &call->err);
}

static int make_side(struct call *call, struct kept *k)
{
        struct snib_lock_options options = lock_options(call, "", k->lease_ms);
        snib_rwlock *rwlock;
        int r = snib_rwlock_new(call->actor->client, call->name, &options, &rwlock, &call->err);

        if (r == 0)
                k->lock = k->kind[0] == 'r' ? snib_rwlock_read(rwlock) : snib_rwlock_write(rwlock);
        return r;
}

static int make(struct call *call, struct kept *k)
{
        struct snib_lock_options options = lock_options(call, k->kind, k->lease_ms);
        snib_client *client = call->actor->client;

        if (strcmp(k->kind, "multi") == 0)
                return make_multilock(call, k);
        if (strcmp(k->kind, "red") == 0)
                return make_red(call, k);
        if (strcmp(k->kind, "read") == 0 || strcmp(k->kind, "write") == 0)
                return make_side(call, k);
        if (strcmp(k->kind, "semaphore") == 0)
                return snib_semaphore_new(client, call->name, 0, &k->semaphore, &call->err);
        if (strcmp(k->kind, "latch") == 0)
                return snib_latch_new(client, call->name, 0, &k->latch, &call->err);
        if (strcmp(k->kind, "permits") == 0) {
                options.owner = NULL;
                return snib_permits_new(client, call->name, &options, &k->permits, &call->err);
        }
        return snib_lock_new(client, call->name, &options, &k->lock, &call->err);
}

/* The handle for what a request names; NULL and the error said. A lease of -1: whichever there
 * is. */
static struct kept *handle(struct call *call, const char *kind, int64_t lease_ms)
{
        for (struct kept *k = call->actor->kept; k; k = k->next)
                if (!is_grant(k) && strcmp(k->kind, kind) == 0 && strcmp(k->name, call->name) == 0 &&
                    (lease_ms < 0 || k->lease_ms == lease_ms))
                        return k;
        struct kept *k = keep(call, kind, lease_ms < 0 ? 0 : lease_ms);
        int r = make(call, k);

        if (r < 0) {
                forget(call->actor, k);
                say_result(call, r);
                return NULL;
        }
        return k;
}

/* acquire NAME KIND WAIT LEASE; refused: 0, who holds it, the place in the queue */
static void do_acquire(struct call *call)
{
        struct kept *h = handle(call, text(call, 0), number(call, 2));
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        snib_multigrant *multigrant = NULL;
        snib_grant *grant = NULL;
        int r;

        if (!h)
                return;
        if (h->multilock)
                r = snib_multilock_acquire(h->multilock, number(call, 1), &multigrant, &call->err);
        else
                r = snib_lock_acquire_info(h->lock, number(call, 1), &grant, &info, &call->err);
        say_result(call, r);
        if (r == 0)
                say(call, "0 owner=%s position=%" PRId64, info.owner, info.position);
        if (r != 1)
                return;
        struct kept *k = keep(call, h->kind, h->lease_ms);
        k->grant = grant;
        k->multigrant = multigrant;
        if (grant)
                say(call, "1 %" PRId64, snib_grant_token(grant));
}

/* release NAME KIND: what was acquired last */
static void do_release(struct call *call)
{
        struct kept *k = find_grant(call, text(call, 0)), *h;
        int r;

        if (k) {
                r = k->grant ? snib_grant_release(k->grant, &call->err)
                             : snib_multigrant_release(k->multigrant, &call->err);
                forget(call->actor, k);
                say_result(call, r < 0 ? r : 1);
        } else if ((h = handle(call, text(call, 0), -1))) {
                say_result(call, snib_lock_release(h->lock, &call->err));
        }
}

/* force NAME KIND */
static void do_force(struct call *call)
{
        struct kept *h = handle(call, text(call, 0), -1);

        if (h)
                say_result(call, h->multilock ? snib_multilock_force_release(h->multilock, &call->err)
                                              : snib_lock_force_release(h->lock, &call->err));
}

static void say_info(struct call *call, int r, const struct snib_lock_info *i)
{
        if (r < 0) {
                say_result(call, r);
                return;
        }
        say(call,
            "held=%d mine=%d depth=%d left=%" PRId64 " foreign=%d waiters=%" PRId64 " position=%" PRId64
            " holders=%" PRId64 " value=%" PRId64 " limit=%" PRId64 " owner=%s kind=%s",
            i->held, i->mine, i->depth, i->lease_left_ms, i->foreign, i->waiters, i->position, i->holders, i->value,
            i->limit, i->owner, snib_kind_text(i->kind));
}

/* query NAME KIND */
static void do_query(struct call *call)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct kept *h = handle(call, text(call, 0), -1);

        if (h)
                say_info(call, snib_lock_query(h->lock, &info, &call->err), &info);
}

/* describe NAME */
static void do_describe(struct call *call)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;

        say_info(call, snib_describe(call->actor->client, call->name, 0, &info, &call->err), &info);
}

/* loss NAME KIND: why the hold that was acquired last was lost */
static void do_loss(struct call *call)
{
        struct kept *k = find_grant(call, text(call, 0));

        say_result(call, k && k->grant ? snib_grant_loss(k->grant) : SNIB_ENOTOWNER);
}

/* What a lock protects in the contention run: contention.py describes the file and reads what it
 * proves; Counter.java does the same. The answer is NULL, or what was wrong. */
static const char *count_one(int record, int log)
{
        int64_t self = getpid(), before[2], after[2];
        char line[64];

        if (pread(record, before, sizeof(before), 0) != sizeof(before))
                return "the record is cut";
        if (before[1] && kill((pid_t)before[1], 0) == 0)
                return "overlap: another process is inside";
        if (pwrite(record, (int64_t[2]){before[0], self}, sizeof(before), 0) != sizeof(before))
                return "cannot write";
        if (pread(record, after, sizeof(after), 0) != sizeof(after) || after[0] != before[0] || after[1] != self)
                return "overlap: another process came in";
        if (pwrite(record, (int64_t[2]){before[0] + 1, 0}, sizeof(before), 0) != sizeof(before))
                return "cannot write";
        int length = snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", before[0] + 1, self);
        return write(log, line, (size_t)length) == length ? NULL : "cannot write";
}

/* What a reader does instead. */
static const char *look(int record, int log)
{
        int64_t before[2], after[2];

        if (pread(record, before, sizeof(before), 0) != sizeof(before) ||
            pread(record, after, sizeof(after), 0) != sizeof(after))
                return "the record is cut";
        if (before[1] && kill((pid_t)before[1], 0) == 0)
                return "overlap: another process is inside";
        return before[0] == after[0] ? NULL : "overlap: the number changed";
}

static int64_t now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Does it under the lock until the time is up; how often, or what was wrong. */
static int64_t repeat(struct call *call, const struct kept *h, const char *(*act)(int record, int log), int record,
                      int log, const char **ret_wrong)
{
        int64_t times = 0;

        for (int64_t end = now_ms() + number(call, 3); now_ms() < end;) {
                snib_multigrant *all = NULL;
                snib_grant *grant = NULL;
                int r = h->multilock ? snib_multilock_acquire(h->multilock, COUNT_WAIT_MS, &all, &call->err)
                                     : snib_lock_acquire(h->lock, COUNT_WAIT_MS, &grant, &call->err);

                if (r < 0)
                        return r;
                if (r == 1) {
                        *ret_wrong = act(record, log);
                        r = all ? snib_multigrant_release(all, &call->err) : snib_grant_release(grant, &call->err);
                        if (*ret_wrong || r < 0)
                                return r;
                        times++;
                }
                if (act == look) /* readers all the time would let no writer in */
                        nanosleep(&(struct timespec){.tv_nsec = LOOK_PAUSE_NS}, NULL);
        }
        return times;
}

static void repeat_on_files(struct call *call, const char *(*act)(int record, int log))
{
        struct kept *h = handle(call, text(call, 0), 0);
        int record = open(text(call, 1), O_RDWR | O_CLOEXEC),
            log = open(text(call, 2), O_WRONLY | O_APPEND | O_CLOEXEC);
        const char *wrong = NULL;

        if (record < 0 || log < 0) {
                say(call, "error open %s", strerror(errno));
        } else if (h) {
                int64_t r = repeat(call, h, act, record, log, &wrong);
                if (wrong)
                        say(call, "error overlap %s", wrong);
                else
                        say_result(call, r);
        }
        if (record >= 0)
                close(record);
        if (log >= 0)
                close(log);
}

/* count NAME KIND FILE LOG MS */
static void do_count(struct call *call)
{
        repeat_on_files(call, count_one);
}

/* look NAME KIND FILE LOG MS */
static void do_look(struct call *call)
{
        repeat_on_files(call, look);
}

/* sem-set NAME N, sem-acquire NAME N WAIT, ... */
static void do_semaphore(struct call *call, const char *verb)
{
        struct kept *h = handle(call, "semaphore", -1);
        int64_t n = number(call, 0), value = 0;
        int r;

        if (!h)
                return;
        if (strcmp(verb, "set") == 0) {
                say_result(call, snib_semaphore_set(h->semaphore, n, 0, &call->err));
        } else if (strcmp(verb, "acquire") == 0) {
                say_result(call, snib_semaphore_acquire(h->semaphore, n, number(call, 1), &call->err));
        } else if (strcmp(verb, "release") == 0) {
                say_result(call, snib_semaphore_release(h->semaphore, n, &call->err));
        } else if (strcmp(verb, "add") == 0) {
                say_result(call, snib_semaphore_add(h->semaphore, n, NULL, &call->err));
        } else if (strcmp(verb, "delete") == 0) {
                say_result(call, snib_semaphore_delete(h->semaphore, &call->err));
        } else if (strcmp(verb, "drain") == 0) {
                r = snib_semaphore_drain(h->semaphore, &value, &call->err);
                say_result(call, r);
                if (r >= 0)
                        say(call, "%d %" PRId64, r, value);
        } else {
                r = snib_semaphore_query(h->semaphore, &value, &call->err);
                say_result(call, r);
                if (r >= 0)
                        say(call, "free=%" PRId64, value);
        }
}

/* permits-acquire NAME N WAIT LEASE: 1 and the ids */
static void permits_acquire(struct call *call)
{
        struct kept *h = handle(call, "permits", number(call, 2));
        snib_grant *grant;
        int r;

        if (!h)
                return;
        r = snib_permits_acquire(h->permits, number(call, 0), number(call, 1), &grant, &call->err);
        say_result(call, r);
        if (r != 1)
                return;
        keep(call, "permits", h->lease_ms)->grant = grant;
        char id[SNIB_PERMIT_ID_MAX];
        size_t used = 1;

        for (int64_t i = 0; snib_grant_permit_id(grant, i, id) == 0 && used + sizeof(id) + 1 < ANSWER_MAX; i++)
                used += (size_t)snprintf(call->answer + used, ANSWER_MAX - used, " %s", id);
}

static void permits_query(struct call *call, snib_permits *permits)
{
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        int r = snib_permits_query(permits, &info, &call->err);

        say_result(call, r);
        if (r >= 0)
                say(call, "free=%" PRId64 " taken=%" PRId64 " limit=%" PRId64 " next=%" PRId64, info.free, info.taken,
                    info.limit, info.next_expiry_ms);
}

/* permits-set NAME N, permits-release NAME ID..., permits-renew NAME ID LEASE, ... */
static void do_permits(struct call *call, const char *verb)
{
        if (strcmp(verb, "acquire") == 0) {
                permits_acquire(call);
                return;
        }
        struct kept *h = handle(call, "permits", -1);

        if (!h)
                return;
        if (strcmp(verb, "set") == 0)
                say_result(call, snib_permits_set(h->permits, number(call, 0), &call->err));
        else if (strcmp(verb, "add") == 0)
                say_result(call, snib_permits_add(h->permits, number(call, 0), NULL, &call->err));
        else if (strcmp(verb, "release") == 0)
                say_result(call, snib_permits_release_ids(h->permits, (const char *const *)call->args,
                                                          (size_t)call->count, &call->err));
        else if (strcmp(verb, "renew") == 0)
                say_result(call, snib_permits_renew_id(h->permits, text(call, 0), number(call, 1), &call->err));
        else if (strcmp(verb, "delete") == 0)
                say_result(call, snib_permits_delete(h->permits, &call->err));
        else
                permits_query(call, h->permits);
}

/* latch-set NAME N, latch-await NAME WAIT, ... */
static void do_latch(struct call *call, const char *verb)
{
        struct kept *h = handle(call, "latch", -1);
        int64_t count = 0;

        if (!h)
                return;
        if (strcmp(verb, "set") == 0) {
                say_result(call, snib_latch_set(h->latch, number(call, 0), &call->err));
        } else if (strcmp(verb, "down") == 0) {
                say_result(call, snib_latch_count_down(h->latch, 1, NULL, &call->err));
        } else if (strcmp(verb, "await") == 0) {
                say_result(call, snib_latch_await(h->latch, number(call, 0), &call->err));
        } else if (strcmp(verb, "delete") == 0) {
                say_result(call, snib_latch_delete(h->latch, &call->err));
        } else {
                int r = snib_latch_query(h->latch, &count, &call->err);
                say_result(call, r);
                if (r >= 0)
                        say(call, "left=%" PRId64, count);
        }
}

void execute(struct actor *actor, char **words, int count, char answer[ANSWER_MAX])
{
        static const struct {
                const char *verb;
                void (*run)(struct call *call);
        } verbs[] = {{"acquire", do_acquire}, {"release", do_release},   {"force", do_force}, {"query", do_query},
                     {"loss", do_loss},       {"describe", do_describe}, {"count", do_count}, {"look", do_look}};
        struct call call = {.actor = actor, .answer = answer, .err = SNIB_ERROR_INIT};

        if (count < 2) {
                say(&call, "error usage");
                return;
        }
        call.name = words[1];
        call.args = words + 2;
        call.count = count - 2;
        for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
                if (strcmp(words[0], verbs[i].verb) == 0) {
                        verbs[i].run(&call);
                        return;
                }
        if (strncmp(words[0], "sem-", 4) == 0)
                do_semaphore(&call, words[0] + 4);
        else if (strncmp(words[0], "permits-", 8) == 0)
                do_permits(&call, words[0] + 8);
        else if (strncmp(words[0], "latch-", 6) == 0)
                do_latch(&call, words[0] + 6);
        else
                say(&call, "error usage %s", words[0]);
}
