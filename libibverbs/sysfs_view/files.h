/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Files and symbolic links relative to a directory fd.  Functions return 0 or a negative errno. */
#ifndef UROCE_VIEW_FILES_H
#define UROCE_VIEW_FILES_H

#include <limits.h>
#include <stdbool.h>

/* Creates a directory; succeeds if it exists. */
int files_mkdir(int directory, const char *path);

/* Sets the file's contents atomically.  A file that has them already is not replaced. */
__attribute__((format(printf, 3, 4))) int files_write(int directory, const char *path,
						      const char *format, ...);

/* Makes path a symbolic link to target, atomically. */
int files_symlink(int directory, const char *path, const char *target);

/*
 * Resolves the symbolic link name to an absolute path.  Returns false if it is not a symbolic link
 * or is dangling.
 */
bool files_resolve_link(int directory, const char *name, char target[PATH_MAX]);

#endif
