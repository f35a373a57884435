/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The supervisor: a process of its own between snib and the command, started once the lock is held.
 *
 *   snib (client, renewals) --shared deadline--> supervisor --parent of--> command and everything
 *   it starts
 *
 * It is not the lock's client and knows nothing about locks: it knows a deadline and ends the
 * command backwards from it: the polite signal at deadline - grace - margin, SIGKILL at deadline -
 * margin. It has its own timer on the clock that counts suspend, so none of this depends on snib
 * running. When snib dies it kills at once; as a subreaper it inherits and kills what left the
 * command's process group. If the supervisor itself is killed, the kernel kills the command
 * (parent-death signal) and snib the rest (child.c).
 *
 * Invariants: only async-signal-safe calls (snib may have had threads when this process was made);
 * it answers SUPERVISOR_GONE last, and only when it has no child left, or --close said to leave
 * them; one thread.
 */

#include "supervisor.h"
#include "exit.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)256 * 1024)
#define AGAIN_NS ((int64_t)20000000)       /* after SIGKILL: how often to look for new orphans */
#define GONE_GRACE_NS ((int64_t)250000000) /* when the hold is lost: somebody else may have it already */

enum phase { RUNNING, STOPPING, KILLING };

struct supervisor {
        const struct supervisor_plan *plan;
        pid_t command; /* 0: reaped */
        pid_t group;
        int signals;
        int timer;
        int started; /* end of a pipe: closed by exec, or an errno; -1 when read */
        enum phase phase;
        int reason;
        int64_t stopping_since_ns;
        bool deaf; /* the command ignored the polite signal when it was sent */
        bool gone;
};

