/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Heap and hash table against searches of all their nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "util/heap.h"
#include "util/table.h"

#define NODES 200

/* After random changes the first is always the earliest, as a search of all entries shows. */
static void test_heap_knows_the_earliest(void **state)
{
	struct heap_node nodes[NODES];
	struct heap heap = { NULL };

	(void)state;
	srand(7);
	memset(nodes, 0, sizeof(nodes));
	for (unsigned int i = 0; i < 100000; i++) {
		struct heap_node *node = &nodes[rand() % NODES];
		uint64_t earliest = UINT64_MAX;

		if (rand() % 3)
			heap_set(&heap, node, (uint64_t)(rand() % 1000));
		else
			heap_remove(&heap, rand() % 2 && heap.first ? heap.first : node);
		for (unsigned int n = 0; n < NODES; n++)
			if (nodes[n].in && nodes[n].at < earliest)
				earliest = nodes[n].at;
		assert_true((heap.first ? heap.first->at : UINT64_MAX) == earliest);
	}
}

/* Entries are found by their key, several with the same one in turn; removed ones are not found. */
static void test_table(void **state)
{
	static struct table table;
	struct table_node nodes[NODES], *found;

	(void)state;
	memset(nodes, 0, sizeof(nodes));
	for (uint32_t i = 0; i < NODES; i++)
		table_insert(&table, &nodes[i], (uint64_t)(i / 2) << 40, i / 2);
	for (uint32_t i = 0; i < NODES; i += 2) {
		found = table_find(&table, (uint64_t)(i / 2) << 40, i / 2);
		assert_ptr_equal(found, &nodes[i + 1]);
		assert_ptr_equal(table_next(found), &nodes[i]);
		assert_null(table_next(&nodes[i]));
		assert_null(table_find(&table, (uint64_t)(i / 2) << 40, i / 2 + 1));
	}
	for (uint32_t i = 0; i < NODES; i++) {
		table_remove(&table, &nodes[i]);
		table_remove(&table, &nodes[i]);
	}
	for (uint32_t i = 0; i < TABLE_BUCKETS; i++)
		assert_null(table.bucket[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_knows_the_earliest),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
