/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the responder owes: ACKs and NAKs, READ and Atomic responses, unsolicited ACKs.  Responses
 * leave in the order of their PSNs, because a later one says that the earlier ones are done.
 */
#ifndef UROCE_ENGINE_RX_RESPONSE_H
#define UROCE_ENGINE_RX_RESPONSE_H

#include "engine/qp_priv.h"

/* So many that losing all of them is out of question on a network that works at all. */
#define FINAL_ACKS 3

/* Put the ACK that is owed behind the requests in burst, if it fits. */
void response_piggyback_ack(struct eng_qp *qp, struct eng_burst *burst);
/* ENG_TX_RESP_ERROR: the QP has to enter ERR, and after that there is a NAK to send. */
enum eng_tx response_transmit(struct eng_qp *qp, struct eng_burst *burst, uint64_t now);
/* When READ responses that wait may go on, or ENG_NEVER. */
uint64_t response_deadline(const struct eng_qp *qp);
void response_rollback(struct eng_qp *qp, const struct eng_burst *burst);
enum eng_resp_pending response_pending(const struct eng_qp *qp);

#endif
