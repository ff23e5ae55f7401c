// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <assert.h>
#include <stdio.h>

#include "endpoint.h"

bool endpoint_has_srq(const struct scenario *sc, uint32_t side)
{
	return sc->shared && side == 1;
}

uint32_t endpoint_receives(const struct scenario *sc, const struct scheme *scheme, uint32_t side)
{
	uint32_t each = scheme_receives(scheme, sc->depth);

	if (!endpoint_has_srq(sc, side))
		return each;
	if (scheme->flags & SCHEME_SHARES_RECEIVES || sc->only_control)
		return at_least(1, each * sc->links * sc->shared_percent / 100);
	return each * sc->links;
}

/*
 * Returns the number of receives promised to a connection.  A scheme that promises nothing per
 * connection may use the whole SRQ.
 */
static uint32_t promised_receives(const struct scenario *sc, const struct scheme *scheme,
				  uint32_t side)
{
	if (endpoint_has_srq(sc, side) && scheme->flags & SCHEME_SHARES_RECEIVES)
		return endpoint_receives(sc, scheme, side);
	return sc->depth;
}

static bool consumes_receive(enum flow_op op)
{
	return op == OP_SEND || op == OP_WRITE_IMM;
}

/* Returns the first message of the plan from index on that consumes a receive (counted) or not. */
static uint32_t find_next(const struct flow_endpoint *st, const struct flow_link *l, uint32_t index,
			  bool counted)
{
	uint32_t link = (uint32_t)(l - st->link);

	if (!st->sc->mixed_percent)
		return counted ? index : l->to_send;
	while (index < l->to_send &&
	       consumes_receive(scenario_op(st->sc, st->seed, st->side, link, index)) != counted)
		index++;
	return index;
}

static uint32_t count_planned_receives(const struct scenario *sc, uint64_t seed, uint32_t side,
				       uint32_t link)
{
	uint32_t counted = 0;

	for (uint32_t i = 0; i < sc->count[side]; i++)
		counted += consumes_receive(scenario_op(sc, seed, side, link, i));
	return counted;
}

void endpoint_init(struct flow_endpoint *st, struct run_stats *stats)
{
	const struct scenario *sc = st->sc;
	uint32_t side = st->side;

	st->link_count = sc->links;
	st->shared = endpoint_has_srq(sc, side);
	st->strict = !(st->scheme->flags & SCHEME_RNR_IS_PART) && !sc->unreliable;
	st->mine = &stats->side[side];
	st->peer_stats = &stats->side[!side];
	st->stats_shared = true;
	for (uint32_t i = 0; i < sc->links; i++) {
		struct flow_link *l = &st->link[i];
		/* By negotiation each endpoint knows the depth of the peer's promise as well. */
		uint32_t depth = promised_receives(sc, st->scheme, sc->shared ? 1 : side);

		scheme_begin(&l->s, st->scheme, depth);
		l->to_send = sc->count[side];
		l->to_consume = count_planned_receives(sc, st->seed, !side, i);
		if (sc->shape == SHAPE_REQUESTS)
			l->to_consume = sc->count[0];
		l->next = find_next(st, l, 0, true);
		l->next_uncounted = find_next(st, l, 0, false);
		l->blocked_ns = NEVER;
		st->total_to_consume += l->to_consume;
	}
}

void endpoint_receives_posted(struct flow_endpoint *st)
{
	uint32_t receives = endpoint_receives(st->sc, st->scheme, st->side);

	for (uint32_t i = 0; i < st->link_count; i++) {
		st->link[i].posted = receives;
		if (!st->shared || i == 0) {
			stats_add(&st->mine->posted[i], receives);
			st->result.receives += receives;
		}
	}
}

void endpoint_start(struct flow_endpoint *st, uint64_t now)
{
	st->started_ns = st->last_finish_ns = now;
	for (uint32_t i = 0; i < st->link_count; i++)
		st->link[i].ready_since_ns = st->link[i].last_response_ns = now;
}

/* ---- sending ---- */

static uint32_t sq_used(const struct flow_link *l)
{
	return l->sq_in - l->sq_out;
}

/* Time at which the next message is ready, or NEVER if it depends on another message. */
static uint64_t message_ready_ns(const struct flow_endpoint *st, const struct flow_link *l)
{
	if (l->next >= l->to_send)
		return NEVER;
	if (st->sc->in_turn && st->side == 1 && l->consumed < l->to_consume)
		return NEVER;
	if (st->sc->shape == SHAPE_BURSTS)
		return st->started_ns + scenario_burst_ns(st->sc, l->next);
	if (st->sc->shape == SHAPE_REQUESTS)
		return l->outstanding_requests < st->sc->requests ? l->last_response_ns : NEVER;
	return l->ready_since_ns;
}

