/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections that are lost and made again while another thread of the program opens and closes
 * descriptors of its own: the numbers of closed ones are used again at once, and the client must
 * not touch what is no longer its own. That a number was touched is seen by the thread sanitizer;
 * without it, by the other's descriptor if anything happens to it.
 */

#include "lib/redis_server.h"
#include <pthread.h>
#include <setjmp.h>
#include <snib/snib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define LOSSES 12
#define TOGETHER 4

static struct redis_server *server;

struct stranger {
        atomic_bool quit;
        int opened, broken;
};

static bool is_its_own(int fd)
{
        uint64_t put = (uint64_t)fd + 1, found = 0;

        return write(fd, &put, sizeof(put)) == sizeof(put) && read(fd, &found, sizeof(found)) == sizeof(found) &&
               found == put;
}

/* Takes the lowest free numbers again and again, looks whether they are still its own, and gives
 * them back. */
static void *open_and_close(void *arg)
{
        struct stranger *s = arg;
        int fds[TOGETHER];

        while (!atomic_load_explicit(&s->quit, memory_order_relaxed)) {
                for (int i = 0; i < TOGETHER; i++)
                        fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
                for (int i = 0; i < TOGETHER; i++)
                        s->broken += !is_its_own(fds[i]) || close(fds[i]);
                s->opened++;
        }
        return NULL;
}

static void lost_connections_do_not_touch_descriptors_of_others(void **state)
{
        struct stranger stranger = {0};
        snib_client *client = NULL;
        snib_lock *lock = NULL;
        pthread_t thread;

        (void)state;
        assert_int_equal(snib_open(&client, redis_server_url(server), NULL, NULL), 0);
        assert_int_equal(snib_lock_new(client, "reconnect", NULL, &lock, NULL), 0);
        assert_int_equal(pthread_create(&thread, NULL, open_and_close, &stranger), 0);
        for (int i = 0; i < LOSSES; i++) {
                snib_grant *g = NULL;

                assert_int_equal(snib_lock_acquire(lock, SNIB_FOREVER, &g, NULL), 1);
                assert_int_equal(snib_grant_release(g, NULL), 1);
                freeReplyObject(redis_server_do(server, "CLIENT KILL SKIPME yes"));
        }
        atomic_store(&stranger.quit, true);
        pthread_join(thread, NULL);
        assert_true(stranger.opened > LOSSES);
        assert_int_equal(stranger.broken, 0);
        snib_lock_free(lock);
        snib_close(client);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(lost_connections_do_not_touch_descriptors_of_others),
        };
        int r;

        if (redis_server_skips_all())
                return 0;
        server = redis_server_start(&(struct redis_server_options){.tcp = true});
        r = cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
        redis_server_free(server);
        return r;
}
