/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory for devices, at increasing addresses that are less than 2 GiB apart.  Until 2024,
 * librdmacm sorted devices by the difference of their addresses, converted to int, and then
 * compared that list with the previous one as if it were in the order of the addresses.  calloc()
 * in different threads returns addresses so far apart that the orders can differ; librdmacm then
 * drops existing devices when another one disappears, and does not find them again.
 */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

/* Address space for some thousand devices; it takes no memory until it is used. */
#define DEVICE_MEMORY_BYTES (64u << 20)

static char *device_memory;
static size_t device_memory_used;

void *uroce_device_alloc(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
	char *place;

	if (!device_memory) {
		device_memory = mmap(NULL, DEVICE_MEMORY_BYTES, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (device_memory == MAP_FAILED)
			device_memory = NULL;
	}
	place = device_memory + device_memory_used;
	if (!device_memory || size > DEVICE_MEMORY_BYTES - device_memory_used ||
	    mprotect(place, size, PROT_READ | PROT_WRITE))
		return calloc(1, bytes);
	device_memory_used += size;
	return place;
}
