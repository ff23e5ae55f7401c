/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Ports of port spaces.  A process that binds one has its name, which the kernel frees with the
 * process: against other processes names decide, within this one the list of what is bound.
 *
 * A port that was chosen here has no name until it listens, since most belong to ids that
 * connect, may be thousands, and each name takes a descriptor.  So that processes do not choose
 * the same, each begins with those numbers that are its slot's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gsi_internal.h"
#include "link/gid.h"
#include "link/netdev.h"

/* What net.ipv4.ip_local_port_range is where it cannot be read. */
#define RANGE_FIRST 32768
#define RANGE_LAST 60999
#define PORT_MAX 65535
/* Beside the port's name: its owner would share it (GSI_PORT_REUSE). */
#define SPACE_SHARED 0x10000u
#define NAMES (sizeof(((struct gsi_port *)0)->name) / sizeof(int))

static const uint8_t any_ipv4[16] = { [10] = 0xff, [11] = 0xff };
static const uint8_t any_ipv6[16];

static bool is_ipv4(const uint8_t gid[16])
{
	return !memcmp(gid, any_ipv4, 12);
}

static bool is_any(const uint8_t gid[16])
{
	return !memcmp(gid, any_ipv4, 16) || !memcmp(gid, any_ipv6, 16);
}

/* "::" that takes IPv4 as well. */
static bool is_dual(const struct gsi_port *port)
{
	return !memcmp(port->address.gid, any_ipv6, 16) && !(port->flags & GSI_PORT_AF_ONLY);
}

/* Can something that comes by this IP version be for it? */
static bool takes(const struct gsi_port *port, bool ipv4)
{
	return is_ipv4(port->address.gid) == ipv4 || is_dual(port);
}

unsigned int gsi_port_bucket(uint16_t port)
{
	uint32_t hash = port * UINT32_C(0x9e3779b1);

	_Static_assert(GSI_PORT_BUCKETS == 4096, "the upper twelve bits name a bucket");
	return hash >> 20;
}

static struct gsi_port **bucket_of(struct gsi *gsi, uint16_t port)
{
	return &gsi->ports[gsi_port_bucket(port)];
}

/* ---- services ---- */

