/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where the local engine keeps its files: which directories and files it takes, which it refuses
 * and in which words, and what it makes of a file after a restart of the machine, of another
 * version, or damaged.
 */

#include "engine/local/place.h"
#include "engine/local/store.h"
#include "local_test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEASE 30000
#define NOBODY 65534

#define refused(url, code, words)                                \
        do {                                                     \
                struct snib_error err_;                          \
                assert_int_equal(try_open(url, 9, &err_), code); \
                if (!strstr(err_.text, words))                   \
                        print_error("%s\n", err_.text);          \
                assert_non_null(strstr(err_.text, words));       \
        } while (0)

static const char *path_in(const char *dir, const char *name)
{
        static char text[8][2600];
        static int next;

        next = (next + 1) % 8;
        snprintf(text[next], sizeof(text[next]), "%s/%s", dir, name);
        return text[next];
}

static mode_t mode_of(const char *path)
{
        struct stat st;

        assert_int_equal(lstat(path, &st), 0);
        return st.st_mode & 07777;
}

static void F134_network_file_systems_are_refused(void **state)
{
        static const long bad[] = {0x6969,           0x517b,     (long)0xff534d42, (int)0xff534d42,
                                   (long)0xfe534d42, 0x01021997, 0x65735546};
        static const long good[] = {0xef53, 0x58465342, (long)0x9123683e, 0x01021994, 0x794c7630, 0x2fc12fc1};

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_non_null(snib__place_refused(bad[i]));
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
                assert_null(snib__place_refused(good[i]));
}

static void files_are_private(void **state)
{
        const char *dir = tmp_path("new");
        struct pump *p = pump_connect(url_of(dir, ""), 1);
        struct dirent *e;
        DIR *d = opendir(dir);
        int files = 0;

        acquire(p, "job", pump_id(p), LEASE);
        assert_int_equal(mode_of(dir), 0700);
        while ((e = readdir(d)))
                if (e->d_name[0] != '.') {
                        assert_int_equal(mode_of(path_in(dir, e->d_name)), 0600);
                        files++;
                }
        closedir(d);
        assert_int_equal(files, 6); /* database, log, index, gate, live, socket */
        pump_close(p);
        assert_int_not_equal(access(path_in(dir, "w-00000001-0000-4000-8000-000000000000"), F_OK), 0);
}

static void F146_symbolic_links_are_refused(void **state)
{
        const char *dir = tmp_dir();
        static const char *const names[] = {"snib.db", "gate", "live"};

        assert_int_equal(mkdir(path_in(dir, "real"), 0700), 0);
        assert_int_equal(symlink("real", path_in(dir, "link")), 0);
        refused(url_of(path_in(dir, "link"), ""), SNIB_EPERM, "symbolic link");
        refused(url_of(path_in(dir, "link/"), ""), SNIB_EPERM, "symbolic link");
        for (size_t i = 0; i < 3; i++) {
                char real[1200];

                snprintf(real, sizeof(real), "%s/real", dir);
                (void)unlink(path_in(real, names[i])); /* of the round before */
                assert_int_equal(symlink("/etc/passwd", path_in(real, names[i])), 0);
                refused(url_of(real, ""), SNIB_EPERM, "symbolic link");
                assert_int_equal(unlink(path_in(real, names[i])), 0);
        }
        assert_int_equal(symlink(path_in(dir, "target"), path_in(dir, "real/snib.db-wal")), 0);
        struct snib_error err;
        assert_true(try_open(url_of(path_in(dir, "real"), ""), 9, &err) < 0);
        assert_int_not_equal(access(path_in(dir, "target"), F_OK), 0);
}

static void F146_directories_of_others_are_refused(void **state)
{
        const char *dir = tmp_dir();

        assert_int_equal(chmod(dir, 0777), 0);
        refused(url_of(dir, ""), SNIB_EPERM, "everybody may write");
        assert_int_equal(chmod(dir, 01777), 0);
        struct snib_error err;
        assert_int_equal(try_open(url_of(dir, ""), 9, &err), 0);
        assert_int_equal(chmod(path_in(dir, "gate"), 0666), 0);
        refused(url_of(dir, ""), SNIB_EPERM, "everybody may write");
        if (geteuid() != 0) {
                print_message("# another user's directory: needs root\n");
                return;
        }
        dir = tmp_dir();
        assert_int_equal(chown(dir, NOBODY, (gid_t)-1), 0);
        refused(url_of(dir, ""), SNIB_EPERM, "belongs to user 65534");
        refused(url_of(dir, ""), SNIB_EPERM, "?mode=0660&group=");
        assert_int_equal(try_open(url_of(dir, "?mode=0660"), 9, &err), 0);
}

