/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib ls: what is held on an engine. The rows are kept until all are there, so that columns fit
 * and names are sorted. A pattern is applied here, to bytes: an engine lists all it has.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "session.h"
#include "waiting.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct row {
        char *name;
        size_t length;
        struct snib_lock_info info;
};

struct rows {
        const char *pattern; /* NULL: all names */
        struct row *row;
        size_t count;
        size_t room;
        bool failed;
};

static int keep_row(void *arg, const char *name, size_t length, const struct snib_lock_info *info)
{
        struct rows *all = arg;

        if (all->count == all->room) {
                size_t room = all->room ? all->room * 2 : 64;
                struct row *more = reallocarray(all->row, room, sizeof(*more));
                if (!more)
                        return all->failed = true;
                all->row = more;
                all->room = room;
        }
        struct row *r = &all->row[all->count];
        r->name = malloc(length + 1);
        if (!r->name)
                return all->failed = true;
        memcpy(r->name, name, length);
        r->name[length] = 0;
        if (all->pattern && fnmatch(all->pattern, r->name, 0) != 0) {
                free(r->name);
                return 0;
        }
        r->length = length;
        r->info = *info;
        all->count++;
        return 0;
}

static int by_name(const void *a, const void *b)
{
        const struct row *x = a;
        const struct row *y = b;
        size_t n = x->length < y->length ? x->length : y->length;
        int c = memcmp(x->name, y->name, n);

        return c ? c : (x->length > y->length) - (x->length < y->length);
}

static void print_json(const struct row *r, const char *url)
{
        struct json j;

        snib__json_begin(&j);
        snib__json_name(&j, r->name, r->length);
        snib__holder_json(&j, &r->info);
        snib__json_text(&j, "url", url);
        snib__json_end(&j, stdout);
}

/* For programs: as it is, but that a byte which would end or disturb the line is shown as such. */
static void print_name(const struct row *r)
{
        char name[SNIB__SAFE_MAX];

        printf("%s\n", snib__out_safe(r->name, r->length, name, sizeof(name)));
}

static void print_row(const struct row *r, int width)
{
        char name[SNIB__SAFE_MAX];
        char who[SNIB__HOLDER_MAX] = "-", holder[SNIB__HOLDER_MAX + 32];
        char kind[64], others[32] = "";
        char held[SNIB__DURATION_MAX];
        char lease[SNIB__DURATION_MAX];
        char waiting[32] = "-";
        char token[32] = "-";
        const struct snib_lock_info *i = &r->info;
        int64_t since = i->since_ms < 0 ? -1 : snib__clock_wall_ms() - i->since_ms;

        if (i->waiters >= 0)
                snprintf(waiting, sizeof(waiting), "%s%lld", i->waiters_at_least ? ">=" : "", (long long)i->waiters);
        if (i->token > 0)
                snprintf(token, sizeof(token), "%lld", (long long)i->token);
        if (i->holders > 1)
                snprintf(others, sizeof(others), " +%lld", (long long)i->holders - 1);
        if (i->limit >= 0)
                snprintf(kind, sizeof(kind), "%s %lld/%lld", snib_kind_text(i->kind), (long long)(i->limit - i->value),
                         (long long)i->limit);
        else if (i->kind == SNIB_KIND_SEMAPHORE || i->kind == SNIB_KIND_LATCH || i->kind == SNIB_KIND_COUNTER)
                snprintf(kind, sizeof(kind), "%s %lld", snib_kind_text(i->kind), (long long)i->value);
        else
                snprintf(kind, sizeof(kind), "%s", snib_kind_text(i->kind));
        if (i->owner[0])
                snib__holder_text(i, who);
        snprintf(holder, sizeof(holder), "%s%s", who, others);
        printf("%-*s  %-13s %-28s %7s %7s %7s  %s\n", width, snib__out_safe(r->name, r->length, name, sizeof(name)),
               kind, holder,
               snib__out_duration(i->since_ms < 0 ? -1
                                  : since < 0     ? 0
                                                  : since,
                                  held),
               snib__out_duration(i->lease_left_ms, lease), waiting, token);
}

static void print(const struct rows *all)
{
        char name[SNIB__SAFE_MAX];
        size_t width = 4;

        for (size_t i = 0; i < all->count; i++) {
                size_t n = strlen(snib__out_safe(all->row[i].name, all->row[i].length, name, sizeof(name)));
                width = n > width ? n : width;
        }
        width = width > 60 ? 60 : width;
        if (all->count && !snib__out_mode_now().quiet)
                printf("%s%-*s  %-13s %-28s %7s %7s %7s  %s%s\n", snib__out_bold(stdout), (int)width, "NAME", "KIND",
                       "HOLDER", "HELD", "LEASE", "WAITING", "TOKEN", snib__out_plain(stdout));
        for (size_t i = 0; i < all->count; i++)
                print_row(&all->row[i], (int)width);
}

int snib__cmd_ls(const struct options *o, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct session s;
        struct rows all = {0};
        int exit = EXIT_OK;

        if (argc > 1)
                return snib__opt_wrong(snib__opt_command("ls"),
                                       "one PATTERN only; a shell expands it if it is not quoted");
        all.pattern = argv[0];
        int wrong = snib__session_open(&s, o, NULL);
        if (wrong)
                return wrong;
        int64_t r = snib_list(s.client, keep_row, &all, &err);
        if (r < 0)
                exit = snib__session_fail(&s, (int)r, &err, NULL);
        else if (all.failed)
                exit = snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ENOMEM", "out of memory");
        if (exit == EXIT_OK) {
                if (all.count)
                        qsort(all.row, all.count, sizeof(*all.row), by_name);
                for (size_t i = 0; o->json && i < all.count; i++)
                        print_json(&all.row[i], snib_client_url(s.client));
                for (size_t i = 0; o->names && !o->json && i < all.count; i++)
                        print_name(&all.row[i]);
                if (!o->json && !o->names) {
                        print(&all);
                        snib__out_note("listed", "%zu in %s", all.count, snib_client_url(s.client));
                }
        }
        for (size_t i = 0; i < all.count; i++)
                free(all.row[i].name);
        free(all.row);
        snib__session_close(&s);
        return exit;
}
