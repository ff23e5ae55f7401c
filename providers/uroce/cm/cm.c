/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* struct cm: memory, ids of connections, tables to find connections, deadlines. */
#include <assert.h>
#include <string.h>

#include "cm_priv.h"

#define ID_NUMBER_BITS (32 - CM_SLOT_BITS)
#define ID_NUMBER_MASK ((1u << ID_NUMBER_BITS) - 1)

#define CONN_OF(node, member) ((node) ? container_of(node, struct cm_conn, member) : NULL)

size_t cm_bytes(void)
{
	return sizeof(struct cm);
}

size_t cm_conn_bytes(void)
{
	return sizeof(struct cm_conn);
}

struct cm *cm_init(void *memory, const struct cm_config *config)
{
	struct cm *cm = memory;

	assert(config->slot < CM_SLOTS);
	memset(cm, 0, sizeof(*cm));
	cm->config = *config;
	cm->next_id = config->id_start & ID_NUMBER_MASK;
	cm_req_limit_init(&cm->req_limit, config->req_limit > 0 ? config->req_limit : CM_REQ_LIMIT);
	return cm;
}

struct cm_conn *cm_conn_init(struct cm *cm, void *memory, void *user)
{
	struct cm_conn *conn = memory;

	memset(conn, 0, sizeof(*conn));
	conn->user = user;
	LIST_INSERT_HEAD(&cm->conns, conn, link);
	return conn;
}

struct cm_conn *cm_create_passive(struct cm *cm, const struct cm_trigger *trigger)
{
	void *user = NULL;
	void *memory = cm->config.ops->accept_conn(cm->config.owner, trigger->listener,
						   trigger->mad, trigger->from, &user);
	struct cm_conn *conn;

	if (!memory)
		return NULL;
	conn = cm_conn_init(cm, memory, user);
	conn->created = trigger->now;
	conn->service = trigger->listener->param.service;
	conn->path = *trigger->from;
	conn->transaction_id = trigger->mad->transaction_id;
	return conn;
}

void *cm_conn_user(const struct cm_conn *conn)
{
	return conn->user;
}

/*
 * Ids are assigned cyclically, so that an id is not reused soon.  0 is skipped: the Linux kernel
 * uses it for "unknown".
 */
void cm_assign_id(struct cm *cm, struct cm_conn *conn)
{
	uint32_t id;

	table_remove(&cm->by_local_id, &conn->by_local_id);
	do {
		id = cm->config.slot << ID_NUMBER_BITS | cm->next_id;
		cm->next_id = (cm->next_id + 1) & ID_NUMBER_MASK;
	} while (id == 0 || table_find(&cm->by_local_id, 0, id));
	conn->local_id = id;
	table_insert(&cm->by_local_id, &conn->by_local_id, 0, id);
}

struct cm_conn *cm_find_local_id(const struct cm *cm, uint32_t local_id)
{
	return CONN_OF(table_find(&cm->by_local_id, 0, local_id), by_local_id);
}

struct cm_conn *cm_find_pair(const struct cm *cm, uint32_t local_id, uint32_t remote_id)
{
	struct cm_conn *conn = cm_find_local_id(cm, local_id);

	return conn && remote_id != 0 && conn->remote_id == remote_id ? conn : NULL;
}

struct cm_conn *cm_find_remote_id(const struct cm *cm, uint64_t guid, uint32_t remote_id)
{
	return CONN_OF(table_find(&cm->by_remote_id, guid, remote_id), by_remote_id);
}

struct cm_conn *cm_find_remote_qp(const struct cm *cm, uint64_t guid, uint32_t qpn)
{
	return CONN_OF(table_find(&cm->by_remote_qp, guid, qpn), by_remote_qp);
}

struct cm_conn *cm_find_local_qp(const struct cm *cm, uint32_t qpn)
{
	return CONN_OF(table_find(&cm->by_local_qp, 0, qpn), by_local_qp);
}

struct cm_conn *cm_next_local_qp(const struct cm_conn *conn)
{
	return CONN_OF(table_next(&conn->by_local_qp), by_local_qp);
}

void cm_set_local_qp(struct cm *cm, struct cm_conn *conn, uint32_t qpn)
{
	conn->local_qpn = qpn & 0xffffff;
	table_remove(&cm->by_local_qp, &conn->by_local_qp);
	table_insert(&cm->by_local_qp, &conn->by_local_qp, 0, conn->local_qpn);
}

