/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib acquire: the first of two steps. This process forks the guardian (guard.c), which waits for the lock, reports,
 * and stays; this one passes signals on while that takes, prints the grant and ends. If this process dies before the
 * report, the guardian withdraws. Main thread only, in both.
 */

#include "cmd.h"
#include "exit.h"
#include "guard.h"
#include "out.h"
#include "waiting.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_FD 3

struct report {
        int exit;
        bool held;
        char id[SNIB__GUARD_ID];
        int64_t token;
        int64_t left_ms;
};

/* ---- the guardian ---- */

struct guardian {
        const struct options *options;
        const char *name;
        pid_t caller; /* the snib acquire that waits for the report */
        pid_t holder; /* the process to outlive */
        struct session session;
        struct waiting waiting;
        struct guard guard;
        char id[SNIB__GUARD_ID];
};

/* Keeps nothing of the caller's descriptors but stdin, stdout, stderr and the report: a pipe held open by a guardian
 * would hang its reader. */
static void drop_descriptors(int report)
{
        if (report != REPORT_FD)
                (void)dup3(report, REPORT_FD, O_CLOEXEC);
        (void)syscall(SYS_close_range, REPORT_FD + 1, ~0U, 0);
}

static void leave_terminal(void)
{
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)setsid();
        if (chdir("/") < 0 || null < 0)
                return;
        for (int fd = 0; fd < 3; fd++)
                (void)dup2(null, fd);
        if (null > 2)
                close(null);
}

/* The name of the process to outlive, as the default label. */
static const char *process_name(pid_t pid, char *ret, size_t size)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        FILE *f = fopen(path, "re");
        if (!f || !fgets(ret, (int)size, f))
                snprintf(ret, size, "snib");
        ret[strcspn(ret, "\n")] = 0;
        if (f)
                fclose(f);
        return ret;
}

/* Everything up to the grant and the socket: 0 or an exit code. */
static int take(struct guardian *g)
{
        const struct options *o = g->options;
        char label[SNIB_LABEL_MAX];
        int exit = EXIT_FAILURE_OWN;

        g->guard.directory = snib__guard_directory(&exit);
        if (g->guard.directory < 0)
                return exit;
        g->guard.process = (int)syscall(SYS_pidfd_open, g->holder, 0);
        if (g->guard.process < 0)
                return snib__out_fail(EXIT_USAGE, NULL, "--for-pid: no process %d", (int)g->holder);
        exit = snib__session_open(&g->session, o, o->label ? o->label : process_name(g->holder, label, sizeof(label)));
        g->session.max_hold_ms = o->max_hold_ms;
        if (!exit)
                exit = snib__target_open(&g->session.target, &g->session, g->name);
        if (exit)
                return exit;
        g->waiting = (struct waiting){
            .session = &g->session, .name = g->name, .signals = g->guard.signals, .err = SNIB_ERROR_INIT};
        exit = snib__waiting_acquire(&g->waiting, o->nonblock ? 0 : o->wait_ms);
        if (!snib__held_any(&g->waiting.held))
                return exit;
        g->guard.session = &g->session;
        g->guard.held = &g->waiting.held;
        g->guard.id = g->id;
        g->guard.listener = snib__guard_listen(g->guard.directory, g->id);
        return g->guard.listener < 0 ? snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "socket: %s", strerror(errno))
                                     : 0;
}

static void guardian(struct guardian *g, int report)
{
        struct report r = {0};
        sigset_t old;

        drop_descriptors(report);
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* ends the wait if the caller dies */
        if (getppid() != g->caller)
                _exit(EXIT_FAILURE_OWN);
        g->guard.signals = snib__signals_open(&old);
        r.exit = take(g);
        r.held = r.exit == EXIT_OK && snib__held_any(&g->waiting.held);
        if (r.held) {
                memcpy(r.id, g->id, sizeof(r.id));
                r.token = snib__held_token(g->guard.held);
                r.left_ms = snib__held_left_ms(g->guard.held);
                prctl(PR_SET_PDEATHSIG, 0);
                leave_terminal();
        }
        bool told = write(REPORT_FD, &r, sizeof(r)) == (ssize_t)sizeof(r); /* SIGPIPE is blocked */
        close(REPORT_FD);
        if (r.held && !told)
                kill(getpid(), SIGTERM); /* nobody knows of the grant: give it back */
        if (r.held)
                snib__guard_keep(&g->guard);
        else
                (void)snib__held_release(&g->waiting.held, NULL);
        snib__session_close(&g->session);
        _exit(r.exit);
}

/* ---- the caller ---- */

static void print(const struct options *o, const char *name, const struct report *r)
{
        struct json j;

        if (!o->json) {
                printf("SNIB_GRANT=%s; SNIB_TOKEN=%lld; export SNIB_GRANT SNIB_TOKEN\n", r->id, (long long)r->token);
                return;
        }
        snib__json_begin(&j);
        snib__json_name(&j, name, strlen(name));
        snib__json_text(&j, "grant", r->id);
        snib__json_int(&j, "token", r->token);
        snib__json_int(&j, "lease_left_ms", r->left_ms);
        snib__json_end(&j, stdout);
}

/* Waits for the report, passing signals on. False if the guardian ended without one. */
static bool wait_report(int fd, int signals, pid_t guardian_pid, struct report *ret)
{
        struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        int number;

        for (;;) {
                if (poll(fds, 2, -1) < 0)
                        continue;
                while (fds[1].revents && (number = snib__signals_next(signals)) > 0) {
                        if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT)
                                kill(guardian_pid, number);
                        else if (number == SIGTSTP)
                                kill(getpid(), SIGSTOP);
                }
                if (fds[0].revents)
                        return read(fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
        }
}

static int check(const struct options *o, int argc, char **argv)
{
        const struct command *c = snib__opt_command("acquire");

        if (argc != 1)
                return snib__opt_wrong(c, argc ? "one NAME only; to run a command use snib run" : "NAME is missing");
        return snib__session_check(o, argv[0]);
}

int snib__cmd_acquire(const struct options *o, int argc, char **argv)
{
        static struct guardian g;
        struct report r = {0};
        sigset_t old;
        int ends[2];
        int wrong = check(o, argc, argv);

        if (wrong)
                return wrong;
        g.options = o;
        g.name = argv[0];
        g.caller = getpid();
        g.holder = o->for_pid ? (pid_t)o->for_pid : getppid();
        int signals = snib__signals_open(&old);
        if (signals < 0 || pipe2(ends, O_CLOEXEC) < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "pipe: %s", strerror(errno));
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "fork: %s", strerror(errno));
        if (pid == 0)
                guardian(&g, ends[1]);
        close(ends[1]);
        if (!wait_report(ends[0], signals, pid, &r))
                return snib__out_fail(EXIT_FAILURE_OWN, NULL, "the guardian was killed");
        if (r.held)
                print(o, g.name, &r);
        return r.exit;
}
