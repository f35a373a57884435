/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One thread, poll, a fixed buffer a connection. The client is ours and well behaved: a command
 * that does not fit or does not parse ends the test program.
 */

#include "peer.h"
#include "wait.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define BUFFER_MAX (1 << 18)
#define ARGS_MAX 32

struct peer_connection {
        int fd; /* -1: closed */
        int subscriptions;
        size_t used;
        char bytes[BUFFER_MAX];
};

struct peer {
        pthread_t thread;
        int listener, wake;
        int limit_ms; /* of its poll: -1, or 0 if it never sleeps */
        peer_answer *answer;
        void *arg;
        _Atomic bool quit;
        _Atomic int accepted, commands;
        struct peer_connection *connections[CONNECTIONS_MAX];
        char url[64];
};

void peer_close(struct peer_connection *c)
{
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
}

void peer_send(struct peer_connection *c, const void *bytes, size_t size)
{
        int64_t until = wait_now_ms() + 1000;
        const char *at = bytes;

        while (c->fd >= 0 && size > 0) {
                ssize_t n = send(c->fd, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && (errno != EAGAIN || wait_now_ms() > until)) {
                        peer_close(c);
                        return;
                }
                if (n < 0)
                        (void)poll(&(struct pollfd){.fd = c->fd, .events = POLLOUT}, 1, 50);
                at += n > 0 ? n : 0;
                size -= n > 0 ? (size_t)n : 0;
        }
}

void peer_text(struct peer_connection *c, const char *text)
{
        peer_send(c, text, strlen(text));
}

static void subscribed(struct peer_connection *c, int argc, char **argv)
{
        bool more = argv[0][0] != 'U' && argv[0][0] != 'u';
        char head[128];

        for (int i = 1; i < argc; i++) {
                c->subscriptions += more ? 1 : -1;
                snprintf(head, sizeof(head), "*3\r\n$%d\r\n%s\r\n$%zu\r\n", more ? 9 : 11,
                         more ? "subscribe" : "unsubscribe", strlen(argv[i]));
                peer_text(c, head);
                peer_text(c, argv[i]);
                snprintf(head, sizeof(head), "\r\n:%d\r\n", c->subscriptions);
                peer_text(c, head);
        }
}

bool peer_polite(struct peer_connection *c, int argc, char **argv)
{
        if (!strncasecmp(argv[0], "EVAL", 4))
                return false;
        if (strcasestr(argv[0], "SUBSCRIBE"))
                subscribed(c, argc, argv);
        else if (!strcasecmp(argv[0], "PING"))
                peer_text(c, c->subscriptions ? "*2\r\n$4\r\npong\r\n$0\r\n\r\n" : "+PONG\r\n");
        else if (!strcasecmp(argv[0], "HELLO"))
                peer_text(c, "-ERR unknown command 'HELLO'\r\n");
        else if (!strcasecmp(argv[0], "INFO"))
                peer_text(c, "$27\r\nrun_id:0123456789abcdef01\r\n\r\n");
        else if (!strcasecmp(argv[0], "CLIENT") && argc > 1 && !strcasecmp(argv[1], "ID"))
                peer_text(c, ":7\r\n");
        else if (!strcasecmp(argv[0], "TIME"))
                peer_text(c, "*2\r\n$10\r\n1700000000\r\n$6\r\n123456\r\n");
        else
                peer_text(c, "+OK\r\n");
        return true;
}

/* Parses "<kind><number>\r\n" at *at. False: not all there yet. */
static bool number(const struct peer_connection *c, size_t *at, char kind, long *ret)
{
        const char *end = memchr(c->bytes + *at, '\n', c->used - *at);

        if (!end)
                return false;
        if (c->bytes[*at] != kind)
                bail("peer: the client sent %c instead of %c", c->bytes[*at], kind);
        *ret = strtol(c->bytes + *at + 1, NULL, 10);
        *at = (size_t)(end - c->bytes) + 1;
        return true;
}

