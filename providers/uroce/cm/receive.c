/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Received messages: finds the connection of each, and what it means there. */
#include <string.h>

#include "cm_priv.h"
#include "wire/bytes.h"

#define GUID_BYTES 8

/* Rejects a REQ or REP that belongs to no connection.  Returns verdict. */
static enum cm_verdict send_rej(struct cm *cm, const struct cm_trigger *trigger,
				enum mad_reject reason, enum cm_verdict verdict)
{
	struct mad rej;

	if (trigger->mad->attr == MAD_REQ)
		cm_build_rej_of_req(trigger->mad, (uint16_t)reason, &rej);
	else
		cm_build_rej_of_reply(trigger->mad, trigger->mad->rep.remote_id,
				      trigger->mad->rep.local_id, MAD_REFERS_TO_REP,
				      (uint16_t)reason, &rej);
	cm_send_mad(cm, trigger->from, &rej);
	return verdict;
}

/* Ends a connection whose peer has started to use its queue pair for a new one. */
static void end_stale_conn(struct cm *cm, struct cm_conn *old, const struct cm_trigger *trigger)
{
	struct mad rej = { .attr = MAD_REJ,
			   .rej = { .refers_to = MAD_REFERS_TO_OTHER,
				    .reason = MAD_REJECT_STALE } };
	const struct cm_trigger stale = { .mad = &rej, .now = trigger->now };

	cm_apply_msg(cm, old, CM_IN_STALE, &stale);
}

/*
 * Length up to the last byte that is not 0, because messages do not contain the length of their
 * private data.
 */
static uint32_t used_length(const uint8_t *data, size_t bytes)
{
	while (bytes > 0 && data[bytes - 1] == 0)
		bytes--;
	return (uint32_t)bytes;
}

static void set_from_req(struct cm *cm, struct cm_conn *conn, const struct mad_req *req)
{
	memcpy(conn->path.dgid, req->primary_local_gid, MAD_GID_BYTES);
	conn->path.flow_label = req->flow_label;
	conn->path.traffic_class = req->traffic_class;
	conn->path.sl = req->sl;
	conn->service_id = req->service_id;
	conn->peer_flow_control = req->flow_control;
	conn->peer_private_length = used_length(req->private_data, sizeof(req->private_data));
	conn->sq_psn = req->starting_psn;
	conn->path_mtu = req->path_mtu;
	conn->max_rd_atomic = req->responder_resources;
	conn->max_dest_rd_atomic = req->initiator_depth;
	conn->retry_count = req->retry_count;
	conn->rnr_retry = req->rnr_retry;
	conn->peer_rnr_retry = req->rnr_retry;
	conn->ack_timeout = req->ack_timeout;
	cm_timing_set_response(&conn->timing, req->local_response_time, req->max_cm_retries);
	cm_assign_id(cm, conn);
	cm_set_peer(cm, conn, req->ca_guid, req->local_id, req->local_qpn);
}

/*
 * Rejects a REQ whose path MTU is too large, and returns true: the packets of the peer would not
 * get through, and a REP has no field for a smaller MTU.  The ARI of the REJ has the largest
 * possible one.
 */
static bool reject_large_mtu(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct cm_ops *ops = cm->config.ops;
	uint8_t possible;
	struct mad rej;

	if (!ops->path_mtu)
		return false;
	possible = ops->path_mtu(cm->config.owner, trigger->from);
	if (trigger->mad->req.path_mtu <= possible)
		return false;
	cm_build_rej_of_req(trigger->mad, MAD_REJECT_INVALID_MTU, &rej);
	rej.rej.ari_length = 1;
	rej.rej.ari[0] = possible;
	cm_send_mad(cm, trigger->from, &rej);
	return true;
}

static enum cm_verdict receive_req(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_req *req = &trigger->mad->req;
	struct cm_conn *conn = cm_find_remote_id(cm, req->ca_guid, req->local_id);
	struct cm_trigger trigger_with_listener = *trigger;
	enum cm_verdict verdict;

	if (conn)
		return conn->active ? CM_DROP_STATE
				    : cm_apply_msg(cm, conn, CM_IN_DUP_REQ, trigger);
	conn = cm_find_remote_qp(cm, req->ca_guid, req->local_qpn);
	if (conn) {
		send_rej(cm, trigger, MAD_REJECT_STALE, CM_REFUSED_STALE);
		end_stale_conn(cm, conn, trigger);
		return CM_REFUSED_STALE;
	}
	verdict =
		cm_find_listener(cm, trigger->mad, trigger->from, &trigger_with_listener.listener);
	if (verdict == CM_REFUSED_SERVICE)
		return send_rej(cm, trigger, MAD_REJECT_INVALID_SERVICE_ID, verdict);
	if (verdict == CM_REFUSED_MISMATCH)
		return send_rej(cm, trigger, MAD_REJECT_CONSUMER, verdict);
	if (memcmp(req->primary_remote_gid, trigger->from->sgid, MAD_GID_BYTES) != 0)
		return send_rej(cm, trigger, MAD_REJECT_INVALID_GID, CM_REFUSED_PATH);
	if (reject_large_mtu(cm, trigger))
		return CM_REFUSED_PATH;
	conn = cm_create_passive(cm, &trigger_with_listener);
	if (!conn)
		return send_rej(cm, trigger, MAD_REJECT_NO_RESOURCES, CM_REFUSED_BACKLOG);
	set_from_req(cm, conn, req);
	return cm_apply_msg(cm, conn, CM_IN_NEW_REQ, &trigger_with_listener);
}

