/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* UROCE_FAULT: accepted values, refused values with their errors, and the effects on packets. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "progress/fault/fault_inject.h"
#include "wire/packet.h"

static char error[PROGRESS_ERROR_TEXT];

/* Every error names the part and the reason, and the configuration is unchanged. */
static void test_refused(void **state)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{ "drop=2", "UROCE_FAULT: drop=2: probability must be 0..1" },
		{ "drop=1.0001", "UROCE_FAULT: drop=1.0001: probability must be 0..1" },
		{ "drop=-0.1", "UROCE_FAULT: drop=-0.1: probability must be 0..1" },
		{ "drop=+0.1", "UROCE_FAULT: drop=+0.1: probability must be 0..1" },
		{ "drop= 0.1", "UROCE_FAULT: drop= 0.1: probability must be 0..1" },
		{ "drop=nan", "UROCE_FAULT: drop=nan: probability must be 0..1" },
		{ "drop=inf", "UROCE_FAULT: drop=inf: probability must be 0..1" },
		{ "drop=0x1", "UROCE_FAULT: drop=0x1: probability must be 0..1" },
		{ "drop=1e-3", "UROCE_FAULT: drop=1e-3: probability must be 0..1" },
		{ "drop=.", "UROCE_FAULT: drop=.: probability must be 0..1" },
		{ "drop=0.1.2", "UROCE_FAULT: drop=0.1.2: probability must be 0..1" },
		{ "drop=0.5x", "UROCE_FAULT: drop=0.5x: probability must be 0..1" },
		{ "drop=", "UROCE_FAULT: drop=: probability must be 0..1" },
		{ "drop=0.0000000000000000000000001",
		  "UROCE_FAULT: drop=0.0000000000000000000000001: probability must be 0..1" },
		{ "dup=3", "UROCE_FAULT: dup=3: probability must be 0..1" },
		{ "reorder=a", "UROCE_FAULT: reorder=a: probability must be 0..1" },
		{ "corrupt=10%", "UROCE_FAULT: corrupt=10%: probability must be 0..1" },
		{ "delay=200", "UROCE_FAULT: delay=200: unit must be ns, us, ms or s" },
		{ "delay=200m", "UROCE_FAULT: delay=200m: unit must be ns, us, ms or s" },
		{ "delay=200 us", "UROCE_FAULT: delay=200 us: unit must be ns, us, ms or s" },
		{ "delay=-1us", "UROCE_FAULT: delay=-1us: delay must be a number with its unit: "
				"ns, us, ms or s" },
		{ "delay=us",
		  "UROCE_FAULT: delay=us: delay must be a number with its unit: ns, us, ms or s" },
		{ "delay=11s", "UROCE_FAULT: delay=11s: delay must be at most 10s" },
		{ "seed=", "UROCE_FAULT: seed=: seed must be an integer below 2^64" },
		{ "seed=-1", "UROCE_FAULT: seed=-1: seed must be an integer below 2^64" },
		{ "seed=1.5", "UROCE_FAULT: seed=1.5: seed must be an integer below 2^64" },
		{ "seed=18446744073709551616", "UROCE_FAULT: seed=18446744073709551616: seed must "
					       "be an integer below 2^64" },
		{ "loss=0.1", "UROCE_FAULT: loss=0.1: unknown name, known are drop, dup, reorder, "
			      "corrupt, delay and seed" },
		{ "DROP=0.1", "UROCE_FAULT: DROP=0.1: unknown name, known are drop, dup, reorder, "
			      "corrupt, delay and seed" },
		{ "=0.1", "UROCE_FAULT: =0.1: unknown name, known are drop, dup, reorder, corrupt, "
			  "delay and seed" },
		{ "drop", "UROCE_FAULT: drop: '=' and a value are missing" },
		{ "drop=0.1,drop=0.2", "UROCE_FAULT: drop=0.2: given twice" },
		{ "seed=1,drop=0.1,seed=1", "UROCE_FAULT: seed=1: given twice" },
		{ "", "UROCE_FAULT: : a part is empty" },
		{ ",", "UROCE_FAULT: ,: a part is empty" },
		{ "drop=0.1,", "UROCE_FAULT: drop=0.1,: a part is empty" },
		{ ",drop=0.1", "UROCE_FAULT: ,drop=0.1: a part is empty" },
		{ "drop=0.1,,seed=1", "UROCE_FAULT: drop=0.1,,seed=1: a part is empty" },
		{ "drop=0.1;seed=1", "UROCE_FAULT: drop=0.1;seed=1: probability must be 0..1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct fault_config config = { .seed = 4711 };

		error[0] = '\0';
		assert_int_equal(fault_parse(wrong[i].text, &config, error), -EINVAL);
		assert_string_equal(error, wrong[i].error);
		assert_int_equal(config.seed, 4711);
	}
}

