/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib latch: a count-down latch, by one-shot verbs. Nothing is held between two of them. Main
 * thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "verbs.h"

static snib_latch *latch;

static int open_handle(struct session *s, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_latch_new(s->client, name, 0, &latch, &err);

        return r < 0 ? snib__verb_exit(s, r, &err) : 0;
}

static void close_handle(void)
{
        snib_latch_free(latch);
}

/* What is told of a latch that is not open: 0 if it is by now, or nobody is to be told. */
static int64_t count(const struct session *s)
{
        int64_t n = 0;

        return !s->options->quiet && snib_latch_query(latch, &n, NULL) == 1 ? n : 0;
}

static int opened(const struct session *s, const char *name)
{
        return snib__verb_no(s, name, (struct verb_fact){"count", 0}, "is open: it has no count");
}

static int set(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n;
        int wrong = snib__opt_number("N", argv[0], 1, SNIB_PERMITS_MAX, &n);

        (void)argc;
        if (wrong)
                return wrong;
        int r = snib_latch_set(latch, n, &err);
        if (r)
                return snib__verb_exit(s, r, &err);
        n = count(s);
        return snib__verb_no(s, name, (struct verb_fact){"count", n}, "has a count already, %lld", (long long)n);
}

static int down(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 1, left = 0;
        int wrong = argc ? snib__opt_number("N", argv[0], 1, SNIB_PERMITS_MAX, &n) : 0;

        if (wrong)
                return wrong;
        int r = snib_latch_count_down(latch, n, &left, &err);
        if (r == 0)
                return opened(s, name);
        return r == 1 ? snib__verb_number(s, name, "count", left) : snib__verb_exit(s, r, &err);
}

static int cancel_await(void *handle)
{
        return snib_latch_cancel(handle);
}

static int64_t left(int64_t end_ns)
{
        int64_t ms = (end_ns - snib__clock_boot()) / 1000000;

        return ms > 0 ? ms : 1; /* 0 would be a try, which has no limit but the time-out */
}

/* Without --set-first one that nobody has set is open. Both waits together take no longer than one
 * may. */
static int await(struct session *s, const char *name, int argc, char **argv)
{
        static struct verb_wait set = {.err = SNIB_ERROR_INIT}, open = {.err = SNIB_ERROR_INIT};
        static struct answer a = {.err = SNIB_ERROR_INIT};
        const struct options *o = s->options;
        int64_t wait_ms = snib__session_left_ms(s, o->nonblock ? 0 : o->wait_ms), end_ns = 0;

        (void)argc, (void)argv;
        if (wait_ms > 0)
                end_ns = snib__clock_boot() + wait_ms * 1000000;
        if (o->set_first) {
                int started = snib_latch_await_set_async(latch, wait_ms, snib__verb_done, &set, &set.err);
                int exit = snib__verb_wait(s, &set, started, cancel_await, latch);
                if (exit == 0 && set.result == 0)
                        return snib__verb_gave_up(s, name, (struct verb_fact){"count", 0}, "was not set by anybody");
                if (exit)
                        return exit;
        }
        int started = snib_latch_await_async(latch, end_ns ? left(end_ns) : wait_ms, snib__verb_done, &open, &open.err);
        int exit = snib__verb_wait(s, &open, started, cancel_await, latch);
        if (exit || open.result)
                return exit;
        int r =
            o->quiet ? -1 : snib__verb_answer_soon(s, &a, snib_latch_query_async(latch, snib__answer_value, &a, NULL));
        if (r < 0)
                return snib__verb_gave_up(s, name, (struct verb_fact){0}, "is not open");
        return snib__verb_gave_up(s, name, (struct verb_fact){"count", a.value}, "is not open: its count is %lld",
                                  (long long)a.value);
}

/* An open latch is an answer too, and the exit code says which it is. */
static int show(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int r = snib_latch_query(latch, &n, &err);

        (void)argc, (void)argv;
        if (r < 0)
                return snib__verb_exit(s, r, &err);
        (void)snib__verb_number(s, name, "count", r == 1 ? n : 0);
        return r == 1 ? EXIT_OK : EXIT_NOTHING;
}

static int delete (struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        int r = snib_latch_delete(latch, &err);

        (void)argc, (void)argv;
        return r ? snib__verb_exit(s, r, &err) : opened(s, name);
}

const struct verb snib__latch_verbs[] = {{"set", 1, 1, set},   {"down", 0, 1, down},     {"wait", 0, 0, await},
                                         {"show", 0, 0, show}, {"delete", 0, 0, delete}, {NULL, 0, 0, NULL}};

int snib__cmd_latch(const struct options *o, int argc, char **argv)
{
        static const struct verb_noun noun = {open_handle, close_handle};

        return snib__verbs_run(snib__opt_command("latch"), snib__latch_verbs, &noun, o, argc, argv);
}
