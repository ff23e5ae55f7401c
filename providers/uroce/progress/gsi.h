/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1, the general services interface: management datagrams (MADs) of the connection
 * manager, out and in.  Their contents are the caller's, but for what decides where they go.
 * A program that does not call gsi_get() pays nothing.
 *
 * Queue pair 1 of an address is the broker's, which gives each MAD to the process that it is for
 * (Documentation/decisions/broker.md):
 *   all with a receiver's communication id   by the slot in it
 *   SIDR_REP                                 by the slot in the request id
 *   REQ, SIDR_REQ                            to the process that listens at its service id, which
 *                                            on 127.0.0.0/8 is at the address that it names
 *   a REQ that came before                   to the same process as then
 *   REJ without receiver's id                to the process that had the REQ, else to all
 * So ids must have the slot in their top bits: slot << GSI_ID_SHIFT | anything, and not be 0.
 * MADs are sent by the process itself.
 *
 * Threads: the callbacks run in the helper thread, never two at a time, with no lock held; they
 * may take locks, send, set deadlines, bind, listen and close ports.  They must not call the
 * functions that are marked "control", which wait for the callbacks themselves.  All functions may
 * be called by any thread, but not under a lock of the caller's that a callback takes if they are
 * marked "control".
 *
 * fork: the child's instance is dead; calls return -EOWNERDEAD, or do nothing.
 *
 * Functions return 0 or a negative errno unless they say otherwise.
 */
#ifndef UROCE_PROGRESS_GSI_H
#define UROCE_PROGRESS_GSI_H

#include "progress.h"
#include "wire/mad_header.h"

/* An id of this process begins with its slot. */
#define GSI_ID_SHIFT (32 - LINK_SLOT_BITS)
/* MADs that wait for the callback; more are lost, and counted. */
#define GSI_QUEUE_MAX 1024

struct gsi;	 /* the process's one instance */
struct gsi_port; /* a port of a port space that is bound */

/* Why a MAD comes to this process. */
enum gsi_for {
	/* Its id has the slot of this process, or this process listens at its service id. */
	GSI_FOR_THIS,
	/*
	 * It does not name its receiver (REJ without receiver's id): the process that knows the
	 * connection takes it, and all others ignore it.
	 */
	GSI_FOR_ANY,
	/*
	 * No process on this host is responsible, and the broker has chosen this one to answer as
	 * the host (REJ 8, SIDR status 1, stateless DREP), which remembers nothing.  REP and RTU
	 * come so only if no process has the slot, so that a REJ 6 ends no connection of a living
	 * one.
	 */
	GSI_FOR_NONE,
};
const char *gsi_for_name(enum gsi_for reason);

/* A MAD that has come: its packet was right, its class that of the CM. */
struct gsi_mad {
	uint8_t bytes[MAD_BYTES];
	uint8_t src[16];   /* the sender's address, as in a GID */
	uint8_t dst[16];   /* the local address that it came to: gsi_path.sgid of an answer */
	uint32_t scope_id; /* of both, if they are link-local; else 0 */
	uint64_t when;	   /* it came, by progress_now() */
	enum gsi_for reason;
};

struct gsi_hooks {
	/* *mad is valid during the call only. */
	void (*receive)(void *arg, const struct gsi_mad *mad);
	/* The time of gsi_deadline() has come; it is ENG_NEVER when this is called. */
	void (*expire)(void *arg, uint64_t now);
	/*
	 * The first request of its peer has come to this queue pair of the process.  May be NULL.
	 * Of many at once some may not be reported.
	 */
	void (*first_request)(void *arg, uint32_t qpn);
	/*
	 * The peer of this queue pair says that it does not report credits.  True when it has
	 * promised to (rule C19): PROGRESS_COUNT_CREDITS_MISSED.  May be NULL, as the one before.
	 */
	bool (*credits_hidden)(void *arg, uint32_t qpn);
	/*
	 * Another broker serves this process.  It does not have the last messages of processes that
	 * ended after the one before.  May be NULL.
	 */
	void (*broker_changed)(void *arg, uint64_t now);
	void *arg;
};

/*
 * Control.  The process's one instance, counted; hooks of the first call count.  progress must be
 * got before and put after.  -ENOMEM, -EMFILE or others; error gets one line for the user.
 */
int gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **gsi,
	    char error[PROGRESS_ERROR_TEXT]);
/* Control.  After the last one no callback runs; ports and addresses must have been given back. */
void gsi_put(struct gsi *gsi);
/* Of this process: for the top bits of ids. */
unsigned int gsi_slot(const struct gsi *gsi);

