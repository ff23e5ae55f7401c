/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Calls of a connection's owner. */
#include <assert.h>
#include <string.h>

#include "cm_priv.h"

static bool call_is_legal(const struct cm_conn *conn, enum cm_input input)
{
	return !conn->destroyed && cm_step_of(conn->state, input) != NULL;
}

static void copy_bytes(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length > 0)
		memcpy(to, from, length);
}

enum cm_result cm_connect(struct cm *cm, struct cm_conn *conn, const struct cm_connect_param *param,
			  uint64_t now)
{
	if (!call_is_legal(conn, CM_IN_CONNECT))
		return CM_BAD_STATE;
	if ((unsigned int)param->service >= CM_UD || param->ca_guid == 0 ||
	    param->path.device == CM_ANY_DEVICE ||
	    !cm_private_data_is_valid(param->private_data, param->private_length, MAD_REQ_PRIVATE))
		return CM_BAD_ARGUMENT;
	cm_assign_id(cm, conn);
	conn->path = param->path;
	conn->service = param->service;
	conn->active = true;
	conn->stale_retried = false;
	cm_set_local_qp(cm, conn, param->qpn);
	conn->remote_qpn = 0;
	conn->guid = param->ca_guid;
	conn->remote_guid = 0;
	conn->service_id = param->service_id;
	conn->transaction_id = (uint64_t)MAD_REQ << 32 | conn->local_id;
	conn->created = now;
	conn->resent = 0;
	conn->flow_control = param->flow_control;
	conn->peer_flow_control = false;
	conn->no_credits_reported = false;
	conn->private_length = (uint32_t)param->private_length;
	conn->peer_private_length = 0;
	conn->rq_psn = param->starting_psn & 0xffffff;
	conn->path_mtu = param->path_mtu;
	conn->retry_count = param->retry_count < 7 ? param->retry_count : 7;
	conn->packet_life = param->packet_life;
	conn->ack_timeout = param->ack_timeout;
	cm_build_req(conn, param, &conn->last_mad);
	conn->peer_rnr_retry = conn->last_mad.req.rnr_retry;
	cm_timing_set(&conn->timing, param->response_time, param->packet_life,
		      conn->last_mad.req.max_cm_retries);
	return cm_apply_call(cm, conn, CM_IN_CONNECT, now);
}

enum cm_result cm_accept(struct cm *cm, struct cm_conn *conn, const struct cm_accept_param *param,
			 uint64_t now)
{
	if (!call_is_legal(conn, CM_IN_ACCEPT))
		return CM_BAD_STATE;
	if (param->ca_guid == 0 ||
	    !cm_private_data_is_valid(param->private_data, param->private_length, MAD_REP_PRIVATE))
		return CM_BAD_ARGUMENT;
	cm_set_local_qp(cm, conn, param->qpn);
	conn->guid = param->ca_guid;
	conn->flow_control = param->flow_control;
	conn->rq_psn = param->starting_psn & 0xffffff;
	conn->private_length = (uint32_t)param->private_length;
	conn->max_rd_atomic = param->initiator_depth;
	conn->max_dest_rd_atomic = param->responder_resources;
	cm_build_rep(conn, param, &conn->last_mad);
	return cm_apply_call(cm, conn, CM_IN_ACCEPT, now);
}

enum cm_result cm_rtu(struct cm *cm, struct cm_conn *conn, const uint8_t *private_data,
		      size_t length, uint64_t now)
{
	if (!call_is_legal(conn, CM_IN_SEND_RTU))
		return CM_BAD_STATE;
	if (!cm_private_data_is_valid(private_data, length, MAD_RTU_PRIVATE))
		return CM_BAD_ARGUMENT;
	cm_build_rtu(conn, &conn->last_mad);
	copy_bytes(conn->last_mad.rtu.private_data, private_data, length);
	return cm_apply_call(cm, conn, CM_IN_SEND_RTU, now);
}

enum cm_result cm_reject(struct cm *cm, struct cm_conn *conn, const struct cm_reject_param *param,
			 uint64_t now)
{
	bool datagram = conn->service == CM_UD;
	uint8_t *data;

	if (!call_is_legal(conn, CM_IN_REJECT))
		return CM_BAD_STATE;
	if (!cm_private_data_is_valid(param->private_data, param->private_length,
				      datagram ? MAD_SIDR_REP_PRIVATE : MAD_REJ_PRIVATE) ||
	    !cm_private_data_is_valid(param->ari, param->ari_length, MAD_ARI_BYTES))
		return CM_BAD_ARGUMENT;
	if (datagram) {
		cm_build_sidr_rep(conn->remote_id, conn->service_id, conn->transaction_id,
				  MAD_SIDR_REJECT, &conn->last_mad);
		data = conn->last_mad.sidr_rep.private_data;
	} else {
		cm_build_rej(conn, param->reason, &conn->last_mad);
		conn->last_mad.rej.ari_length = (uint8_t)param->ari_length;
		copy_bytes(conn->last_mad.rej.ari, param->ari, param->ari_length);
		data = conn->last_mad.rej.private_data;
	}
	copy_bytes(data, param->private_data, param->private_length);
	return cm_apply_call(cm, conn, CM_IN_REJECT, now);
}

enum cm_result cm_established(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	return conn->destroyed ? CM_BAD_STATE : cm_apply_call(cm, conn, CM_IN_ESTABLISHED, now);
}

enum cm_result cm_established_by_qpn(struct cm *cm, uint32_t qpn, uint64_t now)
{
	struct cm_conn *conn = cm_find_local_qp(cm, qpn);

	while (conn && !cm_step_of(conn->state, CM_IN_ESTABLISHED))
		conn = cm_next_local_qp(conn);
	return conn ? cm_established(cm, conn, now) : CM_BAD_STATE;
}

bool cm_peer_reports_no_credits(struct cm *cm, uint32_t qpn)
{
	struct cm_conn *conn = cm_find_local_qp(cm, qpn);

	for (; conn; conn = cm_next_local_qp(conn)) {
		if (!conn->peer_flow_control || conn->no_credits_reported ||
		    conn->state == CM_TIMEWAIT || conn->state == CM_REJ_SENT)
			continue;
		conn->no_credits_reported = true;
		return true;
	}
	return false;
}

enum cm_result cm_disconnect(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	return conn->destroyed ? CM_BAD_STATE : cm_apply_call(cm, conn, CM_IN_DISCONNECT, now);
}

/*
 * Shortens the repetition of a pending DREQ to CM_DESTROY_DREQ_NS, because no caller waits for its
 * DREP any more.  A DREQ that is still queued by the request limit is sent now.
 */
static void shorten_dreq_repetition(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	if (conn->req_limit.state == REQ_LIMIT_QUEUED) {
		cm_req_limit_remove(&cm->req_limit, &conn->req_limit);
		cm_send_first(cm, conn, now);
		return;
	}
	if (conn->timing.give_up_at > now + CM_DESTROY_DREQ_NS)
		conn->timing.give_up_at = now + CM_DESTROY_DREQ_NS;
	heap_set(&cm->deadlines, &conn->deadline, cm_timing_next(&conn->timing));
}

void cm_destroy(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	const struct cm_trigger trigger = { .now = now };

	assert(!conn->destroyed);
	conn->destroyed = true;
	if (conn->state == CM_DREQ_SENT)
		shorten_dreq_repetition(cm, conn, now);
	cm_apply(cm, conn, cm_step_of(conn->state, CM_IN_DESTROY), &trigger);
}
