/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The wait for a lock. One loop: signals, the client, and once a second a question who holds it. On
 * a terminal one line that repaints itself after 300 ms; elsewhere a plain line at the start and
 * one a minute. What the engine does not know is not printed. A signal withdraws the wait; a grant
 * that crossed the withdrawal is given back. Main thread only; the callbacks run inside
 * snib_process().
 */

#include "waiting.h"
#include "exit.h"
#include "out.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS ((int64_t)1000000)
#define SILENT_MS 300    /* a shorter wait is not worth a line */
#define LOOK_MS 1000     /* between two questions to the engine */
#define FRAME_MS 100     /* between two repaints */
#define MINUTE_MS 60000  /* between two plain lines */
#define WITHDRAW_MS 5000 /* longest wait for a cancelled acquire to end */
#define WORDS_MS 50      /* beyond its limit a wait goes on so long at most, to say who holds */

static const char *const frames_utf8[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
static const char *const frames_ascii[] = {"|", "/", "-", "\\"};

/* ":47" of a Java client, whose ids end in a thread's number. */
static const char *foreign_thread(const struct snib_lock_info *info)
{
        const char *colon = info->foreign ? memchr(info->owner, ':', sizeof(info->owner)) : NULL;

        return colon && strspn(colon + 1, "0123456789") == strlen(colon + 1) ? colon : "";
}

const char *snib__holder_text(const struct snib_lock_info *info, char *ret)
{
        char host[SNIB_HOST_MAX * 4 + 8];
        char label[SNIB_LABEL_MAX * 4 + 8];
        char owner[64];
        char here[SNIB_HOST_MAX] = "";

        gethostname(here, sizeof(here) - 1);
        snib__out_safe(info->host, strnlen(info->host, sizeof(info->host)), host, sizeof(host));
        snib__out_safe(info->label, strnlen(info->label, sizeof(info->label)), label, sizeof(label));
        if (info->foreign && info->owner[0]) /* its id's beginning tells it from others, and is no use to forge it */
                snprintf(ret, SNIB__HOLDER_MAX, "redisson %s%s%s",
                         snib__out_safe(info->owner, strnlen(info->owner, 8), owner, sizeof(owner)),
                         snib__out_utf8() ? "…" : "...", foreign_thread(info));
        else if (info->left)
                snprintf(ret, SNIB__HOLDER_MAX, "%s (ended)", label[0] ? label : "a process");
        else if (info->pid > 0 && (!host[0] || !strcmp(host, here)))
                snprintf(ret, SNIB__HOLDER_MAX, "%s (pid %lld)", label[0] ? label : "a process", (long long)info->pid);
        else if (info->pid > 0)
                snprintf(ret, SNIB__HOLDER_MAX, "%s:%s[%lld]", host, label, (long long)info->pid);
        else if (host[0] || label[0])
                snprintf(ret, SNIB__HOLDER_MAX, "%s%s%s", host, host[0] && label[0] ? ":" : "", label);
        else if (info->owner[0])
                snprintf(ret, SNIB__HOLDER_MAX, "client %s%s",
                         snib__out_safe(info->owner, strnlen(info->owner, 8), owner, sizeof(owner)),
                         snib__out_utf8() ? "…" : "...");
        else
                snprintf(ret, SNIB__HOLDER_MAX, "an unknown client");
        return ret;
}

void snib__holder_json(struct json *j, const struct snib_lock_info *info)
{
        snib__json_text(j, "kind", snib_kind_text(info->kind));
        snib__json_bool(j, "held", info->held);
        if (info->holders > 1)
                snib__json_int(j, "holders", info->holders);
        if (info->value >= 0 || info->kind == SNIB_KIND_SEMAPHORE)
                snib__json_int(j, info->kind == SNIB_KIND_REGISTER ? "version" : "value", info->value);
        if (info->limit >= 0)
                snib__json_int(j, "limit", info->limit);
        if (info->held && info->foreign)
                snib__json_bool(j, "foreign", true);
        if (info->held && info->token >= 0 && info->kind != SNIB_KIND_REGISTER)
                snib__json_int(j, "token", info->token);
        if (info->held && info->lease_left_ms >= 0)
                snib__json_int(j, "lease_left_ms", info->lease_left_ms);
        if (info->held && info->since_ms >= 0)
                snib__json_int(j, "since_ms", info->since_ms);
        if (info->held && info->left)
                snib__json_bool(j, "left", true);
        if (info->held && info->pid >= 0)
                snib__json_int(j, "pid", info->pid);
        if (info->held && info->host[0])
                snib__json_bytes(j, "host", info->host, strnlen(info->host, sizeof(info->host)));
        if (info->held && info->label[0])
                snib__json_bytes(j, "label", info->label, strnlen(info->label, sizeof(info->label)));
        if (info->waiters >= 0) {
                snib__json_int(j, "waiters", info->waiters);
                snib__json_bool(j, "waiters_at_least", info->waiters_at_least);
        }
        if (info->position > 0)
                snib__json_int(j, "position", info->position);
}

/* How long the present holder has held, -1 if unknown. `since` is on the engine's clock: near
 * enough for a human. */
static int64_t held_ms(const struct waiting *w)
{
        int64_t now = snib__clock_wall_ms();

        return !w->looked || w->info.since_ms < 0 ? -1 : now > w->info.since_ms ? now - w->info.since_ms : 0;
}

static void safe_name(const struct waiting *w, char *ret, size_t size)
{
        snib__out_safe(w->name, strlen(w->name), ret, size);
}

/* "you are 2 of 3", "at least 3 waiting", "" */
static void place(const struct waiting *w, char *ret, size_t size)
{
        const struct snib_lock_info *i = &w->info;
        const char *least = i->waiters_at_least ? "at least " : "";

        ret[0] = 0;
        if (!w->looked)
                return;
        if (i->position > 0 && i->waiters >= i->position)
                snprintf(ret, size, "you are %lld of %s%lld", (long long)i->position, least, (long long)i->waiters);
        else if (i->position > 0)
                snprintf(ret, size, "you are number %lld", (long long)i->position);
        else if (i->waiters > 0)
                snprintf(ret, size, "%s%lld waiting", least, (long long)i->waiters);
}

static void line_parts(const struct waiting *w, char *ret, size_t size, const char *dot)
{
        char holder[SNIB__HOLDER_MAX];
        char held[SNIB__DURATION_MAX];
        char queue[96];
        size_t n = 0;

        ret[0] = 0;
        if (w->looked && w->info.held && held_ms(w) >= 0)
                n = (size_t)snprintf(ret, size, "%sheld %s by %s", dot, snib__out_duration(held_ms(w), held),
                                     snib__holder_text(&w->info, holder));
        else if (w->looked && w->info.held)
                n = (size_t)snprintf(ret, size, "%sheld by %s", dot, snib__holder_text(&w->info, holder));
        place(w, queue, sizeof(queue));
        if (queue[0] && n < size)
                snprintf(ret + n, size - n, "%s%s", dot, queue);
}

static void erase(struct waiting *w)
{
        if (w->painted && write(STDERR_FILENO, "\r\033[K", 4) < 0)
                w->painted = true; /* nobody sees it */
        w->painted = false;
}

static void paint(struct waiting *w, bool in_place)
{
        char name[SNIB__SAFE_MAX];
        char parts[SNIB__HOLDER_MAX + 200];
        char waited[SNIB__DURATION_MAX];
        char line[8192];
        bool utf8 = snib__out_utf8();
        const char *frame = utf8 ? frames_utf8[w->frame % 10] : frames_ascii[w->frame % 4];

        w->frame++;
        safe_name(w, name, sizeof(name));
        snib__out_duration((snib__clock_boot() - w->start_ns) / MS, waited);
        line_parts(w, parts, sizeof(parts), utf8 ? " · " : " - ");
        /* No wrapping while painted: a line longer than the terminal would be repainted over its
         * last row only. */
        int n = snprintf(line, sizeof(line), "%s%s waiting for %s%s%s  %s%s%s", in_place ? "\r\033[K\033[?7l" : "",
                         frame, snib__out_bold(stderr), name, snib__out_plain(stderr), waited, parts,
                         in_place ? "\033[?7h" : "\n");
        if (write(STDERR_FILENO, line, (size_t)n) == n)
                w->painted = in_place;
        w->shown = true;
}

/* "2026-11-21 02:00:07", or the time alone if it was today */
static void clock_text(int64_t wall_ms, char *ret, size_t size)
{
        time_t then = (time_t)(wall_ms / 1000);
        time_t now = time(NULL);
        struct tm a;
        struct tm b;

        localtime_r(&then, &a);
        localtime_r(&now, &b);
        strftime(ret, size, a.tm_yday == b.tm_yday && a.tm_year == b.tm_year ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &a);
}

static void say_json(const struct waiting *w, const char *event)
{
        struct json j;

        snib__json_begin(&j);
        snib__json_text(&j, "event", event);
        snib__json_name(&j, w->name, strlen(w->name));
        snib__json_int(&j, "waited_ms", (snib__clock_boot() - w->start_ns) / MS);
        if (w->looked)
                snib__holder_json(&j, &w->info);
        snib__json_end(&j, stderr);
}

static void say_plain(const struct waiting *w)
{
        char name[SNIB__SAFE_MAX];
        char holder[SNIB__HOLDER_MAX] = "";
        char since[64] = "";
        char held[SNIB__DURATION_MAX] = "";
        char queue[96] = "";
        const struct snib_lock_info *i = &w->info;
        bool known = w->looked && i->held;
        bool timed = known && held_ms(w) >= 0;

        safe_name(w, name, sizeof(name));
        if (known)
                snib__holder_text(i, holder);
        if (timed) {
                clock_text(i->since_ms, since, sizeof(since));
                snib__out_duration(held_ms(w), held);
        }
        if (w->looked && i->position > 0)
                snprintf(queue, sizeof(queue), "%lld ahead", (long long)i->position - 1);
        else
                place(w, queue, sizeof(queue));
        snib__out_note("waiting", "waiting for %s%s%s%s%s%s%s%s%s%s", name, known ? ", held " : "", held,
                       timed ? " " : "", known ? "by " : "", holder, timed ? " since " : "", since,
                       queue[0] ? ", " : "", queue);
}

/* Whether waiting is shown by repainting, by frames as lines, or by plain lines. */
static bool repaints(const struct waiting *w)
{
        const struct options *o = w->session->options;

        return !o->json && !o->quiet && o->progress != PROGRESS_NEVER && snib__out_can_repaint();
}

static void show(struct waiting *w, int64_t now)
{
        const struct options *o = w->session->options;
        bool frames = o->progress == PROGRESS_ALWAYS && !o->json && !o->quiet;

        if (o->quiet || (o->progress == PROGRESS_NEVER && !o->json))
                w->next_line_ns = INT64_MAX;
        if (now < w->next_line_ns)
                return;
        if (!w->looked && w->looking && now < w->start_ns + 2 * SILENT_MS * MS && !repaints(w)) {
                w->next_line_ns =
                    now + FRAME_MS * MS; /* the answer is on its way: the first line shall say who holds it */
                return;
        }
        if (repaints(w)) {
                paint(w, true);
                w->next_line_ns = now + FRAME_MS * MS;
                return;
        }
        if (frames)
                paint(w, false);
        else if (o->json)
                say_json(w, "waiting");
        else
                say_plain(w);
        w->shown = true;
        w->next_line_ns = now + (frames ? LOOK_MS : MINUTE_MS) * MS;
}

static void on_acquired(void *arg, int result, struct held held, const struct snib_error *err)
{
        struct waiting *w = arg;

        w->done = true;
        w->result = result;
        w->held = held;
        if (result < 0 && err)
                memcpy(&w->err, err, sizeof(w->err) < err->size ? sizeof(w->err) : err->size);
}

static void on_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        struct waiting *w = arg;

        (void)err;
        w->looking = false;
        if (result < 0 || !info)
                return; /* the acquire itself will tell what is wrong */
        w->info = *info;
        w->info_ns = snib__clock_boot();
        if (!w->looked)
                w->first = *info;
        w->looked = true;
}

