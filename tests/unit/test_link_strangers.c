/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What strangers leave behind is let go of without waiting for it, on kernels that cannot refuse it
 * as well; and names that only keep others out take nothing.
 */
#include "link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/closer.h"
#include "link/passing.h"
#include "link/question.h"
#include "link/visitor.h"
#include <rdma/uroce-abi.h>

enum {
	COUNT = 40,
	MANY = 3000,
	/* For one of them; others may have the processor for some seconds. */
	LINGER_SECONDS = 16,
	PATIENCE_MS = LINGER_SECONDS * 1000 / 2,
};

/* A socket whose last close waits, since what it has sent is not read. */
static int lingering(int listener)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_SECONDS };
	static const char bytes[65536];
	struct sockaddr_in name;
	socklen_t length = sizeof(name);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_return_code(getsockname(listener, (struct sockaddr *)&name, &length), errno);
	assert_return_code(connect(fd, (struct sockaddr *)&name, length), errno);
	assert_return_code(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), errno);
	assert_return_code(fcntl(fd, F_SETFL, O_NONBLOCK), errno);
	while (send(fd, bytes, sizeof(bytes), 0) > 0)
		;
	assert_return_code(fcntl(fd, F_SETFL, 0), errno);
	return fd;
}

/* However many there are, and none of them stays open. */
static void test_closing_aside(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fds[COUNT];
	unsigned int before;
	int64_t begin;

	(void)state;
	any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_return_code(bind(listener, (struct sockaddr *)&any, sizeof(any)), errno);
	assert_return_code(listen(listener, COUNT), errno);
	link_closer_get_ready();
	before = count_descriptors();
	for (unsigned int i = 0; i < COUNT; i++)
		fds[i] = lingering(listener);
	begin = now_ms();
	for (unsigned int i = 0; i < COUNT; i++) {
		link_close_aside(&fds[i]);
		assert_int_equal(fds[i], -1);
		assert_true(now_ms() - begin < PATIENCE_MS);
	}
	/* Many more, which do not linger, while those are being worked at. */
	for (unsigned int i = 0; i < MANY; i++) {
		int quick = open("/dev/null", O_RDONLY | O_CLOEXEC);

		link_close_aside(&quick);
	}
	assert_true(now_ms() - begin < PATIENCE_MS);
	/* The last ones may not have begun. */
	for (unsigned int i = 0; i < PATIENCE_MS && count_descriptors() > before; i++)
		usleep(1000);
	assert_int_equal(count_descriptors(), before);
	link_close_aside_end();
	close(listener);
}

/* Put a descriptor into whatever has the name: did the kernel take it? */
static bool can_put(int type, const struct sockaddr_un *name, socklen_t bytes, int fd)
{
	int sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool taken = connect(sock, (const struct sockaddr *)name, bytes) == 0 &&
		     link_send_with_fds(sock, "x", 1, &fd, 1) == 0;

	close(sock);
	return taken;
}

