/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands QUERY and QUERY_ROUTE: addresses and path of an id. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/sa.h>

#include "command.h"
#include "connection.h"
#include "devices.h"

#define PORT 1
/* Selector "exactly" for MTU, rate and packet life time of a path record. */
#define EXACTLY 2

static void fill_path(const struct ucm_id *id, struct ib_user_path_rec *record)
{
	struct cm_path path;

	ucm_connection_path(id, &path);
	memcpy(record->dgid, path.dgid, sizeof(record->dgid));
	memcpy(record->sgid, path.sgid, sizeof(record->sgid));
	record->pkey = htobe16(UCM_PKEY);
	if (!id->has_route)
		return;
	record->flow_label = htobe32(path.flow_label);
	record->reversible = 1;
	record->mtu = id->mtu;
	record->hop_limit = path.hop_limit;
	record->traffic_class = path.traffic_class;
	record->numb_path = 1;
	record->sl = path.sl;
	record->mtu_selector = EXACTLY;
	record->rate_selector = EXACTLY;
	record->packet_life_time_selector = EXACTLY;
	record->packet_life_time = id->packet_life;
}

/* Device of an id, in the form in which librdmacm searches its list of devices. */
struct device_answer {
	uint64_t guid; /* network order; 0: not bound to a device */
	uint8_t port;
	uint32_t index;
};

static struct device_answer device_of(const struct ucm_id *id)
{
	struct ucm_device device;

	if (!ucm_device(id->device, &device))
		return (struct device_answer){ .index = UINT32_MAX };
	return (struct device_answer){ .guid = htobe64(device.guid),
				       .port = PORT,
				       .index = device.number };
}

int ucm_query_route(struct ucm_call *call)
{
	/* The command has the layout of DESTROY_ID: response address and id. */
	const struct rdma_ucm_destroy_id *in = call->in;
	struct rdma_ucm_query_route_resp answer = { 0 };
	size_t bytes = sizeof(answer);
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);
	struct device_answer device;

	if (!id)
		return error;
	device = device_of(id);
	ucm_address_put(&id->source, &answer.src_addr, sizeof(answer.src_addr));
	ucm_address_put(&id->destination, &answer.dst_addr, sizeof(answer.dst_addr));
	answer.node_guid = device.guid;
	answer.port_num = device.port;
	answer.ibdev_index = device.index;
	if (id->device) {
		answer.num_paths = id->has_route;
		fill_path(id, &answer.ib_route[0]);
	}
	if (bytes > call->out_bytes)
		bytes = call->out_bytes;
	return ucm_respond(in->response, &answer, bytes);
}

#define ADDRESS_BYTES (offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))

static int respond_addresses(struct ucm_call *call, const struct rdma_ucm_query *in,
			     const struct ucm_id *id, const struct ucm_address *source,
			     const struct ucm_address *destination)
{
	struct rdma_ucm_query_addr_resp answer = { .pkey = htobe16(UCM_PKEY) };
	struct device_answer device = device_of(id);
	size_t bytes = sizeof(answer);

	if (call->out_bytes < ADDRESS_BYTES)
		return ENOSPC;
	answer.src_size = (__u16)ucm_address_put(source, &answer.src_addr, sizeof(answer.src_addr));
	answer.dst_size =
		(__u16)ucm_address_put(destination, &answer.dst_addr, sizeof(answer.dst_addr));
	answer.node_guid = device.guid;
	answer.port_num = device.port;
	answer.ibdev_index = device.index;
	if (bytes > call->out_bytes)
		bytes = call->out_bytes;
	return ucm_respond(in->response, &answer, bytes);
}

static int query_addresses(struct ucm_call *call, const struct rdma_ucm_query *in,
			   const struct ucm_id *id)
{
	return respond_addresses(call, in, id, &id->source, &id->destination);
}

static int query_gids(struct ucm_call *call, const struct rdma_ucm_query *in,
		      const struct ucm_id *id)
{
	struct ucm_address source = id->source, destination = id->destination;

	source.family = UCM_AF_IB;
	source.space = id->space;
	memcpy(source.ip, id->sgid, sizeof(source.ip));
	destination.family = UCM_AF_IB;
	destination.space = id->space;
	memcpy(destination.ip, id->dgid, sizeof(destination.ip));
	return respond_addresses(call, in, id, &source, &destination);
}

/* struct rdma_ucm_query_path_resp with one path. */
struct path_answer {
	__u32 num_paths;
	__u32 reserved_paths;
	__u32 flags;
	__u32 reserved;
	struct ibv_path_record record;
};
#define PATH_HEAD_BYTES (offsetof(struct path_answer, flags))
_Static_assert(sizeof(struct ibv_path_record) == 64, "a path record as it is in a message");

static int query_path(struct ucm_call *call, const struct rdma_ucm_query *in,
		      const struct ucm_id *id)
{
	struct path_answer answer = {
		.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL,
	};
	struct cm_path path;
	bool fits = call->out_bytes >= sizeof(answer);

	if (call->out_bytes < PATH_HEAD_BYTES)
		return ENOSPC;
	answer.num_paths = id->has_route;
	ucm_connection_path(id, &path);
	memcpy(&answer.record.dgid, path.dgid, sizeof(path.dgid));
	memcpy(&answer.record.sgid, path.sgid, sizeof(path.sgid));
	answer.record.flowlabel_hoplimit = htobe32(path.flow_label << 8 | path.hop_limit);
	answer.record.tclass = path.traffic_class;
	answer.record.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	answer.record.pkey = htobe16(UCM_PKEY);
	answer.record.mtu = (uint8_t)(EXACTLY << 6 | id->mtu);
	answer.record.rate = EXACTLY << 6;
	answer.record.packetlifetime = (uint8_t)(EXACTLY << 6 | id->packet_life);
	return ucm_respond(in->response, &answer,
			   id->has_route && fits ? sizeof(answer) : PATH_HEAD_BYTES);
}

int ucm_query(struct ucm_call *call)
{
	static int (*const queries[])(struct ucm_call * call, const struct rdma_ucm_query *in,
				      const struct ucm_id *id) = {
		[RDMA_USER_CM_QUERY_ADDR] = query_addresses,
		[RDMA_USER_CM_QUERY_PATH] = query_path,
		[RDMA_USER_CM_QUERY_GID] = query_gids,
	};
	const struct rdma_ucm_query *in = call->in;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (in->option >= sizeof(queries) / sizeof(queries[0]))
		return ENOSYS;
	return queries[in->option](call, in, id);
}
