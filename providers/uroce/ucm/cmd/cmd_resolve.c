/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands RESOLVE_ADDR, RESOLVE_IP and RESOLVE_ROUTE. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "ucm/conn/connection.h"
#include "ucm/addr/devices.h"
#include "ucm/event.h"
#include "ucm/ucm_core.h"
#include "ucm/resolve_neigh.h"
#include "ucm/addr/address.h"

/* Finds the path to 127.0.0.0/8, ::1 or the wildcard address: through the loopback device. */
static int find_loopback_path(const struct ucm_address *destination, struct ucm_path *path)
{
	struct ucm_device device;
	struct ucm_address local = *destination;

	if (!ucm_device(ucm_device_loopback(), &device))
		return ENODEV;
	path->device = device.number;
	if (gid_is_any(destination->ip)) {
		if (destination->family == AF_INET)
			local.ip[12] = 127;
		local.ip[15] = 1;
	}
	/* The address itself if the device has it as a GID, as it may have ::1; else GID 0. */
	memcpy(path->sgid, local.ip, 16);
	if (!ucm_device_of_gid(local.ip, 0, &path->device, &path->sgid_index) ||
	    path->device != device.number) {
		path->device = device.number;
		path->sgid_index = 0;
		memcpy(path->sgid, device.gid, 16);
	}
	memcpy(path->dgid, path->sgid, 16);
	path->source = local;
	path->source.port = 0;
	return 0;
}

/*
 * Returns 0, a positive errno of the route lookup, or -ENODEV if the route leads to an interface
 * without a device.
 */
static int find_path(const struct ucm_address *destination, const struct ucm_address *bound,
		     struct ucm_path *path)
{
	uint32_t scope_id = destination->scope_id ? destination->scope_id : bound->scope_id;
	int error;

	if (gid_is_any(destination->ip) || gid_is_loopback(destination->ip))
		return find_loopback_path(destination, path);
	error = ucm_route_source(destination, bound, &path->source);
	if (error)
		return error;
	if (!ucm_device_of_gid(path->source.ip, scope_id, &path->device, &path->sgid_index))
		return -ENODEV;
	memcpy(path->sgid, path->source.ip, 16);
	/* RoCE v2 also maps the address of an IPv4 group to a GID as any other IPv4 address. */
	memcpy(path->dgid, destination->ip, 16);
	return 0;
}

static void set_path(struct ucm_id *id, const struct ucm_path *path)
{
	uint16_t port = id->source.port, port_space = id->source.port_space;

	/* A bound id keeps its address, such as 127.0.0.2; its GID is that of 127.0.0.1. */
	if (gid_is_any(id->source.ip)) {
		id->source = path->source;
		id->source.port = port;
		id->source.port_space = port_space;
	}
	id->device = path->device;
	id->sgid_index = path->sgid_index;
	memcpy(id->sgid, path->sgid, 16);
	memcpy(id->dgid, path->dgid, 16);
}

/*
 * Finds path and next hop.  Releases the lock, as another process may have to be asked for the
 * address; *id is looked up again.  Returns the result of the command: as in the kernel, an errno
 * of the route lookup. *status is the status of the event, *missing is true if the next hop is
 * unknown.
 */
static int look_up_path(struct ucm_id **id, struct ucm_neigh_wait *found, int *status,
			bool *missing)
{
	struct ucm_address bound = (*id)->source;
	struct ucm_path *path = &found->path;
	int error;

	found->destination = (*id)->destination;
	found->serial = (*id)->serial;
	found->handle = (*id)->handle;
	ucm_unlock();
	error = find_path(&found->destination, &bound, path);
	*status = error < 0 ? error : 0;
	if (!error)
		*status = -ucm_listen_addr(path->sgid, path->device);
	*missing = !error && !*status &&
		   ucm_neigh_is_unresolved(path, &found->destination, &found->next_hop);
	ucm_lock();
	*id = ucm_id_revalidate(found->handle, found->serial);
	if (!*id)
		return ENOENT;
	return error > 0 ? error : 0;
}

/* Completes a RESOLVE command with status 0 or a negative errno. */
static void complete_resolve(struct ucm_id *id, const struct ucm_path *path, int status)
{
	/* DEVICE_REMOVAL is the last event of an id. */
	if (id->device_removed)
		return;
	if (status) {
		id->state = UCM_BOUND;
		ucm_event_post(id, UCM_EVENT_ADDR_ERROR, status);
		return;
	}
	set_path(id, path);
	id->state = UCM_ADDR_RESOLVED;
	ucm_event_post(id, UCM_EVENT_ADDR_RESOLVED, 0);
}

