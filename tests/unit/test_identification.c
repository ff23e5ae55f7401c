/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "progress/identification.h"

/* A uroce peer's packets have their place in a run; anything else is damage. */
static void test_places(void **state)
{
	struct identification peer = { 0 };

	(void)state;
	/* rule S14 test */
	for (uint16_t id = 0; id < 128; id++)
		assert_true(identification_plausible(&peer, id));
	assert_true(identification_plausible(&peer, 0));
	assert_false(identification_plausible(&peer, 128));
	assert_false(identification_plausible(&peer, 40000));
	assert_true(identification_plausible(&peer, 3));
}

/* A peer with a counter goes on from where it was, over the wrap too. */
static void test_counter(void **state)
{
	struct identification peer = { 0 };

	(void)state;
	/* rule S14 test */
	assert_true(identification_plausible(&peer, 65000));
	for (uint32_t id = 65000; id < 67000; id++)
		assert_true(identification_plausible(&peer, (uint16_t)id));
	assert_false(identification_plausible(&peer, 30000));
	assert_true(identification_plausible(&peer, 2000));
}

/* Damage among right packets never adds up to a change of the peer. */
static void test_damage_does_not_add_up(void **state)
{
	struct identification peer = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_true(identification_plausible(&peer, 5));
		assert_false(identification_plausible(&peer, (uint16_t)(1000 + 601 * i)));
	}
}

/* A peer that really changes, as after a new connection, is believed with its second packet. */
static void test_change(void **state)
{
	struct identification peer = { 0 };
	int refused = 0;

	(void)state;
	assert_true(identification_plausible(&peer, 0));
	while (!identification_plausible(&peer, (uint16_t)(20000 + refused)))
		refused++;
	assert_int_equal(refused, 1);
	assert_true(identification_plausible(&peer, 20010));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_damage_does_not_add_up),
		cmocka_unit_test(test_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
