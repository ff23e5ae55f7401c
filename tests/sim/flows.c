/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/flows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/world.h"
#include "wire/icrc.h"

#define MILLISECOND UINT64_C(1000000)
#define SAMPLE_NS MILLISECOND

uint64_t flows_round_trip_ns(const struct plan *plan)
{
	const struct net_plan *net = &plan->net[0];
	uint32_t queue = net->mark_bytes > 0 ? net->mark_bytes : net->queue_bytes;
	uint64_t longest = 0;

	for (uint32_t n = 0; n < plan->connections; n++)
		if (net->flow_delay_ns[n] > longest)
			longest = net->flow_delay_ns[n];
	return 2 * (net->delay_ns + longest) + queue * net->ns_per_byte_x1000 / 1000;
}

uint64_t flows_settle_ns(const struct plan *plan)
{
	return 100 * MILLISECOND + 20 * flows_round_trip_ns(plan);
}

uint64_t flows_slot_ns(const struct plan *plan)
{
	return 50 * MILLISECOND + 10 * flows_round_trip_ns(plan);
}

static const struct sim_end *asker(const struct world *world, uint32_t n)
{
	return &world->connections[n].end[flow_asker(world->plan.flow_op[n])];
}

static uint64_t last_join(const struct plan *plan)
{
	uint32_t last = plan->connections - 1;

	return plan->flow[last][flow_asker(plan->flow_op[last])].join_ns;
}

void flows_start(struct world *world)
{
	struct flows *flows = &world->flows;

	flows->count = flows->from = flows->until = 0;
	flows->measures = false;
	flows->next_at = world->now + SAMPLE_NS;
	flows->forge_at = world->now + world->plan.forged_ns;
}

static struct flow_sample *new_sample(struct flows *flows)
{
	if (flows->count == flows->room) {
		flows->room = flows->room ? 2 * flows->room : 1024;
		flows->samples = realloc(flows->samples, flows->room * sizeof(*flows->samples));
		if (!flows->samples)
			abort();
	}
	return &flows->samples[flows->count++];
}

static bool all_are_busy(const struct world *world)
{
	for (uint32_t n = 0; n < world->plan.connections; n++)
		if (asker(world, n)->oracle.asking.high == asker(world, n)->script->positions)
			return false;
	return true;
}

static bool all_are_done(const struct world *world)
{
	for (uint32_t n = 0; n < world->plan.connections; n++)
		if (!oracle_all_done(asker(world, n)))
			return false;
	return true;
}

static void switch_measure(struct world *world, bool on)
{
	struct flows *flows = &world->flows;

	if (flows->measures == on)
		return;
	flows->measures = on;
	*(on ? &flows->from : &flows->until) = flows->count - 1;
	net_watch(&world->net.bottleneck[0], on, world->now);
}

/* Forges a CNP that no receiver sent, with all fields that the receiver checks. */
static void forge_cnp(struct world *world)
{
	uint32_t sender = 0;
	struct sim_end *end = &world->connections[0].end[sender], *peer = end->peer;
	struct net_packet *to = net_packet_new(&world->net);
	struct wire_packet cnp = { .opcode = WIRE_CNP_OPCODE,
				   .pkey = WIRE_DEFAULT_PKEY,
				   .congestion = WIRE_BECN,
				   .dest_qpn = end->qpn };

	to->length = wire_build_headers(&cnp, to->bytes) + WIRE_ICRC_BYTES;
	to->from = peer;
	to->to = end;
	to->path = &peer->cnp_path;
	to->ip_id = 0;
	to->request = to->nak = false;
	to->cnp = true;
	wire_icrc_put(&to->path->wire, to->ip_id, to->bytes, to->length);
	net_queue_append(&end->arrivals, to);
}

/* Time of the next forged CNP, or ENG_NEVER. */
uint64_t flows_next_at(const struct world *world)
{
	return world->plan.forged_ns && !all_are_done(world) ? world->flows.forge_at : ENG_NEVER;
}

void flows_step(struct world *world)
{
	struct flows *flows = &world->flows;
	struct flow_sample *sample;
	bool over = flows->until > 0;

	if (world->now >= flows_next_at(world)) {
		flows->forge_at = world->now + world->plan.forged_ns;
		forge_cnp(world);
	}
	if (world->now < flows->next_at || over)
		return;
	flows->next_at = world->now - world->now % SAMPLE_NS + SAMPLE_NS;
	sample = new_sample(flows);
	sample->at = world->now;
	for (uint32_t n = 0; n < world->plan.connections; n++)
		sample->bytes[n] =
			(uint64_t)asker(world, n)->oracle.asking.unacked * world->plan.mtu;
	if (!all_are_busy(world))
		switch_measure(world, false);
	else if (world->now >= last_join(&world->plan) + flows_settle_ns(&world->plan))
		switch_measure(world, true);
}

