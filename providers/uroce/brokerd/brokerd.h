/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * uroce-broker (Documentation/decisions/broker.md): what its files share.  It has one thread that
 * works, never blocks, and trusts nothing that a client sends.
 */
#ifndef UROCE_BROKERD_BROKERD_H
#define UROCE_BROKERD_BROKERD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/group.h"
#include "broker/last_messages.h"
#include "broker/message.h"
#include "broker/ports.h"
#include "broker/slots.h"
#include "broker/target.h"
#include "link/passing.h"

/* ---- clients (client.c, connection.c) ---- */

enum client_state {
	CLIENT_NEW,    /* accepted: its HELLO is awaited */
	CLIENT_WORKER, /* has slots */
	CLIENT_GUEST,  /* has none */
	CLIENT_GONE,   /* to be freed */
	CLIENT_STATES,
};

struct client {
	struct client *next;
	uint32_t number; /* SLOTS_NO_CLIENT is none's */
	enum client_state state;
	int control;
	int delivery;	   /* CLIENT_WORKER; or -1 */
	uint32_t slot;	   /* CLIENT_WORKER: its first one */
	pid_t pid;	   /* 0: not visible here */
	bool returned;	   /* CLIENT_WORKER: from an earlier broker */
	bool uses_gsi;	   /* queue pair 1 */
	int messages_fd;   /* memory file of its last messages; or -1 */
	uint64_t since;	   /* CLIENT_NEW: accepted at, in nanoseconds */
	uint64_t answered; /* time of its appointment or of its last PING; 0: not appointed */
};

/* ---- addresses (address.c, member.c, probe.c) ---- */

enum member_state {
	MEMBER_UNUSED,
	MEMBER_PROMISED, /* kept for the client of its slot, which has not asked for it yet */
	MEMBER_USED,	 /* by a client that lives */
};

struct member {
	struct member *next;
	uint32_t slot; /* first slot of its client, or of the client that had it */
	enum member_state state;
	int fd; /* ADDRESS_UNSTEERED: -1 */
};

enum address_state {
	ADDRESS_KNOWN,	   /* all indexes are */
	ADDRESS_PARTLY,	   /* members of an earlier broker's clients are in the group */
	ADDRESS_UNSTEERED, /* one socket for all */
	ADDRESS_STATES,
};

struct address {
	struct address *next;
	struct uroce_broker_endpoint endpoint;
	enum address_state state;
	int gsi_fd;  /* member for queue pair 1; ADDRESS_UNSTEERED: the one socket */
	int sink_fd; /* member for slots that nobody holds; ADDRESS_UNSTEERED: -1 */
	struct member *members;
	struct broker_group group;
	/* ADDRESS_PARTLY: */
	uint32_t round;	 /* number of the round of probes; odd while members are counted */
	uint32_t probes; /* number of rounds since something has changed */
	uint64_t probe_at;
};

/* ---- last messages of clients that have gone (last.c) ---- */

struct dead {
	struct dead *next;
	int fd; /* memory file */
	struct last_messages last;
};

/* ---- MADs that wait for their client (gsi.c) ---- */

struct datagram {
	struct uroce_broker_datagram head;
	uint8_t bytes[BROKER_DATAGRAM_MAX];
};

struct kept_mad {
	struct kept_mad *next;
	struct datagram *datagram; /* memory for its bytes only */
};

/* Counters for a debugger; nothing prints them. */
struct brokerd_counts {
	uint64_t strangers;
	uint64_t bad_messages;
	uint64_t bad_packets;
	uint64_t delivered;
	uint64_t lost;
};

struct brokerd {
	int listener;
	int spare_fd;	   /* closed to accept a connection where no descriptor is left */
	unsigned int name; /* number of the listener's name */
	int epoll_fd;
	bool stays;
	bool superseded;
	bool receives_from_others; /* a conflict makes the broker read all connections */
	uid_t user;
	uint32_t secret;
	uint64_t idle_ns;
	uint64_t idle_since; /* 0: there are clients */
	uint64_t began;
	uint32_t last_number;
	struct client *clients;
	struct client *host; /* the last one that answered for the host; may be NULL */
	struct address *addresses;
	struct address *removed; /* to be freed when no event can name it */
	struct broker_slots slots;
	struct broker_ports ports;
	struct target_requests requests;
	struct dead *dead;
	struct kept_mad *kept, **kept_end;
	unsigned int kept_count;
	uint64_t kept_at;	  /* time of the next look at kept */
	struct datagram datagram; /* that was received last */
	struct brokerd_counts counts;
};

enum {
	NS_PER_MS = 1000000,
	UDP_PORT = 4791, /* destination port of RoCEv2 */
};
uint64_t brokerd_now(void);

/* Source of an epoll event: the lower bits of a pointer that is aligned to 8. */
enum event_source {
	EVENT_LISTENER,
	EVENT_CONTROL,	/* object: struct client */
	EVENT_DELIVERY, /* object: struct client */
	EVENT_GSI,	/* object: struct address */
	EVENT_SINK,	/* object: struct address */
};
enum { EVENT_SOURCE_MASK = 7 };
int brokerd_watch(const struct brokerd *brokerd, int fd, enum event_source source, void *object);
/* Returns -ENFILE for -EMFILE, which a client would take for its own limit, and else error. */
int brokerd_error(int error);
/* Closes *fd unless it is negative and makes it -1. */
void brokerd_close(int *fd);

