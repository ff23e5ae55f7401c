/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Private declarations of this directory.  Other layers do not include them.
 *
 * Locks, in the order in which they may be nested:
 *
 * open_lock is held while an address is opened or closed, and during every later request to the
 * broker or to another process, which may take some seconds.
 *
 * lock guards the lists of addresses, sockets, peers, channels, groups, regions and connections,
 * and their reference counts.  It is held for microseconds, never during a message to the broker.
 *
 * The lock of a channel (shm.h) is the innermost one.  The data path (link_send(), link_receive(),
 * link_forward()) takes neither open_lock nor lock.
 *
 * fork: the child must be able to find every descriptor at any instant without a lock.  So the
 * lists are singly linked, one store adds a complete node or removes one, and each descriptor is
 * stored right after it was created.
 */
#ifndef UROCE_LINK_LINK_PRIV_H
#define UROCE_LINK_LINK_PRIV_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "link/broker/client.h"
#include "fd.h"
#include "link/udp/sockaddr.h"
#include "link.h"
#include "slot_set.h"

#define LINK_UDP_PORT 4791
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
/* Requested size of socket buffers; the kernel grants what net.core.[rw]mem_max allows. */
#define LINK_SOCKET_BUFFER (4 << 20)

/* ---- port_owner.c ---- */

/*
 * Stores in *uid the user whose socket has the port on the endpoint or on the wildcard, according
 * to /proc/net/udp*.  Returns false if there is no such socket.
 */
bool link_udp_port_owner(const struct link_endpoint *endpoint, uint16_t port, uint32_t *uid);

/* ---- slot_fd.c ---- */

/*
 * Requests a duplicate of the slot's socket, by which link_peer_has_room() checks how full that
 * socket is.  Does nothing within a second of the last request.  Caller holds no lock.
 */
void link_addr_open_slot_fd(struct link_addr *addr, unsigned int slot);
/*
 * Called by senders if slot_fd[slot] is -1, or seems to be that of an earlier owner of the slot:
 * has link_open_wanted_slot_fds() request it, unless that was done within the last second.  Returns
 * true if the sender should wait: until the broker has replied to the first request for this slot,
 * but at most a second.  Any thread; takes no lock.
 */
bool link_addr_want_slot_fd(struct link_addr *addr, unsigned int slot);

/* ---- userns.c ---- */

/*
 * Returns -EPERM, and a message in error, if the UID of this process is the overflow UID, which
 * stands for every unmapped user.
 */
int link_check_userns(char error[LINK_ERROR_TEXT]);
/* Returns true unless user is the overflow UID and some users of the host are not mapped. */
bool link_uid_is_mapped(uid_t user);

/* ---- the objects ---- */

struct link {
	struct link_broker broker; /* under open_lock; for exceptions see client.h */
	unsigned int slot;
	unsigned int max_segments;
	bool further;			   /* opened by link_open_further() */
	atomic_int receive_buffer;	   /* requested size in bytes */
	atomic_bool shares_memory;	   /* link_set_shared_memory() */
	_Atomic(uint32_t) refused_version; /* link_shm_refused_version() */
	atomic_bool slot_fds_wanted;	   /* for link_open_wanted_slot_fds() */
	atomic_bool abandoned;
	pthread_mutex_t open_lock;
	pthread_mutex_t lock;
	_Atomic(struct link_addr *) addrs;
	struct link_client_conns writers; /* connections of writers to shared memory */
	struct link_client_conns tools;	  /* link_next_tool() */
	uid_t user;			  /* effective UID when the link was opened */
	_Atomic(struct link_group *) groups;
	_Atomic(struct link_region *) regions; /* shm.h */
	uint64_t closed_overflow;	       /* receive_overflow of closed addresses and groups */
	atomic_uint_fast64_t forwarded;
	atomic_uint_fast64_t forward_received;
	atomic_uint_fast64_t forward_lost;
	atomic_uint_fast64_t shm_sent;
	atomic_uint_fast64_t shm_received; /* written by the receiving thread only */
};

/* A transmit socket: one source port, one hop limit, one traffic class */
struct link_tx {
	_Atomic(struct link_tx *) next;
	int fd;
	unsigned int refs;
	uint16_t port;
	uint8_t traffic_class;
	uint8_t hop_limit;
	/*
	 * True: connected to the one peer that uses it.  False: shared; ip_id stays 0, since the
	 * IPv4 IDs of each call start at 0.
	 */
	bool connected;
	/* The rest is used by a connected socket only, under the lock of its peer's user. */
	uint16_t ip_id;	  /* IPv4 ID of the next datagram */
	uint16_t segment; /* UDP_SEGMENT option of the socket; 0: none */
	/* Size of the last single piece that differed from segment; see set_default_segment(). */
	uint16_t wanted_segment;
};

/* State of the checks whether another slot's socket has room, and is being read; see udp.c. */
struct link_rx_room {
	/* Time in ms at which the socket was first found full; 0: it has been read since. */
	_Atomic int64_t full_since;
	_Atomic int64_t checked_ms; /* time of the last check */
	_Atomic uint32_t queued;    /* bytes queued at the last check */
	_Atomic uint32_t allowance; /* bytes that may be sent without another check, in that ms */
};

