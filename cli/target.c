/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a name and options to handles of the library, and one way to acquire, ask and release
 * whichever it is. Not the waiting (waiting.c) and not the running (child.c). Main thread only.
 */

#include "target.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include <string.h>

/* ---- the command line ---- */

/* "NAME", "NAME:s", "NAME:x" */
static void key_parse(const char *text, struct target_key *ret)
{
        size_t n = strnlen(text, SNIB_NAME_MAX + 2);

        ret->side = 0;
        if (n > 2 && text[n - 2] == ':' && (text[n - 1] == 's' || text[n - 1] == 'x')) {
                ret->side = text[n - 1];
                n -= 2;
        }
        snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(n < SNIB_NAME_MAX ? n : SNIB_NAME_MAX), text);
}

/* Key number i; the options choose the side of a NAME that says none. */
static void key_at(const struct options *o, const char *name, int i, struct target_key *ret)
{
        if (name) {
                snprintf(ret->name, sizeof(ret->name), "%s", name);
                ret->side = 0;
        } else {
                key_parse(o->keys.text[i], ret);
        }
        if (!ret->side)
                ret->side = o->shared ? 's' : o->exclusive ? 'x' : 0;
}

static int usage(const char *text)
{
        return snib__out_fail(EXIT_USAGE, NULL, "%s", text);
}

static int check_kinds(const struct options *o)
{
        bool sided = o->shared || o->exclusive;

        if (o->shared && o->exclusive)
                return usage("--shared and --exclusive: give one of the two");
        if (sided && (o->fair || o->fenced))
                return usage("--shared and --exclusive choose a side of a read-write lock, which is neither --fair nor "
                             "--fenced");
        if (o->fair && o->fenced)
                return usage("--fair and --fenced: give one of the two");
        if (o->permits && (sided || o->fair || o->fenced))
                return usage("--permits: a semaphore is neither --shared, --exclusive, --fair nor --fenced");
        if (o->permits > SNIB_PERMITS_AT_ONCE_MAX || o->of > SNIB_PERMITS_MAX)
                return snib__out_fail(EXIT_USAGE, "SNIB_ELIMIT", "--permits: at most %lld at once, --of at most %lld",
                                      (long long)SNIB_PERMITS_AT_ONCE_MAX, (long long)SNIB_PERMITS_MAX);
        if (o->of && !o->permits)
                return usage("--of: give --permits too");
        if (o->of && o->permits > o->of)
                return usage("--permits: more than --of can never be had");
        return 0;
}

int snib__target_check(const struct options *o, const char *name)
{
        int wrong = check_kinds(o);

        if (!wrong && name)
                wrong = snib__opt_name(name);
        for (int i = 0; !wrong && !name && i < o->keys.count; i++) {
                struct target_key key;
                wrong = snib__opt_name(o->keys.text[i]);
                key_parse(o->keys.text[i], &key);
                if (!wrong && key.side && (o->permits || o->fair || o->fenced))
                        wrong = usage("--key: NAME:s and NAME:x are sides of read-write locks; they go with none of "
                                      "--permits, --fair, --fenced");
        }
        if (!wrong && o->permits && (o->keys.count > 1 || o->red.count))
                wrong = usage("--permits: of one semaphore on one engine only");
        if (!wrong && o->min_hold_ms && (o->keys.count > 1 || o->red.count))
                wrong = usage("--hold-at-least: of one NAME on one engine only");
        if (!wrong && o->min_hold_ms > SNIB_LEASE_MAX_MS)
                wrong = usage("--hold-at-least: at most 365d");
        if (!wrong && o->red.count && o->url)
                wrong = usage("--red: takes the place of --url");
        if (!wrong && o->red.count && o->keys.count > 1)
                wrong = usage("--red: one NAME only");
        if (!wrong && o->red.count && o->red.count < 3)
                wrong = usage("--red: give it for three servers or more; a majority of two is both");
        return wrong;
}

void snib__target_text(const struct options *o, const char *name, char *ret, size_t size)
{
        size_t n = 0;

        if (name)
                n = (size_t)snprintf(ret, size, "%s", name);
        for (int i = 0; !name && i < o->keys.count && n < size; i++)
                n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", o->keys.text[i]);
}

/* ---- handles ---- */

static struct snib_lock_options lock_options(const struct target *t)
{
        const struct options *o = t->session->options;

        return (struct snib_lock_options){.size = sizeof(struct snib_lock_options),
                                          .lease_ms = o->lease_ms > 0 ? o->lease_ms : 0,
                                          .fixed_lease = o->fixed_lease,
                                          .max_hold_ms = t->session->max_hold_ms};
}

