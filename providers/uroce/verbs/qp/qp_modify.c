/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ibv_modify_qp() and ibv_query_qp(): conversion of verbs attributes to those of the engine and
 * back.  The engine has the table of required and optional attributes (engine/qp_state.h); values
 * are checked here.  All checks are made before anything changes.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/uroce-abi.h>

#include "ah.h"
#include "engine/base/aeth.h"
#include "link/netlink/neighbour.h"
#include "qp.h"
#include "ud.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

_Static_assert((int)ENG_RESET == IBV_QPS_RESET && (int)ENG_INIT == IBV_QPS_INIT &&
		       (int)ENG_RTR == IBV_QPS_RTR && (int)ENG_RTS == IBV_QPS_RTS &&
		       (int)ENG_SQD == IBV_QPS_SQD && (int)ENG_SQE == IBV_QPS_SQE &&
		       (int)ENG_ERR == IBV_QPS_ERR,
	       "the engine's states are those of verbs");
_Static_assert((int)ENG_ATTR_STATE == IBV_QP_STATE && (int)ENG_ATTR_AV == IBV_QP_AV &&
		       (int)ENG_ATTR_RQ_PSN == IBV_QP_RQ_PSN &&
		       (int)ENG_ATTR_MIN_RNR_TIMER == IBV_QP_MIN_RNR_TIMER &&
		       (int)ENG_ATTR_PATH_MIG_STATE == IBV_QP_PATH_MIG_STATE &&
		       (int)ENG_ATTR_DEST_QPN == IBV_QP_DEST_QPN,
	       "the engine's attribute bits are those of verbs");

enum {
	MAX_TIMEOUT_CODE = 31, /* 5 bits: Local ACK Timeout, RNR timer */
	MAX_RETRIES = 7,       /* 3 bits */
	MAX_24_BITS = 0xffffff,
	KNOWN_ACCESS = 0x3ff | IBV_ACCESS_OPTIONAL_RANGE,
	ENGINE_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE |
			ABI_ACCESS_FLUSH_GLOBAL | ABI_ACCESS_FLUSH_PERSISTENT,
};

static enum ibv_mtu active_mtu(struct uroce_device *device)
{
	uint32_t mtu;

	pthread_mutex_lock(&device->port_lock);
	mtu = device->netdev.mtu;
	pthread_mutex_unlock(&device->port_lock);
	return uroce_active_mtu(mtu);
}

static bool numbers_are_valid(const struct ibv_qp_attr *attr, int mask)
{
	const struct {
		int bit;
		uint32_t value, max;
	} limits[] = {
		{ IBV_QP_PKEY_INDEX, attr->pkey_index, 0 },
		{ IBV_QP_ACCESS_FLAGS, attr->qp_access_flags & ~(unsigned int)KNOWN_ACCESS, 0 },
		{ IBV_QP_TIMEOUT, attr->timeout, MAX_TIMEOUT_CODE },
		{ IBV_QP_MIN_RNR_TIMER, attr->min_rnr_timer, MAX_TIMEOUT_CODE },
		{ IBV_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic, UROCE_MAX_RD_ATOMIC },
		{ IBV_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic, UROCE_MAX_RD_ATOMIC },
		{ IBV_QP_DEST_QPN, attr->dest_qp_num, MAX_24_BITS },
		/* Automatic path migration is not supported; only MIGRATED may be set. */
		{ IBV_QP_PATH_MIG_STATE, attr->path_mig_state, IBV_MIG_MIGRATED },
		{ IBV_QP_ALT_PATH, 1, 0 },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if ((mask & limits[i].bit) && limits[i].value > limits[i].max)
			return false;
	}
	return true;
}

/* Reports a path MTU that the interface does not carry: some programs always set 4096. */
static bool path_mtu_is_valid(const struct uroce_qp *qp, enum ibv_mtu path_mtu)
{
	enum ibv_mtu max = active_mtu(qp->context->device);

	if (path_mtu < IBV_MTU_256 || path_mtu > IBV_MTU_4096)
		return false;
	if (path_mtu <= max)
		return true;
	uroce_err("queue pair %u: the path MTU %u is larger than %s carries: use %u, the "
		  "active_mtu that ibv_query_port() and ibv_devinfo show, or give the "
		  "interface a larger MTU",
		  qp->progress.qpn, 128u << path_mtu, qp->context->device->base.device.name,
		  128u << max);
	return false;
}

