/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Datagrams in and out, in batches.  The link knows addresses, ports and queue pair number slots;
 * it knows no protocol.  One struct link exists per process: it holds the process's slot of the
 * host's queue pair numbers and its share of UDP port 4791 on each local address in use.
 *
 * How processes share the port (Documentation/decisions/port-sharing.md): every local address has a
 * pool of SO_REUSEPORT sockets, socket i for slot i, steered by a classic BPF program on the
 * destination QPN's slot bits.  The first process on an address begins the pool, later ones get the
 * descriptors over a UNIX socket and add to it; each holds those up to its own, reads only its own.
 *
 * All functions return 0 or a negative errno unless they say otherwise.  Functions marked
 * "control" take an internal lock and may block for some milliseconds; link_send() may be called
 * by any thread at any time; link_receive() of one address by one thread at a time.
 */
#ifndef UROCE_LINK_LINK_H
#define UROCE_LINK_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "gid.h"

/* A queue pair number is slot << LINK_SLOT_SHIFT | index. */
#define LINK_SLOT_BITS 12
#define LINK_SLOTS (1u << LINK_SLOT_BITS)
#define LINK_SLOT_SHIFT (24 - LINK_SLOT_BITS)
#define LINK_INDEX_MASK ((1u << LINK_SLOT_SHIFT) - 1)
/* Number of slots of one link at most. */
#define LINK_SLOTS_MAX 64
/* Queue pairs 0 and 1 exist once per address and belong to no slot: link_addr_claim_gsi(). */
#define LINK_GSI_QPN_MAX 1

/* The largest UDP payload of one send or receive call. */
#define LINK_MAX_BYTES 65507
/* UDP_MAX_SEGMENTS of the kernel; older ones take 64: see link_max_segments(). */
#define LINK_MAX_SEGMENTS 128
#define LINK_ERROR_TEXT 256

struct link;	  /* this process's slot and control socket */
struct link_addr; /* one local address: its receive pool */
struct link_peer; /* a destination: from a local address and source port to one remote address */
struct link_ring_reader;
struct link_group; /* a multicast group that this process hears on one interface */

/*
 * Control.  Claim a free slot of this host (network namespace): the abstract UNIX name of the slot
 * is bound.  -ENOSPC when all LINK_SLOTS are taken.  error gets one line for the user (what, why,
 * remedy) when the result is not 0.
 */
int link_open(struct link **link, char error[LINK_ERROR_TEXT]);
/* The same for a further link of a process: tools do not see it. */
int link_open_further(struct link **link, char error[LINK_ERROR_TEXT]);
/* Control.  All addresses and peers must have been closed.  The slot becomes free. */
void link_close(struct link *link);
unsigned int link_slot(const struct link *link);
/*
 * Control.  A further slot for this link, when the numbers of those that it has are used up.
 * -ENOSPC when it has LINK_SLOTS_MAX, or none is free.
 */
int link_further_slot(struct link *link, unsigned int *slot);
/* What to ask for as SO_RCVBUF from now on, in bytes; the kernel may grant less. */
void link_set_receive_buffer(struct link *link, uint32_t bytes);
/*
 * Whether queue pairs of this process and of others that want it too may speak to each other
 * through shared memory, from now on; off at first.  See link_peer_open_own().
 */
void link_set_shared_memory(struct link *link, bool on);
/* How many segments this kernel takes in one link_send(): up to LINK_MAX_SEGMENTS; 1: no bursts. */
unsigned int link_max_segments(const struct link *link);

/*
 * In a forked child: close every descriptor of link, telling no other process, and mark it dead:
 * later sends and receives return -EOWNERDEAD.  Async-signal-safe; takes no lock.
 */
void link_abandon(struct link *link);
/*
 * Before and after fork(2) in the parent, as handlers of pthread_atfork(3): they keep other threads
 * out of control functions, so that link_abandon() in the child finds every descriptor.  Without
 * them it may miss those that another thread is making at that very moment.  Where a process has
 * several links, the first function is called for all of them before the second: a thread that
 * opens an address of one may wait for an answer of another.
 */
void link_fork_await_openers(struct link *link);
void link_fork_prepare(struct link *link);
void link_fork_parent(struct link *link);

/*
 * Control.  Bind or join port 4791 of the local address gid (IPv4 as ::ffff:a.b.c.d; scope_id is
 * the interface index for link-local IPv6, else 0).  The same address gives the same, counted
 * object.  -EADDRINUSE if another user's process (or kernel rxe) has the port; error (may be NULL)
 * says so.
 */
int link_addr_open(struct link *link, const uint8_t gid[16], uint32_t scope_id,
		   struct link_addr **addr, char error[LINK_ERROR_TEXT]);
void link_addr_close(struct link_addr *addr);

/* The descriptor to wait on for datagrams of this process on this address. */
int link_addr_fd(const struct link_addr *addr);
const uint8_t *link_addr_gid(const struct link_addr *addr);
uint32_t link_addr_scope(const struct link_addr *addr);
/*
 * Bytes the kernel will queue for this process (SO_RCVBUF as granted: twice of what was asked for,
 * because it counts its own bookkeeping too).
 */
