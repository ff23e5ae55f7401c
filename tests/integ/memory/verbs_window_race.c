/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * After the bind of a window has completed, nothing is written by the window's previous key any
 * more, although another thread sends packets with this key on another queue pair.
 */
#include "verbs_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum {
	ROUNDS = 60,
	LENGTH = 64 << 10,
	OTHER = 512 << 10, /* offset of the window after the second bind */
};

/* 268 ms, so that a busy host does not use up the retries before the key becomes invalid. */
static const struct pair_options options = { .mtu = IBV_MTU_4096, .timeout = 16 };
static struct pair pair;
static atomic_uint written;
static struct ibv_mw *mw;

/*
 * Writes different bytes by the key each time until a WRITE fails; returns its status.  The status
 * is IBV_WC_SUCCESS if a WRITE cannot be posted or has no completion.
 */
static void *keep_writing(void *key)
{
	uint32_t rkey = *(uint32_t *)key;
	struct ibv_wc wc = { 0 };

	do {
		struct ibv_sge sge = sge_of(&pair.a, 0, LENGTH);
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_SIGNALED };
		struct ibv_send_wr *bad;

		memset(pair.a.buffer, (int)(atomic_fetch_add(&written, 1) + 1), LENGTH);
		wr.wr.rdma.rkey = rkey;
		wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buffer;
		if (ibv_post_send(pair.a.qp, &wr, &bad))
			break;
		if (fixture_poll(pair.a.cq, &wc, PATIENCE_MS) != 1) {
			print_error("a WRITE has no completion\n");
			break;
		}
	} while (wc.status == IBV_WC_SUCCESS);
	return (void *)(uintptr_t)wc.status;
}

/* Waits until one WRITE is complete and the next one has begun. */
static void await_writer(void)
{
	for (int i = 0; i < 10 * PATIENCE_MS && atomic_load(&written) < 2; i++)
		usleep(100);
	assert_true(atomic_load(&written) >= 2);
}

/* Creates a queue pair in b's domain that is only used to post binds. */
static struct ibv_qp *create_binder(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 4 }
	};
	struct ibv_qp *qp = ibv_create_qp(pair.b.pd, &attr);

	assert_non_null(qp);
	assert_int_equal(to_init(qp, 0), 0);
	assert_int_equal(to_rtr(qp, qp->qp_num, &options), 0);
	assert_int_equal(to_rts(qp, &options), 0);
	return qp;
}

static void bind_to(struct ibv_qp *binder, struct ibv_cq *cq, struct ibv_mr *mr, size_t offset)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { .mr = mr,
			       .addr = (uintptr_t)pair.b.buffer + offset,
			       .length = LENGTH,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	};

	assert_int_equal(ibv_bind_mw(binder, mw, &bind), 0);
	fixture_expect(cq, 0, IBV_WC_SUCCESS);
}

static void nothing_comes_after_the_end(void **state)
{
	static uint8_t seen[LENGTH];

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct ibv_cq *cq = ibv_create_cq(the_context(), 8, NULL, NULL, 0);
		struct ibv_qp *binder;
		struct ibv_mr *mr;
		pthread_t writer;
		uint32_t rkey;
		void *ended;

		pair_open(&pair, &options);
		mr = ibv_reg_mr(pair.b.pd, pair.b.buffer, END_BUFFER,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
		mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
		binder = create_binder(cq);
		atomic_store(&written, 0);
		bind_to(binder, cq, mr, 0);
		rkey = mw->rkey;
		assert_int_equal(pthread_create(&writer, NULL, keep_writing, &rkey), 0);
		await_writer();
		usleep(1000 + (unsigned int)round * 37);
		bind_to(binder, cq, mr, OTHER);
		memcpy(seen, pair.b.buffer, LENGTH);
		pthread_join(writer, &ended);
		assert_int_equal((uintptr_t)ended, IBV_WC_REM_ACCESS_ERR);
		assert_memory_equal(seen, pair.b.buffer, LENGTH);

		assert_int_equal(ibv_destroy_qp(binder), 0);
		assert_int_equal(ibv_dealloc_mw(mw), 0);
		assert_int_equal(ibv_dereg_mr(mr), 0);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_comes_after_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
