/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Simulates a bad network inside the process, for tests: applies faults (fault_config.h) to the
 * packets of a burst between engine and link.  Packets without faults are sent together with their
 * neighbours; others are sent individually, or dropped.  A packet whose index in its call differs
 * from that in the burst gets another IPv4 ID, so its ICRC is recomputed (before the packet is
 * corrupted).  Bursts must be those of peers whose calls begin with IPv4 ID 0.
 *
 *   reorder  a packet is held until 1 to 3 later ones of the process have been sent, at most
 *            FAULT_HOLD_NS
 *   delay    every packet waits, then is sent by the next cycle (or the progress thread)
 *
 * Any thread may call; packets are sent under a lock inside, to keep the order.
 */
#ifndef UROCE_PROGRESS_FAULT_FAULT_INJECT_H
#define UROCE_PROGRESS_FAULT_FAULT_INJECT_H

#include <sys/uio.h>

#include "engine/base/burst.h"
#include "fault_config.h"

#define FAULT_HOLD_NS 1000000
/* Maximum number of waiting packets; more are dropped, as in a network with finite buffers. */
#define FAULT_MAX_WAITING 16384

struct link_peer;
struct fault_injector;

/* Origin and destination of packets; passed through by the injector. */
struct fault_path {
	struct link_peer *peer;
	uint32_t qpn;
	bool corrupted;
};

struct fault_sink {
	/* As link_send(), but without reporting errors. */
	void (*send)(void *arg, const struct fault_path *path, const struct iovec *pieces,
		     unsigned int count, unsigned int segment);
	/* Called for each dropped packet. */
	void (*lost)(void *arg, const struct fault_path *path, const uint8_t *bytes,
		     uint32_t length);
	void (*count)(void *arg, enum progress_counter counter);
	void *arg;
};

/* Returns 0 or -ENOMEM. */
int fault_open(struct fault_injector **injector, const struct fault_config *config,
	       const struct fault_sink *sink);
/* Drops the packets that still wait. */
void fault_close(struct fault_injector *injector);

/*
 * Sends all packets of burst, from QP qpn, to peer.  The burst's buffers may be reused after
 * return.
 */
void fault_send(struct fault_injector *injector, struct link_peer *peer, uint32_t qpn,
		const struct eng_burst *burst, uint64_t now);
/* Sends the packets that are due; returns true if there were any. */
bool fault_release(struct fault_injector *injector, uint64_t now);
/* Returns the time at which fault_release() must be called, or ENG_NEVER. */
uint64_t fault_deadline(const struct fault_injector *injector);
/* Sends the packets that wait for peer, which is about to be closed. */
void fault_flush(struct fault_injector *injector, struct link_peer *peer);

#endif
