/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An address appears while UD queue pairs receive at all addresses of the device, and the broker,
 * which must open its port, is stopped: after a second the request is repeated to a new broker.
 * During that time a program that sleeps for its events must get them, with timeouts as short as
 * before.
 */
#include <inttypes.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "verbs_fixture.h"

#include "own_network.h"

enum {
	FIRST_ADDRESS = INADDR_LOOPBACK + 8,
	PORT = 4791,
	TRIES = 5,
	/*
	 * Maximum time of an exchange in the best of several tries, as other programs may have the
	 * processor.  The timeout is 4 ms; if one thread waited for the broker and served the
	 * timers, an exchange would take a second.
	 */
	LIMIT_MS = 500,
	ALL_TRIES_MS = 40000, /* less than the time limit of the test */
	LISTENS = 0x10000,    /* __SO_ACCEPTCON of the kernel, in /proc/net/unix */
};

/* ---- addresses ---- */

static void lo_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_return_code(ioctl(sock, SIOCSIFFLAGS, &request), errno);
	close(sock);
}

static void add_address(uint32_t address, unsigned int number)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	struct ifreq request = { 0 };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "lo:%u", number);
	memcpy(&request.ifr_addr, &in, sizeof(in));
	assert_return_code(ioctl(sock, SIOCSIFADDR, &request), errno);
	close(sock);
}

/* Returns true if the address has a socket on UDP port 4791. */
static bool is_open(uint32_t address)
{
	FILE *table = fopen("/proc/self/net/udp", "re");
	unsigned int bound, port;
	char line[300];
	bool found = false;

	assert_non_null(table);
	while (fgets(line, sizeof(line), table))
		found |= sscanf(line, "%*s %x:%x", &bound, &port) == 2 && bound == htonl(address) &&
			 port == PORT;
	fclose(table);
	return found;
}

/* ---- the broker ---- */

struct brokers {
	unsigned int count;
	/* The version and the number in the name of the broker that has the highest number */
	unsigned int version, number;
};

/* Finds the brokers of this network namespace that listen. */
static struct brokers find_brokers(void)
{
	FILE *table = fopen("/proc/self/net/unix", "re");
	struct brokers found = { 0 };
	unsigned int flags, version, number;
	char line[300];

	assert_non_null(table);
	while (fgets(line, sizeof(line), table)) {
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @uroce-broker/%u/%u", &flags, &version,
			   &number) != 3 ||
		    !(flags & LISTENS))
			continue;
		if (!found.count++ || number > found.number) {
			found.version = version;
			found.number = number;
		}
	}
	fclose(table);
	return found;
}

static pid_t broker_pid(const struct brokers *brokers)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ucred cred;
	socklen_t bytes = sizeof(cred);
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "uroce-broker/%u/%u",
			      brokers->version, brokers->number);

	assert_return_code(connect(sock, (struct sockaddr *)&name,
				   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) +
					   (socklen_t)length),
			   errno);
	assert_return_code(getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &bytes), errno);
	close(sock);
	return cred.pid;
}

static pid_t stopped_broker;

static void stop_broker(const struct brokers *brokers)
{
	stopped_broker = broker_pid(brokers);
	assert_return_code(kill(stopped_broker, SIGSTOP), errno);
}

/* Also the teardown of the test: no broker stays behind stopped. */
static int continue_broker(void **state)
{
	int error = stopped_broker ? kill(stopped_broker, SIGCONT) : 0;

	(void)state;
	stopped_broker = 0;
	return error;
}

/* ---- traffic ---- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_for_event(struct verbs_end *end)
{
	struct pollfd pollfd = { .fd = end->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	assert_int_equal(poll(&pollfd, 1, PATIENCE_MS), 1);
	assert_int_equal(ibv_get_cq_event(end->channel, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Transfers one message, polling only after events.  Returns the time in ms. */
static int64_t exchange(struct pair *pair)
{
	int64_t begin = now_ms();

	assert_int_equal(ibv_req_notify_cq(pair->a.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(pair->b.cq, 0), 0);
	assert_int_equal(post_recv(&pair->b, 1, 0, 1000), 0);
	assert_int_equal(post_send(&pair->a, 2, 0, 1000, IBV_SEND_SIGNALED), 0);
	sleep_for_event(&pair->b);
	sleep_for_event(&pair->a);
	return now_ms() - begin;
}

/*
 * Stops the broker and adds an address.  Returns the time of the longest exchange, in ms, until the
 * address is open, which must be before the time end.
 */
static int64_t longest_exchange(struct pair *pair, unsigned int number, int64_t end)
{
	struct brokers before = find_brokers();
	uint32_t address = FIRST_ADDRESS + number;
	int64_t longest = 0;

	assert_int_equal(before.count, 1);
	stop_broker(&before);
	add_address(address, number);
	while (!is_open(address)) {
		int64_t took = exchange(pair);

		longest = took > longest ? took : longest;
		assert_true(now_ms() < end);
	}
	/* Otherwise the request did not wait for the stopped broker. */
	assert_true(find_brokers().number > before.number);
	/* A broker that has been replaced ends. */
	assert_int_equal(continue_broker(NULL), 0);
	while (find_brokers().count > 1) {
		exchange(pair);
		assert_true(now_ms() < end);
	}
	return longest;
}

static void timers_go_on(void **state)
{
	struct ibv_qp *hears_all;
	struct pair pair;
	struct verbs_fixture fixture;
	int64_t longest = LIMIT_MS, end = now_ms() + ALL_TRIES_MS;

	(void)state;
	if (!fresh_network())
		skip();
	lo_up();
	/* One exchange in 100 million loses a packet eight times in a row, which ends the pair. */
	setenv("UROCE_FAULT", "drop=0.05,seed=3", 1);
	pair_open(&pair, NULL);
	fixture_open(&fixture);
	hears_all = fixture_qp(&fixture, IBV_QPT_UD, NULL);
	fixture_connect(hears_all, 0);
	for (unsigned int i = 0; i < TRIES && longest >= LIMIT_MS; i++) {
		longest = longest_exchange(&pair, i, end);
		print_message("longest exchange: %" PRId64 " ms\n", longest);
	}
	assert_true(longest < LIMIT_MS);
	pair_close(&pair);
	assert_int_equal(ibv_destroy_qp(hears_all), 0);
	fixture_close(&fixture);
	assert_int_equal(ibv_close_device(the_context()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(timers_go_on, continue_broker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
