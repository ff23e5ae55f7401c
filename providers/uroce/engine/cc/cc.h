/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Congestion control algorithms: a table, of which a QP uses one row.
 *
 * ENG_CC_LOCAL (host): only the peer's socket buffer queues, and no other flow uses it.  A loss
 * takes a quarter of the window, and each acknowledged window adds four full packets.
 *
 * ENG_CC_NETWORK: routers queue, shared with other flows.  A loss takes half, and each acknowledged
 * window adds one packet.  With ECT the window starts small and doubles until the first mark.  If
 * the peer's ACKs echo marks (BECN), it is then reduced by half of the marked fraction, as DCTCP
 * does (RFC 8257), otherwise by a fifth for each CNP (RFC 8511).
 *
 * The minimum of both is two packets.  cwnd.c ensures that the window is reduced once for each
 * window of PSNs (but see cuts_again), and enforces the limit.
 */
#ifndef UROCE_ENGINE_CC_CC_H
#define UROCE_ENGINE_CC_CC_H

#include "engine/qp_priv.h"

/* Approximate number of bytes that the kernel charges a socket for a packet beyond its payload. */
#define CC_PACKET_OVERHEAD 116
#define CC_FULL_PACKET (WIRE_MAX_MTU + CC_PACKET_OVERHEAD)
/* Number of 4 KB packets that the default socket buffer of 208 KB holds in bursts, as measured. */
#define CC_DEFAULT_PACKETS 90
/* No window is cut below this number of packets (RFC 5681, section 3.1: two segments). */
#define CC_MIN_PACKETS 2

/* All functions change req.cwnd; the caller enforces the limit. */
struct cc_ops {
	/* Sets cwnd to the initial window. */
	void (*start)(struct eng_qp *qp);
	/*
	 * Packets of this weight have been acknowledged: increases cwnd, or reduces it by echoed
	 * marks.
	 */
	void (*acked)(struct eng_qp *qp, uint64_t cost);
	void (*lost)(struct eng_qp *qp);
	/* A CNP has arrived; NULL: CNPs are ignored. */
	void (*congested)(struct eng_qp *qp);
	/* lost() is also called for retransmitted packets that are lost again in the same window */
	bool cuts_again;
};
extern const struct cc_ops cc_ops_table[ENG_CC_ALGOS];

static inline bool cc_is_network(const struct eng_qp *qp)
{
	return qp->cc_ops == &cc_ops_table[ENG_CC_NETWORK];
}

/* Weight in bytes of a packet of full size. */
static inline uint64_t cc_packet_weight(const struct eng_qp *qp)
{
	return (uint64_t)qp->attr.mtu + CC_PACKET_OVERHEAD;
}

/*
 * While the window of a network is below this number of packets, each packet has AckReq; otherwise
 * the link would be idle until an ACK arrives.
 */
#define CC_ACK_EACH_PACKETS 32
static inline bool cc_acks_every_packet(const struct eng_qp *qp)
{
	return cc_is_network(qp) && qp->req.cwnd < CC_ACK_EACH_PACKETS * cc_packet_weight(qp);
}

#endif
