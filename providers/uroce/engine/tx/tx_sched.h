/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Transmit scheduling: whether a posted request is sent at once or batched with later ones, whether
 * an ACK is sent at once, after requests, or delayed, and whether requests or responses go first.
 * Which packets may be sent is decided by the requester and the responder.
 *
 * A system call costs more than the packets that it carries, and a peer that gets the ACK before
 * the reply stops polling its socket and spins on its memory.  So:
 *
 *   - a request is sent at once if nothing is in flight.  Otherwise it is batched, and sent in the
 *     progress cycle that receives ACKs of the packets in flight, with the first signaled request
 *     of a batch, or when a burst is full;
 *   - a pending ACK is sent as the last packet of a burst of requests.  Without requests it is
 *     delayed for the rest of a message, for a receive to be posted if it would report no credits
 *     (rule C10), or for a reply; but only for a short time (rule S7), one at a time, and not if
 *     the application has not posted anything yet or has not replied to a stream of messages.
 */
#ifndef UROCE_ENGINE_TX_TX_SCHED_H
#define UROCE_ENGINE_TX_TX_SCHED_H

#include "engine/qp_priv.h"

/* To be called for each received packet. */
void tx_sched_received(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
/* As eng_sq_kick(). */
enum eng_tx tx_sched_post(struct eng_qp *qp, const struct eng_tx_ctx *ctx);
/* As eng_receive_posted(). */
bool tx_sched_recv_post(struct eng_qp *qp);
/* As eng_transmit(). */
enum eng_tx tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
			      const struct eng_tx_ctx *ctx);
/* Time in ns at which the delayed ACK must be sent, or ENG_NEVER. */
uint64_t tx_sched_deadline(const struct eng_qp *qp);

#endif
