/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "dut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_BYTES 65536
#define GATHER_FROM 128
#define MAX_SGE 4
#define MAX_INLINE 128
#define ALL_ACCESS \
	(ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC | ENG_MW_BIND)
/* Limit for dut_advance(), which would loop if a deadline did not move when it is served. */
#define MAX_TURNS_AT_ONE_TIME 1000
#define MAX_BURSTS_PER_PULL 100000

/* All duts of the test, for dut_teardown(): cmocka leaves a failing test by longjmp(). */
static struct dut *duts[8];

uint8_t dut_pattern(uint64_t position)
{
	return (uint8_t)(position * 7 + (position >> 8) * 13 + 1);
}

void dut_fill(uint8_t *bytes, uint64_t length, uint64_t position)
{
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = dut_pattern(position + i);
}

static void *map(struct dut *dut, uint32_t key, uint64_t va, uint32_t length, uint32_t access)
{
	for (unsigned int i = 0; i < dut->region_count; i++) {
		struct dut_region *region = &dut->regions[i];

		if (region->key != key || (region->access & access) != access)
			continue;
		if (va < region->va || va - region->va > region->length ||
		    length > region->length - (va - region->va))
			return NULL;
		return region->bytes + (region->folded ? 0 : va - region->va);
	}
	return NULL;
}

static void *map_local(void *owner, uint32_t lkey, uint64_t va, uint32_t length, enum eng_use use)
{
	return map(owner, lkey, va, length, use == ENG_USE_SEND ? 0 : ENG_LOCAL_WRITE);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t va, uint32_t length, uint32_t need)
{
	return map(owner, rkey, va, length, need);
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct dut *dut = owner;

	assert_true(dut->wc_count < DUT_LOG);
	dut->wcs[dut->wc_count++] = *wc;
}

static void event(void *owner, enum eng_event what)
{
	struct dut *dut = owner;

	assert_true(dut->event_count < 64);
	dut->events[dut->event_count++] = what;
}

static bool invalidate(void *owner, uint32_t key)
{
	struct dut *dut = owner;

	if (dut->refuse_invalidate)
		return false;
	dut->invalidated = key;
	return true;
}

struct dut_region *dut_region_add(struct dut *dut, uint32_t key, uint64_t va, uint64_t length,
				  uint32_t access)
{
	struct dut_region *region = &dut->regions[dut->region_count++];

	assert_true(dut->region_count <= 8);
	*region = (struct dut_region){ .key = key, .va = va, .length = length, .access = access };
	region->folded = length > DUT_FOLD_BYTES;
	region->bytes = calloc(1, region->folded ? WIRE_MAX_MTU : length);
	assert_non_null(region->bytes);
	return region;
}

static void fill_path(struct eng_path *path, bool ipv6)
{
	memset(path, 0, sizeof(*path));
	if (ipv6) {
		path->wire.src[0] = path->wire.dst[0] = 0xfd;
		path->wire.src[1] = path->wire.dst[1] = 0x77;
	} else {
		path->wire.src[10] = path->wire.dst[10] = 0xff;
		path->wire.src[11] = path->wire.dst[11] = 0xff;
		path->wire.src[12] = path->wire.dst[12] = 10;
	}
	path->wire.src[15] = 2;
	path->wire.dst[15] = 3;
	path->wire.src_port = 0xc123;
	path->wire.ipv6 = ipv6;
}

static void set_defaults(struct dut_config *config)
{
	config->sq_slots = config->sq_slots ? config->sq_slots : 64;
	config->rq_slots = config->rq_slots ? config->rq_slots : 64;
	config->mtu = config->mtu ? config->mtu : DUT_MTU;
	if (!config->psn_zero) {
		config->sq_psn = config->sq_psn ? config->sq_psn : DUT_SQ_PSN;
		config->rq_psn = config->rq_psn ? config->rq_psn : DUT_RQ_PSN;
	}
	config->timeout_code = config->timeout_code ? config->timeout_code : 14;
	config->timeout_code %= DUT_NO_TIMEOUT;
	config->retry_count = config->retry_count ? config->retry_count : 7;
	config->retry_count %= DUT_NO_RETRY;
	config->rnr_retry = config->rnr_retry ? config->rnr_retry : 7;
	config->rnr_retry %= DUT_NO_RETRY;
	config->max_rd_atomic = config->max_rd_atomic ? config->max_rd_atomic : 4;
	config->max_dest_rd_atomic = config->max_dest_rd_atomic ? config->max_dest_rd_atomic : 4;
	config->access = config->access ? config->access & ~DUT_NO_ACCESS : ALL_ACCESS;
}

