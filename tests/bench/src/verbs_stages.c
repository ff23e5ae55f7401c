/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Times of a small SEND as the application sees them: of ibv_post_send(), of the message on its
 * way, and of the ibv_poll_cq() that returns its completion.  The order of calls is that of
 * ib_send_lat.  "bench_floor stages" measures the same for UDP alone.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "pair.h"
#include "stages.h"

#define RECEIVES 512

struct stages_end {
	struct ibv_context *context;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char *bytes;
	uint64_t look; /* time before the first poll that found a completion, ns; 0: none has */
};

static struct stages *stages;
static _Atomic uint32_t *qp_numbers; /* QP numbers of both sides; 0: not known yet */

static void create(struct stages_end *end, size_t size)
{
	struct ibv_pd *pd = ibv_alloc_pd(end->context);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 16,
						  .max_recv_wr = RECEIVES,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };

	end->send_cq = ibv_create_cq(end->context, RECEIVES, NULL, NULL, 0);
	end->recv_cq = ibv_create_cq(end->context, RECEIVES, NULL, NULL, 0);
	end->bytes = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	if (!pd || !end->send_cq || !end->recv_cq || !end->bytes)
		pair_die("set-up");
	end->mr = ibv_reg_mr(pd, end->bytes, size, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = end->send_cq;
	init.recv_cq = end->recv_cq;
	end->qp = end->mr ? ibv_create_qp(pd, &init) : NULL;
	if (!end->qp)
		pair_die("ibv_create_qp");
}

static void post_receive(struct stages_end *end, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, (uint32_t)size, end->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	errno = ibv_post_recv(end->qp, &wr, &bad);
	if (errno)
		pair_die("ibv_post_recv");
}

static void post_send(struct stages_end *end, size_t size)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, (uint32_t)size, end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	errno = ibv_post_send(end->qp, &wr, &bad);
	if (errno)
		pair_die("ibv_post_send");
}

/* The first poll that finds a completion receives all that has arrived: only its time is stored. */
static void wait_for(struct stages_end *end, struct ibv_cq *cq)
{
	struct ibv_wc wc;
	uint64_t look;
	int n;

	do {
		look = pair_now_ns();
		n = ibv_poll_cq(cq, 1, &wc);
	} while (n == 0);
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
	if (!end->look)
		end->look = look;
}

static void open_end(struct pair *pair, struct stages_end *end, int side)
{
	uint64_t give_up = pair_now_ns() + PAIR_PATIENCE_NS;
	union ibv_gid gid;

	end->context = open_device("uroce_lo");
	create(end, pair->size);
	qp_numbers[side] = end->qp->qp_num;
	while (qp_numbers[1 - side] == 0) {
		if (pair_now_ns() > give_up)
			pair_die("the other side");
	}
	if (ibv_query_gid(end->context, PORT, GID_INDEX, &gid) != 0)
		pair_die("ibv_query_gid");
	connect_to_peer(end->qp, qp_numbers[1 - side], &gid);
	for (int i = 0; i < RECEIVES; i++)
		post_receive(end, pair->size);
	/*
	 * A connected side is not yet ready to receive.  The shared port number, which has no other
	 * use here, shows the peer that this side is ready.
	 */
	pair->shared->port[side] = 1;
	pair_address(pair, 1 - side);
}

static void client(struct pair *pair)
{
	struct stages_end end = { 0 };

	open_end(pair, &end, PAIR_CLIENT);
	for (int i = 0; i < STAGES_MESSAGES; i++) {
		stages->at[i][STAGE_POST] = pair_now_ns();
		post_send(&end, pair->size);
		stages->at[i][STAGE_POSTED] = pair_now_ns();
		wait_for(&end, end.send_cq);
		wait_for(&end, end.recv_cq);
		post_receive(&end, pair->size);
	}
	stages_report(stages);
}

static void look_in_vain(void *arg)
{
	struct stages_end *end = arg;
	struct ibv_wc wc;

	ibv_poll_cq(end->recv_cq, 1, &wc);
}

static void server(struct pair *pair)
{
	struct stages_end end = { 0 };

	open_end(pair, &end, PAIR_SERVER);
	for (int i = 0; i < STAGES_MESSAGES; i++) {
		wait_for(&end, end.recv_cq);
		stages->at[i][STAGE_FOUND] = pair_now_ns();
		stages->at[i][STAGE_LOOK] = end.look;
		end.look = 0;
		if (i == STAGES_MESSAGES - 1)
			stages->empty_ns = stages_time_ns(look_in_vain, &end);
		post_receive(&end, pair->size);
		post_send(&end, pair->size);
		wait_for(&end, end.send_cq);
	}
	/* The last ACK may still be on its way; pair_run() ends this process after the client. */
	pause();
}

int main(int argc, char **argv)
{
	struct pair pair;

	pair_options(&pair, argc, argv, "stages");
	stages = stages_open();
	qp_numbers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (qp_numbers == MAP_FAILED)
		pair_die("mmap");
	pair_run(&pair, server, client);
	return 0;
}