static void set_from_rep(struct cm *cm, struct cm_conn *conn, const struct mad_rep *rep)
{
	conn->peer_flow_control = rep->flow_control;
	conn->peer_private_length = used_length(rep->private_data, sizeof(rep->private_data));
	conn->sq_psn = rep->starting_psn;
	conn->max_rd_atomic = rep->responder_resources;
	conn->max_dest_rd_atomic = rep->initiator_depth;
	conn->rnr_retry = rep->rnr_retry;
	conn->ack_timeout = cm_ack_timeout(rep->target_ack_delay, conn->packet_life);
	cm_set_peer(cm, conn, rep->ca_guid, rep->local_id, rep->local_qpn);
}

/*
 * Handles the first REP of a REQ.  If an older connection has its queue pair, that connection is
 * stale and is ended; the REP itself belongs to this REQ, because it has its id.  The Linux kernel
 * rejects such a REP but continues to wait, and may then accept a copy of a REP that it has
 * rejected.
 */
static enum cm_verdict receive_first_rep(struct cm *cm, struct cm_conn *conn,
					 const struct cm_trigger *trigger)
{
	const struct mad_rep *rep = &trigger->mad->rep;
	struct cm_conn *old;

	if (cm_find_remote_id(cm, rep->ca_guid, rep->local_id))
		return CM_REPEATED;
	old = cm_find_remote_qp(cm, rep->ca_guid, rep->local_qpn);
	if (old)
		end_stale_conn(cm, old, trigger);
	set_from_rep(cm, conn, rep);
	return cm_apply_msg(cm, conn, CM_IN_REP, trigger);
}

/*
 * Rejects a REP or RTU with an id that no connection has: the connection was one of this process
 * and is released, or one of another slot whose process has exited (see cm_receive()).  The sender
 * of a REP then need not wait for an RTU, and the sender of an RTU learns that its connection has
 * no other end.
 *
 * Also rejects a REP with another id of the peer than an earlier one: the peer has taken a late
 * copy of our REQ for a new request.
 */
static enum cm_verdict reject_unknown_id(struct cm *cm, const struct cm_trigger *trigger,
					 uint32_t our_id, uint32_t peer_id,
					 enum mad_refers_to refers_to)
{
	struct mad rej;

	/* No connection has id 0. */
	if (our_id == 0)
		return CM_DROP_UNKNOWN_ID;
	cm_build_rej_of_reply(trigger->mad, our_id, peer_id, refers_to, MAD_REJECT_INVALID_COMM_ID,
			      &rej);
	cm_send_mad(cm, trigger->from, &rej);
	return CM_REPLIED_UNKNOWN;
}

static enum cm_verdict receive_rep(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_rep *rep = &trigger->mad->rep;
	struct cm_conn *conn = cm_find_local_id(cm, rep->remote_id);

	if (!conn || (conn->remote_id != 0 && conn->remote_id != rep->local_id))
		return reject_unknown_id(cm, trigger, rep->remote_id, rep->local_id,
					 MAD_REFERS_TO_REP);
	if (!conn->active || conn->service == CM_UD)
		return CM_DROP_STATE;
	if (conn->state == CM_REQ_SENT || conn->state == CM_MRA_REQ_RCVD)
		return receive_first_rep(cm, conn, trigger);
	/* The REQ was given up before the peer's id was known; now the REJ can contain it. */
	if (conn->state == CM_REJ_SENT && conn->remote_id == 0) {
		conn->remote_id = rep->local_id;
		conn->last_mad.rej.remote_id = rep->local_id;
	}
	return cm_apply_msg(cm, conn, CM_IN_REP, trigger);
}

/*
 * Finds the connection of a REJ.  A peer that does not know our id identifies the connection by its
 * own GUID, in the ARI, and its own id.
 */
static struct cm_conn *find_rejected(const struct cm *cm, const struct mad_rej *rej)
{
	struct cm_conn *conn;

	if (rej->reason == MAD_REJECT_TIMEOUT && rej->ari_length >= GUID_BYTES) {
		conn = cm_find_remote_id(cm, wire_get_be64(rej->ari), rej->local_id);
		if (conn)
			return conn;
	}
	conn = cm_find_local_id(cm, rej->remote_id);
	if (!conn || conn->service == CM_UD)
		return NULL;
	/* The id of the peer is unknown until the REP is received, so accept any. */
	if (rej->refers_to == MAD_REFERS_TO_REQ || conn->remote_id == 0)
		return conn->active ? conn : NULL;
	return conn->remote_id == rej->local_id ? conn : NULL;
}