/* Of several servers: what the one says that knows of a holder. */
static void on_member(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        const struct waiting *w = arg;

        if (!w->looked || (info && info->held))
                on_info(arg, result, info, err);
}

static void look(struct waiting *w, int64_t now)
{
        if (w->session->options->quiet)
                w->next_look_ns = INT64_MAX;
        if (w->looking || now < w->next_look_ns)
                return;
        w->next_look_ns = now + LOOK_MS * MS;
        if (w->members.session)
                snib__members_ask(&w->members, (LOOK_MS - FRAME_MS) * MS);
        else
                w->looking = snib__target_look_async(&w->session->target, on_info, w);
}

static void hear(struct waiting *w)
{
        int number;

        while ((number = snib__signals_next(w->signals)) > 0) {
                if (number != SIGTERM && number != SIGINT && number != SIGHUP && number != SIGQUIT) {
                        if (number == SIGTSTP) {
                                erase(w);
                                kill(getpid(), SIGSTOP); /* the library withdraws or keeps the place by its own rules */
                        }
                        continue;
                }
                if (w->interrupted)
                        continue;
                w->interrupted = number;
                if (!w->done)
                        snib__target_cancel(&w->session->target);
        }
}

static void turn(struct waiting *w, int64_t limit_ns)
{
        struct pollfd fds[1] = {{.fd = w->signals, .events = POLLIN}};
        int64_t now = snib__clock_boot();
        int64_t next = w->next_look_ns < w->next_line_ns && !w->looking ? w->next_look_ns : w->next_line_ns;

        if (w->interrupted)
                next = limit_ns;
        snib__session_poll(w->session, fds, 1, next == INT64_MAX ? -1 : next > now ? (next - now + MS - 1) / MS : 0);
        if (fds[0].revents)
                hear(w);
        int r = snib__session_process(w->session);
        if (r < 0 && !w->done) { /* the client cannot go on: nobody would call back any more */
                w->done = true;
                w->result = r;
        }
        now = snib__clock_boot();
        if (w->done || w->interrupted)
                return;
        if (now >= w->start_ns + (SILENT_MS - 50) * MS)
                look(w, now);
        if (snib__members_news(&w->members)) {
                erase(w);
                snib__members_say(&w->members);
        }
        show(w, now);
}

