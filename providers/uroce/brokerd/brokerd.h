/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declarations shared by the files of uroce-broker (Documentation/decisions/broker.md).  One thread
 * serves all clients; it must not block, and validates everything that clients send.
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
#include "link/fd.h"
#include "link/scm_rights.h"

/* ---- clients (client.c, connection.c) ---- */

enum client_state {
	CLIENT_NEW,    /* accepted, no HELLO received yet */
	CLIENT_WORKER, /* client with slots */
	CLIENT_GUEST,  /* client without slots, such as uroce-stat */
	CLIENT_GONE,   /* disconnected; freed by connection_free_ended() */
	CLIENT_STATES,
};

struct client {
	struct client *next;
	uint32_t number; /* unique number, never SLOTS_NO_CLIENT */
	enum client_state state;
	int control_fd;
	int delivery_fd;       /* CLIENT_WORKER: delivery socket; otherwise -1 */
	uint32_t slot;	       /* CLIENT_WORKER: its first slot */
	pid_t pid;	       /* 0: not visible in the broker's PID namespace */
	bool returned;	       /* CLIENT_WORKER: had its slots from an earlier broker */
	bool is_claiming;      /* CLIENT_WORKER: returning, and has not sent GSI, its last claim */
	bool uses_gsi;	       /* receives MADs of queue pair 1 */
	int last_messages_fd;  /* memory file of the client's last messages, or -1 */
	uint64_t connected_at; /* CLIENT_NEW: time of the connection, ns */
	/*
	 * Time at which the client was appointed to watch the broker or sent its last PING, ns; 0:
	 * not appointed.
	 */
	uint64_t watched_at;
};

/* ---- addresses (address.c, member.c, probe.c) ---- */

enum member_state {
	MEMBER_UNUSED,
	MEMBER_RESERVED, /* reserved for the client of its slot, which has not requested it yet */
	MEMBER_USED,	 /* used by a client */
};

struct member {
	struct member *next;
	/* First slot of the client that uses the member, or of the one that used it last. */
	uint32_t slot;
	enum member_state state;
	int fd; /* ADDRESS_UNSTEERED: -1 */
};

enum address_state {
	ADDRESS_KNOWN,	      /* the owners of all members are known */
	ADDRESS_PARTLY_KNOWN, /* the group has members of unknown owner, from an earlier broker */
	ADDRESS_UNSTEERED,    /* the kernel cannot steer: one socket is shared by all clients */
	ADDRESS_STATES,
};

struct address {
	struct address *next;
	struct uroce_broker_endpoint endpoint;
	enum address_state state;
	int gsi_fd;  /* member for queue pair 1; ADDRESS_UNSTEERED: the shared socket */
	int sink_fd; /* member for slots that no client holds; ADDRESS_UNSTEERED: -1 */
	struct member *members;
	struct broker_group group;
	/* Used in state ADDRESS_PARTLY_KNOWN. */
	uint32_t round; /* number of the round of probes; odd while members are counted */
	uint32_t rounds_unchanged; /* number of rounds since the last change of the group */
	uint64_t probe_at;
};

/* ---- last messages of clients that have ended (last_mads.c) ---- */

struct ended_client {
	struct ended_client *next;
	int fd; /* memory file of the messages */
	struct last_messages schedule;
};

/* ---- MADs that wait for their client (gsi.c) ---- */

struct datagram {
	struct uroce_broker_datagram head;
	uint8_t bytes[BROKER_DATAGRAM_MAX];
};

struct kept_mad {
	struct kept_mad *next;
	struct datagram *datagram; /* allocated without the unused part of bytes */
};

/* Counters for debugging; they are not reported anywhere. */
struct brokerd_counts {
	uint64_t foreign_connections;
	uint64_t bad_messages;
	uint64_t bad_packets;
	uint64_t delivered;
	uint64_t lost;
};

