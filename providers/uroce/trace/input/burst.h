/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Splits a datagram into packets.  A sender may pass a burst of packets to the kernel in one call
 * (UDP_SEGMENT), and the receiving kernel may coalesce them (GRO); a capture in between shows one
 * long datagram.  Its packets have the same length, except that the last may be shorter.  Unless
 * the datagram is one valid packet, that length is the smallest for which the first packet has a
 * correct ICRC and the next one begins with a BTH to the same QP.
 */
#ifndef UROCE_TRACE_INPUT_BURST_H
#define UROCE_TRACE_INPUT_BURST_H

#include <stdbool.h>

#include "frame.h"
#include "wire/packet.h"

/* One packet of a datagram. */
struct burst_packet {
	struct wire_packet wire;
	uint32_t captured;   /* captured bytes of the payload; truncated by the snap length */
	uint64_t hash;	     /* see struct trace_packet */
	bool icrc_is_wrong;  /* checked and wrong */
	bool icrc_unchecked; /* not checked, as the packet was truncated */
};

/*
 * Calls each() for every packet of the datagram in order, counting part from 0, and returns their
 * number.  After a malformed packet it stops and sets *error.  Sets *lost if packets are missing,
 * as the snap length has truncated a burst or a later part is malformed.
 */
unsigned int burst_split(const struct frame *frame,
			 void (*each)(void *context, const struct burst_packet *packet,
				      unsigned int part),
			 void *context, enum wire_error *error, bool *lost);

#endif