static bool same_holder(const struct snib_lock_info *a, const struct snib_lock_info *b)
{
        return a->held && b->held && a->token == b->token && !strncmp(a->owner, b->owner, sizeof(a->owner));
}

static void put_facts(struct json *j, const void *arg)
{
        const struct waiting *w = arg;

        snib__json_int(j, "waited_ms", w->waited_ms);
        if (w->looked)
                snib__holder_json(j, &w->info);
}

static int gave_up(struct waiting *w, int64_t wait_ms, const char *absent)
{
        char name[SNIB__SAFE_MAX];
        char holder[SNIB__HOLDER_MAX] = "";
        char waited[SNIB__DURATION_MAX];
        char held[SNIB__DURATION_MAX];
        struct out_no no = {w->session->options->conflict_exit, wait_ms == 0 ? "busy" : "gave_up", w->name, put_facts,
                            w};
        bool known = w->looked && w->info.held;

        safe_name(w, name, sizeof(name));
        snib__out_duration(w->waited_ms, waited);
        if (known)
                snib__holder_text(&w->info, holder);
        if (wait_ms == 0 && known && held_ms(w) >= 0)
                return snib__out_no(&no, "%s is held by %s for %s%s", name, holder,
                                    snib__out_duration(held_ms(w), held), absent);
        if (wait_ms == 0)
                return snib__out_no(&no, "%s is held%s%s%s", name, known ? " by " : "", holder, absent);
        return snib__out_no(&no, "gave up on %s after %s%s%s%s%s", name, waited, known ? "; holder " : "", holder,
                            known && same_holder(&w->first, &w->info) ? " unchanged" : "", absent);
}

