/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The work of a flow: many messages of one operation and length, in one direction, each to its own
 * memory.  Their data are parts of the same bytes, at a different offset each time.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/plan/script_parts.h"

/* Number of bytes by which the start of each message is moved, modulo PATTERN_STEPS. */
#define PATTERN_STEP 61
#define PATTERN_STEPS 256

static void reserve(struct area *area, uint64_t room)
{
	if (area->room >= room)
		return;
	free(area->bytes);
	free(area->image);
	area->bytes = malloc(room);
	area->image = malloc(room);
	if (!area->bytes || !area->image)
		abort();
	area->room = (uint32_t)room;
}

/* Makes areas larger than those of other scripts; a world that runs flows runs nothing else. */
static void start(struct script *script, uint64_t volume, uint32_t length,
		  struct sim_random *random)
{
	uint64_t pattern = length + PATTERN_STEP * PATTERN_STEPS + 2 * GUARD;

	reserve(&script->source, SOURCE_BYTES + pattern);
	reserve(&script->landing, LANDING_ROOM + volume);
	reserve(&script->remote, REMOTE_ROOM + volume + pattern);
	if (script->blob_room < pattern) {
		free(script->blob);
		script->blob = malloc(BLOB_ROOM + pattern);
		if (!script->blob)
			abort();
		script->blob_room = (uint32_t)pattern;
	}
	script_start(script, random);
}

/* Creates the data of messages of this length, at the end of the area. */
static uint32_t make_pattern(struct script *script, struct area *area, uint32_t length)
{
	uint32_t bytes = length + PATTERN_STEP * PATTERN_STEPS;
	uint32_t at = area_grow(area, bytes);

	area_grow(area, GUARD);
	memcpy(script->blob, area->image + at, bytes);
	script->blob_used = bytes;
	return at;
}

static void one_sge(struct message *message, const struct area *area, uint32_t offset)
{
	message->sge_count = 1;
	message->sge[0] = (struct eng_sge){ area->base + offset, message->length, area->key };
}

static uint32_t fresh(struct area *area, uint32_t length)
{
	uint32_t at = area_grow(area, length);

	area_grow(area, GAP);
	return at;
}

static void make_receive(struct script *peer, uint32_t length)
{
	struct receive *receive = script_new_receive(peer);
	uint32_t at = fresh(&peer->landing, length);

	receive->length = length;
	receive->sge_count = 1;
	receive->sge[0] = (struct eng_sge){ peer->landing.base + at, length, peer->landing.key };
	peer->receive_count++;
}

static void make_message(struct script scripts[2], const struct plan *plan, uint32_t connection,
			 uint32_t pattern, struct sim_random *random)
{
	uint32_t asker = flow_asker(plan->flow_op[connection]);
	struct script *script = &scripts[asker], *peer = &scripts[!asker];
	struct message *message = script_new_message(script);

	message->op = plan->flow_op[connection];
	message->length = plan->flow_length[connection];
	message->flags = ENG_SIGNALED;
	message->signaled = true;
	message->immediate = (uint32_t)random_next(random);
	message->next_writer = message->window = NO_INDEX;
	message->content = PATTERN_STEP * (script->message_count % PATTERN_STEPS);
	message->first = script->positions;
	message->packets = (message->length + plan->mtu - 1) / plan->mtu;
	message->ssn = ++script->wire_messages;
	message->rkey = peer->remote.key;
	if (message->op == ENG_READ) {
		message->target = pattern + message->content;
		one_sge(message, &script->landing, fresh(&script->landing, message->length));
	} else {
		one_sge(message, &script->source, pattern + message->content);
	}
	if (message->op == ENG_WRITE) {
		message->target = fresh(&peer->remote, message->length);
		memcpy(peer->remote.image + message->target, script->blob + message->content,
		       message->length);
	}
	message->va = peer->remote.base + message->target;
	if (op_takes_receive(message->op)) {
		message->takes_receive = ++script->receives_needed;
		make_receive(peer, message->length);
	}
	message->receives_upto = script->receives_needed;
	script->positions += message->packets;
	script->message_count++;
}

void script_make_flow(struct script scripts[2], const struct plan *plan, uint32_t connection,
		      struct sim_random *random)
{
	uint32_t asker = flow_asker(plan->flow_op[connection]), length, pattern;
	struct script *script = &scripts[asker], *peer = &scripts[!asker];
	uint32_t messages = plan->flow_messages[connection];

	length = plan->flow_length[connection];
	for (uint32_t side = 0; side < 2; side++)
		start(&scripts[side], (uint64_t)messages * (length + GAP), length, random);
	pattern = make_pattern(
		script, plan->flow_op[connection] == ENG_READ ? &peer->remote : &script->source,
		length);
	for (uint32_t n = 0; n < messages; n++)
		make_message(scripts, plan, connection, pattern, random);
	for (uint32_t side = 0; side < 2; side++) {
		area_grow(&scripts[side].landing, GUARD);
		area_grow(&scripts[side].remote, GUARD);
	}
}
