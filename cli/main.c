/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command `snib`: the table of commands, and finding the one that is meant. Uses the public headers only.
 */

#include "cmd.h"
#include "exit.h"
#include "opt.h"
#include "out.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_DETAIL                                                                                           \
        "NAME is 1 to 1000 bytes. DUR is seconds, or a number with ms, s, m, h or d: 0.5, 500ms, 2m.\n"      \
        "flock(1) lines work with NAME in place of the file: also NAME -c STRING.\n\n"                       \
        "CMD finds SNIB_NAME, SNIB_TOKEN (the fencing token), SNIB_OWNER, SNIB_DEADLINE_MS (end of the\n"    \
        "lease at start, milliseconds since 1970; renewals move it on) and SNIB_URL (without a password).\n" \
        "CMD is stopped before the lease can end: the signal at its end - grace - margin, SIGKILL at its\n"  \
        "end - margin; the margin is a twentieth of the lease, at least 20ms, at most 1s.\n\n"

#define EXITS                                                                                                \
        "exit: CMD's code; 128+N by signal N; 75 not acquired; 64 usage; 69 engine unreachable;\n"           \
        "77 no permission; 78 bad configuration; 120 lock lost, CMD stopped; 121 lock lost, CMD had ended\n" \
        "by itself; 122 outcome unknown; 124 --max-hold reached; 125 other failure of snib;\n"               \
        "126 cannot execute CMD; 127 CMD not found\n"

#define ACQUIRE_DETAIL                                                                       \
        "Prints shell text that sets SNIB_GRANT and SNIB_TOKEN:\n\n"                         \
        "  eval \"$(snib acquire --for-pid $$ deploy)\" || exit\n"                           \
        "  ...\n"                                                                            \
        "  snib release\n\n"                                                                 \
        "A guardian process keeps the lock until snib release, or until the process ends.\n" \
        "exit: 0 acquired; 75 not; else as snib run\n"

#define SEM_DETAIL                                                                           \
        "  set NAME N         make it with N permits, if it does not exist (else exit 75)\n" \
        "  acquire NAME [N]   take N permits, 1 if not said; nobody owns them\n"             \
        "  release NAME [N]   give N permits back\n"                                         \
        "  add NAME N         N permits more; remove NAME N: N fewer\n"                      \
        "  drain NAME         take all that are free and print how many\n"                   \
        "  show NAME          print how many are free\n"                                     \
        "  delete NAME        remove it\n\n"                                                 \
        "With -x, permits that expire, each with an id:\n\n"                                 \
        "  set NAME N, resize NAME N, add, remove, show, delete\n"                           \
        "  release NAME ID... give back permits by id, whoever took them\n"                  \
        "  renew NAME ID      start a permit's lease again, with -l\n"                       \
        "  force NAME         take back all that are out\n\n"                                \
        "exit: 0 done; 75 not; else as snib run\n"

#define LATCH_DETAIL                                                               \
        "  set NAME N       wait for N, if it is open (else exit 75)\n"            \
        "  down NAME [N]    count N down, 1 if not said, and print what is left\n" \
        "  wait NAME        wait until it is open\n"                               \
        "  show NAME        print the count; 0: open\n"                            \
        "  delete NAME      open it whatever its count\n\n"                        \
        "exit: 0 done; 75 not; else as snib run\n"

#define ELECT_DETAIL                                                                                  \
        "CMD runs while this candidate leads; SNIB_TOKEN is the term. When the leadership is lost,\n" \
        "CMD is stopped in time and the campaign begins again; when CMD ends, snib resigns.\n\n"      \
        "  snib elect --leader NAME    who leads\n"                                                   \
        "  snib elect --observe NAME   a line for every change\n"                                     \
        "  snib elect --depose NAME    end the present term\n\n"

#define REGISTER_DETAIL                                                                        \
        "  get NAME           print the value; with -j also its version\n"                     \
        "  set NAME VALUE     write it and print the new version; VALUE - is standard input\n" \
        "  wait NAME          wait for another value than there is (or than -v V), print it\n" \
        "  delete NAME        remove it\n\n"                                                   \
        "exit: 0 done; 75 there is none, the version is another, or not in time; else as snib run\n"

