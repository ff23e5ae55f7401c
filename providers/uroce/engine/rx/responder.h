/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receiving side of requests: check them in the order of the specification (rules S4, S5),
 * execute them, owe the answer.  response.h sends it.
 */
#ifndef UROCE_ENGINE_RX_RESPONDER_H
#define UROCE_ENGINE_RX_RESPONDER_H

#include "engine/base/nak_table.h"
#include "engine/qp_priv.h"

/* The QP has been given its rq_psn: expect it. */
void responder_start(struct eng_qp *qp, uint32_t rq_psn, uint64_t now);

/* A request packet for a QP that can respond.  Returns a verdict (state.h). */
enum eng_status responder_receive(struct eng_qp *qp, const struct wire_packet *packet,
				  uint64_t now);
/*
 * A SEND_ONLY on RC: is it its turn, with nothing else to be seen to, and does it go into one
 * stretch of memory?  Then it has been taken; otherwise, also where it will be refused, nothing has
 * been done, and responder_receive() is to be called.
 */
bool responder_receive_fast(struct eng_qp *qp, const struct wire_packet *packet);

/* An error was found: NAK, completion, event and verdict, as its row says. */
enum eng_status responder_error(struct eng_qp *qp, enum request_error error, uint32_t psn);

/* The QP is about to be silent: all that it has executed is acknowledged, if it has not been. */
void responder_request_last_ack(struct eng_qp *qp);

/* The first packet from the peer: told as an event while the queue pair is in RTR. */
void responder_establish(struct eng_qp *qp);

/* The next receive request becomes the one under way: REQUEST_RIGHT, REQUEST_RNR, or worse. */
enum request_error responder_get_recv_wqe(struct eng_qp *qp);

/* Execute a SEND or WRITE packet that has passed the checks. */
enum request_error responder_send(struct eng_qp *qp, const struct wire_packet *packet);
enum request_error responder_write(struct eng_qp *qp, const struct wire_packet *packet);

/* Complete the receive request under way and all posted ones as flushed (rule S13). */
void responder_flush(struct eng_qp *qp);

#endif
