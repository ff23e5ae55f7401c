/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A host and its consumer: serves one end of a connection whenever there is something to do, in the
 * order of the progress layer: receive, expire, post, transmit.
 */
#include "sim/mutant/mutant.h"
#include "sim/world.h"
#include "wire/icrc.h"

#define POSTS_IN_ERROR 3
/* Time until a host tries again to send READ responses that were due but could not be sent. */
#define PAUSE_NS 1000

static bool post_receive(struct sim_end *end)
{
	if (!queue_has_room(end->queue))
		return false;
	queue_post(end->queue);
	return true;
}

static uint32_t receives_to_post(struct sim_end *end)
{
	switch (end->plan->receives) {
	case RECEIVES_EARLY:
		return UINT32_MAX;
	case RECEIVES_BURST:
		return eng_ring_used(&end->queue->ring) == 0 ? UINT32_MAX : 0;
	case RECEIVES_LATE:
		return random_between(&end->random, 1, 4);
	default:
		return 1;
	}
}

/*
 * Like progress_posted_receive(): asks the engine whether the posted receives need a packet.  A
 * consumer of a shared queue has no queue pair to ask.
 */
static void tell_of_receives(struct sim_end *end, bool idle)
{
	end->receives_wait = false;
	if (!end->world->plan.tells_receives[end->side] || end->queue != &end->own_queue ||
	    end->rq_shared)
		return;
	if (eng_receive_posted(end->qp)) {
		end->posts = true;
		return;
	}
	end->receives_wait = true;
	if (idle)
		oracle_receives_say_nothing(end);
}

/* idle: nothing else has happened, and nothing was left to do. */
static void post_receives(struct sim_end *end, bool idle)
{
	uint32_t n, done = 0;
	bool early = end->plan->receives == RECEIVES_EARLY;

	if (end->state == ENG_INIT && !end->plan->receives_before_rtr)
		return;
	if (end->queue->next_post_at > end->world->now)
		return;
	for (n = receives_to_post(end); done < n && post_receive(end); done++)
		;
	if (done > 0) {
		world_trace(end, "post %u receives, %u free", done,
			    eng_ring_used(&end->queue->ring));
		tell_of_receives(end, idle);
	}
	end->queue->next_post_at = end->world->now;
	if (!early)
		end->queue->next_post_at +=
			1 + random_skewed(&end->random, end->plan->receive_gap_ns);
}

static bool receives_wanted(const struct sim_end *end)
{
	if (!queue_has_room(end->queue))
		return false;
	if (end->state == ENG_INIT && !end->plan->receives_before_rtr)
		return false;
	return end->plan->receives != RECEIVES_BURST || eng_ring_used(&end->queue->ring) == 0;
}

static void address(const struct sim_end *end, const struct message *message,
		    struct eng_send_wqe *wqe)
{
	const struct sim_end *dest = &end->world->connections[message->dest].end[!end->side];

	wqe->ud.path = &end->paths[message->dest];
	wqe->ud.dest_qpn = message->grouped ? PLAN_GROUP_QPN : dest->qpn;
	wqe->ud.qkey = message->qkey;
}

/* An application uses a window only after its peer has announced it out of band. */
static bool send_wanted(const struct sim_end *end)
{
	const struct message *message = &end->script->messages[end->sent_posted];
	const struct window *window;

	if (end->sent_posted == end->script->message_count)
		return false;
	if (message->op == ENG_BIND_MW || message->window == NO_INDEX)
		return true;
	window = &end->peer->script->windows[message->window];
	return window->bound || window->ended;
}

static bool post_send(struct sim_end *end)
{
	struct eng_send_wqe *wqe;

	if (!send_wanted(end))
		return false;
	wqe = eng_sq_next(end->qp);
	if (!wqe)
		return false;
	script_fill_send(end->script, end->sent_posted, wqe);
	if (end->type == ENG_UD)
		address(end, &end->script->messages[end->sent_posted], wqe);
	wqe->xrc_srqn = end->peer->srqn;
	mutant_post(end, wqe);
	end->sent_posted++;
	eng_sq_push(end->qp);
	return true;
}

