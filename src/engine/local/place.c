/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the local engine keeps its files. Opens the directory, makes it, and refuses one that
 * somebody else controls or whose file system is a network's. Not a cache: a place is opened once
 * per open of a client. Nothing here follows a symbolic link in the last component of a path.
 * Blocks on the file system; called by open() only.
 */

#include "engine/local/place.h"
#include "base/cleanup.h"
#include "base/duration.h"
#include "base/error.h"
#include "engine/local/default.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What to add to a URL so that the users of a group use its directory together. */
#define SHARE "?mode=0660&group=GROUP"

const char *snib__place_refused(long type)
{
        static const struct {
                unsigned long type;
                const char *name;
        } refused[] = {
            {0x6969, "NFS"},        {0x517b, "SMB"},       {0xff534d42, "CIFS"},     {0xfe534d42, "SMB"},
            {0x01021997, "9p"},     {0x65735546, "FUSE"},  {0x5346414f, "AFS"},      {0x6b414653, "AFS"},
            {0x73757245, "Coda"},   {0x00c36400, "Ceph"},  {0x0bd00bd0, "Lustre"},   {0x01161970, "GFS2"},
            {0x7461636f, "OCFS2"},  {0x47504653, "GPFS"},  {0x19830326, "BeeGFS"},   {0x564c, "NCP"},
            {0x786f4256, "vboxsf"}, {0xaad7aaea, "PanFS"}, {0x20030528, "OrangeFS"},
        };

        for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
                if (refused[i].type == ((unsigned long)type & 0xffffffff))
                        return refused[i].name;
        return NULL;
}

static int read_mode(struct snib__place *p, const char *text, struct snib_error *err)
{
        char *end = NULL;
        unsigned long mode = strtoul(text, &end, 8);

        if (text[0] < '0' || text[0] > '7' || *end || (mode & ~0666UL) || (mode & 0600) != 0600)
                return snib__error(
                    err, SNIB_EURL,
                    "mode=%s is not a file mode for locks: give octal read and write bits such as 0600 or 0660", text);
        p->mode = (mode_t)mode;
        p->shared = (mode & 066) != 0;
        return 0;
}

static int read_group(struct snib__place *p, const char *text, struct snib_error *err)
{
        char buffer[4096], *end = NULL;
        struct group entry, *found = NULL;
        unsigned long gid = strtoul(text, &end, 10);

        if (text[0] >= '0' && text[0] <= '9' && !*end && gid < (gid_t)-1) {
                p->group = (gid_t)gid;
                return 0;
        }
        if (getgrnam_r(text, &entry, buffer, sizeof(buffer), &found) || !found)
                return snib__error(err, SNIB_EURL, "group=%s: there is no such group on this machine", text);
        p->group = found->gr_gid;
        return 0;
}

static int read_options(struct snib__place *p, struct snib__url *url, struct snib_error *err)
{
        const char *mode = snib__url_option(url, "mode");
        const char *group = snib__url_option(url, "group");
        const char *timeout = snib__url_option(url, "timeout");
        const char *durable = snib__url_option(url, "durable");
        int r = 0;

        if (mode && (r = read_mode(p, mode, err)) < 0)
                return r;
        if (group && (r = read_group(p, group, err)) < 0)
                return r;
        if (group && !mode) {
                p->mode = 0660;
                p->shared = true;
        }
        if (timeout && (snib__duration_parse(timeout, &p->timeout_ms) < 0 || p->timeout_ms <= 0))
                return snib__error(err, SNIB_EURL, "timeout=%s is not a duration: write 500ms, 2s or 1m", timeout);
        if (durable && strcmp(durable, "0") != 0 && strcmp(durable, "1") != 0)
                return snib__error(err, SNIB_EURL, "durable=%s: give 0 or 1", durable);
        p->durable = durable && durable[0] == '1';
        if (url->has_authority)
                return snib__error(err, SNIB_EURL, "local: takes a directory, not a host: write local:/dir");
        if (p->shared && !url->path[0])
                return snib__error(err, SNIB_EURL,
                                   "mode= and group= share a directory, and the default one is of one user: name one "
                                   "for all of them, as in local:/dir?mode=0660&group=ops");
        return snib__url_unused(url, "mode, group, timeout, trace, durable", err);
}

/* What the files' mode means for the directory: who may write a file may look things up. Group
 * members trust each other; where everybody may write, the sticky bit keeps them from removing each
 * other's files. */
static mode_t dir_mode(const struct snib__place *p)
{
        mode_t mode = p->mode | ((p->mode & 0444) >> 2);

        if (p->mode & 060)
                mode |= S_ISGID;
        if (p->mode & 02)
                mode |= S_ISVTX;
        return mode;
}

