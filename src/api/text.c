/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the constants of the headers are called: the public names of what lies below. Pure; any
 * thread.
 */

#include "base/text.h"
#include "model/op.h"
#include <snib/client.h>
#include <snib/error.h>
#include <snib/grant.h>

int snib_error_class(int code)
{
        return snib__error_class(code);
}

const char *snib_strerror(int code)
{
        return snib__strerror(code);
}

const char *snib_error_name(int code)
{
        return snib__error_name(code);
}

const char *snib_loss_text(int reason)
{
        return snib__loss_text(reason);
}

const char *snib_kind_text(int kind)
{
        return snib__kind(kind)->text;
}

const char *snib_cap_name(unsigned cap)
{
        return snib__cap_name(cap);
}

const char *snib_cap_text(unsigned cap)
{
        return snib__cap_text(cap);
}
