/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory windows: R_Keys for part of a memory region.  A type 1 window is bound by ibv_bind_mw(),
 * may be bound again at any time, and can be used through every QP of its protection domain.  A
 * type 2 window (2B in the specification) is bound by a work request with a key that the consumer
 * chooses, while it is unbound.  It can be used only through the QP that bound it, and is unbound
 * by LOCAL_INV, by the peer's SEND with invalidate, and when that QP is destroyed.
 *
 * A bind is executed in the order of the send queue.  Window and region may have been destroyed by
 * then, so the WQE refers to them by their keys.
 */
#ifndef UROCE_VERBS_MW_H
#define UROCE_VERBS_MW_H

#include "verbs/qp/qp.h"

struct uroce_mw {
	struct ibv_mw base;
	struct mkey_entry entry;
	struct uroce_pd *pd;
};

static inline struct uroce_mw *to_uroce_mw(struct ibv_mw *mw)
{
	return (struct uroce_mw *)mw;
}

/*
 * Fills wqe as a BIND_MW request for window mw, which must be of the given type; the low byte of
 * the new key is that of rkey.  Returns 0, EINVAL or EPERM.
 */
int uroce_mw_init_wqe(const struct uroce_qp *qp, enum ibv_mw_type type, const struct ibv_mw *mw,
		      uint32_t rkey, const struct ibv_mw_bind_info *info, struct eng_send_wqe *wqe);

/* MW bind and invalidation: engine callbacks (eng_ops); owner is the struct uroce_qp. */
bool uroce_mw_bind(void *owner, const struct eng_send_wqe *wqe);
bool uroce_mw_invalidate(void *owner, uint32_t key);

#endif