struct brokerd {
	int listener;
	int spare_fd; /* reserve, closed to accept a connection when no descriptor is left */
	unsigned int name_number; /* number in the listener's name */
	int epoll_fd;
	bool stays_when_idle;
	bool superseded;
	bool receiving_from_others; /* receive_from_others() is running */
	uid_t user;
	uint32_t probe_secret;
	uint64_t idle_ns;
	uint64_t idle_since; /* time since when there are no clients, ns; 0: there are clients */
	uint64_t started_at;
	uint32_t last_client_number;
	struct client *clients;
	/* Client chosen last to reply to MADs that belong to no client, or NULL. */
	struct client *last_replier;
	struct address *addresses;
	/* Closed addresses, freed once no pending epoll event can refer to them. */
	struct address *removed_addresses;
	struct broker_slots slots;
	struct broker_ports ports;
	struct target_requests known_requests;
	struct ended_client *ended_clients;
	struct kept_mad *kept_mads, **kept_mads_end;
	unsigned int kept_count;
	uint64_t kept_deadline;	  /* time at which kept_mads are routed again, ns */
	struct datagram datagram; /* the datagram received last */
	struct brokerd_counts counts;
};

enum {
	NS_PER_MS = 1000000,
	UDP_PORT = 4791, /* destination port of RoCEv2 */
};
static inline uint64_t brokerd_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Kind of an epoll event, in the lower 3 bits of the pointer to its object. */
enum event_source {
	EVENT_LISTENER,
	EVENT_CONTROL,	/* object is a struct client */
	EVENT_DELIVERY, /* object is a struct client */
	EVENT_GSI,	/* object is a struct address */
	EVENT_SINK,	/* object is a struct address */
};
enum { EVENT_SOURCE_MASK = 7 };
int brokerd_watch(const struct brokerd *brokerd, int fd, enum event_source source, void *object);
/*
 * Converts an error for a reply: -EMFILE becomes -ENFILE, so that the client does not take it for a
 * limit of its own process.
 */
int brokerd_reply_error(int error);

/* client.c */
void client_set_state(struct client *client, enum client_state state);
struct client *client_of_slot(const struct brokerd *brokerd, uint32_t slot);
struct client *client_find(const struct brokerd *brokerd, uint32_t number);
/* Sends a message with its descriptors, without blocking.  Returns false on error. */
bool client_send(int fd, const union broker_message *message, const struct link_fds *fds);
/* Assigns a slot to the client.  Returns the socket that holds its name, or a negative errno. */
int client_assign_slot(struct brokerd *brokerd, struct client *client, uint32_t *slot);
/*
 * Finds a slot that the client holds but whose name is not bound: the kernel has dropped the socket
 * that a reply carried, because the client had no descriptor left.  Returns a socket with the name,
 * -ENOENT if there is no such slot, or another negative errno.
 */
int client_find_lost_slot(const struct brokerd *brokerd, const struct client *client,
			  uint32_t *slot);
void client_free_slots(struct brokerd *brokerd, const struct client *client);
/*
 * Updates which slots are absent: those whose name is bound although no client of this broker holds
 * them.  Returns true if there are any, or if the kernel does not list the names.
 */
bool client_update_absent_slots(struct brokerd *brokerd);

/* connection.c */
void connection_accept(struct brokerd *brokerd);
void connection_receive(struct brokerd *brokerd, struct client *client);
void connection_receive_delivery(struct brokerd *brokerd, struct client *client);
/* Frees clients in state CLIENT_GONE, and ends connections that have not sent HELLO in time. */
void connection_free_ended(struct brokerd *brokerd, uint64_t now);

/* request.c.  Returns true if this is the type of a message that a client sends after its HELLO. */
bool request_is_known_type(uint32_t type);
/* Executes a request.  Returns true if *message and *fds now contain a reply. */
bool request_serve(struct brokerd *brokerd, struct client *client, union broker_message *message,
		   struct link_fds *fds);

/* address.c.  Functions return 0 or a negative errno unless noted. */
void address_set_state(struct address *address, enum address_state state);
struct address *address_find(const struct brokerd *brokerd,
			     const struct uroce_broker_endpoint *endpoint);
struct member *address_find_member(const struct address *address, uint32_t slot);
/* Returns true if the client with this first slot uses the address. */
bool address_is_used(const struct address *address, uint32_t slot);
/* Returns the descriptor of the member that the client with this first slot uses, or -1. */
int address_member_fd(const struct address *address, uint32_t slot);
/* Builds the steering program and attaches it. */
int address_attach_program(const struct brokerd *brokerd, const struct address *address);
/* Attaches a new program after a change; does nothing for an unsteered address. */
int address_update_program(struct brokerd *brokerd, struct address *address);
void address_update_all_programs(struct brokerd *brokerd);
void address_close_sockets(struct address *address);
void address_free(struct address *address);

