/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * usage: bench_threads DEVICE WORKLOAD UNITS [threads | contexts | processes] [SECONDS]
 *
 * Several streams at the same time.  Each of UNITS clients has an RC queue pair to a server of its
 * own.  Clients are threads of one process with one context (threads), threads with a context each
 * (contexts), or processes; so are the servers, in another process or in other processes.
 *
 * WORKLOAD: write8   WRITEs of 8 bytes, 64 outstanding; the server sleeps
 *           send64k  SENDs of 64 KiB, 16 outstanding
 *           write64k WRITEs of 64 KiB, 16 outstanding; the server sleeps
 *           rtt      SENDs of 2 bytes, there and back
 *
 * Prints one line: messages per second of all clients together.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

enum {
	MAX_UNITS = 64,
	SLOTS = 64, /* receives of a queue pair; its CQ has four times as many entries */
	POLL_AT_ONCE = 16,
};

struct workload {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
	unsigned int under_way, signal_each;
	bool echoes; /* the server replies to each message */
};

static const struct workload workloads[] = {
	{ "write8", IBV_WR_RDMA_WRITE, 8, 64, 16, false },
	{ "send64k", IBV_WR_SEND, 65536, 16, 4, false },
	{ "write64k", IBV_WR_RDMA_WRITE, 65536, 16, 4, false },
	{ "rtt", IBV_WR_SEND, 2, 1, 1, true },
};

struct end {
	uint32_t qpn, rkey;
	uint64_t address;
	_Atomic bool ready;
};

/* Shared by all processes. */
static struct board {
	struct end client[MAX_UNITS], server[MAX_UNITS];
	union ibv_gid gid;
	atomic_uint connected;
	atomic_bool go, over;
	_Atomic uint64_t done[MAX_UNITS];
} * board;

static struct {
	const char *device;
	const struct workload *workload;
	unsigned int units;
	bool one_context, processes;
	double seconds;
} options;

struct unit {
	unsigned int number;
	bool is_server;
	struct ibv_context *context;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer;
};

static void fail(const char *what)
{
	perror(what);
	kill(0, SIGTERM);
	exit(1);
}

static struct ibv_context *open_device(void)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context = NULL;

	for (int i = 0; i < count && !context; i++) {
		if (strcmp(ibv_get_device_name(list[i]), options.device) == 0)
			context = ibv_open_device(list[i]);
	}
	if (!context)
		fail("ibv_open_device");
	ibv_free_device_list(list);
	return context;
}

static void make_objects(struct unit *unit)
{
	size_t bytes = options.workload->bytes;
	struct ibv_pd *pd = ibv_alloc_pd(unit->context);
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 128,
			 .max_recv_wr = SLOTS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = 64 },
		.qp_type = IBV_QPT_RC,
	};

	unit->buffer = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
	unit->cq = ibv_create_cq(unit->context, 4 * SLOTS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = unit->cq;
	if (!pd || !unit->buffer || !unit->cq)
		fail("memory");
	memset(unit->buffer, 0, bytes);
	unit->mr = ibv_reg_mr(pd, unit->buffer, bytes,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	unit->qp = ibv_create_qp(pd, &attr);
	if (!unit->mr || !unit->qp)
		fail("ibv_create_qp");
}

static void connect_to(struct unit *unit, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } },
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	struct ibv_port_attr port;

	if (ibv_query_port(unit->context, 1, &port))
		fail("ibv_query_port");
	attr.path_mtu = port.active_mtu;
	attr.ah_attr.grh.dgid = board->gid;
	if (ibv_modify_qp(unit->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		fail("INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(unit->qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		fail("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(unit->qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		fail("RTS");
}

static void post_receive(struct unit *unit)
{
	struct ibv_sge sge = { .addr = (uintptr_t)unit->buffer,
			       .length = options.workload->bytes,
			       .lkey = unit->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(unit->qp, &wr, &bad))
		fail("ibv_post_recv");
}

static void post_send(struct unit *unit, const struct end *peer, bool signaled)
{
	const struct workload *workload = options.workload;
	struct ibv_sge sge = { .addr = (uintptr_t)unit->buffer,
			       .length = workload->bytes,
			       .lkey = unit->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = workload->opcode,
		.send_flags = (signaled ? IBV_SEND_SIGNALED : 0) |
			      (workload->bytes <= 64 ? IBV_SEND_INLINE : 0),
		.wr.rdma = { .remote_addr = peer->address, .rkey = peer->rkey },
	}, *bad;

	if (ibv_post_send(unit->qp, &wr, &bad))
		fail("ibv_post_send");
}

/* Polls once, and adds the numbers of completed sends and receives to *sent and *received. */
static void poll_once(struct unit *unit, unsigned int *sent, unsigned int *received)
{
	struct ibv_wc wc[POLL_AT_ONCE];
	int count = ibv_poll_cq(unit->cq, POLL_AT_ONCE, wc);

	for (int i = 0; i < count; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc[i].status));
			fail("completion");
		}
		if (wc[i].opcode & IBV_WC_RECV)
			++*received;
		else
			++*sent;
	}
}