static enum flow_kind next_kind(const struct flow_endpoint *st, const struct flow_link *l,
				enum flow_op op)
{
	(void)l;
	if (st->sc->shape == SHAPE_REQUESTS)
		return FLOW_REQUEST;
	return op == OP_WRITE_IMM ? FLOW_IMMEDIATE : FLOW_DATA;
}

/* Ends a time in which the next message was blocked. */
static void clear_blocked(struct flow_endpoint *st, struct flow_link *l, uint64_t now)
{
	uint64_t ns;

	if (l->blocked_ns == NEVER)
		return;
	ns = now - l->blocked_ns;
	st->result.blocked_ns += ns;
	if (ns > st->result.max_blocked_ns)
		st->result.max_blocked_ns = ns;
	l->blocked_ns = NEVER;
}

static void set_blocked(struct flow_endpoint *st, struct flow_link *l, uint64_t now)
{
	if (l->blocked_ns != NEVER)
		return;
	l->blocked_ns = now;
	st->result.stalls++;
}

/* Counts a message for the checker, independently of the scheme's counts; detects overruns. */
static void count_sent(struct flow_endpoint *st, struct flow_link *l, enum flow_kind kind)
{
	uint32_t link = (uint32_t)(l - st->link);
	uint64_t sent = 0, posted;

	stats_add(&st->mine->sent_all, 1);
	stats_add(&st->mine->sent[link], 1);
	if (!st->stats_shared)
		return;
	if (endpoint_has_srq(st->sc, !st->side)) {
		for (uint32_t i = 0; i < st->link_count; i++)
			sent += stats_get(&st->mine->sent[i]);
		link = 0;
	} else {
		sent = stats_get(&st->mine->sent[link]);
	}
	posted = stats_get(&st->peer_stats->posted[link]);
	if (sent > posted && !(kind == FLOW_CONTROL && st->scheme->flags & SCHEME_OVER_BY_ACK))
		stats_add(&st->mine->overruns, 1);
}

static void send_message(struct flow_endpoint *st, struct flow_link *l, struct flow_message *out,
			 uint64_t now)
{
	bool by_write = out->kind == FLOW_CONTROL && st->scheme->flags & SCHEME_UPDATE_BY_WRITE;

	out->link = (uint32_t)(l - st->link);
	out->update = (struct flow_update){ 0 };
	if (consumes_receive(out->op)) {
		st->scheme->on_send(&l->s, out->kind, &out->update);
		if (by_write)
			out->op = OP_WRITE;
		else
			count_sent(st, l, out->kind);
	}
	if (out->kind == FLOW_CONTROL) {
		l->updates_in_flight++;
		st->result.control_sent++;
		stats_add(&st->mine->control_sent, 1);
	} else {
		st->result.data_sent++;
		stats_add(&st->mine->data_sent, 1);
		if (!st->result.first_sent_ns)
			st->result.first_sent_ns = now;
	}
	l->sq[l->sq_in++ % ENDPOINT_SQ] = *out;
}

/*
 * Selects the next application message that consumes a receive.  Returns false if there is none, or
 * if it may not be sent; then it is blocked.
 */
static bool select_counted(struct flow_endpoint *st, struct flow_link *l, uint64_t now,
			   struct flow_message *out)
{
	uint64_t ready = message_ready_ns(st, l);
	uint32_t link = (uint32_t)(l - st->link);

	if (l->responses_in != l->responses_out) {
		out->op = OP_SEND;
		out->kind = FLOW_RESPONSE;
		out->ready_ns = l->responses[l->responses_out % ENDPOINT_RESPONSES];
	} else if (ready <= now) {
		out->op = scenario_op(st->sc, st->seed, st->side, link, l->next);
		out->kind = next_kind(st, l, out->op);
		out->ready_ns = ready;
	} else {
		return false;
	}
	if (!st->scheme->may_send(&l->s, out->kind)) {
		set_blocked(st, l, now);
		return false;
	}
	clear_blocked(st, l, now);
	if (out->kind == FLOW_RESPONSE) {
		l->responses_out++;
		return true;
	}
	if (out->kind == FLOW_REQUEST)
		l->outstanding_requests++;
	l->next = find_next(st, l, l->next + 1, true);
	l->ready_since_ns = now;
	return true;
}

