/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 shared by processes: MADs reach the right process, even when other processes are
 * killed.
 */
#include "find_broker.h"
#include "gsi_child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "veth.h"
#include "link_child.h"
#include "mock_clock.h"
#include "wire/bytes.h"

enum {
	/* Time after which a MAD counts as lost: others may have the processor. */
	LOST_MS = 3000,
	/* Time for a MAD that must not arrive */
	QUIET_MS = 200,
};

static const uint8_t any4[16] = { [10] = 0xff, [11] = 0xff };

static uint64_t service(uint16_t port)
{
	return (uint64_t)SPACE_TCP << 16 | port;
}

static uint32_t id_of(const struct gsi_child *child, uint32_t low)
{
	return child->slot << GSI_ID_SHIFT | low;
}

static struct mad_spec request(uint16_t port, uint32_t tag)
{
	return (struct mad_spec){
		.attribute = MAD_REQ,
		.tag = tag,
		.local_id = 0x1000 + tag,
		.service_id = service(port),
		.guid = UINT64_C(0x0123456789abcdef),
	};
}

/*
 * Waits for a MAD that belongs to no process: any one of the children must receive it, to reply for
 * the host.  Returns the number of that child.
 */
static unsigned int expect_none(struct gsi_child *children, unsigned int count, uint32_t tag)
{
	struct gsi_report report;
	uint64_t until = progress_now() + CHILD_TIMEOUT_MS * UINT64_C(1000000);

	while (progress_now() < until) {
		for (unsigned int i = 0; i < count; i++) {
			if (!gsi_child_next(&children[i], 1, &report))
				continue;
			assert_int_equal(report.what, GSI_MAD);
			assert_int_equal(report.mad.reason, GSI_MATCH_UNOWNED);
			assert_int_equal(mad_tag(report.mad.bytes), tag);
			return i;
		}
	}
	gsi_fail_lost(tag);
	return 0;
}

/* Waits for the counter, which is incremented just after the event, to reach this value. */
static void expect_count(struct gsi_child *child, enum progress_counter counter, uint64_t wanted)
{
	uint64_t until = progress_now() + CHILD_TIMEOUT_MS * UINT64_C(1000000);

	while (gsi_child_count(child, counter) < wanted && progress_now() < until)
		usleep(1000);
	assert_int_equal(gsi_child_count(child, counter), wanted);
}

/* A MAD that a process sends to its own address arrives, with its addresses and time of receipt. */
static void test_loop_back(void **state)
{
	const uint8_t *gids[] = { loopback4, loopback6 };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct gsi_child child;
		struct mad_spec rtu = { .attribute = MAD_RTU, .tag = 7 };
		uint64_t before = progress_now();
		struct gsi_mad mad;

		gsi_child_start(&child, 0, gids[i]);
		rtu.remote_id = id_of(&child, 5);
		assert_int_equal(gsi_child_send(&child, gids[i], gids[i], &rtu), 0);
		mad = gsi_child_expect(&child, 7, GSI_MATCH_LOCAL);
		assert_memory_equal(mad.src, gids[i], 16);
		assert_memory_equal(mad.dst, gids[i], 16);
		assert_true(mad.when > before && mad.when <= progress_now());
		assert_int_equal(wire_get_be32(mad.bytes + 28), rtu.remote_id);
		expect_count(&child, PROGRESS_COUNT_MAD_SENT, 1);
		expect_count(&child, PROGRESS_COUNT_MAD_RECEIVED, 1);
		assert_int_equal(gsi_child_send(&child, other4, other4, &rtu), -EADDRNOTAVAIL);
		gsi_child_stop(&child);
	}
}

/*
 * Creates an interface and stores its link-local address.  Returns false if that is not possible.
 */
static bool make_link_local(uint8_t gid[16], uint32_t *scope_id)
{
	struct netdev netdev;

	if (!in_new_netns() || system("ip link add gsiA type veth peer name gsiB && "
				      "echo 0 > /proc/sys/net/ipv6/conf/gsiA/accept_dad && "
				      "ip link set gsiA up && ip link set gsiB up"))
		return false;
	for (unsigned int i = 0; i < 1000; i++, usleep(10000)) {
		if (netdev_read("gsiA", &netdev))
			return false;
		for (unsigned int j = 0; j < netdev.address_count; j++) {
			if (!gid_is_link_local(netdev.address[j]))
				continue;
			memcpy(gid, netdev.address[j], 16);
			*scope_id = netdev.index;
			return true;
		}
	}
	return false;
}