/* Takes one whole command from the buffer and answers it. */
static bool one_command(struct peer *p, struct peer_connection *c)
{
        char *argv[ARGS_MAX];
        size_t length[ARGS_MAX];
        size_t at = 0;
        long argc;
        long size;

        if (!c->used || !number(c, &at, '*', &argc))
                return false;
        if (argc < 1 || argc > ARGS_MAX)
                bail("peer: a command of %ld arguments", argc);
        for (long i = 0; i < argc; i++) {
                if (at >= c->used || !number(c, &at, '$', &size) || c->used - at < (size_t)size + 2)
                        return false;
                argv[i] = c->bytes + at;
                length[i] = (size_t)size;
                at += (size_t)size + 2;
        }
        for (long i = 0; i < argc; i++)
                argv[i][length[i]] = 0;
        atomic_fetch_add(&p->commands, 1);
        p->answer(c, (int)argc, argv, p->arg);
        c->used -= at;
        memmove(c->bytes, c->bytes + at, c->used);
        return c->fd >= 0;
}

static void serve(struct peer *p, struct peer_connection *c)
{
        ssize_t n = recv(c->fd, c->bytes + c->used, sizeof(c->bytes) - c->used, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
                peer_close(c);
                return;
        }
        c->used += n > 0 ? (size_t)n : 0;
        while (one_command(p, c))
                ;
        if (c->used == sizeof(c->bytes))
                bail("peer: a command is too long");
}

static void accept_one(struct peer *p)
{
        int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), one = 1;

        if (fd < 0)
                return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* an answer may be several writes */
        atomic_fetch_add(&p->accepted, 1);
        for (int i = 0; i < CONNECTIONS_MAX; i++) {
                struct peer_connection *c = p->connections[i];
                if (c && c->fd >= 0)
                        continue;
                if (!c)
                        c = p->connections[i] = malloc(sizeof(*c));
                if (!c)
                        bail("peer: out of memory");
                c->fd = fd;
                c->used = 0;
                c->subscriptions = 0;
                return;
        }
        bail("peer: too many connections");
}

static void *run(void *arg)
{
        struct peer *p = arg;

        while (!atomic_load(&p->quit)) {
                struct pollfd fds[CONNECTIONS_MAX + 2] = {{.fd = p->wake, .events = POLLIN},
                                                          {.fd = p->listener, .events = POLLIN}};

                for (int i = 0; i < CONNECTIONS_MAX; i++)
                        fds[i + 2] =
                            (struct pollfd){.fd = p->connections[i] ? p->connections[i]->fd : -1, .events = POLLIN};
                (void)poll(fds, CONNECTIONS_MAX + 2, p->limit_ms);
                for (int i = 0; i < CONNECTIONS_MAX; i++)
                        if (fds[i + 2].revents)
                                serve(p, p->connections[i]);
                if (fds[1].revents)
                        accept_one(p);
        }
        return NULL;
}

static struct peer *start(peer_answer *answer, void *arg, int limit_ms)
{
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        socklen_t size = sizeof(a);
        struct peer *p = calloc(1, sizeof(*p));

        if (!p)
                bail("peer: out of memory");
        p->answer = answer;
        p->arg = arg;
        p->limit_ms = limit_ms;
        p->wake = eventfd(0, EFD_CLOEXEC);
        p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (p->wake < 0 || p->listener < 0 || bind(p->listener, (struct sockaddr *)&a, size) < 0 ||
            listen(p->listener, 64) < 0 || getsockname(p->listener, (struct sockaddr *)&a, &size) < 0)
                bail("peer: listen: %s", strerror(errno));
        snprintf(p->url, sizeof(p->url), "redis://127.0.0.1:%d", ntohs(a.sin_port));
        if (pthread_create(&p->thread, NULL, run, p))
                bail("peer: no thread");
        return p;
}

struct peer *peer_start(peer_answer *answer, void *arg)
{
        return start(answer, arg, -1);
}

struct peer *peer_start_looking(peer_answer *answer, void *arg)
{
        return start(answer, arg, 0);
}

void peer_free(struct peer *p)
{
        uint64_t one = 1;

        if (!p)
                return;
        atomic_store(&p->quit, true);
        if (write(p->wake, &one, sizeof(one)) < 0)
                bail("peer: eventfd: %s", strerror(errno));
        pthread_join(p->thread, NULL);
        for (int i = 0; i < CONNECTIONS_MAX; i++) {
                if (p->connections[i])
                        peer_close(p->connections[i]);
                free(p->connections[i]);
        }
        close(p->listener);
        close(p->wake);
        free(p);
}

const char *peer_url(const struct peer *p)
{
        return p->url;
}

int peer_accepted(struct peer *p)
{
        return atomic_load(&p->accepted);
}

int peer_commands(struct peer *p)
{
        return atomic_load(&p->commands);
}
