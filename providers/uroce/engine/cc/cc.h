/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How the congestion window goes up and down: a table of laws, of which a QP has one.
 *
 * host     Nothing queues but the peer's socket buffer, which no other flow uses: a window that
 *          lost packets loses a quarter, and grows by four full packets for each acknowledged one.
 * network  Queues of routers, shared with others: half for a loss, and growth by one packet.  With
 *          ECT the window begins small and doubles until the first mark.  Then, if the peer's ACKs
 *          echo the marks (BECN), it is cut by half of the part that was marked of late, as DCTCP
 *          does (RFC 8257); else by a fifth for a CNP (RFC 8511).  Not below two packets.
 *
 * cwnd.c sees to it that a law cuts once for each window of PSNs (but see cuts_again), and to the
 * limit above.
 */
#ifndef UROCE_ENGINE_CC_CC_H
#define UROCE_ENGINE_CC_CC_H

#include "engine/qp_priv.h"

/* What the kernel charges a socket beyond the payload of a packet in a burst, about. */
#define CC_PACKET_OVERHEAD 116
#define CC_FULL_PACKET (WIRE_MAX_MTU + CC_PACKET_OVERHEAD)
/* Packets of 4 KB in bursts that the default socket buffer of 208 KB holds, as measured. */
#define CC_DEFAULT_PACKETS 90
/* No window is cut below this number of packets (RFC 5681, section 3.1: two segments). */
#define CC_MIN_PACKETS 2

/* All change req.cwnd, which the caller holds to its limit. */
struct cc_ops {
	/* cwnd is what a window begins with. */
	void (*start)(struct eng_qp *qp);
	/* Packets of this weight have been acknowledged. */
	void (*acked)(struct eng_qp *qp, uint64_t cost);
	void (*lost)(struct eng_qp *qp);
	/* A CNP has come; NULL: it means nothing. */
	void (*congested)(struct eng_qp *qp);
	/* lost() also for what has been sent again, and is lost again, in the same window. */
	bool cuts_again;
};
extern const struct cc_ops cc_ops_table[ENG_CC_ALGOS];

static inline bool cc_is_network(const struct eng_qp *qp)
{
	return qp->cc_ops == &cc_ops_table[ENG_CC_NETWORK];
}

/* Weight of a packet of full size. */
static inline uint64_t cc_packet_weight(const struct eng_qp *qp)
{
	return (uint64_t)qp->attr.mtu + CC_PACKET_OVERHEAD;
}

/* Below this window, in packets, each packet asks for an ACK, or the wire would idle. */
#define CC_ACK_EACH_PACKETS 32
static inline bool cc_acks_every_packet(const struct eng_qp *qp)
{
	return cc_is_network(qp) && qp->req.cwnd < CC_ACK_EACH_PACKETS * cc_packet_weight(qp);
}

#endif
