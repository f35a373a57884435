/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib acquire: the first of two steps. This process forks the guardian (guard.c), which waits for
 * the lock, reports, and stays; this one passes signals on while that takes, prints the grant, says
 * that it did, and ends. If this process dies before that, or the grant could not be printed, the
 * guardian gives the lock back: what has no name cannot be released. Main thread only, in both.
 */

#include "caller.h"
#include "cmd.h"
#include "exit.h"
#include "guard.h"
#include "nest.h"
#include "out.h"
#include "waiting.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORT_FD 3
#define LIST_MAX 16384 /* of the holds of processes above */

struct report {
        int exit;
        bool held;
        char id[SNIB__GUARD_ID];
        int64_t token;
        int64_t left_ms;
        char list[LIST_MAX]; /* see nest.h; "": too long to be kept */
};

/* ---- the guardian ---- */

struct guardian {
        const struct options *options;
        const char *name;
        pid_t caller; /* the snib acquire that waits for the report */
        pid_t parent; /* of the caller */
        pid_t holder; /* the process to outlive */
        struct session session;
        struct waiting waiting;
        struct guard guard;
        char id[SNIB__GUARD_ID];
};

/* Keeps nothing of the caller's descriptors but stdin, stdout, stderr and the report's: a pipe held
 * open by a guardian would hang its reader. */
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

/* The process to outlive, found or as it was said: 0 or an exit code. */
static int find_holder(struct guardian *g)
{
        struct process p;
        char safe[SNIB__SAFE_MAX], name[SNIB__SAFE_MAX];

        g->holder = (pid_t)g->options->for_pid;
        if (g->holder) {
                g->guard.process = (int)syscall(SYS_pidfd_open, g->holder, 0);
                return g->guard.process >= 0
                           ? 0
                           : snib__out_fail(EXIT_USAGE, NULL, "--for-pid: no process %d", (int)g->holder);
        }
        g->guard.process = snib__caller_find(g->parent, &p);
        g->holder = p.pid;
        if (g->guard.process >= 0)
                return 0;
        snib__out_safe(g->name, strlen(g->name), name, sizeof(name));
        if (!p.pid)
                return snib__out_fail(
                    EXIT_USAGE, NULL,
                    "for which process to hold %s cannot be seen; say it: snib acquire --for-pid $$ %s", name, name);
        return snib__out_fail(EXIT_USAGE, NULL,
                              "for which process to hold %s is not clear: %s (pid %d), by which this was started, may "
                              "end at once; say it: snib acquire --for-pid $$ %s",
                              name, snib__out_safe(p.name, strlen(p.name), safe, sizeof(safe)), (int)p.pid, name);
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
        exit = find_holder(g);
        if (exit)
                return exit;
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

/* For those who would wait for this hold, being a part of the process it is for. */
static void put_list(const struct guardian *g, char ret[LIST_MAX])
{
        char *list = snib__nest_list(&g->session, g->guard.held, NEST_ACQUIRE, g->holder);

        if (list && strlen(list) < LIST_MAX)
                snprintf(ret, LIST_MAX, "%s", list);
        free(list);
}

static void guardian(struct guardian *g, int report)
{
        static struct report r;
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
                put_list(g, r.list);
                r.left_ms = snib__held_left_ms(g->guard.held);
                prctl(PR_SET_PDEATHSIG, 0);
                leave_terminal();
        }
        (void)send(REPORT_FD, &r, sizeof(r), MSG_NOSIGNAL); /* unheard, it will not be confirmed */
        g->guard.caller = REPORT_FD;
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
                printf("SNIB_GRANT=%s; SNIB_TOKEN=%lld; %s='%s'; export SNIB_GRANT SNIB_TOKEN %s\n", r->id,
                       (long long)r->token, SNIB__NEST_VARIABLE, r->list, SNIB__NEST_VARIABLE);
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
                        return recv(fd, ret, sizeof(*ret), 0) == (ssize_t)sizeof(*ret);
        }
}

/* Prints the grant and tells the guardian to keep it; else it is given back before this ends. */
static int hand_out(const struct options *o, const char *name, const struct report *r, int guardian_fd,
                    pid_t guardian_pid)
{
        print(o, name, r);
        int exit = snib__out_written();
        if (exit == 0 && send(guardian_fd, "", 1, MSG_NOSIGNAL) != 1)
                exit = snib__out_fail(EXIT_LOST, "SNIB_ELOST", "the guardian was killed");
        close(guardian_fd);
        if (exit != 0)
                (void)waitpid(guardian_pid, NULL, 0);
        return exit;
}

static int check(const struct options *o, int argc, char **argv)
{
        const struct command *c = snib__opt_command("acquire");

        if (argc != 1)
                return snib__opt_wrong(c, argc ? "one NAME only; to run a command use snib run" : "NAME is missing");
        if (o->conflict_exit == 0)
                return snib__opt_wrong(c, "-E 0 would say that it is held; give another number");
        return snib__session_check(o, argv[0]);
}

int snib__cmd_acquire(const struct options *o, int argc, char **argv)
{
        static struct guardian g;
        static struct report r;
        sigset_t old;
        int ends[2];
        int wrong = check(o, argc, argv);

        if (wrong)
                return wrong;
        g.options = o;
        g.name = argv[0];
        g.caller = getpid();
        g.parent = getppid();
        int signals = snib__signals_open(&old);
        if (signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "socketpair: %s", strerror(errno));
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "fork: %s", strerror(errno));
        if (pid == 0)
                guardian(&g, ends[1]);
        close(ends[1]);
        if (!wait_report(ends[0], signals, pid, &r))
                return snib__out_fail(EXIT_FAILURE_OWN, NULL, "the guardian was killed");
        return r.held ? hand_out(o, g.name, &r, ends[0], pid) : r.exit;
}
