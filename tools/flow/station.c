// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "station.h"

bool station_shares(const struct scenario *sc, uint32_t side)
{
	return sc->shared && side == 1;
}

/* A scheme that promises nothing per connection may use the whole SRQ. */
uint32_t station_depth(const struct scenario *sc, const struct scheme *scheme, uint32_t side)
{
	if (station_shares(sc, side) && scheme->flags & SCHEME_POOLS)
		return station_receives(sc, scheme, side);
	return sc->depth;
}

uint32_t station_receives(const struct scenario *sc, const struct scheme *scheme, uint32_t side)
{
	uint32_t each = scheme_receives(scheme, sc->depth);

	if (!station_shares(sc, side))
		return each;
	if (scheme->flags & SCHEME_POOLS || sc->only_control)
		return at_least(1, each * sc->links * sc->shared_percent / 100);
	return each * sc->links;
}

static bool is_counted(enum flow_op op)
{
	return op == OP_SEND || op == OP_WRITE_IMM;
}

/* Returns the first message of the plan from index on that consumes a receive (counted) or not. */
static uint32_t skip_to(const struct station *st, const struct flow_link *l, uint32_t index,
			bool counted)
{
	uint32_t link = (uint32_t)(l - st->link);

	if (!st->sc->mixed_percent)
		return counted ? index : l->to_send;
	while (index < l->to_send &&
	       is_counted(scenario_op(st->sc, st->seed, st->side, link, index)) != counted)
		index++;
	return index;
}

static uint32_t counted_in_plan(const struct scenario *sc, uint64_t seed, uint32_t side,
				uint32_t link)
{
	uint32_t counted = 0;

	for (uint32_t i = 0; i < sc->count[side]; i++)
		counted += is_counted(scenario_op(sc, seed, side, link, i));
	return counted;
}

void station_begin(struct station *st, const struct scenario *sc, const struct scheme *scheme,
		   uint64_t seed, uint32_t side, struct ledger *ledger)
{
	memset(st, 0, sizeof(*st));
	st->sc = sc;
	st->scheme = scheme;
	st->seed = seed;
	st->side = side;
	st->link_count = sc->links;
	st->shared = station_shares(sc, side);
	st->strict = !(scheme->flags & SCHEME_RNR_IS_PART) && !sc->unreliable;
	st->mine = &ledger->side[side];
	st->peers = &ledger->side[!side];
	st->peer_seen = true;
	for (uint32_t i = 0; i < sc->links; i++) {
		struct flow_link *l = &st->link[i];
		/* By negotiation each endpoint knows the depth of the peer's promise as well. */
		uint32_t depth = station_depth(sc, scheme, sc->shared ? 1 : side);

		scheme_begin(&l->s, scheme, depth);
		l->to_send = sc->count[side];
		l->to_consume = counted_in_plan(sc, seed, !side, i);
		if (sc->shape == SHAPE_REQUESTS)
			l->to_consume = sc->count[0];
		l->next = skip_to(st, l, 0, true);
		l->next_free = skip_to(st, l, 0, false);
		l->blocked_ns = NEVER;
		st->total_to_consume += l->to_consume;
	}
}

void station_first_posted(struct station *st)
{
	uint32_t receives = station_receives(st->sc, st->scheme, st->side);

	for (uint32_t i = 0; i < st->link_count; i++) {
		st->link[i].posted = receives;
		if (!st->shared || i == 0) {
			ledger_add(&st->mine->posted[i], receives);
			st->result.receives += receives;
		}
	}
}

void station_start(struct station *st, uint64_t now)
{
	st->started_ns = st->last_finish_ns = now;
	for (uint32_t i = 0; i < st->link_count; i++)
		st->link[i].head_ns = st->link[i].room_ns = now;
}

/* ---- sending ---- */

static uint32_t in_sq(const struct flow_link *l)
{
	return l->sq_in - l->sq_out;
}

/* Time at which the next message is ready, or NEVER if it depends on another message. */
static uint64_t head_ready_ns(const struct station *st, const struct flow_link *l)
{
	if (l->next >= l->to_send)
		return NEVER;
	if (st->sc->in_turn && st->side == 1 && l->consumed < l->to_consume)
		return NEVER;
	if (st->sc->shape == SHAPE_BURSTS)
		return st->started_ns + scenario_burst_ns(st->sc, l->next);
	if (st->sc->shape == SHAPE_REQUESTS)
		return l->open_requests < st->sc->requests ? l->room_ns : NEVER;
	return l->head_ns;
}

