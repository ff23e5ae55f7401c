/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Common parts of cm_end: connections (cm_end.c) and messages (cm_end_messages.c). */
#ifndef UROCE_TESTS_CM_END_H
#define UROCE_TESTS_CM_END_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

/* Between messages, and between connections, at most. */
enum { PAUSE_MS = 40 };

enum fate {
	FATE_BEGINS,
	FATE_LISTENS,
	FATE_DOOMED,   /* by the test, which is going to kill it */
	FATE_FINISHED, /* it begins nothing more, and nothing of it is open */
};

enum stage {
	STAGE_FREE,
	STAGE_RESOLVING,
	STAGE_CONNECTING, /* active: asked; passive: accepted */
	STAGE_OPEN,
	STAGE_CLOSING, /* active: rdma_disconnect() has been called */
};

struct connection {
	unsigned int place;
	enum stage stage;
	bool active;
	bool established;
	bool sending;  /* there is no completion yet */
	bool awaiting; /* active: what was sent has not come back; passive: it waits for sending */
	bool said_last;
	uint16_t generation;
	struct rdma_cm_id *id;
	unsigned int peer;
	uint32_t number, sequence, messages;
	uint32_t answers; /* active: messages that have come back */
	uint64_t since;	  /* the last step */
	uint64_t pause_until;
};

extern unsigned int self;
extern bool in_a_row; /* with LIMIT, or the other end of that */
extern struct ibv_pd *pd;

uint64_t now_ns(void);
uint32_t draw(uint32_t below);
/* Reports a disturbance and exits. */
__attribute__((noreturn)) void complain(const struct connection *c, const char *what);

/* Memory for the messages of so many connections, which c->place counts. */
bool messages_prepare(unsigned int connections);
void post_receive(struct connection *c);
/* The active end: the next message. */
void ask(struct connection *c);
/* The active end: what was sent has come back. */
void hear_answer(struct connection *c, uint32_t length);
/* The passive end: look at what has come, and give it back; not before the last has left. */
void give_back(struct connection *c);

#endif
