/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A process that receives at many addresses of its host: a progress cycle must not make a system
 * call for each of them.
 */
#include "progress_end.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "find_broker.h"
#include "link_child.h"
#include "progress/path/ud_path.h"
#include "progress/progress_priv.h"

enum {
	ADDRESSES = 200,
	TURNS = 100,
	BROKERS = 3,
};

/* Receives at count addresses, from 127.0.1.0 on. */
static void hear(struct progress *progress, struct progress_ud_addrs *listen, unsigned int count)
{
	struct progress_local_addr local[ADDRESSES] = { 0 };
	char error[PROGRESS_ERROR_TEXT];

	for (unsigned int i = 0; i < count; i++) {
		memcpy(local[i].gid, end_loopback, 16);
		local[i].gid[14] = 1;
		local[i].gid[15] = (uint8_t)i;
	}
	assert_int_equal(progress_ud_addrs_set(progress, listen, local, count, error), 0);
}

static void idle_turns_cost_the_same(void **state)
{
	struct progress *progress = get_progress();
	struct progress_ud_addrs *listen = progress_ud_addrs_new();
	uint64_t calls, turns;

	(void)state;
	assert_non_null(listen);
	hear(progress, listen, ADDRESSES);
	assert_int_equal(progress->address_count, ADDRESSES);
	calls = progress_count(progress, PROGRESS_COUNT_RECEIVE_CALLS);
	turns = poll_cycles(progress);
	while (poll_cycles(progress) < turns + TURNS)
		progress_poll(progress);
	calls = progress_count(progress, PROGRESS_COUNT_RECEIVE_CALLS) - calls;
	assert_true(calls < 2 * TURNS);
	progress_ud_addrs_close(progress, listen);
	assert_int_equal(progress->address_count, 0);
	progress_put(progress);
}

static const uint8_t message[] = "to one of many";

static void exchange(struct progress_end *a, struct progress_end *b, bool polls)
{
	unsigned int sent = a->sent, received = b->received;
	uint8_t to[sizeof(message)];

	assert_true(end_receive(b, to, sizeof(to)));
	assert_true(end_send(a, message, sizeof(message)));
	if (polls) {
		assert_true(end_poll_for(a->progress, &b->received, received + 1));
		assert_true(end_poll_for(a->progress, &a->sent, sent + 1));
	} else {
		assert_true(end_wait_for(&b->received, received + 1));
		assert_true(end_wait_for(&a->sent, sent + 1));
	}
	assert_memory_equal(to, message, sizeof(message));
}

/* Messages are received at an address that was opened before the many others, or after them. */
static void what_comes_is_received(void **state)
{
	static const unsigned int counts[] = { ADDRESSES, 2, ADDRESSES };
	struct progress *progress = get_progress();
	struct progress_ud_addrs *listen = progress_ud_addrs_new();
	struct progress_end a, b, c, d;

	(void)state;
	assert_non_null(listen);
	for (unsigned int first = 0; first < 2; first++) {
		if (first)
			end_pair(&a, &b, progress);
		for (unsigned int i = 0; i < 3; i++) {
			hear(progress, listen, counts[i]);
			end_pair(&c, &d, progress);
			exchange(&c, &d, false);
			exchange(&d, &c, true);
			end_close(&c);
			end_close(&d);
		}
	}
	progress_ud_addrs_close(progress, listen);
	exchange(&a, &b, false);
	exchange(&a, &b, true);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/* Sends a malformed packet to a queue pair number of the process, at 127.0.1.0. */
static void send_to_second(uint32_t qpn)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(4791) };
	const uint8_t bytes[16] = { 0x1f, [5] = (uint8_t)(qpn >> 16), (uint8_t)(qpn >> 8),
				    (uint8_t)qpn };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(0x7f000100);
	assert_return_code(fd, errno);
	assert_int_equal(sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, sizeof(to)),
			 sizeof(bytes));
	close(fd);
}

static uint64_t calls_of_turns(struct progress *progress, unsigned int turns)
{
	uint64_t calls = progress_count(progress, PROGRESS_COUNT_RECEIVE_CALLS);
	uint64_t end = poll_cycles(progress) + turns;

	while (poll_cycles(progress) < end)
		progress_poll(progress);
	return progress_count(progress, PROGRESS_COUNT_RECEIVE_CALLS) - calls;
}

/*
 * Two addresses, one of which receives packets all the time.  A poller skips the quiet one's socket
 * in most turns, and still receives a datagram that arrives there within two intervals.
 */
static void a_quiet_address_is_read_rarely(void **state)
{
	struct progress *progress = get_progress();
	struct progress_ud_addrs *listen = progress_ud_addrs_new();
	struct progress_end a, b;
	uint64_t malformed;

	(void)state;
	assert_non_null(listen);
	end_pair(&a, &b, progress);
	hear(progress, listen, 1);
	for (unsigned int i = 0; i < TURNS; i++)
		exchange(&a, &b, true);
	assert_uint_in_range(calls_of_turns(progress, TURNS), TURNS, TURNS + TURNS / 2);
	malformed = progress_count(progress, PROGRESS_COUNT_MALFORMED);
	send_to_second(a.qp.qpn);
	calls_of_turns(progress, 2 * 16);
	assert_int_equal(progress_count(progress, PROGRESS_COUNT_MALFORMED), malformed + 1);
	/* Now the second address is busy, too. */
	assert_uint_in_range(calls_of_turns(progress, TURNS), TURNS + TURNS / 2, 3 * TURNS);
	progress_ud_addrs_close(progress, listen);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

/*
 * The thread that opens an address finds that the broker has ended, and connects to a new one.  At
 * the same time the progress thread receives the new broker's probes of the other addresses;
 * ThreadSanitizer checks what both use.
 */
static void a_broker_is_replaced(void **state)
{
	struct progress *progress = get_progress();
	struct progress_ud_addrs *listen = progress_ud_addrs_new();
	struct progress_end a, b;

	(void)state;
	assert_non_null(listen);
	end_pair(&a, &b, progress);
	for (unsigned int i = 1; i <= BROKERS; i++) {
		assert_int_equal(kill(find_broker(NULL), SIGKILL), 0);
		hear(progress, listen, i);
		exchange(&a, &b, i % 2);
	}
	progress_ud_addrs_close(progress, listen);
	end_close(&a);
	end_close(&b);
	progress_put(progress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(idle_turns_cost_the_same, enter_new_netns),
		cmocka_unit_test_setup(what_comes_is_received, enter_new_netns),
		cmocka_unit_test_setup(a_quiet_address_is_read_rarely, enter_new_netns),
		cmocka_unit_test_setup(a_broker_is_replaced, enter_new_netns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
