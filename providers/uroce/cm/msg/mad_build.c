/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Builds the messages to send. */
#include <string.h>

#include "cm/cm_priv.h"
#include "wire/bytes.h"

#define MAX_RETRY 7
#define MAX_CM_RETRIES 15
#define PERMISSIVE_LID 0xffff /* value that the Linux kernel uses where there are no LIDs */
#define GUID_BYTES 8

/* Zeroes the complete union, so that the padding after short private data is 0. */
static void init_mad(struct mad *mad, enum mad_attr attr, uint64_t transaction_id)
{
	memset(mad, 0, sizeof(*mad));
	mad->attr = (uint16_t)attr;
	mad->transaction_id = transaction_id;
}

static uint8_t clamp(uint8_t value, uint8_t limit)
{
	return value < limit ? value : limit;
}

/* memcpy() from NULL is undefined even with length 0. */
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length > 0)
		memcpy(to, from, length);
}

static void set_req_path(struct mad_req *req, const struct cm_path *path)
{
	req->primary_local_lid = PERMISSIVE_LID;
	req->primary_remote_lid = PERMISSIVE_LID;
	memcpy(req->primary_local_gid, path->sgid, MAD_GID_BYTES);
	memcpy(req->primary_remote_gid, path->dgid, MAD_GID_BYTES);
	req->flow_label = path->flow_label & 0xfffff;
	req->traffic_class = path->traffic_class;
	req->hop_limit = path->hop_limit;
	req->sl = path->sl & 0xf;
	req->subnet_local = path->hop_limit <= 1;
}

void cm_build_req(const struct cm_conn *conn, const struct cm_connect_param *param, struct mad *mad)
{
	static const struct {
		enum mad_transport transport;
		uint8_t extended;
	} transports[CM_SERVICES] = {
		[CM_RC] = { MAD_TRANSPORT_RC, 0 },
		[CM_UC] = { MAD_TRANSPORT_UC, 0 },
		[CM_XRC] = { MAD_TRANSPORT_XRC, 1 },
	};
	struct mad_req *req = &mad->req;

	init_mad(mad, MAD_REQ, conn->transaction_id);
	req->local_id = conn->local_id;
	req->service_id = param->service_id;
	req->ca_guid = param->ca_guid;
	req->local_qpn = param->qpn & 0xffffff;
	req->responder_resources = param->responder_resources;
	req->initiator_depth = param->initiator_depth;
	req->remote_response_time = param->response_time & 0x1f;
	req->transport = (uint8_t)transports[param->service].transport;
	req->extended_transport = transports[param->service].extended;
	req->flow_control = param->flow_control; /* rule C19 */
	req->starting_psn = param->starting_psn & 0xffffff;
	req->local_response_time = param->response_time & 0x1f;
	req->retry_count = clamp(param->retry_count, MAX_RETRY);
	req->pkey = param->pkey;
	req->path_mtu = param->path_mtu & 0xf;
	req->rnr_retry = clamp(param->rnr_retry, MAX_RETRY);
	req->max_cm_retries = clamp(param->max_cm_retries, MAX_CM_RETRIES);
	req->srq = param->srq;
	set_req_path(req, &param->path);
	req->ack_timeout = param->ack_timeout & 0x1f;
	copy_bytes(req->private_data, param->private_data, param->private_length);
}

void cm_build_rep(const struct cm_conn *conn, const struct cm_accept_param *param, struct mad *mad)
{
	struct mad_rep *rep = &mad->rep;

	init_mad(mad, MAD_REP, conn->transaction_id);
	rep->local_id = conn->local_id;
	rep->remote_id = conn->remote_id;
	rep->local_qpn = param->qpn & 0xffffff;
	rep->starting_psn = param->starting_psn & 0xffffff;
	rep->responder_resources = param->responder_resources;
	rep->initiator_depth = param->initiator_depth;
	rep->target_ack_delay = param->target_ack_delay & 0x1f;
	rep->flow_control = param->flow_control; /* rule C19 */
	rep->rnr_retry = clamp(param->rnr_retry, MAX_RETRY);
	rep->srq = param->srq;
	rep->ca_guid = param->ca_guid;
	copy_bytes(rep->private_data, param->private_data, param->private_length);
}

