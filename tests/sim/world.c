/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/mutant/mutant.h"
#include "sim/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_BYTES 65536
#define MAX_PIECES 1024
#define MILLISECOND UINT64_C(1000000)
/* Maximum number of steps at the same virtual time; a host that needs more spins. */
#define STEPS_AT_ONCE 20000

void world_fail(struct world *world, const char *format, ...)
{
	va_list args;

	if (world->failed)
		return;
	world->failed = true;
	va_start(args, format);
	vsnprintf(world->reason, sizeof(world->reason), format, args);
	va_end(args);
	if (world->verbose)
		printf("%12.3f us FAILED %s\n", (double)world->now / 1000, world->reason);
}

void world_trace(const struct sim_end *end, const char *format, ...)
{
	va_list args;

	if (!end->world->verbose)
		return;
	printf("%12.3f us %s ", (double)end->world->now / 1000, end->name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void print_aeth(const struct wire_packet *packet)
{
	static const char *const kinds[] = { "credits", "RNR timer", "reserved", "NAK" };
	uint32_t code = packet->syndrome & 31;

	printf(" MSN %u %s %u", packet->msn, kinds[(packet->syndrome >> 5) & 3], code);
	if (packet->syndrome >> 5 == 0 && code != 31)
		printf(" (%u)", oracle_credits(code));
}

void world_trace_packet(const struct sim_end *end, const char *what,
			const struct wire_packet *packet)
{
	uint16_t headers = wire_op_headers(packet->opcode);
	bool request = wire_op_is_request(packet->opcode);
	const struct sim_end *asker = request == (what[0] == '-') ? end : end->peer;

	if (!end->world->verbose)
		return;
	printf("%12.3f us %s %s %s %s at %" PRId64 " (PSN %06x)", (double)end->world->now / 1000,
	       end->name, what, request ? "request" : "response", wire_op_name(packet->opcode),
	       oracle_position(packet->psn, asker->plan->psn, asker->oracle.asking.unacked),
	       packet->psn);
	if (packet->payload_length > 0)
		printf(" %u bytes", packet->payload_length);
	if (headers & WIRE_HAS_RETH)
		printf(" of %u", packet->dma_length);
	if (packet->ack_request)
		printf(" AckReq");
	if (packet->solicited)
		printf(" SE");
	if (packet->congestion & WIRE_CE)
		printf(" CE");
	if (packet->congestion & WIRE_BECN)
		printf(" BECN");
	if (headers & WIRE_HAS_AETH)
		print_aeth(packet);
	putchar('\n');
}

static void lost(void *context, const struct net_packet *packet, enum net_loss why)
{
	(void)context;
	world_trace(packet->from, "   %s %s: %s at PSN %06x", packet->copy ? "copy" : "",
		    packet->request ? "request" : "response", net_loss_name(why), packet->psn);
	oracle_lost(packet->from, packet);
}

static void arrived(void *context, struct net_packet *packet)
{
	(void)context;
	net_queue_append(&packet->to->arrivals, packet);
}

struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		abort();
	world->staging = malloc(STAGING_BYTES);
	world->pieces = malloc(MAX_PIECES * sizeof(world->pieces[0]));
	if (!world->staging || !world->pieces)
		abort();
	world->generation = PLAN_GENERATION;
	return world;
}

static struct sim_end *end_at(struct world *world, uint32_t n)
{
	return &world->connections[n / 2].end[n % 2];
}

static uint32_t end_count(const struct world *world)
{
	return 2 * world->plan.connections;
}

void world_free(struct world *world)
{
	for (uint32_t n = 0; n < 2 * PLAN_MAX_CONNECTIONS; n++) {
		struct sim_end *end = end_at(world, n);

		oracle_free(end);
		script_free(&end->connection->script[n % 2]);
		/* Blocks of an engine that kept packets when the run ended. */
		for (uint32_t i = 0; i < SIM_KEPT; i++)
			free(end->early_blocks[i]);
		free(end->replay);
		free(end->qp);
		free(end->sq_slots);
		queue_free(&end->own_queue);
	}
	for (uint32_t side = 0; side < 2; side++) {
		queue_free(&world->common_queue[side]);
		script_free(&world->common_script[side]);
	}
	net_free(&world->net);
	flows_free(&world->flows);
	free(world->pieces);
	free(world->staging);
	free(world);
}

static void name_end(struct sim_end *end, uint32_t connection, uint32_t connections)
{
	snprintf(end->name, sizeof(end->name), connections > 1 ? "%c%u" : "%c",
		 'A' + (int)end->side, connection + 1);
}

/* Returns a QP number that no earlier end of this side has. */
static uint32_t fresh_qpn(const struct world *world, uint32_t side, uint32_t before,
			  struct sim_random *random)
{
	uint32_t qpn = random_between(random, 2, 0xfffffe);

	for (uint32_t n = 0; n < before; n++)
		if (world->connections[n].end[side].qpn == qpn)
			return fresh_qpn(world, side, before, random);
	return qpn;
}

static void start_connection(struct world *world, uint32_t n, uint32_t round)
{
	struct connection *connection = &world->connections[n];
	struct sim_random random;

	random_seed(&random, world->plan.seed, 100 + n + 1000 * (uint64_t)round);
	if (world->plan.flows)
		script_make_flow(connection->script, &world->plan, n, &random);
	else if (service_is_uc_ud(world->plan.service[n]))
		script_make_uc_ud(connection->script, &world->plan, n, &random);
	else
		script_make(connection->script, &world->plan, n, &random);
	for (uint32_t side = 0; side < 2; side++) {
		struct sim_end *end = &connection->end[side];

		end->world = world;
		end->connection = connection;
		end->peer = &connection->end[!side];
		end->number = n;
		end->side = side;
		end->type = plan_type(&world->plan, n, side);
		end->qkey = world->plan.qkey[n][side];
		end->plan = plan_of(&world->plan, n, side);
		end->script = &connection->script[side];
		end->queue = &end->own_queue;
		if (world->plan.common_queue[side] && end->type != ENG_XRC_SEND &&
		    (end->type != ENG_UC || world->plan.uc_shares))
			end->queue = &world->common_queue[side];
		end->rq_shared = end->plan->rq_shared || end->queue->shared;
		end->srqn = WORLD_COMMON_SRQN + (end->queue == &end->own_queue) * (1 + n);
		if (round == 0)
			end->qpn = fresh_qpn(world, side, n, &random);
		random_seed(&end->random, world->plan.seed,
			    200 + 2 * n + side + 1000 * (uint64_t)round);
		name_end(end, n, world->plan.connections);
	}
	for (uint32_t side = 0; side < 2; side++)
		end_start(&connection->end[side], round > 0);
}

static void start_common_queues(struct world *world, uint32_t round)
{
	for (uint32_t side = 0; side < 2; side++) {
		struct receive_queue *queue = &world->common_queue[side];
		const struct end_plan *plan = &world->plan.end[side];
		struct sim_random random;

		if (!world->plan.common_queue[side])
			continue;
		random_seed(&random, world->plan.seed, 300 + side + 1000 * (uint64_t)round);
		script_make_common(&world->common_script[side], &world->plan, side, &random);
		queue->shared = true;
		queue_open(queue, plan->rq_depth, plan->max_sge);
		queue_start(queue, &world->common_script[side]);
	}
}

/* Each request has been taken once, and all bytes of the queue's memory are right. */
static void check_common_queues(struct world *world)
{
	for (uint32_t side = 0; side < 2; side++) {
		const struct receive_queue *queue = &world->common_queue[side];
		const struct area *landing = &world->common_script[side].landing;
		uint32_t at;

		if (!world->plan.common_queue[side])
			continue;
		if (queue_left(queue) != eng_ring_used(&queue->ring))
			world_fail(world, "%c: %u shared receives are left, and not %u",
				   'A' + (int)side, eng_ring_used(&queue->ring), queue_left(queue));
		at = area_compare(landing);
		if (at != NO_INDEX)
			world_fail(world, "%c: byte %u of the shared receives is wrong",
				   'A' + (int)side, at);
	}
}

static void start(struct world *world, uint64_t seed)
{
	if (world->plans_flows)
		plan_make_flows(&world->plan, seed, world->generation);
	else
		plan_make(&world->plan, seed, world->generation);
	if (world->verbose)
		plan_print(&world->plan);
	/* A time of 0 is invalid for the engine. */
	world->now = 1;
	world->serial = 0;
	world->last_progress = 0;
	world->failed = false;
	world->mutations = 0;
	mutant_start(world);
	random_seed(&world->mutant_random, seed, 2);
	world->net.context = world;
	world->net.lost = lost;
	world->net.arrived = arrived;
	for (uint32_t n = 0; n < PLAN_MAX_CONNECTIONS; n++)
		for (uint32_t side = 0; side < 2; side++)
			world->connections[n].end[side].connection = &world->connections[n];
	for (uint32_t side = 0; side < 2; side++) {
		world->share[side].under_way = 0;
		world->share[side].limit = world->plan.end[side].share_bytes;
		world->share[side].queued = world->plan.queues_share[side];
	}
}

static void start_round(struct world *world, uint32_t round)
{
	if (round > 0 && world->verbose)
		printf("# round %u\n", round + 1);
	world->round_began = world->last_progress = world->now;
	net_start(&world->net, &world->plan, round);
	memset(world->share_queue, 0, sizeof(world->share_queue));
	memset(world->ring, 0, sizeof(world->ring));
	start_common_queues(world, round);
	for (uint32_t n = 0; n < world->plan.connections; n++)
		start_connection(world, n, round);
	flows_start(world);
}

struct sim_end *world_find(struct world *world, uint32_t side, uint32_t qpn)
{
	for (uint32_t n = 0; n < world->plan.connections; n++)
		if (world->connections[n].end[side].qpn == qpn)
			return &world->connections[n].end[side];
	return NULL;
}

static uint64_t next_time(struct world *world)
{
	uint64_t first = net_next_run_at(&world->net);

	if (world->plan.flows && flows_next_at(world) < first)
		first = flows_next_at(world);
	for (uint32_t n = 0; n < end_count(world); n++) {
		uint64_t at = end_next_visit(end_at(world, n));

		if (at < first)
			first = at;
	}
	for (uint32_t side = 0; side < 2; side++)
		if (share_queue_next_at(world, side) < first)
			first = share_queue_next_at(world, side);
	return first;
}

/* Longest time without progress that is not reported as a stall. */
static uint64_t patience(const struct world *world)
{
	const struct plan *plan = &world->plan;
	uint64_t patience = 100 * MILLISECOND;

	/* rule S10: after a late response the timeout is four times as long. */
	if (plan->timeout_code > 0)
		patience += 4 * 20 * (UINT64_C(4096) << plan->timeout_code);
	for (uint32_t side = 0; side < 2; side++)
		patience += 10 * (oracle_rnr_ns(plan->end[side].rnr_timer_code) +
				  plan->end[side].receive_gap_ns + plan->end[side].sleep_ns);
	return patience;
}

/* Maximum number of packets of a round; more is reported as endless chatter. */
static uint64_t packet_budget(struct world *world)
{
	const struct net *net = &world->net;
	uint64_t troubles = net->dropped + net->copied + net->damaged + net->held_back;
	uint64_t budget = 1000;

	for (uint32_t n = 0; n < end_count(world); n++) {
		const struct sim_end *end = end_at(world, n);

		/* Requests and responses of each position, and credit updates for receives. */
		budget += 4 * (uint64_t)end->script->positions + 2 * end->script->receive_count;
		/* CNPs for marked packets, including retransmissions. */
		if (world->plan.ect)
			budget += 2 * (uint64_t)end->script->positions;
		troubles += end->oracle.asking.timeouts + end->oracle.asking.rnr_naks;
	}
	return budget + 500 * troubles;
}

/* A turn of both hosts: their ends, then those that wait for the in-flight budget. */
static void visit_ends(struct world *world)
{
	bool worked[2] = { false, false };

	for (uint32_t n = 0; n < end_count(world) && !world->failed; n++) {
		struct sim_end *end = end_at(world, n);

		if (end_next_visit(end) > world->now)
			continue;
		end_visit(end);
		worked[end->side] = true;
	}
	for (uint32_t side = 0; side < 2; side++)
		if (worked[side] || share_queue_next_at(world, side) <= world->now)
			share_queue_serve(world, side);
}

static void step(struct world *world)
{
	net_run(&world->net, world->now);
	visit_ends(world);
	if (world->plan.flows)
		flows_step(world);
	if (world->now > world->last_progress + patience(world))
		world_fail(world, "stalled: no progress for %" PRIu64 " us",
			   (world->now - world->last_progress) / 1000);
	if (world->net.sent > packet_budget(world))
		world_fail(world, "chatter: %" PRIu64 " packets", world->net.sent);
}

/* Runs until nothing is left to do. */
static void run_until_quiet(struct world *world)
{
	uint32_t at_once = 0;

	while (!world->failed) {
		uint64_t next = next_time(world);

		if (next == ENG_NEVER)
			return;
		if (next > world->now) {
			world->now = next;
			at_once = 0;
		} else if (at_once++ > STEPS_AT_ONCE) {
			world_fail(world, "a host spins");
		}
		step(world);
	}
}

static bool done(const struct sim_end *end)
{
	return oracle_all_done(end) || end->state == ENG_ERR || end->peer->state == ENG_ERR ||
	       share_queue_may_be_stuck(end);
}

static const char *waiting_for(const struct sim_end *end)
{
	struct eng_qp_info view;

	eng_qp_query(end->qp, &view);
	return eng_tx_name(view.waiting);
}

static void send_final_acks(struct world *world)
{
	for (uint32_t n = 0; n < end_count(world) && !world->failed; n++) {
		struct sim_end *end = end_at(world, n);

		if (!random_chance(&end->random, 300))
			continue;
		oracle_final_acks(end);
		eng_send_final_acks(end->qp);
		end->busy = true;
	}
	run_until_quiet(world);
}

static void finish(struct world *world)
{
	for (uint32_t n = 0; n < end_count(world) && !world->failed; n++) {
		const struct sim_end *end = end_at(world, n);

		if (!done(end))
			world_fail(world,
				   "deadlock: %s has %u of %u messages acknowledged, waits for %s",
				   end->name, end->oracle.asking.oldest, end->script->message_count,
				   waiting_for(end));
	}
	if (world->plan.flows && !world->failed)
		flows_finish(world);
	send_final_acks(world);
	/* rule S13 test: requests that are left are flushed. */
	for (uint32_t n = 0; n < end_count(world) && !world->failed; n++) {
		struct sim_end *end = end_at(world, n);

		oracle_to_error(end);
		if (end->state != ENG_ERR)
			end_set_state(end, ENG_ERR);
	}
	run_until_quiet(world);
	for (uint32_t side = 0; side < 2; side++)
		if (world->share[side].under_way != 0)
			world_fail(world, "%" PRIu64 " bytes count as under way for ever",
				   world->share[side].under_way);
	for (uint32_t n = 0; n < end_count(world) && !world->failed; n++)
		oracle_final(end_at(world, n));
	check_common_queues(world);
}

static void add_up_services(struct world *world, const struct sim_end *end)
{
	const struct script *script = end->script;

	if (service_is_uc_ud(end->type)) {
		world->total.uc_ud_sent += end->oracle.asking.oldest;
		world->total.uc_ud_received += end->oracle.receives_completed;
	}
	if (end->type == ENG_XRC_SEND)
		world->total.xrc_sent += end->oracle.asking.oldest;
	if (end->queue->shared)
		world->total.shared_received += end->oracle.receives_completed;
	for (uint32_t i = 0; i < script->window_count; i++)
		world->total.windows_bound += script->windows[i].bound || script->windows[i].ended;
	world->total.gone += script->source.gone + script->landing.gone + script->remote.gone;
}

static void add_up(struct world *world)
{
	world->total.packets += world->net.sent;
	world->total.lost += world->net.dropped;
	world->total.damaged += world->net.damaged;
	for (uint32_t n = 0; n < end_count(world); n++) {
		const struct oracle *oracle = &end_at(world, n)->oracle;

		world->total.messages += oracle->asking.oldest;
		add_up_services(world, end_at(world, n));
		world->total.timeouts += oracle->asking.timeouts;
		world->total.repeated += oracle->asking.repeats;
		world->total.naks += oracle->asking.naks;
		world->total.rnr_naks += oracle->asking.rnr_naks;
		world->total.limited += oracle->asking.limited;
		world->total.unsolicited += oracle->answering.unsolicited;
	}
}

static void clear(struct world *world)
{
	struct net_packet *packet;

	for (uint32_t n = 0; n < end_count(world); n++)
		while ((packet = net_queue_take(&end_at(world, n)->arrivals)) != NULL)
			net_packet_free(&world->net, packet);
	net_clear(&world->net);
}

bool world_run(struct world *world, uint64_t seed)
{
	start(world, seed);
	for (uint32_t round = 0; round < world->plan.rounds && !world->failed; round++) {
		start_round(world, round);
		run_until_quiet(world);
		finish(world);
		add_up(world);
		clear(world);
	}
	world->total.virtual_ns += world->now;
	return !world->failed;
}
