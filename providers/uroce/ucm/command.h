/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The commands of <rdma/rdma_user_cm.h>.  Each handler runs with the lock of manager.h held and
 * answers 0 or a positive errno, the one that the kernel has for the same.
 */
#ifndef UROCE_UCM_COMMAND_H
#define UROCE_UCM_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/rdma_user_cm.h>

#include "channel.h"
#include "id.h"

/* Of Linux 6.17 and later, which installed headers may not have yet. */
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
	struct ucm_channel *channel; /* held */
	const void *in;		     /* aligned; zeros behind what came */
	size_t in_bytes;	     /* as the header says */
	size_t out_bytes;
};

/* Write an answer to where the program has room for it: EFAULT for no address. */
int ucm_respond(uint64_t response, const void *answer, size_t bytes);

/* One write() to a channel, which is held: the length, or a negative errno. */
ssize_t ucm_command(struct ucm_channel *channel, const void *bytes, size_t length);
/* The command's name, "?" for none. */
const char *ucm_command_name(unsigned int command);

/* id.c's and the channel's: command_id.c */
int ucm_create_id(struct ucm_call *call);
int ucm_destroy_id(struct ucm_call *call);
int ucm_get_event(struct ucm_call *call);
int ucm_migrate_id(struct ucm_call *call);
int ucm_write_event(struct ucm_call *call);
/* command_option.c */
int ucm_set_option(struct ucm_call *call);
/* command_bind.c */
int ucm_bind_ip(struct ucm_call *call);
int ucm_bind(struct ucm_call *call);
int ucm_listen(struct ucm_call *call);
/* command_resolve.c */
int ucm_resolve_ip(struct ucm_call *call);
int ucm_resolve_addr(struct ucm_call *call);
int ucm_resolve_route(struct ucm_call *call);
/* command_query.c */
int ucm_query_route(struct ucm_call *call);
int ucm_query(struct ucm_call *call);
/* command_qp.c */
int ucm_init_qp_attr(struct ucm_call *call);
/* command_connect.c */
int ucm_connect(struct ucm_call *call);
int ucm_accept(struct ucm_call *call);
int ucm_reject(struct ucm_call *call);
int ucm_disconnect(struct ucm_call *call);
int ucm_notify(struct ucm_call *call);
/* multicast.c */
int ucm_join_ip(struct ucm_call *call);
int ucm_join(struct ucm_call *call);
int ucm_leave_group(struct ucm_call *call);

/* Send the request of an id whose path is known, and whose connection is idle.  false: refused. */
bool ucm_ask(struct ucm_id *id, const struct rdma_ucm_conn_param *param);

/*
 * Bind id, which is idle, to an address: its port, its device.  The lock is given up meanwhile, so
 * *id is looked up again; ENOENT if it went.
 */
int ucm_bind_id(struct ucm_id **id, const struct ucm_address *address);
/*
 * Switch an option of id's that its port has as well, if it is bound: the port is bound anew, with
 * the same number.  0, or an errno, and nothing is changed.
 */
int ucm_set_port_option(struct ucm_id *id, bool *option, bool on);

#endif