/* The event follows once the next hop has been resolved.  Returns 0 or a positive errno. */
static int wait_for_neighbour(struct ucm_id *id, const struct ucm_neigh_wait *found,
			      uint32_t timeout_ms)
{
	struct ucm_neigh_wait *wait = malloc(sizeof(*wait));

	if (!wait) {
		id->state = UCM_BOUND;
		return ENOMEM;
	}
	*wait = *found;
	wait->complete = complete_resolve;
	wait->deadline = progress_now() + timeout_ms * UINT64_C(1000000);
	ucm_neigh_resolve_later(wait);
	return 0;
}

static int resolve_id(struct ucm_id *id, const struct ucm_address *source,
		      const struct ucm_address *destination, uint32_t timeout_ms)
{
	struct ucm_neigh_wait found = { .path.device = UCM_NO_DEVICE };
	struct ucm_address any;
	int error, status;
	bool missing;

	if (id->state == UCM_IDLE) {
		ucm_address_any(destination->family, &any);
		any.scope_id = destination->scope_id;
		error = ucm_bind_id(&id, source->family != AF_UNSPEC ? source : &any);
		if (error)
			return error;
	}
	if (id->state != UCM_BOUND || id->source.family != destination->family)
		return EINVAL;
	id->destination = *destination;
	id->state = UCM_ADDR_QUERY;
	error = look_up_path(&id, &found, &status, &missing);
	if (!id)
		return error;
	if (error) {
		id->state = UCM_BOUND;
		return error;
	}
	if (missing)
		return wait_for_neighbour(id, &found, timeout_ms);
	complete_resolve(id, &found.path, status);
	return 0;
}

static int resolve_handle(struct ucm_call *call, uint32_t handle, const struct ucm_address *source,
			  const struct ucm_address *destination, uint32_t timeout_ms)
{
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, handle, &error);

	return id ? resolve_id(id, source, destination, timeout_ms) : error;
}

int ucm_cmd_resolve_ip(struct ucm_call *call)
{
	const struct rdma_ucm_resolve_ip *in = call->in;
	struct ucm_address source = { .family = AF_UNSPEC }, destination;

	if (in->src_addr.sin6_family &&
	    (!ucm_address_get(&in->src_addr, sizeof(in->src_addr), &source) ||
	     source.family == UCM_AF_IB))
		return EINVAL;
	if (!ucm_address_get(&in->dst_addr, sizeof(in->dst_addr), &destination) ||
	    destination.family == UCM_AF_IB)
		return EINVAL;
	return resolve_handle(call, in->id, &source, &destination, in->timeout_ms);
}

int ucm_cmd_resolve_addr(struct ucm_call *call)
{
	const struct rdma_ucm_resolve_addr *in = call->in;
	struct ucm_address source = { .family = AF_UNSPEC }, destination;

	if (in->reserved || !in->dst_size)
		return EINVAL;
	if (in->src_size && (in->src_size != ucm_address_bytes(in->src_addr.ss_family) ||
			     !ucm_address_get(&in->src_addr, in->src_size, &source)))
		return EINVAL;
	if (in->dst_size != ucm_address_bytes(in->dst_addr.ss_family) ||
	    !ucm_address_get(&in->dst_addr, in->dst_size, &destination))
		return EINVAL;
	return resolve_handle(call, in->id, &source, &destination, in->timeout_ms);
}

/* Returns the code of the packet life time: half of the ACK timeout, if that was set. */
static uint8_t get_packet_life(const struct ucm_id *id)
{
	if (id->ack_timeout_set && id->ack_timeout)
		return (uint8_t)(id->ack_timeout - 1);
	return UCM_PACKET_LIFE;
}

int ucm_cmd_resolve_route(struct ucm_call *call)
{
	const struct rdma_ucm_resolve_route *in = call->in;
	struct ucm_device device;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (!id->device || !in->timeout_ms || id->state != UCM_ADDR_RESOLVED)
		return EINVAL;
	if (!ucm_device(id->device, &device))
		return ENODEV;
	id->mtu = ucm_connection_path_mtu(&device, id->sgid, id->dgid);
	if (!id->mtu) {
		ucm_event_post(id, UCM_EVENT_ROUTE_ERROR, -EMSGSIZE);
		return 0;
	}
	id->packet_life = get_packet_life(id);
	id->has_route = true;
	id->state = UCM_ROUTE_RESOLVED;
	ucm_event_post(id, UCM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}
