/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Table of the clients that hold the slots.  The kernel is authoritative: the owner of a slot has
 * bound the slot's abstract name.  A broker proposes a slot, tries to bind its name, and records
 * the result here.
 */
#ifndef UROCE_BROKER_SLOTS_H
#define UROCE_BROKER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

/* Client number that no client has.  The broker counts the numbers of its clients up from 1. */
#define SLOTS_NO_CLIENT 0
/*
 * Minimum number of freed slots before the first of them is used again, unless no unused slot is
 * left: late packets for the previous owner should find none of its queue pair numbers.
 */
#define SLOTS_REST_MIN 64

enum slot_state {
	SLOT_FREE,
	SLOT_HELD,   /* held by a client of this broker */
	SLOT_ABSENT, /* name bound by another user, or by a worker that has not returned yet */
};

struct slot_entry {
	uint32_t client; /* SLOT_HELD: holder of the slot */
	/* SLOT_HELD: first slot of the client, which is the owner of its members. */
	uint16_t first;
	uint16_t next; /* SLOT_FREE and used: slot that was freed next, or 0xffff */
	uint8_t state; /* enum slot_state */
	bool used;     /* the slot has been held or absent */
};

struct broker_slots {
	struct slot_entry slot[UROCE_BROKER_SLOTS];
	/* Ends of the list of freed slots, linked by next in the order in which they were freed. */
	uint16_t oldest, newest;
	uint32_t resting;
	uint32_t absent;	 /* number of slots in state SLOT_ABSENT */
	uint32_t first_proposed; /* first slot to propose */
};

void slots_init(struct broker_slots *slots);
/*
 * Makes slots_propose() start at slot (modulo the number of slots).  A broker that replaces another
 * one starts at a random slot, since it does not know which slots should rest: their owners may
 * have ended with the earlier broker.
 */
void slots_set_start(struct broker_slots *slots, uint32_t slot);
/* Returns the number of slots that the client holds. */
uint32_t slots_count_held(const struct broker_slots *slots, uint32_t client);

/*
 * Returns the slot to try next: the first that was never used, or, if at least SLOTS_REST_MIN slots
 * rest or all were used, the slot that was freed first.  Returns UROCE_BROKER_NO_SLOT if none is
 * free.
 */
uint32_t slots_propose(const struct broker_slots *slots);

/*
 * Records that the client holds the slot.  first is the first slot of the client, which may be this
 * one.  Returns false if another client holds the slot.
 */
bool slots_hold(struct broker_slots *slots, uint32_t slot, uint32_t client, uint32_t first);
/* Records that the name of a slot is bound although no client holds the slot. */
void slots_mark_absent(struct broker_slots *slots, uint32_t slot);
/* Records that the slot's holder has disconnected, or that its name is no longer bound. */
void slots_free(struct broker_slots *slots, uint32_t slot);

/* Returns the client that holds the slot, or SLOTS_NO_CLIENT.  slot may be out of range. */
uint32_t slots_holder(const struct broker_slots *slots, uint32_t slot);

#endif
