/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/error.h: the class, the text and the name of a code, all made from the one table in the
 * header. Pure; any thread.
 */

#include <snib/error.h>

int snib_error_class(int code)
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

const char *snib_strerror(int code)
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

const char *snib_error_name(int code)
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
