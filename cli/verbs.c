/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of `snib NOUN VERB NAME [ARG...]`: finds the verb, checks, opens, runs it, closes. What a verb does is in
 * the noun's file. Main thread only.
 */

#include "verbs.h"
#include "exit.h"
#include "out.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define WITHDRAW_NS (5 * (int64_t)1000000000) /* longest wait for a cancelled call to end */

static const struct verb *find(const struct verb *table, const char *word)
{
        for (; table->word; table++)
                if (!strcmp(table->word, word))
                        return table;
        return NULL;
}

static int wrong_verb(const struct command *c, const struct verb *table, const char *word)
{
        char list[200] = "", safe[200];
        size_t n = 0;

        for (; table->word && n < sizeof(list); table++)
                n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", table->word);
        return snib__out_fail(EXIT_USAGE, NULL, "%s: %s is none of %s; see snib %s -h", c->name,
                              snib__out_safe(word, strlen(word), safe, sizeof(safe)), list, c->name);
}

int snib__verbs_run(const struct command *c, const struct verb *table, const struct verb_noun *noun,
                    const struct options *o, int argc, char **argv)
{
        static struct session s; /* outlives the last callback */
        const struct verb *v = argc > 0 ? find(table, argv[0]) : NULL;
        int exit;

        if (argc > 0 && !v)
                return wrong_verb(c, table, argv[0]);
        if (argc < 2)
                return snib__opt_wrong(c, argc ? "NAME is missing" : "VERB is missing");
        if (argc - 2 < v->least || argc - 2 > v->most)
                return snib__opt_wrong(c, argc - 2 < v->least ? "an argument is missing" : "too many arguments");
        exit = snib__session_check(o, argv[1]);
        if (exit)
                return exit;
        exit = snib__session_open(&s, o, NULL);
        if (!exit)
                exit = noun->open(&s, argv[1]);
        if (!exit)
                exit = v->run(&s, argv[1], argc - 2, argv + 2);
        noun->close();
        snib__session_close(&s);
        return exit;
}

int snib__verb_exit(const struct session *s, int result, const struct snib_error *err)
{
        if (result < 0)
                return snib__session_fail(s, result, err, result == SNIB_ENAME ? "NAME" : NULL);
        return result ? EXIT_OK : s->options->conflict_exit;
}

int snib__verb_number(const struct session *s, const char *name, const char *key, int result, int64_t value,
                      const struct snib_error *err)
{
        struct json j;

        if (result == 1 && s->options->json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__json_int(&j, key, value);
                snib__json_end(&j, stdout);
        } else if (result == 1 && !s->options->quiet) {
                printf("%lld\n", (long long)value);
        }
        return snib__verb_exit(s, result, err);
}

void snib__verb_done(void *arg, int result, const struct snib_error *err)
{
        struct verb_wait *w = arg;

        w->done = true;
        w->result = result;
        if (result < 0 && err)
                w->err = *err;
}

static int heard(int signals)
{
        int number;

        while ((number = snib__signals_next(signals)) > 0)
                if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT)
                        return number;
        return 0;
}

int snib__verb_wait(struct session *s, struct verb_wait *w, int started, int (*cancel)(void *handle), void *handle)
{
        sigset_t old;
        int signals, interrupted = 0;
        int64_t limit = INT64_MAX;

        if (started < 0)
                return snib__verb_exit(s, started, &w->err);
        signals = snib__signals_open(&old);
        while (!w->done && snib__clock_boot() < limit) {
                struct pollfd fds[1] = {{.fd = signals, .events = POLLIN}};

                snib__session_poll(s, fds, 1, interrupted ? 100 : -1);
                if (!interrupted && (interrupted = heard(signals)) != 0) {
                        (void)cancel(handle);
                        limit = snib__clock_boot() + WITHDRAW_NS;
                }
                int r = snib__session_process(s);
                if (r < 0 && !w->done)
                        snib__verb_done(w, r, NULL);
        }
        close(signals);
        if (interrupted && w->result != 1)
                return EXIT_SIGNAL + interrupted;
        return snib__verb_exit(s, w->result, &w->err);
}