static void post_sends(struct sim_end *end)
{
	uint32_t n = random_between(&end->random, 1, end->plan->post_burst), done = 0;

	if (end->state != ENG_RTS && end->state != ENG_SQD)
		return;
	if (end->next_send_at > end->world->now)
		return;
	while (done < n && post_send(end))
		done++;
	if (done == 0)
		return;
	world_trace(end, "post %u sends, %u in the queue", done, eng_ring_used(&end->sq));
	end_posted(end);
	end->next_send_at = end->world->now + random_skewed(&end->random, end->plan->post_gap_ns);
	if (end->state == ENG_RTS && random_chance(&end->random, end->plan->drain)) {
		end->next_state_at = ENG_NEVER;
		end->world->total.drains++;
		end_set_state(end, ENG_SQD);
	}
}

/* rule S13 test: requests posted in ERR complete as flushed. */
static void post_in_error(struct sim_end *end)
{
	while (end->posted_in_error < POSTS_IN_ERROR && post_send(end))
		end->posted_in_error++;
	post_receive(end);
	eng_flush(end->qp);
	end->posted_in_error = POSTS_IN_ERROR;
}

static void change_state(struct sim_end *end)
{
	end->next_state_at = ENG_NEVER;
	if (end->state == ENG_INIT) {
		end_set_state(end, ENG_RTR);
		end->next_state_at = end->world->round_began + end->plan->rts_ns;
	} else if (end->state == ENG_RTR || end->state == ENG_SQD || end->state == ENG_SQE) {
		end_set_state(end, ENG_RTS);
	}
}

/* The rx demux (rule S14): packets that fail its checks are lost.  rule S14 test */
static bool pass_demux(struct sim_end *end, const struct net_packet *from,
		       struct wire_packet *packet)
{
	uint16_t ip_id = from->ip_id;
	enum wire_icrc_verdict verdict;

	if (wire_parse(from->bytes, from->length, packet) != WIRE_OK)
		return false;
	/* The peer is a uroce peer: its IPv4 IDs are known and need not be solved for. */
	verdict = wire_icrc_check(&from->path->wire, &ip_id, from->bytes, from->length);
	if (verdict == WIRE_ICRC_SOLVED)
		end->world->total.slipped++;
	return verdict == WIRE_ICRC_OK &&
	       (packet->dest_qpn == end->qpn ||
		(end->type == ENG_UD && packet->dest_qpn == PLAN_GROUP_QPN));
}

static bool deaf(const struct sim_end *end, const struct wire_packet *packet)
{
	if (wire_op_is_request(packet->opcode))
		return end->state == ENG_RESET || end->state == ENG_INIT || end->state == ENG_ERR;
	return false;
}

/*
 * Returns random bytes as the network header, whose fields are never read.  Any 61 consecutive
 * packets have different ones.
 */
static const uint8_t *network_header(const struct net_packet *from)
{
	static uint8_t headers[61][ENG_GRH_BYTES];
	struct sim_random random;

	if (headers[0][0] == 0) {
		random_seed(&random, 40, 0);
		random_fill(&random, headers, sizeof(headers));
		headers[0][0] = 0x45;
	}
	return headers[from->serial % 61];
}

/* Handles CNPs and marks.  Returns true for a CNP, which is complete with that. */
static bool deliver_news(struct sim_end *end, const struct net_packet *from,
			 struct wire_packet *packet)
{
	if (packet->opcode == WIRE_CNP_OPCODE) {
		world_trace(end, "<- CNP");
		eng_receive(end->qp, packet, end->world->now);
		oracle_cwnd(end);
		return true;
	}
	if (end->world->plan.hides_echoes)
		packet->congestion = 0;
	if (from->ecn == NET_CE) {
		packet->congestion |= WIRE_CE;
		oracle_marked(end);
	}
	return false;
}

static uint64_t counted(const struct sim_end *end, enum eng_counter counter)
{
	struct eng_qp_info view;

	eng_qp_query(end->qp, &view);
	return view.counters[counter];
}

