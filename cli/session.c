/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command's view of the library: opening, errors to exit codes, one poll. No command logic. Main thread only.
 */

#include "session.h"
#include "exit.h"
#include "out.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define POLL_MAX (8 + SNIB__TEXTS_MAX) /* of the caller and of the clients */

int snib__session_fail(const struct session *s, int code, const struct snib_error *err, const char *what)
{
        char safe[4 * SNIB_ERROR_TEXT_MAX];
        const char *text = err->text[0] ? err->text : snib_strerror(code);
        int exit = snib__exit_of(code, s->url_from_environment);

        snib__out_safe(text, strlen(text), safe, sizeof(safe));
        return snib__out_fail(exit, snib_error_name(code), "%s%s%s", what ? what : "", what ? ": " : "", safe);
}

/* A server that cannot be reached now is one of those that do not grant. */
static int open_red(struct session *s, struct snib_options *options)
{
        struct snib_error err = SNIB_ERROR_INIT;

        options->unreachable_ok = 1;
        for (int i = 0; i < s->options->red.count; i++) {
                int r = snib_open(&s->clients[i], s->options->red.text[i], options, &err);
                if (r < 0)
                        return snib__session_fail(s, r, &err, "--red");
                s->client_count++;
        }
        s->client = s->clients[0];
        return 0;
}

int snib__session_open(struct session *s, const struct options *o, const char *label)
{
        struct snib_error err = SNIB_ERROR_INIT;
        const char *environment = getenv("SNIB_URL");
        struct snib_options options = {SNIB_OPTIONS_INIT, .threads = SNIB_THREADS_NONE, .label = label};
        const char *what = NULL;

        memset(s, 0, sizeof(*s));
        s->options = o;
        if (o->red.count)
                return open_red(s, &options);
        s->url_from_environment = !o->url && environment && *environment;
        int r = snib_open(&s->client, o->url, &options, &err);
        s->clients[s->client_count++] = s->client;
        if (r >= 0)
                return 0;
        if (r == SNIB_EURL || r == SNIB_EUNSUPPORTED)
                what = o->url ? "--url" : s->url_from_environment ? "SNIB_URL" : NULL;
        return snib__session_fail(s, r, &err, what);
}

void snib__session_close(struct session *s)
{
        snib__target_close(&s->target);
        for (int i = 0; i < s->client_count; i++)
                snib_close(s->clients[i]);
        s->client_count = 0;
        s->client = NULL;
}

int snib__session_check(const struct options *o, const char *name)
{
        char text[SNIB__DURATION_MAX];
        int wrong = snib__target_check(o, name);

        if (wrong)
                return wrong;
        if (o->lease_ms >= 0 && o->lease_ms < SNIB_LEASE_MIN_MS)
                return snib__out_fail(EXIT_USAGE, "SNIB_ELEASE", "--lease: %s is below the minimum of 100ms",
                                      snib__out_duration(o->lease_ms, text));
        if (o->lease_ms > SNIB_LEASE_MAX_MS)
                return snib__out_fail(EXIT_USAGE, "SNIB_ELEASE", "--lease: %s is above the maximum of 365d",
                                      snib__out_duration(o->lease_ms, text));
        if (o->label && (!*o->label || strlen(o->label) >= SNIB_LABEL_MAX))
                return snib__out_fail(EXIT_USAGE, "SNIB_EINVAL", "--label: give 1 to %d bytes", SNIB_LABEL_MAX - 1);
        return 0;
}

void snib__session_poll(const struct session *s, struct pollfd *fds, int count, int64_t timeout_ms)
{
        struct pollfd all[POLL_MAX];
        int n = count;

        if (count > POLL_MAX - SNIB__TEXTS_MAX)
                abort();
        memcpy(all, fds, (size_t)count * sizeof(*fds));
        for (int i = 0; i < s->client_count; i++) {
                int64_t mine = snib_timeout_ms(s->clients[i]);

                all[n++] = (struct pollfd){.fd = snib_fd(s->clients[i]), .events = (short)snib_events(s->clients[i])};
                if (mine >= 0 && (timeout_ms < 0 || mine < timeout_ms))
                        timeout_ms = mine;
        }
        if (timeout_ms > 3600000)
                timeout_ms = 3600000; /* fits an int; one spare turn an hour */
        if (poll(all, (nfds_t)n, (int)timeout_ms) < 0)
                for (int i = 0; i < count; i++)
                        all[i].revents = 0;
        for (int i = 0; i < count; i++)
                fds[i].revents = all[i].revents;
}

int snib__session_process(const struct session *s)
{
        int r = 0;

        for (int i = 0; i < s->client_count; i++) {
                int one = snib_process(s->clients[i]);
                if (one < 0 && s->client_count == 1)
                        r = one;
        }
        return r;
}

int snib__signals_open(sigset_t *ret_old)
{
        static const int numbers[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1,
                                      SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP, SIGCHLD};
        sigset_t blocked;
        sigset_t watched;
        struct sigaction action;

        signal(SIGCHLD, SIG_DFL); /* ignored by some parents: children would vanish unseen */
        sigemptyset(&watched);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
                        sigaddset(&watched, numbers[i]);
        blocked = watched;
        sigaddset(&blocked, SIGTTOU); /* we give and take the terminal from the background */
        sigaddset(&blocked, SIGPIPE); /* a closed stderr must not end the hold */
        sigprocmask(SIG_BLOCK, &blocked, ret_old);
        return signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

int snib__signals_next(int fd)
{
        struct signalfd_siginfo info;

        return read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

int64_t snib__clock_boot(void)
{
        struct timespec t;

        clock_gettime(CLOCK_BOOTTIME, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t snib__clock_wall_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_REALTIME, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Takes "password=..." out of the query, in place. */
static void drop_password_option(char *query)
{
        char *p = query;

        while ((p = strstr(p, "password=")) != NULL) {
                if (p[-1] != '?' && p[-1] != '&') {
                        p++;
                        continue;
                }
                char *end = strchr(p, '&');
                if (end)
                        memmove(p, end + 1, strlen(end + 1) + 1);
                else
                        p[-1] = 0;
                p--;
                if (!end)
                        return;
        }
}

void snib__url_without_password(const char *url, char *ret, size_t size)
{
        if ((size_t)snprintf(ret, size, "%s", url) >= size) {
                ret[0] = 0;
                return;
        }
        char *host = strstr(ret, "://");
        if (host) {
                char *at;
                host += 3;
                at = memrchr(host, '@', strcspn(host, "/?#"));
                char *colon = at ? memchr(host, ':', (size_t)(at - host)) : NULL;
                if (colon == host)
                        memmove(host, at + 1, strlen(at + 1) + 1);
                else if (colon)
                        memmove(colon, at, strlen(at) + 1);
        }
        char *query = strchr(ret, '?');
        if (query)
                drop_password_option(query + 1);
}
