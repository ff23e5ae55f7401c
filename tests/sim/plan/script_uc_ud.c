/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The work of UC and UD ends.  It is not known beforehand which messages arrive: the oracle tracks
 * them packet by packet, so the memory that messages go to may be anything.  Nor is it known whose
 * message takes which receive request of a shared queue.
 */
#include "sim/queue.h"
#include "sim/plan/script_parts.h"

/* Makes receive requests of about this length, to be posted again and again. */
static void make_receives(struct script *script, uint32_t length, const struct end_plan *plan,
			  struct sim_random *random)
{
	script->receives_again = true;
	while (script->receive_count < QUEUE_BUFFERS) {
		struct receive *receive = script_new_receive(script);

		receive->length =
			length + (random_chance(random, 500) ? 0 : random_below(random, 99));
		if (random_chance(random, plan->short_receives))
			receive->length = random_below(random, length + 1);
		if (!script_land(&script->landing, receive->length, plan->max_sge, receive->sge,
				 &receive->sge_count, random))
			return;
		script->receive_count++;
	}
}

/* Adds an error that the sender's adapter detects; the message is not sent. */
static void spoil_locally(struct message *message, enum eng_qp_type type, struct sim_random *random)
{
	message->flags &= ~(uint32_t)ENG_INLINE;
	if (random_chance(random, 300)) {
		message->op = type == ENG_UC || random_chance(random, 500) ? ENG_READ : ENG_WRITE;
		message->local_status = ENG_LOC_QP_OP_ERR;
	} else {
		for (uint32_t i = 0; i < message->sge_count; i++)
			if (message->sge[i].length > 0)
				message->sge[i].lkey ^= 0x80000000;
		message->local_status = message->length > 0 ? ENG_LOC_PROT_ERR : ENG_SUCCESS;
	}
}

/* Adds an error that the receiver's adapter detects; the message is lost. */
static void spoil_remotely(struct message *message, const struct area *remote,
			   struct sim_random *random)
{
	if (!op_is_write(message->op) || message->length == 0)
		return;
	message->refused = true;
	if (random_chance(random, 500))
		message->rkey ^= 0x100;
	else
		message->va = remote->base + REMOTE_ROOM - random_below(random, message->length);
}

static void limit_datagram(struct message *message, uint32_t mtu, uint32_t spoiled,
			   struct sim_random *random)
{
	if (random_chance(random, spoiled)) {
		message->length = mtu + 1 + random_below(random, 100);
		message->local_status = ENG_LOC_LEN_ERR;
	} else if (message->length > mtu) {
		message->length = mtu;
	}
}

static void make_datagram(struct message *message, const struct plan *plan, uint32_t connection,
			  uint32_t side, struct sim_random *random)
{
	const struct end_plan *end = &plan->uc_ud[side];

	do
		message->dest = random_below(random, plan->connections);
	while (plan->service[message->dest] != ENG_UD);
	message->grouped = plan->groups && random_chance(random, 300);
	message->qkey = message->wire_qkey = plan->qkey[message->dest][!side];
	if (random_chance(random, end->spoiled)) {
		message->wire_qkey ^= 1u << random_below(random, 31);
		message->qkey = message->wire_qkey;
	} else if (random_chance(random, 200)) {
		/* With the high bit set, the QP's own Q_Key is sent. */
		message->qkey = 0x80000000u | (uint32_t)random_next(random);
		message->wire_qkey = plan->qkey[connection][side];
	}
}

static bool make_message(struct script scripts[2], const struct plan *plan, uint32_t connection,
			 uint32_t side, struct sim_random *random)
{
	struct script *script = &scripts[side], *peer = &scripts[!side];
	const struct end_plan *end = &plan->uc_ud[side];
	enum eng_qp_type type = plan->service[connection];
	struct message *message = script_new_message(script);

	message->op = script_pick_op(end, random);
	if (type == ENG_UD && op_is_write(message->op))
		message->op = message->op == ENG_WRITE ? ENG_SEND : ENG_SEND_IMM;
	message->next_writer = message->window = NO_INDEX;
	message->length = script_pick_length(end, plan->mtu, random);
	if (type == ENG_UD)
		limit_datagram(message, plan->mtu, end->spoiled, random);
	if (message->length > BLOB_ROOM - script->blob_used)
		return false;
	script_pick_flags(message, end, random);
	message->signaled = end->signal_all || (message->flags & ENG_SIGNALED);
	script_gather(script, message, end, random);
	if (op_is_write(message->op)) {
		if (!script_aim(script, peer, message, random))
			return false;
		message->va = peer->remote.base + message->target;
		message->rkey = peer->remote.key;
		if (random_chance(random, end->spoiled))
			spoil_remotely(message, &peer->remote, random);
	}
	if (type == ENG_UD)
		make_datagram(message, plan, connection, side, random);
	if (message->local_status == ENG_SUCCESS && random_chance(random, end->spoiled))
		spoil_locally(message, type, random);
	message->packets = message->length == 0 ? 1 : (message->length + plan->mtu - 1) / plan->mtu;
	script->positions += message->packets;
	script->message_count++;
	return true;
}

void script_make_uc_ud(struct script scripts[2], const struct plan *plan, uint32_t connection,
		       struct sim_random *random)
{
	bool datagrams = plan->service[connection] == ENG_UD;

	for (uint32_t side = 0; side < 2; side++)
		script_start(&scripts[side], random);
	for (uint32_t side = 0; side < 2; side++)
		while (scripts[side].message_count < plan->uc_ud[side].messages &&
		       make_message(scripts, plan, connection, side, random))
			;
	for (uint32_t side = 0; side < 2; side++) {
		uint32_t longest = plan->uc_ud[!side].max_length;

		if (datagrams)
			longest = ENG_GRH_BYTES + (longest < plan->mtu ? longest : plan->mtu);
		make_receives(&scripts[side], longest, &plan->uc_ud[side], random);
		area_grow(&scripts[side].landing, GUARD);
		area_grow(&scripts[side].remote, GUARD);
	}
}

void script_make_common(struct script *script, const struct plan *plan, uint32_t side,
			struct sim_random *random)
{
	script_start(script, random);
	make_receives(script, plan_longest_receive(plan, side), &plan->end[side], random);
	area_grow(&script->landing, GUARD);
}