/* The error for a part of any length fits into its buffer. */
static void test_long_part(void **state)
{
	char text[2000];
	struct fault_config config;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(fault_parse(text, &config, error), -EINVAL);
	assert_true(strlen(error) < PROGRESS_ERROR_TEXT);
	assert_non_null(strstr(error, "x...: unknown name"));
}

static void test_accepted(void **state)
{
	struct fault_config config;

	(void)state;
	assert_int_equal(fault_parse("drop=0.02,dup=0.01,reorder=0.03,corrupt=1,delay=200us,seed=7",
				     &config, error),
			 0);
	assert_true(config.drop == 0.02 && config.duplicate == 0.01 && config.reorder == 0.03 &&
		    config.corrupt == 1);
	assert_int_equal(config.delay_ns, 200000);
	assert_int_equal(config.seed, 7);

	assert_int_equal(fault_parse("drop=.5", &config, error), 0);
	assert_true(config.drop == 0.5 && config.duplicate == 0 && config.delay_ns == 0);
	assert_int_equal(fault_parse("drop=1.,dup=0", &config, error), 0);
	assert_true(config.drop == 1);
	assert_int_equal(fault_parse("seed=18446744073709551615", &config, error), 0);
	assert_true(config.seed == UINT64_MAX);
	assert_int_equal(fault_parse("delay=1.5ms", &config, error), 0);
	assert_int_equal(config.delay_ns, 1500000);
	assert_int_equal(fault_parse("delay=10s", &config, error), 0);
	assert_int_equal(config.delay_ns, FAULT_MAX_DELAY_NS);
	assert_int_equal(fault_parse("delay=7ns", &config, error), 0);
	assert_int_equal(config.delay_ns, 7);
}

/* The faults of the n-th packet depend on seed and n only, and differ with another seed. */
static void test_deterministic(void **state)
{
	struct fault_config a = {
		.drop = 0.2, .duplicate = 0.2, .reorder = 0.2, .corrupt = 0.2, .seed = 1
	};
	struct fault_config b = a;
	int different = 0;

	(void)state;
	b.seed = 2;
	for (uint64_t n = 0; n < 1000; n++) {
		struct fault_action first = fault_action(&a, n), again = fault_action(&a, n);
		struct fault_action other = fault_action(&b, n);

		assert_int_equal(first.dropped, again.dropped);
		assert_int_equal(first.duplicated, again.duplicated);
		assert_int_equal(first.corrupted, again.corrupted);
		assert_int_equal(first.hold_packets, again.hold_packets);
		assert_int_equal(first.random, again.random);
		different += first.dropped != other.dropped;
	}
	/* Two independent events of probability 0.2 differ with probability 0.32. */
	assert_uint_in_range(different, 250, 390);
}

