/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Command SET_OPTION. */
#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "command.h"

static int set_tos(struct ucm_id *id, const void *value)
{
	memcpy(&id->tos, value, sizeof(id->tos));
	return 0;
}

static int set_reuse(struct ucm_id *id, const void *value)
{
	int on;

	memcpy(&on, value, sizeof(on));
	if (id->state == UCM_LISTEN || (!on && id->state != UCM_IDLE))
		return EINVAL;
	return ucm_set_port_option(id, &id->reuse_addr, on);
}

static int set_af_only(struct ucm_id *id, const void *value)
{
	int on, error;

	if (id->state != UCM_IDLE && id->state != UCM_BOUND)
		return EINVAL;
	memcpy(&on, value, sizeof(on));
	error = ucm_set_port_option(id, &id->af_only, on);
	if (!error)
		id->af_only_set = true;
	return error;
}

static int set_ack_timeout(struct ucm_id *id, const void *value)
{
	if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
		return EINVAL;
	memcpy(&id->ack_timeout, value, sizeof(id->ack_timeout));
	id->ack_timeout_set = true;
	return 0;
}

static const struct {
	size_t bytes;
	int (*set)(struct ucm_id *id, const void *value);
} options[] = {
	[RDMA_OPTION_ID_TOS] = { sizeof(uint8_t), set_tos },
	[RDMA_OPTION_ID_REUSEADDR] = { sizeof(int), set_reuse },
	[RDMA_OPTION_ID_AFONLY] = { sizeof(int), set_af_only },
	[RDMA_OPTION_ID_ACK_TIMEOUT] = { sizeof(uint8_t), set_ack_timeout },
};

/*
 * RDMA_OPTION_IB_PATH, of the other level, sets the result of a path record service, which does not
 * exist here.
 */
int ucm_cmd_set_option(struct ucm_call *call)
{
	const struct rdma_ucm_set_option *in = call->in;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (in->level != RDMA_OPTION_ID || in->optname >= sizeof(options) / sizeof(options[0]))
		return ENOSYS;
	if (in->optlen != options[in->optname].bytes)
		return EINVAL;
	if (!in->optval)
		return EFAULT;
	return options[in->optname].set(id, (const void *)(uintptr_t)in->optval);
}