/* Returns 0 or EINVAL.  Fills route if mask has IBV_QP_AV. */
static int check_values(struct uroce_qp *qp, const struct ibv_qp_attr *attr, int mask,
			struct progress_route *route)
{
	struct uroce_device *device = qp->context->device;
	char text[PROGRESS_ERROR_TEXT];

	if (!numbers_are_valid(attr, mask))
		return EINVAL;
	if ((mask & IBV_QP_PORT) && attr->port_num != 1)
		return EINVAL;
	if ((mask & IBV_QP_PATH_MTU) && !path_mtu_is_valid(qp, attr->path_mtu))
		return EINVAL;
	if (!(mask & IBV_QP_AV))
		return 0;
	/* The peer of a connection cannot be a multicast group. */
	if (gid_is_multicast(attr->ah_attr.grh.dgid.raw))
		return EINVAL;
	if (!uroce_ah_check(device, &attr->ah_attr, route))
		return 0;
	uroce_ah_strerror(device, &attr->ah_attr, text);
	uroce_err("queue pair %u cannot reach its peer: %s", qp->progress.qpn, text);
	return EINVAL;
}

static int check_transition(enum eng_qp_type type, enum eng_qp_state from,
			    const struct ibv_qp_attr *attr, int mask, enum eng_qp_state *to)
{
	*to = from;
	if (mask & IBV_QP_STATE) {
		if ((unsigned int)attr->qp_state >= ENG_STATES)
			return EINVAL;
		*to = (enum eng_qp_state)attr->qp_state;
	}
	/* The current state that the consumer assumes must be right. */
	if ((mask & IBV_QP_CUR_STATE) && (enum eng_qp_state)attr->cur_qp_state != from)
		return EINVAL;
	return eng_modify_check(type, from, *to, (uint32_t)mask) == ENG_MODIFY_OK ? 0 : EINVAL;
}

