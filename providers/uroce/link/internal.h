/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the files of this folder share.  Other layers do not include it.
 *
 * Locks, in the order in which they may be nested:
 *   open_lock  held through a whole link_addr_open() or the last link_addr_close(), which may wait
 *              for the broker;
 *   lock       guards the lists below; held for microseconds only, never while waiting.
 * The data path (link_send, link_receive, link_pass_on) takes none of them.  The lock of a channel
 * (shm.h) is inside all.
 *
 * fork: the child must be able to find every descriptor at any instant, without a lock.  Hence the
 * lists are singly linked, a node enters complete by one store and leaves by one store, and each
 * descriptor is stored right after it was made.
 */
#ifndef UROCE_LINK_INTERNAL_H
#define UROCE_LINK_INTERNAL_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "broker.h"
#include "endpoint.h"
#include "link/link.h"
#include "visits.h"

#define LINK_UDP_PORT 4791
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
/* Asked for; the kernel grants what net.core.[rw]mem_max allows. */
#define LINK_SOCKET_BUFFER (4 << 20)
/* ---- descriptors.c ---- */

/*
 * socket(2), close-on-exec and non-blocking.  When the process has no descriptor left the soft
 * limit is raised towards the hard one.  The descriptor or a negative errno.
 */
int link_socket(int family, int type);
/* setsockopt(2) of a number: 0 or a negative errno. */
int link_set_option(int fd, int level, int option, int value);
/* Raise the soft limit of open files by a step; -EMFILE when it is at the hard one. */
int link_raise_descriptor_limit(void);
/* Close *fd unless it is negative and make it -1. */
void link_close_fd(int *fd);
/* One line into error (which may be NULL), cut where it does not fit. */
__attribute__((format(printf, 2, 3))) void link_explain(char error[LINK_ERROR_TEXT],
							const char *format, ...);
/* CLOCK_MONOTONIC in milliseconds. */
int64_t link_now_ms(void);

/* ---- portowner.c ---- */

/* The user whose socket has the port on the endpoint or on the wildcard, by /proc/net/udp*. */
bool link_port_owner(const struct link_endpoint *endpoint, uint16_t port, uint32_t *uid);

/* ---- addr.c ---- */

/* Get the socket of the slot for link_peer_has_room(), if it can be had.  Caller holds no lock. */
void link_look(struct link_addr *addr, unsigned int slot);

/* ---- user.c ---- */

/* Can this user be told from others?  -EPERM, and why not. */
int link_check_user(char error[LINK_ERROR_TEXT]);
/* Is it one user, and not what stands for all that this user namespace does not map? */
bool link_user_is_known(uid_t user);

/* ---- the objects ---- */

struct link {
	struct link_broker broker; /* under open_lock, but see broker.h */
	unsigned int slot;
	unsigned int max_segments;
	bool further;		   /* link_open_further() */
	atomic_int receive_buffer; /* bytes to ask for */
	atomic_bool shares_memory; /* shm.h */
	atomic_bool abandoned;
	pthread_mutex_t open_lock;
	pthread_mutex_t lock;
	_Atomic(struct link_addr *) addrs;
	struct link_visits writers;  /* of shared memory, see link_serve_writers() */
	struct link_visits visitors; /* link_next_visitor() */
	uid_t user;		     /* effective, when it was opened */
	_Atomic(struct link_group *) groups;
	_Atomic(struct link_region *) regions; /* shm.h */
	uint64_t closed_overflow;	       /* receive_overflow of addresses that are closed */
	atomic_uint_fast64_t forwarded;
	atomic_uint_fast64_t forward_received;
	atomic_uint_fast64_t forward_lost;
	atomic_uint_fast64_t memory_sent;
	atomic_uint_fast64_t memory_received; /* written by the receiver alone */
};

/* A socket to send from: one source port, one hop limit, one traffic class. */
struct link_tx {
	_Atomic(struct link_tx *) next;
	int fd;
	unsigned int refs;
	uint16_t port;
	uint8_t traffic_class;
	uint8_t hop_limit;
	/* One peer's own: connected to it.  Else shared, and identification stays 0. */
	bool connected;
	/* Of a connected one, under its user's lock. */
	uint16_t identification; /* of the next datagram */
	uint16_t segment;	 /* UDP_SEGMENT of the socket, 0: none */
	uint16_t wanted_segment; /* of the last single piece */
};

/* Whether the socket of another slot is read, as far as its sender sees: see udp.c. */
struct link_stall {
	_Atomic int64_t since;	 /* it had no room, and has read nothing since then: ms, or 0 */
	_Atomic uint32_t queued; /* at the last look */
};

