/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Local addresses in use, and the paths of QPs to their peers. */
#include "qp_connect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress/thread.h"
#include "progress/loop.h"

/* Traffic class of CNPs, as adapters send them: DSCP 48, not ECN-capable. */
#define CNP_CLASS (48 << 2)

/* Caller holds cycle_lock and wakeup.lock. */
static int add_address(struct progress *progress, struct link_addr *addr)
{
	unsigned int capacity = progress->address_capacity ? 2 * progress->address_capacity : 4;
	struct progress_address *new_array;
	int error;

	if (progress->address_count == progress->address_capacity) {
		new_array = realloc(progress->address, capacity * sizeof(*new_array));
		if (!new_array)
			return -ENOMEM;
		progress->address = new_array;
		progress->address_capacity = capacity;
	}
	error = wakeup_add_address(progress, addr);
	if (error)
		return error;
	progress->address[progress->address_count++] =
		(struct progress_address){ .addr = addr, .users = 1 };
	return 0;
}

int address_get(struct progress *progress, const uint8_t gid[16], uint32_t scope_id,
		struct link_addr **addr, char error[PROGRESS_ERROR_TEXT])
{
	struct progress_address *address;
	bool is_new;
	int result = link_addr_open(progress->link, gid, scope_id, addr, error);

	/*
	 * link_addr_open() has served requests of other processes while it waited: a shared memory
	 * region may have been created for another address, which the progress thread must watch.
	 */
	if (result) {
		wakeup_thread(progress);
		return result;
	}
	progress_lock(progress);
	pthread_mutex_lock(&progress->wakeup.lock);
	address = progress_address_find(progress, *addr);
	is_new = !address;
	if (is_new)
		result = add_address(progress, *addr);
	else
		address->users++;
	pthread_mutex_unlock(&progress->wakeup.lock);
	progress_unlock(progress);
	if (result) {
		snprintf(error, PROGRESS_ERROR_TEXT, "cannot poll the socket: %s",
			 strerror(-result));
		link_addr_close(*addr);
		return result;
	}
	/*
	 * Wake the progress thread: another process may already have requested the shared memory
	 * region of the new address, which a sleeping thread does not watch.
	 */
	if (is_new)
		wakeup_thread(progress);
	return 0;
}

/* Caller holds route_lock. */
static void address_put(struct progress *progress, struct link_addr *addr)
{
	struct progress_address *address;

	progress_lock(progress);
	pthread_mutex_lock(&progress->wakeup.lock);
	address = progress_address_find(progress, addr);
	if (--address->users == 0) {
		wakeup_remove_address(progress, addr);
		*address = progress->address[--progress->address_count];
	}
	pthread_mutex_unlock(&progress->wakeup.lock);
	progress_unlock(progress);
	link_addr_close(addr);
}

void path_close(struct progress *progress, struct link_addr *addr, struct link_peer *peer)
{
	if (peer) {
		if (progress->fault)
			fault_flush(progress->fault, peer);
		link_peer_close(peer);
	}
	if (addr)
		address_put(progress, addr);
}

static uint16_t choose_source_port(const struct progress_qp *qp, const struct progress_route *route)
{
	if (route->flow_label)
		return source_port_from_flow_label(route->flow_label);
	return source_port_connected(qp->qpn, route->dest_qpn);
}

static void fill_path(struct eng_path *path, const uint8_t sgid[16], const uint8_t dgid[16],
		      uint16_t port, struct link_peer *peer)
{
	memset(path, 0, sizeof(*path));
	memcpy(path->wire.src, sgid, sizeof(path->wire.src));
	memcpy(path->wire.dst, dgid, sizeof(path->wire.dst));
	path->wire.src_port = port;
	path->wire.ipv6 = !gid_is_ipv4(sgid);
	path->link = peer;
	wire_icrc_precompute(&path->wire);
}

int path_open(struct progress *progress, const struct progress_route *route, bool own,
	      struct progress_path *path, char error[PROGRESS_ERROR_TEXT])
{
	const struct link_dst dst = {
		.gid = route->dgid,
		.scope_id = progress_route_scope(route),
		.traffic_class = route->traffic_class,
		.hop_limit = route->hop_limit,
	};
	uint16_t port = path->eng.wire.src_port;
	struct link_peer *peer;
	int result = address_get(progress, route->sgid, route->scope_id, &path->addr, error);

	if (result)
		return result;
	result = own ? link_peer_open_exclusive(path->addr, &dst, route->dest_qpn, &port, &peer)
		     : link_peer_open(path->addr, &dst, &port, &peer);
	if (result) {
		snprintf(error, PROGRESS_ERROR_TEXT, "cannot reach the peer: %s",
			 strerror(-result));
		address_put(progress, path->addr);
		return result;
	}
	fill_path(&path->eng, route->sgid, route->dgid, port, peer);
	return 0;
}

int path_open_peer(struct link_addr *addr, const struct link_dst *dst, uint32_t qpn,
		   struct eng_path *path)
{
	uint16_t port = source_port_datagram(qpn);
	struct link_peer *peer;
	int error = link_peer_open(addr, dst, &port, &peer);

	if (!error)
		fill_path(path, link_addr_gid(addr), dst->gid, port, peer);
	return error;
}

int explain_forked(char error[PROGRESS_ERROR_TEXT])
{
	snprintf(error, PROGRESS_ERROR_TEXT,
		 "the device was opened before fork(): open it again in the child");
	return -EOWNERDEAD;
}

/*
 * Opens the path of CNPs, if switches may mark the peer's packets, and enables reading of the
 * marks.  CNPs use a separate traffic class, as those of adapters do, so that they do not queue
 * behind data.
 */
