/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "heap.h"

#include <assert.h>
#include <stddef.h>

/* Merges two heaps whose roots have no siblings. */
static struct heap_node *meld(struct heap_node *a, struct heap_node *b)
{
	struct heap_node *later;

	if (!a || !b)
		return a ? a : b;
	if (b->at < a->at) {
		later = a;
		a = b;
	} else {
		later = b;
	}
	later->before = a;
	later->sibling = a->child;
	if (later->sibling)
		later->sibling->before = later;
	a->child = later;
	a->sibling = NULL;
	a->before = NULL;
	return a;
}

static struct heap_node *cut_off(struct heap_node *node)
{
	struct heap_node *rest = node->sibling;

	node->sibling = NULL;
	node->before = NULL;
	return rest;
}

/*
 * Merges a list of siblings into one heap: in pairs from left to right, then the pairs from right
 * to left.
 */
static struct heap_node *meld_all(struct heap_node *node)
{
	struct heap_node *pairs = NULL, *all = NULL;

	while (node) {
		struct heap_node *a = node, *b = cut_off(a), *pair;

		node = b ? cut_off(b) : NULL;
		pair = meld(a, b);
		pair->sibling = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct heap_node *rest = cut_off(pairs);

		all = meld(all, pairs);
		pairs = rest;
	}
	return all;
}

void cm_heap_remove(struct heap *heap, struct heap_node *node)
{
	struct heap_node *later;

	if (!node->in)
		return;
	later = meld_all(node->child);
	node->child = NULL;
	if (node == heap->first) {
		heap->first = later;
	} else {
		assert(node->before);
		if (node->before->child == node)
			node->before->child = node->sibling;
		else
			node->before->sibling = node->sibling;
		if (node->sibling)
			node->sibling->before = node->before;
		heap->first = meld(heap->first, later);
	}
	node->sibling = NULL;
	node->before = NULL;
	node->in = false;
}

void cm_heap_set(struct heap *heap, struct heap_node *node, uint64_t at)
{
	cm_heap_remove(heap, node);
	node->at = at;
	node->in = true;
	heap->first = meld(heap->first, node);
}
