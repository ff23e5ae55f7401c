/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands QUERY and QUERY_ROUTE: addresses and path of an id. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/sa.h>

#include "command.h"
#include "ucm/conn/connection.h"
#include "ucm/addr/devices.h"

#define PORT_NUM 1
/* Selector "exactly" for MTU, rate and packet life time of a path record. */
#define SELECTOR_EXACTLY 2

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
	record->mtu_selector = SELECTOR_EXACTLY;
	record->rate_selector = SELECTOR_EXACTLY;
	record->packet_life_time_selector = SELECTOR_EXACTLY;
	record->packet_life_time = id->packet_life;
}

/* Device of an id, in the form in which librdmacm searches its list of devices. */
struct device_response {
	uint64_t guid; /* network order; 0: not bound to a device */
	uint8_t port;
	uint32_t index;
};

static struct device_response get_device(const struct ucm_id *id)
{
	struct ucm_device device;

	if (!ucm_device(id->device, &device))
		return (struct device_response){ .index = UINT32_MAX };
	return (struct device_response){ .guid = htobe64(device.guid),
					 .port = PORT_NUM,
					 .index = device.number };
}

int ucm_cmd_query_route(struct ucm_call *call)
{
	/* The command has the layout of DESTROY_ID: response address and id. */
	const struct rdma_ucm_destroy_id *in = call->in;
	struct rdma_ucm_query_route_resp resp = { 0 };
	size_t bytes = sizeof(resp);
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);
	struct device_response device;

	if (!id)
		return error;
	device = get_device(id);
	ucm_address_put(&id->source, &resp.src_addr, sizeof(resp.src_addr));
	ucm_address_put(&id->destination, &resp.dst_addr, sizeof(resp.dst_addr));
	resp.node_guid = device.guid;
	resp.port_num = device.port;
	resp.ibdev_index = device.index;
	if (id->device) {
		resp.num_paths = id->has_route;
		fill_path(id, &resp.ib_route[0]);
	}
	if (bytes > call->out_bytes)
		bytes = call->out_bytes;
	return ucm_respond(in->response, &resp, bytes);
}

#define ADDRESS_BYTES (offsetof(struct rdma_ucm_query_addr_resp, ibdev_index))

static int respond_addresses(struct ucm_call *call, const struct rdma_ucm_query *in,
			     const struct ucm_id *id, const struct ucm_address *source,
			     const struct ucm_address *destination)
{
	struct rdma_ucm_query_addr_resp resp = { .pkey = htobe16(UCM_PKEY) };
	struct device_response device = get_device(id);
	size_t bytes = sizeof(resp);

	if (call->out_bytes < ADDRESS_BYTES)
		return ENOSPC;
	resp.src_size = (__u16)ucm_address_put(source, &resp.src_addr, sizeof(resp.src_addr));
	resp.dst_size = (__u16)ucm_address_put(destination, &resp.dst_addr, sizeof(resp.dst_addr));
	resp.node_guid = device.guid;
	resp.port_num = device.port;
	resp.ibdev_index = device.index;
	if (bytes > call->out_bytes)
		bytes = call->out_bytes;
	return ucm_respond(in->response, &resp, bytes);
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
	source.port_space = id->port_space;
	memcpy(source.ip, id->sgid, sizeof(source.ip));
	destination.family = UCM_AF_IB;
	destination.port_space = id->port_space;
	memcpy(destination.ip, id->dgid, sizeof(destination.ip));
	return respond_addresses(call, in, id, &source, &destination);
}

/* struct rdma_ucm_query_path_resp with one path. */
struct path_response {
	__u32 num_paths;
	__u32 reserved_paths;
	__u32 flags;
	__u32 reserved;
	struct ibv_path_record record;
};
#define PATH_HEAD_BYTES (offsetof(struct path_response, flags))
_Static_assert(sizeof(struct ibv_path_record) == 64, "a path record as it is in a message");

static int query_path(struct ucm_call *call, const struct rdma_ucm_query *in,
		      const struct ucm_id *id)
{
	struct path_response resp = {
		.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL,
	};
	struct cm_path path;
	bool fits = call->out_bytes >= sizeof(resp);

	if (call->out_bytes < PATH_HEAD_BYTES)
		return ENOSPC;
	resp.num_paths = id->has_route;
	ucm_connection_path(id, &path);
	memcpy(&resp.record.dgid, path.dgid, sizeof(path.dgid));
	memcpy(&resp.record.sgid, path.sgid, sizeof(path.sgid));
	resp.record.flowlabel_hoplimit = htobe32(path.flow_label << 8 | path.hop_limit);
	resp.record.tclass = path.traffic_class;
	resp.record.reversible_numpath = IBV_PATH_RECORD_REVERSIBLE | 1;
	resp.record.pkey = htobe16(UCM_PKEY);
	resp.record.mtu = (uint8_t)(SELECTOR_EXACTLY << 6 | id->mtu);
	resp.record.rate = SELECTOR_EXACTLY << 6;
	resp.record.packetlifetime = (uint8_t)(SELECTOR_EXACTLY << 6 | id->packet_life);
	return ucm_respond(in->response, &resp,
			   id->has_route && fits ? sizeof(resp) : PATH_HEAD_BYTES);
}

int ucm_cmd_query(struct ucm_call *call)
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
