/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When a packet leaves: whether a posted request goes at once or is gathered with those that
 * follow, whether an ACK goes at once, rides behind requests or waits for company, and which side
 * has its turn.  What may be sent at all is the requester's and the responder's business.
 *
 * A system call costs more than the packets that it carries, and a peer that gets its ACK before
 * the data that answer it stops polling, and spins on its memory.  So:
 *
 *   - a request on an idle wire leaves at once; one that meets packets under way is gathered, and
 *     leaves with the round that brings their ACKs, with the first of a batch that will make a
 *     completion, or when a full burst has come together;
 *   - an ACK leaves behind requests that go the same way, as the last segment of their burst;
 * without any it waits for the rest of a message, for a receive to be posted when it would report
 * no credits (rule C10), or for a post that answers what it acknowledges, but not for long (rule
 * S7) and only one at a time, nor where the application has not posted anything yet, or has left a
 * stream of messages without a post of its own.
 */
#ifndef UROCE_ENGINE_TX_TX_SCHED_H
#define UROCE_ENGINE_TX_TX_SCHED_H

#include "engine/qp_priv.h"

/* A packet has come. */
void tx_sched_received(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);
/* As eng_sq_kick(). */
enum eng_tx tx_sched_post(struct eng_qp *qp, const struct eng_tx_ctx *ctx);
/* As eng_receive_posted(). */
bool tx_sched_recv_post(struct eng_qp *qp);
/* As eng_transmit(). */
enum eng_tx tx_sched_transmit(struct eng_qp *qp, struct eng_burst *burst,
			      const struct eng_tx_ctx *ctx);
/* When the ACK that waits has to leave, or ENG_NEVER. */
uint64_t tx_sched_deadline(const struct eng_qp *qp);

#endif
