/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagrams in and out, in batches.  This layer knows addresses, ports and slots of queue pair
 * numbers; it knows no protocol.  A process has one struct link for each of its workers.  A link
 * holds one slot or more of the host's queue pair numbers, and a socket on UDP port 4791 of each
 * local address in use.
 *
 * How processes share the port (Documentation/decisions/port-sharing.md): for each local address
 * uroce-broker creates a group of SO_REUSEPORT sockets, one for each worker.  A BPF program steers
 * each datagram by the slot in its destination QPN to the socket of the worker that has the slot.
 * Each worker reads its own socket only.
 *
 * All functions return 0 or a negative errno unless stated otherwise.  Functions marked "control"
 * take an internal lock and may block for some milliseconds, or for some seconds while a broker is
 * replaced.  Any thread may call link_send() at any time; one thread at a time may call
 * link_receive() of one address.
 */
#ifndef UROCE_LINK_LINK_H
#define UROCE_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/gid.h"

/* A queue pair number is slot << LINK_SLOT_SHIFT | index. */
#define LINK_SLOT_BITS 12
#define LINK_SLOTS (1u << LINK_SLOT_BITS)
#define LINK_SLOT_SHIFT (24 - LINK_SLOT_BITS)
#define LINK_INDEX_MASK ((1u << LINK_SLOT_SHIFT) - 1)
/* Maximum number of slots of one link */
#define LINK_SLOTS_MAX 64
/* Queue pairs 0 and 1 exist once per address and belong to no slot; see port.h. */
#define LINK_GSI_QPN_MAX 1

/* Maximum UDP payload of one send or receive call */
#define LINK_MAX_BYTES 65507
/* UDP_MAX_SEGMENTS of the kernel; older kernels allow 64: see link_max_segments(). */
#define LINK_MAX_SEGMENTS 128
#define LINK_ERROR_TEXT 256

struct link;	  /* a worker's slots and its connection to the broker */
struct link_addr; /* a local address, and the worker's socket on it */
struct link_peer; /* a destination: one remote address, from a local address and source port */
struct link_ring_reader;
struct link_group; /* a multicast group that the process has joined on one interface */

/*
 * Control.  Connects to the broker, which is started if there is none, and gets a free slot of this
 * network namespace.  -ENOSPC if no slot is free.  If the result is not 0, error is set to one line
 * for the user (what, why, remedy).
 */
int link_open(struct link **link, char error[LINK_ERROR_TEXT]);
/* As link_open(), for a further link of a process; tools do not see it. */
int link_open_further(struct link **link, char error[LINK_ERROR_TEXT]);
/* Control.  Frees the slots.  All addresses and peers must have been closed. */
void link_close(struct link *link);
unsigned int link_slot(const struct link *link);
/*
 * Control.  Gets a further slot for this link, when the numbers of its slots are used up.  -ENOSPC
 * if the link has LINK_SLOTS_MAX slots, or none is free.
 */
int link_add_slot(struct link *link, unsigned int *slot);
/* Sets the size to request as SO_RCVBUF from now on, in bytes; the kernel may grant less. */
void link_set_receive_buffer(struct link *link, uint32_t bytes);
/*
 * Allows or forbids shared memory, for peers that are opened from now on.  Queue pairs of two
 * processes use it if both allow it: see link_peer_open_exclusive().  Off by default.
 */
void link_set_shared_memory(struct link *link, bool on);
/*
 * Returns the version of the shared memory format (UROCE_ABI_VERSION) of a process that has refused
 * shared memory because this process has another, or 0 if none has.
 */
uint32_t link_shm_refused_version(const struct link *link);
/*
 * Returns how many segments this kernel accepts in one link_send(): up to LINK_MAX_SEGMENTS; 1
 * means no bursts.
 */
unsigned int link_max_segments(const struct link *link);

/*
 * For a forked child: closes every descriptor of link without notifying any process, and marks it
 * as abandoned: later sends and receives return -EOWNERDEAD.  Async-signal-safe; takes no lock.
 */
