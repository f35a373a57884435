/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop while the command runs: drives the client (renewals), publishes the deadline for the
 * supervisor, passes signals and job control on. It decides nothing about time: the supervisor
 * does, from the deadline. First thing after every wait, so also after having been stopped, is the
 * look at the grant. Main thread only.
 */

#include "child.h"
#include "exit.h"
#include "nest.h"
#include "out.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS ((int64_t)1000000)
#define AGAIN_MS 50 /* between two looks at a supervisor that was killed */

extern char **environ;

static void tell(const struct child *c, int what, int value)
{
        struct supervisor_message m = {.what = what, .value = value};

        (void)send(c->socket, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The clock is read before the grant: the sum is never later than the true deadline. */
static void publish_deadline(struct child *c)
{
        int64_t now = snib__clock_boot();
        int64_t left = snib__held_left_ms(c->held);

        if (left > 0 && snib__held_valid(c->held)) {
                c->deadline_ns = now + left * MS;
                atomic_store_explicit(c->shared, c->deadline_ns, memory_order_release);
        } else if (!c->told_lost) {
                c->told_lost = true;
                tell(c, SUPERVISOR_STOP, 0);
        }
}

/* ---- environment ---- */

enum { VARIABLES = 6 };

struct environment {
        char **all; /* ended by NULL; NULL: no memory */
        char *ours[VARIABLES];
        int count;
};

static void add_variable(struct environment *e, const char *name, const char *value)
{
        char *text = NULL;

        if (asprintf(&text, "%s=%s", name, value) >= 0)
                e->ours[e->count++] = text;
}

static bool replaced(const char *entry, const struct environment *e)
{
        for (int i = 0; i < e->count; i++)
                if (!strncmp(entry, e->ours[i], strcspn(e->ours[i], "=") + 1))
                        return true;
        return false;
}

static void environment_done(struct environment *e)
{
        free(e->all);
        for (int i = 0; i < e->count; i++)
                free(e->ours[i]);
}

/* The command's environment: ours with the SNIB_ variables of this hold. */
static void environment_init(struct environment *e, const struct child *c)
{
        const char *url = snib__session_child_url(c->session);
        char by = c->session->target.election ? NEST_ELECT : c->session->options->close ? NEST_RUN_CLOSE : NEST_RUN;
        char *list = snib__nest_list(c->session, c->held, by, getpid());
        char number[2][24];
        size_t old = 0;
        size_t n = 0;

        *e = (struct environment){.all = NULL};
        snprintf(number[0], sizeof(number[0]), "%lld", (long long)snib__held_token(c->held));
        snprintf(number[1], sizeof(number[1]), "%lld",
                 (long long)(snib__clock_wall_ms() + snib__held_left_ms(c->held)));
        add_variable(e, "SNIB_NAME", c->name);
        add_variable(e, "SNIB_TOKEN", number[0]);
        add_variable(e, "SNIB_OWNER", snib__held_owner(c->held));
        add_variable(e, "SNIB_DEADLINE_MS", number[1]);
        if (list)
                add_variable(e, SNIB__NEST_VARIABLE, list);
        free(list);
        if (url)
                add_variable(e, "SNIB_URL", url);
        while (environ[old])
                old++;
        if (e->count == VARIABLES - (url ? 0 : 1))
                e->all = calloc(old + VARIABLES + 1, sizeof(*e->all));
        for (size_t i = 0; e->all && i < old; i++)
                if (!replaced(environ[i], e))
                        e->all[n++] = environ[i];
        for (int i = 0; e->all && i < e->count; i++)
                e->all[n++] = e->ours[i];
}

/* ---- terminal ---- */

/* The terminal is lent only if we are in its foreground, and stdin: a background job must not take
 * it. */
static int terminal_to_lend(void)
{
        return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp() ? STDIN_FILENO : -1;
}

static void take_terminal_back(const struct child *c)
{
        if (c->terminal >= 0 && c->pid > 0 && tcgetpgrp(c->terminal) == c->pid)
                (void)tcsetpgrp(c->terminal, getpgrp()); /* SIGTTOU is blocked */
}

/* The command was stopped by job control: we stop with it, so that the shell sees the job
 * stopped. */
static void stop_along(struct child *c)
{
        bool job_control = getsid(getppid()) == getsid(0);

        if (c->terminal < 0 && !c->asked_to_stop && !isatty(STDIN_FILENO))
                return; /* somebody stopped the command alone; the hold is kept alive */
        c->asked_to_stop = false;
        if (!job_control) { /* nobody could continue us */
                tell(c, SUPERVISOR_SIGNAL, SIGCONT);
                return;
        }
        take_terminal_back(c);
        kill(getpid(), SIGSTOP);
        publish_deadline(c); /* continued: first of all, is it still ours? */
        if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp() && tcsetpgrp(STDIN_FILENO, c->pid) == 0)
                c->terminal = STDIN_FILENO;
        tell(c, SUPERVISOR_SIGNAL, SIGCONT);
}

/* ---- the loop ---- */

static void hear_supervisor(struct child *c)
{
        struct supervisor_message m;

        while (recv(c->socket, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m)) {
                if (m.reason && !c->reason)
                        c->reason = m.reason;
                if (m.what == SUPERVISOR_STARTED)
                        c->pid = m.value;
                else if (m.what == SUPERVISOR_NO_EXEC)
                        c->error = m.value ? m.value : EINVAL;
                else if (m.what == SUPERVISOR_TOO_LATE)
                        c->too_late = true;
                else if (m.what == SUPERVISOR_STOPPED)
                        stop_along(c);
                else if (m.what == SUPERVISOR_LEFT && c->session->options->verbose)
                        snib__out_note("left",
                                       "the command ended; the lock is held until what it left behind ends too");
                else if (m.what == SUPERVISOR_GONE)
                        c->gone = true;
                if (m.what == SUPERVISOR_ENDED) {
                        c->ended = true;
                        c->by_itself = m.by_itself;
                        c->status = m.value;
                        c->ended_ns = m.at_ns;
                }
        }
}

/* The supervisor ended. If it did not say so itself, it was killed: the command died with it, and
 * what the command had started is ours now, because we are a subreaper too. */
static void supervisor_ended(struct child *c)
{
        if (waitpid(c->supervisor, NULL, WNOHANG) != c->supervisor)
                return;
        hear_supervisor(c);
        if (c->gone)
                return;
        c->supervisor_died = true;
        c->gone = true;
        while (waitpid(-1, NULL, WNOHANG) >= 0) {
                snib__supervisor_kill(c->pid, SIGKILL);
                (void)poll(NULL, 0, 2);
        }
}

static void hear_signals(struct child *c)
{
        int number;

        while ((number = snib__signals_next(c->signals)) > 0) {
                if (number == SIGCHLD) {
                        supervisor_ended(c);
                        continue;
                }
                c->asked_to_stop |= number == SIGTSTP;
                c->asked_to_end |= number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
                tell(c, SUPERVISOR_SIGNAL, number);
        }
}

/* When the supervisor must have done its work: halfway between its last deed and the end of the
 * lease. */
static int64_t overdue_at(const struct child *c)
{
        return c->deadline_ns - c->margin_ms * MS / 2;
}

/* A supervisor that lets that pass is stopped, or worse. Its end is the command's end (parent-death
 * signal), and what the command started falls to us. */
static void check_supervisor(struct child *c)
{
        if (c->gone || snib__clock_boot() < overdue_at(c))
                return;
        c->reason = c->reason ? c->reason : STOP_LOST;
        kill(c->supervisor, SIGKILL);
}

static void turn(struct child *c)
{
        struct pollfd fds[2] = {{.fd = c->signals, .events = POLLIN}, {.fd = c->socket, .events = POLLIN}};
        int64_t left = (overdue_at(c) - snib__clock_boot()) / MS + 1;

        snib__session_poll(c->session, fds, 2, left > 0 ? left : AGAIN_MS);
        publish_deadline(c);
        if (fds[0].revents)
                hear_signals(c);
        if (fds[1].revents)
                hear_supervisor(c);
        (void)snib__session_process(c->session);
        publish_deadline(c);
        check_supervisor(c);
}

static int fail(const char *what)
{
        return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "%s: %s", what, strerror(errno));
}

