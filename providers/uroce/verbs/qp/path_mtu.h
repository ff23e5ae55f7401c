/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Check that the path to the peer carries packets as large as the QP sends.  If it does not, only
 * small packets arrive, and the protocol does not report it.  The kernel knows the path MTU from
 * its routes, or after the first packet from a router's ICMP message.  A mismatch is reported on
 * stderr and counted (path_too_small); since ICMP messages can be forged it has no other effect.
 */
#ifndef UROCE_VERBS_PATH_MTU_H
#define UROCE_VERBS_PATH_MTU_H

#include "qp.h"

/* Checks the path of a connected qp, for path_mtu.  Called with modify_lock held. */
void uroce_path_mtu_check(struct uroce_qp *qp, enum ibv_mtu path_mtu);
/*
 * The peer does not respond: schedules a check of the path in the progress thread.  Called in a
 * progress cycle, with the QP's lock held.
 */
void uroce_path_mtu_schedule_check(struct progress_qp *qp);
/* Runs a scheduled check.  Called outside progress cycles, with the QP's lock held. */
void uroce_path_mtu_run_scheduled(struct uroce_qp *qp);

#endif
