/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Requests that were accepted, and their completions: each completes once, in order, in the right
 * completion queue, and never after a reset or its queue pair's end.
 */
#include <inttypes.h>
#include <time.h>

#include "world.h"

enum { BATCH = 16 };

uint32_t next_work(struct world *world)
{
	MUST(world, world->work_count < MAX_WORKS, "the fuzzer has no room for more requests");
	return world->work_count++;
}

static void append(struct world *world, struct fifo *fifo, uint32_t place)
{
	if (fifo->first)
		world->works[fifo->last].next = place;
	else
		fifo->first = place;
	fifo->last = place;
	fifo->count++;
}

static void remove_first(struct world *world, struct fifo *fifo)
{
	struct work *work = &world->works[fifo->first];

	work->outstanding = false;
	fifo->first = work->next;
	fifo->count--;
}

/* Updates the maximum number of completions that the queue may have to hold. */
static void note_peak(struct world *world, struct queue *queue)
{
	uint32_t most = 0;

	if (!queue)
		return;
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		const struct pair *pair = &world->pairs[i];

		if (!pair->verbs)
			continue;
		if (pair->send_queue == queue)
			most += pair->sends.count;
		if (pair->recv_queue == queue)
			most += pair->recvs.count + (pair->shared ? pair->shared->outstanding : 0);
	}
	for (uint32_t i = 0; i < MAX_SHARED; i++)
		if (world->shared[i].verbs && world->shared[i].queue == queue)
			most += world->shared[i].outstanding;
	if (most > queue->peak)
		queue->peak = most;
}

void accept_send(struct world *world, struct pair *pair, uint32_t place, enum ibv_wr_opcode opcode,
		 unsigned int flags)
{
	world->works[place] = (struct work){
		.kind = WORK_SEND,
		.outstanding = true,
		.signaled = pair->signal_all || (flags & IBV_SEND_SIGNALED),
		.opcode = opcode,
		.epoch = pair->epoch,
		.pair = pair,
	};
	append(world, &pair->sends, place);
	note_peak(world, pair->send_queue);
}

void accept_recv(struct world *world, struct pair *pair, struct shared *shared, uint32_t place,
		 uint64_t bytes)
{
	world->works[place] = (struct work){ .kind = shared ? WORK_SHARED : WORK_RECV,
					     .outstanding = true,
					     .length = bytes,
					     .pair = pair,
					     .shared = shared };
	if (pair) {
		append(world, &pair->recvs, place);
		note_peak(world, pair->recv_queue);
		return;
	}
	shared->outstanding++;
	for (uint32_t i = 0; i < MAX_QUEUES; i++)
		if (world->queues[i].verbs)
			note_peak(world, &world->queues[i]);
}

void forget_works(struct world *world, struct pair *pair)
{
	while (pair->sends.first)
		remove_first(world, &pair->sends);
	while (pair->recvs.first)
		remove_first(world, &pair->recvs);
}

void forget_shared(struct world *world, struct shared *shared)
{
	for (uint32_t i = 1; i < world->work_count; i++)
		if (world->works[i].shared == shared)
			world->works[i].outstanding = false;
	shared->outstanding = 0;
}

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return IBV_WC_SEND;
	}
}

static void check_send(struct world *world, const struct queue *queue, uint32_t place,
		       const struct ibv_wc *wc)
{
	struct work *work = &world->works[place];
	struct pair *pair = work->pair;

	MUST(world, pair->send_queue == queue, "a send completes in another queue");
	/* The requests before it have succeeded without a completion. */
	while (pair->sends.first != place) {
		const struct work *passed = &world->works[pair->sends.first];

		MUST(world, pair->sends.first, "a send completes out of order");
		MUST(world, !passed->signaled || queue->ignores_overrun,
		     "the completion of a signaled send, %u of queue pair %u, is lost",
		     pair->sends.first, pair->number);
		MUST(world, passed->epoch != pair->failed_epoch || queue->ignores_overrun,
		     "a send after one that failed, %u of queue pair %u, is not flushed",
		     pair->sends.first, pair->number);
		remove_first(world, &pair->sends);
	}
	remove_first(world, &pair->sends);
	if (wc->status != IBV_WC_SUCCESS) {
		pair->failed_epoch = work->epoch;
		return;
	}
	MUST(world, work->epoch != pair->failed_epoch, "a send succeeds after one that failed");
	MUST(world, work->signaled, "an unsignaled send succeeds with a completion");
	MUST(world, wc->opcode == opcode_of(work->opcode), "a send of opcode %d completes as %d",
	     work->opcode, wc->opcode);
}

static void check_received(struct world *world, const struct work *work, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return;
	MUST(world, wc->opcode == IBV_WC_RECV || wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM,
	     "a receive completes as opcode %d", wc->opcode);
	MUST(world, wc->opcode != IBV_WC_RECV || wc->byte_len <= work->length,
	     "%u bytes are received into a buffer of %" PRIu64, wc->byte_len, work->length);
}

static void check_recv(struct world *world, const struct queue *queue, uint32_t place,
		       const struct ibv_wc *wc)
{
	struct pair *pair = world->works[place].pair;

	MUST(world, pair->recv_queue == queue, "a receive completes in another queue");
	while (queue->ignores_overrun && pair->recvs.first && pair->recvs.first != place)
		remove_first(world, &pair->recvs);
	MUST(world, pair->recvs.first == place,
	     "receive %u of queue pair %u completes before receive %u", place, pair->number,
	     pair->recvs.first);
	check_received(world, &world->works[place], wc);
	remove_first(world, &pair->recvs);
}

static bool serves(const struct pair *pair, const struct shared *shared, const struct ibv_wc *wc,
		   const struct queue *queue)
{
	if (!pair->verbs || pair->number != wc->qp_num)
		return false;
	return pair->shared == shared && pair->recv_queue == queue;
}

