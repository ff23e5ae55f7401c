/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Slots are divided into segments that take one or two instructions each; a binary search finds the
 * segment of a slot.  Conditional jumps of classic BPF reach 255 instructions, so the search needs
 * an unconditional jump as well in its upper levels.
 */
#include "steer.h"

#include <stdbool.h>
#include <stddef.h>

enum {
	/* Maximum distance of a conditional jump. */
	JUMP_MAX = 255,
	/* Byte offsets in the UDP payload. */
	AT_DESTINATION = 4,
	AT_PROBE_INDEX = 8,
};

_Static_assert(offsetof(struct uroce_broker_probe, destination) == AT_DESTINATION,
	       "layout of a probe");
_Static_assert(offsetof(struct uroce_broker_probe, index) == AT_PROBE_INDEX, "layout of a probe");

/* Consecutive slots, from first to before the first slot of the next segment. */
struct segment {
	uint16_t first;
	uint16_t index; /* member index of the first slot */
	/* The index rises by 1 with each slot; otherwise all slots have the same index. */
	bool ascends;
};

struct builder {
	struct sock_filter *code;
	/* Number of instructions; those beyond BPF_MAXINSNS are counted but not stored. */
	unsigned int length;
	unsigned int segment_count;
	struct segment segment[UROCE_BROKER_SLOTS];
};

void steer_clear(struct steer_table *table, uint16_t gsi, uint16_t sink)
{
	table->gsi = gsi;
	table->sink = sink;
	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++)
		table->member[slot] = STEER_NONE;
}

/* ---- segments ---- */

/*
 * Returns true if the slot with this index belongs to the last segment.  The second slot of a
 * segment determines, and sets, whether the segment ascends.
 */
static bool continues_segment(struct builder *builder, unsigned int slot, uint16_t index)
{
	struct segment *last = &builder->segment[builder->segment_count - 1];
	unsigned int distance = slot - last->first;

	if (last->ascends)
		return index == last->index + distance;
	if (index == last->index)
		return true;
	last->ascends = distance == 1 && index == last->index + 1;
	return last->ascends;
}

/*
 * Divides the slots into segments.  If merges_free is true, a slot that no client holds joins the
 * segment before it unless that ascends: its packets then reach a worker, which drops them.
 */
static void build_segments(struct builder *builder, const struct steer_table *table,
			   bool merges_free)
{
	builder->segment_count = 0;
	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++) {
		uint16_t index = table->member[slot];

		if (index == STEER_NONE && merges_free && builder->segment_count &&
		    !builder->segment[builder->segment_count - 1].ascends)
			continue;
		if (index == STEER_NONE)
			index = table->sink;
		if (builder->segment_count && continues_segment(builder, slot, index))
			continue;
		builder->segment[builder->segment_count++] = (struct segment){
			.first = (uint16_t)slot,
			.index = index,
		};
	}
}

/* ---- instructions ---- */

static void emit_instruction(struct builder *builder, struct sock_filter instruction)
{
	if (builder->length < BPF_MAXINSNS)
		builder->code[builder->length] = instruction;
	builder->length++;
}

/* Emits the result of a segment; the accumulator contains the slot. */
static void emit_result(struct builder *builder, const struct segment *segment)
{
	if (!segment->ascends) {
		emit_instruction(builder,
				 (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, segment->index));
		return;
	}
	emit_instruction(builder,
			 (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K,
						      (uint32_t)segment->index - segment->first));
	emit_instruction(builder, (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0));
}

static unsigned int middle_index(unsigned int first, unsigned int end)
{
	return first + (end - first) / 2;
}

/* Returns the number of instructions of the search in segments first to end - 1. */
static unsigned int search_length(const struct builder *builder, unsigned int first,
				  unsigned int end)
{
	unsigned int middle = middle_index(first, end), left;

	if (end - first == 1)
		return builder->segment[first].ascends ? 2 : 1;
	left = search_length(builder, first, middle);
	return (left > JUMP_MAX ? 2 : 1) + left + search_length(builder, middle, end);
}

static void emit_search(struct builder *builder, unsigned int first, unsigned int end)
{
	const unsigned int middle = middle_index(first, end);
	const uint32_t slot = builder->segment[middle].first;
	unsigned int left;

	if (end - first == 1) {
		emit_result(builder, &builder->segment[first]);
		return;
	}
	left = search_length(builder, first, middle);
	if (left > JUMP_MAX) {
		emit_instruction(builder, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
								       slot, 0, 1));
		emit_instruction(builder, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, left));
	} else {
		emit_instruction(builder, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K,
								       slot, (uint8_t)left, 0));
	}
	emit_search(builder, first, middle);
	emit_search(builder, middle, end);
}

static void emit_program(struct builder *builder, const struct steer_table *table)
{
	/* clang-format off */
	const struct sock_filter prologue[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_DESTINATION),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1, 4, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 2, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_PROBE_INDEX),
		BPF_STMT(BPF_RET | BPF_A, 0),
		BPF_STMT(BPF_RET | BPF_K, table->gsi),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, UROCE_BROKER_SLOT_SHIFT),
	};
	/* clang-format on */

	builder->length = 0;
	for (unsigned int i = 0; i < sizeof(prologue) / sizeof(prologue[0]); i++)
		emit_instruction(builder, prologue[i]);
	emit_search(builder, 0, builder->segment_count);
}

unsigned int steer_build(const struct steer_table *table, struct sock_filter code[BPF_MAXINSNS])
{
	struct builder builder = { .code = code };

	build_segments(&builder, table, false);
	emit_program(&builder, table);
	if (builder.length > BPF_MAXINSNS) {
		build_segments(&builder, table, true);
		emit_program(&builder, table);
	}
	return builder.length > BPF_MAXINSNS ? 0 : builder.length;
}
