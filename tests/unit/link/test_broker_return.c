/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Reconnection to a broker that takes longer than the time limit of the request that needs it */
#include "link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mock_clock.h"

/* More than the time limit of a request */
enum { LATE_MS = 11000 };

struct connections {
	int original; /* keeps the connection to the broker open */
	int other;    /* other end of the connection that replaces it; -1: closed */
};

static struct connections replace_control(const struct link_broker *broker)
{
	struct connections result = { .original = dup(broker->control) };
	struct epoll_event end = { .events = EPOLLRDHUP };
	int pair[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	assert_return_code(epoll_ctl(broker->epoll_fd, EPOLL_CTL_DEL, broker->control, NULL),
			   errno);
	assert_return_code(dup3(pair[0], broker->control, O_CLOEXEC), errno);
	assert_return_code(epoll_ctl(broker->epoll_fd, EPOLL_CTL_ADD, broker->control, &end),
			   errno);
	close(pair[0]);
	result.other = pair[1];
	return result;
}

/* After the PING has been sent, ends the connections and lets the time limit of the PING expire. */
static void end_connections(void *arg)
{
	struct connections *connections = arg;
	char byte;

	if (connections->other < 0 || recv(connections->other, &byte, 1, MSG_DONTWAIT) < 0)
		return;
	close(connections->other);
	close(connections->original);
	connections->other = -1;
	mock_clock_advance_ms(LATE_MS);
}

static bool is_readable(const struct link *link)
{
	struct pollfd wait = { .fd = link_broker_fd(link), .events = POLLIN };

	return poll(&wait, 1, CHILD_TIMEOUT_MS) == 1;
}

/* Makes the broker send a message to the slot. */
static void visit(unsigned int slot)
{
	char error[LINK_ERROR_TEXT];
	struct link *visitor;
	int fd;

	assert_int_equal(link_open(&visitor, error), 0);
	fd = link_broker_connect(visitor, slot, UROCE_BROKER_SHARED_MEMORY);
	assert_return_code(fd, -fd);
	close(fd);
	link_close(visitor);
}

/* The PING fails because it is late, but the link has reconnected and receives from the broker. */
static void test_late_return(void **state)
{
	struct link_fixture *fixture = *state;
	struct link *link = fixture->link;
	struct connections connections = replace_control(&link->broker);

	link_check_broker(link);
	assert_true(is_readable(link));
	link_maintain_broker(link, end_connections, &connections);
	assert_int_equal(connections.other, -1);
	assert_int_equal(link_broker_changes(link), 1);
	/* The next attempt has nothing to do. */
	assert_true(is_readable(link));
	link_maintain_broker(link, NULL, NULL);
	visit(link_slot(link));
	assert_true(is_readable(link));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_LINK(test_late_return),
	};

	mock_clock_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
