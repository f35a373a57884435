/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib force-release: takes a lock away from whoever holds it. Asks on a terminal, wants --yes
 * elsewhere.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include "waiting.h"
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* 1 yes, 0 no. */
__attribute__((format(printf, 1, 2))) static int agreed(const char *question, ...)
{
        char answer[16] = "";
        va_list list;

        va_start(list, question);
        vfprintf(stderr, question, list);
        va_end(list);
        fflush(stderr);
        return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int confirmed(const char *safe, const struct snib_lock_info *info)
{
        char holder[SNIB__HOLDER_MAX];

        return agreed("%s is held by %s. Whoever works under it may go on for a moment after it is taken away.\n"
                      "Take it away? [y/N] ",
                      safe, snib__holder_text(info, holder));
}

static void tell_head(const char *name, bool dropped, const char *head)
{
        char safe[SNIB__SAFE_MAX];
        struct json j;

        if (snib__out_mode_now().json) {
                snib__json_begin(&j);
                snib__json_name(&j, name, strlen(name));
                snib__json_bool(&j, "dropped", dropped);
                snib__json_text(&j, "head", head);
                snib__json_end(&j, stdout);
                return;
        }
        if (snib__out_mode_now().quiet)
                return;
        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        printf(dropped ? "%s: %s is out of the queue\n" : "%s: %s was not in the queue any more\n", safe, head);
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
        struct snib_lock_options options = {.size = sizeof(struct snib_lock_options),
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

/* Whoever holds it, whatever it is: 1 taken away, 0 nobody held it, SNIB_EKIND for what cannot be
 * held. */
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

/* The first in the queue of a fair lock: dead ones of another make keep everybody waiting. */
static int drop_head(struct session *s, const struct options *o, const char *name, const struct snib_lock_info *info)
{
        struct snib_lock_options options = {.size = sizeof(options), .kind = SNIB_LOCK_FAIR};
        struct snib_error err = SNIB_ERROR_INIT;
        char safe[SNIB__SAFE_MAX], head[SNIB__SAFE_MAX];
        snib_lock *lock;
        int r;

        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        snib__out_safe(info->next, strlen(info->next), head, sizeof(head));
        if (!info->next[0])
                return snib__out_fail(EXIT_BUSY, NULL, "%s has no queue with a head; see snib show %s", safe, safe);
        if (!o->yes && !agreed("%s: the first in the queue is %s. If it lives, it asks again and stands at the end.\n"
                               "Take its place away? [y/N] ",
                               safe, head))
                return snib__out_fail(EXIT_BUSY, NULL, "%s was left as it is", safe);
        r = snib_lock_new(s->client, name, &options, &lock, &err);
        if (r == 0) {
                r = snib_lock_drop_waiter(lock, info->next, &err);
                snib_lock_free(lock);
        }
        if (r < 0)
                return snib__session_fail(s, r, &err, NULL);
        tell_head(name, r == 1, head);
        return EXIT_OK;
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
        if (o->head)
                return drop_head(s, o, name, &info);
        if (r == 1 && !o->yes && !confirmed(safe, &info))
                return snib__out_no(&(struct out_no){.exit = EXIT_BUSY, .event = "not_done", .name = name},
                                    "%s was left as it is", safe);
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