/* Selects the next WRITE or READ; it may pass a blocked message by up to ENDPOINT_APP_QUEUE. */
static bool select_uncounted(struct flow_endpoint *st, struct flow_link *l, uint64_t now,
			     struct flow_message *out)
{
	if (l->next_uncounted >= l->to_send || l->next_uncounted >= l->next + ENDPOINT_APP_QUEUE)
		return false;
	/* Keep the order of the plan unless a message is blocked. */
	if (l->next_uncounted > l->next && l->blocked_ns == NEVER)
		return false;
	out->op = scenario_op(st->sc, st->seed, st->side, (uint32_t)(l - st->link),
			      l->next_uncounted);
	out->kind = FLOW_DATA;
	out->ready_ns = now;
	l->next_uncounted = find_next(st, l, l->next_uncounted + 1, false);
	return true;
}

static bool app_has_message(const struct flow_endpoint *st, const struct flow_link *l, uint64_t now)
{
	return l->responses_in != l->responses_out || message_ready_ns(st, l) <= now;
}

static bool may_send_update(const struct flow_endpoint *st, const struct flow_link *l)
{
	/* Updates by WRITE may be in flight together: a later one replaces an earlier one. */
	return sq_used(l) < ENDPOINT_SQ &&
	       (!l->updates_in_flight || st->scheme->flags & SCHEME_UPDATE_BY_WRITE);
}

bool endpoint_next(struct flow_endpoint *st, uint32_t link, uint64_t now, struct flow_message *out)
{
	struct flow_link *l = &st->link[link];

	*out = (struct flow_message){ .bytes = st->sc->bytes };
	if (may_send_update(st, l) &&
	    st->scheme->update_is_due(&l->s, app_has_message(st, l, now))) {
		out->op = OP_SEND;
		out->kind = FLOW_CONTROL;
		out->bytes = 0;
		out->ready_ns = now;
		send_message(st, l, out, now);
		return true;
	}
	if (sq_used(l) >= ENDPOINT_SQ - ENDPOINT_SQ_CONTROL) {
		if (app_has_message(st, l, now))
			set_blocked(st, l, now);
		return false;
	}
	if (l->next_uncounted < l->next && select_uncounted(st, l, now, out)) {
		send_message(st, l, out, now);
		return true;
	}
	if (select_counted(st, l, now, out) || select_uncounted(st, l, now, out)) {
		send_message(st, l, out, now);
		return true;
	}
	return false;
}

static void add_sample(struct samples *samples, uint64_t ns)
{
	if (samples->count < ENDPOINT_SAMPLES)
		samples->ns[samples->count++] = (uint32_t)(ns > UINT32_MAX ? UINT32_MAX : ns);
}

void endpoint_completed(struct flow_endpoint *st, uint32_t link, uint64_t now)
{
	struct flow_link *l = &st->link[link];
	const struct flow_message *m = &l->sq[l->sq_out % ENDPOINT_SQ];

	assert(l->sq_in != l->sq_out);
	if (m->kind == FLOW_CONTROL)
		l->updates_in_flight--;
	else if (!consumes_receive(m->op))
		add_sample(&st->free_latency, now - m->ready_ns);
	l->sq_out++;
}

/* ---- receiving ---- */

/* Checks that the allowance is at most the number of posted receives; it may lag behind. */
static void check_allowance(struct flow_endpoint *st, struct flow_link *l)
{
	uint32_t link = (uint32_t)(l - st->link);
	int64_t allowed, there;

	if (l->s.bogus_updates) {
		stats_add(&st->mine->bogus_updates, l->s.bogus_updates);
		l->s.bogus_updates = 0;
	}
	if (!st->stats_shared || !st->strict || !st->scheme->allowance || st->sc->shared)
		return;
	allowed = st->scheme->allowance(&l->s);
	there = (int64_t)(stats_get(&st->peer_stats->posted[link]) -
			  stats_get(&st->mine->sent[link]));
	if (allowed > 0 && allowed > there)
		stats_add(&st->mine->excess, 1);
}

void endpoint_arrived(struct flow_endpoint *st, const struct flow_message *message, bool taken,
		      uint64_t now)
{
	struct flow_link *l = &st->link[message->link];

	st->scheme->on_receive(&l->s, message->kind, &message->update);
	check_allowance(st, l);
	if (!taken)
		return;
	stats_add(&st->mine->arrived, 1);
	if (l->posted)
		l->posted--;
	if (message->kind == FLOW_CONTROL) {
		l->freed[FLOW_CONTROL]++;
		return;
	}
	assert(st->inbox_in - st->inbox_out < ENDPOINT_INBOX);
	st->inbox[st->inbox_in++ % ENDPOINT_INBOX] =
		(struct waiting_message){ .arrived_ns = now,
					  .ready_ns = message->ready_ns,
					  .link = message->link,
					  .kind = message->kind };
}

