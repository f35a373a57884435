/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_PROXY_H
#define SNIB_TEST_PROXY_H

/*
 * A proxy between a client and a server that does to the bytes what networks do. It runs in a
 * thread of the test.
 *
 *     struct proxy *p = proxy_start(redis_server_socket(s));
 *     ... open a client on proxy_url(p) ...
 *     proxy_after(p, PROXY_ALL, PROXY_DOWN, 7, PROXY_CUT);   // cut the connection after 7 more bytes of reply
 *
 * Connections are numbered as they are accepted, from 0. A rule for PROXY_ALL holds for every
 * connection there is and for every one that comes. UP is from the client to the server, DOWN the
 * other way. Thread-safe, but for proxy_free().
 */

#include <stdbool.h>
#include <stdint.h>

struct proxy;

#define PROXY_ALL (-1)

enum proxy_way { PROXY_UP = 0, PROXY_DOWN = 1 };

/* What happens at a byte. */
enum proxy_event {
        PROXY_CUT = 1,     /* both ends are closed once the bytes before it were handed on */
        PROXY_SWALLOW = 2, /* this byte and all that follow vanish; the connection stays open */
        PROXY_GARBLE = 3   /* this byte is changed (its lowest and its highest bit are turned) */
};

/* Forwards to a unix socket. Listens on a free port of 127.0.0.1 and on a unix socket. */
struct proxy *proxy_start(const char *server_socket);
void proxy_free(struct proxy *p);

const char *proxy_url(const struct proxy *p);      /* redis://127.0.0.1:port */
const char *proxy_unix_url(const struct proxy *p); /* redis+unix://... */

void proxy_after(struct proxy *p, int connection, enum proxy_way way, uint64_t bytes, enum proxy_event event);
void proxy_delay(struct proxy *p, int connection, enum proxy_way way, int ms);
void proxy_drop(struct proxy *p, int connection, enum proxy_way way,
                bool on); /* half-open: what comes is thrown away */
void proxy_hold(struct proxy *p, int connection, enum proxy_way way, bool on);  /* what comes is kept until off */
void proxy_split(struct proxy *p, int connection, enum proxy_way way, bool on); /* one write a byte */
void proxy_cut(struct proxy *p, int connection);                                /* now */
void proxy_refuse(struct proxy *p, bool on); /* new connections are accepted and reset */
void proxy_heal(struct proxy *p);            /* every rule off, what is held goes out; what was dropped stays lost */

int proxy_accepted(struct proxy *p); /* connections that were accepted and not refused, ever */
int proxy_refused(struct proxy *p);  /* connections that were refused */
bool proxy_is_open(struct proxy *p, int connection);
uint64_t proxy_bytes(struct proxy *p, int connection, enum proxy_way way); /* handed on; of all for PROXY_ALL */
/* Times (ms of wait_now_ms()) at which the first `max` connection attempts came, refused ones as
 * well: how many there are. */
int proxy_attempts(struct proxy *p, int64_t *ret_ms, int max);

#endif
