/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "heap.h"

#include <assert.h>
#include <stddef.h>

/* Merges two heaps whose roots have no siblings. */
static struct heap_node *merge_heaps(struct heap_node *a, struct heap_node *b)
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
	later->prev = a;
	later->sibling = a->child;
	if (later->sibling)
		later->sibling->prev = later;
	a->child = later;
	a->sibling = NULL;
	a->prev = NULL;
	return a;
}

static struct heap_node *detach_node(struct heap_node *node)
{
	struct heap_node *rest = node->sibling;

	node->sibling = NULL;
	node->prev = NULL;
	return rest;
}

/* Merges siblings into one heap: in pairs from left to right, then the pairs backwards. */
static struct heap_node *merge_siblings(struct heap_node *node)
{
	struct heap_node *pairs = NULL, *all = NULL;

	while (node) {
		struct heap_node *a = node, *b = detach_node(a), *pair;

		node = b ? detach_node(b) : NULL;
		pair = merge_heaps(a, b);
		pair->sibling = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct heap_node *rest = detach_node(pairs);

		all = merge_heaps(all, pairs);
		pairs = rest;
	}
	return all;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	struct heap_node *later;

	if (!node->in)
		return;
	later = merge_siblings(node->child);
	node->child = NULL;
	if (node == heap->first) {
		heap->first = later;
	} else {
		assert(node->prev);
		if (node->prev->child == node)
			node->prev->child = node->sibling;
		else
			node->prev->sibling = node->sibling;
		if (node->sibling)
			node->sibling->prev = node->prev;
		heap->first = merge_heaps(heap->first, later);
	}
	node->sibling = NULL;
	node->prev = NULL;
	node->in = false;
}

void heap_set(struct heap *heap, struct heap_node *node, uint64_t at)
{
	heap_remove(heap, node);
	node->at = at;
	node->in = true;
	heap->first = merge_heaps(heap->first, node);
}
