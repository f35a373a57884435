/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The C side of the interop suite: told on stdin what to do, answering on stdout, a line each;
 * Worker.java is the other side. Each actor is a thread that executes its requests in order. Knows
 * the lines only; what they do is in verbs.c.
 *
 *     worker URL LEASE-MS [URL...]
 *
 * At the end of stdin it leaves as it is, without releasing anything: what it held is the driver's
 * business.
 */

#include "worker.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct request {
        struct request *next;
        char line[];
};

struct inbox {
        pthread_mutex_t mutex;
        pthread_cond_t filled;
        struct request *first;
        struct request **last;
};

static int64_t now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t); /* what System.nanoTime() counts */
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *must(void *memory)
{
        if (!memory) {
                fputs("worker: out of memory\n", stderr);
                exit(70);
        }
        return memory;
}

/* SEQ ACTOR VERB... is answered with SEQ BEGIN END RESULT. */
static void answer_request(struct actor *actor, char *line)
{
        char *words[WORDS_MAX], *rest, answer[ANSWER_MAX] = "";
        int64_t begin = now_ns();
        int count = 0;

        for (char *word = strtok_r(line, " ", &rest); word && count < WORDS_MAX; word = strtok_r(NULL, " ", &rest))
                words[count++] = word;
        execute(actor, words + 2, count - 2, answer);
        int64_t end = now_ns();
        flockfile(stdout);
        printf("%s %" PRId64 " %" PRId64 " %s\n", words[0], begin, end, answer);
        fflush(stdout);
        funlockfile(stdout);
}

static void *run_actor(void *arg)
{
        struct actor *actor = arg;
        struct inbox *inbox = actor->inbox;

        for (;;) {
                pthread_mutex_lock(&inbox->mutex);
                while (!inbox->first)
                        pthread_cond_wait(&inbox->filled, &inbox->mutex);
                struct request *request = inbox->first;
                inbox->first = request->next;
                if (!inbox->first)
                        inbox->last = &inbox->first;
                pthread_mutex_unlock(&inbox->mutex);
                answer_request(actor, request->line);
                free(request);
        }
        return NULL;
}

static struct actor *start_actor(snib_client *const *clients, const char *name)
{
        struct actor *actor = must(calloc(1, sizeof(*actor)));
        struct inbox *inbox = must(calloc(1, sizeof(*inbox)));
        pthread_t thread;

        *actor = (struct actor){.client = clients[0], .clients = clients, .name = must(strdup(name)), .inbox = inbox};
        pthread_mutex_init(&inbox->mutex, NULL);
        pthread_cond_init(&inbox->filled, NULL);
        inbox->last = &inbox->first;
        if (pthread_create(&thread, NULL, run_actor, actor) != 0) {
                fputs("worker: no thread\n", stderr);
                exit(70);
        }
        pthread_detach(thread);
        return actor;
}

static struct actor *find_actor(struct actor **actors, snib_client *const *clients, const char *name)
{
        for (struct actor *a = *actors; a; a = a->next)
                if (strcmp(a->name, name) == 0)
                        return a;
        struct actor *actor = start_actor(clients, name);

        actor->next = *actors;
        *actors = actor;
        return actor;
}

static void deliver(struct inbox *inbox, const char *line)
{
        size_t size = strlen(line) + 1;
        struct request *request = must(malloc(sizeof(*request) + size));

        request->next = NULL;
        memcpy(request->line, line, size);
        pthread_mutex_lock(&inbox->mutex);
        *inbox->last = request;
        inbox->last = &request->next;
        pthread_cond_signal(&inbox->filled);
        pthread_mutex_unlock(&inbox->mutex);
}

static snib_client *open_client(const char *url, int64_t lease_ms)
{
        struct snib_options options = {.size = sizeof(options), .label = "interop", .lease_ms = lease_ms};
        struct snib_error err = SNIB_ERROR_INIT;
        snib_client *client;

        if (snib_open(&client, url, &options, &err) < 0) {
                fprintf(stderr, "worker: %s\n", err.text);
                exit(69);
        }
        return client;
}

int main(int argc, char **argv)
{
        snib_client *clients[SERVERS_MAX + 1] = {NULL}; /* the last stays NULL */
        struct actor *actors = NULL;
        char *line = NULL, name[64];
        size_t size = 0;

        if (argc < 3 || argc > 2 + SERVERS_MAX) {
                fputs("usage: worker URL LEASE-MS [URL...]\n", stderr);
                return 64;
        }
        for (int i = 0; i + 2 < argc; i++)
                clients[i] = open_client(argv[i ? i + 2 : 1], strtoll(argv[2], NULL, 10));
        printf("ready %d\n", getpid());
        fflush(stdout);
        while (getline(&line, &size, stdin) > 0) {
                line[strcspn(line, "\n")] = 0;
                if (sscanf(line, "%*s %63s %*s", name) == 1)
                        deliver(find_actor(&actors, clients, name)->inbox, line);
        }
        _exit(0);
}
