/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A connection in which every byte is known.  It exists in addition to the random objects, in a
 * context of its own.  All its requests are good, so each must succeed and transfer exactly the
 * data that was sent.  Memory around received data must not change.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

enum {
	SLOTS = 8,
	SLOT_BYTES = 8192,
	UNTOUCHED = 0xee,
	ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC,
};

enum kind {
	KIND_SEND,
	KIND_WRITE,
	KIND_READ,
	KIND_ADD,
	KINDS,
};

/* Memory that both ends read and write; the slot of request n is n % SLOTS. */
struct memory {
	uint8_t from[SLOTS][SLOT_BYTES];
	uint8_t received[SLOTS][SLOT_BYTES];
	uint8_t written[SLOTS][SLOT_BYTES]; /* by the peer's WRITEs */
	uint8_t read[SLOTS][SLOT_BYTES];
	uint8_t stone[SLOT_BYTES]; /* never changes */
	uint64_t counter;
};

struct request {
	enum kind kind;
	uint32_t length;
};

struct end {
	struct ibv_qp *qp;
	struct memory *memory;
	struct ibv_mr *mr;
	struct request requests[SLOTS];
	uint32_t posted, completed; /* requests */
	uint32_t sends[SLOTS];	    /* request numbers of SENDs in order */
	uint32_t sent, received;    /* SENDs of this end, and those that the other end received */
	uint64_t added;		    /* FETCH_ADDs that have completed */
};

struct clean {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct end ends[2];
	bool broken; /* the retries were used up */
};

static uint8_t pattern(uint32_t end, uint32_t request, uint32_t position)
{
	return (uint8_t)(end * 91 + request * 37 + position * 11 + (position >> 8) * 3);
}

static bool has_pattern(const uint8_t *bytes, uint32_t length, uint32_t end, uint32_t request)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != pattern(end, request, i))
			return false;
	return true;
}

static bool is_untouched(const uint8_t *bytes, uint32_t from)
{
	for (uint32_t i = from; i < SLOT_BYTES; i++)
		if (bytes[i] != UNTOUCHED)
			return false;
	return true;
}

/* Moves both ends to RTS, with new PSNs. */
static void connect(struct world *world, struct clean *clean)
{
	uint32_t psn[2] = { below(world, 1 << 24), below(world, 1 << 24) };
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = (enum ibv_mtu)(1 + below(world, 5)),
		.max_dest_rd_atomic = (uint8_t)(1 + below(world, 4)),
		.max_rd_atomic = 1,
		.min_rnr_timer = 1,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 1 } },
	};

	attr.ah_attr.grh.dgid = world->gid[0];
	for (int i = 0; i < 2; i++) {
		struct end *end = &clean->ends[i];
		int error;

		attr.qp_state = IBV_QPS_INIT;
		attr.dest_qp_num = clean->ends[!i].qp->qp_num;
		attr.sq_psn = psn[i];
		attr.rq_psn = psn[!i];
		error = ibv_modify_qp(end->qp, &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS);
		attr.qp_state = IBV_QPS_RTR;
		error |= ibv_modify_qp(end->qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
		attr.qp_state = IBV_QPS_RTS;
		error |= ibv_modify_qp(end->qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					       IBV_QP_MAX_QP_RD_ATOMIC);
		MUST(world, !error, "a clean pair cannot connect: %d", error);
	}
}

static void clean_open(struct world *world)
{
	struct clean *clean = calloc(1, sizeof(*clean));

	note(world, "open a clean pair");
	MUST(world, clean, "no memory");
	world->clean = clean;
	clean->context = ibv_open_device(world->device);
	MUST(world, clean->context, "open_device: %s", strerror(errno));
	clean->pd = ibv_alloc_pd(clean->context);
	clean->cq = ibv_create_cq(clean->context, 8 * SLOTS, NULL, NULL, 0);
	MUST(world, clean->pd && clean->cq, "a clean pair's domain: %s", strerror(errno));
	for (uint32_t i = 0; i < 2; i++) {
		struct end *end = &clean->ends[i];
		struct ibv_qp_init_attr attr = { .send_cq = clean->cq,
						 .recv_cq = clean->cq,
						 .cap = { SLOTS, SLOTS, 1, 1, 0 },
						 .qp_type = IBV_QPT_RC,
						 .sq_sig_all = 1 };

		end->memory = calloc(1, sizeof(*end->memory));
		MUST(world, end->memory, "no memory");
		for (uint32_t j = 0; j < SLOT_BYTES; j++)
			end->memory->stone[j] = pattern(i, 1000, j);
		end->mr = ibv_reg_mr(clean->pd, end->memory, sizeof(*end->memory), ACCESS);
		end->qp = ibv_create_qp(clean->pd, &attr);
		MUST(world, end->mr && end->qp, "an end of a clean pair: %s", strerror(errno));
	}
	connect(world, clean);
}

