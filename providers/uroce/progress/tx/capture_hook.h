/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Capture hooks: all packets of this process to and from the link pass these functions, whether by
 * socket, shared memory or loopback.  Without a capture they cost one branch for each burst sent
 * and each packet received.
 */
#ifndef UROCE_PROGRESS_TX_CAPTURE_HOOK_H
#define UROCE_PROGRESS_TX_CAPTURE_HOOK_H

#include "capture/capture.h"
#include "link/link.h"
#include "progress/progress.h"

/* Kinds of sent packets. */
enum capture_tx_kind {
	CAPTURE_TX_RETRIED, /* if the link is full they are sent later, perhaps in another burst */
	CAPTURE_TX_ONCE,    /* if the link is full they are lost */
	CAPTURE_TX_CORRUPTED, /* as CAPTURE_TX_ONCE, and corrupted by fault injection */
	CAPTURE_TX_DROPPED,   /* not sent: dropped by fault injection */
	CAPTURE_TX_KINDS,
};

/* As tx_send(), which calls it if a capture is running. */
int tx_send_captured(struct capture *capture, struct link_peer *peer, uint32_t qpn,
		     enum capture_tx_kind kind, const struct iovec *pieces, unsigned int count,
		     unsigned int segment);

/* Sends as link_send() and captures the packets; qpn is the sending QP. */
static inline int tx_send(struct link_peer *peer, uint32_t qpn, enum capture_tx_kind kind,
			  const struct iovec *pieces, unsigned int count, unsigned int segment)
{
	struct capture *capture = capture_running();

	if (__builtin_expect(capture != NULL, 0))
		return tx_send_captured(capture, peer, qpn, kind, pieces, count, segment);
	return link_send(peer, pieces, count, segment);
}

/* Captures a packet of kind CAPTURE_TX_DROPPED. */
void capture_tx_dropped(struct link_peer *peer, uint32_t qpn, const uint8_t *bytes, size_t length);

/* A received datagram of batch, and its path. */
struct rx_datagram {
	const struct wire_path *path;
	const struct link_batch *batch;
	const uint8_t *bytes;
	size_t length;
	uint64_t *batch_time; /* timestamp of the batch, as in struct capture_packets */
};

/* Captures a datagram for a QP of this process; ip_id is its IPv4 ID. */
void capture_rx(struct capture *capture, const struct rx_datagram *datagram, uint16_t ip_id);
/*
 * Captures a datagram that was dropped, with the counter of the reason, or forwarded
 * (PROGRESS_COUNT_FORWARDED).  ip_id is the expected IPv4 ID: if the ICRC is wrong with it, an ID
 * that makes the ICRC right is captured instead.
 */
void capture_rx_dropped(struct capture *capture, const struct rx_datagram *datagram, uint16_t ip_id,
			enum progress_counter why);

#endif