static void bad_directories_are_refused(void **state)
{
        const char *dir = tmp_dir();
        char longer[700];
        int fd = open(path_in(dir, "file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        close(fd);
        refused(url_of(path_in(dir, "no/such"), ""), SNIB_ECONFIG, "parent does not exist");
        refused(url_of(path_in(dir, "file"), ""), SNIB_ECONFIG, "not a directory");
        refused(url_of(path_in(dir, "file/x"), ""), SNIB_ECONFIG, "file/x");
        memset(longer, 'x', sizeof(longer));
        longer[0] = '/';
        longer[699] = 0;
        refused(url_of(longer, ""), SNIB_EURL, "longer than 480");
        refused("local://host/dir", SNIB_EURL, "local:/dir");
        refused(url_of(dir, "?colour=red"), SNIB_EURL, "colour");
        refused(url_of(dir, "?mode=0999"), SNIB_EURL, "mode=0999");
        refused(url_of(dir, "?mode=0060"), SNIB_EURL, "mode=0060");
        refused(url_of(dir, "?group=no-such-group-here"), SNIB_EURL, "no such group");
        refused(url_of(dir, "?durable=maybe"), SNIB_EURL, "durable");
        refused(url_of(dir, "?timeout=soon"), SNIB_EURL, "timeout");
        refused("local:?mode=0660", SNIB_EURL, "local:/dir?mode=0660&group=ops");
}

/* Two who stand in different directories would both be in; the text names the directory meant. */
static void relative_directories_are_refused(void **state)
{
        char old[1024], want[600];
        const char *dir = tmp_dir();

        assert_non_null(getcwd(old, sizeof(old)));
        assert_int_equal(chdir(dir), 0);
        snprintf(want, sizeof(want), "here local:%s/sub", dir);
        refused("local:sub?timeout=2s&durable=1", SNIB_EURL, want);
        refused("local:./sub", SNIB_EURL, want);
        refused("local:.", SNIB_EURL, "whole path");
        refused("local:../sub", SNIB_EURL, "whole path");
        assert_int_not_equal(access("sub", F_OK), 0);
        assert_int_equal(chdir(old), 0);
}

/* Longer than a socket's address. */
static void long_paths_work(void **state)
{
        char dir[512];
        struct pump *a, *b;
        struct snib__id x, y;

        snprintf(dir, sizeof(dir), "%s", tmp_dir());
        while (strlen(dir) < 380) {
                size_t n = strlen(dir);
                snprintf(dir + n, sizeof(dir) - n, "/a-directory-with-a-name-of-some-length");
                assert_int_equal(mkdir(dir, 0700), 0);
        }
        a = pump_connect(url_of(dir, ""), 1);
        b = pump_connect(url_of(dir, ""), 2);
        x = pump_id(a);
        y = pump_id(b);
        acquire(a, "job", x, LEASE);
        acquire(b, "job", y, LEASE);
        release(a, "job", x);
        (void)pump_wait(b, SNIB__NOTE_GRANTED);
        pump_close(a);
        pump_close(b);
}

static void without_root(struct proc *me, void *arg)
{
        struct snib_error err;
        const char *url = arg;
        char ok = 'y';

        if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
                ok = 's';
        else if (try_open(url, 8, &err) != SNIB_EPERM || !strstr(err.text, "/"))
                ok = 'n';
        else if (!strstr(url, "/new") && !strstr(err.text, "?mode=0660&group="))
                ok = 'h'; /* no hint */
        proc_say(me, ok);
}

static void F134_unwritable_directories_are_refused(void **state)
{
        char url[1200];
        struct proc p;
        const char *dir = tmp_dir();

        if (geteuid() != 0) {
                assert_int_equal(chmod(dir, 0500), 0);
                refused(url_of(dir, ""), SNIB_EPERM, dir);
                return;
        }
        assert_int_equal(chmod(dir, 0755), 0);
        snprintf(url, sizeof(url), "%s", url_of(dir, ""));
        proc_start(&p, without_root, url);
        assert_int_equal(proc_hear(&p, 10000), 'y');
        proc_wait(&p, 10000);
        snprintf(url, sizeof(url), "%s", url_of(path_in(dir, "new"), ""));
        proc_start(&p, without_root, url);
        assert_int_equal(proc_hear(&p, 10000), 'y');
        proc_wait(&p, 10000);
}

static void as_another_user(struct proc *me, void *arg)
{
        struct pump *b;
        struct snib__id y;

        if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY - 1))
                bail("setuid: %s", strerror(errno));
        b = pump_connect(arg, 2);
        y = pump_id(b);
        if (acquire(b, "job", y, LEASE).status != SNIB__BUSY)
                bail("not busy");
        proc_say(me, 'w');
        (void)acquire_wait(b, "job", y, LEASE);
        proc_say(me, 'h');
        (void)proc_hear(me, 10000);
        pump_close(b);
}

