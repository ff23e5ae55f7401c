/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Maximum size of the program's private data in a request: with one byte more the call fails and
 * nothing is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "ucm_fixture.h"

struct asker {
	bool ib; /* addresses of AF_IB, which need no header in the private data */
	uint8_t qp_type;
	uint8_t room;
};

static uint32_t prepare(int fd, const struct asker *asker)
{
	uint32_t id;

	if (asker->ib) {
		assert_int_equal(create_ib_id(fd, asker->qp_type, &id), 0);
		assert_int_equal(resolve_ib_id(fd, id, "10.0.0.1", PORT), 0);
	} else {
		assert_int_equal(
			create_id(fd, asker->qp_type == QP_UD ? RDMA_PS_UDP : RDMA_PS_TCP, 1, &id),
			0);
		assert_int_equal(resolve_id(fd, id, "10.0.0.1", PORT), 0);
	}
	expect_event(fd, ADDR_RESOLVED, 0, id, NULL);
	assert_int_equal(resolve_route_id(fd, id), 0);
	expect_event(fd, ROUTE_RESOLVED, 0, id, NULL);
	return id;
}

static void longest(void **state)
{
	static const struct asker askers[] = {
		{ false, QP_RC, 92 - 36 },
		{ false, QP_UD, 216 - 36 },
		{ true, QP_RC, 92 },
		{ true, QP_UD, 216 },
	};
	uint8_t data[UINT8_MAX];
	int fd = open_channel();

	(void)state;
	memset(data, 'x', sizeof(data));
	for (size_t i = 0; i < sizeof(askers) / sizeof(askers[0]); i++) {
		const struct asker *asker = &askers[i];
		uint32_t id = prepare(fd, asker);

		assert_int_equal(connect_id(fd, id, data, UINT8_MAX), EINVAL);
		assert_int_equal(connect_id(fd, id, data, asker->room + 1), EINVAL);
		assert_int_equal(world_lose(), 0);
		assert_int_equal(connect_id(fd, id, data, asker->room), 0);
		assert_int_equal(world_lose(), 1);
		id = prepare(fd, asker);
		assert_int_equal(connect_id(fd, id, NULL, 0), 0);
		assert_int_equal(world_lose(), 1);
	}
	world_close(fd);
	world_lose();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
