/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * UD QPs: the addresses that they listen on, address handles of requests, and multicast groups.
 *
 * A send WQE holds a reference to its address handle until the engine has completed it, which the
 * tail of the ring shows.  The references are dropped when the SQ is used the next time.
 */
#ifndef UROCE_VERBS_UD_H
#define UROCE_VERBS_UD_H

#include "qp.h"

/* Makes qp receive on all GIDs of its device.  No locks held.  Returns 0 or a positive errno. */
int uroce_ud_listen(struct uroce_qp *qp);
/* The addresses of interfaces have changed: listens on the new ones.  May take seconds. */
void uroce_ud_addresses_changed(void);
/* Stops listening for a context that is being closed and has no more QPs. */
void uroce_ud_close(struct uroce_context *context);

/* The next four are called with qp->progress.lock held. */

/* Sets the destination of wqe.  Returns 0 or EINVAL.  ah may be NULL unless op is a SEND. */
int uroce_ud_set_dest(struct uroce_qp *qp, struct eng_send_wqe *wqe, struct ibv_ah *ah,
		      uint32_t dest_qpn, uint32_t qkey);
/* Takes a reference to the address handle of a WQE that is about to be pushed. */
void uroce_ud_hold_ah(const struct eng_send_wqe *wqe);
/* Drops the references of completed WQEs, before their slots in the SQ are used again. */
void uroce_ud_release_completed(struct uroce_qp *qp);
/* Drops the references of all WQEs.  Called when the SQ is reset or destroyed. */
void uroce_ud_release_all(struct uroce_qp *qp);

/* Returns true if qp is attached to a multicast group.  Any thread. */
bool uroce_mcast_is_member(struct uroce_qp *qp);
/* Detaches qp from all multicast groups.  Control call: no locks held. */
void uroce_mcast_detach_all(struct uroce_qp *qp);

#endif
