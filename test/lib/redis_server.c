/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Starts, stops, freezes and kills a private Redis for a test. Not a client for tests of the
 * engine: the one blocking connection it has is for looking at and disturbing the server.
 * Everything that goes wrong here is a failure of the test's surroundings and ends the program.
 */

#include "redis_server.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 48
#define START_TRIES 3

struct redis_server {
        pid_t pid; /* 0: not running */
        bool tcp;
        int port;
        char dir[64];
        char socket[96];
        char url[64];
        char unix_url[128];
        char password[64];
        const char *const *args;
        redisContext *admin;
};

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
        va_list list;

        va_start(list, format);
        printf("Bail out! redis_server: ");
        vprintf(format, list);
        printf("\n");
        fflush(stdout);
        va_end(list);
        abort();
}

/* Finds an executable in PATH. */
static bool in_path(const char *name, char *ret, size_t size)
{
        char path[4096];
        char *rest = NULL;

        snprintf(path, sizeof(path), "%s:/usr/sbin:/usr/bin", getenv("PATH") ? getenv("PATH") : "");
        for (char *dir = strtok_r(path, ":", &rest); dir; dir = strtok_r(NULL, ":", &rest))
                if (snprintf(ret, size, "%s/%s", dir, name) < (int)size && !access(ret, X_OK))
                        return true;
        return false;
}

static const char *binary(void)
{
        static char found[4200];
        static const char *const names[] = {"redis-server", "valkey-server", "redis-check-rdb"};
        const char *given = getenv("SNIB_REDIS_SERVER");

        if (given && *given)
                return !access(given, X_OK) ? given : NULL;
        for (size_t i = 0; !found[0] && i < sizeof(names) / sizeof(names[0]); i++)
                if (!in_path(names[i], found, sizeof(found)))
                        found[0] = 0;
        return found[0] ? found : NULL;
}

const char *redis_server_unavailable(void)
{
        return binary() ? NULL : "no redis-server, valkey-server or redis-check-rdb is installed";
}

bool redis_server_skips_all(void)
{
        const char *why = redis_server_unavailable();

        if (why)
                (void)printf("1..0 # SKIP %s\n", why);
        return why != NULL;
}

static int free_port(void)
{
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof(a);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *)&a, size) < 0 || getsockname(fd, (struct sockaddr *)&a, &size) < 0)
                die("no free port: %s", strerror(errno));
        close(fd);
        return ntohs(a.sin_port);
}

/* In the child. */
static void become_server(const struct redis_server *s, pid_t parent)
{
        char port[16];
        char log[96];
        const char *argv[ARGS_MAX] = {
            "redis-server", "--port",    port, "--bind", "127.0.0.1", "--unixsocket", s->socket, "--dir",
            s->dir,         "--logfile", log,  "--save", "",          "--daemonize",  "no"};
        int n = 15;
        sigset_t none;

        snprintf(port, sizeof(port), "%d", s->port);
        snprintf(log, sizeof(log), "%s/log", s->dir);
        for (const char *const *a = s->args; a && *a && n < ARGS_MAX - 1; a++)
                argv[n++] = *a;
        argv[n] = NULL;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        /* As a service would be: in a session of its own, which the scheduler weighs against the
         * whole of the clients' session, not against each of their threads. */
        (void)setsid();
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
                _exit(1);
        execv(binary(), (char *const *)(uintptr_t)argv);
        _exit(127);
}

static redisContext *dial(const struct redis_server *s)
{
        redisContext *c = redisConnectUnixWithTimeout(s->socket, (struct timeval){.tv_sec = 10});

        if (!c || c->err) {
                if (c)
                        redisFree(c);
                return NULL;
        }
        redisSetTimeout(c, (struct timeval){.tv_sec = 10});
        if (s->password[0]) {
                redisReply *r = redisCommand(c, "AUTH %s", s->password);
                if (r)
                        freeReplyObject(r);
        }
        return c;
}

/* True once it answers PING (or asks for a password), false if the process ended first. A server
 * that is still loading does not count. */
static bool wait_ready(struct redis_server *s)
{
        struct timespec pause = {.tv_nsec = 2000000};

        for (int i = 0; i < 5000; i++) {
                redisContext *c = dial(s);
                redisReply *r = c ? redisCommand(c, "PING") : NULL;
                bool ready = r && (r->type == REDIS_REPLY_STATUS || !strncmp(r->str, "NOAUTH", 6));

                if (r)
                        freeReplyObject(r);
                if (c)
                        redisFree(c);
                if (ready)
                        return true;
                if (waitpid(s->pid, NULL, WNOHANG) == s->pid) {
                        s->pid = 0;
                        return false;
                }
                nanosleep(&pause, NULL); /* nothing tells when another process listens */
        }
        die("it does not answer after 10 s; see %s/log", s->dir);
}