static int open_cnp_path(const struct progress_route *route, const struct progress_path *path,
			 struct eng_path *cnp, char error[PROGRESS_ERROR_TEXT])
{
	const struct link_dst dst = {
		.gid = route->dgid,
		.scope_id = progress_route_scope(route),
		.traffic_class = CNP_CLASS,
	};
	uint16_t port = path->eng.wire.src_port;
	struct link_peer *peer;
	int result;

	memset(cnp, 0, sizeof(*cnp));
	if (!(route->traffic_class & ECN_MASK) ||
	    link_peer_transport(path->eng.link) == LINK_SHARED_MEMORY)
		return 0;
	result = link_peer_open(path->addr, &dst, &port, &peer);
	if (result) {
		snprintf(error, PROGRESS_ERROR_TEXT,
			 "cannot open the path for congestion notifications: %s",
			 strerror(-result));
		return result;
	}
	link_addr_enable_rx_class(path->addr);
	fill_path(cnp, route->sgid, route->dgid, port, peer);
	return 0;
}

/* Paths opened for a QP. */
struct open_paths {
	struct progress_path path;
	struct eng_path cnp;
};

static int open_paths(struct progress *progress, const struct progress_qp *qp,
		      const struct progress_route *route, struct open_paths *paths,
		      char error[PROGRESS_ERROR_TEXT])
{
	int result;

	paths->path.eng.wire.src_port = choose_source_port(qp, route);
	/*
	 * Fault injection sends the packets of a burst in calls of its own, so an exclusive peer,
	 * whose IPv4 IDs the engine knows, is not possible.
	 */
	result = path_open(progress, route, !progress->fault, &paths->path, error);
	if (result)
		return result;
	result = open_cnp_path(route, &paths->path, &paths->cnp, error);
	if (result)
		path_close(progress, paths->path.addr, paths->path.eng.link);
	return result;
}

/* Injected faults lose packets within a host, too; shared memory is not used with them. */
static enum eng_path_loss path_loss(const struct progress *progress, const struct progress_qp *qp)
{
	if (progress->fault)
		return ENG_PATH_LOSSY;
	return qp->transport == LINK_SHARED_MEMORY ? ENG_PATH_LOSSLESS : ENG_PATH_USUAL;
}

int progress_qp_connect(struct progress *progress, struct progress_qp *qp,
			const struct progress_route *route, struct eng_path *path,
			char error[PROGRESS_ERROR_TEXT])
{
	struct link_peer *old_peer, *old_cnp_peer;
	struct link_addr *old_addr;
	struct open_paths paths;
	int result;

	if (progress->forked)
		return explain_forked(error);
	pthread_mutex_lock(&progress->route_lock);
	result = open_paths(progress, qp, route, &paths, error);
	if (!result) {
		/* Cycles use the peer under qp->lock, so none uses the old one after this. */
		pthread_mutex_lock(&qp->lock);
		old_addr = qp->addr;
		old_peer = qp->peer;
		old_cnp_peer = qp->cnp_path.link;
		qp->addr = paths.path.addr;
		qp->peer = paths.path.eng.link;
		qp->cnp_path = paths.cnp;
		*path = paths.path.eng;
		qp->transport = link_peer_transport(qp->peer);
		eng_set_path_loss(qp->engine, path_loss(progress, qp));
		eng_set_ecn(qp->engine, qp->cnp_path.link ? &qp->cnp_path : NULL);
		eng_set_cc(qp->engine, memcmp(route->sgid, route->dgid, sizeof(route->dgid))
					       ? ENG_CC_NETWORK
					       : ENG_CC_LOCAL);
		/*
		 * Nothing is known of the IPv4 IDs on a new connection, so their history begins
		 * again.
		 */
		qp->ip_ids = (struct ip_id_history){ 0 };
		qp->rx_path = (struct wire_path){ 0 };
		pthread_mutex_unlock(&qp->lock);
		path_close(progress, NULL, old_cnp_peer);
		path_close(progress, old_addr, old_peer);
	}
	pthread_mutex_unlock(&progress->route_lock);
	return result;
}

void qp_disconnect(struct progress *progress, struct progress_qp *qp)
{
	pthread_mutex_lock(&progress->route_lock);
	path_close(progress, NULL, qp->cnp_path.link);
	path_close(progress, qp->addr, qp->peer);
	qp->addr = NULL;
	qp->peer = NULL;
	qp->cnp_path.link = NULL;
	pthread_mutex_unlock(&progress->route_lock);
}

/* The dynamic ports, which RoCEv2 senders should use. */
#define FIRST_PORT 0xc000u
#define PORT_MASK 0x3fffu
#define FLOW_LABEL_MASK 0xfffffu
/* 2^32 divided by the golden ratio: the usual multiplicative hash. */
#define HASH_FACTOR 0x61c88647u

uint16_t source_port_from_flow_label(uint32_t flow_label)
{
	flow_label &= FLOW_LABEL_MASK;
	return (uint16_t)(FIRST_PORT | ((flow_label & PORT_MASK) ^ (flow_label >> 14)));
}

uint16_t source_port_connected(uint32_t qpn, uint32_t dest_qpn)
{
	uint64_t v = (uint64_t)qpn * dest_qpn;

	v ^= v >> 20;
	v ^= v >> 40;
	return source_port_from_flow_label((uint32_t)(v & FLOW_LABEL_MASK));
}

uint16_t source_port_datagram(uint32_t qpn)
{
	return (uint16_t)(FIRST_PORT | (qpn * HASH_FACTOR) >> 18);
}
