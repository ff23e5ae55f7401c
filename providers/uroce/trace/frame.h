/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * From a captured frame to the UDP datagram inside of it: Ethernet with any VLAN tags, Linux's
 * cooked captures, the BSD loopback header, raw IP; IPv4 and IPv6.  Nothing is believed: each
 * length is held against the bytes that there are.
 */
#ifndef UROCE_TRACE_FRAME_H
#define UROCE_TRACE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "packet.h"
#include "wire/icrc.h"

struct frame {
	struct wire_path path;
	uint16_t ip_id;	      /* 0 for IPv6 */
	enum trace_way way;   /* cooked captures tell */
	const uint8_t *bytes; /* BTH and what follows, in the caller's buffer */
	uint32_t captured;    /* how many of the bytes are there */
	uint32_t length;      /* how many the packet had, ICRC included */
};

enum frame_verdict {
	FRAME_ROCE,	/* a datagram to port 4791 */
	FRAME_OTHER,	/* something else */
	FRAME_CUT,	/* RoCEv2 by what is there, but the snap length has cut off the BTH */
	FRAME_BROKEN,	/* lengths that contradict each other */
	FRAME_FRAGMENT, /* a fragment of a datagram */
	FRAME_VERDICTS,
};

/* link_type is one of libpcap's DLT_ values; false: frame_read() does not know it. */
int frame_link_known(int link_type);

/*
 * captured bytes of a frame that had length.  All of *frame is set with FRAME_ROCE and undefined
 * otherwise.
 */
enum frame_verdict frame_read(int link_type, const uint8_t *bytes, size_t captured, size_t length,
			      struct frame *frame);

#endif
