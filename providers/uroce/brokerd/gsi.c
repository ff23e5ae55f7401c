/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Routing of MADs received at queue pair 1 of each address to clients */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/gsi_packet.h"
#include "broker/names.h"
#include "brokerd.h"
#include "util/gid.h"
#include "wire/bytes.h"
#include "wire/icrc.h"
#include "wire/packet.h"

enum {
	DATAGRAMS_MAX = 64,
	KEPT_MAX = 1024,
	/* Time after its start in which a broker waits for clients of an earlier one to return */
	GRACE_MS = 2000,
	/* Interval at which kept MADs are routed again; requests of clients also cause it. */
	KEPT_MS = 2,
	/* An appointed client that has not sent PING for this long is replaced. */
	WATCH_MS = 1500,
	DESTINATION_END = 8, /* offset after the BTH's destination queue pair number */
};

enum { PKEY_BASE_MASK = 0x7fff };

/* Result of routing a MAD. */
enum mad_route {
	ROUTE_CLIENT,  /* deliver to the client */
	ROUTE_ALL,     /* deliver to all clients that use queue pair 1 */
	ROUTE_REPLIER, /* deliver to any client, which replies for the host */
	ROUTE_KEEP,
	ROUTE_DROP,
};

/* ---- delivery ---- */

static bool deliver_datagram(struct brokerd *brokerd, const struct client *client,
			     struct datagram *datagram, enum uroce_broker_reason reason)
{
	ssize_t sent;

	datagram->head.reason = (uint16_t)reason;
	sent = send(client->delivery_fd, datagram,
		    offsetof(struct datagram, bytes) + datagram->head.bytes,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	/* A full socket loses the datagram, as a network does; the sender retransmits it. */
	if (sent < 0)
		brokerd->counts.lost++;
	else
		brokerd->counts.delivered++;
	return sent >= 0;
}

/* Returns true if the client receives MADs that arrive at the address. */
static bool receives_mads(const struct client *client, const struct address *address)
{
	return client && client->state == CLIENT_WORKER && client->uses_gsi &&
	       address_is_used(address, client->slot);
}

static void deliver_to_all(struct brokerd *brokerd, const struct address *address,
			   struct datagram *datagram)
{
	for (const struct client *client = brokerd->clients; client; client = client->next)
		if (receives_mads(client, address))
			deliver_datagram(brokerd, client, datagram, UROCE_BROKER_MAD_ANY);
}

/* Returns the next client, in turn, that uses queue pair 1 on the address, or NULL. */
static struct client *next_replier(struct brokerd *brokerd, const struct address *address)
{
	struct client *client = brokerd->last_replier ? brokerd->last_replier->next : NULL;

	while (client && !receives_mads(client, address))
		client = client->next;
	if (!client)
		client = brokerd->clients;
	while (client && !receives_mads(client, address))
		client = client->next;
	brokerd->last_replier = client;
	return client;
}

/*
 * Delivers to the next client in turn, which replies for the host.  Tries further clients if
 * sending fails, as when a client has ended but its end has not been processed yet.
 */
static void deliver_to_replier(struct brokerd *brokerd, const struct address *address,
			       struct datagram *datagram)
{
	struct client *first = next_replier(brokerd, address), *client = first;

	while (client && !deliver_datagram(brokerd, client, datagram, UROCE_BROKER_MAD_NONE)) {
		client = next_replier(brokerd, address);
		if (client == first)
			return;
	}
}

static struct client *find_any_client(const struct brokerd *brokerd, const struct address *address)
{
	struct client *client = brokerd->clients;

