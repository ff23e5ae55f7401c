/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/plan/script_parts.h"

#include <stdlib.h>
#include <string.h>

static bool make_write(struct script *script, struct script *peer, struct message *message,
		       const struct end_plan *plan, struct sim_random *random)
{
	script_gather(script, message, plan, random);
	if (!script_aim(script, peer, message, random))
		return false;
	message->va = peer->remote.base + message->target;
	message->rkey = peer->remote.key;
	if (!message->dead)
		memcpy(peer->remote.image + message->target, script->blob + message->content,
		       message->length);
	return true;
}

/* Eight bytes at an address that is a multiple of eight. */
static bool make_atomic_write(struct script *script, struct script *peer, struct message *message,
			      const struct end_plan *plan, struct sim_random *random)
{
	struct area *remote = &peer->remote;

	script_gather(script, message, plan, random);
	if (remote->room - remote->used < 3 * GUARD)
		return false;
	area_grow(remote, -remote->used & 7);
	message->target = area_grow(remote, 8);
	area_grow(remote, random_between(random, 1, GAP));
	message->va = remote->base + message->target;
	message->rkey = remote->key;
	if (!message->dead)
		memcpy(remote->image + message->target, script->blob + message->content, 8);
	return true;
}

static bool make_read(struct script *script, struct script *peer, struct message *message,
		      const struct end_plan *plan, struct sim_random *random)
{
	uint32_t target = 0;

	if (script->last_write_count > 0 && random_chance(random, 500)) {
		struct message *write = &script->messages[script->last_writes[random_below(
			random, script->last_write_count)]];

		if (write->length > 0) {
			uint32_t skip = random_below(random, write->length);

			write->read_later = true;
			target = write->target + skip;
			if (message->length > write->length - skip)
				message->length = write->length - skip;
		}
	}
	if (target == 0) {
		if (message->length > CONSTANT_BYTES)
			message->length = CONSTANT_BYTES;
		target = GUARD + random_below(random, CONSTANT_BYTES - message->length + 1);
	}
	if (!script_land(&script->landing, message->length, plan->max_sge, message->sge,
			 &message->sge_count, random))
		return false;
	message->target = target;
	message->va = peer->remote.base + target;
	message->rkey = peer->remote.key;
	message->content = script->blob_used;
	memcpy(script->blob + message->content, peer->remote.image + target, message->length);
	script->blob_used += message->length;
	return true;
}

static bool make_atomic(struct script *script, struct script *peer, struct message *message,
			struct sim_random *random)
{
	uint32_t cell = GUARD + CONSTANT_BYTES + 8 * random_below(random, CELLS);
	uint64_t value;

	message->length = 8;
	if (!script_land(&script->landing, 8, 1, message->sge, &message->sge_count, random))
		return false;
	memcpy(&value, peer->remote.image + cell, 8);
	message->original = value;
	message->target = cell;
	message->va = peer->remote.base + cell;
	message->rkey = peer->remote.key;
	message->compare_add = random_next(random);
	message->swap = random_next(random);
	if (message->op == ENG_FETCH_ADD) {
		value += message->compare_add;
	} else {
		if (random_chance(random, 600))
			message->compare_add = value;
		if (message->compare_add == value)
			value = message->swap;
	}
	if (!message->dead)
		memcpy(peer->remote.image + cell, &value, 8);
	return true;
}

/* Binds a window for one message of the peer, see use_window(). */
static void make_bind(struct script *script, struct message *message, struct sim_random *random)
{
	struct window *window = &script->windows[script->window_count];

	message->window = script->window_count++;
	memset(window, 0, sizeof(*window));
	window->key = message->immediate & ~LOCAL_KEY;
	window->binder = script->message_count;
	window->offset = GUARD + random_below(random, CONSTANT_BYTES / 2);
	window->length = random_between(random, 1, 4096);
	message->immediate = window->key;
}

/* Lets the message use the next of the peer's windows, which gets the size of the message. */
static void use_window(struct script *peer, struct message *message)
{
	struct window *window = &peer->windows[peer->windows_used];

	message->window = peer->windows_used++;
	message->rkey = window->key;
	window->offset = message->target;
	window->length = message->length;
}

/* Invalidates a window that later messages do not use; READs through it must be complete. */
static void end_window(struct script *peer, struct message *message)
{
	for (uint32_t i = 0; i < peer->windows_used; i++) {
		struct window *window = &peer->windows[i];

		if (window->promised_end)
			continue;
		window->promised_end = true;
		message->window = i;
		message->immediate = window->key;
		message->flags |= ENG_FENCE;
		return;
	}
}

