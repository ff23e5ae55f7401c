/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "foreign_stack.h"

#include <string.h>

const char *stack_name(enum stack_kind kind)
{
	static const char *const names[] = {
#define STACK_NAME(id, name) [STACK_##id] = name,
		STACKS(STACK_NAME)
#undef STACK_NAME
	};

	return names[kind];
}

uint32_t stack_random(struct stack *stack, uint32_t bound)
{
	/* xorshift64*; the upper half of its output is scaled to the bound by a multiplication. */
	stack->random ^= stack->random >> 12;
	stack->random ^= stack->random << 25;
	stack->random ^= stack->random >> 27;
	return (uint32_t)((stack->random * UINT64_C(0x2545f4914f6cdd1d) >> 32) * bound >> 32);
}

void stack_init(struct stack *stack, enum stack_kind kind, uint64_t seed)
{
	memset(stack, 0, sizeof(*stack));
	stack->kind = kind;
	stack->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	stack->now = stack_random(stack, 1u << 31);
	stack->counter = (uint16_t)stack_random(stack, 65536);
	stack->others = 2000;
	if (kind == STACK_FLOW)
		for (int i = 0; i < STACK_FLOWS; i++)
			stack->flow[i] = (uint16_t)stack_random(stack, 65536);
}

static uint64_t jiffies_a_second(const struct stack *stack)
{
	switch (stack->kind) {
	case STACK_LINUX_100:
		return 100;
	case STACK_LINUX_250:
		return 250;
	case STACK_LINUX_1000:
		return 1000;
	default:
		return 0;
	}
}

/*
 * Each packet gets the next number.  The first packet of a jiffy also skips a random amount of
 * numbers, less than the number of jiffies since the last packet.
 */
static uint16_t count_linux(struct stack *stack)
{
	uint64_t jiffy = stack->now * jiffies_a_second(stack) / STACK_SECOND_NS;

	if (jiffy != stack->stamp) {
		uint64_t passed = jiffy - stack->stamp;

		stack->stamp = jiffy;
		stack->counter += (uint16_t)stack_random(
			stack, passed < UINT32_MAX ? (uint32_t)passed : UINT32_MAX);
	}
	return stack->counter++;
}

void stack_pause(struct stack *stack, uint64_t ns)
{
	uint64_t packets = ns * stack->others / STACK_SECOND_NS;

	stack->now += ns;
	if (stack->kind != STACK_CONSTANT)
		stack->counter += (uint16_t)stack_random(stack, (uint32_t)packets + 1);
}

void stack_begin(struct stack *stack, unsigned int flow)
{
	if (stack->kind == STACK_BURSTS || stack->kind == STACK_MESSAGES)
		stack->flow[flow] = 0;
}

uint16_t stack_next(struct stack *stack, unsigned int flow)
{
	uint16_t id;

	switch (stack->kind) {
	case STACK_ZERO:
		return 0;
	case STACK_BURSTS:
		id = stack->flow[flow];
		stack->flow[flow] = (uint16_t)((id + 1) % STACK_BURST);
		return id;
	case STACK_MESSAGES:
	case STACK_FLOW:
		return stack->flow[flow]++;
	case STACK_CONSTANT:
		return stack->counter;
	case STACK_SWAPPED:
		id = stack->counter++;
		return (uint16_t)(id << 8 | id >> 8);
	case STACK_RANDOM:
		return (uint16_t)stack_random(stack, 65536);
	case STACK_HOST:
		return stack->counter++;
	default:
		return count_linux(stack);
	}
}
