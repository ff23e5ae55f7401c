/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Between ids and the protocol's connections (cm/cm.h): what the protocol tells becomes events.
 * Called with the lock of manager.h held.
 */
#ifndef UROCE_UCM_CONNECTION_H
#define UROCE_UCM_CONNECTION_H

#include "devices.h"
#include "id.h"

/* Of every connection: the kernel's values, but for the packet life time as in Linux 6.3 and later.
 */
enum {
	UCM_RESPONSE_TIME = 20,
	UCM_MAX_CM_RETRIES = 15,
	UCM_PACKET_LIFE = 16,
	UCM_PKEY = 0xffff,
	UCM_UD_QKEY = 0x01234567,
};

/* struct cm_ops. */
void ucm_connection_event(void *owner, struct cm_conn *conn, const struct cm_event *event);
void *ucm_connection_accept(void *owner, struct cm_listener *listener, const struct mad *request,
			    const struct cm_path *from, void **user);
uint8_t ucm_connection_mtu(void *owner, const struct cm_path *from);
void ucm_connection_released(void *owner, struct cm_conn *conn, void *user);
void ucm_connection_last_message(void *owner, struct cm_conn *conn, const struct cm_path *path,
				 const uint8_t *mad);

/* A connection in CM_IDLE for id.  0 or ENOMEM. */
int ucm_connection_make(struct ucm_id *id);
/* Its id goes, or asks anew. */
void ucm_connection_forget(struct ucm_id *id);

/* What a queue pair of this id is for the protocol. */
enum cm_service ucm_connection_service(const struct ucm_id *id);
/* 0 or a positive errno.  id is bound to its address and has a port. */
int ucm_connection_listen(struct ucm_id *id);
void ucm_connection_unlisten(struct ucm_id *id);
/*
 * The code of the largest path MTU that a device and the route from there both carry.  0, with a
 * line on stderr: the route does not even carry the messages of the connection manager.
 */
uint8_t ucm_connection_path_mtu(const struct ucm_device *device, const uint8_t sgid[16],
				const uint8_t dgid[16]);
/* How the packets of id's connection, and its MADs, leave. */
void ucm_connection_path(const struct ucm_id *id, struct cm_path *path);

#endif
