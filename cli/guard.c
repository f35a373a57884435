/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Both ends of the guardian's socket. One connection at a time, one request and one answer each, of
 * fixed size; the peer must be of the same user. A peer that connects and says nothing costs it a
 * second of its own, never a renewal: the client is driven by the same poll. Main thread only.
 */

#include "guard.h"
#include "exit.h"
#include "out.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_NS ((int64_t)1000000000) /* with a peer that connected */
#define GRANTS "/grants"                  /* below the default directory of the user's locks */
#define ANSWER_TIMEOUT_S 30               /* of the guardian: it may be waiting for an engine */

struct request {
        char verb[16];
};

int snib__guard_directory(int *ret_exit)
{
        char path[PATH_MAX];
        struct snib_error err = SNIB_ERROR_INIT;
        struct stat st;
        int r = snib_local_directory(path, sizeof(path) - sizeof(GRANTS), &err);

        if (r < 0) {
                *ret_exit = snib__out_fail(snib__exit_of(r, false), snib_error_name(r), "%s", err.text);
                return -1;
        }
        snprintf(path + strlen(path), sizeof(path) - strlen(path), GRANTS);
        (void)mkdir(path, 0700);
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0) {
                (void)flock(fd, LOCK_SH | LOCK_NB); /* what cleans /var/tmp leaves it alone then */
                return fd;
        }
        *ret_exit = snib__out_fail(EXIT_PERMISSION, "SNIB_EPERM", "%s: %s", path,
                                   fd < 0 ? strerror(errno) : "is not yours alone: make it so with chmod 700");
        if (fd >= 0)
                close(fd);
        return -1;
}

/* By way of the open directory, so that the length of its path does not count towards the limit of
 * socket names. */
static void address(int directory, const char *id, struct sockaddr_un *ret)
{
        memset(ret, 0, sizeof(*ret));
        ret->sun_family = AF_UNIX;
        snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%s", directory, id);
}

int snib__guard_listen(int directory, char ret_id[SNIB__GUARD_ID])
{
        unsigned char bytes[16];
        struct sockaddr_un where;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
                return -1;
        for (int i = 0; i < 16; i++)
                snprintf(ret_id + 2 * (size_t)i, 3, "%02x", bytes[i]);
        address(directory, ret_id, &where);
        if (bind(fd, (struct sockaddr *)&where, sizeof(where)) < 0 || listen(fd, 8) < 0) {
                close(fd);
                return -1;
        }
        return fd;
}

static bool same_user(int fd)
{
        struct ucred who;
        socklen_t size = sizeof(who);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && (who.uid == geteuid() || who.uid == 0);
}

static void fill(const struct guard *g, int result, const struct snib_error *err, struct guard_answer *a)
{
        const char *text = err->text[0] ? err->text : snib_strerror(result);

        memset(a, 0, sizeof(*a));
        a->exit = result < 0 ? snib__exit_of(result, g->session->url_from_environment) : EXIT_OK;
        if (result < 0)
                snprintf(a->text, sizeof(a->text), "%s", text);
}

/* Does what a peer asked. True if the hold was released by it. */
static bool serve(struct guard *g, int peer)
{
        struct request r = {0};
        struct guard_answer a = {.exit = EXIT_USAGE, .text = "the guardian does not understand"};
        struct snib_error err = SNIB_ERROR_INIT;
        ssize_t n = recv(peer, &r, sizeof(r), MSG_DONTWAIT);
        bool release = n == (ssize_t)sizeof(r) && !strncmp(r.verb, "release", sizeof(r.verb));

        if (n == (ssize_t)sizeof(r) && !strncmp(r.verb, "renew", sizeof(r.verb))) {
                fill(g, snib__held_renew(g->held, &err), &err, &a);
                a.left_ms = snib__held_left_ms(g->held);
                a.token = snib__held_token(g->held);
        } else if (release) {
                a.token = snib__held_token(g->held);
                fill(g, snib__held_release(g->held, &err), &err, &a);
                (void)unlinkat(g->directory, g->id, 0); /* before the answer: the next who asks finds nobody */
        }
        (void)send(peer, &a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL);
        return release;
}

static bool told_to_end(int signals)
{
        bool end = false;
        int number;

        while ((number = snib__signals_next(signals)) > 0)
                end |= number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
        return end;
}

