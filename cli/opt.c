/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading the options. The table below is the only place that knows them: the arguments of getopt_long() and the help
 * text are made from it, so they cannot differ. Options end at the first argument, as with flock(1), so that the
 * options of the command to be run are never ours. Called once, before anything else happens.
 */

#include "opt.h"
#include "exit.h"
#include "out.h"
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <snib/snib.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RUNS (OPT_RUN | OPT_TRY)
#define HOLDS (RUNS | OPT_ACQUIRE)
#define READS (OPT_LS | OPT_SHOW | OPT_FORCE)
#define VERBS (OPT_SEM | OPT_LATCH | OPT_REGISTER)
#define COMMANDS (RUNS | OPT_ELECT)
#define LEASES (HOLDS | OPT_ELECT)
#define WAITS (OPT_RUN | OPT_ACQUIRE | VERBS | OPT_ELECT)
#define ALL (~0U)

enum type { FLAG, TEXT, TEXTS, NUMBER, VERSION, DURATION, POSITIVE_DURATION, EXIT_CODE, SIGNAL, PID, PROGRESS };

struct option_row {
        const char *name;
        char letter;
        unsigned commands;
        enum type type;
        size_t offset;
        const char *argument;
        const char *help; /* NULL: another spelling of the row above */
};

#define AT(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    {"url", 'u', LEASES | READS | VERBS, TEXT, AT(url), "URL", "the engine; default $SNIB_URL, else local:"},
    {"engine", 0, LEASES | READS | VERBS, TEXT, AT(url), "URL", NULL},
    {"shared", 's', HOLDS, FLAG, AT(shared), NULL, "the read side of a read-write lock: many hold it at once"},
    {"exclusive", 'x', HOLDS, FLAG, AT(exclusive), NULL,
     "its write side (-e too). Without -s or -x: a plain lock,\nwhich is another thing than a read-write lock"},
    {"exclusive", 'e', HOLDS, FLAG, AT(exclusive), NULL, NULL},
    {"fair", 0, HOLDS, FLAG, AT(fair), NULL, "strictly in the order of arrival"},
    {"permits", 'N', HOLDS, NUMBER, AT(permits), "N", "N permits of a semaphore whose permits expire; see --of"},
    {"of", 0, HOLDS, NUMBER, AT(of), "M", "made with M permits if it does not exist yet"},
    {"key", 'k', RUNS, TEXTS, AT(keys), "NAME",
     "in place of NAME; several times: all of them at once.\nNAME:s the read side, NAME:x the write side"},
    {"red", 0, RUNS, TEXTS, AT(red), "URL",
     "three times or more, in place of -u: held while a\nmajority of these independent servers grants it"},
    {"nonblock", 'n', WAITS, FLAG, AT(nonblock), NULL, "do not wait: give up at once"},
    {"nonblocking", 0, WAITS, FLAG, AT(nonblock), NULL, NULL},
    {"nb", 0, WAITS, FLAG, AT(nonblock), NULL, NULL},
    {"wait", 'w', WAITS, DURATION, AT(wait_ms), "DUR", "wait at most so long; default: without limit"},
    {"timeout", 0, WAITS, DURATION, AT(wait_ms), "DUR", NULL},
    {"conflict-exit-code", 'E', LEASES | VERBS, EXIT_CODE, AT(conflict_exit), "N",
     "exit code when it is not to be had; default 75"},
    {"command", 'c', COMMANDS, TEXT, AT(shell), "STRING", "run STRING by the shell (sh -c)"},
    {"close", 'o', COMMANDS, FLAG, AT(close), NULL,
     "the hold ends with CMD itself; what CMD left in the background\nruns on without the lock. Default: held until "
     "all of it ended"},
    {"lease", 'l', LEASES | OPT_SEM, POSITIVE_DURATION, AT(lease_ms), "DUR",
     "lease at the engine, kept alive meanwhile; default 30s"},
    {"fixed-lease", 0, HOLDS, FLAG, AT(fixed_lease), NULL, "do not keep the lease alive: the hold ends with it"},
    {"max-hold", 0, COMMANDS, POSITIVE_DURATION, AT(max_hold_ms), "DUR", "stop CMD when it held so long (exit 124)"},
    {"max-hold", 0, OPT_ACQUIRE, POSITIVE_DURATION, AT(max_hold_ms), "DUR", "give it up after so long"},
    {"grace", 0, COMMANDS, DURATION, AT(grace_ms), "DUR",
     "time between the polite signal and SIGKILL;\ndefault 5s, at most a quarter of the lease"},
    {"kill-signal", 0, COMMANDS, SIGNAL, AT(kill_signal), "SIG", "the polite signal; default TERM"},
    {"fenced", 0, HOLDS, FLAG, AT(fenced), NULL, "token counted by the engine (Redisson's fenced lock)"},
    {"label", 0, LEASES, TEXT, AT(label), "TEXT", "what others see as the holder; default CMD's name"},
    {"for-pid", 0, OPT_ACQUIRE, PID, AT(for_pid), "PID", "hold while this process lives; default: the caller"},
    {"progress", 0, LEASES, PROGRESS, AT(progress), "WHEN", "the waiting line: auto, always, never"},
    {"once", 0, OPT_ELECT, FLAG, AT(once), NULL, "one term only: do not campaign again when it was lost"},
    {"leader", 0, OPT_ELECT, FLAG, AT(who), NULL, "say who leads; exit 0 somebody, 1 nobody"},
    {"observe", 0, OPT_ELECT, FLAG, AT(observe), NULL, "a line for every change of the leader, for ever or -w DUR"},
    {"depose", 0, OPT_ELECT, FLAG, AT(depose), NULL, "end the present term"},
    {"expiring", 'x', OPT_SEM, FLAG, AT(expiring), NULL,
     "permits that expire, each with an id; taken by\nsnib run or acquire --permits"},
    {"if-exists", 0, OPT_SEM, FLAG, AT(if_exists), NULL, "release: only if it exists"},
    {"ttl", 0, OPT_SEM, POSITIVE_DURATION, AT(ttl_ms), "DUR", "set: it vanishes after so long"},
    {"if-version", 'v', OPT_REGISTER, VERSION, AT(version), "V",
     "only if the version is V; 0: if there is no value.\nwait: until it is another than V"},
    {"yes", 'y', OPT_FORCE, FLAG, AT(yes), NULL, "do not ask"},
    {"redis-server", 0, OPT_DEMO, TEXT, AT(redis_server), "PATH", "the redis-server to use"},
    {"quiet", 'q', ALL & ~(unsigned)OPT_ENGINES, FLAG, AT(quiet), NULL, "only errors"},
    {"verbose", 'v', ALL & ~(unsigned)(OPT_ENGINES | OPT_REGISTER), FLAG, AT(verbose), NULL, "say more"},
    {"json", 'j', ALL & ~(unsigned)(OPT_DEMO | OPT_HELP), FLAG, AT(json), NULL, "JSON, one object a line"},
    {"help", 'h', ALL, FLAG, AT(help), NULL, "this text"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), LONG_BASE = 1000 };

