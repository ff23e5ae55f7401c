/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "engine_side.h"

#include <string.h>

struct script script;
struct eng_inflight_budget share;

uint8_t next8(void)
{
	if (script.left == 0)
		return 0;
	script.left--;
	return *script.data++;
}

uint32_t next32(void)
{
	uint32_t value = next8();

	value |= (uint32_t)next8() << 8;
	value |= (uint32_t)next8() << 16;
	return value | (uint32_t)next8() << 24;
}

uint64_t region_va(unsigned int kind)
{
	return (uint64_t)(kind + 1) << 33;
}

uint32_t region_key(const struct side *side, unsigned int kind)
{
	return kind + 0x10 * side->number;
}

static void *map(struct side *side, uint32_t key, uint64_t va, uint32_t length, uint32_t access)
{
	struct region *region;
	uint64_t offset;

	if (key < 0x10 * side->number || key - 0x10 * side->number >= REGIONS)
		return NULL;
	region = &side->regions[key - 0x10 * side->number];
	offset = va - region_va(key - 0x10 * side->number);
	if (region->gone || (region->access & access) != access || offset > region->length ||
	    length > region->length - offset)
		return NULL;
	if (key - 0x10 * side->number == FOLDED)
		return region->bytes;
	return region->bytes + offset;
}

static void *map_local(void *owner, uint32_t lkey, uint64_t va, uint32_t length, enum eng_use use)
{
	return map(owner, lkey, va, length, use == ENG_USE_SEND ? 0 : ENG_LOCAL_WRITE);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t va, uint32_t length, uint32_t need)
{
	require(need != 0);
	return map(owner, rkey, va, length, need);
}

/* Requests may complete without a CQE, but never twice and never out of order. */
static void complete(void *owner, const struct eng_wc *wc)
{
	struct side *side = owner;
	uint64_t *done = wc->receive ? &side->done_recv : &side->done_send;
	uint64_t posted = wc->receive ? side->next_recv : side->next_send;

	require(wc->wr_id >= *done && wc->wr_id < posted);
	require(!wc->receive || wc->wr_id == *done);
	*done = wc->wr_id + 1;
	require(wc->status == ENG_SUCCESS || eng_status_name(wc->status) != NULL);
}

static void event(void *owner, enum eng_event what)
{
	(void)owner;
	require(eng_event_name(what) != NULL);
}

static bool invalidate(void *owner, uint32_t key)
{
	struct side *side = owner;

	return key % 3 != side->number;
}

static bool flush(void *owner, const struct eng_flush *request)
{
	require(request->need != 0);
	return request->whole_region ||
	       map(owner, request->rkey, request->addr, request->length, ENG_REMOTE_WRITE);
}

static bool bind_window(void *owner, const struct eng_send_wqe *wqe)
{
	(void)owner;
	return wqe->bind.rkey & 1;
}

static const struct eng_ops engine_ops = { .map_local = map_local,
					   .map_remote = map_remote,
					   .flush = flush,
					   .complete = complete,
					   .event = event,
					   .invalidate = invalidate,
					   .bind = bind_window };

static void make_regions(struct side *side)
{
	static const uint32_t access[REGIONS] = {
		[BOTH] = ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC,
		[SOURCE] = ENG_REMOTE_READ,
		[PRIVATE] = ENG_LOCAL_WRITE,
		[TARGET] = ENG_LOCAL_WRITE | ENG_REMOTE_WRITE,
		[FOLDED] = ENG_LOCAL_WRITE | ENG_REMOTE_WRITE | ENG_REMOTE_READ,
	};

	for (unsigned int i = 0; i < REGIONS; i++) {
		struct region *region = &side->regions[i];

		region->length = i == FOLDED ? UINT64_C(1) << 32 : SMALL_REGION;
		region->bytes = malloc(i == FOLDED ? WIRE_MAX_MTU : SMALL_REGION);
		region->access = access[i];
		region->gone = false;
		memset(region->bytes, (int)i, i == FOLDED ? WIRE_MAX_MTU : SMALL_REGION);
	}
}

static void *aligned(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	require(memory != NULL);
	memset(memory, 0xa5, bytes);
	return memory;
}

