/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 (QP1), the General Services Interface (GSI): sends and receives management datagrams
 * (MADs) of the connection manager.  Their contents are the caller's business, except for the
 * fields that decide to which process they go.  A program that does not call gsi_get() has no
 * overhead.
 *
 * The broker owns queue pair 1 of every address, and forwards each MAD to the right process
 * (Documentation/decisions/broker.md):
 *   MADs with a receiver's communication id  the owner of the slot in that id
 *   SIDR_REP                                 the owner of the slot in the request id
 *   REQ, SIDR_REQ                            the process that listens on the service id at the
 *                                            destination address (for 127.0.0.0/8, first at the
 *                                            address that the request contains)
 *   retransmitted REQ                        the process that received the first REQ
 *   REJ without receiver's id                the process that received the REQ, else all
 * Therefore ids must contain the slot in their top bits, slot << GSI_ID_SHIFT | anything, and must
 * not be 0.  Each process sends its MADs itself.
 *
 * Threads: the callbacks run in the progress thread, one at a time, with no lock held; they may
 * take locks, send, set deadlines, bind, listen and close ports.  They must not call functions
 * marked "control", which wait for the callbacks.  Any thread may call any function, but "control"
 * functions not with a lock held that a callback takes.
 *
 * fork: in the child, calls for the instance return -EOWNERDEAD or have no effect.
 *
 * Functions return 0 or a negative errno unless noted otherwise.
 */
#ifndef UROCE_PROGRESS_GSI_GSI_H
#define UROCE_PROGRESS_GSI_GSI_H

#include "progress/progress.h"
#include "wire/mad_header.h"

/* Ids of this process have its slot in the bits from here on. */
#define GSI_ID_SHIFT (32 - LINK_SLOT_BITS)
/* Maximum number of MADs that wait for the callback; more are dropped and counted. */
#define GSI_QUEUE_MAX 1024

struct gsi;	 /* the only instance of the process */
struct gsi_port; /* a bound port of a port space */

/* Reason why a MAD was forwarded to this process. */
enum gsi_match {
	/*
	 * The id in the MAD contains the slot of this process, or this process listens on the
	 * service id.
	 */
	GSI_MATCH_LOCAL,
	/*
	 * The MAD does not identify its receiver (REJ without receiver's id): the process that has
	 * the connection handles it, all others ignore it.
	 */
	GSI_MATCH_BROADCAST,
	/*
	 * No process on this host is responsible, and the broker has chosen this one to reply on
	 * behalf of the host (REJ reason 8, SIDR status 1, stateless DREP) without keeping state.
	 * REP and RTU arrive with this reason only if no process has the slot, so that a REJ reason
	 * 6 does not end a connection of a running process.
	 */
	GSI_MATCH_UNOWNED,
};

/* A received MAD; its packet has been checked, and its class is that of the CM. */
struct gsi_mad {
	uint8_t bytes[MAD_BYTES];
	uint8_t src[16];   /* the sender's address, as in a GID */
	uint8_t dst[16];   /* destination address: gsi_path.sgid of a reply */
	uint32_t scope_id; /* interface index if both addresses are link-local, else 0 */
	uint64_t when;	   /* time of receipt (progress_now()) */
	enum gsi_match reason;
};

struct gsi_hooks {
	/* A MAD was received; *mad is valid during the call only. */
	void (*receive)(void *arg, const struct gsi_mad *mad);
	/* The deadline set by gsi_deadline() has passed; it has been reset to ENG_NEVER. */
	void (*expire)(void *arg, uint64_t now);
	/*
	 * QP qpn of this process received the first request of its peer.  May be NULL.  If many
	 * occur at once, some may not be reported.
	 */
	void (*first_request)(void *arg, uint32_t qpn);
	/*
	 * The peer of QP qpn does not report credits.  Returns true if the peer has promised to
	 * (rule C19), which is counted (PROGRESS_COUNT_CREDITS_MISSED).  May be NULL.
	 */
	bool (*credits_hidden)(void *arg, uint32_t qpn);
	/*
	 * A new broker serves this process.  It does not have the last messages of processes that
	 * ended while no broker was running, so the connections to them must be checked
	 * (gsi_is_orphan()).  May be NULL.
	 */
	void (*broker_changed)(void *arg, uint64_t now);
	void *arg;
};

/*
 * Control.  Gets a reference to the only instance; the hooks of the first call are used.  The
 * caller must have a reference to progress until gsi_put().  Returns -ENOMEM, -EMFILE or others;
 * error contains one line for the user.
 */
int gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **gsi,
	    char error[PROGRESS_ERROR_TEXT]);
/*
 * Control.  After the last reference is dropped no callback runs; ports and addresses must have
 * been released before.
 */
