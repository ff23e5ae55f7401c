/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * READ retry: READ responses after a missing one are placed on arrival, since an application may
 * read the buffer only when the READ is complete, and a bitmap has a bit for each.  Requests
 * complete in order (rules S8, S12).  Only missing responses are requested again: from a uroce peer
 * by one request for each missing part, from others by one request for each READ.
 *
 * A READ is requested again when its last response, or a response of a later READ, has arrived.
 * Earlier the responder is still sending, and one that keeps a single range for each READ would
 * drop the rest of it.  (uroce keeps up to 8 parts: qp_priv.h.)  If the part does not arrive, it is
 * requested again after a probe timeout (rtt.h): when responses to later requests have arrived, or
 * when no packet at all has.
 *
 * Only with peers that report credits, and where there are probes.  From Linux's rxe, which reports
 * none, everything from the missing response on is requested again at once.
 */
#ifndef UROCE_ENGINE_RECOVERY_READ_RETRY_H
#define UROCE_ENGINE_RECOVERY_READ_RETRY_H

#include "loss_state.h"

struct eng_burst;

/*
 * Handles a READ response after a missing one.  Returns true if it is placed, now or before; false
 * if it must be treated as not received.
 */
bool read_retry_place(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
/*
 * Handles an ACK for a PSN after a missing response.  Returns false if no response has been placed,
 * or psn is beyond the bitmap; the ACK is then an implied NAK (rule S8).
 */
bool read_retry_implied_nak(struct eng_qp *qp, uint32_t psn, uint64_t now);
/* Returns true if psn belongs to a READ in flight. */
bool read_retry_is_read(const struct eng_qp *qp, uint32_t psn);
/* Clears the bits of the placed responses from unacked_psn on, at most n; returns their number. */
uint32_t read_retry_consume(struct eng_qp *qp, uint32_t n);
/* Returns true if psn can be the last response of a part that was requested again. */
bool read_retry_may_end(const struct eng_qp *qp, uint32_t psn);
/* Handles the probe timeout: requests missing parts again.  Returns false if none is missing. */
bool read_retry_timeout(struct eng_qp *qp, uint64_t now);
/* Puts the pending requests into burst; returns ENG_TX_IDLE if nothing is missing any more. */
enum eng_tx read_retry_transmit(struct eng_qp *qp, struct eng_burst *burst);
/* The burst of read_retry_transmit() could not be sent: makes its requests pending again. */
void read_retry_rollback(struct eng_qp *qp);
/* Asserts that count is the number of bits set. */
void read_retry_check(const struct read_retry *read_retry);
/* Returns true if a READ response has been placed out of order. */
static inline bool read_retry_is_active(const struct eng_qp *qp)
{
	return qp->req.read_retry.count > 0;
}

#endif
