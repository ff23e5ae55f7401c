/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Private structures and functions of this layer.
 *
 * Calls of the owner (api.c, sidr.c), received messages (receive.c) and timers (cm_expire())
 * carry out steps (fsm.c) of the table in fsm_table.c.  Messages are built by msg/mad_build.c.  Ids
 * and tables of connections are in cm.c, those of listeners in listen.c.
 */
#ifndef UROCE_CM_CM_PRIV_H
#define UROCE_CM_CM_PRIV_H

#include "cm.h"
#include "fsm_table.h"
#include "timing.h"
#include "req_limit.h"
#include "util/container_of.h"
#include "util/heap.h"
#include "util/table.h"

struct cm_conn {
	void *user;
	LIST_ENTRY(cm_conn) link; /* in the list of all connections */
	struct table_node by_local_id;
	struct table_node by_remote_id; /* (GUID, id) of the peer: finds repeated REQs */
	struct table_node by_remote_qp; /* (GUID, QPN) of the peer: finds stale connections */
	struct table_node by_local_qp;	/* QPN of the local queue pair */
	struct table_node by_sidr;	/* SIDR passive side: (address, request id) of the peer */
	struct heap_node deadline;
	struct timing timing;
	struct req_limit_node req_limit;

	struct cm_path path;
	enum cm_state state;
	enum cm_service service;
	/* Type of the message last passed to ops->last_message: MAD_DREQ, MAD_REJ or 0. */
	uint16_t last_message;
	bool active;
	bool destroyed;
	bool disconnected;  /* event DISCONNECTED was reported */
	bool stale_retried; /* the REQ was repeated with another id after MAD_REJECT_STALE */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t guid, remote_guid;
	uint64_t service_id;
	uint64_t transaction_id;      /* of the REQ or SIDR_REQ */
	uint64_t dreq_transaction_id; /* of the DREQ of the peer */
	uint64_t created, changed;
	uint32_t resent;
	bool flow_control, peer_flow_control;
	bool no_credits_reported; /* cm_peer_reports_no_credits() has returned true */
	uint32_t private_length, peer_private_length;

	/* Attributes of the queue pair: cm_qp_attr(). */
	uint32_t rq_psn, sq_psn;
	uint8_t path_mtu, max_rd_atomic, max_dest_rd_atomic, retry_count, rnr_retry;
	uint8_t peer_rnr_retry;
	uint8_t packet_life; /* active side only */
	uint8_t ack_timeout;

	struct mad last_mad; /* message last sent, for repetitions */
};

struct cm_listener {
	struct cm_listen_param param;
	void *user;
	struct table_node by_service;
};

struct cm {
	struct cm_config config;
	uint32_t next_id; /* without the bits of the slot */
	struct heap deadlines;
	LIST_HEAD(, cm_conn) conns;
	struct table by_local_id, by_remote_id, by_remote_qp, by_local_qp, by_sidr;
	struct table listeners;
	struct req_limit req_limit;
	struct cm_counters counters;
};

/*
 * Trigger of a step.  mad and from are set for received messages, otherwise NULL; for CM_IN_STALE
 * mad is a REJ made by receive.c.
 */
struct cm_trigger {
	const struct mad *mad;
	const struct cm_path *from;
	struct cm_listener *listener;
	uint64_t now;
};

/* Returns true if length bytes at data, which may be NULL if there are none, fit into room. */
static inline bool cm_private_data_is_valid(const uint8_t *data, size_t length, size_t room)
{
	return length <= room && (data || length == 0);
}

