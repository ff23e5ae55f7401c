/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The one place at which packets of this process pass by on their way to the link and from it, be
 * it a socket, shared memory or this process again: the capture sees them here.  Without a capture
 * all of it is one branch for each burst sent and for each packet received.
 */
#ifndef UROCE_PROGRESS_TAP_H
#define UROCE_PROGRESS_TAP_H

#include "capture/capture.h"
#include "link/link.h"
#include "progress.h"

/* What is sent. */
enum tap_kind {
	TAP_AGAIN,     /* when the link is full it will be sent later, perhaps in another burst */
	TAP_ONCE,      /* when the link is full it is lost */
	TAP_CORRUPTED, /* the same, and fault injection has changed it */
	TAP_DROPPED,   /* not sent: fault injection has taken it out */
	TAP_KINDS,
};

/* For those below, and for when it is known that there is a capture. */
int tap_send_captured(struct capture *capture, struct link_peer *peer, uint32_t qpn,
		      enum tap_kind kind, const struct iovec *pieces, unsigned int count,
		      unsigned int segment);

/* As link_send(); qpn is the queue pair that sends. */
static inline int tap_send(struct link_peer *peer, uint32_t qpn, enum tap_kind kind,
			   const struct iovec *pieces, unsigned int count, unsigned int segment)
{
	struct capture *capture = capture_on();

	if (__builtin_expect(capture != NULL, 0))
		return tap_send_captured(capture, peer, qpn, kind, pieces, count, segment);
	return link_send(peer, pieces, count, segment);
}

/* One packet of kind TAP_DROPPED. */
void tap_dropped(struct link_peer *peer, uint32_t qpn, const uint8_t *bytes, size_t length);

/* A datagram of batch, which came by path. */
struct tap_datagram {
	const struct wire_path *path;
	const struct link_batch *batch;
	const uint8_t *bytes;
	size_t length;
	uint64_t *came; /* of the batch, as in struct capture_packets */
};

/* It is for a queue pair of this process; ip_id is its IPv4 identification. */
void tap_received(struct capture *capture, const struct tap_datagram *datagram, uint16_t ip_id);
/*
 * It is refused, for the reason that has this counter, or handed on (PROGRESS_COUNT_FORWARDED).
 * ip_id is what is expected: where that makes the ICRC wrong, another one that makes it right is
 * taken for the datagram's.
 */
void tap_refused(struct capture *capture, const struct tap_datagram *datagram, uint16_t ip_id,
		 enum progress_counter why);

#endif
