/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Work on QPs that engine callbacks must leave to the progress thread, which an eventfd wakes.  If
 * a CQ overruns, its QPs go to ERR: the overrun is detected inside an engine callback with a QP's
 * lock held, where no state may change.
 */
#ifndef UROCE_VERBS_DEFERRED_QP_WORK_H
#define UROCE_VERBS_DEFERRED_QP_WORK_H

#include "cq.h"

/* References, one for each CQ: the first creates the eventfd.  Returns 0 or a positive errno. */
int uroce_qp_work_get(struct progress *progress);
void uroce_qp_work_put(struct progress *progress);
/* Sets the work on a QP, which is done with its lock held. */
void uroce_qp_work_set(void (*run)(struct progress_qp *qp, void *arg));
/*
 * A CQ has overrun, or the path of a QP must be checked (verbs/qp/path_mtu.h): the progress thread
 * visits all QPs.  Allowed inside engine callbacks.
 */
void uroce_qp_work_schedule(void);

#endif
