/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The kernel's side of a struct rdma_cm_id: what librdmacm calls by a small number.  An id goes
 * through the states below as the kernel's does; which command needs which state is in the
 * commands. All functions are called with the lock of manager.h held.
 */
#ifndef UROCE_UCM_ID_H
#define UROCE_UCM_ID_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

#include "address.h"
#include "channel.h"
#include "cm/cm.h"
#include "progress/gsi.h"

#define UCM_STATES(X)                 \
	X(IDLE, "idle")               \
	X(BOUND, "bound")             \
	X(ADDR_QUERY, "resolving")    \
	X(ADDR_RESOLVED, "resolved")  \
	X(ROUTE_RESOLVED, "routed")   \
	X(CONNECT, "connect")         \
	X(DISCONNECT, "disconnected") \
	X(LISTEN, "listening")

enum ucm_state {
#define UCM_STATE_ENUM(id, name) UCM_##id,
	UCM_STATES(UCM_STATE_ENUM)
#undef UCM_STATE_ENUM
		UCM_STATE_COUNT,
};
const char *ucm_state_name(enum ucm_state state);

/* The largest backlog, and what is taken for one that is not positive. */
#define UCM_MAX_BACKLOG 1024

struct ucm_id {
	uint32_t handle;
	uint64_t serial; /* of all ids of the process: handles are used again */
	uint64_t uid;	 /* the library's name for it, in events */
	struct ucm_channel *channel;
	struct ucm_id *next, **link;		/* in the channel's list of ids */
	struct ucm_event *events, **last_event; /* events that count for the id */
	struct ucm_event *unread;		/* its own CONNECT_REQUEST, until that is read */
	enum ucm_state state;
	uint16_t space;	 /* port space */
	uint8_t qp_type; /* enum ibv_qp_type */
	uint32_t psn;	 /* what our queue pair expects first: random */
	uint32_t events_reported;
	bool removed;	/* its device is: it can be destroyed only */
	bool announced; /* a passive id: not before it was accepted is anything told of it */

	struct ucm_address source, destination;
	struct gsi_port *port; /* that source.port is; NULL: none, or a listener's */
	uint32_t device;       /* UCM_NO_DEVICE: not bound to one */
	uint8_t sgid[16], dgid[16];
	unsigned int sgid_index;
	bool has_route;
	uint8_t mtu, packet_life; /* codes, of the route */

	/* Options. */
	bool reuse, af_only, af_only_set, ack_timeout_set;
	uint8_t tos, ack_timeout;

	/* A listener. */
	struct cm_listener *listener; /* NULL: is none */
	void *listener_memory;
	unsigned int backlog, waiting; /* requests that may be, and are, unread */

	/* A connection, or a datagram's. */
	struct cm_conn *conn;	 /* NULL: never asked for */
	struct ucm_retry *retry; /* NULL: it will not be asked for again */
	uint32_t qpn;		 /* ours, as connect or accept said */
	uint8_t responder_resources;
	bool flow_control, peer_flow_control; /* rule C19: told in REQ and REP */

	struct ucm_group *groups;
};

/* A new id on channel, with the lowest free handle; NULL with errno. */
struct ucm_id *ucm_id_create(struct ucm_channel *channel, uint16_t space, uint8_t qp_type);
/*
 * The id of that handle; NULL with *error: ENOENT, EINVAL when it is another channel's, or ENXIO
 * when its device is gone.  The second one finds that one too.
 */
struct ucm_id *ucm_id_find(const struct ucm_channel *channel, uint32_t handle, int *error);
struct ucm_id *ucm_id_find_any(const struct ucm_channel *channel, uint32_t handle, int *error);
/* The same id, or NULL, after the lock was given up. */
struct ucm_id *ucm_id_again(uint32_t handle, uint64_t serial);
/*
 * To another channel, with its events and the ids of requests that have not been read.  0, or
 * ENOENT: it is such an id itself, and stays with its listener.
 */
int ucm_id_move(struct ucm_id *id, struct ucm_channel *channel);
/*
 * Nothing is told of it any more.  The peer is told what it should know, its events that are
 * unread are gone, and so are the ids of requests that have not been read.  One of these that is
 * destroyed itself is not told of, and its listener may have another in its place.
 */
void ucm_id_destroy(struct ucm_id *id);
/* Those whose device is gone are told so (DEVICE_REMOVAL); their connections and ports go. */
void ucm_ids_lose_devices(void);
/* All of a channel. */
void ucm_ids_destroy(struct ucm_channel *channel);
void ucm_ids_each(void (*visit)(struct ucm_id *id, void *arg), void *arg);
void ucm_ids_forked(void);
/* Forks are noticed and the process's end is announced from the first call on.  0 or an errno. */
int ucm_watch(void);

static inline bool ucm_id_is_datagram(const struct ucm_id *id)
{
	return id->qp_type == 4; /* IBV_QPT_UD */
}

#endif