uint32_t link_addr_receive_buffer(const struct link_addr *addr);

/*
 * Control.  A peer to send to: from addr and source port *src_port (host order; when that port
 * cannot be had the next free one is taken and stored) to dst port 4791.  Counted and shared:
 * peers with the same addr, dst, port and classes are one object, and peers of one source port
 * and classes share a socket.  Sockets are bounded (LINK_MAX_SOURCE_PORTS for each address); beyond
 * it ports are shared.  A hop_limit below 64 is raised to 64: programs that know only InfiniBand
 * ask for 1.  -EAFNOSUPPORT when dst is of the other IP version than addr.
 */
#define LINK_MAX_SOURCE_PORTS 128
int link_peer_open(struct link_addr *addr, const uint8_t dst[16], uint32_t scope_id,
		   uint8_t traffic_class, uint8_t hop_limit, uint16_t *src_port,
		   struct link_peer **peer);
/*
 * Control.  As link_peer_open(), for one user, which sends under a lock of its own, and to one
 * queue pair, dst_qpn.  When dst is addr's own address, so that all that listens there is uroce,
 * the peer sends through shared memory if both processes have that switched on and the other one
 * answers (it has 100 ms for that), or else has a connected socket, which is faster than one that
 * is not: LINK_MAX_CONNECTED of them for each address, then as link_peer_open().
 */
#define LINK_MAX_CONNECTED 32
int link_peer_open_own(struct link_addr *addr, const uint8_t dst[16], uint32_t scope_id,
		       uint8_t traffic_class, uint8_t hop_limit, uint32_t dst_qpn,
		       uint16_t *src_port, struct link_peer **peer);
void link_peer_close(struct link_peer *peer);
/* How a peer is reached: chosen when it is opened, for good. */
enum link_transport {
	LINK_SOCKET,
	LINK_SHARED_MEMORY,
};
enum link_transport link_peer_transport(const struct link_peer *peer);
/*
 * With LINK_SHARED_MEMORY: is there no room for a long burst (and another one, which is left to
 * short ones)?  A look is cheaper than a burst made in vain.
 */
bool link_peer_is_full(struct link_peer *peer);
/*
 * The IPv4 identification of the first datagram of the next link_send(): 0, unless peer has a
 * connected socket.  Constant until then; only for the one that opened the peer.
 */
uint16_t link_peer_identification(const struct link_peer *peer);
/*
 * How large a packet may be on the path to peer, IP header included, as far as the kernel knows: by
 * the route, and by what routers have said (which may be forged).  0 when that cannot be told, and
 * through shared memory.  Takes a few system calls, unless the calling thread has asked for a peer
 * of the same two addresses less than max_age_ms ago.
 */
uint32_t link_peer_mtu(const struct link_peer *peer, unsigned int max_age_ms);
/* How what is sent to a peer is addressed; dst's port is always 4791. */
struct link_path {
	uint8_t src[16], dst[16]; /* as in a GID */
	uint16_t src_port;	  /* host order */
	uint8_t traffic_class, hop_limit;
};
void link_peer_path(const struct link_peer *peer, struct link_path *path);
/*
 * Would the socket of slot at the peer queue so many bytes more now, as the kernel counts them?
 * True as well where that cannot be seen (the peer has to be the very address that is sent from),
 * and when the socket's owner has read nothing for a second although there was no room: it is
 * stopped or dead, and what is sent to it is lost, as on a network.
 */
bool link_peer_has_room(const struct link_peer *peer, unsigned int slot, uint64_t bytes);

/*
 * Send count pieces as one datagram (segment 0) or as a burst of datagrams of segment bytes each,
 * the last one possibly shorter.  Datagrams leave with DF set and IPv4 identifications that count
 * up from link_peer_identification() within the call.  One system call, two if a connected socket's
 * bursts change their segment, some more after an error; never blocks: -EAGAIN or -ENOBUFS when the
 * socket buffer or the ring is full (nothing was sent), others as from sendmsg(2).
 */
int link_send(struct link_peer *peer, const struct iovec *pieces, unsigned int count,
	      unsigned int segment);

/* Why the broker passes a datagram on. */
enum link_reason {
	LINK_MISDIRECTED = 1, /* it came to another socket than the slot's */
	LINK_MAD_OWN,	      /* for this process, by id, listener or request */
	LINK_MAD_ANY,	      /* for the process that knows it */
	LINK_MAD_NONE,	      /* for no process: this one answers for the host */
};