/* Each fault occurs at its configured rate, independently of the others, with any seed. */
static void test_rates(void **state)
{
	enum { PACKETS = 200000 };

	(void)state;
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct fault_config config = { .drop = 0.02,
					       .duplicate = 0.01,
					       .reorder = 0.05,
					       .corrupt = 0.1,
					       .seed = seed };
		int dropped = 0, duplicated = 0, corrupted = 0, hold_packets[4] = { 0 }, both = 0;

		for (uint64_t n = 0; n < PACKETS; n++) {
			struct fault_action action = fault_action(&config, n);

			assert_true(action.hold_packets <= 3);
			dropped += action.dropped;
			duplicated += action.duplicated;
			corrupted += action.corrupted;
			both += action.corrupted && action.hold_packets;
			hold_packets[action.hold_packets]++;
		}
		/* Five standard deviations. */
		assert_uint_in_range(dropped, 4000 - 315, 4000 + 315);
		assert_uint_in_range(duplicated, 1960 - 225, 1960 + 225);
		assert_uint_in_range(corrupted, 19600 - 670, 19600 + 670);
		assert_uint_in_range(both, 980 - 160, 980 + 160);
		for (int i = 1; i <= 3; i++)
			assert_uint_in_range(hold_packets[i], 3267 - 290, 3267 + 290);
	}
}

/* A fault of probability 1 always occurs, and one that is not configured never does. */
static void test_extremes(void **state)
{
	struct fault_config none = { .seed = 3 },
			    all = { .duplicate = 1, .reorder = 1, .corrupt = 1 };

	(void)state;
	for (uint64_t n = 0; n < 10000; n++) {
		struct fault_action nothing = fault_action(&none, n),
				    everything = fault_action(&all, n);

		assert_false(nothing.dropped || nothing.duplicated || nothing.corrupted ||
			     nothing.hold_packets);
		assert_true(everything.duplicated && everything.corrupted &&
			    everything.hold_packets);
	}
}

/* ---- packets ---- */

enum {
	PACKET_BYTES = 32,
	MAX_SENT = 4096,
};

static uint8_t sent[MAX_SENT][PACKET_BYTES];
static struct link_peer *sent_to[MAX_SENT];
static uint16_t place_of[MAX_SENT]; /* index in its call, which is its IPv4 identification */
static unsigned int sent_count, calls;
static unsigned int counted[PROGRESS_COUNTER_COUNT];

enum {
	QPN = 0x40123,
};

static const struct eng_path path = {
	.wire = { .src = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 },
		  .dst = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 },
		  .src_port = 50000 },
};

static bool corrupted[MAX_SENT];
static unsigned int lost;

static void record(void *arg, const struct fault_path *by, const struct iovec *pieces,
		   unsigned int count, unsigned int segment)
{
	static uint8_t bytes[128 * PACKET_BYTES];
	size_t length = 0;

	(void)arg;
	calls++;
	assert_true(count > 0);
	for (unsigned int i = 0; i < count; i++) {
		assert_true(pieces[i].iov_len > 0 && length + pieces[i].iov_len <= sizeof(bytes));
		memcpy(bytes + length, pieces[i].iov_base, pieces[i].iov_len);
		length += pieces[i].iov_len;
	}
	assert_true(length > 0 && length % PACKET_BYTES == 0);
	assert_int_equal(segment, length > PACKET_BYTES ? PACKET_BYTES : 0);
	for (size_t i = 0; i < length / PACKET_BYTES; i++) {
		assert_true(sent_count < MAX_SENT);
		sent_to[sent_count] = by->peer;
		assert_int_equal(by->qpn, QPN);
		corrupted[sent_count] = by->corrupted;
		place_of[sent_count] = (uint16_t)i;
		memcpy(sent[sent_count++], bytes + i * PACKET_BYTES, PACKET_BYTES);
	}
}

/* A dropped packet is reported with the ICRC that it would have if sent alone. */
static void record_lost(void *arg, const struct fault_path *by, const uint8_t *bytes,
			uint32_t length)
{
	uint16_t ip_id = 0;

	(void)arg;
	assert_int_equal(by->qpn, QPN);
	assert_int_equal(length, PACKET_BYTES);
	if (!by->corrupted)
		assert_int_equal(wire_icrc_check(&path.wire, &ip_id, bytes, length), WIRE_ICRC_OK);
	lost++;
}

static void record_count(void *arg, enum progress_counter counter)
{
	(void)arg;
	counted[counter]++;
}