void link_abandon(struct link *link);
/*
 * Handlers for pthread_atfork(3) in the parent, two to be called before fork(2) and one after.
 * They keep other threads out of control functions, so that link_abandon() in the child finds every
 * descriptor; otherwise it may miss descriptors that another thread is just creating.  If a process
 * has several links, link_fork_wait_openers() must be called for all of them before
 * link_fork_prepare(), because a thread that opens an address of one link may wait for a reply of
 * another.
 */
void link_fork_wait_openers(struct link *link);
void link_fork_prepare(struct link *link);
void link_fork_parent(struct link *link);

/*
 * Control.  Opens port 4791 of the local address gid (IPv4 as ::ffff:a.b.c.d; scope_id is the
 * interface index for link-local IPv6, else 0).  For an address that is open already, returns the
 * same object with another reference.  -EADDRINUSE if another user or another program, such as
 * kernel rxe, has the port.  On failure error, which may be NULL, gets one line for the user.
 */
int link_addr_open(struct link *link, const uint8_t gid[16], uint32_t scope_id,
		   struct link_addr **addr, char error[LINK_ERROR_TEXT]);
void link_addr_close(struct link_addr *addr);

/* Returns the descriptor to poll for datagrams to this link on this address. */
int link_addr_fd(const struct link_addr *addr);
const uint8_t *link_addr_gid(const struct link_addr *addr);
uint32_t link_addr_scope(const struct link_addr *addr);
/*
 * Returns the number of bytes that the kernel queues for this link: SO_RCVBUF as granted, which is
 * twice the requested size because the kernel counts its bookkeeping as well.
 */
uint32_t link_addr_receive_buffer(const struct link_addr *addr);

/* Destination of a peer.  A hop_limit below 64 is raised to 64: InfiniBand programs set 1. */
struct link_dst {
	const uint8_t *gid; /* 16 bytes */
	uint32_t scope_id;  /* interface index, if gid is a link-local or multicast address */
	uint8_t traffic_class, hop_limit;
};
/*
 * Control.  Opens a peer, which sends from addr and source port *src_port to port 4791 of dst.
 * *src_port is in host order; if that port is not available, the next free one is used and stored.
 * Peers are shared and counted: the same addr, dst, port, traffic class and hop limit give the same
 * object, and peers with the same source port and classes share a socket.  After
 * LINK_MAX_SOURCE_PORTS sockets of an address, peers share ports.  -EAFNOSUPPORT if the IP versions
 * of dst and addr differ.
 */
#define LINK_MAX_SOURCE_PORTS 128
int link_peer_open(struct link_addr *addr, const struct link_dst *dst, uint16_t *src_port,
		   struct link_peer **peer);
/*
 * Control.  As link_peer_open(), for a peer with a single user, which sends under its own lock and
 * to one queue pair, dst_qpn.  If dst is addr's own address, where only uroce listens, the peer
 * sends through shared memory if both processes allow it and the process of dst_qpn replies within
 * 100 ms, or else by a connected socket, which is faster than an unconnected one.  For another dst,
 * and after LINK_MAX_CONNECTED connected sockets of an address, the peer is opened as by
 * link_peer_open().
 */
#define LINK_MAX_CONNECTED 32
int link_peer_open_exclusive(struct link_addr *addr, const struct link_dst *dst, uint32_t dst_qpn,
			     uint16_t *src_port, struct link_peer **peer);
void link_peer_close(struct link_peer *peer);
/* How a peer is reached; fixed when it is opened */
enum link_transport {
	LINK_SOCKET,
	LINK_SHARED_MEMORY,
};
enum link_transport link_peer_transport(const struct link_peer *peer);
/*
 * Returns true if a LINK_SHARED_MEMORY peer has no room for two maximum bursts, one of which is
 * reserved for short bursts; false for other peers, and if the reader has stopped.  Cheaper than
 * building a burst that does not fit.
 */
bool link_peer_is_full(struct link_peer *peer);
/*
 * Returns the IPv4 ID of the first datagram of the next link_send(): 0, unless peer has a connected
 * socket.  It does not change before that call.  Only for the user of the peer.
 */
uint16_t link_peer_ip_id(const struct link_peer *peer);
/*
 * Returns the path MTU to peer, IP header included, as known to the kernel from the route and from
 * ICMP messages (which may be forged).  Returns 0 if it is unknown, and for shared memory.  Takes a
 * few system calls, unless the calling thread has requested it for the same two addresses less than
 * max_age_ms ago.
 */
