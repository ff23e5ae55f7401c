/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * fork() in a program with open event channels, a listener and a connection: whatever the child
 * does, the parent's connection, its listener and its channels go on.
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 7198
#define PORT_OF_CHILD 7197

static struct ibv_pd *pd;
static struct rdma_cm_id *listener;
/* The connection that stays open during all tests. */
static struct cm_end active, passive;

static struct sockaddr_in address_of(uint16_t port, uint32_t host)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(host) };
}

static void open_end(struct cm_end *end)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	if (!pd)
		pd = ibv_alloc_pd(end->id->verbs);
	assert_non_null(pd);
	end->cq = ibv_create_cq(end->id->verbs, 4, NULL, NULL, 0);
	assert_non_null(end->cq);
	init.send_cq = init.recv_cq = end->cq;
	assert_return_code(rdma_create_qp(end->id, pd, &init), errno);
	end->mr = ibv_reg_mr(pd, end->bytes, sizeof(end->bytes), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(end->mr);
}

static void close_end(struct cm_end *end)
{
	rdma_destroy_qp(end->id);
	assert_return_code(ibv_dereg_mr(end->mr), errno);
	assert_return_code(ibv_destroy_cq(end->cq), errno);
	assert_return_code(rdma_destroy_id(end->id), errno);
}

static void begin_to_connect(struct cm_end *end, uint16_t port)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct sockaddr_in to = address_of(port, INADDR_LOOPBACK);

	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&to, PATIENCE_MS),
			   errno);
	expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_return_code(rdma_resolve_route(end->id, PATIENCE_MS), errno);
	expect(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	open_end(end);
	assert_return_code(rdma_connect(end->id, &param), errno);
}

