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
#ifndef UROCE_ENGINE_LAW_H
#define UROCE_ENGINE_LAW_H

#include "qp.h"

/* What the kernel charges a socket beyond the payload of a packet in a burst, about. */
#define LAW_PACKET_OVERHEAD 116
#define LAW_FULL_PACKET (WIRE_MAX_MTU + LAW_PACKET_OVERHEAD)
/* Packets of 4 KB in bursts that the default socket buffer of 208 KB holds, as measured. */
#define LAW_DEFAULT_PACKETS 90
/* No window is cut below this number of packets (RFC 5681, section 3.1: two segments). */
#define LAW_MIN_PACKETS 2

/* All change req.cwnd, which the caller holds to its limit. */
struct cwnd_law {
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
extern const struct cwnd_law cwnd_laws[ENG_LAWS];

static inline bool law_is_of_networks(const struct eng_qp *qp)
{
	return qp->law == &cwnd_laws[ENG_LAW_NETWORK];
}

/* Weight of a packet of full size. */
static inline uint64_t law_packet_weight(const struct eng_qp *qp)
{
	return (uint64_t)qp->attr.mtu + LAW_PACKET_OVERHEAD;
}

/* Below this window, in packets, each packet asks for an ACK, or the wire would idle. */
#define LAW_CLOCKED_PACKETS 32
static inline bool law_is_clocked(const struct eng_qp *qp)
{
	return law_is_of_networks(qp) && qp->req.cwnd < LAW_CLOCKED_PACKETS * law_packet_weight(qp);
}

#endif
