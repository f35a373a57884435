/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reading the options. The table below is the only place that knows them: the arguments of
 * getopt_long() and the help text are made from it, so they cannot differ. Options end at the first
 * argument, as with flock(1), so that the options of the command to be run are never ours. Called
 * once, before anything else happens.
 */

#include "opt.h"
#include "exit.h"
#include "near.h"
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

/* A hundred years: what is longer was a mistake. */
#define DURATION_MAX_MS (100 * SNIB_LEASE_MAX_MS)

enum type { FLAG, TEXT, TEXTS, NUMBER, VERSION, DURATION, POSITIVE_DURATION, EXIT_CODE, SIGNAL, PID, PROGRESS, FLOCK };

struct option_row {
        const char *name;
        char letter;
        unsigned commands;
        enum type type;
        size_t offset;
        const char *argument;
        const char *help; /* NULL: another spelling of the row above, or FLOCK: to be answered, see flock.h */
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
    {"reentrant", 0, RUNS, FLAG, AT(reentrant), NULL,
     "if a snib run above holds it, run CMD under that hold,\nwhich stops CMD if it is lost"},
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
    {"no-fork", 'F', RUNS, FLOCK, AT(flock), NULL, NULL},
    {"unlock", 0, RUNS, FLOCK, AT(flock), NULL, NULL},
    {"fcntl", 0, RUNS, FLOCK, AT(flock), NULL, NULL},
    {"close", 'o', COMMANDS, FLAG, AT(close), NULL,
     "the hold ends with CMD itself; what CMD left in the background\nruns on without the lock. Default: held until "
     "all of it ended"},
    {"lease", 'l', LEASES | OPT_SEM, POSITIVE_DURATION, AT(lease_ms), "DUR",
     "lease at the engine, kept alive meanwhile; default 30s"},
    {"fixed-lease", 0, HOLDS, FLAG, AT(fixed_lease), NULL, "do not keep the lease alive: the hold ends with it"},
    {"max-hold", 0, COMMANDS, POSITIVE_DURATION, AT(max_hold_ms), "DUR", "stop CMD when it held so long (exit 124)"},
    {"max-hold", 0, OPT_ACQUIRE, POSITIVE_DURATION, AT(max_hold_ms), "DUR", "give it up after so long"},
    {"hold-at-least", 0, RUNS, POSITIVE_DURATION, AT(min_hold_ms), "DUR",
     "if CMD ends before, the engine keeps the lock until DUR\nafter the grant; snib itself ends with CMD"},
    {"grace", 0, COMMANDS, DURATION, AT(grace_ms), "DUR",
     "time between the polite signal and SIGKILL; default 5s, at most\na quarter of the lease, and 250ms once the lock "
     "is lost"},
    {"kill-signal", 0, COMMANDS, SIGNAL, AT(kill_signal), "SIG", "the polite signal; default TERM"},
    {"fenced", 0, HOLDS, FLAG, AT(fenced), NULL, "token counted by the engine (Redisson's fenced lock)"},
    {"label", 0, LEASES, TEXT, AT(label), "TEXT", "what others see as the holder; default CMD's name"},
    {"for-pid", 0, OPT_ACQUIRE, PID, AT(for_pid), "PID",
     "hold while this process lives; default: the one that\nreads what this prints, see snib(1)"},
    {"progress", 0, LEASES, PROGRESS, AT(progress), "WHEN", "the waiting line: auto, always, never"},
    {"once", 0, OPT_ELECT, FLAG, AT(once), NULL, "one term only: do not campaign again when it was lost"},
    {"leader", 0, OPT_ELECT, FLAG, AT(who), NULL, "say who leads; exit 0 somebody, 1 nobody"},
    {"observe", 0, OPT_ELECT, FLAG, AT(observe), NULL, "a line for every change of the leader, for ever or -w DUR"},
    {"depose", 0, OPT_ELECT, FLAG, AT(depose), NULL, "end the present term"},
    {"expiring", 'x', OPT_SEM, FLAG, AT(expiring), NULL,
     "permits that expire, each with an id; taken by\nsnib run or acquire --permits"},
    {"if-exists", 0, OPT_SEM, FLAG, AT(if_exists), NULL, "release: only if it exists"},
    {"names", 0, OPT_LS, FLAG, AT(names), NULL, "only the names, one a line"},
    {"set-first", 0, OPT_LATCH, FLAG, AT(set_first), NULL,
     "wait: until somebody has set it, and then until it is open"},
    {"ttl", 0, OPT_SEM, POSITIVE_DURATION, AT(ttl_ms), "DUR", "set: it vanishes after so long"},
    {"if-version", 'v', OPT_REGISTER, VERSION, AT(version), "V",
     "only if the version is V; 0: if there is no value.\nwait: until it is another than V"},
    {"head", 0, OPT_FORCE, FLAG, AT(head), NULL,
     "of a fair lock: the first waiter loses its place,\nthe holder keeps the lock"},
    {"yes", 'y', OPT_FORCE, FLAG, AT(yes), NULL, "do not ask"},
    {"redis-server", 0, OPT_DEMO, TEXT, AT(redis_server), "PATH", "the redis-server to use"},
    {"quiet", 'q', ALL & ~(unsigned)(OPT_ENGINES | OPT_COMPLETION), FLAG, AT(quiet), NULL, "only errors"},
    {"verbose", 'v', ALL & ~(unsigned)(OPT_ENGINES | OPT_REGISTER | OPT_COMPLETION), FLAG, AT(verbose), NULL,
     "say more"},
    {"json", 'j', ALL & ~(unsigned)(OPT_DEMO | OPT_HELP | OPT_COMPLETION), FLAG, AT(json), NULL,
     "JSON, one object a line"},
    {"help", 'h', ALL, FLAG, AT(help), NULL, "this text"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), LONG_BASE = 1000 };