static uint64_t service_id(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

unsigned int gsi_port_services(const struct gsi_port *port, struct link_service service[2])
{
	service[0] = (struct link_service){
		.id = service_id(port->space, port->port),
		.scope_id = port->address.scope_id,
	};
	memcpy(service[0].gid, port->address.gid, sizeof(service[0].gid));
	if (!is_dual(port))
		return 1;
	service[1] = service[0];
	memcpy(service[1].gid, any_ipv4, sizeof(any_ipv4));
	return 2;
}

bool gsi_port_concerns(const struct link_service *service, const struct gsi_address *address)
{
	if (is_any(service->gid))
		return is_ipv4(service->gid) == is_ipv4(address->gid);
	if (gsi_is_loopback(service->gid))
		return gsi_is_loopback(address->gid);
	return service->scope_id == address->scope_id &&
	       !memcmp(service->gid, address->gid, sizeof(address->gid));
}

bool gsi_port_is_owned(uint64_t id, const uint8_t gid[16], uint32_t scope_id)
{
	uint64_t space = id >> 16;
	uint16_t port = id & PORT_MAX;

	if (space > UINT16_MAX)
		return false;
	return link_port_look((uint32_t)space, port, gid, scope_id) ||
	       link_port_look((uint32_t)space, port, is_ipv4(gid) ? any_ipv4 : any_ipv6, 0);
}

static void tell_addresses(struct gsi_port *port, bool listen)
{
	struct link_service service[2];
	unsigned int services = gsi_port_services(port, service);

	port->listening = listen;
	for (struct gsi_address *address = port->gsi->addresses; address; address = address->next)
		for (unsigned int i = 0; i < services; i++)
			gsi_address_service(address, &service[i], listen);
}

/* ---- against what this process has bound ---- */

static bool may_meet(const struct gsi_port *a, const struct gsi_port *b)
{
	return (takes(a, true) && takes(b, true)) || (takes(a, false) && takes(b, false));
}

/*
 * As the kernel's cma_check_port(), but that two that are any are the same, and that those which
 * nothing can be for both of do not meet.  When it listens, sharing is over.
 */
static int check_own(const struct gsi_port *port, bool listens)
{
	const struct gsi_port *other = *bucket_of(port->gsi, port->port);

	for (; other; other = other->next) {
		if (other == port || other->port != port->port || other->space != port->space)
			continue;
		if ((!listens && (port->flags & other->flags & GSI_PORT_REUSE)) ||
		    !may_meet(port, other))
			continue;
		if (is_any(port->address.gid) != is_any(other->address.gid))
			return -EADDRNOTAVAIL;
		if (is_any(port->address.gid))
			return -EADDRINUSE;
		if (port->address.scope_id == other->address.scope_id &&
		    !memcmp(port->address.gid, other->address.gid, sizeof(port->address.gid)))
			return -EADDRINUSE;
	}
	return 0;
}

/* ---- against other processes: names ---- */

static int look(const struct gsi_port *port, const uint8_t gid[16], uint32_t scope_id)
{
	return link_port_look(port->space, port->port, gid, scope_id);
}

static void drop_names(struct gsi_port *port)
{
	for (unsigned int i = 0; i < NAMES; i++)
		link_port_release(&port->name[i]);
	port->named = false;
}

static int claim_name(struct gsi_port *port, unsigned int index, uint32_t space,
		      const uint8_t gid[16], uint32_t scope_id)
{
	int fd = link_port_claim(space, port->port, gid, scope_id);

	if (fd < 0)
		return fd;
	port->name[index] = fd;
	return 0;
}

/* Is the port taken on one of the host's addresses that this one would take as well? */
static int look_at_addresses(const struct gsi_port *port)
{
	struct netdev *netdev;
	unsigned int netdevs;
	int error = netdev_list(&netdev, &netdevs);

	/* A listener there is found first anyway; only the error would be missing. */
	if (error)
		return 0;
	for (unsigned int i = 0; i < netdevs && !error; i++)
		for (unsigned int j = 0; j < netdev[i].address_count && !error; j++)
			if (takes(port, is_ipv4(netdev[i].address[j])))
				error = look(port, netdev[i].address[j],
					     link_gid_is_link_local(netdev[i].address[j])
						     ? netdev[i].index
						     : 0);
	free(netdev);
	return error == -EADDRINUSE ? -EADDRNOTAVAIL : error;
}

/* Any against one, and one against any; the same against the same is the names' own affair. */
static int look_around(const struct gsi_port *port)
{
	int error;

	if (is_any(port->address.gid))
		return look_at_addresses(port);
	error = look(port, is_ipv4(port->address.gid) ? any_ipv4 : any_ipv6, 0);
	return error == -EADDRINUSE ? -EADDRNOTAVAIL : error;
}

/*
 * First have the names, then look around: of two that do so at once, at least one sees the other.
 */
static int take_names(struct gsi_port *port)
{
	int error = claim_name(port, 0, port->space, port->address.gid, port->address.scope_id);

	if (!error && is_dual(port))
		error = claim_name(port, 1, port->space, any_ipv4, 0);
	if (!error && (port->flags & GSI_PORT_REUSE))
		error = claim_name(port, 2, port->space | SPACE_SHARED, port->address.gid,
				   port->address.scope_id);
	if (!error)
		error = look_around(port);
	if (error)
		drop_names(port);
	else
		port->named = true;
	return error;
}

/* If the port's name is taken its owner has to share it. */
static int look_for_sharing(const struct gsi_port *port)
{
	int error = look(port, port->address.gid, port->address.scope_id);

	if (error != -EADDRINUSE)
		return error;
	return link_port_look(port->space | SPACE_SHARED, port->port, port->address.gid,
			      port->address.scope_id) == -EADDRINUSE
		       ? 0
		       : -EADDRINUSE;
}

/* ---- a port of our choice ---- */

struct range {
	uint32_t first, count;
};

static struct range read_range(void)
{
	unsigned int first = 0, last = 0;
	FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");

	if (file) {
		if (fscanf(file, "%u %u", &first, &last) != 2)
			last = 0;
		fclose(file);
	}
	if (first == 0 || last < first || last > PORT_MAX) {
		first = RANGE_FIRST;
		last = RANGE_LAST;
	}
	return (struct range){ .first = first, .count = last - first + 1 };
}

static uint32_t random_number(void)
{
	uint32_t number;

	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
		number = (uint32_t)progress_now();
	return number;
}

static bool is_bound_here(const struct gsi_port *port)
{
	const struct gsi_port *other = *bucket_of(port->gsi, port->port);

	while (other && (other->port != port->port || other->space != port->space))
		other = other->next;
	return other;
}

static bool is_free(const struct gsi_port *port)
{
	if (is_bound_here(port) || look(port, port->address.gid, port->address.scope_id))
		return false;
	if (is_dual(port) && look(port, any_ipv4, 0))
		return false;
	/* Single addresses are looked at when it listens: there may be many. */
	return is_any(port->address.gid) || !look_around(port);
}

/* A number is no more than that while it is not listened at. */
static bool is_shareable(const struct gsi_port *port)
{
	const struct gsi_port *other = *bucket_of(port->gsi, port->port);

	for (; other; other = other->next)
		if (other->port == port->port && other->space == port->space &&
		    (!other->chosen || other->listening))
			return false;
	return true;
}

/* The count numbers from first on in steps, beginning anywhere: the first free one. */
static bool choose_among(struct gsi_port *port, uint32_t first, uint32_t step, uint32_t count)
{
	uint32_t start = count ? random_number() % count : 0;

	for (uint32_t i = 0; i < count; i++) {
		port->port = (uint16_t)(first + (start + i) % count * step);
		if (is_free(port))
			return true;
	}
	return false;
}

/* Those beyond the last share an entry. */
static struct gsi_port_count *count_of(const struct gsi_port *port)
{
	struct gsi_port_count *count = port->gsi->port_count;

	while (count->space && count->space != port->space &&
	       count < &port->gsi->port_count[GSI_PORT_SPACES - 1])
		count++;
	count->space = port->space;
	return count;
}

static int choose(struct gsi_port *port)
{
	const struct range range = read_range();
	const struct gsi_port_count *used = count_of(port);
	uint32_t slot = gsi_slot(port->gsi);
	uint32_t own = range.count > slot ? (range.count - slot - 1) / LINK_SLOTS + 1 : 0;

	port->own = used->own < own && choose_among(port, range.first + slot, LINK_SLOTS, own);
	if (port->own ||
	    (used->chosen < range.count && choose_among(port, range.first, 1, range.count)))
		return 0;
	for (uint32_t i = 0; i < range.count; i++) {
		port->port = (uint16_t)(range.first + random_number() % range.count);
		if (is_shareable(port))
			return 0;
	}
	return -EADDRNOTAVAIL;
}

/* ---- the calls ---- */

static int bind_port(struct gsi_port *port)
{
	int error;

	if (port->chosen)
		return choose(port);
	error = check_own(port, false);
	if (error)
		return error;
	return port->flags & GSI_PORT_REUSE ? look_for_sharing(port) : take_names(port);
}

int gsi_port_bind(struct gsi *gsi, uint16_t space, const struct gsi_port_address *address,
		  uint16_t *number, unsigned int flags, struct gsi_port **bound)
{
	struct gsi_port *port, **bucket;
	int error;

	if (gsi->progress->dead)
		return -EOWNERDEAD;
	port = malloc(sizeof(*port));
	if (!port)
		return -ENOMEM;
	*port = (struct gsi_port){
		.gsi = gsi,
		.space = space,
		.port = *number,
		.address = *address,
		.flags = flags,
		.chosen = *number == 0,
		.name = { -1, -1, -1 },
	};
	pthread_mutex_lock(&gsi->lock);
	error = bind_port(port);
	if (!error) {
		bucket = bucket_of(gsi, port->port);
		port->next = *bucket;
		*bucket = port;
		count_of(port)->chosen += port->chosen;
		count_of(port)->own += port->own;
		*number = port->port;
		*bound = port;
	}
	pthread_mutex_unlock(&gsi->lock);
	if (error)
		free(port);
	return error;
}

int gsi_port_listen(struct gsi_port *port)
{
	struct gsi *gsi = port->gsi;
	int error = 0;

	if (gsi->progress->dead)
		return -EOWNERDEAD;
	pthread_mutex_lock(&gsi->lock);
	if (!port->listening) {
		if (port->chosen || (port->flags & GSI_PORT_REUSE))
			error = check_own(port, true);
		if (!error && !port->named)
			error = take_names(port);
		if (!error)
			tell_addresses(port, true);
	}
	pthread_mutex_unlock(&gsi->lock);
	return error;
}

void gsi_port_close(struct gsi_port *port)
{
	struct gsi *gsi = port->gsi;
	struct gsi_port **from;

	if (gsi->progress->dead)
		return;
	pthread_mutex_lock(&gsi->lock);
	if (port->listening)
		tell_addresses(port, false);
	drop_names(port);
	for (from = bucket_of(gsi, port->port); *from != port;)
		from = &(*from)->next;
	*from = port->next;
	count_of(port)->chosen -= port->chosen;
	count_of(port)->own -= port->own;
	pthread_mutex_unlock(&gsi->lock);
	free(port);
}

void gsi_ports_abandon(struct gsi *gsi)
{
	for (unsigned int i = 0; i < GSI_PORT_BUCKETS; i++)
		for (struct gsi_port *port = gsi->ports[i]; port; port = port->next)
			for (unsigned int j = 0; j < NAMES; j++)
				if (port->name[j] >= 0)
					close(port->name[j]);
}
