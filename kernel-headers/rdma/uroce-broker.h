/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages between uroce-broker and its clients (Documentation/decisions/broker.md).  A client is a
 * worker of a process, with one slot or more, or a guest such as uroce-stat.  One message is one
 * packet of a SOCK_SEQPACKET socket.  Numbers are in host byte order, structures have no padding,
 * and what is reserved is 0.
 */
#ifndef RDMA_UROCE_BROKER_H
#define RDMA_UROCE_BROKER_H

#include <linux/types.h>

/* Raised with every change of this file; part of every name. */
#define UROCE_BROKER_VERSION 1

/*
 * Abstract names (without the leading NUL), for printf: version, number.  A user's broker is the
 * listener of that user with the highest number.
 */
#define UROCE_BROKER_NAME "uroce-broker/%u/%u"
#define UROCE_BROKER_NAMES 64
/* Bound to a socket that does not listen, which the owner of the slot holds. */
#define UROCE_BROKER_SLOT_NAME "uroce-broker/%u/slot/%u"

/* A queue pair number is slot << UROCE_BROKER_SLOT_SHIFT | index in the slot. */
#define UROCE_BROKER_SLOT_SHIFT 12
#define UROCE_BROKER_SLOTS 4096
#define UROCE_BROKER_NO_SLOT 0xffffffff
/* Slots of one worker. */
#define UROCE_BROKER_CLIENT_SLOTS 64

/*
 * A datagram to UDP port 4791 that the steering program gives to the member of an index.
 * Big-endian.  It looks like a BTH of transport header version 15 for queue pair 0, which no
 * receiver accepts.
 */
#define UROCE_BROKER_PROBE 0xff0f0000
struct uroce_broker_probe {
	__u32 opcode;	   /* UROCE_BROKER_PROBE */
	__u32 destination; /* 0 */
	__u32 index;
	__u32 secret; /* That of WELCOME; workers answer no probe with another one. */
	__u32 round;  /* Distinguishes late answers from new ones. */
};

enum uroce_broker_type {
	/* Requests of a client, and the broker's replies, on the control connection. */
	UROCE_BROKER_HELLO = 1,	      /* struct uroce_broker_hello */
	UROCE_BROKER_WELCOME,	      /* struct uroce_broker_welcome */
	UROCE_BROKER_SLOT,	      /* struct uroce_broker_slot: one more */
	UROCE_BROKER_SLOT_REPLY,      /* struct uroce_broker_slot */
	UROCE_BROKER_ADDRESS,	      /* struct uroce_broker_address */
	UROCE_BROKER_ADDRESS_REPLY,   /* struct uroce_broker_address */
	UROCE_BROKER_GSI,	      /* struct uroce_broker_switch: use queue pair 1 */
	UROCE_BROKER_GSI_REPLY,	      /* struct uroce_broker_switch */
	UROCE_BROKER_PORT,	      /* struct uroce_broker_ports */
	UROCE_BROKER_PORT_LISTEN,     /* struct uroce_broker_ports, of one port */
	UROCE_BROKER_PORT_REPLY,      /* struct uroce_broker_ports, the same ports */
	UROCE_BROKER_LOOK,	      /* struct uroce_broker_look */
	UROCE_BROKER_LOOK_REPLY,      /* struct uroce_broker_look */
	UROCE_BROKER_INTRODUCE,	      /* struct uroce_broker_introduce */
	UROCE_BROKER_INTRODUCE_REPLY, /* struct uroce_broker_introduce */
	UROCE_BROKER_LIST,	      /* struct uroce_broker_list, empty */
	UROCE_BROKER_LIST_REPLY,      /* struct uroce_broker_list */
	UROCE_BROKER_PING,	      /* struct uroce_broker_header */
	UROCE_BROKER_PONG,	      /* struct uroce_broker_header */
	/* Without a reply. */
	UROCE_BROKER_ADDRESS_END, /* struct uroce_broker_address */
	UROCE_BROKER_PORT_END,	  /* struct uroce_broker_ports, of one port */
	UROCE_BROKER_PROBED,	  /* struct uroce_broker_probed, on the delivery socket */
	UROCE_BROKER_SUPERSEDE,	  /* struct uroce_broker_header, between brokers: end */
	/* On the delivery socket. */
	UROCE_BROKER_DATAGRAM, /* struct uroce_broker_datagram, then the datagram; both ways */
	UROCE_BROKER_VISITOR,  /* struct uroce_broker_introduce: slot of the other end */
	UROCE_BROKER_WATCH,    /* struct uroce_broker_switch: send PING every 0.5 s, or no longer */
};

struct uroce_broker_header {
	__u32 type; /* enum uroce_broker_type */
	__u32 version;
	__u32 number; /* Number of the request, which its reply repeats. */
	__s32 error;  /* Result in a reply: 0 or a negative errno; 0 in all others. */
};

enum uroce_broker_role {
	UROCE_BROKER_WORKER = 1, /* new: it gets a slot */
	UROCE_BROKER_RETURNING,	 /* it has slots from an earlier broker */
	UROCE_BROKER_GUEST,	 /* it wants none */
};

