/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory windows: keys that give a peer part of a region for a time.  Type 1 is bound by
 * ibv_bind_mw(), to anything as often as one likes, and any queue pair of the domain serves it.
 * Type 2 (2B of the specification) is bound by a work request with a key of the consumer's choice,
 * when it is free; only the queue pair that has bound it serves it, and it is free again after
 * LOCAL_INV, the peer's SEND with invalidate, or the end of that queue pair.
 *
 * Binds happen when their turn in the send queue comes.  Window and region may be gone by then, so
 * the request knows them by their keys.
 */
#ifndef UROCE_VERBS_MW_H
#define UROCE_VERBS_MW_H

#include "qp.h"

struct uroce_mw {
	struct ibv_mw base;
	struct key_entry entry;
	struct uroce_pd *pd;
};

static inline struct uroce_mw *to_uroce_mw(struct ibv_mw *mw)
{
	return (struct uroce_mw *)mw;
}

/*
 * The fields of a BIND_MW request that give window mw of that type a key with the low byte of rkey.
 * 0 or the errno of posting it.
 */
int uroce_mw_request(const struct uroce_qp *qp, enum ibv_mw_type type, const struct ibv_mw *mw,
		     uint32_t rkey, const struct ibv_mw_bind_info *info, struct eng_send_wqe *wqe);

/* The engine's calls; owner is the queue pair. */
bool uroce_mw_bind(void *owner, const struct eng_send_wqe *wqe);
bool uroce_mw_invalidate(void *owner, uint32_t key);

#endif
