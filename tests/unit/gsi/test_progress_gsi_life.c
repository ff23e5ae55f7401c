/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 with fork(), threads that poll, and network faults; and with many processes that are
 * killed.
 */
#include "find_broker.h"
#include "gsi_child.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link_child.h"

static uint64_t service(uint16_t port)
{
	return (uint64_t)SPACE_TCP << 16 | port;
}

static struct mad_spec to(const struct gsi_child *child, uint32_t tag)
{
	return (struct mad_spec){ .attribute = MAD_REP,
				  .tag = tag,
				  .remote_id = child->slot << GSI_ID_SHIFT | tag };
}

static int send_own(struct gsi_child *from, const struct mad_spec *mad)
{
	return gsi_child_send(from, loopback4, loopback4, mad);
}

/*
 * A forked child does not keep ports: when its parent is killed, the port is free, although the
 * child still runs.
 */
static void test_fork(void **state)
{
	const struct gsi_order order = { .what = GSI_FORK };
	struct gsi_child children[2];
	struct gsi_report child;
	struct mad_spec mad;
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[0], loopback4, &port, 0, true, NULL), 0);
	child = gsi_child_do(&children[0], &order);
	assert_int_equal(child.error, -EOWNERDEAD);
	/* The parent still receives. */
	mad = to(&children[0], 1);
	assert_int_equal(send_own(&children[1], &mad), 0);
	gsi_child_expect(&children[0], 1, GSI_MATCH_LOCAL);
	gsi_child_kill(&children[0]);
	assert_int_equal(gsi_child_bind(&children[1], loopback4, &port, 0, true, NULL), 0);
	mad = to(&children[1], 2);
	assert_int_equal(send_own(&children[1], &mad), 0);
	gsi_child_expect(&children[1], 2, GSI_MATCH_LOCAL);
	kill((pid_t)child.value, SIGKILL);
	gsi_child_stop(&children[1]);
}

/*
 * Returns the next report that is not a copy of an earlier MAD, or the last copy if no other report
 * arrives in time.  Decrements *copies, the number of MADs that were sent again, for each one.
 */
static struct gsi_report next_but_copies(struct gsi_child *child, uint32_t tag,
					 unsigned int *copies)
{
	struct gsi_report report = { .what = GSI_DONE };

	while (gsi_child_next(child, CHILD_TIMEOUT_MS, &report) && *copies > 0 &&
	       report.what == GSI_MAD && mad_tag(report.mad.bytes) != tag)
		--*copies;
	return report;
}

/*
 * Sends a MAD from one child to the other, which must receive it.  The MAD may be lost only if the
 * broker was replaced, because no processor was free for it; then it is sent again, as librdmacm
 * does.
 */
static void pass_mad(struct gsi_child children[2], uint32_t tag, unsigned int *copies)
{
	struct gsi_child *receiver = &children[tag % 2];
	const struct mad_spec mad = to(receiver, tag);
	pid_t broker = find_broker(NULL), broker_before;
	struct gsi_report report;

	for (;;) {
		assert_int_equal(send_own(&children[1 - tag % 2], &mad), 0);
		report = next_but_copies(receiver, tag, copies);
		if (report.what == GSI_MAD && mad_tag(report.mad.bytes) == tag)
			break;
		broker_before = broker;
		broker = find_broker(NULL);
		assert_int_not_equal(broker, broker_before);
		++*copies;
	}
	assert_int_equal(report.mad.reason, GSI_MATCH_LOCAL);
}

/* While threads of either process poll, MADs and deadlines are served. */
static void test_pollers(void **state)
{
	const struct gsi_order poll = { .what = GSI_POLL };
	const struct gsi_order deadline = { .what = GSI_DEADLINE, .delay_ns = 5000000 };
	struct gsi_child children[2];
	unsigned int copies = 0;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		gsi_child_start(&children[i], 0, loopback4);
	for (unsigned int i = 0; i < 2; i++) {
		gsi_child_do(&children[i], &poll);
		usleep(20000);
		for (uint32_t tag = 1; tag < 50; tag++)
			pass_mad(children, i * 50 + tag, &copies);
		gsi_child_do(&children[i], &deadline);
		assert_int_equal(next_but_copies(&children[i], 0, &copies).what, GSI_EXPIRED);
	}
	for (unsigned int i = 0; i < 2; i++)
		gsi_child_stop(&children[i]);
}

