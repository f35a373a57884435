/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which directory a bare local: means: the rule of engine/local/default.h, on candidates below a
 * directory of the test's own. That it is kept by whole programs, whatever their environment, is
 * shown by test/cli/place.py.
 */

#include "engine/local/default.h"
#include "local_test.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct snib__candidates candidates;

/* A world: base/.local/state/snib and safe, with a base that is there. */
static const char *world(void)
{
        const char *dir = tmp_dir();

        candidates = (struct snib__candidates){.uid = geteuid()};
        snprintf(candidates.base, sizeof(candidates.base), "%s/base", dir);
        snprintf(candidates.lasting, sizeof(candidates.lasting), "%s/base/.local/state/snib", dir);
        snprintf(candidates.safe, sizeof(candidates.safe), "%s/safe", dir);
        assert_int_equal(mkdir(candidates.base, 0755), 0);
        return dir;
}

static void takes(const char *path)
{
        char chosen[SNIB__PLACE_PATH_MAX + 1];
        struct snib_error err = SNIB_ERROR_INIT;
        struct stat st;

        if (snib__candidates_choose(&candidates, chosen, &err) < 0)
                fail_msg("%s", err.text);
        assert_string_equal(chosen, path);
        assert_int_equal(lstat(path, &st), 0);
        assert_true(S_ISDIR(st.st_mode));
        assert_int_equal(st.st_mode & 07777, 0700);
}

static void refuses(int code, const char *words)
{
        char chosen[SNIB__PLACE_PATH_MAX + 1];
        struct snib_error err = SNIB_ERROR_INIT;

        assert_int_equal(snib__candidates_choose(&candidates, chosen, &err), code);
        if (!strstr(err.text, words))
                fail_msg("%s", err.text);
}

static void candidates_depend_on_the_user_alone(void **state)
{
        char longer[600];
        struct snib__candidates c;

        snib__candidates_of(&c, 0, "/root");
        assert_string_equal(c.lasting, "/var/lib/snib");
        assert_string_equal(c.safe, "/run/snib");
        snib__candidates_of(&c, 1000, "/srv/anna");
        assert_string_equal(c.base, "/srv/anna");
        assert_string_equal(c.lasting, "/srv/anna/.local/state/snib");
        assert_string_equal(c.safe, "/var/tmp/snib-1000");
        snib__candidates_of(&c, 4000000000U, NULL);
        assert_string_equal(c.base, "");
        assert_string_equal(c.safe, "/var/tmp/snib-4000000000");
        snib__candidates_of(&c, 1000, "relative");
        assert_string_equal(c.base, "");
        memset(longer, 'x', sizeof(longer));
        longer[0] = '/';
        longer[sizeof(longer) - 1] = 0;
        snib__candidates_of(&c, 1000, longer);
        assert_string_equal(c.base, "");
}

static void the_home_is_taken(void **state)
{
        (void)world();
        takes(candidates.lasting);
        takes(candidates.lasting);
        assert_int_not_equal(access(candidates.safe, F_OK), 0);
}

static void without_a_home_the_safe_place_is_taken(void **state)
{
        (void)world();
        assert_int_equal(rmdir(candidates.base), 0);
        takes(candidates.safe);
        (void)world();
        candidates.base[0] = candidates.lasting[0] = 0;
        takes(candidates.safe);
}

/* A home that is mounted later must not part those who hold from those who come. */
static void the_safe_place_is_kept_once_it_is_used(void **state)
{
        (void)world();
        assert_int_equal(rmdir(candidates.base), 0);
        takes(candidates.safe);
        assert_int_equal(mkdir(candidates.base, 0755), 0);
        takes(candidates.safe);
        assert_int_not_equal(access(candidates.lasting, F_OK), 0);
}

static const char *remote_end;

static bool ends_remotely(const char *path)
{
        size_t n = strlen(path), m = strlen(remote_end);

        return n >= m && !strcmp(path + n - m, remote_end);
}