/* cm.c */
/* Creates the connection of a request, in CM_IDLE.  Returns NULL if the owner has no memory. */
struct cm_conn *cm_create_passive(struct cm *cm, const struct cm_trigger *trigger);
/* Assigns an unused communication id to the connection. */
void cm_assign_id(struct cm *cm, struct cm_conn *conn);
struct cm_conn *cm_find_local_id(const struct cm *cm, uint32_t local_id);
/* Returns the connection with both ids, or NULL. */
struct cm_conn *cm_find_pair(const struct cm *cm, uint32_t local_id, uint32_t remote_id);
struct cm_conn *cm_find_remote_id(const struct cm *cm, uint64_t guid, uint32_t remote_id);
struct cm_conn *cm_find_remote_qp(const struct cm *cm, uint64_t guid, uint32_t qpn);
/* Return the first connection of local queue pair qpn, and the next one of that queue pair. */
struct cm_conn *cm_find_local_qp(const struct cm *cm, uint32_t qpn);
struct cm_conn *cm_next_local_qp(const struct cm_conn *conn);
/* Sets the QPN of the local queue pair, and adds the connection to by_local_qp. */
void cm_set_local_qp(struct cm *cm, struct cm_conn *conn, uint32_t qpn);
/* Sets the ids of the peer, and adds the connection to by_remote_id and by_remote_qp. */
void cm_set_peer(struct cm *cm, struct cm_conn *conn, uint64_t guid, uint32_t id, uint32_t qpn);
/* Removes a closed connection from by_remote_qp: the peer may use its queue pair for a new one. */
void cm_unlink_remote_qp(struct cm *cm, struct cm_conn *conn);
/* Removes a connection that is back in CM_IDLE from all tables. */
void cm_unlink(struct cm *cm, struct cm_conn *conn);
void cm_release(struct cm *cm, struct cm_conn *conn);

/* fsm.c */
/* Carries out a step: message, state, timer, event, release, in this order.  May release conn. */
void cm_apply(struct cm *cm, struct cm_conn *conn, const struct cm_step *step,
	      const struct cm_trigger *trigger);
/* Carries out the step of a message.  Returns CM_DROP_STATE if the state has no such step. */
enum cm_verdict cm_apply_msg(struct cm *cm, struct cm_conn *conn, enum cm_input input,
			     const struct cm_trigger *trigger);
/* Carries out the step of a call.  Returns CM_BAD_STATE if the state has no such step. */
enum cm_result cm_apply_call(struct cm *cm, struct cm_conn *conn, enum cm_input input,
			     uint64_t now);
/* Sends conn->last_mad, regardless of the request limit, and starts its timers. */
void cm_send_first(struct cm *cm, struct cm_conn *conn, uint64_t now);
/* Sends a message and counts it. */
void cm_send_mad(struct cm *cm, const struct cm_path *path, const struct mad *mad);

/* msg/mad_build.c: each function sets all of mad. */
void cm_build_req(const struct cm_conn *conn, const struct cm_connect_param *param,
		  struct mad *mad);
void cm_build_rep(const struct cm_conn *conn, const struct cm_accept_param *param, struct mad *mad);
void cm_build_rtu(const struct cm_conn *conn, struct mad *mad);
void cm_build_dreq(const struct cm_conn *conn, struct mad *mad);
void cm_build_drep(const struct cm_conn *conn, struct mad *mad);
/* Builds a REJ of the last message from the peer, which follows from conn->state. */
void cm_build_rej(const struct cm_conn *conn, uint16_t reason, struct mad *mad);
/* Replies to messages that belong to no connection. */
void cm_build_rej_of_req(const struct mad *req, uint16_t reason, struct mad *mad);
/* Rejects a REP or an RTU. */
void cm_build_rej_of_reply(const struct mad *reply, uint32_t our_id, uint32_t peer_id,
			   enum mad_refers_to refers_to, uint16_t reason, struct mad *mad);
void cm_build_drep_of_dreq(const struct mad *dreq, struct mad *mad);
void cm_build_sidr_req(const struct cm_conn *conn, const struct cm_sidr_request_param *param,
		       struct mad *mad);
void cm_build_sidr_rep(uint32_t request_id, uint64_t service_id, uint64_t transaction_id,
		       enum mad_sidr_status status, struct mad *mad);

/* listen.c */
/* Finds the listener of a request.  Returns CM_HANDLED, or the reason why there is none. */
enum cm_verdict cm_find_listener(const struct cm *cm, const struct mad *request,
				 const struct cm_path *from, struct cm_listener **listener);

/* sidr.c */
enum cm_verdict cm_receive_sidr_req(struct cm *cm, const struct cm_trigger *trigger);
enum cm_verdict cm_receive_sidr_rep(struct cm *cm, const struct cm_trigger *trigger);

#endif
