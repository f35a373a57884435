/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_CLI_OPT_H
#define SNIB_CLI_OPT_H

/*
 * The options of all commands: one table (opt.c) makes the parser and the help text.
 */

#include <stdbool.h>
#include <stdint.h>

enum progress { PROGRESS_AUTO = 0, PROGRESS_ALWAYS = 1, PROGRESS_NEVER = 2 };

/* An option that may be given several times. */
#define SNIB__TEXTS_MAX 64
struct texts {
        const char *text[SNIB__TEXTS_MAX];
        int count;
};

/* What was asked for. Durations are milliseconds; -1 where "not given" differs from 0. */
struct options {
        bool help;
        bool json;
        bool quiet;
        bool verbose;
        bool nonblock;
        bool fixed_lease;
        bool fenced;
        bool fair;
        bool shared;    /* the read side of a read-write lock */
        bool exclusive; /* its write side */
        bool close;
        bool yes;
        bool head;
        bool expiring;   /* sem: permits that expire */
        bool if_exists;  /* sem release */
        bool set_first;  /* latch wait */
        bool names;      /* ls: nothing else */
        bool observe;    /* elect: watch instead of campaign */
        bool who;        /* elect: say who leads */
        bool depose;     /* elect */
        bool reentrant;  /* run, try: join a hold of a process above */
        bool once;       /* elect: do not campaign again */
        int64_t permits; /* 0: not given */
        int64_t of;      /* 0: not given */
        int64_t ttl_ms;  /* sem set; 0: none */
        int64_t version; /* register; -1: any */
        struct texts keys;
        struct texts red;
        int progress;
        int conflict_exit;
        int kill_signal;
        int64_t wait_ms; /* SNIB_FOREVER if not given */
        int64_t lease_ms;
        int64_t max_hold_ms; /* 0: none */
        int64_t min_hold_ms; /* 0: none */
        int64_t grace_ms;
        int64_t for_pid;
        const char *url;
        const char *label;
        const char *shell;
        const char *flock; /* an option of flock(1) that there is not; see flock.h */
        const char *redis_server;
};

/* Which commands an option belongs to. */
enum {
        OPT_RUN = 1,
        OPT_TRY = 2,
        OPT_ACQUIRE = 4,
        OPT_RENEW = 8,
        OPT_RELEASE = 16,
        OPT_LS = 32,
        OPT_SHOW = 64,
        OPT_FORCE = 128,
        OPT_ENGINES = 256,
        OPT_DEMO = 512,
        OPT_VERSION = 1024,
        OPT_HELP = 2048,
        OPT_SEM = 4096,
        OPT_LATCH = 8192,
        OPT_ELECT = 16384,
        OPT_REGISTER = 32768,
        OPT_COMPLETION = 65536
};

struct verb;
struct command {
        const char *name;
        unsigned bit;
        const char *arguments; /* "NAME [--] CMD [ARG...]" */
        const char *summary;   /* one line */
        const char *detail;    /* paragraphs below the options, or NULL */
        /* `argv` are the arguments after the options, ended by NULL. Answers the exit code. */
        int (*run)(const struct options *o, int argc, char **argv);
        const struct verb *verbs[2]; /* of a noun: its verbs, each table ended by one without a word */
        bool eval;                   /* prints text for a shell to evaluate, which must fail when the command fails */
};

/* All commands, ended by one without a name. */
extern const struct command snib__commands[];

/* Reads the options in front of the first argument. 0 and *ret_first is the index of that argument,
 * or an exit code after a message. */
int snib__opt_parse(const struct command *c, int argc, char **argv, struct options *ret, int *ret_first);

void snib__opt_help(const struct command *c);

/* The words from the command on, where those options that stand in front of it (-j, -q, -v, -u URL)
 * are behind it, by their long names. Changes *argc; the caller's, or NULL: there is no command. */
char **snib__opt_leading(int *argc, char **argv);

/* Option number i of a command: false behind the last. `help` NULL: another spelling. */
struct option_text {
        const char *name;
        char letter;
        const char *argument;
        const char *help;
};
bool snib__opt_at(const struct command *c, int i, struct option_text *ret);

/* 0 if the name can be one, else an exit code after a message. */
int snib__opt_name(const char *name);

/* A whole number from low to high in *ret: 0, or an exit code after a message that calls it
 * `what`. */
int snib__opt_number(const char *what, const char *text, int64_t low, int64_t high, int64_t *ret);

/* Wrong number of arguments: prints what the command wants, answers EXIT_USAGE. */
int snib__opt_wrong(const struct command *c, const char *what);
const struct command *snib__opt_command(const char *name);

/* There is none of that name: a message that says which may be meant, EXIT_USAGE. */
int snib__opt_no_command(const char *word);

#endif
