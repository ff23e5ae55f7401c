/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Local addresses in use: getting the pool of an address, by making it or from another process.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "peer_table.h"
#include "shm.h"
#include "visitor.h"

/*
 * Waiting is counted in tries and not measured by a clock: a process that was itself stopped for a
 * while should not find its time used up.
 *
 * One round of asking; then the port is looked at again, for the process that had it may have
 * ended.  Together the rounds last 4.5 s, for on a busy host a process may not run for a second.
 */
#define ASK_TIMEOUT_MS 300
#define ASK_ROUNDS 15
/* Each a millisecond longer than the one before: 5 s. */
#define GROW_ROUNDS 100
/* While another process looks or creates, which takes it well under a millisecond: 2 s. */
#define LOCK_RETRY_MS 1
#define LOCK_TRIES 2000
/*
 * The port may be in use although no process gives the pool: its owner is about to end, or its
 * descriptors are on their way.  Look again, after twice the time up to a limit.  Sockets that
 * this user's processes may share are worth more patience, as they will most probably be ours.
 */
#define FOREIGN_LOOKS 5
#define JOINABLE_LOOKS 12
#define LOOK_PAUSE_MAX_MS 64

enum {
	USER_TEXT = 48,
	REMEDY_TEXT = 64,
};

struct link_addr *link_addr_find(struct link *link, const struct link_endpoint *endpoint)
{
	struct link_addr *addr;

	for (addr = link->addrs; addr; addr = addr->next)
		if (link_endpoint_equal(&addr->endpoint, endpoint))
			return addr;
	return NULL;
}

void link_serve_for(struct link *link, int timeout_ms)
{
	struct pollfd wait = { .fd = link->questions.epoll_fd, .events = POLLIN };
	int64_t until = link_now_ms() + timeout_ms, left = timeout_ms;

	while (left > 0) {
		if (poll(&wait, 1, (int)left) > 0)
			link_answer_questions(link);
		left = until - link_now_ms();
	}
}

/*
 * All of 127.0.0.0/8 is this host, so each user can have an address there: the one that its number
 * makes, in a part of the network that is rarely used.
 */
static void explain_remedy(const struct link_endpoint *endpoint, char text[REMEDY_TEXT])
{
	uint32_t uid = geteuid();

	if (link_endpoint_is_loopback(endpoint->gid))
		snprintf(text, REMEDY_TEXT, "set UROCE_LOOPBACK=127.%u.%u.%u for one of your own",
			 128 | (uid >> 16 & 0x3f), uid >> 8 & 0xff, uid & 0xff);
	else
		snprintf(text, REMEDY_TEXT, "run as that user");
}

static void explain_other_user(const struct link_endpoint *endpoint, uint32_t uid,
			       char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT], remedy[REMEDY_TEXT], user[USER_TEXT];

	link_endpoint_text(endpoint, text);
	explain_remedy(endpoint, remedy);
	if (link_user_is_known(uid))
		snprintf(user, sizeof(user), "user %u%s", uid, uid ? "" : " (or by kernel rxe)");
	else
		snprintf(user, sizeof(user), "another user");
	link_explain(error,
		     "UDP port %d of %s is in use by %s: one user per address; %s, stop that "
		     "user's programs or use another address",
		     LINK_UDP_PORT, text, user, remedy);
}

static void explain_foreign(const struct link_endpoint *endpoint, char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT];
	uint32_t uid;

	link_endpoint_text(endpoint, text);
	if (!link_port_owner(endpoint, LINK_UDP_PORT, &uid))
		link_explain(error,
			     "UDP port %d of %s is in use by another program; stop it or use "
			     "another address",
			     LINK_UDP_PORT, text);
	else if (uid != geteuid())
		explain_other_user(endpoint, uid, error);
	else
		link_explain(error,
			     "UDP port %d of %s is in use by a program that is not uroce or of "
			     "another version; stop it or use another address",
			     LINK_UDP_PORT, text);
}

static void explain_failure(const struct link_addr *addr, int result, char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT];

	link_endpoint_text(&addr->endpoint, text);
	if (result == -EMFILE || result == -ENFILE)
		link_explain(error,
			     "no descriptors left for UDP port %d of %s, which needs %u: raise the "
			     "limit of open files (ulimit -n)",
			     LINK_UDP_PORT, text, link_pool_share(addr->link->slot));
	else if (result == -EADDRNOTAVAIL)
		link_explain(error, "%s is not an address of this host (or not yet usable)", text);
	else
		link_explain(error, "cannot bind UDP port %d of %s: %s", LINK_UDP_PORT, text,
			     strerror(-result));
}

/* From now on requests for the pool are answered. */
static void publish(struct link *link, struct link_addr *addr)
{
	struct link_region *region;

	link_mutex_lock(link, &link->lock);
	addr->fd = addr->pool[link->slot];
	addr->overflow_base = link_socket_drops(addr->fd);
	/* Others may have channels to it since it was open before. */
	region = link_region_find(link, &addr->endpoint);
	if (region)
		link_region_attach(region, addr);
	addr->next = link->addrs;
	link->addrs = addr;
	/* Else what others forward is lost, as by a network. */
	link_control_admit(link);
	link_mutex_unlock(link, &link->lock);
}