static enum cm_verdict receive_rej(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_rej *rej = &trigger->mad->rej;
	struct cm_conn *conn = find_rejected(cm, rej);
	enum cm_input input = CM_IN_REJ;

	if (!conn)
		return CM_DROP_UNKNOWN_ID;
	if (rej->refers_to == MAD_REFERS_TO_REQ && conn->active)
		input = CM_IN_REJ_REQ;
	if (input == CM_IN_REJ_REQ && rej->reason == MAD_REJECT_STALE && !conn->stale_retried)
		input = CM_IN_REJ_STALE_FIRST;
	return cm_apply_msg(cm, conn, input, trigger);
}

static enum cm_verdict receive_mra(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_mra *mra = &trigger->mad->mra;
	bool of_req = mra->refers_to == MAD_REFERS_TO_REQ;
	struct cm_conn *conn = of_req ? cm_find_local_id(cm, mra->remote_id)
				      : cm_find_pair(cm, mra->remote_id, mra->local_id);

	if (!conn)
		return CM_DROP_UNKNOWN_ID;
	if (mra->refers_to != MAD_REFERS_TO_REQ && mra->refers_to != MAD_REFERS_TO_REP)
		return CM_DROP_STATE;
	return cm_apply_msg(cm, conn, of_req ? CM_IN_MRA_REQ : CM_IN_MRA_REP, trigger);
}

static enum cm_verdict receive_rtu(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_rtu *rtu = &trigger->mad->rtu;
	struct cm_conn *conn = cm_find_pair(cm, rtu->remote_id, rtu->local_id);

	if (!conn)
		return reject_unknown_id(cm, trigger, rtu->remote_id, rtu->local_id,
					 MAD_REFERS_TO_OTHER);
	return conn->active ? CM_DROP_STATE : cm_apply_msg(cm, conn, CM_IN_RTU, trigger);
}

/* A DREQ for an unknown connection is answered by a DREP: the connection is over. */
static enum cm_verdict receive_dreq(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_dreq *dreq = &trigger->mad->dreq;
	struct cm_conn *conn = cm_find_pair(cm, dreq->remote_id, dreq->local_id);
	struct mad drep;

	if (!conn) {
		cm_build_drep_of_dreq(trigger->mad, &drep);
		cm_send_mad(cm, trigger->from, &drep);
		return CM_REPLIED_UNKNOWN;
	}
	if (dreq->remote_qpn != conn->local_qpn)
		return CM_DROP_QPN;
	conn->dreq_transaction_id = trigger->mad->transaction_id;
	return cm_apply_msg(cm, conn, CM_IN_DREQ, trigger);
}

static enum cm_verdict receive_drep(struct cm *cm, const struct cm_trigger *trigger)
{
	const struct mad_drep *drep = &trigger->mad->drep;
	struct cm_conn *conn = cm_find_pair(cm, drep->remote_id, drep->local_id);

	return conn ? cm_apply_msg(cm, conn, CM_IN_DREP, trigger) : CM_DROP_UNKNOWN_ID;
}

static bool is_refused(enum cm_verdict verdict)
{
	static const bool refusals[CM_VERDICTS] = {
		[CM_REFUSED_SERVICE] = true, [CM_REFUSED_MISMATCH] = true,
		[CM_REFUSED_BACKLOG] = true, [CM_REFUSED_STALE] = true,
		[CM_REFUSED_PATH] = true,
	};

	return refusals[verdict];
}

enum cm_verdict cm_receive(struct cm *cm, const struct cm_path *from, const uint8_t *bytes,
			   size_t length, uint64_t now)
{
	static enum cm_verdict (*const receivers[MAD_ATTRS])(struct cm *,
							     const struct cm_trigger *) = {
		[MAD_REQ - MAD_ATTR_FIRST] = receive_req,
		[MAD_MRA - MAD_ATTR_FIRST] = receive_mra,
		[MAD_REJ - MAD_ATTR_FIRST] = receive_rej,
		[MAD_REP - MAD_ATTR_FIRST] = receive_rep,
		[MAD_RTU - MAD_ATTR_FIRST] = receive_rtu,
		[MAD_DREQ - MAD_ATTR_FIRST] = receive_dreq,
		[MAD_DREP - MAD_ATTR_FIRST] = receive_drep,
		[MAD_SIDR_REQ - MAD_ATTR_FIRST] = cm_receive_sidr_req,
		[MAD_SIDR_REP - MAD_ATTR_FIRST] = cm_receive_sidr_rep,
	};
	struct mad mad;
	const struct cm_trigger trigger = { .mad = &mad, .from = from, .now = now };
	enum cm_verdict verdict = CM_DROP_MAD;

	if (mad_decode(bytes, length, &mad) == MAD_OK) {
		size_t attr = mad.attr - MAD_ATTR_FIRST;

		cm->counters.received[attr]++;
		verdict = receivers[attr](cm, &trigger);
		cm->counters.repeated[attr] += verdict == CM_REPEATED;
		cm->counters.refused[attr] += is_refused(verdict);
	}
	return verdict;
}
