/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_BYTES 65536
#define GATHER_FROM 128
#define MAX_SGE 4
#define MAX_INLINE 128
#define ALL_ACCESS \
	(ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC | ENG_MW_BIND)
/* A deadline that is served and does not move would make a caller spin for ever. */
#define MAX_TURNS_AT_ONE_TIME 1000
#define MAX_RUNS_PER_PULL 100000

/* cmocka leaves a failing test by longjmp, so what a test made is found from here. */
static struct peer *peers[8];

uint8_t peer_pattern(uint64_t position)
{
	return (uint8_t)(position * 7 + (position >> 8) * 13 + 1);
}

void peer_fill(uint8_t *bytes, uint64_t length, uint64_t position)
{
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = peer_pattern(position + i);
}

static void *map(struct peer *peer, uint32_t key, uint64_t va, uint32_t length, uint32_t access)
{
	for (unsigned int i = 0; i < peer->region_count; i++) {
		struct peer_region *region = &peer->regions[i];

		if (region->key != key || (region->access & access) != access)
			continue;
		if (va < region->va || va - region->va > region->length ||
		    length > region->length - (va - region->va))
			return NULL;
		return region->bytes + (region->folded ? 0 : va - region->va);
	}
	return NULL;
}

static void *map_local(void *owner, uint32_t lkey, uint64_t va, uint32_t length, bool write)
{
	return map(owner, lkey, va, length, write ? ENG_LOCAL_WRITE : 0);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t va, uint32_t length, uint32_t need)
{
	return map(owner, rkey, va, length, need);
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct peer *peer = owner;

	assert_true(peer->wc_count < PEER_LOG);
	peer->wcs[peer->wc_count++] = *wc;
}

static void event(void *owner, enum eng_event what)
{
	struct peer *peer = owner;

	assert_true(peer->event_count < 64);
	peer->events[peer->event_count++] = what;
}

static bool invalidate(void *owner, uint32_t key)
{
	struct peer *peer = owner;

	if (peer->refuse_invalidate)
		return false;
	peer->invalidated = key;
	return true;
}

