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
	const char *folder;
} redirections[] = {
	{ "/sys/class/infiniband_verbs", "/class/infiniband_verbs" },
	{ "/sys/class/infiniband", "/class/infiniband" },
	{ "/dev/infiniband", "/dev/infiniband" },
};

/* Returns path, or the redirected path in buffer. */
static const char *led(const char *path, char buffer[PATH_MAX])
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
		tree = getenv(VIEW_VARIABLE);
		if (!tree || tree[0] != '/' ||
		    snprintf(buffer, PATH_MAX, "%s%s%s", tree, redirections[i].folder,
			     path + length) >= PATH_MAX)
			return path;
		return buffer;
	}
	return path;
}

/* The next definition of the function: of the C library or another preloaded library. */
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
#define CALL(type, name, path, parameters, arguments, failed)				\
	EXPORT type name parameters;							\
	type name parameters								\
	{										\
		type (*real) parameters = (type (*) parameters)REAL(name);		\
		char buffer[PATH_MAX];							\
		const char *there = led(path, buffer);					\
		if (!real) {								\
			errno = ENOSYS;							\
			return failed;							\
		}									\
		return real arguments;							\
	}

/* The mode argument exists only if a file may be created. */
#define OPEN(name, first, pass)								\
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
		return real(pass led(path, buffer), flags, mode);			\
	}
#define NOTHING
#define DIRECTORY int directory,
#define PASS_DIRECTORY directory,
OPEN(open, NOTHING, NOTHING)
OPEN(open64, NOTHING, NOTHING)
OPEN(openat, DIRECTORY, PASS_DIRECTORY)
OPEN(openat64, DIRECTORY, PASS_DIRECTORY)
CALL(int, __open_2, path, (const char *path, int flags), (there, flags), -1)
CALL(int, __open64_2, path, (const char *path, int flags), (there, flags), -1)
CALL(int, __openat_2, path, (int directory, const char *path, int flags),
     (directory, there, flags), -1)
CALL(int, __openat64_2, path, (int directory, const char *path, int flags),
     (directory, there, flags), -1)
CALL(FILE *, fopen, path, (const char *path, const char *mode), (there, mode), NULL)
CALL(FILE *, fopen64, path, (const char *path, const char *mode), (there, mode), NULL)

CALL(int, stat, path, (const char *path, struct stat *status), (there, status), -1)
CALL(int, stat64, path, (const char *path, struct stat64 *status), (there, status), -1)
CALL(int, lstat, path, (const char *path, struct stat *status), (there, status), -1)
CALL(int, lstat64, path, (const char *path, struct stat64 *status), (there, status), -1)
CALL(int, fstatat, path, (int directory, const char *path, struct stat *status, int flags),
     (directory, there, status, flags), -1)
CALL(int, fstatat64, path, (int directory, const char *path, struct stat64 *status, int flags),
     (directory, there, status, flags), -1)
CALL(int, statx, path,
     (int directory, const char *path, int flags, unsigned int mask, struct statx *status),
     (directory, there, flags, mask, status), -1)
/*
 * The stat functions of programs built for glibc before 2.33.  dlsym() may not find them in later
 * releases; then the current functions are used, which are equivalent on 64-bit architectures.
 */
#define OLD_STAT(name, now, type)							\
	EXPORT int name(int version, const char *path, type *status);			\
	int name(int version, const char *path, type *status)				\
	{										\
		int (*old)(int, const char *, type *) =					\
			(int (*)(int, const char *, type *))REAL(name);			\
		char buffer[PATH_MAX];							\
		const char *there = led(path, buffer);					\
		return old ? old(version, there, status) : now(there, status);		\
	}
#define OLD_STAT_AT(name, now, type)							\
	EXPORT int name(int version, int directory, const char *path, type *status,	\
			int flags);							\
	int name(int version, int directory, const char *path, type *status, int flags)	\
	{										\
		int (*old)(int, int, const char *, type *, int) =			\
			(int (*)(int, int, const char *, type *, int))REAL(name);	\
		char buffer[PATH_MAX];							\
		const char *there = led(path, buffer);					\
		return old ? old(version, directory, there, status, flags) :		\
			     now(directory, there, status, flags);			\
	}
OLD_STAT(__xstat, stat, struct stat)
OLD_STAT(__xstat64, stat64, struct stat64)
OLD_STAT(__lxstat, lstat, struct stat)
OLD_STAT(__lxstat64, lstat64, struct stat64)
OLD_STAT_AT(__fxstatat, fstatat, struct stat)
OLD_STAT_AT(__fxstatat64, fstatat64, struct stat64)

CALL(int, access, path, (const char *path, int mode), (there, mode), -1)
CALL(int, euidaccess, path, (const char *path, int mode), (there, mode), -1)
CALL(int, eaccess, path, (const char *path, int mode), (there, mode), -1)
CALL(int, faccessat, path, (int directory, const char *path, int mode, int flags),
     (directory, there, mode, flags), -1)
CALL(int, chdir, path, (const char *path), (there), -1)

CALL(DIR *, opendir, path, (const char *path), (there), NULL)
CALL(int, scandir, path,
     (const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
      int (*compare)(const struct dirent **, const struct dirent **)),
     (there, list, filter, compare), -1)
CALL(int, scandir64, path,
     (const char *path, struct dirent64 ***list, int (*filter)(const struct dirent64 *),
      int (*compare)(const struct dirent64 **, const struct dirent64 **)),
     (there, list, filter, compare), -1)

CALL(ssize_t, readlink, path, (const char *path, char *to, size_t bytes), (there, to, bytes), -1)
CALL(ssize_t, readlinkat, path, (int directory, const char *path, char *to, size_t bytes),
     (directory, there, to, bytes), -1)
CALL(ssize_t, __readlink_chk, path, (const char *path, char *to, size_t bytes, size_t room),
     (there, to, bytes, room), -1)
CALL(ssize_t, __readlinkat_chk, path,
     (int directory, const char *path, char *to, size_t bytes, size_t room),
     (directory, there, to, bytes, room), -1)
CALL(char *, realpath, path, (const char *path, char *to), (there, to), NULL)
CALL(char *, __realpath_chk, path, (const char *path, char *to, size_t room), (there, to, room),
     NULL)
CALL(char *, canonicalize_file_name, path, (const char *path), (there), NULL)
/* clang-format on */