uint32_t link_peer_mtu(const struct link_peer *peer, unsigned int max_age_ms);
/* Addresses of the packets to a peer; the destination port is always 4791. */
struct link_path {
	uint8_t src[16], dst[16]; /* as in a GID */
	uint16_t src_port;	  /* host order */
	uint8_t traffic_class, hop_limit;
};
void link_peer_path(const struct link_peer *peer, struct link_path *path);
/*
 * Returns true if the socket of slot at the peer has room for this many further bytes, as the
 * kernel counts them.  Also returns true if that is unknown (only the address of addr itself can be
 * checked), and if the owner of the full socket has not read for a second: it is stopped or dead,
 * and what is sent to it is lost, as on a network.  If the socket is not known yet, requests it
 * from the broker, and returns false until the reply, for at most a second.
 */
bool link_peer_has_room(const struct link_peer *peer, unsigned int slot, uint64_t bytes);

/*
 * Sends count pieces as one datagram (segment 0) or as a burst of datagrams of segment bytes each,
 * the last one possibly shorter.  Datagrams have DF set, and IPv4 IDs that count up from
 * link_peer_ip_id() within the call.  Takes one system call, two if the segment size of a connected
 * socket changes, more after an error.  Never blocks: -EAGAIN or -ENOBUFS if the socket buffer or
 * the ring is full (nothing was sent), others as from sendmsg(2).
 */
int link_send(struct link_peer *peer, const struct iovec *pieces, unsigned int count,
	      unsigned int segment);

/* Why the broker passed on a datagram */
enum link_forward_reason {
	LINK_MISDIRECTED = 1, /* received by another socket than that of its slot, or damaged */
	/* MAD for this process, by communication id, listener or REQ; or a bad packet */
	LINK_MAD_OWN,
	LINK_MAD_ANY,  /* MAD for the process that knows its connection; sent to all */
	LINK_MAD_NONE, /* MAD for no process: this process replies for the host */
};

/* A received batch: one datagram, several of one sender merged by UDP_GRO, or a frame of a ring */
struct link_batch {
	/* in: LINK_MAX_BYTES + 1 bytes; out: location of the received bytes. */
	uint8_t *buffer;
	size_t buffer_bytes;	/* in: size of buffer */
	size_t bytes;		/* out: number of bytes received */
	unsigned int segment;	/* out: size of each datagram; the last may be shorter */
	uint8_t src[16];	/* out: sender's address as in a GID */
	uint16_t src_port;	/* out: host order */
	struct link_addr *addr; /* out: local address of the socket; NULL: a group */
	/*
	 * Out: from the IP header, after link_addr_enable_rx_class(), else 0.  All datagrams of a
	 * batch have the same values.
	 */
	uint8_t traffic_class, hop_limit;
	struct link_ring_reader *ring; /* out: for link_release() */
	uint16_t reason; /* out, only of link_delivery_receive(): enum link_forward_reason */
};

/*
 * Receives a batch.  Returns -EAGAIN if there is none.  At most one system call; never blocks.  The
 * caller must call link_release() after processing *batch: it may lie in shared memory that the
 * sender waits for, and a misbehaving sender may change the bytes there at any time.
 */
int link_receive(struct link_addr *addr, struct link_batch *batch);
void link_release(const struct link_batch *batch);
/* Returns true if datagrams may arrive in shared memory, which link_addr_fd() does not show. */
bool link_addr_has_shm(const struct link_addr *addr);
/*
 * link_addr_begin_sleep() announces that the calling thread is about to sleep until link_addr_fd()
 * or link_writers_fd() is readable.  It returns true if there is something to receive already.
 * link_addr_end_sleep() must be called after sleeping.  Both are for the receiving thread only.
 */
bool link_addr_begin_sleep(struct link_addr *addr);
void link_addr_end_sleep(struct link_addr *addr);

/*
 * Makes link_receive() report traffic class and hop limit from now on, at the cost of some
 * nanoseconds.  Datagrams from shared memory have none.
 */
void link_addr_enable_rx_class(struct link_addr *addr);