/* MADs to a link-local address, with its interface index, reach another process and the sender. */
static void test_link_local(void **state)
{
	struct gsi_child children[2];
	struct gsi_order get = { .what = GSI_ADDR_GET }, send = { .what = GSI_SEND };
	struct gsi_mad mad;

	(void)state;
	if (!make_link_local(get.gid, &get.scope_id))
		skip();
	memcpy(send.gid, get.gid, 16);
	memcpy(send.dgid, get.gid, 16);
	send.scope_id = get.scope_id;
	for (unsigned int i = 0; i < 2; i++) {
		gsi_child_start(&children[i], 0, NULL);
		assert_int_equal(gsi_child_do(&children[i], &get).error, 0);
	}
	for (unsigned int i = 0; i < 2; i++) {
		send.mad = (struct mad_spec){ .attribute = MAD_RTU,
					      .tag = 5 + i,
					      .remote_id = id_of(&children[i], 1) };
		assert_int_equal(gsi_child_do(&children[1], &send).error, 0);
		mad = gsi_child_expect(&children[i], 5 + i, GSI_MATCH_LOCAL);
		assert_int_equal(mad.scope_id, get.scope_id);
		assert_memory_equal(mad.src, get.gid, 16);
		assert_memory_equal(mad.dst, get.gid, 16);
	}
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/* MADs are delivered by the slot in the id, from each process to each, including itself. */
static void test_by_id(void **state)
{
	struct gsi_child children[3];
	uint32_t tag = 1;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_start(&children[i], 0, loopback4);
	for (unsigned int from = 0; from < 3; from++) {
		for (unsigned int to = 0; to < 3; to++) {
			struct mad_spec spec = { .attribute = MAD_REP, .tag = ++tag };

			spec.remote_id = id_of(&children[to], tag);
			assert_int_equal(
				gsi_child_send(&children[from], loopback4, loopback4, &spec), 0);
			gsi_child_expect(&children[to], tag, GSI_MATCH_LOCAL);
			spec = (struct mad_spec){ .attribute = MAD_SIDR_REP, .tag = ++tag };
			spec.local_id = id_of(&children[to], tag);
			assert_int_equal(
				gsi_child_send(&children[from], loopback4, loopback4, &spec), 0);
			gsi_child_expect(&children[to], tag, GSI_MATCH_LOCAL);
		}
	}
	expect_count(&children[0], PROGRESS_COUNT_MAD_RECEIVED, 6);
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_stop(&children[i]);
}

/*
 * Requests are delivered to the process that listens at the address or at any address; if there is
 * none, one process must reply for the host.
 */
static void test_by_port(void **state)
{
	struct gsi_child children[3];
	uint16_t here = 7000, anywhere = 7001;
	struct mad_spec spec;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[1], loopback4, &here, 0, true, NULL), 0);
	assert_int_equal(gsi_child_bind(&children[2], any4, &anywhere, 0, true, NULL), 0);
	for (unsigned int from = 0; from < 3; from++) {
		spec = request(here, 10 + from);
		assert_int_equal(gsi_child_send(&children[from], loopback4, loopback4, &spec), 0);
		gsi_child_expect(&children[1], 10 + from, GSI_MATCH_LOCAL);
		spec = request(anywhere, 20 + from);
		spec.attribute = MAD_SIDR_REQ;
		assert_int_equal(gsi_child_send(&children[from], loopback4, loopback4, &spec), 0);
		gsi_child_expect(&children[2], 20 + from, GSI_MATCH_LOCAL);
	}
	expect_count(&children[0], PROGRESS_COUNT_MAD_NO_OWNER, 0);
	spec = request(7002, 30);
	assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
	expect_count(&children[expect_none(children, 3, 30)], PROGRESS_COUNT_MAD_NO_OWNER, 1);
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_stop(&children[i]);
}

