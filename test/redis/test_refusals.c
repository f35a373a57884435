/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How servers word a refusal that a script meets, as they did: Redis 6.2.14 and 7.0.15, Valkey
 * 9.1.2. Each is known for what it is, and of a missing right it is found out which command. No
 * server; test_rights.c asks one.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/redis/internal.h"
#include <snib/error.h>

#define LACKS "The user executing the script can't "
#define KEYS_OF LACKS "access at least one of the keys mentioned in the command arguments"
#define SHA "104ae65debf45156ded1e8e613705534c8e62c17"
#define WRAPPED "ERR Error running script (call to f_" SHA "): "

static const char script[] = "local a = redis.call('GET', KEYS[1])\n"
                             "local now = redis.call('TIME')\n"
                             "return 1\n";

static const struct {
        const char *text;
        int code;
        const char *command; /* "": none is said */
} answers[] = {
    /* 6.2: of redis.pcall, with what the script says behind it, and of redis.call */
    {"@user_script: 1: " LACKS "run this command or subcommand (HSET)", SNIB_EPERM, "hset"},
    {"@user_script: 2: " LACKS "run this command or subcommand", SNIB_EPERM, "time"},
    {WRAPPED "@user_script:2: @user_script: 2: " LACKS "run this command or subcommand", SNIB_EPERM, "time"},
    {WRAPPED "@user_script:1: @user_script: 1: " KEYS_OF, SNIB_EPERM, ""},
    {"@user_script: 1: " LACKS "publish to the channel mentioned in the command", SNIB_EPERM, "get"},
    {"NOPERM this user has no permissions to run the 'eval' command or its subcommand", SNIB_EPERM, "eval"},
    {"NOPERM this user has no permissions to access one of the keys used as arguments", SNIB_EPERM, ""},
    {"@user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", SNIB_EREFUSED, ""},
    {WRAPPED "@user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.", SNIB_EREFUSED,
     ""},
    {WRAPPED "@user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value", SNIB_EKIND, ""},
    {"@user_script: 1: -READONLY You can't write against a read only replica.", SNIB_ENOTREADY, ""},
    {WRAPPED "@user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.", SNIB_ENOTREADY,
     ""},
    /* 7.0 */
    {"ERR " LACKS "run this command or subcommand (PEXPIRE)", SNIB_EPERM, "pexpire"},
    {"ERR " LACKS "run this command or subcommand", SNIB_EPERM, ""},
    {"ERR " LACKS "run this command or subcommand script: " SHA ", on @user_script:2.", SNIB_EPERM, "time"},
    {"ERR " KEYS_OF " script: " SHA ", on @user_script:1.", SNIB_EPERM, ""},
    {"NOPERM this user has no permissions to run the 'pubsub|numsub' command", SNIB_EPERM, "pubsub|numsub"},
    {"OOM command not allowed when used memory > 'maxmemory'. script: " SHA ", on @user_script:1.", SNIB_EREFUSED, ""},
    {"WRONGTYPE Operation against a key holding the wrong kind of value script: " SHA ", on @user_script:1.",
     SNIB_EKIND, ""},
    {"READONLY You can't write against a read only replica. script: " SHA ", on @user_script:1.", SNIB_ENOTREADY, ""},
    /* Valkey 9.1 */
    {"ERR ACL failure in script: User app has no permissions to run the 'hset' command", SNIB_EPERM, "hset"},
    {"ERR ACL failure in script: User app has no permissions to run the 'time' command script: on @user_script:2.",
     SNIB_EPERM, "time"},
    {"ERR ACL failure in script: No permissions to access a key", SNIB_EPERM, ""},
    {"ERR ACL failure in script: No permissions to access a channel", SNIB_EPERM, ""},
    {"NOPERM No permissions to access a key", SNIB_EPERM, ""},
    {"NOPERM User app has no permissions to run the 'evalsha' command", SNIB_EPERM, "evalsha"},
    /* nobody's */
    {"ERR something else", SNIB_EREFUSED, ""},
    {"@user_script:", SNIB_EREFUSED, ""},
    {WRAPPED, SNIB_EREFUSED, ""},
    {"", SNIB_EREFUSED, ""},
};

static void F144_refusals_of_all_versions_are_known(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
                char command[32] = "";

                if (snib__refusal_find(answers[i].text)->code != answers[i].code)
                        fail_msg("%s: %d", answers[i].text, snib__refusal_find(answers[i].text)->code);
                if (answers[i].code != SNIB_EPERM)
                        continue;
                (void)snib__refusal_command(answers[i].text, script, command, sizeof(command));
                if (strcmp(command, answers[i].command) != 0)
                        fail_msg("%s: \"%s\"", answers[i].text, command);
        }
}

static void F144_a_line_that_is_not_there_names_nothing(void **state)
{
        static const char *const lines[] = {"0", "4", "-1", "99999999999999999999", "x"};
        char command[32] = "", text[128];

        (void)state;
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
                snprintf(text, sizeof(text), "ERR " LACKS "run this command, on @user_script:%s.", lines[i]);
                if (snib__refusal_command(text, script, command, sizeof(command)) && strcmp(command, "get") != 0)
                        fail_msg("%s: %s", text, command);
        }
        assert_false(snib__refusal_command("ERR " LACKS "run this command or subcommand, on @user_script:2.", script,
                                           command, 3)); /* no room */
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
            cmocka_unit_test(F144_refusals_of_all_versions_are_known),
            cmocka_unit_test(F144_a_line_that_is_not_there_names_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
