/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts of errors that come from core or an engine: which name, what happened to it, what to
 * do; each once. The name is said here and by no engine; what to do by the engine, if it knows,
 * behind a semicolon, else by the table here. Pure.
 */

#include "base/error.h"
#include "base/text.h"
#include "runtime/runtime.h"
#include <stdio.h>
#include <string.h>

static const char *advice(int code, const struct snib__about *about)
{
        switch (code) {
        case SNIB_EREENTRY:
                return about->kind == SNIB_KIND_ELECTION ? "this candidate campaigns or leads already"
                                                         : "release it first, or use a re-entrant lock";
        case SNIB_EUPGRADE:
                return "a reader that waited to write would wait for itself. To do both, acquire the write side first";
        case SNIB_ELOST:
                return "stop touching what it protects, release the grant, then acquire anew";
        case SNIB_ENOTOWNER:
                return about->change ? "one of the permits is not out: released, expired, or never given; nothing was "
                                       "changed"
                                     : NULL;
        case SNIB_EUNREACHABLE:
                return "nothing was changed; check the server and try again";
        case SNIB_ENOTREADY:
                return "nothing was changed; try again later";
        case SNIB_EUNKNOWN:
                return about->change ? "look at what is there before you repeat it"
                                     : "it is settled in the background, at the latest when the lease ends";
        case SNIB_EKIND:
                return "choose another name, or use the kind that is there";
        case SNIB_ELIMIT:
                return "nothing was changed";
        case SNIB_EAUTH:
                return "check the user and the password in the URL";
        case SNIB_ECANCELLED:
                return "the handle's cancel call ended the wait";
        case SNIB_ECLOSED:
                return "open a client again";
        case SNIB_ENOMEM:
                return "free some memory and try again";
        default:
                return NULL;
        }
}

void snib__about_set(struct snib__about *about, int kind, struct snib__name name)
{
        size_t n = name.length < SNIB__ABOUT_MAX ? name.length : SNIB__ABOUT_MAX - 4;

        about->kind = kind;
        memcpy(about->name, name.bytes, n);
        memcpy(about->name + n, "...", n < name.length ? 4 : 0);
        if (n == name.length)
                about->name[n] = 0;
}

int snib__fault_error(struct snib_error *err, int code, const struct snib__fault *fault,
                      const struct snib__about *about)
{
        bool said = fault && fault->text[0];
        const char *text = said ? fault->text : snib__strerror(code);
        const char *hint = said && strstr(text, "; ") ? NULL : advice(code, about);

        return snib__error_engine(err, code, fault ? fault->engine_code : 0, "%s \"%s\": %s%s%s",
                                  snib__kind(about->kind)->text, about->name, text, hint ? "; " : "", hint ? hint : "");
}

int snib__closed(struct snib_error *err)
{
        return snib__error(err, SNIB_ECLOSED, "the client is being closed; open another");
}

int snib__no_memory(struct snib_error *err)
{
        return snib__error(err, SNIB_ENOMEM, "no memory for the call; free some and try again");
}