static enum flow_kind head_kind(const struct station *st, const struct flow_link *l,
				enum flow_op op)
{
	(void)l;
	if (st->sc->shape == SHAPE_REQUESTS)
		return FLOW_REQUEST;
	return op == OP_WRITE_IMM ? FLOW_IMMEDIATE : FLOW_DATA;
}

/* Ends a time in which the next message was blocked. */
static void unblock(struct station *st, struct flow_link *l, uint64_t now)
{
	uint64_t ns;

	if (l->blocked_ns == NEVER)
		return;
	ns = now - l->blocked_ns;
	st->result.blocked_ns += ns;
	if (ns > st->result.longest_ns)
		st->result.longest_ns = ns;
	l->blocked_ns = NEVER;
}

static void block(struct station *st, struct flow_link *l, uint64_t now)
{
	if (l->blocked_ns != NEVER)
		return;
	l->blocked_ns = now;
	st->result.stalls++;
}

/* Counts a message for the judge, independently of the scheme's counts; detects overruns. */
static void check_promise(struct station *st, struct flow_link *l, enum flow_kind kind)
{
	uint32_t link = (uint32_t)(l - st->link);
	uint64_t sent = 0, posted;

	ledger_add(&st->mine->sent_all, 1);
	ledger_add(&st->mine->sent[link], 1);
	if (!st->peer_seen)
		return;
	if (station_shares(st->sc, !st->side)) {
		for (uint32_t i = 0; i < st->link_count; i++)
			sent += ledger_get(&st->mine->sent[i]);
		link = 0;
	} else {
		sent = ledger_get(&st->mine->sent[link]);
	}
	posted = ledger_get(&st->peers->posted[link]);
	if (sent > posted && !(kind == FLOW_CONTROL && st->scheme->flags & SCHEME_OVER_BY_ACK))
		ledger_add(&st->mine->overruns, 1);
}

static void hand_out(struct station *st, struct flow_link *l, struct flow_message *out,
		     uint64_t now)
{
	bool by_write = out->kind == FLOW_CONTROL && st->scheme->flags & SCHEME_BY_WRITE;

	out->link = (uint32_t)(l - st->link);
	out->posted_ns = now;
	out->news = (struct flow_news){ 0 };
	if (is_counted(out->op)) {
		st->scheme->sending(&l->s, out->kind, &out->news);
		if (by_write)
			out->op = OP_WRITE;
		else
			check_promise(st, l, out->kind);
	}
	if (out->kind == FLOW_CONTROL) {
		l->control_in_flight++;
		st->result.control_sent++;
		ledger_add(&st->mine->control_sent, 1);
	} else {
		st->result.data_sent++;
		ledger_add(&st->mine->data_sent, 1);
		if (!st->result.begun_ns)
			st->result.begun_ns = now;
	}
	l->sq[l->sq_in++ % STATION_SQ] = *out;
}

/*
 * Selects the next application message that consumes a receive.  Returns false if there is none, or
 * if it may not be sent; then it is blocked.
 */
static bool next_counted(struct station *st, struct flow_link *l, uint64_t now,
			 struct flow_message *out)
{
	uint64_t ready = head_ready_ns(st, l);
	uint32_t link = (uint32_t)(l - st->link);

	if (l->answers_in != l->answers_out) {
		out->op = OP_SEND;
		out->kind = FLOW_RESPONSE;
		out->ready_ns = l->answers[l->answers_out % STATION_ANSWERS];
	} else if (ready <= now) {
		out->op = scenario_op(st->sc, st->seed, st->side, link, l->next);
		out->kind = head_kind(st, l, out->op);
		out->ready_ns = ready;
	} else {
		return false;
	}
	if (!st->scheme->may_send(&l->s, out->kind)) {
		block(st, l, now);
		return false;
	}
	unblock(st, l, now);
	if (out->kind == FLOW_RESPONSE) {
		l->answers_out++;
		return true;
	}
	if (out->kind == FLOW_REQUEST)
		l->open_requests++;
	l->next = skip_to(st, l, l->next + 1, true);
	l->head_ns = now;
	return true;
}