/*
 * Control: as link_addr_open(), milliseconds as a rule.  Receive and send by the local address gid
 * (scope_id: the interface index of a link-local one, else 0), counted.  To be called for each
 * address that a MAD leaves from, and for each at which a listener of any address shall get
 * requests, later ones included.  When it returns, MADs to the address reach the process that they
 * are for.
 */
int gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
		 char error[PROGRESS_ERROR_TEXT]);
void gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id);

/* Where a MAD goes. */
struct gsi_path {
	uint8_t sgid[16], dgid[16]; /* may be the same: it then comes back as from anywhere */
	uint32_t scope_id;	    /* interface index, if dgid is link-local, else 0 */
	uint8_t traffic_class;
};

/*
 * Send a MAD, now: one UD packet from queue pair 1 of path->sgid, which must be got, to queue pair
 * 1 of path->dgid.  Never waits.  UROCE_FAULT acts on it.  -EADDRNOTAVAIL: sgid has not been got.
 * -EAGAIN, -ENOBUFS: the socket is full, as if the network had lost it.  Others as from sendmsg(2),
 * such as -ENETUNREACH: no more will come through just now.
 */
int gsi_send(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES]);

/*
 * A MAD that the broker sends in this process's place, four times, when the process has ended
 * without having sent it: a DREQ for each connection.  *number is for gsi_last_message_drop().
 * -ENOSPC: there are GSI_LAST_MESSAGES; -EFBIG: there is no memory file.
 */
#define GSI_LAST_MESSAGES 4096
int gsi_last_message_set(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES],
			 unsigned int *number);
void gsi_last_message_drop(struct gsi *gsi, unsigned int number);

/* Returns true if no process of this network namespace has the slot of the queue pair number. */
bool gsi_is_orphan(uint32_t qpn);

/*
 * Have hooks.expire called once when progress_now() is when (nanoseconds), or right away if that
 * has passed; replaces what was asked for before; ENG_NEVER: no more.  Late by a millisecond at
 * most where the application polls, else by microseconds.
 */
void gsi_deadline(struct gsi *gsi, uint64_t when);

/*
 * What has happened to queue pair qpn: ENG_EVENT_COMM_EST and ENG_EVENT_FIRST_REQUEST for
 * hooks.first_request, ENG_EVENT_CREDITS_HIDDEN for hooks.credits_hidden, if queue pair 1 is in
 * use; others are passed over.  Caller makes the turn, as whoever calls the engine with a packet
 * does.
 */
void gsi_queue_pair_event(struct progress *progress, uint32_t qpn, enum eng_event event);

/* ---- ports ---- */

/* Port spaces are one namespace each: RDMA_PS_TCP 0x0106, _UDP 0x0111, _IPOIB 0x0002, _IB 0x013f.
 */
enum gsi_port_flags {
	GSI_PORT_REUSE = 1,   /* others that also say so may bind it; only one listens */
	GSI_PORT_AF_ONLY = 2, /* "::" does not take what comes by IPv4 */
};

/* ::ffff:0.0.0.0 is any IPv4 address; :: is any IPv6 address, and IPv4 without GSI_PORT_AF_ONLY. */
struct gsi_port_address {
	uint8_t gid[16];
	uint32_t scope_id; /* interface index of a link-local address, else 0 */
};

/*
 * Bind a port (host order) of a port space on an address, for this process and against all others
 * of the user and network namespace, as the kernel does it among its ids.  *port 0: a free one is
 * chosen from net.ipv4.ip_local_port_range and stored; when there are many it may be shared by
 * several that do not listen.
 *
 * -EADDRINUSE: the port is bound on this address.  -EADDRNOTAVAIL: it is bound on another one and
 * one of the two is any; or, with *port 0, none is free.  Whether the address is local is not
 * looked at.
 */
int gsi_port_bind(struct gsi *gsi, uint16_t space, const struct gsi_port_address *address,
		  uint16_t *port, unsigned int flags, struct gsi_port **bound);
/*
 * From now on REQ and SIDR_REQ to this port come to this process, at every address of
 * gsi_addr_get() that it is bound to, also at those that are got later.  Errors as above: of a port
 * that is shared, or was chosen, another process may be the listener by now.
 */
int gsi_port_listen(struct gsi_port *port);
/* Listening ends, and the port is free. */
void gsi_port_close(struct gsi_port *port);

#endif