void cm_set_peer(struct cm *cm, struct cm_conn *conn, uint64_t guid, uint32_t id, uint32_t qpn)
{
	conn->remote_guid = guid;
	conn->remote_id = id;
	conn->remote_qpn = qpn;
	table_insert(&cm->by_remote_id, &conn->by_remote_id, guid, id);
	table_insert(&cm->by_remote_qp, &conn->by_remote_qp, guid, qpn);
}

void cm_unlink_remote_qp(struct cm *cm, struct cm_conn *conn)
{
	table_remove(&cm->by_remote_qp, &conn->by_remote_qp);
}

void cm_unlink(struct cm *cm, struct cm_conn *conn)
{
	table_remove(&cm->by_local_id, &conn->by_local_id);
	table_remove(&cm->by_remote_id, &conn->by_remote_id);
	table_remove(&cm->by_remote_qp, &conn->by_remote_qp);
	table_remove(&cm->by_local_qp, &conn->by_local_qp);
	table_remove(&cm->by_sidr, &conn->by_sidr);
	heap_remove(&cm->deadlines, &conn->deadline);
	conn->local_id = conn->remote_id = 0;
	conn->disconnected = false;
}

void cm_release(struct cm *cm, struct cm_conn *conn)
{
	assert(conn->destroyed && conn->state == CM_IDLE);
	assert(conn->req_limit.state == REQ_LIMIT_NONE);
	LIST_REMOVE(conn, link);
	cm->config.ops->released(cm->config.owner, conn, conn->user);
}

uint64_t cm_deadline(const struct cm *cm)
{
	return cm->deadlines.first ? cm->deadlines.first->at : CM_NEVER;
}

enum cm_state cm_conn_state(const struct cm_conn *conn)
{
	return conn->state;
}

enum cm_result cm_qp_attr(const struct cm_conn *conn, struct cm_qp_attr *attr)
{
	bool known = conn->state == CM_REQ_RCVD || conn->state == CM_REP_RCVD ||
		     conn->state == CM_REP_SENT || conn->state == CM_MRA_REP_RCVD ||
		     conn->state == CM_ESTABLISHED;

	if (!known)
		return CM_BAD_STATE;
	*attr = (struct cm_qp_attr){
		.path = conn->path,
		.service = conn->service,
		.dest_qpn = conn->remote_qpn,
		.rq_psn = conn->rq_psn,
		.sq_psn = conn->sq_psn,
		.path_mtu = conn->path_mtu,
		.max_rd_atomic = conn->max_rd_atomic,
		.max_dest_rd_atomic = conn->max_dest_rd_atomic,
		.retry_count = conn->retry_count,
		.rnr_retry = conn->rnr_retry,
		.peer_rnr_retry = conn->peer_rnr_retry,
		.ack_timeout = conn->ack_timeout,
	};
	return CM_OK;
}

void cm_conn_info(const struct cm_conn *conn, struct cm_conn_info *info)
{
	*info = (struct cm_conn_info){
		.path = conn->path,
		.state = conn->state,
		.service = conn->service,
		.active = conn->active,
		.destroyed = conn->destroyed,
		.local_id = conn->local_id,
		.remote_id = conn->remote_id,
		.local_qpn = conn->local_qpn,
		.remote_qpn = conn->remote_qpn,
		.service_id = conn->service_id,
		.remote_guid = conn->remote_guid,
		.created = conn->created,
		.changed = conn->changed,
		.resent = conn->resent,
		.flow_control = conn->flow_control,
		.peer_flow_control = conn->peer_flow_control,
		.private_length = conn->private_length,
		.peer_private_length = conn->peer_private_length,
		.deadline = conn->deadline.in ? conn->deadline.at : CM_NEVER,
	};
}

void cm_each_conn(const struct cm *cm, void (*visit)(void *arg, const struct cm_conn *conn),
		  void *arg)
{
	const struct cm_conn *conn;

	LIST_FOREACH(conn, &cm->conns, link)
		visit(arg, conn);
}

const struct cm_counters *cm_counters(const struct cm *cm)
{
	return &cm->counters;
}
