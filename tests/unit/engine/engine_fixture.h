/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A queue pair with its rings and nothing else, for tests of the engine's internal files.  Tests
 * may read and set all fields of struct eng_qp.
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

/*
 * Opens a queue pair in RTS, with slots entries (a power of two) in each queue; share may be NULL.
 * Fails the test if there is no memory.
 */
void engine_fixture_open(struct engine_fixture *fixture, enum eng_qp_type type, uint32_t slots,
			 const struct eng_ops *ops, struct eng_inflight_budget *share);
void engine_fixture_close(struct engine_fixture *fixture);
/* Sets max_dest_rd_atomic to depth, with memory for this number of READs and Atomics. */
void engine_fixture_set_replay(struct engine_fixture *fixture, uint32_t depth);

#endif