static void check_shared(struct world *world, const struct queue *queue, uint32_t place,
			 const struct ibv_wc *wc)
{
	struct work *work = &world->works[place];
	/* An XRC target may have been destroyed since. */
	bool found = work->shared->xrc_domain && work->shared->queue == queue;

	for (uint32_t i = 0; i < MAX_PAIRS; i++)
		found |= serves(&world->pairs[i], work->shared, wc, queue);
	MUST(world, found, "a shared receive completes for queue pair %u", wc->qp_num);
	check_received(world, work, wc);
	work->outstanding = false;
	work->shared->outstanding--;
}

static void check_completion(struct world *world, const struct queue *queue,
			     const struct ibv_wc *wc)
{
	uint64_t place = wc->wr_id - world->first_id;
	const struct work *work;

	MUST(world, place > 0 && place < world->work_count, "a completion of no request: %" PRIu64,
	     wc->wr_id);
	work = &world->works[place];
	note(world, "  completion of %" PRIu64 ", queue pair %u: %s", place, wc->qp_num,
	     ibv_wc_status_str(wc->status));
	MUST(world, work->outstanding, "request %" PRIu64 " completes twice, or too late", place);
	MUST(world, wc->status >= IBV_WC_SUCCESS && wc->status <= IBV_WC_TM_RNDV_INCOMPLETE,
	     "a status that is none: %d", wc->status);
	if (work->kind != WORK_SHARED)
		MUST(world, work->pair->verbs && work->pair->number == wc->qp_num,
		     "a request of queue pair %u completes as of %u", work->pair->number,
		     wc->qp_num);
	if (work->kind == WORK_SEND)
		check_send(world, queue, (uint32_t)place, wc);
	else if (work->kind == WORK_RECV)
		check_recv(world, queue, (uint32_t)place, wc);
	else
		check_shared(world, queue, (uint32_t)place, wc);
}

static void poll_failed(struct world *world, struct queue *queue)
{
	note(world, "poll of %p fails", (void *)queue->verbs);
	MUST(world, may_be_dead(queue), "a completion queue of %u fails, at most %u were under way",
	     queue->least_cqe, queue->peak);
	queue->dead = true;
}

static int poll_plain(struct world *world, struct queue *queue)
{
	struct ibv_wc wc[BATCH];
	int count = 1 + (int)below(world, BATCH), got;

	got = ibv_poll_cq(queue->verbs, count, wc);
	MUST(world, got <= count, "poll_cq gives %d of %d", got, count);
	if (got < 0)
		poll_failed(world, queue);
	for (int i = 0; i < got; i++)
		check_completion(world, queue, &wc[i]);
	return got;
}

static int poll_extended(struct world *world, struct queue *queue)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *ex = (struct ibv_cq_ex *)queue->verbs;
	int error = ibv_start_poll(ex, &attr), got = 0;

	MUST(world, !error || error == ENOENT || error == EIO, "start_poll: %s", strerror(error));
	if (error == EIO)
		poll_failed(world, queue);
	if (error)
		return error == EIO ? -1 : 0;
	do {
		struct ibv_wc wc = { .wr_id = ex->wr_id,
				     .status = ex->status,
				     .opcode = ibv_wc_read_opcode(ex),
				     .byte_len = ibv_wc_read_byte_len(ex),
				     .qp_num = ibv_wc_read_qp_num(ex) };

		check_completion(world, queue, &wc);
	} while (++got < BATCH && !ibv_next_poll(ex));
	ibv_end_poll(ex);
	return got;
}

static int poll_queue(struct world *world, struct queue *queue)
{
	int got = queue->extended && chance(world, 70) ? poll_extended(world, queue)
						       : poll_plain(world, queue);

	MUST(world, got <= 0 || !queue->context->closed, "a queue of a closed context has entries");
	return got;
}

void do_poll(struct world *world)
{
	struct queue *queue = PICK(world, queues);

	if (queue)
		poll_queue(world, queue);
}

void poll_all(struct world *world)
{
	for (uint32_t i = 0; i < MAX_QUEUES; i++)
		if (world->queues[i].verbs)
			while (poll_queue(world, &world->queues[i]) > 0)
				;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Lets some time pass in which packets travel. */
void do_settle(struct world *world)
{
	uint64_t until = now_us() + below(world, 3000);

	note(world, "settle");
	do
		poll_all(world);
	while (now_us() < until);
}

static bool is_certain(const struct queue *queue)
{
	return queue && !may_be_dead(queue) && !queue->ignores_overrun;
}

void drain_all(struct world *world)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	bool sent[MAX_PAIRS] = { 0 };

	note(world, "drain");
	/* Completions that are not polled would leave no room for those of the flush. */
	poll_all(world);
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		struct pair *pair = &world->pairs[i];

		if (!pair->verbs || pair->context->closed || pair->type == IBV_QPT_XRC_RECV)
			continue;
		MUST(world, !modify(world, pair, &attr, IBV_QP_STATE, false, false),
		     "a queue pair cannot be moved to ERR");
		poll_all(world);
		sent[i] = post_beacon(world, pair);
		poll_all(world);
	}
	for (uint32_t i = 0; i < MAX_PAIRS; i++) {
		const struct pair *pair = &world->pairs[i];

		if (!pair->verbs || pair->context->closed)
			continue;
		if (is_certain(pair->send_queue) && sent[i])
			MUST(world, !pair->sends.count, "%u sends of queue pair %u never complete",
			     pair->sends.count, pair->number);
		if (is_certain(pair->recv_queue))
			MUST(world, !pair->recvs.count,
			     "%u receives of queue pair %u never complete", pair->recvs.count,
			     pair->number);
	}
}
