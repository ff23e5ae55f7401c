/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Finds the UDP datagram in a captured frame: Ethernet with any VLAN tags, Linux cooked captures,
 * BSD loopback, raw IP; IPv4 and IPv6.  Input is untrusted: each length is checked against the
 * captured bytes.
 */
#ifndef UROCE_TRACE_INPUT_FRAME_H
#define UROCE_TRACE_INPUT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "trace/packet.h"
#include "wire/icrc.h"

struct frame {
	struct wire_path path;
	uint16_t ip_id;	      /* IPv4 ID; 0 for IPv6 */
	enum trace_way way;   /* known in Linux cooked captures only */
	const uint8_t *bytes; /* BTH and what follows, in the caller's buffer */
	uint32_t captured;    /* number of captured bytes */
	uint32_t length;      /* length of the packet, including ICRC */
};

enum frame_verdict {
	FRAME_ROCE,	/* datagram to port 4791 */
	FRAME_OTHER,	/* other protocol */
	FRAME_CUT,	/* truncated before the end of the BTH, possibly RoCEv2 */
	FRAME_BROKEN,	/* inconsistent lengths */
	FRAME_FRAGMENT, /* IP fragment */
	FRAME_VERDICTS,
};

/* Returns true if frame_read() supports this link type (libpcap's DLT_*). */
int frame_link_known(int link_type);

/*
 * Parses the captured bytes of a frame of the given length.  *frame is valid only if FRAME_ROCE is
 * returned.
 */
enum frame_verdict frame_read(int link_type, const uint8_t *bytes, size_t captured, size_t length,
			      struct frame *frame);

#endif