/* member.c.  Functions return 0 or a negative errno unless noted. */
int member_request(struct brokerd *brokerd, struct client *client,
		   struct uroce_broker_address *request, struct link_fds *fds);
void member_release(struct brokerd *brokerd, const struct client *client,
		    const struct uroce_broker_endpoint *endpoint);
/* Releases the members of a client that has disconnected. */
void member_release_all(struct brokerd *brokerd, const struct client *client);
/*
 * Returns the descriptor of the client's member, which remains owned by the broker, or a negative
 * errno.  If the client has not requested its member yet, the member is made and reserved for it.
 */
int member_look_up(struct brokerd *brokerd, struct address *address, const struct client *client);
/* Frees the addresses that were removed. */
void member_free_removed(struct brokerd *brokerd);

/* probe.c */
void probe_start(struct address *address, uint64_t now);
/* Must be called at the time address->probe_at. */
void probe_run_round(struct brokerd *brokerd, struct address *address, uint64_t now);
void probe_receive_reply(struct brokerd *brokerd, const struct client *client,
			 const struct uroce_broker_probed *probed);
/*
 * Returns the index of the member fd, which was added last and has index first or above, or
 * GROUP_MEMBERS_MAX if the index was not found.
 */
uint32_t probe_find_last(struct brokerd *brokerd, struct address *address, int fd, uint32_t first);
/* Processes a datagram that the broker's own member (GROUP_GSI or GROUP_SINK) has received. */
void probe_receive(struct brokerd *brokerd, struct address *address, unsigned int owner,
		   const uint8_t *bytes, size_t length);

/* socket.c: UDP sockets */
int socket_bind(const struct uroce_broker_endpoint *endpoint, uint16_t port, bool shared);
/*
 * Makes a member of the port's group.  merges enables UDP_GRO, for members of clients.  Returns the
 * descriptor or a negative errno.
 */
int socket_make_member(const struct uroce_broker_endpoint *endpoint, bool merges);
int socket_send(int fd, const struct uroce_broker_endpoint *to, uint16_t port, const void *bytes,
		size_t length);
/* Sets the traffic class, and hop limit and path MTU discovery as for packets of queue pair 1. */
int socket_set_packet_options(int fd, bool ipv4, uint8_t traffic_class);
uint16_t socket_port(int fd);
/* Receives a datagram, without head.destination.  Returns false if there is none. */
bool socket_receive(int fd, struct datagram *datagram);
void socket_drain(int fd);

/* gsi.c */
void gsi_receive(struct brokerd *brokerd, struct address *address);
/* Processes brokerd->datagram, which a client has passed on. */
void gsi_receive_passed_on(struct brokerd *brokerd);
/* Routes the kept MADs again, after a change of clients or ports. */
void gsi_route_kept(struct brokerd *brokerd);
/* Returns the time at which gsi_route_kept() must be called, or UINT64_MAX. */
uint64_t gsi_deadline(const struct brokerd *brokerd);
void gsi_remove_client(struct brokerd *brokerd, const struct client *client);
/* Appoints a client to send PING, unless the appointed one still sends it. */
void gsi_appoint_watcher(struct brokerd *brokerd, uint64_t now);

/*
 * closer.c.  Closes the connection of another user and sets *fd to -1.  While many of them wait to
 * be closed, blocks until one is, normally for less than a millisecond.
 */
void closer_close(int *fd);
/* Makes closer_close() work if no descriptor is left later. */
void closer_prepare(void);

/* last_mads.c */
void last_mads_start(struct brokerd *brokerd, int *last_messages_fd, uint64_t now);
/*
 * Executes the steps of ended clients that are due.  Returns true if kept MADs no longer need to
 * wait for last messages, so that gsi_route_kept() must be called.
 */
bool last_mads_serve(struct brokerd *brokerd, uint64_t now);
uint64_t last_mads_deadline(const struct brokerd *brokerd);
/* Returns true if MADs for no client must be kept until last messages have been sent. */
bool last_mads_come_first(const struct brokerd *brokerd);

#endif
