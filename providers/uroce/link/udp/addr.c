/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Local addresses in use; their sockets come from the broker */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/names.h"
#include "link/shm/shm.h"

enum {
	USER_TEXT = 48,
	REMEDY_TEXT = 64,
};

/*
 * Writes what to do if another user has the address.  All of 127.0.0.0/8 is this host, so each user
 * can have a loopback address of its own, derived from the UID, in a part of the network that is
 * rarely used.
 */
static void explain_remedy(const struct link_endpoint *endpoint, char text[REMEDY_TEXT])
{
	uint32_t uid = geteuid();

	if (gid_is_loopback(endpoint->gid))
		snprintf(text, REMEDY_TEXT, "set UROCE_LOOPBACK=127.%u.%u.%u for one of your own",
			 128 | (uid >> 16 & 0x3f), uid >> 8 & 0xff, uid & 0xff);
	else
		snprintf(text, REMEDY_TEXT, "run as that user");
}

static void explain_other_user(const struct link_endpoint *endpoint, uint32_t uid,
			       char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT], remedy[REMEDY_TEXT], user[USER_TEXT];

	link_endpoint_print(endpoint, text);
	explain_remedy(endpoint, remedy);
	if (link_uid_is_mapped(uid))
		snprintf(user, sizeof(user), "user %u%s", uid, uid ? "" : " (or by kernel rxe)");
	else
		snprintf(user, sizeof(user), "another user");
	link_set_error(error,
		       "UDP port %d of %s is in use by %s: one user per address; %s, stop that "
		       "user's programs or use another address",
		       LINK_UDP_PORT, text, user, remedy);
}

/* A broker of one version does not share its ports with programs of another. */
static bool explain_other_version(const char *address, char error[LINK_ERROR_TEXT])
{
	char other[NAMES_OTHER_VERSION_TEXT];
	bool found = names_find_other_version(geteuid(), other);

	if (found)
		link_set_error(
			error,
			"UDP port %d of %s is in use; %s: use one version, or another address",
			LINK_UDP_PORT, address, other);
	return found;
}

static void explain_port_in_use(const struct link_endpoint *endpoint, char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT];
	uint32_t uid;

	link_endpoint_print(endpoint, text);
	if (!link_udp_port_owner(endpoint, LINK_UDP_PORT, &uid))
		link_set_error(error,
			       "UDP port %d of %s is in use by another program; stop it or use "
			       "another address",
			       LINK_UDP_PORT, text);
	else if (uid != geteuid())
		explain_other_user(endpoint, uid, error);
	else if (!explain_other_version(text, error))
		link_set_error(error,
			       "UDP port %d of %s is in use by a program that is not uroce or of "
			       "another version; stop it or use another address",
			       LINK_UDP_PORT, text);
}

static void explain_failure(const struct link_endpoint *endpoint, int result,
			    char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT];

	link_endpoint_print(endpoint, text);
	if (result == -EADDRINUSE)
		explain_port_in_use(endpoint, error);
	else if (result == -ENFILE)
		link_set_error(error,
			       "uroce-broker has no descriptors left for UDP port %d of %s: raise "
			       "the hard limit of open files (ulimit -Hn) and start it again",
			       LINK_UDP_PORT, text);
	else if (result == -EMFILE)
		link_set_error(error,
			       "no descriptors left for UDP port %d of %s: raise the limit of open "
			       "files (ulimit -n)",
			       LINK_UDP_PORT, text);
	else if (result == -EADDRNOTAVAIL)
		link_set_error(error, "%s is not an address of this host (or not yet usable)",
			       text);
	else
		link_set_error(error, "cannot bind UDP port %d of %s: %s", LINK_UDP_PORT, text,
			       strerror(-result));
}

static void publish_addr(struct link *link, struct link_addr *addr)
{
	struct link_region *region;

	link_mutex_lock(link, &link->lock);
	addr->overflow_base = link_socket_drops(addr->fd);
	/* Other processes may still write to a region from when the address was open before. */
	region = link_region_find(link, &addr->endpoint);
	if (region)
		link_region_attach(region, addr);
	addr->next = link->addrs;
	link->addrs = addr;
	link_mutex_unlock(link, &link->lock);
}

void link_addr_close_fds(struct link_addr *addr)
{
	struct link_tx *tx;
	struct link_channel *channel;
	unsigned int slot;

	for (tx = addr->txs; tx; tx = tx->next)
		link_close_fd(&tx->fd);
	for (slot = 0; slot < LINK_SLOTS; slot++) {
		channel = addr->channel[slot];
		if (channel) {
			link_close_fd(&channel->fd);
			link_close_fd(&channel->conn_fd);
		}
		link_close_fd(&addr->slot_fd[slot]);
	}
	link_close_fd(&addr->fd);
}

