/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Simulates, in virtual time, the IPv4 identifications that the stacks of other hosts assign to
 * their datagrams: each kind that is known or allowed (RFC 6864 leaves them to the sender if DF is
 * set).
 */
#ifndef UROCE_TESTS_FOREIGN_STACK_H
#define UROCE_TESTS_FOREIGN_STACK_H

#include <stdint.h>

#define STACK_SECOND_NS UINT64_C(1000000000)

enum {
	STACK_FLOWS = 64,
	STACK_BURST = 128, /* maximum number of datagrams of one UDP_SEGMENT call */
};

/* X(identifier, "name") */
#define STACKS(X)                                                     \
	X(ZERO, "0 always")                                           \
	X(BURSTS, "0, 1, 2 ... in a burst")                           \
	X(MESSAGES, "0, 1, 2 ... in a message, however long")         \
	X(CONSTANT, "the same always")                                \
	X(FLOW, "a counter for each flow, from a random start")       \
	X(HOST, "one counter for all traffic, of others too")         \
	X(SWAPPED, "such a counter in the other order of bytes")      \
	X(LINUX_100, "Linux, 100 jiffies a second, shared counter")   \
	X(LINUX_250, "Linux, 250 jiffies a second, shared counter")   \
	X(LINUX_1000, "Linux, 1000 jiffies a second, shared counter") \
	X(RANDOM, "random")

enum stack_kind {
#define STACK_ENUM(id, name) STACK_##id,
	STACKS(STACK_ENUM)
#undef STACK_ENUM
		STACK_KINDS,
};

struct stack {
	enum stack_kind kind;
	uint64_t random;	    /* state of the random number generator */
	uint64_t now;		    /* nanoseconds */
	uint64_t stamp;		    /* jiffy of the counter's last use */
	uint64_t others;	    /* packets per second to other hosts */
	uint16_t counter;	    /* counter of the host, or constant identification */
	uint16_t flow[STACK_FLOWS]; /* per flow, or its current message or burst */
};

void stack_init(struct stack *stack, enum stack_kind kind, uint64_t seed);
const char *stack_name(enum stack_kind kind);
/* Returns a random number less than bound. */
uint32_t stack_random(struct stack *stack, uint32_t bound);
/*
 * Advances the time.  Packets to other hosts in this time advance the counter, if all traffic
 * shares one.
 */
void stack_pause(struct stack *stack, uint64_t ns);
/* Begins a new message of the flow, whose datagrams are sent by a new call. */
void stack_begin(struct stack *stack, unsigned int flow);
/* Returns the identification of the flow's next datagram. */
uint16_t stack_next(struct stack *stack, unsigned int flow);

#endif
