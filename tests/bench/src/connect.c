/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Time to connect to another process on the loopback interface, by librdmacm or by TCP: from the
 * call until the connection is established.
 *
 *   one    one connection after the other: the median
 *   many   all at once to one listener: until the last is established
 *   shared the same with one CQ on either side: descriptors do not suffice for a CQ per connection
 *
 * usage: bench_connect rdma|tcp one|many|shared CPU,CPU COUNT; the result is JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

enum { MOST = 16384, PATIENCE_MS = 20000 };

static struct rdma_event_channel *channel;
static struct rdma_cm_id *ids[MOST];
static int sockets[MOST];
static bool shares_cq;
static struct sockaddr_in address = { .sin_family = AF_INET };

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* ---- librdmacm ---- */

static void make_queue_pair(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };
	static struct ibv_cq *cq;

	if (shares_cq && !cq) {
		cq = ibv_create_cq(id->verbs, MOST, NULL, NULL, 0);
		need(cq, "ibv_create_cq");
	}
	init.send_cq = init.recv_cq = cq;
	need(!rdma_create_qp(id, NULL, &init), "rdma_create_qp");
}

/* Returns the id of the next event, which must be of the type wanted; skips TIMEWAIT_EXIT. */
static struct rdma_cm_id *await(enum rdma_cm_event_type wanted)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	do {
		need(poll(&wait, 1, PATIENCE_MS) == 1, "poll");
		need(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
		id = event->event == wanted ? event->id : NULL;
		if (!id && event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			fprintf(stderr, "%s instead of %s\n", rdma_event_str(event->event),
				rdma_event_str(wanted));
			exit(1);
		}
		need(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	} while (!id);
	return id;
}

static void serve_event(void)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type what;

	need(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	what = event->event;
	id = event->id;
	if (what == RDMA_CM_EVENT_CONNECT_REQUEST) {
		make_queue_pair(id);
		need(!rdma_accept(id, &param), "rdma_accept");
	}
	need(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	if (what == RDMA_CM_EVENT_DISCONNECTED) {
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		need(!rdma_destroy_id(id), "rdma_destroy_id");
	}
}

static void serve_rdma(int tell)
{
	struct rdma_cm_id *listener;
	uint16_t port;

	channel = rdma_create_event_channel();
	need(channel, "rdma_create_event_channel");
	need(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)&address), "rdma_bind_addr");
	need(!rdma_listen(listener, MOST), "rdma_listen");
	port = rdma_get_src_port(listener);
	need(write(tell, &port, sizeof(port)) == sizeof(port), "write");
	for (;;)
		serve_event();
}

/* Creates ids with resolved routes and queue pairs, ready for rdma_connect(). */
static void prepare(unsigned int count)
{
	if (!channel)
		channel = rdma_create_event_channel();
	need(channel, "rdma_create_event_channel");
	for (unsigned int i = 0; i < count; i++) {
		need(!rdma_create_id(channel, &ids[i], NULL, RDMA_PS_TCP), "rdma_create_id");
		need(!rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&address, 2000),
		     "rdma_resolve_addr");
		await(RDMA_CM_EVENT_ADDR_RESOLVED);
		need(!rdma_resolve_route(ids[i], 2000), "rdma_resolve_route");
		await(RDMA_CM_EVENT_ROUTE_RESOLVED);
		make_queue_pair(ids[i]);
	}
}

static uint64_t connect_rdma(unsigned int count)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	uint64_t begin, time;

	prepare(count);
	begin = now_ns();
	for (unsigned int i = 0; i < count; i++)
		need(!rdma_connect(ids[i], &param), "rdma_connect");
	for (unsigned int i = 0; i < count; i++)
		await(RDMA_CM_EVENT_ESTABLISHED);
	time = now_ns() - begin;
	for (unsigned int i = 0; i < count; i++)
		need(!rdma_disconnect(ids[i]), "rdma_disconnect");
	for (unsigned int i = 0; i < count; i++)
		await(RDMA_CM_EVENT_DISCONNECTED);
	for (unsigned int i = 0; i < count; i++) {
		rdma_destroy_qp(ids[i]);
		need(!rdma_destroy_id(ids[i]), "rdma_destroy_id");
	}
	return time;
}

/* ---- TCP ---- */

static void serve_tcp(int tell)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(address);

	need(listener >= 0 && !bind(listener, (struct sockaddr *)&address, length) &&
		     !listen(listener, MOST) &&
		     !getsockname(listener, (struct sockaddr *)&address, &length),
	     "listen");
	need(write(tell, &address.sin_port, sizeof(address.sin_port)) == sizeof(address.sin_port),
	     "write");
	for (;;)
		need(accept(listener, NULL, NULL) >= 0, "accept");
}

static uint64_t connect_tcp(unsigned int count)
{
	struct pollfd wait = { .events = POLLOUT };
	uint64_t begin, time;

	for (unsigned int i = 0; i < count; i++) {
		sockets[i] = socket(AF_INET, SOCK_STREAM | (count > 1 ? SOCK_NONBLOCK : 0), 0);
		need(sockets[i] >= 0, "socket");
	}
	begin = now_ns();
	for (unsigned int i = 0; i < count; i++)
		need(!connect(sockets[i], (struct sockaddr *)&address, sizeof(address)) ||
			     errno == EINPROGRESS,
		     "connect");
	for (unsigned int i = 0; i < count; i++) {
		wait.fd = sockets[i];
		need(poll(&wait, 1, PATIENCE_MS) == 1 && wait.revents == POLLOUT, "poll");
	}
	time = now_ns() - begin;
	for (unsigned int i = 0; i < count; i++)
		close(sockets[i]);
	return time;
}

/* ---- both ---- */

static void stay_at(unsigned int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	need(!sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t measure(uint64_t (*connect_all)(unsigned int), bool many, unsigned int count)
{
	static uint64_t times[MOST];

	if (many)
		return connect_all(count);
	for (unsigned int i = 0; i < count; i++)
		times[i] = connect_all(1);
	qsort(times, count, sizeof(times[0]), compare);
	return times[count / 2];
}

int main(int argc, char **argv)
{
	bool rdma = argc == 5 && !strcmp(argv[1], "rdma");
	bool many = argc == 5 && strcmp(argv[2], "one") != 0;
	unsigned int count = argc == 5 ? (unsigned int)atoi(argv[4]) : 0;
	unsigned int cpu[2];
	int tell[2];
	uint64_t time;

	if (argc != 5 || sscanf(argv[3], "%u,%u", &cpu[0], &cpu[1]) != 2 || !count || count > MOST)
		return 2;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	shares_cq = !strcmp(argv[2], "shared");
	need(!pipe(tell), "pipe");
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		stay_at(cpu[0]);
		(rdma ? serve_rdma : serve_tcp)(tell[1]);
	}
	stay_at(cpu[1]);
	need(read(tell[0], &address.sin_port, sizeof(address.sin_port)) == sizeof(address.sin_port),
	     "read");
	time = measure(rdma ? connect_rdma : connect_tcp, many, count);
	printf("{\"us\": %.3f}\n", (double)time / 1e3);
	/* The server ends with this process. */
	return 0;
}
