/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connects ids with the connections of the protocol (cm/cm.h), and turns its events into events of
 * ids.  All functions are called with ucm_lock() held.
 */
#ifndef UROCE_UCM_CONN_CONNECTION_H
#define UROCE_UCM_CONN_CONNECTION_H

#include "ucm/addr/devices.h"
#include "ucm/id.h"

/* Parameters of all connections, as in the kernel; the packet life time since Linux 6.3. */
enum {
	UCM_RESPONSE_TIME = 20,
	UCM_MAX_CM_RETRIES = 15,
	UCM_PACKET_LIFE = 16,
	UCM_PKEY = 0xffff,
	UCM_UD_QKEY = 0x01234567,
};

/* Functions of struct cm_ops. */
void ucm_connection_event(void *owner, struct cm_conn *conn, const struct cm_event *event);
void *ucm_connection_accept(void *owner, struct cm_listener *listener, const struct mad *request,
			    const struct cm_path *from, void **user);
uint8_t ucm_connection_mtu(void *owner, const struct cm_path *from);
void ucm_connection_released(void *owner, struct cm_conn *conn, void *user);
void ucm_connection_last_message(void *owner, struct cm_conn *conn, const struct cm_path *path,
				 const uint8_t *mad);

/* Creates a connection in state CM_IDLE for id.  Returns 0 or ENOMEM. */
int ucm_connection_create(struct ucm_id *id);
/* Destroys the connection of an id that is being destroyed or repeats its request. */
void ucm_connection_destroy(struct ucm_id *id);

/* Returns the transport service of the QP of this id. */
enum cm_service ucm_connection_service(const struct ucm_id *id);
/* Creates the listener of an id with address and port.  Returns 0 or a positive errno. */
int ucm_connection_listen(struct ucm_id *id);
void ucm_connection_unlisten(struct ucm_id *id);
/*
 * Returns the code of the largest path MTU that both the device and the route to dgid support; 0,
 * with a message on stderr, if the route does not even carry MADs.
 */
uint8_t ucm_connection_path_mtu(const struct ucm_device *device, const uint8_t sgid[16],
				const uint8_t dgid[16]);
/* Sets the path of the packets and MADs of id's connection. */
void ucm_connection_path(const struct ucm_id *id, struct cm_path *path);

/* ---- Requests ---- */

/*
 * Sends the REQ or SIDR_REQ of an id whose path is resolved and whose connection is idle.  Returns
 * false if that fails.
 */
bool ucm_send_request(struct ucm_id *id, const struct rdma_ucm_conn_param *param);
/* Repeats the requests that are due. */
void ucm_retries_send(uint64_t now);

/* ---- Orphans ---- */

/*
 * Connections with processes of this host that ended while there was no broker, so that nobody has
 * sent their last messages.  After each change of the broker, checks a few times whether the slots
 * of peers still belong to a process.
 */
void ucm_orphans_start_checks(uint64_t now);
/* Returns the time at which ucm_orphans_check() must be called, or UINT64_MAX. */
uint64_t ucm_orphans_deadline(void);
/* Ends the connections whose peer has ended as if the peer had sent a DREQ. */
void ucm_orphans_check(struct cm *cm, uint64_t now);

#endif