static int failed(const struct target *t, int code, const struct snib_error *err)
{
        return snib__session_fail(t->session, code, err,
                                  code == SNIB_ENAME    ? "NAME"
                                  : code == SNIB_ELEASE ? "--lease"
                                                        : NULL);
}

static int open_lock(struct target *t, snib_client *client, const struct target_key *key)
{
        const struct options *o = t->session->options;
        struct snib_lock_options options = lock_options(t);
        struct snib_error err = SNIB_ERROR_INIT;
        int i = t->count, r;

        if (key->side) {
                r = snib_rwlock_new(client, key->name, &options, &t->rwlock[i], &err);
                if (r >= 0)
                        t->lock[i] =
                            key->side == 's' ? snib_rwlock_read(t->rwlock[i]) : snib_rwlock_write(t->rwlock[i]);
        } else {
                options.kind = o->fenced ? SNIB_LOCK_FENCED : o->fair ? SNIB_LOCK_FAIR : SNIB_LOCK_REENTRANT;
                r = snib_lock_new(client, key->name, &options, &t->lock[i], &err);
        }
        if (r < 0)
                return failed(t, r, &err);
        t->count++;
        return 0;
}

/* Makes it with --of permits; one that exists keeps its number. */
static int set_limit(struct target *t, const char *name)
{
        static struct answer set = {.err = SNIB_ERROR_INIT}, there = {.err = SNIB_ERROR_INIT};
        struct session *s = t->session;
        int64_t of = s->options->of;
        char safe[SNIB__SAFE_MAX];

        if (!of)
                return 0;
        int r = snib__session_ask(s, &set, snib_permits_set_async(t->permits, of, snib__answer_value, &set, &set.err));
        if (r < 0 && set.done)
                return failed(t, r, &set.err);
        if (r != 0 ||
            snib__session_ask(s, &there, snib_describe_async(s->client, name, 0, snib__answer_info, &there, NULL)) != 1)
                return 0;
        /* Of a number of which nothing is out: all of it. */
        int64_t limit = there.info.limit >= 0 ? there.info.limit : there.info.value;
        if (limit != of)
                snib__out_note("limit", "%s has %lld permits already, not %lld; snib sem -x resize changes that",
                               snib__out_safe(name, strlen(name), safe, sizeof(safe)), (long long)limit, (long long)of);
        return 0;
}

static int open_permits(struct target *t, const char *name)
{
        struct snib_lock_options options = lock_options(t);
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_permits_new(t->session->client, name, &options, &t->permits, &err);

        return r < 0 ? failed(t, r, &err) : set_limit(t, name);
}

static int open_multi(struct target *t)
{
        struct snib_multilock_options options = {.size = sizeof(struct snib_multilock_options),
                                                 .red = t->session->options->red.count > 0};
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_multilock_new(t->lock, (size_t)t->count, &options, &t->multi, &err);

        return r < 0 ? failed(t, r, &err) : 0;
}

int snib__target_open(struct target *t, struct session *s, const char *name)
{
        const struct options *o = s->options;
        struct target_key key;
        int keys = name ? 1 : o->keys.count;
        int wrong = 0;

        memset(t, 0, sizeof(*t));
        t->session = s;
        t->name = name;
        key_at(o, name, 0, &key);
        if (o->permits)
                return open_permits(t, key.name);
        for (int i = 0; !wrong && i < keys; i++) {
                key_at(o, name, i, &key);
                for (int c = 0; !wrong && c < s->client_count; c++)
                        wrong = open_lock(t, s->clients[c], &key);
        }
        return !wrong && t->count > 1 ? open_multi(t) : wrong;
}

void snib__target_key(const struct target *t, int i, struct target_key *ret)
{
        key_at(t->session->options, t->name, i / t->session->client_count, ret);
}

int snib__target_open_election(struct target *t, struct session *s, const char *name)
{
        struct snib_lock_options options;
        struct snib_error err = SNIB_ERROR_INIT;

        memset(t, 0, sizeof(*t));
        t->session = s;
        t->name = name;
        options = lock_options(t);
        int r = snib_election_new(s->client, name, &options, &t->election, &err);
        if (r >= 0) /* it can be asked about without waiting, as any lock */
                r = snib_lock_new(s->client, name, &options, &t->lock[0], &err);
        t->count = r >= 0;
        return r < 0 ? failed(t, r, &err) : 0;
}

void snib__target_close(struct target *t)
{
        snib_multilock_free(t->multi);
        snib_permits_free(t->permits);
        snib_election_free(t->election);
        for (int i = 0; i < t->count; i++)
                if (t->rwlock[i])
                        snib_rwlock_free(t->rwlock[i]);
                else
                        snib_lock_free(t->lock[i]);
        memset(t, 0, sizeof(*t));
}

