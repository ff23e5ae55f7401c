/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Commands BIND, BIND_IP and LISTEN: local addresses and ports. */
#include <errno.h>
#include <link.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "command.h"
#include "ucm/conn/connection.h"
#include "ucm/addr/devices.h"
#include "ucm/ucm_core.h"
#include "ucm/addr/address.h"
#include "verbs/settings.h"

/* Returns the number in a file of /proc/sys, or fallback if it cannot be read. */
static long read_sysctl(const char *path, long fallback)
{
	FILE *file = fopen(path, "re");
	long value = fallback;

	if (!file)
		return fallback;
	if (fscanf(file, "%ld", &value) != 1)
		value = fallback;
	fclose(file);
	return value;
}

static bool may_bind_privileged(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[0].effective & 1u << CAP_NET_BIND_SERVICE;
}

static bool port_is_allowed(uint16_t port)
{
	return !port ||
	       port >= read_sysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", 1024) ||
	       may_bind_privileged();
}

/* AFONLY matters only for "::", which otherwise includes the IPv4 addresses. */
static unsigned int port_flags(const struct ucm_id *id)
{
	bool af_only = id->af_only && id->source.family != AF_INET && gid_is_any(id->source.ip);

	return (id->reuse_addr ? GSI_PORT_REUSE : 0) | (af_only ? GSI_PORT_AF_ONLY : 0);
}

/* Returns 0 or a positive errno. */
static int bind_port(struct ucm_id *id)
{
	struct gsi_port_address address = { .scope_id = 0 };

	memcpy(address.gid, id->source.ip, sizeof(address.gid));
	if (gid_is_link_local(id->source.ip))
		address.scope_id = id->source.scope_id;
	return -gsi_port_bind(ucm_gsi(), id->port_space, &address, &id->source.port, port_flags(id),
			      &id->port);
}

int ucm_set_port_option(struct ucm_id *id, bool *option, bool on)
{
	unsigned int flags = port_flags(id);
	bool before = *option;
	int error;

	*option = on;
	if (!id->port || port_flags(id) == flags)
		return 0;
	gsi_port_close(id->port);
	id->port = NULL;
	error = bind_port(id);
	if (!error)
		return 0;
	/*
	 * Restore the previous binding.  If another process has taken the port since then, the id
	 * has no port; LISTEN then tries to bind again and returns the error.
	 */
	*option = before;
	bind_port(id);
	return error;
}

/* Device of a local address, and the GID that its packets carry. */
struct local_addr {
	uint32_t device;
	unsigned int gid_index;
	uint8_t gid[16];
};

static int find_local_addr(const struct ucm_address *address, struct local_addr *local_addr)
{
	struct ucm_device device;
	uint32_t loopback;

	memcpy(local_addr->gid, address->ip, sizeof(local_addr->gid));
	if (ucm_device_of_gid(local_addr->gid, address->scope_id, &local_addr->device,
			      &local_addr->gid_index))
		return 0;
	/* All addresses of 127.0.0.0/8 share GID 0 of the loopback device. */
	loopback = gid_is_loopback(address->ip) ? ucm_device_loopback() : UCM_NO_DEVICE;
	if (ucm_device(loopback, &device)) {
		local_addr->device = loopback;
		local_addr->gid_index = 0;
		memcpy(local_addr->gid, device.gid, sizeof(local_addr->gid));
		return 0;
	}
	return ucm_route_is_local(address) ? ENODEV : EADDRNOTAVAIL;
}

static int is_libfabric(struct dl_phdr_info *library, size_t bytes, void *arg)
{
	(void)bytes;
	(void)arg;
	return strstr(library->dlpi_name, "/libfabric.so") != NULL;
}

/*
 * Returns true if an id that is bound to a loopback address is bound to the loopback device.  Not
 * with UROCE_LOOPBACK=off, as librdmacm would look for a device that is in no list.  Nor if
 * libfabric is loaded: without an address it binds to 127.0.0.1, and would then offer this device
 * only.  With the kernel such an id has no device, and libfabric offers all devices.
 */
static bool loopback_binds_device(void)
{
	return uroce_settings_loopback_enabled() && !dl_iterate_phdr(is_libfabric, NULL);
}

/* The option has the default of IPV6_V6ONLY. */
static void set_default_af_only(struct ucm_id *id, int family)
{
	if (id->af_only_set)
		return;
	id->af_only = family == AF_INET ||
		      (family == AF_INET6 && read_sysctl("/proc/sys/net/ipv6/bindv6only", 0));
}

