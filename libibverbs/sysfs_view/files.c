/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES 4096  /* maximum size of a sysfs file in bytes */
#define TEMP_NAME ".scratch" /* temporary file in the tree's root, which programs do not see */

int files_mkdir(int directory, const char *path)
{
	return mkdirat(directory, path, 0755) && errno != EEXIST ? -errno : 0;
}

static bool file_has_text(int directory, const char *path, const char *text, size_t length)
{
	char current[FILE_MAX_BYTES];
	int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t bytes;

	if (fd < 0)
		return false;
	bytes = read(fd, current, sizeof(current));
	close(fd);
	return bytes == (ssize_t)length && !memcmp(current, text, length);
}

int files_write(int directory, const char *path, const char *format, ...)
{
	char text[FILE_MAX_BYTES];
	va_list arguments;
	ssize_t written;
	int fd, length;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (length < 0 || length >= FILE_MAX_BYTES)
		return -EINVAL;
	if (file_has_text(directory, path, text, (size_t)length))
		return 0;
	unlinkat(directory, TEMP_NAME, 0);
	fd = openat(directory, TEMP_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	written = write(fd, text, (size_t)length);
	close(fd);
	if (written != length)
		return -ENOSPC;
	return renameat(directory, TEMP_NAME, directory, path) ? -errno : 0;
}

int files_symlink(int directory, const char *path, const char *target)
{
	char current[PATH_MAX];
	ssize_t length = readlinkat(directory, path, current, sizeof(current));

	if (length >= 0 && (size_t)length == strlen(target) &&
	    !memcmp(current, target, (size_t)length))
		return 0;
	unlinkat(directory, TEMP_NAME, 0);
	if (symlinkat(target, directory, TEMP_NAME))
		return -errno;
	return renameat(directory, TEMP_NAME, directory, path) ? -errno : 0;
}

bool files_resolve_link(int directory, const char *name, char target[PATH_MAX])
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
