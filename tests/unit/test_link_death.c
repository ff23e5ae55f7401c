/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Joining a pool while others are busy, stopped, killed or lying.
 */
#include "link_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "link/question.h"
#include "own_time.h"

/* So much faster is a process impatient, where no other one needs its time to answer. */
#define HASTE 8
/* What a busy host takes beside. */
#define BUSY_MS 500

static char error[LINK_ERROR_TEXT];

static void nap_us(unsigned int microseconds)
{
	struct timespec time = { .tv_nsec = microseconds * 1000l };

	nanosleep(&time, NULL);
}

/* Two processes, each without a second thread, ask each other at the same time. */
static void test_two_that_ask_each_other(void **state)
{
	enum { ROUNDS = 20 };
	struct agent_report report;
	struct agent a, b;
	unsigned int slow = 0;

	(void)state;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		int64_t begin;

		agent_start_good(&a, 0, loopback4, NULL);
		agent_start_good(&b, 0, other4, NULL);
		begin = now_ms();
		agent_open(&a, other4);
		agent_open(&b, loopback4);
		assert_true(agent_report(&a, NULL, AGENT_PATIENCE_MS, &report));
		assert_int_equal(report.error, 0);
		assert_true(agent_report(&b, NULL, AGENT_PATIENCE_MS, &report));
		assert_int_equal(report.error, 0);
		slow += now_ms() - begin >= BUSY_MS;
		agent_stop(&a);
		agent_stop(&b);
	}
	/* Others had the processor, now and then. */
	assert_uint_in_range(slow, 0, ROUNDS / 4);
}

static int64_t join_beside_stopped(void *arg)
{
	int64_t begin = now_ms(), took;
	struct agent joining;

	(void)arg;
	agent_start_good(&joining, 0, loopback4, NULL);
	took = now_ms() - begin;
	agent_stop(&joining);
	return took;
}

/* A stopped process is passed over when another one has the pool. */
static void test_one_of_two_is_stopped(void **state)
{
	struct agent stopped, running;

	(void)state;
	agent_start_good(&stopped, 0, loopback4, NULL);
	agent_start_good(&running, 0, loopback4, NULL);
	kill(stopped.pid, SIGSTOP);
	assert_true(takes_less(BUSY_MS, join_beside_stopped, NULL));
	agent_kill(&stopped);
	agent_stop(&running);
}

static int64_t join_in_vain(void *arg)
{
	struct agent joining;
	struct agent_report report;
	int64_t begin = now_ms(), took;

	(void)arg;
	own_haste_of_children = HASTE;
	agent_start(&joining, 0, loopback4, NULL, &report);
	own_haste_of_children = 1;
	took = now_ms() - begin;
	assert_int_equal(report.error, -ETIMEDOUT);
	assert_non_null(strstr(report.text, "does not answer"));
	agent_stop(&joining);
	return took;
}

/* The only holder is stopped: a reason after some seconds; continued in time, it answers. */
static void test_only_holder_is_stopped(void **state)
{
	struct agent stopped;
	struct link *link;
	struct link_addr *addr;
	pid_t child;

	(void)state;
	agent_start_good(&stopped, 0, loopback4, NULL);
	kill(stopped.pid, SIGSTOP);
	assert_true(takes_less(9000 / HASTE + BUSY_MS, join_in_vain, NULL));
	child = fork();
	if (child == 0) {
		nap_us(300000);
		kill(stopped.pid, SIGCONT);
		_exit(0);
	}
	assert_int_equal(open_loopback(&link, &addr), 0);
	close_loopback(link, addr);
	await_child(child, NULL);
	agent_stop(&stopped);
}

static int64_t join_dying_holder(void *arg)
{
	struct agent holder;
	struct link *link;
	struct link_addr *addr;
	int64_t begin, took;
	pid_t child;

	(void)arg;
	agent_start_good(&holder, 0, loopback4, NULL);
	kill(holder.pid, SIGSTOP);
	begin = now_ms();
	child = fork();
	if (child == 0) {
		nap_us(200000);
		kill(holder.pid, SIGKILL);
		_exit(0);
	}
	assert_int_equal(open_loopback(&link, &addr), 0);
	took = now_ms() - begin;
	close_loopback(link, addr);
	await_child(child, NULL);
	agent_kill(&holder);
	return took;
}