void gsi_put(struct gsi *gsi);
/* Returns the slot of this process, for the top bits of ids. */
unsigned int gsi_slot(const struct gsi *gsi);

/*
 * Control.  Starts receiving and sending on the local address gid (scope_id: the interface index of
 * a link-local one, else 0); reference-counted.  Takes milliseconds, as link_addr_open().  Must be
 * called for each source address of MADs, and for each address on which a listener of any address
 * should receive requests, including addresses added later.  After return, the broker delivers MADs
 * to the address.
 */
int gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
		 char error[PROGRESS_ERROR_TEXT]);
void gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id);

/* Source and destination of a MAD. */
struct gsi_path {
	uint8_t sgid[16], dgid[16]; /* may be equal: the MAD then arrives like any other */
	uint32_t scope_id;	    /* interface index if dgid is link-local, else 0 */
	uint8_t traffic_class;
};

/*
 * Sends a MAD: one UD packet from queue pair 1 of path->sgid to queue pair 1 of path->dgid.  Never
 * blocks.  Subject to UROCE_FAULT.  -EADDRNOTAVAIL: gsi_addr_get() was not called for sgid.
 * -EAGAIN, -ENOBUFS: the socket buffer is full, equivalent to a loss in the network.  Other errors
 * are those of sendmsg(2), such as -ENETUNREACH: further MADs will fail for now as well.
 */
int gsi_send(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES]);

/*
 * Stores a MAD that the broker sends four times on behalf of this process if it ends without
 * sending it: a DREQ for each connection.  *number is for gsi_last_message_drop().  -ENOSPC: there
 * are GSI_LAST_MESSAGES already; -EFBIG: the memory file could not be created.
 */
#define GSI_LAST_MESSAGES 4096
int gsi_last_message_set(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES],
			 unsigned int *number);
void gsi_last_message_drop(struct gsi *gsi, unsigned int number);

/* Returns true if no process of this network namespace has the slot of the QPN. */
bool gsi_is_orphan(uint32_t qpn);

/*
 * Sets the deadline at which hooks.expire is called once (progress_now(), nanoseconds); at once if
 * it has passed.  Replaces the previous deadline; ENG_NEVER: none.  Late by at most a millisecond
 * while the application polls, otherwise by microseconds.
 */
void gsi_deadline(struct gsi *gsi, uint64_t when);

/*
 * Reports an event of QP qpn: ENG_EVENT_COMM_EST and ENG_EVENT_FIRST_REQUEST to
 * hooks.first_request, ENG_EVENT_CREDITS_HIDDEN to hooks.credits_hidden; ignores other events, and
 * all if queue pair 1 is not in use.  progress is the first worker, whatever the worker of the QP.
 */
void gsi_report_qp_event(struct progress *progress, uint32_t qpn, enum eng_event event);

/* ---- ports ---- */

/*
 * Port spaces are separate namespaces: RDMA_PS_TCP 0x0106, _UDP 0x0111, _IPOIB 0x0002, _IB 0x013f.
 */
enum gsi_port_flags {
	/*
	 * Other ports with this flag may be bound to the same number; only one of them may listen.
	 */
	GSI_PORT_REUSE = 1,
	GSI_PORT_AF_ONLY = 2, /* "::" does not receive IPv4 */
};

/*
 * ::ffff:0.0.0.0 is any IPv4 address; :: is any IPv6 address, and any IPv4 address without
 * GSI_PORT_AF_ONLY.
 */
struct gsi_port_address {
	uint8_t gid[16];
	uint32_t scope_id; /* interface index of a link-local address, else 0 */
};

/*
 * Binds a port (host order) of a port space on an address, exclusively among all processes of the
 * user in the network namespace, with the rules of the kernel's rdma_cm.  If *port is 0, a free
 * port is chosen from net.ipv4.ip_local_port_range and stored; if many are in use, the port may be
 * shared with others that do not listen.
 *
 * -EADDRINUSE: the port is bound on this address.  -EADDRNOTAVAIL: it is bound on another address
 * and one of the two is a wildcard; or *port is 0 and no port is free.  Does not check that the
 * address is local.
 */
int gsi_port_bind(struct gsi *gsi, uint16_t space, const struct gsi_port_address *address,
		  uint16_t *port, unsigned int flags, struct gsi_port **bound);
/*
 * Makes REQ and SIDR_REQ to this port arrive in this process, on every address of gsi_addr_get() on
 * which the port is bound, including addresses added later.  Errors as of gsi_port_bind(): if the
 * port is shared or was chosen, another process may have become its listener.
 */
int gsi_port_listen(struct gsi_port *port);
/* Stops listening and releases the port. */
void gsi_port_close(struct gsi_port *port);

#endif