static bool has_argument(const struct option_row *row)
{
        return row->argument != NULL;
}

int snib__opt_duration(const char *text, int64_t *ret_ms)
{
        static const struct {
                const char *suffix;
                double ms;
        } units[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 6e4}, {"min", 6e4}, {"h", 36e5}, {"d", 864e5}};
        char *end = NULL;

        if (!strchr("0123456789.", *text) || !*text || strpbrk(text, "xXpPeE"))
                return -1; /* no sign, blank, hexadecimal, exponent, "inf" or "nan" */
        double number = strtod(text, &end);
        if (end == text)
                return -1;
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
                double ms = number * units[i].ms;
                if (strcmp(end, units[i].suffix) != 0)
                        continue;
                if (ms > (double)SNIB_LEASE_MAX_MS * 100)
                        return -1;
                *ret_ms = (int64_t)ms + (ms > (double)(int64_t)ms); /* rounded up */
                return 0;
        }
        return -1;
}

static int whole_number(const char *text, long low, long high, long *ret)
{
        char *end = NULL;

        errno = 0;
        *ret = strtol(text, &end, 10);
        return errno == 0 && end != text && !*end && *ret >= low && *ret <= high && *text != ' ' && *text != '+' ? 0
                                                                                                                 : -1;
}

static int signal_number(const char *text)
{
        long number = 0;

        if (whole_number(text, 1, SIGRTMAX, &number) == 0)
                return (int)number;
        if (!strncasecmp(text, "SIG", 3))
                text += 3;
        for (int i = 1; i < NSIG; i++) {
                const char *name = sigabbrev_np(i);
                if (name && !strcasecmp(name, text))
                        return i;
        }
        return 0;
}

