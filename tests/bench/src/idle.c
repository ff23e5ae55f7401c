/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An idle process, for another one to measure:
 *
 *   idle DEVICE open    has the device open and a queue pair
 *   idle DEVICE event   the same, and waits in ibv_get_cq_event()
 *   idle DEVICE COUNT   polls an empty CQ COUNT times, and ends
 *
 * The first two write "ready" when they are idle, and stay so until they are killed.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"

static _Noreturn void die(const char *what)
{
	perror(what);
	exit(1);
}

/* The queue pair is connected because the socket is open only then, and each poll reads it. */
static int poll_in_vain(struct ibv_qp *qp, struct ibv_cq *cq, unsigned long count)
{
	union ibv_gid gid;
	struct ibv_wc wc;

	if (ibv_query_gid(qp->context, PORT, GID_INDEX, &gid) != 0)
		die("ibv_query_gid");
	connect_to_itself(qp, &gid);
	while (count-- > 0 && ibv_poll_cq(cq, 1, &wc) == 0)
		;
	return 0;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 16,
						  .max_recv_wr = 16,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 } };
	struct ibv_comp_channel *channel;
	struct ibv_context *context;
	struct ibv_cq *cq, *event_cq;
	unsigned long polls;
	void *event_context;
	struct ibv_qp *qp;

	if (argc != 3) {
		fprintf(stderr, "usage: %s DEVICE open|event|COUNT\n", argv[0]);
		return 2;
	}
	context = open_device(argv[1]);
	channel = ibv_create_comp_channel(context);
	cq = channel ? ibv_create_cq(context, 16, NULL, channel, 0) : NULL;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = cq ? ibv_create_qp(ibv_alloc_pd(context), &init) : NULL;
	if (!qp)
		die("set-up");
	polls = strtoul(argv[2], NULL, 10);
	if (polls > 0)
		return poll_in_vain(qp, cq, polls);
	if (ibv_req_notify_cq(cq, 0) != 0)
		die("ibv_req_notify_cq");
	puts("ready");
	fflush(stdout);
	if (strcmp(argv[2], "event") == 0)
		ibv_get_cq_event(channel, &event_cq, &event_context);
	else
		pause();
	return 0;
}
