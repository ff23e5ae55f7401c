/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connection of a link to uroce-broker (Documentation/decisions/broker.md), which assigns the
 * link's slots and passes it the sockets of its addresses.  If the broker ends or does not reply
 * for a second, the link finds or starts another one and claims from it what the link holds.
 *
 * Functions return 0 or a negative errno.  Unless stated otherwise the caller holds open_lock, and
 * a call may block for some seconds in the worst case.
 */
#ifndef UROCE_LINK_BROKER_CLIENT_H
#define UROCE_LINK_BROKER_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <pthread.h>
#include <rdma/uroce-broker.h>

#include "broker/message.h"
#include "link/link.h"
#include "link/scm_rights.h"

struct link_endpoint;

/*
 * The descriptors keep their numbers for the lifetime of the link: those of a new broker replace
 * the old ones by dup3(2), so other threads may use them without a lock.
 */
struct link_broker {
	int control;  /* requests and replies */
	int delivery; /* messages that the broker sends on its own, and replies to probes */
	/* Sockets bound to the names of the slots; closing one frees its slot. */
	int slot_lock[LINK_SLOTS_MAX];
	uint32_t slot[LINK_SLOTS_MAX];
	unsigned int slots;
	/* timerfd: expires when link_maintain_broker() should send PING or retry to return. */
	int timer_fd;
	int epoll_fd;		   /* epoll set of control, delivery and timer */
	atomic_bool is_pinger;	   /* the broker wants this client to send PING regularly */
	atomic_bool check_pending; /* link_check_broker() requires a PING */
	/* Pause before the next attempt to return; 0: the last one succeeded. */
	atomic_uint retry_ms;
	atomic_uint changes; /* number of returns to another broker */
	/* Time in ms at which link_is_unsettled() becomes false; 0: it is false. */
	_Atomic(int64_t) settled_at;
	_Atomic(int64_t) next_check_ms; /* earliest time of the next check, in ms */
	/* The next two are written with open_lock held, and read by the receiving thread. */
	_Atomic(uint32_t) name;	  /* number of the broker's name */
	_Atomic(uint32_t) secret; /* secret that the broker's probes carry */
	uint32_t number;	  /* sequence number of the last request */
	bool uses_gsi;
	int messages_fd; /* argument of link_gsi_begin(), owned by its caller; or -1 */
	uint32_t last_port_id;
	LIST_HEAD(, link_port) ports; /* bound ports */
	/* Earliest time of the next search that a probe causes, in ms; receiving thread only. */
	int64_t next_search_ms;
	/* Called once a millisecond while link_maintain_broker() waits; otherwise NULL. */
	void (*wait_callback)(void *arg);
	void *wait_arg;
};

void link_broker_init(struct link_broker *broker);
/* Finds or starts a broker and gets a slot.  No lock is held; no thread uses the link yet. */
int link_broker_open(struct link *link, char error[LINK_ERROR_TEXT]);
/* Closes the descriptors, so that the broker removes this client.  Async-signal-safe. */
void link_broker_close(struct link_broker *broker);

/*
 * Returns the socket of the link's slot on the endpoint, or a negative errno: -EADDRINUSE if
 * another user or a program that is not uroce has the port.  Sets *unsteered if all clients read
 * the same socket.
 */
int link_broker_address(struct link *link, const struct link_endpoint *endpoint, bool *unsteered);
/* Informs the broker that the link no longer uses the endpoint. */
void link_broker_address_end(struct link *link, const struct link_endpoint *endpoint);
/*
 * Returns a duplicate of the socket that the slot has on the endpoint, only for reading its
 * SO_MEMINFO, or a negative errno.
 */
int link_broker_slot_fd(struct link *link, const struct link_endpoint *endpoint, unsigned int slot);

/*
 * Returns one end of a new socket pair whose other end the broker passes to the client of the slot,
 * or a negative errno: -ENOENT if no client has the slot.
 */
int link_broker_connect(struct link *link, unsigned int slot, enum uroce_broker_purpose purpose);

/* ---- shared by the files of the client ---- */

