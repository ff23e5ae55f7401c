/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Messages between uroce-broker and its clients (Documentation/decisions/broker.md).  A client is a
 * worker of a process, with one or more slots, or a guest such as uroce-stat.  One message is one
 * packet of a SOCK_SEQPACKET socket.  Integers are in host byte order; structures have no padding;
 * reserved fields are 0.
 */
#ifndef RDMA_UROCE_BROKER_H
#define RDMA_UROCE_BROKER_H

#include <linux/types.h>

/* Incremented for every change of a format in this file; part of every socket name. */
#define UROCE_BROKER_VERSION 1

/*
 * Abstract socket names (without the leading NUL) as printf formats: version, number.  A user's
 * broker is the listener of that user with the highest number.  The form of this name is the same
 * in all versions: by it a program finds brokers of other versions, to name them in errors.
 */
#define UROCE_BROKER_NAME "uroce-broker/%u/%u"
#define UROCE_BROKER_NAMES 64
/* Lock of a slot: its owner holds a socket bound to this name, which does not listen. */
#define UROCE_BROKER_SLOT_NAME "uroce-broker/%u/slot/%u"

/* A queue pair number is slot << UROCE_BROKER_SLOT_SHIFT | index in the slot. */
#define UROCE_BROKER_SLOT_SHIFT 12
#define UROCE_BROKER_SLOTS 4096
#define UROCE_BROKER_NO_SLOT 0xffffffff
/* Maximum number of slots of one worker. */
#define UROCE_BROKER_CLIENT_SLOTS 64

/*
 * Probe of a group: a datagram to UDP port 4791 that the steering program assigns to the member
 * whose index it contains.  Big-endian.  To other receivers it is a BTH with transport header
 * version 15 for queue pair 0, which they drop.
 */
#define UROCE_BROKER_PROBE 0xff0f0000
struct uroce_broker_probe {
	__u32 opcode;	   /* UROCE_BROKER_PROBE */
	__u32 destination; /* 0 */
	__u32 index;
	__u32 secret; /* as in WELCOME; workers reply only to this secret */
	__u32 round;  /* Distinguishes late replies from new ones. */
};

enum uroce_broker_type {
	/* On the control connection: requests of clients and replies of the broker. */
	UROCE_BROKER_HELLO = 1,	    /* struct uroce_broker_hello */
	UROCE_BROKER_WELCOME,	    /* struct uroce_broker_welcome */
	UROCE_BROKER_SLOT,	    /* struct uroce_broker_slot: another slot */
	UROCE_BROKER_SLOT_REPLY,    /* struct uroce_broker_slot */
	UROCE_BROKER_ADDRESS,	    /* struct uroce_broker_address */
	UROCE_BROKER_ADDRESS_REPLY, /* struct uroce_broker_address */
	UROCE_BROKER_GSI,	    /* struct uroce_broker_switch: use of queue pair 1 */
	UROCE_BROKER_GSI_REPLY,	    /* struct uroce_broker_switch */
	UROCE_BROKER_PORT,	    /* struct uroce_broker_ports */
	UROCE_BROKER_PORT_LISTEN,   /* struct uroce_broker_ports, of one port */
	UROCE_BROKER_PORT_REPLY,    /* struct uroce_broker_ports, the same ports */
	UROCE_BROKER_LOOKUP,	    /* struct uroce_broker_lookup */
	UROCE_BROKER_LOOKUP_REPLY,  /* struct uroce_broker_lookup */
	UROCE_BROKER_CONNECT,	    /* struct uroce_broker_connect */
	UROCE_BROKER_CONNECT_REPLY, /* struct uroce_broker_connect */
	UROCE_BROKER_LIST,	    /* struct uroce_broker_list, empty */
	UROCE_BROKER_LIST_REPLY,    /* struct uroce_broker_list */
	UROCE_BROKER_PING,	    /* struct uroce_broker_header */
	UROCE_BROKER_PONG,	    /* struct uroce_broker_header */
	/* Without a reply. */
	UROCE_BROKER_ADDRESS_END, /* struct uroce_broker_address */
	UROCE_BROKER_PORT_END,	  /* struct uroce_broker_ports, of one port */
	UROCE_BROKER_PROBED,	  /* struct uroce_broker_probed, on the delivery socket */
	UROCE_BROKER_SUPERSEDE,	  /* struct uroce_broker_header, between brokers: exit */
	/* On the delivery socket. */
	UROCE_BROKER_DATAGRAM, /* struct uroce_broker_datagram and the datagram; both directions */
	UROCE_BROKER_CONNECTION, /* struct uroce_broker_connect, with the slot of the other end */
	UROCE_BROKER_WATCH, /* struct uroce_broker_switch: starts or stops a PING every 0.5 s */
};

struct uroce_broker_header {
	__u32 type; /* enum uroce_broker_type */
	__u32 version;
	__u32 number; /* Number of the request, repeated in its reply. */
	__s32 error;  /* Reply: 0 or a negative errno; otherwise 0. */
};

enum uroce_broker_role {
	UROCE_BROKER_WORKER = 1, /* new worker, needs a slot */
	UROCE_BROKER_RETURNING,	 /* worker with slots of an earlier broker */
	UROCE_BROKER_GUEST,	 /* client without slot */
};

struct uroce_broker_hello {
	struct uroce_broker_header header;
	__u32 role;			       /* enum uroce_broker_role */
	__u32 slots;			       /* RETURNING: number of slots; otherwise 0 */
	__u32 slot[UROCE_BROKER_CLIENT_SLOTS]; /* only used entries are sent */
};