/* Shared peers: peer_table.h. */
struct link_peer_table {
	struct link_peer **bucket;
	uint32_t buckets; /* a power of two, or 0 */
	uint32_t count;
};

struct link_addr {
	_Atomic(struct link_addr *) next;
	struct link *link;
	unsigned int refs;
	struct link_endpoint endpoint;
	int fd;		/* the socket of this link's slot */
	bool unsteered; /* all clients of the broker read the same socket */
	/* Sockets of other slots, to see how full they are; -1: not had.  Stored once. */
	int seen[LINK_SLOTS];
	uint32_t receive_buffer;
	uint32_t overflow_base; /* drops of the slot's earlier owners */
	unsigned int tx_count;	/* of those that are not connected */
	unsigned int connected_count;
	_Atomic(struct link_tx *) txs;
	struct link_peer_table peers; /* without those of one user */
	/* Shared memory (shm.h): what comes in, and the channels to other processes by their slots.
	 */
	_Atomic(struct link_region *) region;
	struct link_channel *channel[LINK_SLOTS];
	int64_t ask_again[LINK_SLOTS];	/* not before, in milliseconds; under open_lock */
	int64_t look_again[LINK_SLOTS]; /* the same */
	struct link_stall stall[LINK_SLOTS];
};

/* A membership, and the socket that has it. */
struct link_group {
	_Atomic(struct link_group *) next;
	struct link *link;
	struct link_endpoint endpoint;
	uint32_t interface; /* index */
	int fd;
};

#define LINK_SEGMENT_BYTES CMSG_SPACE(sizeof(uint16_t))
/* segment.c: writes the control message of a burst and returns LINK_SEGMENT_BYTES. */
size_t link_put_segment(uint8_t *control, uint16_t bytes);

#define LINK_CLASS_BYTES (2 * CMSG_SPACE(sizeof(int)))
struct link_peer {
	struct link_peer *next; /* in the table's bucket */
	struct link_addr *addr;
	struct link_tx *tx;
	unsigned int refs;
	struct link_endpoint dst;
	uint8_t traffic_class;
	uint8_t hop_limit;
	bool own; /* of one user, which sends under a lock of its own */
	uint16_t dst_slot;
	struct link_channel *channel; /* NULL: the socket */
	socklen_t dst_bytes;
	union link_sockaddr dst_sockaddr;
	/* Control messages with hop limit and traffic class, only when tx has others. */
	size_t class_bytes;
	_Alignas(struct cmsghdr) uint8_t class_control[LINK_CLASS_BYTES];
};

/* In a forked child the mutexes may be locked for ever by threads that are not there. */
static inline void link_mutex_lock(struct link *link, pthread_mutex_t *mutex)
{
	if (!atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		pthread_mutex_lock(mutex);
}

static inline void link_mutex_unlock(struct link *link, pthread_mutex_t *mutex)
{
	if (!atomic_load_explicit(&link->abandoned, memory_order_relaxed))
		pthread_mutex_unlock(mutex);
}

/* Caller holds lock. */
static inline struct link_addr *link_addr_find(const struct link *link,
					       const struct link_endpoint *endpoint)
{
	struct link_addr *addr = link->addrs;

	while (addr && !link_endpoint_equal(&addr->endpoint, endpoint))
		addr = addr->next;
	return addr;
}

/* addr.c: its sockets; async-signal-safe. */
void link_addr_close_descriptors(struct link_addr *addr);
/* peer.c: how many segments the kernel takes in one send; 1 where it cannot cut bursts. */
unsigned int link_probe_segments(void);
/*
 * connected.c: connect tx, whose socket is bound, and find out how the kernel numbers what it
 * sends.  0 or a negative errno: the socket is then of no use.
 */
int link_tx_connect(struct link_tx *tx, const union link_sockaddr *dst, socklen_t dst_bytes);
/* connected.c: link_send() by a connected tx; segment is 0 for a single datagram. */
int link_tx_send(struct link_tx *tx, const struct iovec *pieces, unsigned int count,
		 unsigned int segment);
/* udp.c: datagrams dropped at this socket since it exists. */
uint32_t link_socket_drops(int fd);
/* udp.c: receive a batch from fd; batch->addr is left as it is.  0 or a negative errno. */
int link_receive_from(struct link *link, int fd, struct link_batch *batch);
/* udp.c: let the kernel tell traffic class and hop limit of what is received at fd. */
void link_receive_class(int fd, bool ipv4);
/*
 * udp.c: take IPv6 datagrams without a UDP checksum as well, which the kernel's soft RoCE sends:
 * the ICRC covers more than that checksum does.
 */
void link_receive_unchecked(int fd);

#endif