static int bad(const struct option_row *row, const char *text, const char *want)
{
        char safe[200];

        snib__out_safe(text, strlen(text), safe, sizeof(safe));
        return snib__out_fail(EXIT_USAGE, NULL, "--%s: '%s' is not %s", row->name, safe, want);
}

static int store_duration(const struct option_row *row, int64_t *field, const char *text)
{
        if (snib__opt_duration(text, field) < 0)
                return bad(row, text, "a duration; say for instance 10, 0.5, 500ms, 2m or 1h");
        if (row->type == POSITIVE_DURATION && *field == 0)
                return bad(row, text, "a duration above 0");
        return 0;
}

static int store_progress(const struct option_row *row, int *field, const char *text)
{
        static const char *const words[] = {"auto", "always", "never"};

        for (int i = 0; i < 3; i++)
                if (!strcmp(text, words[i])) {
                        *field = i;
                        return 0;
                }
        return bad(row, text, "one of auto, always, never");
}

static int store_texts(const struct option_row *row, struct texts *all, const char *text)
{
        if (all->count == SNIB__TEXTS_MAX)
                return snib__out_fail(EXIT_USAGE, NULL, "--%s: at most %d times", row->name, SNIB__TEXTS_MAX);
        all->text[all->count++] = text;
        return 0;
}

static int store_number(const struct option_row *row, int64_t *field, const char *text, long low)
{
        long number = 0;

        if (whole_number(text, low, LONG_MAX, &number) < 0)
                return bad(row, text, low ? "a whole number above 0" : "a version; say 0 or a number that snib gave");
        *field = number;
        return 0;
}

/* 0 or an exit code after a message. */
static int store(const struct option_row *row, struct options *o, const char *text)
{
        void *field = (char *)o + row->offset;
        long number = 0;

        switch (row->type) {
        case FLAG:
                *(bool *)field = true;
                return 0;
        case TEXT:
                *(const char **)field = text;
                return 0;
        case DURATION:
        case POSITIVE_DURATION:
                return store_duration(row, field, text);
        case EXIT_CODE:
                if (whole_number(text, 0, 255, &number) < 0)
                        return bad(row, text, "a number from 0 to 255");
                *(int *)field = (int)number;
                return 0;
        case PID:
                if (whole_number(text, 1, INT_MAX, &number) < 0)
                        return bad(row, text, "a process id");
                *(int64_t *)field = number;
                return 0;
        case SIGNAL:
                *(int *)field = signal_number(text);
                return *(int *)field ? 0 : bad(row, text, "a signal; say for instance TERM, INT or 15");
        case PROGRESS:
                return store_progress(row, field, text);
        case TEXTS:
                return store_texts(row, field, text);
        case NUMBER:
                return store_number(row, field, text, 1);
        case VERSION:
                return store_number(row, field, text, 0);
        default:
                return 0;
        }
}

static const struct option_row *find_letter(const struct command *c, int letter)
{
        for (int i = 0; i < ROWS; i++)
                if (rows[i].letter == letter && rows[i].commands & c->bit)
                        return &rows[i];
        return NULL;
}

/* The tables getopt_long() wants, for one command. */
static void make_tables(const struct command *c, char *letters, struct option *longs)
{
        int n = 0;

        if (!(c->bit & VERBS))
                *letters++ = '+'; /* stop at the first argument */
        *letters++ = ':';         /* tell a missing argument from an unknown option */
        for (int i = 0; i < ROWS; i++) {
                if (!(rows[i].commands & c->bit))
                        continue;
                longs[n++] = (struct option){rows[i].name, has_argument(&rows[i]), NULL, LONG_BASE + i};
                if (!rows[i].letter)
                        continue;
                *letters++ = rows[i].letter;
                if (has_argument(&rows[i]))
                        *letters++ = ':';
        }
        *letters = 0;
        memset(&longs[n], 0, sizeof(longs[n]));
}