/* A bound port of librdmacm */
struct link_port {
	LIST_ENTRY(link_port) entry;
	struct link *link;
	struct uroce_broker_port port; /* as requested, with the assigned number */
	bool chosen;		       /* the broker has chosen the port number */
	bool listens;
};

/*
 * exchange.c: sends *message over the connection fd, with the descriptor passed_fd unless it
 * is -1, and waits for the reply.  Returns 0, the error in the reply, or the error of the exchange.
 * If the result is 0, *message is the reply and *fds has its descriptors, which the caller owns.
 */
int link_broker_exchange(struct link_broker *broker, int fd, union broker_message *message,
			 int passed_fd, struct link_fds *fds);
/*
 * Waits until fd has one of the events (poll(2)), but at most until this time of link_now_ms(), and
 * calls wait_callback once a millisecond.  With fd -1 waits until that time.
 */
void link_broker_wait(const struct link_broker *broker, int fd, short events, int64_t until);
/*
 * Sends a message that has no reply; waits for room.  If the broker does not read, the connection
 * is shut down, and the link does not claim from the next broker what the message releases.
 */
void link_broker_send(const struct link_broker *broker, const union broker_message *message);
/* Returns true if the result of an exchange shows that the broker has ended or does not reply. */
bool link_broker_is_lost(int error);
struct uroce_broker_endpoint link_broker_endpoint(const struct link_endpoint *endpoint);
/* Writes a GSI message.  Returns the descriptor to send with it, or -1. */
int link_broker_init_gsi_message(const struct link_broker *broker, bool on,
				 union broker_message *message);
/*
 * client.c: link_broker_exchange() over the link's connection.  If the broker is lost, the link
 * returns to another one and repeats the request there.
 */
int link_broker_request(struct link *link, union broker_message *message, int passed_fd,
			struct link_fds *fds);
/*
 * start.c: starts uroce-broker, which gets the listener as its descriptor 3.  The broker is
 * not a child of this process, which gets no SIGCHLD.  Returns 0 or a negative errno, usually with
 * a message in error.
 */
int link_broker_start(int listener, char error[LINK_ERROR_TEXT]);
/* return.c: claims what the link holds from a new broker, over the connection fd. */
int link_broker_claim_all(struct link *link, int fd);

/*
 * Locks open_lock, and has waits for the broker call wait_callback until link_broker_unlock().
 * Returns false if another thread holds the lock: that one may wait for the broker for seconds, in
 * which the progress thread must receive packets, so it does not wait for the lock.
 */
bool link_broker_try_lock(struct link *link, void (*wait_callback)(void *arg), void *arg);
void link_broker_unlock(struct link *link);
/*
 * Makes link_broker_fd() readable after this time, less than a second, unless the next attempt to
 * return to a broker is scheduled.  Any thread; takes no lock.
 */
void link_broker_wake(struct link_broker *broker, unsigned int after_ms);
/* Starts or stops sending PING regularly, as the broker demands.  Any thread; takes no lock. */
void link_broker_set_pinger(struct link_broker *broker, bool on);

/* Replies to a probe.  Called only by the receiving thread; never blocks.  Caller holds no lock. */
void link_broker_reply_probe(struct link *link, const struct link_endpoint *endpoint,
			     const struct uroce_broker_probe *probe);

/* ---- client_conns.c ---- */

/*
 * Connections from other clients of the broker, for shared memory or from tools.  For each, the
 * broker creates a socket pair and passes one end to each of the two clients.
 */

struct link;

struct link_client_conn {
	_Atomic(struct link_client_conn *) next;
	int fd;
	uint32_t slot; /* slot of the other client, or UROCE_BROKER_NO_SLOT */
};

/* Connections of one purpose.  One thread adds to them while another one serves them. */
struct link_client_conns {
	int epoll_fd; /* readable when another client has sent something or closed its end */
	_Atomic(struct link_client_conn *) first;
};

int link_client_conns_open(struct link_client_conns *conns);
/* If abandoned, only closes descriptors and is async-signal-safe. */
void link_client_conns_close(struct link_client_conns *conns, bool abandoned);
/* Adds a connection from the slot (UROCE_BROKER_NO_SLOT: a tool); takes over fd. */
void link_client_conns_add(struct link *link, uint32_t purpose, uint32_t slot, int fd);

#endif