	while (client &&
	       (client->state != CLIENT_WORKER || !address_is_used(address, client->slot)))
		client = client->next;
	return client;
}

void gsi_remove_client(struct brokerd *brokerd, const struct client *client)
{
	if (brokerd->last_replier == client)
		brokerd->last_replier = NULL;
}

/* ---- routing ---- */

/* Returns true while clients of an earlier broker are expected to return. */
static bool is_in_grace(const struct brokerd *brokerd, uint64_t now)
{
	return now < brokerd->started_at + (uint64_t)GRACE_MS * NS_PER_MS;
}

static bool any_client_is_claiming(const struct brokerd *brokerd)
{
	const struct client *client = brokerd->clients;

	while (client && !client->is_claiming)
		client = client->next;
	return client;
}

/*
 * Returns true if clients of an earlier broker may still return, or have returned and not yet
 * claimed their ports and queue pair 1.
 */
static bool clients_may_return(const struct brokerd *brokerd, uint64_t now)
{
	return is_in_grace(brokerd, now) &&
	       (brokerd->slots.absent || any_client_is_claiming(brokerd));
}

/*
 * Returns true if a process that is not a client of this broker owns the slot, which is then marked
 * as absent.
 */
static bool is_slot_bound(struct brokerd *brokerd, uint32_t slot)
{
	int fd = names_lock_slot(slot);

	if (fd == -EADDRINUSE) {
		slots_mark_absent(&brokerd->slots, slot);
		return true;
	}
	if (fd >= 0)
		close(fd);
	return false;
}

static enum mad_route choose_by_slot(struct brokerd *brokerd, const struct target *target,
				     const struct address *address, uint64_t now,
				     struct client **client)
{
	*client = client_of_slot(brokerd, target->slot);
	if (receives_mads(*client, address))
		return ROUTE_CLIENT;
	if (*client && (*client)->is_claiming && is_in_grace(brokerd, now))
		return ROUTE_KEEP;
	/*
	 * The client does not receive MADs at this address, so another one replies for the host,
	 * but not to a REP or RTU: its REJ would end a connection of the slot's owner.
	 */
	if (*client)
		return target->is_reply ? ROUTE_DROP : ROUTE_REPLIER;
	if (target->slot < UROCE_BROKER_SLOTS && is_slot_bound(brokerd, target->slot))
		return clients_may_return(brokerd, now) ? ROUTE_KEEP : ROUTE_DROP;
	return ROUTE_REPLIER;
}

/*
 * Returns the client that listens for a request: at the loopback address in the request if it
 * arrived at a loopback address, or else at the GID where it arrived.
 */
static struct client *find_listener(const struct brokerd *brokerd, const struct target *target,
				    const struct uroce_broker_endpoint *endpoint)
{
	struct uroce_broker_endpoint named = *endpoint;
	uint32_t number;

	memcpy(named.gid, target_effective_address(target, endpoint->gid), sizeof(named.gid));
	number = ports_find_listener(&brokerd->ports, target->service_id, &named);
	if (!number)
		number = ports_find_listener(&brokerd->ports, target->service_id, endpoint);
	return number ? client_find(brokerd, number) : NULL;
}

static enum mad_route choose_by_service(struct brokerd *brokerd, const struct target *target,
					const struct address *address, uint64_t now,
					struct client **client)
{
	uint32_t number = target->kind == TARGET_REQUEST
				  ? target_requests_find(&brokerd->known_requests, target, now)
				  : 0;

	*client = number ? client_find(brokerd, number) : NULL;
	if (!receives_mads(*client, address))
		*client = find_listener(brokerd, target, &address->endpoint);
	if (!receives_mads(*client, address))
		return clients_may_return(brokerd, now) ? ROUTE_KEEP : ROUTE_REPLIER;
	if (target->kind == TARGET_REQUEST)
		target_requests_add(&brokerd->known_requests, target, (*client)->number, now);
	return ROUTE_CLIENT;
}

static enum mad_route choose_route(struct brokerd *brokerd, const struct target *target,
				   const struct address *address, uint64_t now,
				   struct client **client)
{
	enum mad_route route = ROUTE_REPLIER;

