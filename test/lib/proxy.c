/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One thread polls all sockets; the rules are fields it reads under the mutex, and setting one
 * wakes it. Not fast, not for production: bytes are copied into chunks so that each can have its
 * own due time. Invariant: a byte is counted when it is handed to the other side or thrown away,
 * and every rule of a flow is applied to it exactly once, in the order of arrival.
 */

#include "proxy.h"
#include "tmp.h"
#include "wait.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096
#define ATTEMPTS_MAX 4096
#define CHUNK_MAX 16384
#define QUEUE_MAX (1 << 20) /* what one flow keeps before it stops reading */

struct rules {
        int delay_ms;
        bool drop, hold, split;
        enum proxy_event event; /* 0: none */
        uint64_t event_left;    /* bytes before it happens */
};

struct chunk {
        struct chunk *next;
        int64_t due_ms;
        size_t at, size;
        char bytes[];
};

/* One direction of one connection. */
struct flow {
        struct rules rules;
        struct chunk *first, **last;
        size_t queued;
        uint64_t bytes;
        bool ended;    /* the source has sent its last byte */
        bool cut_next; /* the connection ends when the queue is empty */
};

struct connection {
        int fd[2]; /* [PROXY_UP]: read from the client; [PROXY_DOWN]: read from the server; -1 closed */
        struct flow flow[2];
};

struct proxy {
        pthread_t thread;
        pthread_mutex_t mutex;
        int listen_tcp, listen_unix, wake;
        bool quit, refuse;
        struct rules all[2];
        int count, refused, attempts;
        struct connection *connections[CONNECTIONS_MAX];
        int64_t attempt_ms[ATTEMPTS_MAX];
        struct sockaddr_un server;
        char url[64];
        char unix_url[160];
};

static void close_connection(struct connection *c)
{
        for (int way = 0; way < 2; way++) {
                struct flow *f = &c->flow[way];

                if (c->fd[way] >= 0)
                        close(c->fd[way]);
                c->fd[way] = -1;
                for (struct chunk *k = f->first; k; k = f->first) {
                        f->first = k->next;
                        free(k);
                }
                f->last = &f->first;
                f->queued = 0;
        }
}

/* Applies the rules of the flow to what arrived and queues what is left of it. */
static void arrive(struct flow *f, const char *bytes, size_t size)
{
        struct rules *r = &f->rules;
        size_t pass = size;
        struct chunk *k;

        if (r->event && r->event_left < size && r->event != PROXY_GARBLE)
                pass = (size_t)r->event_left;
        if (r->drop)
                pass = 0;
        k = pass ? malloc(sizeof(*k) + pass) : NULL;
        if (pass && !k)
                bail("proxy: out of memory");
        if (pass) {
                *k = (struct chunk){.due_ms = wait_now_ms() + r->delay_ms, .size = pass};
                memcpy(k->bytes, bytes, pass);
                *f->last = k;
                f->last = &k->next;
                f->queued += pass;
        }
        if (!r->event || r->drop)
                return;
        if (r->event_left >= size) {
                r->event_left -= size;
                /* A cut after the last byte that came is a cut now. */
                f->cut_next |= r->event == PROXY_CUT && r->event_left == 0;
                return;
        }
        if (r->event == PROXY_GARBLE)
                k->bytes[r->event_left] = (char)(k->bytes[r->event_left] ^ 0x81);
        f->cut_next |= r->event == PROXY_CUT;
        r->drop = r->event == PROXY_SWALLOW;
        r->event = 0;
}

static void receive(struct connection *c, enum proxy_way way)
{
        char buffer[CHUNK_MAX];
        ssize_t n = recv(c->fd[way], buffer, sizeof(buffer), MSG_DONTWAIT);

        if (n > 0)
                arrive(&c->flow[way], buffer, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
                c->flow[way].ended = true;
}

/* Hands on what is due. False: the connection is over. */
static bool hand_on(struct connection *c, enum proxy_way way, int64_t now)
{
        struct flow *f = &c->flow[way];

        while (f->first && !f->rules.hold && f->first->due_ms <= now) {
                struct chunk *k = f->first;
                size_t most = f->rules.split ? 1 : k->size - k->at;
                ssize_t n = send(c->fd[!way], k->bytes + k->at, most, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n < 0)
                        return errno == EAGAIN || errno == EINTR;
                k->at += (size_t)n;
                f->bytes += (uint64_t)n;
                f->queued -= (size_t)n;
                if (k->at < k->size)
                        continue;
                f->first = k->next;
                if (!f->first)
                        f->last = &f->first;
                free(k);
        }
        return f->first || !(f->ended || f->cut_next);
}

static int dial_server(struct proxy *p)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd >= 0 && !connect(fd, (struct sockaddr *)&p->server, sizeof(p->server)))
                return fd;
        if (fd >= 0)
                close(fd);
        return -1;
}

static void reset(int fd)
{
        struct linger now = {.l_onoff = 1};

        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(fd);
}