static struct link_peer *peer_number(unsigned int n)
{
	static uint8_t place[4];

	return (struct link_peer *)(void *)&place[n];
}

static struct fault_injector *open_injector(const char *text)
{
	static const struct fault_sink sink = { record, record_lost, record_count, NULL };
	struct fault_config config;
	struct fault_injector *injector;

	sent_count = 0;
	lost = 0;
	calls = 0;
	memset(counted, 0, sizeof(counted));
	assert_int_equal(fault_parse(text, &config, error), 0);
	assert_int_equal(fault_open(&injector, &config, &sink), 0);
	return injector;
}

/*
 * Sends a burst of packets numbered from first, with the ICRCs of their places in the burst, in
 * pieces of odd lengths.
 */
static void send_burst(struct fault_injector *injector, struct link_peer *peer, uint32_t first,
		       uint32_t packets, uint64_t now)
{
	static uint8_t bytes[128 * PACKET_BYTES];
	struct eng_piece pieces[3];
	struct eng_burst burst = { .pieces = pieces,
				   .path = &path,
				   .packets = packets,
				   .segment = PACKET_BYTES,
				   .bytes = packets * PACKET_BYTES,
				   .piece_count = 3 };

	memset(bytes, 0, sizeof(bytes));
	for (uint32_t i = 0; i < packets; i++) {
		uint8_t *packet = bytes + i * PACKET_BYTES;

		packet[16] = (uint8_t)((first + i) >> 8);
		packet[17] = (uint8_t)(first + i);
		wire_icrc_put(&path.wire, (uint16_t)i, packet, PACKET_BYTES);
	}
	pieces[0] = (struct eng_piece){ bytes, 5 };
	pieces[1] = (struct eng_piece){ bytes + 5, burst.bytes - 20 };
	pieces[2] = (struct eng_piece){ bytes + burst.bytes - 15, 15 };
	fault_send(injector, peer, QPN, &burst, now);
}

static unsigned int number_of(unsigned int place)
{
	return (unsigned int)sent[place][16] << 8 | sent[place][17];
}

static bool icrc_is_right(unsigned int place)
{
	uint16_t ip_id = place_of[place];

	return wire_icrc_check(&path.wire, &ip_id, sent[place], PACKET_BYTES) == WIRE_ICRC_OK;
}

/* Without faults a burst is sent in one call, unchanged. */
static void test_passes_through(void **state)
{
	struct fault_injector *injector = open_injector("seed=1");

	(void)state;
	send_burst(injector, peer_number(1), 0, 100, 0);
	assert_int_equal(sent_count, 100);
	assert_int_equal(calls, 1);
	for (unsigned int i = 0; i < 100; i++) {
		assert_int_equal(number_of(i), i);
		assert_ptr_equal(sent_to[i], peer_number(1));
		assert_true(icrc_is_right(i));
	}
	assert_int_equal(fault_deadline(injector), ENG_NEVER);
	fault_close(injector);
}

/* rule S14 test: a corrupted packet differs in one byte, so that its ICRC is wrong. */
static void test_corrupts(void **state)
{
	struct fault_injector *injector = open_injector("corrupt=1,seed=5");
	uint8_t right[100][PACKET_BYTES];

	(void)state;
	send_burst(injector, peer_number(1), 0, 100, 0);
	assert_int_equal(sent_count, 100);
	assert_int_equal(counted[PROGRESS_COUNT_FAULT_CORRUPTED], 100);
	for (unsigned int i = 0; i < sent_count; i++)
		assert_true(corrupted[i]);
	for (unsigned int i = 0; i < 100; i++) {
		int different = 0;

		memset(right[i], 0, PACKET_BYTES);
		right[i][17] = (uint8_t)i;
		wire_icrc_put(&path.wire, 0, right[i], PACKET_BYTES);
		for (unsigned int k = 0; k < PACKET_BYTES; k++)
			different += right[i][k] != sent[i][k];
		assert_int_equal(different, 1);
	}
	fault_close(injector);
}