/* client.c */
void client_set_state(struct client *client, enum client_state state);
struct client *client_of_slot(const struct brokerd *brokerd, uint32_t slot);
struct client *client_find(const struct brokerd *brokerd, uint32_t number);
/* Returns false if the message, with what goes with it, cannot be sent now. */
bool client_send(int fd, const union broker_message *message, const struct link_descriptors *with);
/* A further slot for a client, or its first: the lock, or a negative errno. */
int client_take_slot(struct brokerd *brokerd, struct client *client, uint32_t *slot);
void client_free_slots(struct brokerd *brokerd, const struct client *client);
/*
 * Looks for slots that processes have which are no clients of this broker.  Returns true if there
 * may be some.
 */
bool client_find_absent(struct brokerd *brokerd);

/* connection.c */
void connection_accept(struct brokerd *brokerd);
void connection_receive(struct brokerd *brokerd, struct client *client);
void connection_receive_delivery(struct brokerd *brokerd, struct client *client);
/* Frees clients that are CLIENT_GONE, and ends connections whose HELLO does not come. */
void connection_sweep(struct brokerd *brokerd, uint64_t now);

/* request.c: returns true if a client that has been greeted may send such a message. */
bool request_is_one(uint32_t type);
/* Carries out a request; *message becomes the reply if the result is true. */
bool request_serve(struct brokerd *brokerd, struct client *client, union broker_message *message,
		   struct link_descriptors *with);

/* address.c: 0 or a negative errno. */
void address_set_state(struct address *address, enum address_state state);
struct address *address_find(const struct brokerd *brokerd,
			     const struct uroce_broker_endpoint *endpoint);
struct member *address_find_member(const struct address *address, uint32_t slot);
/* Returns true if the client of a slot uses the address. */
bool address_is_used(const struct address *address, uint32_t slot);
/* The socket that the client of a slot has there, or -1. */
int address_member(const struct address *address, uint32_t slot);
/* Builds and attaches the program. */
int address_attach(const struct brokerd *brokerd, const struct address *address);
/* The slots or indexes have changed: attaches a new program, if there is one. */
int address_steer(struct brokerd *brokerd, struct address *address);
void address_steer_all(struct brokerd *brokerd);
void address_close_sockets(struct address *address);
void address_free(struct address *address);

/* member.c: 0 or a negative errno. */
int member_get(struct brokerd *brokerd, struct client *client, struct uroce_broker_address *request,
	       struct link_descriptors *with);
void member_end(struct brokerd *brokerd, const struct client *client,
		const struct uroce_broker_endpoint *endpoint);
/* The client has gone. */
void member_leave_all(struct brokerd *brokerd, const struct client *client);
/*
 * The member of the client's slot.  If the client has not asked for it yet, it is made and kept for
 * the client.  Returns its descriptor, which stays the broker's, or a negative errno.
 */
int member_look(struct brokerd *brokerd, struct address *address, const struct client *client);
/* Frees the addresses that nobody uses any more. */
void member_sweep(struct brokerd *brokerd);

/* probe.c */
void probe_begin(struct address *address, uint64_t now);
/* Must be called at address->probe_at. */
void probe_again(struct brokerd *brokerd, struct address *address, uint64_t now);
void probe_answered(struct brokerd *brokerd, const struct client *client,
		    const struct uroce_broker_probed *probed);
/*
 * Returns the index of a member that was added just now, which is first or above; GROUP_MEMBERS if
 * it is not found.
 */
uint32_t probe_last(struct brokerd *brokerd, struct address *address, int fd, uint32_t first);
/* A probe of this broker's has come to its own member (GROUP_GSI or GROUP_SINK). */
void probe_came(struct brokerd *brokerd, struct address *address, unsigned int owner,
		const uint8_t *bytes, size_t length);

/* socket.c: UDP sockets. */
int socket_bind(const struct uroce_broker_endpoint *endpoint, uint16_t port, bool shared);
/* A member of the port's group; merges: by UDP_GRO, for clients. */
int socket_member(const struct uroce_broker_endpoint *endpoint, bool merges);
int socket_send(int fd, const struct uroce_broker_endpoint *to, uint16_t port, const void *bytes,
		size_t length);
/* For the last messages: as queue pair 1's packets leave. */
int socket_set_class(int fd, bool ipv4, uint8_t traffic_class);
uint16_t socket_port(int fd);
/* The next datagram into *datagram, but for its destination; false when there is none. */
bool socket_receive(int fd, struct datagram *datagram);
void socket_drain(int fd);

/* gsi.c */
void gsi_receive(struct brokerd *brokerd, struct address *address);
/* A client passes on brokerd->datagram. */
void gsi_pass_on(struct brokerd *brokerd);
/* Routes the MADs that were kept once more, since more is known now. */
void gsi_take_kept(struct brokerd *brokerd);
/* When gsi_take_kept() is due, or UINT64_MAX. */
uint64_t gsi_deadline(const struct brokerd *brokerd);
void gsi_forget(struct brokerd *brokerd, const struct client *client);
/* Appoints a client to send PING, unless one is appointed that sends it. */
void gsi_appoint(struct brokerd *brokerd, uint64_t now);

/* stranger.c: closing it may take as long as another user likes. */
void stranger_close(int *fd);

/* last.c */
void last_begin(struct brokerd *brokerd, int *messages_fd, uint64_t now);
/* Returns true if MADs that have waited for last messages can go now. */
bool last_serve(struct brokerd *brokerd, uint64_t now);
uint64_t last_deadline(const struct brokerd *brokerd);
/* Returns true if MADs without an owner must wait until last messages have been sent. */
bool last_come_first(const struct brokerd *brokerd);

#endif
