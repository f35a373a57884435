/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The registry of open directories, and what a fork does to them. Not their databases: db.c.
 *
 * Invariants: a process has at most one SQLite handle of a file, also after fork: a child closes
 * what it inherited before it opens its own. Threads: the registry has a mutex of its own, held
 * during the whole of an open.
 */

#include "engine/local/store.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "engine/local/worker.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct snib__list registry = {&registry, &registry};
static struct snib__list inherited = {&inherited, &inherited}; /* the parent's stores, in a child */

static void close_descriptors(struct snib__store *s)
{
        int *fd[] = {&s->gate_fd, &s->live_fd, &s->send_fd, &s->place.fd};

        for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++) {
                if (*fd[i] >= 0)
                        (void)close(*fd[i]);
                *fd[i] = -1;
        }
}

/* All but the worker, which is stopped or, in a child, gone. */
static void store_free(struct snib__store *s)
{
        snib__db_close(s);
        close_descriptors(s);
        snib__worker_free(s->worker);
        (void)pthread_mutex_destroy(&s->lock);
        snib__rows_done(s);
        free(s);
}

static struct snib__store *find(const struct snib__place *place)
{
        snib__list_each (l, &registry) {
                struct snib__store *s = snib__container(l, struct snib__store, link);
                if (s->place.dev == place->dev && s->place.ino == place->ino)
                        return s;
        }
        return NULL;
}

static bool has_terminal(void)
{
        _cleanup_close_ int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

        return fd >= 0;
}

static int store_new(struct snib__store **ret_store, const struct snib__place *place, struct snib_error *err)
{
        struct snib__store *s = snib__alloc(sizeof(*s));
        struct stat st;
        int r;

        if (!s)
                return snib__error(err, SNIB_ENOMEM, "out of memory");
        s->place.fd = s->gate_fd = s->live_fd = s->send_fd = -1;
        (void)pthread_mutex_init(&s->lock, NULL);
        r = snib__place_file(place, "gate", &s->gate_fd, err);
        if (r == 0)
                r = snib__place_file(place, "live", &s->live_fd, err);
        if (r == 0 && (s->send_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
                r = snib__error_errno(err, SNIB_ESYSTEM, errno, "socket");
        if (r == 0)
                r = snib__worker_new(&s->worker, s, place, err);
        if (r < 0) {
                store_free(s);
                return r;
        }
        s->pid_namespace = stat("/proc/self/ns/pid", &st) == 0 ? (int64_t)st.st_ino : 0;
        s->terminal = has_terminal();
        s->place = *place;
        *ret_store = s;
        return 0;
}

/* What a child has from its parent. There is no transaction in it (the fork waited for that), so
 * closing only frees. */
static void free_inherited(void)
{
        for (struct snib__list *l; (l = snib__list_take(&inherited));)
                store_free(snib__container(l, struct snib__store, link));
}

int snib__store_get(struct snib__store **ret_store, struct snib__place *place, struct snib_error *err)
{
        struct snib__store *s;
        int r = 0;

        (void)pthread_mutex_lock(&registry_lock);
        free_inherited();
        s = find(place);
        if (s) {
                snib__place_done(place);
        } else {
                r = store_new(&s, place, err);
                if (r == 0)
                        snib__list_append(&registry, &s->link);
        }
        if (r == 0) {
                s->users++;
                *ret_store = s;
        }
        (void)pthread_mutex_unlock(&registry_lock);
        return r;
}

void snib__store_put(struct snib__store *s)
{
        (void)pthread_mutex_lock(&registry_lock);
        if (--s->users == 0) {
                snib__list_remove(&s->link);
                snib__worker_stop(s->worker);
                s->worker = NULL;
                store_free(s);
        }
        (void)pthread_mutex_unlock(&registry_lock);
}

/* Nobody is inside SQLite, and no record is half changed, when the process forks. */
static void before_fork(void)
{
        (void)pthread_mutex_lock(&registry_lock);
        snib__list_each (l, &registry) {
                struct snib__store *s = snib__container(l, struct snib__store, link);
                (void)pthread_mutex_lock(&s->lock);
                snib__worker_before_fork(s->worker);
        }
}

static void after_fork_parent(void)
{
        snib__list_each (l, &registry) {
                struct snib__store *s = snib__container(l, struct snib__store, link);
                snib__worker_after_fork(s->worker, false);
                (void)pthread_mutex_unlock(&s->lock);
        }
        (void)pthread_mutex_unlock(&registry_lock);
}

/* The copies of the gate must go at once: they would keep a byte lock of the parent's alive.
 * SQLite's handle stays open until this child opens a store, or ends: closing it is no work for
 * here. */
static void after_fork_child(void)
{
        for (struct snib__list *l; (l = snib__list_take(&registry));) {
                struct snib__store *s = snib__container(l, struct snib__store, link);
                snib__worker_after_fork(s->worker, true);
                close_descriptors(s);
                (void)pthread_mutex_unlock(&s->lock);
                snib__list_append(&inherited, &s->link);
        }
        (void)pthread_mutex_unlock(&registry_lock);
}

/* Registered when the library is loaded, before any handler of a layer that calls this one: prepare
 * handlers run last registered first, so the order of locks is that of calls. */
__attribute__((constructor)) static void register_fork_handlers(void)
{
        (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}
