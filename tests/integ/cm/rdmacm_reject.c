/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A process rejects a request and exits at once without any handler of its own: its socket, with
 * the unsent REJ, is closed.  The broker sends the REJ in its place, with the private data, as it
 * is one of the process's last messages.
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 7196
#define TIMES 10
#define WORDS "no room"

static struct sockaddr_in address_of(unsigned int number)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons((uint16_t)(PORT - number)),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* Rejects after pause_us, so that the REQ may be retransmitted after the process has ended. */
static void refuse(unsigned int number, unsigned int pause_us, int tell)
{
	struct sockaddr_in own = address_of(number);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&own) || rdma_listen(id, 1) ||
	    write(tell, "x", 1) != 1 || rdma_get_cm_event(channel, &event))
		_exit(2);
	usleep(pause_us);
	if (rdma_reject(event->id, WORDS, sizeof(WORDS)))
		_exit(3);
	_exit(0);
}

/* A refused client posts one more send to see that its queue is empty: rule S13 test. */
static void send_last(struct rdma_cm_id *id)
{
	char bytes[8];
	struct ibv_mr *mr = ibv_reg_mr(id->pd, bytes, sizeof(bytes), 0);
	struct ibv_sge sge = { .addr = (uintptr_t)bytes, .length = sizeof(bytes) };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	assert_non_null(mr);
	sge.lkey = mr->lkey;
	assert_int_equal(ibv_post_send(id->qp, &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(id->send_cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void ask(unsigned int number)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	struct sockaddr_in to = address_of(number);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	assert_non_null(channel);
	assert_return_code(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, PATIENCE_MS), errno);
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_return_code(rdma_resolve_route(id, PATIENCE_MS), errno);
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_return_code(rdma_create_qp(id, NULL, &init), errno);
	assert_return_code(rdma_connect(id, &param), errno);
	event = next(channel, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->status, 28); /* consumer reject: by the process, not by the host */
	assert_memory_equal(event->param.conn.private_data, WORDS, sizeof(WORDS));
	rdma_ack_cm_event(event);
	send_last(id);
	rdma_destroy_qp(id);
	assert_return_code(rdma_destroy_id(id), errno);
}

static pid_t fork_one(void)
{
	pid_t child = fork();

	assert_return_code(child, errno);
	if (child == 0)
		alarm(2 * PATIENCE_MS / 1000);
	return child;
}

static void assert_ended(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Both processes are new in each round, and the one that rejects is the first on the address. */
static void test_reject_and_exit(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < TIMES; i++) {
		pid_t refusing, asking;
		int tell[2];
		char byte;

		assert_return_code(pipe(tell), errno);
		refusing = fork_one();
		if (refusing == 0)
			refuse(i, i * 6000, tell[1]);
		close(tell[1]);
		assert_int_equal(read(tell[0], &byte, 1), 1);
		close(tell[0]);
		asking = fork_one();
		if (asking == 0) {
			ask(i);
			_exit(0);
		}
		assert_ended(asking);
		assert_ended(refusing);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reject_and_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
