/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A directory of this process below /tmp, for tests that write files. */
#ifndef UROCE_TESTS_UNIT_TMPDIR_H
#define UROCE_TESTS_UNIT_TMPDIR_H

/* Group fixtures of cmocka: 0, or why the group cannot run. */
int tmpdir_create(void **state);
int tmpdir_remove(void **state);

/* The path of a file in it, until the next call. */
const char *tmpdir_file(const char *name);

#endif
