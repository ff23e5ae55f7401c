/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "progress_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const uint8_t end_loopback[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 };

void (*end_mapping)(void);

static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, enum eng_use use)
{
	if (end_mapping)
		end_mapping();
	(void)owner;
	(void)lkey;
	(void)length;
	(void)use;
	return (void *)(uintptr_t)addr;
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t addr, uint32_t length, uint32_t need)
{
	(void)owner;
	(void)rkey;
	(void)length;
	(void)need;
	return (void *)(uintptr_t)addr;
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct progress_end *end = owner;
	unsigned int n;

	if (wc->status != ENG_SUCCESS) {
		atomic_store(&end->last_status, wc->status);
		atomic_fetch_add(&end->failed, 1);
	}
	if (!wc->receive) {
		atomic_fetch_add(&end->sent, 1);
		return;
	}
	n = atomic_load(&end->received);
	atomic_store(&end->lengths[n % END_SLOTS], wc->byte_len);
	atomic_store(&end->received_ids[n % END_SLOTS], wc->wr_id);
	atomic_store(&end->received, n + 1);
}

static void event(void *owner, enum eng_event event)
{
	(void)owner;
	(void)event;
}

static const struct eng_ops engine_ops = {
	.map_local = map_local,
	.map_remote = map_remote,
	.complete = complete,
	.event = event,
};

static void watch_forks(void)
{
	pthread_atfork(progress_fork_prepare, progress_fork_parent, progress_fork_child);
}

struct progress *get_progress(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char error[PROGRESS_ERROR_TEXT] = "";
	struct progress *progress;

	pthread_once(&once, watch_forks);
	if (progress_get(&progress, NULL, error))
		fail_msg("%s", error);
	return progress;
}

static void init_ring(struct eng_ring *ring, uint8_t **slots, uint32_t slot_bytes)
{
	*slots = aligned_alloc(64, (size_t)slot_bytes * END_SLOTS);
	assert_non_null(*slots);
	memset(*slots, 0, (size_t)slot_bytes * END_SLOTS);
	eng_ring_init(ring, *slots, slot_bytes, END_SLOTS, END_SLOTS);
}

void end_open(struct progress_end *end, struct progress *progress)
{
	end_open_as(end, progress, ENG_RC);
}

void end_open_as(struct progress_end *end, struct progress *progress, enum eng_qp_type type)
{
	memset(end, 0, sizeof(*end));
	end->progress = progress;
	end->timeout_code = 14;
	end->retry_count = 7;
	end->qp.unreliable = type != ENG_RC;
	init_ring(&end->sq, &end->sq_slots, eng_send_slot_bytes(1, 64));
	init_ring(&end->rq, &end->rq_slots, (eng_recv_slot_bytes(1) + 63) & ~63u);
	pthread_mutex_init(&end->qp.lock, NULL);
	end->qp.engine = aligned_alloc(64, eng_qp_bytes(1));
	assert_non_null(end->qp.engine);
	pthread_mutex_lock(&end->qp.lock);
	assert_int_equal(progress_qp_add(progress, &end->qp), 0);
	eng_qp_init(end->qp.engine, &(struct eng_qp_init){
					    .type = type,
					    .qpn = end->qp.qpn,
					    .owner = end,
					    .ops = &engine_ops,
					    .sq = &end->sq,
					    .rq = &end->rq,
					    .max_recv_sge = 1,
					    .signal_all = true,
				    });
	end->replay = malloc(eng_resp_res_bytes(1));
	assert_non_null(end->replay);
	eng_set_resp_res(end->qp.engine, end->replay, 1);
	eng_set_state(end->qp.engine, ENG_INIT, progress_now());
	pthread_mutex_unlock(&end->qp.lock);
}