static uint64_t next_finish_ns(const struct flow_endpoint *st)
{
	const struct waiting_message *m = &st->inbox[st->inbox_out % ENDPOINT_INBOX];
	uint64_t from = m->arrived_ns, open = st->started_ns + st->sc->pause_ns;

	if (st->inbox_in == st->inbox_out)
		return NEVER;
	if (from < st->last_finish_ns)
		from = st->last_finish_ns;
	if (from < open)
		from = open;
	return from + scenario_service_ns(st->sc, st->seed, st->side, st->consumed_number);
}

static void consume_message(struct flow_endpoint *st, const struct waiting_message *m,
			    uint64_t finished)
{
	struct flow_link *l = &st->link[m->link];

	l->consumed++;
	l->freed[m->kind]++;
	st->consumed_number++;
	st->last_finish_ns = finished;
	st->result.consumed++;
	st->result.consumed_bytes += st->sc->bytes;
	st->result.last_consumed_ns = finished;
	stats_add(&st->mine->consumed, 1);
	if (st->result.consumed * 2 == st->total_to_consume)
		for (uint32_t i = 0; i < st->link_count; i++)
			st->half_consumed[i] = st->link[i].consumed;
	if (m->kind == FLOW_REQUEST) {
		l->responses[l->responses_in++ % ENDPOINT_RESPONSES] = m->ready_ns;
		return;
	}
	if (m->kind == FLOW_RESPONSE) {
		l->outstanding_requests--;
		l->last_response_ns = finished;
	}
	add_sample(&st->latency, finished > m->ready_ns ? finished - m->ready_ns : 0);
}

void endpoint_advance(struct flow_endpoint *st, uint64_t now)
{
	uint64_t finished;

	while ((finished = next_finish_ns(st)) <= now) {
		struct waiting_message m = st->inbox[st->inbox_out++ % ENDPOINT_INBOX];

		consume_message(st, &m, finished);
	}
}

static uint32_t count_freed(const struct flow_link *l)
{
	uint32_t all = 0;

	for (unsigned int kind = 0; kind < FLOW_KINDS; kind++)
		all += l->freed[kind];
	return all;
}

uint32_t endpoint_to_post(const struct flow_endpoint *st, uint32_t link)
{
	const struct flow_link *l = &st->link[link];

	/* An SRQ is refilled immediately, since other connections use it. */
	if (st->shared || l->posted <= scheme_refill_at(st->scheme, l->s.depth))
		return count_freed(l);
	return 0;
}

void endpoint_posted(struct flow_endpoint *st, uint32_t link, uint32_t count)
{
	struct flow_link *l = &st->link[link];

	assert(count == count_freed(l));
	l->posted += count;
	stats_add(&st->mine->posted[st->shared ? 0 : link], count);
	for (unsigned int kind = 0; kind < FLOW_KINDS; kind++)
		for (; l->freed[kind]; l->freed[kind]--)
			st->scheme->on_post(&l->s, (enum flow_kind)kind);
}

/* ---- queries of the loop ---- */

uint64_t endpoint_deadline(const struct flow_endpoint *st)
{
	uint64_t deadline = next_finish_ns(st);

	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];
		uint64_t ready = message_ready_ns(st, l);

		if (ready < deadline && l->blocked_ns == NEVER)
			deadline = ready;
	}
	return deadline;
}

bool endpoint_is_done(const struct flow_endpoint *st)
{
	for (uint32_t i = 0; i < st->link_count; i++) {
		const struct flow_link *l = &st->link[i];
		uint32_t app_in_sq = sq_used(l) - l->updates_in_flight;

		if (l->next < l->to_send || l->next_uncounted < l->to_send ||
		    l->consumed < l->to_consume || l->responses_in != l->responses_out || app_in_sq)
			return false;
	}
	return true;
}

bool endpoint_is_idle(const struct flow_endpoint *st)
{
	if (endpoint_deadline(st) != NEVER)
		return false;
	for (uint32_t i = 0; i < st->link_count; i++)
		if (sq_used(&st->link[i]) || endpoint_to_post(st, i))
			return false;
	return true;
}

void endpoint_explain(const struct flow_endpoint *st, char *text, uint32_t size)
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
			 st->scheme->unreported ? (unsigned int)st->scheme->unreported(&l->s) : 0);
		return;
	}
	snprintf(text, size, "waiting for the peer");
}