/* The number of sent packets is that of all packets, less the drops, plus the duplicates. */
static void test_drops_and_duplicates(void **state)
{
	struct fault_injector *injector = open_injector("drop=0.3,dup=0.2,seed=9");
	unsigned int dropped, duplicated;

	(void)state;
	for (uint32_t i = 0; i < 1000; i += 100)
		send_burst(injector, peer_number(1), i, 100, 0);
	dropped = counted[PROGRESS_COUNT_FAULT_DROPPED];
	assert_int_equal(lost, dropped);
	duplicated = counted[PROGRESS_COUNT_FAULT_DUPLICATED];
	assert_uint_in_range(dropped, 230, 370);
	assert_uint_in_range(duplicated, 80, 200);
	assert_int_equal(sent_count, 1000 - dropped + duplicated);
	fault_close(injector);
}

/*
 * A drop splits the burst in two, and both copies of a duplicated packet are sent individually; all
 * others are sent with their neighbors.
 */
static void test_splits_bursts(void **state)
{
	struct fault_injector *injector = open_injector("drop=0.02,dup=0.01,seed=3");
	struct fault_config config;
	unsigned int expected_calls = 0, k = 0;
	bool together = false;

	(void)state;
	assert_int_equal(fault_parse("drop=0.02,dup=0.01,seed=3", &config, error), 0);
	for (uint32_t i = 0; i < 2000; i += 100)
		send_burst(injector, peer_number(1), i, 100, 0);
	for (unsigned int n = 0; n < 2000; n++) {
		struct fault_action action = fault_action(&config, n);

		together = together && n % 100 > 0 && !action.dropped && !action.duplicated;
		expected_calls += action.dropped ? 0 : action.duplicated ? 2 : !together;
		for (int copies = action.dropped ? 0 : 1 + action.duplicated; copies > 0;
		     copies--) {
			assert_int_equal(number_of(k), n);
			assert_int_equal(place_of[k] > 0, together);
			assert_true(icrc_is_right(k));
			k++;
		}
		together = !action.dropped && !action.duplicated;
	}
	assert_int_equal(sent_count, k);
	assert_int_equal(calls, expected_calls);
	assert_uint_in_range(calls, 60, 160);
	fault_close(injector);
}

/* The same packets have the same faults in the same order, however they are divided into bursts. */
static void test_bursts_change_nothing(void **state)
{
	enum { PACKETS = 1000 };
	static const char *const faults = "drop=0.02,dup=0.02,reorder=0.03,corrupt=0.02,seed=11";
	static unsigned int number[MAX_SENT];
	static bool right[MAX_SENT];
	unsigned int count = 0;

	(void)state;
	for (uint32_t packets = 1; packets <= 125; packets *= 5) {
		struct fault_injector *injector = open_injector(faults);

		for (uint32_t i = 0; i < PACKETS; i += packets)
			send_burst(injector, peer_number(1), i, packets, 0);
		fault_release(injector, FAULT_HOLD_NS);
		fault_close(injector);
		if (packets == 1) {
			count = sent_count;
			assert_uint_in_range(count, 900, 1100);
		}
		assert_int_equal(sent_count, count);
		for (unsigned int i = 0; i < count; i++) {
			if (packets == 1) {
				number[i] = number_of(i);
				right[i] = icrc_is_right(i);
			}
			assert_int_equal(icrc_is_right(i), right[i]);
			/* In a corrupted packet the number itself may be wrong. */
			if (right[i])
				assert_int_equal(number_of(i), number[i]);
		}
		assert_true(packets == 1 || calls < count / 2);
	}
}

/* Reordered packets are sent 1 to 3 places later; all are sent, none twice. */
static void test_reorders(void **state)
{
	struct fault_injector *injector = open_injector("reorder=0.1,seed=2");
	bool seen[1000] = { false };
	unsigned int early = 0;

	(void)state;
	for (uint32_t i = 0; i < 1000; i += 50)
		send_burst(injector, peer_number(1), i, 50, 0);
	fault_release(injector, FAULT_HOLD_NS);
	assert_int_equal(sent_count, 1000);
	for (unsigned int i = 0; i < 1000; i++) {
		unsigned int n = number_of(i);

		assert_false(seen[n]);
		seen[n] = true;
		/* Other held packets may be sent in between as well. */
		assert_uint_in_range(n + 10, i, i + 20);
		early += n > i;
	}
	assert_true(early > 50);
	assert_uint_in_range(counted[PROGRESS_COUNT_FAULT_REORDERED], 60, 140);
	fault_close(injector);
}

