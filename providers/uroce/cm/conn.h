/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of this layer: what a connection and the manager are made of, and what its files give
 * each other.
 *
 *   calls.c, sidr.c     calls of the owner  \
 *   receive.c           messages             > take steps (step.c) of the table in state.c
 *   cm_expire()         time                /
 *   compose.c           builds what is sent
 *   cm.c                ids and tables of connections; listen.c those of listeners
 */
#ifndef UROCE_CM_CONN_H
#define UROCE_CM_CONN_H

#include "cm.h"
#include "heap.h"
#include "state.h"
#include "table.h"
#include "timing.h"
#include "quota.h"

struct cm_conn {
	void *user;
	struct cm_conn *next, *before; /* of all connections */
	struct table_node by_local_id;
	struct table_node by_remote_id; /* (GUID, id) of the peer: repeated REQs */
	struct table_node by_remote_qp; /* (GUID, QPN) of the peer: stale connections */
	struct table_node by_local_qp;	/* QPN of ours */
	struct table_node by_sidr;	/* SIDR passive side: (address, request id) */
	struct heap_node deadline;
	struct timing timing;
	struct quota_node in_quota;

	struct cm_path path;
	enum cm_state state;
	enum cm_service service;
	uint16_t last_message; /* that ops has now: MAD_DREQ, MAD_REJ or 0 */
	bool active;
	bool destroyed;
	bool disconnected;   /* event DISCONNECTED was told */
	bool stale_repeated; /* the request was repeated after a REJ 10 */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t guid, remote_guid;
	uint64_t service_id;
	uint64_t transaction_id;      /* of the REQ, or SIDR_REQ */
	uint64_t dreq_transaction_id; /* of the peer's DREQ */
	uint64_t created, changed;
	uint32_t resent;
	bool flow_control, peer_flow_control;
	bool credits_missed; /* cm_credits_hidden() has said so */
	uint32_t private_length, peer_private_length;

	/* What the queue pair needs: cm_qp_attr(). */
	uint32_t rq_psn, sq_psn;
	uint8_t path_mtu, max_rd_atomic, max_dest_rd_atomic, retry_count, rnr_retry;
	uint8_t peer_rnr_retry;
	uint8_t packet_life; /* active side */
	uint8_t ack_timeout;

	struct mad kept; /* the last message, for repetitions */
};

struct cm_listener {
	struct cm_listen_param param;
	void *user;
	struct table_node by_service;
};

struct cm {
	struct cm_config config;
	uint32_t next_id; /* without the slot's bits */
	struct heap deadlines;
	struct cm_conn *conns;
	struct table by_local_id, by_remote_id, by_remote_qp, by_local_qp, by_sidr;
	struct table listeners;
	struct quota quota;
	struct cm_counters counters;
};

/* What led to a step; mad and from are those of the message, or NULL. */
struct cm_cause {
	const struct mad *mad;
	const struct cm_path *from;
	struct cm_listener *listener;
	uint64_t now;
};

/* cm.c */
/* An id that no connection has; the connection gets it. */
void cm_give_id(struct cm *cm, struct cm_conn *conn);
struct cm_conn *cm_find_local(const struct cm *cm, uint32_t local_id);
/* The connection of both ids. */
struct cm_conn *cm_find_pair(const struct cm *cm, uint32_t local_id, uint32_t remote_id);
struct cm_conn *cm_find_remote_id(const struct cm *cm, uint64_t guid, uint32_t remote_id);
struct cm_conn *cm_find_remote_qp(const struct cm *cm, uint64_t guid, uint32_t qpn);
/* The first connection of this queue pair of ours, and the next one of the same; or NULL. */
struct cm_conn *cm_find_local_qp(const struct cm *cm, uint32_t qpn);
struct cm_conn *cm_next_local_qp(const struct cm_conn *conn);
/* Our queue pair is known now. */
void cm_know_local_qp(struct cm *cm, struct cm_conn *conn, uint32_t qpn);
/* The peer is known now. */
void cm_know_peer(struct cm *cm, struct cm_conn *conn, uint64_t guid, uint32_t id, uint32_t qpn);
/* Closed: its peer's queue pair may be used for a new connection. */
void cm_free_qp(struct cm *cm, struct cm_conn *conn);
/* Back to CM_IDLE: out of all tables. */
void cm_forget(struct cm *cm, struct cm_conn *conn);
void cm_release(struct cm *cm, struct cm_conn *conn);

/* step.c */
/*
 * Take a step in this order: state, message, timer, event, release.  conn may be gone afterwards.
 */
void cm_take(struct cm *cm, struct cm_conn *conn, const struct cm_step *step,
	     const struct cm_cause *cause);
/* The step of a message and its verdict: CM_DROP_STATE where there is none. */
enum cm_verdict cm_take_message(struct cm *cm, struct cm_conn *conn, enum cm_input input,
				const struct cm_cause *cause);
/* The step of a call, or CM_BAD_STATE. */
enum cm_result cm_take_call(struct cm *cm, struct cm_conn *conn, enum cm_input input, uint64_t now);
/* The first transmission of what is kept, whatever the quota says. */
void cm_begin(struct cm *cm, struct cm_conn *conn, uint64_t now);
/* Send a message, counted. */
void cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad);

/* compose.c: each fills mad completely. */
void cm_compose_req(const struct cm_conn *conn, const struct cm_connect_param *param,
		    struct mad *mad);
void cm_compose_rep(const struct cm_conn *conn, const struct cm_accept_param *param,
		    struct mad *mad);
void cm_compose_rtu(const struct cm_conn *conn, struct mad *mad);
void cm_compose_dreq(const struct cm_conn *conn, struct mad *mad);
void cm_compose_drep(const struct cm_conn *conn, struct mad *mad);
/* A REJ of the connection in its state. */
void cm_compose_rej(const struct cm_conn *conn, uint16_t reason, struct mad *mad);
/* Answers without connection. */
void cm_compose_rej_of_req(const struct mad *req, uint16_t reason, struct mad *mad);
/* Of a REP, or of an RTU. */
void cm_compose_rej_of_reply(const struct mad *reply, uint32_t our_id, uint32_t peer_id,
			     enum mad_answered answered, uint16_t reason, struct mad *mad);
void cm_compose_drep_of_dreq(const struct mad *dreq, struct mad *mad);
void cm_compose_sidr_req(const struct cm_conn *conn, const struct cm_sidr_request_param *param,
			 struct mad *mad);
void cm_compose_sidr_rep(uint32_t request_id, uint64_t service_id, uint64_t transaction_id,
			 enum mad_sidr_status status, struct mad *mad);

/* listen.c */
/* The listener that a request is for; CM_TAKEN, or why there is none. */
enum cm_verdict cm_find_listener(const struct cm *cm, const struct mad *request,
				 const struct cm_path *from, struct cm_listener **listener);

/* sidr.c */
enum cm_verdict cm_receive_sidr_req(struct cm *cm, const struct cm_cause *cause);
enum cm_verdict cm_receive_sidr_rep(struct cm *cm, const struct cm_cause *cause);

/* receive.c, sidr.c: a new connection for a request, in CM_IDLE, or NULL: the owner has no room. */
struct cm_conn *cm_new_passive(struct cm *cm, const struct cm_cause *cause);

#endif
