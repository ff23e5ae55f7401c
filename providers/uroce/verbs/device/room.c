/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Where devices are kept: at addresses that rise and are less than 2 GiB apart.  Until 2024
 * librdmacm takes the difference of two devices' addresses for an int when it sorts them, and
 * compares that list with the one before as if it were in the order of the addresses.  From
 * calloc(), threads get memory so far apart that the order may be another one; then librdmacm
 * drops devices that are there, when another one goes, and does not find them again.
 */
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/device.h"

/* For some thousand devices; no memory until it is used. */
#define ROOM (64u << 20)

static char *room;
static size_t used;

void *uroce_device_room(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bytes + page - 1) / page * page;
	char *place;

	if (!room) {
		room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			    0);
		if (room == MAP_FAILED)
			room = NULL;
	}
	place = room + used;
	if (!room || size > ROOM - used || mprotect(place, size, PROT_READ | PROT_WRITE))
		return calloc(1, bytes);
	used += size;
	return place;
}
