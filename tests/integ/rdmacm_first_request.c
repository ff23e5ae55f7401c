/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An active side that never sends its RTU, but data: as when the RTU was lost, and as a program
 * that has forgotten rdma_establish().  Repeating the REP heals neither, as the active side has no
 * RTU to repeat: the passive side is established by the first packet.
 */
#include "rdmacm_end.h"

#include <arpa/inet.h>
#include <string.h>

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

static void open_end(struct end *end, struct ibv_pd **pd)
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

static void listen_at(struct end *end, struct sockaddr_in *address)
{
	end->channel = rdma_create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_bind_addr(end->id, (struct sockaddr *)address), errno);
	assert_return_code(rdma_listen(end->id, 1), errno);
}

static void resolve(struct end *end, struct sockaddr_in *address)
{
	end->channel = rdma_create_event_channel();
	assert_non_null(end->channel);
	assert_return_code(rdma_create_id(end->channel, &end->id, NULL, RDMA_PS_TCP), errno);
	assert_return_code(rdma_resolve_addr(end->id, NULL, (struct sockaddr *)address, 2000),
			   errno);
	expect(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_return_code(rdma_resolve_route(end->id, 2000), errno);
	expect(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void accept_request(struct end *end, struct ibv_pd **pd)
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
	assert_return_code(rdma_create_qp(end->id, *pd, &attr), errno);
	sge = (struct ibv_sge){ (uintptr_t)end->bytes, sizeof(end->bytes), end->mr->lkey };
	assert_int_equal(ibv_post_recv(end->id->qp, &wr, &bad), 0);
	assert_return_code(rdma_accept(end->id, &param), errno);
}

static void send_at_once(struct end *end, struct ibv_qp *qp)
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

static void data_establishes(void **state)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct end active = { 0 }, passive = { 0 };
	struct ibv_pd *active_pd, *passive_pd;
	struct rdma_cm_id *listener;
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp;
	struct ibv_wc wc;

	(void)state;
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
	accept_request(&passive, &passive_pd);
	expect(active.channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	send_at_once(&active, qp);
	expect(passive.channel, RDMA_CM_EVENT_ESTABLISHED);
	while (ibv_poll_cq(passive.cq, 1, &wc) == 0)
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(passive.bytes, "hello", 5);
	/* The late RTU changes nothing: the next event is the end. */
	assert_return_code(rdma_establish(active.id), errno);
	assert_return_code(rdma_disconnect(active.id), errno);
	expect(passive.channel, RDMA_CM_EVENT_DISCONNECTED);
	assert_return_code(rdma_disconnect(passive.id), errno);
	expect(active.channel, RDMA_CM_EVENT_DISCONNECTED);

	rdma_destroy_qp(passive.id);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	for (int i = 0; i < 2; i++) {
		struct end *end = i ? &active : &passive;

		assert_int_equal(ibv_dereg_mr(end->mr), 0);
		assert_int_equal(ibv_destroy_cq(end->cq), 0);
		assert_int_equal(ibv_dealloc_pd(i ? active_pd : passive_pd), 0);
		assert_return_code(rdma_destroy_id(end->id), errno);
	}
	assert_return_code(rdma_destroy_id(listener), errno);
	rdma_destroy_event_channel(active.channel);
	rdma_destroy_event_channel(passive.channel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_establishes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
