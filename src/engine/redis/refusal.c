/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one table of error replies. Only the beginning of a text counts, up to where servers and
 * versions agree, and behind what servers before 7 put in front of it when a script meets it. The
 * last row takes what no other does. SNIB_ENOTREADY means that the request was certainly not
 * executed and may succeed later; every script of ours meets such a refusal before its first write.
 * Of a missing right it is found out which: servers before 7.2 do not say what a script lacks, but
 * where, and of keys none says which.
 */

#include "engine/redis/internal.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_RIGHT "grant the user what snib(7) lists"

static const struct refusal refusals[] = {
    {"OOM ", SNIB_EREFUSED, false, "the server is at its maxmemory: free some, or raise the limit"},
    {"WRONGTYPE ", SNIB_EKIND, false, "the name is a key of another type: use another name, or remove the key"},
    {"NOAUTH ", SNIB_EAUTH, true, "give the password in the URL or by ?password_file="},
    {"WRONGPASS ", SNIB_EAUTH, true, "check user and password"},
    {"NOPERM ", SNIB_EPERM, false, "grant the user what the server names"},
    /* Called by a script: Valkey; Redis 7.0; Redis 6. */
    {"ERR ACL failure in script: ", SNIB_EPERM, false, NO_RIGHT},
    {"ERR The user executing the script can't ", SNIB_EPERM, false, NO_RIGHT},
    {"The user executing the script can't ", SNIB_EPERM, false, NO_RIGHT},
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

#define PLACE "@user_script:"

const char *snib__refusal_text(const char *text)
{
        static const char wrapped[] = "ERR Error running script (call to f_";
        const char *end = strstr(text, "): ");

        if (!strncmp(text, wrapped, sizeof(wrapped) - 1) && end)
                text = end + 3;
        while (!strncmp(text, PLACE, sizeof(PLACE) - 1) && (end = strchr(text + sizeof(PLACE) - 1, ':'))) {
                text = end + 1;
                text += *text == ' ';
        }
        return text + (*text == '-');
}

const struct refusal *snib__refusal_find(const char *text)
{
        const struct refusal *row = refusals;

        text = snib__refusal_text(text);
        while (strncmp(text, row->prefix, strlen(row->prefix)))
                row++;
        return row;
}

/* ---- a missing right */

/* A line of the script that was sent, as the server counts them. */
static const char *line_of(const char *script, long number)
{
        while (script && --number > 0)
                if ((script = strchr(script, '\n')) != NULL)
                        script++;
        return script ? script : "";
}

/* What stands between the first `before` and the next `after`, in lower case. */
static bool between(const char *text, const char *before, char after, char *ret, size_t size)
{
        const char *at = strstr(text, before), *end;

        at = at ? at + strlen(before) : NULL;
        end = at ? strchr(at, after) : NULL;
        if (!end || end == at || (size_t)(end - at) >= size)
                return false;
        for (; at < end; at++)
                *ret++ = (char)tolower((unsigned char)*at);
        *ret = 0;
        return true;
}

bool snib__refusal_command(const char *text, const char *script, char *ret, size_t size)
{
        const char *own = strrchr(text, '('), *at = text, *place = NULL;

        if (strstr(text, "key") && !strstr(text, " run "))
                return false;
        if (between(text, " run the '", '\'', ret, size))
                return true;
        if (own && own[strlen(own) - 1] == ')') /* the script says it */
                return between(own, "(", ')', ret, size);
        while ((at = strstr(at, PLACE)))
                place = at += sizeof(PLACE) - 1;
        return place && between(line_of(script, strtol(place, NULL, 10)), "call('", '\'', ret, size);
}