static void two_users_share_by_mode_and_group(void **state)
{
        char url[1200];
        const char *dir = tmp_path("shared");
        struct pump *a;
        struct snib__id x, z;
        struct proc p;
        char *slash;

        if (geteuid() != 0) {
                print_message("# SKIP needs root to be two users\n");
                skip();
        }
        snprintf(url, sizeof(url), "%s", dir);
        slash = strrchr(url, '/');
        *slash = 0;
        assert_int_equal(chmod(url, 0755), 0);
        snprintf(url, sizeof(url), "%s", url_of(dir, "?mode=0660&group=65534"));
        a = pump_connect(url, 1);
        assert_int_equal(mode_of(dir), 02770);
        assert_int_equal(mode_of(path_in(dir, "snib.db")), 0660);
        assert_int_equal(mode_of(path_in(dir, "snib.db-shm")), 0660);
        x = pump_id(a);
        z = pump_id(a);
        acquire(a, "job", x, LEASE);
        proc_start(&p, as_another_user, url);
        assert_int_equal(proc_hear(&p, 10000), 'w');
        release(a, "job", x);
        assert_int_equal(proc_hear(&p, 1000), 'h'); /* woken, not ticked: it is acquire_wait's 2 s otherwise */
        assert_int_equal(acquire(a, "job", z, LEASE).status, SNIB__BUSY);
        proc_kill(&p, SIGKILL);
        (void)pump_wait(a, SNIB__NOTE_GRANTED);
        pump_close(a);
}

static void F134_another_schema_is_refused(void **state)
{
        static const int version[] = {1, SNIB__SCHEMA_VERSION - 1, SNIB__SCHEMA_VERSION + 1, 99};
        const char *dir = tmp_dir();
        struct snib_error err;
        char text[64];

        for (size_t i = 0; i < sizeof(version) / sizeof(version[0]); i++) {
                assert_int_equal(try_open(url_of(dir, ""), 1, &err), 0);
                snprintf(text, sizeof(text), "PRAGMA user_version=%d", version[i]);
                run_sql(dir, text);
                snprintf(text, sizeof(text), "snib.db has schema version %d, this snib has %d", version[i],
                         SNIB__SCHEMA_VERSION);
                refused(url_of(dir, ""), SNIB_EUNSUPPORTED, text);
                refused(url_of(dir, ""), SNIB_EUNSUPPORTED, "move it away");
                assert_int_equal(ask_sql(dir, "PRAGMA user_version"), version[i]);
                snprintf(text, sizeof(text), "PRAGMA user_version=%d", SNIB__SCHEMA_VERSION);
                run_sql(dir, text);
        }
}

