/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What strangers leave behind is let go of without waiting for it, on kernels that cannot refuse it
 * as well.
 */
#include "link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/visitor.h"

enum {
	COUNT = 40,
	LINGER_SECONDS = 30,
	PATIENCE_MS = 1000,
};

/* A socket whose last close waits, since nobody reads what it has sent. */
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
	before = count_descriptors();
	for (unsigned int i = 0; i < COUNT; i++)
		fds[i] = lingering(listener);
	begin = now_ms();
	for (unsigned int i = 0; i < COUNT; i++) {
		link_close_aside(&fds[i]);
		assert_int_equal(fds[i], -1);
	}
	assert_true(now_ms() - begin < PATIENCE_MS);
	/* The last ones may not have begun. */
	for (unsigned int i = 0; i < 2000 && count_descriptors() > before; i++)
		usleep(1000);
	assert_int_equal(count_descriptors(), before);
	link_close_aside_end();
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_closing_aside, fresh_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