/* Sends both kinds of request from each process; owner selects the destination and its form. */
static void ask_loopback(struct gsi_child children[3], const struct mad_spec *like,
			 unsigned int owner, enum gsi_match reason)
{
	static uint32_t tag = 1000;

	for (unsigned int from = 0; from < 3; from++) {
		for (unsigned int datagram = 0; datagram < 2; datagram++) {
			struct mad_spec spec = *like;

			spec.attribute = datagram ? MAD_SIDR_REQ : MAD_REQ;
			spec.tag = spec.local_id = ++tag;
			assert_int_equal(
				gsi_child_send(&children[from], loopback4, loopback4, &spec), 0);
			if (reason == GSI_MATCH_UNOWNED)
				expect_none(children, 3, tag);
			else
				gsi_child_expect(&children[owner], tag, reason);
		}
	}
}

/*
 * All addresses of 127.0.0.0/8 have one GID.  If several of these addresses have a listener at the
 * same port, the request goes to the listener at the address that it contains, in whichever
 * process.
 */
static void test_loopback_names(void **state)
{
	static const uint8_t at[3][16] = {
		{ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 7 },
		{ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 8 },
		{ [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
	};
	uint16_t port = 7000, anywhere = 7001;
	struct gsi_child children[3];
	struct mad_spec spec = { .service_id = service(port) };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		gsi_child_start(&children[i], 0, loopback4);
		assert_int_equal(gsi_child_bind(&children[i], at[i], &port, 0, true, NULL), 0);
	}
	assert_int_equal(gsi_child_bind(&children[1], any4, &anywhere, 0, true, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		memcpy(spec.ipv4, at[i] + 12, sizeof(spec.ipv4));
		ask_loopback(children, &spec, i, GSI_MATCH_LOCAL);
	}
	/*
	 * A request without an address, or with one that has no listener, is for that of the GID.
	 */
	memset(spec.ipv4, 0, sizeof(spec.ipv4));
	ask_loopback(children, &spec, 2, GSI_MATCH_LOCAL);
	memcpy(spec.ipv4, (const uint8_t[]){ 127, 0, 0, 9 }, sizeof(spec.ipv4));
	ask_loopback(children, &spec, 2, GSI_MATCH_LOCAL);
	spec.service_id = service(anywhere);
	ask_loopback(children, &spec, 1, GSI_MATCH_LOCAL);
	spec.service_id = service(7002);
	ask_loopback(children, &spec, 0, GSI_MATCH_UNOWNED);
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_stop(&children[i]);
}

/*
 * After the listener has closed, a retransmitted REQ still goes to the process that received it,
 * but a new REQ to none.  A REJ without the receiver's id goes to the process that received the
 * REQ, or to all if none did.
 */
static void test_repeated_request(void **state)
{
	struct gsi_child children[3];
	struct gsi_order order = { .what = GSI_CLOSE };
	struct mad_spec spec, reject = { .attribute = MAD_REJ };
	struct gsi_report none;
	uint16_t port = 7000, other = 7001;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[1], loopback4, &port, 0, true, &order.handle), 0);
	spec = request(port, 1);
	assert_int_equal(gsi_child_send(&children[2], loopback4, loopback4, &spec), 0);
	gsi_child_expect(&children[1], 1, GSI_MATCH_LOCAL);
	assert_int_equal(gsi_child_do(&children[1], &order).error, 0);
	/* The broker has processed the end of the port when it replies to this request. */
	assert_int_equal(gsi_child_bind(&children[1], loopback4, &other, 0, false, NULL), 0);
	assert_int_equal(gsi_child_send(&children[2], loopback4, loopback4, &spec), 0);
	gsi_child_expect(&children[1], 1, GSI_MATCH_LOCAL);
	reject.local_id = spec.local_id;
	reject.guid = spec.guid;
	reject.tag = 2;
	assert_int_equal(gsi_child_send(&children[2], loopback4, loopback4, &reject), 0);
	gsi_child_expect(&children[1], 2, GSI_MATCH_LOCAL);
	reject.local_id++;
	reject.tag = 3;
	assert_int_equal(gsi_child_send(&children[2], loopback4, loopback4, &reject), 0);
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_expect(&children[i], 3, GSI_MATCH_BROADCAST);
	spec = request(port, 4);
	assert_int_equal(gsi_child_send(&children[2], loopback4, loopback4, &spec), 0);
	expect_none(children, 3, 4);
	assert_false(gsi_child_next(&children[1], 50, &none));
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_stop(&children[i]);
}

