/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The heap of deadlines, compared with an array that is searched linearly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "rand.h"
#include "progress/base/deadline.h"

enum {
	QPS = 200,
	STEPS = 200000,
};

static struct progress_qp qps[QPS];
static uint64_t model[QPS];

static uint64_t model_earliest(void)
{
	uint64_t earliest = ENG_NEVER;

	for (int i = 0; i < QPS; i++)
		if (model[i] < earliest)
			earliest = model[i];
	return earliest;
}

static int setup(void **state)
{
	struct deadline_heap *heap = malloc(sizeof(*heap));

	memset(qps, 0, sizeof(qps));
	deadline_init(heap);
	for (int i = 0; i < QPS; i++) {
		model[i] = ENG_NEVER;
		deadline_init_qp(&qps[i]);
	}
	*state = heap;
	return 0;
}

static int teardown(void **state)
{
	deadline_fini(*state);
	free(*state);
	return 0;
}

/*
 * QPs are queued, removed and popped at random: the earliest deadline is always that of the model,
 * and in the end all QPs are popped.
 */
static void test_against_list(void **state)
{
	struct deadline_heap *heap = *state;
	uint64_t now = 0;

	for (int step = 0; step < STEPS; step++) {
		uint32_t i = rand_below(QPS);
		uint64_t when = now + rand_below(1000);
		bool sooner = when < model[i], first;
		struct progress_qp *qp;

		switch (rand_below(4)) {
		case 0:
		case 1:
			if (sooner)
				model[i] = when;
			first = deadline_queue(heap, &qps[i], when);
			assert_int_equal(first, sooner && heap->queue.first == &qps[i].deadline);
			break;
		case 2:
			deadline_remove_qp(heap, &qps[i]);
			model[i] = ENG_NEVER;
			break;
		default:
			now += rand_below(20);
			qp = deadline_pop(heap, now);
			if (!qp) {
				assert_true(model_earliest() > now);
				break;
			}
			assert_true(model[qp - qps] <= now);
			assert_int_equal(model[qp - qps], model_earliest());
			model[qp - qps] = ENG_NEVER;
		}
		assert_int_equal(deadline_earliest(heap), model_earliest());
		assert_int_equal(deadline_queued(&qps[i]), model[i]);
	}
	while (deadline_earliest(heap) != ENG_NEVER) {
		uint64_t earliest = model_earliest();
		struct progress_qp *qp = deadline_pop(heap, ENG_NEVER - 1);

		assert_non_null(qp);
		assert_int_equal(model[qp - qps], earliest);
		model[qp - qps] = ENG_NEVER;
	}
	assert_int_equal(model_earliest(), ENG_NEVER);
}

/* A later deadline changes nothing; an earlier one moves the QP forward. */
static void test_only_earlier_counts(void **state)
{
	struct deadline_heap *heap = *state;

	assert_true(deadline_queue(heap, &qps[0], 100));
	assert_true(deadline_queue(heap, &qps[1], 50));
	assert_false(deadline_queue(heap, &qps[0], 200));
	assert_int_equal(deadline_queued(&qps[0]), 100);
	assert_false(deadline_queue(heap, &qps[0], 60));
	assert_true(deadline_queue(heap, &qps[0], 40));
	assert_ptr_equal(deadline_pop(heap, 1000), &qps[0]);
	assert_ptr_equal(deadline_pop(heap, 1000), &qps[1]);
	assert_null(deadline_pop(heap, 1000));
}

/* No QP is popped before its deadline, and ENG_NEVER does not queue it. */
static void test_not_before_time(void **state)
{
	struct deadline_heap *heap = *state;

	assert_false(deadline_queue(heap, &qps[0], ENG_NEVER));
	assert_int_equal(deadline_earliest(heap), ENG_NEVER);
	assert_true(deadline_queue(heap, &qps[0], 100));
	assert_null(deadline_pop(heap, 99));
	assert_ptr_equal(deadline_pop(heap, 100), &qps[0]);
	assert_int_equal(deadline_queued(&qps[0]), ENG_NEVER);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_against_list, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_earlier_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_before_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
