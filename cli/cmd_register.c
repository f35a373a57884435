/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib register: a value with a version, by one-shot verbs. A value comes out byte by byte as it
 * went in. Main thread only.
 */

#include "cmd.h"
#include "exit.h"
#include "out.h"
#include "verbs.h"
#include <errno.h>
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

static int has_no_value(const struct session *s, const char *name)
{
        return snib__verb_no(s, name, (struct verb_fact){"version", 0}, "has no value");
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
        return r ? snib__verb_exit(s, r, &err) : has_no_value(s, name);
}

/* Why a write or a deletion by version was none. */
static int other_version(const struct session *s, const char *name)
{
        struct snib_value value = SNIB_VALUE_INIT;
        int64_t wanted = s->options->version;
        int r = s->options->quiet ? -1 : snib_register_read(reg, &value, NULL);
        long long there = value.version;
        struct verb_fact fact = {r < 0 ? NULL : "version", there};

        snib_value_free(&value);
        if (r < 0)
                return snib__verb_no(s, name, fact, "has another version");
        if (r == 0 && wanted <= 0)
                return snib__verb_no(s, name, fact, "has no value");
        if (r == 0)
                return snib__verb_no(s, name, fact, "has no value, so not version %lld", (long long)wanted);
        if (wanted == 0)
                return snib__verb_no(s, name, fact, "has a value already, version %lld", there);
        return snib__verb_no(s, name, fact, "has version %lld by now, not %lld", there, (long long)wanted);
}

/* Standard input, one byte more than may be: the library says what is too long. NULL after a
 * message. */
static char *read_input(size_t *ret_length)
{
        size_t room = SNIB_REGISTER_MAX + 1;
        char *bytes = malloc(room);

        if (!bytes) {
                snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ENOMEM", "out of memory");
                return NULL;
        }
        *ret_length = fread(bytes, 1, room, stdin);
        if (!ferror(stdin))
                return bytes;
        snib__out_fail(EXIT_FAILURE_OWN, "SNIB_ESYSTEM", "stdin cannot be read: %s", strerror(errno));
        free(bytes);
        return NULL;
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
                return EXIT_FAILURE_OWN;
        int r = snib_register_write(reg, bytes, length, s->options->version, &version, &err);
        if (input)
                free(bytes);
        if (r == 0)
                return other_version(s, name);
        return r == 1 ? snib__verb_number(s, name, "version", version) : snib__verb_exit(s, r, &err);
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

/* A read within the limit of a wait. What is printed is printed where the value is. */
struct reading {
        struct answer answer;
        const struct session *session;
        const char *print; /* the name, NULL: only the version is wanted */
};

static void on_read(void *arg, int result, const struct snib_value *value, const struct snib_error *err)
{
        struct reading *r = arg;

        if (result == 1 && r->print)
                print(r->session, r->print, value);
        snib__answer_value(&r->answer, result, result == 1 ? value->version : 0, err);
}

static int await(struct session *s, const char *name, int argc, char **argv)
{
        static struct verb_wait w = {.err = SNIB_ERROR_INIT};
        static struct reading before = {.answer.err = SNIB_ERROR_INIT}, after = {.answer.err = SNIB_ERROR_INIT};
        const struct options *o = s->options;
        int64_t seen = o->version == SNIB_ANY_VERSION ? 0 : o->version;
        bool known = o->version != SNIB_ANY_VERSION;
        int exit, r;

        (void)argc, (void)argv;
        if (!known) {
                r = snib__session_ask(s, &before.answer,
                                      snib_register_read_async(reg, on_read, &before, &before.answer.err));
                known = before.answer.done;
                if (r < 0 && known)
                        return snib__verb_exit(s, r, &before.answer.err);
                seen = known ? before.answer.value : 0;
        }
        int64_t left_ms = snib__session_left_ms(s, o->nonblock ? 0 : o->wait_ms);
        int64_t end_ns = left_ms > 0 ? snib__clock_boot() + left_ms * 1000000 : INT64_MAX;
        exit = snib__verb_wait(s, &w, snib_register_wait_async(reg, seen, left_ms, on_change, &w, &w.err), cancel_wait,
                               reg);
        if (exit == 0 && w.result == 0 && seen)
                return snib__verb_gave_up(s, name, (struct verb_fact){"version", seen}, "has version %lld still",
                                          (long long)seen);
        if (exit == 0 && w.result == 0)
                return snib__verb_gave_up(s, name, (struct verb_fact){"version", 0}, "has no value yet");
        if (exit || !known) /* a value is no change of what is not known */
                return exit ? exit : snib__verb_exit(s, SNIB_EUNKNOWN, &before.answer.err);
        after.session = s;
        after.print = name;
        r = snib__verb_answer_by(s, &after.answer, snib_register_read_async(reg, on_read, &after, &after.answer.err),
                                 end_ns);
        return r ? snib__verb_exit(s, r, &after.answer.err) : has_no_value(s, name);
}

static int delete (struct session *s, const char *name, int argc, char **argv)
{
        struct snib_error err = SNIB_ERROR_INIT;

        int r = snib_register_delete(reg, s->options->version, &err);

        (void)argc, (void)argv;
        return r ? snib__verb_exit(s, r, &err) : other_version(s, name);
}

const struct verb snib__register_verbs[] = {
    {"get", 0, 0, get}, {"set", 1, 1, set}, {"wait", 0, 0, await}, {"delete", 0, 0, delete}, {NULL, 0, 0, NULL}};

int snib__cmd_register(const struct options *o, int argc, char **argv)
{
        static const struct verb_noun noun = {open_handle, close_handle};

        return snib__verbs_run(snib__opt_command("register"), snib__register_verbs, &noun, o, argc, argv);
}
