/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Parts of the connection manager: deadlines in order, tables, and time codes. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm/cm.h"
#include "cm/util/heap.h"
#include "cm/util/table.h"
#include "cm/timing.h"

#define NODES 200
#define LONG_TIME (1000000 * CM_MS)

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
			cm_heap_set(&heap, node, (uint64_t)(rand() % 1000));
		else
			cm_heap_remove(&heap, rand() % 2 && heap.first ? heap.first : node);
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
		cm_table_insert(&table, &nodes[i], (uint64_t)(i / 2) << 40, i / 2);
	for (uint32_t i = 0; i < NODES; i += 2) {
		found = cm_table_find(&table, (uint64_t)(i / 2) << 40, i / 2);
		assert_ptr_equal(found, &nodes[i + 1]);
		assert_ptr_equal(cm_table_next(found), &nodes[i]);
		assert_null(cm_table_next(&nodes[i]));
		assert_null(cm_table_find(&table, (uint64_t)(i / 2) << 40, i / 2 + 1));
	}
	for (uint32_t i = 0; i < NODES; i++) {
		cm_table_remove(&table, &nodes[i]);
		cm_table_remove(&table, &nodes[i]);
	}
	for (uint32_t i = 0; i < TABLE_BUCKETS; i++)
		assert_null(table.bucket[i]);
}

/* 4.096 us x 2^n; the sum of trip and delay rounded up, as the kernel does (values of its captures
 * and of its source). */
static void test_codes(void **state)
{
	(void)state;
	assert_true(cm_code_ns(0) == 4096);
	assert_true(cm_code_ns(20) == 4294967296);
	assert_true(cm_code_ns(31) == UINT64_C(4096) << 31);
	assert_true(cm_code_ns(255) == UINT64_C(4096) << 31);
	assert_int_equal(cm_ack_timeout(15, 18), 19);
	assert_int_equal(cm_ack_timeout(15, 16), 17);
	assert_int_equal(cm_ack_timeout(15, 13), 16);
	assert_int_equal(cm_ack_timeout(15, 14), 16);
	assert_int_equal(cm_ack_timeout(15, 20), 21);
	assert_int_equal(cm_ack_timeout(15, 0), 15);
	assert_int_equal(cm_ack_timeout(31, 31), 31);
}

/* The sends of a request that is never answered: 0, 50 ms, 250 ms, 1.25 s, then the interval. */
static void test_repetitions(void **state)
{
	uint64_t interval = 2 * cm_code_ns(16) + cm_code_ns(20), at;
	const uint64_t early[] = { 50 * CM_MS, 250 * CM_MS, 1250 * CM_MS };
	struct timing t;

	(void)state;
	cm_timing_set(&t, 20, 16, 15);
	cm_timing_start(&t, LONG_TIME, 1000);
	for (unsigned int i = 0; i < 3; i++) {
		at = cm_timing_next(&t);
		assert_true(at == 1000 + early[i]);
		cm_timing_repeated(&t, at);
	}
	for (unsigned int i = 0; i < 14; i++) {
		assert_true(cm_timing_next(&t) == at + interval);
		at += interval;
		cm_timing_repeated(&t, at);
	}
	/* 70 s are over before 16 intervals of 4.8 s. */
	assert_true(t.give_up_at == 1000 + CM_GIVE_UP_NS);
	assert_true(cm_timing_next(&t) == t.give_up_at);
}

/* Absurd attributes: nothing is tried for less than an instant or for more than 70 s. */
static void test_bounds(void **state)
{
	struct timing t;

	(void)state;
	cm_timing_set_response(&t, 31, 15);
	assert_true(t.interval == CM_GIVE_UP_NS && t.limit == CM_GIVE_UP_NS);
	cm_timing_set_response(&t, 0, 0);
	assert_true(t.interval == 50 * CM_MS && t.limit == 50 * CM_MS);
	cm_timing_set(&t, 31, 31, 255);
	assert_true(t.limit == CM_GIVE_UP_NS);
	cm_timing_start(&t, CM_DESTROY_DREQ_NS, 5);
	assert_true(t.give_up_at == 5 + CM_DESTROY_DREQ_NS);
	assert_true(cm_timing_timewait(0) == 50 * CM_MS);
	assert_true(cm_timing_timewait(16) == cm_code_ns(16));
	assert_true(cm_timing_timewait(19) == CM_TIMEWAIT_MAX_NS);
}

/* An MRA of 68 s moves the end by no more than 70 s, once, and never brings it nearer. */
static void test_stretch(void **state)
{
	struct timing t;
	uint64_t end;

	(void)state;
	cm_timing_set(&t, 20, 16, 15);
	cm_timing_start(&t, LONG_TIME, 0);
	cm_timing_extend(&t, 0, 1);
	assert_true(t.give_up_at == CM_GIVE_UP_NS);
	cm_timing_start(&t, LONG_TIME, 0);
	cm_timing_extend(&t, 24, 10000 * CM_MS);
	end = t.give_up_at;
	assert_true(end == 10000 * CM_MS + CM_GIVE_UP_NS);
	assert_true(t.repeat_at == 10000 * CM_MS + t.interval);
	cm_timing_extend(&t, 24, 60000 * CM_MS);
	assert_true(t.give_up_at == end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_knows_the_earliest),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_repetitions),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_stretch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