/* What to do about a hold of a process above. */
static const char *way_out(const struct waiting *w)
{
        if (w->within.by == NEST_ACQUIRE)
                return "snib release gives it back";
        if (w->session->options->reentrant)
                return "--reentrant joins a snib run without -o, and a hold of the same kind";
        return w->session->target.election ? "do not campaign within the term"
                                           : "snib run --reentrant runs a command under that hold";
}

/* A process above has it: it ends no sooner than we do. */
static int held_above(const struct waiting *w, int64_t wait_ms)
{
        const struct options *o = w->session->options;
        char name[SNIB__SAFE_MAX];
        char by[SNIB__NEST_TEXT_MAX];

        snib__out_safe(w->within.name, strlen(w->within.name), name, sizeof(name));
        snib__nest_text(&w->within, by);
        if (wait_ms != 0)
                return snib__out_fail(EXIT_USAGE, "SNIB_EREENTRY",
                                      "%s is held %s, which this is a part of: a wait would never end; %s", name, by,
                                      way_out(w));
        if (o->json && !o->quiet)
                say_json(w, "busy");
        else
                snib__out_note("busy", "%s is held %s, which this is a part of (exit %d)", name, by, o->conflict_exit);
        return o->conflict_exit;
}

/* Says that the wait is over, if its beginning was said on a terminal. */
static void got(const struct waiting *w)
{
        char name[SNIB__SAFE_MAX];
        char waited[SNIB__DURATION_MAX];
        const struct options *o = w->session->options;
        long long token = snib__held_token(&w->held);

        safe_name(w, name, sizeof(name));
        snib__out_duration(w->waited_ms, waited);
        if (o->json && (w->shown || o->verbose))
                say_json(w, "got");
        if (o->json || o->quiet)
                return;
        if (w->shown && (repaints(w) || o->progress == PROGRESS_ALWAYS))
                fprintf(stderr, "%s got %s after %s (token %lld)\n", snib__out_utf8() ? "✓" : "ok:", name, waited,
                        token);
        else if (o->verbose)
                snib__out_note("got", "got %s after %s (token %lld)", name, waited, token);
}

