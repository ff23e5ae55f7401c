/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Length of the Local ACK Timeout, and restored retries */
#include "dut.h"

#define CODE_14_NS (UINT64_C(4096) << 14)

static void expect_timeout_after(const struct dut *dut, uint64_t ns)
{
	assert_false(eng_times_out(dut->qp, dut->now + ns - 1));
	assert_true(eng_times_out(dut->qp, dut->now + ns));
}

/*
 * After two timeouts the next ones are longer, for a peer that waits for a CPU, but not extended
 * beyond 268 ms (code 16).
 */
static void test_longer_timeouts(void **state)
{
	static const uint32_t codes[][2] = { { 8, 10 },	 { 13, 15 }, { 14, 16 }, { 15, 16 },
					     { 16, 16 }, { 17, 17 }, { 31, 31 } };

	(void)state;
	/* rule S10 test */
	for (unsigned int i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct dut *dut = dut_unlimited((struct dut_config){ .timeout_code = codes[i][0] });
		uint64_t ns = UINT64_C(4096) << codes[i][0];

		dut_post(dut, ENG_SEND, 8, 0);
		dut_advance(dut, 0);
		for (uint32_t retries = 0; retries < 7; retries++) {
			if (retries == 2)
				ns = UINT64_C(4096) << codes[i][1];
			expect_timeout_after(dut, ns);
			dut_advance(dut, ns);
		}
		assert_int_equal(dut_info(dut).retries_left, 0);
		dut_ack(dut, DUT_SQ_PSN, NO_CREDITS_REPORTED, 1);
		dut_post(dut, ENG_SEND, 8, 0);
		dut_advance(dut, 0);
		expect_timeout_after(dut, UINT64_C(4096) << codes[i][0]);
		dut_teardown(NULL);
	}
}

/* Timeout code 0: there is no timeout. */
static void test_no_timeout(void **state)
{
	struct dut *dut = dut_unlimited((struct dut_config){ .timeout_code = DUT_NO_TIMEOUT });

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, 0);
	dut_forget(dut);
	assert_true(eng_deadline(dut->qp) == ENG_NEVER);
	dut_advance(dut, 1000000 * MS);
	expect_silence(dut);
	expect_no_wc(dut);
}

/* Every code is 4.096 us x 2^n. */
static void test_timeout_codes(void **state)
{
	(void)state;
	/* rule S10 test */
	for (uint32_t code = 1; code < 32; code++) {
		struct dut *dut = dut_unlimited((struct dut_config){ .timeout_code = code });

		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
		dut_forget(dut);
		assert_true(eng_deadline(dut->qp) == dut->now + (UINT64_C(4096) << code));
		dut_teardown(NULL);
	}
}

/*
 * While packets are lost inside the host, retries can be restored for 10 s after the first timeout;
 * after that all of them are counted.  With code 14 the first two timeouts take 67 ms, the others
 * 268 ms: the last restored one is number 38, and the last retry expires 8 timeouts later.
 */
static void test_restored_retries(void **state)
{
	struct dut *dut =
		dut_unlimited((struct dut_config){ .timeout_code = 14, .retry_count = 7 });
	uint32_t timeouts = 0;
	uint64_t start;

	(void)state;
	/* rule S10 test */
	dut_post(dut, ENG_SEND, 8, 0);
	dut_advance(dut, 0);
	start = dut->now;
	while (dut->wc_count == 0) {
		assert_true(timeouts < 100);
		eng_restore_retries(dut->qp, dut->now + (timeouts < 2 ? 1 : 4) * CODE_14_NS);
		dut_advance(dut, (timeouts < 2 ? 1 : 4) * CODE_14_NS);
		timeouts++;
	}
	assert_int_equal(timeouts, 38 + 8);
	assert_true(dut->now - start == (2 + 4 * (38 + 6)) * CODE_14_NS);
	expect_wc(dut, 0x1000, ENG_RETRY_EXC_ERR);
}

/* Progress restarts the 10 s. */
static void test_restored_after_progress(void **state)
{
	struct dut *dut =
		dut_unlimited((struct dut_config){ .timeout_code = 14, .retry_count = 1 });

	(void)state;
	/* rule S10 test */
	for (uint32_t i = 0; i < 3; i++) {
		dut_post(dut, ENG_SEND, 8, ENG_SIGNALED);
		dut_advance(dut, 0);
		for (uint32_t timeouts = 0; timeouts < 30; timeouts++) {
			eng_restore_retries(dut->qp, dut->now);
			dut_advance_to_deadline(dut);
		}
		dut_ack(dut, DUT_SQ_PSN + i, NO_CREDITS_REPORTED, i + 1);
		expect_wc(dut, 0x1000 + i, ENG_SUCCESS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DUT_TEST(test_longer_timeouts),		DUT_TEST(test_no_timeout),
		DUT_TEST(test_timeout_codes),		DUT_TEST(test_restored_retries),
		DUT_TEST(test_restored_after_progress),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
