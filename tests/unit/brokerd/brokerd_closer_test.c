/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Closing more connections than the closer's queue has room for, of which each close() would take
 * seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "brokerd/brokerd.h"

enum {
	SOCKETS = 300, /* more than twice the queue */
	BUFFER = 4096,
	LINGER_SECONDS = 60,
};

static int listen_without_reading(struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = BUFFER;
	socklen_t room = sizeof(*address);

	*address = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
	assert_int_equal(listen(fd, SOCKETS), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &room), 0);
	return fd;
}

/* Returns a TCP socket whose close() waits for a peer that never reads. */
static int lingering_socket(const struct sockaddr_in *to)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_SECONDS };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = BUFFER;
	static const uint8_t data[16 * BUFFER];

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)to, sizeof(*to)), 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	return fd;
}

static void a_flood_blocks_nobody(void **state)
{
	struct sockaddr_in address;
	int listener = listen_without_reading(&address), sockets[SOCKETS];
	uint64_t start;

	(void)state;
	for (int i = 0; i < SOCKETS; i++)
		sockets[i] = lingering_socket(&address);
	start = brokerd_now();
	for (int i = 0; i < SOCKETS; i++) {
		closer_close(&sockets[i]);
		assert_int_equal(sockets[i], -1);
	}
	assert_true(brokerd_now() - start < UINT64_C(1000000000) * LINGER_SECONDS / 2);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flood_blocks_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
