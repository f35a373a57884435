/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The habits of flock(1). Most of its options are options here (opt.c); this is the rest: what has
 * another name, what cannot be, and its way to write a command for the shell. What snib cannot do
 * is refused, never ignored: a line that seems to lock and does not is worse. Main thread only.
 */

#include "flock.h"
#include "exit.h"
#include "out.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* How a part of a script holds a lock, with the options that go with it. */
static const char *script_line(const struct options *o, char *ret, size_t size)
{
        snprintf(ret, size, "g=$(snib acquire%s%s NAME) || exit; eval \"$g\"", o->nonblock ? " -n" : "",
                 o->shared      ? " -s"
                 : o->exclusive ? " -x"
                                : "");
        return ret;
}

static bool is_number(const char *text)
{
        return *text && strspn(text, "0123456789") == strlen(text) && strlen(text) < 7;
}

static bool is_open_descriptor(const char *text)
{
        return is_number(text) && fcntl((int)strtol(text, NULL, 10), F_GETFD) >= 0;
}

static int answer_option(const struct command *c, const char *option)
{
        if (!strcmp(option, "no-fork"))
                return snib__out_fail(EXIT_USAGE, NULL,
                                      "%s: -F (--no-fork) cannot be: snib stays beside CMD to renew the lease and to "
                                      "stop CMD in time; leave it out: snib %s NAME CMD",
                                      c->name, c->name);
        if (!strcmp(option, "fcntl"))
                return snib__out_fail(EXIT_USAGE, NULL,
                                      "%s: --fcntl is a way to lock files; snib locks names, and keeps nobody out who "
                                      "locks a file; where all use snib leave it out: snib %s NAME CMD",
                                      c->name, c->name);
        return snib__out_fail(EXIT_USAGE, NULL,
                              "%s: to unlock (-u of flock, where -u is the engine here) what snib acquire took, type: "
                              "snib release",
                              c->name);
}

int snib__flock_check(const struct command *c, const struct options *o, int argc, char **argv)
{
        char line[80];

        if (o->flock)
                return answer_option(c, o->flock);
        if (o->url && is_number(o->url))
                return answer_option(c, "unlock");
        if (argc == 1 && !o->shell && !o->keys.count && is_open_descriptor(argv[0]))
                return snib__out_fail(
                    EXIT_USAGE, NULL,
                    "%s: CMD is missing; %s is an open descriptor, which flock would lock; snib locks "
                    "names; for a part of a script type: %s",
                    c->name, argv[0], script_line(o, line, sizeof(line)));
        return 0;
}

int snib__flock_string(const struct command *c, int argc, char **argv, const char **ret_string)
{
        static const char word[] = "--command=";

        if (argc < 1)
                return 0;
        if (!strcmp(*argv, "-c") || !strcmp(*argv, "--command")) {
                if (argc != 2)
                        return snib__opt_wrong(c, "-c wants exactly one argument");
                *ret_string = argv[1];
                return 1;
        }
        if (!strncmp(*argv, word, strlen(word)))
                *ret_string = *argv + strlen(word);
        else if (!strncmp(*argv, "-c", 2))
                *ret_string = *argv + 2;
        else
                return 0;
        return argc == 1 ? 1 : snib__opt_wrong(c, "nothing can follow -c STRING");
}
