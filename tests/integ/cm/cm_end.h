/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Common parts of cm_end: connections (cm_end.c) and messages (cm_end_messages.c). */
#ifndef UROCE_TESTS_CM_END_H
#define UROCE_TESTS_CM_END_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

/* Maximum pause between messages, and between connections. */
enum { PAUSE_MS = 40 };

enum fate {
	FATE_BEGINS,
	FATE_LISTENS,
	FATE_DOOMED,   /* about to be killed by the test, or has failed */
	FATE_FINISHED, /* begins no more connections, and has closed those that it began */
};

enum stage {
	STAGE_FREE,
	STAGE_RESOLVING,
	STAGE_CONNECTING, /* active: has sent the request; passive: has accepted it */
	STAGE_OPEN,
	STAGE_CLOSING, /* active: rdma_disconnect() has been called */
};

struct connection {
	unsigned int place;
	enum stage stage;
	bool active;
	bool established;
	bool sending;  /* a posted send has no completion yet */
	bool awaiting; /* active: a sent message has not been returned; passive: must return one */
	bool said_last;
	uint16_t generation;
	struct rdma_cm_id *id;
	unsigned int peer;
	uint32_t number, sequence, messages;
	uint32_t answers; /* active: number of messages that were returned */
	uint64_t since;	  /* time of the last step */
	uint64_t pause_until;
};

extern unsigned int self;
extern bool in_a_row; /* LIMIT was given, also if only the other end begins connections */
extern struct ibv_pd *pd;

uint64_t now_ns(void);
uint32_t draw(uint32_t below);
/* Reports a disturbance and exits. */
__attribute__((noreturn)) void complain(const struct connection *c, const char *what);

/* Allocates memory for the messages of this number of connections; c->place is its index. */
bool messages_prepare(unsigned int connections);
void post_receive(struct connection *c);
/* Active end: sends the next message. */
void ask(struct connection *c);
/* Active end: checks the returned message. */
void hear_answer(struct connection *c, uint32_t length);
/* Passive end: checks the received message and returns it; the previous send must be complete. */
void give_back(struct connection *c);

#endif
