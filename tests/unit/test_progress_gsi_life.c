/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 beside what else happens in a process: fork(), threads that poll, faults of the
 * network; and with many processes that are killed.
 */
#include "gsi_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/exchange.h"
#include "link_agent.h"

static uint64_t service(uint16_t port)
{
	return (uint64_t)SPACE_TCP << 16 | port;
}

static struct mad_spec to(const struct gsi_agent *agent, uint32_t tag)
{
	return (struct mad_spec){ .attribute = MAD_REP,
				  .tag = tag,
				  .remote_id = agent->slot << GSI_ID_SHIFT | tag };
}

static int send_own(struct gsi_agent *from, const struct mad_spec *mad)
{
	return gsi_agent_send(from, loopback4, loopback4, mad);
}

/*
 * A forked child has nothing of it: when its parent is killed, the address has another holder and
 * the port is free, though the child lives.
 */
static void test_fork(void **state)
{
	const struct gsi_order order = { .what = GSI_FORK };
	struct gsi_agent agents[2];
	struct gsi_report child;
	struct mad_spec mad;
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		gsi_agent_start(&agents[i], 0, loopback4);
	assert_int_equal(gsi_agent_bind(&agents[0], loopback4, &port, 0, true, NULL), 0);
	child = gsi_agent_do(&agents[0], &order);
	assert_int_equal(child.error, -EOWNERDEAD);
	/* The parent goes on. */
	mad = to(&agents[0], 1);
	assert_int_equal(send_own(&agents[1], &mad), 0);
	gsi_agent_expect(&agents[0], 1, GSI_FOR_THIS);
	gsi_agent_kill(&agents[0]);
	assert_int_equal(gsi_agent_bind(&agents[1], loopback4, &port, 0, true, NULL), 0);
	for (unsigned int i = 0;
	     i < 1000 && !gsi_agent_count(&agents[1], PROGRESS_COUNT_GSI_CLAIMED); i++)
		usleep(1000);
	mad = to(&agents[1], 2);
	assert_int_equal(send_own(&agents[1], &mad), 0);
	gsi_agent_expect(&agents[1], 2, GSI_FOR_THIS);
	kill((pid_t)child.value, SIGKILL);
	gsi_agent_stop(&agents[1]);
}

/* While threads poll, in the holder or in the member, MADs and deadlines are served as ever. */
static void test_pollers(void **state)
{
	const struct gsi_order poll = { .what = GSI_POLL };
	const struct gsi_order deadline = { .what = GSI_DEADLINE, .delay_ns = 5000000 };
	struct gsi_agent agents[2];
	struct gsi_report report;

	(void)state;
	for (unsigned int i = 0; i < 2; i++)
		gsi_agent_start(&agents[i], 0, loopback4);
	for (unsigned int i = 0; i < 2; i++) {
		gsi_agent_do(&agents[i], &poll);
		usleep(20000);
		for (uint32_t tag = 1; tag < 50; tag++) {
			struct mad_spec mad = to(&agents[tag % 2], tag);

			assert_int_equal(send_own(&agents[1 - tag % 2], &mad), 0);
			gsi_agent_expect(&agents[tag % 2], tag, GSI_FOR_THIS);
		}
		gsi_agent_do(&agents[i], &deadline);
		assert_true(gsi_agent_next(&agents[i], AGENT_PATIENCE_MS, &report));
		assert_int_equal(report.what, GSI_EXPIRED);
	}
	for (unsigned int i = 0; i < 2; i++)
		gsi_agent_stop(&agents[i]);
}

static void start_faulty(struct gsi_agent *agent, const char *fault)
{
	setenv("UROCE_FAULT", fault, 1);
	gsi_agent_start(agent, 0, loopback4);
	unsetenv("UROCE_FAULT");
}