void cm_build_rtu(const struct cm_conn *conn, struct mad *mad)
{
	init_mad(mad, MAD_RTU, conn->transaction_id);
	mad->rtu.local_id = conn->local_id;
	mad->rtu.remote_id = conn->remote_id;
}

void cm_build_dreq(const struct cm_conn *conn, struct mad *mad)
{
	init_mad(mad, MAD_DREQ, (uint64_t)MAD_DREQ << 32 | conn->local_id);
	mad->dreq.local_id = conn->local_id;
	mad->dreq.remote_id = conn->remote_id;
	mad->dreq.remote_qpn = conn->remote_qpn;
}

void cm_build_drep(const struct cm_conn *conn, struct mad *mad)
{
	init_mad(mad, MAD_DREP, conn->dreq_transaction_id);
	mad->drep.local_id = conn->local_id;
	mad->drep.remote_id = conn->remote_id;
}

/* The message that a REJ refers to is the last one received from the peer, as in the kernel. */
static enum mad_refers_to rejected_message(enum cm_state state)
{
	if (state == CM_REQ_RCVD)
		return MAD_REFERS_TO_REQ;
	return state == CM_REP_RCVD ? MAD_REFERS_TO_REP : MAD_REFERS_TO_OTHER;
}

void cm_build_rej(const struct cm_conn *conn, uint16_t reason, struct mad *mad)
{
	struct mad_rej *rej = &mad->rej;

	init_mad(mad, MAD_REJ, conn->transaction_id);
	rej->local_id = conn->local_id;
	rej->remote_id = conn->remote_id;
	rej->refers_to = (uint8_t)rejected_message(conn->state);
	rej->reason = reason;
	/* A peer without our id yet finds the connection by the GUID in the ARI. */
	if (reason == MAD_REJECT_TIMEOUT) {
		rej->ari_length = GUID_BYTES;
		wire_put_be64(rej->ari, conn->guid);
	}
}

void cm_build_rej_of_req(const struct mad *req, uint16_t reason, struct mad *mad)
{
	init_mad(mad, MAD_REJ, req->transaction_id);
	mad->rej.remote_id = req->req.local_id;
	mad->rej.refers_to = MAD_REFERS_TO_REQ;
	mad->rej.reason = reason;
}

void cm_build_rej_of_reply(const struct mad *reply, uint32_t our_id, uint32_t peer_id,
			   enum mad_refers_to refers_to, uint16_t reason, struct mad *mad)
{
	init_mad(mad, MAD_REJ, reply->transaction_id);
	mad->rej.local_id = our_id;
	mad->rej.remote_id = peer_id;
	mad->rej.refers_to = (uint8_t)refers_to;
	mad->rej.reason = reason;
}

void cm_build_drep_of_dreq(const struct mad *dreq, struct mad *mad)
{
	init_mad(mad, MAD_DREP, dreq->transaction_id);
	mad->drep.local_id = dreq->dreq.remote_id;
	mad->drep.remote_id = dreq->dreq.local_id;
}

void cm_build_sidr_req(const struct cm_conn *conn, const struct cm_sidr_request_param *param,
		       struct mad *mad)
{
	struct mad_sidr_req *request = &mad->sidr_req;

	init_mad(mad, MAD_SIDR_REQ, conn->transaction_id);
	request->request_id = conn->local_id;
	request->pkey = param->pkey;
	request->service_id = param->service_id;
	copy_bytes(request->private_data, param->private_data, param->private_length);
}

void cm_build_sidr_rep(uint32_t request_id, uint64_t service_id, uint64_t transaction_id,
		       enum mad_sidr_status status, struct mad *mad)
{
	init_mad(mad, MAD_SIDR_REP, transaction_id);
	mad->sidr_rep.request_id = request_id;
	mad->sidr_rep.service_id = service_id;
	mad->sidr_rep.status = (uint8_t)status;
}