static uint64_t got(const struct flows *flows, uint32_t from, uint32_t until, uint32_t n)
{
	return flows->samples[until].bytes[n] - flows->samples[from].bytes[n];
}

/* Bytes that the line carries between two samples, with headers. */
static double capacity(const struct world *world, uint32_t from, uint32_t until)
{
	const struct flow_sample *samples = world->flows.samples;
	uint64_t ns = samples[until].at - samples[from].at;

	return (double)ns * 1000 / (double)world->plan.net[0].ns_per_byte_x1000;
}

/* Lowest share of any flow in any slot; slots overlap by half. */
static double least_share(const struct world *world)
{
	const struct flows *flows = &world->flows;
	uint64_t slot = flows_slot_ns(&world->plan);
	double least = 1;

	for (uint32_t from = flows->from, until = from; from < flows->until;) {
		uint64_t began = flows->samples[from].at;

		while (until < flows->until && flows->samples[until].at < began + slot)
			until++;
		if (flows->samples[until].at < began + slot)
			break;
		for (uint32_t n = 0; n < world->plan.connections; n++) {
			double share = (double)got(flows, from, until, n) *
				       world->plan.connections / capacity(world, from, until);

			if (share < least)
				least = share;
		}
		while (flows->samples[from].at < began + slot / 2)
			from++;
	}
	return least;
}

static void measure(const struct world *world, struct flow_figures *figures)
{
	const struct flows *flows = &world->flows;
	uint32_t count = world->plan.connections;
	double sum = 0, squares = 0;

	for (uint32_t n = 0; n < count; n++) {
		double bytes = (double)got(flows, flows->from, flows->until, n);

		sum += bytes;
		squares += bytes * bytes;
	}
	figures->ns = flows->samples[flows->until].at - flows->samples[flows->from].at;
	figures->jain = squares > 0 ? sum * sum / (count * squares) : 0;
	figures->line = sum / capacity(world, flows->from, flows->until);
	figures->least = least_share(world);
}

void flows_finish(struct world *world)
{
	const struct net_watch *watch = &world->net.bottleneck[0].watch;
	struct flow_figures *figures = &world->flows.figures;
	uint64_t repeats = 0, positions = 0;

	*figures = (struct flow_figures){ .queue_p50 = net_watch_level(watch, 500),
					  .queue_p95 = net_watch_level(watch, 950),
					  .marks = watch->marks,
					  .drops = watch->drops };
	for (uint32_t n = 0; n < world->plan.connections; n++) {
		const struct asking *asking = &asker(world, n)->oracle.asking;

		repeats += asking->repeats;
		positions += (uint64_t)asking->high;
		figures->timeouts += asking->timeouts;
	}
	figures->repeat = (double)repeats / (double)positions;
	figures->packets = positions;
	if (world->flows.until > world->flows.from)
		measure(world, figures);
	oracle_flows(world);
}

void flows_print_shares(const struct world *world)
{
	const struct flows *flows = &world->flows;

	for (uint32_t from = 0; from + 20 < flows->count; from += 20) {
		uint64_t ns = flows->samples[from + 20].at - flows->samples[from].at;

		printf("%6" PRIu64 " ms:", flows->samples[from].at / MILLISECOND);
		for (uint32_t n = 0; n < world->plan.connections; n++)
			printf(" %4" PRIu64, got(flows, from, from + 20, n) * 8000 / ns);
		printf(" Mb/s\n");
	}
}

void flows_free(struct flows *flows)
{
	free(flows->samples);
}

/* Prints one line: the plan of the flows and their measured figures. */
void flows_print(const struct world *world)
{
	const struct plan *plan = &world->plan;
	const struct net_plan *net = &plan->net[0];
	const struct flow_figures *figures = &world->flows.figures;

	printf("%6" PRIu64 " %u x", plan->seed, plan->connections);
	for (uint32_t n = 0; n < plan->connections; n++)
		printf(" %s/%u", eng_op_name(plan->flow_op[n]), plan->flow_length[n] / plan->mtu);
	printf("%s%s%s mtu %u %" PRIu64 " Mb/s %" PRIu64 " us queue %u k mark %u k loss %u:",
	       plan->end[0].share_bytes ? " one host" : "", plan->hides_echoes ? " no echoes" : "",
	       plan->forged_ns ? " forged" : "", plan->mtu,
	       UINT64_C(8000000) / net->ns_per_byte_x1000, net->delay_ns / 1000,
	       net->queue_bytes / 1000, net->mark_bytes / 1000, net->loss);
	printf(" jain %.3f least %.2f line %.3f repeat %.3f p50 %" PRIu64 " k p95 %" PRIu64
	       " k marks %" PRIu64 " drops %" PRIu64 " timeouts %" PRIu64 " over %" PRIu64 " ms\n",
	       figures->jain, figures->least, figures->line, figures->repeat,
	       figures->queue_p50 / 1000, figures->queue_p95 / 1000, figures->marks, figures->drops,
	       figures->timeouts, figures->ns / MILLISECOND);
}
