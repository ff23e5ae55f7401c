// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <stddef.h>
#include <string.h>

#include "scenario.h"

#define US UINT64_C(1000)
#define MS (1000 * US)

// clang-format off
const struct scenario scenarios[] = {
	{ .name = "one-way", .about = "one way, to a receiver with 20 us per message",
	  .shape = SHAPE_STREAM, .links = 1, .depth = 16, .bytes = 1024,
	  .count = { 2000, 0 }, .service_ns = { 0, 20 * US } },
	{ .name = "requests", .about = "8 outstanding requests, each with a response",
	  .shape = SHAPE_REQUESTS, .links = 1, .depth = 16, .bytes = 64,
	  .count = { 2000, 0 }, .service_ns = { US, 2 * US }, .requests = 8 },
	{ .name = "bursts", .about = "bursts of eight, two, one, half times the depth, every 10 ms",
	  .shape = SHAPE_BURSTS, .links = 1, .depth = 8, .bytes = 1024,
	  .count = { 920, 0 }, .service_ns = { 0, 10 * US }, .burst_gap_ns = 10 * MS },
	{ .name = "both-at-zero", .about = "both ends send, and neither consumes for 50 ms",
	  .shape = SHAPE_STREAM, .links = 1, .depth = 8, .bytes = 1024,
	  .count = { 1000, 1000 }, .service_ns = { 5 * US, 5 * US }, .pause_ns = 50 * MS },
	{ .name = "mixed", .about = "one way, a tenth each of WRITE with immediate, WRITE and READ",
	  .shape = SHAPE_STREAM, .links = 1, .depth = 16, .bytes = 4096,
	  .count = { 2000, 0 }, .service_ns = { 0, 20 * US }, .mixed_percent = 10 },
	{ .name = "shared-queue", .about = "8 connections on one shared receive queue",
	  .shape = SHAPE_STREAM, .links = 8, .depth = 8, .bytes = 1024,
	  .count = { 250, 0 }, .service_ns = { 0, 20 * US }, .shared = true,
	  .shared_percent = 25 },
	{ .name = "many-senders", .about = "16 connections to one slow receiver",
	  .shape = SHAPE_STREAM, .links = 16, .depth = 8, .bytes = 1024,
	  .count = { 125, 0 }, .service_ns = { 0, 20 * US } },
	{ .name = "loss", .about = "one way, slow receiver, 1 % of packets are lost",
	  .shape = SHAPE_STREAM, .links = 1, .depth = 16, .bytes = 1024,
	  .count = { 1000, 0 }, .service_ns = { 0, 20 * US }, .faults = "drop=0.01" },

	{ .name = "shared-promise", .about = "the SRQ has a quarter of the promised receives",
	  .shape = SHAPE_STREAM, .links = 8, .depth = 8, .bytes = 1024,
	  .count = { 500, 0 }, .service_ns = { 0, 50 * US }, .shared = true,
	  .shared_percent = 25, .only_control = true },
	{ .name = "datagram-loss", .about = "an unreliable connection that loses 5 % of packets",
	  .shape = SHAPE_STREAM, .links = 1, .depth = 16, .bytes = 1024,
	  .count = { 4000, 0 }, .service_ns = { 0, 20 * US }, .faults = "drop=0.05",
	  .unreliable = true, .only_control = true },
	{ .name = "way-back", .about = "one way for a while, then the other way",
	  .shape = SHAPE_STREAM, .links = 1, .depth = 16, .bytes = 1024,
	  .count = { 400, 400 }, .service_ns = { 5 * US, 5 * US }, .in_turn = true,
	  .only_control = true },
	{ .name = NULL },
};

const struct flow_control_pair control_pairs[] = {
	{ "one-way", "o2iblnd-nonoop", VERDICT_STUCK,
	  "nothing goes back that could return credits" },
	{ "one-way", "o2iblnd-hiw", VERDICT_STUCK, "the high-water mark is above the depth" },
	{ "requests", "smbd-chatty", VERDICT_STORM, "an update is answered by an update" },
	{ "bursts", "rds-guess", VERDICT_OVERRUN,
	  "the first window is 16, and 8 receives are posted" },
	{ "both-at-zero", "naive", VERDICT_STUCK,
	  "an update needs a credit and neither end has one" },
	{ "mixed", "blind-imm", VERDICT_OVERRUN,
	  "a WRITE with immediate consumes a receive and is not counted" },
	{ "shared-promise", "o2iblnd-v2", VERDICT_OVERRUN,
	  "each connection is promised the same receives" },
	{ "many-senders", "grant-early", VERDICT_OVERRUN,
	  "receives are granted before they are posted" },
	{ "datagram-loss", "naive", VERDICT_STUCK, "lost increments are not repeated" },
	{ "way-back", "rds-literal", VERDICT_STUCK,
	  "ACKs consume numbers that the peer does not count" },
	{ NULL, NULL, VERDICT_OK, NULL },
};
// clang-format on

static const char *const verdict_names[FLOW_VERDICTS] = {
	[VERDICT_RUNNING] = "running", [VERDICT_OK] = "ok",
	[VERDICT_STUCK] = "stuck",     [VERDICT_STORM] = "storm",
	[VERDICT_OVERRUN] = "overrun", [VERDICT_LOST] = "credits lost",
	[VERDICT_STALLED] = "stalled", [VERDICT_ERROR] = "error",
};

const char *flow_verdict_name(enum flow_verdict verdict)
{
	return verdict < FLOW_VERDICTS ? verdict_names[verdict] : "?";
}

const struct scenario *scenario_find(const char *name)
{
	for (const struct scenario *sc = scenarios; sc->name; sc++)
		if (!strcmp(sc->name, name))
			return sc;
	return NULL;
}

/* splitmix64 as a hash: a random number that depends only on x. */
static uint64_t hash_u64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

enum flow_op scenario_op(const struct scenario *sc, uint64_t seed, uint32_t side, uint32_t link,
			 uint32_t index)
{
	uint64_t place = hash_u64(seed) ^ ((uint64_t)(side * FLOW_LINKS + link) << 32 | index);
	uint32_t draw = (uint32_t)(hash_u64(place) % 100), percent = sc->mixed_percent;

	if (draw < percent)
		return OP_WRITE_IMM;
	if (draw < 2 * percent)
		return OP_WRITE;
	return draw < 3 * percent ? OP_READ : OP_SEND;
}

/* Bursts of 8, 2, 1 and 0.5 times the depth, in rotation. */
uint64_t scenario_burst_ns(const struct scenario *sc, uint32_t index)
{
	const uint32_t halves[] = { 16, 4, 2, 1 };
	uint32_t round = 23 * sc->depth / 2, burst = index / round * 4, rest = index % round;

	for (unsigned int i = 0; rest >= halves[i] * sc->depth / 2; i++) {
		rest -= halves[i] * sc->depth / 2;
		burst++;
	}
	return burst * sc->burst_gap_ns;
}

uint64_t scenario_service_ns(const struct scenario *sc, uint64_t seed, uint32_t side,
			     uint32_t number)
{
	uint64_t mean = sc->service_ns[side];

	if (!mean)
		return 0;
	return mean / 2 + hash_u64(hash_u64(seed) ^ ((uint64_t)(side + 1) << 40 | number)) % mean;
}