static void set_attr(struct eng_attr *attr, const struct dut_config *config)
{
	attr->mtu = config->mtu;
	attr->dest_qpn = DUT_DEST_QPN;
	attr->rq_psn = config->rq_psn;
	attr->sq_psn = config->sq_psn;
	attr->access = config->access;
	attr->qkey = 0x11111111;
	attr->pkey = WIRE_DEFAULT_PKEY;
	attr->timeout_code = (uint8_t)config->timeout_code;
	attr->retry_count = (uint8_t)config->retry_count;
	attr->rnr_retry = (uint8_t)config->rnr_retry;
	attr->min_rnr_timer = 12;
	attr->max_rd_atomic = (uint8_t)config->max_rd_atomic;
	attr->max_dest_rd_atomic = (uint8_t)config->max_dest_rd_atomic;
	fill_path(&attr->path, config->ipv6);
}

static void make_ring(struct eng_ring *ring, uint32_t slot_bytes, uint32_t slots)
{
	void *memory = aligned_alloc(64, ((size_t)slot_bytes * slots + 63) & ~(size_t)63);

	assert_non_null(memory);
	memset(memory, 0xa5, (size_t)slot_bytes * slots);
	eng_ring_init(ring, memory, slot_bytes, slots, slots);
}

struct dut *dut_new(struct dut_config config)
{
	struct dut *dut = calloc(1, sizeof(*dut));
	unsigned int place = 0;

	assert_non_null(dut);
	while (duts[place])
		place++;
	assert_true(place < 8);
	duts[place] = dut;
	set_defaults(&config);
	dut->config = config;
	dut->now = 1000 * MS;
	dut->next_send_id = 0x1000;
	dut->next_recv_id = 0x2000;
	dut->ops = (struct eng_ops){ .map_local = map_local,
				     .map_remote = map_remote,
				     .complete = complete,
				     .event = event,
				     .invalidate = invalidate };
	dut->staging = malloc(STAGING_BYTES);
	dut->local = dut_region_add(dut, DUT_LKEY, DUT_LOCAL_VA, DUT_REGION_BYTES, ENG_LOCAL_WRITE)
			     ->bytes;
	dut->remote =
		dut_region_add(dut, DUT_RKEY, DUT_REMOTE_VA, DUT_REGION_BYTES, ALL_ACCESS)->bytes;
	dut_fill(dut->local, DUT_REGION_BYTES, 0);
	make_ring(&dut->sq, eng_send_slot_bytes(MAX_SGE, MAX_INLINE), config.sq_slots);
	make_ring(&dut->rq, eng_recv_slot_bytes(MAX_SGE), config.rq_slots);
	dut->qp = aligned_alloc(64, eng_qp_bytes(MAX_SGE));
	assert_non_null(dut->qp);
	memset(dut->qp, 0xa5, eng_qp_bytes(MAX_SGE));
	eng_qp_init(dut->qp, &(struct eng_qp_init){ .type = config.type,
						    .qpn = DUT_QPN,
						    .owner = dut,
						    .ops = &dut->ops,
						    .sq = &dut->sq,
						    .rq = &dut->rq,
						    .max_recv_sge = MAX_SGE,
						    .rq_shared = config.shared,
						    .credits_hidden = config.credits_hidden,
						    .inflight_budget = config.share,
						    .signal_all = config.signal_all,
						    .cwnd_packets = config.cwnd });
	dut_set_replay(dut, config.max_dest_rd_atomic);
	dut->attr = eng_qp_attr(dut->qp);
	set_attr(dut->attr, &config);
	dut->cnp_path = dut->attr->path;
	dut->cnp_path.wire.src_port++;
	eng_set_ecn(dut->qp, config.ecn ? &dut->cnp_path : NULL);
	eng_set_cc(dut->qp, config.network ? ENG_CC_NETWORK : ENG_CC_LOCAL);
	return dut;
}

