/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Files and links below a folder's descriptor; 0 or a negative errno. */
#ifndef UROCE_VIEW_FILES_H
#define UROCE_VIEW_FILES_H

#include <limits.h>
#include <stdbool.h>

/* It may be there already. */
int files_folder(int directory, const char *path);

/* Make the file hold this text, in one step; a file that holds it already is left alone. */
__attribute__((format(printf, 3, 4))) int files_put(int directory, const char *path,
						    const char *format, ...);

/* Make path a link to target, in one step. */
int files_link(int directory, const char *path, const char *target);

/*
 * Where the link name in a folder leads to, as an absolute path; false when it is no link, or
 * leads nowhere.
 */
bool files_real_path(int directory, const char *name, char target[PATH_MAX]);

#endif