static void serve(struct unit *unit, const struct end *peer)
{
	unsigned int sent = 0, received;

	while (!atomic_load(&board->over)) {
		if (options.workload->opcode != IBV_WR_SEND) {
			usleep(10000);
			continue;
		}
		received = 0;
		poll_once(unit, &sent, &received);
		while (received--) {
			post_receive(unit);
			if (options.workload->echoes)
				post_send(unit, peer, true);
		}
	}
}

static void ask(struct unit *unit, const struct end *peer)
{
	const struct workload *workload = options.workload;
	unsigned int free_places = workload->under_way, sent, received;
	uint64_t posted = 0, done = 0;

	while (!atomic_load(&board->go))
		;
	while (!atomic_load_explicit(&board->over, memory_order_relaxed)) {
		for (; free_places; free_places--) {
			posted++;
			post_send(unit, peer, posted % workload->signal_each == 0);
		}
		sent = received = 0;
		poll_once(unit, &sent, &received);
		for (unsigned int i = 0; i < received; i++)
			post_receive(unit);
		free_places += workload->echoes ? received : sent * workload->signal_each;
		done += workload->echoes ? received : sent * workload->signal_each;
		atomic_store_explicit(&board->done[unit->number], done, memory_order_relaxed);
	}
}

static void *run_unit(void *arg)
{
	struct unit *unit = arg;
	struct end *own = &(unit->is_server ? board->server : board->client)[unit->number];
	struct end *peer = &(unit->is_server ? board->client : board->server)[unit->number];

	if (!unit->context)
		unit->context = open_device();
	make_objects(unit);
	if (unit->is_server && unit->number == 0 && ibv_query_gid(unit->context, 1, 0, &board->gid))
		fail("ibv_query_gid");
	own->qpn = unit->qp->qp_num;
	own->rkey = unit->mr->rkey;
	own->address = (uintptr_t)unit->buffer;
	atomic_store(&own->ready, true);
	while (!atomic_load(&peer->ready) || !atomic_load(&board->server[0].ready))
		usleep(1000);
	connect_to(unit, peer->qpn);
	for (unsigned int i = 0; i < SLOTS; i++)
		post_receive(unit);
	atomic_fetch_add(&board->connected, 1);
	if (unit->is_server)
		serve(unit, peer);
	else
		ask(unit, peer);
	return NULL;
}

/* Starts a process with count units, the first of which has the number first. */
static pid_t start(bool is_server, unsigned int first, unsigned int count)
{
	static struct unit units[MAX_UNITS];
	pthread_t threads[MAX_UNITS];
	struct ibv_context *context;
	pid_t pid = fork();

	if (pid)
		return pid;
	context = options.one_context ? open_device() : NULL;
	for (unsigned int i = 0; i < count; i++) {
		units[i] = (struct unit){ .number = first + i,
					  .is_server = is_server,
					  .context = context };
		if (pthread_create(&threads[i], NULL, run_unit, &units[i]))
			fail("pthread_create");
	}
	for (unsigned int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t count_done(void)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < options.units; i++)
		sum += atomic_load(&board->done[i]);
	return sum;
}

static double measure(void)
{
	uint64_t before;
	double begin;

	while (atomic_load(&board->connected) < 2 * options.units)
		usleep(1000);
	atomic_store(&board->go, true);
	usleep(200000);
	before = count_done();
	begin = now();
	usleep((useconds_t)(options.seconds * 1e6));
	return (double)(count_done() - before) / (now() - begin);
}

static bool parse(int argc, char **argv)
{
	const char *mode = argc > 4 ? argv[4] : "threads";

	if (argc < 4)
		return false;
	options.device = argv[1];
	for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
		if (strcmp(workloads[i].name, argv[2]) == 0)
			options.workload = &workloads[i];
	}
	options.units = (unsigned int)atoi(argv[3]);
	options.one_context = strcmp(mode, "threads") == 0;
	options.processes = strcmp(mode, "processes") == 0;
	options.seconds = argc > 5 ? atof(argv[5]) : 1;
	return options.workload && options.units >= 1 && options.units <= MAX_UNITS;
}

int main(int argc, char **argv)
{
	unsigned int processes, each;

	if (!parse(argc, argv)) {
		fprintf(stderr,
			"usage: %s DEVICE write8|send64k|write64k|rtt UNITS "
			"[threads|contexts|processes] [SECONDS]\n",
			argv[0]);
		return 2;
	}
	setpgid(0, 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		fail("mmap");
	processes = options.processes ? options.units : 1;
	each = options.units / processes;
	for (unsigned int i = 0; i < processes; i++) {
		start(true, i * each, each);
		start(false, i * each, each);
	}
	printf("%.0f\n", measure());
	atomic_store(&board->over, true);
	while (wait(NULL) > 0)
		;
	return 0;
}
