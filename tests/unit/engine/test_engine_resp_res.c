/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Responder resources, compared with a list that drops its first entry when it is full, and is
 * searched linearly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/rx/resp_res.h"
#include "engine_fixture.h"

enum {
	NUMBERS = 1 << 24,
	MOST = ENG_MAX_RD_ATOMIC,
	STEPS = 20000,
	/* With this limit no more than eight parts of a response can be pending. */
	MOST_PACKETS = 2 * (RESP_RES_HOLES + 1),
};

struct item {
	uint32_t psn, packets;
	uint32_t wanted; /* pending packets of the response, one bit each */
	bool again;	 /* pending once more, after it was sent */
	uint32_t before; /* value of wanted before the burst, if in_burst */
	bool in_burst;
};

static struct {
	struct item item[MOST];
	unsigned int count, depth;
} list;

static struct engine_fixture fixture;

static int tear_down(void **state)
{
	(void)state;
	engine_fixture_close(&fixture);
	return 0;
}

/* Opens responder resources whose free-running indexes start at first. */
static void open_box(uint32_t depth, uint32_t first)
{
	memset(&list, 0, sizeof(list));
	list.depth = depth;
	engine_fixture_open(&fixture, ENG_RC, 64, NULL, NULL);
	fixture.qp->resp.resp_res_head = first;
	fixture.qp->resp.resp_res_oldest = first;
	engine_fixture_set_replay(&fixture, depth);
}

static bool is_wanted(const struct item *item)
{
	return item->wanted != 0;
}

static uint32_t first_of(uint32_t wanted)
{
	return (uint32_t)__builtin_ctz(wanted);
}

static uint32_t end_of(uint32_t wanted)
{
	return 32 - (uint32_t)__builtin_clz(wanted);
}

static uint32_t bits(uint32_t from, uint32_t end)
{
	return (1u << end) - (1u << from);
}

/*
 * rule S12 test: there is no room for one more than agreed while the oldest has not been answered
 * even once.
 */
static bool has_room(void)
{
	return list.count < list.depth || !is_wanted(&list.item[0]) || list.item[0].again;
}

static struct item *oldest_wanted(void)
{
	for (unsigned int i = 0; i < list.count; i++)
		if (is_wanted(&list.item[i]))
			return &list.item[i];
	return NULL;
}

/* rule S4 test: every known request is found by any of its PSNs, and no other PSN is found. */
static void check(void)
{
	struct item *oldest = oldest_wanted();
	const struct resp_res *pending = resp_res_peek(fixture.qp);

	assert_int_equal(resp_res_has_room(fixture.qp), has_room());
	assert_ptr_equal(pending, resp_res_pending(fixture.qp));
	if (!oldest)
		assert_null(pending);
	else
		assert_non_null(pending);
	if (oldest) {
		assert_int_equal(pending->psn, oldest->psn);
		assert_int_equal(pending->next, first_of(oldest->wanted));
		assert_int_equal(pending->end, end_of(oldest->wanted));
		assert_int_equal(pending->again, oldest->again);
	}
	for (unsigned int i = 0; i < list.count; i++) {
		const struct item *item = &list.item[i];
		uint32_t inside = rand_below(item->packets);
		const struct resp_res *entry =
			resp_res_find(fixture.qp, psn_add(item->psn, inside));

		assert_non_null(entry);
		assert_int_equal(entry->psn, item->psn);
		assert_int_equal(entry->packets, item->packets);
	}
	if (list.count > 0)
		assert_null(resp_res_find(fixture.qp, psn_sub(list.item[0].psn, 1)));
}

static void add(uint32_t *psn)
{
	uint32_t packets = 1 + rand_below(MOST_PACKETS);

	if (!has_room())
		return;
	if (list.count == list.depth) {
		memmove(&list.item[0], &list.item[1], (list.count - 1) * sizeof(list.item[0]));
		list.count--;
	}
	list.item[list.count++] =
		(struct item){ .psn = *psn, .packets = packets, .wanted = bits(0, packets) };
	resp_res_new(fixture.qp, *psn, packets);
	*psn = psn_add(*psn, packets);
}

static void repeat(void)
{
	struct item *item;
	struct resp_res *entry;
	uint32_t from, end;
	bool added;

	if (list.count == 0)
		return;
	item = &list.item[rand_below(list.count)];
	entry = resp_res_find(fixture.qp, item->psn);
	from = rand_below(item->packets);
	end = from + 1 + rand_below(item->packets - from);
	/* A later part is added to a part being repeated; otherwise it replaces it. */
	added = is_wanted(item) && item->again && from >= end_of(item->wanted);
	/*
	 * If its first response is still pending, the request is still answered for the first time.
	 */
	item->again |= !is_wanted(item);
	item->wanted = bits(from, end) | (added ? item->wanted : 0);
	resp_res_replay(fixture.qp, entry, from, end);
	assert_true(added || entry->from == from);
	assert_int_equal(entry->next, first_of(item->wanted));
	assert_int_equal(entry->end, end_of(item->wanted));
}

