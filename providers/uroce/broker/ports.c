/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/gid.h"

#define PORT_MAX 65535

struct port_entry {
	struct port_entry *next; /* next entry of the bucket */
	uint32_t client;
	struct uroce_broker_port port;
	bool chosen;
	bool listens;
};

static bool is_same_endpoint(const struct uroce_broker_endpoint *a,
			     const struct uroce_broker_endpoint *b)
{
	return a->scope_id == b->scope_id && !memcmp(a->gid, b->gid, sizeof(a->gid));
}

/* Returns true if the port receives packets of this IP version. */
static bool receives_ip_version(const struct uroce_broker_port *port, bool ipv4)
{
	const uint8_t *gid = port->endpoint.gid;

	if (gid_is_ipv4(gid) == ipv4)
		return true;
	return gid_is_any(gid) && !gid_is_ipv4(gid) && !(port->flags & UROCE_BROKER_PORT_AF_ONLY);
}

static bool may_overlap(const struct uroce_broker_port *a, const struct uroce_broker_port *b)
{
	return (receives_ip_version(a, true) && receives_ip_version(b, true)) ||
	       (receives_ip_version(a, false) && receives_ip_version(b, false));
}

/* ---- the table ---- */

static unsigned int bucket_of(uint16_t number)
{
	return number % PORTS_BUCKETS;
}

/*
 * Returns the entry with this port number and space that follows *after in the list, or the first
 * one if after is NULL.
 */
static struct port_entry *next_entry(const struct broker_ports *ports, uint16_t space,
				     uint16_t number, const struct port_entry *after)
{
	struct port_entry *entry = after ? after->next : ports->bucket[bucket_of(number)];

	while (entry && (entry->port.port != number || entry->port.space != space))
		entry = entry->next;
	return entry;
}

static struct port_entry *find_entry(const struct broker_ports *ports, uint32_t client,
				     const struct uroce_broker_port *port)
{
	struct port_entry *entry = NULL;

	while ((entry = next_entry(ports, port->space, port->port, entry)))
		if (entry->client == client && entry->port.id == port->id)
			break;
	return entry;
}

static int add_entry(struct broker_ports *ports, const struct port_entry *entry)
{
	struct port_entry **bucket = &ports->bucket[bucket_of(entry->port.port)];
	struct port_entry *copy;

	if (find_entry(ports, entry->client, &entry->port))
		return -EEXIST;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	*copy = *entry;
	copy->next = *bucket;
	*bucket = copy;
	ports->chosen += copy->chosen;
	return 0;
}

/* Removes and frees the entry that *from points to. */
static void remove_entry(struct broker_ports *ports, struct port_entry **from)
{
	struct port_entry *entry = *from;

	ports->chosen -= entry->chosen;
	*from = entry->next;
	free(entry);
}

/* ---- conflicts ---- */

static int conflict_between(const struct uroce_broker_port *a, const struct uroce_broker_port *b)
{
	if (!may_overlap(a, b))
		return 0;
	if (gid_is_any(a->endpoint.gid) != gid_is_any(b->endpoint.gid))
		return -EADDRNOTAVAIL;
	if (gid_is_any(a->endpoint.gid) || is_same_endpoint(&a->endpoint, &b->endpoint))
		return -EADDRINUSE;
	return 0;
}

/*
 * Returns 0, or the error of a conflict with another port, by the rules of the kernel's
 * cma_check_port().  self is the port's own entry when it starts to listen, and NULL when it is
 * bound.
 */
static int check_conflicts(const struct broker_ports *ports, const struct uroce_broker_port *port,
			   const struct port_entry *self)
{
	const struct port_entry *other = NULL;
	int error = 0;

	while (!error && (other = next_entry(ports, port->space, port->port, other))) {
		bool shares = port->flags & other->port.flags & UROCE_BROKER_PORT_REUSE;

		if (other != self && (self || !shares))
			error = conflict_between(port, &other->port);
	}
	return error;
}

/* ---- choosing a free port number ---- */

