/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Responder: checks requests in the order of the specification (rules S4, S5), executes them, and
 * makes their responses pending.  response.h sends them.
 */
#ifndef UROCE_ENGINE_RX_RESPONDER_H
#define UROCE_ENGINE_RX_RESPONDER_H

#include "engine/base/nak_table.h"
#include "engine/qp_priv.h"

/* Starts the responder at rq_psn. */
void responder_start(struct eng_qp *qp, uint32_t rq_psn, uint64_t now);

/* Handles a request packet.  Returns ENG_SUCCESS or the error that the QP fails with. */
enum eng_status responder_receive(struct eng_qp *qp, const struct wire_packet *packet,
				  uint64_t now);
/*
 * Fast path for SEND_ONLY on RC that is in order and fits into one SGE.  Returns false without any
 * effect in all other cases; the caller must then call responder_receive().
 */
bool responder_receive_fast(struct eng_qp *qp, const struct wire_packet *packet);

/* Handles an error of the request at psn by its row of nak_table.c. */
enum eng_status responder_error(struct eng_qp *qp, enum request_error error, uint32_t psn);

/* Makes an ACK of everything executed pending, since the QP will not send anything later. */
void responder_request_last_ack(struct eng_qp *qp);

/*
 * To be called for each request in order: the first one raises ENG_EVENT_COMM_EST in RTR,
 * ENG_EVENT_FIRST_REQUEST in a later state.
 */
void responder_establish(struct eng_qp *qp);

/* Takes the next receive WQE for the message being received; REQUEST_RNR: there is none. */
enum request_error responder_get_recv_wqe(struct eng_qp *qp);

/* Execute a SEND or WRITE packet that has passed the checks. */
enum request_error responder_send(struct eng_qp *qp, const struct wire_packet *packet);
enum request_error responder_write(struct eng_qp *qp, const struct wire_packet *packet);

/* Completes the receive WQE in use and all posted ones as flushed (rule S13). */
void responder_flush(struct eng_qp *qp);

#endif
