/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of struct gsi.  Only gsi*.c include it.
 *
 * Locks: gsi.lock is never held where a turn is made or waited for; those of the link and of the
 * fault injector are inside of it; gsi.queue_lock is innermost, since the rx demux takes it
 * inside a turn.  No callback is called under any of them.
 */
#ifndef UROCE_PROGRESS_GSI_INTERNAL_H
#define UROCE_PROGRESS_GSI_INTERNAL_H

#include <string.h>

#include "gsi.h"
#include "instance.h"

enum {
	/* Paths to other hosts that are kept open. */
	GSI_PEERS = 64,
};

struct gsi_address {
	struct gsi_address *next;
	struct link_addr *addr;
	unsigned int users;
	uint8_t gid[16];
	uint32_t scope_id;
};

/* ---- a path to another host (gsi_send.c) ---- */

struct gsi_peer {
	struct gsi_address *address; /* NULL: empty */
	uint8_t dgid[16];
	uint32_t scope_id;
	uint8_t traffic_class;
	uint64_t used; /* the gsi's count of sends then */
	struct eng_path path;
};

/* ---- events of queue pairs (gsi_news.c) ---- */

/* Number of events that wait at most; where it is a first request, the RTU has to come then. */
#define GSI_NEWS_MAX 128

struct gsi_news {
	uint32_t qpn;
	bool credits_hidden; /* else its first request has come */
};

/* ---- last messages (gsi_last.c) ---- */

struct uroce_abi_last_message;

struct gsi_last {
	int fd; /* the memory file; -1: there is none */
	struct uroce_abi_last_message *entry;
	/* The numbers of free entries: the last one is used next. */
	uint16_t free[GSI_LAST_MESSAGES];
	unsigned int free_count;
};

struct gsi {
	struct progress *progress;
	struct gsi_hooks hooks;
	unsigned int users; /* under the lock in gsi.c */
	int watch_fd;	    /* names the watch of the helper thread; never readable */

	pthread_mutex_t lock;
	struct gsi_address *addresses;
	struct gsi_peer peer[GSI_PEERS];
	uint64_t sends;
	uint32_t psn;
	uint64_t deadline;	     /* the caller's */
	unsigned int broker_changes; /* that hooks.broker_changed was called for */
	struct gsi_last last;

	pthread_mutex_t queue_lock;
	struct gsi_mad *queue; /* GSI_QUEUE_MAX, a ring */
	unsigned int queue_first, queue_count;
	/* Of queue pairs; under queue_lock. */
	struct gsi_news news[GSI_NEWS_MAX];
	unsigned int news_count;
};

/* gsi_queue.c.  In the helper thread, without locks: the callbacks for what is queued. */
void gsi_queue_deliver(struct gsi *gsi);
/* By a thread that makes a turn: the helper, if it is not that one, has to come. */
void gsi_want_service_in_turn(struct progress *progress);

/* gsi_news.c: the callbacks for what has happened to queue pairs, without locks. */
void gsi_tell_news(struct gsi *gsi);

/* Caller holds lock. */
static inline struct gsi_address *gsi_address_find(const struct gsi *gsi, const uint8_t gid[16],
						   uint32_t scope_id)
{
	struct gsi_address *address = gsi->addresses;

	while (address && (address->scope_id != scope_id ||
			   memcmp(address->gid, gid, sizeof(address->gid)) != 0))
		address = address->next;
	return address;
}

/* gsi_send.c; caller holds lock. */
void gsi_close_peers(struct gsi *gsi, const struct gsi_address *address);

/* gsi_last.c. */
void gsi_last_open(struct gsi_last *last);
void gsi_last_close(struct gsi_last *last);

#endif