void dut_set_replay(struct dut *dut, uint32_t depth)
{
	/* Exactly the bytes that the engine needs, so that the sanitizer detects an overrun. */
	void *memory = malloc(eng_resp_res_bytes(depth));

	assert_non_null(memory);
	memset(memory, 0xa5, eng_resp_res_bytes(depth));
	assert_ptr_equal(eng_set_resp_res(dut->qp, memory, depth), dut->replay);
	free(dut->replay);
	dut->replay = memory;
}

static void free_dut(struct dut *dut)
{
	for (unsigned int i = 0; i < dut->region_count; i++)
		free(dut->regions[i].bytes);
	for (unsigned int i = 0; i < dut->sent_count; i++)
		free(dut->sent[i].bytes);
	free(dut->sq.slots);
	free(dut->rq.slots);
	free(dut->replay);
	free(dut->qp);
	free(dut->staging);
	free(dut);
}

int dut_teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		if (duts[i])
			free_dut(duts[i]);
		duts[i] = NULL;
	}
	return 0;
}

void dut_set_state(struct dut *dut, enum eng_qp_state to)
{
	eng_set_state(dut->qp, to, dut->now);
	assert_int_equal(eng_qp_state(dut->qp), to);
}

void dut_raise(struct dut *dut, enum eng_qp_state to)
{
	for (enum eng_qp_state s = eng_qp_state(dut->qp); s != to;) {
		s = (enum eng_qp_state)(s + 1);
		dut_set_state(dut, s);
	}
}

struct dut *dut_rts(struct dut_config config)
{
	struct dut *dut = dut_new(config);

	dut_raise(dut, ENG_RTS);
	dut_forget(dut);
	return dut;
}

struct dut *dut_unlimited(struct dut_config config)
{
	struct dut *dut = dut_rts(config);

	dut_ack(dut, dut->config.sq_psn - 1, NO_CREDITS_REPORTED, 0);
	return dut;
}

struct eng_qp_info dut_info(const struct dut *dut)
{
	struct eng_qp_info view;

	memset(&view, 0xa5, sizeof(view));
	eng_qp_query(dut->qp, &view);
	return view;
}

struct eng_send_wqe *dut_wqe(struct dut *dut, enum eng_op op, uint32_t length, uint32_t flags)
{
	struct eng_send_wqe *wqe = eng_sq_next(dut->qp);

	assert_non_null(wqe);
	wqe->wr_id = dut->next_send_id++;
	wqe->length = length;
	wqe->op = (uint8_t)op;
	wqe->flags = (uint8_t)flags;
	wqe->immediate = 0x12345678;
	wqe->sge_count = length != 0;
	wqe->data.sge[0] = (struct eng_sge){ DUT_LOCAL_VA, length, DUT_LKEY };
	wqe->remote.va = DUT_THEIR_VA;
	wqe->remote.rkey = DUT_THEIR_RKEY;
	wqe->remote.compare_add = 0x1122334455667788;
	wqe->remote.swap = 0x99aabbccddeeff00;
	return wqe;
}

uint64_t dut_post(struct dut *dut, enum eng_op op, uint32_t length, uint32_t flags)
{
	uint64_t wr_id = dut_wqe(dut, op, length, flags)->wr_id;

	eng_sq_push(dut->qp);
	return wr_id;
}

uint64_t dut_post_inline(struct dut *dut, const void *bytes, uint32_t length)
{
	struct eng_send_wqe *wqe = dut_wqe(dut, ENG_SEND, length, ENG_SIGNALED | ENG_INLINE);
	uint64_t wr_id = wqe->wr_id;

	assert_true(length <= MAX_INLINE);
	wqe->sge_count = 0;
	memcpy(wqe->data.bytes, bytes, length);
	eng_sq_push(dut->qp);
	return wr_id;
}

