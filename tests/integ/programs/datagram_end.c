/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A process with a UD queue pair for test_datagrams.py, which reads commands from standard input
 * and writes one line for each:
 *
 *   attach GID | detach GID
 *	0 or the errno
 *   send GID INDEX QPN,... HOPS CLASS COUNT
 *	COUNT datagrams of four bytes to each QPN, posted at once: 0 or the errno
 *   receive MILLISECONDS
 *	the network header of the next datagram, or "none"
 *
 * usage: datagram_end DEVICE; the first line of output is the queue pair's number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

enum {
	GRH = 40,
	BYTES = 4,
	RECEIVES = 64,
	SENDS = 32,
	STRIDE = 64,
	QKEY = 0x11111111, /* that of perftest */
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t memory[(RECEIVES + 1) * STRIDE];

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list, "ibv_get_device_list");
	for (int i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	need(context, name);
	ibv_free_device_list(list);
}

static void post_receive(uint64_t place)
{
	struct ibv_sge sge = { .addr = (uintptr_t)memory + place * STRIDE,
			       .length = GRH + BYTES,
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = place, .sg_list = &sge, .num_sge = 1 }, *bad;

	need(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
}

static void make_queue_pair(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .cap = { SENDS, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 2 * RECEIVES, NULL, NULL, 0);
	need(pd && cq, "ibv_create_cq");
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	need(mr, "ibv_reg_mr");
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	need(qp, "ibv_create_qp");
	need(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT");
	for (uint64_t i = 0; i < RECEIVES; i++)
		post_receive(i);
	attr.qp_state = IBV_QPS_RTR;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	need(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

/* Posts count datagrams to each of the qpns, separated by commas, in turn, in a single call. */
static int send_datagrams(struct ibv_ah_attr *attr, char *qpns, int count)
{
	struct ibv_ah *ah = ibv_create_ah(pd, attr);
	struct ibv_sge sge = { .addr = (uintptr_t)memory + RECEIVES * STRIDE,
			       .length = BYTES,
			       .lkey = mr->lkey };
	struct ibv_send_wr wr[SENDS] = { 0 }, *bad;
	uint32_t qpn[SENDS];
	int peers = 0, n = 0;
	int error = ah ? 0 : errno;

	for (char *word = strtok(qpns, ","); word && peers < SENDS; word = strtok(NULL, ","))
		qpn[peers++] = (uint32_t)strtoul(word, NULL, 0);
	need(peers * count <= SENDS, "too many at once");
	for (; n < peers * count; n++) {
		wr[n].next = &wr[n + 1];
		wr[n].sg_list = &sge;
		wr[n].num_sge = 1;
		wr[n].opcode = IBV_WR_SEND;
		wr[n].wr.ud.ah = ah;
		wr[n].wr.ud.remote_qpn = qpn[n % peers];
		wr[n].wr.ud.remote_qkey = QKEY;
	}
	wr[n - 1].next = NULL;
	if (ah) {
		error = ibv_post_send(qp, wr, &bad);
		need(!ibv_destroy_ah(ah), "ibv_destroy_ah");
	}
	return error;
}

static void receive(int timeout_ms)
{
	struct timespec begin, now;
	struct ibv_wc wc;
	int got;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		got = ibv_poll_cq(cq, 1, &wc);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!got &&
		 (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 <
			 timeout_ms);
	need(got >= 0, "ibv_poll_cq");
	if (!got) {
		puts("none");
		return;
	}
	need(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV, "completion");
	for (int i = 0; i < GRH; i++)
		printf("%02x", memory[wc.wr_id * STRIDE + (size_t)i]);
	putchar('\n');
	post_receive(wc.wr_id);
}

static void obey(const char *line)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	unsigned int index, hops, class, number;
	union ibv_gid gid;
	char text[64], qpns[128];

	if (sscanf(line, "attach %63s", text) == 1 && inet_pton(AF_INET6, text, &gid) == 1) {
		printf("%d\n", ibv_attach_mcast(qp, &gid, 0));
	} else if (sscanf(line, "detach %63s", text) == 1 && inet_pton(AF_INET6, text, &gid) == 1) {
		printf("%d\n", ibv_detach_mcast(qp, &gid, 0));
	} else if (sscanf(line, "send %63s %u %127s %u %u %u", text, &index, qpns, &hops, &class,
			  &number) == 6 &&
		   inet_pton(AF_INET6, text, &attr.grh.dgid) == 1) {
		attr.grh.sgid_index = (uint8_t)index;
		attr.grh.hop_limit = (uint8_t)hops;
		attr.grh.traffic_class = (uint8_t) class;
		printf("%d\n", send_datagrams(&attr, qpns, (int)number));
	} else if (sscanf(line, "receive %u", &number) == 1) {
		receive((int)number);
	} else {
		puts("what?");
	}
}

int main(int argc, char **argv)
{
	char line[256];

	need(argc == 2, "usage: datagram_end DEVICE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device(argv[1]);
	make_queue_pair();
	printf("%u\n", qp->qp_num);
	while (fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