/*
 * Returns true if the number may be chosen: all ports that have it were chosen too, and none of
 * them listens.
 */
static bool is_number_shareable(const struct broker_ports *ports, uint16_t space, uint16_t number)
{
	const struct port_entry *entry = NULL;

	while ((entry = next_entry(ports, space, number, entry)))
		if (!entry->chosen || entry->listens)
			return false;
	return true;
}

static uint16_t number_in_range(const struct port_range *range, uint32_t i)
{
	return (uint16_t)(range->first + (range->random % range->count + i) % range->count);
}

static bool choose_number(const struct broker_ports *ports, struct uroce_broker_port *port,
			  const struct port_range *range)
{
	for (uint32_t i = 0; ports->chosen < range->count && i < range->count; i++) {
		port->port = number_in_range(range, i);
		if (!next_entry(ports, port->space, port->port, NULL))
			return true;
	}
	for (uint32_t i = 0; i < range->count; i++) {
		port->port = number_in_range(range, i);
		if (is_number_shareable(ports, port->space, port->port))
			return true;
	}
	return false;
}

/* ---- the calls ---- */

int ports_bind(struct broker_ports *ports, uint32_t client, struct uroce_broker_port *port,
	       const struct port_range *range)
{
	struct port_entry entry = { .client = client, .chosen = port->port == 0 };
	int error = 0;

	entry.port = *port;
	if (entry.chosen && !choose_number(ports, &entry.port, range))
		error = -EADDRNOTAVAIL;
	else if (!entry.chosen)
		error = check_conflicts(ports, port, NULL);
	if (!error)
		error = add_entry(ports, &entry);
	if (!error)
		port->port = entry.port.port;
	return error;
}

int ports_restore(struct broker_ports *ports, uint32_t client, const struct uroce_broker_port *port)
{
	const struct port_entry entry = {
		.client = client,
		.port = *port,
		.chosen = port->flags & UROCE_BROKER_PORT_CHOSEN,
		.listens = port->flags & UROCE_BROKER_PORT_LISTENING,
	};

	return add_entry(ports, &entry);
}

int ports_listen(struct broker_ports *ports, uint32_t client, const struct uroce_broker_port *port)
{
	struct port_entry *entry = find_entry(ports, client, port);
	int error;

	if (!entry)
		return -ENOENT;
	error = entry->listens ? 0 : check_conflicts(ports, &entry->port, entry);
	if (!error)
		entry->listens = true;
	return error;
}

void ports_release(struct broker_ports *ports, uint32_t client,
		   const struct uroce_broker_port *port)
{
	struct port_entry **from = &ports->bucket[bucket_of(port->port)];
	const struct port_entry *entry = find_entry(ports, client, port);

	while (*from && *from != entry)
		from = &(*from)->next;
	if (entry)
		remove_entry(ports, from);
}

void ports_remove_client(struct broker_ports *ports, uint32_t client)
{
	for (unsigned int i = 0; i < PORTS_BUCKETS; i++) {
		struct port_entry **from = &ports->bucket[i];

		while (*from)
			if ((*from)->client == client)
				remove_entry(ports, from);
			else
				from = &(*from)->next;
	}
}

uint32_t ports_find_listener(const struct broker_ports *ports, uint64_t service_id,
			     const struct uroce_broker_endpoint *endpoint)
{
	const struct port_entry *entry = NULL;
	const uint64_t space = service_id >> 16;
	uint32_t client = 0;

	if (space > UINT16_MAX)
		return 0;
	while ((entry = next_entry(ports, (uint16_t)space, (uint16_t)(service_id & PORT_MAX),
				   entry))) {
		if (!entry->listens)
			continue;
		if (is_same_endpoint(&entry->port.endpoint, endpoint))
			return entry->client;
		if (gid_is_any(entry->port.endpoint.gid) &&
		    receives_ip_version(&entry->port, gid_is_ipv4(endpoint->gid)))
			client = entry->client;
	}
	return client;
}