/* A reordered packet that no other follows is held for at most FAULT_HOLD_NS. */
static void test_hold_ends(void **state)
{
	struct fault_injector *injector = open_injector("reorder=1");

	(void)state;
	send_burst(injector, peer_number(1), 0, 1, 5000);
	assert_int_equal(sent_count, 0);
	assert_int_equal(fault_deadline(injector), 5000 + FAULT_HOLD_NS);
	assert_false(fault_release(injector, 4999 + FAULT_HOLD_NS));
	assert_true(fault_release(injector, 5000 + FAULT_HOLD_NS));
	assert_int_equal(sent_count, 1);
	assert_int_equal(fault_deadline(injector), ENG_NEVER);
	fault_close(injector);
}

/* Every packet waits for the delay, not shorter, and the order is kept. */
static void test_delays(void **state)
{
	struct fault_injector *injector = open_injector("delay=200us");

	(void)state;
	send_burst(injector, peer_number(1), 0, 10, 1000);
	send_burst(injector, peer_number(1), 10, 10, 51000);
	assert_int_equal(sent_count, 0);
	assert_int_equal(fault_deadline(injector), 201000);
	assert_false(fault_release(injector, 200999));
	assert_true(fault_release(injector, 201000));
	assert_int_equal(sent_count, 10);
	assert_int_equal(fault_deadline(injector), 251000);
	assert_true(fault_release(injector, 300000));
	assert_int_equal(sent_count, 20);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(number_of(i), i);
	assert_int_equal(fault_deadline(injector), ENG_NEVER);
	assert_int_equal(counted[PROGRESS_COUNT_FAULT_DELAYED], 20);
	assert_int_equal(calls, 2);
	fault_close(injector);
}

/* Delayed packets of a peer that is closed are sent at once, the others when they are due. */
static void test_flushes_peer(void **state)
{
	struct fault_injector *injector = open_injector("delay=1ms,reorder=0.3,seed=4");

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		send_burst(injector, peer_number(i % 2), i, 1, i);
	assert_int_equal(sent_count, 0);
	fault_flush(injector, peer_number(0));
	assert_int_equal(sent_count, 50);
	fault_release(injector, 2 * FAULT_HOLD_NS);
	fault_release(injector, 4 * FAULT_HOLD_NS);
	assert_int_equal(sent_count, 100);
	for (unsigned int i = 0; i < 100; i++) {
		assert_ptr_equal(sent_to[i], peer_number(i >= 50));
		assert_int_equal(number_of(i) % 2, i >= 50);
	}
	fault_close(injector);
}

/* The number of waiting packets is bounded: more are dropped, and counted. */
static void test_bounded(void **state)
{
	struct fault_injector *injector = open_injector("delay=1s");

	(void)state;
	for (uint32_t i = 0; i < FAULT_MAX_WAITING + 128; i += 128)
		send_burst(injector, peer_number(1), i, 128, 0);
	assert_int_equal(counted[PROGRESS_COUNT_FAULT_DROPPED], 128);
	assert_int_equal(lost, 128);
	assert_false(fault_release(injector, 999999999));
	sent_count = 0;
	fault_close(injector);
	assert_int_equal(sent_count, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_long_part),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_passes_through),
		cmocka_unit_test(test_corrupts),
		cmocka_unit_test(test_drops_and_duplicates),
		cmocka_unit_test(test_splits_bursts),
		cmocka_unit_test(test_bursts_change_nothing),
		cmocka_unit_test(test_reorders),
		cmocka_unit_test(test_hold_ends),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_flushes_peer),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
