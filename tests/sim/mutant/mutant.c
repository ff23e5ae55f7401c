/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/mutant/mutant.h"

#include <string.h>

#include "sim/world.h"
#include "wire/icrc.h"

static bool is_positive(const struct wire_packet *packet)
{
	return (wire_op_headers(packet->opcode) & WIRE_HAS_AETH) && packet->syndrome >> 5 == 0 &&
	       packet->syndrome != 31;
}

static bool now_and_then(struct sim_end *end)
{
	return random_chance(&end->world->mutant_random, 100);
}

static bool credit_plus_one(struct sim_end *end, struct wire_packet *packet)
{
	(void)end;
	if (!is_positive(packet) || packet->syndrome == 30)
		return false;
	packet->syndrome++;
	return true;
}

static bool msn_ahead(struct sim_end *end, struct wire_packet *packet)
{
	if (!is_positive(packet) || !now_and_then(end))
		return false;
	packet->msn++;
	return true;
}

static bool ack_ahead(struct sim_end *end, struct wire_packet *packet)
{
	if (packet->opcode != WIRE_ACKNOWLEDGE || packet->syndrome >> 5 != 0 || !now_and_then(end))
		return false;
	packet->psn = (packet->psn + 1) & WIRE_24BIT_MASK;
	return true;
}

static bool solicited_everywhere(struct sim_end *end, struct wire_packet *packet)
{
	(void)end;
	if (packet->opcode != WIRE_SEND_FIRST && packet->opcode != WIRE_SEND_MIDDLE)
		return false;
	packet->solicited = true;
	return true;
}

static bool never_asks(struct sim_end *end, struct wire_packet *packet)
{
	if (end->type != ENG_RC || !packet->ack_request ||
	    !(wire_op_headers(packet->opcode) & WIRE_HAS_PAYLOAD))
		return false;
	packet->ack_request = false;
	return true;
}

static bool ignores_credits(struct sim_end *end, struct wire_packet *packet)
{
	(void)end;
	if (!is_positive(packet))
		return false;
	packet->syndrome = 31;
	return true;
}

static bool forgets_credits(struct sim_end *end, struct wire_packet *packet)
{
	(void)end;
	if (!is_positive(packet))
		return false;
	packet->syndrome = 0;
	return true;
}

static bool forgets_initial_credits(struct sim_end *end, struct wire_packet *packet)
{
	return end->state == ENG_RTR && forgets_credits(end, packet);
}

static bool is_rnr(const struct wire_packet *packet)
{
	return wire_op_family(packet->opcode) == WIRE_FAMILY_ACK && packet->syndrome >> 5 == 1;
}

static bool impatient_rnr(struct sim_end *end, struct wire_packet *packet)
{
	(void)end;
	if (!is_rnr(packet))
		return false;
	packet->syndrome = 0x21; /* 10 us */
	return true;
}

/* Turns an RNR NAK into a sequence NAK while an earlier READ or Atomic response is missing. */
static bool rnr_as_loss(struct sim_end *end, struct wire_packet *packet)
{
	const struct asking *asking = &end->oracle.asking;

	if (!is_rnr(packet) || asking->oldest >= asking->begun ||
	    !op_answers(end->script->messages[asking->oldest].op))
		return false;
	packet->syndrome = 0x60;
	return true;
}

static bool damaged_payload(struct sim_end *end, struct wire_packet *packet)
{
	if (packet->payload_length == 0 || !now_and_then(end))
		return false;
	/* The byte before belongs to the headers. */
	packet->payload--;
	return true;
}

static bool no_nak(struct sim_end *end, const struct wire_packet *packet)
{
	(void)end;
	return packet->opcode == WIRE_ACKNOWLEDGE && packet->syndrome == 0x60;
}

/* PSNs compared as plain numbers: after the wrap a hole looks like a duplicate. */
static bool plain_compare(struct sim_end *end, const struct wire_packet *packet)
{
	return no_nak(end, packet) && packet->psn < end->peer->plan->psn;
}

static bool is_duplicate(struct sim_end *end, const struct wire_packet *packet)
{
	const struct answering *answering = &end->oracle.answering;
	enum wire_family family = wire_op_family(packet->opcode);

	return !service_is_uc_ud(end->type) &&
	       (family == WIRE_FAMILY_SEND || family == WIRE_FAMILY_WRITE) &&
	       answering->repeat_owed &&
	       oracle_position(packet->psn, end->peer->plan->psn, answering->expected) ==
		       answering->repeat_at;
}

/* Returns true for an ACK probe: a packet before the oldest unacknowledged one. */
static bool is_solicitation(struct sim_end *end, const struct wire_packet *packet)
{
	const struct asking *asking = &end->oracle.asking;

	return !service_is_uc_ud(end->type) &&
	       oracle_position(packet->psn, end->plan->psn, asking->high) < asking->unacked;
}

static bool no_unsolicited(struct sim_end *end, const struct wire_packet *packet)
{
	return packet->opcode == WIRE_ACKNOWLEDGE && is_positive(packet) &&
	       end->oracle.answering.asked == 0;
}