uint64_t dut_post_recv_at(struct dut *dut, uint32_t offset, uint32_t length)
{
	struct eng_recv_wqe *wqe = eng_rq_next(&dut->rq);
	uint64_t wr_id = dut->next_recv_id++;

	assert_non_null(wqe);
	wqe->wr_id = wr_id;
	wqe->length = length;
	wqe->sge_count = length != 0;
	wqe->sge[0] = (struct eng_sge){ DUT_LOCAL_VA + offset, length, DUT_LKEY };
	eng_rq_push(&dut->rq);
	return wr_id;
}

uint64_t dut_post_recv(struct dut *dut, uint32_t length)
{
	return dut_post_recv_at(dut, 0, length);
}

void dut_forget(struct dut *dut)
{
	dut_pull(dut);
	dut->sent_read = dut->sent_count;
}

void dut_begin_log(struct dut *dut)
{
	dut_pull(dut);
	for (unsigned int i = 0; i < dut->sent_count; i++)
		free(dut->sent[i].bytes);
	dut->sent_read = dut->sent_count = 0;
}

unsigned int dut_count_events(const struct dut *dut, enum eng_event what)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < dut->event_count; i++)
		count += dut->events[i] == what;
	return count;
}

/* Checks the invariants of every packet of this engine. */
static void check_packet(struct dut *dut, const struct wire_packet *packet)
{
	/* rule S15 test; annex A17: MigReq is 0 in a CNP */
	assert_int_equal(packet->version, 0);
	assert_int_equal(packet->migrated, packet->opcode != WIRE_CNP_OPCODE);
	assert_int_equal(packet->pkey, WIRE_DEFAULT_PKEY);
	if (dut->config.type != ENG_UD)
		assert_int_equal(packet->dest_qpn, DUT_DEST_QPN);
	assert_true(packet->payload_length <= dut->config.mtu);
	for (uint32_t i = 0; i < packet->pad_count; i++)
		assert_int_equal(packet->payload[packet->payload_length + i], 0);
	if (packet->solicited) {
		enum wire_position position = wire_op_position(packet->opcode);

		assert_true(position == WIRE_LAST || position == WIRE_ONLY);
	}
}

static void take_packet(struct dut *dut, const struct eng_path *path, const uint8_t *bytes,
			uint32_t length, uint16_t ip_id)
{
	struct wire_packet packet;
	struct dut_packet *kept;
	uint16_t found_id = ip_id;

	if (dut->sink) {
		assert_int_equal(wire_parse(bytes, length, &packet), WIRE_OK);
		dut->sunk++;
		dut->sink(dut, &packet);
		return;
	}
	assert_int_equal(wire_icrc_check(&path->wire, &found_id, bytes, length), WIRE_ICRC_OK);
	assert_int_equal(found_id, ip_id);
	assert_true(dut->sent_count < DUT_LOG);
	kept = &dut->sent[dut->sent_count++];
	kept->bytes = malloc(length);
	kept->time = dut->now;
	memcpy(kept->bytes, bytes, length);
	assert_int_equal(wire_parse(kept->bytes, length, &kept->packet), WIRE_OK);
	check_packet(dut, &kept->packet);
}

static void take_burst(struct dut *dut, const struct eng_burst *burst)
{
	static uint8_t whole[DUT_BURST_BYTES];
	uint32_t bytes = 0;

	assert_uint_in_range(burst->packets, 1, burst->max_packets);
	assert_true(burst->bytes <= burst->max_bytes && burst->piece_count <= burst->max_pieces);
	assert_ptr_equal(burst->path,
			 burst->kind == ENG_BURST_CNP ? &dut->cnp_path : &dut->attr->path);
	for (uint32_t i = 0; i < burst->piece_count; i++) {
		assert_true(bytes + burst->pieces[i].length <= DUT_BURST_BYTES);
		memcpy(whole + bytes, burst->pieces[i].bytes, burst->pieces[i].length);
		bytes += burst->pieces[i].length;
	}
	assert_int_equal(bytes, burst->bytes);
	assert_true(bytes > (burst->packets - 1) * burst->segment);
	assert_true(bytes <= burst->packets * burst->segment);
	for (uint32_t i = 0; i < burst->packets; i++) {
		uint32_t start = i * burst->segment;
		uint32_t length = i + 1 < burst->packets ? burst->segment : bytes - start;

		take_packet(dut, burst->path, whole + start, length, (uint16_t)i);
	}
}