/* Posts a receive at the other end for the next SEND of this one. */
static void post_receive(struct world *world, struct end *end, struct end *other)
{
	uint8_t *slot = other->memory->received[end->sent % SLOTS];
	struct ibv_sge sge = { (uintptr_t)slot, SLOT_BYTES, other->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = UINT64_C(1) << 40 | end->sent,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;
	int error;

	memset(slot, UNTOUCHED, SLOT_BYTES);
	error = ibv_post_recv(other->qp, &wr, &bad);
	MUST(world, !error, "a clean receive is refused: %d", error);
}

static void post(struct world *world, struct clean *clean, uint32_t index)
{
	struct end *end = &clean->ends[index], *other = &clean->ends[!index];
	uint32_t number = end->posted, slot = number % SLOTS;
	struct request request = { .kind = below(world, KINDS),
				   .length = 1 + below(world, SLOT_BYTES) };
	struct ibv_sge sge = { .length = request.length, .lkey = end->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 }, *bad;
	int error;

	for (uint32_t i = 0; i < request.length; i++)
		end->memory->from[slot][i] = pattern(index, number, i);
	sge.addr = (uintptr_t)end->memory->from[slot];
	wr.wr.rdma.rkey = other->mr->rkey;
	if (request.kind == KIND_SEND) {
		wr.opcode = IBV_WR_SEND;
		post_receive(world, end, other);
		end->sends[end->sent++ % SLOTS] = number;
	} else if (request.kind == KIND_WRITE) {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = (uintptr_t)other->memory->written[slot];
		memset(other->memory->written[slot], UNTOUCHED, SLOT_BYTES);
	} else if (request.kind == KIND_READ) {
		wr.opcode = IBV_WR_RDMA_READ;
		wr.wr.rdma.remote_addr = (uintptr_t)other->memory->stone;
		sge.addr = (uintptr_t)end->memory->read[slot];
		memset(end->memory->read[slot], UNTOUCHED, SLOT_BYTES);
	} else {
		request.length = 8;
		sge.length = 8;
		sge.addr = (uintptr_t)end->memory->read[slot];
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)&other->memory->counter;
		wr.wr.atomic.rkey = other->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	}
	end->requests[slot] = request;
	end->posted++;
	error = ibv_post_send(end->qp, &wr, &bad);
	note(world, "clean request %u of end %u, kind %d, %u bytes", number, index, request.kind,
	     request.length);
	/* Also accepted in ERR: the helper thread may have noticed that the retries are used up. */
	MUST(world, !error, "a clean request is refused: %d", error);
}

static void check_request(struct world *world, struct clean *clean, uint32_t index, uint32_t number)
{
	struct end *end = &clean->ends[index], *other = &clean->ends[!index];
	uint32_t slot = number % SLOTS, length = end->requests[slot].length;
	const uint8_t *bytes = NULL;
	uint64_t value;

	switch (end->requests[slot].kind) {
	case KIND_WRITE:
		bytes = other->memory->written[slot];
		MUST(world, has_pattern(bytes, length, index, number),
		     "WRITE %u of end %u has brought other bytes", number, index);
		break;
	case KIND_READ:
		bytes = end->memory->read[slot];
		MUST(world, has_pattern(bytes, length, !index, 1000),
		     "READ %u of end %u has brought other bytes", number, index);
		break;
	case KIND_ADD:
		memcpy(&value, end->memory->read[slot], sizeof(value));
		MUST(world, value == end->added,
		     "FETCH_ADD %u of end %u gives %" PRIu64 " instead of %" PRIu64, number, index,
		     value, end->added);
		end->added++;
		break;
	default:
		break;
	}
	MUST(world, !bytes || is_untouched(bytes, length),
	     "request %u of end %u has written beyond its end", number, index);
}

