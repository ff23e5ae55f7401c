/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two connection managers and a simulated wire between them that the test controls: messages wait
 * until the test delivers, drops or duplicates them.
 */
#ifndef UROCE_TESTS_UNIT_CM_PAIR_H
#define UROCE_TESTS_UNIT_CM_PAIR_H

#include "cm/cm.h"

#define PAIR_WIRE 1024
#define PAIR_EVENTS 64
#define PAIR_PORT 7174

struct pair_side {
	struct cm *cm;
	struct cm_listener *listener[2]; /* side 1 only: for connections, for datagrams */
	struct cm_path path;		 /* to the other side */
	uint64_t guid;
	uint32_t room; /* number of connections that accept_conn will still create */
	struct cm_conn *newest;
	uint32_t released;
	uint32_t last_messages;	 /* number of stored last messages */
	struct mad last_message; /* the one stored last */
	uint32_t events;
	struct {
		enum cm_event_type type;
		struct cm_conn *conn;
		bool with_mad;
		struct mad mad;
	} event[PAIR_EVENTS];
};

struct pair {
	struct pair_side side[2];
	uint64_t now;
	uint32_t on_wire;
	struct {
		uint32_t to;
		struct mad mad;
		uint8_t bytes[MAD_BYTES];
	} wire[PAIR_WIRE];
};

/* A pair in which side 1 listens for connections (CM_RC) and datagrams at PAIR_PORT. */
struct pair *pair_new(void);
/* Destroys the remaining connections, waits until all are released, and frees the pair. */
void pair_free(struct pair *pair);

/* Destroys the connections of one side and lets time pass until they are released. */
void pair_empty(struct pair *pair, uint32_t side);

/* Callbacks for a manager that the test creates; its owner must be a side of the pair. */
const struct cm_ops *pair_ops(void);

struct cm_conn *pair_conn(struct pair *pair, uint32_t side);
struct cm_connect_param pair_connect_param(const struct pair *pair, uint32_t side);
struct cm_accept_param pair_accept_param(const struct pair *pair, uint32_t side);

/* Returns the attribute of the oldest message on the wire, or 0 if there is none. */
uint16_t pair_next(const struct pair *pair);
enum cm_verdict pair_deliver(struct pair *pair);
void pair_lose(struct pair *pair);
/* Delivers the oldest message, and appends a copy of it to the wire. */
enum cm_verdict pair_deliver_twice(struct pair *pair);
void pair_deliver_all(struct pair *pair);
/* Delivers a message of the test directly, not over the wire. */
enum cm_verdict pair_inject(struct pair *pair, uint32_t to, const struct mad *mad);

/* Advances the clock; timers expire, but nothing is delivered. */
void pair_wait(struct pair *pair, uint64_t ns);

/* Type of the last event of a side (CM_EVENTS: none), and number of its events of one type. */
enum cm_event_type pair_last_event(const struct pair *pair, uint32_t side);
uint32_t pair_count(const struct pair *pair, uint32_t side, enum cm_event_type type);

/* Side 0 connects, both sides become established, and conn[] gets the two ends. */
void pair_establish(struct pair *pair, struct cm_conn *conn[2]);
void pair_establish_qps(struct pair *pair, struct cm_conn *conn[2], uint32_t qpn0, uint32_t qpn1);

#endif