	*client = NULL;
	switch (target->kind) {
	case TARGET_SLOT:
		route = choose_by_slot(brokerd, target, address, now, client);
		break;
	case TARGET_REQUEST:
	case TARGET_SERVICE:
		route = choose_by_service(brokerd, target, address, now, client);
		break;
	case TARGET_REJECTED_REQUEST:
		*client = client_find(brokerd,
				      target_requests_find(&brokerd->known_requests, target, now));
		return receives_mads(*client, address) ? ROUTE_CLIENT : ROUTE_ALL;
	case TARGET_UNKNOWN:
		return ROUTE_REPLIER;
	}
	/*
	 * A client that has ended may have rejected a REQ of which this is a retransmission; its
	 * REJ goes first.
	 */
	if (route == ROUTE_REPLIER && last_mads_come_first(brokerd))
		return ROUTE_KEEP;
	return route;
}

/* ---- kept MADs ---- */

static void keep_mad(struct brokerd *brokerd, const struct datagram *datagram)
{
	size_t bytes = offsetof(struct datagram, bytes) + datagram->head.bytes;
	struct kept_mad *kept = brokerd->kept_count < KEPT_MAX ? malloc(sizeof(*kept)) : NULL;

	if (kept)
		kept->datagram = malloc(bytes);
	if (!kept || !kept->datagram) {
		free(kept);
		brokerd->counts.lost++;
		return;
	}
	memcpy(kept->datagram, datagram, bytes);
	kept->next = NULL;
	*brokerd->kept_mads_end = kept;
	brokerd->kept_mads_end = &kept->next;
	brokerd->kept_count++;
}

/* Routes a valid MAD. */
static void route_mad(struct brokerd *brokerd, const struct address *address,
		      struct datagram *datagram, const uint8_t *mad)
{
	const struct target target = target_from_mad(mad);
	struct client *client;