/* The last question, for the message: each lock until one is held, or the time is over. */
static void look_once_more(struct waiting *w, int64_t until)
{
        if (w->session->options->quiet || w->members.session)
                return;
        for (int i = 0; i < w->session->target.count && !(i && w->info.held); i++) {
                w->looking = w->looking || snib__target_look_async(&w->session->target, on_info, w);
                if (!snib__session_until(w->session, &w->looking, false, until))
                        return;
        }
}

static int interrupted(struct waiting *w)
{
        (void)snib__held_release(&w->held, NULL);
        return EXIT_SIGNAL + w->interrupted;
}

/* The line to type, where what stands there can be had in another way. */
static const char *other_way(const struct options *o, const struct snib_lock_info *there)
{
        bool sided = o->shared || o->exclusive;

        if (there->kind == SNIB_KIND_READ || there->kind == SNIB_KIND_WRITE)
                return "take a side of it: -x alone, -s with other readers";
        if (there->kind == SNIB_KIND_PERMITS && !o->permits)
                return "take some of them: --permits N";
        if (there->held && there->owner[0] && sided)
                return "leave out -s and -x, or use -x there, too";
        return "use another name";
}

/* The name is in use as another kind of thing: which, if that is answered by `until`, and what to
 * do. */
static int wrong_kind(struct waiting *w, int64_t until)
{
        static struct answer a = {.err = SNIB_ERROR_INIT};
        struct session *s = w->session;
        char name[SNIB__SAFE_MAX];

        if (s->options->keys.count ||
            snib__session_answer(s, &a, snib_describe_async(s->client, w->name, 0, snib__answer_info, &a, NULL),
                                 until) != 1)
                return snib__session_fail(s, w->result, &w->err, NULL);
        safe_name(w, name, sizeof(name));
        return snib__out_fail(EXIT_KIND, snib_error_name(w->result), "%s is in use as another kind of thing, a %s: %s",
                              name, snib_kind_text(a.info.kind), other_way(s->options, &a.info));
}

/* The error, and of --red whom it is about. */
static int failed(const struct waiting *w, const char *absent)
{
        const struct session *s = w->session;
        char safe[4 * SNIB_ERROR_TEXT_MAX];
        const char *text = w->err.text[0] ? w->err.text : snib_strerror(w->result);

        return snib__out_fail(snib__exit_of(w->result, s->url_from_environment), snib_error_name(w->result), "%s%s",
                              snib__out_safe(text, strlen(text), safe, sizeof(safe)), absent);
}

/* Why it was not acquired. */
static int refused(struct waiting *w, int64_t wait_ms)
{
        char absent[2048];
        int64_t now = snib__clock_boot();
        int64_t until = wait_ms > 0 ? w->start_ns + (wait_ms + WORDS_MS) * MS : now + LOOK_MS * MS;
        int64_t soon = until < now + WORDS_MS * MS ? until : now + WORDS_MS * MS;

        if (w->result == SNIB_EKIND)
                return wrong_kind(w, until);
        snib__members_absent(&w->members, w->result < 0 ? soon : until, absent, sizeof(absent));
        if (w->result < 0)
                return failed(w, absent);
        look_once_more(w, until);
        return w->nested ? held_above(w, wait_ms) : gave_up(w, wait_ms, absent);
}

int snib__waiting_acquire(struct waiting *w, int64_t wait_ms)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t limit = 0;

        w->nested = snib__nest_find(w->session, &w->within);
        int64_t left_ms = snib__session_left_ms(w->session, wait_ms);

        w->start_ns = snib__clock_boot() - (wait_ms > left_ms ? wait_ms - left_ms : 0) * MS;
        w->next_line_ns = w->start_ns + SILENT_MS * MS;
        w->next_look_ns = w->next_line_ns - 50 * MS;
        snib__members_begin(&w->members, w->session, on_member, w);
        int r = snib__target_acquire_async(&w->session->target, w->nested ? 0 : left_ms, on_acquired, w, &err);
        if (r < 0)
                return snib__session_fail(w->session, r, &err, NULL);
        while (!w->done && !(limit && snib__clock_boot() >= limit)) {
                turn(w, limit);
                if (w->interrupted && !limit)
                        limit = snib__clock_boot() + WITHDRAW_MS * MS;
        }
        hear(w);
        erase(w);
        w->waited_ms = (snib__clock_boot() - w->start_ns) / MS;
        if (w->interrupted)
                return interrupted(w);
        if (w->result == 1) {
                got(w);
                return 0;
        }
        return refused(w, wait_ms);
}