/* How many descriptors of the pool this process has to hold. */
static unsigned int share_of(const struct link_addr *addr)
{
	return link_pool_share(addr->link->slot);
}

static int create(struct link_addr *addr)
{
	int error;

	if (getrandom(&addr->key, sizeof(addr->key), 0) < 0)
		return -errno;
	error = link_pool_create(&addr->endpoint, addr->link->slot, addr->pool, share_of(addr));
	if (!error)
		addr->pool_count = share_of(addr);
	return error;
}

/*
 * One look at the port: create the pool when the port is free, else see which process has it, if
 * closely.  The enum link_pool_state that was found (LINK_POOL_FREE: it is made now), -EAGAIN while
 * another process is looking, or a negative errno.
 */
static int look(struct link *link, struct link_addr *addr, bool closely)
{
	int result;

	addr->lock_fd = link_pool_lock(&addr->endpoint);
	if (addr->lock_fd < 0)
		return addr->lock_fd == -EADDRINUSE ? -EAGAIN : addr->lock_fd;
	result = link_pool_probe(&addr->endpoint);
	if (result == LINK_POOL_IN_USE && closely)
		result = link_pool_probe_group(&addr->endpoint);
	if (result == LINK_POOL_FREE) {
		int error = create(addr);

		if (error)
			result = error;
	}
	/* Before the lock is released: a process that sees the port in use will get an answer. */
	if (result == LINK_POOL_FREE)
		publish(link, addr);
	link_close_fd(&addr->lock_fd);
	return result;
}

static int give_up(struct link_addr *addr, int result, unsigned int silent,
		   char error[LINK_ERROR_TEXT])
{
	char text[LINK_ADDRESS_TEXT];

	link_endpoint_text(&addr->endpoint, text);
	if (result == -EADDRINUSE)
		explain_foreign(&addr->endpoint, error);
	else if (result == -EBUSY)
		link_explain(
			error,
			"UDP port %d of %s is shared by a program that is not uroce, or a uroce "
			"process that has it does not answer; stop it, or continue it",
			LINK_UDP_PORT, text);
	else if (result == -EAGAIN || result == -ETIMEDOUT)
		link_explain(error,
			     "UDP port %d of %s: %s does not answer (stopped?); continue or end it",
			     LINK_UDP_PORT, text,
			     silent < LINK_SLOTS ? "the uroce process that has it"
						 : "another process that is setting it up");
	else
		explain_failure(addr, result, error);
	return result == -EAGAIN || result == -EBUSY ? -ETIMEDOUT : result;
}

/*
 * The part of the pool that others hold ends before this process's own socket: make the rest.
 * -EAGAIN while another process is looking, -EBUSY when another process holds more after all.
 */
static int grow(struct link *link, struct link_addr *addr)
{
	int error;

	addr->lock_fd = link_pool_lock(&addr->endpoint);
	if (addr->lock_fd < 0)
		return addr->lock_fd == -EADDRINUSE ? -EAGAIN : addr->lock_fd;
	error = link_pool_grow(&addr->endpoint, addr->pool, addr->pool_count, share_of(addr));
	if (!error) {
		addr->pool_count = share_of(addr);
		publish(link, addr);
	}
	link_close_fd(&addr->lock_fd);
	return error;
}

/* One round of asking: 0 when the address is in the list, or a negative errno. */
static int join(struct link *link, struct link_addr *addr, unsigned int *silent)
{
	int result = link_join(link, addr, share_of(addr), ASK_TIMEOUT_MS, silent);

	if (result == 0 && addr->pool_count < share_of(addr)) {
		result = grow(link, addr);
	} else if (result == 0) {
		publish(link, addr);
		link_pool_drain(addr->pool, link->slot);
	}
	/* What has been had may no longer be the beginning of all there is: begin anew. */
	if (result) {
		link_pool_close(addr->pool, addr->pool_count);
		addr->pool_count = 0;
	}
	return result == -ENOENT ? -EADDRINUSE : result;
}

struct patience {
	unsigned int lock_tries;
	unsigned int rounds;
	unsigned int looks;
	int pause_ms;
};

/* Wait as long as it makes sense after a failure; false when another try makes none. */
static bool wait_after(struct link *link, struct patience *patience, int failure, bool joinable)
{
	switch (failure) {
	case -EAGAIN: /* another process is looking */
		if (++patience->lock_tries == LOCK_TRIES)
			return false;
		link_serve_for(link, LOCK_RETRY_MS);
		return true;
	case -ETIMEDOUT: /* a process was silent, the round has been wait enough */
		return ++patience->rounds < ASK_ROUNDS;
	case -EBUSY: /* a process holds more than we could get: it is busy, or ending */
		if (++patience->rounds >= GROW_ROUNDS)
			return false;
		link_serve_for(link, (int)patience->rounds);
		return true;
	case -EADDRINUSE: /* no process has it for us: this time */
		if (++patience->looks >= (joinable ? JOINABLE_LOOKS : FOREIGN_LOOKS))
			return false;
		if (patience->pause_ms < LOOK_PAUSE_MAX_MS)
			patience->pause_ms *= 2;
		link_serve_for(link, patience->pause_ms);
		return true;
	default:
		return false;
	}
}

