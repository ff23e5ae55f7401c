/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion queues: order, sizes, events for each arming, removal of a QP's completions, overrun.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "progress/progress_priv.h"
#include "verbs/cq/cq.h"
#include "verbs/context/context.h"

/* Nothing has been received, and no progress thread runs. */
static struct progress progress;
static struct uroce_context context = { .progress = &progress };
static struct ibv_comp_channel *channel;
static struct uroce_cq *cq;

static int set_up(void **state)
{
	(void)state;
	if (uroce_async_open(&context))
		return -1;
	fcntl(context.base.context.async_fd, F_SETFL, O_NONBLOCK);
	channel = uroce_create_comp_channel(&context.base.context);
	if (!channel)
		return -1;
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	cq = calloc(1, sizeof(*cq));
	cq->context = &context;
	cq->workers.own = context.progress;
	cq->channel = (struct uroce_comp_channel *)channel;
	return uroce_cq_init(cq, 8, false);
}

static int tear_down(void **state)
{
	(void)state;
	uroce_cq_fini(cq);
	free(cq);
	uroce_destroy_comp_channel(channel);
	close(context.base.context.async_fd);
	close(context.async_write_fd);
	return 0;
}

static void add(uint32_t qpn, uint64_t wr_id)
{
	uroce_cq_complete(cq, qpn, &(struct eng_wc){ .wr_id = wr_id, .op = ENG_SEND });
}

static void add_special(bool solicited, enum eng_status status)
{
	uroce_cq_complete(cq, 1,
			  &(struct eng_wc){ .op = ENG_SEND,
					    .receive = true,
					    .solicited = solicited,
					    .status = status });
}

static unsigned int events(void)
{
	struct ib_uverbs_comp_event_desc record;
	unsigned int count = 0;

	while (read(channel->fd, &record, sizeof(record)) == sizeof(record)) {
		assert_int_equal(record.cq_handle, (uintptr_t)cq);
		count++;
	}
	return count;
}

static void arm(enum uroce_notify notify)
{
	cq->notify = notify;
}

static void entries_are_a_power_of_two(void **state)
{
	(void)state;
	assert_int_equal(uroce_cq_entries(0), 0);
	assert_int_equal(uroce_cq_entries(-1), 0);
	assert_true(uroce_cq_entries(1) >= 1);
	assert_int_equal(uroce_cq_entries(1000), 1024);
	assert_int_equal(uroce_cq_entries(4096), 4096);
	assert_int_equal(uroce_cq_entries(4097), 8192);
	assert_int_equal(uroce_cq_entries(UROCE_MAX_CQE), UROCE_MAX_CQE);
	assert_int_equal(uroce_cq_entries(UROCE_MAX_CQE + 1), 0);
}

static void completions_come_in_order(void **state)
{
	struct ibv_wc wc[8];
	uint64_t next = 0, taken = 0;

	(void)state;
	/* Rounds of different lengths, so that the ring wraps at every position of a round. */
	for (int round = 1; round < 100; round++) {
		for (int i = 0; i < round % 8 + 1; i++)
			add(7, next++);
		for (int got; (got = uroce_cq_poll_ring(cq, round % 3 + 1, wc, NULL)) > 0;) {
			for (int i = 0; i < got; i++)
				assert_int_equal(wc[i].wr_id, taken++);
		}
		assert_int_equal(next, taken);
	}
}

