/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Last messages of this process: MADs that the broker sends if the process ends without having sent
 * them, so that peers notice the end of their connections.  They are stored in a memory file that
 * is shared with the broker, so that storing one needs no system call.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "broker/names.h"
#include "gsi_priv.h"
#include "link/shm/memfd.h"
#include <rdma/uroce-abi.h>

#define FILE_BYTES (UROCE_ABI_LAST_MESSAGES * sizeof(struct uroce_abi_last_message))

_Static_assert(UROCE_ABI_LAST_MESSAGES == GSI_LAST_MESSAGES, "the file has another size");
_Static_assert(sizeof(struct uroce_abi_last_message) == 304, "padding in the host ABI");

void gsi_last_open(struct gsi_last *last)
{
	last->fd = memfd_make("uroce-last", FILE_BYTES);
	if (last->fd < 0)
		return;
	last->entry = memfd_map(last->fd, FILE_BYTES, 0);
	if (!last->entry) {
		close(last->fd);
		last->fd = -1;
	}
	for (unsigned int i = 0; i < GSI_LAST_MESSAGES; i++)
		last->free[i] = (uint16_t)(GSI_LAST_MESSAGES - 1 - i);
	last->free_count = GSI_LAST_MESSAGES;
}

void gsi_last_close(struct gsi_last *last)
{
	if (last->fd < 0)
		return;
	munmap(last->entry, FILE_BYTES);
	close(last->fd);
}

int gsi_last_message_set(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES],
			 unsigned int *number)
{
	struct gsi_last *last = &gsi->last;
	struct uroce_abi_last_message *entry = NULL;

	if (gsi->progress->forked)
		return -EOWNERDEAD;
	if (last->fd < 0)
		return -EFBIG;
	pthread_mutex_lock(&gsi->lock);
	if (last->free_count) {
		*number = last->free[--last->free_count];
		entry = &last->entry[*number];
		entry->scope_id = path->scope_id;
		entry->traffic_class = path->traffic_class;
		memcpy(entry->sgid, path->sgid, sizeof(entry->sgid));
		memcpy(entry->dgid, path->dgid, sizeof(entry->dgid));
		memcpy(entry->mad, mad, sizeof(entry->mad));
		__atomic_store_n(&entry->valid, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&gsi->lock);
	return entry ? 0 : -ENOSPC;
}

void gsi_last_message_drop(struct gsi *gsi, unsigned int number)
{
	if (gsi->progress->forked)
		return;
	pthread_mutex_lock(&gsi->lock);
	__atomic_store_n(&gsi->last.entry[number].valid, 0, __ATOMIC_RELEASE);
	gsi->last.free[gsi->last.free_count++] = (uint16_t)number;
	pthread_mutex_unlock(&gsi->lock);
}

bool gsi_is_orphan(uint32_t qpn)
{
	int fd = names_lock_slot(qpn >> LINK_SLOT_SHIFT);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}