/*
 * The only holder is killed while another process waits for its answer: that one makes the pool
 * anew.
 */
static void test_holder_dies_while_asked(void **state)
{
	struct agent foreigner;
	bool root = geteuid() == 0;

	(void)state;
	/* Another user's process never answers; that must not be waited for either. */
	if (root)
		agent_start_good(&foreigner, AGENT_NOBODY, other4, NULL);
	assert_true(takes_less(4000, join_dying_holder, NULL));
	if (root)
		agent_stop(&foreigner);
}

/* What is forwarded to a process while it waits to join is still there afterwards. */
static void test_forwards_survive_a_join(void **state)
{
	struct agent holder, joining;
	struct agent_report report;
	struct link *link;
	struct link_addr *addr;
	uint8_t bytes[40];
	unsigned int i;

	(void)state;
	assert_int_equal(open_loopback(&link, &addr), 0);
	agent_start_good(&joining, 0, loopback4, link);
	agent_start_good(&holder, 0, other4, link);
	kill(holder.pid, SIGSTOP);
	agent_open(&joining, other4);
	nap_us(50000);
	for (i = 0; i < 8; i++) {
		put_datagram(bytes, sizeof(bytes), joining.slot << LINK_SLOT_SHIFT, i);
		assert_int_equal(
			link_forward(addr, joining.slot, bytes, sizeof(bytes), loopback4, 9), 0);
	}
	nap_us(50000);
	kill(holder.pid, SIGCONT);
	assert_true(agent_report(&joining, link, AGENT_PATIENCE_MS, &report));
	assert_int_equal(report.event, AGENT_OPENED);
	assert_int_equal(report.error, 0);
	for (i = 0; i < 8; i++) {
		assert_true(agent_report(&joining, link, AGENT_PATIENCE_MS, &report));
		assert_int_equal(report.event, AGENT_DATAGRAM);
		assert_int_equal(report.tag, i);
		assert_true(report.forwarded);
	}
	agent_stop(&joining);
	agent_stop(&holder);
	close_loopback(link, addr);
}

/* ---- a process that has the port and a slot name but does not keep to the protocol ---- */

enum lie {
	LIE_EXIT,    /* ends instead of answering */
	LIE_FEW,     /* sends fewer descriptors than it says */
	LIE_MORE,    /* and more than were asked for */
	LIE_WRONG,   /* sends descriptors of something else */
	LIE_KIND,    /* says something else */
	LIE_NOTHING, /* closes the connection */
	LIE_COUNT,
};

static void send_lie(int sock, enum lie lie, const struct uroce_abi_pool *request)
{
	struct uroce_abi_pool reply = *request;
	unsigned int count = request->slots, i;
	int fds[LINK_SLOTS];

	reply.header.message = lie == LIE_KIND ? UROCE_ABI_POOL_REQUEST : UROCE_ABI_POOL_REPLY;
	if (lie == LIE_FEW)
		count--;
	if (lie == LIE_MORE)
		reply.slots = ++count;
	for (i = 0; i < count; i++)
		fds[i] = sock;
	if (lie != LIE_NOTHING)
		link_send_with_fds(sock, &reply, sizeof(reply), fds, count);
}

static pid_t start_liar(enum lie lie, unsigned int slot)
{
	struct sockaddr_in port = { .sin_family = AF_INET,
				    .sin_port = htons(4791),
				    .sin_addr.s_addr = htonl(0x7f000002) };
	int udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
	int listener = link_listen(UROCE_ABI_ANSWER_NAME, slot);
	struct uroce_abi_pool request;
	pid_t child;

	assert_true(listener >= 0);
	assert_return_code(setsockopt(udp, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), errno);
	assert_return_code(bind(udp, (struct sockaddr *)&port, sizeof(port)), errno);
	child = fork();
	if (child == 0) {
		struct pollfd wait = { .fd = listener, .events = POLLIN };

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (poll(&wait, 1, -1) > 0) {
			int asker = accept(listener, NULL, NULL);

			if (recv(asker, &request, sizeof(request), 0) == sizeof(request)) {
				if (lie == LIE_EXIT)
					_exit(0);
				send_lie(asker, lie, &request);
			}
			close(asker);
		}
	}
	close(udp);
	close(listener);
	return child;
}