static int make_dir(struct snib__place *p, const char *path, struct snib_error *err)
{
        if (mkdir(path, 0700) < 0) {
                if (errno == EEXIST)
                        return 0;
                if (errno == ENOENT)
                        return snib__error_engine(err, SNIB_ECONFIG, errno,
                                                  "cannot make the lock directory %s: its parent does not exist; make "
                                                  "it, or name another with local:/dir",
                                                  path);
                return snib__error_engine(
                    err,
                    errno == ENOTDIR || errno == ELOOP                    ? SNIB_ECONFIG
                    : errno == EACCES || errno == EPERM || errno == EROFS ? SNIB_EPERM
                                                                          : SNIB_ESYSTEM,
                    errno,
                    "cannot make the lock directory %s: %s; have it made for you, or name another with local:/dir",
                    path, strerror(errno));
        }
        if (!p->shared)
                return 0;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0 || (p->group != (gid_t)-1 && fchown(fd, (uid_t)-1, p->group) < 0) || fchmod(fd, dir_mode(p)) < 0)
                return snib__error_engine(err, SNIB_EPERM, errno,
                                          "cannot give the lock directory %s the mode and group asked for: %s", path,
                                          strerror(errno));
        return 0;
}

static int check_dir(struct snib__place *p, const char *path, struct snib_error *err)
{
        struct stat st;
        struct statfs fs;
        const char *refused = NULL;

        if (fstat(p->fd, &st) < 0 || fstatfs(p->fd, &fs) < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, errno, path);
        refused = snib__place_refused((long)fs.f_type);
        if (refused)
                return snib__error(err, SNIB_EUNSUPPORTED,
                                   "local: does not work on %s, where %s is: name a directory on a disk of this "
                                   "machine, or use redis:// between machines",
                                   refused, path);
        if (st.st_uid != geteuid() && st.st_uid != 0 && !p->shared)
                return snib__error(err, SNIB_EPERM,
                                   "the lock directory %s belongs to user %u, who could take any lock in it: if you "
                                   "share it, let each of you write local:%s" SHARE,
                                   path, (unsigned)st.st_uid, path);
        if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
                return snib__error(err, SNIB_EPERM,
                                   "everybody may write in the lock directory %s: chmod o-w it, and, to share it, let "
                                   "each of you write "
                                   "local:%s" SHARE,
                                   path, path);
        if (faccessat(p->fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
                return snib__error_engine(err, SNIB_EPERM, errno,
                                          "cannot write in the lock directory %s: %s; name another, or, to share it, "
                                          "have it made by one of you with local:%s" SHARE,
                                          path, strerror(errno), path);
        p->dev = st.st_dev;
        p->ino = st.st_ino;
        p->owner = st.st_uid;
        return 0;
}

static int canonical(struct snib__place *p, struct snib_error *err)
{
        char link[64];
        ssize_t n;

        snprintf(link, sizeof(link), "/proc/self/fd/%d", p->fd);
        n = readlink(link, p->path, sizeof(p->path));
        if (n < 0)
                return snib__error_engine(err, SNIB_ESYSTEM, errno, "local: needs /proc: %s: %s", link,
                                          strerror(errno));
        if ((size_t)n >= sizeof(p->path))
                return snib__error(
                    err, SNIB_EURL,
                    "the lock directory's path is longer than %d bytes: name a shorter one with local:/dir",
                    SNIB__PLACE_PATH_MAX);
        p->path[n] = 0;
        return 0;
}

static int open_dir(struct snib__place *p, const char *path, struct snib_error *err)
{
        p->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (p->fd >= 0)
                return 0;
        if (errno == ELOOP || errno == ENOTDIR) {
                bool link = readlink(path, (char[1]){0}, 1) >= 0;

                return snib__error_engine(err, link ? SNIB_EPERM : SNIB_ECONFIG, errno,
                                          "the lock directory %s is %s: name %s", path,
                                          link ? "a symbolic link" : "not a directory",
                                          link ? "the directory itself" : "a directory, or one to be made");
        }
        return snib__error_engine(
            err, errno == EACCES ? SNIB_EPERM : SNIB_ESYSTEM, errno,
            "cannot open the lock directory %s: %s; name another, or, to share it, have it made by one of you with "
            "local:%s" SHARE,
            path, strerror(errno), path);
}

static int refuse_relative(const char *path, struct snib_error *err)
{
        char here[SNIB__PLACE_PATH_MAX + 1];

        while (path[0] == '.' && path[1] == '/')
                path += 2;
        if (!getcwd(here, sizeof(here)))
                here[0] = 0;
        return snib__error(
            err, SNIB_EURL,
            "local:%s is another place in each working directory: write the whole path, here local:%s/%s", path,
            strcmp(here, "/") != 0 ? here : "", strcmp(path, ".") != 0 ? path : "");
}

/* The path the URL names, without the slashes at its end, which would make open() follow a symbolic
 * link. */
static int choose_path(char ret[SNIB__PLACE_PATH_MAX + 1], const struct snib__url *url, struct snib_error *err)
{
        size_t n;

        if (!url->path[0])
                return snib__default_path(ret, err);
        if (url->path[0] != '/')
                return refuse_relative(url->path, err);
        if (snprintf(ret, SNIB__PLACE_PATH_MAX + 1, "%s", url->path) > SNIB__PLACE_PATH_MAX)
                return snib__error(
                    err, SNIB_EURL,
                    "the lock directory's path is longer than %d bytes: name a shorter one with local:/dir",
                    SNIB__PLACE_PATH_MAX);
        for (n = strlen(ret); n > 1 && ret[n - 1] == '/'; n--)
                ret[n - 1] = 0;
        return 0;
}

/* Programs that clean /var/tmp and the like leave alone what is below a directory that is locked,
 * as systemd's does. Not worth a wait, nor a failure. */
static void keep_from_cleaning(const struct snib__place *p)
{
        (void)flock(p->fd, LOCK_SH | LOCK_NB);
}

int snib__place_open(struct snib__place *ret_place, struct snib__url *url, struct snib_error *err)
{
        struct snib__place p = {.fd = -1, .mode = 0600, .group = (gid_t)-1};
        char path[SNIB__PLACE_PATH_MAX + 1];
        int r = read_options(&p, url, err);

        if (r == 0)
                r = choose_path(path, url, err);
        if (r == 0)
                r = make_dir(&p, path, err);
        if (r == 0)
                r = open_dir(&p, path, err);
        if (r == 0)
                r = check_dir(&p, path, err);
        if (r == 0)
                r = canonical(&p, err);
        if (r < 0) {
                snib__place_done(&p);
                return r;
        }
        keep_from_cleaning(&p);
        (void)snprintf(url->path, sizeof(url->path), "%s", p.path);
        *ret_place = p;
        return 0;
}

void snib__place_done(struct snib__place *place)
{
        if (place->fd >= 0)
                (void)close(place->fd);
        place->fd = -1;
}

/* Makes the file with its final mode and group before it has its name, so that nobody meets it half
 * made. 0, also when somebody was faster, or -errno. */
static int make_file(const struct snib__place *p, const char *name)
{
        char temporary[64];
        int r = 0;

        snprintf(temporary, sizeof(temporary), ".%s.%d", name, (int)getpid());
        (void)unlinkat(p->fd, temporary, 0);
        _cleanup_close_ int fd = openat(p->fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        if ((p->group != (gid_t)-1 && fchown(fd, (uid_t)-1, p->group) < 0) || fchmod(fd, p->mode) < 0 ||
            renameat2(p->fd, temporary, p->fd, name, RENAME_NOREPLACE) < 0)
                r = -errno;
        if (r < 0)
                (void)unlinkat(p->fd, temporary, 0);
        return r == -EEXIST ? 0 : r;
}

static int check_file(const struct snib__place *p, int fd, const char *name, struct snib_error *err)
{
        struct stat st;

        if (fstat(fd, &st) < 0)
                return snib__error_errno(err, SNIB_ESYSTEM, errno, name);
        if (!S_ISREG(st.st_mode))
                return snib__error(err, SNIB_EPERM, "%s/%s is not a regular file: remove it", p->path, name);
        if (st.st_uid != geteuid() && st.st_uid != 0 && st.st_uid != p->owner && !p->shared)
                return snib__error(err, SNIB_EPERM,
                                   "%s/%s belongs to user %u: remove it, or, if you share the directory, let each of "
                                   "you write local:%s" SHARE,
                                   p->path, name, (unsigned)st.st_uid, p->path);
        if ((st.st_mode & S_IWOTH) && !(p->mode & S_IWOTH))
                return snib__error(err, SNIB_EPERM, "everybody may write %s/%s: chmod o-w it", p->path, name);
        return 0;
}

int snib__place_file(const struct snib__place *place, const char *name, int *ret_fd, struct snib_error *err)
{
        const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
        _cleanup_close_ int fd = openat(place->fd, name, flags);
        int r = 0;

        if (fd < 0 && errno == ENOENT) {
                r = make_file(place, name);
                if (r < 0)
                        return snib__error_engine(
                            err, r == -EACCES || r == -EPERM || r == -EROFS ? SNIB_EPERM : SNIB_ESYSTEM, -r,
                            "cannot make %s/%s: %s%s", place->path, name, strerror(-r),
                            r == -ENOSPC ? "; make room on that disk" : "; make the directory writable for you");
                fd = openat(place->fd, name, flags);
        }
        if (fd < 0 && errno == ELOOP)
                return snib__error_engine(err, SNIB_EPERM, errno, "%s/%s is a symbolic link: remove it", place->path,
                                          name);
        if (fd < 0 && errno == EACCES)
                return snib__error_engine(
                    err, SNIB_EPERM, errno,
                    "cannot open %s/%s: %s; if you share the directory, have its owner remove its "
                    "files once, and let each of you write local:%s" SHARE,
                    place->path, name, strerror(errno), place->path);
        if (fd < 0)
                return snib__error_engine(err, SNIB_ESYSTEM, errno, "cannot open %s/%s: %s", place->path, name,
                                          strerror(errno));
        r = check_file(place, fd, name, err);
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}
