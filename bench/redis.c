/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two limits that snib is held against on Redis: a blocking socket and hiredis, each with a
 * connection of its own for every thread, each running the same two scripts for acquire and release
 * with the same arguments. No lock library: no lease is watched, nothing is renewed, a reply that
 * is lost is lost. `where` is redis://127.0.0.1:PORT.
 */

#include "bench.h"
#include "engine/redis/script.h"
#include <arpa/inet.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* As long as snib's. */
#define HOLD_ID "6d4b7c1e-5a02-4c33-9f9a-4b1d0a8e77c5:%d"
#define LEASE_MS "30000"

#define ARGUMENTS_MAX 8

/* What follows the script in the two requests, up to a NULL: how many keys, keys, others. The same
 * as snib's, so that the server has the same to do. */
struct words {
        char key[64], id[64];
        char channel[96];
        const char *take[ARGUMENTS_MAX], *give[ARGUMENTS_MAX];
};

static void make_words(struct words *w, int thread)
{
        const char *take[] = {"1", w->key, w->id, LEASE_MS, "0", "0", NULL};
        const char *give[] = {"1", w->key, w->id, w->channel, "1", NULL};

        snprintf(w->key, sizeof(w->key), "bench:%d", thread);
        snprintf(w->id, sizeof(w->id), HOLD_ID, thread);
        snprintf(w->channel, sizeof(w->channel), "redisson_lock__channel:{%s}", w->key);
        memcpy(w->take, take, sizeof(take));
        memcpy(w->give, give, sizeof(give));
}

static int port_of(const char *where)
{
        return (int)strtol(strrchr(where, ':') + 1, NULL, 10);
}

/* The server keeps scripts for all connections. */
void *bench_redis_connect(const char *where)
{
        redisContext *c = redisConnect("127.0.0.1", port_of(where));

        if (!c || c->err)
                bench_die("no Redis at %s", where);
        for (int i = 0; i < SNIB__SCRIPTS; i++) {
                const struct snib__redis_script *s = &snib__redis_scripts_built_in[i];
                redisReply *r = redisCommand(c, "SCRIPT LOAD %b", s->text, s->length);
                if (!r || r->type != REDIS_REPLY_STRING || strcmp(r->str, s->sha1) != 0)
                        bench_die("SCRIPT LOAD %s failed", s->name);
                freeReplyObject(r);
        }
        return c;
}

void bench_redis_disconnect(void *context)
{
        redisFree(context);
}

/* --- a socket --- */

struct bare {
        int fd;
        int64_t look_ns; /* it reads without blocking first, for so long */
        int acquire_length;
        int release_length;
        char acquire[640];
        char release[640];
};

/* `words`: as in struct words. */
static int format(char *ret, size_t size, int script, const char *const *words)
{
        int count = 2, n;

        while (words[count - 2])
                count++;
        n = snprintf(ret, size, "*%d\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n", count,
                     snib__redis_scripts_built_in[script].sha1);
        for (int i = 0; i < count - 2; i++)
                n += snprintf(ret + n, size - (size_t)n, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
        return n;
}

/* Negative: refused. */
static int dial(const char *where)
{
        struct sockaddr_in a = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)port_of(where)), .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

        if (fd < 0)
                return fd;
        if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
                close(fd);
                return -1;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        return fd;
}

static void *bare_begin_looking(const char *where, int thread, int64_t look_ns)
{
        struct bare *b = calloc(1, sizeof(*b));
        struct words w;

        if (!b)
                return NULL;
        b->fd = dial(where);
        if (b->fd < 0) {
                free(b);
                return NULL;
        }
        b->look_ns = look_ns;
        make_words(&w, thread);
        b->acquire_length = format(b->acquire, sizeof(b->acquire), SNIB__SCRIPT_ACQUIRE, w.take);
        b->release_length = format(b->release, sizeof(b->release), SNIB__SCRIPT_RELEASE, w.give);
        return b;
}

static void *bare_begin(void *shared, const char *where, int thread)
{
        return bare_begin_looking(where, thread, 0);
}

static void *looking_begin_50(void *shared, const char *where, int thread)
{
        return bare_begin_looking(where, thread, 50000);
}

static void *looking_begin_200(void *shared, const char *where, int thread)
{
        return bare_begin_looking(where, thread, 200000);
}

static void *looking_begin_500(void *shared, const char *where, int thread)
{
        return bare_begin_looking(where, thread, 500000);
}

static void bare_end(void *mine)
{
        struct bare *b = mine;

        close(b->fd);
        free(b);
}

static ssize_t get(const struct bare *b, void *ret, size_t size)
{
        int64_t until = b->look_ns ? bench_now() + b->look_ns : 0;

        while (until) {
                ssize_t n = recv(b->fd, ret, size, MSG_DONTWAIT);
                if (n >= 0 || errno != EAGAIN)
                        return n;
                if (bench_now() >= until)
                        break;
        }
        return read(b->fd, ret, size);
}

