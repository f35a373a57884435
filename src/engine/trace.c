/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is asked of an engine and what it tells, a line each, in one write(2) each: programs that
 * name the same file share it. Changes nothing; a line that cannot be written is lost. No line has
 * a value in it; bytes of a name that are not printable are shown as '?'. On the thread that calls
 * the engine.
 */

#include "engine/trace.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/list.h"
#include "engine/around.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct trace {
        struct snib__around around;
        int fd;
};

static struct trace *trace_of(struct snib__engine *e)
{
        return snib__container(e, struct trace, around.base);
}

static const char *text_of(const char *const *texts, size_t count, int number)
{
        return number > 0 && (size_t)number < count && texts[number] ? texts[number] : "?";
}

#define TEXT_OF(texts, number) text_of(texts, sizeof(texts) / sizeof((texts)[0]), number)

static const char *const verbs[] = {
    [SNIB__ACQUIRE] = "acquire", [SNIB__RELEASE] = "release", [SNIB__RENEW] = "renew", [SNIB__QUERY] = "query",
    [SNIB__FORCE] = "force",     [SNIB__OBSERVE] = "observe", [SNIB__SET] = "set",     [SNIB__RESIZE] = "resize",
    [SNIB__ADD] = "add",         [SNIB__DRAIN] = "drain",     [SNIB__WRITE] = "write", [SNIB__DELETE] = "delete"};
static const char *const statuses[] = {
    [SNIB__GRANTED] = "granted",   [SNIB__BUSY] = "busy", [SNIB__RENEWED] = "renewed", [SNIB__GONE] = "gone",
    [SNIB__RELEASED] = "released", [SNIB__INFO] = "info", [SNIB__DONE] = "done",       [SNIB__FAILED] = "failed"};
static const char *const notes[] = {
    [SNIB__NOTE_REPLY] = "reply",         [SNIB__NOTE_CHANGED] = "changed", [SNIB__NOTE_WATCHING] = "watching",
    [SNIB__NOTE_GRANTED] = "grant",       [SNIB__NOTE_ENDED] = "ended",     [SNIB__NOTE_LINK_UP] = "link up",
    [SNIB__NOTE_LINK_DOWN] = "link down", [SNIB__NOTE_LISTED] = "listed",   [SNIB__NOTE_NEXT] = "next",
    [SNIB__NOTE_RELINKED] = "relinked"};

__attribute__((format(printf, 2, 3))) static void say(struct trace *t, const char *format, ...)
{
        char line[512];
        va_list list;
        int n;

        va_start(list, format);
        n = vsnprintf(line, sizeof(line) - 1, format, list);
        va_end(list);
        n = n < (int)sizeof(line) - 2 ? n : (int)sizeof(line) - 2;
        line[n++] = '\n';
        (void)!write(t->fd, line, (size_t)n);
}

/* As much of a name as is worth a line. */
struct shown {
        char text[81];
};

static struct shown show(struct snib__name name)
{
        struct shown s;
        size_t n = 0;

        for (; n < name.length && n < sizeof(s.text) - 1; n++)
                s.text[n] = name.bytes[n] >= ' ' && name.bytes[n] < 127 ? name.bytes[n] : '?';
        s.text[n] = 0;
        return s;
}

/* Which request: of which object, and which of its attempts. */
#define TAG "%" PRIu64 ".%" PRIu32

static bool submit(struct snib__engine *e, struct snib__tag tag, const struct snib__op *op, snib__ns now)
{
        bool taken;

        say(trace_of(e), "> " TAG " %s %s \"%s\" id=%s lease=%" PRId64 " token=%" PRId64 " n=%" PRId64 "%s", tag.cookie,
            tag.attempt, TEXT_OF(verbs, op->verb), snib__kind(op->kind)->text, show(op->name).text, op->id.text,
            op->lease_ms, op->token, op->n, op->enqueue ? " enqueue" : "");
        taken = snib__around_submit(e, tag, op, now);
        if (!taken)
                say(trace_of(e), "< " TAG " refused", tag.cookie, tag.attempt);
        return taken;
}

static bool list(struct snib__engine *e, struct snib__tag tag, snib__ns now)
{
        say(trace_of(e), "> " TAG " list", tag.cookie, tag.attempt);
        return snib__around_list(e, tag, now);
}

static void watch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now)
{
        say(trace_of(e), "> watch \"%s\"", show(topic->name).text);
        snib__around_watch(e, topic, now);
}

static void unwatch(struct snib__engine *e, const struct snib__topic *topic, snib__ns now)
{
        say(trace_of(e), "> unwatch \"%s\"", show(topic->name).text);
        snib__around_unwatch(e, topic, now);
}

static void say_reply(struct trace *t, const struct snib__note *n)
{
        const struct snib__reply *r = &n->reply;

        if (r->status == SNIB__FAILED)
                say(t, "< " TAG " failed %d %s", n->tag.cookie, n->tag.attempt, r->error,
                    r->error_text ? r->error_text : "");
        else
                say(t, "< " TAG " %s token=%" PRId64 " left=%" PRId64 " value=%" PRId64 "%s%s", n->tag.cookie,
                    n->tag.attempt, TEXT_OF(statuses, r->status), r->token, r->left_ms, r->value,
                    r->held && r->holder.id.text[0] ? " holder=" : "", r->held ? r->holder.id.text : "");
}

static bool next(struct snib__engine *e, struct snib__note *ret)
{
        struct trace *t = trace_of(e);

        if (!snib__around_next(e, ret))
                return false;
        if (ret->kind == SNIB__NOTE_REPLY)
                say_reply(t, ret);
        else if (ret->kind == SNIB__NOTE_LINK_DOWN)
                say(t, "< link down: %s", ret->reply.error_text ? ret->reply.error_text : "");
        else if (ret->kind == SNIB__NOTE_LINK_UP)
                say(t, "< link up");
        else
                say(t, "< %s \"%s\" id=%s token=%" PRId64, TEXT_OF(notes, (int)ret->kind), show(ret->name).text,
                    ret->id.text, ret->reply.token);
        return true;
}

static void unheard(struct snib__engine *e, struct snib__tag tag)
{
        say(trace_of(e), "> " TAG " unheard", tag.cookie, tag.attempt);
        snib__around_unheard(e, tag);
}

static void close_both(struct snib__engine *e)
{
        say(trace_of(e), "> close");
        snib__around_close(e);
        (void)close(trace_of(e)->fd);
        free(trace_of(e));
}

static void forked(struct snib__engine *e)
{
        snib__around_forked(e);
        (void)close(trace_of(e)->fd);
        trace_of(e)->fd = -1;
}

int snib__trace_around(struct snib__engine **e, const char *path, struct snib_error *err)
{
        struct trace *t = snib__alloc(sizeof(*t));

        if (!t)
                return snib__error(err, SNIB_ENOMEM, "out of memory");
        t->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
        if (t->fd < 0) {
                free(t);
                return snib__error_errno(err, SNIB_EURL, errno, path);
        }
        snib__around_init(&t->around, *e);
        t->around.ops.submit = submit;
        t->around.ops.list = list;
        if (t->around.ops.watch)
                t->around.ops.watch = watch;
        if (t->around.ops.unwatch)
                t->around.ops.unwatch = unwatch;
        t->around.ops.next = next;
        if (t->around.ops.unheard)
                t->around.ops.unheard = unheard;
        t->around.ops.close = close_both;
        t->around.ops.forked = forked;
        *e = &t->around.base;
        return 0;
}
