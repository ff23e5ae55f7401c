/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two connection managers with a wire between them that a test holds in its hands: messages wait
 * until they are delivered, lost or delivered twice.
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
	uint32_t room; /* how many more connections accept_conn makes */
	struct cm_conn *newest;
	uint32_t released;
	uint32_t last_messages;	 /* that are left */
	struct mad last_message; /* the last that was left */
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
/* Destroys what is left, waits for all to be released, and frees. */
void pair_free(struct pair *pair);

/* Destroys the connections of one side and lets time pass until they are released. */
void pair_empty(struct pair *pair, uint32_t side);

/* For a manager of the test's own, whose owner is a side of the pair. */
const struct cm_ops *pair_ops(void);

struct cm_conn *pair_conn(struct pair *pair, uint32_t side);
struct cm_connect_param pair_connect_param(const struct pair *pair, uint32_t side);
struct cm_accept_param pair_accept_param(const struct pair *pair, uint32_t side);

/* The oldest message under way: its attribute, 0 without one. */
uint16_t pair_next(const struct pair *pair);
enum cm_verdict pair_deliver(struct pair *pair);
void pair_lose(struct pair *pair);
/* Delivers and puts a copy at the end. */
enum cm_verdict pair_deliver_twice(struct pair *pair);
void pair_deliver_all(struct pair *pair);
/* A message of the test's own. */
enum cm_verdict pair_inject(struct pair *pair, uint32_t to, const struct mad *mad);

/* Time passes, timers act; nothing is delivered. */
void pair_wait(struct pair *pair, uint64_t ns);

/* The last event of a side, and how many there were of a type. */
enum cm_event_type pair_last_event(const struct pair *pair, uint32_t side);
uint32_t pair_count(const struct pair *pair, uint32_t side, enum cm_event_type type);

/* Side 0 connects and both are established; gives both ends. */
void pair_establish(struct pair *pair, struct cm_conn *conn[2]);
void pair_establish_qps(struct pair *pair, struct cm_conn *conn[2], uint32_t qpn0, uint32_t qpn1);

#endif