/* UROCE_FAULT acts on MADs as on all packets. */
static void test_faults(void **state)
{
	struct gsi_agent agent;
	struct gsi_report report;
	struct mad_spec mad;
	uint64_t before;

	(void)state;
	start_faulty(&agent, "drop=1,seed=1");
	mad = to(&agent, 1);
	assert_int_equal(send_own(&agent, &mad), 0);
	assert_false(gsi_agent_next(&agent, 50, &report));
	assert_int_equal(gsi_agent_count(&agent, PROGRESS_COUNT_FAULT_DROPPED), 1);
	gsi_agent_stop(&agent);

	start_faulty(&agent, "dup=1,seed=1");
	mad = to(&agent, 1);
	assert_int_equal(send_own(&agent, &mad), 0);
	gsi_agent_expect(&agent, 1, GSI_FOR_THIS);
	gsi_agent_expect(&agent, 1, GSI_FOR_THIS);
	gsi_agent_stop(&agent);

	start_faulty(&agent, "corrupt=1,seed=1");
	mad = to(&agent, 1);
	assert_int_equal(send_own(&agent, &mad), 0);
	assert_false(gsi_agent_next(&agent, 50, &report));
	assert_int_equal(gsi_agent_count(&agent, PROGRESS_COUNT_FAULT_CORRUPTED), 1);
	gsi_agent_stop(&agent);

	start_faulty(&agent, "delay=30ms,seed=1");
	mad = to(&agent, 1);
	before = progress_now();
	assert_int_equal(send_own(&agent, &mad), 0);
	gsi_agent_expect(&agent, 1, GSI_FOR_THIS);
	assert_true(progress_now() - before >= UINT64_C(30000000));
	gsi_agent_stop(&agent);

	/* One that is held to let others pass goes by itself when none comes. */
	start_faulty(&agent, "reorder=1,seed=1");
	mad = to(&agent, 1);
	assert_int_equal(send_own(&agent, &mad), 0);
	gsi_agent_expect(&agent, 1, GSI_FOR_THIS);
	gsi_agent_stop(&agent);
}

/*
 * Ten processes, of which one after the other is killed and begins anew: two that live all the time
 * reach each other, and listeners are found, at the latest when the third is sent.
 */
static void test_deaths(void **state)
{
	enum { AGENTS = 10, STEADY = 2, ROUNDS = 60 };
	static struct gsi_agent agents[AGENTS];
	struct gsi_report report;
	unsigned int resent = 0;
	uint16_t port = 7000;

	(void)state;
	/* Not the first: it would hold all the time. */
	for (unsigned int i = 0; i < AGENTS; i++)
		gsi_agent_start(&agents[i], 0, loopback4);
	assert_int_equal(gsi_agent_bind(&agents[AGENTS - 1], loopback4, &port, 0, true, NULL), 0);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct gsi_agent *from = &agents[AGENTS - 1 - round % 2];
		struct gsi_agent *victim = &agents[round % (AGENTS - STEADY)];
		struct gsi_agent *reached = &agents[AGENTS - 2 + round % 2];
		struct mad_spec mad = to(reached, round + 1);
		unsigned int tries = 0;

		if (round % 2) {
			reached = &agents[AGENTS - 1];
			mad = (struct mad_spec){ .attribute = MAD_REQ,
						 .tag = round + 1,
						 .local_id = round + 1,
						 .service_id = service(port) };
		}
		gsi_agent_kill(victim);
		do {
			assert_true(++tries <= 10);
			assert_int_equal(send_own(from, &mad), 0);
		} while (!gsi_agent_next(reached, 50, &report));
		assert_int_equal(report.mad.reason, GSI_FOR_THIS);
		/* One that had only been slow would come as well. */
		while (tries > 1 && gsi_agent_next(reached, 20, &report))
			assert_int_equal(report.mad.reason, GSI_FOR_THIS);
		resent += tries - 1;
		gsi_agent_start(victim, 0, loopback4);
	}
	assert_true(resent <= ROUNDS);
	for (unsigned int i = 0; i < AGENTS; i++)
		gsi_agent_stop(&agents[i]);
}

/* All of them, once.  Those that went by way of the holder may come after later ones that did not.
 */
static void expect_tags(struct gsi_agent *agent, uint32_t first, uint32_t count)
{
	struct gsi_report report;
	bool seen[128] = { false };
	uint32_t at;

	assert_uint_in_range(count, 1, 128);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(gsi_agent_next(agent, 5000, &report));
		assert_int_equal(report.what, GSI_MAD);
		assert_int_equal(report.mad.reason, GSI_FOR_THIS);
		at = mad_tag(report.mad.bytes) - first;
		assert_uint_in_range(at, 0, count - 1);
		assert_false(seen[at]);
		seen[at] = true;
	}
}

