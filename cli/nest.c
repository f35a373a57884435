/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who of us holds it already. SNIB_HELD is a list of entries, apart by blanks, each
 * "by,kind,pid,start,engine,count,token,owner,name" with the owner and the name percent-encoded. It
 * is a hint: an entry counts only if its process is still above this one, and if the engine says
 * that its owner still holds the name. So an environment that outlived its hold, or went to a job
 * elsewhere, refuses nothing. Main thread only.
 */

#include "nest.h"
#include "out.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES_MAX 64
#define ANCESTORS_MAX 256

/* ---- the list as text ---- */

/* FNV-1a: two processes compare where they look, no more. */
static uint64_t digest(const char *text)
{
        uint64_t h = 0xcbf29ce484222325U;

        for (; *text; text++)
                h = (h ^ (unsigned char)*text) * 0x100000001b3U;
        return h;
}

static void put_encoded(FILE *f, const char *text)
{
        for (const unsigned char *p = (const unsigned char *)text; *p; p++)
                if ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    strchr("-_.:/", *p))
                        fputc(*p, f);
                else
                        fprintf(f, "%%%02x", *p);
}

/* False if it does not fit, or is not encoded. */
static bool get_decoded(const char *text, size_t length, char *ret, size_t size)
{
        size_t n = 0;

        for (size_t i = 0; i < length; i++, n++) {
                char digits[3] = "";
                char *end = digits;
                int byte = (unsigned char)text[i];

                if (n + 1 >= size)
                        return false;
                if (byte == '%') {
                        memcpy(digits, text + i + 1, length - i > 2 ? 2 : 0);
                        byte = (int)strtol(digits, &end, 16);
                        if (end != digits + 2)
                                return false;
                        i += 2;
                }
                ret[n] = (char)byte;
        }
        ret[n] = 0;
        return true;
}

static void put_entry(FILE *f, const struct nest_hold *h)
{
        fprintf(f, "%c,%c,%d,%llu,%llx,%lld,%lld,", h->by, h->kind, (int)h->pid, (unsigned long long)h->start,
                (unsigned long long)h->engine, (long long)h->count, (long long)h->token);
        put_encoded(f, h->owner);
        fputc(',', f);
        put_encoded(f, h->name);
}

static bool get_entry(const char *text, size_t length, struct nest_hold *ret)
{
        unsigned long long start = 0, engine = 0;
        long long count = 0, token = 0;
        int pid = 0, used = 0;

        *ret = (struct nest_hold){0};
        if (sscanf(text, "%c,%c,%d,%llu,%llx,%lld,%lld,%n", &ret->by, &ret->kind, &pid, &start, &engine, &count, &token,
                   &used) != 7 ||
            used == 0 || (size_t)used >= length || !strchr("roea", ret->by) || !strchr("-sxpe", ret->kind))
                return false;
        const char *owner = text + used;
        const char *comma = memchr(owner, ',', length - (size_t)used);
        ret->pid = pid;
        ret->start = start;
        ret->engine = engine;
        ret->count = count;
        ret->token = token;
        return comma && get_decoded(owner, (size_t)(comma - owner), ret->owner, sizeof(ret->owner)) &&
               get_decoded(comma + 1, length - (size_t)(comma + 1 - text), ret->name, sizeof(ret->name));
}

/* ---- which of them count ---- */

/* True if a process above this one is the entry's. */
static bool is_above(const struct nest_hold *h)
{
        struct process p = {.parent = getppid()};

        for (int i = 0; i < ANCESTORS_MAX && snib__process_read(p.parent, &p); i++)
                if (p.pid == h->pid)
                        return p.start == h->start;
        return false;
}

struct nest {
        struct nest_hold hold[ENTRIES_MAX];
        int count;
};

/* The entries of processes above, the nearest last. */
static void read_list(struct nest *n)
{
        const char *p = getenv(SNIB__NEST_VARIABLE);

        n->count = 0;
        while (p && *p && n->count < ENTRIES_MAX) {
                size_t length = strcspn(p, " ");
                if (get_entry(p, length, &n->hold[n->count]) && is_above(&n->hold[n->count]))
                        n->count++;
                p += length + strspn(p + length, " ");
        }
}

static uint64_t engine_of(const struct session *s, int member)
{
        return digest(snib_client_url(s->clients[member % s->client_count]));
}

static char kind_of(const struct target *t, const struct target_key *key)
{
        return t->election ? 'e' : t->permits ? 'p' : key->side ? key->side : '-';
}

/* How many things a target is made of: its locks, or one. */
static int members(const struct target *t)
{
        return t->election || t->permits ? 1 : t->count;
}

/* True if the engine says of a member what the entry does. Readers are many, and the engine names
 * one of them; permits are counted. */
static bool confirmed(struct session *s, int member, const struct nest_hold *h, int64_t *ret_left_ms)
{
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct snib_permits_info permits = SNIB_PERMITS_INFO_INIT;
        struct target *t = &s->target;
        bool here = h->engine == engine_of(s, member);

        *ret_left_ms = -1;
        if (t->permits)
                return here && snib_permits_query(t->permits, &permits, NULL) == 1 && permits.taken >= h->count;
        if ((t->election ? snib_election_leader(t->election, &info, NULL)
                         : snib_lock_query(t->lock[member], &info, NULL)) != 1)
                return false;
        *ret_left_ms = info.lease_left_ms;
        return !strncmp(info.owner, h->owner, sizeof(info.owner)) ||
               (here && h->kind == 's' && info.kind == SNIB_KIND_READ && info.holders > 1);
}

