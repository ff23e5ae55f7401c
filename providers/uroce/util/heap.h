/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Pairing heap of deadlines.  Its nodes are embedded in the objects they belong to, so nothing is
 * allocated.  Finding the earliest and adding are O(1), removing is O(log n) amortised.
 */
#ifndef UROCE_UTIL_HEAP_H
#define UROCE_UTIL_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Must be zeroed before its first use. */
struct heap_node {
	struct heap_node *child;   /* first of the children, which are later */
	struct heap_node *sibling; /* next child of the same parent */
	struct heap_node *prev;	   /* previous sibling, or the parent of a first child */
	uint64_t at;
	bool in;
};

struct heap {
	struct heap_node *first; /* earliest node, or NULL */
};

/* Adds a node, or moves it if it is in the heap already. */
void heap_set(struct heap *heap, struct heap_node *node, uint64_t at);
/* Does nothing if the node is not in the heap. */
void heap_remove(struct heap *heap, struct heap_node *node);

#endif
