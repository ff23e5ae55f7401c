/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A host and its consumer: serves one end of a connection whenever there is something to do, in the
 * order of the progress layer: receive, expire, post, transmit.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/mutant.h"
#include "sim/world.h"
#include "wire/icrc.h"

#define POSTS_IN_ERROR 3
/* Until a host looks again for READ responses that it could not send although they were due. */
#define PAUSE_NS 1000

static void *map_local(void *owner, uint32_t lkey, uint64_t addr, uint32_t length, bool write)
{
	struct end *end = owner;

	if (lkey == end->script->source.key)
		return area_map(&end->script->source, lkey, addr, length,
				write ? ENG_LOCAL_WRITE : 0);
	return area_map(&end->script->landing, lkey, addr, length, write ? ENG_LOCAL_WRITE : 0);
}

static void *map_remote(void *owner, uint32_t rkey, uint64_t addr, uint32_t length, uint32_t need)
{
	struct end *end = owner;

	return area_map(&end->script->remote, rkey, addr, length, need);
}

static void complete(void *owner, const struct eng_wc *wc)
{
	struct end *end = owner;
	struct eng_wc changed = *wc;
	uint32_t times = mutant_completion(end, &changed);

	while (times-- > 0)
		oracle_completion(end, &changed);
}

static void event(void *owner, enum eng_event event)
{
	struct end *end = owner;

	oracle_event(end, event);
	if (event == ENG_EVENT_SQ_DRAINED)
		end->next_state_at =
			end->world->now + random_skewed(&end->random, end->plan->post_gap_ns);
}

static bool invalidate(void *owner, uint32_t key)
{
	oracle_invalidate(owner, key);
	return true;
}

static enum eng_take take_receive(void *owner, uint32_t srqn, struct eng_taken *taken,
				  struct eng_sge *sge)
{
	struct end *end = owner;
	const struct eng_recv_wqe *wqe = eng_ring_slot(&end->rq, end->rq.tail);

	(void)srqn;
	if (eng_ring_used(&end->rq) == 0)
		return ENG_TAKE_EMPTY;
	taken->wr_id = wqe->wr_id;
	taken->length = wqe->length;
	taken->sge_count = wqe->sge_count;
	memcpy(sge, wqe->sge, wqe->sge_count * sizeof(sge[0]));
	end->rq.tail++;
	return ENG_TAKEN;
}

/* One with a call for shared receive requests, one without. */
static const struct eng_port ports[2] = {
	{
		.map_local = map_local,
		.map_remote = map_remote,
		.complete = complete,
		.event = event,
		.invalidate = invalidate,
	},
	{
		.map_local = map_local,
		.map_remote = map_remote,
		.complete = complete,
		.event = event,
		.invalidate = invalidate,
		.take_receive = take_receive,
	},
};

/* What the peer's bad message needs and must not find. */
static uint32_t access_of(const struct end *end)
{
	const struct script *peer = end->peer->script;
	uint32_t all = ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC;

	if (end->world->plan.trouble != TROUBLE_ACCESS || peer->bad == NOBODY)
		return all;
	if (op_is_read(peer->messages[peer->bad].op))
		return all & ~(uint32_t)ENG_REMOTE_READ;
	if (op_is_atomic(peer->messages[peer->bad].op))
		return all & ~(uint32_t)ENG_REMOTE_ATOMIC;
	return all & ~(uint32_t)ENG_REMOTE_WRITE;
}

