/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The URL of a Redis engine, read once at open into plain values. The password file alone is read
 * again at every dial, so that a rotated password needs no restart. No password stands in any error
 * text.
 */

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "engine/redis/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PORT_DEFAULT 6379
#define DB_MAX 65535

static int copy(char *ret, size_t size, const char *text, const char *what, struct snib_error *err)
{
        if (strlen(text) >= size)
                return snib__error(err, SNIB_EURL, "%s in the URL is longer than %zu bytes", what, size - 1);
        memcpy(ret, text, strlen(text) + 1);
        return 0;
}

static int read_db(struct redis_config *c, const char *text, struct snib_error *err)
{
        char *rest = NULL;
        long db;

        errno = 0;
        db = strtol(text, &rest, 10);
        if (text[0] < '0' || text[0] > '9' || *rest || errno || db > DB_MAX)
                return snib__error(err, SNIB_EURL, "database \"%s\" in the URL is not a number from 0 to %d", text,
                                   DB_MAX);
        c->db = (int)db;
        return 0;
}

static int read_place(struct redis_config *c, struct snib__url *url, struct snib_error *err)
{
        const char *db = snib__url_option(url, "db");
        bool is_unix = !strcmp(url->scheme, "redis+unix");
        int r;

        if (!url->has_authority)
                return snib__error(err, SNIB_EURL, "the URL lacks its \"//\": write %s",
                                   is_unix ? "redis+unix:///path/of/socket" : "redis://host");
        if (is_unix) {
                if (url->host[0] || url->port || url->path[0] != '/' || !url->path[1])
                        return snib__error(
                            err, SNIB_EURL,
                            "redis+unix: needs the path of a socket and no host: write redis+unix:///path/of/socket");
                c->address.unix_path = c->unix_path;
                r = copy(c->unix_path, sizeof(c->unix_path), url->path, "the path", err);
        } else {
                c->address.host = c->host;
                c->address.port = url->port ? url->port : PORT_DEFAULT;
                r = copy(c->host, sizeof(c->host), url->host[0] ? url->host : "localhost", "the host", err);
                if (!r && url->path[0] && url->path[1]) {
                        if (db)
                                return snib__error(err, SNIB_EURL,
                                                   "the URL names a database in its path and in ?db=: leave one away");
                        db = url->path + 1;
                }
        }
        return !r && db ? read_db(c, db, err) : r;
}

static int read_secrets(struct redis_config *c, struct snib__url *url, struct snib_error *err)
{
        const char *user = snib__url_option(url, "user");
        const char *password = snib__url_option(url, "password");
        const char *file = snib__url_option(url, "password_file");
        int r;

        if (!!password + !!file + !!url->has_password > 1)
                return snib__error(err, SNIB_EURL,
                                   "the URL gives the password more than once: use one of user:password@, ?password=, "
                                   "?password_file=");
        if (user && url->user[0])
                return snib__error(err, SNIB_EURL, "the URL gives the user twice: leave one away");
        c->has_password = password || file || url->has_password;
        if ((user || url->user[0]) && !c->has_password)
                return snib__error(err, SNIB_EURL, "the URL gives a user without a password: add ?password_file=");
        r = copy(c->user, sizeof(c->user), user ? user : url->user, "the user", err);
        if (!r && file)
                r = copy(c->password_file, sizeof(c->password_file), file, "the password file", err);
        if (!r && c->has_password && !file)
                r = copy(c->password, sizeof(c->password), password ? password : url->password, "the password", err);
        return r ? r : snib__redis_password(c, err);
}

static int read_duration(struct snib__url *url, const char *key, snib__ns *ret, struct snib_error *err)
{
        const char *text = snib__url_option(url, key);
        int64_t ms;

        if (!text)
                return 0;
        if (snib__duration_parse(text, &ms) < 0 || ms <= 0 || ms > INT32_MAX)
                return snib__error(err, SNIB_EURL, "option %s=%s in the URL is not a duration such as 500ms or 3s", key,
                                   text);
        *ret = ms * SNIB__MS;
        return 0;
}

int snib__redis_configure(struct redis_config *ret, struct snib__url *url, int64_t timeout_ms, struct snib_error *err)
{
        int r;

        *ret = (struct redis_config){.timeout = timeout_ms * SNIB__MS};
        r = read_place(ret, url, err);
        if (!r)
                r = read_secrets(ret, url, err);
        if (!r)
                r = read_duration(url, "timeout", &ret->timeout, err);
        ret->connect_timeout = ret->timeout;
        if (!r)
                r = read_duration(url, "connect_timeout", &ret->connect_timeout, err);
        if (!r)
                r = snib__url_unused(url, "db, timeout, connect_timeout, spin, trace, user, password, password_file",
                                     err);
        ret->address.timeout_ms = (int)(ret->timeout / SNIB__MS);
        return r;
}

int snib__redis_password(struct redis_config *c, struct snib_error *err)
{
        _cleanup_close_ int fd = -1;
        char text[sizeof(c->password) + 1];
        ssize_t n;

        if (!c->password_file[0])
                return 0;
        fd = open(c->password_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        n = fd < 0 ? -1 : read(fd, text, sizeof(text));
        if (n < 0)
                return snib__error_errno(err, SNIB_EAUTH, errno, c->password_file);
        while (n && (text[n - 1] == '\n' || text[n - 1] == '\r'))
                n--;
        if (!n || (size_t)n >= sizeof(c->password) || memchr(text, 0, (size_t)n))
                return snib__error(err, SNIB_EAUTH, "the password file %s must hold one line of 1 to %zu bytes",
                                   c->password_file, sizeof(c->password) - 1);
        memcpy(c->password, text, (size_t)n);
        c->password[n] = 0;
        explicit_bzero(text, sizeof(text));
        return 0;
}
