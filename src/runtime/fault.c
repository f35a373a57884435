/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts of errors that come from core or an engine: what happened to which name, then what to do. Pure.
 */

#include "base/error.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

static const char *advice(int code)
{
        switch (code) {
        case SNIB_EREENTRY:
                return "release it first, or use a re-entrant lock";
        case SNIB_ELOST:
                return "stop touching what it protects, release the grant, then acquire anew";
        case SNIB_EUNREACHABLE:
                return "nothing was changed; check the server and try again";
        case SNIB_ENOTREADY:
                return "nothing was changed; try again later";
        case SNIB_EUNKNOWN:
                return "it is settled in the background, at the latest when the lease ends";
        case SNIB_EKIND:
                return "choose another name, or the kind that is in use";
        case SNIB_EAUTH:
                return "check the user and the password in the URL";
        case SNIB_ECANCELLED:
                return "snib_lock_cancel() ended the wait";
        case SNIB_ECLOSED:
                return "open a client again";
        case SNIB_ENOMEM:
                return "free some memory and try again";
        default:
                return NULL;
        }
}

void snib__about_set(char about[SNIB__ABOUT_MAX], struct snib__name name)
{
        size_t n = name.length < SNIB__ABOUT_MAX ? name.length : SNIB__ABOUT_MAX - 4;

        memcpy(about, name.bytes, n);
        memcpy(about + n, "...", n < name.length ? 4 : 0);
        if (n == name.length)
                about[n] = 0;
}

int snib__fault_error(struct snib_error *err, int code, const struct snib__fault *fault, const char *about)
{
        const char *text = fault && fault->text[0] ? fault->text : snib_strerror(code);
        const char *hint = advice(code);

        return snib__error_engine(err, code, fault ? fault->engine_code : 0, "lock \"%s\": %s%s%s", about, text,
                                  hint ? "; " : "", hint ? hint : "");
}
