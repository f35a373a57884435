/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_ASSERT_H
#define SNIB_BASE_ASSERT_H

/*
 * The one assert: for our own bugs, on in every build, one condition each, no side effects. The
 * hook prints nothing and does not return; ours is abort(), a test may put its own.
 */

__attribute__((noreturn)) void snib__assert_fail(const char *condition, const char *file, int line);

#define snib__assert(condition) ((condition) ? (void)0 : snib__assert_fail(#condition, __FILE__, __LINE__))

#endif