/* What came with a bad answer is closed by a thread, so that it may take a moment. */
static void await_descriptors(unsigned int most)
{
	for (unsigned int i = 0; i < AGENT_PATIENCE_MS && count_descriptors() > most; i++)
		usleep(1000);
	assert_uint_in_range(count_descriptors(), 0, most);
}

struct bad_answer {
	enum lie lie;
	unsigned int before; /* descriptors */
};

static int64_t join_beside_liar(void *arg)
{
	const struct bad_answer *answer = arg;
	int64_t begin = now_ms(), took;
	unsigned int descriptors;
	struct link *link;
	struct link_addr *addr;
	pid_t liar = start_liar(answer->lie, 5);
	int result;

	await_descriptors(answer->before);
	assert_int_equal(link_open(&link, error), 0);
	descriptors = count_descriptors();
	own_time_set(HASTE);
	result = link_addr_open(link, other4, 0, &addr, error);
	own_time_set(1);
	took = now_ms() - begin;
	if (answer->lie == LIE_EXIT) {
		assert_int_equal(result, 0);
		link_addr_close(addr);
	} else {
		assert_true(result == -EADDRINUSE || result == -ETIMEDOUT);
	}
	await_descriptors(descriptors);
	link_close(link);
	kill(liar, SIGKILL);
	assert_int_equal(waitpid(liar, NULL, 0), liar);
	return took;
}

/* Bad answers do not get in, leave no descriptors behind and do not stop the join for ever. */
static void test_bad_answers(void **state)
{
	struct bad_answer answer = { .before = count_descriptors() };

	(void)state;
	if (!network_is_fresh())
		skip();
	for (answer.lie = LIE_EXIT; answer.lie < LIE_COUNT; answer.lie++)
		assert_true(takes_less(9000 / HASTE + BUSY_MS, join_beside_liar, &answer));
}

/* A joining process that may not have so many descriptors raises its limit and asks again. */
static void test_join_raises_the_limit(void **state)
{
	struct agent holder;
	pid_t child;

	(void)state;
	agent_start_good(&holder, 0, loopback4, NULL);
	child = fork();
	if (child == 0) {
		struct link *link;
		struct link_addr *addr;

		/* Room for the link itself and for a part of the answer. */
		struct rlimit limit = { 30, 4096 };

		setrlimit(RLIMIT_NOFILE, &limit);
		if (open_loopback(&link, &addr))
			_exit(1);
		_exit(0);
	}
	await_child(child, NULL);
	agent_stop(&holder);
}

/* ---- many processes come and go, and are killed at any moment ---- */

#define WORKERS 6
#define CHAOS_MS 2000
/* Now and then all are left alone for so long, since most races are between the living. */
#define CALM_MS 40
#define CALM_EVERY 16
/* Of which datagram_qpn() and datagram_tag() can be read. */
#define DATAGRAM_BYTES_MIN 12

/*
 * A datagram to oneself must come back.  One may be lost to a member of the group that is closed at
 * this very moment (port-sharing.md, Prices), but hardly several of them one after the other, and
 * where the group's order is wrong none comes back.  In such a moment the probe of a process that
 * joins, which is too short for a packet, may come as well.
 */
static int send_to_oneself(struct link_addr *addr, const uint8_t gid[16], uint32_t qpn,
			   uint32_t tag, struct link_batch *batch)
{
	int result = -EAGAIN;

	for (unsigned int i = 0; i < 10 && result == -EAGAIN; i++) {
		send_to_qpn(addr, gid, qpn, tag);
		do
			result = receive_wait(addr, batch, 100);
		while (result == 0 && batch->bytes < DATAGRAM_BYTES_MIN);
	}
	return result;
}