/* To close such a name would release what is in its queue. */
static void test_names_that_take_nothing(void **state)
{
	static const int types[] = { SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM };
	struct link_fixture *fixture = *state;
	const struct link_endpoint endpoint = link_endpoint_of(loopback4, 0);
	int lock = link_pool_lock(&endpoint);
	struct sockaddr_un name;
	socklen_t bytes = link_abstract_name(&name, UROCE_ABI_POOL_LOCK_NAME, UROCE_ABI_VERSION,
					     "00000000000000000000ffff7f000001", 0);

	assert_true(lock >= 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_false(can_put(types[i], &name, bytes, fixture->link->control_fd));
	/* It still keeps others out. */
	assert_int_equal(link_pool_lock(&endpoint), -EADDRINUSE);
	link_close_fd(&lock);
}

/* What comes with a message is had by nobody unless it is the one descriptor that was asked for. */
static void test_two_descriptors_are_none(void **state)
{
	int pair[2], twice[2] = { STDIN_FILENO, STDIN_FILENO }, with;
	unsigned int before;
	char byte;

	(void)state;
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	before = count_descriptors();
	for (int count = 0; count <= 2; count++) {
		assert_int_equal(link_send_with_fds(pair[0], "x", 1, twice, (size_t)count), 0);
		assert_int_equal(link_receive_with_fd(pair[1], &byte, 1, 0, &with), 1);
		assert_int_equal(with >= 0, count == 1);
		link_close_fd(&with);
		assert_int_equal(count_descriptors(), before);
	}
	close(pair[0]);
	close(pair[1]);
}

/* The answer name of a free slot, with a queue that is full: a filler that is never accepted. */
static void build_wall(unsigned int slot, int *listener, int *filler)
{
	struct sockaddr_un name;
	socklen_t bytes = link_slot_name(UROCE_ABI_ANSWER_NAME, slot, &name);

	*listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_return_code(bind(*listener, (struct sockaddr *)&name, bytes), errno);
	assert_return_code(listen(*listener, 0), errno);
	*filler = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_return_code(connect(*filler, (struct sockaddr *)&name, bytes), errno);
}

static int64_t join_for_a_moment(void *arg)
{
	struct link_fixture *fixture = arg;
	int64_t begin = now_ms(), took;
	struct agent agent;

	agent_start_good(&agent, 0, loopback4, fixture->link);
	took = now_ms() - begin;
	agent_stop(&agent);
	return took;
}

/*
 * The first process of its part of the pool asks all others; names that cannot be reached do not
 * hold it up, since it sees in the end whether the rest was to be had.
 */
static void test_walls(void **state)
{
	enum { BEFORE = 3, WALLS = LINK_SLOTS - BEFORE - 2 };
	struct link_fixture *fixture = *state;
	struct agent agents[BEFORE];
	int listener[WALLS], filler[WALLS];

	if (!network_is_fresh())
		skip();
	for (unsigned int i = 0; i < BEFORE; i++)
		agent_start_good(&agents[i], 0, loopback4, fixture->link);
	for (unsigned int i = 0; i < WALLS; i++)
		build_wall(BEFORE + 2 + i, &listener[i], &filler[i]);
	/* It was 300. */
	assert_true(takes_less(200, join_for_a_moment, fixture));
	for (unsigned int i = 0; i < WALLS; i++) {
		close(listener[i]);
		close(filler[i]);
	}
	for (unsigned int i = 0; i < BEFORE; i++)
		agent_stop(&agents[i]);
}

/* Binds the names of a slot as another user, and tells in its exit code whether anything came. */
static pid_t take_slot(unsigned int slot, int ready, const int done[2])
{
	struct sockaddr_un name;
	struct pollfd poller = { .events = POLLIN };
	socklen_t bytes = link_slot_name(UROCE_ABI_SLOT_NAME, slot, &name);
	pid_t child = fork();
	int listener;

	if (child)
		return child;
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	poller.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (setresuid(AGENT_NOBODY, AGENT_NOBODY, AGENT_NOBODY) ||
	    bind(poller.fd, (struct sockaddr *)&name, bytes))
		_exit(2);
	bytes = link_slot_name(UROCE_ABI_ANSWER_NAME, slot, &name);
	if (bind(listener, (struct sockaddr *)&name, bytes) || listen(listener, COUNT) ||
	    write(ready, "r", 1) != 1)
		_exit(2);
	/* Until the other process has sent, and closed its end. */
	close(done[1]);
	if (read(done[0], &bytes, 1) != 0)
		_exit(3);
	_exit(poll(&poller, 1, 0));
}

/* The key of an address is shown to processes of this user only. */
static void test_no_key_for_strangers(void **state)
{
	struct link_fixture *fixture = *state;
	const unsigned int slot = 9;
	uint8_t bytes[40] = { 0 };
	int ready[2], done[2], status = -1;
	pid_t stranger;

	need_root();
	assert_return_code(pipe2(ready, O_CLOEXEC), errno);
	assert_return_code(pipe2(done, O_CLOEXEC), errno);
	stranger = take_slot(slot, ready[1], done);
	close(ready[1]);
	close(done[0]);
	assert_int_equal(read(ready[0], bytes, 1), 1);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(link_forward(fixture->addr, slot, bytes, sizeof(bytes), other4, 7),
				 -ENOENT);
	close(done[1]);
	assert_int_equal(waitpid(stranger, &status, 0), stranger);
	assert_int_equal(status, 0);
	close(ready[0]);
}

/* A daemon that has given up its rights still speaks to the processes of its first user. */
static void test_rights_that_were_given_up(void **state)
{
	struct link_fixture *fixture = *state;
	struct agent agent;
	uint8_t bytes[40];

	need_root();
	agent_start_good(&agent, 0, loopback4, fixture->link);
	put_datagram(bytes, sizeof(bytes), agent.slot << LINK_SLOT_SHIFT, 1);
	assert_return_code(seteuid(AGENT_NOBODY), errno);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(
			link_forward(fixture->addr, agent.slot, bytes, sizeof(bytes), other4, 7),
			0);
		usleep(110000);
	}
	assert_return_code(seteuid(0), errno);
	agent_stop(&agent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_closing_aside, fresh_network),
		WITH_LINK(test_names_that_take_nothing),
		cmocka_unit_test(test_two_descriptors_are_none),
		WITH_LINK(test_walls),
		WITH_LINK(test_no_key_for_strangers),
		WITH_LINK(test_rights_that_were_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