/* Only side B uses windows, and only side A binds them, so there is no circular wait. */
static void give_window(struct script *peer, struct message *message, struct sim_random *random)
{
	if (message->op == ENG_SEND_INV) {
		end_window(peer, message);
		return;
	}
	if (message->length > 0 && peer->windows_used < peer->window_count &&
	    (op_is_read(message->op) || message->op == ENG_WRITE || message->op == ENG_WRITE_IMM) &&
	    random_chance(random, 400))
		use_window(peer, message);
}

static const struct window *ended_window(const struct script *peer)
{
	for (uint32_t i = 0; i < peer->windows_used; i++)
		if (peer->windows[i].promised_end)
			return &peer->windows[i];
	return NULL;
}

static bool suits(const struct message *message, enum trouble trouble)
{
	switch (trouble) {
	case TROUBLE_RKEY:
	case TROUBLE_BOUNDS:
		return !op_is_send(message->op) && message->length > 0;
	case TROUBLE_ACCESS:
		return !op_is_send(message->op) && !op_is_local(message->op);
	case TROUBLE_SHORT_RECEIVE:
		return op_is_send(message->op) && message->length > 0;
	case TROUBLE_LKEY:
		return message->length > 0 || op_is_atomic(message->op);
	case TROUBLE_BIND:
		return message->op == ENG_BIND_MW;
	case TROUBLE_LOCAL_INV:
		return message->op == ENG_LOCAL_INV;
	case TROUBLE_REMOTE_INV:
		return message->op == ENG_SEND_INV;
	case TROUBLE_DEAD_WINDOW:
		return op_is_read(message->op) || message->op == ENG_WRITE ||
		       message->op == ENG_WRITE_IMM;
	case TROUBLE_NONE:
	case TROUBLES:
		break;
	}
	return false;
}

/* Returns true if this message is the one with an error. */
static bool goes_wrong(const struct script *script, const struct script *peer,
		       const struct message *message, const struct plan *plan, uint32_t side)
{
	uint32_t from = plan->end[side].messages / 3;

	if (script->bad != NO_INDEX || plan->trouble_side != side)
		return false;
	/* An operation that the QP does not allow fails at its first use. */
	if (plan->trouble != TROUBLE_ACCESS && script->message_count < from)
		return false;
	if (plan->trouble == TROUBLE_DEAD_WINDOW && (!ended_window(peer) || message->length == 0))
		return false;
	return suits(message, plan->trouble);
}

static void spoil(struct message *message, const struct script *peer, enum trouble trouble)
{
	uint32_t last = message->sge_count;

	message->flags &= ~(uint32_t)ENG_INLINE;
	if (trouble == TROUBLE_RKEY)
		message->rkey ^= 0x100;
	if (trouble == TROUBLE_DEAD_WINDOW)
		message->rkey = ended_window(peer)->key;
	if (trouble != TROUBLE_LKEY)
		return;
	/* Empty elements name no memory. */
	while (message->sge[last - 1].length == 0)
		last--;
	message->sge[last - 1].lkey ^= 0x80000000;
}

static bool make_body(struct script *script, struct script *peer, struct message *message,
		      const struct end_plan *plan, struct sim_random *random)
{
	switch (message->op) {
	case ENG_READ:
		return make_read(script, peer, message, plan, random);
	case ENG_COMPARE_SWAP:
	case ENG_FETCH_ADD:
		return make_atomic(script, peer, message, random);
	case ENG_WRITE:
	case ENG_WRITE_IMM:
		return make_write(script, peer, message, plan, random);
	case ENG_ATOMIC_WRITE:
		return make_atomic_write(script, peer, message, plan, random);
	case ENG_BIND_MW:
		make_bind(script, message, random);
		return true;
	case ENG_LOCAL_INV:
		message->immediate |= LOCAL_KEY;
		return true;
	default:
		if (message->op == ENG_SEND_INV)
			message->immediate &= ~LOCAL_KEY;
		script_gather(script, message, plan, random);
		return true;
	}
}

/* Makes the receive request that this message will take at the peer. */
static bool make_receive(struct script *peer, const struct message *message,
			 const struct end_plan *plan, enum trouble trouble,
			 struct sim_random *random)
{
	struct receive *receive;
	uint32_t length = random_chance(random, 500) ? 0 : random_below(random, 100);

