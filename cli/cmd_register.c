/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib register: a value with a version, by one-shot verbs. A value comes out byte by byte as it went in. Main thread
 * only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "verbs.h"
#include <stdlib.h>
#include <string.h>

static snib_register *reg;

static int open_handle(struct session *s, const char *name)
{
        struct snib_error err = SNIB_ERROR_INIT;
        int r = snib_register_new(s->client, name, 0, &reg, &err);

        return r < 0 ? snib__verb_exit(s, r, &err) : 0;
}

static void close_handle(void)
{
        snib_register_free(reg);
}

/* The bytes as they are, without a newline of our own, so that what was set comes out. */
static void print(const struct session *s, const char *name, const struct snib_value *value)
{
        struct json j;

        if (!s->options->json) {
                fwrite(value->bytes, 1, value->length, stdout);
                return;
        }
        snib__json_begin(&j);
        snib__json_name(&j, name, strlen(name));
        snib__json_int(&j, "version", value->version);
        if (value->version)
                snib__json_bytes(&j, "value", value->bytes, value->length);
        snib__json_end(&j, stdout);
}

static int get(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        struct snib_value value = SNIB_VALUE_INIT;
        int r = snib_register_read(reg, &value, &err);

        (void)argc, (void)argv;
        if (r == 1)
                print(s, name, &value);
        snib_value_free(&value);
        return snib__verb_exit(s, r, &err);
}

/* Standard input, one byte more than may be: the library says what is too long. */
static char *read_input(size_t *ret_length)
{
        size_t room = SNIB_REGISTER_MAX + 1;
        char *bytes = malloc(room);

        if (bytes)
                *ret_length = fread(bytes, 1, room, stdin);
        return bytes;
}

static int set(struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;
        size_t length = strlen(argv[0]);
        bool input = !strcmp(argv[0], "-");
        char *bytes = input ? read_input(&length) : argv[0];
        int64_t version = 0;

        (void)argc;
        if (!bytes)
                return snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ENOMEM", "out of memory");
        int r = snib_register_write(reg, bytes, length, s->options->version, &version, &err);
        if (input)
                free(bytes);
        return snib__verb_number(s, name, "version", r, version, &err);
}

static void on_change(void *arg, int result, int64_t version, const struct snib_error *err)
{
        (void)version;
        snib__verb_done(arg, result, err);
}

static int cancel_wait(void *handle)
{
        return snib_register_cancel(handle);
}

static int await(struct session *s, const char *name, int argc, char **argv)
{
        static struct verb_wait w = {.err = SNIB_ERROR_INIT};
        const struct options *o = s->options;
        struct snib_value value = SNIB_VALUE_INIT;
        int64_t seen = o->version;
        int exit;

        (void)argc, (void)argv;
        if (seen == SNIB_ANY_VERSION) {
                int r = snib_register_read(reg, &value, &w.err);
                if (r < 0)
                        return snib__verb_exit(s, r, &w.err);
                seen = value.version;
                snib_value_free(&value);
        }
        exit = snib__verb_wait(s, &w,
                               snib_register_wait_async(reg, seen, o->nonblock ? 0 : o->wait_ms, on_change, &w, &w.err),
                               cancel_wait, reg);
        return exit ? exit : get(s, name, 0, NULL);
}

static int delete (struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        (void)name, (void)argc, (void)argv;
        return snib__verb_exit(s, snib_register_delete(reg, s->options->version, &err), &err);
}

int snib__cmd_register(const struct options *o, int argc, char **argv)
{
        static const struct verb verbs[] = {{"get", 0, 0, get},
                                            {"set", 1, 1, set},
                                            {"wait", 0, 0, await},
                                            {"delete", 0, 0, delete},
                                            {NULL, 0, 0, NULL}};
        static const struct verb_noun noun = {open_handle, close_handle};

        return snib__verbs_run(snib__opt_command("register"), verbs, &noun, o, argc, argv);
}
