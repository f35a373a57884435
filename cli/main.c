/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command `snib`: the table of commands, and finding the one that is meant. Uses the public
 * headers only.
 */

#include "cmd.h"
#include "exit.h"
#include "opt.h"
#include "out.h"
#include "verbs.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_DETAIL                                                                                           \
        "NAME is 1 to 1000 bytes. DUR is seconds, or numbers with ms, s, m, h or d: 0.5, 500ms, 1h30m.\n"    \
        "If a process above holds NAME already, a wait would never end: exit 64, or 75 with -n; see\n"       \
        "--reentrant.\n"                                                                                     \
        "flock(1) lines work with NAME in place of the file: also NAME -c STRING.\n\n"                       \
        "CMD finds SNIB_NAME, SNIB_TOKEN (the fencing token), SNIB_OWNER, SNIB_DEADLINE_MS (end of the\n"    \
        "lease at start, milliseconds since 1970; renewals move it on) and SNIB_URL (without a password).\n" \
        "--hold-at-least is for jobs of cron on several machines: one that was over in a second still\n"     \
        "keeps the lock, also if it failed, so that a clock that is late does not run it again. The lock\n"  \
        "is free at once if CMD could not be run, or if snib itself was killed on local:.\n\n"               \
        "CMD is stopped before the lease can end: the signal at its end - grace - margin, SIGKILL at its\n"  \
        "end - margin; the margin is a twentieth of the lease, at least 20ms, at most 1s.\n\n"

/* Whatever asks an engine can end so. */
#define OWN_EXITS                                                                 \
        "64 usage; 65 something else stands under NAME; 69 engine unreachable;\n" \
        "77 no permission; 78 bad configuration; 125 other failure of snib"

#define EXITS                                                                                        \
        "exit: CMD's code; 128+N by signal N; 75 not acquired (-E changes it);\n" OWN_EXITS ";\n"    \
        "120 lock lost, CMD stopped; 121 lock lost, CMD had ended by itself; 122 outcome unknown;\n" \
        "124 --max-hold reached; 126 cannot execute CMD; 127 CMD not found\n"

#define ASK_EXITS OWN_EXITS "; 128+N signal N\n"
#define VERB_EXITS "75 not, and why is said (-E changes it); 122 outcome unknown;\n" ASK_EXITS

#define ACQUIRE_DETAIL                                                                            \
        "Prints shell text that sets SNIB_GRANT and SNIB_TOKEN:\n\n"                              \
        "  g=$(snib acquire deploy) || exit; eval \"$g\"\n"                                       \
        "  ./deploy.sh\n"                                                                         \
        "  snib release\n\n"                                                                      \
        "If it fails, it prints text that fails with its exit code when it is evaluated. Write\n" \
        "it as above all the same: a command that was killed or not found prints nothing.\n"      \
        "A guardian process keeps the lock until snib release, or until the process ends.\n"      \
        "exit: 0 acquired; 75 not (-E changes it); 122 outcome unknown;\n" ASK_EXITS

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
        "exit: 0 done; show: 0 it exists, 1 it does not;\n" VERB_EXITS

#define LATCH_DETAIL                                                                            \
        "  set NAME N       wait for N, if it is open (else exit 75)\n"                         \
        "  down NAME [N]    count N down, 1 if not said, and print what is left\n"              \
        "  wait NAME        wait until it is open; one that nobody has set yet is open, too:\n" \
        "                   --set-first waits for that first\n"                                 \
        "  show NAME        print the count; 0: open\n"                                         \
        "  delete NAME      open it whatever its count\n\n"                                     \
        "exit: 0 done; show: 0 it has a count, 1 it is open;\n" VERB_EXITS

#define ELECT_DETAIL                                                                                  \
        "CMD runs while this candidate leads; SNIB_TOKEN is the term. When the leadership is lost,\n" \
        "CMD is stopped in time and the campaign begins again; when CMD ends, snib resigns.\n\n"      \
        "  snib elect --leader NAME    who leads\n"                                                   \
        "  snib elect --observe NAME   a line for every change\n"                                     \
        "  snib elect --depose NAME    end the present term\n\n"                                      \
        "exit of --leader: 0 somebody leads, 1 nobody does. of --depose: 0 deposed, 75 nobody led.\n"

#define REGISTER_DETAIL                                                                             \
        "  get NAME           print the value; with -j also its version\n"                          \
        "  set NAME VALUE     write it and print the new version; VALUE - is standard input\n"      \
        "  wait NAME          wait for another value than there is (or than -v V), print it\n"      \
        "  delete NAME        remove it\n\n"                                                        \
        "exit: 0 done; 75 there is none, the version is another, or not in time (-E changes it);\n" \
        "122 outcome unknown; " ASK_EXITS

