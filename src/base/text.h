/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_BASE_TEXT_H
#define SNIB_BASE_TEXT_H

/*
 * What the constants of the public headers are called, for people. The public functions of the same
 * names say what they answer.
 */

int snib__error_class(int code);
const char *snib__error_name(int code);
const char *snib__strerror(int code);
const char *snib__loss_text(int reason);
const char *snib__cap_name(unsigned cap);
const char *snib__cap_text(unsigned cap);

#endif