static void set_attr(struct end *end)
{
	const struct plan *plan = &end->world->plan;
	struct eng_attr *attr = eng_qp_attr(end->qp);

	attr->mtu = plan->mtu;
	attr->dest_qpn = end->peer->qpn;
	attr->rq_psn = end->peer->plan->psn;
	attr->sq_psn = end->plan->psn;
	attr->access = access_of(end);
	attr->pkey = WIRE_DEFAULT_PKEY;
	attr->timeout_code = plan->timeout_code;
	attr->retry_count = plan->retry_count;
	attr->rnr_retry = plan->rnr_retry;
	attr->min_rnr_timer = end->plan->rnr_timer_code;
	attr->max_rd_atomic = (uint8_t)end->plan->max_rd_atomic;
	attr->max_dest_rd_atomic = (uint8_t)end->plan->max_dest_rd_atomic;
	attr->sq_drained_event = true;
	memset(&attr->path, 0, sizeof(attr->path));
	attr->path.wire.src[10] = attr->path.wire.src[11] = 0xff;
	attr->path.wire.dst[10] = attr->path.wire.dst[11] = 0xff;
	attr->path.wire.src[15] = (uint8_t)(1 + end->side);
	attr->path.wire.dst[15] = (uint8_t)(2 - end->side);
	attr->path.wire.src_port = (uint16_t)(49152 + end->qpn % 1000);
	attr->path.wire.ipv6 = plan->seed % 3 == 0;
	mutant_attr(end, attr);
}

static uint32_t slots_of(uint32_t depth)
{
	uint32_t slots = 1;

	while (slots < depth)
		slots *= 2;
	return slots;
}

static uint8_t *slots_new(uint32_t slots, uint32_t slot_bytes)
{
	uint8_t *memory = aligned_alloc(64, ((size_t)slots * slot_bytes + 63) & ~(size_t)63);

	if (!memory)
		abort();
	return memory;
}

void end_set_state(struct end *end, enum eng_qp_state state)
{
	world_trace(end, "state %s", eng_qp_state_name(state));
	end->state = state;
	if (state == ENG_SQD)
		end->oracle.drains++;
	if (state == ENG_ERR)
		oracle_to_error(end);
	eng_set_state(end->qp, state, end->world->now);
	oracle_after_step(end);
}

static void create(struct end *end)
{
	uint32_t sq_slots = slots_of(end->plan->sq_depth), rq_slots = slots_of(end->plan->rq_depth);
	uint32_t send_bytes = eng_send_slot_bytes(end->plan->max_sge, end->plan->max_inline);
	uint32_t receive_bytes = eng_recv_slot_bytes(end->plan->max_sge);
	struct eng_qp_init init = {
		.type = ENG_RC,
		.qpn = end->qpn,
		.owner = end,
		.port = &ports[end->plan->rq_by_call],
		.sq = &end->sq,
		.rq = &end->rq,
		.rq_shared = end->plan->rq_shared,
		.credits_hidden = end->plan->hides_credits,
		.signal_all = end->plan->signal_all,
		.window_share = end->plan->share_bytes ? &end->world->share[end->side] : NULL,
		.window_packets = end->plan->window_packets,
	};

	free(end->sq_slots);
	free(end->rq_slots);
	end->sq_slots = slots_new(sq_slots, send_bytes);
	end->rq_slots = slots_new(rq_slots, receive_bytes);
	eng_ring_init(&end->sq, end->sq_slots, send_bytes, sq_slots, end->plan->sq_depth);
	eng_ring_init(&end->rq, end->rq_slots, receive_bytes, rq_slots, end->plan->rq_depth);
	if (!end->qp)
		end->qp = aligned_alloc(64, eng_qp_bytes());
	if (!end->qp)
		abort();
	eng_qp_init(end->qp, &init);
}

void end_start(struct end *end, bool again)
{
	end->state = ENG_RESET;
	if (again)
		eng_set_state(end->qp, ENG_RESET, end->world->now);
	else
		create(end);
	/* rule C5 test: RESET forgets the receive requests, but shared ones are not the QP's. */
	if (end->plan->rq_shared)
		end->rq.head = end->rq.tail = 0;
	end->sent_posted = end->receives_posted = end->posted_in_error = 0;
	end->next_send_at = end->next_receive_at = 0;
	end->asleep_until = end->socket_full_until = end->hold_acks_until = end->paused_until = 0;
	end->next_state_at = end->world->round_began + end->plan->ready_ns;
	end->packets_sent = 0;
	eng_look(end->qp, &end->at_start);
	end->requests_in_a_row = 0;
	end->busy = end->crowded = false;
	end->late = 0;
	oracle_start(end);
	set_attr(end);
	end_set_state(end, ENG_INIT);
}