void end_connect(struct progress_end *end, uint32_t dest_qpn)
{
	struct progress_route route = { .dest_qpn = dest_qpn };
	char error[PROGRESS_ERROR_TEXT] = "";
	struct eng_attr *attr;
	struct eng_path path;

	memcpy(route.sgid, end_loopback, sizeof(route.sgid));
	memcpy(route.dgid, end_loopback, sizeof(route.dgid));
	if (progress_qp_connect(end->progress, &end->qp, &route, &path, error))
		fail_msg("%s", error);
	pthread_mutex_lock(&end->qp.lock);
	attr = eng_qp_attr(end->qp.engine);
	attr->mtu = 4096;
	attr->dest_qpn = dest_qpn;
	attr->rq_psn = 0xfffff0;
	attr->sq_psn = 0xfffff0;
	attr->access = ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_REMOTE_READ;
	attr->timeout_code = (uint8_t)end->timeout_code;
	attr->retry_count = (uint8_t)end->retry_count;
	attr->rnr_retry = 7;
	attr->min_rnr_timer = 1;
	attr->max_rd_atomic = 1;
	attr->max_dest_rd_atomic = 1;
	attr->path = path;
	eng_set_state(end->qp.engine, ENG_RTR, progress_now());
	eng_set_state(end->qp.engine, ENG_RTS, progress_now());
	progress_qp_changed(end->progress, &end->qp);
	pthread_mutex_unlock(&end->qp.lock);
}

void end_pair(struct progress_end *a, struct progress_end *b, struct progress *progress)
{
	end_open(a, progress);
	end_open(b, progress);
	end_connect(a, b->qp.qpn);
	end_connect(b, a->qp.qpn);
}

void end_close(struct progress_end *end)
{
	progress_qp_remove(end->progress, &end->qp);
	pthread_mutex_destroy(&end->qp.lock);
	free(end->qp.engine);
	free(end->replay);
	free(end->sq_slots);
	free(end->rq_slots);
}

static bool post(struct progress_end *end, enum eng_op op, const void *bytes, uint32_t length,
		 void *remote)
{
	struct eng_send_wqe *wqe;

	pthread_mutex_lock(&end->qp.lock);
	wqe = eng_sq_next(end->qp.engine);
	if (wqe) {
		wqe->wr_id = 0;
		wqe->length = length;
		wqe->op = (uint8_t)op;
		wqe->flags = ENG_SIGNALED;
		wqe->sge_count = 1;
		wqe->data.sge[0] = (struct eng_sge){ .addr = (uintptr_t)bytes, .length = length };
		wqe->remote.va = (uintptr_t)remote;
		eng_sq_push(end->qp.engine);
		progress_posted_send(end->progress, &end->qp);
	}
	pthread_mutex_unlock(&end->qp.lock);
	return wqe;
}

bool end_send(struct progress_end *end, const void *bytes, uint32_t length)
{
	return post(end, ENG_SEND, bytes, length, NULL);
}

bool end_write(struct progress_end *end, const void *bytes, uint32_t length, void *remote)
{
	return post(end, ENG_WRITE, bytes, length, remote);
}

bool end_receive(struct progress_end *end, void *bytes, uint32_t length)
{
	struct eng_recv_wqe *wqe;

	pthread_mutex_lock(&end->qp.lock);
	wqe = eng_rq_next(&end->rq);
	if (wqe) {
		wqe->wr_id = (uintptr_t)bytes;
		wqe->length = length;
		wqe->sge_count = 1;
		wqe->sge[0] = (struct eng_sge){ .addr = (uintptr_t)bytes, .length = length };
		eng_rq_push(&end->rq);
		progress_posted_receive(end->progress, &end->qp);
	}
	pthread_mutex_unlock(&end->qp.lock);
	return wqe;
}

bool end_poll_for(struct progress *progress, atomic_uint *counter, unsigned int value)
{
	uint64_t until = progress_now() + END_PATIENCE_NS;

	while (atomic_load(counter) < value) {
		if (progress_now() > until)
			return false;
		progress_poll(progress);
	}
	return true;
}

bool end_wait_for(atomic_uint *counter, unsigned int value)
{
	uint64_t until = progress_now() + END_PATIENCE_NS;

	while (atomic_load(counter) < value) {
		if (progress_now() > until)
			return false;
		usleep(100);
	}
	return true;
}

uint64_t progress_count(struct progress *progress, enum progress_counter counter)
{
	uint64_t counters[PROGRESS_COUNTER_COUNT];

	progress_worker_counters(progress, counters);
	return counters[counter];
}