struct eng_burst dut_empty_burst(struct dut *dut, uint32_t max_packets)
{
	struct eng_burst burst;

	/* Poisoned, so that a result that the engine does not write is found. */
	memset(&burst, 0xa5, sizeof(burst));
	burst.staging = dut->staging;
	burst.staging_bytes = STAGING_BYTES;
	burst.pieces = dut->pieces;
	burst.max_pieces = DUT_PIECES;
	burst.max_packets = max_packets;
	burst.max_bytes = DUT_BURST_BYTES;
	burst.identification = 0;
	burst.gather_from = dut->config.gather ? GATHER_FROM : UINT32_MAX;
	return burst;
}

static bool is_bool(const bool *value)
{
	const uint8_t *byte = (const uint8_t *)value;

	return *byte <= 1;
}

enum eng_tx dut_transmit(struct dut *dut, struct eng_burst *burst, unsigned int sides)
{
	const struct eng_tx_ctx ctx = { .now = dut->now,
					.trigger = ENG_TX_TRIGGER_FINAL,
					.sides = sides };
	enum eng_tx reason = eng_transmit(dut->qp, burst, &ctx);

	if (reason == ENG_TX_BURST)
		assert_true(is_bool(&burst->last) && is_bool(&burst->has_ack) &&
			    is_bool(&burst->closed));
	return reason;
}

enum eng_tx dut_pull_sides(struct dut *dut, unsigned int sides)
{
	for (int bursts = 0; bursts < MAX_BURSTS_PER_PULL; bursts++) {
		struct eng_burst burst = dut_empty_burst(dut, DUT_BURST_PACKETS);

		dut->why = dut_transmit(dut, &burst, sides);
		assert_true(dut->why < ENG_TX_REASONS);
		/* READ responses are paced: advance to the time of the next ones. */
		if (dut->why != ENG_TX_BURST && (sides & ENG_RESPONSES) &&
		    eng_deadline(dut->qp) < eng_timer(dut->qp)) {
			if (eng_deadline(dut->qp) > dut->now)
				dut->now = eng_deadline(dut->qp);
			eng_expire(dut->qp, dut->now);
			continue;
		}
		if (dut->why != ENG_TX_BURST)
			return dut->why;
		take_burst(dut, &burst);
	}
	fail_msg("the engine hands out packets without end");
	return dut->why;
}

enum eng_tx dut_pull(struct dut *dut)
{
	return dut_pull_sides(dut, ENG_REQUESTS | ENG_RESPONSES);
}

bool dut_advance_to_deadline(struct dut *dut)
{
	uint64_t deadline;

	dut_pull(dut);
	deadline = eng_deadline(dut->qp);
	if (deadline == ENG_NEVER)
		return false;
	if (deadline > dut->now)
		dut->now = deadline;
	eng_expire(dut->qp, dut->now);
	dut_pull(dut);
	return true;
}

void dut_advance(struct dut *dut, uint64_t ns)
{
	uint64_t end = dut->now + ns, last = dut->now;
	int turns = 0;

	dut_pull(dut);
	while (eng_deadline(dut->qp) <= end) {
		dut_advance_to_deadline(dut);
		turns = dut->now == last ? turns + 1 : 0;
		last = dut->now;
		if (turns > MAX_TURNS_AT_ONE_TIME)
			fail_msg("a deadline is served again and again and does not move");
	}
	dut->now = end;
	dut_pull(dut);
}
