/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two processes that use verbs as applications do, and not as perftest does.  Prints {"us": mean
 * time of an exchange}.
 *
 *   habits DEVICE memory MICROSECONDS COUNT   both WRITE in turn, poll for the completion, and then
 *                                             spin on memory; the reply comes after MICROSECONDS
 *   habits DEVICE compute MICROSECONDS COUNT  the server computes between its polls; the client
 *                                             WRITEs, and waits for the completion
 *   habits DEVICE block MICROSECONDS COUNT    both SEND in turn, and to receive arm the CQ, poll
 *                                             some times and then wait for the event; the reply
 *                                             comes after MICROSECONDS
 *
 * Shows the effect of the heuristics for pollers and for the helper thread (thread.c, loop.c).
 */
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device.h"
#include "pair.h"

enum {
	POLLS_BEFORE_BLOCKING = 200,
	RECEIVES = 4,
};

/* The word that the peer WRITEs, and the word to WRITE to the peer. */
struct words {
	volatile uint64_t in;
	_Alignas(64) volatile uint64_t out;
};

/* Attributes that each side stores for the other one, in shared memory. */
static struct {
	atomic_bool ready;
	uint32_t qpn, rkey;
	struct words *words;
} * told; /* [side] */

struct habit_end {
	int side;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct words *words;
	uint64_t received;
};

struct job {
	const char *device;
	uint64_t think_ns, count;
};

static void think(const struct job *job)
{
	for (uint64_t until = pair_now_ns() + job->think_ns; pair_now_ns() < until;)
		;
}

/* ---- an end ---- */

static void post_receive(struct habit_end *end)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	if (ibv_post_recv(end->qp, &wr, &bad))
		pair_die("ibv_post_recv");
}

static void post(struct habit_end *end, enum ibv_wr_opcode opcode, uint64_t word)
{
	struct ibv_sge sge = { .addr = (uintptr_t)&end->words->out,
			       .length = sizeof(end->words->out),
			       .lkey = end->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = opcode == IBV_WR_SEND ? 0 : 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)&told[!end->side].words->in,
			     .rkey = told[!end->side].rkey },
	};
	struct ibv_send_wr *bad;

	end->words->out = word;
	if (ibv_post_send(end->qp, &wr, &bad))
		pair_die("ibv_post_send");
}

/* Takes a completion, if there is one. */
static bool poll_once(struct habit_end *end)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(end->cq, 1, &wc) <= 0)
		return false;
	if (wc.status) {
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
	if (wc.opcode == IBV_WC_RECV) {
		end->received++;
		post_receive(end);
	}
	return true;
}

/* Exchanges attributes.  Both ends are forked from one process, so these may contain a pointer. */
static void meet(struct habit_end *end, const union ibv_gid *gid)
{
	told[end->side].qpn = end->qp->qp_num;
	told[end->side].rkey = end->mr->rkey;
	told[end->side].words = end->words;
	atomic_store(&told[end->side].ready, true);
	while (!atomic_load(&told[!end->side].ready))
		sched_yield();
	connect_to_peer(end->qp, told[!end->side].qpn, gid);
	for (int i = 0; i < RECEIVES; i++)
		post_receive(end);
}