/* Returns true for a limited request that was allowed to wait for credits, and is sent now. */
static bool limited_at_last(struct sim_end *end, const struct wire_packet *packet)
{
	const struct asking *asking = &end->oracle.asking;
	const struct message *message = &end->script->messages[asking->begun];

	return !service_is_uc_ud(end->type) && asking->begun < end->sent_posted &&
	       message->takes_receive > asking->allowed && asking_wait_ns(end) > 0 &&
	       oracle_position(packet->psn, end->plan->psn, asking->high) == message->first;
}

static bool ignores_fence(struct sim_end *end, struct eng_send_wqe *wqe)
{
	bool fenced = wqe->flags & ENG_FENCE;

	(void)end;
	wqe->flags &= (uint8_t)~ENG_FENCE;
	return fenced;
}

static bool drops_solicited(struct sim_end *end, struct eng_send_wqe *wqe)
{
	bool solicited = op_takes_receive(wqe->op) && (wqe->flags & ENG_SOLICITED);

	(void)end;
	wqe->flags &= (uint8_t)~ENG_SOLICITED;
	return solicited;
}

static bool reads_too_deep(struct sim_end *end, struct eng_attr *attr)
{
	if (attr->max_rd_atomic >= end->peer->plan->max_dest_rd_atomic)
		return false;
	attr->max_rd_atomic++;
	return true;
}

static bool small_retry(struct sim_end *end, struct eng_attr *attr)
{
	(void)end;
	attr->retry_count = 1;
	return true;
}

static uint32_t swallows_completion(struct sim_end *end, struct eng_wc *wc)
{
	(void)wc;
	return now_and_then(end) ? 0 : 1;
}

static uint32_t completes_twice(struct sim_end *end, struct eng_wc *wc)
{
	return wc->receive && now_and_then(end) ? 2 : 1;
}

static uint32_t wrong_length(struct sim_end *end, struct eng_wc *wc)
{
	if (wc->receive && now_and_then(end))
		wc->byte_len++;
	return 1;
}

static const struct mutant mutants[] = {
	{ .name = "credit-plus-one",
	  .fault = "promises a receive request that is not there (C4)",
	  .departure = credit_plus_one },
	{ .name = "msn-ahead",
	  .fault = "counts a message that is not executed (C11)",
	  .departure = msn_ahead },
	{ .name = "ack-ahead",
	  .fault = "acknowledges what has not come (S7)",
	  .departure = ack_ahead },
	{ .name = "solicited-everywhere",
	  .fault = "sets SE in all packets (S15)",
	  .departure = solicited_everywhere },
	{ .name = "never-asks",
	  .fault = "sends SENDs and WRITEs without AckReq",
	  .departure = never_asks },
	{ .name = "ignores-credits",
	  .fault = "sends without credits (C3, C13)",
	  .arrival = ignores_credits },
	{ .name = "forgets-credits",
	  .fault = "does not use its credits (C12)",
	  .arrival = forgets_credits },
	{ .name = "forgets-initial",
	  .fault = "loses the credits that come before RTS (C9)",
	  .arrival = forgets_initial_credits },
	{ .name = "impatient-rnr",
	  .fault = "does not wait out the RNR timer (S10)",
	  .arrival = impatient_rnr },
	{ .name = "rnr-as-loss",
	  .fault = "does not wait when an RNR NAK shows a loss as well (S10)",
	  .arrival = rnr_as_loss },
	{ .name = "misplaced-payload",
	  .fault = "places bytes one too high (S6)",
	  .arrival = damaged_payload },
	{ .name = "no-nak", .fault = "sends no NAK for a gap (S4)", .swallows = no_nak },
	{ .name = "ignores-duplicates",
	  .fault = "does not acknowledge again (S4)",
	  .swallows = is_duplicate },
	{ .name = "plain-compare",
	  .fault = "compares PSNs without wrap (S2)",
	  .swallows = plain_compare },
	{ .name = "no-unsolicited",
	  .fault = "does not tell of new credits (C10)",
	  .swallows = no_unsolicited,
	  .unseen = true },
	{ .name = "solicits-nothing",
	  .fault = "solicits no ACK of what it has sent without AckReq",
	  .withholds = is_solicitation },
	{ .name = "waits-for-ever",
	  .fault = "waits for news of credits until some come (C13)",
	  .withholds = limited_at_last },
	{ .name = "answers-last",
	  .fault = "has requests before answers for as long as there are any",
	  .answers_last = true },
	{ .name = "ignores-fence",
	  .fault = "begins fenced requests at once (C16)",
	  .post = ignores_fence },
	{ .name = "drops-solicited",
	  .fault = "loses the solicited event (S6)",
	  .post = drops_solicited },
	{ .name = "reads-too-deep",
	  .fault = "one READ more than max_rd_atomic (S12)",
	  .attr = reads_too_deep },
	{ .name = "gives-up", .fault = "gives up after one retry (S10)", .attr = small_retry },
	{ .name = "swallows-completion",
	  .fault = "forgets a completion (S9)",
	  .completion = swallows_completion },
	{ .name = "completes-twice",
	  .fault = "tells a receive twice (S6)",
	  .completion = completes_twice },
	{ .name = "wrong-length",
	  .fault = "tells a wrong length (S6)",
	  .completion = wrong_length },
};

