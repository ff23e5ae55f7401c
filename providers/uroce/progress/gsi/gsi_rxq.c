/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue of MADs received for queue pair 1: the cycle adds them, the progress thread delivers them.
 */
#include <string.h>

#include "gsi_priv.h"
#include "gsi_progress.h"
#include "wire/packet.h"

enum {
	/* Maximum number of deliveries before the progress thread does other work. */
	DELIVERIES_MAX = 256,
};

static void request_service(struct progress *progress)
{
	atomic_store_explicit(&progress->gsi_wakeup.pending, true, memory_order_release);
}

/*
 * Called during a cycle.  The progress thread need not be woken in its own cycles, since it checks
 * the flag after them.
 */
void gsi_kick(struct progress *progress)
{
	request_service(progress);
	if (!pthread_equal(pthread_self(), progress->wakeup.thread))
		wakeup_thread(progress);
}

static void enqueue_mad(struct gsi *gsi, const struct gsi_mad *mad)
{
	bool room;

	pthread_mutex_lock(&gsi->queue_lock);
	room = gsi->queue_count < GSI_QUEUE_MAX;
	if (room)
		gsi->queue[(gsi->queue_first + gsi->queue_count++) % GSI_QUEUE_MAX] = *mad;
	pthread_mutex_unlock(&gsi->queue_lock);
	if (!room)
		count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_OVERFLOW);
	request_service(gsi->progress);
}

void gsi_rx(struct progress *progress, const struct wire_packet *packet,
	    const struct link_batch *batch, uint64_t now)
{
	static const enum gsi_match reasons[] = {
		[LINK_MAD_OWN] = GSI_MATCH_LOCAL,
		[LINK_MAD_ANY] = GSI_MATCH_BROADCAST,
		[LINK_MAD_NONE] = GSI_MATCH_UNOWNED,
	};
	struct gsi_mad mad = { .when = now, .reason = reasons[batch->reason] };

	memcpy(mad.bytes, packet->payload, sizeof(mad.bytes));
	memcpy(mad.src, batch->src, sizeof(mad.src));
	memcpy(mad.dst, link_addr_gid(batch->addr), sizeof(mad.dst));
	mad.scope_id = link_addr_scope(batch->addr);
	enqueue_mad(progress->gsi, &mad);
	gsi_kick(progress);
}

static bool take_mad(struct gsi *gsi, struct gsi_mad *mad)
{
	bool any;

	pthread_mutex_lock(&gsi->queue_lock);
	any = gsi->queue_count > 0;
	if (any) {
		*mad = gsi->queue[gsi->queue_first];
		gsi->queue_first = (gsi->queue_first + 1) % GSI_QUEUE_MAX;
		gsi->queue_count--;
	}
	pthread_mutex_unlock(&gsi->queue_lock);
	return any;
}

void gsi_queue_deliver(struct gsi *gsi)
{
	struct gsi_mad mad;

	for (unsigned int i = 0; i < DELIVERIES_MAX; i++) {
		if (!take_mad(gsi, &mad))
			return;
		count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_RECEIVED);
		if (mad.reason == GSI_MATCH_UNOWNED)
			count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_NO_OWNER);
		gsi->hooks.receive(gsi->hooks.arg, &mad);
	}
	request_service(gsi->progress);
}