/*
 * Sends the MAD until it arrives, as the connection manager does.  Returns the number of
 * transmissions.  Late copies of earlier MADs may arrive first.
 */
static unsigned int send_until(struct gsi_child *from, struct gsi_child *to,
			       const struct mad_spec *spec)
{
	struct gsi_report report;

	for (unsigned int tries = 1; tries <= 5; tries++) {
		assert_int_equal(gsi_child_send(from, loopback4, loopback4, spec), 0);
		while (gsi_child_next(to, LOST_MS, &report)) {
			if (report.what != GSI_MAD || mad_tag(report.mad.bytes) != spec->tag)
				continue;
			assert_int_equal(report.mad.reason, GSI_MATCH_LOCAL);
			return tries;
		}
	}
	gsi_fail_lost(spec->tag);
	return 0;
}

/* Processes are killed one after the other; the remaining ones still reach each other. */
static void test_others_die(void **state)
{
	struct gsi_child children[5];
	uint16_t port = 7000;
	uint32_t tag = 100;

	(void)state;
	for (unsigned int i = 0; i < 5; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[4], any4, &port, 0, true, NULL), 0);
	for (unsigned int dead = 0; dead < 3; dead++) {
		struct mad_spec spec = request(port, ++tag);
		unsigned int tries;

		gsi_child_kill(&children[dead]);
		usleep(5000);
		tries = send_until(&children[3], &children[4], &spec);
		spec = (struct mad_spec){ .attribute = MAD_DREQ, .tag = ++tag };
		spec.remote_id = id_of(&children[3], tag);
		tries += send_until(&children[4], &children[3], &spec);
		assert_uint_in_range(tries, 2, 4);
	}
	gsi_child_stop(&children[3]);
	gsi_child_stop(&children[4]);
}

/* A MAD for a process that has exited is passed to a client, with that information. */
static void test_dead_owner(void **state)
{
	struct gsi_child children[3];
	struct mad_spec spec = { .attribute = MAD_DREQ, .tag = 1 };
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), 0);
	spec.remote_id = id_of(&children[1], 1);
	gsi_child_kill(&children[1]);
	/* Use only this copy from now on: it keeps the reports that arrive while it waits. */
	children[1] = children[2];
	mock_clock_advance_ms(2100);
	assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
	expect_none(children, 2, 1);
	spec = request(port, 2);
	assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
	expect_none(children, 2, 2);
	/* The port of the killed process is free. */
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), 0);
	spec = request(port, 3);
	assert_int_equal(gsi_child_send(&children[0], loopback4, loopback4, &spec), 0);
	gsi_child_expect(&children[1], 3, GSI_MATCH_LOCAL);
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/* The broker reads a MAD before it notices that the process which the MAD is for has ended. */
static void test_owner_dies_meanwhile(void **state)
{
	struct gsi_child children[3];
	struct mad_spec spec;
	uint16_t port = 7000;
	pid_t broker;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), 0);
	broker = find_broker(NULL);
	kill(broker, SIGSTOP);
	spec = request(port, 1);
	assert_int_equal(gsi_child_send(&children[2], loopback4, loopback4, &spec), 0);
	gsi_child_kill(&children[1]);
	children[1] = children[2];
	kill(broker, SIGCONT);
	expect_none(children, 2, 1);
	gsi_child_stop(&children[0]);
	gsi_child_stop(&children[1]);
}

/*
 * A REP or RTU for a running process that does not receive at the address gets no reply, as that
 * would end its connection.  If the process has exited it gets a reply, and a DREQ always does.
 */
static void test_reply_to_no_member(void **state)
{
	static const uint16_t replies[] = { MAD_REP, MAD_RTU };
	struct gsi_child children[3];
	struct mad_spec spec = { .tag = 0 };
	struct gsi_report none;
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < 3; i++)
		gsi_child_start(&children[i], 0, i < 2 ? loopback4 : NULL);
	spec.remote_id = id_of(&children[2], 1);
	for (unsigned int i = 0; i < 2; i++) {
		spec.attribute = replies[i];
		spec.tag++;
		assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
		assert_false(gsi_child_next(&children[0], QUIET_MS, &none));
	}
	spec.attribute = MAD_DREQ;
	spec.tag++;
	assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
	expect_none(children, 2, spec.tag);
	gsi_child_kill(&children[2]);
	/* The broker has processed the end of the killed child when it replies to this request. */
	assert_int_equal(gsi_child_bind(&children[1], loopback4, &port, 0, false, NULL), 0);
	for (unsigned int i = 0; i < 2; i++) {
		spec.attribute = replies[i];
		spec.tag++;
		assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
		expect_none(children, 2, spec.tag);
	}
	assert_false(gsi_child_next(&children[1], 0, &none));
	for (unsigned int i = 0; i < 2; i++)
		gsi_child_stop(&children[i]);
}

