/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The last message of a connection: its sender must get a completion although one of the ends
 * stops.  The receiver's process may exit as soon as it has the message, without destroying
 * anything: an adapter continues without the process.  Or the receiver reports the message through
 * a socket, and the sender moves its queue pair to ERR.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	LENGTH = 100,
	STREAM = 32,
	TIMEOUT = 15, /* 134 ms, so that a busy host does not use up the seven retries */
	REPORTS = 50, /* connections, each with a message that is reported */
};

static const struct pair_options options = { .recv_wr = STREAM, .timeout = TIMEOUT };

/* Opens a pair and connects its end a to the other process; they exchange QPNs by the socket. */
static void join(struct pair *pair, int fd)
{
	uint32_t qpn;

	pair_open(pair, &options);
	assert_int_equal(to_state(pair->a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_init(pair->a.qp, 0), 0);
	assert_int_equal(write(fd, &pair->a.qp->qp_num, sizeof(qpn)), sizeof(qpn));
	assert_int_equal(read(fd, &qpn, sizeof(qpn)), sizeof(qpn));
	assert_int_equal(to_rtr(pair->a.qp, qpn, &options), 0);
	assert_int_equal(to_rts(pair->a.qp, &options), 0);
}

static void meet(int fd)
{
	char byte = 0;

	assert_int_equal(write(fd, &byte, 1), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
}

static void receive(struct verbs_end *end, unsigned int count, bool events)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc;

	while (count) {
		if (events) {
			assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
			assert_int_equal(ibv_get_cq_event(end->channel, &cq, &context), 0);
			ibv_ack_cq_events(cq, 1);
			assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		}
		while (count && fixture_next(end->cq, &wc, events ? 0 : PATIENCE_MS)) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			count--;
		}
		assert_true(events || count == 0);
	}
}

/* ---- in the two processes ---- */

static struct {
	int fd;
	unsigned int count, spare; /* messages, and receives beyond them */
	bool events;
	void (*end)(int);
} run;

static void take(void **state)
{
	struct pair pair;

	(void)state;
	join(&pair, run.fd);
	for (unsigned int i = 0; i < run.count + run.spare; i++)
		assert_int_equal(post_recv(&pair.a, i, 0, LENGTH), 0);
	if (run.events)
		assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
	meet(run.fd);
	receive(&pair.a, run.count, run.events);
	run.end(0);
}

static void give(void **state)
{
	struct pair pair;

	(void)state;
	join(&pair, run.fd);
	meet(run.fd);
	for (unsigned int i = 0; i < run.count; i++) {
		assert_int_equal(post_send(&pair.a, i, 0, LENGTH, IBV_SEND_SIGNALED), 0);
		expect_wc(&pair.a, i, IBV_WC_SUCCESS);
	}
	pair_close(&pair);
}

static void send_one(struct verbs_end *end, uint64_t wr_id)
{
	assert_int_equal(post_send(end, wr_id, 0, LENGTH, IBV_SEND_SIGNALED), 0);
}

/* Receives run.count messages: replies to each but the last one, which it reports. */
static void take_and_report(void **state)
{
	(void)state;
	for (int i = 0; i < REPORTS; i++) {
		struct pair pair;

		join(&pair, run.fd);
		for (unsigned int j = 0; j < run.count; j++)
			assert_int_equal(post_recv(&pair.a, j, 0, LENGTH), 0);
		if (run.events)
			assert_int_equal(ibv_req_notify_cq(pair.a.cq, 0), 0);
		meet(run.fd);
		for (unsigned int j = 1; j < run.count; j++) {
			receive(&pair.a, 1, run.events);
			send_one(&pair.a, j);
			receive(&pair.a, 1, run.events);
		}
		receive(&pair.a, 1, run.events);
		meet(run.fd);
		pair_close(&pair);
	}
}