static bool launch(struct redis_server *s)
{
        pid_t parent = getpid();

        fflush(NULL);
        s->pid = fork();
        if (s->pid < 0)
                die("fork: %s", strerror(errno));
        if (s->pid == 0)
                become_server(s, parent);
        return wait_ready(s);
}

struct redis_server *redis_server_start(const struct redis_server_options *options)
{
        const char *tmp = getenv("TMPDIR");
        struct redis_server *s = calloc(1, sizeof(*s));

        if (!s || !binary())
                die("%s", s ? redis_server_unavailable() : "out of memory");
        snprintf(s->dir, sizeof(s->dir), "%s/snib-redis-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
        if (!mkdtemp(s->dir))
                die("mkdtemp %s: %s", s->dir, strerror(errno));
        s->tcp = options && options->tcp;
        s->args = options ? options->args : NULL;
        snprintf(s->socket, sizeof(s->socket), "%s/socket", s->dir);
        snprintf(s->unix_url, sizeof(s->unix_url), "redis+unix://%s", s->socket);
        for (int i = 0; i < START_TRIES; i++) {
                s->port = s->tcp ? free_port() : 0; /* somebody may take it before the server does */
                if (s->tcp)
                        snprintf(s->url, sizeof(s->url), "redis://127.0.0.1:%d", s->port);
                if (launch(s))
                        return s;
        }
        die("it does not start; see %s/log", s->dir);
}

static void forget_admin(struct redis_server *s)
{
        if (s->admin)
                redisFree(s->admin);
        s->admin = NULL;
}

static void end(struct redis_server *s, int signal)
{
        forget_admin(s);
        if (!s->pid)
                return;
        kill(s->pid, signal);
        if (signal != SIGKILL)
                kill(s->pid, SIGCONT);
        while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        s->pid = 0;
}

void redis_server_kill(struct redis_server *s)
{
        end(s, SIGKILL);
}

void redis_server_stop(struct redis_server *s)
{
        end(s, SIGTERM);
}

void redis_server_pause(struct redis_server *s)
{
        kill(s->pid, SIGSTOP);
        if (waitpid(s->pid, NULL, WUNTRACED) != s->pid)
                die("it cannot be stopped");
}

void redis_server_resume(struct redis_server *s)
{
        kill(s->pid, SIGCONT);
}

void redis_server_restart(struct redis_server *s)
{
        end(s, SIGKILL);
        unlink(s->socket);
        if (!launch(s))
                die("it does not start again; see %s/log", s->dir);
}

static void remove_tree(const char *path)
{
        DIR *dir = opendir(path);
        char child[512];

        for (struct dirent *d = dir ? readdir(dir) : NULL; d; d = readdir(dir)) {
                if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
                        continue;
                snprintf(child, sizeof(child), "%s/%s", path, d->d_name);
                if (unlink(child) < 0 && errno == EISDIR)
                        remove_tree(child);
        }
        if (dir)
                closedir(dir);
        (void)rmdir(path);
}

void redis_server_free(struct redis_server *s)
{
        if (!s)
                return;
        end(s, SIGKILL);
        remove_tree(s->dir);
        free(s);
}

pid_t redis_server_pid(const struct redis_server *s)
{
        return s->pid;
}

int redis_server_port(const struct redis_server *s)
{
        return s->port;
}

const char *redis_server_socket(const struct redis_server *s)
{
        return s->socket;
}

const char *redis_server_dir(const struct redis_server *s)
{
        return s->dir;
}

const char *redis_server_url(const struct redis_server *s)
{
        return s->tcp ? s->url : s->unix_url;
}

const char *redis_server_unix_url(const struct redis_server *s)
{
        return s->unix_url;
}

void redis_server_auth(struct redis_server *s, const char *password)
{
        snprintf(s->password, sizeof(s->password), "%s", password);
        forget_admin(s);
}

static redisReply *do_list(struct redis_server *s, const char *format, va_list list)
{
        redisReply *r;

        if (!s->admin)
                s->admin = dial(s);
        r = s->admin ? redisvCommand(s->admin, format, list) : NULL;
        if (!r)
                forget_admin(s);
        return r;
}

redisReply *redis_server_do(struct redis_server *s, const char *format, ...)
{
        va_list list;

        va_start(list, format);
        redisReply *r = do_list(s, format, list);
        va_end(list);
        return r;
}

long long redis_server_int(struct redis_server *s, const char *format, ...)
{
        long long n = INT64_MIN;
        char *rest = NULL;
        va_list list;

        va_start(list, format);
        redisReply *r = do_list(s, format, list);
        va_end(list);
        if (r && r->type == REDIS_REPLY_INTEGER)
                n = r->integer;
        else if (r && r->type == REDIS_REPLY_STRING && r->len) {
                n = strtoll(r->str, &rest, 10);
                n = *rest ? INT64_MIN : n;
        }
        if (r)
                freeReplyObject(r);
        return n;
}
