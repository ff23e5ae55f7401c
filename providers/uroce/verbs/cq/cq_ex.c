/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Extended CQs: polled one CQE at a time, whose fields are read by functions.  The CQE is copied,
 * so that the application may post between start_poll and end_poll even if the request completes
 * into the same CQ.
 */
#include <errno.h>
#include <time.h>

#include "cq.h"
#include "verbs/abi/api_call.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

/* Current offset from the device clock, which is CLOCK_MONOTONIC, to wall time, in ns. */
static uint64_t wallclock_offset(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - progress_now();
}

static struct uroce_cq *to_cq(struct ibv_cq_ex *cq)
{
	return (struct uroce_cq *)cq;
}

static void set_current(struct uroce_cq *cq)
{
	cq->base.cq_ex.wr_id = cq->current.wr_id;
	cq->base.cq_ex.status = cq->current.status;
}

static void lock_poll(struct uroce_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->poll_lock);
}

static void unlock_poll(struct uroce_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->poll_lock);
}

static int start_poll(struct ibv_cq_ex *current, struct ibv_poll_cq_attr *attr)
{
	struct uroce_cq *cq = to_cq(current);
	int polled;

	if (attr->comp_mask)
		return UROCE_SET_ERRNO(EINVAL);
	if (uroce_is_stale(cq->generation))
		return ENOENT;
	lock_poll(cq);
	polled = uroce_cq_poll(cq, 1, &cq->current, &cq->current_timestamp);
	if (polled == 1) {
		set_current(cq);
		return 0;
	}
	/* The application calls end_poll only if start_poll succeeds. */
	unlock_poll(cq);
	/* An empty CQ leaves errno as it is. */
	return polled ? UROCE_SET_ERRNO(EIO) : ENOENT;
}

static int next_poll(struct ibv_cq_ex *current)
{
	struct uroce_cq *cq = to_cq(current);

	if (uroce_cq_poll_ring(cq, 1, &cq->current, &cq->current_timestamp) != 1)
		return ENOENT;
	set_current(cq);
	return 0;
}

static void end_poll(struct ibv_cq_ex *current)
{
	unlock_poll(to_cq(current));
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *current)
{
	return to_cq(current)->current.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *current)
{
	return to_cq(current)->current_timestamp;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *current)
{
	return to_cq(current)->current_timestamp + wallclock_offset();
}

enum {
	WC_TIMESTAMPS =
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	SUPPORTED_WC_FLAGS = IBV_WC_STANDARD_FLAGS | WC_TIMESTAMPS,
};

/* Returns 0, EINVAL or EOPNOTSUPP. */
static int parse_init_attr(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
			   struct uroce_cq_options *options)
{
	const uint32_t masks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
	const uint32_t known =
		IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	if ((attr->comp_mask & ~masks) || (attr->wc_flags & ~(uint64_t)SUPPORTED_WC_FLAGS) ||
	    (flags & ~known))
		return EOPNOTSUPP;
	*options = (struct uroce_cq_options){
		.timestamps = attr->wc_flags & WC_TIMESTAMPS,
		.ignore_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
		.single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED,
	};
	if (!(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
		return 0;
	if (!attr->parent_domain)
		return EINVAL;
	options->pd = to_uroce_pd(attr->parent_domain);
	/* It must be a parent domain. */
	if (!options->pd->extended ||
	    !uroce_contexts_share_file(context, attr->parent_domain->context))
		return EINVAL;
	if (options->pd->td)
		options->single_threaded = true;
	return 0;
}

struct ibv_cq_ex *uroce_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct uroce_cq_options options;
	struct ibv_cq_ex *ex;
	struct uroce_cq *cq;
	int error = parse_init_attr(context, attr, &options);

	if (error) {
		errno = error;
		return NULL;
	}
	cq = uroce_cq_create(context, attr->cqe > UROCE_MAX_CQE ? 0 : (int)attr->cqe, attr->channel,
			     (int)attr->comp_vector, &options);
	if (!cq)
		return NULL;
	ex = &cq->base.cq_ex;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
	ex->read_byte_len = read_byte_len;
	ex->read_imm_data = read_imm_data;
	ex->read_qp_num = read_qp_num;
	ex->read_src_qp = read_src_qp;
	ex->read_slid = read_slid;
	ex->read_sl = read_sl;
	ex->read_dlid_path_bits = read_dlid_path_bits;
	if (attr->wc_flags & WC_TIMESTAMPS) {
		ex->read_completion_ts = read_completion_ts;
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
	}
	return ex;
}
