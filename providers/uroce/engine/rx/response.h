/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Sends the responder's ACKs, NAKs, READ and Atomic responses and unsolicited ACKs.  Responses are
 * sent in PSN order, because a response acknowledges all earlier requests.
 */
#ifndef UROCE_ENGINE_RX_RESPONSE_H
#define UROCE_ENGINE_RX_RESPONSE_H

#include "engine/qp_priv.h"

/* Number of final ACKs: enough that not all of them are lost on a working network. */
#define FINAL_ACKS 3

/* Adds the pending ACK to a burst of requests, if it fits. */
void response_piggyback_ack(struct eng_qp *qp, struct eng_burst *burst);
/* Fills burst with pending responses.  ENG_TX_RESP_ERROR: the QP must fail, then a NAK is pending.
 */
enum eng_tx response_transmit(struct eng_qp *qp, struct eng_burst *burst, uint64_t now);
/* Time in ns at which the pace allows further READ responses, or ENG_NEVER. */
uint64_t response_deadline(const struct eng_qp *qp);
void response_rollback(struct eng_qp *qp, const struct eng_burst *burst);
enum eng_resp_pending response_pending(const struct eng_qp *qp);

#endif
