/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The optimistic lock: a counter in a register that any number of processes count up, and none
 * waits for another. If another process was faster between reading and writing, the callback is
 * called again with the new value.
 *
 *     visits [URL]
 */

#include <snib/snib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct counter {
        char text[24];
        long before, now;
};

static int add_one(void *arg, const struct snib_value *old, struct snib_value *ret_new)
{
        struct counter *c = arg;

        c->before = old->version ? strtol(old->bytes, NULL, 10) : 0;
        c->now = c->before + 1;
        snprintf(c->text, sizeof(c->text), "%ld", c->now);
        ret_new->bytes = c->text;
        ret_new->length = strlen(c->text);
        return 0; /* write it */
}

int main(int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct counter c = {{0}, 0, 0};
        snib_client *client;
        snib_register *visits = NULL;
        int64_t version = 0;
        int result;

        if (snib_open(&client, argc > 1 ? argv[1] : NULL, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        result = snib_register_new(client, "example:visits", 0, &visits, &err);
        for (int i = 0; result >= 0 && i < 3; i++) {
                result = snib_register_update(visits, add_one, &c, 2000, &version, &err);
                if (result == 1)
                        printf("visit %ld, version %lld\n", c.now, (long long)version);
        }
        if (result < 0)
                fprintf(stderr, "%s\n", err.text);
        snib_register_free(visits);
        snib_close(client);
        return result == 1 && c.now == c.before + 1 ? 0 : 1;
}
