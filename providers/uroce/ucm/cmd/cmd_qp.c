/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Command INIT_QP_ATTR: QP attributes for each state. */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "command.h"
#include "ucm/conn/connection.h"
#include "ucm/event.h"
#include "ucm/ucm_core.h"
#include "verbs/uroce.h"

#define ALL_STATES (IBV_QPS_ERR + 1)
/*
 * The kernel returns 0, which means 655 ms, and programs work around it.  If the peer retries
 * without limit, 0.64 ms is returned instead.  If its retries are limited, the kernel's value is
 * kept, since a program with such a limit was tested with it.
 */
#define RNR_TIMER_INFINITE_RETRY 12
#define RNR_TIMER_KERNEL 0
#define RNR_RETRY_INFINITE 7

static void fill_init(const struct ucm_id *id, struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	attr->port_num = UROCE_PORT;
	if (ucm_id_is_datagram(id)) {
		attr->qp_attr_mask |= IBV_QP_QKEY;
		attr->qkey = UCM_UD_QKEY;
		return;
	}
	attr->qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	if (!id->conn)
		return;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (id->responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
}

/* Limits a depth to what our QPs support; the library and the program may request less. */
static uint8_t limit_depth(uint8_t wanted)
{
	return wanted < UROCE_MAX_RD_ATOMIC ? wanted : UROCE_MAX_RD_ATOMIC;
}

static bool is_responder(const struct ucm_id *id)
{
	return id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_RECV;
}

static bool is_requester(const struct ucm_id *id)
{
	return id->qp_type == IBV_QPT_RC || id->qp_type == IBV_QPT_XRC_SEND;
}

static void fill_rtr(const struct ucm_id *id, const struct cm_qp_attr *cm,
		     struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask =
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	ucm_event_address_vector(id, &cm->path, &attr->ah_attr);
	attr->path_mtu = cm->path_mtu < id->mtu ? cm->path_mtu : id->mtu;
	attr->dest_qp_num = cm->dest_qpn;
	attr->rq_psn = id->rq_psn;
	if (!is_responder(id))
		return;
	attr->qp_attr_mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	attr->max_dest_rd_atomic = limit_depth(cm->max_dest_rd_atomic);
	attr->min_rnr_timer = cm->peer_rnr_retry == RNR_RETRY_INFINITE ? RNR_TIMER_INFINITE_RETRY
								       : RNR_TIMER_KERNEL;
}

static void fill_rts(const struct ucm_id *id, const struct cm_qp_attr *cm,
		     struct ib_uverbs_qp_attr *attr)
{
	attr->qp_attr_mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = cm->sq_psn;
	if (is_requester(id)) {
		attr->qp_attr_mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
		attr->retry_cnt = cm->retry_count;
		attr->rnr_retry = cm->rnr_retry;
		attr->max_rd_atomic = limit_depth(cm->max_rd_atomic);
	}
	if (is_requester(id) || is_responder(id)) {
		attr->qp_attr_mask |= IBV_QP_TIMEOUT;
		attr->timeout = id->ack_timeout_set ? id->ack_timeout : cm->ack_timeout;
	}
}

static int fill_attr(const struct ucm_id *id, uint32_t state, struct ib_uverbs_qp_attr *attr)
{
	struct cm_qp_attr cm;

	attr->qp_state = state;
	if (state == IBV_QPS_INIT || ucm_id_is_datagram(id)) {
		fill_init(id, attr);
		return 0;
	}
	if (!id->conn || (state != IBV_QPS_RTR && state != IBV_QPS_RTS) ||
	    cm_qp_attr(id->conn, &cm) != CM_OK)
		return EINVAL;
	if (state == IBV_QPS_RTR)
		fill_rtr(id, &cm, attr);
	else
		fill_rts(id, &cm, attr);
	return 0;
}

int ucm_cmd_init_qp_attr(struct ucm_call *call)
{
	const struct rdma_ucm_init_qp_attr *in = call->in;
	struct ib_uverbs_qp_attr attr = { 0 };
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (!id->device || in->qp_state >= ALL_STATES)
		return EINVAL;
	error = fill_attr(id, in->qp_state, &attr);
	return error ? error : ucm_respond(in->response, &attr, sizeof(attr));
}