/* Selects the next WRITE or READ; it may pass a blocked message by up to STATION_APP_QUEUE. */
static bool next_free(struct station *st, struct flow_link *l, uint64_t now,
		      struct flow_message *out)
{
	if (l->next_free >= l->to_send || l->next_free >= l->next + STATION_APP_QUEUE)
		return false;
	/* Keep the order of the plan unless a message is blocked. */
	if (l->next_free > l->next && l->blocked_ns == NEVER)
		return false;
	out->op = scenario_op(st->sc, st->seed, st->side, (uint32_t)(l - st->link), l->next_free);
	out->kind = FLOW_DATA;
	out->ready_ns = now;
	l->next_free = skip_to(st, l, l->next_free + 1, false);
	return true;
}

static bool app_waits(const struct station *st, const struct flow_link *l, uint64_t now)
{
	return l->answers_in != l->answers_out || head_ready_ns(st, l) <= now;
}

static bool may_control(const struct station *st, const struct flow_link *l)
{
	/* Updates by WRITE may be in flight together: a later one replaces an earlier one. */
	return in_sq(l) < STATION_SQ &&
	       (!l->control_in_flight || st->scheme->flags & SCHEME_BY_WRITE);
}

bool station_next(struct station *st, uint32_t link, uint64_t now, struct flow_message *out)
{
	struct flow_link *l = &st->link[link];

	*out = (struct flow_message){ .bytes = st->sc->bytes };
	if (may_control(st, l) && st->scheme->wants_control(&l->s, app_waits(st, l, now))) {
		out->op = OP_SEND;
		out->kind = FLOW_CONTROL;
		out->bytes = 0;
		out->ready_ns = now;
		hand_out(st, l, out, now);
		return true;
	}
	if (in_sq(l) >= STATION_SQ - STATION_SQ_CONTROL) {
		if (app_waits(st, l, now))
			block(st, l, now);
		return false;
	}
	if (l->next_free < l->next && next_free(st, l, now, out)) {
		hand_out(st, l, out, now);
		return true;
	}
	if (next_counted(st, l, now, out) || next_free(st, l, now, out)) {
		hand_out(st, l, out, now);
		return true;
	}
	return false;
}

static void sample(struct samples *samples, uint64_t ns)
{
	if (samples->count < STATION_SAMPLES)
		samples->ns[samples->count++] = (uint32_t)(ns > UINT32_MAX ? UINT32_MAX : ns);
}

void station_completed(struct station *st, uint32_t link, uint64_t now)
{
	struct flow_link *l = &st->link[link];
	const struct flow_message *m = &l->sq[l->sq_out % STATION_SQ];

	assert(l->sq_in != l->sq_out);
	if (m->kind == FLOW_CONTROL)
		l->control_in_flight--;
	else if (!is_counted(m->op))
		sample(&st->free_latency, now - m->ready_ns);
	l->sq_out++;
}

/* ---- receiving ---- */

/* Checks that the allowance is at most the number of posted receives; it may lag behind. */
static void check_view(struct station *st, struct flow_link *l)
{
	uint32_t link = (uint32_t)(l - st->link);
	int64_t allowed, there;

	if (l->s.lied) {
		ledger_add(&st->mine->lied, l->s.lied);
		l->s.lied = 0;
	}
	if (!st->peer_seen || !st->strict || !st->scheme->allowance || st->sc->shared)
		return;
	allowed = st->scheme->allowance(&l->s);
	there = (int64_t)(ledger_get(&st->peers->posted[link]) - ledger_get(&st->mine->sent[link]));
	if (allowed > 0 && allowed > there)
		ledger_add(&st->mine->excess, 1);
}

void station_arrived(struct station *st, const struct flow_message *message, bool taken,
		     uint64_t now)
{
	struct flow_link *l = &st->link[message->link];

	st->scheme->heard(&l->s, message->kind, &message->news);
	check_view(st, l);
	if (!taken)
		return;
	ledger_add(&st->mine->arrived, 1);
	if (l->posted)
		l->posted--;
	if (message->kind == FLOW_CONTROL) {
		l->freed[FLOW_CONTROL]++;
		return;
	}
	assert(st->inbox_in - st->inbox_out < STATION_INBOX);
	st->inbox[st->inbox_in++ % STATION_INBOX] =
		(struct waiting_message){ .arrived_ns = now,
					  .ready_ns = message->ready_ns,
					  .link = message->link,
					  .kind = message->kind };
}

