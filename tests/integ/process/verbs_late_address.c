/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An address appears while UD queue pairs receive at all addresses of the device, and a stopped
 * process has the port of that address: it takes seconds until the attempt to use it is given up.
 * During that time a program that sleeps for its events must get them, with timeouts as short as
 * before.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_fixture.h"

#include "own_network.h"

enum {
	LATE_ADDRESS = INADDR_LOOPBACK + 8,
	ROUNDS = 100,
	AFTER_MS = 2500,
	/*
	 * The timeout is 4 ms; several may follow each other, and other programs may have the
	 * processor.  A message in flight once took 4800 ms.
	 */
	LIMIT_MS = 3000,
};

static void set_flags(const char *name, short flags)
{
	struct ifreq request = { .ifr_flags = flags };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	assert_return_code(ioctl(sock, SIOCSIFFLAGS, &request), errno);
	close(sock);
}

static void add_late_address(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(LATE_ADDRESS) };
	struct ifreq request = { .ifr_name = "lo:1" };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&request.ifr_addr, &in, sizeof(in));
	assert_return_code(ioctl(sock, SIOCSIFADDR, &request), errno);
	close(sock);
}

static bool is_late(const union ibv_gid *gid)
{
	uint32_t address = htonl(LATE_ADDRESS);

	return !memcmp(gid->raw + 12, &address, sizeof(address));
}

/* In the child: makes a queue pair that has the port of the late address, and of no other. */
static int hold(int ready)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .min_rnr_timer = 1,
				    .ah_attr = { .is_global = 1, .port_num = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(the_context());
	struct ibv_cq *cq = ibv_create_cq(the_context(), 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	uint8_t index = 0;

	while (ibv_query_gid(the_context(), 1, index, &attr.ah_attr.grh.dgid) == 0 &&
	       !is_late(&attr.ah_attr.grh.dgid))
		index++;
	attr.ah_attr.grh.sgid_index = index;
	if (to_init(qp, 0) ||
	    ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return 1;
	if (write(ready, "", 1) != 1)
		return 1;
	pause();
	return 0;
}

static pid_t start_holder(void)
{
	int ready[2];
	pid_t child;
	char byte;

	assert_return_code(pipe(ready), errno);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ready[0]);
		_exit(hold(ready[1]));
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_return_code(kill(child, SIGSTOP), errno);
	return child;
}

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

static void timers_go_on(void **state)
{
	struct ibv_qp *hears_all;
	struct pair pair;
	struct verbs_fixture fixture;
	int64_t until;
	pid_t holder;

	(void)state;
	if (!fresh_network())
		skip();
	set_flags("lo", IFF_UP);
	add_late_address();
	holder = start_holder();
	set_flags("lo:1", 0);
	/* One exchange in 100 million loses a packet eight times in a row, which ends the pair. */
	setenv("UROCE_FAULT", "drop=0.05,seed=3", 1);
	pair_open(&pair, NULL);
	fixture_open(&fixture);
	hears_all = fixture_qp(&fixture, IBV_QPT_UD, NULL);
	fixture_connect(hears_all, 0);
	for (int i = 0; i < ROUNDS; i++)
		assert_true(exchange(&pair) <= LIMIT_MS);
	add_late_address();
	for (until = now_ms() + AFTER_MS; now_ms() < until;)
		assert_true(exchange(&pair) <= LIMIT_MS);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	pair_close(&pair);
	assert_int_equal(ibv_destroy_qp(hears_all), 0);
	fixture_close(&fixture);
	assert_int_equal(ibv_close_device(the_context()), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
