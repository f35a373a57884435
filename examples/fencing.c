/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Fencing: the store refuses a write whose token is lower than one it has seen. A writer is taken
 * its lock away, does not look, and writes late; the store, not the lock, is what stops it.
 *
 *     fencing [URL]
 */

#include <snib/snib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct store {
        int64_t highest; /* a real one keeps it next to the value, in the same transaction */
        const char *value;
};

/* 1 written, 0 refused as stale. */
static int store_write(struct store *store, int64_t token, const char *value)
{
        int accepted = token >= store->highest;

        if (accepted)
                *store = (struct store){.highest = token, .value = value};
        printf("write \"%s\" with token %lld: %s\n", value, (long long)token, accepted ? "accepted" : "refused, stale");
        return accepted;
}

static void check(int result, const struct snib_error *err)
{
        if (result < 0) {
                fprintf(stderr, "%s\n", err->text);
                exit(1);
        }
}

static snib_lock *lock_of(snib_client *client, const char *owner)
{
        struct snib_lock_options options = {
            .size = sizeof(struct snib_lock_options), .kind = SNIB_LOCK_FENCED, .owner = owner};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_lock *lock;

        check(snib_lock_new(client, "example:document", &options, &lock, &err), &err);
        return lock;
}

static snib_grant *acquire(snib_lock *lock)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *grant;
        int result = snib_lock_acquire(lock, 2000, &grant, &err);

        check(result, &err);
        if (result == 0) {
                fprintf(stderr, "another owner holds it\n");
                exit(1);
        }
        return grant;
}

int main(int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct store store = {0, ""};
        snib_client *client;

        check(snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err), &err);
        snib_lock *slow = lock_of(client, "slow writer"), *next = lock_of(client, "next writer");

        snib_grant *old = acquire(slow);
        store_write(&store, snib_grant_token(old), "draft");
        check(snib_lock_force_release(next, &err), &err); /* or its lease ended while it was paused */

        snib_grant *new = acquire(next);
        int written = store_write(&store, snib_grant_token(new), "final");
        int stale =
            store_write(&store, snib_grant_token(old), "draft again"); /* it should have asked snib_grant_valid() */

        snib_grant_release(old, NULL); /* answers SNIB_ELOST, and must be called all the same */
        snib_grant_release(new, NULL);
        snib_lock_free(slow);
        snib_lock_free(next);
        snib_close(client);
        return written && !stale ? 0 : 1;
}