static int check_bind(const struct ucm_id *id, const struct ucm_address *address)
{
	if (id->state != UCM_IDLE)
		return EINVAL;
	if (gid_is_link_local(address->ip) && !address->scope_id)
		return EINVAL;
	if (address->family == UCM_AF_IB && address->port_space && id->port_space != RDMA_PS_IB &&
	    address->port_space != id->port_space)
		return EINVAL;
	return port_is_allowed(address->port) ? 0 : EACCES;
}

/* Starts to receive MADs at gid.  Releases the lock in between, so *id is looked up again. */
static int listen_addr(struct ucm_id **id, const uint8_t *gid, uint32_t device)
{
	uint64_t serial = (*id)->serial;
	uint32_t handle = (*id)->handle;
	int error;

	ucm_unlock();
	error = ucm_listen_addr(gid, device);
	ucm_lock();
	*id = ucm_id_revalidate(handle, serial);
	return *id ? error : ENOENT;
}

int ucm_bind_id(struct ucm_id **id, const struct ucm_address *address)
{
	bool any = gid_is_any(address->ip);
	struct local_addr local_addr = { .device = UCM_NO_DEVICE };
	int error = check_bind(*id, address);

	if (!error && !any)
		error = find_local_addr(address, &local_addr);
	/*
	 * librdmacm probes for AF_IB with an id that it destroys at once; this does not start the
	 * connection manager.
	 */
	if (!error && (address->family != UCM_AF_IB || address->port || !any))
		error = listen_addr(id, any ? NULL : local_addr.gid, local_addr.device);
	if (!error)
		error = check_bind(*id, address);
	if (error)
		return error;
	set_default_af_only(*id, address->family);
	(*id)->source = *address;
	if (ucm_gsi()) {
		error = bind_port(*id);
		if (error) {
			(*id)->source.family = AF_UNSPEC;
			return error;
		}
	}
	(*id)->state = UCM_BOUND;
	if (any || (gid_is_loopback(address->ip) && !loopback_binds_device()))
		return 0;
	(*id)->device = local_addr.device;
	(*id)->sgid_index = local_addr.gid_index;
	memcpy((*id)->sgid, local_addr.gid, sizeof(local_addr.gid));
	return 0;
}

static int bind_handle(struct ucm_call *call, uint32_t handle, const void *address, size_t bytes)
{
	struct ucm_address parsed;
	struct ucm_id *id;
	int error;

	if (!ucm_address_get(address, bytes, &parsed))
		return EINVAL;
	id = ucm_id_find(call->channel, handle, &error);
	return id ? ucm_bind_id(&id, &parsed) : error;
}

int ucm_cmd_bind_ip(struct ucm_call *call)
{
	const struct rdma_ucm_bind_ip *in = call->in;

	if (in->addr.sin6_family != AF_INET && in->addr.sin6_family != AF_INET6)
		return EINVAL;
	return bind_handle(call, in->id, &in->addr, sizeof(in->addr));
}

int ucm_cmd_bind(struct ucm_call *call)
{
	const struct rdma_ucm_bind *in = call->in;

	if (in->reserved || !in->addr_size ||
	    in->addr_size != ucm_address_bytes(in->addr.ss_family))
		return EINVAL;
	return bind_handle(call, in->id, &in->addr, sizeof(in->addr));
}

static int start_listener(struct ucm_id **id)
{
	uint64_t serial = (*id)->serial;
	uint32_t handle = (*id)->handle;
	/* If the id is bound to one address, MADs to that address are received already. */
	bool any = gid_is_any((*id)->source.ip);
	int error = 0;

	ucm_unlock();
	if (any)
		error = ucm_listen_all();
	ucm_lock();
	*id = ucm_id_revalidate(handle, serial);
	if (error || !*id)
		return *id ? error : ENOENT;
	if ((*id)->state != UCM_BOUND)
		return EINVAL;
	if (!(*id)->port)
		error = bind_port(*id);
	return error ? error : ucm_connection_listen(*id);
}

int ucm_cmd_listen(struct ucm_call *call)
{
	const struct rdma_ucm_listen *in = call->in;
	struct ucm_address any;
	int error;
	struct ucm_id *id = ucm_id_find(call->channel, in->id, &error);

	if (!id)
		return error;
	if (id->state == UCM_IDLE) {
		ucm_address_any(AF_INET, &any);
		error = ucm_bind_id(&id, &any);
		if (error)
			return error;
	}
	if (id->state != UCM_BOUND)
		return EINVAL;
	error = start_listener(&id);
	if (error)
		return error;
	id->backlog =
		in->backlog > 0 && in->backlog <= UCM_MAX_BACKLOG ? in->backlog : UCM_MAX_BACKLOG;
	id->state = UCM_LISTEN;
	return 0;
}