static void a_home_on_a_network_is_not_taken(void **state)
{
        (void)world();
        candidates.is_remote = ends_remotely;
        remote_end = "/base";
        takes(candidates.safe);
        assert_int_not_equal(access(candidates.lasting, F_OK), 0);
        (void)world();
        candidates.is_remote = ends_remotely;
        remote_end = "/snib"; /* as if .local/state led there */
        takes(candidates.safe);
}

static void a_home_of_another_user_is_not_taken(void **state)
{
        if (geteuid() != 0) {
                print_message("# SKIP needs root to be two users\n");
                skip();
        }
        (void)world();
        assert_int_equal(chown(candidates.base, 65534, (gid_t)-1), 0);
        takes(candidates.safe);
}

static void choose_unwritable(struct proc *me, void *arg)
{
        char chosen[SNIB__PLACE_PATH_MAX + 1], ok = 'n';
        struct snib_error err = SNIB_ERROR_INIT;

        candidates.uid = 65534;
        if (setgid(65534) || setuid(65534))
                bail("setuid: %s", strerror(errno));
        if (snib__candidates_choose(&candidates, chosen, &err) == 0 && !strcmp(chosen, candidates.safe))
                ok = 'y';
        proc_say(me, ok);
}

static void an_unwritable_home_is_not_taken(void **state)
{
        struct proc p;
        const char *dir = world();

        if (geteuid() != 0) {
                assert_int_equal(chmod(candidates.base, 0500), 0);
                takes(candidates.safe);
                return;
        }
        assert_int_equal(chown(candidates.base, 65534, (gid_t)-1), 0);
        assert_int_equal(chmod(candidates.base, 0500), 0);
        assert_int_equal(chmod(dir, 01777), 0);
        proc_start(&p, choose_unwritable, NULL);
        assert_int_equal(proc_hear(&p, 10000), 'y');
        proc_wait(&p, 10000);
}

static void a_file_in_its_place_is_said(void **state)
{
        char path[600];
        int fd;

        (void)world();
        snprintf(path, sizeof(path), "%s/.local", candidates.base);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        close(fd);
        refuses(SNIB_ECONFIG, "a file is in its place");
        (void)world();
        candidates.base[0] = 0;
        fd = open(candidates.safe, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        close(fd);
        refuses(SNIB_ECONFIG, candidates.safe);
}

/* The safe place is where everybody may write. What another user put there, or a link, is not
 * taken. */
static void a_safe_place_of_another_user_is_refused(void **state)
{
        const char *dir = world();

        candidates.base[0] = 0;
        assert_int_equal(symlink(dir, candidates.safe), 0);
        refuses(SNIB_ECONFIG, "it is none");
        assert_int_equal(unlink(candidates.safe), 0);
        if (geteuid() != 0) {
                print_message("# another user's directory: needs root\n");
                return;
        }
        assert_int_equal(mkdir(candidates.safe, 0700), 0);
        assert_int_equal(chown(candidates.safe, 65534, (gid_t)-1), 0);
        refuses(SNIB_EPERM, "user 65534 made it");
        /* With a home that works it is not looked at. */
        snprintf(candidates.base, sizeof(candidates.base), "%s/base", dir);
        takes(candidates.lasting);
}

static void no_place_at_all_is_said(void **state)
{
        const char *dir = world();

        snprintf(candidates.safe, sizeof(candidates.safe), "%s/no/such", dir);
        candidates.base[0] = 0;
        refuses(SNIB_ECONFIG, "name one with local:/dir");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(candidates_depend_on_the_user_alone),
            cmocka_unit_test(the_home_is_taken),
            cmocka_unit_test(without_a_home_the_safe_place_is_taken),
            cmocka_unit_test(the_safe_place_is_kept_once_it_is_used),
            cmocka_unit_test(a_home_on_a_network_is_not_taken),
            cmocka_unit_test(a_home_of_another_user_is_not_taken),
            cmocka_unit_test(an_unwritable_home_is_not_taken),
            cmocka_unit_test(a_file_in_its_place_is_said),
            cmocka_unit_test(a_safe_place_of_another_user_is_refused),
            cmocka_unit_test(no_place_at_all_is_said),
        };

        return cmocka_run_group_tests_name("local default", tests, NULL, NULL);
}