struct peer_region *peer_region_add(struct peer *peer, uint32_t key, uint64_t va, uint64_t length,
				    uint32_t access)
{
	struct peer_region *region = &peer->regions[peer->region_count++];

	assert_true(peer->region_count <= 8);
	*region = (struct peer_region){ .key = key, .va = va, .length = length, .access = access };
	region->folded = length > PEER_FOLD_BYTES;
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

static void set_defaults(struct peer_config *config)
{
	config->sq_slots = config->sq_slots ? config->sq_slots : 64;
	config->rq_slots = config->rq_slots ? config->rq_slots : 64;
	config->mtu = config->mtu ? config->mtu : PEER_MTU;
	if (!config->psn_zero) {
		config->sq_psn = config->sq_psn ? config->sq_psn : PEER_SQ_PSN;
		config->rq_psn = config->rq_psn ? config->rq_psn : PEER_RQ_PSN;
	}
	config->timeout_code = config->timeout_code ? config->timeout_code : 14;
	config->timeout_code %= PEER_NO_TIMEOUT;
	config->retry_count = config->retry_count ? config->retry_count : 7;
	config->retry_count %= PEER_NO_RETRY;
	config->rnr_retry = config->rnr_retry ? config->rnr_retry : 7;
	config->rnr_retry %= PEER_NO_RETRY;
	config->max_rd_atomic = config->max_rd_atomic ? config->max_rd_atomic : 4;
	config->max_dest_rd_atomic = config->max_dest_rd_atomic ? config->max_dest_rd_atomic : 4;
	config->access = config->access ? config->access & ~PEER_NO_ACCESS : ALL_ACCESS;
}

static void set_attr(struct eng_attr *attr, const struct peer_config *config)
{
	attr->mtu = config->mtu;
	attr->dest_qpn = PEER_DEST_QPN;
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

struct peer *peer_new(struct peer_config config)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	unsigned int place = 0;

	assert_non_null(peer);
	while (peers[place])
		place++;
	assert_true(place < 8);
	peers[place] = peer;
	set_defaults(&config);
	peer->config = config;
	peer->now = 1000 * MS;
	peer->next_send_id = 0x1000;
	peer->next_recv_id = 0x2000;
	peer->ops = (struct eng_ops){ .map_local = map_local,
				      .map_remote = map_remote,
				      .complete = complete,
				      .event = event,
				      .invalidate = invalidate };
	peer->staging = malloc(STAGING_BYTES);
	peer->local =
		peer_region_add(peer, PEER_LKEY, PEER_LOCAL_VA, PEER_REGION_BYTES, ENG_LOCAL_WRITE)
			->bytes;
	peer->remote =
		peer_region_add(peer, PEER_RKEY, PEER_REMOTE_VA, PEER_REGION_BYTES, ALL_ACCESS)
			->bytes;
	peer_fill(peer->local, PEER_REGION_BYTES, 0);
	make_ring(&peer->sq, eng_send_slot_bytes(MAX_SGE, MAX_INLINE), config.sq_slots);
	make_ring(&peer->rq, eng_recv_slot_bytes(MAX_SGE), config.rq_slots);
	peer->qp = aligned_alloc(64, (eng_qp_bytes() + 63) & ~(size_t)63);
	assert_non_null(peer->qp);
	memset(peer->qp, 0xa5, eng_qp_bytes());
	eng_qp_init(peer->qp, &(struct eng_qp_init){ .type = config.type,
						     .qpn = PEER_QPN,
						     .owner = peer,
						     .ops = &peer->ops,
						     .sq = &peer->sq,
						     .rq = &peer->rq,
						     .rq_shared = config.shared,
						     .credits_hidden = config.credits_hidden,
						     .cwnd_share = config.share,
						     .signal_all = config.signal_all,
						     .cwnd_packets = config.cwnd });
	peer_set_replay(peer, config.max_dest_rd_atomic);
	peer->attr = eng_qp_attr(peer->qp);
	set_attr(peer->attr, &config);
	return peer;
}

void peer_set_replay(struct peer *peer, uint32_t depth)
{
	/* No byte more than was asked for, so that the sanitizer sees an access outside. */
	void *memory = malloc(eng_replay_bytes(depth));

	assert_non_null(memory);
	memset(memory, 0xa5, eng_replay_bytes(depth));
	assert_ptr_equal(eng_set_replay(peer->qp, memory, depth), peer->replay);
	free(peer->replay);
	peer->replay = memory;
}

static void free_peer(struct peer *peer)
{
	for (unsigned int i = 0; i < peer->region_count; i++)
		free(peer->regions[i].bytes);
	for (unsigned int i = 0; i < peer->sent_count; i++)
		free(peer->sent[i].bytes);
	free(peer->sq.slots);
	free(peer->rq.slots);
	free(peer->replay);
	free(peer->qp);
	free(peer->staging);
	free(peer);
}

int peer_teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		if (peers[i])
			free_peer(peers[i]);
		peers[i] = NULL;
	}
	return 0;
}

void peer_set_state(struct peer *peer, enum eng_qp_state to)
{
	eng_set_state(peer->qp, to, peer->now);
	assert_int_equal(eng_qp_state(peer->qp), to);
}

void peer_raise(struct peer *peer, enum eng_qp_state to)
{
	for (enum eng_qp_state s = eng_qp_state(peer->qp); s != to;) {
		s = (enum eng_qp_state)(s + 1);
		peer_set_state(peer, s);
	}
}

struct peer *peer_rts(struct peer_config config)
{
	struct peer *peer = peer_new(config);

	peer_raise(peer, ENG_RTS);
	peer_forget(peer);
	return peer;
}

struct eng_view peer_view(const struct peer *peer)
{
	struct eng_view view;

	memset(&view, 0xa5, sizeof(view));
	eng_look(peer->qp, &view);
	return view;
}

struct eng_send_wqe *peer_wqe(struct peer *peer, enum eng_op op, uint32_t length, uint32_t flags)
{
	struct eng_send_wqe *wqe = eng_sq_next(peer->qp);

