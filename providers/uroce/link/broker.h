/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The connection of a link to uroce-broker (Documentation/decisions/broker.md), which gives it its
 * slot and the sockets of its addresses.  When the broker is gone or does not reply for a second,
 * another one is searched for or started, and gets to know what the link holds.
 *
 * Functions return 0 or a negative errno.  Unless they say otherwise the caller holds open_lock,
 * and they may wait for some seconds at the worst.
 */
#ifndef UROCE_LINK_BROKER_H
#define UROCE_LINK_BROKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "broker/message.h"
#include "link/link.h"
#include "link/passing.h"

struct link_endpoint;

/*
 * The descriptors keep their numbers for as long as the link lives: those of a new broker take the
 * place of the old ones by dup3(2), so other threads may use them without a lock.
 */
struct link_broker {
	int control;  /* requests and replies */
	int delivery; /* what the broker sends by itself, and replies to probes */
	/* Each lock holds the name of a slot. */
	int slot_lock[LINK_SLOTS_MAX];
	uint32_t slot[LINK_SLOTS_MAX];
	unsigned int slots;
	int timer;	       /* timerfd: PING, or another try to return, is due */
	int watch;	       /* an epoll set of the first two and of the timer */
	atomic_bool appointed; /* to send PING */
	atomic_bool checked;   /* PING is due for link_check_broker() */
	atomic_uint retry_ms;  /* pause before the next try to return; 0: the last one succeeded */
	atomic_uint changes;   /* number of returns */
	/* Time at which link_is_unsettled() becomes false, in ms; 0: no broker has ended. */
	_Atomic(int64_t) settled_at;
	_Atomic(int64_t) check_again; /* time of the next check at the earliest, in ms */
	uint32_t name;		      /* number of the broker's name */
	uint32_t secret;	      /* secret that the broker's probes carry */
	uint32_t number;	      /* sequence number of the last request */
	bool uses_gsi;
	int messages_fd; /* link_gsi_begin(): the caller's; or -1 */
	uint32_t last_port_id;
	struct link_port *ports; /* those that are bound */
	int64_t doubt_again;	 /* time of the next search, in ms; only the receiver uses it */
	/* Called once a millisecond while link_tend() waits; NULL while another thread waits. */
	void (*meanwhile)(void *arg);
	void *meanwhile_arg;
};

void link_broker_init(struct link_broker *broker);
/* Finds or starts a broker and gets a slot.  Caller holds no lock; no other thread has the link. */
int link_broker_open(struct link *link, char error[LINK_ERROR_TEXT]);
/* Closes the descriptors, by which the broker sees that the link is gone.  Async-signal-safe. */
void link_broker_close(struct link_broker *broker);

/*
 * Returns the socket of the link's slot on the endpoint, or a negative errno: -EADDRINUSE if
 * another user or a program that is not uroce has the port.  *unsteered: all clients read the same
 * socket.
 */
int link_broker_address(struct link *link, const struct link_endpoint *endpoint, bool *unsteered);
/* The link no longer uses the endpoint. */
void link_broker_address_end(struct link *link, const struct link_endpoint *endpoint);
/*
 * Returns a copy of the socket that the slot has on the endpoint, only to be asked for its memory,
 * or a negative errno.
 */
int link_broker_look(struct link *link, const struct link_endpoint *endpoint, unsigned int slot);

/*
 * Returns one end of a socket pair of which the client of the slot gets the other one, or a
 * negative errno: -ENOENT if nobody has the slot.
 */
int link_broker_introduce(struct link *link, unsigned int slot, enum uroce_broker_purpose purpose);

/* ---- between the client's files ---- */

/* A port of librdmacm that is bound. */
struct link_port {
	struct link_port *next, **from; /* from points to this one */
	struct link *link;
	struct uroce_broker_port port; /* as it was asked for, with its number */
	bool chosen;		       /* the number, by a broker */
	bool listens;
};

/*
 * broker_exchange.c: sends *message over the connection fd, with the descriptor sent unless it is
 * -1.  When the result is 0, *message is the reply and *with has its descriptors.
 */
int link_broker_exchange(struct link_broker *broker, int fd, union broker_message *message,
			 int sent, struct link_descriptors *with);
/*
 * Waits until fd has one of the events (poll(2)), but not beyond the time until of link_now_ms().
 * An fd of -1 has no events.
 */
void link_broker_wait(const struct link_broker *broker, int fd, short events, int64_t until);
/*
 * Sends a message that has no reply.  Waits for room; a broker that does not read is given up: what
 * the message ends is not claimed from the next one.
 */
void link_broker_send(const struct link_broker *broker, const union broker_message *message);
/* Returns true if the result of an exchange shows that no broker that works is at the other end. */
bool link_broker_is_lost(int error);
struct uroce_broker_endpoint link_broker_endpoint(const struct link_endpoint *endpoint);
/* Writes the message GSI and returns the descriptor that goes with it, or -1. */
int link_broker_begin_gsi(const struct link_broker *broker, bool on, union broker_message *message);
/*
 * broker.c: the same over the link's connection; a new broker gets the request if the old one is
 * lost.
 */
int link_broker_request(struct link *link, union broker_message *message, int sent,
			struct link_descriptors *with);
/* broker_return.c: claims from a new broker, over the connection fd, what the link has. */
int link_broker_claim(struct link *link, int fd);

/* The broker appoints this client to send PING, or dismisses it.  Any thread; takes no lock. */
void link_broker_watch(struct link_broker *broker, bool on);

/* Replies to a probe.  For the thread that receives; never blocks.  Caller holds no lock. */
void link_broker_probed(struct link *link, const struct link_endpoint *endpoint,
			const struct uroce_broker_probe *probe);

#endif
