/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who asked. The parent of `snib acquire` may be gone a moment later: timeout(1), sudo(8), the
 * subshell of `$(cd /; snib acquire x)`. A lock held for it would be lost, and nobody would know.
 *
 * If our stdout is a pipe, the ancestor that holds the other end will evaluate what we print: it is
 * the one, whatever lies between. Else it is the first ancestor that is no wrapper; a wrapper is
 * known by its name, or by arguments that end with ours. But if that one may end at once (a
 * subshell, `sh -c`, make), or is a part of the system that starts jobs, then nobody can tell.
 *
 * It reads /proc and changes nothing. It must be called in a process that was forked by the command
 * and runs no other program: by that it learns whether the kernel says so.
 */

#include "caller.h"
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_KNOWN 15        /* the kernel keeps so many bytes of a name */
#define FORKED_NO_EXEC 0x40U /* PF_FORKNOEXEC of the kernel */
#define ANCESTORS_MAX 128
#define ARGUMENTS_MAX 8192

/* They run a command and end with it. */
static const char *const wrappers[] = {"chroot",
                                       "chrt",
                                       "choom",
                                       "dbus-run-session",
                                       "doas",
                                       "eatmydata",
                                       "env",
                                       "fakeroot",
                                       "faketime",
                                       "find",
                                       "firejail",
                                       "flock",
                                       "gosu",
                                       "ionice",
                                       "ltrace",
                                       "nice",
                                       "nohup",
                                       "nsenter",
                                       "numactl",
                                       "parallel",
                                       "perf",
                                       "pkexec",
                                       "prlimit",
                                       "proot",
                                       "runuser",
                                       "script",
                                       "setarch",
                                       "setpriv",
                                       "setsid",
                                       "softlimit",
                                       "stdbuf",
                                       "strace",
                                       "su",
                                       "su-exec",
                                       "sudo",
                                       "taskset",
                                       "time",
                                       "timeout",
                                       "ssh-agent",
                                       "unbuffer",
                                       "unshare",
                                       "valgrind",
                                       "xargs",
                                       "xvfb-run",
                                       "systemd-inhibit",
                                       NULL};

/* They start the jobs of a system, or of snib run. */
static const char *const starters[] = {"anacron",   "atd",          "catatonit",    "containerd-shim",
                                       "cron",      "crond",        "docker-init",  "dropbear",
                                       "dumb-init", "fcron",        "inetd",        "init",
                                       "launchd",   "runsv",        "s6-supervise", "snib-supervisor",
                                       "sshd",      "sshd-session", "supercronic",  "supervisord",
                                       "systemd",   "tini",         "xinetd",       NULL};

static const char *const shells[] = {"ash",  "bash",  "dash", "fish", "ksh", "ksh93",
                                     "mksh", "rbash", "sh",   "yash", "zsh", NULL};

/* What they are doing does not show, and may be over at once. */
static const char *const brief[] = {"busybox", "gmake", "just", "make", "ninja", "toybox", NULL};

static bool known(const char *const *list, const char *name)
{
        for (; *list; list++)
                if (!strncmp(*list, name, NAME_KNOWN))
                        return true;
        return false;
}

bool snib__process_read(pid_t pid, struct process *ret)
{
        char path[64], text[1024];
        long long start = 0;
        unsigned flags = 0;
        int parent = 0;

        *ret = (struct process){.pid = pid};
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
        if (fd >= 0)
                close(fd);
        text[n > 0 ? n : 0] = 0;
        char *begin = strchr(text, '('), *end = strrchr(text, ')'); /* a name may contain either */
        if (!begin || !end ||
            sscanf(end + 1, " %*c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lld", &parent,
                   &flags, &start) != 3)
                return false;
        snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - begin - 1), begin + 1);
        ret->parent = parent;
        ret->forked = (flags & FORKED_NO_EXEC) != 0;
        ret->start = (uint64_t)start;
        return true;
}