static void a_foreign_database_is_refused(void **state)
{
        const char *dir = tmp_dir();
        int fd = open(path_in(dir, "snib.db"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

        close(fd);
        run_sql(dir, "CREATE TABLE precious(x)");
        refused(url_of(dir, ""), SNIB_ECORRUPT, "another program's database");
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM sqlite_schema"), 1);
}

static struct snib__reply value_of(struct pump *p, const char *name)
{
        struct snib__op query = pump_op(p, SNIB__QUERY, name, (struct snib__id){{0}}, 0);
        struct snib__reply r;

        query.kind = SNIB_KIND_ANY;
        r = pump_do(p, &query);
        assert_int_equal(r.status, SNIB__INFO);
        return r;
}

/* Numbers and values stay, tokens go on. */
static void a_restart_of_the_machine_ends_all_holds(void **state)
{
        const char *dir = tmp_dir();
        struct snib_error err;
        struct pump *p;
        struct snib__reply r;

        assert_int_equal(try_open(url_of(dir, ""), 1, &err), 0);
        run_sql(
            dir,
            "UPDATE meta SET value='another boot' WHERE key='boot';"
            "INSERT INTO object VALUES('job',9007199254740000,0,5,'00000007-0000-4000-8000-000000000000:1','h',1,'l',"
            "1,999999999999999,9007199254740000);"
            "INSERT INTO waiter VALUES('job',1,'00000008-0000-4000-8000-000000000000:1','h',1,'l',"
            "1,999999999999999,1000,0,1,0,0);"
            /* a semaphore with 5 free; 2 were taken for good, 3 and 4 were given out and not
             * confirmed */
            "INSERT INTO object VALUES('sem',0,7,2,'','',0,'',1,0,0),('ends',0,7,0,'','',0,'',1,0,0),"
            "('permits',70,8,2,'','',0,'',1,0,0),('latch',0,9,0,'','',0,'',1,0,0),"
            "('register',77,10,0,'','',0,'',1,0,0);"
            "INSERT INTO seat VALUES('sem',1,7,'00000007-0000-4000-8000-000000000000:2','h',1,'l',"
            "1,999999999999999,3,0,0),('sem',3,7,'00000007-0000-4000-8000-000000000000:4','h',1,'l',"
            "1,999999999999999,4,0,0),('permits',1,8,'00000007-0000-4000-8000-000000000000:5','h',1,'l',"
            "1,999999999999999,0,70,1);"
            "INSERT INTO content VALUES('sem',5,0,9223372036854775807,NULL),('ends',5,0,999999999999999,NULL),"
            "('permits',3,0,9223372036854775807,NULL),('latch',2,0,9223372036854775807,NULL),"
            "('register',0,77,9223372036854775807,'v');"
            "INSERT INTO memory VALUES('sem','00000007-0000-4000-8000-000000000000:3',999999999999999,2,2),"
            "('latch','00000007-0000-4000-8000-000000000000:6',999999999999999,2,1);"
            "INSERT INTO client VALUES(70,'00000007-0000-4000-8000-000000000000',1,1,'h','l',1)");
        p = pump_connect(url_of(dir, ""), 1);
        r = acquire(p, "job", pump_id(p), LEASE);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_int_equal(r.token, 9007199254740001);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM waiter"), 0);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM client"), 1);
        assert_int_equal(value_of(p, "sem").value, 12);
        assert_false(value_of(p, "ends").held);
        assert_int_equal(value_of(p, "permits").value, 3);
        assert_int_equal(value_of(p, "permits").kind, SNIB_KIND_PERMITS);
        assert_int_equal(value_of(p, "latch").value, 2);
        assert_int_equal(value_of(p, "register").value, 77);
        pump_close(p);
}

static void open_and_say(struct proc *me, void *arg)
{
        struct snib_error err;
        int r = try_open(arg, 8, &err);

        proc_give(me, &r, sizeof(r));
        proc_give(me, err.text, sizeof(err.text));
}

/* How an open ends in another process. */
static int open_elsewhere(const char *url, char text[SNIB_ERROR_TEXT_MAX])
{
        char copy[1400];
        struct proc p;
        int r;

        snprintf(copy, sizeof(copy), "%s", url);
        proc_start(&p, open_and_say, copy);
        assert_true(proc_take(&p, &r, sizeof(r), 10000));
        assert_true(proc_take(&p, text, SNIB_ERROR_TEXT_MAX, 10000));
        proc_wait(&p, 10000);
        return r;
}

