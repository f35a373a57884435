/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one table of error replies. Only the beginning of a text counts, up to where servers and versions agree: the rest
 * is shown to humans and never interpreted. The last row takes what no other does. SNIB_ENOTREADY means that the
 * request was certainly not executed and may succeed later; every script of ours meets such a refusal before its first
 * write.
 */

#include "engine/redis/internal.h"
#include <string.h>

static const struct refusal refusals[] = {
    {"OOM ", SNIB_EREFUSED, false, "the server is at its maxmemory: free some, or raise the limit"},
    {"WRONGTYPE ", SNIB_EKIND, false, "the name is a key of another type: use another name, or remove the key"},
    {"NOAUTH ", SNIB_EAUTH, true, "give the password in the URL or by ?password_file="},
    {"WRONGPASS ", SNIB_EAUTH, true, "check user and password"},
    {"NOPERM ", SNIB_EPERM, false, "grant the user what the server names"},
    /* How Redis 7.0 words it when the command is called by a script; it does not say which. */
    {"ERR The user executing the script can't run this command", SNIB_EPERM, false,
     "grant the user every command of doc/design/redis.md"},
    {"READONLY ", SNIB_ENOTREADY, false, "it is a replica: connect to the primary"},
    {"LOADING ", SNIB_ENOTREADY, false, "it is loading its data: wait"},
    {"BUSY ", SNIB_ENOTREADY, false, "it is busy with a long script: wait, or SCRIPT KILL"},
    {"MASTERDOWN ", SNIB_ENOTREADY, false, "its primary is down: wait"},
    {"CLUSTERDOWN ", SNIB_ENOTREADY, false, "its cluster is down: wait"},
    {"TRYAGAIN ", SNIB_ENOTREADY, false, "a slot is being moved: wait"},
    {"MISCONF ", SNIB_ENOTREADY, false, "it cannot save its data and refuses writes: repair its disk"},
    {"NOREPLICAS ", SNIB_ENOTREADY, false,
     "it has too few replicas to write: repair them, or see min-replicas-to-write"},
    {"UNKILLABLE ", SNIB_ENOTREADY, false, "it is busy with a long script: wait"},
    {"ERR max number of clients", SNIB_ENOTREADY, true, "raise its maxclients, or close other clients"},
    {"MOVED ", SNIB_EREFUSED, false, "it is a node of a cluster, which redis:// does not speak to"},
    {"ASK ", SNIB_EREFUSED, false, "it is a node of a cluster, which redis:// does not speak to"},
    {"CROSSSLOT ", SNIB_EREFUSED, false, "it is a node of a cluster, which redis:// does not speak to"},
    {"DENIED ", SNIB_EPERM, true, "the server is in protected mode: set a password, or bind it to this interface"},
    {"", SNIB_EREFUSED, false, "look at the server's configuration and log"},
};

const struct refusal *snib__refusal_find(const char *text)
{
        const struct refusal *row = refusals;

        while (strncmp(text, row->prefix, strlen(row->prefix)))
                row++;
        return row;
}