static void end_open(struct habit_end *end, const char *device, bool events)
{
	struct ibv_context *context = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4,
						  .max_recv_wr = RECEIVES,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	union ibv_gid gid;

	end->channel = events ? ibv_create_comp_channel(context) : NULL;
	end->cq = ibv_create_cq(context, 4 + RECEIVES, NULL, end->channel, 0);
	end->words = aligned_alloc(64, sizeof(*end->words));
	init.send_cq = end->cq;
	init.recv_cq = end->cq;
	if (!pd || !end->cq || !end->words || (events && !end->channel))
		pair_die("objects");
	memset(end->words, 0, sizeof(*end->words));
	end->mr = ibv_reg_mr(pd, end->words, sizeof(*end->words),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	end->qp = ibv_create_qp(pd, &init);
	if (!end->mr || !end->qp || ibv_query_gid(context, PORT, GID_INDEX, &gid))
		pair_die("queue pair");
	meet(end, &gid);
}

/* ---- habits ---- */

static void write_and_spin(struct habit_end *end, const struct job *job, uint64_t number)
{
	for (int turn = PAIR_CLIENT; turn >= PAIR_SERVER; turn--) {
		if (turn != end->side) {
			while (end->words->in != number)
				;
			continue;
		}
		if (end->side == PAIR_SERVER)
			think(job);
		post(end, IBV_WR_RDMA_WRITE, number);
		while (!poll_once(end))
			;
	}
}

static void compute_between_polls(struct habit_end *end, const struct job *job, uint64_t number)
{
	if (end->side == PAIR_SERVER) {
		while (end->words->in < number) {
			poll_once(end);
			think(job);
		}
		return;
	}
	post(end, IBV_WR_RDMA_WRITE, number);
	while (!poll_once(end))
		;
}

static void receive(struct habit_end *end, uint64_t number)
{
	struct ibv_cq *cq;
	void *context;

	while (end->received < number) {
		if (ibv_req_notify_cq(end->cq, 0))
			pair_die("ibv_req_notify_cq");
		for (int i = 0; i < POLLS_BEFORE_BLOCKING && end->received < number; i++)
			poll_once(end);
		if (end->received >= number)
			return;
		if (ibv_get_cq_event(end->channel, &cq, &context))
			pair_die("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		while (poll_once(end))
			;
	}
}

static void arm_poll_and_block(struct habit_end *end, const struct job *job, uint64_t number)
{
	if (end->side == PAIR_SERVER) {
		receive(end, number);
		think(job);
	}
	post(end, IBV_WR_SEND, number);
	if (end->side == PAIR_CLIENT)
		receive(end, number);
}

static const struct habit {
	const char *name;
	void (*exchange)(struct habit_end *end, const struct job *job, uint64_t number);
	bool events;
} habits[] = {
	{ "memory", write_and_spin, false },
	{ "compute", compute_between_polls, false },
	{ "block", arm_poll_and_block, true },
};

static const struct habit *habit = habits;
static struct job job;

/* Nanoseconds of all exchanges. */
static uint64_t exchange_all(struct habit_end *end, int side)
{
	uint64_t begin;

	end->side = side;
	end_open(end, job.device, habit->events);
	begin = pair_now_ns();
	for (uint64_t number = 1; number <= job.count; number++)
		habit->exchange(end, &job, number);
	return pair_now_ns() - begin;
}

static void server(struct pair *pair)
{
	struct habit_end end = { 0 };

	(void)pair;
	exchange_all(&end, PAIR_SERVER);
	/* The client may still wait for an ACK; pair_run() ends this process after the client. */
	for (;;)
		poll_once(&end);
}

static void client(struct pair *pair)
{
	struct habit_end end = { 0 };
	uint64_t took;

	(void)pair;
	took = exchange_all(&end, PAIR_CLIENT);
	printf("{\"us\": %.3f}\n", (double)took / 1e3 / (double)job.count);
}

int main(int argc, char **argv)
{
	const struct habit *last = habits + sizeof(habits) / sizeof(habits[0]);
	struct pair pair = { .cpu = { [PAIR_SERVER] = 1 } };

	while (argc == 5 && habit != last && strcmp(habit->name, argv[2]) != 0)
		habit++;
	if (argc != 5 || habit == last) {
		fprintf(stderr, "usage: %s DEVICE memory|compute|block MICROSECONDS COUNT\n",
			argv[0]);
		return 2;
	}
	job = (struct job){ .device = argv[1],
			    .think_ns = strtoull(argv[3], NULL, 10) * 1000,
			    .count = strtoull(argv[4], NULL, 10) };
	told = mmap(NULL, PAIR_SIDES * sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		pair_die("mmap");
	pair_run(&pair, server, client);
	return 0;
}
