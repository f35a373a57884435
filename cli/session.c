/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The command's view of the library: opening, errors to exit codes, one poll. No command logic.
 * Main thread only.
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

#define MS ((int64_t)1000000)
#define POLL_MAX (8 + SNIB__TEXTS_MAX) /* of the caller and of the clients */
#define OPEN_LEAST_MS 50               /* a limit of a moment is no reason not to ask at all */
#define ASK_LEAST_MS 30                /* what a question has, however little of the limit is left */
#define RED_OPEN_MS 1000               /* for all servers of --red together, where no limit is given */
#define WAIT_MAX_MS 3600000            /* longer than any time-out */

int snib__session_fail(const struct session *s, int code, const struct snib_error *err, const char *what)
{
        char safe[4 * SNIB_ERROR_TEXT_MAX];
        const char *text = err->text[0] ? err->text : snib_strerror(code);
        int exit = snib__exit_of(code, s->url_from_environment);

        snib__out_safe(text, strlen(text), safe, sizeof(safe));
        return snib__out_fail(exit, snib_error_name(code), "%s%s%s", what ? what : "", what ? ": " : "", safe);
}

/* True if `url` is of an engine with this list of schemes ("redis:// redis+unix://"). */
static bool of_scheme(const char *url, const char *schemes)
{
        for (size_t n; *schemes; schemes += n + strspn(schemes + n, " ")) {
                n = strcspn(schemes, " ");
                if (n > 0 && !strncasecmp(url, schemes, n))
                        return true;
        }
        return false;
}

/* What an engine keeps within one process excludes nobody from another: 0, or EXIT_USAGE after a
 * message. `what` names where the URL is from. */
static int check_shared(const char *url, const char *what)
{
        struct snib_engine_info e = {.size = sizeof(e)};

        for (int i = 0; snib_engine_at(i, &e) == 1; i++)
                if (!(e.caps & SNIB_CAP_CROSS_PROCESS) && of_scheme(url, e.schemes))
                        return snib__out_fail(EXIT_USAGE, "SNIB_EURL",
                                              "%s: %s is private to one process, so no other command would be kept "
                                              "out; use local: or redis://",
                                              what, e.schemes);
        return 0;
}

/* A server that cannot be reached now is one of those that do not grant. It is dialled on. */
void snib__session_say_absent(const snib_client *client, const char *why)
{
        const char *shown = snib_client_url(client);
        char safe[2][SNIB__SAFE_MAX];

        snib__out_note("unreachable", "--red %s: %s; going on without it",
                       snib__out_safe(shown, strlen(shown), safe[0], sizeof(safe[0])),
                       snib__out_safe(why, strlen(why), safe[1], sizeof(safe[1])));
}

/* One after the other, of which each has its share of the time that is left. */
static int open_red(struct session *s, struct snib_options *options)
{
        int64_t end = snib__clock_boot() / MS + (options->open_ms ? options->open_ms : RED_OPEN_MS);

        options->unreachable_ok = 1;
        for (int i = 0; i < s->options->red.count; i++) {
                struct snib_error err = SNIB_ERROR_INIT;
                const char *url = s->options->red.text[i];
                int64_t left = (end - snib__clock_boot() / MS) / (s->options->red.count - i);
                int wrong = check_shared(url, "--red");

                if (wrong)
                        return wrong;
                options->open_ms = left > 0 ? left : 1;
                int r = snib_open(&s->clients[i], url, options, &err);
                if (r < 0)
                        return snib__session_fail(s, r, &err, "--red");
                s->absent[i] = err.code != 0;
                if (err.code)
                        snib__session_say_absent(s->clients[i], err.text);
                s->client_count++;
        }
        s->client = s->clients[0];
        return 0;
}

