/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Datagram services (SIDR): a request is answered by a queue pair number and a Q_Key. */
#include <string.h>

#include "cm_priv.h"
#include "wire/bytes.h"

/* Requests are identified by address and request id of the sender. */
static uint64_t gid_hash(const uint8_t *gid)
{
	return wire_get_be64(gid) * 31 + wire_get_be64(gid + 8);
}

static struct cm_conn *find_sidr_request(const struct cm *cm, const uint8_t *gid,
					 uint32_t request_id)
{
	struct table_node *node = table_find(&cm->by_sidr, gid_hash(gid), request_id);

	for (; node; node = table_next(node)) {
		struct cm_conn *conn = container_of(node, struct cm_conn, by_sidr);

		if (memcmp(conn->path.dgid, gid, MAD_GID_BYTES) == 0)
			return conn;
	}
	return NULL;
}

static enum cm_verdict send_sidr_refusal(struct cm *cm, const struct cm_trigger *trigger,
					 enum mad_sidr_status status, enum cm_verdict verdict)
{
	const struct mad *request = trigger->mad;
	struct mad rep;

	cm_build_sidr_rep(request->sidr_req.request_id, request->sidr_req.service_id,
			  request->transaction_id, status, &rep);
	cm_send_mad(cm, trigger->from, &rep);
	return verdict;
}

enum cm_verdict cm_receive_sidr_req(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_sidr_req *request = &trigger->mad->sidr_req;
	const uint8_t *gid = trigger->from->dgid;
	struct cm_conn *conn = find_sidr_request(cm, gid, request->request_id);
	struct cm_trigger trigger_with_listener = *trigger;
	enum cm_verdict verdict;

	if (conn)
		return cm_apply_msg(cm, conn, CM_IN_DUP_SIDR_REQ, trigger);
	verdict =
		cm_find_listener(cm, trigger->mad, trigger->from, &trigger_with_listener.listener);
	if (verdict == CM_REFUSED_SERVICE)
		return send_sidr_refusal(cm, trigger, MAD_SIDR_UNSUPPORTED, verdict);
	if (verdict == CM_REFUSED_MISMATCH)
		return send_sidr_refusal(cm, trigger, MAD_SIDR_REJECT, verdict);
	conn = cm_create_passive(cm, &trigger_with_listener);
	if (!conn)
		return send_sidr_refusal(cm, trigger, MAD_SIDR_REJECT, CM_REFUSED_BACKLOG);
	conn->remote_id = request->request_id;
	conn->service_id = request->service_id;
	table_insert(&cm->by_sidr, &conn->by_sidr, gid_hash(gid), request->request_id);
	return cm_apply_msg(cm, conn, CM_IN_NEW_SIDR_REQ, &trigger_with_listener);
}

enum cm_verdict cm_receive_sidr_rep(struct cm *cm, const struct cm_trigger *trigger)
{
	struct cm_conn *conn = cm_find_local_id(cm, trigger->mad->sidr_rep.request_id);

	if (!conn)
		return CM_DROP_UNKNOWN_ID;
	if (conn->service != CM_UD)
		return CM_DROP_STATE;
	return cm_apply_msg(cm, conn, CM_IN_SIDR_REP, trigger);
}

enum cm_result cm_sidr_request(struct cm *cm, struct cm_conn *conn,
			       const struct cm_sidr_request_param *param, uint64_t now)
{
	if (conn->destroyed || !cm_step_of(conn->state, CM_IN_SIDR_REQUEST))
		return CM_BAD_STATE;
	if (param->path.device == CM_ANY_DEVICE ||
	    !cm_private_data_is_valid(param->private_data, param->private_length,
				      MAD_SIDR_REQ_PRIVATE))
		return CM_BAD_ARGUMENT;
	cm_assign_id(cm, conn);
	conn->path = param->path;
	conn->service = CM_UD;
	conn->active = true;
	conn->service_id = param->service_id;
	conn->transaction_id = (uint64_t)MAD_SIDR_REQ << 32 | conn->local_id;
	conn->created = now;
	conn->resent = 0;
	cm_build_sidr_req(conn, param, &conn->last_mad);
	cm_timing_set_response(&conn->timing, param->response_time,
			       param->max_cm_retries < 15 ? param->max_cm_retries : 15);
	return cm_apply_call(cm, conn, CM_IN_SIDR_REQUEST, now);
}

enum cm_result cm_sidr_reply(struct cm *cm, struct cm_conn *conn,
			     const struct cm_sidr_reply_param *param, uint64_t now)
{
	struct mad_sidr_rep *rep = &conn->last_mad.sidr_rep;

	if (conn->destroyed || !cm_step_of(conn->state, CM_IN_SIDR_REPLY))
		return CM_BAD_STATE;
	if (!cm_private_data_is_valid(param->private_data, param->private_length,
				      MAD_SIDR_REP_PRIVATE))
		return CM_BAD_ARGUMENT;
	cm_build_sidr_rep(conn->remote_id, conn->service_id, conn->transaction_id, param->status,
			  &conn->last_mad);
	rep->qpn = param->qpn & 0xffffff;
	rep->qkey = param->qkey;
	if (param->private_length > 0)
		memcpy(rep->private_data, param->private_data, param->private_length);
	return cm_apply_call(cm, conn, CM_IN_SIDR_REPLY, now);
}