	if (message && op_is_send(message->op))
		length = trouble == TROUBLE_SHORT_RECEIVE ? random_below(random, message->length)
							  : length + message->length;
	receive = script_new_receive(peer);
	receive->length = length;
	if (!script_land(&peer->landing, length, plan->max_sge, receive->sge, &receive->sge_count,
			 random))
		return false;
	peer->receive_count++;
	return true;
}

static uint32_t packets_of(const struct message *message, uint32_t mtu)
{
	if (op_is_local(message->op))
		return 0;
	if (op_is_atomic(message->op) || message->length == 0)
		return 1;
	return (message->length + mtu - 1) / mtu;
}

static bool make_message(struct script scripts[2], const struct plan *plan, uint32_t connection,
			 uint32_t side, struct sim_random *random)
{
	struct script *script = &scripts[side], *peer = &scripts[!side];
	const struct end_plan *end = plan_of(plan, connection, side);
	struct message *message = script_new_message(script);
	bool wrong;

	message->op = script_pick_op(end, random);
	if (message->op == ENG_BIND_MW && script->window_count == SCRIPT_WINDOWS)
		message->op = ENG_LOCAL_INV;
	message->next_writer = message->window = NO_INDEX;
	if (!op_is_local(message->op))
		message->length = script_pick_length(end, plan->mtu, random);
	/* Set before the check for room. */
	if (message->op == ENG_ATOMIC_WRITE)
		message->length = 8;
	if (message->length > BLOB_ROOM - script->blob_used)
		return false;
	script_pick_flags(message, end, random);
	wrong = goes_wrong(script, peer, message, plan, side);
	message->dead = wrong || script->bad != NO_INDEX;
	if (!make_body(script, peer, message, end, random))
		return false;
	if (side == 1 && !message->dead)
		give_window(peer, message, random);
	message->signaled = end->signal_all || (message->flags & ENG_SIGNALED);
	message->first = script->positions;
	message->packets = packets_of(message, plan->mtu);
	script->wire_messages += message->packets > 0;
	message->ssn = script->wire_messages;
	message->receives_upto = script->receives_needed;
	if (op_takes_receive(message->op)) {
		if (!make_receive(peer, message, plan_of(plan, connection, !side),
				  wrong ? plan->trouble : TROUBLE_NONE, random))
			return false;
		message->takes_receive = ++script->receives_needed;
		message->receives_upto = script->receives_needed;
	}
	if (wrong) {
		script->bad = script->message_count;
		spoil(message, peer, plan->trouble);
	}
	/* An empty range names no memory: its key and address mean nothing. */
	if (message->length == 0 && !op_is_send(message->op) && !op_is_local(message->op) &&
	    random_chance(random, 500)) {
		message->va = random_next(random);
		message->rkey = (uint32_t)random_next(random);
	}
	script->positions += message->packets;
	script->message_count++;
	return true;
}

void script_make(struct script scripts[2], const struct plan *plan, uint32_t connection,
		 struct sim_random *random)
{
	const struct end_plan *ends[2] = { plan_of(plan, connection, 0),
					   plan_of(plan, connection, 1) };
	bool more[2] = { ends[0]->messages > 0, ends[1]->messages > 0 };
	uint32_t extra;

	for (uint32_t side = 0; side < 2; side++)
		script_start(&scripts[side], random);
	for (uint32_t side = 0; side < 2; side++)
		while (more[side])
			more[side] = make_message(scripts, plan, connection, side, random) &&
				     scripts[side].message_count < ends[side]->messages;
	for (uint32_t side = 0; side < 2; side++) {
		struct script *script = &scripts[side];

		/* The sending half of XRC has no receive queue. */
		extra = random_below(random, 6);
		if (plan_type(plan, connection, side) == ENG_XRC_SEND)
			extra = 0;
		for (; extra > 0; extra--)
			if (!make_receive(script, NULL, ends[side], TROUBLE_NONE, random))
				break;
		area_grow(&script->landing, GUARD);
		area_grow(&script->remote, GUARD);
	}
	for (uint32_t side = 0; side < 2; side++) {
		const struct area *remote = &scripts[!side].remote;
		uint32_t bad = scripts[side].bad;

		if (bad != NO_INDEX && plan->trouble == TROUBLE_BOUNDS)
			scripts[side].messages[bad].va =
				(remote->base + remote->used - GUARD + 7) & ~UINT64_C(7);
	}
}

void script_free(struct script *script)
{
	struct area *areas[] = { &script->source, &script->landing, &script->remote };

	for (int i = 0; i < 3; i++) {
		free(areas[i]->bytes);
		free(areas[i]->image);
	}
	free(script->messages);
	free(script->receives);
	free(script->blob);
}