static uint64_t claims_of(struct gsi_agent *agents, unsigned int first, unsigned int end)
{
	uint64_t claims = 0;

	for (unsigned int i = first; i < end; i++)
		claims += gsi_agent_count(&agents[i], PROGRESS_COUNT_GSI_CLAIMED);
	return claims;
}

/*
 * The holder leaves while others send to each other all the time: nothing is lost, and when it ends
 * nothing happens.
 */
static void test_flush(void **state)
{
	enum { AGENTS = 3, BURST = 40 };
	const struct gsi_order flush = { .what = GSI_FLUSH };
	struct gsi_agent agents[AGENTS];
	struct gsi_report report;
	uint32_t tag = 0;
	uint64_t begin;

	(void)state;
	for (unsigned int i = 0; i < AGENTS; i++)
		gsi_agent_start(&agents[i], 0, loopback4);
	for (unsigned int holder = 0; holder < AGENTS - 1; holder++) {
		for (unsigned int i = 0; i < BURST; i++) {
			struct mad_spec mad = to(&agents[AGENTS - 1], ++tag);

			assert_int_equal(send_own(&agents[holder], &mad), 0);
		}
		begin = progress_now();
		gsi_agent_do(&agents[holder], &flush);
		assert_true(progress_now() - begin < UINT64_C(500000000));
		/* It waits for some milliseconds only; the others may be slower. */
		for (unsigned int i = 0; i < 100 && !claims_of(agents, holder + 1, AGENTS); i++)
			gsi_agent_do(&agents[holder], &flush);
		assert_true(claims_of(agents, holder + 1, AGENTS) > 0);
		for (unsigned int i = 0; i < BURST; i++) {
			struct mad_spec mad = to(&agents[AGENTS - 1], ++tag);

			assert_int_equal(send_own(&agents[holder], &mad), 0);
		}
		gsi_agent_kill(&agents[holder]);
		expect_tags(&agents[AGENTS - 1], tag - 2 * BURST + 1, 2 * BURST);
	}
	/* Alone it stays what it is. */
	gsi_agent_do(&agents[AGENTS - 1], &flush);
	send_own(&agents[AGENTS - 1], &(struct mad_spec){ .attribute = MAD_DREQ, .tag = 7 });
	gsi_agent_expect(&agents[AGENTS - 1], 7, GSI_FOR_NONE);
	assert_false(gsi_agent_next(&agents[AGENTS - 1], 20, &report));
	gsi_agent_stop(&agents[AGENTS - 1]);
}

/* A burst while the holder leaves, and is gone at once.  Could it leave in time? */
static bool send_while_leaving(struct gsi_agent agents[3], uint32_t first, uint32_t burst)
{
	const struct gsi_order leave = { .what = GSI_LEAVE };
	struct gsi_order send = { .what = GSI_SEND };
	bool in_time;

	memcpy(send.gid, loopback4, sizeof(send.gid));
	memcpy(send.dgid, loopback4, sizeof(send.dgid));
	gsi_agent_tell(&agents[0], &leave);
	for (uint32_t i = 0; i < burst; i++) {
		send.mad = to(&agents[2], first + i);
		gsi_agent_tell(&agents[1], &send);
	}
	in_time = gsi_agent_await(&agents[0]).value < UINT64_C(50000000) &&
		  claims_of(agents, 1, 3) > 0;
	gsi_agent_kill(&agents[0]);
	for (uint32_t i = 0; i < burst; i++)
		assert_int_equal(gsi_agent_await(&agents[1]).error, 0);
	return in_time;
}

/* When the holder has left, nothing comes to it any more that it would take along. */
static void test_flush_and_end(void **state)
{
	enum { ROUNDS = 20, BURST = 60 };
	unsigned int in_time = 0;

	(void)state;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t first = round * BURST + 1;
		struct gsi_agent agents[3];

		for (unsigned int i = 0; i < 3; i++)
			gsi_agent_start(&agents[i], 0, loopback4);
		if (send_while_leaving(agents, first, BURST)) {
			expect_tags(&agents[2], first, BURST);
			in_time++;
		}
		gsi_agent_stop(&agents[1]);
		gsi_agent_stop(&agents[2]);
	}
	assert_true(in_time > 0);
}