static void make_qp(struct side *side, enum eng_qp_type type)
{
	uint32_t send_slot = eng_send_slot_bytes(MAX_SGE, MAX_INLINE);
	uint32_t recv_slot = eng_recv_slot_bytes(MAX_SGE);
	uint8_t flags = next8();

	eng_ring_init(&side->sq, aligned(send_slot * SLOTS), send_slot, SLOTS, SLOTS - 3);
	eng_ring_init(&side->rq, aligned(recv_slot * SLOTS), recv_slot, SLOTS, SLOTS);
	side->qp = aligned(eng_qp_bytes(MAX_SGE));
	eng_qp_init(side->qp, &(struct eng_qp_init){ .type = type,
						     .qpn = QPN + side->number,
						     .owner = side,
						     .ops = &engine_ops,
						     .sq = &side->sq,
						     .rq = &side->rq,
						     .max_recv_sge = MAX_SGE,
						     .rq_shared = (flags & 3) == 3,
						     .signal_all = flags & 4,
						     .credits_hidden = flags & 8,
						     .inflight_budget = &share,
						     .cwnd_packets = flags >> 4 });
	side->replay = aligned(eng_resp_res_bytes(REPLAY_DEPTH));
	eng_set_resp_res(side->qp, side->replay, REPLAY_DEPTH);
}

/* Sets attributes that modify_qp would accept. */
static void set_attr(struct side *side, uint32_t mtu)
{
	struct eng_attr *attr = eng_qp_attr(side->qp);
	uint8_t counts = next8(), depths = next8();

	attr->mtu = mtu;
	attr->dest_qpn = QPN + 1 - side->number;
	/* PSNs of one direction begin near the wrap, those of the other near the start. */
	attr->sq_psn = side->number ? 0xfffff8 : 3;
	attr->rq_psn = side->number ? 3 : 0xfffff8;
	attr->access = ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC | ENG_FLUSH_GLOBAL |
		       ENG_FLUSH_PERSISTENT;
	attr->qkey = QKEY;
	attr->timeout_code = next8() & 31;
	attr->retry_count = counts & 7;
	attr->rnr_retry = (counts >> 3) & 7;
	attr->min_rnr_timer = next8() & 31;
	attr->max_rd_atomic = (depths & 15) + (depths & 1);
	attr->max_dest_rd_atomic = (depths >> 4) + ((depths >> 4) & 1);
	attr->sq_drained_event = counts & 64;
	attr->path.wire.src[15] = 1;
	attr->path.wire.ipv6 = counts & 128;
}

void side_make(struct side *side, unsigned int number, enum eng_qp_type type, uint32_t mtu)
{
	memset(side, 0, sizeof(*side));
	side->number = number;
	make_regions(side);
	side->datagrams = type == ENG_UD;
	side->reliable = type == ENG_RC;
	make_qp(side, type);
	set_attr(side, mtu);
	side_raise(side, ENG_RTS);
}

/* Drops the state that RESET drops: requests posted before have no completion. */
void side_raise(struct side *side, enum eng_qp_state to)
{
	eng_set_state(side->qp, ENG_RESET, script.now);
	side->done_send = side->next_send;
	/* Shared receives stay, except for the one that was in use. */
	side->done_recv = side->next_recv - eng_ring_used(&side->rq);
	side->packets_due = 0;
	side->has_burst = false;
	for (unsigned int s = ENG_INIT; s <= to; s++)
		eng_set_state(side->qp, (enum eng_qp_state)s, script.now);
}

/* Fills any list of elements, some of them invalid; returns the sum of their lengths. */
static uint32_t fill_sges(struct side *side, struct eng_sge *sge, uint32_t *count)
{
	uint32_t length = 0, n = next8() % (MAX_SGE + 1);

	for (uint32_t i = 0; i < n; i++) {
		uint8_t what = next8();
		unsigned int kind = what % REGIONS;
		uint32_t bytes = what & 0x40 ? next32() & 0xfff : next8();

		if (kind == FOLDED && (what & 0x80))
			bytes = next32() % (ENG_MAX_MESSAGE / MAX_SGE);
		sge[i] = (struct eng_sge){ region_va(kind) + next8(), bytes,
					   kind + 0x10 * side->number };
		length += bytes;
	}
	*count = n;
	return length;
}