/* Sends a request and reads a reply of so many lines; true if it begins as it should. */
static bool ask(const struct bare *b, const char *request, int length, int lines, const char *begins)
{
        char reply[256];
        size_t have = 0;

        if (write(b->fd, request, (size_t)length) != length)
                return false;
        while (lines > 0) {
                ssize_t n = get(b, reply + have, sizeof(reply) - have);
                if (n <= 0)
                        return false;
                for (ssize_t i = 0; i < n; i++)
                        lines -= reply[have + (size_t)i] == '\n';
                have += (size_t)n;
        }
        return !memcmp(reply, begins, strlen(begins));
}

static bool bare_pair(void *mine)
{
        struct bare *b = mine;

        return ask(b, b->acquire, b->acquire_length, 4, "*2\r\n:1\r\n") &&
               ask(b, b->release, b->release_length, 2, "*1\r\n:1\r\n");
}

const struct bench_contender bench_redis_bare = {
    "bare blocking sockets", bench_redis_connect, bench_redis_disconnect, bare_begin, bare_end, bare_pair};
const struct bench_contender bench_redis_looking = {
    "bare, looking 50 us", bench_redis_connect, bench_redis_disconnect, looking_begin_50, bare_end, bare_pair};
const struct bench_contender bench_redis_bare_same_core = {
    "bare blocking, same core", bench_redis_connect, bench_redis_disconnect, bare_begin, bare_end, bare_pair,
    .same_core = true};

/* --- the same where no script has to be loaded --- */

static void *nothing_open(const char *where)
{
        static char nothing;

        return &nothing;
}

static void nothing_close(void *shared)
{
}

const struct bench_contender bench_delayed_sleeping = {"bare, blocking", nothing_open, nothing_close,
                                                       bare_begin,       bare_end,     bare_pair};
const struct bench_contender bench_delayed_looking_50 = {"bare, looking 50 us", nothing_open, nothing_close,
                                                         looking_begin_50,      bare_end,     bare_pair};
const struct bench_contender bench_delayed_looking_200 = {"bare, looking 200 us", nothing_open, nothing_close,
                                                          looking_begin_200,      bare_end,     bare_pair};
const struct bench_contender bench_delayed_looking_500 = {"bare, looking 500 us", nothing_open, nothing_close,
                                                          looking_begin_500,      bare_end,     bare_pair};

/* --- a socket, and the scripts of other objects
 * ---------------------------------------------------------------------------- */

#define DONE_MS "60000"
/* Of hold and request, counted up with every pair as snib's are: the server remembers some of
 * them. */
#define COUNTED ":00000000"
#define TAKE_ID "6d4b7c1e-5a02-4c33-9f9a-4b1d0a8e77c5" COUNTED
#define GIVE_ID "6d4b7c1e-5a02-4c33-9f9a-4b1d0a8e77c6" COUNTED
#define WORDS_MAX 14

#define LOCK_CHANNEL "redisson_lock__channel:{bare}"
#define FAIR_KEYS "4", "bare", "redisson_lock_queue:{bare}", "redisson_lock_timeout:{bare}", "snib_waiting:{bare}"
#define RELEASED                                        \
        SNIB__SCRIPT_RELEASE, 2,                        \
        {                                               \
                "1", "bare", TAKE_ID, LOCK_CHANNEL, "1" \
        }

/* A script, how many lines its answer has, and its words. */
struct step {
        int script, lines;
        const char *words[WORDS_MAX];
};

