/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagram queue pairs: what they hear, where they send to, and the groups they are in.
 *
 * A send request keeps its address handle until the engine has retired it.  The engine does not
 * tell when; but the ring's tail shows it, so handles are let go of when the queue is used next.
 */
#ifndef UROCE_VERBS_UD_H
#define UROCE_VERBS_UD_H

#include "qp.h"

/* Hear all addresses of the device.  Control call: without locks.  0 or a positive errno. */
int uroce_ud_listen(struct uroce_qp *qp);
/* The addresses of the interfaces have changed: hear the new ones.  May take seconds. */
void uroce_ud_addresses_changed(void);
/* The context is being closed; its QPs are gone. */
void uroce_ud_close(struct uroce_context *context);
/* In a forked child: the lock may be held by a thread that does not exist. */
void uroce_ud_forked(void);

/* All below: caller holds qp->progress.lock. */

/* Address a request that is being built; 0 or EINVAL.  ah may be NULL where op is not a SEND. */
int uroce_ud_address(struct uroce_qp *qp, struct eng_send_wqe *wqe, struct ibv_ah *ah,
		     uint32_t dest_qpn, uint32_t qkey);
/* The request is about to be pushed. */
void uroce_ud_hold(const struct eng_send_wqe *wqe);
/* Let go of the handles of retired requests; before slots are used again. */
void uroce_ud_retired(struct uroce_qp *qp);
/* Let go of all handles; the engine is about to forget its queue. */
void uroce_ud_forget(struct uroce_qp *qp);

/* Is qp attached to any multicast group?  Any thread. */
bool uroce_mcast_is_member(struct uroce_qp *qp);
/* Take qp out of all groups.  Control call: without locks. */
void uroce_mcast_detach_all(struct uroce_qp *qp);
void uroce_mcast_forked(void);

#endif
