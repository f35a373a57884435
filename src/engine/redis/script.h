/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_REDIS_SCRIPT_H
#define SNIB_ENGINE_REDIS_SCRIPT_H

/*
 * The server-side scripts. Their sources, with what they take and answer, are the files in
 * scripts/. The enum is the list of them: tools/embed.py reads it and writes the table in its
 * order.
 */

#include <stddef.h>

enum snib__redis_script_id {
        SNIB__SCRIPT_ACQUIRE = 0,
        SNIB__SCRIPT_ACQUIRE_FENCED,
        SNIB__SCRIPT_RELEASE,
        SNIB__SCRIPT_RENEW,
        SNIB__SCRIPT_RENEW_MANY,
        SNIB__SCRIPT_FORCE,
        SNIB__SCRIPT_QUERY,
        SNIB__SCRIPT_FAIR,
        SNIB__SCRIPT_RW,
        /* What is counted, and registers: rows in count.c. */
        SNIB__SCRIPT_SEMAPHORE_ACQUIRE,
        SNIB__SCRIPT_SEMAPHORE_UNDO,
        SNIB__SCRIPT_SEMAPHORE_SET,
        SNIB__SCRIPT_SEMAPHORE_ADD,
        SNIB__SCRIPT_SEMAPHORE_DRAIN,
        SNIB__SCRIPT_SEMAPHORE_QUERY,
        SNIB__SCRIPT_SEMAPHORE_DELETE,
        SNIB__SCRIPT_PERMITS_ACQUIRE,
        SNIB__SCRIPT_PERMITS_RELEASE,
        SNIB__SCRIPT_PERMITS_RENEW,
        SNIB__SCRIPT_PERMITS_CHANGE,
        SNIB__SCRIPT_PERMITS_QUERY,
        SNIB__SCRIPT_PERMITS_FORCE,
        SNIB__SCRIPT_PERMITS_DELETE,
        SNIB__SCRIPT_LATCH_SET,
        SNIB__SCRIPT_LATCH_ADD,
        SNIB__SCRIPT_LATCH_DELETE,
        SNIB__SCRIPT_REGISTER_WRITE,
        SNIB__SCRIPT_REGISTER_DELETE,
        SNIB__SCRIPT_REGISTER_QUERY,
        SNIB__SCRIPTS
};

struct snib__redis_script {
        const char *name;
        char sha1[41];
        size_t length;
        const char *text;
};

extern const struct snib__redis_script snib__redis_scripts_built_in[];

/* What engines use; the simulator puts scripts with bugs on purpose here. Read at every request. */
extern const struct snib__redis_script *snib__redis_scripts;

#endif
