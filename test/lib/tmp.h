/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_TEST_TMP_H
#define SNIB_TEST_TMP_H

/* A fresh directory, mode 0700, removed with all that is in it when this process ends by exit().
 * The text lives as long. Main thread. */
const char *tmp_dir(void);

/* A path in a fresh directory of that kind. */
const char *tmp_path(const char *name);

#endif
