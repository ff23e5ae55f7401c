/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/script.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define POOL_BYTES (1u << 20)
#define SOURCE_BYTES (192u << 10)
#define LANDING_ROOM (6u << 20)
#define REMOTE_ROOM (3u << 20)
#define BLOB_ROOM (1200u << 10)
#define GUARD 64
#define GAP 32
#define CONSTANT_BYTES (64u << 10) /* of the remote area: only read */
#define CELLS 8			   /* of the remote area: for Atomics */

/* Random bytes, the same for all seeds: the first half for what is sent, the other for memory. */
static uint8_t pool[POOL_BYTES];

static void make_pool(void)
{
	static bool made;
	struct sim_random random;

	if (made)
		return;
	made = true;
	random_seed(&random, 20, 0);
	random_fill(&random, pool, sizeof(pool));
}

static void *allocate(size_t bytes)
{
	void *memory = malloc(bytes);

	if (!memory)
		abort();
	return memory;
}

/* More bytes at the end of the area, alike in both pictures; NOBODY when it is full. */
static uint32_t area_grow(struct area *area, uint32_t length)
{
	uint32_t offset = area->used;

	if (length > area->room - offset)
		return NOBODY;
	for (uint32_t done = 0; done < length;) {
		uint32_t at = (offset + done) % (POOL_BYTES / 2);
		uint32_t n = POOL_BYTES / 2 - at;

		if (n > length - done)
			n = length - done;
		memcpy(area->bytes + offset + done, pool + POOL_BYTES / 2 + at, n);
		memcpy(area->image + offset + done, pool + POOL_BYTES / 2 + at, n);
		done += n;
	}
	area->used += length;
	return offset;
}

static void area_start(struct area *area, uint32_t room, uint32_t access, struct sim_random *random)
{
	if (!area->bytes) {
		area->bytes = allocate(room);
		area->image = allocate(room);
		area->room = room;
	}
	area->used = 0;
	area->access = access;
	area->key = (uint32_t)random_next(random);
	/* Addresses beyond 32 bits, and such that cross from below. */
	area->base = random_chance(random, 500) ? (random_next(random) & 0x7ffffffff000u)
						: UINT64_C(0x100000000) - 0x2000;
	area_grow(area, GUARD);
}

static void start_areas(struct script *script, struct sim_random *random)
{
	struct area *source = &script->source;
	uint32_t from = random_below(random, POOL_BYTES / 2 - SOURCE_BYTES);

	area_start(source, SOURCE_BYTES, 0, random);
	source->used = SOURCE_BYTES;
	memcpy(source->bytes, pool + from, SOURCE_BYTES);
	memcpy(source->image, pool + from, SOURCE_BYTES);
	area_start(&script->landing, LANDING_ROOM, ENG_LOCAL_WRITE, random);
	/* Each memory has a key of its own, or a mix-up would go unseen. */
	script->landing.key = source->key + 1 + random_below(random, 1000);
	area_start(&script->remote, REMOTE_ROOM,
		   ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC, random);
	area_grow(&script->remote, CONSTANT_BYTES + CELLS * 8 + GUARD);
}

static void start(struct script *script, struct sim_random *random)
{
	if (!script->blob)
		script->blob = allocate(BLOB_ROOM);
	script->blob_used = 0;
	script->message_count = 0;
	script->positions = 0;
	script->wire_messages = 0;
	script->receives_needed = 0;
	script->bad = NOBODY;
	script->receive_count = 0;
	script->last_write_count = 0;
	start_areas(script, random);
}

static struct message *new_message(struct script *script)
{
	if (script->message_count == script->message_room) {
		script->message_room = script->message_room ? 2 * script->message_room : 64;
		script->messages = realloc(script->messages,
					   script->message_room * sizeof(script->messages[0]));
		if (!script->messages)
			abort();
	}
	memset(&script->messages[script->message_count], 0, sizeof(script->messages[0]));
	return &script->messages[script->message_count];
}

static enum eng_op pick_op(const struct end_plan *plan, struct sim_random *random)
{
	uint32_t sum = 0, pick;

	for (uint32_t op = 0; op < ENG_OPS; op++)
		sum += plan->op_weight[op];
	pick = random_below(random, sum);
	for (uint32_t op = 0; op < ENG_OPS; op++) {
		if (pick < plan->op_weight[op])
			return (enum eng_op)op;
		pick -= plan->op_weight[op];
	}
	return ENG_SEND;
}

/* Lengths around whole packets are where the mistakes are. */
static uint32_t pick_length(const struct end_plan *plan, uint32_t mtu, struct sim_random *random)
{
	uint32_t packets = 1 + (uint32_t)random_skewed(random, plan->max_length / mtu);
	uint32_t length;

	switch (random_below(random, 8)) {
	case 0:
		length = 0;
		break;
	case 1:
		length = random_below(random, 9);
		break;
	case 2:
	case 3:
		length = packets * mtu + random_below(random, 3) - 1;
		break;
	case 4:
		length = packets * mtu;
		break;
	default:
		length = (uint32_t)random_skewed(random, plan->max_length);
	}
	return length < plan->max_length ? length : plan->max_length;
}

