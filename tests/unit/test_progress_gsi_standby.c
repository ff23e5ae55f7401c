/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 when its holder stands still: another process steps in, and the holder gives way
 * when it goes on.
 */
#include "gsi_agent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/exchange.h"
#include "link_agent.h"
#include "shared_time.h"

enum {
	/* What is lost is sent again, so often at most: ten seconds on a host with other work. */
	TRIES = 200,
	TRY_MS = 50,
};

static uint32_t tags;

static struct mad_spec to(const struct gsi_agent *agent)
{
	++tags;
	return (struct mad_spec){ .attribute = MAD_REP,
				  .tag = tags,
				  .remote_id = agent->slot << GSI_ID_SHIFT | tags };
}

static struct mad_spec request(uint16_t port)
{
	++tags;
	return (struct mad_spec){ .attribute = MAD_REQ,
				  .tag = tags,
				  .local_id = tags,
				  .service_id = (uint64_t)SPACE_TCP << 16 | port };
}

/* It arrives, if not at once then when it is sent again; copies that were only late too. */
static void reach(struct gsi_agent *from, struct gsi_agent *agent, const struct mad_spec *mad)
{
	struct gsi_report report;
	bool seen = false;

	for (unsigned int i = 0; i < TRIES && !seen; i++) {
		assert_int_equal(gsi_agent_send(from, loopback4, loopback4, mad), 0);
		while (!seen && gsi_agent_next(agent, TRY_MS, &report)) {
			assert_int_equal(report.what, GSI_MAD);
			seen = mad_tag(report.mad.bytes) == mad->tag;
			if (seen)
				assert_int_equal(report.mad.reason, GSI_FOR_THIS);
		}
	}
	assert_true(seen);
}

static void start_all(struct gsi_agent *agents, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		gsi_agent_start(&agents[i], 0, loopback4);
}

static void stop_all(struct gsi_agent *agents, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		gsi_agent_stop(&agents[i]);
}

/* Which one has queue pair 1?  A MAD that is for no process comes to it, and to no other. */
static unsigned int find_holder(struct gsi_agent *agents, unsigned int first, unsigned int end)
{
	const struct mad_spec mad = { .attribute = MAD_DREQ, .tag = ++tags };
	struct gsi_report report;
	unsigned int holder = end;

	for (unsigned int tries = 0; tries < TRIES && holder == end; tries++) {
		gsi_agent_send(&agents[first], loopback4, loopback4, &mad);
		for (unsigned int i = first; i < end; i++)
			while (gsi_agent_next(&agents[i], 10, &report))
				if (report.mad.reason == GSI_FOR_NONE) {
					assert_true(holder == end || holder == i);
					holder = i;
				}
	}
	assert_true(holder < end);
	return holder;
}

/*
 * The others reach each other and listeners, nothing is answered in the place of the one that
 * stands still, and when it goes on it gets what came for it, and is asked no more.
 */
static void test_stopped(void **state)
{
	enum { AGENTS = 3 };
	struct gsi_agent agents[AGENTS];
	struct gsi_report report;
	uint16_t port = 7000, own_port = 7001;
	struct mad_spec mad;
	unsigned int holder;

	(void)state;
	start_all(agents, AGENTS);
	assert_int_equal(gsi_agent_bind(&agents[0], loopback4, &own_port, 0, true, NULL), 0);
	assert_int_equal(gsi_agent_bind(&agents[2], loopback4, &port, 0, true, NULL), 0);
	gsi_agent_suspend(&agents[0]);
	mad = request(port);
	reach(&agents[1], &agents[2], &mad);
	mad = to(&agents[1]);
	reach(&agents[2], &agents[1], &mad);
	holder = find_holder(agents, 1, AGENTS);
	/* Of its id, and of its port. */
	mad = to(&agents[0]);
	assert_int_equal(gsi_agent_send(&agents[1], loopback4, loopback4, &mad), 0);
	mad = request(own_port);
	assert_int_equal(gsi_agent_send(&agents[1], loopback4, loopback4, &mad), 0);
	assert_false(gsi_agent_next(&agents[holder], 100, &report));
	kill(agents[0].pid, SIGCONT);
	mad = to(&agents[0]);
	reach(&agents[1], &agents[0], &mad);
	mad = request(own_port);
	reach(&agents[2], &agents[0], &mad);
	assert_int_equal(find_holder(agents, 0, AGENTS), holder);
	stop_all(agents, AGENTS);
}

