/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine_box.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	MAX_SGE = 4,
	MTU = 1024,
};

static void open_ring(struct eng_ring *ring, uint32_t slot_bytes, uint32_t slots)
{
	void *memory = calloc(slots, slot_bytes);

	assert_non_null(memory);
	eng_ring_init(ring, memory, slot_bytes, slots, slots);
}

void engine_box_open(struct engine_box *box, enum eng_qp_type type, uint32_t slots,
		     const struct eng_ops *ops, struct eng_inflight_budget *share)
{
	struct eng_qp_init init = {
		.type = type,
		.ops = ops,
		.sq = &box->sq,
		.rq = &box->rq,
		.max_recv_sge = MAX_SGE,
		.inflight_budget = share,
	};

	open_ring(&box->sq, eng_send_slot_bytes(MAX_SGE, 0), slots);
	open_ring(&box->rq, eng_recv_slot_bytes(MAX_SGE), slots);
	box->replay = NULL;
	box->qp = aligned_alloc(64, eng_qp_bytes(MAX_SGE));
	assert_non_null(box->qp);
	eng_qp_init(box->qp, &init);
	box->qp->attr.mtu = MTU;
	box->qp->attr.retry_count = 7;
	box->qp->state = ENG_RTS;
}

void engine_box_close(struct engine_box *box)
{
	free(box->qp);
	free(box->sq.slots);
	free(box->rq.slots);
	free(box->replay);
}

void engine_box_set_replay(struct engine_box *box, uint32_t depth)
{
	void *memory = malloc(eng_resp_res_bytes(depth));

	assert_non_null(memory);
	free(eng_set_resp_res(box->qp, memory, depth));
	box->replay = memory;
	box->qp->attr.max_dest_rd_atomic = (uint8_t)depth;
}
