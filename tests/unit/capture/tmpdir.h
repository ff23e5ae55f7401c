/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A directory of this process below /tmp, for tests that write files. */
#ifndef UROCE_TESTS_UNIT_TMPDIR_H
#define UROCE_TESTS_UNIT_TMPDIR_H

/* Group fixtures of cmocka: return 0, or another value if the group cannot run. */
int tmpdir_create(void **state);
int tmpdir_remove(void **state);

/* Returns the path of a file in the directory, valid until the next call. */
const char *tmpdir_file(const char *name);

#endif