static void give_and_stop(void **state)
{
	unsigned int flushed = 0;

	(void)state;
	for (int i = 0; i < REPORTS; i++) {
		struct pair pair;

		join(&pair, run.fd);
		for (unsigned int j = 1; j < run.count; j++)
			assert_int_equal(post_recv(&pair.a, j, 0, LENGTH), 0);
		meet(run.fd);
		for (unsigned int j = 1; j < run.count; j++) {
			send_one(&pair.a, j);
			receive(&pair.a, 2, false);
		}
		send_one(&pair.a, 0);
		meet(run.fd);
		assert_int_equal(to_state(pair.a.qp, IBV_QPS_ERR), 0);
		if (run.count == 1)
			expect_wc(&pair.a, 0, IBV_WC_SUCCESS);
		else
			flushed += wait_wc(&pair.a).status != IBV_WC_SUCCESS;
		pair_close(&pair);
	}
	assert_true(flushed <= REPORTS / 4);
}

/* ---- in the test's own process, which opens no device ---- */

static pid_t start(int fd, const char *what, const char *count, const char *how, const char *end)
{
	char descriptor[12];
	pid_t child = fork();

	if (child) {
		assert_return_code(child, errno);
		close(fd);
		return child;
	}
	snprintf(descriptor, sizeof(descriptor), "%d", fd);
	execl("/proc/self/exe", "verbs_exit", what, descriptor, count, how, end, NULL);
	_exit(127);
}

static void expect_success(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void both_once(const char *count, const char *how, const char *end)
{
	int fds[2];
	pid_t taker, giver;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	taker = start(fds[1], "take", count, how, end);
	giver = start(fds[0], "give", count, how, end);
	expect_success(taker);
	expect_success(giver);
}

static void both(const char *count, const char *how, const char *end)
{
	for (int i = 0; i < 3; i++)
		both_once(count, how, end);
}

static void exit_after_polling(void **state)
{
	(void)state;
	both("1", "polls", "exit");
}

static void exit_after_event(void **state)
{
	(void)state;
	both("1", "events", "exit");
}

/* _exit() calls nothing of uroce, so the ACK must have been sent before. */
static void end_at_once_after_stream(void **state)
{
	(void)state;
	both("32", "polls", "_exit");
	both("32", "events", "_exit");
}

/* The first message is the last one, and no post of the receiver has shown what follows. */
static void end_at_once_after_one(void **state)
{
	(void)state;
	both("1", "polls", "_exit");
	both("1", "events", "_exit");
	both("1+4", "polls", "_exit");
	both("1+4", "events", "_exit");
}

/* The sender's process has not read the ACK when its queue pair stops. */
static void stop_after_report(void **state)
{
	(void)state;
	both_once("1", "polls", "report");
	both_once("1", "events", "report");
}

/*
 * The receiver has replied to each message so far, so its ACK of the last one waits for a reply.
 * On a busy host the ACK may come too late for a few of the senders.
 */
static void stop_after_report_behind_replies(void **state)
{
	(void)state;
	both_once("3", "polls", "report");
	both_once("3", "events", "report");
}

int main(int count, char **words)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_after_polling),
		cmocka_unit_test(exit_after_event),
		cmocka_unit_test(end_at_once_after_stream),
		cmocka_unit_test(end_at_once_after_one),
		cmocka_unit_test(stop_after_report),
		cmocka_unit_test(stop_after_report_behind_replies),
	};
	const struct CMUnitTest taking[] = { cmocka_unit_test(take) };
	const struct CMUnitTest giving[] = { cmocka_unit_test(give) };
	const struct CMUnitTest reporting[] = { cmocka_unit_test(take_and_report) };
	const struct CMUnitTest stopping[] = { cmocka_unit_test(give_and_stop) };
	bool gives;

	if (count != 6)
		return cmocka_run_group_tests(tests, NULL, NULL);
	run.fd = atoi(words[2]);
	run.count = (unsigned int)atoi(words[3]);
	run.spare = strchr(words[3], '+') ? (unsigned int)atoi(strchr(words[3], '+')) : 0;
	run.events = !strcmp(words[4], "events");
	run.end = strcmp(words[5], "exit") ? _exit : exit;
	gives = !strcmp(words[1], "give");
	if (!strcmp(words[5], "report"))
		return gives ? cmocka_run_group_tests(stopping, NULL, NULL)
			     : cmocka_run_group_tests(reporting, NULL, NULL);
	return gives ? cmocka_run_group_tests(giving, NULL, NULL)
		     : cmocka_run_group_tests(taking, NULL, NULL);
}
