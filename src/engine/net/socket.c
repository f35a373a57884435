/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The production transport: non-blocking TCP and unix stream sockets. It keeps no time and retries
 * nothing but the further addresses of a name. Name resolution may take seconds in libc, so a name
 * that is not a literal address is resolved by a thread that lives for that one dial; it shares a
 * reference-counted job with the connection and signals an eventfd, and it is left alone when
 * nobody waits for it any more. A name is resolved anew at every dial. All else runs on the
 * engine's thread.
 */

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "engine/net/transport.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

/* The kernel's own search for dead peers; the link's heartbeat finds what this does not. */
#define KEEPALIVE_IDLE_S 2
#define KEEPALIVE_INTERVAL_S 1
#define KEEPALIVE_COUNT 3

/* One look-up. The thread and the connection each have a reference; the last one frees it. */
struct lookup {
        atomic_int references;
        int done; /* eventfd, readable when the fields below are set */
        int result;
        struct addrinfo *found;
        char host[256];
        char port[8];
};

struct snib__conn {
        int fd; /* -1: looking up, or between addresses */
        bool connected;
        int timeout_ms;
        int last_errno;
        struct lookup *lookup;
        struct addrinfo *addresses; /* all, for freeing */
        const struct addrinfo *next;
        char name[300]; /* for error texts */
};

static void lookup_unref(struct lookup *l)
{
        /* Release: what this owner wrote is seen by the one that frees. Acquire: the one that frees
         * sees it. */
        if (!l || atomic_fetch_sub_explicit(&l->references, 1, memory_order_acq_rel) != 1)
                return;
        if (l->found)
                freeaddrinfo(l->found);
        close(l->done);
        free(l);
}

static int resolve(const char *host, const char *port, int flags, struct addrinfo **ret)
{
        struct addrinfo hints = {
            .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};

        return getaddrinfo(host, port, &hints, ret);
}

static void *lookup_main(void *arg)
{
        struct lookup *l = arg;
        uint64_t one = 1;

        l->result = resolve(l->host, l->port, 0, &l->found);
        while (write(l->done, &one, sizeof(one)) < 0 && errno == EINTR)
                ;
        lookup_unref(l);
        return NULL;
}

/* Starts the thread with all signals blocked: handlers are the application's business. */
static int lookup_start(struct lookup *l)
{
        pthread_attr_t attr;
        pthread_t thread;
        sigset_t all, old;
        int r;

        sigfillset(&all);
        if ((r = pthread_attr_init(&attr)))
                return r;
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        r = pthread_create(&thread, &attr, lookup_main, l);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        return r;
}

static struct lookup *lookup_new(const char *host, const char *port)
{
        struct lookup *l = snib__alloc(sizeof(*l));

        if (!l)
                return NULL;
        snprintf(l->host, sizeof(l->host), "%s", host);
        snprintf(l->port, sizeof(l->port), "%s", port);
        atomic_init(&l->references, 2);
        l->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (l->done < 0 || lookup_start(l)) {
                if (l->done >= 0)
                        close(l->done);
                free(l);
                return NULL;
        }
        return l;
}

static void set_option(int fd, int level, int option, int value)
{
        (void)setsockopt(fd, level, option, &value, sizeof(value)); /* an improvement, never a condition */
}