static bool post_receive(struct end *end)
{
	struct eng_recv_wqe *wqe;

	if (end->receives_posted == end->script->receive_count)
		return false;
	wqe = eng_rq_next(&end->rq);
	if (!wqe)
		return false;
	script_fill_receive(end->script, end->receives_posted, wqe);
	end->receives_posted++;
	eng_rq_push(&end->rq);
	return true;
}

static uint32_t receives_to_post(struct end *end)
{
	switch (end->plan->receives) {
	case RECEIVES_EARLY:
		return UINT32_MAX;
	case RECEIVES_BURST:
		return eng_ring_used(&end->rq) == 0 ? UINT32_MAX : 0;
	case RECEIVES_LATE:
		return random_between(&end->random, 1, 4);
	default:
		return 1;
	}
}

static void post_receives(struct end *end)
{
	uint32_t n, done = 0;
	bool early = end->plan->receives == RECEIVES_EARLY;

	if (end->state == ENG_INIT && !end->plan->receives_before_rtr)
		return;
	if (end->next_receive_at > end->world->now)
		return;
	for (n = receives_to_post(end); done < n && post_receive(end); done++)
		;
	if (done > 0)
		world_trace(end, "post %u receives, %u free", done, eng_ring_used(&end->rq));
	end->next_receive_at = end->world->now;
	if (!early)
		end->next_receive_at += 1 + random_skewed(&end->random, end->plan->receive_gap_ns);
}

static bool receives_wanted(const struct end *end)
{
	if (end->receives_posted == end->script->receive_count || eng_ring_full(&end->rq))
		return false;
	if (end->state == ENG_INIT && !end->plan->receives_before_rtr)
		return false;
	return end->plan->receives != RECEIVES_BURST || eng_ring_used(&end->rq) == 0;
}

static bool post_send(struct end *end)
{
	struct eng_send_wqe *wqe;

	if (end->sent_posted == end->script->message_count)
		return false;
	wqe = eng_sq_next(end->qp);
	if (!wqe)
		return false;
	script_fill_send(end->script, end->sent_posted, wqe);
	mutant_post(end, wqe);
	end->sent_posted++;
	eng_sq_push(end->qp);
	return true;
}

static void post_sends(struct end *end)
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
	end->next_send_at = end->world->now + random_skewed(&end->random, end->plan->post_gap_ns);
	if (end->state == ENG_RTS && random_chance(&end->random, end->plan->drain)) {
		end->next_state_at = ENG_NEVER;
		end->world->total.drains++;
		end_set_state(end, ENG_SQD);
	}
}

/* rule S13 test: what is posted in ERR completes as flushed. */
static void post_in_error(struct end *end)
{
	while (end->posted_in_error < POSTS_IN_ERROR && post_send(end))
		end->posted_in_error++;
	post_receive(end);
	eng_flush(end->qp);
	end->posted_in_error = POSTS_IN_ERROR;
}

static void change_state(struct end *end)
{
	if (end->next_state_at > end->world->now)
		return;
	end->next_state_at = ENG_NEVER;
	if (end->state == ENG_INIT) {
		end_set_state(end, ENG_RTR);
		end->next_state_at = end->world->round_began + end->plan->rts_ns;
	} else if (end->state == ENG_RTR || end->state == ENG_SQD) {
		end_set_state(end, ENG_RTS);
	}
}

/* The door (rule S14): what does not pass it is lost.  rule S14 test */
static bool pass_door(struct end *end, const struct net_packet *from, struct wire_packet *packet)
{
	uint16_t ip_id = from->ip_id;
	enum wire_icrc_verdict verdict;

	if (wire_parse(from->bytes, from->length, packet) != WIRE_OK)
		return false;
	/* The peer is one of us: its identifications are known, nothing has to be solved for. */
	verdict = wire_icrc_check(&eng_qp_attr(end->peer->qp)->path.wire, &ip_id, from->bytes,
				  from->length);
	if (verdict == WIRE_ICRC_SOLVED)
		end->world->total.slipped++;
	return verdict == WIRE_ICRC_RIGHT && packet->dest_qpn == end->qpn;
}

