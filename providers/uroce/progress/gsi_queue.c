/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What has come for queue pair 1: the turn queues it, the helper thread hands it out. */
#include <string.h>

#include "gsi_internal.h"
#include "gsi_service.h"
#include "wire/packet.h"

enum {
	/* Then others have the helper's attention. */
	DELIVERIES_MAX = 256,
};

static void want_service(struct progress *progress)
{
	atomic_store_explicit(&progress->gsi_wakeup.work, true, memory_order_release);
}

/* In a turn.  The helper looks after its own turns. */
void gsi_want_service_in_turn(struct progress *progress)
{
	want_service(progress);
	if (!pthread_equal(pthread_self(), progress->wakeup.thread))
		wakeup_helper(progress);
}

void gsi_enqueue(struct gsi *gsi, const struct gsi_entry *entry)
{
	bool room;

	pthread_mutex_lock(&gsi->queue_lock);
	room = gsi->queue_count < GSI_QUEUE_MAX;
	if (room)
		gsi->queue[(gsi->queue_first + gsi->queue_count++) % GSI_QUEUE_MAX] = *entry;
	pthread_mutex_unlock(&gsi->queue_lock);
	if (!room)
		count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_OVERFLOW);
	want_service(gsi->progress);
}

void gsi_admit(struct progress *progress, const struct wire_packet *packet,
	       const struct link_batch *batch, uint64_t now)
{
	struct gsi_entry entry = { .came = GSI_CAME_HERE, .mad.when = now };

	memcpy(entry.mad.bytes, packet->payload, sizeof(entry.mad.bytes));
	memcpy(entry.mad.src, batch->src, sizeof(entry.mad.src));
	memcpy(entry.mad.dst, link_addr_gid(batch->addr), sizeof(entry.mad.dst));
	entry.mad.scope_id = link_addr_scope(batch->addr);
	gsi_enqueue(progress->gsi, &entry);
	gsi_want_service_in_turn(progress);
}

static bool take(struct gsi *gsi, struct gsi_entry *entry)
{
	bool any;

	pthread_mutex_lock(&gsi->queue_lock);
	any = gsi->queue_count > 0;
	if (any) {
		*entry = gsi->queue[gsi->queue_first];
		gsi->queue_first = (gsi->queue_first + 1) % GSI_QUEUE_MAX;
		gsi->queue_count--;
	}
	pthread_mutex_unlock(&gsi->queue_lock);
	return any;
}

/* Is it for this process?  Else it has been handed on. */
static bool sort(struct gsi *gsi, struct gsi_entry *entry)
{
	struct gsi_address *address;
	bool here = entry->came == GSI_CAME_HANDED;

	if (here)
		return true;
	pthread_mutex_lock(&gsi->lock);
	address = gsi_address_find(gsi, entry->mad.dst, entry->mad.scope_id);
	if (address)
		here = gsi_address_route(address, &entry->mad, &entry->mad.reason);
	else
		count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_UNHEARD);
	pthread_mutex_unlock(&gsi->lock);
	return here;
}

void gsi_queue_deliver(struct gsi *gsi)
{
	struct gsi_entry entry;

	for (unsigned int i = 0; i < DELIVERIES_MAX; i++) {
		atomic_store(&gsi->delivering, true);
		if (!take(gsi, &entry)) {
			atomic_store(&gsi->delivering, false);
			return;
		}
		if (!sort(gsi, &entry))
			continue;
		count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_RECEIVED);
		gsi->hooks.receive(gsi->hooks.arg, &entry.mad);
	}
	want_service(gsi->progress);
}

bool gsi_queue_is_idle(struct gsi *gsi)
{
	bool idle;

	/* In this order: it is taken from the queue when it is in hand. */
	pthread_mutex_lock(&gsi->queue_lock);
	idle = gsi->queue_count == 0;
	pthread_mutex_unlock(&gsi->queue_lock);
	return idle && !atomic_load(&gsi->delivering);
}
