/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib force-release: takes a lock away from whoever holds it. Asks on a terminal, wants --yes elsewhere.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include "waiting.h"
#include <string.h>
#include <unistd.h>

/* 1 yes, 0 no. */
static int confirmed(const char *safe, const struct snib_lock_info *info)
{
        char holder[SNIB__HOLDER_MAX];
        char answer[16] = "";

        fprintf(stderr,
                "%s is held by %s. Whoever works under it may go on for a moment after it is taken away.\n"
                "Take it away? [y/N] ",
                safe, snib__holder_text(info, holder));
        fflush(stderr);
        return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void tell(const char *name, bool taken, const struct snib_lock_info *before)
{
        char safe[SNIB__SAFE_MAX];
        char holder[SNIB__HOLDER_MAX];
        struct json j;

        if (snib__out_mode_now().json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__json_bool(&j, "released", taken);
                snib__json_end(&j, stdout);
                return;
        }
        if (snib__out_mode_now().quiet)
                return;
        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        if (taken)
                printf("%s taken away from %s\n", safe, snib__holder_text(before, holder));
        else
                printf("%s is free\n", safe);
}

static int end_rwlock(struct session *s, const char *name, struct snib_error *err)
{
        snib_rwlock *rwlock;
        int r = snib_rwlock_new(s->client, name, NULL, &rwlock, err);

        if (r < 0)
                return r;
        int writer = snib_lock_force_release(snib_rwlock_write(rwlock), err);
        int readers = writer < 0 ? writer : snib_lock_force_release(snib_rwlock_read(rwlock), err);
        snib_rwlock_free(rwlock);
        return readers < 0 ? readers : readers || writer;
}

static int end_permits(struct session *s, const char *name, struct snib_error *err)
{
        snib_permits *permits;
        int r = snib_permits_new(s->client, name, NULL, &permits, err);

        if (r < 0)
                return r;
        r = snib_permits_force_release(permits, err);
        snib_permits_free(permits);
        return r;
}

static int end_lock(struct session *s, const char *name, const struct snib_lock_info *info, struct snib_error *err)
{
        struct snib_lock_options options = {SNIB_LOCK_OPTIONS_INIT,
                                            .kind = info->kind == SNIB_KIND_FAIR     ? SNIB_LOCK_FAIR
                                                    : info->kind == SNIB_KIND_FENCED ? SNIB_LOCK_FENCED
                                                                                     : SNIB_LOCK_REENTRANT};
        snib_lock *lock;
        int r = snib_lock_new(s->client, name, &options, &lock, err);

        if (r < 0)
                return r;
        r = snib_lock_force_release(lock, err);
        snib_lock_free(lock);
        return r;
}

/* Whoever holds it, whatever it is: 1 taken away, 0 nobody held it, SNIB_EKIND for what cannot be held. */
static int end(struct session *s, const char *name, const struct snib_lock_info *info, struct snib_error *err)
{
        switch (info->kind) {
        case SNIB_KIND_READ:
        case SNIB_KIND_WRITE:
                return end_rwlock(s, name, err);
        case SNIB_KIND_PERMITS:
                return end_permits(s, name, err);
        case SNIB_KIND_SEMAPHORE:
        case SNIB_KIND_LATCH:
        case SNIB_KIND_REGISTER:
        case SNIB_KIND_COUNTER:
                return SNIB_EKIND;
        default:
                return end_lock(s, name, info, err);
        }
}

static int force(struct session *s, const struct options *o, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        char safe[SNIB__SAFE_MAX];
        int r = snib_describe(s->client, name, 0, &info, &err);

        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        if (r == 1 && !o->yes && !confirmed(safe, &info))
                return snib__out_fail(EXIT_BUSY, NULL, "%s was left as it is", safe);
        r = end(s, name, &info, &err);
        if (r == SNIB_EKIND)
                return snib__out_fail(EXIT_USAGE, NULL, "%s is a %s, which nobody holds; see snib %s -h", safe,
                                      snib_kind_text(info.kind),
                                      info.kind == SNIB_KIND_REGISTER ? "register"
                                      : info.kind == SNIB_KIND_LATCH  ? "latch"
                                                                      : "sem");
        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        tell(name, r == 1, &info);
        return EXIT_OK;
}

int snib__cmd_force_release(const struct options *o, int argc, char **argv)
{
        struct session s;
        int exit;

        if (argc != 1)
                return snib__opt_wrong(snib__opt_command("force-release"), argc ? "one NAME only" : "NAME is missing");
        exit = snib__session_check(o, argv[0]);
        if (exit)
                return exit;
        if (!o->yes && !(isatty(STDIN_FILENO) && isatty(STDERR_FILENO)))
                return snib__out_fail(EXIT_USAGE, NULL, "force-release: nobody to ask here; give --yes");
        exit = snib__session_open(&s, o, NULL);
        if (!exit)
                exit = force(&s, o, argv[0]);
        snib__session_close(&s);
        return exit;
}
