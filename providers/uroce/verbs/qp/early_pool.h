/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory for packets that come before their turn (engine/rx/ooo_rx.h): one pool for the process, of
 * a size that does not grow.  It is address space until packets are lost, and what has been used
 * stays.  No lock, so that a child of fork() never finds one held; what the parent's queue pairs
 * have taken is lost to the child.
 */
#ifndef UROCE_VERBS_QP_EARLY_POOL_H
#define UROCE_VERBS_QP_EARLY_POOL_H

/* Make it, if there is none; without memory there are no blocks.  For control calls. */
void early_pool_open(void);
/* A block of eng_ooo_packet_bytes() bytes, aligned to 64, or NULL; and back. */
void *early_pool_take(void);
void early_pool_give_back(void *block);

#endif
