/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Processes of this user that connect and are slow to ask: they are not waited for, and those that
 * have asked are answered.
 */
#include "link_fixture.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "link/reception.h"
#include "link/visitor.h"
#include <rdma/uroce-abi.h>

enum {
	/* It was 200 for each of them. */
	PATIENCE_MS = 100,
};

static int visit(const struct link *link)
{
	struct sockaddr_un name;
	socklen_t bytes = link_slot_name(UROCE_ABI_ANSWER_NAME, link_slot(link), &name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_return_code(connect(fd, (struct sockaddr *)&name, bytes), errno);
	return fd;
}

static void ask(int fd)
{
	struct uroce_abi_pool request = {
		.header = { UROCE_ABI_POOL_REQUEST, UROCE_ABI_VERSION, 0 },
		.slots = LINK_SLOTS,
	};

	/* One that is not open here: the answer has no descriptors. */
	memcpy(request.address, other4, sizeof(request.address));
	assert_int_equal(send(fd, &request, sizeof(request), MSG_NOSIGNAL), sizeof(request));
}

static bool is_readable(int fd)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	return poll(&wait, 1, 0) > 0;
}

/* What answer_all() took at most. */
static int64_t slowest_ms;

/* The helper thread's part; it may not wait. */
static void answer_all(struct link *link)
{
	int64_t begin = now_ms(), took;

	while (is_readable(link_question_fd(link)))
		link_answer_questions(link);
	took = now_ms() - begin;
	if (took > slowest_ms)
		slowest_ms = took;
}

static int64_t slowest_until_now(void)
{
	int64_t slowest = slowest_ms;

	slowest_ms = 0;
	return slowest;
}

static bool is_answered(int fd)
{
	struct uroce_abi_pool answer;

	return recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) == sizeof(answer) &&
	       answer.header.message == UROCE_ABI_POOL_UNKNOWN;
}

static bool is_turned_away(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static int64_t be_silent(void *arg)
{
	struct link *link = ((struct link_fixture *)arg)->link;
	unsigned int before = count_descriptors();
	int silent[LINK_SEATS], quick;

	for (unsigned int i = 0; i < LINK_SEATS; i++)
		silent[i] = visit(link);
	quick = visit(link);
	ask(quick);
	answer_all(link);
	assert_true(is_answered(quick));
	close(quick);
	/* Each is answered when it asks, in any order. */
	for (unsigned int i = LINK_SEATS; i-- > 0;) {
		assert_false(is_readable(silent[i]));
		ask(silent[i]);
		answer_all(link);
		assert_true(is_answered(silent[i]));
		close(silent[i]);
	}
	assert_int_equal(count_descriptors(), before);
	return slowest_until_now();
}

static void test_silent_ones_hold_nobody_up(void **state)
{
	assert_true(takes_less(PATIENCE_MS, be_silent, *state));
}

static int64_t take_all_seats(void *arg)
{
	struct link *link = ((struct link_fixture *)arg)->link;
	unsigned int before = count_descriptors();
	int silent[3 * LINK_SEATS];

	for (unsigned int i = 0; i < 3 * LINK_SEATS; i++) {
		silent[i] = visit(link);
		answer_all(link);
	}
	/* The first ones have gone. */
	for (unsigned int i = 0; i < 3 * LINK_SEATS; i++) {
		assert_int_equal(is_turned_away(silent[i]), i < 2 * LINK_SEATS);
		close(silent[i]);
	}
	/* One that goes without a word leaves nothing. */
	answer_all(link);
	assert_int_equal(count_descriptors(), before);
	return slowest_until_now();
}

static void test_no_more_than_there_are_seats(void **state)
{
	assert_true(takes_less(PATIENCE_MS, take_all_seats, *state));
}

static int64_t end_with_visitors(void *arg)
{
	struct link *link;
	char error[LINK_ERROR_TEXT];
	unsigned int before;
	int silent[2];

	fresh_network(arg);
	before = count_descriptors();
	for (unsigned int round = 0; round < 2; round++) {
		assert_int_equal(link_open(&link, error), 0);
		silent[0] = visit(link);
		answer_all(link);
		silent[1] = visit(link);
		if (round)
			link_abandon(link);
		link_close(link);
		for (unsigned int i = 0; i < 2; i++)
			close(silent[i]);
		assert_int_equal(count_descriptors(), before);
	}
	return slowest_until_now();
}

/* A seat is taken when the link is closed, or when this process has forked. */
static void test_the_end(void **state)
{
	assert_true(takes_less(PATIENCE_MS, end_with_visitors, state));
}

static int64_t use_last_descriptor(void *arg)
{
	struct link *link = ((struct link_fixture *)arg)->link;
	int silent = visit(link), quick = visit(link), free = dup(0);
	struct rlimit limit, none;

	assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
	none = limit;
	none.rlim_cur = (rlim_t)free;
	close(free);
	assert_return_code(setrlimit(RLIMIT_NOFILE, &none), errno);
	ask(quick);
	answer_all(link);
	assert_true(is_turned_away(silent));
	assert_true(is_answered(quick));
	assert_return_code(setrlimit(RLIMIT_NOFILE, &limit), errno);
	close(silent);
	close(quick);
	quick = visit(link);
	ask(quick);
	answer_all(link);
	assert_true(is_answered(quick));
	close(quick);
	return slowest_until_now();
}

/* A process without a descriptor to spare gives no seat with its last one. */
static void test_the_last_descriptor(void **state)
{
	assert_true(takes_less(PATIENCE_MS, use_last_descriptor, *state));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LINK(test_silent_ones_hold_nobody_up),
		WITH_LINK(test_no_more_than_there_are_seats),
		cmocka_unit_test(test_the_end),
		WITH_LINK(test_the_last_descriptor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
