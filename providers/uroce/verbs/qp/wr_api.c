/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ibv_wr_start() to ibv_wr_complete(), with the QP's lock held: WQEs are built in the free slots
 * from the head of the SQ on and pushed all together, so that ibv_wr_abort() need not undo
 * anything.  ibv_wr_complete() returns the first error, and then posts nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "qp.h"
#include "ud.h"
#include "verbs/abi/api_call.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

enum {
	ATOMIC_BYTES = 8,
	OPS_RC = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV |
		 IBV_QP_EX_WITH_ATOMIC_WRITE,
	/* Subsets of OPS_RC. */
	OPS_UD = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	OPS_UC = OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV,
};

static struct uroce_qp *to_qp(struct ibv_qp_ex *qp)
{
	return (struct uroce_qp *)qp;
}

static void set_error(struct uroce_qp *qp, int error)
{
	if (!qp->batch.error)
		qp->batch.error = error;
	qp->batch.wqe = NULL;
}

static bool is_atomic(const struct eng_send_wqe *wqe)
{
	return wqe->op == ENG_COMPARE_SWAP || wqe->op == ENG_FETCH_ADD;
}

/* Checks that the last WQE begun is complete. */
static void check_last_wqe(struct uroce_qp *qp)
{
	const struct eng_send_wqe *wqe = qp->batch.wqe;

	if (!wqe)
		return;
	if (is_atomic(wqe) && (wqe->sge_count != 1 || wqe->length != ATOMIC_BYTES))
		set_error(qp, EINVAL);
	if (qp->type == ENG_UD && !wqe->ud.ah)
		set_error(qp, EINVAL);
}

static struct eng_send_wqe *begin_wqe(struct ibv_qp_ex *ex, enum eng_op op)
{
	struct uroce_qp *qp = to_qp(ex);
	struct eng_send_wqe *wqe;

	check_last_wqe(qp);
	if (qp->batch.error)
		return NULL;
	if (ex->wr_flags & ~(unsigned int)UROCE_SEND_FLAGS) {
		set_error(qp, EINVAL);
		return NULL;
	}
	if (eng_ring_used(&qp->sq) + qp->batch.count >= qp->sq.limit) {
		set_error(qp, ENOMEM);
		return NULL;
	}
	wqe = eng_ring_slot(&qp->sq, qp->sq.head + qp->batch.count++);
	qp->batch.wqe = wqe;
	wqe->wr_id = ex->wr_id;
	wqe->op = (uint8_t)op;
	/* The function that sets the data also sets ENG_INLINE. */
	wqe->flags = (uint8_t)(ex->wr_flags & ~(unsigned int)IBV_SEND_INLINE);
	wqe->sge_count = 0;
	wqe->length = 0;
	wqe->immediate = 0;
	wqe->xrc_srqn = 0;
	wqe->ud.ah = NULL;
	return wqe;
}

static void begin_remote(struct ibv_qp_ex *ex, enum eng_op op, uint32_t rkey, uint64_t va,
			 uint32_t immediate)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, op);

	if (!wqe)
		return;
	wqe->remote.va = va;
	wqe->remote.rkey = rkey;
	wqe->immediate = immediate;
}

static void begin_atomic(struct ibv_qp_ex *ex, enum eng_op op, uint32_t rkey, uint64_t va,
			 uint64_t compare_add, uint64_t swap)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, op);

	if (!wqe)
		return;
	wqe->remote.va = va;
	wqe->remote.rkey = rkey;
	wqe->remote.compare_add = compare_add;
	wqe->remote.swap = swap;
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin_wqe(ex, ENG_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 immediate)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, ENG_SEND_IMM);

	if (wqe)
		wqe->immediate = ntohl(immediate);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va)
{
	begin_remote(ex, ENG_WRITE, rkey, va, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, __be32 immediate)
{
	begin_remote(ex, ENG_WRITE_IMM, rkey, va, ntohl(immediate));
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va)
{
	begin_remote(ex, ENG_READ, rkey, va, 0);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, uint64_t compare,
			      uint64_t swap)
{
	begin_atomic(ex, ENG_COMPARE_SWAP, rkey, va, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, uint64_t add)
{
	begin_atomic(ex, ENG_FETCH_ADD, rkey, va, add, 0);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, ENG_SEND_INV);

	if (wqe)
		wqe->immediate = rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t rkey)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, ENG_LOCAL_INV);

	if (wqe)
		wqe->immediate = rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, ENG_BIND_MW);
	int error = 0;

	if (wqe)
		error = uroce_mw_init_wqe(to_qp(ex), IBV_MW_TYPE_2, mw, rkey, info, wqe);
	if (error)
		set_error(to_qp(ex), error);
}

