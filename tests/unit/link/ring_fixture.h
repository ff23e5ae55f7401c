/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A ring of shared memory for tests, with pages around its head and around its data that must not
 * be touched.
 */
#ifndef UROCE_TESTS_RING_FIXTURE_H
#define UROCE_TESTS_RING_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rand.h"
#include "link/link.h"
#include "link/shm/ring.h"

enum {
	ROOM = UROCE_ABI_RING_BYTES,
	UNIT = UROCE_ABI_RING_ALIGN,
	HEAD = 16, /* size of a frame's header */
	/* Each frame is a window into these random bytes. */
	NOISE_BYTES = 2 * 65536,
};

extern uint8_t ring_noise[NOISE_BYTES];

struct ring_fixture {
	uint8_t *mapping;
	size_t page;
	struct uroce_abi_ring *shared;
	uint8_t *data;
	struct link_ring_writer writer;
	struct link_ring_reader reader;
};

int ring_set_up(void **state);
int ring_tear_down(void **state);

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, ring_set_up, ring_tear_down)

#endif
