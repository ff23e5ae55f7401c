/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The virtual network: nodes in a row, each with forward (take a packet), next_run_at (when it will
 * have something to do) and run (do it).  A direction is the row
 *
 *	faults (loss, duplication, damage) -> bottleneck (a finite queue, marks) -> delay -> inbox
 *
 * Packets come from a pool and go back to it when they are lost or have been taken by the rx demux.
 */
#ifndef UROCE_SIM_NET_H
#define UROCE_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/burst.h"
#include "sim/plan/plan.h"
#include "sim/random.h"
#include "wire/packet.h"

struct sim_end;

struct net_packet {
	struct net_packet *next;
	uint64_t due;
	struct sim_end *from;
	struct sim_end *to;
	const struct eng_path *path;
	uint64_t serial; /* number of the packet, in the order of sending */
	uint32_t length;
	uint16_t ip_id;
	uint32_t flow; /* connection, if each has its own delay; otherwise 0 */
	uint8_t ecn;   /* codepoint in the IP header */
	bool copy;     /* duplicate made by the network */
	/* kind of the packet when it was sent, for the oracle */
	bool request, nak, cnp;
	uint32_t psn;
	uint8_t bytes[WIRE_MAX_PACKET_BYTES];
};

struct net_queue {
	struct net_packet *head, *tail;
	uint32_t count;
};
void net_queue_append(struct net_queue *queue, struct net_packet *packet);
struct net_packet *net_queue_take(struct net_queue *queue);

/* ECN codepoints of the IP header: not ECN-capable, two that are ECN-capable, and marked. */
enum net_ecn {
	NET_NOT_ECT,
	NET_ECT1,
	NET_ECT0,
	NET_CE,
};

#define NET_LEVELS 1024
#define NET_LEVEL_BYTES 1024

/* Measurement of a bottleneck. */
struct net_watch {
	bool on;
	uint64_t since;		       /* time up to which level_ns counts */
	uint64_t level_ns[NET_LEVELS]; /* [n]: time with n NET_LEVEL_BYTES in the queue */
	uint64_t marks, drops;
};

struct net;

struct net_node {
	void (*forward)(struct net_node *node, struct net_packet *packet, uint64_t now);
	uint64_t (*next_run_at)(const struct net_node *node);
	void (*run)(struct net_node *node, uint64_t now);
	struct net_node *next;
	struct net *net;
	const struct net_plan *plan;
	struct net_queue queue;
	uint64_t busy_until; /* bottleneck */
	uint32_t queued_bytes;
	uint64_t virtual_bytes, virtual_at; /* virtual queue of the marker, at that time */
	struct net_watch watch;
	uint32_t losing; /* faults: number of packets of a loss burst still to lose */
	uint64_t last_due[PLAN_MAX_CONNECTIONS];
};

enum net_loss {
	NET_LOST,
	NET_OVERFLOW,
	NET_DAMAGED,
};
const char *net_loss_name(enum net_loss loss);

struct net {
	struct sim_random random;
	struct net_node faults[2], bottleneck[2], delay[2], inbox[2];
	struct net_packet *free;
	void *context;
	/* A packet is lost; the network still owns it. */
	void (*lost)(void *context, const struct net_packet *packet, enum net_loss why);
	/* A packet has arrived; its receiver owns it now. */
	void (*arrived)(void *context, struct net_packet *packet);
	uint64_t sent, dropped, copied, damaged, held_back;
};

/* Starts or stops the measurement of a bottleneck's queue. */
void net_watch(struct net_node *bottleneck, bool on, uint64_t now);
/* Returns the queue length in bytes that was exceeded for at most per_mille of the time. */
uint64_t net_watch_level(const struct net_watch *watch, uint32_t per_mille);

void net_start(struct net *net, const struct plan *plan, uint32_t round);
struct net_packet *net_packet_new(struct net *net);
void net_packet_free(struct net *net, struct net_packet *packet);
/* side is the sender's: 0 or 1. */
void net_send(struct net *net, uint32_t side, struct net_packet *packet, uint64_t now);
uint64_t net_next_run_at(const struct net *net);
void net_run(struct net *net, uint64_t now);
/* net_clear() returns the packets under way to the pool; net_free() frees the pool. */
void net_clear(struct net *net);
void net_free(struct net *net);

#endif