/* The value is a parameter, so the data is inline; alloc_rings() reserves space for it. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, const void *value)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, ENG_ATOMIC_WRITE);

	if (!wqe)
		return;
	wqe->remote.va = va;
	wqe->remote.rkey = rkey;
	memcpy(wqe->data.bytes, value, ATOMIC_BYTES);
	wqe->length = ATOMIC_BYTES;
	wqe->flags |= ENG_INLINE;
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t va, size_t length, uint8_t type,
		     uint8_t level)
{
	struct eng_send_wqe *wqe = begin_wqe(ex, ENG_FLUSH);

	if (!wqe)
		return;
	if (!type || (type & ~WIRE_FLUSH_TYPES) || level > ABI_FLUSH_MR || length > UINT32_MAX) {
		set_error(to_qp(ex), EINVAL);
		return;
	}
	wqe->remote.va = va;
	wqe->remote.rkey = rkey;
	wqe->remote.flush = type | (level == ABI_FLUSH_MR ? WIRE_FLUSH_MR : 0);
	wqe->length = (uint32_t)length;
}

/* Returns false for operations without data, or whose data is set when they are begun. */
static bool expects_data(const struct eng_send_wqe *wqe)
{
	return wqe->op != ENG_LOCAL_INV && wqe->op != ENG_BIND_MW && wqe->op != ENG_ATOMIC_WRITE &&
	       wqe->op != ENG_FLUSH;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t count, const struct ibv_sge *list)
{
	struct uroce_qp *qp = to_qp(ex);
	struct eng_send_wqe *wqe = qp->batch.wqe;
	uint64_t length = 0;

	if (!wqe)
		return;
	if (count > qp->cap.max_send_sge || !expects_data(wqe)) {
		set_error(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		wqe->data.sge[i].addr = list[i].addr;
		wqe->data.sge[i].length = list[i].length;
		wqe->data.sge[i].lkey = list[i].lkey;
		length += list[i].length;
	}
	if (length > ENG_MAX_MESSAGE) {
		set_error(qp, EINVAL);
		return;
	}
	wqe->sge_count = (uint8_t)count;
	wqe->length = (uint32_t)length;
	wqe->flags &= (uint8_t)~ENG_INLINE;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t count,
				    const struct ibv_data_buf *list)
{
	struct uroce_qp *qp = to_qp(ex);
	struct eng_send_wqe *wqe = qp->batch.wqe;
	size_t length = 0;

	if (!wqe)
		return;
	if (wqe->op == ENG_READ || is_atomic(wqe) || !expects_data(wqe)) {
		set_error(qp, EINVAL);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (list[i].length > qp->cap.max_inline_data - length) {
			set_error(qp, EINVAL);
			return;
		}
		memcpy(wqe->data.bytes + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	wqe->sge_count = 0;
	wqe->length = (uint32_t)length;
	wqe->flags |= ENG_INLINE;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buffer = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buffer);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct uroce_qp *qp = to_qp(ex);
	int error = 0;

	if (qp->batch.wqe)
		error = uroce_ud_set_dest(qp, qp->batch.wqe, ah, remote_qpn, remote_qkey);
	if (error)
		set_error(qp, error);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	if (to_qp(ex)->batch.wqe)
		to_qp(ex)->batch.wqe->xrc_srqn = remote_srqn;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct uroce_qp *qp = to_qp(ex);

	if (!uroce_is_stale(qp->generation))
		pthread_mutex_lock(&qp->progress.lock);
	qp->batch.error = 0;
	qp->batch.count = 0;
	qp->batch.wqe = NULL;
	if (uroce_is_stale(qp->generation))
		set_error(qp, EIO);
	else if (eng_qp_state(qp->progress.engine) < ENG_RTS)
		set_error(qp, EINVAL);
	else if (qp->type == ENG_UD)
		uroce_ud_release_completed(qp);
}

static int complete_batch(struct ibv_qp_ex *ex)
{
	struct uroce_qp *qp = to_qp(ex);
	int error;

	check_last_wqe(qp);
	error = qp->batch.error;
	if (!error && qp->batch.count) {
		for (uint32_t i = 0; i < qp->batch.count; i++) {
			if (qp->type == ENG_UD)
				uroce_ud_hold_ah(eng_ring_slot(&qp->sq, qp->sq.head));
			eng_sq_push(qp->progress.engine);
		}
		uroce_sends_pushed(qp);
	}
	if (!uroce_is_stale(qp->generation))
		pthread_mutex_unlock(&qp->progress.lock);
	return error;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	return UROCE_SET_ERRNO(complete_batch(ex));
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct uroce_qp *qp = to_qp(ex);

	if (!uroce_is_stale(qp->generation))
		pthread_mutex_unlock(&qp->progress.lock);
}

/* Operations that a QP type supports. */
static uint64_t supported_ops(enum eng_qp_type type)
{
	switch (type) {
	case ENG_RC:
		return OPS_RC | (abi_qp_has_flush() ? ABI_QP_EX_WITH_FLUSH : 0);
	case ENG_XRC_SEND:
		return OPS_RC;
	case ENG_UC:
		return OPS_RC & OPS_UC;
	case ENG_UD:
		return OPS_RC & OPS_UD;
	case ENG_XRC_RECV:
		break;
	}
	return 0;
}

int uroce_wr_set_ops(struct uroce_qp *qp, uint64_t flags)
{
	struct ibv_qp_ex *ex = &qp->base.qp_ex;

	if (flags & ~supported_ops(qp->type))
		return EOPNOTSUPP;
	if (qp->type == ENG_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (qp->type == ENG_XRC_SEND)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_atomic_write = wr_atomic_write;
	abi_qp_set_ex(&qp->base);
	if (flags & ABI_QP_EX_WITH_FLUSH)
		abi_qp_set_flush(&qp->base, wr_flush);
	return 0;
}
