/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* A library with the name of librdmacm, built in several ways for redirect_test.c */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int library_open(const char *path);
int library_is_device(int fd);
ssize_t library_write(int fd, const void *bytes, size_t length);
int library_close(int fd);
int library_call_close(int fd);

int library_open(const char *path)
{
	return open(path, O_RDWR | O_CLOEXEC);
}

int library_is_device(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? -1 : S_ISCHR(status.st_mode);
}

ssize_t library_write(int fd, const void *bytes, size_t length)
{
	return write(fd, bytes, length);
}

int library_close(int fd)
{
	return close(fd);
}

/*
 * Calls an exported function of the library itself; with -Bsymbolic-functions that call needs no
 * slot in the GOT.
 */
int library_call_close(int fd)
{
	return library_close(fd);
}