static const uint32_t mutant_count = sizeof(mutants) / sizeof(mutants[0]);

/* Any order would do, since each mutant runs in a new world and its own process (sim/main.c). */
const struct mutant *mutant_at(uint32_t n)
{
	if (n < mutant_count)
		return &mutants[n];
	n -= mutant_count;
	if (n < mutants_of_services_count)
		return &mutants_of_services[n];
	n -= mutants_of_services_count;
	if (n < mutants_of_schedule_count)
		return &mutants_of_schedule[n];
	n -= mutants_of_schedule_count;
	if (n < mutants_of_losses_count)
		return &mutants_of_losses[n];
	n -= mutants_of_losses_count;
	return n < mutants_of_flows_count ? &mutants_of_flows[n] : NULL;
}

const struct mutant *mutant_find(const char *name)
{
	for (uint32_t i = 0; mutant_at(i); i++)
		if (strcmp(mutant_at(i)->name, name) == 0)
			return mutant_at(i);
	return NULL;
}

static void count_mutation(struct sim_end *end, bool changed)
{
	end->world->mutations += changed;
}

enum mutant_way mutant_departure(struct sim_end *end, struct net_packet *bytes,
				 struct wire_packet *packet)
{
	const struct mutant *mutant = end->world->mutant;
	bool swallowed = false;

	if (!mutant)
		return MUTANT_SEND;
	if (mutant->departure && mutant->departure(end, packet)) {
		wire_build_headers(packet, bytes->bytes);
		wire_icrc_put(&bytes->path->wire, bytes->ip_id, bytes->bytes, bytes->length);
		count_mutation(end, true);
	}
	if (mutant->swallows && wire_op_is_response(packet->opcode))
		swallowed = mutant->swallows(end, packet);
	count_mutation(end, swallowed);
	if (mutant->withholds && wire_op_is_request(packet->opcode) &&
	    mutant->withholds(end, packet)) {
		count_mutation(end, true);
		return MUTANT_UNSEEN;
	}
	if (!swallowed)
		return MUTANT_SEND;
	return mutant->unseen ? MUTANT_UNSEEN : MUTANT_SWALLOW;
}

bool mutant_arrival(struct sim_end *end, struct wire_packet *packet)
{
	const struct mutant *mutant = end->world->mutant;
	bool swallowed = false;

	if (!mutant)
		return true;
	if (mutant->arrival) {
		struct wire_packet changed = *packet;

		if (mutant->arrival(end, &changed)) {
			*packet = changed;
			count_mutation(end, true);
		}
	}
	if (mutant->swallows && wire_op_is_request(packet->opcode))
		swallowed = mutant->swallows(end, packet);
	count_mutation(end, swallowed);
	return !swallowed;
}

void mutant_post(struct sim_end *end, struct eng_send_wqe *wqe)
{
	const struct mutant *mutant = end->world->mutant;

	if (mutant && mutant->post)
		count_mutation(end, mutant->post(end, wqe));
}

void mutant_attr(struct sim_end *end, struct eng_attr *attr)
{
	const struct mutant *mutant = end->world->mutant;

	if (mutant && mutant->attr)
		count_mutation(end, mutant->attr(end, attr));
}

uint32_t mutant_completion(struct sim_end *end, struct eng_wc *wc)
{
	const struct mutant *mutant = end->world->mutant;
	struct eng_wc before = *wc;
	uint32_t times;

	if (!mutant || !mutant->completion)
		return 1;
	times = mutant->completion(end, wc);
	count_mutation(end, times != 1 || memcmp(&before, wc, sizeof(before)) != 0);
	return times;
}

static bool counted(struct sim_end *end, bool changed)
{
	count_mutation(end, changed);
	return changed;
}

bool mutant_takes_again(struct sim_end *end)
{
	const struct mutant *mutant = end->world->mutant;

	return counted(end, mutant && mutant->takes_again && mutant->takes_again(end));
}

bool mutant_hides(struct sim_end *end, enum eng_event event)
{
	const struct mutant *mutant = end->world->mutant;

	return counted(end, mutant && mutant->hides && mutant->hides(end, event));
}

bool mutant_answers_last(struct sim_end *end)
{
	const struct mutant *mutant = end->world->mutant;

	return counted(end, mutant && mutant->answers_last);
}

bool mutant_keeps_memory(struct sim_end *end, const struct area *area)
{
	const struct mutant *mutant = end->world->mutant;

	return counted(end, area->gone && mutant && mutant->keeps_memory);
}

bool mutant_keeps_window(struct sim_end *end, const struct window *window)
{
	const struct mutant *mutant = end->world->mutant;

	return counted(end, window->ended && mutant && mutant->keeps_windows);
}
