/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "command.h"

#include <errno.h>
#include <string.h>

/* Space for the largest command, aligned for each of them. */
union body {
	struct rdma_ucm_accept accept;
	struct rdma_ucm_connect connect;
	struct rdma_ucm_reject reject;
	struct rdma_ucm_resolve_addr resolve_addr;
	struct rdma_ucm_join_mcast join_mcast;
	uint64_t words[64];
};

struct command {
	int (*handler)(struct ucm_call *call);
	size_t min_in;	/* minimum size of the command, else EINVAL */
	size_t min_out; /* minimum space for the response, else ENOSPC */
};

/* Sizes without the fields that older callers lack. */
#define EVENT_BYTES (offsetof(struct rdma_ucm_event_resp, reserved))
#define ROUTE_BYTES (offsetof(struct rdma_ucm_query_route_resp, ibdev_index))
#define CONNECT_BYTES (offsetof(struct rdma_ucm_connect, ece))
#define ACCEPT_BYTES (offsetof(struct rdma_ucm_accept, ece))
#define ID_BYTES sizeof(struct rdma_ucm_create_id_resp)
#define COUNT_BYTES sizeof(struct rdma_ucm_destroy_id_resp)

/* clang-format off */
#define ROW(command, function, body, out) \
	[RDMA_USER_CM_CMD_##command] = { function, sizeof(struct rdma_ucm_##body), out }
/* clang-format on */

static const struct command commands[UCM_COMMANDS] = {
	ROW(CREATE_ID, ucm_cmd_create_id, create_id, ID_BYTES),
	ROW(DESTROY_ID, ucm_cmd_destroy_id, destroy_id, COUNT_BYTES),
	ROW(BIND_IP, ucm_cmd_bind_ip, bind_ip, 0),
	ROW(RESOLVE_IP, ucm_cmd_resolve_ip, resolve_ip, 0),
	ROW(RESOLVE_ROUTE, ucm_cmd_resolve_route, resolve_route, 0),
	ROW(QUERY_ROUTE, ucm_cmd_query_route, destroy_id, ROUTE_BYTES),
	[RDMA_USER_CM_CMD_CONNECT] = { ucm_cmd_connect, CONNECT_BYTES, 0 },
	ROW(LISTEN, ucm_cmd_listen, listen, 0),
	[RDMA_USER_CM_CMD_ACCEPT] = { ucm_cmd_accept, ACCEPT_BYTES, 0 },
	ROW(REJECT, ucm_cmd_reject, reject, 0),
	ROW(DISCONNECT, ucm_cmd_disconnect, disconnect, 0),
	ROW(INIT_QP_ATTR, ucm_cmd_init_qp_attr, init_qp_attr, sizeof(struct ib_uverbs_qp_attr)),
	ROW(GET_EVENT, ucm_cmd_get_event, get_event, EVENT_BYTES),
	/* Never implemented by the kernel. */
	[RDMA_USER_CM_CMD_GET_OPTION] = { NULL, 0, 0 },
	ROW(SET_OPTION, ucm_cmd_set_option, set_option, 0),
	ROW(NOTIFY, ucm_cmd_notify, notify, 0),
	ROW(JOIN_IP_MCAST, ucm_cmd_join_ip_mcast, join_ip_mcast, ID_BYTES),
	ROW(LEAVE_MCAST, ucm_cmd_leave_mcast, destroy_id, COUNT_BYTES),
	ROW(MIGRATE_ID, ucm_cmd_migrate_id, migrate_id, COUNT_BYTES),
	ROW(QUERY, ucm_cmd_query, query, 0),
	ROW(BIND, ucm_cmd_bind, bind, 0),
	ROW(RESOLVE_ADDR, ucm_cmd_resolve_addr, resolve_addr, 0),
	ROW(JOIN_MCAST, ucm_cmd_join_mcast, join_mcast, ID_BYTES),
	/* Services are resolved by subnet administration, which Ethernet does not have. */
	[UCM_CMD_RESOLVE_IB_SERVICE] = { NULL, 0, 0 },
	[UCM_CMD_WRITE_CM_EVENT] = { ucm_cmd_write_event, sizeof(struct ucm_write_cm_event), 0 },
};

static int run_command(const struct command *command, struct ucm_call *call)
{
	if (!command->handler)
		return ENOSYS;
	if (call->in_bytes < command->min_in)
		return EINVAL;
	if (call->out_bytes < command->min_out)
		return ENOSPC;
	return command->handler(call);
}

ssize_t ucm_execute_command(struct ucm_channel *channel, const void *bytes, size_t length)
{
	struct rdma_ucm_cmd_hdr header;
	union body body = { .words = { 0 } };
	struct ucm_call call = { .channel = channel, .in = &body };
	int error;

	if (length < sizeof(header))
		return -EINVAL;
	memcpy(&header, bytes, sizeof(header));
	if (header.cmd >= UCM_COMMANDS || header.in + sizeof(header) > length)
		return -EINVAL;
	call.in_bytes = header.in;
	call.out_bytes = header.out;
	memcpy(&body, (const char *)bytes + sizeof(header),
	       header.in < sizeof(body) ? header.in : sizeof(body));
	error = run_command(&commands[header.cmd], &call);
	return error ? -error : (ssize_t)length;
}
