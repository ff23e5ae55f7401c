/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A queue pair with rings and nothing else around it, for tests of the files inside the engine,
 * which may look at and set all of struct eng_qp.
 */
#ifndef UROCE_TESTS_UNIT_ENGINE_FIXTURE_H
#define UROCE_TESTS_UNIT_ENGINE_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "rand.h"
#include "engine/qp_priv.h"

struct engine_fixture {
	struct eng_qp *qp;
	struct eng_ring sq, rq;
	void *replay;
};

/* In RTS, with slots entries (a power of two) in each queue; share may be NULL.  Fails the test. */
void engine_fixture_open(struct engine_fixture *fixture, enum eng_qp_type type, uint32_t slots,
			 const struct eng_ops *ops, struct eng_inflight_budget *share);
void engine_fixture_close(struct engine_fixture *fixture);
/* Memory for depth READs and Atomics, which max_dest_rd_atomic then allows. */
void engine_fixture_set_replay(struct engine_fixture *fixture, uint32_t depth);

#endif