static void every_field_arrives(void **state)
{
	struct ibv_wc wc;

	(void)state;
	uroce_cq_complete(cq, 0x123456,
			  &(struct eng_wc){ .wr_id = 99,
					    .status = ENG_SUCCESS,
					    .op = ENG_WRITE_IMM,
					    .receive = true,
					    .byte_len = 4321,
					    .immediate = 0x01020304,
					    .flags = ENG_WC_IMMEDIATE | ENG_WC_GRH,
					    .src_qpn = 17 });
	assert_int_equal(uroce_cq_poll_ring(cq, 1, &wc, NULL), 1);
	assert_int_equal(wc.wr_id, 99);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 4321);
	assert_int_equal(ntohl(wc.imm_data), 0x01020304);
	assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(wc.qp_num, 0x123456);
	assert_int_equal(wc.src_qp, 17);

	static const enum ibv_wc_opcode opcodes[] = {
		[ENG_SEND] = IBV_WC_SEND,	    [ENG_SEND_IMM] = IBV_WC_SEND,
		[ENG_WRITE] = IBV_WC_RDMA_WRITE,    [ENG_WRITE_IMM] = IBV_WC_RDMA_WRITE,
		[ENG_READ] = IBV_WC_RDMA_READ,	    [ENG_COMPARE_SWAP] = IBV_WC_COMP_SWAP,
		[ENG_FETCH_ADD] = IBV_WC_FETCH_ADD,
	};

	for (enum eng_op op = ENG_SEND; op <= ENG_FETCH_ADD; op++) {
		if (op == ENG_SEND_INV)
			continue;
		uroce_cq_complete(cq, 1, &(struct eng_wc){ .op = op });
		assert_int_equal(uroce_cq_poll_ring(cq, 1, &wc, NULL), 1);
		assert_int_equal(wc.opcode, opcodes[op]);
	}
}

static void one_event_for_each_arming(void **state)
{
	(void)state;
	add(1, 1); /* not armed */
	assert_int_equal(events(), 0);
	arm(UROCE_NOTIFY_ANY); /* earlier completions do not count */
	assert_int_equal(events(), 0);
	add(1, 2);
	add(1, 3);
	assert_int_equal(events(), 1);
	arm(UROCE_NOTIFY_ANY);
	add(1, 4);
	assert_int_equal(events(), 1);
}

static void solicited_means_solicited_or_failed(void **state)
{
	(void)state;
	arm(UROCE_NOTIFY_SOLICITED);
	add_special(false, ENG_SUCCESS);
	assert_int_equal(events(), 0);
	add_special(true, ENG_SUCCESS);
	assert_int_equal(events(), 1);
	arm(UROCE_NOTIFY_SOLICITED);
	add_special(false, ENG_WR_FLUSH_ERR);
	assert_int_equal(events(), 1);
}

static void unread_events_can_be_taken_back(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		arm(UROCE_NOTIFY_ANY);
		add(1, 1);
	}
	uroce_channel_purge(cq->channel, cq);
	assert_int_equal(events(), 0);
}

static void a_queue_pair_is_forgotten(void **state)
{
	struct ibv_wc wc[8];

	(void)state;
	for (uint64_t i = 0; i < 5; i++) { /* so that the ring wraps below */
		add(1, i);
		uroce_cq_poll_ring(cq, 1, wc, NULL);
	}
	for (uint64_t i = 0; i < 8; i++)
		add(i % 3 ? 1 : 2, i);
	uroce_cq_clean_qp(cq, 1);
	assert_int_equal(uroce_cq_poll_ring(cq, 8, wc, NULL), 3);
	assert_int_equal(wc[0].wr_id, 0);
	assert_int_equal(wc[1].wr_id, 3);
	assert_int_equal(wc[2].wr_id, 6);
	uroce_cq_clean_qp(cq, 1);
	assert_int_equal(uroce_cq_poll_ring(cq, 8, wc, NULL), 0);
}

static void an_overrun_kills_the_queue(void **state)
{
	struct ib_uverbs_async_event_desc event;
	struct ibv_wc wc[8];
	int fd = context.base.context.async_fd;

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		add(1, i);
	assert_false(cq->dead);
	assert_true(read(fd, &event, sizeof(event)) < 0);
	add(1, 8);
	add(1, 9);
	assert_true(cq->dead);
	assert_int_equal(read(fd, &event, sizeof(event)), sizeof(event));
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_int_equal(event.element, (uintptr_t)cq);
	/* One event is raised; completions from before can still be polled, nothing else. */
	assert_true(read(fd, &event, sizeof(event)) < 0);
	assert_int_equal(uroce_cq_poll_ring(cq, 8, wc, NULL), 8);
	add(1, 10);
	assert_int_equal(uroce_cq_poll_ring(cq, 8, wc, NULL), 0);
	assert_true(uroce_cq_poll(cq, 8, wc, NULL) < 0);
}

