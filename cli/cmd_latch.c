/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib latch: a count-down latch, by one-shot verbs. Nothing is held between two of them. Main thread only.
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

static int set(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n;
        int wrong = snib__opt_number("N", argv[0], 1, SNIB_PERMITS_MAX, &n);

        (void)name, (void)argc;
        return wrong ? wrong : snib__verb_exit(s, snib_latch_set(latch, n, &err), &err);
}

static int down(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 1, left = 0;
        int wrong = argc ? snib__opt_number("N", argv[0], 1, SNIB_PERMITS_MAX, &n) : 0;

        if (wrong)
                return wrong;
        int r = snib_latch_count_down(latch, n, &left, &err);
        return snib__verb_number(s, name, "count", r, left, &err);
}

static int cancel_await(void *handle)
{
        return snib_latch_cancel(handle);
}

static int await(struct session *s, const char *name, int argc, char **argv)
{
        static struct verb_wait w = {.err = SNIB_ERROR_INIT};
        const struct options *o = s->options;
        int started = snib_latch_await_async(latch, o->nonblock ? 0 : o->wait_ms, snib__verb_done, &w, &w.err);

        (void)name, (void)argc, (void)argv;
        return snib__verb_wait(s, &w, started, cancel_await, latch);
}

/* An open latch is an answer too. */
static int show(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int64_t n = 0;
        int r = snib_latch_query(latch, &n, &err);

        (void)argc, (void)argv;
        return snib__verb_number(s, name, "count", r < 0 ? r : 1, r == 1 ? n : 0, &err);
}

static int delete (struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        (void)name, (void)argc, (void)argv;
        return snib__verb_exit(s, snib_latch_delete(latch, &err), &err);
}

int snib__cmd_latch(const struct options *o, int argc, char **argv)
{
        static const struct verb verbs[] = {{"set", 1, 1, set},   {"down", 0, 1, down},     {"wait", 0, 0, await},
                                            {"show", 0, 0, show}, {"delete", 0, 0, delete}, {NULL, 0, 0, NULL}};
        static const struct verb_noun noun = {open_handle, close_handle};

        return snib__verbs_run(snib__opt_command("latch"), verbs, &noun, o, argc, argv);
}
