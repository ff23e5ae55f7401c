/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Commands of <rdma/rdma_user_cm.h>.  Each handler is called with ucm_lock() held, and returns 0 or
 * the positive errno that the kernel returns in the same case.
 */
#ifndef UROCE_UCM_CMD_COMMAND_H
#define UROCE_UCM_CMD_COMMAND_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <rdma/rdma_user_cm.h>

#include "ucm/channel.h"
#include "ucm/id.h"

/* Commands of Linux 6.17 and later, which installed headers may lack. */
enum {
	UCM_CMD_RESOLVE_IB_SERVICE = 23,
	UCM_CMD_WRITE_CM_EVENT = 24,
	UCM_COMMANDS,
};

struct ucm_write_cm_event {
	__u32 id;
	__u32 reserved;
	__u32 event;
	__u32 status;
	__aligned_u64 argument;
};

struct ucm_call {
	struct ucm_channel *channel; /* held by the calling thread */
	const void *in;		     /* the command, aligned and padded with zeros */
	size_t in_bytes;	     /* size of the command according to its header */
	size_t out_bytes;
};

/* Writes resp to address response of the program.  Returns 0, or EFAULT if that is NULL. */
static inline int ucm_respond(uint64_t response, const void *resp, size_t bytes)
{
	void *to = (void *)(uintptr_t)response;

	if (!to)
		return EFAULT;
	memcpy(to, resp, bytes);
	return 0;
}

/*
 * Executes a command that was written to a channel, which the caller holds.  Returns length or a
 * negative errno.
 */
ssize_t ucm_execute_command(struct ucm_channel *channel, const void *bytes, size_t length);

/* Ids and events. */
int ucm_cmd_create_id(struct ucm_call *call);
int ucm_cmd_destroy_id(struct ucm_call *call);
int ucm_cmd_get_event(struct ucm_call *call);
int ucm_cmd_migrate_id(struct ucm_call *call);
int ucm_cmd_write_event(struct ucm_call *call);
/* Options. */
int ucm_cmd_set_option(struct ucm_call *call);
/* Addresses and ports. */
int ucm_cmd_bind_ip(struct ucm_call *call);
int ucm_cmd_bind(struct ucm_call *call);
int ucm_cmd_listen(struct ucm_call *call);
/* Address and route resolution. */
int ucm_cmd_resolve_ip(struct ucm_call *call);
int ucm_cmd_resolve_addr(struct ucm_call *call);
int ucm_cmd_resolve_route(struct ucm_call *call);
/* Queries. */
int ucm_cmd_query_route(struct ucm_call *call);
int ucm_cmd_query(struct ucm_call *call);
/* QP attributes. */
int ucm_cmd_init_qp_attr(struct ucm_call *call);
/* Connections. */
int ucm_cmd_connect(struct ucm_call *call);
int ucm_cmd_accept(struct ucm_call *call);
int ucm_cmd_reject(struct ucm_call *call);
int ucm_cmd_disconnect(struct ucm_call *call);
int ucm_cmd_notify(struct ucm_call *call);
/* Multicast groups. */
int ucm_cmd_join_ip_mcast(struct ucm_call *call);
int ucm_cmd_join_mcast(struct ucm_call *call);
int ucm_cmd_leave_mcast(struct ucm_call *call);

/*
 * Binds an idle id to an address, with port and device.  Releases the lock in between, so *id is
 * looked up again.  Returns 0 or a positive errno; ENOENT if the id has been destroyed.
 */
int ucm_bind_id(struct ucm_id **id, const struct ucm_address *address);
/*
 * Sets an option that also applies to the port of id.  A bound port is bound again with the same
 * number.  Returns 0, or a positive errno with the option unchanged.
 */
int ucm_set_port_option(struct ucm_id *id, bool *option, bool on);

#endif
