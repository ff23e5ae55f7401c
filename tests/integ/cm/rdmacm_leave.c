/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A program has lost the address of its connection, disconnects and exits; the address returns
 * shortly after.  Its peer, in another network namespace, must still get DISCONNECTED.
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "own_network.h"

#define PORT 7198
/*
 * The DREQ is repeated after 50 and 250 ms.  Before the address returns, the exiting process has
 * tried twice; it must still run then (it used to end after 80 ms).
 */
#define COMES_BACK_AFTER_US 110000

/* The process that disconnects and exits; this process is its peer. */
struct leaver {
	int to_leaver[2], to_peer[2];
	pid_t pid;
};

static void tell(const int pipe[2])
{
	assert_int_equal(write(pipe[1], "", 1), 1);
}

static void await(const int pipe[2])
{
	char byte;

	assert_int_equal(read(pipe[0], &byte, 1), 1);
}

static void create(struct cm_end *end)
{
	end->channel = rdma_create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
}

static void listen_at_any(struct cm_end *listener)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	create(listener);
	assert_return_code(rdma_bind_addr(listener->id, (struct sockaddr *)&any), errno);
	assert_return_code(rdma_listen(listener->id, 1), errno);
}

static void make_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	assert_return_code(rdma_create_qp(id, NULL, &init), errno);
}

static void connect_to(struct cm_end *end, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_conn_param param = { .retry_count = 7 };

	create(end);
	assert_int_equal(inet_pton(AF_INET, address, &to.sin_addr), 1);
	assert_return_code(rdma_resolve_addr(end->id, NULL, (struct sockaddr *)&to, PATIENCE_MS),
			   errno);
	expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_return_code(rdma_resolve_route(end->id, PATIENCE_MS), errno);
	expect(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_queue_pair(end->id);
	assert_return_code(rdma_connect(end->id, &param), errno);
	expect(end->channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void accept_from(struct cm_end *end)
{
	struct rdma_cm_event *event = next(end->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param param = { .retry_count = 7 };

	end->id = event->id;
	rdma_ack_cm_event(event);
	make_queue_pair(end->id);
	assert_return_code(rdma_accept(end->id, &param), errno);
	expect(end->channel, RDMA_CM_EVENT_ESTABLISHED);
}

/* By a system call, because starting a program would take too long for the test's timing. */
static void set_own_address(const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct ifreq request = { .ifr_name = "lvB" };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
	memcpy(&request.ifr_addr, &in, sizeof(in));
	assert_return_code(ioctl(sock, SIOCSIFADDR, &request), errno);
	close(sock);
}

static void await_no_address(struct ibv_context *context)
{
	union ibv_gid gid = { .global.interface_id = 1 };

	for (int waited = 0; waited < PATIENCE_MS && gid.global.interface_id; waited += 10) {
		usleep(10000);
		assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	}
	assert_true(gid.global.interface_id == 0);
}

static void *bring_back(void *arg)
{
	usleep(COMES_BACK_AFTER_US);
	set_own_address(arg);
	return NULL;
}

/* Runs in the child, the only process of its namespace. */
static void leave(const struct leaver *pipes, bool active)
{
	char address[] = "192.0.2.2";
	struct cm_end end;
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET))
		exit(1);
	tell(pipes->to_peer);
	await(pipes->to_leaver);
	ip("link set lo up");
	ip("link set lvB up");
	set_own_address(address);
	await_device("lvB");
	if (active) {
		connect_to(&end, "192.0.2.1");
	} else {
		listen_at_any(&end);
		tell(pipes->to_peer);
		accept_from(&end);
	}
	set_own_address("0.0.0.0");
	await_no_address(end.id->verbs);
	assert_int_equal(pthread_create(&thread, NULL, bring_back, address), 0);
	rdma_disconnect(end.id);
	exit(0);
}

/* Keeps the child's interface, because the loss of the veth pair would disconnect the peer, too. */
static void hold_network(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	assert_return_code(open(path, O_RDONLY | O_CLOEXEC), errno);
}

static void start(struct leaver *leaver, bool active)
{
	assert_return_code(pipe(leaver->to_leaver), errno);
	assert_return_code(pipe(leaver->to_peer), errno);
	leaver->pid = fork();
	if (!leaver->pid)
		leave(leaver, active);
	await(leaver->to_peer);
	hold_network(leaver->pid);
}

static void let_go_on(const struct leaver *leaver)
{
	add_veth("lvA", 0, "lvB");
	ip("link set lvB netns %d", leaver->pid);
	ip("address add 192.0.2.1/24 dev lvA");
	tell(leaver->to_leaver);
	await_device("lvA");
}

static void assert_disconnected(struct cm_end *end, const struct leaver *leaver)
{
	int status;

	expect(end->channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(waitpid(leaver->pid, &status, 0), leaver->pid);
	assert_int_equal(status, 0);
	rdma_destroy_qp(end->id);
	assert_return_code(rdma_destroy_id(end->id), errno);
	ip("link delete lvA");
}

static struct leaver client, server;

static void a_client_leaves(void **state)
{
	struct cm_end listener, end;

	(void)state;
	listen_at_any(&listener);
	end.channel = listener.channel;
	let_go_on(&client);
	accept_from(&end);
	assert_disconnected(&end, &client);
	assert_return_code(rdma_destroy_id(listener.id), errno);
}

static void a_server_leaves(void **state)
{
	struct cm_end end;

	(void)state;
	let_go_on(&server);
	await(server.to_peer);
	connect_to(&end, "192.0.2.2");
	assert_disconnected(&end, &server);
}

/* The children are made before this process has threads. */
static int set_up(void **state)
{
	(void)state;
	set_up_network();
	start(&client, true);
	start(&server, false);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_leaves),
		cmocka_unit_test(a_server_leaves),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