static void accept_one(struct proxy *p, int listener)
{
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        int server = -1;
        int on = 1;
        struct connection *c;

        if (fd < 0)
                return;
        if (p->attempts < ATTEMPTS_MAX)
                p->attempt_ms[p->attempts++] = wait_now_ms();
        if (!p->refuse)
                server = dial_server(p);
        if (server < 0) { /* refused by rule, or by a server that is not there */
                p->refused++;
                reset(fd);
                return;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        if (p->count == CONNECTIONS_MAX || !(c = calloc(1, sizeof(*c))))
                bail("proxy: too many connections");
        c->fd[PROXY_UP] = fd;
        c->fd[PROXY_DOWN] = server;
        for (int way = 0; way < 2; way++) {
                c->flow[way].rules = p->all[way];
                c->flow[way].last = &c->flow[way].first;
        }
        p->connections[p->count++] = c;
}

static bool wants_read(const struct flow *f)
{
        return !f->ended && !f->cut_next && f->queued < QUEUE_MAX;
}

/* How long to poll for the first byte of the flow to be due; *ret_write: it is due, the other side
 * is full. */
static int64_t due_in(const struct flow *f, int64_t now, bool *ret_write)
{
        *ret_write = false;
        if (!f->first || f->rules.hold)
                return INT32_MAX;
        *ret_write = f->first->due_ms <= now;
        return *ret_write ? INT32_MAX : f->first->due_ms - now;
}

/* Fills `fds` with what to poll: 3 fixed ones, then two of each open connection. Answers how long
 * to wait. */
static int prepare(struct proxy *p, struct pollfd *fds, int *ret_count)
{
        int64_t now = wait_now_ms();
        int64_t timeout = INT32_MAX;
        int n = 3;

        fds[0] = (struct pollfd){.fd = p->wake, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = p->listen_tcp, .events = POLLIN};
        fds[2] = (struct pollfd){.fd = p->listen_unix, .events = POLLIN};
        for (int i = 0; i < p->count; i++) {
                struct connection *c = p->connections[i];
                bool full[2];

                for (int way = 0; way < 2; way++) {
                        int64_t in = due_in(&c->flow[way], now, &full[way]);
                        timeout = in < timeout ? in : timeout;
                }
                for (int way = 0; way < 2; way++, n++) {
                        short events = (short)((wants_read(&c->flow[way]) ? POLLIN : 0) | (full[!way] ? POLLOUT : 0));
                        fds[n] = (struct pollfd){.fd = events ? c->fd[way] : -1, .events = events};
                }
        }
        *ret_count = n;
        return timeout == INT32_MAX ? -1 : (int)timeout;
}

static void move(struct proxy *p, const struct pollfd *fds, int count)
{
        int64_t now;

        for (int n = 3; n < count; n++) {
                struct connection *c = p->connections[(n - 3) / 2];
                if (fds[n].revents && c->fd[(n - 3) % 2] >= 0 && wants_read(&c->flow[(n - 3) % 2]))
                        receive(c, (n - 3) % 2);
        }
        now = wait_now_ms();
        for (int i = 0; i < p->count; i++) {
                struct connection *c = p->connections[i];
                bool over = c->fd[0] >= 0 && !hand_on(c, PROXY_UP, now);

                if (c->fd[0] >= 0 && (!hand_on(c, PROXY_DOWN, now) || over)) /* both get their last bytes */
                        close_connection(c);
        }
}

static void *run(void *arg)
{
        static __thread struct pollfd fds[3 + 2 * CONNECTIONS_MAX];
        struct proxy *p = arg;
        uint64_t ignored;
        int count;

        pthread_mutex_lock(&p->mutex);
        while (!p->quit) {
                int timeout = prepare(p, fds, &count);

                pthread_mutex_unlock(&p->mutex);
                (void)poll(fds, (nfds_t)count, timeout);
                pthread_mutex_lock(&p->mutex);
                if (read(p->wake, &ignored, sizeof(ignored)) < 0 && errno != EAGAIN)
                        bail("proxy: eventfd: %s", strerror(errno));
                move(p, fds, count);
                for (int i = 1; i <= 2; i++)
                        if (fds[i].revents)
                                accept_one(p, fds[i].fd);
        }
        pthread_mutex_unlock(&p->mutex);
        return NULL;
}

static void listen_both(struct proxy *p)
{
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        socklen_t size = sizeof(a);

        p->listen_tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        p->listen_unix = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        snprintf(u.sun_path, sizeof(u.sun_path), "%s", tmp_path("proxy"));
        if (bind(p->listen_tcp, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(p->listen_tcp, 512) < 0 ||
            bind(p->listen_unix, (struct sockaddr *)&u, sizeof(u)) < 0 || listen(p->listen_unix, 512) < 0 ||
            getsockname(p->listen_tcp, (struct sockaddr *)&a, &size) < 0)
                bail("proxy: listen: %s", strerror(errno));
        snprintf(p->url, sizeof(p->url), "redis://127.0.0.1:%d", ntohs(a.sin_port));
        snprintf(p->unix_url, sizeof(p->unix_url), "redis+unix://%s", u.sun_path);
}

struct proxy *proxy_start(const char *server_socket)
{
        struct proxy *p = calloc(1, sizeof(*p));

        if (!p)
                bail("proxy: out of memory");
        p->server.sun_family = AF_UNIX;
        snprintf(p->server.sun_path, sizeof(p->server.sun_path), "%s", server_socket);
        listen_both(p);
        p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        pthread_mutex_init(&p->mutex, NULL);
        if (p->wake < 0 || pthread_create(&p->thread, NULL, run, p))
                bail("proxy: %s", strerror(errno));
        return p;
}

static void begin(struct proxy *p)
{
        pthread_mutex_lock(&p->mutex);
}

static void end(struct proxy *p)
{
        uint64_t one = 1;

        pthread_mutex_unlock(&p->mutex);
        if (write(p->wake, &one, sizeof(one)) < 0 && errno != EAGAIN)
                bail("proxy: eventfd: %s", strerror(errno));
}

void proxy_free(struct proxy *p)
{
        if (!p)
                return;
        begin(p);
        p->quit = true;
        end(p);
        pthread_join(p->thread, NULL);
        for (int i = 0; i < p->count; i++) {
                close_connection(p->connections[i]);
                free(p->connections[i]);
        }
        close(p->listen_tcp);
        close(p->listen_unix);
        close(p->wake);
        pthread_mutex_destroy(&p->mutex);
        free(p);
}

/* Runs `set` on the rules that `connection` and `way` mean. */
#define EACH_RULE(p, connection, way, r, set)                                                               \
        do {                                                                                                \
                begin(p);                                                                                   \
                for (int i_ = (connection) == PROXY_ALL ? -1 : (connection);                                \
                     i_ < ((connection) == PROXY_ALL ? (p)->count : (connection) + 1); i_++) {              \
                        struct rules *r = i_ < 0 ? &(p)->all[way] : &(p)->connections[i_]->flow[way].rules; \
                        set;                                                                                \
                }                                                                                           \
                end(p);                                                                                     \
        } while (0)

void proxy_after(struct proxy *p, int connection, enum proxy_way way, uint64_t bytes, enum proxy_event event)
{
        EACH_RULE(p, connection, way, r, (r->event = event, r->event_left = bytes));
}

void proxy_delay(struct proxy *p, int connection, enum proxy_way way, int ms)
{
        EACH_RULE(p, connection, way, r, r->delay_ms = ms);
}

void proxy_drop(struct proxy *p, int connection, enum proxy_way way, bool on)
{
        EACH_RULE(p, connection, way, r, r->drop = on);
}

void proxy_hold(struct proxy *p, int connection, enum proxy_way way, bool on)
{
        EACH_RULE(p, connection, way, r, r->hold = on);
}

void proxy_split(struct proxy *p, int connection, enum proxy_way way, bool on)
{
        EACH_RULE(p, connection, way, r, r->split = on);
}

void proxy_heal(struct proxy *p)
{
        EACH_RULE(p, PROXY_ALL, PROXY_UP, r, *r = (struct rules){0});
        EACH_RULE(p, PROXY_ALL, PROXY_DOWN, r, *r = (struct rules){0});
        proxy_refuse(p, false);
}

void proxy_cut(struct proxy *p, int connection)
{
        begin(p);
        for (int i = 0; i < p->count; i++)
                if (connection == PROXY_ALL || connection == i)
                        close_connection(p->connections[i]);
        end(p);
}

void proxy_refuse(struct proxy *p, bool on)
{
        begin(p);
        p->refuse = on;
        end(p);
}

int proxy_accepted(struct proxy *p)
{
        begin(p);
        int n = p->count;
        end(p);
        return n;
}

int proxy_refused(struct proxy *p)
{
        begin(p);
        int n = p->refused;
        end(p);
        return n;
}

bool proxy_is_open(struct proxy *p, int connection)
{
        begin(p);
        bool open = connection < p->count && p->connections[connection]->fd[0] >= 0;
        end(p);
        return open;
}

uint64_t proxy_bytes(struct proxy *p, int connection, enum proxy_way way)
{
        uint64_t sum = 0;

        begin(p);
        for (int i = 0; i < p->count; i++)
                if (connection == PROXY_ALL || connection == i)
                        sum += p->connections[i]->flow[way].bytes;
        end(p);
        return sum;
}

int proxy_attempts(struct proxy *p, int64_t *ret_ms, int max)
{
        begin(p);
        int n = p->attempts < max ? p->attempts : max;
        memcpy(ret_ms, p->attempt_ms, (size_t)n * sizeof(*ret_ms));
        end(p);
        return n;
}

const char *proxy_url(const struct proxy *p)
{
        return p->url;
}

const char *proxy_unix_url(const struct proxy *p)
{
        return p->unix_url;
}
