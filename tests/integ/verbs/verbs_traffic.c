/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Every operation of an RC queue pair end to end, through the stock library, between two queue
 * pairs of one process: data, completions, and the errors that a wrong request ends in.
 */
#include <arpa/inet.h>
#include <time.h>
#include <unistd.h>

#include "verbs_pair.h"

static void fill(uint8_t *bytes, size_t length, unsigned int seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(seed + i * 7 + (i >> 8) * 13);
}

/* rule S1 test: messages of sizes around the packet borders arrive whole, without extra bytes. */
static void send_of_every_size(void **state)
{
	static const uint32_t sizes[] = { 0,	1,    3,    4,	  255,	1023,  1024,
					  1025, 2047, 2048, 4096, 4097, 65535, 300001 };
	static const enum ibv_mtu mtus[] = { IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048,
					     IBV_MTU_4096 };

	(void)state;
	for (size_t m = 0; m < sizeof(mtus) / sizeof(mtus[0]); m++) {
		const struct pair_options options = { .mtu = mtus[m] };
		struct pair pair;

		pair_open(&pair, &options);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct ibv_wc wc;

			fill(pair.a.buffer, sizes[i], (unsigned int)i);
			memset(pair.b.buffer, 0xee, sizes[i] + 16);
			assert_int_equal(post_recv(&pair.b, i, 0, END_BUFFER), 0);
			assert_int_equal(
				post_send(&pair.a, 100 + i, 0, sizes[i], IBV_SEND_SIGNALED), 0);
			wc = expect_wc(&pair.b, i, IBV_WC_SUCCESS);
			assert_int_equal(wc.byte_len, sizes[i]);
			assert_int_equal(wc.opcode, IBV_WC_RECV);
			assert_int_equal(wc.wc_flags, 0);
			assert_memory_equal(pair.a.buffer, pair.b.buffer, sizes[i]);
			assert_int_equal(pair.b.buffer[sizes[i]], 0xee);
			wc = expect_wc(&pair.a, 100 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_SEND);
		}
		pair_close(&pair);
	}
}

static void immediate_data(void **state)
{
	struct pair pair;
	struct ibv_wc wc;
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(0xcafe0123),
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(post_recv(&pair.b, 9, 0, 10), 0);
	assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	wc = expect_wc(&pair.b, 9, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0xcafe0123));
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);

	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer;
	wr.wr.rdma.rkey = pair.b.mr->rkey;
	assert_int_equal(post_recv(&pair.b, 10, 0, 0), 0);
	assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	wc = expect_wc(&pair.b, 10, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0xcafe0123));
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void write_and_read(void **state)
{
	struct pair pair;
	struct ibv_wc wc;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.a.buffer, 100000, 3);
	assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 100000, IBV_SEND_SIGNALED,
				   &pair.b, 4096),
			 0);
	wc = expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	assert_memory_equal(pair.b.buffer + 4096, pair.a.buffer, 100000);
	expect_no_wc(&pair.b);

	fill(pair.b.buffer, 100000, 5);
	assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_READ, 2, 200000, 100000, IBV_SEND_SIGNALED,
				   &pair.b, 0),
			 0);
	wc = expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(wc.byte_len, 100000);
	assert_memory_equal(pair.a.buffer + 200000, pair.b.buffer, 100000);
	pair_close(&pair);
}

