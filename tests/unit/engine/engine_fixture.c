/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine_fixture.h"

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

void engine_fixture_open(struct engine_fixture *fixture, enum eng_qp_type type, uint32_t slots,
			 const struct eng_ops *ops, struct eng_inflight_budget *share)
{
	struct eng_qp_init init = {
		.type = type,
		.ops = ops,
		.sq = &fixture->sq,
		.rq = &fixture->rq,
		.max_recv_sge = MAX_SGE,
		.inflight_budget = share,
	};

	open_ring(&fixture->sq, eng_send_slot_bytes(MAX_SGE, 0), slots);
	open_ring(&fixture->rq, eng_recv_slot_bytes(MAX_SGE), slots);
	fixture->replay = NULL;
	fixture->qp = aligned_alloc(64, eng_qp_bytes(MAX_SGE));
	assert_non_null(fixture->qp);
	eng_qp_init(fixture->qp, &init);
	fixture->qp->attr.mtu = MTU;
	fixture->qp->attr.retry_count = 7;
	fixture->qp->state = ENG_RTS;
}

void engine_fixture_close(struct engine_fixture *fixture)
{
	free(fixture->qp);
	free(fixture->sq.slots);
	free(fixture->rq.slots);
	free(fixture->replay);
}

void engine_fixture_set_replay(struct engine_fixture *fixture, uint32_t depth)
{
	void *memory = malloc(eng_resp_res_bytes(depth));

	assert_non_null(memory);
	free(eng_set_resp_res(fixture->qp, memory, depth));
	fixture->replay = memory;
	fixture->qp->attr.max_dest_rd_atomic = (uint8_t)depth;
}
