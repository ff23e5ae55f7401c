/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Records of the capture for packets that the link accepts, and for those that it does not.  Three
 * functions of the test replace the link.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pcapng_reader.h"
#include "progress/tx/capture_hook.h"

enum {
	QPN = 0x11,
	BYTES = 100,
	RUN = 5,
};

struct link_peer {
	int result; /* of the next call */
	unsigned int calls;
};

static struct link_peer peer;
static char name[] = "/tmp/uroce-test-tap-XXXXXX";

int link_send(struct link_peer *to, const struct iovec *pieces, unsigned int count,
	      unsigned int segment)
{
	assert_int_equal(count, 1);
	assert_int_equal(pieces->iov_len, segment * RUN);
	to->calls++;
	return to->result;
}

uint16_t link_peer_ip_id(const struct link_peer *to)
{
	(void)to;
	return 7;
}

void link_peer_path(const struct link_peer *to, struct link_path *path)
{
	(void)to;
	*path = (struct link_path){ .src = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
				    .dst = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2 },
				    .src_port = 50000 };
}

static void start_capture(void)
{
	struct capture_config config;
	char error[CAPTURE_ERROR_TEXT];

	assert_int_equal(capture_config_parse(&config, name, error), 0);
	if (capture_start(&config, -1, error))
		fail_msg("%s", error);
}

static const struct pcapng_file *stop_capture(void)
{
	capture_stop(NULL);
	return pcapng_read(name);
}

/* Sends a burst of packets of one kind over a link that returns result. */
static void send_burst(enum capture_tx_kind kind, int result)
{
	static uint8_t bytes[RUN * BYTES];
	const struct iovec piece = { bytes, sizeof(bytes) };
	unsigned int calls = peer.calls;

	peer.result = result;
	assert_int_equal(tx_send(&peer, QPN, kind, &piece, 1, BYTES), result);
	assert_int_equal(peer.calls, calls + 1);
}

/* A packet that a full link does not accept is sent again later, and is in the file once. */
static void test_full_link(void **state)
{
	const struct pcapng_file *file;

	(void)state;
	start_capture();
	send_burst(CAPTURE_TX_RETRIED, -EAGAIN);
	send_burst(CAPTURE_TX_RETRIED, -ENOBUFS);
	send_burst(CAPTURE_TX_RETRIED, 0);
	file = stop_capture();
	assert_int_equal(file->packets, RUN);
	for (unsigned int i = 0; i < RUN; i++)
		assert_string_equal(file->packet[i].comment, "");
}

/* A packet that is not sent again is lost, and the file shows it. */
static void test_full_link_once(void **state)
{
	static const int errors[] = { -EAGAIN, -ENOBUFS };
	const struct pcapng_file *file;

	(void)state;
	for (int i = 0; i < 2; i++) {
		start_capture();
		send_burst(CAPTURE_TX_ONCE, errors[i]);
		send_burst(CAPTURE_TX_CORRUPTED, 0);
		file = stop_capture();
		assert_int_equal(file->packets, 2 * RUN);
		assert_non_null(strstr(file->packet[0].comment, "not sent: "));
		assert_non_null(strstr(file->packet[0].comment, strerror(-errors[i])));
		assert_string_equal(file->packet[RUN].comment, "corrupted by fault injection");
	}
}

/* After any other error of the kernel packets are lost, even those of a kind that is retried. */
static void test_refused(void **state)
{
	const struct pcapng_file *file;

	(void)state;
	start_capture();
	send_burst(CAPTURE_TX_RETRIED, -EPERM);
	file = stop_capture();
	assert_int_equal(file->packets, RUN);
	assert_non_null(strstr(file->packet[0].comment, "not sent: Operation not permitted"));
}

/* Without a capture packets are only passed to the link. */
static void test_off(void **state)
{
	(void)state;
	assert_null(capture_running());
	send_burst(CAPTURE_TX_RETRIED, -EAGAIN);
	send_burst(CAPTURE_TX_RETRIED, 0);
}

static int make_file(void **state)
{
	int fd = mkstemp(name);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_link),
		cmocka_unit_test(test_full_link_once),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_off),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
