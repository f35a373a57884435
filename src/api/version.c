/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/version.h: the version the library was built with, which may differ from the caller's
 * headers. Pure; any thread.
 */

#include <snib/version.h>

const char *snib_version(void)
{
        return SNIB_VERSION;
}