/* Posts the request, which is complete. */
static void push(struct side *side, const struct eng_send_wqe *wqe)
{
	uint32_t mtu = eng_qp_attr(side->qp)->mtu;

	side->packets_due += wqe->length ? (wqe->length - 1) / mtu + 1 : 1;
	eng_sq_push(side->qp);
	eng_flush(side->qp);
}

void side_post_send(struct side *side)
{
	enum eng_qp_state state = eng_qp_state(side->qp);
	struct eng_send_wqe *wqe = eng_sq_next(side->qp);
	uint32_t count;
	uint8_t op = next8(), rkey = next8();

	if (!wqe || state == ENG_RESET || state == ENG_INIT || state == ENG_RTR)
		return;
	memset(wqe, 0, eng_send_slot_bytes(MAX_SGE, MAX_INLINE));
	wqe->wr_id = side->next_send++;
	wqe->op = op % ENG_OPS;
	wqe->flags = next8() & (ENG_SIGNALED | ENG_FENCE | ENG_SOLICITED);
	wqe->immediate = rkey;
	if (wqe->op == ENG_LOCAL_INV || wqe->op == ENG_BIND_MW) {
		wqe->bind.rkey = rkey;
		push(side, wqe);
		return;
	}
	if (side->datagrams) {
		wqe->ud.path = &eng_qp_attr(side->qp)->path;
		wqe->ud.dest_qpn = QPN + 1 - side->number;
		wqe->ud.qkey = rkey ? QKEY : rkey;
	} else {
		wqe->remote.va =
			region_va(rkey % REGIONS) + (rkey & 0x80 ? next32() : next8() & ~7u);
		wqe->remote.rkey = rkey % REGIONS + 0x10 * (1 - side->number) + (rkey == 0x7f);
	}
	if ((op & 0x80) && wqe->op <= ENG_WRITE_IMM) {
		wqe->flags |= ENG_INLINE;
		wqe->length = next8() % (MAX_INLINE + 1);
		memset(wqe->data.bytes, op, wqe->length);
	} else {
		wqe->length = fill_sges(side, wqe->data.sge, &count);
		wqe->sge_count = (uint8_t)count;
	}
	if (wqe->op == ENG_COMPARE_SWAP || wqe->op == ENG_FETCH_ADD) {
		wqe->length = 8;
		wqe->sge_count = 1;
		wqe->data.sge[0].length = 8;
		wqe->data.sge[0].addr = region_va(BOTH);
		wqe->data.sge[0].lkey = BOTH + 0x10 * side->number;
	}
	if (wqe->op == ENG_ATOMIC_WRITE) {
		wqe->length = 8;
		wqe->flags |= ENG_INLINE;
	}
	if (wqe->op == ENG_FLUSH && !side->datagrams) {
		wqe->sge_count = 0;
		wqe->remote.flush = 1 + rkey % 3 + (rkey & WIRE_FLUSH_MR);
	}
	push(side, wqe);
}

void side_post_recv(struct side *side)
{
	struct eng_recv_wqe *wqe = eng_rq_next(&side->rq);

	if (!wqe || eng_qp_state(side->qp) == ENG_RESET)
		return;
	wqe->wr_id = side->next_recv++;
	wqe->length = fill_sges(side, wqe->sge, &wqe->sge_count);
	eng_rq_push(&side->rq);
	eng_flush(side->qp);
}

void side_check(struct side *side)
{
	const uint8_t *source = side->regions[SOURCE].bytes;
	struct eng_qp_info view;

	eng_qp_query(side->qp, &view);
	require(view.in_flight <= 0x800000);
	require(eng_ring_used(&side->sq) <= SLOTS && eng_ring_used(&side->rq) <= SLOTS);
	require(view.state != ENG_ERR || view.sq_used == 0);
	require(eng_tx_name(view.waiting) != NULL);
	/* Every byte equals the one before it. */
	require(source[0] == SOURCE && memcmp(source, source + 1, SMALL_REGION - 1) == 0);
}

void side_free(struct side *side)
{
	for (unsigned int i = 0; i < REGIONS; i++)
		free(side->regions[i].bytes);
	free(side->sq.slots);
	free(side->rq.slots);
	free(side->replay);
	free(side->qp);
}
