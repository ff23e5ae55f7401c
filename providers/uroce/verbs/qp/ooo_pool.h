/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory for packets received out of order (engine/rx/ooo_rx.h): one pool of fixed size for each
 * process.  Only blocks that have been used occupy memory, and continue to.  The pool has no lock,
 * so that a forked child never finds it locked; blocks in use by QPs of the parent are lost to the
 * child.
 */
#ifndef UROCE_VERBS_QP_OOO_POOL_H
#define UROCE_VERBS_QP_OOO_POOL_H

/* Creates the pool if there is none.  If that fails, ooo_pool_alloc() returns NULL. */
void ooo_pool_init(void);
/* Take and return a block of eng_ooo_packet_bytes() bytes, aligned to 64; NULL: none is free. */
void *ooo_pool_alloc(void);
void ooo_pool_free(void *block);

#endif
