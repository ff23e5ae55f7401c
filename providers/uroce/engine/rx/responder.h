/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Responder: checks requests in the order of the specification (rules S4, S5), executes them, and
 * makes their responses pending.  response.c sends them.
 */
#ifndef UROCE_ENGINE_RX_RESPONDER_H
#define UROCE_ENGINE_RX_RESPONDER_H

#include "engine/qp_priv.h"
#include "engine/base/aeth.h"

/*
 * Errors of requests and their consequences: the NAK to the peer, the completion of the current
 * receive WQE, the event, whether the QP goes to ERR.  A check returns an error and has no effect;
 * responder.c carries out the consequences in one place.
 */
enum request_error {
	REQUEST_RIGHT,
	REQUEST_PSN_SEQUENCE,	/* packets before this one are missing (rule S4) */
	REQUEST_RNR,		/* no receive WQE (rule C6) */
	REQUEST_INVALID,	/* opcode sequence, service not enabled, resources, length */
	REQUEST_RECEIVE_LENGTH, /* the message is longer than the receive WQE (rule C18) */
	REQUEST_REMOTE_ACCESS,	/* R_Key, bounds or rights */
	REQUEST_RECEIVE_MEMORY, /* the memory of the receive WQE cannot be used */
	REQUEST_INVALIDATE, /* the key of a SEND with invalidate cannot be invalidated (rule S11) */
	REQUEST_ERRORS,
};

struct request_error_row {
	/*
	 * AETH syndrome of the NAK.  For REQUEST_RNR the responder adds the RNR NAK timer code.
	 * REQUEST_INVALIDATE has no NAK, but an ACK of the requests before it, to which the
	 * responder adds the credit code.
	 */
	uint8_t syndrome;
	bool fatal;			/* the QP goes to ERR */
	enum eng_status receive_status; /* status of the current receive WQE, if there is one */
	enum eng_event event;
};

extern const struct request_error_row request_error_rows[REQUEST_ERRORS];

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

/* Handles an error of the request at psn by its row of request_error_rows. */
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

/* ---- resp_check.c ---- */

/* Checks of a request that has the expected PSN, in the order of rule S5. */

/* Returns REQUEST_RIGHT or the first error; changes nothing. */
enum request_error check_request(const struct eng_qp *qp, const struct wire_packet *packet);

/*
 * As check_request(), for UC, whose opcode sequence differs and which has no RNR NAKs and no
 * responder resources.
 */
enum request_error check_unreliable(const struct eng_qp *qp, const struct wire_packet *packet);

/* Returns the rights that the placement types of a FLUSH need: set of enum eng_access. */
uint32_t flush_rights(const struct wire_packet *packet);

/* ---- resp_atomic.c ---- */

/*
 * Execute an Atomic, an ATOMIC_WRITE or an RDMA FLUSH that has passed the checks, and add its
 * responder resource; check R_Key, bounds and alignment themselves.
 */
enum request_error execute_atomic(struct eng_qp *qp, const struct wire_packet *packet);
enum request_error execute_atomic_write(struct eng_qp *qp, const struct wire_packet *packet);
enum request_error execute_flush(struct eng_qp *qp, const struct wire_packet *packet);

/* ---- uc_ud.c ---- */

/*
 * Receiving on services without responses: UC, where a hole drops the rest of a message and the
 * next first packet resumes, and UD, where each packet is a message.
 */

/* Both return ENG_SUCCESS or the error that the QP fails with. */
enum eng_status unreliable_receive(struct eng_qp *qp, const struct wire_packet *packet,
				   uint64_t now);
enum eng_status datagram_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

/* ---- response.c ---- */

/*
 * Sends the responder's ACKs, NAKs, READ and Atomic responses and unsolicited ACKs.  Responses are
 * sent in PSN order, because a response acknowledges all earlier requests.
 */

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
