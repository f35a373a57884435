/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_VERSION_H
#define SNIB_VERSION_H

/*
 * The version of the headers a program is compiled with, and of the library it runs with.
 */

#include <snib/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SNIB_VERSION_MAJOR 0
#define SNIB_VERSION_MINOR 1
#define SNIB_VERSION_PATCH 0
#define SNIB_VERSION "0.1.0"

/* Tells the version of the library in use, as static text: "0.1.0". Thread-safe, never blocks. */
SNIB_API const char *snib_version(void);

#ifdef __cplusplus
}
#endif
#endif
