/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The guard macro: a block that runs under a lock, and gives the lock back on every way out of it.
 *
 *     guard [URL]
 */

#include <snib/snib.h>
#include <stdio.h>

/* Sells one item, if there is one. Every return below releases the lock. */
static int sell(snib_lock *lock, int *stock)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_scope held = {.size = sizeof(held), .err = &err};

        SNIB_WITH_LOCK (held, lock, 2000) {
                if (*stock == 0)
                        return 0;
                --*stock;
                printf("sold under token %lld, %d left\n", (long long)snib_grant_token(held.grant), *stock);
                return 1;
        }
        fprintf(stderr, "%s\n", held.result == 0 ? "the lock was not free within two seconds" : err.text);
        return -1;
}

int main(int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *client;
        snib_lock *lock;
        int stock = 2, sold = 0;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        if (snib_lock_new(client, "example:stock", NULL, &lock, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                snib_close(client);
                return 1;
        }
        while (sell(lock, &stock) == 1)
                sold++;
        snib_lock_free(lock);
        snib_close(client);
        return sold == 2 && stock == 0 ? 0 : 1;
}
