/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The engine under any sequence of posts, packets, time and transmissions.  The input is a script:
 * a configuration, then steps of one byte and its arguments.  Two engines are connected by a wire
 * that loses, repeats and reorders according to the script, and the script may add packets of its
 * own: a peer that violates any rule.
 *
 * Invariants: no assertion of the engine fires; memory outside of the regions, and regions without
 * access rights, are not accessed; packets parse and follow the rules of a burst; each request
 * completes at most once and in order; deadlines that are served advance; sending ends
 * (most_bursts(), spend()).
 */
#include <string.h>

#include "engine/base/psn.h"
#include "engine/cc/cc.h"
#include "engine_side.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WIRE_SLOTS 64
#define MAX_STEPS 400
/* Bursts in a row of UC and UD, whose messages of up to 2 GB would take too long. */
#define MAX_UNRELIABLE_BURSTS 300

struct flight {
	uint8_t *bytes;
	uint32_t length;
	unsigned int to;
};

static struct {
	struct side sides[SIDES];
	struct flight wire[WIRE_SLOTS];
	unsigned int in_flight;
} world;

static void put_on_wire(const uint8_t *bytes, uint32_t length, unsigned int to)
{
	struct flight *flight = &world.wire[world.in_flight];

	if (world.in_flight == WIRE_SLOTS)
		return; /* lost */
	world.in_flight++;
	flight->bytes = malloc(length);
	memcpy(flight->bytes, bytes, length);
	flight->length = length;
	flight->to = to;
}

/* Checks that each packet of a burst parses and has a size that UDP_SEGMENT allows; sends it. */
static void check_burst(struct side *side)
{
	static uint8_t whole[65536];
	const struct eng_burst *burst = &side->burst;
	uint32_t bytes = 0;

	require(burst->packets >= 1 && burst->packets <= burst->max_packets);
	require(burst->bytes <= burst->max_bytes && burst->piece_count <= burst->max_pieces);
	require(burst->staged <= burst->staging_bytes);
	for (uint32_t i = 0; i < burst->piece_count; i++) {
		require(bytes + burst->pieces[i].length <= sizeof(whole));
		memcpy(whole + bytes, burst->pieces[i].bytes, burst->pieces[i].length);
		bytes += burst->pieces[i].length;
	}
	require(bytes == burst->bytes && bytes > (burst->packets - 1) * burst->segment &&
		bytes <= burst->packets * burst->segment);
	for (uint32_t i = 0; i < burst->packets; i++) {
		uint32_t start = i * burst->segment;
		uint32_t length = i + 1 < burst->packets ? burst->segment : bytes - start;
		uint16_t ip_id = (uint16_t)(burst->identification + i);
		struct wire_packet packet;

		require(wire_parse(whole + start, length, &packet) == WIRE_OK);
		require(wire_icrc_check(&burst->path->wire, &ip_id, whole + start, length) ==
			WIRE_ICRC_OK);
		require(packet.payload_length <= eng_qp_attr(side->qp)->mtu);
		put_on_wire(whole + start, length, 1 - side->number);
	}
}

/* Inputs of the caller, which may be anything.  Newer ones are not in scripts: time stands in. */
static struct eng_tx_ctx hint_of(uint8_t how)
{
	return (struct eng_tx_ctx){
		.now = script.now,
		.round = script.now >> 4,
		.trigger = (enum eng_tx_trigger)(ENG_TX_TRIGGER_FINAL - script.now % 3),
		.sides = how & 0x40 ? ENG_RESPONSES : ENG_REQUESTS | ENG_RESPONSES,
		.polled = script.now & 0x10,
		.watched = script.now & 0x20,
		.budget_waits = script.now % 7 == 6,
		.full = script.now % 11 == 10,
	};
}

/*
 * Returns the largest number of bursts that the engine may send without a packet from its peer
 * while no time passes.  Reliable services: a full window of requests, the same requests once more
 * (loss recovery), and as many bytes of READ responses as pacing allows at once, each with one
 * packet a burst; each of SLOTS messages may end in a short packet.  FEW is for ACKs, NAKs and ACK
 * probes.
 */
static unsigned int most_bursts(const struct side *side)
{
	enum { FEW = 16 };
	unsigned int window = CC_DEFAULT_PACKETS * (WIRE_MAX_MTU / eng_qp_attr(side->qp)->mtu);

	return side->reliable ? 3 * (window + SLOTS) + FEW : MAX_UNRELIABLE_BURSTS;
}

/* UC and UD send only requests, and each packet of a request only once. */
static void spend(struct side *side)
{
	if (side->reliable)
		return;
	require(side->burst.kind == ENG_BURST_REQUESTS);
	require(side->burst.packets <= side->packets_due);
	side->packets_due -= side->burst.packets;
}