static void connect_ends(struct cm_end *from, struct cm_end *to)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_event *request;

	begin_to_connect(from, PORT);
	request = next(to->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	to->id = request->id;
	rdma_ack_cm_event(request);
	open_end(to);
	assert_return_code(rdma_accept(to->id, &param), errno);
	expect(from->channel, RDMA_CM_EVENT_ESTABLISHED);
	expect(to->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void disconnect_ends(struct cm_end *from, struct cm_end *to)
{
	assert_return_code(rdma_disconnect(from->id), errno);
	expect(to->channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_return_code(rdma_disconnect(to->id), errno);
	expect(from->channel, RDMA_CM_EVENT_DISCONNECTED);
	close_end(from);
	close_end(to);
}

static void send_message(struct cm_end *from, struct cm_end *to, char letter)
{
	struct ibv_sge in = { (uintptr_t)to->bytes, sizeof(to->bytes), to->mr->lkey };
	struct ibv_sge out = { (uintptr_t)from->bytes, sizeof(from->bytes), from->mr->lkey };
	struct ibv_recv_wr receive = { .sg_list = &in, .num_sge = 1 }, *bad_receive;
	struct ibv_send_wr send = { .sg_list = &out,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_send;

	memset(to->bytes, 0, sizeof(to->bytes));
	memset(from->bytes, letter, sizeof(from->bytes));
	assert_int_equal(ibv_post_recv(to->id->qp, &receive, &bad_receive), 0);
	assert_int_equal(ibv_post_send(from->id->qp, &send, &bad_send), 0);
	await_completion(to);
	await_completion(from);
	assert_memory_equal(to->bytes, from->bytes, sizeof(to->bytes));
}

/* Checks that the connection, the listener and both channels work. */
static void assert_parent_goes_on(void)
{
	struct cm_end more_active = { .channel = active.channel };
	struct cm_end more_passive = { .channel = passive.channel };
	struct pollfd wait[] = { { .fd = active.channel->fd, .events = POLLIN },
				 { .fd = passive.channel->fd, .events = POLLIN } };

	send_message(&active, &passive, 'a');
	send_message(&passive, &active, 'b');
	connect_ends(&more_active, &more_passive);
	send_message(&more_passive, &more_active, 'c');
	disconnect_ends(&more_active, &more_passive);
	/* No other event has been raised. */
	assert_int_equal(poll(wait, 2, 100), 0);
}

static pid_t fork_child(void (*run)(int), int fd)
{
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_return_code(child, errno);
	if (child == 0) {
		alarm(2 * PATIENCE_MS / 1000);
		run(fd);
		_exit(1);
	}
	return child;
}

static void assert_ended(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void end_at_once(int fd)
{
	(void)fd;
	_exit(0);
}

static void end_in_order(int fd)
{
	(void)fd;
	exit(0);
}

static void become_another(int fd)
{
	(void)fd;
	execl("/bin/true", "true", (char *)NULL);
}

/* The child's copies of the parent's objects do not work, and do no harm. */
static void use_what_is_the_parents(int fd)
{
	struct rdma_cm_event *event;

	(void)fd;
	if (!rdma_get_cm_event(active.channel, &event) || !rdma_disconnect(active.id) ||
	    !rdma_listen(listener, 1))
		_exit(2);
	rdma_destroy_event_channel(passive.channel);
	exit(0);
}

static void test_child_ends(void **state)
{
	static void (*const runs[])(int) = {
		end_at_once,
		end_in_order,
		become_another,
		use_what_is_the_parents,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		assert_ended(fork_child(runs[i], -1));
		assert_parent_goes_on();
	}
}

static void wait_and_end(int fd)
{
	char byte;

	_exit(read(fd, &byte, 1) == 1 ? 0 : 2);
}

/* The child keeps its copies of all descriptors while the parent's connections begin and end. */
static void test_child_lives_on(void **state)
{
	int tell[2];
	pid_t child;

	(void)state;
	assert_return_code(pipe(tell), errno);
	child = fork_child(wait_and_end, tell[0]);
	assert_parent_goes_on();
	assert_int_equal(write(tell[1], "x", 1), 1);
	assert_ended(child);
	assert_parent_goes_on();
}

/* Needs no device: the request that arrives is rejected. */
static void listen_anew(int fd)
{
	struct sockaddr_in any = address_of(PORT_OF_CHILD, INADDR_ANY);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 1) ||
	    write(fd, "x", 1) != 1 || rdma_get_cm_event(channel, &event))
		_exit(2);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST || rdma_reject(event->id, "child", 5))
		_exit(3);
	rdma_ack_cm_event(event);
	exit(0);
}

static void test_child_opens_its_own(void **state)
{
	struct cm_end end = { .channel = active.channel };
	struct rdma_cm_event *event;
	int tell[2];
	pid_t child;
	char byte;

	(void)state;
	assert_return_code(pipe(tell), errno);
	child = fork_child(listen_anew, tell[1]);
	close(tell[1]);
	assert_int_equal(read(tell[0], &byte, 1), 1);
	assert_parent_goes_on();
	begin_to_connect(&end, PORT_OF_CHILD);
	event = next(end.channel, RDMA_CM_EVENT_REJECTED);
	assert_memory_equal(event->param.conn.private_data, "child", 5);
	rdma_ack_cm_event(event);
	close_end(&end);
	assert_ended(child);
	assert_parent_goes_on();
}

static int connect_parent(void **state)
{
	struct sockaddr_in own = address_of(PORT, INADDR_LOOPBACK);

	(void)state;
	active.channel = rdma_create_event_channel();
	passive.channel = rdma_create_event_channel();
	assert_true(active.channel && passive.channel);
	assert_return_code(rdma_create_id(passive.channel, &listener, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_bind_addr(listener, (struct sockaddr *)&own), errno);
	assert_return_code(rdma_listen(listener, 8), errno);
	connect_ends(&active, &passive);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child_ends),
		cmocka_unit_test(test_child_lives_on),
		cmocka_unit_test(test_child_opens_its_own),
	};

	return cmocka_run_group_tests(tests, connect_parent, NULL);
}