/*
 * A holder that leaves while its last member's end has not been read yet has no process to leave it
 * to, and keeps what it has: what comes right after is served.
 */
static void test_flush_to_the_dead(void **state)
{
	enum { ROUNDS = 20 };
	const struct gsi_order flush = { .what = GSI_FLUSH };
	struct gsi_agent holder, member;

	(void)state;
	gsi_agent_start(&holder, 0, loopback4);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		const struct mad_spec mad = { .attribute = MAD_DREQ, .tag = round };

		gsi_agent_start(&member, 0, loopback4);
		/* Both come at once when it goes on: the end and the order. */
		gsi_agent_suspend(&holder);
		gsi_agent_kill(&member);
		gsi_agent_tell(&holder, &flush);
		kill(holder.pid, SIGCONT);
		assert_int_equal(gsi_agent_await(&holder).error, 0);
		assert_int_equal(send_own(&holder, &mad), 0);
		gsi_agent_expect(&holder, round, GSI_FOR_NONE);
	}
	gsi_agent_stop(&holder);
}

/*
 * What the next holder has for a member that has not come to it yet waits for that one, be it by
 * its id or by what it listens at.
 */
static void test_late_member(void **state)
{
	enum { AGENTS = 3 };
	static const uint8_t named[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 8 };
	struct gsi_agent agents[AGENTS];
	struct gsi_report report;
	struct mad_spec mad;
	uint16_t port = 7000;

	(void)state;
	for (unsigned int i = 0; i < AGENTS; i++)
		gsi_agent_start(&agents[i], 0, loopback4);
	assert_int_equal(gsi_agent_bind(&agents[2], named, &port, 0, true, NULL), 0);
	gsi_agent_suspend(&agents[2]);
	gsi_agent_kill(&agents[0]);
	for (unsigned int i = 0; i < 1000 && !claims_of(agents, 1, 2); i++)
		usleep(1000);
	mad = to(&agents[2], 1);
	assert_int_equal(send_own(&agents[1], &mad), 0);
	/* By then the dead one's will has been executed, for which all would wait. */
	assert_false(gsi_agent_next(&agents[1], 100, &report));
	mad = (struct mad_spec){ .attribute = MAD_SIDR_REQ,
				 .tag = 2,
				 .service_id = service(port),
				 .ipv4 = { 127, 0, 0, 8 } };
	assert_int_equal(send_own(&agents[1], &mad), 0);
	assert_false(gsi_agent_next(&agents[1], 100, &report));
	kill(agents[2].pid, SIGCONT);
	gsi_agent_expect(&agents[2], 1, GSI_FOR_THIS);
	gsi_agent_expect(&agents[2], 2, GSI_FOR_THIS);
	for (unsigned int i = 1; i < AGENTS; i++)
		gsi_agent_stop(&agents[i]);
}

/*
 * What a process has sent before it ended is heard, also where it had not read all that it was told
 * itself.
 */
static void test_last_words(void **state)
{
	enum { MADS = 3 };
	struct link_exchange_message message;
	struct link_mad mad = { .reason = GSI_FOR_THIS };
	int pair[2];

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	for (uint64_t i = 0; i < MADS; i++) {
		mad.when = i;
		assert_int_equal(link_exchange_mad(pair[0], &mad), 0);
	}
	assert_int_equal(link_exchange_say(pair[1], LINK_EXCHANGE_ASK), 0);
	close(pair[0]);
	for (uint64_t i = 0; i < MADS; i++) {
		assert_int_equal(link_exchange_receive(pair[1], &message), 0);
		assert_int_equal(message.kind, LINK_EXCHANGE_MAD);
		assert_int_equal(message.mad.when, i);
	}
	assert_int_equal(link_exchange_receive(pair[1], &message), -ECONNRESET);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_fork, fresh_network),
		cmocka_unit_test_setup(test_pollers, fresh_network),
		cmocka_unit_test_setup(test_faults, fresh_network),
		cmocka_unit_test_setup(test_deaths, fresh_network),
		cmocka_unit_test_setup(test_flush, fresh_network),
		cmocka_unit_test_setup(test_flush_and_end, fresh_network),
		cmocka_unit_test_setup(test_flush_to_the_dead, fresh_network),
		cmocka_unit_test_setup(test_late_member, fresh_network),
		cmocka_unit_test(test_last_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
