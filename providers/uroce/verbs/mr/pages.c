/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "mr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

struct pages {
	uintptr_t start;
	size_t bytes;
	size_t size; /* of a page */
};

static struct pages page_range(const void *addr, size_t length)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)addr & ~(size - 1);

	return (struct pages){
		.start = start,
		.bytes = ((uintptr_t)addr + length - start + size - 1) & ~(size - 1),
		.size = size,
	};
}

/* Returns 0 if all pages of the bytes are mapped, else EFAULT.  Does not fault pages in. */
static int check_mapped(const void *addr, size_t length)
{
	struct pages pages = page_range(addr, length);
	unsigned char state[512];

	while (pages.bytes) {
		size_t step = pages.bytes;

		if (step > sizeof(state) * pages.size)
			step = sizeof(state) * pages.size;
		if (mincore((void *)pages.start, step, state))
			return EFAULT;
		pages.start += step;
		pages.bytes -= step;
	}
	return 0;
}

int uroce_memory_check(const void *addr, size_t length, bool writable)
{
	struct pages pages = page_range(addr, length);
	int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	int result;

	/*
	 * With length 0, madvise() reports whether the kernel supports the advice.  Kernels before
	 * 5.14 do not; there, only check that the pages are mapped.
	 */
	if (madvise((void *)pages.start, 0, advice))
		return check_mapped(addr, length);
	do
		result = madvise((void *)pages.start, pages.bytes, advice);
	while (result && (errno == EINTR || errno == EAGAIN));
	/*
	 * ENOMEM: not mapped; EINVAL: no permission, or device memory.  Pinning fails in these
	 * cases as well.
	 */
	return result ? EFAULT : 0;
}

bool uroce_memory_is_file(const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr, end = at + length;
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t from, to;
	unsigned long inode;
	char sharing;

	if (!maps)
		return false;
	/* proc(5): address range, permissions, offset, device, inode and path; in ascending order.
	 */
	while (at < end && fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %*3c%c %*s %*s %lu%*[^\n]",
				  &from, &to, &sharing, &inode) == 4) {
		if (to <= at)
			continue;
		if (from > at || sharing != 's' || !inode)
			break;
		at = to;
	}
	fclose(maps);
	return at >= end;
}

int uroce_memory_sync(const void *addr, size_t length)
{
	struct pages pages = page_range(addr, length);

	return msync((void *)pages.start, pages.bytes, MS_SYNC) ? errno : 0;
}