/* A word of the caller: the grant was printed. True if it ended without one. */
static bool unprinted(struct guard *g)
{
        char word;
        bool printed = recv(g->caller, &word, sizeof(word), MSG_DONTWAIT) == 1;

        close(g->caller);
        g->caller = -1;
        return !printed;
}

static int welcome(const struct guard *g)
{
        int peer = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer >= 0 && same_user(peer))
                return peer;
        if (peer >= 0)
                close(peer);
        return -1;
}

void snib__guard_keep(struct guard *g)
{
        int peer = -1;
        int64_t peer_until = 0;
        bool end = false;

        while (!end) {
                struct pollfd fds[5] = {{.fd = g->signals, .events = POLLIN},
                                        {.fd = g->process, .events = POLLIN},
                                        {.fd = peer < 0 ? g->listener : -1, .events = POLLIN},
                                        {.fd = peer, .events = POLLIN},
                                        {.fd = g->caller, .events = POLLIN}};

                snib__session_poll(g->session, fds, 5, peer >= 0 ? 100 : -1);
                (void)snib__session_process(g->session);
                end = fds[1].revents != 0 || (fds[0].revents && told_to_end(g->signals));
                if (fds[4].revents)
                        end |= unprinted(g);
                if (fds[3].revents)
                        end |= serve(g, peer);
                if (peer >= 0 && (fds[3].revents || snib__clock_boot() > peer_until)) {
                        close(peer);
                        peer = -1;
                }
                if (fds[2].revents && (peer = welcome(g)) >= 0)
                        peer_until = snib__clock_boot() + PATIENCE_NS;
        }
        (void)snib__held_release(g->held, NULL);
        (void)unlinkat(g->directory, g->id, 0);
}

static bool well_formed(const char *id)
{
        return strlen(id) == SNIB__GUARD_ID - 1 && strspn(id, "0123456789abcdef") == SNIB__GUARD_ID - 1;
}

const char *snib__guard_argument(const struct command *c, int argc, char **argv)
{
        const char *id = argc == 1 ? argv[0] : argc == 0 ? getenv("SNIB_GRANT") : NULL;

        if (argc > 1)
                snib__opt_wrong(c, "one GRANT only");
        else if (!id || !*id)
                snib__opt_wrong(c, "GRANT is missing, and SNIB_GRANT is not set");
        else if (!well_formed(id))
                snib__out_fail(EXIT_USAGE, NULL, "%s: GRANT is not what snib acquire printed", c->name);
        else
                return id;
        return NULL;
}

static int connect_to(const char *id, int *ret_exit)
{
        struct sockaddr_un where;
        struct timeval patience = {.tv_sec = ANSWER_TIMEOUT_S};
        int directory = snib__guard_directory(ret_exit);

        if (directory < 0)
                return -1;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        address(directory, id, &where);
        int r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&where, sizeof(where));
        int error = errno;
        if (r < 0 && error == ECONNREFUSED)
                (void)unlinkat(directory, id, 0); /* its guardian was killed */
        close(directory);
        if (r == 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0)
                return fd;
        if (fd >= 0)
                close(fd);
        *ret_exit = error == ENOENT || error == ECONNREFUSED
                        ? snib__out_fail(EXIT_LOST, "SNIB_ELOST",
                                         "%s is not held: released, its process ended, or its guardian was killed", id)
                        : snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "%s: %s", id, strerror(error));
        return -1;
}

int snib__guard_ask(const char *id, const char *verb, struct guard_answer *ret)
{
        struct request r = {{0}};
        int exit = EXIT_FAILURE_OWN;
        int fd = connect_to(id, &exit);

        if (fd < 0)
                return exit;
        snprintf(r.verb, sizeof(r.verb), "%s", verb);
        ssize_t n = send(fd, &r, sizeof(r), MSG_NOSIGNAL) == (ssize_t)sizeof(r) ? recv(fd, ret, sizeof(*ret), 0) : -1;
        close(fd);
        if (n != (ssize_t)sizeof(*ret))
                return snib__out_fail(EXIT_UNKNOWN, "SNIB_EUNKNOWN", "%s: its guardian did not answer", id);
        ret->text[sizeof(ret->text) - 1] = 0;
        if (ret->exit != EXIT_OK) {
                char safe[4 * SNIB_ERROR_TEXT_MAX];
                return snib__out_fail(ret->exit, NULL, "%s: %s", id,
                                      snib__out_safe(ret->text, strlen(ret->text), safe, sizeof(safe)));
        }
        return EXIT_OK;
}