static bool has_argument(const struct option_row *row)
{
        return row->argument != NULL;
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
        int r = snib_duration_parse(text, field);

        if (r == SNIB_ELIMIT || (r == 0 && *field > DURATION_MAX_MS))
                return bad(row, text, "possible: it is too long; at most 36500d");
        if (r < 0)
                return bad(row, text, "a duration; say for instance 10, 0.5, 500ms, 2m or 1h30m");
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
        case FLOCK:
                *(const char **)field = row->name;
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

static const struct option_row *find_name(const struct command *c, const char *name, size_t length)
{
        for (int i = 0; i < ROWS; i++)
                if (rows[i].commands & c->bit && strlen(rows[i].name) == length && !strncmp(rows[i].name, name, length))
                        return &rows[i];
        return NULL;
}

/* The options that `--name` can be short for: "--fair, --fenced"; how many. */
static int beginnings(const struct command *c, const char *name, size_t length, char *ret, size_t size)
{
        size_t used = 0;
        int n = 0;

        ret[0] = 0;
        for (int i = 0; i < ROWS; i++) {
                if (!(rows[i].commands & c->bit) || strncmp(rows[i].name, name, length) != 0 ||
                    find_name(c, rows[i].name, strlen(rows[i].name)) != &rows[i])
                        continue;
                if (used < size)
                        used += (size_t)snprintf(ret + used, size - used, "%s--%s", n ? ", " : "", rows[i].name);
                n++;
        }
        return n;
}

/* A word that begins with "--" and is none of ours. */
static int unknown_long(const struct command *c, const char *word, const char *safe)
{
        char list[400], hint[SNIB__NEAR_MAX], bare[100];
        struct near near = {.word = bare};
        size_t length = strcspn(word + 2, "=");

        if (find_name(c, word + 2, length))
                return snib__out_fail(EXIT_USAGE, NULL, "%s: option %s takes no argument; see snib %s -h", c->name,
                                      safe, c->name);
        if (length > 0 && beginnings(c, word + 2, length, list, sizeof(list)) > 1)
                return snib__out_fail(EXIT_USAGE, NULL, "%s: option %s is short for more than one: %s", c->name, safe,
                                      list);
        snprintf(bare, sizeof(bare), "%.*s", (int)length, word + 2);
        for (int i = 0; i < ROWS; i++)
                if (rows[i].commands & c->bit)
                        snib__near_offer(&near, rows[i].name);
        return snib__out_fail(EXIT_USAGE, NULL, "%s: option %s is not known%s; see snib %s -h", c->name, safe,
                              snib__near_text(&near, "--", hint), c->name);
}

static int complain(const struct command *c, int argc, char **argv, int found)
{
        char safe[200];
        char letter[3] = {'-', (char)optopt, 0};
        const char *word = argv[optind - 1];
        const char *what = optopt && optopt < LONG_BASE ? letter : word;

        for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
                if (!strcmp(argv[i], "--json") || !strcmp(argv[i], "-j"))
                        snib__out_mode((struct out_mode){.json = true});
        snib__out_safe(what, strlen(what), safe, sizeof(safe));
        if (found == ':')
                return snib__out_fail(EXIT_USAGE, NULL, "%s: option %s wants an argument; see snib %s -h", c->name,
                                      safe, c->name);
        if (what == word && !strncmp(word, "--", 2))
                return unknown_long(c, word, safe);
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

int snib__opt_no_command(const char *word)
{
        struct near near = {.word = word};
        char safe[200], hint[SNIB__NEAR_MAX];

        for (const struct command *c = snib__commands; c->name; c++)
                snib__near_offer(&near, c->name);
        return snib__out_fail(EXIT_USAGE, NULL, "no such command: %s%s; see snib help",
                              snib__out_safe(word, strlen(word), safe, sizeof(safe)), snib__near_text(&near, "", hint));
}

const struct command *snib__opt_command(const char *name)
{
        for (const struct command *c = snib__commands; c->name; c++)
                if (!strcmp(c->name, name))
                        return c;
        return NULL;
}

/* ---- in front of the command ---- */

/* Those that mean the same for all commands that have them. */
static const struct option_row *common(const char *name, size_t length)
{
        static const char *const names[] = {"json", "quiet", "verbose", "url", "engine"};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (strlen(names[i]) == length && !strncmp(names[i], name, length))
                        for (int row = 0; row < ROWS; row++)
                                if (!strcmp(rows[row].name, names[i]))
                                        return &rows[row];
        return NULL;
}

static const struct option_row *common_letter(char letter)
{
        for (int i = 0; i < ROWS; i++)
                if (rows[i].letter == letter && common(rows[i].name, strlen(rows[i].name)) == &rows[i])
                        return &rows[i];
        return NULL;
}

/* "-jqu": true if all letters are common ones, and only the last wants an argument, the next word.
 * */
static bool common_letters(const char *letters, bool *ret_wants)
{
        *ret_wants = false;
        for (; *letters; letters++) {
                const struct option_row *row = common_letter(*letters);

                if (!row || *ret_wants)
                        return false;
                *ret_wants = has_argument(row);
        }
        return true;
}

/* How many words of an option in front of the command begin at `word`; 0: none does. */
static int leading_words(const char *word)
{
        const struct option_row *row;
        bool wants;

        if (word[0] == '-' && word[1] && word[1] != '-')
                return common_letters(word + 1, &wants) ? 1 + wants : 0;
        if (strncmp(word, "--", 2) != 0)
                return 0;
        row = common(word + 2, strcspn(word + 2, "="));
        return !row ? 0 : has_argument(row) && !strchr(word, '=') ? 2 : 1;
}

/* By its long name: a letter may be another option of the command's own. */
static int leading_copy(char *word, char **ret)
{
        static char long_names[ROWS][32];
        int n = 0;

        if (word[1] == '-') {
                *ret = word;
                return 1;
        }
        for (const char *p = word + 1; *p; p++) {
                const struct option_row *row = common_letter(*p);

                snprintf(long_names[row - rows], sizeof(long_names[0]), "--%s", row->name);
                ret[n++] = long_names[row - rows];
        }
        return n;
}

/* A letter becomes a word. */
static size_t room_for(int argc, char **argv)
{
        size_t room = (size_t)argc + 1;

        for (int i = 0; i < argc; i++)
                room += strlen(argv[i]);
        return room;
}

char **snib__opt_leading(int *argc, char **argv)
{
        char **ret = calloc(room_for(*argc, argv), sizeof(*ret));
        int first = 1, n = 0, words;

        while (ret && first < *argc && (words = leading_words(argv[first])) > 0)
                first += words;
        if (!ret || first >= *argc) {
                free(ret);
                return NULL;
        }
        ret[n++] = argv[first];
        for (int i = 1; i < first; i++) {
                words = leading_words(argv[i]);
                n += leading_copy(argv[i], ret + n);
                if (words == 2)
                        ret[n++] = argv[++i];
        }
        for (int i = first + 1; i < *argc; i++)
                ret[n++] = argv[i];
        *argc = n;
        return ret;
}

/* ---- for completion ---- */

bool snib__opt_at(const struct command *c, int i, struct option_text *ret)
{
        for (int row = 0; row < ROWS; row++)
                if (rows[row].commands & c->bit && rows[row].type != FLOCK && i-- == 0) {
                        *ret =
                            (struct option_text){rows[row].name, rows[row].letter, rows[row].argument, rows[row].help};
                        return true;
                }
        return false;
}
