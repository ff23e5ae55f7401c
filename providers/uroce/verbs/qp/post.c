/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * ibv_post_send(), ibv_post_recv() and ibv_bind_mw().  Each call takes the QP's lock once. Requests
 * before a bad one are posted, as the manual pages require.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "qp.h"
#include "srq.h"
#include "ud.h"
#include "verbs/fork.h"
#include "verbs/abi/ops.h"

_Static_assert((int)ENG_FENCE == IBV_SEND_FENCE && (int)ENG_SIGNALED == IBV_SEND_SIGNALED &&
		       (int)ENG_SOLICITED == IBV_SEND_SOLICITED &&
		       (int)ENG_INLINE == IBV_SEND_INLINE,
	       "flags are passed on as they are");
_Static_assert(sizeof(struct eng_sge) == sizeof(struct ibv_sge) &&
		       offsetof(struct eng_sge, length) == offsetof(struct ibv_sge, length) &&
		       offsetof(struct eng_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "gather lists are copied as they are");

enum {
	ATOMIC_BYTES = 8,
};

/* Address fields of the work request. */
enum addressing {
	ADDRESS_NONE,
	ADDRESS_REMOTE,
	ADDRESS_REMOTE_WORD, /* rdma, length ATOMIC_BYTES */
	ADDRESS_ATOMIC,
	ADDRESS_WINDOW, /* a local memory window; no data is transferred */
};

/* Meaning of the union of immediate data and invalidate_rkey. */
enum imm_field {
	IMM_NONE,
	IMM_DATA,
	IMM_RKEY,
};

/* Engine operation of an opcode, and the fields of the work request that it uses. */
struct opcode_row {
	uint8_t flags; /* allowed send_flags, a set of enum ibv_send_flags; 0: not supported */
	uint8_t op;    /* enum eng_op */
	uint8_t addressing;
	uint8_t imm_field;
	bool local; /* carries no data */
};

/* Flags of operations without outbound data, and with. */
#define FLAGS_NO_INLINE (UROCE_SEND_FLAGS & ~IBV_SEND_INLINE)
#define FLAGS_INLINE UROCE_SEND_FLAGS

/* clang-format off */
static const struct opcode_row opcodes[] = {
	[IBV_WR_SEND] = { FLAGS_INLINE, ENG_SEND, ADDRESS_NONE, IMM_NONE, false },
	[IBV_WR_SEND_WITH_IMM] = { FLAGS_INLINE, ENG_SEND_IMM, ADDRESS_NONE, IMM_DATA, false },
	[IBV_WR_RDMA_WRITE] = { FLAGS_INLINE, ENG_WRITE, ADDRESS_REMOTE, IMM_NONE, false },
	[IBV_WR_RDMA_WRITE_WITH_IMM] =
		{ FLAGS_INLINE, ENG_WRITE_IMM, ADDRESS_REMOTE, IMM_DATA, false },
	[IBV_WR_RDMA_READ] = { FLAGS_NO_INLINE, ENG_READ, ADDRESS_REMOTE, IMM_NONE, false },
	[IBV_WR_ATOMIC_CMP_AND_SWP] =
		{ FLAGS_NO_INLINE, ENG_COMPARE_SWAP, ADDRESS_ATOMIC, IMM_NONE, false },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] =
		{ FLAGS_NO_INLINE, ENG_FETCH_ADD, ADDRESS_ATOMIC, IMM_NONE, false },
	[IBV_WR_SEND_WITH_INV] =
		{ FLAGS_INLINE, ENG_SEND_INV, ADDRESS_NONE, IMM_RKEY, false },
	[IBV_WR_LOCAL_INV] = { FLAGS_NO_INLINE, ENG_LOCAL_INV, ADDRESS_NONE, IMM_RKEY, true },
	[IBV_WR_BIND_MW] = { FLAGS_NO_INLINE, ENG_BIND_MW, ADDRESS_WINDOW, IMM_NONE, true },
	[IBV_WR_ATOMIC_WRITE] =
		{ FLAGS_INLINE, ENG_ATOMIC_WRITE, ADDRESS_REMOTE_WORD, IMM_NONE, false },
};
/* clang-format on */

/* Copies inline data, or the SGE list, into wqe.  Returns 0 or EINVAL. */
static int set_data(const struct uroce_qp *qp, const struct ibv_sge *sge, uint32_t count,
		    bool inlined, struct eng_send_wqe *wqe)
{
	uint64_t length = 0;

	if (inlined) {
		for (uint32_t i = 0; i < count; i++) {
			if (sge[i].length > qp->cap.max_inline_data - length)
				return EINVAL;
			memcpy(wqe->data.bytes + length, (const void *)(uintptr_t)sge[i].addr,
			       sge[i].length);
			length += sge[i].length;
		}
		wqe->sge_count = 0;
	} else {
		if (count > qp->cap.max_send_sge)
			return EINVAL;
		for (uint32_t i = 0; i < count; i++) {
			memcpy(&wqe->data.sge[i], &sge[i], sizeof(sge[i]));
			length += sge[i].length;
		}
		if (length > ENG_MAX_MESSAGE)
			return EINVAL;
		wqe->sge_count = (uint8_t)count;
	}
	wqe->length = (uint32_t)length;
	return 0;
}

