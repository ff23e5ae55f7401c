/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/plan/script_parts.h"

#include <stdlib.h>
#include <string.h>

/* Random bytes, the same for all seeds: the first half for data to send, the other for memory. */
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

uint32_t area_grow(struct area *area, uint32_t length)
{
	uint32_t offset = area->used;

	if (length > area->room - offset)
		return NO_INDEX;
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
	area->gone = false;
	area->access = access;
	area->key = (uint32_t)random_next(random);
	/*
	 * Random addresses, mostly beyond 32 bits, or one below 4 GB so that the area crosses that.
	 */
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
	/* Each area has its own key, so that a mix-up is noticed. */
	script->landing.key = source->key + 1 + random_below(random, 1000);
	area_start(&script->remote, REMOTE_ROOM,
		   ENG_REMOTE_WRITE | ENG_REMOTE_READ | ENG_REMOTE_ATOMIC, random);
	area_grow(&script->remote, CONSTANT_BYTES + CELLS * 8 + GUARD);
}

void script_start(struct script *script, struct sim_random *random)
{
	make_pool();
	if (!script->blob)
		script->blob = allocate(BLOB_ROOM);
	script->blob_used = 0;
	script->message_count = 0;
	script->positions = 0;
	script->wire_messages = 0;
	script->receives_needed = 0;
	script->bad = NO_INDEX;
	script->receive_count = 0;
	script->receives_again = false;
	script->last_write_count = 0;
	script->window_count = script->windows_used = 0;
	start_areas(script, random);
}

/* Returns items of bytes each, moved if necessary, with room for one more than count. */
static void *with_room(void *items, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return items;
	*room = *room ? 2 * *room : 64;
	items = realloc(items, *room * bytes);
	if (!items)
		abort();
	return items;
}

struct message *script_new_message(struct script *script)
{
	script->messages = with_room(script->messages, script->message_count, &script->message_room,
				     sizeof(script->messages[0]));
	memset(&script->messages[script->message_count], 0, sizeof(script->messages[0]));
	return &script->messages[script->message_count];
}

struct receive *script_new_receive(struct script *script)
{
	script->receives = with_room(script->receives, script->receive_count, &script->receive_room,
				     sizeof(script->receives[0]));
	memset(&script->receives[script->receive_count], 0, sizeof(script->receives[0]));
	return &script->receives[script->receive_count];
}

enum eng_op script_pick_op(const struct end_plan *plan, struct sim_random *random)
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

uint32_t script_pick_length(const struct end_plan *plan, uint32_t mtu, struct sim_random *random)
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

/* Splits length into at most most parts, some of them empty. */
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

bool script_land(struct area *area, uint32_t length, uint32_t most, struct eng_sge *sge,
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

void script_gather(struct script *script, struct message *message, const struct end_plan *plan,
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

bool script_aim(struct script *script, struct script *peer, struct message *message,
		struct sim_random *random)
{
	struct area *remote = &peer->remote;
	uint32_t slot;

	if (script->last_write_count > 0 && random_chance(random, 200)) {
		slot = random_below(random, script->last_write_count);
		struct message *before = &script->messages[script->last_writes[slot]];

		if (before->length >= message->length && before->next_writer == NO_INDEX) {
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

void script_pick_flags(struct message *message, const struct end_plan *plan,
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