const struct command snib__commands[] = {
    {"run", OPT_RUN, "NAME [--] CMD [ARG...]", "Run a command under a lock", RUN_DETAIL EXITS, snib__cmd_run},
    {"try", OPT_TRY, "NAME [--] CMD [ARG...]", "Run a command under a lock if it is free; do not wait",
     RUN_DETAIL EXITS, snib__cmd_try},
    {"acquire", OPT_ACQUIRE, "NAME", "Take a lock and keep it while a process lives", ACQUIRE_DETAIL, snib__cmd_acquire,
     .eval = true},
    {"renew", OPT_RENEW, "[GRANT]", "Renew what snib acquire took; says whether it is still held",
     "GRANT defaults to $SNIB_GRANT. exit: 0 held; 120 not held any more;\n64 usage; 125 other failure of snib\n",
     snib__cmd_renew},
    {"release", OPT_RELEASE, "[GRANT]", "Release what snib acquire took",
     "GRANT defaults to $SNIB_GRANT. exit: 0 was held until now; 120 was not any more;\n64 usage; 125 other failure of "
     "snib\n",
     snib__cmd_release},
    {"sem",
     OPT_SEM,
     "VERB NAME [ARG...]",
     "A semaphore: set, acquire, release, and more",
     SEM_DETAIL,
     snib__cmd_sem,
     {snib__sem_plain, snib__sem_expiring}},
    {"latch",
     OPT_LATCH,
     "VERB NAME [N]",
     "A count-down latch: set, down, wait",
     LATCH_DETAIL,
     snib__cmd_latch,
     {snib__latch_verbs}},
    {"elect", OPT_ELECT, "NAME [--] CMD [ARG...]", "Run a command while leading; say who leads", ELECT_DETAIL EXITS,
     snib__cmd_elect},
    {"register",
     OPT_REGISTER,
     "VERB NAME [VALUE]",
     "A value with a version: get, set, wait, delete",
     REGISTER_DETAIL,
     snib__cmd_register,
     {snib__register_verbs}},
    {"ls", OPT_LS, "[PATTERN]", "List what is held, and every register",
     "PATTERN: only names that are like it: * is any bytes, ? any one, [a-z] one of these.\n"
     "exit: 0, also for an empty list; 122 outcome unknown;\n" ASK_EXITS,
     snib__cmd_ls},
    {"show", OPT_SHOW, "NAME", "Show what there is under a name: who holds it, how many wait",
     "exit: 0 it is held, or something is there; 1 it is free; with -q nothing is printed;\n" ASK_EXITS,
     snib__cmd_show},
    {"force-release", OPT_FORCE, "NAME", "Take a lock or permits away from who holds them",
     "The holder learns it as a loss; its fencing token stays below the next one.\n"
     "exit: 0 taken away, or nobody held it; 75 you said no; 122 outcome unknown;\n" ASK_EXITS,
     snib__cmd_force_release},
    {"engines", OPT_ENGINES, "", "What each engine guarantees", NULL, snib__cmd_engines},
    {"demo", OPT_DEMO, "", "A flash sale, without a lock and with one", NULL, snib__cmd_demo},
    {"completion", OPT_COMPLETION, "bash|zsh|fish", "The script that makes a shell complete snib",
     "  bash   eval \"$(snib completion bash)\"                in ~/.bashrc\n"
     "  zsh    snib completion zsh > ~/.zsh/_snib            in a directory of $fpath\n"
     "  fish   snib completion fish | source                 in ~/.config/fish/config.fish\n\n"
     "A package installs all three. Names are completed from the engine, if it answers within a second.\n"
     "exit: 0; 64 usage; 125 it could not be written\n",
     snib__cmd_completion},
    {"version", OPT_VERSION, "", "The version", NULL, snib__cmd_version},
    {"help", OPT_HELP, "[COMMAND]", "This list, or the options of a command", NULL, snib__cmd_help},
    {.name = NULL},
};

/* Descriptors 0 to 2 exist, whatever the caller closed: else the first file opened would get the
 * program's output. In place of a closed stdin comes one that cannot be read either, and of a
 * closed stdout one that cannot be written: an answer for it is lost, and the command fails. */
static void open_standard(void)
{
        for (int fd = 0; fd < 3; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void)open("/dev/null", fd == STDIN_FILENO    ? O_WRONLY
                                                : fd == STDOUT_FILENO ? O_RDONLY
                                                                      : O_RDWR);
}

static const struct command *find(const char *word)
{
        if (!strcmp(word, "-h") || !strcmp(word, "--help"))
                word = "help";
        if (!strcmp(word, "-V") || !strcmp(word, "--version"))
                word = "version";
        return snib__opt_command(word);
}

int main(int argc, char **argv)
{
        static char help[] = "help", *no_words[] = {help, NULL};
        static struct options options; /* the library's last callbacks may look at it */
        static char **words;
        int first = 0;

        open_standard();
        words = argc > 1 ? snib__opt_leading(&argc, argv) : no_words;
        if (!words)
                return snib__out_fail(EXIT_USAGE, NULL, "COMMAND is missing behind the options; see snib help");
        argc = argc > 1 || words != no_words ? argc : 1;
        argv = words;

        const struct command *c = find(argv[0]);
        if (!c)
                return snib__opt_no_command(argv[0]);
        int exit = snib__opt_parse(c, argc, argv, &options, &first);
        if (exit == 0 && options.help)
                snib__opt_help(c);
        else if (exit == 0)
                exit = c->run(&options, argc - first, argv + first);
        if (snib__out_written() != 0)
                exit = EXIT_FAILURE_OWN;
        if (exit != 0 && c->eval && !snib__out_mode_now().json) {
                printf("(exit %d)\n", exit); /* evaluated, it fails as this command does */
                (void)fflush(stdout);
        }
        return exit;
}
