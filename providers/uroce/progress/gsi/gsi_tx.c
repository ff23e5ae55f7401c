/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Sends MADs, and caches the paths to other hosts for them. */
#include <errno.h>
#include <string.h>

#include "gsi_priv.h"
#include "broker/gsi_packet.h"
#include "progress/path/qp_connect.h"
#include "progress/tx/capture_hook.h"

static void close_peer(struct gsi *gsi, struct gsi_peer *peer)
{
	if (peer->address)
		path_close(gsi->progress, NULL, peer->path.link);
	peer->address = NULL;
}

static bool peer_matches(const struct gsi_peer *peer, const struct gsi_address *address,
			 const struct gsi_path *path)
{
	return peer->address == address && peer->scope_id == path->scope_id &&
	       peer->traffic_class == path->traffic_class &&
	       !memcmp(peer->dgid, path->dgid, sizeof(peer->dgid));
}

static int open_peer(struct gsi *gsi, struct gsi_peer *peer, struct gsi_address *address,
		     const struct gsi_path *path)
{
	const struct link_dst dst = {
		.gid = path->dgid,
		.scope_id = path->scope_id,
		.traffic_class = path->traffic_class,
	};
	int error;

	close_peer(gsi, peer);
	error = path_open_peer(address->addr, &dst, MAD_QPN, &peer->path);
	if (error)
		return error;
	peer->address = address;
	memcpy(peer->dgid, path->dgid, sizeof(peer->dgid));
	peer->scope_id = path->scope_id;
	peer->traffic_class = path->traffic_class;
	return 0;
}

/*
 * Finds the path, or opens it in place of the least recently used one; returns 0 or a negative
 * errno.
 */
static int get_peer(struct gsi *gsi, struct gsi_address *address, const struct gsi_path *path,
		    struct gsi_peer **result)
{
	struct gsi_peer *least_recent = &gsi->peer[0];
	int error;

	for (unsigned int i = 0; i < GSI_PEERS; i++) {
		struct gsi_peer *peer = &gsi->peer[i];

		if (peer_matches(peer, address, path)) {
			peer->last_used = ++gsi->sends;
			*result = peer;
			return 0;
		}
		if (least_recent->address &&
		    (!peer->address || peer->last_used < least_recent->last_used))
			least_recent = peer;
	}
	error = open_peer(gsi, least_recent, address, path);
	least_recent->last_used = ++gsi->sends;
	*result = least_recent;
	return error;
}

static int send_packet(struct progress *progress, const struct eng_path *path,
		       const uint8_t packet[GSI_PACKET_BYTES])
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)packet, .iov_len = GSI_PACKET_BYTES };
	struct eng_piece piece = { .bytes = packet, .length = GSI_PACKET_BYTES };
	const struct eng_burst burst = {
		.pieces = &piece,
		.piece_count = 1,
		.path = path,
		.packets = 1,
		.segment = GSI_PACKET_BYTES,
		.bytes = GSI_PACKET_BYTES,
	};
	int error;

	count_anywhere(progress, PROGRESS_COUNT_MAD_SENT);
	if (progress->fault) {
		fault_send(progress->fault, path->link, MAD_QPN, &burst, progress_now());
		wakeup_for_deadline(progress, fault_deadline(progress->fault));
		return 0;
	}
	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	error = tx_send(path->link, MAD_QPN, CAPTURE_TX_ONCE, &iov, 1, 0);
	if (error)
		count_anywhere(progress, error == -EAGAIN || error == -ENOBUFS
						 ? PROGRESS_COUNT_SOCKET_FULL
						 : PROGRESS_COUNT_SEND_ERRORS);
	return error;
}

/*
 * Returns the address path->sgid, or NULL.  A link-local address may exist on several interfaces:
 * prefers that of path->scope_id.
 */
static struct gsi_address *find_source(struct gsi *gsi, const struct gsi_path *path)
{
	struct gsi_address *address = gsi_address_find(gsi, path->sgid, path->scope_id);

	if (address)
		return address;
	for (address = gsi->addresses; address; address = address->next)
		if (!memcmp(address->gid, path->sgid, sizeof(address->gid)))
			break;
	return address;
}

static int send_locked(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES])
{
	struct gsi_address *address = find_source(gsi, path);
	uint8_t packet[GSI_PACKET_BYTES];
	struct gsi_peer *peer;
	int error = address ? get_peer(gsi, address, path, &peer) : -EADDRNOTAVAIL;

	if (error)
		return error;
	gsi_packet_build(&peer->path.wire, gsi->psn++, mad, packet);
	return send_packet(gsi->progress, &peer->path, packet);
}

int gsi_send(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES])
{
	int error;

	if (gsi->progress->forked)
		return -EOWNERDEAD;
	pthread_mutex_lock(&gsi->lock);
	error = send_locked(gsi, path, mad);
	pthread_mutex_unlock(&gsi->lock);
	return error;
}

void gsi_close_peers(struct gsi *gsi, const struct gsi_address *address)
{
	for (unsigned int i = 0; i < GSI_PEERS; i++)
		if (gsi->peer[i].address == address)
			close_peer(gsi, &gsi->peer[i]);
}