static void atomics(void **state)
{
	struct pair pair;
	uint64_t *target, *result;

	(void)state;
	pair_open(&pair, NULL);
	target = (uint64_t *)pair.b.buffer;
	result = (uint64_t *)pair.a.buffer;
	*target = 5;
	assert_int_equal(post_rdma(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, IBV_SEND_SIGNALED,
				   &pair.b, 0),
			 0);
	assert_int_equal(expect_wc(&pair.a, 1, IBV_WC_SUCCESS).opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(*result, 5);
	assert_int_equal(*target, 10);
	/* the comparison with 5 fails: nothing is swapped */
	assert_int_equal(post_rdma(&pair.a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 0, 8, IBV_SEND_SIGNALED,
				   &pair.b, 0),
			 0);
	assert_int_equal(expect_wc(&pair.a, 2, IBV_WC_SUCCESS).opcode, IBV_WC_COMP_SWAP);
	assert_int_equal(*result, 10);
	assert_int_equal(*target, 10);
	*target = 5;
	assert_int_equal(post_rdma(&pair.a, IBV_WR_ATOMIC_CMP_AND_SWP, 3, 0, 8, IBV_SEND_SIGNALED,
				   &pair.b, 0),
			 0);
	expect_wc(&pair.a, 3, IBV_WC_SUCCESS);
	assert_int_equal(*result, 5);
	assert_int_equal(*target, 77);
	pair_close(&pair);
}

static void inline_data_may_be_reused_at_once(void **state)
{
	struct pair pair;
	uint8_t bytes[64];
	struct ibv_sge sge[2] = { { .addr = (uintptr_t)bytes, .length = 40 },
				  { .addr = (uintptr_t)bytes + 40, .length = 24 } };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	(void)state;
	pair_open(&pair, NULL);
	fill(bytes, sizeof(bytes), 1);
	fill(pair.a.buffer, sizeof(bytes), 1);
	assert_int_equal(post_recv(&pair.b, 1, 0, 64), 0);
	assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	memset(bytes, 0, sizeof(bytes));
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	assert_memory_equal(pair.b.buffer, pair.a.buffer, 64);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void gather_and_scatter(void **state)
{
	struct pair pair;
	struct ibv_sge from[4], to[3];
	struct ibv_send_wr wr = { .sg_list = from,
				  .num_sge = 4,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr recv = { .sg_list = to, .num_sge = 3 };
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv;

	(void)state;
	pair_open(&pair, NULL);
	fill(pair.a.buffer, 10000, 9);
	/* 1000 + 0 + 2001 + 999 bytes of consecutive memory, into 7 + 3900 + 500. */
	for (int i = 0; i < 4; i++)
		from[i].lkey = pair.a.mr->lkey;
	from[0].addr = (uintptr_t)pair.a.buffer;
	from[0].length = 1000;
	from[1].addr = 0;
	from[1].length = 0;
	from[1].lkey = 0;
	from[2].addr = from[0].addr + 1000;
	from[2].length = 2001;
	from[3].addr = from[0].addr + 3001;
	from[3].length = 999;
	for (int i = 0; i < 3; i++)
		to[i].lkey = pair.b.mr->lkey;
	to[0].addr = (uintptr_t)pair.b.buffer;
	to[0].length = 7;
	to[1].addr = to[0].addr + 7;
	to[1].length = 3900;
	to[2].addr = to[1].addr + 3900;
	to[2].length = 500;
	assert_int_equal(ibv_post_recv(pair.b.qp, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	assert_int_equal(wait_wc(&pair.b).byte_len, 4000);
	assert_memory_equal(pair.b.buffer, pair.a.buffer, 4000);
	assert_int_equal(pair.b.buffer[4000], 0);
	wait_wc(&pair.a);
	pair_close(&pair);
}

/* rule C6 test: without a receive the sender waits, and goes on when there is one. */
static void a_late_receive(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(post_send(&pair.a, 1, 0, 5000, IBV_SEND_SIGNALED), 0);
	for (int i = 0; i < 100; i++)
		expect_no_wc(&pair.a);
	assert_int_equal(post_recv(&pair.b, 2, 0, 5000), 0);
	expect_wc(&pair.b, 2, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	pair_close(&pair);
}

/* Checks that end a flushes requests after the one that failed. */
static void expect_dead(struct pair *pair)
{
	assert_int_equal(post_send(&pair->a, 50, 0, 1, 0), 0);
	/* rule S13 test: an error completion is written, signaled or not. */
	expect_wc(&pair->a, 50, IBV_WC_WR_FLUSH_ERR);
}

/* rule S10 test */
static void rnr_retries_run_out(void **state)
{
	const struct pair_options options = { .rnr_retry_zero = 1 };
	struct pair pair;

	(void)state;
	pair_open(&pair, &options);
	assert_int_equal(post_send(&pair.a, 1, 0, 100, 0), 0);
	expect_wc(&pair.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	expect_dead(&pair);
	pair_close(&pair);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/*
 * rule S10 test: however short the timeout that the program sets, each try lasts longer than the
 * ACK delay of the device; ibv_query_qp() returns the timeout that the program has set.
 */
static void the_peer_does_not_answer(void **state)
{
	const struct pair_options options = { .timeout = 1 }; /* 8 us */
	struct ibv_device_attr device;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair pair;
	int64_t began;

	(void)state;
	pair_open(&pair, &options);
	assert_int_equal(ibv_query_device(pair.a.qp->context, &device), 0);
	assert_int_equal(ibv_query_qp(pair.a.qp, &attr, IBV_QP_TIMEOUT, &init), 0);
	assert_int_equal(attr.timeout, 1);
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_RESET), 0);
	began = now_ns();
	assert_int_equal(post_send(&pair.a, 1, 0, 100, 0), 0);
	expect_wc(&pair.a, 1, IBV_WC_RETRY_EXC_ERR);
	assert_true(now_ns() - began >= (attr.retry_cnt + 1) * INT64_C(2) *
						(INT64_C(4096) << device.local_ca_ack_delay));
	expect_dead(&pair);
	pair_close(&pair);
}

static void bad_remote_key(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };

	(void)state;
	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct pair pair;

		pair_open(&pair, NULL);
		assert_int_equal(post_rdma(&pair.a, opcodes[i], 1, 0, 8, 0, &pair.b, END_BUFFER),
				 0);
		expect_wc(&pair.a, 1, IBV_WC_REM_ACCESS_ERR);
		expect_dead(&pair);
		pair_close(&pair);
	}
}

static void no_remote_rights(void **state)
{
	const struct pair_options options = { .no_remote_access = 1 };
	struct pair pair;
	struct ibv_wc wc;

	(void)state;
	pair_open(&pair, &options);
	assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, &pair.b, 0), 0);
	wc = wait_wc(&pair.a);
	/* The queue pair itself does not permit WRITEs, for which either status may be used. */
	assert_true(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_ACCESS_ERR);
	pair_close(&pair);
}

static void misaligned_atomic(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(post_rdma(&pair.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 0, &pair.b, 4),
			 0);
	expect_wc(&pair.a, 1, IBV_WC_REM_INV_REQ_ERR);
	pair_close(&pair);
}

/* rule C18 test */
static void receive_buffer_too_small(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	assert_int_equal(post_recv(&pair.b, 1, 0, 10), 0);
	assert_int_equal(post_send(&pair.a, 2, 0, 11, 0), 0);
	expect_wc(&pair.b, 1, IBV_WC_LOC_LEN_ERR);
	expect_wc(&pair.a, 2, IBV_WC_REM_INV_REQ_ERR);
	expect_dead(&pair);
	pair_close(&pair);
}

static void bad_local_key(void **state)
{
	struct pair pair;
	struct ibv_sge sge = { .length = 10 };
	struct ibv_send_wr wr = {
		.wr_id = 3, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_recv_wr recv = { .wr_id = 4, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv;

	(void)state;
	pair_open(&pair, NULL);
	sge.addr = (uintptr_t)pair.a.buffer;
	sge.lkey = pair.b.mr->lkey; /* of another protection domain */
	assert_int_equal(post_recv(&pair.b, 1, 0, 10), 0);
	assert_int_equal(ibv_post_send(pair.a.qp, &wr, &bad), 0);
	expect_wc(&pair.a, 3, IBV_WC_LOC_PROT_ERR);
	pair_close(&pair);

	pair_open(&pair, NULL);
	sge.addr = (uintptr_t)pair.b.buffer;
	sge.lkey = pair.a.mr->lkey;
	assert_int_equal(ibv_post_recv(pair.b.qp, &recv, &bad_recv), 0);
	assert_int_equal(post_send(&pair.a, 5, 0, 10, 0), 0);
	expect_wc(&pair.b, 4, IBV_WC_LOC_PROT_ERR);
	expect_wc(&pair.a, 5, IBV_WC_REM_OP_ERR);
	pair_close(&pair);
}

static void error_state_flushes(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(post_recv(&pair.a, i, 0, 10), 0);
	assert_int_equal(to_state(pair.a.qp, IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 5; i++)
		expect_wc(&pair.a, i, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_recv(&pair.a, 7, 0, 10), 0);
	expect_wc(&pair.a, 7, IBV_WC_WR_FLUSH_ERR);
	expect_dead(&pair);

	/* After RESET the queue pairs can be connected again. */
	const struct pair_options none = { 0 };

	assert_int_equal(to_state(pair.a.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_init(pair.a.qp, 0), 0);
	assert_int_equal(to_init(pair.b.qp, 0), 0);
	assert_int_equal(to_rtr(pair.a.qp, pair.b.qp->qp_num, &none), 0);
	assert_int_equal(to_rtr(pair.b.qp, pair.a.qp->qp_num, &none), 0);
	assert_int_equal(to_rts(pair.a.qp, &none), 0);
	assert_int_equal(to_rts(pair.b.qp, &none), 0);
	assert_int_equal(post_recv(&pair.b, 1, 0, 10), 0);
	assert_int_equal(post_send(&pair.a, 2, 0, 10, IBV_SEND_SIGNALED), 0);
	expect_wc(&pair.b, 1, IBV_WC_SUCCESS);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	pair_close(&pair);
}

static void only_signaled_ones_complete(void **state)
{
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, i, 0, 3000,
					   i == 7 ? IBV_SEND_SIGNALED : 0, &pair.b, 0),
				 0);
	expect_wc(&pair.a, 7, IBV_WC_SUCCESS);
	expect_no_wc(&pair.a);
	pair_close(&pair);

	const struct pair_options all = { .sq_sig_all = 1 };

	pair_open(&pair, &all);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(post_rdma(&pair.a, IBV_WR_RDMA_WRITE, i, 0, 3000, 0, &pair.b, 0),
				 0);
	for (uint64_t i = 0; i < 8; i++)
		expect_wc(&pair.a, i, IBV_WC_SUCCESS);
	pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_of_every_size),
		cmocka_unit_test(immediate_data),
		cmocka_unit_test(write_and_read),
		cmocka_unit_test(atomics),
		cmocka_unit_test(inline_data_may_be_reused_at_once),
		cmocka_unit_test(gather_and_scatter),
		cmocka_unit_test(a_late_receive),
		cmocka_unit_test(rnr_retries_run_out),
		cmocka_unit_test(the_peer_does_not_answer),
		cmocka_unit_test(bad_remote_key),
		cmocka_unit_test(no_remote_rights),
		cmocka_unit_test(misaligned_atomic),
		cmocka_unit_test(receive_buffer_too_small),
		cmocka_unit_test(bad_local_key),
		cmocka_unit_test(error_state_flushes),
		cmocka_unit_test(only_signaled_ones_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