static void set_tcp_options(const struct snib__conn *c)
{
        set_option(c->fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_option(c->fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
        set_option(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
        set_option(c->fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_COUNT);
        set_option(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, c->timeout_ms);
}

static void drop_fd(struct snib__conn *c)
{
        if (c->fd >= 0)
                close(c->fd);
        c->fd = -1;
}

/* Begins to connect to one address. 1 connected, 0 under way, -1 failed (last_errno). */
static int connect_to(struct snib__conn *c, const struct sockaddr *address, socklen_t size)
{
        c->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (c->fd < 0) {
                c->last_errno = errno;
                return -1;
        }
        if (address->sa_family != AF_UNIX)
                set_tcp_options(c);
        if (!connect(c->fd, address, size))
                return 1;
        if (errno == EINPROGRESS || errno == EINTR)
                return 0;
        c->last_errno = errno;
        drop_fd(c);
        return -1;
}

/* The next address of the name that takes a connection, or has not refused it yet. */
static int connect_next(struct snib__conn *c)
{
        int r = -1;

        while (r < 0 && c->next) {
                r = connect_to(c, c->next->ai_addr, c->next->ai_addrlen);
                c->next = c->next->ai_next;
        }
        return r;
}

static void conn_close(struct snib__conn *c)
{
        if (!c)
                return;
        drop_fd(c);
        lookup_unref(c->lookup);
        if (c->addresses)
                freeaddrinfo(c->addresses);
        free(c);
}

static int dial_unix(struct snib__conn *c, const char *path, struct snib_error *err)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        if (strlen(path) >= sizeof(address.sun_path))
                return snib__error(err, SNIB_EURL,
                                   "the socket path has %zu bytes; the system allows %zu: use a shorter one",
                                   strlen(path), sizeof(address.sun_path) - 1);
        memcpy(address.sun_path, path, strlen(path));
        return connect_to(c, (const struct sockaddr *)&address, sizeof(address)) < 0
                   ? snib__error_errno(err, SNIB_EUNREACHABLE, c->last_errno, c->name)
                   : 0;
}

static int dial_tcp(struct snib__conn *c, const struct snib__address *to, struct snib_error *err)
{
        char port[8];

        snprintf(port, sizeof(port), "%d", to->port);
        if (resolve(to->host, port, AI_NUMERICHOST, &c->addresses)) {
                c->lookup = lookup_new(to->host, port);
                return c->lookup
                           ? 0
                           : snib__error(err, SNIB_ESYSTEM, "no thread or descriptor to look up \"%s\"", to->host);
        }
        c->next = c->addresses;
        return connect_next(c) < 0 ? snib__error_errno(err, SNIB_EUNREACHABLE, c->last_errno, c->name) : 0;
}

static struct snib__conn *conn_dial(void *arg, const struct snib__address *to, int role, struct snib_error *err)
{
        struct snib__conn *c = snib__alloc(sizeof(*c));

        if (!c) {
                snib__error(err, SNIB_ENOMEM, "out of memory for a connection");
                return NULL;
        }
        c->fd = -1;
        c->timeout_ms = to->timeout_ms;
        if (to->unix_path)
                snprintf(c->name, sizeof(c->name), "connect to %.280s", to->unix_path);
        else
                snprintf(c->name, sizeof(c->name), strchr(to->host, ':') ? "connect to [%s]:%d" : "connect to %s:%d",
                         to->host, to->port);
        if ((to->unix_path ? dial_unix(c, to->unix_path, err) : dial_tcp(c, to, err)) < 0) {
                conn_close(c);
                return NULL;
        }
        return c;
}

/* Takes the answer of the look-up over. 1: addresses are there, 0: not yet, negative: *err. */
static int take_lookup(struct snib__conn *c, struct snib_error *err)
{
        uint64_t n;
        int r;

        if (read(c->lookup->done, &n, sizeof(n)) < 0)
                return errno == EAGAIN || errno == EINTR ? 0
                                                         : snib__error_errno(err, SNIB_ESYSTEM, errno, "read eventfd");
        r = c->lookup->result;
        c->addresses = TAKE(c->lookup->found);
        c->next = c->addresses;
        if (r)
                snib__error_engine(err, SNIB_EUNREACHABLE, r, "look up \"%s\": %s; check the host in the URL",
                                   c->lookup->host, gai_strerror(r));
        lookup_unref(TAKE(c->lookup));
        return r ? SNIB_EUNREACHABLE : 1;
}

static int conn_dialed(struct snib__conn *c, struct snib_error *err)
{
        int error = 0;
        socklen_t size = sizeof(error);

        if (c->lookup) {
                int r = take_lookup(c, err);
                if (r <= 0)
                        return r;
                if (connect_next(c) < 0)
                        return snib__error_errno(err, SNIB_EUNREACHABLE, c->last_errno, c->name);
        }
        while (c->fd >= 0) {
                struct pollfd p = {.fd = c->fd, .events = POLLOUT};
                if (poll(&p, 1, 0) <= 0)
                        return 0;
                if (!getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) && !error) {
                        c->connected = true;
                        return 1;
                }
                c->last_errno = error;
                drop_fd(c);
                (void)connect_next(c);
        }
        return snib__error_errno(err, SNIB_EUNREACHABLE, c->last_errno, c->name);
}

static ssize_t conn_send(struct snib__conn *c, const void *bytes, size_t length)
{
        ssize_t n;

        do
                n = send(c->fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

static ssize_t conn_recv(struct snib__conn *c, void *bytes, size_t room)
{
        ssize_t n;

        do
                n = recv(c->fd, bytes, room, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -errno : n;
}

static int conn_interest(struct snib__conn *c, bool want_send, short *ret_events)
{
        if (c->lookup) {
                *ret_events = POLLIN;
                return c->lookup->done;
        }
        *ret_events = !c->connected ? POLLOUT : want_send ? POLLIN | POLLOUT : POLLIN;
        return c->fd;
}

static void conn_forked(struct snib__conn *c)
{
        drop_fd(c);
        if (c->lookup)
                close(c->lookup->done);
}

const struct snib__transport snib__socket_transport = {.dial = conn_dial,
                                                       .dialed = conn_dialed,
                                                       .send = conn_send,
                                                       .recv = conn_recv,
                                                       .interest = conn_interest,
                                                       .close = conn_close,
                                                       .forked = conn_forked};
