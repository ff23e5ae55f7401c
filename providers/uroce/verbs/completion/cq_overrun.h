/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What follows when a CQ has overrun: its QPs go to ERR.  The overrun is noticed deep inside an
 * engine, with a QP's lock held, where no state may change; so the helper thread does it, woken by
 * a descriptor.
 */
#ifndef UROCE_VERBS_CQ_OVERRUN_H
#define UROCE_VERBS_CQ_OVERRUN_H

#include "cq.h"

/* Counted by CQs: while one is left the helper thread listens.  0 or a positive errno. */
int uroce_overrun_get(struct progress *progress);
void uroce_overrun_put(struct progress *progress);
/*
 * A CQ has just died, or the path of a QP is suspect (verbs/qp/path_mtu.h): all QPs are looked at.
 * Allowed inside engine callbacks.
 */
void uroce_overrun_signal(void);
/* For forked.c.  The descriptor and the helper thread are the parent's. */
void uroce_overrun_fork_prepare(void);
void uroce_overrun_fork_parent(void);
void uroce_overrun_fork_child(void);

#endif
