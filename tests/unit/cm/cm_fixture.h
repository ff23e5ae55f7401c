/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * For test programs in which every test starts with a new pair (cm_pair.h): the pair, its two
 * managers, and a macro that lists a test.  To be included after cmocka.h.
 */
#ifndef UROCE_TESTS_UNIT_CM_FIXTURE_H
#define UROCE_TESTS_UNIT_CM_FIXTURE_H

#include "cm_pair.h"

static struct pair *pair;
static struct cm *cm[2];

static int set_up(void **state)
{
	(void)state;
	pair = pair_new();
	cm[0] = pair->side[0].cm;
	cm[1] = pair->side[1].cm;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pair_free(pair);
	return 0;
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