static void use_address(struct link *link, const uint8_t gid[16], unsigned int seed)
{
	static uint8_t room[LINK_MAX_BYTES + 1];
	struct link_batch batch = { .buffer = room, .buffer_bytes = sizeof(room) };
	uint32_t qpn = link_slot(link) << LINK_SLOT_SHIFT | (seed & 0xffff), tag = seed;
	struct pollfd wait = { .fd = link_question_fd(link), .events = POLLIN };
	struct link_addr *addr;

	if (link_addr_open(link, gid, 0, &addr, error)) {
		fprintf(stderr, "worker: %s\n", error);
		_exit(2);
	}
	if (send_to_oneself(addr, gid, qpn, tag, &batch)) {
		fprintf(stderr, "worker: none of ten datagrams came back within a second\n");
		_exit(3);
	}
	if (datagram_qpn(room) != qpn || datagram_tag(room) != tag) {
		fprintf(stderr, "worker: %#x with %#x came back instead of %#x with %#x\n",
			datagram_qpn(room), datagram_tag(room), qpn, tag);
		_exit(4);
	}
	if (poll(&wait, 1, (int)(seed % 3)) > 0)
		serve(link);
	link_addr_close(addr);
}

static void work(unsigned int seed)
{
	struct link *link;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		if (link_open(&link, error)) {
			fprintf(stderr, "worker: %s\n", error);
			_exit(1);
		}
		use_address(link, seed & 4 ? loopback4 : other4, seed);
		seed = seed * 1103515245u + 12345;
		if (seed & 8)
			use_address(link, seed & 4 ? loopback4 : other4, seed);
		link_close(link);
	}
}

static pid_t start_worker(unsigned int seed)
{
	pid_t child = fork();

	if (child == 0)
		work(seed);
	return child;
}

/* Nothing that is killed at any moment stops or misleads the others. */
static void test_chaos(void **state)
{
	int64_t end = now_ms() + CHAOS_MS;
	unsigned int seed = 1, kills = 0, i;
	pid_t workers[WORKERS];
	struct agent agent;
	struct link *link;
	struct link_addr *addr;
	int status;

	(void)state;
	for (i = 0; i < WORKERS; i++)
		workers[i] = start_worker(seed++);
	while (now_ms() < end) {
		seed = seed * 1103515245u + 12345;
		nap_us(kills % CALM_EVERY ? 200 + (seed >> 16) % 3000 : CALM_MS * 1000);
		i = (seed >> 8) % WORKERS;
		kill(workers[i], SIGKILL);
		assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
		/* Killed, and not ended by an error of its own. */
		assert_true(WIFSIGNALED(status));
		workers[i] = start_worker(seed);
		kills++;
	}
	for (i = 0; i < WORKERS; i++) {
		kill(workers[i], SIGKILL);
		assert_int_equal(waitpid(workers[i], &status, 0), workers[i]);
		assert_true(WIFSIGNALED(status));
	}
	fprintf(stderr, "%u processes killed\n", kills);
	assert_int_equal(open_loopback(&link, &addr), 0);
	agent_start_good(&agent, 0, loopback4, link);
	agent_stop(&agent);
	close_loopback(link, addr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_two_that_ask_each_other, fresh_network),
		cmocka_unit_test_setup(test_one_of_two_is_stopped, fresh_network),
		cmocka_unit_test_setup(test_only_holder_is_stopped, fresh_network),
		cmocka_unit_test_setup(test_holder_dies_while_asked, fresh_network),
		cmocka_unit_test_setup(test_forwards_survive_a_join, fresh_network),
		cmocka_unit_test_setup(test_bad_answers, fresh_network),
		cmocka_unit_test_setup(test_join_raises_the_limit, fresh_network),
		cmocka_unit_test_setup(test_chaos, fresh_network),
	};

	own_time_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