static void live_clients_of_another_boot_are_refused(void **state)
{
        const char *dir = tmp_dir();
        struct pump *p = pump_connect(url_of(dir, ""), 1);
        char text[SNIB_ERROR_TEXT_MAX];

        run_sql(dir, "UPDATE meta SET value='another boot' WHERE key='boot'");
        assert_int_equal(open_elsewhere(url_of(dir, ""), text), SNIB_ECORRUPT);
        assert_non_null(strstr(text, "another boot id"));
        pump_close(p);
}

static void spoil(const char *dir)
{
        char junk[8192];
        int fd = open(path_in(dir, "snib.db"), O_WRONLY | O_CLOEXEC);

        memset(junk, 0xa5, sizeof(junk));
        assert_int_equal(pwrite(fd, junk, sizeof(junk), 0), sizeof(junk));
        close(fd);
}

static char traced[2000];

static void keep_line(void *arg, const char *line)
{
        snprintf(traced + strlen(traced), sizeof(traced) - strlen(traced), "%s\n", line);
}

static void F133_a_damaged_file_is_begun_anew(void **state)
{
        const char *dir = tmp_dir();
        struct snib__engine_config config;
        struct snib__engine *engine;
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib__reply r;
        struct pump *p = pump_connect(url_of(dir, ""), 1);
        int64_t token = acquire(p, "job", pump_id(p), LEASE).token;
        struct dirent *e;
        int moved = 0;
        DIR *d;

        pump_close(p);
        run_sql(dir, "PRAGMA wal_checkpoint(TRUNCATE)");
        spoil(dir);
        pump_config(&config, url_of(dir, ""), 1);
        config.trace = keep_line;
        assert_int_equal(snib__engine_find("local")->open(&engine, &config, pump_now(), &err), 0);
        pump_config_done(&config);
        assert_non_null(strstr(traced, "damaged"));
        p = pump_over(engine, 1);
        r = acquire(p, "job", pump_id(p), LEASE);
        assert_int_equal(r.status, SNIB__GRANTED);
        assert_true(r.token > token);
        d = opendir(dir);
        while ((e = readdir(d)))
                moved += strstr(e->d_name, "snib.db.damaged-") != NULL;
        closedir(d);
        assert_true(moved >= 1);
        pump_close(p);
}

static void hold_and_say(struct proc *me, void *arg)
{
        struct pump *p = pump_connect(arg, 4);

        if (acquire(p, "job", pump_id(p), LEASE).status == SNIB__GRANTED)
                proc_say(me, 'h');
        (void)proc_hear(me, 30000);
}

static void F133_a_damaged_file_in_use_is_refused(void **state)
{
        const char *dir = tmp_dir();
        char url[1200], text[SNIB_ERROR_TEXT_MAX];
        struct proc p;

        snprintf(url, sizeof(url), "%s", url_of(dir, ""));
        proc_start(&p, hold_and_say, url);
        assert_int_equal(proc_hear(&p, 10000), 'h');
        proc_stop(&p);
        spoil(dir);
        assert_int_equal(truncate(path_in(dir, "snib.db-wal"), 0), 0);
        assert_int_equal(truncate(path_in(dir, "snib.db-shm"), 0), 0);
        assert_int_equal(open_elsewhere(url, text), SNIB_ECORRUPT);
        assert_non_null(strstr(text, "still use it"));
        proc_kill(&p, SIGKILL);
        assert_int_equal(open_elsewhere(url, text), 0);
}

static void F133_a_replaced_file_is_noticed(void **state)
{
        const char *dir = tmp_dir();
        struct pump *p = pump_connect(url_of(dir, ""), 1);
        struct snib__reply r;

        assert_int_equal(acquire(p, "job", pump_id(p), LEASE).status, SNIB__GRANTED);
        assert_int_equal(unlink(path_in(dir, "snib.db")), 0);
        assert_true(eventually((r = acquire(p, "other", pump_id(p), LEASE)).status == SNIB__FAILED, 2000));
        assert_int_equal(r.error, SNIB_ECORRUPT);
        assert_non_null(strstr(r.error_text, "removed or replaced"));
        pump_close(p);
}