static int start(struct child *c, struct supervisor_plan *plan, struct environment *e, int sockets[2])
{
        const struct options *o = c->session->options;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
                return fail("socketpair");
        c->socket = sockets[0];
        c->shared = mmap(NULL, sizeof(*c->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (c->shared == MAP_FAILED)
                return fail("mmap");
        c->terminal = terminal_to_lend();
        environment_init(e, c);
        *plan = (struct supervisor_plan){
            .argv = c->argv,
            .envp = e->all,
            .mask = c->mask,
            .socket = sockets[1],
            .parent_fd = (int)syscall(SYS_pidfd_open, getpid(), 0),
            .terminal = c->terminal,
            .kill_signal = o->kill_signal,
            .leave_rest = o->close,
            .grace_ns = c->grace_ms * MS,
            .margin_ns = c->margin_ms * MS,
            .max_at_ns = o->max_hold_ms > 0 ? snib__clock_boot() + o->max_hold_ms * MS : INT64_MAX,
            .deadline_ns = c->shared,
        };
        if (!plan->envp || plan->parent_fd < 0)
                return fail(plan->envp ? "pidfd_open" : "environment");
        publish_deadline(c);
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        fflush(NULL);
        c->supervisor = snib__supervisor_start(plan);
        return c->supervisor < 0 ? fail("clone") : 0;
}

int snib__child_run(struct child *c)
{
        struct supervisor_plan plan = {0}; /* the supervisor reads its own copy of our memory */
        int sockets[2] = {-1, -1};
        struct environment environment = {.all = NULL};
        int wrong = start(c, &plan, &environment, sockets);

        while (!wrong && !c->gone)
                turn(c);
        take_terminal_back(c);
        close(sockets[0]);
        close(sockets[1]);
        if (plan.parent_fd > 0)
                close(plan.parent_fd);
        environment_done(&environment);
        return wrong;
}
