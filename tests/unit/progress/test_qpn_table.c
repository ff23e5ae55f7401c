/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Queue pair numbers: which ones are assigned, in which order, and the lookup of the QP. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "progress/base/qpn_table.h"

enum {
	LAST_SLOT = LINK_SLOTS - 1,
};

static struct progress_qp *find(struct qpn_table *table, uint32_t qpn)
{
	bool ours;

	return qpn_table_find(table, qpn, &ours);
}

static struct qpn_table table;

static struct progress_qp *new_qps(size_t count)
{
	struct progress_qp *qps = calloc(count, sizeof(*qps));

	assert_non_null(qps);
	return qps;
}

/* A number consists of slot and index, and is found until it is removed. */
static void test_found_until_removed(void **state)
{
	struct progress_qp qp = { 0 }, other = { 0 };

	(void)state;
	qpn_table_init(&table, 5, 1000);
	assert_int_equal(qpn_table_add(&table, &qp), 0);
	assert_int_equal(qp.qpn, 5u << LINK_SLOT_SHIFT | 1000);
	assert_ptr_equal(find(&table, qp.qpn), &qp);
	assert_int_equal(qpn_table_add(&table, &other), 0);
	assert_int_equal(other.qpn, qp.qpn + 1);
	assert_null(find(&table, other.qpn + 1));
	assert_null(find(&table, 5u << LINK_SLOT_SHIFT | LINK_INDEX_MASK));
	qpn_table_remove(&table, &qp);
	assert_null(find(&table, qp.qpn));
	assert_ptr_equal(find(&table, other.qpn), &other);
	qpn_table_fini(&table);
}

/* A number that has become free is not assigned again before all others have been. */
static void test_round_robin(void **state)
{
	struct progress_qp qp = { 0 };
	uint32_t first;

	(void)state;
	qpn_table_init(&table, 1, 70000);
	assert_int_equal(qpn_table_add(&table, &qp), 0);
	first = qp.qpn;
	for (uint32_t given = 1; given <= LINK_INDEX_MASK - QPN_TABLE_FIRST_INDEX; given++) {
		qpn_table_remove(&table, &qp);
		assert_int_equal(qpn_table_add(&table, &qp), 0);
		assert_int_not_equal(qp.qpn, first);
	}
	qpn_table_remove(&table, &qp);
	assert_int_equal(qpn_table_add(&table, &qp), 0);
	assert_int_equal(qp.qpn, first);
	qpn_table_fini(&table);
}

/* All numbers of a slot except the reserved ones can be assigned, each once; then adding fails. */
static void test_all_numbers(void **state)
{
	size_t count = LINK_INDEX_MASK + 1 - QPN_TABLE_FIRST_INDEX - 1;
	struct progress_qp *qps = new_qps(count + 1);
	uint8_t *given = calloc(LINK_INDEX_MASK + 1, 1);

	(void)state;
	assert_non_null(given);
	qpn_table_init(&table, LAST_SLOT, 0xdeadbeef);
	for (size_t i = 0; i < count; i++) {
		uint32_t index;

		assert_int_equal(qpn_table_add(&table, &qps[i]), 0);
		index = qps[i].qpn & LINK_INDEX_MASK;
		assert_int_equal(qps[i].qpn >> LINK_SLOT_SHIFT, LAST_SLOT);
		assert_true(index >= QPN_TABLE_FIRST_INDEX);
		/* The number that means multicast. */
		assert_int_not_equal(qps[i].qpn, 0xffffff);
		assert_int_equal(given[index], 0);
		given[index] = 1;
	}
	assert_int_equal(qpn_table_add(&table, &qps[count]), -ENOSPC);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(find(&table, qps[i].qpn), &qps[i]);
	qpn_table_remove(&table, &qps[77]);
	assert_int_equal(qpn_table_add(&table, &qps[count]), 0);
	assert_int_equal(qps[count].qpn, qps[77].qpn);
	qpn_table_fini(&table);
	free(given);
	free(qps);
}

/* A start among the reserved numbers is moved to the first number that may be assigned. */
static void test_start_is_moved(void **state)
{
	struct progress_qp qp = { 0 };

	(void)state;
	qpn_table_init(&table, 0, 1);
	assert_int_equal(qpn_table_add(&table, &qp), 0);
	assert_int_equal(qp.qpn, QPN_TABLE_FIRST_INDEX);
	qpn_table_fini(&table);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_until_removed),
		cmocka_unit_test(test_round_robin),
		cmocka_unit_test(test_all_numbers),
		cmocka_unit_test(test_start_is_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
