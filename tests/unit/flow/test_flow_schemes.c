// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Every scheme in every scenario, in virtual time: a scheme that makes a promise must keep it
 * exactly, and each negative control must fail as predicted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "world.h"

enum { SEEDS = 3 };

static struct world_result run(const char *scenario, const char *scheme, uint64_t seed)
{
	struct world_result result;

	assert_non_null(scenario_find(scenario));
	assert_non_null(scheme_find(scheme));
	world_run(scenario_find(scenario), scheme_find(scheme), seed, &result);
	return result;
}

/*
 * All schemes but the negative controls finish, and none of them sends more than the receiver has
 * posted, except as its flags allow.
 */
static void test_schemes_finish(void **state)
{
	struct world_result result;

	(void)state;
	for (const struct scenario *sc = scenarios; sc->name; sc++) {
		for (const struct scheme *const *s = schemes; *s; s++) {
			if (sc->only_control || (*s)->flags & SCHEME_CONTROL)
				continue;
			for (uint64_t seed = 1; seed <= SEEDS; seed++) {
				world_run(sc, *s, seed, &result);
				if (result.verdict != VERDICT_OK)
					print_error("%s, %s, seed %u: %s; %s; %s\n", sc->name,
						    (*s)->name, (unsigned int)seed,
						    flow_verdict_name(result.verdict),
						    result.what[0], result.what[1]);
				assert_int_equal(result.verdict, VERDICT_OK);
				if (!((*s)->flags & SCHEME_RNR_IS_PART)) {
					assert_int_equal(result.overruns, 0);
					if (!((*s)->flags & SCHEME_OVER_BY_ACK))
						assert_int_equal(result.rnr_naks, 0);
				}
			}
		}
	}
}

/* The same at depths that do not divide evenly, or are very small. */
static void test_depths(void **state)
{
	static const uint32_t depths[] = { 4, 5, 6, 7, 9, 13, 31, 64, 200 };
	struct world_result result;

	(void)state;
	for (unsigned int i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		for (const struct scheme *const *s = schemes; *s; s++) {
			struct scenario ways[] = { *scenario_find("one-way"),
						   *scenario_find("both-at-zero"),
						   *scenario_find("requests") };

			if ((*s)->flags & SCHEME_CONTROL)
				continue;
			for (unsigned int way = 0; way < 3; way++) {
				ways[way].depth = depths[i];
				ways[way].count[0] = 700;
				ways[way].count[1] = way == 1 ? 700 : 0;
				world_run(&ways[way], *s, 5, &result);
				if (result.verdict != VERDICT_OK)
					print_error("%s, %s, depth %u: %s; %s; %s\n",
						    ways[way].name, (*s)->name, depths[i],
						    flow_verdict_name(result.verdict),
						    result.what[0], result.what[1]);
				assert_int_equal(result.verdict, VERDICT_OK);
			}
		}
	}
}

static void test_controls_fail_as_predicted(void **state)
{
	(void)state;
	for (const struct flow_control_pair *pair = control_pairs; pair->scenario; pair++) {
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct world_result result = run(pair->scenario, pair->scheme, seed);

			if (result.verdict != pair->predicted)
				print_error("%s, %s: %s instead of %s\n", pair->scenario,
					    pair->scheme, flow_verdict_name(result.verdict),
					    flow_verdict_name(pair->predicted));
			assert_int_equal(result.verdict, pair->predicted);
		}
	}
}

/*
 * Each of the eight scenarios has a negative control.  Three further scenarios exist only for their
 * controls; two of them stand for scenarios that have no control of their own.
 */
static void test_each_scenario_has_a_control(void **state)
{
	static const char *const stand_in[][2] = { { "shared-queue", "shared-promise" },
						   { "loss", "datagram-loss" } };

	(void)state;
	for (const struct scenario *sc = scenarios; sc->name; sc++) {
		bool found = false;

		for (const struct flow_control_pair *p = control_pairs; p->scenario; p++) {
			found |= !strcmp(p->scenario, sc->name);
			for (unsigned int i = 0; i < 2; i++)
				found |= !strcmp(sc->name, stand_in[i][0]) &&
					 !strcmp(p->scenario, stand_in[i][1]);
		}
		if (!found)
			print_error("%s\n", sc->name);
		assert_true(found);
	}
}

/* Comparisons of schemes that the documentation makes */
static void test_claims(void **state)
{
	struct world_result rnr = run("one-way", "rnr", 1), rds = run("one-way", "rds", 1);
	struct world_result low = run("one-way", "rds-lowwater", 1);
	struct scenario fast = *scenario_find("one-way");
	struct world_result fast_rds, fast_low;

	(void)state;
	assert_true(rnr.rnr_naks > 100);
	assert_true(rnr.ns > low.ns);
	assert_true(low.controls < rds.controls);
	fast.service_ns[1] = 0;
	world_run(&fast, scheme_find("rds"), 1, &fast_rds);
	world_run(&fast, scheme_find("rds-lowwater"), 1, &fast_low);
	assert_true(fast_low.controls < fast_rds.controls);
	assert_true(run("one-way", "nccl", 1).controls >= 2000);
	assert_int_equal(run("requests", "o2iblnd-v2", 1).controls, 0);
}

/* The same seed gives the same run. */
static void test_seeds_decide(void **state)
{
	struct world_result a = run("mixed", "smbd", 7), b = run("mixed", "smbd", 7);

	(void)state;
	assert_int_equal(a.ns, b.ns);
	assert_int_equal(a.controls, b.controls);
	assert_true(run("mixed", "smbd", 8).ns != a.ns);
}

/* Counts that wrap are compared rightly: the fault of the first window. */
static void test_counts_wrap(void **state)
{
	struct scheme_state s;

	(void)state;
	scheme_begin(&s, &scheme_rds_lowwater, 8);
	s.limit = 3;
	s.sent = UINT32_MAX - 1;
	assert_int_equal(absolute_allowance(&s), 5);
	assert_true(scheme_rds_lowwater.may_send(&s, FLOW_DATA));
	assert_false(absolute_on_receive(&s, UINT32_MAX));
	assert_int_equal(s.limit, 3);
	assert_true(absolute_on_receive(&s, 5));
	scheme_begin(&s, &scheme_rsockets, 8);
	s.limit = s.sent = 65534;
	scheme_rsockets.on_receive(&s, FLOW_CONTROL, &(struct flow_update){ .count = 2 });
	assert_int_equal(s.limit, 65538);
	assert_true(scheme_rsockets.may_send(&s, FLOW_DATA));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schemes_finish),
		cmocka_unit_test(test_depths),
		cmocka_unit_test(test_controls_fail_as_predicted),
		cmocka_unit_test(test_each_scenario_has_a_control),
		cmocka_unit_test(test_claims),
		cmocka_unit_test(test_seeds_decide),
		cmocka_unit_test(test_counts_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
