/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The view by LD_PRELOAD: calls of the C library with a path below /sys/class/infiniband,
 * /sys/class/infiniband_verbs or /dev/infiniband get the corresponding path in the tree that
 * uroce-view maintains; other calls are unchanged.  This affects all dynamically linked callers of
 * the C library: the program, its libraries and those opened later.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view.h"

#define EXPORT __attribute__((visibility("default")))

/* Path prefixes and their directories in the tree; a longer prefix must precede a shorter one. */
static const struct {
	const char *prefix;
	const char *dir;
} redirections[] = {
	{ "/sys/class/infiniband_verbs", "/class/infiniband_verbs" },
	{ "/sys/class/infiniband", "/class/infiniband" },
	{ "/dev/infiniband", "/dev/infiniband" },
};

/* Returns path, or the redirected path in buffer. */
static const char *redirect_path(const char *path, char buffer[PATH_MAX])
{
	const char *tree;

	/* Fast check: most paths are not redirected. */
	if (!path || path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
		return path;
	for (size_t i = 0; i < sizeof(redirections) / sizeof(redirections[0]); i++) {
		size_t length = strlen(redirections[i].prefix);

		if (strncmp(path, redirections[i].prefix, length) ||
		    (path[length] && path[length] != '/'))
			continue;
		tree = getenv(TREE_VARIABLE);
		if (!tree || tree[0] != '/' ||
		    snprintf(buffer, PATH_MAX, "%s%s%s", tree, redirections[i].dir,
			     path + length) >= PATH_MAX)
			return path;
		return buffer;
	}
	return path;
}

/*
 * Returns the next definition of the function: that of another preloaded library or of the C
 * library.
 */
#define REAL(name)                                                                               \
	({                                                                                       \
		static _Atomic(void *) next_##name;                                              \
		void *found_##name = atomic_load_explicit(&next_##name, memory_order_relaxed);   \
		if (!found_##name) {                                                             \
			found_##name = dlsym(RTLD_NEXT, #name);                                  \
			atomic_store_explicit(&next_##name, found_##name, memory_order_relaxed); \
		}                                                                                \
		found_##name;                                                                    \
	})

/* clang-format off */
#define WRAP(type, name, path, parameters, arguments, failed)				\
	EXPORT type name parameters;							\
	type name parameters								\
	{										\
		type (*real) parameters = (type (*) parameters)REAL(name);		\
		char buffer[PATH_MAX];							\
		const char *actual = redirect_path(path, buffer);			\
		if (!real) {								\
			errno = ENOSYS;							\
			return failed;							\
		}									\
		return real arguments;							\
	}

/* The mode argument exists only if a file may be created. */
#define WRAP_OPEN(name, first, pass)							\
	EXPORT int name(first const char *path, int flags, ...);			\
	int name(first const char *path, int flags, ...)				\
	{										\
		int (*real)(first const char *, int, ...) =				\
			(int (*)(first const char *, int, ...))REAL(name);		\
		char buffer[PATH_MAX];							\
		va_list arguments;							\
		mode_t mode;								\
		va_start(arguments, flags);						\
		mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ?		\
			       va_arg(arguments, mode_t) : 0;				\
		va_end(arguments);							\
		if (!real) {								\
			errno = ENOSYS;							\
			return -1;							\
		}									\
		return real(pass redirect_path(path, buffer), flags, mode);		\
	}
#define NOTHING
#define DIRECTORY int directory,
#define PASS_DIRECTORY directory,
WRAP_OPEN(open, NOTHING, NOTHING)
WRAP_OPEN(open64, NOTHING, NOTHING)
WRAP_OPEN(openat, DIRECTORY, PASS_DIRECTORY)
WRAP_OPEN(openat64, DIRECTORY, PASS_DIRECTORY)
WRAP(int, __open_2, path, (const char *path, int flags), (actual, flags), -1)
WRAP(int, __open64_2, path, (const char *path, int flags), (actual, flags), -1)
WRAP(int, __openat_2, path, (int directory, const char *path, int flags),
     (directory, actual, flags), -1)
WRAP(int, __openat64_2, path, (int directory, const char *path, int flags),
     (directory, actual, flags), -1)
WRAP(FILE *, fopen, path, (const char *path, const char *mode), (actual, mode), NULL)
WRAP(FILE *, fopen64, path, (const char *path, const char *mode), (actual, mode), NULL)

WRAP(int, stat, path, (const char *path, struct stat *status), (actual, status), -1)
WRAP(int, stat64, path, (const char *path, struct stat64 *status), (actual, status), -1)
WRAP(int, lstat, path, (const char *path, struct stat *status), (actual, status), -1)
WRAP(int, lstat64, path, (const char *path, struct stat64 *status), (actual, status), -1)
WRAP(int, fstatat, path, (int directory, const char *path, struct stat *status, int flags),
     (directory, actual, status, flags), -1)
WRAP(int, fstatat64, path, (int directory, const char *path, struct stat64 *status, int flags),
     (directory, actual, status, flags), -1)
WRAP(int, statx, path,
     (int directory, const char *path, int flags, unsigned int mask, struct statx *status),
     (directory, actual, flags, mask, status), -1)
/*
 * The stat functions of programs built for glibc before 2.33.  dlsym() may not find them in later
 * releases; then the current functions are used, which are equivalent on 64-bit architectures.
 */
#define WRAP_OLD_STAT(name, now, type)							\
	EXPORT int name(int version, const char *path, type *status);			\
	int name(int version, const char *path, type *status)				\
	{										\
		int (*old)(int, const char *, type *) =					\
			(int (*)(int, const char *, type *))REAL(name);			\
		char buffer[PATH_MAX];							\
		const char *actual = redirect_path(path, buffer);			\
		return old ? old(version, actual, status) : now(actual, status);	\
	}
#define WRAP_OLD_STAT_AT(name, now, type)						\
	EXPORT int name(int version, int directory, const char *path, type *status,	\
			int flags);							\
	int name(int version, int directory, const char *path, type *status, int flags)	\
	{										\
		int (*old)(int, int, const char *, type *, int) =			\
			(int (*)(int, int, const char *, type *, int))REAL(name);	\
		char buffer[PATH_MAX];							\
		const char *actual = redirect_path(path, buffer);			\
		return old ? old(version, directory, actual, status, flags) :		\
			     now(directory, actual, status, flags);			\
	}
WRAP_OLD_STAT(__xstat, stat, struct stat)
WRAP_OLD_STAT(__xstat64, stat64, struct stat64)
WRAP_OLD_STAT(__lxstat, lstat, struct stat)
WRAP_OLD_STAT(__lxstat64, lstat64, struct stat64)
WRAP_OLD_STAT_AT(__fxstatat, fstatat, struct stat)
WRAP_OLD_STAT_AT(__fxstatat64, fstatat64, struct stat64)

WRAP(int, access, path, (const char *path, int mode), (actual, mode), -1)
WRAP(int, euidaccess, path, (const char *path, int mode), (actual, mode), -1)
WRAP(int, eaccess, path, (const char *path, int mode), (actual, mode), -1)
WRAP(int, faccessat, path, (int directory, const char *path, int mode, int flags),
     (directory, actual, mode, flags), -1)
WRAP(int, chdir, path, (const char *path), (actual), -1)

WRAP(DIR *, opendir, path, (const char *path), (actual), NULL)
WRAP(int, scandir, path,
     (const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (actual, list, filter, compare), -1)
WRAP(int, scandir64, path,
     (const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
      int (*compare)(const struct dirent64 **, const struct dirent64 **)),
     (actual, list, filter, compare), -1)

WRAP(ssize_t, readlink, path, (const char *path, char *to, size_t bytes), (actual, to, bytes), -1)
WRAP(ssize_t, readlinkat, path, (int directory, const char *path, char *to, size_t bytes),
     (directory, actual, to, bytes), -1)
WRAP(ssize_t, __readlink_chk, path, (const char *path, char *to, size_t bytes, size_t room),
     (actual, to, bytes, room), -1)
WRAP(ssize_t, __readlinkat_chk, path,
     (int directory, const char *path, char *to, size_t bytes, size_t room),
     (directory, actual, to, bytes, room), -1)
WRAP(char *, realpath, path, (const char *path, char *to), (actual, to), NULL)
WRAP(char *, __realpath_chk, path, (const char *path, char *to, size_t room), (actual, to, room),
     NULL)
WRAP(char *, canonicalize_file_name, path, (const char *path), (actual), NULL)
/* clang-format on */
