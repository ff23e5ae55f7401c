/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Slots of the clients of a broker: a slot has one holder, rests after use, and is used again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "broker/slots.h"
#include "rand.h"

enum { CLIENTS = 200, STEPS = 200000 };

static struct broker_slots slots;

static uint32_t take(uint32_t client)
{
	uint32_t slot = slots_propose(&slots);

	if (slot != UROCE_BROKER_NO_SLOT)
		assert_true(slots_hold(&slots, slot, client, slot));
	return slot;
}

static void test_order(void **state)
{
	(void)state;
	slots_init(&slots);
	for (uint32_t i = 0; i < 10; i++)
		assert_int_equal(take(i + 1), i);
	/* A slot that was just used rests. */
	slots_free(&slots, 4);
	assert_int_equal(take(11), 10);
	assert_int_equal(slots_holder(&slots, 3), 4);
	assert_int_equal(slots_holder(&slots, 4), SLOTS_NO_CLIENT);
	assert_int_equal(slots_holder(&slots, UROCE_BROKER_SLOTS), SLOTS_NO_CLIENT);
	assert_int_equal(slots_holder(&slots, UROCE_BROKER_NO_SLOT), SLOTS_NO_CLIENT);
}

/* Processes that run one after the other use few slots, and a slot again only after others. */
static void test_rest(void **state)
{
	uint32_t last[SLOTS_REST_MIN + 1] = { 0 };

	(void)state;
	slots_init(&slots);
	for (uint32_t i = 1; i <= 10 * SLOTS_REST_MIN; i++) {
		uint32_t slot = take(i);

		assert_true(slot <= SLOTS_REST_MIN);
		assert_true(!last[slot] || i - last[slot] >= SLOTS_REST_MIN);
		last[slot] = i;
		slots_free(&slots, slot);
	}
}

static void test_begin(void **state)
{
	(void)state;
	slots_init(&slots);
	slots_set_start(&slots, 5 * UROCE_BROKER_SLOTS - 1);
	assert_int_equal(take(1), UROCE_BROKER_SLOTS - 1);
	assert_int_equal(take(2), 0);
	assert_int_equal(take(3), 1);
}

static void test_all(void **state)
{
	(void)state;
	slots_init(&slots);
	for (uint32_t i = 0; i < UROCE_BROKER_SLOTS; i++)
		assert_int_not_equal(take(i + 1), UROCE_BROKER_NO_SLOT);
	assert_int_equal(take(1), UROCE_BROKER_NO_SLOT);
	slots_free(&slots, 77);
	slots_free(&slots, 77);
	assert_int_equal(take(1), 77);
	assert_int_equal(take(1), UROCE_BROKER_NO_SLOT);
}

/* Clients of an earlier broker get their slots back, even if this one has marked them as absent. */
static void test_return(void **state)
{
	(void)state;
	slots_init(&slots);
	slots_mark_absent(&slots, 0);
	slots_mark_absent(&slots, 5);
	assert_int_equal(slots.absent, 2);
	assert_int_equal(take(1), 1);
	assert_true(slots_hold(&slots, 5, 2, 5));
	/* A further slot of the same client. */
	assert_true(slots_hold(&slots, 3000, 2, 5));
	assert_int_equal(slots.slot[3000].first, 5);
	assert_int_equal(slots.absent, 1);
	/* Another client cannot hold the slot, and its holder may claim it again. */
	assert_false(slots_hold(&slots, 5, 3, 5));
	assert_true(slots_hold(&slots, 5, 2, 5));
	/* An owner that does not return has ended. */
	slots_free(&slots, 0);
	assert_int_equal(slots.absent, 0);
	assert_int_equal(slots.resting, 1);
}

/* Resting slots are also claimed from the middle of their list. */
static void test_any_order(void **state)
{
	static uint32_t client[UROCE_BROKER_SLOTS];
	uint32_t held = 0;

	(void)state;
	slots_init(&slots);
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t slot = rand_below(CLIENTS);

		if (client[slot] && rand_below(2)) {
			slots_free(&slots, slot);
			client[slot] = 0;
			held--;
		} else if (!client[slot] && rand_below(2)) {
			client[slot] = i + 1;
			assert_true(slots_hold(&slots, slot, i + 1, slot));
			held++;
		} else if (!client[slot] && rand_below(2)) {
			slots_mark_absent(&slots, slot);
			slots_free(&slots, slot);
		} else if (held < CLIENTS / 2) {
			slot = slots_propose(&slots);
			assert_true(slot < UROCE_BROKER_SLOTS && !client[slot]);
		}
	}
	for (uint32_t slot = 0; slot < CLIENTS; slot++)
		assert_int_equal(slots_holder(&slots, slot), client[slot]);
	assert_true(slots.resting <= CLIENTS - held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),  cmocka_unit_test(test_rest),
		cmocka_unit_test(test_begin),  cmocka_unit_test(test_all),
		cmocka_unit_test(test_return), cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
