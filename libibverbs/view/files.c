/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST 4096	   /* maximum size of a sysfs file in bytes */
#define SCRATCH ".scratch" /* temporary file in the tree's root, which programs do not see */

int files_folder(int directory, const char *path)
{
	return mkdirat(directory, path, 0755) && errno != EEXIST ? -errno : 0;
}

static bool holds(int directory, const char *path, const char *text, size_t length)
{
	char now[LONGEST];
	int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t bytes;

	if (fd < 0)
		return false;
	bytes = read(fd, now, sizeof(now));
	close(fd);
	return bytes == (ssize_t)length && !memcmp(now, text, length);
}

int files_put(int directory, const char *path, const char *format, ...)
{
	char text[LONGEST];
	va_list arguments;
	ssize_t written;
	int fd, length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length < 0 || length >= LONGEST)
		return -EINVAL;
	if (holds(directory, path, text, (size_t)length))
		return 0;
	unlinkat(directory, SCRATCH, 0);
	fd = openat(directory, SCRATCH, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	written = write(fd, text, (size_t)length);
	close(fd);
	if (written != length)
		return -ENOSPC;
	return renameat(directory, SCRATCH, directory, path) ? -errno : 0;
}

int files_link(int directory, const char *path, const char *target)
{
	char now[PATH_MAX];
	ssize_t length = readlinkat(directory, path, now, sizeof(now));

	if (length >= 0 && (size_t)length == strlen(target) && !memcmp(now, target, (size_t)length))
		return 0;
	unlinkat(directory, SCRATCH, 0);
	if (symlinkat(target, directory, SCRATCH))
		return -errno;
	return renameat(directory, SCRATCH, directory, path) ? -errno : 0;
}

bool files_real_path(int directory, const char *name, char target[PATH_MAX])
{
	char self[64];
	struct stat status;
	ssize_t length;
	int fd;

	if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) || !S_ISLNK(status.st_mode))
		return false;
	fd = openat(directory, name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	length = readlink(self, target, PATH_MAX - 1);
	close(fd);
	if (length < 0)
		return false;
	target[length] = '\0';
	return true;
}
