/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A path to the peer that carries smaller packets than the queue pair sends: nothing arrives but
 * what is small, and no protocol tells of it.  The kernel may know: from its routes, at once, or
 * from a router's ICMP message, after the first packet.  The user is told, and a counter counts.
 * Nothing else follows from it, since such a message can be forged.
 */
#ifndef UROCE_VERBS_PATH_MTU_H
#define UROCE_VERBS_PATH_MTU_H

#include "qp.h"

/* qp, not UD, has a path to its peer, for packets of path_mtu.  Caller holds modify_lock. */
void uroce_path_check(struct uroce_qp *qp, enum ibv_mtu path_mtu);
/* The peer does not answer: look at the path soon.  In a turn, with the QP's lock held. */
void uroce_path_suspect(struct progress_qp *qp);
/* Look at the path of qp if it is suspect.  Caller holds the QP's lock, and is in no turn. */
void uroce_path_look(struct uroce_qp *qp);

#endif