/* One after the other stands still, until only one is left; all go on; those that hold end. */
static void test_one_after_the_other(void **state)
{
	enum { AGENTS = 4 };
	struct gsi_agent agents[AGENTS], kept;
	struct mad_spec mad;
	unsigned int holder;

	(void)state;
	start_all(agents, AGENTS);
	for (unsigned int i = 0; i < AGENTS - 1; i++) {
		holder = find_holder(agents, i, AGENTS);
		kept = agents[i];
		agents[i] = agents[holder];
		agents[holder] = kept;
		gsi_agent_suspend(&agents[i]);
	}
	assert_int_equal(find_holder(agents, AGENTS - 1, AGENTS), AGENTS - 1);
	for (unsigned int i = 0; i < AGENTS - 1; i++)
		kill(agents[i].pid, SIGCONT);
	for (unsigned int i = 0; i < AGENTS - 1; i++) {
		mad = to(&agents[i]);
		reach(&agents[AGENTS - 1], &agents[i], &mad);
	}
	assert_int_equal(find_holder(agents, 0, AGENTS), AGENTS - 1);
	gsi_agent_kill(&agents[AGENTS - 1]);
	find_holder(agents, 0, AGENTS - 1);
	stop_all(agents, AGENTS - 1);
}

/* The one that has stepped in dies while the other one stands still; that one goes on. */
static void test_deputy_dies(void **state)
{
	enum { AGENTS = 2 };
	struct gsi_agent agents[AGENTS];
	struct mad_spec mad;

	(void)state;
	start_all(agents, AGENTS);
	gsi_agent_suspend(&agents[0]);
	assert_int_equal(find_holder(agents, 1, AGENTS), 1);
	gsi_agent_kill(&agents[1]);
	kill(agents[0].pid, SIGCONT);
	mad = to(&agents[0]);
	reach(&agents[0], &agents[0], &mad);
	assert_int_equal(find_holder(agents, 0, 1), 0);
	gsi_agent_stop(&agents[0]);
}

/* One that is killed while it stands still is spoken for as any. */
static void test_will_of_the_stopped(void **state)
{
	enum { AGENTS = 2 };
	struct gsi_agent agents[AGENTS];
	struct gsi_order will = { .what = GSI_WILL_SET };
	struct gsi_report report = { 0 };
	struct mad_spec mad;

	(void)state;
	start_all(agents, AGENTS);
	/* By way of the holder, which has given its will before. */
	mad = to(&agents[1]);
	reach(&agents[1], &agents[1], &mad);
	will.mad = to(&agents[1]);
	memcpy(will.gid, loopback4, sizeof(will.gid));
	memcpy(will.dgid, loopback4, sizeof(will.dgid));
	assert_int_equal(gsi_agent_do(&agents[0], &will).error, 0);
	gsi_agent_suspend(&agents[0]);
	assert_int_equal(find_holder(agents, 1, AGENTS), 1);
	assert_false(gsi_agent_next(&agents[1], 200, &report));
	gsi_agent_kill(&agents[0]);
	assert_true(gsi_agent_next(&agents[1], TRIES * TRY_MS, &report));
	assert_int_equal(mad_tag(report.mad.bytes), will.mad.tag);
	gsi_agent_stop(&agents[1]);
}

/*
 * Nothing is sent by those that could step in: what arrives from another address makes them ask,
 * by the holder's socket, which they watch.
 */
static void test_arrivals_are_noticed(void **state)
{
	static const uint8_t elsewhere[16] = { [10] = 0xff, 0xff, 127, 0, 0, 2 };
	struct gsi_agent agents[2], other;
	struct gsi_report report;
	bool seen = false;
	struct mad_spec mad;

	(void)state;
	start_all(agents, 2);
	gsi_agent_start(&other, 0, elsewhere);
	/* It has been asked at the beginning, and rests. */
	usleep(100000);
	shared_time_pass_ms(400);
	gsi_agent_suspend(&agents[0]);
	mad = to(&agents[1]);
	for (unsigned int i = 0; i < TRIES && !seen; i++) {
		assert_int_equal(gsi_agent_send(&other, elsewhere, loopback4, &mad), 0);
		while (!seen && gsi_agent_next(&agents[1], TRY_MS, &report))
			seen = report.what == GSI_MAD && mad_tag(report.mad.bytes) == mad.tag;
	}
	assert_true(seen);
	kill(agents[0].pid, SIGCONT);
	stop_all(agents, 2);
	gsi_agent_stop(&other);
}