/* One received batch: one datagram, or several of one sender merged by UDP_GRO. */
struct link_batch {
	uint8_t *buffer;	/* in: room for LINK_MAX_BYTES + 1 bytes; out: where they are */
	size_t buffer_bytes;	/* in */
	size_t bytes;		/* out: bytes received */
	unsigned int segment;	/* out: bytes of each datagram; the last may be shorter */
	uint8_t src[16];	/* out: sender's address as in a GID */
	uint16_t src_port;	/* out: host order */
	struct link_addr *addr; /* out: the local address it came to; NULL: a group */
	/*
	 * Out: of the IP header, when link_addr_want_class() has been called, else 0.  All the
	 * datagrams of a batch have the same.
	 */
	uint8_t traffic_class, hop_limit;
	struct link_ring_reader *ring; /* out: for link_release() */
	uint16_t reason;	       /* out, of link_delivery_receive(): enum link_reason */
};

/*
 * -EAGAIN when nothing waits.  At most one system call; never blocks.  When *batch is done with,
 * link_release() has to be called: it may be in memory that the sender waits for, and the bytes
 * there may change at any time if the sender does not keep to the rules.
 */
int link_receive(struct link_addr *addr, struct link_batch *batch);
void link_release(const struct link_batch *batch);
/* Returns true if something may come through shared memory, which link_addr_fd() does not tell. */
bool link_addr_has_memory(const struct link_addr *addr);
/*
 * Before sleeping until link_addr_fd() or link_writers_fd() is readable: true when there is
 * something to receive already.  link_addr_awake() is called after it.  Both are for the thread
 * that receives.
 */
bool link_addr_await(struct link_addr *addr);
void link_addr_awake(struct link_addr *addr);

/*
 * Let link_receive() tell traffic class and hop limit from now on; it costs some nanoseconds.  Not
 * of what the broker or shared memory brings: that has none.
 */
void link_addr_want_class(struct link_addr *addr);

/*
 * Control.  Join the multicast group gid (IPv4 as ::ffff:a.b.c.d) on an interface (index) and hear
 * its port 4791.  Every process that has joined gets every datagram, whatever queue pair it is for,
 * also those that this host sends.  -EADDRINUSE when a program has the port that does not share it.
 */
int link_group_open(struct link *link, const uint8_t gid[16], uint32_t interface,
		    struct link_group **group, char error[LINK_ERROR_TEXT]);
void link_group_close(struct link_group *group);
int link_group_fd(const struct link_group *group);
const uint8_t *link_group_gid(const struct link_group *group);
/* As link_receive(); batch->addr is NULL, traffic class and hop limit are always told. */
int link_group_receive(struct link_group *group, struct link_batch *batch);

/*
 * Passes on a datagram of the batch, of length bytes, that steering brought here and that belongs
 * to another slot or to queue pair 1: the broker gives it to its owner.  Never blocks; a full
 * socket loses it as a network would (-EAGAIN).
 */
int link_pass_on(const struct link_batch *batch, const uint8_t *bytes, size_t length);

/*
 * The delivery socket: datagrams that the broker passes on to this slot.  0 with a batch for each,
 * and its reason; -EAGAIN when nothing is left.
 */
int link_delivery_receive(struct link *link, struct link_batch *batch);
/*
 * Readable when link_delivery_receive() has something, or link_tend() has: that returns to a new
 * broker when the old one has gone.  It may take some seconds then, else one system call.  A
 * thread that holds no lock may call it.  Meanwhile it calls meanwhile(arg) once a
 * millisecond, unless that is NULL, with open_lock held.
 */
int link_broker_fd(const struct link *link);
void link_tend(struct link *link, void (*meanwhile)(void *arg), void *arg);
/* Number of times that another broker has taken the place of the link's. */
unsigned int link_broker_changes(const struct link *link);
/*
 * Returns true from the end of a broker until its successor has had time to find all members of
 * the groups, and while a check waits for a reply.  Packets from other processes of the host may be
 * lost meanwhile.  Thread-safe.
 */
bool link_is_unsettled(const struct link *link);
/*
 * For timeouts that may come from a broker which is stopped and looks after the groups no more: has
 * link_tend() find another one if it does not reply, every two seconds at most.  Thread-safe, takes
 * no lock.
 */
void link_check_broker(struct link *link);

/*
 * Processes that write to this link's shared memory, or want to.  The descriptor is readable when
 * link_serve_writers() has to be called, by one thread at a time, which returns true if a writer
 * says that there is something to receive.
 */
int link_writers_fd(const struct link *link);
bool link_serve_writers(struct link *link);

/*
 * Tools, each with a question on a connection.  The descriptor is readable when there may be one.
 * Returns the connection of the next, which is then the caller's, with its question, or -EAGAIN.
 */
int link_visitors_fd(const struct link *link);
int link_next_visitor(struct link *link, void *question, size_t room, size_t *bytes);

/* Datagrams that the kernel dropped for lack of receive buffer, and forwards in both directions. */
struct link_counters {
	uint64_t receive_overflow;
	uint64_t forwarded;
	uint64_t forward_received;
	uint64_t forward_lost;
	uint64_t memory_sent; /* bursts through shared memory, and those received */
	uint64_t memory_received;
};
void link_counters(const struct link *link, struct link_counters *counters);

#endif