/* True if a descriptor of the process is `what`, and open for reading. */
static bool reads(pid_t pid, const struct stat *what)
{
        char path[64];
        struct stat link, file;
        struct dirent *e;
        bool found = false;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        DIR *d = opendir(path);
        while (d && !found && (e = readdir(d)) != NULL)
                found = fstatat(dirfd(d), e->d_name, &file, 0) == 0 && file.st_ino == what->st_ino &&
                        file.st_dev == what->st_dev && fstatat(dirfd(d), e->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
                        (link.st_mode & S_IRUSR); /* the link of a descriptor has the mode it was opened with */
        if (d)
                closedir(d);
        return found;
}

/* The arguments of a process, each ended by NUL; the length, 0 if they are not to be seen. */
static size_t arguments(pid_t pid, char *ret, size_t size)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(ret, 1, size - 1, f) : 0;
        if (f)
                fclose(f);
        ret[n] = 0;
        return n;
}

/* True if its arguments end with all of ours, but for the name of our program. */
static bool has_our_arguments(pid_t pid)
{
        char ours[ARGUMENTS_MAX], its[ARGUMENTS_MAX];
        size_t n = arguments(getpid(), ours, sizeof(ours)), m = arguments(pid, its, sizeof(its));
        size_t program = n ? strlen(ours) : 0; /* its NUL is compared too: an argument begins there */

        return n > program + 1 && m > n - program && !memcmp(its + m - (n - program), ours + program, n - program);
}

/* True for a shell that runs one string: `sh -c ...`. */
static bool one_string(const struct process *p)
{
        char text[ARGUMENTS_MAX];

        if (!known(shells, p->name))
                return false;
        size_t n = arguments(p->pid, text, sizeof(text));
        for (char *a = text + strlen(text) + 1; a < text + n && (*a == '-' || *a == '+'); a += strlen(a) + 1) {
                if (a[1] != '-' && strchr(a, 'c'))
                        return true;
                if (!strcasecmp(a + 1, "o"))
                        a += strlen(a) + 1; /* its argument */
        }
        return n == 0;
}

static bool is_wrapper(const struct process *p)
{
        return known(wrappers, p->name) || has_our_arguments(p->pid);
}

/* The ancestor that reads our stdout, if there is one. */
static bool find_reader(pid_t parent, const struct stat *out, struct process *ret)
{
        for (int i = 0; i < ANCESTORS_MAX && snib__process_read(parent, ret) && !known(starters, ret->name); i++) {
                if (!is_wrapper(ret) && reads(ret->pid, out))
                        return true;
                parent = ret->parent;
        }
        return false;
}

/* The first ancestor that is no wrapper. False if it does not last, or may not; then *ret is that
 * one, or its pid is 0. */
static bool find_first(pid_t parent, bool forks_are_known, struct process *ret)
{
        int i = 0;

        for (; i < ANCESTORS_MAX && snib__process_read(parent, ret) && is_wrapper(ret); i++)
                parent = ret->parent;
        if (i == ANCESTORS_MAX || !ret->name[0]) {
                ret->pid = 0;
                return false;
        }
        return !ret->forked && forks_are_known && !known(starters, ret->name) && !known(brief, ret->name) &&
               !one_string(ret);
}

/* A pidfd of exactly this process. */
static int hold_on_to(const struct process *p)
{
        struct process now;
        int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

        if (fd >= 0 && snib__process_read(p->pid, &now) && now.start == p->start)
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

int snib__caller_find(pid_t parent, struct process *ret)
{
        struct process self;
        struct stat out = {0};

        (void)snib__process_read(getpid(), &self); /* if it cannot be read, it is not known to be forked */
        (void)fstat(STDOUT_FILENO, &out);
        if ((S_ISFIFO(out.st_mode) && find_reader(parent, &out, ret)) || find_first(parent, self.forked, ret))
                return hold_on_to(ret);
        return -1;
}
