/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dropin.h"

#define CHARACTER_DEVICE "/dev/infiniband/rdma_cm"

static const struct uroce_cm_dev_ops *get_channel_ops(void)
{
	const struct uroce_dropin_ops *provider = dropin_provider();

	return provider ? provider->cm_dev_ops() : NULL;
}

/* Returns true if path is the rdma_cm device and uroce's connection manager serves it. */
static bool is_rdma_cm(const char *path)
{
	return path && !strcmp(path, CHARACTER_DEVICE) && get_channel_ops();
}

static bool may_create(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

static int hook_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;

	if (is_rdma_cm(path))
		return get_channel_ops()->open();
	if (may_create(flags)) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	return open(path, flags, mode);
}

static int hook_openat(int directory, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list arguments;

	if (is_rdma_cm(path))
		return get_channel_ops()->open();
	if (may_create(flags)) {
		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	return openat(directory, path, flags, mode);
}

/* _FORTIFY_SOURCE compiles an open() without mode to __open_2(). */
static int hook_open_2(const char *path, int flags)
{
	return hook_open(path, flags);
}

static bool is_channel(int fd)
{
	return get_channel_ops() && get_channel_ops()->owns(fd);
}

/*
 * Reports a character device, with the number of the kernel's rdma_cm device if there is one:
 * librdmacm accepts no other file.
 */
static int hook_fstat(int fd, struct stat *status)
{
	struct stat kernels;

	if (!is_channel(fd))
		return fstat(fd, status);
	memset(status, 0, sizeof(*status));
	status->st_mode = S_IFCHR | S_IRUSR | S_IWUSR;
	if (!stat(CHARACTER_DEVICE, &kernels))
		status->st_rdev = kernels.st_rdev;
	return 0;
}

/* fstat() of programs built for glibc before 2.33. */
static int hook_fxstat(int version, int fd, struct stat *status)
{
	(void)version;
	return hook_fstat(fd, status);
}

static ssize_t hook_write(int fd, const void *bytes, size_t length)
{
	const struct uroce_cm_dev_ops *ours = get_channel_ops();
	ssize_t result;

	if (ours && ours->write(fd, bytes, length, &result))
		return result;
	return write(fd, bytes, length);
}

static int hook_close(int fd)
{
	const struct uroce_cm_dev_ops *ours = get_channel_ops();

	if (ours && ours->close(fd))
		return 0;
	return close(fd);
}

/* On 64-bit architectures off_t and off64_t are the same. */
_Static_assert(sizeof(off_t) == 8, "open and open64 are the same call");

static const struct {
	const char *name;
	uintptr_t function;
} hooks[] = {
	{ "open", (uintptr_t)hook_open },	{ "open64", (uintptr_t)hook_open },
	{ "__open_2", (uintptr_t)hook_open_2 }, { "__open64_2", (uintptr_t)hook_open_2 },
	{ "openat", (uintptr_t)hook_openat },	{ "openat64", (uintptr_t)hook_openat },
	{ "fstat", (uintptr_t)hook_fstat },	{ "fstat64", (uintptr_t)hook_fstat },
	{ "__fxstat", (uintptr_t)hook_fxstat }, { "__fxstat64", (uintptr_t)hook_fxstat },
	{ "write", (uintptr_t)hook_write },	{ "close", (uintptr_t)hook_close },
};

uintptr_t redirect_find_hook(const char *name)
{
	for (size_t i = 0; i < sizeof(hooks) / sizeof(hooks[0]); i++) {
		if (!strcmp(hooks[i].name, name))
			return hooks[i].function;
	}
	return 0;
}