/* Another user's process that has the next names, with a queue that is full, or that says nothing.
 */
static pid_t start_stranger(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	if (setuid(AGENT_NOBODY))
		_exit(1);
	/* Another user's process loses it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned int level = 1; level <= 3; level++) {
		struct sockaddr_un name = { .sun_family = AF_UNIX };
		int length =
			snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, UROCE_ABI_GSI_NAME,
				 UROCE_ABI_VERSION, "00000000000000000000ffff7f000001", 0, level);
		socklen_t bytes =
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)length;
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

		if (bind(fd, (struct sockaddr *)&name, bytes))
			_exit(2);
		if (level > 1)
			listen(fd, 0);
		if (level > 2)
			connect(socket(AF_UNIX, SOCK_SEQPACKET, 0), (struct sockaddr *)&name,
				bytes);
	}
	for (;;)
		pause();
}

static void test_stranger(void **state)
{
	enum { AGENTS = 3 };
	struct gsi_agent agents[AGENTS];
	struct mad_spec mad;
	pid_t stranger;

	(void)state;
	if (geteuid() || !network_is_fresh())
		skip();
	start_all(agents, 1);
	stranger = start_stranger();
	usleep(50000);
	start_all(agents + 1, 2);
	mad = to(&agents[2]);
	reach(&agents[1], &agents[2], &mad);
	assert_int_equal(find_holder(agents, 0, AGENTS), 0);
	gsi_agent_suspend(&agents[0]);
	mad = to(&agents[2]);
	reach(&agents[1], &agents[2], &mad);
	kill(agents[0].pid, SIGCONT);
	mad = to(&agents[0]);
	reach(&agents[1], &agents[0], &mad);
	stop_all(agents, AGENTS);
	kill(stranger, SIGKILL);
	waitpid(stranger, NULL, 0);
}

/* Processes stop, go on, die and begin anew in any order; two live on and reach each other. */
static void test_mix(void **state)
{
	enum { AGENTS = 6, STEADY = 2, ROUNDS = 24 };
	struct gsi_agent agents[AGENTS];
	bool stopped[AGENTS] = { false };
	unsigned int seed = 1;

	(void)state;
	start_all(agents, AGENTS);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int victim = (unsigned int)rand_r(&seed) % (AGENTS - STEADY);
		struct gsi_agent *one = &agents[AGENTS - 1 - round % 2];
		struct gsi_agent *other = &agents[AGENTS - 2 + round % 2];
		struct mad_spec mad = to(other);

		if (stopped[victim] || rand_r(&seed) % 2) {
			if (stopped[victim])
				kill(agents[victim].pid, SIGCONT);
			else
				gsi_agent_suspend(&agents[victim]);
			stopped[victim] = !stopped[victim];
		} else {
			gsi_agent_kill(&agents[victim]);
			gsi_agent_start(&agents[victim], 0, loopback4);
		}
		reach(one, other, &mad);
	}
	for (unsigned int i = 0; i < AGENTS - STEADY; i++)
		kill(agents[i].pid, SIGCONT);
	for (unsigned int i = 0; i < AGENTS - STEADY; i++) {
		struct mad_spec mad = to(&agents[i]);

		reach(&agents[AGENTS - 1], &agents[i], &mad);
	}
	find_holder(agents, 0, AGENTS);
	stop_all(agents, AGENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_stopped, fresh_network),
		cmocka_unit_test_setup(test_one_after_the_other, fresh_network),
		cmocka_unit_test_setup(test_deputy_dies, fresh_network),
		cmocka_unit_test_setup(test_will_of_the_stopped, fresh_network),
		cmocka_unit_test_setup(test_arrivals_are_noticed, fresh_network),
		cmocka_unit_test_setup(test_stranger, fresh_network),
		cmocka_unit_test_setup(test_mix, fresh_network),
	};

	/* A program may be called anything, and /proc shows it as it is. */
	prctl(PR_SET_NAME, "a) R (b");
	shared_time_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
