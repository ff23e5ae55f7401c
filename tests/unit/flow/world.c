// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

enum {
	IN_FLIGHT = ENDPOINT_SQ,
	RNR_NS = 640000,
	NAP_NS = 40000,
	MAX_STEPS = 4000000,
};

/* One direction of one connection. */
struct wire {
	struct flow_message message[IN_FLIGHT];
	uint64_t arrives_ns[IN_FLIGHT];
	uint32_t in, out;
	uint64_t complete_ns[IN_FLIGHT];
	uint32_t complete_in, complete_out;
};

struct world {
	const struct scenario *sc;
	uint64_t now, random, naks;
	uint64_t awake_ns[FLOW_SIDES];		       /* side sleeps until then; arrivals wait */
	int64_t free_receives[FLOW_SIDES][FLOW_LINKS]; /* by link; a shared queue: all at 0 */
	struct wire wire[FLOW_SIDES][FLOW_LINKS];      /* by sender */
	struct flow_endpoint endpoint[FLOW_SIDES];
	struct run_stats stats;
};

static uint64_t rand_below(struct world *w, uint64_t below)
{
	w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (w->random >> 33) % below;
}

static int64_t *receives_of(struct world *w, unsigned int side, uint32_t link)
{
	return &w->free_receives[side][w->endpoint[side].shared ? 0 : link];
}

static bool lose(struct world *w)
{
	return w->sc->unreliable && rand_below(w, 100) < 5;
}

/* Returns true if anything was delivered, completed or postponed. */
static bool move_wire(struct world *w, unsigned int from, uint32_t link)
{
	struct wire *wire = &w->wire[from][link];
	struct flow_endpoint *to = &w->endpoint[!from];
	struct flow_message *m = &wire->message[wire->out % IN_FLIGHT];
	bool taken, moved = false;

	if (wire->complete_in != wire->complete_out &&
	    wire->complete_ns[wire->complete_out % IN_FLIGHT] <= w->now) {
		wire->complete_out++;
		endpoint_completed(&w->endpoint[from], link, w->now);
		moved = true;
	}
	if (wire->in == wire->out || wire->arrives_ns[wire->out % IN_FLIGHT] > w->now)
		return moved;
	taken = m->op == OP_SEND || m->op == OP_WRITE_IMM;
	if (taken && *receives_of(w, !from, link) == 0 && !w->sc->unreliable) {
		w->naks++;
		for (uint32_t i = wire->out; i != wire->in; i++)
			wire->arrives_ns[i % IN_FLIGHT] += RNR_NS;
		return true;
	}
	if (!lose(w) && (taken || m->kind == FLOW_CONTROL) &&
	    (!taken || *receives_of(w, !from, link))) {
		*receives_of(w, !from, link) -= taken;
		endpoint_arrived(to, m, taken, w->now);
	}
	wire->complete_ns[wire->complete_in++ % IN_FLIGHT] = w->now + 1000 + rand_below(w, 4000);
	wire->out++;
	return true;
}

static bool move_station(struct world *w, unsigned int side)
{
	struct flow_endpoint *st = &w->endpoint[side];
	struct flow_message out;
	bool moved = false;

	endpoint_advance(st, w->now);
	for (uint32_t link = 0; link < st->link_count; link++) {
		struct wire *wire = &w->wire[side][link];
		uint32_t count = endpoint_to_post(st, link);

		if (count) {
			*receives_of(w, side, link) += count;
			endpoint_posted(st, link, count);
			moved = true;
		}
		while (endpoint_next(st, link, w->now, &out)) {
			uint64_t at = w->now + 1000 + rand_below(w, 9000);

			if (wire->in != wire->out &&
			    at < wire->arrives_ns[(wire->in - 1) % IN_FLIGHT])
				at = wire->arrives_ns[(wire->in - 1) % IN_FLIGHT];
			wire->message[wire->in % IN_FLIGHT] = out;
			wire->arrives_ns[wire->in++ % IN_FLIGHT] = at;
			moved = true;
		}
	}
	st->mine->done = endpoint_is_done(st);
	st->mine->idle = endpoint_is_idle(st);
	stats_add(&st->mine->loops, 1);
	return moved;
}

static void earlier(uint64_t *next, uint64_t ns)
{
	if (ns < *next)
		*next = ns;
}

static uint64_t next_event(struct world *w)
{
	uint64_t next = NEVER;

	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		if (w->awake_ns[side] > w->now)
			earlier(&next, w->awake_ns[side]);
		else
			earlier(&next, endpoint_deadline(&w->endpoint[side]));
		for (uint32_t link = 0; link < w->sc->links; link++) {
			struct wire *wire = &w->wire[side][link];

			if (wire->in != wire->out)
				earlier(&next, wire->arrives_ns[wire->out % IN_FLIGHT]);
			if (wire->complete_in != wire->complete_out)
				earlier(&next, wire->complete_ns[wire->complete_out % IN_FLIGHT]);
		}
	}
	return next;
}

static bool move(struct world *w)
{
	bool moved = false;

	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		for (uint32_t link = 0; link < w->sc->links; link++)
			moved |= move_wire(w, side, link);
		if (w->now < w->awake_ns[side])
			continue;
		if (move_station(w, side)) {
			moved = true;
			w->awake_ns[side] = w->now + rand_below(w, 2) * rand_below(w, NAP_NS);
		}
	}
	return moved;
}

static void begin(struct world *w, const struct scenario *sc, const struct scheme *scheme,
		  uint64_t seed)
{
	w->sc = sc;
	w->random = seed;
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct flow_endpoint *st = &w->endpoint[side];

		st->sc = sc;
		st->scheme = scheme;
		st->seed = seed;
		st->side = side;
		endpoint_init(st, &w->stats);
		for (uint32_t link = 0; link < (st->shared ? 1 : sc->links); link++)
			w->free_receives[side][link] = endpoint_receives(sc, scheme, side);
		endpoint_receives_posted(st);
		endpoint_start(st, 0);
	}
}

void world_run(const struct scenario *sc, const struct scheme *scheme, uint64_t seed,
	       struct world_result *result)
{
	struct world *w = calloc(1, sizeof(*w));
	enum flow_verdict verdict = VERDICT_RUNNING;
	struct run_checker checker;

	assert(w);
	begin(w, sc, scheme, seed);
	checker_init(&checker, &w->stats, sc, scheme, 0);
	checker.steady_ns = 0;
	for (unsigned int step = 0; verdict == VERDICT_RUNNING && step < MAX_STEPS; step++) {
		if (!move(w)) {
			uint64_t next = next_event(w);

			w->now = next == NEVER ? w->now + 1 : next > w->now ? next : w->now + 1;
		}
		verdict = checker_poll(&checker, w->now);
	}
	*result = (struct world_result){ .ns = w->now, .rnr_naks = w->naks };
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		struct endpoint_stats *l = &w->stats.side[side];

		endpoint_finish(&w->endpoint[side]);
		result->controls += l->control_sent;
		result->data += l->data_sent;
		result->overruns += l->overruns;
		memcpy(result->what[side], l->what, sizeof(l->what));
	}
	result->verdict = checker_final(&checker, verdict);
	free(w);
}