/* ---- acquiring ---- */

static void on_grant(void *arg, int result, snib_grant *grant, const struct snib_error *err)
{
        struct target *t = arg;

        t->acquired(t->arg, result, (struct held){.grant = result == 1 ? grant : NULL}, err);
}

static void on_multigrant(void *arg, int result, snib_multigrant *grant, const struct snib_error *err)
{
        struct target *t = arg;

        t->acquired(t->arg, result, (struct held){.multi = result == 1 ? grant : NULL}, err);
}

int snib__target_acquire_async(struct target *t, int64_t wait_ms, target_acquired *acquired, void *arg,
                               struct snib_error *err)
{
        t->acquired = acquired;
        t->arg = arg;
        if (t->multi)
                return snib_multilock_acquire_async(t->multi, wait_ms, on_multigrant, t, err);
        if (t->permits)
                return snib_permits_acquire_async(t->permits, t->session->options->permits, wait_ms, on_grant, t, err);
        if (t->election)
                return snib_election_campaign_async(t->election, wait_ms, on_grant, t, err);
        return snib_lock_acquire_async(t->lock[0], wait_ms, on_grant, t, err);
}

void snib__target_cancel(struct target *t)
{
        if (t->multi)
                snib_multilock_cancel(t->multi);
        else if (t->permits)
                snib_permits_cancel(t->permits);
        else if (t->election)
                snib_election_cancel(t->election);
        else
                snib_lock_cancel(t->lock[0]);
}

bool snib__target_look_async(struct target *t, snib_info_callback *done, void *arg)
{
        if (!t->count)
                return false;
        t->looked = (t->looked + 1) % t->count;
        return snib_lock_query_async(t->lock[t->looked], done, arg, NULL) >= 0;
}

/* ---- holding ---- */

bool snib__held_any(const struct held *h)
{
        return h->grant || h->multi;
}

bool snib__held_valid(const struct held *h)
{
        return h->multi ? snib_multigrant_valid(h->multi) : snib_grant_valid(h->grant);
}

int64_t snib__held_left_ms(const struct held *h)
{
        return h->multi ? snib_multigrant_left_ms(h->multi) : snib_grant_left_ms(h->grant);
}

int64_t snib__held_token(const struct held *h)
{
        return h->multi ? snib_multigrant_token(h->multi) : snib_grant_token(h->grant);
}

/* The first member that is held. */
static snib_grant *some_grant(const struct held *h)
{
        for (size_t i = 0; h->multi && i < SNIB_MULTILOCK_MAX; i++) {
                snib_grant *grant = snib_multigrant_member(h->multi, i);
                if (grant)
                        return grant;
        }
        return h->grant;
}

const char *snib__held_owner(const struct held *h)
{
        return snib_grant_owner(some_grant(h));
}

int snib__held_loss(const struct held *h)
{
        return h->multi ? snib_multigrant_loss(h->multi) : snib_grant_loss(h->grant);
}

int snib__held_trouble(const struct held *h, struct snib_error *err)
{
        int r = h->grant ? snib_grant_trouble(h->grant, err) : 0;

        for (size_t i = 0; h->multi && r == 0 && i < SNIB_MULTILOCK_MAX; i++) {
                snib_grant *member = snib_multigrant_member(h->multi, i);

                if (member)
                        r = snib_grant_trouble(member, err);
        }
        return r;
}

static void nobody_waits(void *arg, int result, const struct snib_error *err)
{
        (void)arg, (void)result, (void)err;
}

int snib__held_drop(struct held *h)
{
        if (h->multi)
                (void)snib_multigrant_release_async(h->multi, nobody_waits, NULL, NULL);
        else if (h->grant)
                (void)snib_grant_release_async(h->grant, nobody_waits, NULL, NULL);
        h->multi = NULL;
        h->grant = NULL;
        return SNIB_ELOST;
}

int snib__held_renew(struct held *h, struct snib_error *err)
{
        return snib_grant_renew(h->grant, err);
}

int snib__held_leave(struct held *h, int64_t lease_ms, struct snib_error *err)
{
        int r = snib_grant_leave(h->grant, lease_ms, err);

        h->grant = NULL;
        return r;
}

int snib__held_release(struct held *h, struct snib_error *err)
{
        int r = h->multi ? snib_multigrant_release(h->multi, err) : h->grant ? snib_grant_release(h->grant, err) : 0;

        h->multi = NULL;
        h->grant = NULL;
        return r;
}