static int open_one(struct session *s, const struct options *o, const struct snib_options *options)
{
        struct snib_error err = SNIB_ERROR_INIT;
        const char *environment = getenv("SNIB_URL");
        const char *what = NULL;

        s->url_from_environment = !o->url && environment && *environment;
        int wrong = o->url                    ? check_shared(o->url, "--url")
                    : s->url_from_environment ? check_shared(environment, "SNIB_URL")
                                              : 0;
        if (wrong)
                return wrong;
        int r = snib_open(&s->client, o->url, options, &err);
        s->clients[s->client_count++] = s->client;
        if (r >= 0) {
                if (o->verbose)
                        snib__out_note("opened", "engine %s", snib_client_url(s->client));
                return 0;
        }
        if (r == SNIB_EURL || r == SNIB_EUNSUPPORTED)
                what = o->url ? "--url" : s->url_from_environment ? "SNIB_URL" : NULL;
        return snib__session_fail(s, r, &err, what);
}

int snib__session_open(struct session *s, const struct options *o, const char *label)
{
        struct snib_options options = {
            .size = sizeof(struct snib_options), .threads = SNIB_THREADS_NONE, .label = label};
        int64_t begin = snib__clock_boot();
        int r;

        memset(s, 0, sizeof(*s));
        s->options = o;
        if (o->wait_ms >= 0 && !o->nonblock)
                options.open_ms = o->wait_ms > WAIT_MAX_MS     ? 0
                                  : o->wait_ms < OPEN_LEAST_MS ? OPEN_LEAST_MS
                                                               : o->wait_ms;
        r = o->red.count ? open_red(s, &options) : open_one(s, o, &options);
        s->opening_ms = (snib__clock_boot() - begin) / MS;
        return r;
}

int64_t snib__session_left_ms(struct session *s, int64_t wait_ms)
{
        int64_t spent = s->opening_ms;

        s->opening_ms = 0;
        if (wait_ms <= 0)
                return wait_ms;
        return wait_ms > spent ? wait_ms - spent : 1;
}

bool snib__session_until(struct session *s, const bool *flag, bool wanted, int64_t until_ns)
{
        int64_t now;

        while (*flag != wanted && (now = snib__clock_boot()) < until_ns) {
                snib__session_poll(s, NULL, 0, (until_ns - now + MS - 1) / MS);
                if (snib__session_process(s) < 0)
                        return false;
        }
        return true;
}

static void answered(struct answer *a, int result, const struct snib_error *err)
{
        a->done = true;
        a->result = result;
        if (result < 0 && err)
                a->err = *err;
}

void snib__answer_value(void *arg, int result, int64_t value, const struct snib_error *err)
{
        ((struct answer *)arg)->value = value;
        answered(arg, result, err);
}

void snib__answer_info(void *arg, int result, const struct snib_lock_info *info, const struct snib_error *err)
{
        if (info)
                ((struct answer *)arg)->info = *info;
        answered(arg, result, err);
}

int snib__session_answer(struct session *s, struct answer *a, int started, int64_t until_ns)
{
        if (started < 0)
                return started;
        if (snib__session_until(s, &a->done, true, until_ns) && a->done)
                return a->result;
        snprintf(a->err.text, sizeof(a->err.text), "the engine did not answer in time");
        return a->err.code = SNIB_EUNKNOWN;
}

int snib__session_ask(struct session *s, struct answer *a, int started)
{
        const struct options *o = s->options;
        int64_t begin = snib__clock_boot(), until = INT64_MAX, left = o->wait_ms - s->opening_ms;

        if (!o->nonblock && o->wait_ms > 0)
                until = begin + (left > ASK_LEAST_MS ? left : ASK_LEAST_MS) * MS;
        int r = snib__session_answer(s, a, started, until);
        s->opening_ms += (snib__clock_boot() - begin) / MS;
        return r;
}

void snib__session_leave(struct session *s)
{
        (void)snib__session_process(s); /* sends */
        s->leaving = true;
}

void snib__session_close(struct session *s)
{
        if (s->leaving)
                return;
        snib__target_close(&s->target);
        for (int i = 0; i < s->client_count; i++)
                snib_close(s->clients[i]);
        s->client_count = 0;
        s->client = NULL;
}

const char *snib__session_child_url(const struct session *s)
{
        const char *url = snib_client_url(s->client);

        /* A server's stays as it was inherited: it may have a password. */
        return s->url_from_environment && strncmp(url, "local:", 6) != 0 ? NULL : url;
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
        if (count > 0)
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
