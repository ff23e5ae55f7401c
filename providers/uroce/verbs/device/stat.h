/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What uroce-stat sees: a listening socket of this process (kernel-headers/rdma/uroce-abi.h),
 * served by the helper thread while contexts are open.
 */
#ifndef UROCE_VERBS_STAT_H
#define UROCE_VERBS_STAT_H

#include "progress/progress.h"

/* Counted, one for each open context.  Without the socket all else works: failure is only told. */
void uroce_stat_get(struct progress *progress);
void uroce_stat_put(struct progress *progress);
/* For forked.c. */
void uroce_stat_fork_prepare(void);
void uroce_stat_fork_parent(void);
void uroce_stat_fork_child(void);

/*
 * Write all that can be seen as records (struct uroce_abi_record) into a new memory file; returns
 * its descriptor and *bytes, or a negative errno.
 */
int uroce_stat_snapshot(struct progress *progress, uint64_t *bytes);

/* Records of the layers above: more(writer) is called for each snapshot, in the helper thread. */
void uroce_stat_extend(void (*more)(void *writer));
/* Room for a record of kind, zeroed but for its head; NULL: no memory. */
void *uroce_stat_append(void *writer, unsigned int kind, size_t bytes);

#endif