/* clang-format off */
static const struct {
        struct step take, give;
} pairs[BENCH_NOUNS] = {
    [BENCH_LOCK] = {{SNIB__SCRIPT_ACQUIRE, 4, {"1", "bare", TAKE_ID, LEASE_MS, "0", "0"}}, {RELEASED}},
    [BENCH_FENCED] = {{SNIB__SCRIPT_ACQUIRE_FENCED, 4,
                       {"2", "bare", "redisson_lock_token:{bare}", TAKE_ID, LEASE_MS, "0", "16", "0"}}, {RELEASED}},
    [BENCH_FAIR] = {{SNIB__SCRIPT_FAIR, 4, {FAIR_KEYS, "1", TAKE_ID, LOCK_CHANNEL, LEASE_MS, "0", "0", LEASE_MS}},
                    {SNIB__SCRIPT_FAIR, 2, {FAIR_KEYS, "2", TAKE_ID, LOCK_CHANNEL}}},
    [BENCH_SPIN] = {{SNIB__SCRIPT_ACQUIRE, 4, {"1", "bare", TAKE_ID, LEASE_MS, "0"}},
                    {SNIB__SCRIPT_RELEASE, 2, {"1", "bare", TAKE_ID}}},
    [BENCH_WRITE] = {{SNIB__SCRIPT_RW, 4,
                      {"1", "bare", "1", "6", TAKE_ID, "{bare}", "redisson_rwlock:{bare}", LEASE_MS, "0", ""}},
                     {SNIB__SCRIPT_RW, 2, {"1", "bare", "2", "6", TAKE_ID, "{bare}", "redisson_rwlock:{bare}"}}},
    [BENCH_SEMAPHORE] = {{SNIB__SCRIPT_SEMAPHORE_ACQUIRE, 3,
                          {"2", "bare", "snib_request:{bare}:" TAKE_ID, "1", DONE_MS}},
                         {SNIB__SCRIPT_SEMAPHORE_ADD, 3,
                          {"2", "bare", "snib_request:{bare}:" GIVE_ID, "1", "0", "redisson_sc:{bare}", DONE_MS}}},
    [BENCH_PERMITS] = {{SNIB__SCRIPT_PERMITS_ACQUIRE, 4,
                        {"2", "bare", "{bare}:timeout", LEASE_MS, "0", "an id of 16 byte", "redisson_sc:{bare}"}},
                       {SNIB__SCRIPT_PERMITS_RELEASE, 2,
                        {"2", "bare", "{bare}:timeout", "an id of 16 byte", "redisson_sc:{bare}"}}},
};
/* clang-format on */

/* `at` NULL: the request has no id. */
static void number(char *at, unsigned pair)
{
        char digits[sizeof(COUNTED)];

        snprintf(digits, sizeof(digits), ":%08u", pair % 100000000);
        if (at)
                memcpy(at, digits, strlen(digits));
}

double bench_redis_bare_rate(enum bench_noun noun, const char *where, int64_t run_ms)
{
        const struct step *take = &pairs[noun].take, *give = &pairs[noun].give;
        redisContext *c = bench_redis_connect(where);
        struct bare b = {.fd = dial(where)};
        char *first, *second;
        int64_t until;
        unsigned done = 0;

        if (b.fd < 0)
                bench_die("no Redis at %s", where);
        freeReplyObject(redisCommand(c, "DEL bare {bare}:timeout"));
        if (noun == BENCH_SEMAPHORE || noun == BENCH_PERMITS)
                freeReplyObject(redisCommand(c, "SET bare 1"));
        b.acquire_length = format(b.acquire, sizeof(b.acquire), take->script, take->words);
        b.release_length = format(b.release, sizeof(b.release), give->script, give->words);
        first = strstr(b.acquire, COUNTED);
        second = strstr(b.release, COUNTED);
        for (until = bench_now() + run_ms * 1000000; bench_now() < until; done++) {
                number(first, done);
                number(second, done);
                if (!ask(&b, b.acquire, b.acquire_length, take->lines, "*2\r\n:1\r\n") ||
                    !ask(&b, b.release, b.release_length, give->lines,
                         give->lines == 2 ? "*1\r\n:1\r\n" : "*2\r\n:1\r\n"))
                        bench_die("%s: a bare pair failed", bench_noun_text(noun));
        }
        freeReplyObject(redisCommand(c, "DEL bare"));
        close(b.fd);
        bench_redis_disconnect(c);
        return (double)done * 1e3 / (double)run_ms;
}

/* --- hiredis --- */

struct hired {
        redisContext *c;
        struct words w;
};

static void *hired_begin(void *shared, const char *where, int thread)
{
        struct hired *h = calloc(1, sizeof(*h));

        (void)shared;
        if (!h)
                return NULL;
        h->c = redisConnect("127.0.0.1", port_of(where));
        if (!h->c || h->c->err) {
                free(h);
                return NULL;
        }
        make_words(&h->w, thread);
        return h;
}

static void hired_end(void *mine)
{
        struct hired *h = mine;

        redisFree(h->c);
        free(h);
}

bool bench_redis_ask(redisContext *c, int script, const char *const *arguments)
{
        const char *words[2 + ARGUMENTS_MAX] = {"EVALSHA", snib__redis_scripts_built_in[script].sha1};
        int count = 2;

        while (*arguments)
                words[count++] = *arguments++;
        redisReply *r = redisCommandArgv(c, count, words, NULL);
        bool good = r && r->type == REDIS_REPLY_ARRAY && r->elements > 0 && r->element[0]->integer == 1;

        if (r)
                freeReplyObject(r);
        return good;
}

static bool hired_pair(void *mine)
{
        struct hired *h = mine;

        return bench_redis_ask(h->c, SNIB__SCRIPT_ACQUIRE, h->w.take) &&
               bench_redis_ask(h->c, SNIB__SCRIPT_RELEASE, h->w.give);
}

const struct bench_contender bench_redis_hiredis = {"hiredis connections", bench_redis_connect, bench_redis_disconnect,
                                                    hired_begin,           hired_end,           hired_pair};
