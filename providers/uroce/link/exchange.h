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
	LINK_EXCHANGE_HELLO,	/* slot, fd: its will */
	LINK_EXCHANGE_LISTEN,	/* service */
	LINK_EXCHANGE_UNLISTEN, /* service */
	LINK_EXCHANGE_MAD,	/* mad */
	LINK_EXCHANGE_BELL,	/* fd: the holder's bell */
	LINK_EXCHANGE_ASK,	/* to be answered by HERE */
	LINK_EXCHANGE_HERE,
	LINK_EXCHANGE_NOTHING, /* none of these: to be left out */
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
	int fd;		   /* the caller's to close, or -1; what it is has not been checked */
	struct link_service service;
	struct link_mad mad;
};

/*
 * Be the holder, at a level, if this process is not: link_addr_claim_gsi() in two steps, without
 * waiting.  -EADDRINUSE: another process has this level, or a higher one; -EAGAIN: there may be one
 * at a higher level, which is not waited for if patient is false.
 */
int link_exchange_claim(struct link_addr *addr, unsigned int level, bool patient);
/* From now on what is for queue pairs 0 and 1 comes to this process, which has claimed it. */
int link_exchange_steer(struct link_addr *addr);
/* The holder's descriptor that is readable when members come, or -1. */
int link_exchange_listener(const struct link_addr *addr);
/* By the holder: the connection of the next member; -EAGAIN when there is none. */
int link_exchange_accept(struct link_addr *addr);
/*
 * By others: a connection to the holder, which is the process with the highest level, and that
 * level.  -ECONNREFUSED: there is none, or not yet; -EAGAIN: it has not accepted many others;
 * -EPERM: the name is another user's.  Names above level 0 that another user has are passed over,
 * and if patient is false those that do not say whose they are, too.
 */
int link_exchange_connect(struct link_addr *addr, bool patient, unsigned int *level);
/*
 * By the holder: has another process a higher level than this?  1: yes, of this user; 0: no, or
 * another user's; -EAGAIN: it does not say whose.
 */
int link_exchange_look_up(struct link_addr *addr, unsigned int level);
/* The process at the other end of a connection, 0 if it is in another PID namespace. */
pid_t link_exchange_pid(int fd);
/*
 * The socket that the process of the slot gets its datagrams from, if this process has it as well,
 * or -1: to be watched, not to be read.
 */
int link_exchange_socket_of(const struct link_addr *addr, unsigned int slot);

/* -EAGAIN: the other side does not read; -EPIPE and others: it has gone. */
/* The will goes along unless it is -1; a member's goes only when the holder has said hello. */
int link_exchange_hello(int fd, const struct link *link, int will_fd);
int link_exchange_service(int fd, const struct link_service *service, bool listen);
int link_exchange_mad(int fd, const struct link_mad *mad);
int link_exchange_bell(int fd, int bell_fd);
/* kind: LINK_EXCHANGE_ASK or LINK_EXCHANGE_HERE. */
int link_exchange_say(int fd, enum link_exchange_kind kind);
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
