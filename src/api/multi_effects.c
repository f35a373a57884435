/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a multilock's machine (core/multi.h) wants, done at its members' clients; what they
 * answered, fed to it; and what the caller is told when it fails. Under the record's lock; waits
 * for nothing and calls nobody back. Not who steps the machine (multi_run.c).
 */

#include "api/multi.h"
#include "base/error.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

/* An error of a member, with its name, which its own text may begin with. */
static void blame_member(struct snib_multigrant *g, size_t i, int code, int engine_code, const char *text)
{
        char name[sizeof(g->members[i].name) + 5];
        const char *own;

        (void)snprintf(name, sizeof(name), "\"%s\": ", g->members[i].name);
        own = strstr(text, name);
        (void)snib__error_engine(&g->err, code, engine_code, "member %zu of %zu, %s%s", i + 1, g->machine.count, name,
                                 own       ? own + strlen(name)
                                 : text[0] ? text
                                           : snib__strerror(code));
}

static void blame(struct snib_multigrant *g, const struct snib__multi_effect *e)
{
        static const char *const texts[] = {[SNIB__MULTI_SILENT] = "the server did not answer in time",
                                            [SNIB__MULTI_LATE] = "the server granted it too late to be worth anything",
                                            [SNIB__MULTI_THREAD_ENDED] = "the thread that asked for it ended",
                                            [SNIB__MULTI_SHUT] = "its client is being closed"};

        g->err = (struct snib_error)SNIB_ERROR_INIT;
        if (e->why == SNIB__MULTI_CANCELLED)
                (void)snib__error(&g->err, e->code, "the multilock's cancel call ended the wait");
        else if (e->why == SNIB__MULTI_LOST)
                (void)snib__error(&g->err, e->code, "the majority was lost before: %s",
                                  snib__loss_text(atomic_load(&g->machine.loss)));
        else if (e->why == SNIB__MULTI_SAID)
                blame_member(g, e->part, e->code, g->members[e->part].base.err.engine_code,
                             g->members[e->part].base.err.text);
        else
                blame_member(g, e->part, e->code, 0, texts[e->why]);
}

static struct snib__name owner_of(const struct snib_multigrant *g, const struct snib__member *p)
{
        if (p->object->owner)
                return (struct snib__name){p->object->owner, p->object->owner_length};
        return (struct snib__name){g->owner, g->owner_length};
}

/* 0, or the error of a member that cannot be asked. */
static int ask(struct snib_multigrant *g, struct snib__member *p, const struct snib__multi_effect *e)
{
        struct snib__want want = {.patience = {e->once, e->wait}, .owner = owner_of(g, p), .generous = g->machine.red};

        if (g->machine.red && snib__part_is_stuck(&p->base, g->machine.node_timeout)) /* it would only gather requests
                                                                that are executed when nobody wants them any more */
                return snib__error(&p->base.err, SNIB_EUNKNOWN, "the server does not answer");
        return snib__part_acquire(&p->base, p->object, &want, &p->base.err);
}

/* A call that tell_ended() ends, or that is answered here because it cannot begin. */
static void begin(struct snib_multigrant *g, const struct snib__multi_effect *e)
{
        struct snib__member *p = &g->members[e->part];
        int r;

        p->base.err = (struct snib_error)SNIB_ERROR_INIT;
        snib__multi_ref(g);
        if (atomic_load(&g->parts[e->part].closed))
                r = snib__closed(&p->base.err);
        else if (e->kind == SNIB__MULTI_ASK)
                r = ask(g, p, e);
        else
                r = snib__part_release(&p->base, e->wait, &p->base.err);
        if (r == 0)
                return;
        snib__multi_unref(g);
        snib__multi_answer(&g->machine, e->part, r, NULL, 0);
}

static void carry_out(struct snib_multigrant *g, const struct snib__multi_effect *e)
{
        switch (e->kind) {
        case SNIB__MULTI_NOTHING:
                break;
        case SNIB__MULTI_BLAME:
                blame(g, e);
                break;
        case SNIB__MULTI_ASK:
        case SNIB__MULTI_RELEASE:
                begin(g, e);
                break;
        case SNIB__MULTI_HURRY:
                if (!atomic_load(&g->parts[e->part].closed))
                        snib__part_hurry(&g->members[e->part].base);
                break;
        case SNIB__MULTI_CANCEL:
                if (!atomic_load(&g->parts[e->part].closed))
                        snib__part_cancel(&g->members[e->part].base);
                break;
        case SNIB__MULTI_LET_GO:
                if (!atomic_load(&g->parts[e->part].closed))
                        snib__part_let_go(&g->members[e->part].base);
                break;
        }
}

static bool has_ended(const struct snib_multigrant *g)
{
        for (size_t i = 0; i < g->machine.count; i++)
                if (atomic_load(&g->members[i].ended))
                        return true;
        return false;
}

/* What was answered. */
static bool collect(struct snib_multigrant *g)
{
        bool any = false;

        for (size_t i = 0; i < g->machine.count; i++) {
                struct snib__member *p = &g->members[i];
                struct snib_grant *grant;

                if (!atomic_exchange(&p->ended, false))
                        continue;
                any = true;
                grant = p->base.result == 1 ? p->base.grant : NULL;
                snib__multi_answer(&g->machine, i, p->base.result, grant ? &grant->hold : NULL,
                                   grant ? grant->hold.token : 0);
        }
        return any;
}

/* An answered acquire is no wait of its multilock any more, which may be freed. */
static void leave_multilock(struct snib_multigrant *g)
{
        if (!g->machine.answered || !g->multilock)
                return;
        (void)pthread_mutex_lock(&g->multilock->lock);
        snib__list_remove(&g->of_multilock);
        (void)pthread_mutex_unlock(&g->multilock->lock);
        g->multilock = NULL;
}

snib__ns snib__multi_advance(struct snib_multigrant *g)
{
        struct snib__multi_effect e;
        bool again;

        do {
                again = collect(g);
                again |= snib__multi_step(&g->machine, snib__os_now());
                while (snib__multi_next(&g->machine, &e)) {
                        carry_out(g, &e);
                        again = true;
                }
        } while (again || has_ended(g));
        leave_multilock(g);
        return g->machine.due;
}
