/* SPDX-License-Identifier: Apache-2.0 */

/*
 * snib/version.h.
 */

#include <snib/version.h>

const char *snib_version(void)
{
        return SNIB_VERSION;
}