static int set_ud_dest(struct uroce_qp *qp, const struct opcode_row *row,
		       const struct ibv_send_wr *wr, struct eng_send_wqe *wqe)
{
	int error = row->local ? EINVAL
			       : uroce_ud_set_dest(qp, wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
						   wr->wr.ud.remote_qkey);

	if (!error)
		uroce_ud_hold_ah(wqe);
	return error;
}

/* Fills the address fields of wqe.  Returns 0 or a positive errno. */
static int set_address(struct uroce_qp *qp, const struct opcode_row *row,
		       const struct ibv_send_wr *wr, struct eng_send_wqe *wqe)
{
	if (row->addressing == ADDRESS_WINDOW)
		return uroce_mw_init_wqe(qp, IBV_MW_TYPE_2, wr->bind_mw.mw, wr->bind_mw.rkey,
					 &wr->bind_mw.bind_info, wqe);
	if (qp->type == ENG_UD)
		return set_ud_dest(qp, row, wr, wqe);
	if (row->addressing >= ADDRESS_REMOTE_WORD && wqe->length != ATOMIC_BYTES)
		return EINVAL;
	if (row->addressing == ADDRESS_ATOMIC) {
		if (wr->num_sge != 1)
			return EINVAL;
		wqe->remote.va = wr->wr.atomic.remote_addr;
		wqe->remote.rkey = wr->wr.atomic.rkey;
		wqe->remote.compare_add = wr->wr.atomic.compare_add;
		wqe->remote.swap = wr->wr.atomic.swap;
	} else if (row->addressing != ADDRESS_NONE) {
		wqe->remote.va = wr->wr.rdma.remote_addr;
		wqe->remote.rkey = wr->wr.rdma.rkey;
	}
	return 0;
}

static uint32_t imm_field(const struct opcode_row *row, const struct ibv_send_wr *wr)
{
	if (row->imm_field == IMM_NONE)
		return 0;
	return row->imm_field == IMM_DATA ? ntohl(wr->imm_data) : wr->invalidate_rkey;
}

static int post_one_send(struct uroce_qp *qp, const struct ibv_send_wr *wr)
{
	const struct opcode_row *row;
	struct eng_send_wqe *wqe;
	int error;

	if ((size_t)wr->opcode >= sizeof(opcodes) / sizeof(opcodes[0]))
		return EINVAL;
	row = &opcodes[wr->opcode];
	if (!row->flags || wr->num_sge < 0 || (wr->send_flags & ~(unsigned int)row->flags))
		return EINVAL;
	wqe = eng_sq_next(qp->progress.engine);
	if (!wqe)
		return ENOMEM;
	error = set_data(qp, wr->sg_list, row->local ? 0 : (uint32_t)wr->num_sge,
			 wr->send_flags & IBV_SEND_INLINE, wqe);
	if (error)
		return error;
	wqe->wr_id = wr->wr_id;
	wqe->op = row->op;
	wqe->flags = (uint8_t)wr->send_flags;
	wqe->immediate = imm_field(row, wr);
	wqe->xrc_srqn = wr->qp_type.xrc.remote_srqn;
	error = set_address(qp, row, wr, wqe);
	if (error)
		return error;
	eng_sq_push(qp->progress.engine);
	return 0;
}

/* Writing completion events may set errno, which must stay as it is. */
static __attribute__((noinline)) void flush_qp(struct uroce_qp *qp)
{
	int saved_errno = errno;

	eng_flush(qp->progress.engine);
	errno = saved_errno;
}

/*
 * Returns error and also sets errno to it, as UROCE_SET_ERRNO() does.  Called on failure only, so
 * that success costs nothing and leaves errno unchanged.
 */
static int fail_with_errno(int error)
{
	errno = error;
	return error;
}

inline void uroce_sends_pushed(struct uroce_qp *qp)
{
	/* In ERR and SQE, requests are accepted and flushed (rule S13). */
	switch (eng_qp_state(qp->progress.engine)) {
	case ENG_ERR:
	case ENG_SQE:
		flush_qp(qp);
		break;
	default:
		progress_posted_send(qp->progress.worker, &qp->progress);
	}
	if (qp->type == ENG_UD)
		uroce_ud_release_completed(qp);
}

