/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A directory of this process below /tmp, for tests that write files. */
#ifndef UROCE_TESTS_OWN_FOLDER_H
#define UROCE_TESTS_OWN_FOLDER_H

/* Group fixtures of cmocka: 0, or why the group cannot run. */
int own_folder_make(void **state);
int own_folder_remove(void **state);

/* The path of a file in it, until the next call. */
const char *own_file(const char *name);

#endif