static void deliver(struct sim_end *end, const struct net_packet *from, struct wire_packet packet)
{
	if (end->world->plan.flows && deliver_news(end, from, &packet))
		return;
	world_trace_packet(end, "<-", &packet);
	if (deaf(end, &packet))
		oracle_lost(from->from, from);
	packet.network_header = network_header(from);
	oracle_arrival(end, &packet, from);
	if (mutant_arrival(end, &packet)) {
		uint64_t kept = counted(end, ENG_COUNT_OOO_BUFFERED);

		eng_receive(end->qp, &packet, end->world->now);
		if (counted(end, ENG_COUNT_OOO_BUFFERED) > kept)
			oracle_kept(end, &packet);
		oracle_kept_over(end);
	}
	oracle_after_step(end);
	oracle_loss_state(end);
	if (end->world->plan.flows)
		oracle_cwnd(end);
}

/* Delivers a message of a group to all members, once each. */
static void deliver_to_members(struct world *world, uint32_t side, const struct net_packet *from,
			       const struct wire_packet *packet)
{
	for (uint32_t n = 0; n < world->plan.connections; n++)
		if (world->plan.service[n] == ENG_UD && world->plan.member[n][side])
			deliver(&world->connections[n].end[side], from, *packet);
}

static void take_packet(struct sim_end *end, struct net_packet *from)
{
	struct world *world = end->world;
	struct wire_packet packet;

	if (!pass_demux(end, from, &packet))
		world->net.lost(world, from, NET_DAMAGED);
	else if (packet.dest_qpn == PLAN_GROUP_QPN)
		deliver_to_members(world, end->side, from, &packet);
	else
		deliver(end, from, packet);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t deadline_of(const struct sim_end *end)
{
	uint64_t deadline = eng_deadline(end->qp), timer = eng_timer(end->qp);
	const uint64_t times[] = { deadline, deadline + 1, end->world->now + 1, ENG_NEVER };

	/* eng_deadline_before() must agree with eng_deadline() for any time. */
	for (unsigned int i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (eng_deadline_before(end->qp, times[i]) != (deadline < times[i]))
			world_fail(end->world, "%s: the deadline is another one than was told",
				   end->name);
	/* READ responses are due, but the last visit could not send them. */
	if (deadline < timer && deadline < end->paused_until)
		deadline = earliest(end->paused_until, timer);
	return deadline == ENG_NEVER ? ENG_NEVER : deadline + end->late;
}

uint64_t end_next_visit(const struct sim_end *end)
{
	uint64_t at = end->next_state_at;
	uint64_t now = end->world->now, deadline;

	if (end->arrivals.count > 0)
		at = now;
	deadline = deadline_of(end);
	/* A pause between READ responses is over, but nothing can be sent now. */
	if (deadline < end->socket_full_until)
		deadline = end->socket_full_until;
	at = earliest(at, deadline);
	if (end->state == ENG_ERR) {
		if (end->posted_in_error < POSTS_IN_ERROR)
			at = now;
	} else {
		if (receives_wanted(end))
			at = earliest(at, end->queue->next_post_at);
		if ((end->state == ENG_RTS || end->state == ENG_SQD) && send_wanted(end) &&
		    !eng_ring_full(&end->sq))
			at = earliest(at, end->next_send_at);
	}
	if (end->busy)
		at = earliest(at, end->socket_full_until > now ? end->socket_full_until : now);
	at = earliest(at, end->round_at);
	at = earliest(at, end->retry_at);
	if (end->asleep_until > at)
		at = end->asleep_until;
	return at;
}

static void expire(struct sim_end *end)
{
	uint64_t timeouts = counted(end, ENG_COUNT_TIMEOUTS);
	uint64_t probes = counted(end, ENG_COUNT_TAIL_LOSS_PROBES);
	uint64_t solicitations = counted(end, ENG_COUNT_ACK_PROBES);
	uint64_t repairs = counted(end, ENG_COUNT_FAST_RETRANSMITS);

	oracle_before_expiry(end);
	eng_expire(end->qp, end->world->now);
	oracle_after_expiry(end, counted(end, ENG_COUNT_TIMEOUTS) > timeouts);
	if (counted(end, ENG_COUNT_TAIL_LOSS_PROBES) > probes)
		oracle_tlp(end, counted(end, ENG_COUNT_FAST_RETRANSMITS) > repairs);
	if (counted(end, ENG_COUNT_ACK_PROBES) > solicitations)
		oracle_solicitation(end);
	if (end->world->plan.flows)
		oracle_cwnd(end);
}

/* A turn that changes the bytes in flight lets the host's other QPs try again. */
static void wake_share_waiters(struct sim_end *end)
{
	struct world *world = end->world;

	for (uint32_t n = 0; n < world->plan.connections; n++) {
		struct sim_end *other = &world->connections[n].end[end->side];

		if (other != end && other->budget_waits)
			other->busy = true;
	}
}

/* Memory is deregistered between two visits, not while the engine uses it. */
static void maybe_deregister(struct sim_end *end)
{
	const struct plan *plan = &end->world->plan;
	struct script *script = end->script;
	struct area *const areas[] = { NULL, &script->source, &script->landing, &script->remote };

	if (plan->gone.area == AREA_NONE || plan->gone.connection != end->number ||
	    plan->gone.side != end->side || end->visits++ != plan->gone.visits)
		return;
	world_trace(end, "deregisters memory");
	area_go(areas[plan->gone.area]);
	oracle_gone(end);
}

/* Like serve_qp() of progress/loop.c. */
static void transmit(struct sim_end *end)
{
	enum eng_tx reason = end_transmit(end, end->plan->max_bursts);

	if (reason == ENG_TX_BURST)
		end->busy = true;
	if (reason == ENG_TX_BUDGET && share_queue_is_used(end))
		share_queue_add(end);
}

/* The engine cannot end an ACK delay while its host sleeps, so the sleep does not count. */
static void fall_asleep(struct sim_end *end)
{
	uint64_t sleep = random_skewed(&end->random, end->plan->sleep_ns);

	end->asleep_until = end->world->now + sleep;
	if (end->ack_waits_since)
		end->ack_waits_since += sleep;
	world_trace(end, "sleeps");
}

void end_visit(struct sim_end *end)
{
	struct world *world = end->world;
	struct net_packet *from;
	bool heard = end->arrivals.count > 0, idle = !heard && !end->busy;

	if (end->asleep_until <= world->now && random_chance(&end->random, end->plan->sleep))
		fall_asleep(end);
	if (end->asleep_until > world->now)
		return;
	end->busy = false;
	end->gathers = end->receives_wait = false;
	end->rounds++;
	idle = idle && !end->is_unfinished && end->retry_at == ENG_NEVER;
	if (end->retry_at <= world->now)
		end->round_at = world->now;
	maybe_deregister(end);
	while (!world->failed && (from = net_queue_take(&end->arrivals)) != NULL) {
		take_packet(end, from);
		net_packet_free(&world->net, from);
	}
	if (deadline_of(end) <= world->now) {
		end->round_at = world->now;
		if (eng_timer(end->qp) <= world->now)
			expire(end);
		oracle_after_step(end);
		end->late = random_skewed(&end->random, end->plan->late_ns);
	}
	if (end->next_state_at <= world->now) {
		change_state(end);
		idle = false;
	}
	if (end->state == ENG_SQE && random_chance(&end->random, 300)) {
		/* rule S13 test: requests posted in SQE complete as flushed too. */
		post_send(end);
		eng_flush(end->qp);
	}
	if (end->state == ENG_ERR) {
		if (end->posted_in_error < POSTS_IN_ERROR)
			post_in_error(end);
	} else {
		post_receives(end, idle && end->round_at > world->now);
		post_sends(end);
	}
	if (end->gathers && !end->posts && !heard && end->round_at > world->now)
		return;
	if (end->receives_wait && !end->posts && idle && end->round_at > world->now)
		return;
	end->round_at = ENG_NEVER;
	if (!world->failed)
		transmit(end);
	end->posts = false;
	end->paused_until = eng_deadline(end->qp) <= world->now ? world->now + PAUSE_NS : 0;
	if (heard)
		wake_share_waiters(end);
}