static struct link_addr *new_addr(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_addr *addr = calloc(1, sizeof(*addr));
	unsigned int i;

	if (!addr)
		return NULL;
	addr->link = link;
	addr->refs = 1;
	addr->endpoint = *endpoint;
	addr->fd = -1;
	for (i = 0; i < LINK_SLOTS; i++)
		addr->slot_fd[i] = -1;
	return addr;
}

static int open_new_addr(struct link *link, const struct link_endpoint *endpoint,
			 struct link_addr **result, char error[LINK_ERROR_TEXT])
{
	struct link_addr *addr = new_addr(link, endpoint);
	socklen_t bytes = sizeof(int);
	int requested = link->receive_buffer, granted = 0, failure;

	if (!addr) {
		link_set_error(error, "out of memory");
		return -ENOMEM;
	}
	addr->fd = link_broker_address(link, endpoint, &addr->unsteered);
	if (addr->fd < 0) {
		failure = addr->fd;
		explain_failure(endpoint, failure, error);
		free(addr);
		return failure;
	}
	/* The broker has created the socket with another buffer size than this link's. */
	setsockopt(addr->fd, SOL_SOCKET, SO_RCVBUF, &requested, sizeof(requested));
	getsockopt(addr->fd, SOL_SOCKET, SO_RCVBUF, &granted, &bytes);
	addr->receive_buffer = (uint32_t)granted;
	publish_addr(link, addr);
	*result = addr;
	return 0;
}

int link_addr_open(struct link *link, const uint8_t gid[16], uint32_t scope_id,
		   struct link_addr **result, char error[LINK_ERROR_TEXT])
{
	const struct link_endpoint endpoint = link_endpoint_from_gid(gid, scope_id);
	struct link_addr *addr;
	int failure = 0;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed)) {
		link_set_error(error, "the adapter was opened before fork(); open it again");
		return -EOWNERDEAD;
	}
	/* Sockets of specific addresses would hide a wildcard socket: never mix them. */
	if (gid_is_any(gid) || gid_is_multicast(gid)) {
		char text[LINK_ADDRESS_TEXT];

		link_endpoint_print(&endpoint, text);
		link_set_error(error, "%s is not an address of one interface", text);
		return -EINVAL;
	}
	link_set_error(error, "%s", "");
	link_mutex_lock(link, &link->open_lock);
	link_mutex_lock(link, &link->lock);
	addr = link_addr_find(link, &endpoint);
	if (addr)
		addr->refs++;
	link_mutex_unlock(link, &link->lock);
	if (addr)
		*result = addr;
	else
		failure = open_new_addr(link, &endpoint, result, error);
	link_mutex_unlock(link, &link->open_lock);
	return failure;
}

/* Drops the references of addr to its channels.  Caller holds link->lock. */
static void put_channels(struct link_addr *addr)
{
	unsigned int slot;

	for (slot = 0; slot < LINK_SLOTS; slot++)
		if (addr->channel[slot])
			link_channel_put(addr->channel[slot]);
}

void link_addr_close(struct link_addr *addr)
{
	struct link *link = addr->link;
	_Atomic(struct link_addr *) *from = &link->addrs;
	bool last;

	link_mutex_lock(link, &link->open_lock);
	link_mutex_lock(link, &link->lock);
	last = --addr->refs == 0;
	if (last) {
		link->closed_overflow += link_socket_drops(addr->fd) - addr->overflow_base;
		link_addr_close_fds(addr);
		while (*from != addr)
			from = &(*from)->next;
		*from = addr->next;
		put_channels(addr);
	}
	link_mutex_unlock(link, &link->lock);
	if (last) {
		link_broker_address_end(link, &addr->endpoint);
		link_peer_table_free(&addr->peers);
		free(addr);
	}
	link_mutex_unlock(link, &link->open_lock);
}

int link_addr_fd(const struct link_addr *addr)
{
	return addr->fd;
}

const uint8_t *link_addr_gid(const struct link_addr *addr)
{
	return addr->endpoint.gid;
}

uint32_t link_addr_scope(const struct link_addr *addr)
{
	return addr->endpoint.scope_id;
}

uint32_t link_addr_receive_buffer(const struct link_addr *addr)
{
	return addr->receive_buffer;
}
