/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which client holds which slot.  The truth is the kernel's: a slot's owner has its abstract name
 * bound.  So a broker proposes a slot, tries to bind the name, and notes here how that went.
 */
#ifndef UROCE_BROKER_SLOTS_H
#define UROCE_BROKER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

/* A number of the broker's own; clients that follow each other have different ones. */
#define SLOTS_NO_CLIENT 0
/*
 * Number of slots that rest after use before the first of them is used again, so that packets for
 * an earlier owner meet none of its queue pair numbers.
 */
#define SLOTS_REST 64

enum slot_state {
	SLOT_FREE,
	SLOT_HELD,   /* by a client */
	SLOT_ABSENT, /* its name is bound, by another user or a client that has not returned */
};

struct slot_entry {
	uint32_t client; /* SLOT_HELD */
	uint16_t first;	 /* SLOT_HELD: the client's first slot, which its members are named by */
	uint16_t next;	 /* SLOT_FREE, after use: the slot that was freed next */
	uint8_t state;	 /* enum slot_state */
	bool used;	 /* it is, or was, held or absent */
};

struct broker_slots {
	struct slot_entry slot[UROCE_BROKER_SLOTS];
	/* Freed slots in the order of their end: a list through next. */
	uint16_t oldest, newest;
	uint32_t resting;
	uint32_t absent; /* number of SLOT_ABSENT */
	uint32_t begin;	 /* the first slot to propose */
};

void slots_init(struct broker_slots *slots);
/*
 * Slots are proposed from this one on, any number.  A broker that follows another one does not know
 * which slots should rest: their owners may have died with that one.
 */
void slots_begin_at(struct broker_slots *slots, uint32_t slot);
/* Returns the number of slots that the client holds. */
uint32_t slots_held(const struct broker_slots *slots, uint32_t client);

/*
 * The slot to try next: the first that was never used, or, when SLOTS_REST rest or all were used,
 * the one that rests for longest.  UROCE_BROKER_NO_SLOT if none is free.
 */
uint32_t slots_propose(const struct broker_slots *slots);

/*
 * The client holds the slot; first is its first slot, or the slot itself.  Returns false if the
 * slot is another client's.
 */
bool slots_hold(struct broker_slots *slots, uint32_t slot, uint32_t client, uint32_t first);
/* The name of a slot that no client holds is bound. */
void slots_mark_absent(struct broker_slots *slots, uint32_t slot);
/* The slot's holder has gone, or its name has been found unbound. */
void slots_free(struct broker_slots *slots, uint32_t slot);

/* Of a slot number that may be any: SLOTS_NO_CLIENT unless a client holds it. */
uint32_t slots_client(const struct broker_slots *slots, uint32_t slot);

#endif
