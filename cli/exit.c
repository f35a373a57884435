/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From the library's errors to exit codes. One switch, no state.
 */

#include "exit.h"
#include <snib/snib.h>

int snib__exit_of(int code, bool from_environment)
{
        switch (code) {
        case SNIB_EINVAL:
        case SNIB_ENAME:
        case SNIB_ELEASE:
        case SNIB_ELIMIT:
        case SNIB_EUPGRADE:
                return EXIT_USAGE;
        case SNIB_EKIND:
                return EXIT_KIND;
        case SNIB_EURL:
                return from_environment ? EXIT_CONFIG : EXIT_USAGE;
        case SNIB_EUNSUPPORTED:
        case SNIB_ECONFIG:
                return EXIT_CONFIG;
        case SNIB_EUNREACHABLE:
        case SNIB_ENOTREADY:
                return EXIT_UNREACHABLE;
        case SNIB_EAUTH:
        case SNIB_EPERM:
                return EXIT_PERMISSION;
        case SNIB_EUNKNOWN:
                return EXIT_UNKNOWN;
        case SNIB_ELOST:
                return EXIT_LOST;
        default:
                return EXIT_FAILURE_OWN;
        }
}
