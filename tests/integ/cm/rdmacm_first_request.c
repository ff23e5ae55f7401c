/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An active side that sends data but no RTU: as if the RTU was lost, or the program did not call
 * rdma_establish().  Repeating the REP does not help, as the active side has no RTU to repeat: the
 * passive side is established by the first packet.  Also, a passive side that announces credits but
 * reports none, as its receives are shared: this is counted (rule C19).
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT 7199

static struct ibv_qp_init_attr qp_attr(struct ibv_cq *cq)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
}

static void open_end(struct cm_end *end, struct ibv_pd **pd)
{
	*pd = ibv_alloc_pd(end->id->verbs);
	assert_non_null(*pd);
	end->cq = ibv_create_cq(end->id->verbs, 4, NULL, NULL, 0);
	assert_non_null(end->cq);
	end->mr = ibv_reg_mr(*pd, end->bytes, sizeof(end->bytes), IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(end->mr);
}

static void to_state(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	assert_return_code(rdma_init_qp_attr(id, &attr, &mask), errno);
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

static void listen_at(struct cm_end *end, struct sockaddr_in *address)
{
	end->channel = rdma_create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_bind_addr(end->id, (struct sockaddr *)address), errno);
	assert_return_code(rdma_listen(end->id, 1), errno);
}

static void resolve(struct cm_end *end, struct sockaddr_in *address)
{
	end->channel = rdma_create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(
		rdma_resolve_addr(end->id, NULL, (struct sockaddr *)address, PATIENCE_MS), errno);
	expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_return_code(rdma_resolve_route(end->id, PATIENCE_MS), errno);
	expect(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct ibv_srq *make_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	assert_non_null(srq);
	return srq;
}

/* If srq is not NULL, creates a shared receive queue that the REP does not announce. */
static void accept_request(struct cm_end *end, struct ibv_pd **pd, struct ibv_srq **srq)
{
	struct rdma_cm_event *event = next(end->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp_init_attr attr;

	assert_int_equal(event->status, 0);
	end->id = event->id;
	rdma_ack_cm_event(event);
	open_end(end, pd);
	attr = qp_attr(end->cq);
	if (srq)
		attr.srq = *srq = make_srq(*pd);
	assert_return_code(rdma_create_qp(end->id, *pd, &attr), errno);
	sge = (struct ibv_sge){ (uintptr_t)end->bytes, sizeof(end->bytes), end->mr->lkey };
	if (srq)
		assert_int_equal(ibv_post_srq_recv(*srq, &wr, &bad), 0);
	else
		assert_int_equal(ibv_post_recv(end->id->qp, &wr, &bad), 0);
	/* Otherwise librdmacm would announce the shared receive queue in the REP. */
	end->id->qp->srq = NULL;
	assert_return_code(rdma_accept(end->id, &param), errno);
}

static void send_at_once(struct cm_end *end, struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)end->bytes, 5, end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	to_state(end->id, qp, IBV_QPS_RTR);
	to_state(end->id, qp, IBV_QPS_RTS);
	memcpy(end->bytes, "hello", 5);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

/* Returns true if uroce-stat shows these words for this process, in one of several tries. */
static bool is_shown(const char *words, unsigned int times)
{
	static char shown[1 << 16], command[512];

	/* uroce-stat is in the library's ../../bin, or in PATH if it is in a package. */
	snprintf(command, sizeof(command), "PATH=\"%s/../../bin:$PATH\" uroce-stat --json %d",
		 getenv("LD_LIBRARY_PATH"), (int)getpid());
	for (unsigned int i = 0; i < times; i++) {
		FILE *stat = popen(command, "r");
		size_t length;

		assert_non_null(stat);
		length = fread(shown, 1, sizeof(shown) - 1, stat);
		assert_int_equal(pclose(stat), 0);
		shown[length] = 0;
		if (strstr(shown, words))
			return true;
		usleep(100000);
	}
	return false;
}

static void connect_and_send(uint16_t port, struct ibv_srq **srq)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct cm_end active = { 0 }, passive = { 0 };
	struct ibv_pd *active_pd, *passive_pd;
	struct rdma_cm_id *listener;
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp;

	listen_at(&passive, &address);
	listener = passive.id;
	resolve(&active, &address);
	open_end(&active, &active_pd);
	attr = qp_attr(active.cq);
	qp = ibv_create_qp(active_pd, &attr);
	assert_non_null(qp);
	to_state(active.id, qp, IBV_QPS_INIT);
	param.qp_num = qp->qp_num;
	assert_return_code(rdma_connect(active.id, &param), errno);
	accept_request(&passive, &passive_pd, srq);
	expect(active.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	send_at_once(&active, qp);
	expect(passive.channel, RDMA_CM_EVENT_ESTABLISHED);
	await_completion(&passive);
	assert_memory_equal(passive.bytes, "hello", 5);
	if (srq)
		assert_true(is_shown("\"credits_missed\":1", 20));
	/* The late RTU changes nothing: the next event is the disconnection. */
	assert_return_code(rdma_establish(active.id), errno);
	assert_return_code(rdma_disconnect(active.id), errno);
	expect(passive.channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_return_code(rdma_disconnect(passive.id), errno);
	expect(active.channel, RDMA_CM_EVENT_DISCONNECTED);

	rdma_destroy_qp(passive.id);
	if (srq)
		assert_int_equal(ibv_destroy_srq(*srq), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	for (int i = 0; i < 2; i++) {
		struct cm_end *end = i ? &active : &passive;

		assert_int_equal(ibv_dereg_mr(end->mr), 0);
		assert_int_equal(ibv_destroy_cq(end->cq), 0);
		assert_int_equal(ibv_dealloc_pd(i ? active_pd : passive_pd), 0);
		assert_return_code(rdma_destroy_id(end->id), errno);
	}
	assert_return_code(rdma_destroy_id(listener), errno);
	rdma_destroy_event_channel(active.channel);
	rdma_destroy_event_channel(passive.channel);
}

static void data_establishes(void **state)
{
	(void)state;
	connect_and_send(PORT, NULL);
}

static void broken_word_is_counted(void **state)
{
	struct ibv_srq *srq;

	(void)state;
	assert_false(is_shown("\"credits_missed\":1", 1));
	/* rule C19 test */
	connect_and_send(PORT - 20, &srq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_establishes),
		cmocka_unit_test(broken_word_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
