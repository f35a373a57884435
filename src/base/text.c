/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Classes, names and texts of error codes, losses and capabilities, made from the tables of the
 * public headers where these have one. Not those of kinds, which have a row each in the model.
 * Pure; any thread.
 */

#include "base/text.h"
#include <snib/client.h>
#include <snib/error.h>
#include <snib/grant.h>

int snib__error_class(int code)
{
        switch (code) {
#define CLASS(name, number, cls, text) \
        case number:                   \
                return cls;
                SNIB_ERRORS(CLASS)
#undef CLASS
        default:
                return 0;
        }
}

const char *snib__strerror(int code)
{
        switch (code) {
#define TEXT(name, number, cls, text) \
        case number:                  \
                return text;
                SNIB_ERRORS(TEXT)
#undef TEXT
        default:
                return code < 0 ? "not an error code of snib" : "success";
        }
}

const char *snib__error_name(int code)
{
        switch (code) {
#define NAME(name, number, cls, text) \
        case number:                  \
                return #name;
                SNIB_ERRORS(NAME)
#undef NAME
        default:
                return code < 0 ? "(not an error code of snib)" : "SNIB_OK";
        }
}

const char *snib__loss_text(int reason)
{
        static const char *const texts[] = {
            [SNIB_LOSS_NONE] = "not lost",
            [SNIB_LOSS_EXPIRED] = "the lease ran out",
            [SNIB_LOSS_UNREACHABLE] = "the lease ran out while the engine could not be reached",
            [SNIB_LOSS_TAKEN] = "another owner holds it",
            [SNIB_LOSS_GONE] = "it was released by force, deleted or forgotten by the engine",
            [SNIB_LOSS_MAX_HOLD] = "the cap on the total hold was reached",
            [SNIB_LOSS_THREAD_EXIT] = "the thread that owned it ended",
            [SNIB_LOSS_CLOSED] = "the client was closed",
            [SNIB_LOSS_REFUSED] = "the engine refused to renew it",
        };

        if (reason < 0 || reason >= (int)(sizeof(texts) / sizeof(texts[0])))
                return "unknown reason";
        return texts[reason];
}

const char *snib__cap_name(unsigned cap)
{
        switch (cap) {
#define NAME(name, bit, word, text) \
        case name:                  \
                return word;
                SNIB_CAPS(NAME)
#undef NAME
        default:
                return NULL;
        }
}

const char *snib__cap_text(unsigned cap)
{
        switch (cap) {
#define TEXT(name, bit, word, text) \
        case name:                  \
                return text;
                SNIB_CAPS(TEXT)
#undef TEXT
        default:
                return NULL;
        }
}