/*
 * Control.  Joins the multicast group gid (IPv4 as ::ffff:a.b.c.d) on an interface (index) and
 * receives datagrams to its port 4791.  Every process that has joined gets every datagram, for
 * whatever queue pair, including those that this host sends.  -EADDRINUSE if a program has the port
 * without sharing it.
 */
int link_group_open(struct link *link, const uint8_t gid[16], uint32_t interface,
		    struct link_group **group, char error[LINK_ERROR_TEXT]);
void link_group_close(struct link_group *group);
int link_group_fd(const struct link_group *group);
const uint8_t *link_group_gid(const struct link_group *group);
/* As link_receive(), but batch->addr is NULL, and traffic class and hop limit are always set. */
int link_group_receive(struct link_group *group, struct link_batch *batch);

/*
 * Passes a datagram of the batch, of length bytes, to the broker, which delivers it to its owner:
 * steering brought it here, but it belongs to another slot or to queue pair 1.  Never blocks; if
 * the socket is full the datagram is lost, as on a network (-EAGAIN).
 */
int link_forward(const struct link_batch *batch, const uint8_t *bytes, size_t length);

/*
 * Receives one datagram that the broker has passed on to this link, by the delivery socket, and
 * handles other messages that come before it.  Returns 0, with the datagram and its reason in
 * *batch, or -EAGAIN if there is none.  Also returns -EAGAIN after 64 other messages, so that the
 * caller serves its other descriptors; link_broker_fd() is still readable then.
 */
int link_delivery_receive(struct link *link, struct link_batch *batch);
/*
 * link_broker_fd() is readable if link_delivery_receive() or link_maintain_broker() must be called.
 * link_maintain_broker() returns to a new broker if the old one has ended, and sends PING when that
 * is due; both may take some seconds.  Otherwise it takes two system calls.  Any thread that holds
 * no lock may call it.  While it waits it runs the given callback once a millisecond, unless that
 * is NULL, with open_lock held.
 */
int link_broker_fd(const struct link *link);
void link_maintain_broker(struct link *link, void (*wait_callback)(void *arg), void *arg);
/*
 * Called after link_maintain_broker(), with the same arguments: requests the sockets that
 * link_peer_has_room() was called for and did not know.
 */
void link_open_wanted_slot_fds(struct link *link, void (*wait_callback)(void *arg), void *arg);
/* Returns how many times the link has returned to another broker. */
unsigned int link_broker_changes(const struct link *link);
/*
 * Returns true while timeouts should not count as retries, because packets from other processes of
 * the host may be lost: from the end of a broker until its successor has had time to find all
 * members of the groups, and while link_check_broker() waits for a reply.  Thread-safe.
 */
bool link_is_unsettled(const struct link *link);
/*
 * Called after timeouts: a stopped broker, which no longer maintains the groups, may be the cause.
 * Has link_maintain_broker() check that the broker replies and, if not, find another one; at most
 * every two seconds.  Thread-safe, takes no lock.
 */
void link_check_broker(struct link *link);

/*
 * link_writers_fd() is readable if link_serve_writers() must be called, by one thread at a time.
 * link_serve_writers() handles requests of other processes for channels to this link's shared
 * memory, and their doorbells.  It returns true if a doorbell was received: the rings may have
 * frames.
 */
int link_writers_fd(const struct link *link);
bool link_serve_writers(struct link *link);

/*
 * link_tools_fd() is readable if a tool may have sent a request. link_next_tool() stores the
 * next request and returns its connection, which the caller then owns, or -EAGAIN.
 */
int link_tools_fd(const struct link *link);
int link_next_tool(struct link *link, void *request, size_t room, size_t *bytes);

/*
 * receive_overflow: datagrams that the kernel dropped because a receive buffer was full. forwarded,
 * forward_received and forward_lost: datagrams passed to the broker, received from it, and lost in
 * either direction.
 */
struct link_counters {
	uint64_t receive_overflow;
	uint64_t forwarded;
	uint64_t forward_received;
	uint64_t forward_lost;
	uint64_t shm_sent; /* bursts sent and received through shared memory */
	uint64_t shm_received;
};
void link_counters(const struct link *link, struct link_counters *counters);

#endif
