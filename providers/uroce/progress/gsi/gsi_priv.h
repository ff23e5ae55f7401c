/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Private part of struct gsi, for gsi*.c only.
 *
 * Locks: gsi.lock is never held while a cycle is run or waited for; the locks of the link and of
 * the fault injector are inside it; gsi.queue_lock is innermost, since the receive demultiplexer
 * takes it during a cycle.  Callbacks are called with none of them held.
 */
#ifndef UROCE_PROGRESS_GSI_GSI_PRIV_H
#define UROCE_PROGRESS_GSI_GSI_PRIV_H

#include <string.h>

#include "gsi.h"
#include "progress/progress_priv.h"

enum {
	/* Number of paths to other hosts that are kept open. */
	GSI_PEERS = 64,
};

struct gsi_address {
	struct gsi_address *next;
	struct link_addr *addr;
	unsigned int users;
	uint8_t gid[16];
	uint32_t scope_id;
};

/* ---- paths to other hosts (gsi_tx.c) ---- */

struct gsi_peer {
	struct gsi_address *address; /* NULL: unused */
	uint8_t dgid[16];
	uint32_t scope_id;
	uint8_t traffic_class;
	uint64_t last_used; /* value of gsi.sends at the last use */
	struct eng_path path;
};

/* ---- events of QPs (gsi_qp_event.c) ---- */

/*
 * Maximum number of events that wait; more are dropped.  If that of a first request is dropped,
 * only the RTU can establish the connection.
 */
#define GSI_QP_EVENTS_MAX 128

struct gsi_qp_event {
	uint32_t qpn;
	bool credits_hidden; /* false: the first request has been received */
};

/* ---- last messages (gsi_last.c) ---- */

struct uroce_abi_last_message;

struct gsi_last {
	int fd; /* memory file; -1: none */
	struct uroce_abi_last_message *entry;
	/* stack of the numbers of free entries */
	uint16_t free[GSI_LAST_MESSAGES];
	unsigned int free_count;
};

struct gsi {
	struct progress *progress;
	struct gsi_hooks hooks;
	unsigned int users; /* references; under the lock in gsi.c */
	int watch_fd;	    /* identifies the watch of the progress thread; never readable */

	pthread_mutex_t lock;
	struct gsi_address *addresses;
	struct gsi_peer peer[GSI_PEERS];
	uint64_t sends;
	uint32_t psn;
	uint64_t deadline;	     /* set by the caller */
	unsigned int broker_changes; /* link_broker_changes() at the last check */
	struct gsi_last last;

	pthread_mutex_t queue_lock;
	struct gsi_mad *queue; /* ring of GSI_QUEUE_MAX entries */
	unsigned int queue_first, queue_count;
	/* Events of QPs; under queue_lock. */
	struct gsi_qp_event qp_event[GSI_QP_EVENTS_MAX];
	unsigned int qp_event_count;
};

/* gsi_rxq.c: calls the callbacks for queued MADs.  In the progress thread, without locks. */
void gsi_queue_deliver(struct gsi *gsi);
/* Makes the progress thread run the watch callback soon.  Caller runs the cycle. */
void gsi_kick(struct progress *progress);

/* gsi_qp_event.c: calls the callbacks for events of QPs, without locks. */
void gsi_deliver_qp_events(struct gsi *gsi);

/* Returns the entry of an address, or NULL.  Caller holds gsi.lock. */
static inline struct gsi_address *gsi_address_find(const struct gsi *gsi, const uint8_t gid[16],
						   uint32_t scope_id)
{
	struct gsi_address *address = gsi->addresses;

	while (address && (address->scope_id != scope_id ||
			   memcmp(address->gid, gid, sizeof(address->gid)) != 0))
		address = address->next;
	return address;
}

/* gsi_tx.c: closes the paths from an address.  Caller holds gsi.lock. */
void gsi_close_peers(struct gsi *gsi, const struct gsi_address *address);

/* gsi_last.c: creates or releases the memory file. */
void gsi_last_open(struct gsi_last *last);
void gsi_last_close(struct gsi_last *last);

#endif