static void rows_free_for_a_day_are_reaped(void **state)
{
        const char *dir = tmp_dir();
        struct snib_error err;

        assert_int_equal(try_open(url_of(dir, ""), 1, &err), 0);
        run_sql(dir, "INSERT INTO object VALUES('old',1,-1,0,'','',0,'',1000,0,0),"
                     "('new',2,-1,0,'','',0,'',CAST(strftime('%s','now') AS INTEGER)*1000,0,0),"
                     "('latch',3,9,0,'','',0,'',1000,0,0);"
                     "INSERT INTO memory VALUES('old','x:1',1,1,1);"
                     "INSERT INTO content VALUES('latch',1,0,9223372036854775807,NULL);"
                     "DELETE FROM meta WHERE key='reaped_ms'");
        assert_int_equal(try_open(url_of(dir, ""), 1, &err), 0);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM object"), 2);
        assert_int_equal(ask_sql(dir, "SELECT min(token) FROM object"), 2);
        assert_int_equal(ask_sql(dir, "SELECT count(*) FROM memory"), 0);
}

/* A release, or the end of a process, must be possible where nothing else is. */
static void F134_a_release_works_on_a_full_disk(void **state)
{
        const char *dir = tmp_path("small");
        static char junk[65536];
        struct snib__id x;
        struct snib__reply r;
        struct pump *p;
        char name[32];
        int fd;

        assert_int_equal(mkdir(dir, 0700), 0);
        if (mount("none", dir, "tmpfs", 0, "size=3m,mode=0700") < 0) {
                print_message("# SKIP cannot mount a small tmpfs: %s\n", strerror(errno));
                skip();
        }
        p = pump_connect(url_of(dir, ""), 1);
        x = pump_id(p);
        assert_int_equal(acquire(p, "job", x, LEASE).status, SNIB__GRANTED);
        fd = open(path_in(dir, "filler"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        while (write(fd, junk, sizeof(junk)) > 0 || write(fd, junk, 1) > 0)
                ;
        assert_int_equal(errno, ENOSPC);
        close(fd);
        assert_int_equal(release(p, "job", x).status, SNIB__RELEASED);
        for (int i = 0; i < 300; i++) {
                x = pump_id(p);
                assert_int_equal(acquire(p, "job", x, LEASE).status, SNIB__GRANTED);
                assert_int_equal(release(p, "job", x).status, SNIB__RELEASED);
        }
        /* what needs more room says so, and nothing is lost by it */
        assert_int_equal(acquire(p, "job", x, LEASE).status, SNIB__GRANTED);
        for (int i = 0; i < 50000; i++) {
                snprintf(name, sizeof(name), "name-%d", i);
                r = acquire(p, name, pump_id(p), LEASE);
                if (r.status != SNIB__GRANTED)
                        break;
        }
        assert_int_equal(r.status, SNIB__FAILED);
        assert_int_equal(r.error, SNIB_ESYSTEM);
        assert_non_null(strstr(r.error_text, "full"));
        assert_int_equal(unlink(path_in(dir, "filler")), 0);
        assert_int_equal(release(p, "job", x).status, SNIB__RELEASED);
        assert_int_equal(ask_sql(dir, "SELECT integrity_check='ok' FROM pragma_integrity_check"), 1);
        pump_close(p);
        assert_int_equal(umount2(dir, MNT_DETACH), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(F134_network_file_systems_are_refused),
            cmocka_unit_test(files_are_private),
            cmocka_unit_test(F146_symbolic_links_are_refused),
            cmocka_unit_test(F146_directories_of_others_are_refused),
            cmocka_unit_test(bad_directories_are_refused),
            cmocka_unit_test(relative_directories_are_refused),
            cmocka_unit_test(long_paths_work),
            cmocka_unit_test(F134_unwritable_directories_are_refused),
            cmocka_unit_test(two_users_share_by_mode_and_group),
            cmocka_unit_test(F134_another_schema_is_refused),
            cmocka_unit_test(a_foreign_database_is_refused),
            cmocka_unit_test(a_restart_of_the_machine_ends_all_holds),
            cmocka_unit_test(live_clients_of_another_boot_are_refused),
            cmocka_unit_test(F133_a_damaged_file_is_begun_anew),
            cmocka_unit_test(F133_a_damaged_file_in_use_is_refused),
            cmocka_unit_test(F133_a_replaced_file_is_noticed),
            cmocka_unit_test(rows_free_for_a_day_are_reaped),
            cmocka_unit_test(F134_a_release_works_on_a_full_disk),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