/* Split length into at most most parts, some of them empty. */
static uint32_t split(uint32_t length, uint32_t most, uint32_t *parts, struct sim_random *random)
{
	uint32_t count =
		length == 0 && random_chance(random, 500) ? 0 : random_between(random, 1, most);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = length;

		if (i + 1 < count) {
			n = random_chance(random, 50) ? 0 : random_below(random, length + 1);
			if (random_chance(random, 300))
				n = (uint32_t)random_skewed(random, length < 40 ? length : 40);
		}
		parts[i] = n;
		length -= n;
	}
	return count;
}

/* SGEs in fresh memory with gaps between them; false when there is no room. */
static bool land(struct area *area, uint32_t length, uint32_t most, struct eng_sge *sge,
		 uint32_t *count, struct sim_random *random)
{
	uint32_t parts[ENG_MAX_SGE];

	if (area->room - area->used < length + (ENG_MAX_SGE + 1) * GAP + GUARD)
		return false;
	*count = split(length, most, parts, random);
	for (uint32_t i = 0; i < *count; i++) {
		uint32_t offset = area_grow(area, parts[i]);

		area_grow(area, random_between(random, 1, GAP));
		sge[i] = (struct eng_sge){ area->base + offset, parts[i], area->key };
	}
	return true;
}

/* What a SEND or WRITE sends, gathered from anywhere. */
static void gather(struct script *script, struct message *message, const struct end_plan *plan,
		   struct sim_random *random)
{
	const struct area *source = &script->source;
	uint8_t *to = script->blob + script->blob_used;
	uint32_t parts[ENG_MAX_SGE];

	message->content = script->blob_used;
	script->blob_used += message->length;
	message->sge_count = split(message->length, plan->max_sge, parts, random);
	for (uint32_t i = 0; i < message->sge_count; i++) {
		uint32_t room = SOURCE_BYTES - 2 * GUARD - parts[i];
		uint32_t offset = GUARD + random_below(random, room);

		message->sge[i] = (struct eng_sge){ source->base + offset, parts[i], source->key };
		memcpy(to, source->bytes + offset, parts[i]);
		to += parts[i];
	}
	if (message->length <= plan->max_inline && random_chance(random, 500))
		message->flags |= ENG_INLINE;
}

/* Where a WRITE goes: fresh memory, or that of an earlier one. */
static bool aim(struct script *script, struct script *peer, struct message *message,
		struct sim_random *random)
{
	struct area *remote = &peer->remote;
	uint32_t slot;

	if (script->last_write_count > 0 && random_chance(random, 200)) {
		slot = random_below(random, script->last_write_count);
		struct message *before = &script->messages[script->last_writes[slot]];

		if (before->length >= message->length && before->next_writer == NOBODY) {
			before->next_writer = script->message_count;
			message->target = before->target;
			if (before->read_later)
				message->flags |= ENG_FENCE;
			script->last_writes[slot] = script->message_count;
			return true;
		}
	}
	if (remote->room - remote->used < message->length + 2 * GUARD)
		return false;
	message->target = area_grow(remote, message->length);
	area_grow(remote, random_between(random, 1, GAP));
	slot = script->last_write_count < 64 ? script->last_write_count++
					     : random_below(random, 64);
	script->last_writes[slot] = script->message_count;
	return true;
}

static bool make_write(struct script *script, struct script *peer, struct message *message,
		       const struct end_plan *plan, struct sim_random *random)
{
	gather(script, message, plan, random);
	if (!aim(script, peer, message, random))
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

	message->length = 8;
	gather(script, message, plan, random);
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
	if (!land(&script->landing, message->length, plan->max_sge, message->sge,
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
	if (!land(&script->landing, 8, 1, message->sge, &message->sge_count, random))
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
	case TROUBLE_NONE:
	case TROUBLES:
		break;
	}
	return false;
}

/* Is this the message that goes wrong? */
static bool goes_wrong(const struct script *script, const struct message *message,
		       const struct plan *plan, uint32_t side)
{
	uint32_t from = plan->end[side].messages / 3;

	if (script->bad != NOBODY || plan->trouble_side != side)
		return false;
	/* What the QP forbids, it forbids from the first time on. */
	if (plan->trouble != TROUBLE_ACCESS && script->message_count < from)
		return false;
	return suits(message, plan->trouble);
}

static void spoil(struct message *message, enum trouble trouble)
{
	uint32_t last = message->sge_count;

	message->flags &= ~(uint32_t)ENG_INLINE;
	if (trouble == TROUBLE_RKEY)
		message->rkey ^= 0x100;
	if (trouble != TROUBLE_LKEY)
		return;
	/* Empty elements name no memory. */
	while (message->sge[last - 1].length == 0)
		last--;
	message->sge[last - 1].lkey ^= 0x100;
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
	case ENG_LOCAL_INV:
		message->immediate |= LOCAL_KEY;
		return true;
	default:
		if (message->op == ENG_SEND_INV)
			message->immediate &= ~LOCAL_KEY;
		gather(script, message, plan, random);
		return true;
	}
}

