/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib engines: what each engine of this build guarantees, as the library says it. Nothing is known here.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include <snib/snib.h>

static const struct {
        unsigned bit;
        const char *key;
        const char *text;
} caps[] = {
    {SNIB_CAP_FENCING, "fencing", "fencing tokens"},
    {SNIB_CAP_CLOCK_TOKENS, "clock_tokens", "plain tokens from the server's clock"},
    {SNIB_CAP_QUEUE, "queue", "queue"},
    {SNIB_CAP_DEATH_NOTICE, "death_notice", "free at once when the holder dies"},
    {SNIB_CAP_CROSS_PROCESS, "cross_process", "between processes"},
    {SNIB_CAP_CROSS_MACHINE, "cross_machine", "between machines"},
    {SNIB_CAP_SURVIVES_RESTART, "survives_restart", "survives a restart of the store"},
};

enum { CAPS = sizeof(caps) / sizeof(caps[0]) };

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
        for (int i = 0; i < CAPS; i++)
                snib__json_bool(&j, caps[i].key, (e->caps & caps[i].bit) != 0);
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
        for (int i = 0; i < CAPS; i++) {
                if (!(e->caps & caps[i].bit))
                        continue;
                printf("%s%s", separator, caps[i].text);
                separator = ", ";
        }
        printf("\n");
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