static void start_faulty(struct gsi_child *child, const char *fault)
{
	setenv("UROCE_FAULT", fault, 1);
	gsi_child_start(child, 0, loopback4);
	unsetenv("UROCE_FAULT");
}

/* UROCE_FAULT acts on MADs as on all packets. */
static void test_faults(void **state)
{
	struct gsi_child child;
	struct gsi_report report;
	struct mad_spec mad;
	uint64_t before;

	(void)state;
	start_faulty(&child, "drop=1,seed=1");
	mad = to(&child, 1);
	assert_int_equal(send_own(&child, &mad), 0);
	assert_false(gsi_child_next(&child, 50, &report));
	assert_int_equal(gsi_child_count(&child, PROGRESS_COUNT_FAULT_DROPPED), 1);
	gsi_child_stop(&child);

	start_faulty(&child, "dup=1,seed=1");
	mad = to(&child, 1);
	assert_int_equal(send_own(&child, &mad), 0);
	gsi_child_expect(&child, 1, GSI_MATCH_LOCAL);
	gsi_child_expect(&child, 1, GSI_MATCH_LOCAL);
	gsi_child_stop(&child);

	start_faulty(&child, "corrupt=1,seed=1");
	mad = to(&child, 1);
	assert_int_equal(send_own(&child, &mad), 0);
	assert_false(gsi_child_next(&child, 50, &report));
	assert_int_equal(gsi_child_count(&child, PROGRESS_COUNT_FAULT_CORRUPTED), 1);
	gsi_child_stop(&child);

	start_faulty(&child, "delay=30ms,seed=1");
	mad = to(&child, 1);
	before = progress_now();
	assert_int_equal(send_own(&child, &mad), 0);
	gsi_child_expect(&child, 1, GSI_MATCH_LOCAL);
	assert_true(progress_now() - before >= UINT64_C(30000000));
	gsi_child_stop(&child);

	/*
	 * A MAD that is held so that later ones overtake it is sent even if no later one follows.
	 */
	start_faulty(&child, "reorder=1,seed=1");
	mad = to(&child, 1);
	assert_int_equal(send_own(&child, &mad), 0);
	gsi_child_expect(&child, 1, GSI_MATCH_LOCAL);
	gsi_child_stop(&child);
}

/*
 * Eight of ten processes are killed and restarted one after the other: the other two reach each
 * other, by id and by listener, with at most three transmissions of a MAD.
 */
static void test_deaths(void **state)
{
	/* LOST_MS: time after which a MAD counts as lost; others may have the processor. */
	enum { CHILDREN = 10, STEADY = 2, ROUNDS = 60, LOST_MS = 3000 };
	static struct gsi_child children[CHILDREN];
	struct gsi_report report;
	unsigned int resent = 0;
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < CHILDREN; i++)
		gsi_child_start(&children[i], 0, loopback4);
	assert_int_equal(gsi_child_bind(&children[CHILDREN - 1], loopback4, &port, 0, true, NULL),
			 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct gsi_child *from = &children[CHILDREN - 1 - round % 2];
		struct gsi_child *victim = &children[round % (CHILDREN - STEADY)];
		struct gsi_child *reached = &children[CHILDREN - 2 + round % 2];
		struct mad_spec mad = to(reached, round + 1);
		unsigned int tries = 0;

		if (round % 2) {
			reached = &children[CHILDREN - 1];
			mad = (struct mad_spec){ .attribute = MAD_REQ,
						 .tag = round + 1,
						 .local_id = round + 1,
						 .service_id = service(port) };
		}
		gsi_child_kill(victim);
		do {
			assert_true(++tries <= 3);
			assert_int_equal(send_own(from, &mad), 0);
		} while (!gsi_child_next(reached, LOST_MS, &report));
		assert_int_equal(report.mad.reason, GSI_MATCH_LOCAL);
		/* Earlier copies may only have been slow and arrive as well. */
		while (tries > 1 && gsi_child_next(reached, 20, &report))
			assert_int_equal(report.mad.reason, GSI_MATCH_LOCAL);
		resent += tries - 1;
		gsi_child_start(victim, 0, loopback4);
	}
	assert_true(resent <= ROUNDS);
	for (unsigned int i = 0; i < CHILDREN; i++)
		gsi_child_stop(&children[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fork, enter_new_netns),
		cmocka_unit_test_setup(test_pollers, enter_new_netns),
		cmocka_unit_test_setup(test_faults, enter_new_netns),
		cmocka_unit_test_setup(test_deaths, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