/* Sends a burst of at most this number of response packets. */
static void hand_out(unsigned int packets)
{
	struct item *item;

	for (unsigned int i = 0; i < list.count; i++)
		list.item[i].in_burst = false;
	resp_res_begin_burst(fixture.qp);
	while (packets-- > 0 && (item = oldest_wanted())) {
		if (!item->in_burst)
			item->before = item->wanted;
		item->in_burst = true;
		assert_int_equal(resp_res_ends_part(resp_res_pending(fixture.qp)),
				 !(item->wanted >> 1 & item->wanted & -item->wanted));
		resp_res_sent(fixture.qp, resp_res_pending(fixture.qp), first_of(item->wanted) + 1);
		item->wanted &= item->wanted - 1;
	}
}

static void take_back(void)
{
	for (unsigned int i = 0; i < list.count; i++)
		if (list.item[i].in_burst)
			list.item[i].wanted = list.item[i].before;
	resp_res_rollback(fixture.qp);
}

/* Sends a burst, which the transport accepts as a whole or not at all. */
static void answer(bool taken)
{
	hand_out(1 + rand_below(12));
	if (!taken)
		take_back();
}

/* Any order of events, for depths that are powers of two and others, across all wraps. */
static void test_against_the_list(void **state)
{
	static const uint32_t depths[] = { 1, 2, 3, 5, 8, 13, 16, MOST };

	(void)state;
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		uint32_t psn = NUMBERS - 1000;

		open_box(depths[i], 0u - 500);
		for (unsigned int step = 0; step < STEPS / depths[i] + 500; step++) {
			switch (rand_below(8)) {
			case 0:
			case 1:
			case 2:
				add(&psn);
				break;
			case 3:
				repeat();
				break;
			case 4:
				answer(false);
				break;
			case 5:
				if (rand_below(20) == 0) {
					resp_res_cancel(fixture.qp);
					list.count = 0;
				}
				break;
			default:
				answer(true);
			}
			check();
		}
		if (depths[i] != MOST)
			engine_fixture_close(&fixture);
	}
}

/* More memory for a queue pair in use: known requests and pending responses are kept. */
static void test_memory_grows(void **state)
{
	uint32_t psn = NUMBERS - 10;

	(void)state;
	open_box(4, 0u - 2);
	for (unsigned int i = 0; i < 4; i++)
		add(&psn);
	check();
	hand_out(1);
	engine_fixture_set_replay(&fixture, 16);
	list.depth = 16;
	check();
	take_back();
	check();
	for (unsigned int i = 0; i < 40; i++) {
		add(&psn);
		check();
		answer(i % 3);
		check();
	}
}

/* An entry that spans the wrap contains its own PSNs and no others of the 2^24. */
static void test_every_psn(void **state)
{
	(void)state;
	open_box(4, 0);
	resp_res_new(fixture.qp, NUMBERS - 7, 5);
	resp_res_new(fixture.qp, NUMBERS - 2, 5);
	for (uint32_t psn = 0; psn < NUMBERS; psn++) {
		const struct resp_res *entry = resp_res_find(fixture.qp, psn);
		uint32_t right = psn >= NUMBERS - 2 || psn < 3 ? NUMBERS - 2
				 : psn >= NUMBERS - 7	       ? NUMBERS - 7
							       : NUMBERS;

		if ((entry ? entry->psn : NUMBERS) != right)
			fail_msg("PSN %#x", psn);
	}
}

/* With max_dest_rd_atomic 0 there is no room for any request. */
static void test_no_depth(void **state)
{
	(void)state;
	engine_fixture_open(&fixture, ENG_RC, 64, NULL, NULL);
	assert_false(resp_res_has_room(fixture.qp));
	assert_null(resp_res_find(fixture.qp, 0));
	assert_null(resp_res_pending(fixture.qp));
	assert_int_equal(eng_resp_res_bytes(0), 0);
	assert_int_equal(eng_resp_res_bytes(5), eng_resp_res_bytes(8));
	assert_true(eng_resp_res_bytes(9) > eng_resp_res_bytes(8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_against_the_list, tear_down),
		cmocka_unit_test_teardown(test_memory_grows, tear_down),
		cmocka_unit_test_teardown(test_every_psn, tear_down),
		cmocka_unit_test_teardown(test_no_depth, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