struct uroce_broker_hello {
	struct uroce_broker_header header;
	__u32 role;			       /* enum uroce_broker_role */
	__u32 slots;			       /* RETURNING: number of slots; else 0 */
	__u32 slot[UROCE_BROKER_CLIENT_SLOTS]; /* only slots of them are sent */
};

/* With the delivery socket of a worker, and the lock of a new one's slot. */
struct uroce_broker_welcome {
	struct uroce_broker_header header;
	__u32 role;   /* as in HELLO */
	__u32 slot;   /* A new worker's slot, a returning worker's first one, or NO_SLOT. */
	__u32 secret; /* The secret in this broker's probes. */
	__u32 reserved;
};

/* The reply has the slot's lock with it. */
struct uroce_broker_slot {
	struct uroce_broker_header header;
	__u32 slot; /* The further slot in a reply; NO_SLOT in a request. */
	__u32 reserved;
};

struct uroce_broker_endpoint {
	__u8 gid[16];	/* IPv4 as ::ffff:a.b.c.d */
	__u32 scope_id; /* interface index of a link-local address, else 0 */
	__u32 reserved;
};

enum uroce_broker_address_flags {
	/* The client has the member, which comes with the request; the reply repeats the flag. */
	UROCE_BROKER_CLAIM = 1,
	/*
	 * Reply, and claim: the kernel cannot steer.  The member is one socket that all clients
	 * read; they send what is not theirs as DATAGRAM.
	 */
	UROCE_BROKER_UNSTEERED = 2,
};

/* The reply to a request that is no claim has the member with it. */
struct uroce_broker_address {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint endpoint;
	__u32 flags; /* enum uroce_broker_address_flags */
	__u32 reserved;
};

/* GSI may have the memory file of last messages with it. */
enum uroce_broker_switch_flags {
	UROCE_BROKER_ON = 1,
	UROCE_BROKER_MESSAGES = 2, /* GSI, ON: the file is there */
};

struct uroce_broker_switch {
	struct uroce_broker_header header;
	__u32 flags; /* enum uroce_broker_switch_flags */
	__u32 reserved;
};

enum uroce_broker_port_flags {
	UROCE_BROKER_PORT_REUSE = 1,	 /* others that say so too may bind it; one listens */
	UROCE_BROKER_PORT_AF_ONLY = 2,	 /* :: does not include IPv4 */
	UROCE_BROKER_PORT_RETURNING = 4, /* it was bound at an earlier broker */
	UROCE_BROKER_PORT_LISTENING = 8, /* RETURNING: and it listens */
	UROCE_BROKER_PORT_CHOSEN = 16,	 /* RETURNING: its number was chosen by a broker */
};

struct uroce_broker_port {
	struct uroce_broker_endpoint endpoint; /* ::ffff:0.0.0.0 and :: are any */
	__u16 space;			       /* RDMA_PS_* */
	__u16 port;			       /* host order; 0: a free one is to be chosen */
	__u32 flags;			       /* enum uroce_broker_port_flags */
	__u32 id;			       /* chosen by the client, which may share a number */
	__u32 reserved;
};

#define UROCE_BROKER_PORTS 64
struct uroce_broker_ports {
	struct uroce_broker_header header;
	__u32 ports; /* several only if all are RETURNING */
	__u32 reserved;
	struct uroce_broker_port port[UROCE_BROKER_PORTS]; /* only ports of them are sent */
};

/*
 * The reply has the member of the slot on the address with it: its client has it already, or gets
 * it when it asks for it.
 */
struct uroce_broker_look {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint endpoint;
	__u32 slot;
	__u32 reserved;
};

enum uroce_broker_purpose {
	UROCE_BROKER_SHARED_MEMORY = 1,
	UROCE_BROKER_STATISTICS,
};

/* The reply, and VISITOR, have one end of a socket pair with them. */
struct uroce_broker_introduce {
	struct uroce_broker_header header;
	__u32 slot;    /* The other end's slot; NO_SLOT in VISITOR if it has none. */
	__u32 purpose; /* enum uroce_broker_purpose */
};

struct uroce_broker_listed {
	__u32 slot;
	__u32 pid; /* 0: not visible to the broker */
};

#define UROCE_BROKER_LISTED 64
struct uroce_broker_list {
	struct uroce_broker_header header;
	__u32 first;   /* request: the lowest slot to list */
	__u32 clients; /* reply: number of them, by rising slots; less than LISTED: the last ones */
	struct uroce_broker_listed client[UROCE_BROKER_LISTED];
};

struct uroce_broker_probed {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint endpoint;
	__u32 index;
	__u32 round;
};

enum uroce_broker_reason {
	UROCE_BROKER_MISDIRECTED = 1, /* for another slot than the socket's, or damaged */
	UROCE_BROKER_MAD_OWN,	      /* for this client by id, listener or request */
	UROCE_BROKER_MAD_ANY,	      /* for the client that knows it */
	UROCE_BROKER_MAD_NONE,	      /* for no client: answer for the host */
};

struct uroce_broker_datagram {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint source;
	struct uroce_broker_endpoint destination;
	__u16 source_port;
	__u16 bytes;	    /* length of the datagram that follows */
	__u8 traffic_class; /* 0 from the broker, as it does not ask the kernel for either */
	__u8 hop_limit;
	__u16 reason; /* enum uroce_broker_reason */
};

#endif