static void check_receive(struct world *world, struct clean *clean, uint32_t index,
			  const struct ibv_wc *wc)
{
	/* The SEND is the other end's. */
	struct end *from = &clean->ends[!index];
	uint32_t number = (uint32_t)wc->wr_id, slot = number % SLOTS;
	uint32_t request = from->sends[slot];
	const uint8_t *bytes = clean->ends[index].memory->received[slot];

	MUST(world, number == from->received, "receive %u completes instead of %u", number,
	     from->received);
	from->received++;
	MUST(world, wc->byte_len == from->requests[request % SLOTS].length,
	     "SEND %u has brought %u bytes instead of %u", request, wc->byte_len,
	     from->requests[request % SLOTS].length);
	MUST(world, has_pattern(bytes, wc->byte_len, !index, request),
	     "SEND %u has brought other bytes", request);
	MUST(world, is_untouched(bytes, wc->byte_len), "SEND %u has written beyond its end",
	     request);
}

static void poll_clean(struct world *world, struct clean *clean)
{
	struct ibv_wc wc;
	int got;

	while ((got = ibv_poll_cq(clean->cq, 1, &wc)) == 1 && !clean->broken) {
		uint32_t index = wc.qp_num == clean->ends[1].qp->qp_num;
		struct end *end = &clean->ends[index];

		note(world, "  clean completion %" PRIx64 " of end %u: %s", wc.wr_id, index,
		     ibv_wc_status_str(wc.status));
		/* A busy host may be slower than all retries. */
		if (wc.status == IBV_WC_RETRY_EXC_ERR) {
			clean->broken = true;
			break;
		}
		MUST(world, wc.status == IBV_WC_SUCCESS, "a clean request fails: %s",
		     ibv_wc_status_str(wc.status));
		if (wc.wr_id >> 40) {
			check_receive(world, clean, index, &wc);
			continue;
		}
		MUST(world, wc.wr_id == end->completed, "request %u completes instead of %u",
		     (uint32_t)wc.wr_id, end->completed);
		check_request(world, clean, index, end->completed++);
	}
	MUST(world, got >= 0, "a clean completion queue fails");
}

/* Resets and reconnects both ends: no completion of an earlier request may come after a reset. */
static void reset(struct world *world, struct clean *clean)
{
	struct ibv_qp_attr attr = { .qp_state = chance(world, 50) ? IBV_QPS_ERR : IBV_QPS_RESET };
	struct ibv_wc wc;

	note(world, "reset a clean pair");
	for (int i = 0; i < 2; i++)
		MUST(world, !ibv_modify_qp(clean->ends[i].qp, &attr, IBV_QP_STATE),
		     "a clean pair cannot be moved");
	attr.qp_state = IBV_QPS_RESET;
	for (int i = 0; i < 2; i++) {
		struct end *end = &clean->ends[i], *other = &clean->ends[!i];

		MUST(world, !ibv_modify_qp(end->qp, &attr, IBV_QP_STATE),
		     "a clean pair cannot be reset");
		end->completed = end->posted;
		end->received = end->sent;
		/* It is not known how many FETCH_ADDs were executed. */
		end->added = other->memory->counter;
	}
	MUST(world, ibv_poll_cq(clean->cq, 1, &wc) == 0, "a completion is left after a reset");
	clean->broken = false;
	connect(world, clean);
}

void do_clean(struct world *world)
{
	struct clean *clean = world->clean;
	uint32_t index = below(world, 2);
	struct end *end;

	if (!world->gids)
		return;
	if (!clean) {
		clean_open(world);
		return;
	}
	poll_clean(world, clean);
	if (clean->broken || chance(world, 3)) {
		reset(world, clean);
		return;
	}
	end = &clean->ends[index];
	/* A slot is free only after the peer has received its SEND, too. */
	for (uint32_t count = below(world, 4); count > 0; count--)
		if (end->posted - end->completed < SLOTS && end->sent - end->received < SLOTS)
			post(world, clean, index);
}

void clean_close(struct world *world)
{
	struct clean *clean = world->clean;

	if (!clean)
		return;
	for (int i = 0; i < 2; i++) {
		struct end *end = &clean->ends[i];

		MUST(world, !ibv_destroy_qp(end->qp) && !ibv_dereg_mr(end->mr),
		     "a clean pair cannot be destroyed");
		free(end->memory);
	}
	MUST(world,
	     !ibv_destroy_cq(clean->cq) && !ibv_dealloc_pd(clean->pd) &&
		     !ibv_close_device(clean->context),
	     "a clean pair's domain cannot be destroyed");
	free(clean);
}
