/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A queue pair with rings and nothing else around it, for tests of the files inside the engine,
 * which may look at and set all of struct eng_qp.
 */
#ifndef UROCE_TESTS_UNIT_ENGINE_BOX_H
#define UROCE_TESTS_UNIT_ENGINE_BOX_H

#include <stdbool.h>
#include <stdint.h>

#include "draw.h"
#include "engine/qp_priv.h"

struct engine_box {
	struct eng_qp *qp;
	struct eng_ring sq, rq;
	void *replay;
};

/* In RTS, with slots entries (a power of two) in each queue; share may be NULL.  Fails the test. */
void engine_box_open(struct engine_box *box, enum eng_qp_type type, uint32_t slots,
		     const struct eng_ops *ops, struct eng_inflight_budget *share);
void engine_box_close(struct engine_box *box);
/* Memory for depth READs and Atomics, which max_dest_rd_atomic then allows. */
void engine_box_set_replay(struct engine_box *box, uint32_t depth);

#endif