	assert_non_null(wqe);
	wqe->wr_id = peer->next_send_id++;
	wqe->length = length;
	wqe->op = (uint8_t)op;
	wqe->flags = (uint8_t)flags;
	wqe->immediate = 0x12345678;
	wqe->sge_count = length != 0;
	wqe->data.sge[0] = (struct eng_sge){ PEER_LOCAL_VA, length, PEER_LKEY };
	wqe->remote.va = PEER_THEIR_VA;
	wqe->remote.rkey = PEER_THEIR_RKEY;
	wqe->remote.compare_add = 0x1122334455667788;
	wqe->remote.swap = 0x99aabbccddeeff00;
	return wqe;
}

uint64_t peer_post(struct peer *peer, enum eng_op op, uint32_t length, uint32_t flags)
{
	uint64_t wr_id = peer_wqe(peer, op, length, flags)->wr_id;

	eng_sq_push(peer->qp);
	return wr_id;
}

uint64_t peer_post_inline(struct peer *peer, const void *bytes, uint32_t length)
{
	struct eng_send_wqe *wqe = peer_wqe(peer, ENG_SEND, length, ENG_SIGNALED | ENG_INLINE);
	uint64_t wr_id = wqe->wr_id;

	assert_true(length <= MAX_INLINE);
	wqe->sge_count = 0;
	memcpy(wqe->data.bytes, bytes, length);
	eng_sq_push(peer->qp);
	return wr_id;
}

uint64_t peer_post_recv_at(struct peer *peer, uint32_t offset, uint32_t length)
{
	struct eng_recv_wqe *wqe = eng_rq_next(&peer->rq);
	uint64_t wr_id = peer->next_recv_id++;

	assert_non_null(wqe);
	wqe->wr_id = wr_id;
	wqe->length = length;
	wqe->sge_count = length != 0;
	wqe->sge[0] = (struct eng_sge){ PEER_LOCAL_VA + offset, length, PEER_LKEY };
	eng_rq_push(&peer->rq);
	return wr_id;
}

uint64_t peer_post_recv(struct peer *peer, uint32_t length)
{
	return peer_post_recv_at(peer, 0, length);
}

void peer_forget(struct peer *peer)
{
	peer_pull(peer);
	peer->sent_read = peer->sent_count;
}

unsigned int peer_count_events(const struct peer *peer, enum eng_event what)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < peer->event_count; i++)
		count += peer->events[i] == what;
	return count;
}

/* What every packet of this engine has to look like. */
static void check_packet(struct peer *peer, const struct wire_packet *packet)
{
	/* rule S15 test */
	assert_int_equal(packet->version, 0);
	assert_true(packet->migrated);
	assert_int_equal(packet->pkey, WIRE_DEFAULT_PKEY);
	if (peer->config.type != ENG_UD)
		assert_int_equal(packet->dest_qpn, PEER_DEST_QPN);
	assert_true(packet->payload_length <= peer->config.mtu);
	for (uint32_t i = 0; i < packet->pad_count; i++)
		assert_int_equal(packet->payload[packet->payload_length + i], 0);
	if (packet->solicited) {
		const struct wire_op_info *info = wire_op_info(packet->opcode);

		assert_true(info->position == WIRE_LAST || info->position == WIRE_ONLY);
	}
}

static void take_packet(struct peer *peer, const uint8_t *bytes, uint32_t length, uint16_t ip_id)
{
	struct wire_packet packet;
	struct peer_packet *kept;
	uint16_t found_id = ip_id;

	if (peer->sink) {
		assert_int_equal(wire_parse(bytes, length, &packet), WIRE_OK);
		peer->sunk++;
		peer->sink(peer, &packet);
		return;
	}
	assert_int_equal(wire_icrc_check(&peer->attr->path.wire, &found_id, bytes, length),
			 WIRE_ICRC_RIGHT);
	assert_int_equal(found_id, ip_id);
	assert_true(peer->sent_count < PEER_LOG);
	kept = &peer->sent[peer->sent_count++];
	kept->bytes = malloc(length);
	kept->time = peer->now;
	memcpy(kept->bytes, bytes, length);
	assert_int_equal(wire_parse(kept->bytes, length, &kept->packet), WIRE_OK);
	check_packet(peer, &kept->packet);
}