/* A listener at any address also receives at addresses that are added later. */
static void test_later_address(void **state)
{
	struct gsi_child children[2];
	struct gsi_order order = { .what = GSI_ADDR_GET };
	struct mad_spec spec;
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[1], any4, &port, 0, true, NULL), 0);
	memcpy(order.gid, other4, sizeof(order.gid));
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(gsi_child_do(&children[i], &order).error, 0);
	spec = request(port, 1);
	assert_int_equal(gsi_child_send(&children[0], loopback4, other4, &spec), 0);
	assert_memory_equal(gsi_child_expect(&children[1], 1, GSI_MATCH_LOCAL).dst, other4, 16);
	/* After one process has released the address, the other one still receives at it. */
	order.what = GSI_ADDR_PUT;
	assert_int_equal(gsi_child_do(&children[0], &order).error, 0);
	spec = request(port, 2);
	assert_int_equal(gsi_child_send(&children[1], loopback4, loopback4, &spec), 0);
	gsi_child_expect(&children[1], 2, GSI_MATCH_LOCAL);
	usleep(10000);
	assert_int_equal(gsi_child_send(&children[0], loopback4, other4, &spec), 0);
	gsi_child_expect(&children[1], 2, GSI_MATCH_LOCAL);
	for (unsigned int i = 0; i < 2; i++)
		gsi_child_stop(&children[i]);
}

/*
 * Without a polling thread a deadline is met to some hundred microseconds on an idle host.  Other
 * programs may use the processor, but three in a row of at most 15 deadlines must be met within 500
 * ms.
 */
static void test_deadline(void **state)
{
	struct gsi_order order = { .what = GSI_DEADLINE, .delay_ns = 30000000 };
	struct gsi_child child;
	struct gsi_report report;
	uint64_t wanted;

	(void)state;
	gsi_child_start(&child, 0, NULL);
	for (unsigned int tries = 0, kept = 0; kept < 3; tries++) {
		assert_true(tries < 15);
		wanted = gsi_child_do(&child, &order).value;
		assert_true(gsi_child_next(&child, CHILD_TIMEOUT_MS, &report));
		assert_int_equal(report.what, GSI_EXPIRED);
		assert_true(report.value >= wanted);
		kept = report.value < wanted + UINT64_C(500000000) ? kept + 1 : 0;
	}
	/* An earlier deadline replaces a later one, and each expires only once. */
	order.delay_ns = UINT64_C(100000000000);
	gsi_child_do(&child, &order);
	order.delay_ns = 1000000;
	wanted = gsi_child_do(&child, &order).value;
	assert_true(gsi_child_next(&child, CHILD_TIMEOUT_MS, &report));
	assert_true(report.value >= wanted);
	assert_false(gsi_child_next(&child, 50, &report));
	gsi_child_stop(&child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_loop_back, enter_new_netns),
		cmocka_unit_test_setup(test_link_local, enter_new_netns),
		cmocka_unit_test_setup(test_by_id, enter_new_netns),
		cmocka_unit_test_setup(test_by_port, enter_new_netns),
		cmocka_unit_test_setup(test_loopback_names, enter_new_netns),
		cmocka_unit_test_setup(test_repeated_request, enter_new_netns),
		cmocka_unit_test_setup(test_others_die, enter_new_netns),
		cmocka_unit_test_setup(test_dead_owner, enter_new_netns),
		cmocka_unit_test_setup(test_owner_dies_meanwhile, enter_new_netns),
		cmocka_unit_test_setup(test_reply_to_no_member, enter_new_netns),
		cmocka_unit_test_setup(test_later_address, enter_new_netns),
		cmocka_unit_test_setup(test_deadline, enter_new_netns),
	};

	mock_clock_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
