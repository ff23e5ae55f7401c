/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* QPs as the application holds them: those of XRC targets by handles (verbs/xrc/xrc.h). */
#include <errno.h>

#include "srq.h"
#include "ud.h"
#include "verbs/abi/ops.h"
#include "verbs/xrc/xrc.h"

struct ibv_qp *uroce_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct uroce_qp *qp = uroce_qp_create(pd->context, &ex);

	if (!qp)
		return NULL;
	attr->cap = ex.cap;
	return &qp->base.qp;
}

struct ibv_qp *uroce_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct uroce_qp *qp;
	struct ibv_qp *handle;
	int error = 0;

	if ((attr->comp_mask & ~known) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && attr->create_flags)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) && attr->qp_type != IBV_QPT_XRC_RECV) {
		errno = EINVAL;
		return NULL;
	}
	qp = uroce_qp_create(context, attr);
	if (!qp)
		return NULL;
	if (qp->type == ENG_XRC_RECV) {
		handle = uroce_xrc_qp_handle_create(qp, attr->xrcd, attr->qp_context);
		if (!handle)
			uroce_qp_free(qp);
		/* An XRC target does not use its PD, but librdmacm reads the PD of its id here. */
		else if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
			handle->pd = attr->pd;
		return handle;
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		error = uroce_wr_set_ops(qp, attr->send_ops_flags);
	if (error) {
		uroce_destroy_qp(&qp->base.qp);
		errno = error;
		return NULL;
	}
	return &qp->base.qp;
}

struct uroce_qp *uroce_qp_of_handle(struct ibv_qp *ibv_qp)
{
	return ibv_qp->qp_type == IBV_QPT_XRC_RECV ? to_xrc_qp_handle(ibv_qp)->qp
						   : to_uroce_qp(ibv_qp);
}

int uroce_destroy_qp(struct ibv_qp *ibv_qp)
{
	if (ibv_qp->qp_type == IBV_QPT_XRC_RECV)
		return uroce_xrc_qp_handle_close(to_xrc_qp_handle(ibv_qp));
	/* A QP must be detached from its multicast groups first: ibv_attach_mcast(3). */
	if (uroce_mcast_is_member(to_uroce_qp(ibv_qp)))
		return EBUSY;
	uroce_qp_free(to_uroce_qp(ibv_qp));
	return 0;
}

/* Called by libibverbs in the thread that has read an event, before the application gets it. */
void uroce_async_event_op(struct ibv_context *context, struct ibv_async_event *event)
{
	(void)context;
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		atomic_fetch_add(&to_uroce_cq(event->element.cq)->async_events_reported, 1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		if (event->element.qp->qp_type == IBV_QPT_XRC_RECV)
			atomic_fetch_add(
				&to_xrc_qp_handle(event->element.qp)->async_events_reported, 1);
		else
			atomic_fetch_add(&to_uroce_qp(event->element.qp)->async_events_reported, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		atomic_fetch_add(&to_uroce_srq(event->element.srq)->async_events_reported, 1);
		break;
	default:
		break;
	}
}