static void take_run(struct peer *peer, const struct eng_run *run)
{
	static uint8_t whole[PEER_RUN_BYTES];
	uint32_t bytes = 0;

	assert_uint_in_range(run->packets, 1, run->max_packets);
	assert_true(run->bytes <= run->max_bytes && run->piece_count <= run->max_pieces);
	assert_ptr_equal(run->path, &peer->attr->path);
	for (uint32_t i = 0; i < run->piece_count; i++) {
		assert_true(bytes + run->pieces[i].length <= PEER_RUN_BYTES);
		memcpy(whole + bytes, run->pieces[i].bytes, run->pieces[i].length);
		bytes += run->pieces[i].length;
	}
	assert_int_equal(bytes, run->bytes);
	assert_true(bytes > (run->packets - 1) * run->segment);
	assert_true(bytes <= run->packets * run->segment);
	for (uint32_t i = 0; i < run->packets; i++) {
		uint32_t start = i * run->segment;
		uint32_t length = i + 1 < run->packets ? run->segment : bytes - start;

		take_packet(peer, whole + start, length, (uint16_t)i);
	}
}

struct eng_run peer_empty_run(struct peer *peer, uint32_t max_packets)
{
	return (struct eng_run){ .staging = peer->staging,
				 .staging_bytes = STAGING_BYTES,
				 .pieces = peer->pieces,
				 .max_pieces = PEER_PIECES,
				 .max_packets = max_packets,
				 .max_bytes = PEER_RUN_BYTES,
				 .gather_from = peer->config.gather ? GATHER_FROM : UINT32_MAX };
}

enum eng_tx peer_transmit(struct peer *peer, struct eng_run *run, unsigned int sides)
{
	const struct eng_hint hint = { .now = peer->now, .occasion = ENG_LAST, .sides = sides };

	return eng_transmit(peer->qp, run, &hint);
}

enum eng_tx peer_pull_sides(struct peer *peer, unsigned int sides)
{
	for (int runs = 0; runs < MAX_RUNS_PER_PULL; runs++) {
		struct eng_run run = peer_empty_run(peer, PEER_RUN_PACKETS);

		peer->why = peer_transmit(peer, &run, sides);
		assert_true(peer->why < ENG_TX_REASONS);
		/* Long READ responses have their pace: go with it. */
		if (peer->why != ENG_TX_RUN && (sides & ENG_RESPONSES) &&
		    eng_deadline(peer->qp) < eng_timer(peer->qp)) {
			if (eng_deadline(peer->qp) > peer->now)
				peer->now = eng_deadline(peer->qp);
			eng_expire(peer->qp, peer->now);
			continue;
		}
		if (peer->why != ENG_TX_RUN)
			return peer->why;
		take_run(peer, &run);
	}
	fail_msg("the engine hands out packets without end");
	return peer->why;
}

enum eng_tx peer_pull(struct peer *peer)
{
	return peer_pull_sides(peer, ENG_REQUESTS | ENG_RESPONSES);
}

bool peer_advance_to_deadline(struct peer *peer)
{
	uint64_t deadline;

	peer_pull(peer);
	deadline = eng_deadline(peer->qp);
	if (deadline == ENG_NEVER)
		return false;
	if (deadline > peer->now)
		peer->now = deadline;
	eng_expire(peer->qp, peer->now);
	peer_pull(peer);
	return true;
}

void peer_advance(struct peer *peer, uint64_t ns)
{
	uint64_t end = peer->now + ns, last = peer->now;
	int turns = 0;

	peer_pull(peer);
	while (eng_deadline(peer->qp) <= end) {
		peer_advance_to_deadline(peer);
		turns = peer->now == last ? turns + 1 : 0;
		last = peer->now;
		if (turns > MAX_TURNS_AT_ONE_TIME)
			fail_msg("a deadline is served again and again and does not move");
	}
	peer->now = end;
	peer_pull(peer);
}
