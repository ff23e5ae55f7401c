/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands JOIN_MCAST, JOIN_IP_MCAST and LEAVE_MCAST. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ucm/cmd/command.h"
#include "ucm/conn/connection.h"
#include "event.h"
#include "table.h"

#define MULTICAST_QPN 0xffffff

static struct ucm_table groups;

static void leave_group(struct ucm_group *group)
{
	struct ucm_event *event = group->unread_event;

	if (event) {
		ucm_channel_remove_event(event);
		free(event);
	}
	LIST_REMOVE(group, link);
	ucm_table_remove(&groups, group->handle);
	free(group);
}

void ucm_groups_leave(struct ucm_id *id)
{
	while (!LIST_EMPTY(&id->groups))
		leave_group(LIST_FIRST(&id->groups));
}

void ucm_groups_forked(void)
{
	memset(&groups, 0, sizeof(groups));
}

static void queue_join_event(struct ucm_id *id, struct ucm_group *group,
			     const struct ucm_address *address)
{
	struct ucm_event *event = ucm_event_new(id, UCM_EVENT_MULTICAST_JOIN, 0);
	struct rdma_ucm_ud_param *ud;
	struct cm_path path;

	if (!event)
		return;
	event->group = group;
	event->resp.uid = group->uid;
	event->resp.id = group->handle;
	ucm_connection_path(id, &path);
	path.flow_label = 0;
	memcpy(path.dgid, address->ip, sizeof(path.dgid));
	ud = &event->resp.param.ud;
	ucm_event_address_vector(id, &path, &ud->ah_attr);
	ud->qp_num = MULTICAST_QPN;
	ud->qkey = UCM_UD_QKEY;
	ucm_channel_queue_event(event);
}

static int join_group(struct ucm_call *call, uint32_t handle, uint64_t uid, uint64_t response,
		      const struct ucm_address *address)
{
	struct rdma_ucm_create_id_resp resp;
	struct ucm_group *group;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, handle, &error);

	if (!id)
		return error;
	if (!id->device || !ucm_id_is_datagram(id) ||
	    (id->state != UCM_BOUND && id->state != UCM_ADDR_RESOLVED))
		return EINVAL;
	if (!gid_is_multicast(address->ip))
		return EINVAL;
	group = calloc(1, sizeof(*group));
	if (!group || !ucm_table_add(&groups, group, &group->handle)) {
		free(group);
		return ENOMEM;
	}
	group->id = id;
	group->uid = uid;
	LIST_INSERT_HEAD(&id->groups, group, link);
	resp.id = group->handle;
	error = ucm_respond(response, &resp, sizeof(resp));
	if (error) {
		leave_group(group);
		return error;
	}
	queue_join_event(id, group, address);
	return 0;
}

int ucm_cmd_join_ip_mcast(struct ucm_call *call)
{
	const struct rdma_ucm_join_ip_mcast *in = call->in;
	struct ucm_address address;

	if (!ucm_address_get(&in->addr, sizeof(in->addr), &address) || address.family == UCM_AF_IB)
		return EINVAL;
	return join_group(call, in->id, in->uid, in->response, &address);
}

/* Send-only and full members get the same event; librdmacm attaches only a full member's QP. */
int ucm_cmd_join_mcast(struct ucm_call *call)
{
	const struct rdma_ucm_join_mcast *in = call->in;
	struct ucm_address address;

	if (in->addr_size != ucm_address_bytes(in->addr.ss_family) ||
	    !ucm_address_get(&in->addr, sizeof(in->addr), &address))
		return EINVAL;
	if (in->join_flags != RDMA_MC_JOIN_FLAG_FULLMEMBER &&
	    in->join_flags != RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
		return EINVAL;
	return join_group(call, in->id, in->uid, in->response, &address);
}

int ucm_cmd_leave_mcast(struct ucm_call *call)
{
	/* The command has the layout of DESTROY_ID, with the handle of the group. */
	const struct rdma_ucm_destroy_id *in = call->in;
	struct ucm_group *group = ucm_table_find(&groups, in->id);
	struct rdma_ucm_destroy_id_resp resp;

	if (!group)
		return ENOENT;
	if (group->id->channel != call->channel)
		return EINVAL;
	resp.events_reported = group->events_reported;
	leave_group(group);
	return ucm_respond(in->response, &resp, sizeof(resp));
}
