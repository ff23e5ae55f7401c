/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ports of port spaces, among processes and within one: which can be bound, and when they are free
 * again.
 */
#include "gsi_child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link_child.h"

static const uint8_t any4[16] = { [10] = 0xff, [11] = 0xff };
static const uint8_t any6[16];

/* Two ports to bind and listen at, in one process and in two; wanted is the error of the second. */
struct pair {
	const uint8_t *first, *second;
	unsigned int first_flags, second_flags;
	int wanted;
};

static const struct pair pairs[] = {
	{ loopback4, loopback4, 0, 0, -EADDRINUSE },
	{ loopback4, other4, 0, 0, 0 },
	{ loopback4, loopback6, 0, 0, 0 },
	{ any4, any4, 0, 0, -EADDRINUSE },
	{ any4, loopback4, 0, 0, -EADDRNOTAVAIL },
	{ loopback4, any4, 0, 0, -EADDRNOTAVAIL },
	{ any6, any4, 0, 0, -EADDRINUSE },
	{ any4, any6, 0, 0, -EADDRINUSE },
	{ any6, loopback6, 0, 0, -EADDRNOTAVAIL },
	{ loopback6, any6, 0, 0, -EADDRNOTAVAIL },
	{ any6, loopback4, 0, 0, -EADDRNOTAVAIL },
	{ loopback4, any6, 0, 0, -EADDRNOTAVAIL },
	{ any6, any4, GSI_PORT_AF_ONLY, GSI_PORT_AF_ONLY, 0 },
	{ any6, loopback4, GSI_PORT_AF_ONLY, GSI_PORT_AF_ONLY, 0 },
	{ loopback4, any6, GSI_PORT_AF_ONLY, GSI_PORT_AF_ONLY, 0 },
	{ any6, any6, GSI_PORT_AF_ONLY, GSI_PORT_AF_ONLY, -EADDRINUSE },
	/* Only one of the two allows sharing. */
	{ loopback4, loopback4, GSI_PORT_REUSE, 0, -EADDRINUSE },
	{ loopback4, loopback4, 0, GSI_PORT_REUSE, -EADDRINUSE },
};

static int second_of(struct gsi_child *child, const struct pair *pair, uint16_t port)
{
	return gsi_child_bind(child, pair->second, &port, pair->second_flags, true, NULL);
}

