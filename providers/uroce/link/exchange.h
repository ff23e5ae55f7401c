/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How the processes of a host that use the connection manager find each other, and what they say:
 * the one that has queue pair 1 of an address (link_addr_claim_gsi()) is the holder, all others are
 * members and have a connection to it.  A process that ends, however it
 * does, is noticed by the end of its connections.
 *
 * Descriptors that are returned are the caller's to close, also in a forked child.  Nothing here
 * waits; functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef UROCE_LINK_EXCHANGE_H
#define UROCE_LINK_EXCHANGE_H

#include "link/link.h"
#include <rdma/uroce-abi.h>

/* What arrived at a connection.  Numbers have been checked; addresses can be any. */
enum link_exchange_kind {
	LINK_EXCHANGE_HELLO,	/* slot, will_fd */
	LINK_EXCHANGE_LISTEN,	/* service */
	LINK_EXCHANGE_UNLISTEN, /* service */
	LINK_EXCHANGE_MAD,	/* mad */
	LINK_EXCHANGE_NOTHING,	/* none of these: to be left out */
};

struct link_service {
	uint64_t id;
	uint8_t gid[16]; /* or ::ffff:0.0.0.0 or ::, which is any of its kind */
	uint32_t scope_id;
};

struct link_mad {
	uint8_t src[16];
	uint64_t when;
	uint32_t reason; /* the upper layer's */
	uint8_t bytes[UROCE_ABI_MAD_BYTES];
};

struct link_exchange_message {
	enum link_exchange_kind kind;
	unsigned int slot; /* below LINK_SLOTS */
	int will_fd;	   /* the caller's to close, or -1; what it is has not been checked */
	struct link_service service;
	struct link_mad mad;
};

/* The holder's descriptor that is readable when members come, or -1. */
int link_exchange_listener(const struct link_addr *addr);
/* By the holder: the connection of the next member; -EAGAIN when there is none. */
int link_exchange_accept(struct link_addr *addr);
/*
 * By others: a connection to the holder.  -ECONNREFUSED: there is none, or not yet; -EAGAIN: it
 * has not accepted many others; -EPERM: the name is another user's.
 */
int link_exchange_connect(struct link_addr *addr);

/* -EAGAIN: the other side does not read; -EPIPE and others: it has gone. */
/* The will goes along unless it is -1; a member's goes only when the holder has said hello. */
int link_exchange_hello(int fd, const struct link *link, int will_fd);
int link_exchange_service(int fd, const struct link_service *service, bool listen);
int link_exchange_mad(int fd, const struct link_mad *mad);
/* The next message; -EAGAIN when there is none, -ECONNRESET when the other side has gone. */
int link_exchange_receive(int fd, struct link_exchange_message *message);

/*
 * The name of a port on an address, which is this process's until the descriptor is closed by
 * link_port_release(): it, or -EADDRINUSE when it is taken, -EPERM when that is by another user.
 */
int link_port_claim(uint32_t space, uint16_t port, const uint8_t gid[16], uint32_t scope_id);
void link_port_release(int *fd);
/* Is the name taken?  0: no; -EADDRINUSE: yes; -EPERM: by another user. */
int link_port_look(uint32_t space, uint16_t port, const uint8_t gid[16], uint32_t scope_id);
/* Has a process the slot?  In doubt it has. */
bool link_slot_is_taken(unsigned int slot);

#endif