static bool state_allows_send(enum eng_qp_state state)
{
	return state >= ENG_RTS;
}

int uroce_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct uroce_qp *qp = to_uroce_qp(ibv_qp);
	struct ibv_send_wr *first = wr;
	int error = 0;

	if (ibv_qp->qp_type == IBV_QPT_XRC_RECV || uroce_is_stale(qp->generation)) {
		*bad_wr = wr;
		return fail_with_errno(ibv_qp->qp_type == IBV_QPT_XRC_RECV ? EINVAL : EIO);
	}
	pthread_mutex_lock(&qp->progress.lock);
	if (!state_allows_send(eng_qp_state(qp->progress.engine)))
		error = EINVAL;
	if (qp->type == ENG_UD)
		uroce_ud_release_completed(qp);
	for (; wr && !error; wr = wr->next) {
		error = post_one_send(qp, wr);
		if (error)
			break;
	}
	if (wr != first)
		uroce_sends_pushed(qp);
	pthread_mutex_unlock(&qp->progress.lock);
	if (!error)
		return 0;
	*bad_wr = wr;
	return fail_with_errno(error);
}

int uroce_bind_mw(struct ibv_qp *ibv_qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	const unsigned int flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED;
	struct uroce_qp *qp = to_uroce_qp(ibv_qp);
	struct eng_send_wqe *wqe;
	uint32_t rkey;
	int error = 0;

	if (ibv_qp->qp_type == IBV_QPT_XRC_RECV || (bind->send_flags & ~flags))
		return EINVAL;
	if (uroce_is_stale(qp->generation))
		return EIO;
	pthread_mutex_lock(&qp->progress.lock);
	rkey = ibv_inc_rkey(mw->rkey);
	wqe = eng_sq_next(qp->progress.engine);
	if (eng_qp_state(qp->progress.engine) < ENG_RTS)
		error = EINVAL;
	else if (!wqe)
		error = ENOMEM;
	else
		error = uroce_mw_init_wqe(qp, IBV_MW_TYPE_1, mw, rkey, &bind->bind_info, wqe);
	if (!error) {
		wqe->wr_id = bind->wr_id;
		wqe->flags = (uint8_t)(bind->send_flags & (unsigned int)UROCE_SEND_FLAGS);
		eng_sq_push(qp->progress.engine);
		/* The new key is valid for posting at once: ibv_bind_mw(3). */
		mw->rkey = rkey;
		uroce_sends_pushed(qp);
	}
	pthread_mutex_unlock(&qp->progress.lock);
	return error;
}

inline int uroce_push_recv_wqe(struct eng_ring *ring, uint32_t max_sge,
			       const struct ibv_recv_wr *wr)
{
	struct eng_recv_wqe *wqe;
	uint64_t length = 0;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > max_sge)
		return EINVAL;
	wqe = eng_rq_next(ring);
	if (!wqe)
		return ENOMEM;
	for (int i = 0; i < wr->num_sge; i++) {
		wqe->sge[i].addr = wr->sg_list[i].addr;
		wqe->sge[i].length = wr->sg_list[i].length;
		wqe->sge[i].lkey = wr->sg_list[i].lkey;
		length += wr->sg_list[i].length;
	}
	wqe->wr_id = wr->wr_id;
	wqe->sge_count = (uint32_t)wr->num_sge;
	/* No message is longer, so larger buffers are not an error. */
	wqe->length = length < ENG_MAX_MESSAGE ? (uint32_t)length : ENG_MAX_MESSAGE;
	eng_rq_push(ring);
	return 0;
}

int uroce_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct uroce_qp *qp = to_uroce_qp(ibv_qp);
	struct ibv_recv_wr *first = wr;
	int error = 0;

	if (!ibv_qp->recv_cq || uroce_is_stale(qp->generation)) {
		*bad_wr = wr;
		/* XRC QPs have no receive queue. */
		return fail_with_errno(ibv_qp->recv_cq ? EIO : EINVAL);
	}
	pthread_mutex_lock(&qp->progress.lock);
	/* Receives may be posted from INIT on (rule C5). */
	if (qp->srq || eng_qp_state(qp->progress.engine) == ENG_RESET)
		error = EINVAL;
	for (; wr && !error; wr = wr->next) {
		error = uroce_push_recv_wqe(&qp->own_rq, qp->cap.max_recv_sge, wr);
		if (error)
			break;
	}
	if (wr != first) {
		if (eng_qp_state(qp->progress.engine) == ENG_ERR)
			flush_qp(qp);
		else
			progress_posted_receive(qp->progress.worker, &qp->progress);
	}
	pthread_mutex_unlock(&qp->progress.lock);
	if (!error)
		return 0;
	*bad_wr = wr;
	return fail_with_errno(error);
}