/*
 * Hash table of an address's shared peers.  The key is their transmit socket, destination, hop
 * limit and traffic class.
 */
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
	/*
	 * Sockets of other slots, for checking how full they are; -1: none.  A stored number does
	 * not change, so that other threads may use it without a lock.
	 */
	int slot_fd[LINK_SLOTS];
	uint32_t receive_buffer;
	uint32_t overflow_base; /* drops before this link got the socket */
	unsigned int tx_count;	/* number of unconnected transmit sockets */
	unsigned int connected_count;
	_Atomic(struct link_tx *) txs;
	struct link_peer_table peers; /* shared peers only */
	/*
	 * Shared memory (shm.h): the region that others write to, and channels to other processes,
	 * by slot; all slots of one process have the same channel
	 */
	_Atomic(struct link_region *) region;
	struct link_channel *channel[LINK_SLOTS];
	/* Earliest time of the next request for a channel, in ms; under open_lock. */
	int64_t next_request_ms[LINK_SLOTS];
	/* Earliest time of the next request for the slot's socket, in ms; 0: none was made. */
	_Atomic int64_t next_slot_fd_ms[LINK_SLOTS];
	struct link_slot_set wanted_slot_fds; /* slots whose socket should be requested */
	struct link_rx_room rx_room[LINK_SLOTS];
};

/* Membership in a multicast group, and the socket that has it */
struct link_group {
	_Atomic(struct link_group *) next;
	struct link *link;
	struct link_endpoint endpoint;
	uint32_t interface; /* interface index */
	int fd;
};

#define LINK_SEGMENT_BYTES CMSG_SPACE(sizeof(uint16_t))
/* fd.c: writes the UDP_SEGMENT control message of a burst.  Returns LINK_SEGMENT_BYTES. */
size_t link_put_udp_segment(uint8_t *control, uint16_t bytes);

#define LINK_CLASS_BYTES (2 * CMSG_SPACE(sizeof(int)))
struct link_peer {
	struct link_peer *next; /* next peer in the bucket of the table */
	struct link_addr *addr;
	struct link_tx *tx;
	unsigned int refs;
	struct link_endpoint dst;
	uint8_t traffic_class;
	uint8_t hop_limit;
	bool exclusive; /* has one user, which sends under its own lock */
	uint16_t dst_slot;
	struct link_channel *channel; /* NULL: the peer uses the socket */
	socklen_t dst_bytes;
	union link_sockaddr dst_sockaddr;
	/* Control messages with hop limit and traffic class, if those of tx differ */
	size_t class_bytes;
	_Alignas(struct cmsghdr) uint8_t class_control[LINK_CLASS_BYTES];
};

/* ---- peer_table.c ---- */

/* Returns the peer with the same key as *wanted, or NULL. */
struct link_peer *link_peer_table_find(const struct link_peer_table *table,
				       const struct link_peer *wanted);
/* Returns 0 or -ENOMEM. */
int link_peer_table_add(struct link_peer_table *table, struct link_peer *peer);
void link_peer_table_remove(struct link_peer_table *table, struct link_peer *peer);
/* The table must be empty. */
void link_peer_table_free(struct link_peer_table *table);

/* ---- locks, lists and functions of the data path ---- */

/* An abandoned link takes no locks: threads that a forked child lacks may hold them. */
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

/* Returns the open address of the endpoint, or NULL.  Caller holds link->lock. */
static inline struct link_addr *link_addr_find(const struct link *link,
					       const struct link_endpoint *endpoint)
{
	struct link_addr *addr = link->addrs;

	while (addr && !link_endpoint_equal(&addr->endpoint, endpoint))
		addr = addr->next;
	return addr;
}

/* Returns true if the slot is one of this link's.  Caller holds open_lock. */
static inline bool link_has_slot(const struct link *link, unsigned int slot)
{
	for (unsigned int i = 0; i < link->broker.slots; i++)
		if (link->broker.slot[i] == slot)
			return true;
	return false;
}

/* addr.c: closes the sockets of addr.  Async-signal-safe. */
void link_addr_close_fds(struct link_addr *addr);
/* peer.c: returns the maximum number of segments of one send; 1 if the kernel cannot cut bursts. */
unsigned int link_probe_segments(void);
/*
 * connected_tx.c: connects tx, whose socket is bound, and determines the IPv4 ID of its next
 * datagram.  Returns 0 or a negative errno; after an error the socket is useless.
 */
int link_tx_connect(struct link_tx *tx, const union link_sockaddr *dst, socklen_t dst_bytes);
/* connected_tx.c: link_send() for a connected tx; segment is 0 for a single datagram. */
int link_tx_send(struct link_tx *tx, const struct iovec *pieces, unsigned int count,
		 unsigned int segment);
/* udp.c: returns the number of datagrams dropped at this socket since its creation. */
uint32_t link_socket_drops(int fd);
/* udp.c: receives a batch from fd; leaves batch->addr unchanged.  Returns 0 or a negative errno. */
int link_receive_from(struct link *link, int fd, struct link_batch *batch);
/* udp.c: makes the kernel report traffic class and hop limit of datagrams received at fd. */
void link_enable_rx_class(int fd, bool ipv4);
/*
 * udp.c: accepts IPv6 datagrams without a UDP checksum as well, which the kernel's soft RoCE (rxe)
 * sends.  The ICRC covers more than that checksum.
 */
void link_accept_no_checksum(int fd);

#endif
