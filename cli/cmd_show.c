/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib show: what is known about one lock, by one question to the engine. Changes nothing; the
 * exit code says whether there is anything. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include "waiting.h"
#include <string.h>
#include <time.h>

static void print_json(const char *name, const struct snib_lock_info *info, const char *url)
{
        struct json j;

        snib__json_begin(&j);
        snib__json_name(&j, name, strlen(name));
        snib__holder_json(&j, info);
        if (info->next[0]) {
                snib__json_text(&j, "next", info->next);
                snib__json_int(&j, "next_left_ms", info->next_left_ms);
        }
        snib__json_text(&j, "url", url);
        snib__json_end(&j, stdout);
}

static void print_since(const struct snib_lock_info *info)
{
        char text[64];
        char held[SNIB__DURATION_MAX];
        time_t since = (time_t)(info->since_ms / 1000);
        int64_t ms = snib__clock_wall_ms() - info->since_ms;
        struct tm tm;

        localtime_r(&since, &tm);
        strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
        printf("  since    %s (%s)\n", text, snib__out_duration(ms < 0 ? 0 : ms, held));
}

/* "held", "fair lock, held", "permits, 1 of 4 free", "register, version 7" */
static void print_state(const struct snib_lock_info *info)
{
        const char *kind = info->held && info->kind != SNIB_KIND_LOCK ? snib_kind_text(info->kind) : "";

        printf("%s%s", kind, *kind ? ", " : "");
        if (!info->held)
                printf("free\n");
        else if (info->kind == SNIB_KIND_REGISTER)
                printf("version %lld\n", (long long)info->value);
        else if (info->kind == SNIB_KIND_LATCH)
                printf("count %lld\n", (long long)info->value);
        else if (info->kind == SNIB_KIND_PERMITS)
                printf("%lld of %lld free\n", (long long)info->value, (long long)info->limit);
        else if (info->kind == SNIB_KIND_SEMAPHORE || info->kind == SNIB_KIND_COUNTER)
                printf("%lld\n", (long long)info->value);
        else if (info->holders > 1)
                printf("held by %lld\n", (long long)info->holders);
        else
                printf("held\n");
}

static void print(const char *name, const struct snib_lock_info *info, const char *url)
{
        char safe[SNIB__SAFE_MAX];
        char holder[SNIB__HOLDER_MAX];
        char lease[SNIB__DURATION_MAX];

        snib__out_safe(name, strlen(name), safe, sizeof(safe));
        printf("%s%s%s  ", snib__out_bold(stdout), safe, snib__out_plain(stdout));
        print_state(info);
        if (info->owner[0]) {
                printf("  holder   %s\n", snib__holder_text(info, holder));
                if (info->since_ms >= 0)
                        print_since(info);
                if (info->lease_left_ms >= 0)
                        printf("  lease    %s left\n", snib__out_duration(info->lease_left_ms, lease));
                if (info->left)
                        printf("  kept     by snib run --hold-at-least until that lease ends\n");
                if (info->token > 0)
                        printf("  token    %lld\n", (long long)info->token);
        }
        if (info->waiters >= 0)
                printf("  waiting  %s%lld\n", info->waiters_at_least ? "at least " : "", (long long)info->waiters);
        if (info->next[0]) {
                snib__out_safe(info->next, strlen(info->next), safe, sizeof(safe));
                printf("  next     %s", safe);
                if (info->next_left_ms >= 0)
                        printf(", its turn ends in %s", snib__out_duration(info->next_left_ms, lease));
                printf("\n");
        }
        printf("  engine   %s\n", url);
}

int snib__cmd_show(const struct options *o, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_lock_info info = SNIB_LOCK_INFO_INIT;
        struct session s;
        int exit;

        if (argc != 1)
                return snib__opt_wrong(snib__opt_command("show"), argc ? "one NAME only" : "NAME is missing");
        exit = snib__session_check(o, argv[0]);
        if (exit)
                return exit;
        exit = snib__session_open(&s, o, NULL);
        if (!exit) {
                int r = snib_describe(s.client, argv[0], 0, &info, &err);
                if (r < 0)
                        exit = snib__session_fail(&s, r, &err, NULL);
                else if (o->json)
                        print_json(argv[0], &info, snib_client_url(s.client));
                else if (!o->quiet)
                        print(argv[0], &info, snib_client_url(s.client));
                if (r >= 0 && !info.held)
                        exit = EXIT_NOTHING;
        }
        snib__session_close(&s);
        return exit;
}
