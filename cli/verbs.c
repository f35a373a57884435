/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of `snib NOUN VERB NAME [ARG...]`: finds the verb, checks, opens, runs it, closes. What
 * a verb does is in the noun's file. Main thread only.
 */

#include "verbs.h"
#include "exit.h"
#include "near.h"
#include "out.h"
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* How long beyond its limit a wait, and after a try, goes on to say what is in the way. */
#define WORDS_NS (50 * (int64_t)1000000)
#define TRY_WORDS_NS (1000 * (int64_t)1000000)
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
        char list[200] = "", safe[200], hint[SNIB__NEAR_MAX];
        struct near near = {.word = word};
        size_t n = 0;

        for (; table->word && n < sizeof(list); table++) {
                n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "", table->word);
                snib__near_offer(&near, table->word);
        }
        return snib__out_fail(EXIT_USAGE, NULL, "%s: %s is none of %s%s; see snib %s -h", c->name,
                              snib__out_safe(word, strlen(word), safe, sizeof(safe)), list,
                              snib__near_text(&near, "", hint), c->name);
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
        return EXIT_OK;
}

static void put_fact(struct json *j, const void *arg)
{
        const struct verb_fact *fact = arg;

        if (fact->key)
                snib__json_int(j, fact->key, fact->value);
}

static int no(const struct session *s, const char *name, const char *event, const struct verb_fact *fact,
              const char *text)
{
        struct out_no no = {s->options->conflict_exit, event, name, put_fact, fact};
        char safe[SNIB__SAFE_MAX];

        return snib__out_no(&no, "%s %s", snib__out_safe(name, strlen(name), safe, sizeof(safe)), text);
}

int snib__verb_no(const struct session *s, const char *name, struct verb_fact fact, const char *format, ...)
{
        char text[300];
        va_list list;

        va_start(list, format);
        vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        return no(s, name, "not_done", &fact, text);
}

int snib__verb_gave_up(const struct session *s, const char *name, struct verb_fact fact, const char *format, ...)
{
        const struct options *o = s->options;
        char text[300], waited[SNIB__DURATION_MAX];
        va_list list;
        int n;

        va_start(list, format);
        n = vsnprintf(text, sizeof(text), format, list);
        va_end(list);
        if (o->nonblock || o->wait_ms == 0)
                return no(s, name, "busy", &fact, text);
        snprintf(text + n, sizeof(text) - (size_t)n, "; gave up after %s", snib__out_duration(o->wait_ms, waited));
        return no(s, name, "gave_up", &fact, text);
}

int snib__verb_number(const struct session *s, const char *name, const char *key, int64_t value)
{
        struct json j;

        if (s->options->json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__json_int(&j, key, value);
                snib__json_end(&j, stdout);
        } else if (!s->options->quiet) {
                printf("%lld\n", (long long)value);
        }
        return EXIT_OK;
}

void snib__verb_done(void *arg, int result, const struct snib_error *err)
{
        struct verb_wait *w = arg;

        w->done = true;
        w->result = result;
        if (result < 0 && err)
                w->err = *err;
}

int snib__verb_answer_soon(struct session *s, struct answer *a, int started)
{
        bool tried = s->options->nonblock || s->options->wait_ms == 0;

        return snib__session_answer(s, a, started, snib__clock_boot() + (tried ? TRY_WORDS_NS : WORDS_NS));
}

int snib__verb_answer_by(struct session *s, struct answer *a, int started, int64_t end_ns)
{
        int64_t now = snib__clock_boot();

        if (end_ns < INT64_MAX)
                end_ns = (end_ns > now ? end_ns : now) + WORDS_NS;
        return snib__session_answer(s, a, started, end_ns);
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
