/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_EXPORT_H
#define SNIB_EXPORT_H

/* SNIB_API marks what the library exports; everything else is hidden. */
#if defined(__GNUC__)
#define SNIB_API __attribute__((visibility("default")))
#else
#define SNIB_API
#endif

#endif