	switch (choose_route(brokerd, &target, address, brokerd_now(), &client)) {
	case ROUTE_CLIENT:
		if (!deliver_datagram(brokerd, client, datagram, UROCE_BROKER_MAD_OWN) &&
		    errno != EAGAIN)
			deliver_to_replier(brokerd, address, datagram);
		break;
	case ROUTE_ALL:
		deliver_to_all(brokerd, address, datagram);
		break;
	case ROUTE_REPLIER:
		deliver_to_replier(brokerd, address, datagram);
		break;
	case ROUTE_KEEP:
		keep_mad(brokerd, datagram);
		break;
	case ROUTE_DROP:
		brokerd->counts.lost++;
		break;
	}
}

/*
 * Checks a packet for queue pair 1: format, P_Key, Q_Key, ICRC.  Returns its MAD, or NULL if the
 * packet is damaged or has no MAD of the connection manager.
 */
static const uint8_t *valid_mad(const struct datagram *datagram)
{
	const struct uroce_broker_datagram *head = &datagram->head;
	struct wire_path path = { .src_port = head->source_port };
	struct wire_packet packet;
	uint16_t identification = 0;

	memcpy(path.src, head->source.gid, sizeof(path.src));
	memcpy(path.dst, head->destination.gid, sizeof(path.dst));
	path.ipv6 = !gid_is_ipv4(head->destination.gid);
	if (wire_parse(datagram->bytes, head->bytes, &packet) != WIRE_OK ||
	    (packet.pkey & PKEY_BASE_MASK) != (WIRE_DEFAULT_PKEY & PKEY_BASE_MASK) ||
	    packet.dest_qpn != MAD_QPN || gsi_packet_check(&packet) != GSI_OK ||
	    wire_icrc_check(&path, &identification, datagram->bytes, head->bytes) == WIRE_ICRC_BAD)
		return NULL;
	return packet.payload;
}

static void route_datagram(struct brokerd *brokerd, struct datagram *datagram)
{
	const struct address *address = address_find(brokerd, &datagram->head.destination);
	const uint8_t *mad = valid_mad(datagram);
	struct client *replier;

	if (!address)
		return;
	if (mad) {
		route_mad(brokerd, address, datagram, mad);
		return;
	}
	/* Pass it to a client, which counts and captures it with the reason for its drop. */
	brokerd->counts.bad_packets++;
	replier = next_replier(brokerd, address);
	if (replier)
		deliver_datagram(brokerd, replier, datagram, UROCE_BROKER_MAD_OWN);
	else if ((replier = find_any_client(brokerd, address)))
		deliver_datagram(brokerd, replier, datagram, UROCE_BROKER_MISDIRECTED);
}

void gsi_route_kept(struct brokerd *brokerd)
{
	struct kept_mad *kept = brokerd->kept_mads, *next;

	brokerd->kept_mads = NULL;
	brokerd->kept_mads_end = &brokerd->kept_mads;
	brokerd->kept_count = 0;
	brokerd->kept_deadline = brokerd_now() + (uint64_t)KEPT_MS * NS_PER_MS;
	for (; kept; kept = next) {
		next = kept->next;
		route_datagram(brokerd, kept->datagram);
		free(kept->datagram);
		free(kept);
	}
}

uint64_t gsi_deadline(const struct brokerd *brokerd)
{
	return brokerd->kept_mads ? brokerd->kept_deadline : UINT64_MAX;
}

/* ---- receiving ---- */

static bool is_probe(const struct datagram *datagram)
{
	return datagram->head.bytes == sizeof(struct uroce_broker_probe) &&
	       datagram->bytes[0] == UROCE_BROKER_PROBE >> 24;
}

void gsi_receive(struct brokerd *brokerd, struct address *address)
{
	struct datagram *datagram = &brokerd->datagram;

	for (unsigned int i = 0; i < DATAGRAMS_MAX && socket_receive(address->gsi_fd, datagram);
	     i++) {
		datagram->head.destination = address->endpoint;
		if (is_probe(datagram))
			probe_receive(brokerd, address, GROUP_GSI, datagram->bytes,
				      datagram->head.bytes);
		else
			route_datagram(brokerd, datagram);
	}
}

void gsi_receive_passed_on(struct brokerd *brokerd)
{
	struct datagram *datagram = &brokerd->datagram;
	struct client *client;
	uint32_t qpn;

	/* Read the destination as the steering program does; the client checks the packet. */
	if (datagram->head.bytes < DESTINATION_END)
		return;
	qpn = wire_get_be32(datagram->bytes + DESTINATION_END - 4) & WIRE_24BIT_MASK;
	if (qpn <= MAD_QPN) {
		route_datagram(brokerd, datagram);
		return;
	}
	client = client_of_slot(brokerd, qpn >> UROCE_BROKER_SLOT_SHIFT);
	if (client && client->state == CLIENT_WORKER)
		deliver_datagram(brokerd, client, datagram, UROCE_BROKER_MISDIRECTED);
}

/* ---- appointing a client to monitor the broker ---- */

static bool send_watch(const struct client *client)
{
	union broker_message message;

	broker_message_init(&message, UROCE_BROKER_WATCH, 0);
	message.on_off.flags = UROCE_BROKER_ON;
	return client_send(client->delivery_fd, &message, NULL);
}

/* Returns the client of the lowest slot that uses queue pair 1 and did not stop sending PING. */
static struct client *find_watcher(const struct brokerd *brokerd, uint64_t now)
{
	struct client *best = NULL;

	for (struct client *client = brokerd->clients; client; client = client->next) {
		bool silent = client->watched_at &&
			      now > client->watched_at + (uint64_t)WATCH_MS * NS_PER_MS;

		if (client->state == CLIENT_WORKER && client->uses_gsi && !silent &&
		    (!best || client->slot < best->slot))
			best = client;
	}
	return best;
}

void gsi_appoint_watcher(struct brokerd *brokerd, uint64_t now)
{
	struct client *client = find_watcher(brokerd, now);

	/* A client with a full delivery socket is tried again. */
	if (client && !client->watched_at && send_watch(client))
		client->watched_at = now;
}
