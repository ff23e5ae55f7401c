/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Multicast groups through the stock library: queue pairs of one process and of others in a group,
 * a sender that is a member itself, and calls that must fail.  The groups are IPv4, as a loopback
 * interface has no route for IPv6 groups.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	GRH = 40,
	TO = 64 << 10,
	STRIDE = 1024,
	MEMBERS = 3,
	MESSAGES = 20,
};

static const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 4 } };
static const union ibv_gid other_group = { .raw = { [10] = 0xff, [11] = 0xff, 239, 1, 2, 5 } };

static struct verbs_fixture fixture;
static struct ibv_qp *qp[MEMBERS];

static int set_up(void **state)
{
	(void)state;
	fixture_open(&fixture);
	for (int i = 0; i < MEMBERS; i++) {
		qp[i] = fixture_qp(&fixture, IBV_QPT_UD, NULL);
		fixture_connect(qp[i], 0);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	fixture_close(&fixture);
	return 0;
}

static void post_receives(struct ibv_qp *to, uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		assert_int_equal(
			fixture_post_recv(&fixture, to, i, TO + (size_t)i * STRIDE, STRIDE), 0);
}

/* Checks two successful completions, which may arrive in either order. */
static void expect_both(uint64_t one, uint64_t other)
{
	struct ibv_wc first, second;

	assert_true(fixture_next(fixture.cq, &first, PATIENCE_MS));
	assert_true(fixture_next(fixture.cq, &second, PATIENCE_MS));
	assert_int_equal(first.status, IBV_WC_SUCCESS);
	assert_int_equal(second.status, IBV_WC_SUCCESS);
	assert_true(first.wr_id == one || first.wr_id == other);
	assert_int_equal(first.wr_id + second.wr_id, one + other);
}

/* The first queue pair is in the group as well, so it receives its own datagrams. */
static void all_members_get_each_datagram(void **state)
{
	struct ibv_ah *ah = fixture_ah(&fixture, 0, &group);
	unsigned int heard[MEMBERS] = { 0 };
	struct ibv_wc wc;

	(void)state;
	for (int i = 0; i < MEMBERS; i++) {
		assert_int_equal(ibv_attach_mcast(qp[i], &group, 0), 0);
		post_receives(qp[i], (uint64_t)i * 10, 10);
	}
	for (uint64_t i = 0; i < 10; i++) {
		memset(fixture.bytes, (int)i + 1, 100);
		assert_int_equal(fixture_post_datagram(qp[0], ah, 0xffffff, 100 + i,
						       fixture_sge(&fixture, 0, 100)),
				 0);
		for (int n = 0; n < 1 + MEMBERS; n++) {
			assert_true(fixture_next(fixture.cq, &wc, PATIENCE_MS));
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			if (wc.wr_id >= 100)
				continue;
			heard[wc.wr_id / 10]++;
			assert_int_equal(wc.src_qp, qp[0]->qp_num);
			assert_int_equal(wc.qp_num, qp[wc.wr_id / 10]->qp_num);
			assert_int_equal(wc.byte_len, GRH + 100);
			assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
			/* The destination in the IPv4 header is the group. */
			assert_memory_equal(fixture.bytes + TO + wc.wr_id * STRIDE + 36,
					    group.raw + 12, 4);
			assert_memory_equal(fixture.bytes + TO + wc.wr_id * STRIDE + GRH,
					    fixture.bytes, 100);
		}
	}
	for (int i = 0; i < MEMBERS; i++) {
		assert_int_equal(heard[i], 10);
		assert_int_equal(ibv_detach_mcast(qp[i], &group, 0), 0);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void only_members_hear(void **state)
{
	struct ibv_ah *ah = fixture_ah(&fixture, 0, &group),
		      *other = fixture_ah(&fixture, 0, &other_group);

	(void)state;
	assert_int_equal(ibv_attach_mcast(qp[1], &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp[2], &other_group, 0), 0);
	for (int i = 0; i < MEMBERS; i++)
		post_receives(qp[i], (uint64_t)i * 10, 3);
	assert_int_equal(
		fixture_post_datagram(qp[0], ah, 0xffffff, 100, fixture_sge(&fixture, 0, 10)), 0);
	expect_both(100, 10);
	fixture_expect_nothing(fixture.cq);
	assert_int_equal(
		fixture_post_datagram(qp[0], other, 0xffffff, 101, fixture_sge(&fixture, 0, 10)),
		0);
	expect_both(101, 20);
	fixture_expect_nothing(fixture.cq);
	/* A packet to the group is dropped if its QPN is not the multicast one. */
	assert_int_equal(
		fixture_post_datagram(qp[0], ah, qp[1]->qp_num, 102, fixture_sge(&fixture, 0, 10)),
		0);
	fixture_expect(fixture.cq, 102, IBV_WC_SUCCESS);
	fixture_expect_nothing(fixture.cq);
	assert_int_equal(ibv_detach_mcast(qp[1], &group, 0), 0);
	assert_int_equal(
		fixture_post_datagram(qp[0], ah, 0xffffff, 103, fixture_sge(&fixture, 0, 10)), 0);
	fixture_expect(fixture.cq, 103, IBV_WC_SUCCESS);
	fixture_expect_nothing(fixture.cq);
	assert_int_equal(ibv_detach_mcast(qp[2], &other_group, 0), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(other), 0);
}

static void refusals(void **state)
{
	static const union ibv_gid no_group = { .raw = { [10] = 0xff, [11] = 0xff, 192, 0, 2, 9 } };
	static const union ibv_gid unicast = { .raw = { 0xfd, [15] = 1 } };
	struct ibv_qp *rc = fixture_qp(&fixture, IBV_QPT_RC, NULL);

	(void)state;
	assert_int_equal(ibv_attach_mcast(rc, &group, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(qp[0], &no_group, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(qp[0], &unicast, 0), EINVAL);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), EINVAL);
	assert_int_equal(ibv_attach_mcast(qp[0], &group, 0), 0);
	/* A member that joins again is a member once, and leaves once. */
	assert_int_equal(ibv_attach_mcast(qp[0], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(qp[0], &other_group, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp[0]), EBUSY);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(rc), 0);
}

/* rule U1 test: as many groups as the device reports, and one more is refused. */
static void as_many_groups_as_promised(void **state)
{
	union ibv_gid gid = group;
	struct ibv_device_attr attr;
	int joined;

	(void)state;
	assert_int_equal(ibv_query_device(the_context(), &attr), 0);
	for (joined = 0; joined < attr.max_mcast_grp; joined++) {
		gid.raw[14] = (uint8_t)(10 + (joined >> 8));
		gid.raw[15] = (uint8_t)joined;
		assert_int_equal(ibv_attach_mcast(qp[0], &gid, 0), 0);
	}
	assert_int_equal(ibv_attach_mcast(qp[1], &gid, 0), 0);
	assert_int_equal(ibv_attach_mcast(qp[1], &other_group, 0), ENOMEM);
	assert_int_equal(ibv_detach_mcast(qp[1], &gid, 0), 0);
	while (joined-- > 0) {
		gid.raw[14] = (uint8_t)(10 + (joined >> 8));
		gid.raw[15] = (uint8_t)joined;
		assert_int_equal(ibv_detach_mcast(qp[0], &gid, 0), 0);
	}
}

/*
 * In a process of its own: joins, signals that, and receives MESSAGES datagrams.  Returns the exit
 * code.
 */
static int listen_elsewhere(int tell)
{
	set_up(NULL);
	assert_int_equal(ibv_attach_mcast(qp[0], &group, 0), 0);
	post_receives(qp[0], 0, MESSAGES);
	assert_int_equal(write(tell, "", 1), 1);
	for (uint64_t i = 0; i < MESSAGES; i++)
		fixture_expect(fixture.cq, i, IBV_WC_SUCCESS);
	assert_int_equal(ibv_detach_mcast(qp[0], &group, 0), 0);
	tear_down(NULL);
	return 0;
}

/* Runs first, as a child of fork() has to open the device itself. */
static void several_processes(void **state)
{
	struct ibv_ah *ah;
	pid_t child[2];
	int told[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(told), 0);
	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (!child[i])
			_exit(listen_elsewhere(told[1]));
	}
	set_up(NULL);
	assert_int_equal(ibv_attach_mcast(qp[1], &group, 0), 0);
	post_receives(qp[1], 0, MESSAGES);
	for (int i = 0; i < 2; i++)
		assert_int_equal(read(told[0], &byte, 1), 1);
	ah = fixture_ah(&fixture, 0, &group);
	for (uint64_t i = 0; i < MESSAGES; i++) {
		assert_int_equal(fixture_post_datagram(qp[0], ah, 0xffffff, 100 + i,
						       fixture_sge(&fixture, 0, 10)),
				 0);
		/* The completion of the send, and this process's own copy. */
		expect_both(100 + i, i);
	}
	for (int i = 0; i < 2; i++) {
		int status;

		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
		assert_int_equal(status, 0);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_detach_mcast(qp[1], &group, 0), 0);
	tear_down(NULL);
	close(told[0]);
	close(told[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_processes),
		cmocka_unit_test_setup_teardown(all_members_get_each_datagram, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_members_hear, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refusals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_many_groups_as_promised, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
