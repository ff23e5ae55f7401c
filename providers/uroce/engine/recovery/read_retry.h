/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Gaps: READ responses that come behind a missing one.  Their bytes are placed as they come, since
 * an application may look at them only when the READ is complete, and a bit for each is remembered;
 * requests complete in their order as ever (rules S8, S12).  Only what is missing is asked for
 * again: of a uroce by a request for each part of a READ that is, of others by one for each READ.
 *
 * A READ is asked for again when its last response or one of a later READ has come.  While it is
 * still being answered, a responder that remembers one range for each READ would take the request
 * for all that is still wanted.  (A uroce remembers up to eight parts: qp.h.)  An answer that does
 * not come is asked for again when, a probe timeout later (rtt.h), responses to later requests have
 * come, or nothing has.
 *
 * Only for peers that report credits, and where there are probes.  Linux's rxe reports none: it is
 * asked for all from the gap on, at once.
 */
#ifndef UROCE_ENGINE_RECOVERY_READ_RETRY_H
#define UROCE_ENGINE_RECOVERY_READ_RETRY_H

#include "loss_state.h"

struct eng_burst;

/*
 * A READ response whose turn has not come, as one before it is missing.  True when it has been
 * placed, or had been; false: it is as if it had not come.
 */
bool read_retry_place(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
/* Would it be, if the memory that it belongs to is there? */
bool read_retry_may_place(const struct eng_qp *qp, const struct wire_packet *packet);
/*
 * An ACK has come for what lies behind a missing response.  False: none has been placed, or what is
 * acknowledged is further away than placed ones are remembered, and it is an implied NAK (rule S8).
 */
bool read_retry_implied_nak(struct eng_qp *qp, uint32_t psn, uint64_t now);
/* Is psn one of a READ that is under way? */
bool read_retry_is_read(const struct eng_qp *qp, uint32_t psn);
/* How many of the next n responses, from unacked_psn on, have been placed; they are forgotten. */
uint32_t read_retry_consume(struct eng_qp *qp, uint32_t n);
/* May this response end a part of a READ that was asked for again, ahead of the READ's end? */
bool read_retry_may_end(const struct eng_qp *qp, uint32_t psn);
/* Silence: ask once more for what was asked for.  False when nothing was. */
bool read_retry_timeout(struct eng_qp *qp, uint64_t now);
/* Sends what is to be asked for; ENG_TX_IDLE when nothing is missing any more. */
enum eng_tx read_retry_transmit(struct eng_qp *qp, struct eng_burst *burst);
/* It could not be sent. */
void read_retry_rollback(struct eng_qp *qp);
/* Has a response been placed out of its turn?  Nothing else needs to be called then. */
static inline bool read_retry_is_active(const struct eng_qp *qp)
{
	return qp->req.read_retry.count > 0;
}

#endif
