/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Children of a test: fork, pipes, signals, waiting, as proc.h says. Not for the library's own
 * processes. What fails here is the test's surroundings and ends the program. One thread at a time.
 */

#include "proc.h"
#include "wait.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Whether each thread of this process but the caller sleeps: the letter behind the name. */
static bool others_sleep(void)
{
        DIR *tasks = opendir("/proc/self/task");
        struct dirent *task;
        bool sleep = true;

        while (tasks && sleep && (task = readdir(tasks))) {
                char path[300];
                char line[256] = "";
                FILE *f;

                if (task->d_name[0] == '.' || strtol(task->d_name, NULL, 10) == gettid())
                        continue;
                snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
                f = fopen(path, "re");
                if (f && fgets(line, sizeof(line), f))
                        sleep = strstr(line, ") S ");
                if (f)
                        fclose(f);
        }
        if (tasks)
                closedir(tasks);
        return sleep;
}

pid_t proc_fork(void)
{
        if (wait_slow() > 1)
                (void)eventually(others_sleep(), 1000);
        return fork();
}

/* Forks with a pipe each way: 0 in the child. */
static pid_t start(struct proc *p)
{
        pid_t parent = getpid();
        int down[2];
        int up[2];

        if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
                bail("pipe: %s", strerror(errno));
        fflush(NULL);
        p->pid = proc_fork();
        if (p->pid < 0)
                bail("fork: %s", strerror(errno));
        if (p->pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
                _exit(1);
        p->in = p->pid ? up[0] : down[0];
        p->out = p->pid ? down[1] : up[1];
        close(p->pid ? up[1] : down[1]);
        close(p->pid ? down[0] : up[0]);
        return p->pid;
}

void proc_start(struct proc *p, void (*run)(struct proc *me, void *arg), void *arg)
{
        if (start(p))
                return;
        /* cmocka: a failed assertion in a child ends the child, instead of going on with the
         * parent's next test. */
        if (setenv("CMOCKA_TEST_ABORT", "1", 1) < 0)
                _exit(126);
        run(p, arg);
        fflush(NULL);
        _exit(0);
}

void proc_exec(struct proc *p, const char *const *argv, const char *const *env)
{
        if (start(p))
                return;
        for (; env && *env; env++)
                if (putenv((char *)(uintptr_t)*env))
                        _exit(126);
        if (dup2(p->in, 0) < 0 || dup2(p->out, 1) < 0)
                _exit(126);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
}

void proc_give(struct proc *p, const void *bytes, size_t size)
{
        if (write(p->out, bytes, size) != (ssize_t)size) /* a pipe takes this little at once */
                bail("write to a child: %s", strerror(errno));
}

void proc_say(struct proc *p, char what)
{
        proc_give(p, &what, 1);
}

bool proc_take(struct proc *p, void *ret, size_t size, int64_t ms)
{
        int64_t until = wait_now_ms() + ms;
        size_t got = 0;

        while (got < size && wait_readable(p->in, until - wait_now_ms())) {
                ssize_t n = read(p->in, (char *)ret + got, size - got);
                if (n == 0 || (n < 0 && errno != EINTR))
                        break;
                got += n > 0 ? (size_t)n : 0;
        }
        return got == size;
}

char proc_hear(struct proc *p, int64_t ms)
{
        char what = 0;

        return proc_take(p, &what, 1, ms) ? what : 0;
}

void proc_stop(struct proc *p)
{
        kill(p->pid, SIGSTOP);
        if (waitpid(p->pid, NULL, WUNTRACED) != p->pid)
                bail("a child cannot be stopped");
}

void proc_resume(struct proc *p)
{
        kill(p->pid, SIGCONT);
}

static void forget(struct proc *p)
{
        p->pid = 0;
        close(p->in);
        close(p->out);
        p->in = p->out = -1;
}

static int reap(struct proc *p)
{
        int status = -1;

        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
                ;
        forget(p);
        return status;
}

int proc_kill(struct proc *p, int signal)
{
        if (!p->pid)
                return -1;
        kill(p->pid, signal);
        if (signal != SIGKILL)
                kill(p->pid, SIGCONT);
        return reap(p);
}

int proc_wait(struct proc *p, int64_t ms)
{
        int status = -1;

        if (!p->pid)
                return -1;
        if (!eventually(waitpid(p->pid, &status, WNOHANG) == p->pid, ms)) {
                (void)proc_kill(p, SIGKILL);
                return -1;
        }
        forget(p);
        return status;
}