/* Passes the delivery socket to a worker, and to a new worker the lock of its slot. */
struct uroce_broker_welcome {
	struct uroce_broker_header header;
	__u32 role;   /* as in HELLO */
	__u32 slot;   /* Slot of a new worker, first slot of a returning one, or NO_SLOT. */
	__u32 secret; /* Secret in the probes of this broker. */
	__u32 reserved;
};

/* The reply passes the lock of the slot. */
struct uroce_broker_slot {
	struct uroce_broker_header header;
	__u32 slot; /* Reply: additional slot; request: NO_SLOT. */
	__u32 reserved;
};

struct uroce_broker_endpoint {
	__u8 gid[16];	/* IPv4 as ::ffff:a.b.c.d */
	__u32 scope_id; /* interface index of a link-local address, otherwise 0 */
	__u32 reserved;
};

enum uroce_broker_address_flags {
	/* The client has the member and passes it in the request; the reply repeats the flag. */
	UROCE_BROKER_CLAIM = 1,
	/*
	 * In replies and claims: the kernel cannot steer.  The member is a socket that all clients
	 * share; they forward datagrams for other slots as DATAGRAM.
	 */
	UROCE_BROKER_UNSTEERED = 2,
};

/* The reply passes the member, except to a claim. */
struct uroce_broker_address {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint endpoint;
	__u32 flags; /* enum uroce_broker_address_flags */
	__u32 reserved;
};

/* UROCE_BROKER_GSI may pass the memory file of last messages. */
enum uroce_broker_switch_flags {
	UROCE_BROKER_ON = 1,
	UROCE_BROKER_MESSAGES = 2, /* GSI, ON: passes the file */
};

struct uroce_broker_switch {
	struct uroce_broker_header header;
	__u32 flags; /* enum uroce_broker_switch_flags */
	__u32 reserved;
};

enum uroce_broker_port_flags {
	/* May share its number with ports that have this flag, but cannot begin to listen then. */
	UROCE_BROKER_PORT_REUSE = 1,
	UROCE_BROKER_PORT_AF_ONLY = 2,	 /* :: does not include IPv4 */
	UROCE_BROKER_PORT_RETURNING = 4, /* bound at an earlier broker */
	UROCE_BROKER_PORT_LISTENING = 8, /* RETURNING: the port listens */
	UROCE_BROKER_PORT_CHOSEN = 16,	 /* RETURNING: the number was chosen by a broker */
};

struct uroce_broker_port {
	struct uroce_broker_endpoint endpoint; /* ::ffff:0.0.0.0, ::: any address */
	__u16 space;			       /* RDMA_PS_* */
	__u16 port;			       /* host order; 0: any free port */
	__u32 flags;			       /* enum uroce_broker_port_flags */
	__u32 id;			       /* chosen by the client; unique among its ports */
	__u32 reserved;
};

#define UROCE_BROKER_PORTS 64
struct uroce_broker_ports {
	struct uroce_broker_header header;
	__u32 ports; /* number of ports; more than 1 only if all are RETURNING */
	__u32 reserved;
	struct uroce_broker_port port[UROCE_BROKER_PORTS]; /* only used entries are sent */
};

/*
 * Requests the member of a slot on an address; the reply passes the member.  The client of the slot
 * has it already, or gets it when it requests the address.
 */
struct uroce_broker_lookup {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint endpoint;
	__u32 slot;
	__u32 reserved;
};

enum uroce_broker_purpose {
	UROCE_BROKER_SHARED_MEMORY = 1,
	UROCE_BROKER_STATISTICS,
};

/* The reply and CONNECTION each pass one end of a socket pair. */
struct uroce_broker_connect {
	struct uroce_broker_header header;
	__u32 slot;    /* Slot of the other end; NO_SLOT in CONNECTION if that has none. */
	__u32 purpose; /* enum uroce_broker_purpose */
};

struct uroce_broker_listed {
	__u32 slot;
	__u32 pid; /* 0: not visible to the broker */
};

#define UROCE_BROKER_LISTED 64
struct uroce_broker_list {
	struct uroce_broker_header header;
	__u32 first; /* request: lowest slot to list */
	/* reply: number of entries, in order of slots; less than LISTED at the end of the list */
	__u32 clients;
	struct uroce_broker_listed client[UROCE_BROKER_LISTED];
};

struct uroce_broker_probed {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint endpoint;
	__u32 index;
	__u32 round;
};

enum uroce_broker_reason {
	UROCE_BROKER_MISDIRECTED = 1, /* for another slot than that of the socket, or damaged */
	UROCE_BROKER_MAD_OWN,	      /* for this client, by id, listener or REQ; or a bad packet */
	UROCE_BROKER_MAD_ANY,	      /* for the client that knows its connection; sent to all */
	UROCE_BROKER_MAD_NONE,	      /* for no client: the receiver answers for the host */
};

struct uroce_broker_datagram {
	struct uroce_broker_header header;
	struct uroce_broker_endpoint source;
	struct uroce_broker_endpoint destination;
	__u16 source_port;
	__u16 bytes;	    /* length of the datagram that follows */
	__u8 traffic_class; /* 0 if received by the broker, which does not read these two fields */
	__u8 hop_limit;
	__u16 reason; /* enum uroce_broker_reason */
};

#endif