const struct command snib__commands[] = {
    {"run", OPT_RUN, "NAME [--] CMD [ARG...]", "Run a command under a lock", RUN_DETAIL EXITS, snib__cmd_run},
    {"try", OPT_TRY, "NAME [--] CMD [ARG...]", "Run a command under a lock if it is free; do not wait",
     RUN_DETAIL EXITS, snib__cmd_try},
    {"acquire", OPT_ACQUIRE, "NAME", "Take a lock and keep it while a process lives", ACQUIRE_DETAIL,
     snib__cmd_acquire},
    {"renew", OPT_RENEW, "[GRANT]", "Renew what snib acquire took; says whether it is still held",
     "GRANT defaults to $SNIB_GRANT. exit: 0 held; 120 not held any more; else as snib run\n", snib__cmd_renew},
    {"release", OPT_RELEASE, "[GRANT]", "Release what snib acquire took",
     "GRANT defaults to $SNIB_GRANT. exit: 0 was held until now; 120 was not any more; else as snib run\n",
     snib__cmd_release},
    {"sem", OPT_SEM, "VERB NAME [ARG...]", "A semaphore: set, acquire, release, and more", SEM_DETAIL, snib__cmd_sem},
    {"latch", OPT_LATCH, "VERB NAME [N]", "A count-down latch: set, down, wait", LATCH_DETAIL, snib__cmd_latch},
    {"elect", OPT_ELECT, "NAME [--] CMD [ARG...]", "Run a command while leading; say who leads", ELECT_DETAIL EXITS,
     snib__cmd_elect},
    {"register", OPT_REGISTER, "VERB NAME [VALUE]", "A value with a version: get, set, wait, delete", REGISTER_DETAIL,
     snib__cmd_register},
    {"ls", OPT_LS, "", "List what is held, and every register", NULL, snib__cmd_ls},
    {"show", OPT_SHOW, "NAME", "Show what there is under a name: who holds it, how many wait", NULL, snib__cmd_show},
    {"force-release", OPT_FORCE, "NAME", "Take a lock or permits away from who holds them",
     "The holder learns it as a loss; its fencing token stays below the next one.\n", snib__cmd_force_release},
    {"engines", OPT_ENGINES, "", "What each engine guarantees", NULL, snib__cmd_engines},
    {"demo", OPT_DEMO, "", "A flash sale, without a lock and with one", NULL, snib__cmd_demo},
    {"version", OPT_VERSION, "", "The version", NULL, snib__cmd_version},
    {"help", OPT_HELP, "[COMMAND]", "This list, or the options of a command", NULL, snib__cmd_help},
    {NULL, 0, NULL, NULL, NULL, NULL},
};

/* Descriptors 0 to 2 exist, whatever the caller closed: else the first file opened would get the program's output. */
static void open_standard(void)
{
        int fd;

        do
                fd = open("/dev/null", O_RDWR);
        while (fd >= 0 && fd < 3);
        if (fd >= 3)
                close(fd);
}

static const struct command *find(int argc, char **argv)
{
        const char *word = argc > 1 ? argv[1] : "help";

        if (!strcmp(word, "-h") || !strcmp(word, "--help"))
                word = "help";
        if (!strcmp(word, "-V") || !strcmp(word, "--version"))
                word = "version";
        return snib__opt_command(word);
}

int main(int argc, char **argv)
{
        static struct options options; /* the library's last callbacks may look at it */
        char safe[200];
        int first = 0;
        const struct command *c = find(argc, argv);

        open_standard();
        if (!c)
                return snib__out_fail(EXIT_USAGE, NULL, "no such command: %s; see snib help",
                                      snib__out_safe(argv[1], strlen(argv[1]), safe, sizeof(safe)));
        argc = argc > 1 ? argc - 1 : 1;
        argv = argv + (argc > 0 && argv[1] ? 1 : 0);
        int exit = snib__opt_parse(c, argc, argv, &options, &first);
        if (exit == 0 && options.help)
                snib__opt_help(c);
        else if (exit == 0)
                exit = c->run(&options, argc - first, argv + first);
        if (fflush(stdout) != 0 && exit == 0)
                exit = snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "stdout cannot be written");
        return exit;
}
