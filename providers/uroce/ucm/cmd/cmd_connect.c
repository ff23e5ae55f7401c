/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands that establish and end connections. */
#include <errno.h>

#include <infiniband/verbs.h>

#include "command.h"
#include "ucm/conn/connection.h"
#include "ucm/addr/devices.h"
#include "engine/base/aeth.h"
#include "ucm/ucm_core.h"
#include "ucm/conn/connect_retry.h"

/*
 * Rule C19: a QP with its own receive queue reports credits, one with a shared receive queue does
 * not (rule C7).
 */
static bool reports_credits(const struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	return id->qp_type == IBV_QPT_RC && !param->srq && ucm_reports_credits();
}

int ucm_cmd_connect(struct ucm_call *call)
{
	const struct rdma_ucm_connect *in = call->in;
	const struct rdma_ucm_conn_param *param = &in->conn_param;
	bool sent;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (!param->valid || !id->device || id->state != UCM_ROUTE_RESOLVED)
		return EINVAL;
	if (!id->conn && ucm_connection_create(id))
		return ENOMEM;
	id->qpn = param->qp_num & 0xffffff;
	id->responder_resources = param->responder_resources;
	id->flow_control = reports_credits(id, param);
	sent = ucm_send_request(id, param);
	ucm_rearm_timer();
	if (!sent)
		return EINVAL;
	ucm_retry_prepare(id, param);
	id->state = UCM_CONNECT;
	return 0;
}

static enum cm_result send_rep(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct ucm_device device;
	struct cm_accept_param reply = {
		.qpn = param->qp_num & 0xffffff,
		.starting_psn = id->rq_psn,
		.responder_resources = param->responder_resources,
		.initiator_depth = param->initiator_depth,
		.target_ack_delay = ACK_DELAY_CODE,
		.rnr_retry = param->rnr_retry_count < 7 ? param->rnr_retry_count : 7,
		.flow_control = id->flow_control,
		.srq = param->srq,
		.private_data = param->private_data,
		.private_length = param->private_data_len,
	};

	if (reply.private_length > MAD_REP_PRIVATE || !ucm_device(id->device, &device))
		return CM_BAD_ARGUMENT;
	reply.ca_guid = device.guid;
	return cm_accept(ucm_cm(), id->conn, &reply, progress_now());
}

static enum cm_result send_sidr_rep(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	struct cm_sidr_reply_param reply = {
		.status = MAD_SIDR_OK,
		.qpn = param->qp_num & 0xffffff,
		.qkey = id->source.family == UCM_AF_IB && param->qkey ? param->qkey : UCM_UD_QKEY,
		.private_data = param->private_data,
		.private_length = param->private_data_len,
	};

	if (reply.private_length > MAD_SIDR_REP_PRIVATE)
		return CM_BAD_ARGUMENT;
	return cm_sidr_reply(ucm_cm(), id->conn, &reply, progress_now());
}

static enum cm_result accept_request(struct ucm_id *id, const struct rdma_ucm_conn_param *param)
{
	id->qpn = param->qp_num & 0xffffff;
	id->responder_resources = param->responder_resources;
	id->flow_control = reports_credits(id, param);
	return ucm_id_is_datagram(id) ? send_sidr_rep(id, param) : send_rep(id, param);
}

int ucm_cmd_accept(struct ucm_call *call)
{
	const struct cm_reject_param rejection = { .reason = MAD_REJECT_CONSUMER };
	const struct rdma_ucm_accept *in = call->in;
	enum cm_result result;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (!id->device || !id->conn || id->state != UCM_CONNECT)
		return EINVAL;
	if (in->conn_param.valid)
		result = accept_request(id, &in->conn_param);
	else
		result = cm_rtu(ucm_cm(), id->conn, NULL, 0, progress_now());
	if (result == CM_OK && in->conn_param.valid) {
		id->uid = in->uid;
		id->reports_events = true;
	} else if (result != CM_OK) {
		/* Reject the request, as the kernel does, so that the peer need not wait. */
		cm_reject(ucm_cm(), id->conn, &rejection, progress_now());
	}
	ucm_rearm_timer();
	return result == CM_OK ? 0 : EINVAL;
}

int ucm_cmd_reject(struct ucm_call *call)
{
	const struct rdma_ucm_reject *in = call->in;
	struct cm_reject_param rejection = {
		.reason = in->reason ? in->reason : MAD_REJECT_CONSUMER,
		.private_data = in->private_data,
		.private_length = in->private_data_len,
	};
	enum cm_result result;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (rejection.reason != MAD_REJECT_CONSUMER && rejection.reason != MAD_REJECT_VENDOR_OPTION)
		return EINVAL;
	if (!id->device || !id->conn)
		return EINVAL;
	result = cm_reject(ucm_cm(), id->conn, &rejection, progress_now());
	ucm_rearm_timer();
	return result == CM_OK ? 0 : EINVAL;
}

/* Succeeds in any state of the connection: programs may disconnect twice, or after the peer. */
int ucm_cmd_disconnect(struct ucm_call *call)
{
	const struct rdma_ucm_disconnect *in = call->in;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (!id->device || !id->conn)
		return EINVAL;
	cm_disconnect(ucm_cm(), id->conn, progress_now());
	ucm_rearm_timer();
	return 0;
}

int ucm_cmd_notify(struct ucm_call *call)
{
	const struct rdma_ucm_notify *in = call->in;
	enum cm_result result;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (!id->device || !id->conn || in->event != IBV_EVENT_COMM_EST)
		return EINVAL;
	if (cm_conn_state(id->conn) == CM_ESTABLISHED)
		return EISCONN;
	result = cm_established(ucm_cm(), id->conn, progress_now());
	ucm_rearm_timer();
	return result == CM_OK ? 0 : EINVAL;
}
