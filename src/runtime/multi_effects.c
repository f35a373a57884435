/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a multilock's machine (core/multi.h) wants, done at its members' clients; what they
 * answered, fed to it; and what the caller is told when it fails. Under the record's lock; waits
 * for nothing and calls nobody back. Not who steps the machine (multi_run.c).
 */

#include "base/error.h"
#include "base/text.h"
#include "runtime/multi.h"
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
                blame_member(g, e->member, e->code, g->members[e->member].err.engine_code,
                             g->members[e->member].err.text);
        else
                blame_member(g, e->member, e->code, 0, texts[e->why]);
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

        if (g->machine.red && snib__member_is_stuck(p, g->machine.node_timeout)) /* it would only gather requests
                                                                that are executed when nobody wants them any more */
                return snib__error(&p->err, SNIB_EUNKNOWN, "the server does not answer");
        return snib__member_acquire(p, &want, &p->err);
}

/* A call that snib__multigrant_ended() ends, or that is answered here because it cannot begin. */
static void begin(struct snib_multigrant *g, const struct snib__multi_effect *e)
{
        struct snib__member *p = &g->members[e->member];
        int r;

        p->err = (struct snib_error)SNIB_ERROR_INIT;
        snib__multi_ref(g);
        if (!snib__member_is_there(p))
                r = snib__closed(&p->err);
        else if (e->kind == SNIB__MULTI_ASK)
                r = ask(g, p, e);
        else
                r = snib__member_release(p, e->wait, &p->err);
        if (r == 0)
                return;
        snib__multi_unref(g);
        snib__multi_answer(&g->machine, e->member, r, NULL, 0);
}

static void carry_out(struct snib_multigrant *g, const struct snib__multi_effect *e)
{
        struct snib__member *p = &g->members[e->member];

        if (e->kind == SNIB__MULTI_BLAME)
                blame(g, e);
        else if (e->kind == SNIB__MULTI_ASK || e->kind == SNIB__MULTI_RELEASE)
                begin(g, e);
        else if (!snib__member_is_there(p))
                return; /* its end is noted already */
        else if (e->kind == SNIB__MULTI_HURRY)
                snib__member_hurry(p);
        else if (e->kind == SNIB__MULTI_CANCEL)
                snib__member_cancel(p);
        else if (e->kind == SNIB__MULTI_LET_GO)
                snib__member_let_go(p);
}

/* What was answered. What is answered after this look is told: somebody will look again. */
static bool collect(struct snib_multigrant *g)
{
        bool any = false;

        for (size_t i = 0; i < g->machine.count; i++) {
                struct snib__member *p = &g->members[i];
                struct snib__hold *hold;

                if (!atomic_exchange(&p->ended, false))
                        continue;
                any = true;
                hold = p->result == 1 && p->grant ? &p->grant->hold : NULL;
                snib__multi_answer(&g->machine, i, p->result, hold, hold ? hold->token : 0);
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
        } while (again);
        leave_multilock(g);
        return g->machine.due;
}