/* True if who wants `wanted` may have to wait for who holds `held`. A read waits for a read where a
 * writer waits in between; permits, where too few are left. */
static bool excludes(char held, char wanted)
{
        return held == wanted || (held == 's' && wanted == 'x') || (held == 'x' && wanted == 's');
}

static bool is_hold_of(const struct nest_hold *h, const struct target *t, const struct target_key *key)
{
        return !strcmp(h->name, key->name) && excludes(h->kind, kind_of(t, key));
}

/* True if all permits but those of the processes above are too few. */
static bool permits_short(struct session *s, const struct nest *n, const struct target_key *key)
{
        struct snib_permits_info info = SNIB_PERMITS_INFO_INIT;
        int64_t ours = 0;

        for (int i = 0; i < n->count; i++)
                if (is_hold_of(&n->hold[i], &s->target, key) && n->hold[i].engine == engine_of(s, 0))
                        ours += n->hold[i].count;
        return snib_permits_query(s->target.permits, &info, NULL) == 1 && info.taken >= ours &&
               s->options->permits > info.limit - ours;
}

bool snib__nest_find(struct session *s, struct nest_hold *ret)
{
        static struct nest n;
        struct target_key key;
        struct target *t = &s->target;
        int64_t left;

        read_list(&n);
        for (int member = 0; n.count > 0 && member < members(t); member++) {
                snib__target_key(t, member, &key);
                for (int i = n.count - 1; i >= 0; i--)
                        if (is_hold_of(&n.hold[i], t, &key) && confirmed(s, member, &n.hold[i], &left) &&
                            (!t->permits || permits_short(s, &n, &key))) {
                                *ret = n.hold[i];
                                return true;
                        }
        }
        return false;
}

/* True if who holds `h` may do what the target wants of this member, and is stopped in time. */
static bool allows(const struct nest_hold *h, const struct target *t, const struct target_key *key)
{
        return h->by == NEST_RUN && is_hold_of(h, t, key) && !(h->kind == 's' && kind_of(t, key) == 'x') &&
               h->count >= t->session->options->permits;
}

bool snib__nest_covers(struct session *s, struct nest_hold *ret, int64_t *ret_left_ms)
{
        static struct nest n;
        struct target_key key;
        struct target *t = &s->target;
        int covered = 0;
        int64_t left;

        read_list(&n);
        for (int member = 0; member < members(t); member++) {
                bool found = false;
                snib__target_key(t, member, &key);
                for (int i = n.count - 1; i >= 0 && !found; i--) {
                        found = allows(&n.hold[i], t, &key) && confirmed(s, member, &n.hold[i], &left);
                        if (found && covered++ == 0) {
                                *ret = n.hold[i];
                                *ret_left_ms = left;
                        }
                }
        }
        return s->options->red.count ? covered > s->client_count / 2 : covered == members(t);
}

/* ---- adding to it ---- */

char *snib__nest_list(const struct session *s, const struct held *held, char by, pid_t pid)
{
        const struct target *t = &s->target;
        static struct nest above;
        struct process p;
        struct target_key key;
        char *text = NULL;
        size_t length = 0;
        FILE *f = open_memstream(&text, &length);

        if (!f)
                return NULL;
        read_list(&above);
        for (int i = 0; i < above.count; i++) {
                fputs(i ? " " : "", f);
                put_entry(f, &above.hold[i]);
        }
        for (int member = 0; snib__process_read(pid, &p) && member < members(t); member++) {
                snib_grant *grant = held->multi ? snib_multigrant_member(held->multi, (size_t)member) : held->grant;
                struct nest_hold h = {.by = by,
                                      .pid = pid,
                                      .start = p.start,
                                      .engine = engine_of(s, member),
                                      .count = t->permits ? s->options->permits : 1};

                if (!grant)
                        continue; /* of a majority, one that did not grant */
                snib__target_key(t, member, &key);
                h.kind = kind_of(t, &key);
                h.token = snib_grant_token(grant);
                snprintf(h.owner, sizeof(h.owner), "%s", snib_grant_owner(grant));
                snprintf(h.name, sizeof(h.name), "%s", key.name);
                fputs(ftell(f) > 0 ? " " : "", f);
                put_entry(f, &h);
        }
        if (fclose(f) == 0)
                return text;
        free(text);
        return NULL;
}

const char *snib__nest_text(const struct nest_hold *h, char *ret)
{
        if (h->by == NEST_ACQUIRE)
                snprintf(ret, SNIB__NEST_TEXT_MAX, "by snib acquire for process %d", (int)h->pid);
        else
                snprintf(ret, SNIB__NEST_TEXT_MAX, "by snib %s (pid %d)", h->by == NEST_ELECT ? "elect" : "run",
                         (int)h->pid);
        return ret;
}
