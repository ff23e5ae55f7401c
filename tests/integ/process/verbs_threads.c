/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Many threads at once: on one queue pair, on one completion queue, on the key table, and creating
 * and destroying all kinds of objects.  ThreadSanitizer and the counts at the end find collisions.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	POSTERS = 3,
	POLLERS = 2,
	MESSAGES = 4000, /* by each poster */
	DEPTH = 64,
	REGISTRATIONS = 2000,
	LIVES = 40,
	OPENINGS = 10,
};

static struct pair pair;
static atomic_uint failed, sent, completed;
static atomic_bool over; /* all WRITEs have completed, or none does any more */

/* Counts a request as outstanding.  Returns false if there are DEPTH already. */
static bool take_place(void)
{
	if (atomic_fetch_add(&sent, 1) - atomic_load(&completed) < DEPTH)
		return true;
	atomic_fetch_sub(&sent, 1);
	return false;
}

static void *post_writes(void *arg)
{
	size_t offset = (size_t)(uintptr_t)arg * 4096;

	for (int i = 0; i < MESSAGES && !atomic_load(&over);) {
		if (!take_place()) {
			usleep(10);
			continue;
		}
		if (post_rdma(&pair.a, IBV_WR_RDMA_WRITE, 1, offset, 100, IBV_SEND_SIGNALED,
			      &pair.b, offset)) {
			atomic_fetch_add(&failed, 1);
			atomic_fetch_add(&completed, 1);
		}
		i++;
	}
	return NULL;
}

static void *poll_writes(void *arg)
{
	struct ibv_wc wc[8];
	int got;

	(void)arg;
	while (!atomic_load(&over)) {
		got = ibv_poll_cq(pair.a.cq, 8, wc);
		if (got < 0) {
			atomic_fetch_add(&failed, 1);
			return NULL;
		}
		for (int i = 0; i < got; i++) {
			if (wc[i].status != IBV_WC_SUCCESS)
				atomic_fetch_add(&failed, 1);
		}
		atomic_fetch_add(&completed, (unsigned int)got);
	}
	return NULL;
}

static void *register_and_not(void *arg)
{
	(void)arg;
	for (int i = 0; i < REGISTRATIONS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(pair.a.pd, pair.a.buffer + 4096 * (i % 16), 4096,
					       IBV_ACCESS_LOCAL_WRITE);

		if (!mr || ibv_dereg_mr(mr))
			atomic_fetch_add(&failed, 1);
	}
	return NULL;
}

/* Waits until all WRITEs have completed, or none has for PATIENCE_MS, and ends their threads. */
static void await_writes(void)
{
	unsigned int seen = 0, now;
	int idle_ms = 0;

	while ((now = atomic_load(&completed)) < POSTERS * MESSAGES && idle_ms < PATIENCE_MS) {
		idle_ms = now == seen ? idle_ms + 1 : 0;
		seen = now;
		usleep(1000);
	}
	atomic_store(&over, true);
}

static void one_queue_pair(void **state)
{
	pthread_t threads[POSTERS + POLLERS + 1];
	int count = 0;

	(void)state;
	atomic_store(&sent, 0);
	atomic_store(&completed, 0);
	atomic_store(&failed, 0);
	atomic_store(&over, false);
	pair_open(&pair, &(struct pair_options){ .cqe = 2 * DEPTH, .send_wr = DEPTH + POSTERS });
	for (uintptr_t i = 0; i < POSTERS; i++)
		pthread_create(&threads[count++], NULL, post_writes, (void *)i);
	for (int i = 0; i < POLLERS; i++)
		pthread_create(&threads[count++], NULL, poll_writes, NULL);
	pthread_create(&threads[count++], NULL, register_and_not, NULL);
	await_writes();
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failed), 0);
	assert_int_equal(atomic_load(&completed), POSTERS * MESSAGES);
	pair_close(&pair);
}

/* Counts errors, as cmocka's assertions work only in its own thread. */
static void live(struct ibv_context *context, int lives)
{
	const struct pair_options options = { 0 };

	for (int i = 0; i < lives; i++) {
		struct ibv_pd *pd = ibv_alloc_pd(context);
		struct ibv_cq *cq = ibv_create_cq(context, 10, NULL, NULL, 0);
		struct ibv_qp_init_attr init = { .send_cq = cq,
						 .recv_cq = cq,
						 .qp_type = IBV_QPT_RC,
						 .cap = { .max_send_wr = 4, .max_recv_wr = 4 } };
		struct ibv_qp *a = ibv_create_qp(pd, &init), *b = ibv_create_qp(pd, &init);
		struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad;
		struct ibv_recv_wr recv = { .wr_id = 3 }, *bad_recv;
		struct ibv_wc wc;

		if (!a || !b || to_init(a, 0) || to_init(b, 0) || to_rtr(a, b->qp_num, &options) ||
		    to_rtr(b, a->qp_num, &options) || to_rts(a, &options) || to_rts(b, &options) ||
		    ibv_post_recv(b, &recv, &bad_recv) || ibv_post_send(a, &send, &bad)) {
			atomic_fetch_add(&failed, 1);
			return;
		}
		if (fixture_poll(cq, &wc, PATIENCE_MS) != 1) {
			print_error("a receive has no completion\n");
			atomic_fetch_add(&failed, 1);
		} else if (wc.status || wc.wr_id != 3) {
			atomic_fetch_add(&failed, 1);
		}
		/* The ACK is still in flight, or the peer is destroyed before it arrives. */
		if (ibv_destroy_qp(i % 2 ? a : b) || ibv_destroy_qp(i % 2 ? b : a) ||
		    ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
			atomic_fetch_add(&failed, 1);
	}
}

static void *live_and_die(void *arg)
{
	live(arg, LIVES);
	return NULL;
}

/* Opening a device reads and changes state that other contexts of the device use. */
static void *open_and_close(void *arg)
{
	for (int i = 0; i < OPENINGS; i++) {
		struct ibv_context *context = ibv_open_device(arg);

		if (!context) {
			atomic_fetch_add(&failed, 1);
			return NULL;
		}
		live(context, LIVES / OPENINGS);
		if (ibv_close_device(context))
			atomic_fetch_add(&failed, 1);
	}
	return NULL;
}

static void many_openings(void **state)
{
	pthread_t threads[4];

	(void)state;
	atomic_store(&failed, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, open_and_close, the_context()->device);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failed), 0);
}

static void many_lives(void **state)
{
	pthread_t threads[4];

	(void)state;
	atomic_store(&failed, 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, live_and_die, the_context());
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&failed), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_queue_pair),
		cmocka_unit_test(many_lives),
		cmocka_unit_test(many_openings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