static void test_conflicts(void **state)
{
	struct gsi_child children[2];

	(void)state;
	gsi_child_start(&children[0], 0, loopback4);
	gsi_child_start(&children[1], 0, loopback4);
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct pair *pair = &pairs[i];
		struct gsi_order close = { .what = GSI_CLOSE };
		uint16_t port = (uint16_t)(7000 + i);
		int inside, across;

		assert_int_equal(gsi_child_bind(&children[0], pair->first, &port, pair->first_flags,
						true, &close.handle),
				 0);
		inside = second_of(&children[0], pair, port);
		if (inside != pair->wanted)
			print_error("pair %u in one process\n", i);
		assert_int_equal(inside, pair->wanted);
		/* The second port, bound in the first process, would conflict with a third. */
		if (pair->wanted == 0)
			continue;
		across = second_of(&children[1], pair, port);
		if (across != pair->wanted)
			print_error("pair %u in two processes\n", i);
		assert_int_equal(across, pair->wanted);
		gsi_child_do(&children[0], &close);
		assert_int_equal(second_of(&children[1], pair, port), 0);
	}
	for (unsigned int i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		uint16_t port = (uint16_t)(7100 + i);

		if (pairs[i].wanted)
			continue;
		assert_int_equal(gsi_child_bind(&children[0], pairs[i].first, &port,
						pairs[i].first_flags, true, NULL),
				 0);
		assert_int_equal(second_of(&children[1], &pairs[i], port), 0);
	}
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/* A closed port can be bound by another process at once. */
static void test_closed_is_free(void **state)
{
	struct gsi_order close = { .what = GSI_CLOSE };
	struct gsi_child children[2];
	uint16_t port = 7000;

	(void)state;
	gsi_child_start(&children[0], 0, loopback4);
	gsi_child_start(&children[1], 0, loopback4);
	for (unsigned int i = 0; i < 200; i++) {
		assert_int_equal(
			gsi_child_bind(&children[i % 2], any4, &port, 0, true, &close.handle), 0);
		assert_int_equal(
			gsi_child_bind(&children[1 - i % 2], loopback4, &port, 0, true, NULL),
			-EADDRNOTAVAIL);
		gsi_child_do(&children[i % 2], &close);
	}
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/*
 * Several may bind a port if all allow sharing; to listen, one must be the only one, as in Linux.
 */
static void test_sharing(void **state)
{
	struct gsi_child children[2];
	struct gsi_order order = { .what = GSI_LISTEN }, close = { .what = GSI_CLOSE };
	unsigned int handle[3];
	uint16_t port = 7000;

	(void)state;
	gsi_child_start(&children[0], 0, loopback4);
	gsi_child_start(&children[1], 0, loopback4);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(gsi_child_bind(&children[i == 2], loopback4, &port, GSI_PORT_REUSE,
						false, &handle[i]),
				 0);
	order.handle = handle[2];
	assert_int_equal(gsi_child_do(&children[1], &order).error, -EADDRINUSE);
	for (unsigned int i = 0; i < 2; i++) {
		close.handle = handle[i];
		gsi_child_do(&children[0], &close);
	}
	assert_int_equal(gsi_child_do(&children[1], &order).error, 0);
	/* Others may still bind it, but not listen. */
	assert_int_equal(gsi_child_bind(&children[0], loopback4, &port, GSI_PORT_REUSE, true, NULL),
			 -EADDRINUSE);
	assert_int_equal(gsi_child_bind(&children[0], loopback4, &port, 0, false, NULL),
			 -EADDRINUSE);
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/* A killed process's port is free at once; other port spaces have ports of their own. */
static void test_death(void **state)
{
	struct gsi_child children[2];
	struct gsi_order other_space = { .what = GSI_BIND, .space = SPACE_UDP, .port = 7000 };
	uint16_t port = 7000;

	(void)state;
	gsi_child_start(&children[0], 0, loopback4);
	gsi_child_start(&children[1], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[0], any4, &port, 0, true, NULL), 0);
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), -EADDRINUSE);
	memcpy(other_space.gid, any4, sizeof(any4));
	assert_int_equal(gsi_child_do(&children[1], &other_space).error, 0);
	gsi_child_kill(&children[0]);
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), 0);
	gsi_child_stop(&children[1]);
}

/* Chosen ports lie in net.ipv4.ip_local_port_range, differ, and take no descriptors. */
static void test_chosen(void **state)
{
	enum { MANY = 600 };
	static bool seen[65536];
	unsigned int first = 32768, last = 60999;
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	struct gsi_child children[2];

	(void)state;
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%u %u", &first, &last), 2);
	fclose(file);
	memset(seen, 0, sizeof(seen));
	gsi_child_start(&children[0], 0, loopback4);
	gsi_child_start(&children[1], 0, loopback4);
	for (unsigned int i = 0; i < MANY; i++) {
		uint16_t port = 0;

		/* Some of the ports listen. */
		assert_int_equal(gsi_child_bind(&children[i % 2], i % 4 < 2 ? any4 : loopback4,
						&port, 0, i % 100 < 10, NULL),
				 0);
		assert_uint_in_range(port, first, last);
		assert_false(seen[port]);
		seen[port] = true;
	}
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/* Ports of different users do not conflict, as their addresses differ. */
static void test_users(void **state)
{
	struct gsi_child children[2];
	uint16_t port = 7000;

	(void)state;
	need_root();
	gsi_child_start(&children[0], CHILD_NOBODY, loopback4);
	gsi_child_start(&children[1], 0, other4);
	assert_int_equal(gsi_child_bind(&children[0], any4, &port, 0, true, NULL), 0);
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), 0);
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_closed_is_free, enter_new_netns),
		cmocka_unit_test_setup(test_conflicts, enter_new_netns),
		cmocka_unit_test_setup(test_sharing, enter_new_netns),
		cmocka_unit_test_setup(test_death, enter_new_netns),
		cmocka_unit_test_setup(test_chosen, enter_new_netns),
		cmocka_unit_test_setup(test_users, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