/* The receive request that this message will take at the peer. */
static bool make_receive(struct script *peer, const struct message *message,
			 const struct end_plan *plan, enum trouble trouble,
			 struct sim_random *random)
{
	struct receive *receive;
	uint32_t length = random_chance(random, 500) ? 0 : random_below(random, 100);

	if (peer->receive_count == peer->receive_room) {
		peer->receive_room = peer->receive_room ? 2 * peer->receive_room : 64;
		peer->receives =
			realloc(peer->receives, peer->receive_room * sizeof(peer->receives[0]));
		if (!peer->receives)
			abort();
	}
	if (message && op_is_send(message->op))
		length = trouble == TROUBLE_SHORT_RECEIVE ? random_below(random, message->length)
							  : length + message->length;
	receive = &peer->receives[peer->receive_count];
	memset(receive, 0, sizeof(*receive));
	receive->length = length;
	if (!land(&peer->landing, length, plan->max_sge, receive->sge, &receive->sge_count, random))
		return false;
	peer->receive_count++;
	return true;
}

static void pick_flags(struct message *message, const struct end_plan *plan,
		       struct sim_random *random)
{
	if (random_chance(random, plan->signaled))
		message->flags |= ENG_SIGNALED;
	if (random_chance(random, plan->fence))
		message->flags |= ENG_FENCE;
	if (random_chance(random, 200) && !op_answers(message->op))
		message->flags |= ENG_SOLICITED;
	message->immediate = (uint32_t)random_next(random);
}

static uint32_t packets_of(const struct message *message, uint32_t mtu)
{
	if (op_is_local(message->op))
		return 0;
	if (op_is_atomic(message->op) || message->length == 0)
		return 1;
	return (message->length + mtu - 1) / mtu;
}

static bool make_message(struct script scripts[2], const struct plan *plan, uint32_t side,
			 struct sim_random *random)
{
	struct script *script = &scripts[side], *peer = &scripts[!side];
	const struct end_plan *end = &plan->end[side];
	struct message *message = new_message(script);
	bool wrong;

	message->op = pick_op(end, random);
	message->next_writer = NOBODY;
	if (!op_is_local(message->op))
		message->length = pick_length(end, plan->mtu, random);
	if (message->length > BLOB_ROOM - script->blob_used)
		return false;
	pick_flags(message, end, random);
	wrong = goes_wrong(script, message, plan, side);
	message->dead = wrong || script->bad != NOBODY;
	if (!make_body(script, peer, message, end, random))
		return false;
	message->signaled = plan->end[side].signal_all || (message->flags & ENG_SIGNALED);
	message->first = script->positions;
	message->packets = packets_of(message, plan->mtu);
	script->wire_messages += message->packets > 0;
	message->ssn = script->wire_messages;
	message->receives_upto = script->receives_needed;
	if (op_is_send(message->op) || message->op == ENG_WRITE_IMM) {
		if (!make_receive(peer, message, &plan->end[!side],
				  wrong ? plan->trouble : TROUBLE_NONE, random))
			return false;
		message->takes_receive = ++script->receives_needed;
		message->receives_upto = script->receives_needed;
	}
	if (wrong) {
		script->bad = script->message_count;
		spoil(message, plan->trouble);
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

void script_make(struct script scripts[2], const struct plan *plan, struct sim_random *random)
{
	bool more[2] = { plan->end[0].messages > 0, plan->end[1].messages > 0 };
	uint32_t extra;

	make_pool();
	for (uint32_t side = 0; side < 2; side++)
		start(&scripts[side], random);
	for (uint32_t side = 0; side < 2; side++)
		while (more[side])
			more[side] = make_message(scripts, plan, side, random) &&
				     scripts[side].message_count < plan->end[side].messages;
	for (uint32_t side = 0; side < 2; side++) {
		struct script *script = &scripts[side];

		for (extra = random_below(random, 6); extra > 0; extra--)
			if (!make_receive(script, NULL, &plan->end[side], TROUBLE_NONE, random))
				break;
		area_grow(&script->landing, GUARD);
		area_grow(&script->remote, GUARD);
	}
	for (uint32_t side = 0; side < 2; side++) {
		const struct area *remote = &scripts[!side].remote;
		uint32_t bad = scripts[side].bad;

		if (bad != NOBODY && plan->trouble == TROUBLE_BOUNDS)
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
