/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deadlines in order: a pairing heap of nodes that lie in what they belong to, so that nothing is
 * allocated.  The earliest is known at once; adding is O(1), taking out O(log n) on average.
 */
#ifndef UROCE_CM_HEAP_H
#define UROCE_CM_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed before its first use. */
struct heap_node {
	struct heap_node *child;   /* the first of those that are later */
	struct heap_node *sibling; /* the next with the same parent */
	struct heap_node *before;  /* the sibling before, or the parent */
	uint64_t at;
	bool in;
};

struct heap {
	struct heap_node *first; /* the earliest, or NULL */
};

/* In or out before; it is in afterwards. */
void cm_heap_set(struct heap *heap, struct heap_node *node, uint64_t at);
/* It may be out already. */
void cm_heap_remove(struct heap *heap, struct heap_node *node);

#endif