static uint64_t finish_ns(const struct station *st)
{
	const struct waiting_message *m = &st->inbox[st->inbox_out % STATION_INBOX];
	uint64_t from = m->arrived_ns, open = st->started_ns + st->sc->pause_ns;

	if (st->inbox_in == st->inbox_out)
		return NEVER;
	if (from < st->last_finish_ns)
		from = st->last_finish_ns;
	if (from < open)
		from = open;
	return from + scenario_service_ns(st->sc, st->seed, st->side, st->consumed_number);
}

static void consume(struct station *st, const struct waiting_message *m, uint64_t finished)
{
	struct flow_link *l = &st->link[m->link];

	l->consumed++;
	l->freed[m->kind]++;
	st->consumed_number++;
	st->last_finish_ns = finished;
	st->result.consumed++;
	st->result.consumed_bytes += st->sc->bytes;
	st->result.ended_ns = finished;
	ledger_add(&st->mine->consumed, 1);
	if (st->result.consumed * 2 == st->total_to_consume)
		for (uint32_t i = 0; i < st->link_count; i++)
			st->half_consumed[i] = st->link[i].consumed;
	if (m->kind == FLOW_REQUEST) {
		l->answers[l->answers_in++ % STATION_ANSWERS] = m->ready_ns;
		return;
	}
	if (m->kind == FLOW_RESPONSE) {
		l->open_requests--;
		l->room_ns = finished;
	}
	sample(&st->latency, finished > m->ready_ns ? finished - m->ready_ns : 0);
}

void station_advance(struct station *st, uint64_t now)
{
	uint64_t finished;

	while ((finished = finish_ns(st)) <= now) {
		struct waiting_message m = st->inbox[st->inbox_out++ % STATION_INBOX];

		consume(st, &m, finished);
	}
}

static uint32_t freed(const struct flow_link *l)
{
	uint32_t all = 0;

	for (unsigned int kind = 0; kind < FLOW_KINDS; kind++)
		all += l->freed[kind];
	return all;
}

uint32_t station_to_post(const struct station *st, uint32_t link)
{
	const struct flow_link *l = &st->link[link];

	/* An SRQ is refilled immediately, since other connections use it. */
	if (st->shared || l->posted <= scheme_refill_at(st->scheme, l->s.depth))
		return freed(l);
	return 0;
}

void station_posted(struct station *st, uint32_t link, uint32_t count)
{
	struct flow_link *l = &st->link[link];

	assert(count == freed(l));
	l->posted += count;
	ledger_add(&st->mine->posted[st->shared ? 0 : link], count);
	for (unsigned int kind = 0; kind < FLOW_KINDS; kind++)
		for (; l->freed[kind]; l->freed[kind]--)
			st->scheme->posted(&l->s, (enum flow_kind)kind);
}

/* ---- queries of the loop ---- */

uint64_t station_deadline(const struct station *st)
{
	uint64_t deadline = finish_ns(st);

	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];
		uint64_t ready = head_ready_ns(st, l);

		if (ready < deadline && l->blocked_ns == NEVER)
			deadline = ready;
	}
	return deadline;
}

bool station_done(const struct station *st)
{
	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];
		uint32_t app_in_sq = in_sq(l) - l->control_in_flight;

		if (l->next < l->to_send || l->next_free < l->to_send ||
		    l->consumed < l->to_consume || l->answers_in != l->answers_out || app_in_sq)
			return false;
	}
	return true;
}

bool station_quiet(const struct station *st)
{
	if (station_deadline(st) != NEVER)
		return false;
	for (uint32_t i = 0; i < st->link_count; i++)
		if (in_sq(&st->link[i]) || station_to_post(st, i))
			return false;
	return true;
}

void station_explain(const struct station *st, char *text, uint32_t size)
{
	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];

		if (l->blocked_ns == NEVER)
			continue;
		snprintf(text, size,
			 "message %u of %u may not go: %d may be sent, %u receives of its own are "
			 "not told",
			 l->next, l->to_send,
			 st->scheme->allowance ? (int)st->scheme->allowance(&l->s) : 0,
			 st->scheme->hidden ? (unsigned int)st->scheme->hidden(&l->s) : 0);
		return;
	}
	snprintf(text, size, "it waits for the peer");
}
