/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Calls of librdmacm are redirected, however it was built; calls of other libraries are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redirect.h"

#define OUR_PATH "/dev/infiniband/rdma_cm"
#define OUR_FD 4711
#define OUR_ANSWER 17

static unsigned int closed;

static int our_open(const char *path, int flags, ...)
{
	return strcmp(path, OUR_PATH) ? open(path, flags) : OUR_FD;
}

static int our_fstat(int fd, struct stat *status)
{
	if (fd != OUR_FD)
		return fstat(fd, status);
	memset(status, 0, sizeof(*status));
	status->st_mode = S_IFCHR;
	return 0;
}

static ssize_t our_write(int fd, const void *bytes, size_t length)
{
	return fd == OUR_FD ? OUR_ANSWER : write(fd, bytes, length);
}

static int our_close(int fd)
{
	if (fd != OUR_FD)
		return close(fd);
	closed++;
	return 0;
}

/* Replaces the function of librdmacm/calls.c. */
uintptr_t redirect_find_hook(const char *name)
{
	const struct {
		const char *name;
		uintptr_t function;
	} ours[] = {
		{ "open", (uintptr_t)our_open },   { "open64", (uintptr_t)our_open },
		{ "fstat", (uintptr_t)our_fstat }, { "fstat64", (uintptr_t)our_fstat },
		{ "__fxstat", (uintptr_t)NULL },   { "write", (uintptr_t)our_write },
		{ "close", (uintptr_t)our_close },
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (!strcmp(ours[i].name, name))
			return ours[i].function;
	}
	return 0;
}

struct library {
	void *handle;
	int (*open)(const char *path);
	int (*is_device)(int fd);
	ssize_t (*write)(int fd, const void *bytes, size_t length);
	int (*close)(int fd);
	int (*call_close)(int fd);
};

static void load(const char *path, struct library *library)
{
	library->handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!library->handle)
		fail_msg("%s", dlerror());
	library->open = (__typeof__(library->open))dlsym(library->handle, "library_open");
	library->is_device =
		(__typeof__(library->is_device))dlsym(library->handle, "library_is_device");
	library->write = (__typeof__(library->write))dlsym(library->handle, "library_write");
	library->close = (__typeof__(library->close))dlsym(library->handle, "library_close");
	library->call_close =
		(__typeof__(library->call_close))dlsym(library->handle, "library_call_close");
	assert_true(library->open && library->is_device && library->write && library->close &&
		    library->call_close);
}

static void is_redirected(const struct library *library)
{
	int fd;

	assert_int_equal(library->open(OUR_PATH), OUR_FD);
	assert_int_equal(library->is_device(OUR_FD), 1);
	assert_int_equal(library->write(OUR_FD, "", 1), OUR_ANSWER);
	closed = 0;
	assert_int_equal(library->close(OUR_FD), 0);
	assert_int_equal(library->call_close(OUR_FD), 0);
	assert_int_equal(closed, 2);
	/* Calls for other files reach the C library. */
	fd = library->open("/dev/null");
	assert_uint_in_range(fd, 0, 1023);
	assert_int_equal(library->is_device(fd), 1);
	assert_int_equal(library->write(fd, "ab", 2), 2);
	assert_int_equal(library->close(fd), 0);
	assert_int_equal(library->close(fd), -1);
}

/* Returns the number of writable mappings of the file; with full RELRO, none contains the GOT. */
static unsigned int writable_mappings(const char *name)
{
	char line[512], rights[8];
	unsigned int count = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%*s %7s", rights) == 1 && strstr(line, name) && rights[1] == 'w')
			count++;
	}
	fclose(maps);
	return count;
}

static void redirected_however_it_was_built(void **state)
{
	static const char *const builds[] = { REDIRECT_LIBRARIES };
	struct library library;
	unsigned int writable;

	(void)state;
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		print_message("%s\n", builds[i]);
		load(builds[i], &library);
		assert_int_equal(library.open(OUR_PATH), -1);
		writable = writable_mappings(builds[i]);
		redirect_if_librdmacm((const void *)library.open);
		is_redirected(&library);
		/* A second call changes nothing, and protected pages are protected again. */
		redirect_if_librdmacm((const void *)library.close);
		is_redirected(&library);
		assert_int_equal(writable_mappings(builds[i]), writable);
		dlclose(library.handle);
	}
}

static void redirected_anew_when_it_is_loaded_anew(void **state)
{
	static const char *const builds[] = { REDIRECT_LIBRARIES };
	struct library library;

	(void)state;
	for (int i = 0; i < 3; i++) {
		load(builds[0], &library);
		assert_int_equal(library.open(OUR_PATH), -1);
		redirect_if_librdmacm((const void *)library.open);
		is_redirected(&library);
		dlclose(library.handle);
	}
}

static void others_are_left_alone(void **state)
{
	struct library library;

	(void)state;
	load(REDIRECT_OTHER, &library);
	redirect_if_librdmacm((const void *)library.open);
	redirect_if_librdmacm((const void *)others_are_left_alone);
	redirect_if_librdmacm(NULL);
	assert_int_equal(library.open(OUR_PATH), -1);
	assert_int_equal(library.write(OUR_FD, "", 1), -1);
	dlclose(library.handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redirected_however_it_was_built),
		cmocka_unit_test(redirected_anew_when_it_is_loaded_anew),
		cmocka_unit_test(others_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