static int complain(const struct command *c, int argc, char **argv, int found)
{
        char safe[200];
        char letter[3] = {'-', (char)optopt, 0};
        const char *what = optopt && optopt < LONG_BASE ? letter : argv[optind - 1];

        for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
                if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
                        snib__out_mode((struct out_mode){.json = true});
        snib__out_safe(what, strlen(what), safe, sizeof(safe));
        if (found == ':')
                return snib__out_fail(EXIT_USAGE, NULL, "%s: option %s wants an argument; see snib %s -h", c->name,
                                      safe, c->name);
        return snib__out_fail(EXIT_USAGE, NULL, "%s: option %s is not known; see snib %s -h", c->name, safe, c->name);
}

int snib__opt_parse(const struct command *c, int argc, char **argv, struct options *ret, int *ret_first)
{
        char letters[2 * ROWS + 3];
        struct option longs[ROWS + 1];
        int found;
        int wrong = 0;

        *ret = (struct options){.conflict_exit = EXIT_BUSY,
                                .kill_signal = SIGTERM,
                                .wait_ms = SNIB_FOREVER,
                                .lease_ms = -1,
                                .grace_ms = -1,
                                .version = SNIB_ANY_VERSION};
        make_tables(c, letters, longs);
        opterr = 0;
        optind = 0;
        while (!wrong && (found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
                if (found == '?' || found == ':')
                        return complain(c, argc, argv, found);
                wrong = store(found >= LONG_BASE ? &rows[found - LONG_BASE] : find_letter(c, found), ret, optarg);
                snib__out_mode((struct out_mode){ret->json, ret->quiet, ret->verbose});
        }
        *ret_first = optind;
        return wrong;
}

static void help_row(const struct option_row *row)
{
        char left[64];
        const char *text = row->help;

        snprintf(left, sizeof(left), "%c%c%s --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
                 row->letter ? "," : " ", row->name, row->argument ? "=" : "", row->argument ? row->argument : "");
        while (text) {
                const char *end = strchr(text, '\n');
                printf("  %-29s %.*s\n", left, end ? (int)(end - text) : (int)strlen(text), text);
                left[0] = 0;
                text = end ? end + 1 : NULL;
        }
}

void snib__opt_help(const struct command *c)
{
        printf("usage: snib %s [options]%s%s\n\n%s.\n\n", c->name, *c->arguments ? " " : "", c->arguments, c->summary);
        for (int i = 0; i < ROWS; i++)
                if (rows[i].commands & c->bit && rows[i].help)
                        help_row(&rows[i]);
        if (c->detail)
                printf("\n%s", c->detail);
}

int snib__opt_name(const char *name)
{
        if (!*name)
                return snib__out_fail(EXIT_USAGE, "SNIB_ENAME", "NAME is empty; give 1 to %d bytes", SNIB_NAME_MAX);
        if (strlen(name) > SNIB_NAME_MAX)
                return snib__out_fail(EXIT_USAGE, "SNIB_ENAME", "NAME has %zu bytes; at most %d are allowed",
                                      strlen(name), SNIB_NAME_MAX);
        return 0;
}

int snib__opt_number(const char *what, const char *text, int64_t low, int64_t high, int64_t *ret)
{
        char safe[200];
        long number = 0;

        if (whole_number(text, low, high, &number) == 0) {
                *ret = number;
                return 0;
        }
        snib__out_safe(text, strlen(text), safe, sizeof(safe));
        return snib__out_fail(EXIT_USAGE, NULL, "%s: '%s' is not a whole number from %lld to %lld", what, safe,
                              (long long)low, (long long)high);
}

int snib__opt_wrong(const struct command *c, const char *what)
{
        return snib__out_fail(EXIT_USAGE, NULL, "%s: %s; usage: snib %s [options] %s", c->name, what, c->name,
                              c->arguments);
}

const struct command *snib__opt_command(const char *name)
{
        for (const struct command *c = snib__commands; c->name; c++)
                if (!strcmp(c->name, name))
                        return c;
        return NULL;
}