/* Create or join.  On success the address is in the list. */
static int acquire_pool(struct link *link, struct link_addr *addr, char error[LINK_ERROR_TEXT])
{
	struct patience patience = { .pause_ms = 1 };
	unsigned int silent = LINK_SLOTS;
	bool joinable;
	int result;

	/*
	 * Nearly always a process of this user has the port or none.  So it is asked before a close
	 * look, which may cost it a datagram.
	 */
	result = look(link, addr, false);
	if (result == LINK_POOL_IN_USE)
		result = join(link, addr, &silent);
	if (result == 0) /* made, or had */
		return 0;
	do {
		result = look(link, addr, true);
		joinable = result == LINK_POOL_JOINABLE;
		if (result == LINK_POOL_FREE)
			return 0;
		if (result == LINK_POOL_FOREIGN)
			result = -EADDRINUSE;
		if (joinable)
			result = join(link, addr, &silent);
		if (joinable && result == 0)
			return 0;
	} while (wait_after(link, &patience, result, joinable));
	return give_up(addr, result, silent, error);
}

void link_addr_close_descriptors(struct link_addr *addr)
{
	struct link_tx *tx;
	struct link_channel *channel;
	unsigned int slot;

	for (tx = addr->txs; tx; tx = tx->next)
		link_close_fd(&tx->fd);
	for (slot = 0; slot < LINK_SLOTS; slot++) {
		channel = addr->channel[slot];
		if (channel)
			link_close_fd(&channel->fd);
	}
	/* First, so that a process that makes the pool anew finds it free. */
	link_close_fd(&addr->gsi_fd);
	link_pool_close(addr->pool, LINK_SLOTS);
	link_close_fd(&addr->lock_fd);
	addr->fd = -1;
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
	addr->gsi_fd = -1;
	addr->lock_fd = -1;
	for (i = 0; i < LINK_SLOTS; i++)
		addr->pool[i] = -1;
	return addr;
}

static int open_new(struct link *link, const struct link_endpoint *endpoint,
		    struct link_addr **result, char error[LINK_ERROR_TEXT])
{
	struct link_addr *addr = new_addr(link, endpoint);
	socklen_t bytes = sizeof(int);
	int asked = link->receive_buffer, granted = 0, failure;

	if (!addr) {
		link_explain(error, "out of memory");
		return -ENOMEM;
	}
	link->building = addr;
	failure = acquire_pool(link, addr, error);
	link->building = NULL;
	if (failure) {
		free(addr);
		return failure;
	}
	/* The creator of the pool asked for its own idea of a buffer; this socket is ours. */
	setsockopt(addr->fd, SOL_SOCKET, SO_RCVBUF, &asked, sizeof(asked));
	getsockopt(addr->fd, SOL_SOCKET, SO_RCVBUF, &granted, &bytes);
	addr->receive_buffer = (uint32_t)granted;
	*result = addr;
	return 0;
}

int link_addr_open(struct link *link, const uint8_t gid[16], uint32_t scope_id,
		   struct link_addr **result, char error[LINK_ERROR_TEXT])
{
	const struct link_endpoint endpoint = link_endpoint_of(gid, scope_id);
	struct link_addr *addr;
	int failure = 0;

	if (atomic_load_explicit(&link->abandoned, memory_order_relaxed)) {
		link_explain(error, "the adapter was opened before fork(); open it again");
		return -EOWNERDEAD;
	}
	/* A wildcard group would hide behind the specific ones: never mix them. */
	if (link_endpoint_is_unspecified(gid) || link_gid_is_multicast(gid)) {
		char text[LINK_ADDRESS_TEXT];

		link_endpoint_text(&endpoint, text);
		link_explain(error, "%s is not an address of one interface", text);
		return -EINVAL;
	}
	link_explain(error, "%s", "");
	link_mutex_lock(link, &link->open_lock);
	link_mutex_lock(link, &link->lock);
	addr = link_addr_find(link, &endpoint);
	if (addr)
		addr->refs++;
	link_mutex_unlock(link, &link->lock);
	if (addr)
		*result = addr;
	else
		failure = open_new(link, &endpoint, result, error);
	link_mutex_unlock(link, &link->open_lock);
	return failure;
}

/* Caller holds the lock. */
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
		link_stop_listening(&addr->gsi_fd);
		link->closed_overflow += link_socket_drops(addr->fd) - addr->overflow_base;
		link_addr_close_descriptors(addr);
		while (*from != addr)
			from = &(*from)->next;
		*from = addr->next;
	}
	if (last)
		put_channels(addr);
	link_mutex_unlock(link, &link->lock);
	if (last) {
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
