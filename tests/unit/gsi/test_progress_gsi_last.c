/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Last messages: the broker sends them several times after their process has ended, and never while
 * it runs.
 */
#include "gsi_child.h"

#include <errno.h>
#include <string.h>

#include "link_child.h"

enum { CHILDREN = 3 };

static struct gsi_child children[CHILDREN];

static int open_children(void **state)
{
	int error = enter_new_netns(state);

	if (error)
		return error;
	for (unsigned int i = 0; i < CHILDREN; i++)
		gsi_child_start(&children[i], 0, loopback4);
	return 0;
}

/* Stores a DREQ for peer, which the broker sends when child ends.  Returns its handle. */
static unsigned int set_last_message(struct gsi_child *child, const struct gsi_child *peer,
				     const uint8_t sgid[16], uint32_t tag)
{
	struct gsi_order order = { .what = GSI_LAST_MESSAGE_SET,
				   .mad = { .attribute = MAD_DREQ,
					    .tag = tag,
					    .remote_id = peer->slot << GSI_ID_SHIFT | tag } };
	struct gsi_report result;

	memcpy(order.gid, sgid, sizeof(order.gid));
	memcpy(order.dgid, loopback4, sizeof(order.dgid));
	result = gsi_child_do(child, &order);
	assert_int_equal(result.error, 0);
	return result.handle;
}

/* Expects each of these MADs two to four times, and no others.  The longest pause is 1 s. */
static void expect_last_messages(struct gsi_child *child, uint32_t first, uint32_t count)
{
	unsigned int seen[8] = { 0 }, missing = 2 * count;
	struct gsi_report report;

	while (gsi_child_next(child, missing ? CHILD_TIMEOUT_MS : 2500, &report)) {
		uint32_t tag = mad_tag(report.mad.bytes);

		assert_uint_in_range(tag, first, first + count - 1);
		assert_int_equal(report.mad.reason, GSI_MATCH_LOCAL);
		missing -= seen[tag - first]++ < 2;
	}
	for (uint32_t i = 0; i < count; i++)
		assert_uint_in_range(seen[i], 2, 4);
}

/* A process is killed: its last messages are sent, but not one that it has dropped. */
static void test_process_dies(void **state)
{
	const struct gsi_order drop = { .what = GSI_LAST_MESSAGE_DROP,
					.handle = set_last_message(&children[1], &children[2],
								   loopback4, 9) };

	(void)state;
	for (uint32_t tag = 1; tag <= 3; tag++)
		set_last_message(&children[1], &children[2], loopback4, tag);
	assert_int_equal(gsi_child_do(&children[1], &drop).error, 0);
	gsi_child_kill(&children[1]);
	expect_last_messages(&children[2], 1, 3);
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[2]);
}

/* Two processes with last messages are killed one after the other. */
static void test_one_after_the_other(void **state)
{
	(void)state;
	set_last_message(&children[0], &children[1], loopback4, 1);
	set_last_message(&children[0], &children[1], loopback4, 2);
	gsi_child_kill(&children[0]);
	expect_last_messages(&children[1], 1, 2);
	set_last_message(&children[1], &children[2], loopback4, 5);
	set_last_message(&children[2], &children[1], loopback4, 6);
	gsi_child_kill(&children[1]);
	expect_last_messages(&children[2], 5, 1);
	gsi_child_stop(&children[2]);
}

/* Last messages are also sent if the process exits without sending them itself. */
static void test_exit(void **state)
{
	(void)state;
	set_last_message(&children[2], &children[1], loopback4, 1);
	gsi_child_stop(&children[2]);
	expect_last_messages(&children[1], 1, 1);
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/* The process has closed the address but still runs: no last message is sent for it. */
static void test_living(void **state)
{
	struct gsi_order order = { .what = GSI_ADDR_PUT };
	struct gsi_report report;

	(void)state;
	memcpy(order.gid, loopback4, sizeof(order.gid));
	set_last_message(&children[0], &children[2], loopback4, 1);
	set_last_message(&children[1], &children[2], loopback4, 2);
	gsi_child_do(&children[1], &order);
	gsi_child_do(&children[0], &order);
	assert_false(gsi_child_next(&children[2], 1500, &report));
	for (unsigned int i = 0; i < CHILDREN; i++)
		gsi_child_stop(&children[i]);
}

/* There is room for GSI_LAST_MESSAGES messages, and for one more after one is dropped. */
static void test_room(void **state)
{
	struct gsi_order order = { .what = GSI_LAST_MESSAGE_SET, .mad = { .attribute = MAD_DREQ } };
	struct gsi_order drop = { .what = GSI_LAST_MESSAGE_DROP, .handle = 77 };

	(void)state;
	for (unsigned int i = 0; i < GSI_LAST_MESSAGES; i++)
		assert_int_equal(gsi_child_do(&children[0], &order).error, 0);
	assert_int_equal(gsi_child_do(&children[0], &order).error, -ENOSPC);
	gsi_child_do(&children[0], &drop);
	assert_int_equal(gsi_child_do(&children[0], &order).handle, 77);
	for (unsigned int i = 0; i < CHILDREN; i++)
		gsi_child_stop(&children[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_process_dies, open_children),
		cmocka_unit_test_setup(test_one_after_the_other, open_children),
		cmocka_unit_test_setup(test_exit, open_children),
		cmocka_unit_test_setup(test_living, open_children),
		cmocka_unit_test_setup(test_room, open_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