static void transmit(struct side *side)
{
	uint8_t how = next8();
	bool until_idle = how & 0x80;
	unsigned int bursts = until_idle ? most_bursts(side) : 1;
	const struct eng_tx_ctx ctx = hint_of(how);

	while (bursts-- > 0) {
		struct eng_burst *burst = &side->burst;

		memset(burst, 0xa5, sizeof(*burst));
		burst->staging = side->staging;
		burst->staging_bytes = STAGING_BYTES;
		burst->pieces = side->pieces;
		burst->max_pieces = MAX_PIECES;
		burst->max_packets = 1 + (how & 15) * 8;
		burst->max_bytes = how & 0x10 ? 65507 : 5000;
		burst->gather_from = how & 0x20 ? 100 : UINT32_MAX;
		/* Anything, near the wrap as well. */
		burst->identification = (uint16_t)(0xfff0 + script.now);
		side->has_burst = eng_transmit(side->qp, burst, &ctx) == ENG_TX_BURST;
		if (!side->has_burst)
			return;
		check_burst(side);
		spend(side);
	}
	/* The rest of the requests of UC and UD is counted by spend(). */
	require(!until_idle || !side->reliable);
}

/* The link has refused the burst, which is known before anything else happens to the QP. */
static void unsent(struct side *side)
{
	if (side->has_burst) {
		eng_tx_rollback(side->qp, &side->burst);
		side->packets_due += side->burst.packets;
	}
	side->has_burst = false;
}

static void receive(struct side *side, const uint8_t *bytes, uint32_t length)
{
	struct wire_packet packet;
	/* A separate block of memory, freed afterwards: the engine must keep no pointer into it. */
	uint8_t *copy = malloc(length ? length : 1);

	memcpy(copy, bytes, length);
	memset(&packet, 0xa5, sizeof(packet));
	if (wire_parse(copy, length, &packet) == WIRE_OK)
		eng_receive(side->qp, &packet, script.now);
	free(copy);
}

/* Delivers or loses a packet in flight, in order or not; may keep it to be delivered again. */
static void deliver(void)
{
	uint8_t how = next8();
	unsigned int i = how & 0x40 ? next8() : 0;
	struct flight flight;

	if (world.in_flight == 0)
		return;
	i %= world.in_flight;
	flight = world.wire[i];
	if (!(how & 0x20)) {
		receive(&world.sides[flight.to], flight.bytes, flight.length);
		if (how & 0x10)
			return; /* may be delivered again */
	}
	free(flight.bytes);
	world.in_flight--;
	memmove(&world.wire[i], &world.wire[i + 1], (world.in_flight - i) * sizeof(world.wire[0]));
}

static void deliver_all(void)
{
	for (unsigned int n = world.in_flight; n > 0; n--) {
		struct flight flight = world.wire[0];

		receive(&world.sides[flight.to], flight.bytes, flight.length);
		free(flight.bytes);
		world.in_flight--;
		memmove(&world.wire[0], &world.wire[1], world.in_flight * sizeof(world.wire[0]));
	}
}

/* Delivers a forged packet whose fields are close to valid values. */
static void forge(struct side *side)
{
	static const uint8_t payload[WIRE_MAX_MTU] = { 0x77 };
	uint8_t bytes[WIRE_MAX_PACKET_BYTES], where = next8(), rkey = next8();
	struct wire_packet packet = { .opcode = next8(), .migrated = true, .pkey = 0xffff };
	struct eng_qp_info view;
	unsigned int length;

	if (!wire_op_header_length(packet.opcode))
		return;
	eng_qp_query(side->qp, &view);
	packet.psn = where & 1 ? view.expected_psn : where & 2 ? view.unacked_psn : view.next_psn;
	packet.psn = psn_add(packet.psn, (uint32_t)(int8_t)next8() & PSN_MASK);
	if (where & 4)
		packet.psn = next32() & PSN_MASK;
	packet.ack_request = where & 8;
	packet.solicited = where & 16;
	packet.dest_qpn = QPN + side->number;
	packet.va = region_va(rkey % REGIONS) + (rkey & 0x80 ? next32() : next8());
	packet.rkey = rkey % REGIONS + 0x10 * side->number + (rkey == 0x7f);
	packet.compare = next8();
	packet.swap_add = rkey;
	packet.syndrome = next8();
	packet.msn = where & 32 ? next32() & PSN_MASK : psn_add(view.sent_ssn, where >> 6);
	packet.immediate = rkey;
	packet.qkey = where & 4 ? QKEY : rkey;
	packet.payload = payload;
	if (wire_op_headers(packet.opcode) & WIRE_HAS_PAYLOAD)
		packet.payload_length = where & 64 ? view.mtu : next32() % (WIRE_MAX_MTU + 1);
	packet.dma_length = where & 128 ? next32() : packet.payload_length;
	packet.pad_count = (uint8_t)(-packet.payload_length & 3);
	length = wire_build_headers(&packet, bytes);
	memset(bytes + length, 0, packet.payload_length + 8);
	length += packet.payload_length + packet.pad_count + WIRE_ICRC_BYTES;
	receive(side, bytes, length);
}