static void *take_one(void *taken)
{
	struct ibv_wc wc;

	atomic_store((atomic_int *)taken, uroce_cq_poll_ring(cq, 1, &wc, NULL));
	return NULL;
}

/*
 * The progress thread has not sent the ACK yet, and the application, whose CQ is armed, polls once
 * more before it sleeps: the poll waits for the ACK.
 */
static void an_armed_poll_awaits_answers(void **state)
{
	atomic_int taken = 0;
	pthread_t thread;
	bool waited;

	(void)state;
	/* An unsolicited completion: the queue stays armed. */
	arm(UROCE_NOTIFY_SOLICITED);
	add(1, 1);
	pthread_mutex_lock(&progress.cycle_lock);
	atomic_store(&progress.sending_responses, true);
	assert_int_equal(pthread_create(&thread, NULL, take_one, &taken), 0);
	while (!atomic_load(&progress.cycle_lock_waiters) && !atomic_load(&taken))
		sched_yield();
	waited = !atomic_load(&taken);
	atomic_store(&progress.sending_responses, false);
	pthread_mutex_unlock(&progress.cycle_lock);
	pthread_join(thread, NULL);
	assert_int_equal(taken, 1);
	assert_true(waited);
}

static uint64_t poll_cycles_of(struct progress *worker)
{
	uint64_t counters[PROGRESS_COUNTER_COUNT];

	progress_worker_counters(worker, counters);
	return counters[PROGRESS_COUNT_POLL_CYCLES];
}

/*
 * Polls until a poll has run a cycle of the worker, which a poll cannot do while the worker's
 * thread runs one, as right after its start.
 */
static void poll_until_served(struct progress *worker)
{
	uint64_t before = poll_cycles_of(worker);
	struct ibv_wc wc;

	while (poll_cycles_of(worker) == before)
		assert_int_equal(uroce_cq_poll(cq, 1, &wc, NULL), 0);
}

/* A poll runs a cycle of each worker whose queue pairs complete into the CQ, and of no other. */
static void a_poll_serves_all_workers_of_the_cq(void **state)
{
	char text[PROGRESS_ERROR_TEXT];
	struct progress *instance, *other;
	uint64_t before;

	(void)state;
	assert_int_equal(progress_get(&instance, NULL, text), 0);
	assert_int_equal(progress_worker_get(1, &other, text), 0);
	assert_ptr_not_equal(instance, other);
	cq->workers.own = instance;
	poll_until_served(instance);
	assert_int_equal(poll_cycles_of(other), 0);
	uroce_cq_attach(cq, other);
	uroce_cq_attach(cq, other);
	poll_until_served(other);
	assert_int_equal(poll_cycles_of(other), 1);
	poll_until_served(instance);
	uroce_cq_detach(cq, other);
	poll_until_served(other);
	uroce_cq_detach(cq, other);
	before = poll_cycles_of(other);
	poll_until_served(instance);
	poll_until_served(instance);
	assert_int_equal(poll_cycles_of(other), before);
	progress_put(instance);
	cq->workers.own = &progress;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_a_power_of_two),
		cmocka_unit_test_setup_teardown(completions_come_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(every_field_arrives, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_event_for_each_arming, set_up, tear_down),
		cmocka_unit_test_setup_teardown(solicited_means_solicited_or_failed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(unread_events_can_be_taken_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_queue_pair_is_forgotten, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_overrun_kills_the_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_armed_poll_awaits_answers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_poll_serves_all_workers_of_the_cq, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
