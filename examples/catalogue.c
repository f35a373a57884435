/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A read-write lock: many look, one changes. A writer can go on reading without a gap (a
 * downgrade): acquire the read side under the write side, then release the write side. The
 * other way round does not exist, and is refused at once instead of waiting for itself.
 *
 *     catalogue [URL]
 */

#include <snib/snib.h>
#include <stdio.h>

struct catalogue {
        snib_rwlock *lock;
        int price;
};

static int look(struct catalogue *c)
{
        struct snib_scope held = SNIB_SCOPE_INIT;

        SNIB_WITH_LOCK (held, snib_rwlock_read(c->lock), 2000) {
                printf("the price is %d\n", c->price);
                return 1;
        }
        return 0;
}

/* Changes the price, and checks it while others may read but not change it. */
static int change(struct catalogue *c, int price)
{
        snib_grant *write, *read;
        int good;

        if (snib_lock_acquire(snib_rwlock_write(c->lock), 2000, &write, NULL) != 1)
                return 0;
        c->price = price;
        if (snib_lock_try(snib_rwlock_read(c->lock), &read, NULL) != 1) {
                snib_grant_release(write, NULL);
                return 0;
        }
        good = snib_grant_release(write, NULL) == 1; /* from here on others read, too */
        good &= c->price == price && snib_grant_valid(read);
        return snib_grant_release(read, NULL) == 1 && good;
}

/* What a reader that asks to write is told. */
static int upgrade(struct catalogue *c)
{
        struct snib_scope held = SNIB_SCOPE_INIT;
        struct snib_error err = SNIB_ERROR_INIT;
        snib_grant *grant;
        int result = 0;

        SNIB_WITH_LOCK (held, snib_rwlock_read(c->lock), 2000) {
                result = snib_lock_acquire(snib_rwlock_write(c->lock), SNIB_FOREVER, &grant, &err);
                printf("%s\n", err.text);
        }
        return result == SNIB_EUPGRADE;
}

int main(int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct catalogue c = {.price = 10};
        snib_client *client;
        int good = 0;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        if (snib_rwlock_new(client, "example:catalogue", NULL, &c.lock, &err) == 0)
                good = look(&c) && change(&c, 12) && look(&c) && upgrade(&c);
        else
                fprintf(stderr, "%s\n", err.text);
        snib_rwlock_free(c.lock);
        snib_close(client);
        return good ? 0 : 1;
}
