/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * From a datagram to its packets.  A sender may hand the kernel a burst of packets in one piece
 * (UDP_SEGMENT), and a receiver's kernel may join them (GRO): captured in between, a burst is one
 * long datagram.  Its packets have one length, but for the last, which may be shorter; that length
 * is the one at which each piece begins with a BTH to the same queue pair and ends with a right
 * ICRC.
 */
#ifndef UROCE_TRACE_BURST_H
#define UROCE_TRACE_BURST_H

#include <stdbool.h>

#include "frame.h"
#include "wire/packet.h"

/* One packet of a datagram. */
struct burst_packet {
	struct wire_packet wire;
	uint32_t captured;   /* of the payload, in bytes: the snap length may have cut it */
	uint64_t hash;	     /* see struct trace_packet */
	bool icrc_is_wrong;  /* false also when it could not be checked */
	bool icrc_unchecked; /* the packet was not captured whole */
};

/*
 * Calls each() for every packet of the datagram, in order, with parts 0, 1, 2 ...; returns how many
 * there were, 0 when the first is none (*error then says why).  *lost is set to true when packets
 * of a burst could not be told apart, since the snap length has cut the burst.
 */
unsigned int burst_split(const struct frame *frame,
			 void (*each)(void *context, const struct burst_packet *packet,
				      unsigned int part),
			 void *context, enum wire_error *error, bool *lost);

#endif
