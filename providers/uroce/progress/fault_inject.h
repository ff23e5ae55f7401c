/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A bad network inside the process, for tests: between engine and link each packet of a burst meets
 * its fate (fault_config.h).  Packets to which nothing happens leave with their neighbours in one
 * call; the others go one by one, or not at all.  A packet whose place in its call is not that in
 * the burst gets another IPv4 identification, so its ICRC is computed anew; that of a corrupted
 * packet before it is corrupted.  Bursts are those of peers whose calls begin with identification
 * 0.
 *
 *   reorder  a packet is held until 1 to 3 later ones of the process have gone, at most
 *            FAULT_HOLD_NS
 *   delay    every packet waits that long, then leaves with the next turn (or by the helper)
 *
 * Any thread may call; a lock is inside, under which packets are sent, so that order is what fate
 * made it.
 */
#ifndef UROCE_PROGRESS_FAULT_INJECT_H
#define UROCE_PROGRESS_FAULT_INJECT_H

#include <sys/uio.h>

#include "engine/base/burst.h"
#include "fault_config.h"

#define FAULT_HOLD_NS 1000000
/* More waiting packets than this are lost, as in a network with finite buffers. */
#define FAULT_MAX_WAITING 16384

struct link_peer;
struct fault_injector;

/* Where packets are from and go to, which the injector hands on. */
struct fault_path {
	struct link_peer *peer;
	uint32_t qpn;
	bool corrupted;
};

struct fault_sink {
	/* As link_send(), but for errors. */
	void (*send)(void *arg, const struct fault_path *path, const struct iovec *pieces,
		     unsigned int count, unsigned int segment);
	/* One packet has been dropped. */
	void (*lost)(void *arg, const struct fault_path *path, const uint8_t *bytes,
		     uint32_t length);
	void (*count)(void *arg, enum progress_counter counter);
	void *arg;
};

/* 0 or -ENOMEM. */
int fault_open(struct fault_injector **injector, const struct fault_config *config,
	       const struct fault_sink *sink);
/* What still waits is lost. */
void fault_close(struct fault_injector *injector);

/* Send all packets of burst, from queue pair qpn, to peer.  The burst's bytes are not kept. */
void fault_send(struct fault_injector *injector, struct link_peer *peer, uint32_t qpn,
		const struct eng_burst *burst, uint64_t now);
/* Send what has waited long enough; true when something was sent. */
bool fault_release(struct fault_injector *injector, uint64_t now);
/* When fault_release() has to be called, or ENG_NEVER. */
uint64_t fault_deadline(const struct fault_injector *injector);
/* The peer is about to be closed: what waits for it is sent now. */
void fault_flush(struct fault_injector *injector, struct link_peer *peer);

#endif