static int64_t boot_now(void)
{
        struct timespec t;

        clock_gettime(CLOCK_BOOTTIME, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t deadline(const struct supervisor *k)
{
        return atomic_load_explicit(k->plan->deadline_ns, memory_order_acquire);
}

static void send_message(const struct supervisor *k, struct supervisor_message m)
{
        m.reason = k->reason;
        m.at_ns = boot_now();
        /* Never blocks: a stopped snib does not read, and must not stop us. There are only a few
         * messages in a life. */
        (void)send(k->plan->socket, &m, sizeof(m), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void tell(const struct supervisor *k, int what, int value)
{
        send_message(k, (struct supervisor_message){.what = what, .value = value});
}

/* A process that is a copy of this one, runs run(arg) on a fresh stack, and ends with what that
 * answers. Not fork(): the library's fork handlers take locks that a thread of snib may hold for
 * ever in our copy, and would close descriptors that must stay. */
static pid_t spawn(int (*run)(void *), void *arg, int flags)
{
        char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

        if (stack == MAP_FAILED)
                return -1;
        pid_t pid = clone(run, stack + STACK_SIZE, flags | SIGCHLD, arg);
        int saved = errno;
        (void)munmap(stack, STACK_SIZE); /* ours; the copy has its own */
        errno = saved;
        return pid;
}

/* The pids of our children, as the kernel lists them; at most `max`. 0 if it cannot tell. */
static int children(pid_t *ret, int max)
{
        char text[4096];
        int count = 0;
        pid_t pid = 0;
        int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
        ssize_t n;

        while (fd >= 0 && (n = read(fd, text, sizeof(text))) > 0)
                for (ssize_t i = 0; i < n; i++) {
                        if (text[i] >= '0' && text[i] <= '9') {
                                pid = pid * 10 + (text[i] - '0');
                        } else if (pid > 0) {
                                if (count < max)
                                        ret[count++] = pid;
                                pid = 0;
                        }
                }
        if (fd >= 0)
                close(fd);
        return count;
}

void snib__supervisor_kill(pid_t group, int signal)
{
        pid_t pids[512];
        int count = children(pids, 512);

        if (group > 0)
                kill(-group, signal);
        for (int i = 0; i < count; i++)
                if (group <= 0 || getpgid(pids[i]) != group)
                        kill(pids[i], signal);
}

/* The command's group is safe to signal while somebody we know of is in it: its number cannot have
 * been given anew. */
static pid_t known_group(const struct supervisor *k)
{
        pid_t pids[512];

        if (k->command)
                return k->group;
        int count = children(pids, 512);
        for (int i = 0; i < count; i++)
                if (getpgid(pids[i]) == k->group)
                        return k->group;
        return 0;
}

static void to_all(const struct supervisor *k, int signal)
{
        snib__supervisor_kill(known_group(k), signal);
}

/* Those that left the group, and became ours when the command ended: they have not been told
 * yet. */
static void to_orphans(const struct supervisor *k, int signal)
{
        pid_t pids[512];
        int count = children(pids, 512);

        for (int i = 0; i < count; i++)
                if (getpgid(pids[i]) != k->group) {
                        kill(pids[i], signal);
                        kill(pids[i], SIGCONT);
                }
}

/* ---- the command's process, before exec ---- */

struct command_arg {
        const struct supervisor_plan *plan;
        pid_t supervisor;
        int report;
};

static int become_command(void *arg)
{
        const struct command_arg *a = arg;
        const struct supervisor_plan *p = a->plan;

        setpgid(0, 0);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != a->supervisor)
                return EXIT_FAILURE_OWN;
        if (p->terminal >= 0)
                (void)tcsetpgrp(p->terminal, getpid()); /* SIGTTOU is blocked here */
        sigprocmask(SIG_SETMASK, p->mask, NULL);
        execvpe(p->argv[0], p->argv, p->envp);
        int error = errno;
        if (write(a->report, &error, sizeof(error)) < 0)
                return EXIT_FAILURE_OWN;
        return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static void start_command(struct supervisor *k)
{
        int ends[2];

        if (pipe2(ends, O_CLOEXEC) < 0) {
                tell(k, SUPERVISOR_NO_EXEC, errno);
                k->gone = true;
                return;
        }
        struct command_arg arg = {k->plan, getpid(), ends[1]};
        k->command = spawn(become_command, &arg, 0);
        int error = errno;
        close(ends[1]);
        k->started = ends[0];
        if (k->command < 0) {
                k->command = 0;
                tell(k, SUPERVISOR_NO_EXEC, error);
                k->gone = true;
                return;
        }
        k->group = k->command;
        setpgid(k->command, k->command); /* both sides do it: whoever comes first */
}

/* ---- time ---- */

static int64_t polite_at(const struct supervisor *k)
{
        int64_t by_lease = deadline(k) - k->plan->margin_ns - k->plan->grace_ns;

        return by_lease < k->plan->max_at_ns ? by_lease : k->plan->max_at_ns;
}

static int64_t kill_at(const struct supervisor *k)
{
        int64_t by_lease = deadline(k) - k->plan->margin_ns;
        int64_t grace = k->reason == STOP_LOST && k->plan->grace_ns > GONE_GRACE_NS ? GONE_GRACE_NS : k->plan->grace_ns;
        int64_t by_grace = k->stopping_since_ns + grace;

        return by_lease < by_grace ? by_lease : by_grace;
}

/* "/proc/PID/status": printf is not for here. */
static void status_path(pid_t pid, char ret[32])
{
        char digits[12];
        int n = 0;

        for (; pid > 0; pid /= 10)
                digits[n++] = (char)('0' + pid % 10);
        memcpy(ret, "/proc/", 6);
        ret += 6;
        while (n)
                *ret++ = digits[--n];
        memcpy(ret, "/status", 8);
}

static int digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Whether a process ignores a signal, as the kernel says; false if it cannot tell. */
static bool ignores(pid_t pid, int signal)
{
        char path[32], text[4096];
        const char *line;
        unsigned long long mask = 0;
        int fd;
        ssize_t n;

        status_path(pid, path);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        if (fd >= 0)
                close(fd);
        text[n > 0 ? n : 0] = 0;
        line = strstr(text, "\nSigIgn:\t");
        for (line = line ? line + 9 : ""; digit(*line) >= 0; line++)
                mask = mask * 16 + (unsigned long long)digit(*line);
        return mask >> (signal - 1) & 1;
}

static void reap(struct supervisor *k);

static void stop(struct supervisor *k, int reason)
{
        if (k->phase != RUNNING)
                return;
        reap(k); /* what has ended by itself is not stopped */
        if (k->gone)
                return;
        k->deaf = k->command && ignores(k->command, k->plan->kill_signal);
        k->phase = STOPPING;
        k->reason = reason;
        k->stopping_since_ns = boot_now();
        to_all(k, k->plan->kill_signal);
        to_all(k, SIGCONT); /* a stopped process hears nothing */
}

static void kill_now(struct supervisor *k, int reason)
{
        k->phase = KILLING;
        if (!k->reason)
                k->reason = reason;
        to_all(k, SIGKILL);
}

/* What is due by the clock; arms the timer for the next. */
static void check_time(struct supervisor *k)
{
        struct itimerspec t = {0};
        int64_t now = boot_now();
        int64_t next;

        if (k->phase == RUNNING && now >= polite_at(k))
                stop(k, polite_at(k) == k->plan->max_at_ns ? STOP_MAX_HOLD : STOP_DEADLINE);
        if (k->phase == STOPPING && now >= kill_at(k))
                kill_now(k, STOP_DEADLINE);
        else if (k->phase == KILLING)
                to_all(k, SIGKILL);
        next = k->phase == RUNNING ? polite_at(k) : k->phase == STOPPING ? kill_at(k) : now + AGAIN_NS;
        if (next < 1)
                next = 1;
        t.it_value.tv_sec = next / 1000000000;
        t.it_value.tv_nsec = next % 1000000000;
        timerfd_settime(k->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- events ---- */

/* Whether the command, which was told to stop, would have ended just so without us. One that
 * listens to the polite signal, and then exits, was stopped. */
static bool by_itself(const struct supervisor *k, int status)
{
        if (k->phase == RUNNING)
                return false; /* nobody told it anything */
        return WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL && WTERMSIG(status) != k->plan->kill_signal : k->deaf;
}

static void command_ended(struct supervisor *k, int status)
{
        k->command = 0;
        send_message(k, (struct supervisor_message){
                            .what = SUPERVISOR_ENDED, .value = status, .by_itself = by_itself(k, status)});
        if (k->plan->leave_rest && k->phase == RUNNING)
                k->gone = true;
}

static void reap(struct supervisor *k)
{
        struct signalfd_siginfo info;
        bool ended = false;
        int status;
        pid_t pid;

        while (read(k->signals, &info, sizeof(info)) > 0)
                ;
        while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
                if (pid == k->command && WIFSTOPPED(status)) {
                        tell(k, SUPERVISOR_STOPPED, WSTOPSIG(status));
                } else if (pid == k->command) {
                        ended = true;
                        command_ended(k, status);
                }
        }
        if (pid < 0 && errno == ECHILD)
                k->gone = true;
        else if (ended && !k->gone)
                tell(k, SUPERVISOR_LEFT, 1);
        if (k->phase == KILLING && !k->gone)
                to_all(k, SIGKILL); /* orphans that are new to us */
        else if (k->phase == STOPPING && ended && !k->gone)
                to_orphans(k, k->plan->kill_signal);
}

static void read_started(struct supervisor *k)
{
        int error = 0;
        ssize_t n = read(k->started, &error, sizeof(error));

        close(k->started);
        k->started = -1;
        if (n == (ssize_t)sizeof(error))
                tell(k, SUPERVISOR_NO_EXEC, error);
        else
                tell(k, SUPERVISOR_STARTED, (int)k->group);
}

static void obey(struct supervisor *k)
{
        struct supervisor_message m;

        while (recv(k->plan->socket, &m, sizeof(m), MSG_DONTWAIT) == (ssize_t)sizeof(m)) {
                if (m.what == SUPERVISOR_STOP)
                        stop(k, STOP_LOST);
                else if (m.what == SUPERVISOR_SIGNAL)
                        to_all(k, m.value);
        }
}

static void turn(struct supervisor *k)
{
        struct pollfd fds[5] = {{.fd = k->plan->parent_fd, .events = POLLIN},
                                {.fd = k->signals, .events = POLLIN},
                                {.fd = k->plan->socket, .events = POLLIN},
                                {.fd = k->timer, .events = POLLIN},
                                {.fd = k->started, .events = POLLIN}};

        if (k->phase == KILLING && k->reason == STOP_ORPHANED)
                fds[0].fd = -1; /* known */
        check_time(k);
        if (poll(fds, 5, -1) < 0)
                return;
        if (fds[0].revents)
                kill_now(k, STOP_ORPHANED);
        if (fds[4].revents)
                read_started(k);
        if (fds[2].revents)
                obey(k);
        if (fds[1].revents)
                reap(k);
}

static int keep(void *arg)
{
        struct supervisor k = {.plan = arg, .started = -1};
        sigset_t all;
        sigset_t child;

        setpgid(0, 0); /* what is sent to snib's group is not meant for us */
        prctl(PR_SET_NAME, "snib-supervisor");
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, NULL);
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        k.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
        k.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
        if (k.signals < 0 || k.timer < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
                tell(&k, SUPERVISOR_NO_EXEC, errno);
                k.gone = true;
        } else if (boot_now() >= polite_at(&k)) {
                tell(&k, SUPERVISOR_TOO_LATE, 0);
                k.gone = true;
        } else {
                start_command(&k);
        }
        while (!k.gone)
                turn(&k);
        if (k.started >= 0)
                read_started(&k);
        tell(&k, SUPERVISOR_GONE, 0);
        return 0;
}

pid_t snib__supervisor_start(struct supervisor_plan *plan)
{
        return spawn(keep, plan, CLONE_FILES);
}