static void raw(struct side *side)
{
	uint32_t length = next8();

	if (length > script.left)
		length = (uint32_t)script.left;
	receive(side, script.data, length);
	script.data += length;
	script.left -= length;
}

/* A deadline is in the future once it has been served. */
static void pass_time(struct side *side)
{
	uint8_t how = next8();
	uint64_t deadline = eng_deadline(side->qp);

	if ((how & 1) && deadline != ENG_NEVER) {
		script.now = deadline > script.now ? deadline : script.now;
	} else {
		script.now += (uint64_t)next32() << (how >> 4);
	}
	for (unsigned int i = 0; i < SIDES; i++) {
		eng_expire(world.sides[i].qp, script.now);
		require(eng_timer(world.sides[i].qp) > script.now);
	}
}

static void change_state(struct side *side)
{
	enum eng_qp_state from = eng_qp_state(side->qp);

	switch (next8() % 5) {
	case 0:
		if (from == ENG_RTS)
			eng_set_state(side->qp, ENG_SQD, script.now);
		break;
	case 1:
		if (from == ENG_SQD || from == ENG_SQE)
			eng_set_state(side->qp, ENG_RTS, script.now);
		break;
	case 2:
		eng_set_state(side->qp, ENG_ERR, script.now);
		break;
	case 3:
		side_raise(side, ENG_RTR);
		break;
	default:
		side_raise(side, ENG_RTS);
	}
}

enum step {
	STEP_SEND,
	STEP_SEND_TOO,
	STEP_RECV,
	STEP_TRANSMIT,
	STEP_TRANSMIT_TOO,
	STEP_DELIVER,
	STEP_DELIVER_TOO,
	STEP_DELIVER_ALL,
	STEP_FORGE,
	STEP_FORGE_TOO,
	STEP_RAW,
	STEP_TIME,
	STEP_FINAL_ACKS,
	STEP_UNSENT,
	STEP_REGION,
	STEP_STATE,
};

/* Bit 0 is the side, bits 4..1 the step. */
static void take_step(uint8_t what)
{
	struct side *side = &world.sides[what & 1];
	enum step step = (enum step)(what >> 1 & 15);

	if (step != STEP_UNSENT)
		world.sides[0].has_burst = world.sides[1].has_burst = false;
	switch (step) {
	case STEP_SEND:
	case STEP_SEND_TOO:
		side_post_send(side);
		break;
	case STEP_RECV:
		side_post_recv(side);
		break;
	case STEP_TRANSMIT:
	case STEP_TRANSMIT_TOO:
		transmit(side);
		break;
	case STEP_DELIVER:
	case STEP_DELIVER_TOO:
		deliver();
		break;
	case STEP_DELIVER_ALL:
		deliver_all();
		break;
	case STEP_FORGE:
	case STEP_FORGE_TOO:
		forge(side);
		break;
	case STEP_RAW:
		raw(side);
		break;
	case STEP_TIME:
		pass_time(side);
		break;
	case STEP_UNSENT:
		unsent(side);
		break;
	case STEP_FINAL_ACKS:
		eng_send_final_acks(side->qp);
		break;
	case STEP_REGION:
		side->regions[next8() % REGIONS].gone ^= true;
		break;
	case STEP_STATE:
		change_state(side);
		break;
	}
	side_check(side);
	require(share.under_way < UINT64_C(1) << 40);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum eng_qp_type types[8] = { ENG_RC, ENG_RC, ENG_RC, ENG_UC,
						   ENG_RC, ENG_RC, ENG_RC, ENG_UD };
	enum eng_qp_type type;
	uint32_t mtu;
	uint8_t config;

	script.data = data;
	script.left = size;
	script.now = 1000000;
	world.in_flight = 0;
	config = next8();
	share = (struct eng_inflight_budget){ .limit = config & 0x80 ? 3000 : 1 << 20 };
	type = types[config & 7];
	mtu = 256u << ((config >> 3) % 5);
	for (unsigned int i = 0; i < SIDES; i++) {
		side_make(&world.sides[i], i, type, mtu);
	}
	for (int steps = 0; script.left > 0 && steps < MAX_STEPS; steps++)
		take_step(next8());
	/* A QP that is moved to ERR or RESET takes nothing of the in-flight budget any more. */
	for (unsigned int i = 0; i < SIDES; i++)
		eng_set_state(world.sides[i].qp, (enum eng_qp_state)(i ? ENG_RESET : ENG_ERR),
			      script.now);
	require(share.under_way == 0);
	while (world.in_flight > 0)
		free(world.wire[--world.in_flight].bytes);
	for (unsigned int i = 0; i < SIDES; i++)
		side_free(&world.sides[i]);
	return 0;
}