/* Copies the attributes named by mask. */
static void merge_attr(struct ibv_qp_attr *into, const struct ibv_qp_attr *attr, int mask)
{
#define COPY(bit, field)                           \
	do {                                       \
		if (mask & (bit))                  \
			into->field = attr->field; \
	} while (0)
	COPY(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	COPY(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	COPY(IBV_QP_PKEY_INDEX, pkey_index);
	COPY(IBV_QP_PORT, port_num);
	COPY(IBV_QP_QKEY, qkey);
	COPY(IBV_QP_AV, ah_attr);
	COPY(IBV_QP_PATH_MTU, path_mtu);
	COPY(IBV_QP_TIMEOUT, timeout);
	COPY(IBV_QP_RETRY_CNT, retry_cnt);
	COPY(IBV_QP_RNR_RETRY, rnr_retry);
	COPY(IBV_QP_RQ_PSN, rq_psn);
	COPY(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	COPY(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	COPY(IBV_QP_SQ_PSN, sq_psn);
	COPY(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	COPY(IBV_QP_PATH_MIG_STATE, path_mig_state);
	COPY(IBV_QP_DEST_QPN, dest_qp_num);
#undef COPY
	/* PSNs have 24 bits; some programs pass random 32-bit numbers. */
	into->rq_psn &= MAX_24_BITS;
	into->sq_psn &= MAX_24_BITS;
	/* Clamped as by rdma_connect(); rxe and mlx5 accept larger numbers, too. */
	if (into->retry_cnt > MAX_RETRIES)
		into->retry_cnt = MAX_RETRIES;
	if (into->rnr_retry > MAX_RETRIES)
		into->rnr_retry = MAX_RETRIES;
}

/* Called with qp->progress.lock held.  path is NULL if the address vector does not change. */
static void set_engine_attr(struct uroce_qp *qp, const struct eng_path *path)
{
	struct eng_attr *to = eng_qp_attr(qp->progress.engine);
	const struct ibv_qp_attr *from = &qp->attr;

	to->mtu = from->path_mtu ? 128u << from->path_mtu : 0;
	/* A datagram is one packet of at most the port's active MTU. */
	if (qp->type == ENG_UD)
		to->mtu = 128u << active_mtu(qp->context->device);
	to->dest_qpn = from->dest_qp_num;
	to->rq_psn = from->rq_psn;
	to->sq_psn = from->sq_psn;
	to->access = from->qp_access_flags & ENGINE_ACCESS;
	to->qkey = from->qkey;
	to->pkey = WIRE_DEFAULT_PKEY;
	to->timeout_code = ack_timeout_used(from->timeout);
	to->retry_count = from->retry_cnt;
	to->rnr_retry = from->rnr_retry;
	to->min_rnr_timer = from->min_rnr_timer;
	to->max_rd_atomic = from->max_rd_atomic;
	to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	to->sq_drained_event = from->en_sqd_async_notify;
	if (path)
		to->path = *path;
}

/*
 * Waits until the next hop is resolved.  If that fails, modify_qp succeeds nevertheless, and the
 * retries of the QP decide.
 */
static void resolve_next_hop(const struct uroce_qp *qp, const struct progress_route *route)
{
	if (!neighbour_wait_resolved(route->sgid, route->dgid, progress_route_scope(route)))
		uroce_debug("queue pair %u: cannot resolve the next hop to its peer",
			    qp->progress.qpn);
}

/* Reports the first process whose uroce has another version of shared memory. */
static void report_shm_version(const struct uroce_qp *qp)
{
	static atomic_bool is_reported;
	uint32_t version = link_shm_refused_version(progress_link(qp->progress.worker));

	if (version && !atomic_exchange(&is_reported, true))
		uroce_err("packets to a process of another version of uroce go by UDP, not through "
			  "shared memory: it has version %u of the format, and this uroce has %u",
			  version, UROCE_ABI_VERSION);
}

/*
 * Opens the path to the peer.  May block for some ms, and until the next hop is resolved.  Returns
 * 0 or a positive errno.
 */
static int open_path(struct uroce_qp *qp, const struct ibv_qp_attr *next,
		     struct progress_route *route, struct eng_path *path)
{
	char error[PROGRESS_ERROR_TEXT] = "";
	int result;

	route->dest_qpn = next->dest_qp_num;
	if (!route->traffic_class)
		route->traffic_class = qp->context->settings.traffic_class;
	resolve_next_hop(qp, route);
	result = progress_qp_connect(qp->progress.worker, &qp->progress, route, path, error);
	if (!result)
		uroce_set_inflight_budget(qp->progress.worker,
					  link_addr_receive_buffer(qp->progress.addr));
	if (!result)
		uroce_path_mtu_check(qp, next->path_mtu);
	if (!result)
		report_shm_version(qp);
	if (result && error[0])
		uroce_err("%s", error);
	return -result;
}

/*
 * Allocates responder resources for depth READs and Atomics, unless qp has as many: then *memory is
 * NULL.  Returns 0 or ENOMEM.
 */
static int alloc_resp_res(const struct uroce_qp *qp, uint32_t depth, void **memory)
{
	*memory = depth > qp->resp_res_depth ? malloc(eng_resp_res_bytes(depth)) : NULL;
	return *memory || depth <= qp->resp_res_depth ? 0 : ENOMEM;
}

/* Called with qp->progress.lock held.  Returns the old memory, which the caller must free. */
static void *set_resp_res(struct uroce_qp *qp, uint32_t depth, void *memory)
{
	if (!memory)
		return NULL;
	qp->resp_res = memory;
	qp->resp_res_depth = depth;
	return eng_set_resp_res(qp->progress.engine, memory, depth);
}

/*
 * Programs end a connection by moving the QP to ERR or RESET as soon as they have read the last
 * message (rdma_disconnect() does), while the peer still waits for its ACK.  The ACK is built from
 * the attributes of the QP, so it is sent before they change.  Called with qp->progress.lock held.
 */
static void send_final_ack(struct uroce_qp *qp, enum eng_qp_state to)
{
	if (to != ENG_ERR && to != ENG_RESET)
		return;
	eng_send_final_acks(qp->progress.engine);
	progress_qp_changed(qp->progress.worker, &qp->progress);
}

/* Called with modify_lock held, so that otherwise only errors change the state. */
static int modify_locked(struct uroce_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct progress_route route;
	struct eng_path path;
	struct ibv_qp_attr next = qp->attr;
	enum eng_qp_state from, to;
	void *resp_res;
	int error;

	pthread_mutex_lock(&qp->progress.lock);
	from = eng_qp_state(qp->progress.engine);
	pthread_mutex_unlock(&qp->progress.lock);
	error = check_transition(qp->type, from, attr, mask, &to);
	if (!error)
		error = check_values(qp, attr, mask, &route);
	if (error)
		return error;
	if (to == ENG_ERR || to == ENG_RESET)
		uroce_qp_receive_pending(qp);
	if (to == ENG_ERR)
		uroce_qp_wait_acks(qp);
	merge_attr(&next, attr, mask);
	if (mask & IBV_QP_AV)
		error = open_path(qp, &next, &route, &path);
	else if (qp->type == ENG_UD && to == ENG_RTR)
		error = uroce_ud_listen(qp);
	if (!error)
		error = alloc_resp_res(qp, next.max_dest_rd_atomic, &resp_res);
	if (error)
		return error;

	pthread_mutex_lock(&qp->progress.lock);
	/* If the QP went to ERR in the meantime, check again as if the call had come later. */
	if (eng_qp_state(qp->progress.engine) != from)
		error = check_transition(qp->type, eng_qp_state(qp->progress.engine), attr, mask,
					 &to);
	if (!error) {
		if (mask & IBV_QP_STATE)
			send_final_ack(qp, to);
		if (to == ENG_RESET) {
			memset(&next, 0, sizeof(next));
			uroce_ud_release_all(qp);
		}
		qp->attr = next;
		resp_res = set_resp_res(qp, next.max_dest_rd_atomic, resp_res);
		set_engine_attr(qp, mask & IBV_QP_AV ? &path : NULL);
		if (mask & IBV_QP_STATE)
			eng_set_state(qp->progress.engine, to, progress_now());
		progress_qp_changed(qp->progress.worker, &qp->progress);
	}
	pthread_mutex_unlock(&qp->progress.lock);
	free(resp_res);
	/* CQEs from before a reset belong to the previous connection. */
	if (!error && to == ENG_RESET)
		uroce_qp_clean_cqs(qp);
	return error;
}

/*
 * Removes from mask the responder attributes of an XRC initiator and the requester attributes of an
 * XRC target.  Programs set them, because the kernel ignores them.
 */
static int drop_unused_attrs(enum eng_qp_type type, int mask)
{
	if (type == ENG_XRC_SEND)
		return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (type == ENG_XRC_RECV)
		return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	return mask;
}

int uroce_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask)
{
	struct uroce_qp *qp = uroce_qp_of_handle(ibv_qp);
	int error;

	if (uroce_is_stale(qp->generation))
		return EIO;
	pthread_mutex_lock(&qp->modify_lock);
	error = modify_locked(qp, attr, drop_unused_attrs(qp->type, mask));
	pthread_mutex_unlock(&qp->modify_lock);
	if (error)
		uroce_debug("queue pair %u is not modified: state %s, attributes 0x%x: %s",
			    qp->progress.qpn,
			    mask & IBV_QP_STATE && (unsigned int)attr->qp_state < ENG_STATES
				    ? eng_qp_state_name((enum eng_qp_state)attr->qp_state)
				    : "unchanged",
			    (unsigned int)mask, strerror(error));
	return error;
}

int uroce_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct uroce_qp *qp = uroce_qp_of_handle(ibv_qp);
	struct eng_qp_info view;

	(void)mask; /* a hint; returning all attributes is cheap */
	if (uroce_is_stale(qp->generation))
		return EIO;
	pthread_mutex_lock(&qp->progress.lock);
	eng_qp_query(qp->progress.engine, &view);
	*attr = qp->attr;
	pthread_mutex_unlock(&qp->progress.lock);

	attr->qp_state = (enum ibv_qp_state)view.state;
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	/* Current PSNs, which begin with those that were set. */
	if (view.state >= ENG_RTR)
		attr->rq_psn = view.expected_psn;
	if (view.state >= ENG_RTS)
		attr->sq_psn = view.next_psn;
	attr->sq_draining = view.state == ENG_SQD && (view.in_flight || view.outstanding_reads);

	memset(init, 0, sizeof(*init));
	init->qp_context = ibv_qp->qp_context;
	init->send_cq = ibv_qp->send_cq;
	init->recv_cq = ibv_qp->recv_cq;
	init->srq = ibv_qp->srq;
	init->cap = qp->cap;
	init->qp_type = ibv_qp->qp_type;
	init->sq_sig_all = qp->signal_all;
	return 0;
}
