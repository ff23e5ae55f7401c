/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagram services (SIDR): the reply to a request is a queue pair number and a Q_Key, and ends the
 * exchange.
 */
#include <string.h>

#include "conn.h"
#include "wire/bytes.h"

/* Requests are identified by address and request id of the sender. */
static uint64_t key_of(const uint8_t *gid)
{
	return wire_get_be64(gid) * 31 + wire_get_be64(gid + 8);
}

static struct cm_conn *find_request(const struct cm *cm, const uint8_t *gid, uint32_t request_id)
{
	struct table_node *node = cm_table_find(&cm->by_sidr, key_of(gid), request_id);

	for (; node; node = cm_table_next(node)) {
		struct cm_conn *conn =
			(struct cm_conn *)((char *)node - offsetof(struct cm_conn, by_sidr));

		if (memcmp(conn->path.dgid, gid, MAD_GID_BYTES) == 0)
			return conn;
	}
	return NULL;
}

static enum cm_verdict refuse(struct cm *cm, const struct cm_cause *cause,
			      enum mad_sidr_status status, enum cm_verdict verdict)
{
	const struct mad *request = cause->mad;
	struct mad rep;

	cm_compose_sidr_rep(request->sidr_req.request_id, request->sidr_req.service_id,
			    request->transaction_id, status, &rep);
	cm_send(cm, cause->from, &rep);
	return verdict;
}

enum cm_verdict cm_receive_sidr_req(struct cm *cm, const struct cm_cause *cause)
{
	const struct mad_sidr_req *request = &cause->mad->sidr_req;
	const uint8_t *gid = cause->from->dgid;
	struct cm_conn *conn = find_request(cm, gid, request->request_id);
	struct cm_cause with_listener = *cause;
	enum cm_verdict verdict;

	if (conn)
		return cm_take_message(cm, conn, CM_IN_SAME_SIDR_REQ, cause);
	verdict = cm_find_listener(cm, cause->mad, cause->from, &with_listener.listener);
	if (verdict == CM_REFUSED_SERVICE)
		return refuse(cm, cause, MAD_SIDR_UNSUPPORTED, verdict);
	if (verdict == CM_REFUSED_MISMATCH)
		return refuse(cm, cause, MAD_SIDR_REJECT, verdict);
	conn = cm_new_passive(cm, &with_listener);
	if (!conn)
		return refuse(cm, cause, MAD_SIDR_REJECT, CM_REFUSED_BACKLOG);
	conn->remote_id = request->request_id;
	conn->service_id = request->service_id;
	cm_table_insert(&cm->by_sidr, &conn->by_sidr, key_of(gid), request->request_id);
	return cm_take_message(cm, conn, CM_IN_NEW_SIDR_REQ, &with_listener);
}

enum cm_verdict cm_receive_sidr_rep(struct cm *cm, const struct cm_cause *cause)
{
	struct cm_conn *conn = cm_find_local(cm, cause->mad->sidr_rep.request_id);

	if (!conn)
		return CM_DROP_UNKNOWN_ID;
	if (conn->service != CM_UD)
		return CM_DROP_STATE;
	return cm_take_message(cm, conn, CM_IN_SIDR_REP, cause);
}

enum cm_result cm_sidr_request(struct cm *cm, struct cm_conn *conn,
			       const struct cm_sidr_request_param *param, uint64_t now)
{
	if (conn->destroyed || !cm_step_of(conn->state, CM_IN_SIDR_REQUEST))
		return CM_BAD_STATE;
	if (param->private_length > MAD_SIDR_REQ_PRIVATE || param->path.device == CM_ANY_DEVICE)
		return CM_BAD_ARGUMENT;
	cm_give_id(cm, conn);
	conn->path = param->path;
	conn->service = CM_UD;
	conn->active = true;
	conn->service_id = param->service_id;
	conn->transaction_id = (uint64_t)MAD_SIDR_REQ << 32 | conn->local_id;
	conn->created = now;
	conn->resent = 0;
	cm_compose_sidr_req(conn, param, &conn->kept);
	cm_timing_set_response(&conn->timing, param->response_time,
			       param->max_cm_retries < 15 ? param->max_cm_retries : 15);
	return cm_take_call(cm, conn, CM_IN_SIDR_REQUEST, now);
}

enum cm_result cm_sidr_reply(struct cm *cm, struct cm_conn *conn,
			     const struct cm_sidr_reply_param *param, uint64_t now)
{
	struct mad_sidr_rep *rep = &conn->kept.sidr_rep;

	if (conn->destroyed || !cm_step_of(conn->state, CM_IN_SIDR_REPLY))
		return CM_BAD_STATE;
	if (param->private_length > MAD_SIDR_REP_PRIVATE)
		return CM_BAD_ARGUMENT;
	cm_compose_sidr_rep(conn->remote_id, conn->service_id, conn->transaction_id, param->status,
			    &conn->kept);
	rep->qpn = param->qpn & 0xffffff;
	rep->qkey = param->qkey;
	if (param->private_length > 0)
		memcpy(rep->private_data, param->private_data, param->private_length);
	return cm_take_call(cm, conn, CM_IN_SIDR_REPLY, now);
}