static bool deaf(const struct end *end, const struct wire_packet *packet)
{
	if (wire_op_is_request(packet->opcode))
		return end->state == ENG_RESET || end->state == ENG_INIT || end->state == ENG_ERR;
	return false;
}

static void take_packet(struct end *end, struct net_packet *from)
{
	struct world *world = end->world;
	struct wire_packet packet;

	if (!pass_door(end, from, &packet)) {
		world->net.lost(world, from, NET_DAMAGED);
		return;
	}
	world_trace_packet(end, "<-", &packet);
	if (deaf(end, &packet))
		oracle_lost(from->from, from);
	oracle_arrival(end, &packet, from->serial);
	if (mutant_arrival(end, &packet))
		eng_receive(end->qp, &packet, world->now);
	oracle_after_step(end);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t deadline_of(const struct end *end)
{
	uint64_t deadline = eng_deadline(end->qp), timer = eng_timer(end->qp);

	/* READ responses may go on, but the last visit could not send them. */
	if (deadline < timer && deadline < end->paused_until)
		deadline = earliest(end->paused_until, timer);
	return deadline == ENG_NEVER ? ENG_NEVER : deadline + end->late;
}

uint64_t end_next_visit(const struct end *end)
{
	uint64_t at = end->next_state_at;
	uint64_t now = end->world->now, deadline;

	if (end->inbox.count > 0)
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
			at = earliest(at, end->next_receive_at);
		if ((end->state == ENG_RTS || end->state == ENG_SQD) &&
		    end->sent_posted < end->script->message_count && !eng_ring_full(&end->sq))
			at = earliest(at, end->next_send_at);
	}
	if (end->busy)
		at = earliest(at, end->socket_full_until > now ? end->socket_full_until : now);
	else if (end->hold_acks_until != 0)
		at = earliest(at, end->hold_acks_until);
	if (end->asleep_until > at)
		at = end->asleep_until;
	return at;
}

static uint64_t timeouts_counted(const struct end *end)
{
	struct eng_view view;

	eng_look(end->qp, &view);
	return view.counters[ENG_COUNT_TIMEOUTS];
}

static void expire(struct end *end)
{
	uint64_t before = timeouts_counted(end);

	oracle_before_expiry(end);
	eng_expire(end->qp, end->world->now);
	oracle_after_expiry(end, timeouts_counted(end) > before);
}

/* A turn that changes what is under way lets the host's other QPs try again. */
static void wake_crowded(struct end *end)
{
	struct world *world = end->world;

	for (uint32_t n = 0; n < world->plan.connections; n++) {
		struct end *other = &world->connections[n].end[end->side];

		if (other != end && other->crowded)
			other->busy = true;
	}
}

void end_visit(struct end *end)
{
	struct world *world = end->world;
	struct net_packet *from;
	bool heard = end->inbox.count > 0;

	if (end->asleep_until <= world->now && random_chance(&end->random, end->plan->sleep)) {
		end->asleep_until = world->now + random_skewed(&end->random, end->plan->sleep_ns);
		world_trace(end, "sleeps");
	}
	if (end->asleep_until > world->now)
		return;
	end->busy = false;
	while (!world->failed && (from = net_queue_take(&end->inbox)) != NULL) {
		take_packet(end, from);
		net_packet_free(&world->net, from);
	}
	if (deadline_of(end) <= world->now) {
		if (eng_timer(end->qp) <= world->now)
			expire(end);
		oracle_after_step(end);
		end->late = random_skewed(&end->random, end->plan->late_ns);
	}
	change_state(end);
	if (end->state == ENG_ERR) {
		if (end->posted_in_error < POSTS_IN_ERROR)
			post_in_error(end);
	} else {
		post_receives(end);
		post_sends(end);
	}
	if (!world->failed)
		end_transmit(end);
	end->paused_until = eng_deadline(end->qp) <= world->now ? world->now + PAUSE_NS : 0;
	if (heard)
		wake_crowded(end);
}
