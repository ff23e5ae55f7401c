/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The kernel's counterpart of a struct rdma_cm_id, which librdmacm refers to by a small number, its
 * handle.  Its states are those of the kernel; each command checks the state that it requires.
 *
 * All functions are called with ucm_lock() held.
 */
#ifndef UROCE_UCM_ID_H
#define UROCE_UCM_ID_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

#include "ucm/addr/address.h"
#include "channel.h"
#include "cm/cm.h"
#include "progress/gsi/gsi.h"

enum ucm_state {
	UCM_IDLE,
	UCM_BOUND,
	UCM_ADDR_QUERY,
	UCM_ADDR_RESOLVED,
	UCM_ROUTE_RESOLVED,
	UCM_CONNECT,
	UCM_DISCONNECT,
	UCM_LISTEN,
};

/* Maximum backlog, also used in place of a value that is not positive. */
#define UCM_MAX_BACKLOG 1024

struct ucm_id {
	uint32_t handle;
	uint64_t serial; /* unique in the process, unlike handles, which are reused */
	uint64_t uid;	 /* librdmacm's name of the id, returned in events */
	struct ucm_channel *channel;
	LIST_ENTRY(ucm_id) link;	/* in the list of the channel */
	struct ucm_events events;	/* queued events that the id counts */
	struct ucm_event *unread_event; /* its own CONNECT_REQUEST, until it is read */
	enum ucm_state state;
	uint16_t port_space;
	uint8_t qp_type; /* enum ibv_qp_type */
	uint32_t rq_psn; /* random PSN that our QP expects first */
	uint32_t events_reported;
	bool device_removed; /* device has been removed; the id can only be destroyed */
	bool reports_events; /* false: passive id that is not accepted yet, and reports no events */

	struct ucm_address source, destination;
	struct gsi_port *port; /* source.port as bound; NULL: none, or that of a listener */
	uint32_t device;       /* UCM_NO_DEVICE: not bound to a device */
	uint8_t sgid[16], dgid[16];
	unsigned int sgid_index;
	bool has_route;
	uint8_t mtu, packet_life; /* codes of the route */

	/* Options. */
	bool reuse_addr, af_only, af_only_set, ack_timeout_set;
	uint8_t tos, ack_timeout;

	/* Listener. */
	struct cm_listener *listener; /* NULL: not listening */
	void *listener_memory;
	unsigned int backlog, unread_requests; /* maximum and current number of unread requests */

	/* Connection, or SIDR exchange. */
	struct cm_conn *conn;	 /* NULL: no request so far */
	struct ucm_retry *retry; /* NULL: the request will not be repeated */
	uint32_t qpn;		 /* of our QP, from CONNECT or ACCEPT */
	uint8_t responder_resources;
	bool flow_control, peer_flow_control; /* bits of our and the peer's REQ or REP (rule C19) */

	LIST_HEAD(, ucm_group) groups;
};

/* Creates an id on channel, with the lowest free handle.  Returns NULL with errno. */
struct ucm_id *ucm_id_create(struct ucm_channel *channel, uint16_t port_space, uint8_t qp_type);
/* Frees an id that has no events, groups, port or connection. */
void ucm_id_free(struct ucm_id *id);
/*
 * Returns the id with the handle, or NULL with *error: ENOENT, EINVAL if the id is on another
 * channel, or ENXIO if its device has been removed.  ucm_id_find_any() also returns ids whose
 * device has been removed.
 */
struct ucm_id *ucm_id_find(const struct ucm_channel *channel, uint32_t handle, int *error);
struct ucm_id *ucm_id_find_any(const struct ucm_channel *channel, uint32_t handle, int *error);
/* Looks an id up again after the lock was released.  Returns NULL if the id has been destroyed. */
struct ucm_id *ucm_id_revalidate(uint32_t handle, uint64_t serial);
/*
 * Moves an id to another channel, with its events and the ids of its unread requests.  Returns 0,
 * or ENOENT if the id itself is that of an unread request, which stays with its listener.
 */
int ucm_id_move(struct ucm_id *id, struct ucm_channel *channel);
/*
 * Destroys an id, and informs the peer if necessary.  Discards its unread events and the ids of its
 * unread requests.  If the id itself is that of an unread request, the CONNECT_REQUEST is discarded
 * as well and no longer counts towards the backlog of the listener.
 */
void ucm_id_destroy(struct ucm_id *id);
/* Queues DEVICE_REMOVAL for each id of a removed device; destroys its connection and port. */
void ucm_ids_device_removed(void);
/* Destroys all ids of a channel. */
void ucm_ids_destroy(struct ucm_channel *channel);
void ucm_ids_each(void (*visit)(struct ucm_id *id, void *arg), void *arg);
void ucm_ids_forked(void);

static inline bool ucm_id_is_datagram(const struct ucm_id *id)
{
	return id->qp_type == 4; /* IBV_QPT_UD */
}

/* ---- Multicast groups ---- */

/*
 * Handles and events of the multicast groups that an id has joined.  Packets are handled by the QP
 * (ibv_attach_mcast(), which librdmacm calls).
 */
struct ucm_group {
	LIST_ENTRY(ucm_group) link; /* in the list of the id */
	struct ucm_id *id;
	uint32_t handle;
	uint64_t uid;
	uint32_t events_reported;
	struct ucm_event *unread_event; /* MULTICAST_JOIN until it is read, then NULL */
};

/* Leaves all groups of an id that is being destroyed. */
void ucm_groups_leave(struct ucm_id *id);
void ucm_groups_forked(void);

#endif
