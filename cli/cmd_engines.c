/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib engines: what each engine of this build guarantees, as the library says it. Nothing is known
 * here.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include <snib/snib.h>

#define CAP_BITS 32 /* of snib_engine_info.caps; most have no name */

static const char *text(const char *t)
{
        return t ? t : "-";
}

static void print_json(const struct snib_engine_info *e)
{
        struct json j;

        snib__json_begin(&j);
        snib__json_text(&j, "engine", text(e->name));
        snib__json_text(&j, "schemes", text(e->schemes));
        snib__json_text(&j, "summary", text(e->summary));
        snib__json_text(&j, "exclusion", text(e->exclusion));
        snib__json_text(&j, "on_crash", text(e->on_crash));
        snib__json_text(&j, "on_pause", text(e->on_pause));
        snib__json_text(&j, "on_partition", text(e->on_partition));
        snib__json_text(&j, "on_failover", text(e->on_failover));
        for (unsigned i = 0; i < CAP_BITS; i++)
                if (snib_cap_name(1U << i))
                        snib__json_bool(&j, snib_cap_name(1U << i), e->caps >> i & 1);
        snib__json_end(&j, stdout);
}

static void print(const struct snib_engine_info *e, bool first)
{
        const char *separator = "";

        printf("%s%s%s%s  %s\n", first ? "" : "\n", snib__out_bold(stdout), text(e->name), snib__out_plain(stdout),
               text(e->schemes));
        printf("  %s\n", text(e->summary));
        printf("  exclusion     %s\n", text(e->exclusion));
        printf("  on crash      %s\n", text(e->on_crash));
        printf("  on pause      %s\n", text(e->on_pause));
        printf("  on partition  %s\n", text(e->on_partition));
        printf("  on failover   %s\n", text(e->on_failover));
        printf("  has           ");
        for (unsigned i = 0; i < CAP_BITS; i++) {
                if (!(e->caps >> i & 1) || !snib_cap_text(1U << i))
                        continue;
                printf("%s%s\n", separator, snib_cap_text(1U << i));
                separator = "                ";
        }
}

int snib__cmd_engines(const struct options *o, int argc, char **argv)
{
        struct snib_engine_info e = {.size = sizeof(e)};

        (void)argv;
        if (argc > 0)
                return snib__opt_wrong(snib__opt_command("engines"), "takes no argument");
        for (int i = 0; snib_engine_at(i, &e) == 1; i++) {
                if (o->json)
                        print_json(&e);
                else
                        print(&e, i == 0);
        }
        return EXIT_OK;
}
