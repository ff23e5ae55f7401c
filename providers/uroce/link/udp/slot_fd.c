/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Duplicates of the sockets of other slots, by which link_peer_has_room() checks how full those
 * are.  A connected QP requests its peer's when it connects.  A datagram QP learns the destination
 * only when it sends, with locks held, so the progress thread makes that request.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "link/link_priv.h"

enum {
	/* Minimum interval between two requests for the socket of a slot: owners may change. */
	REQUEST_PAUSE_MS = 1000,
	/* Pause before the next try while another thread holds open_lock */
	LOCKED_PAUSE_MS = 1,
};

/* Replaces the descriptor but keeps its number, since other threads may use it. */
static void store_slot_fd(int *slot_fd, int fd)
{
	if (*slot_fd < 0) {
		__atomic_store_n(slot_fd, fd, __ATOMIC_RELEASE);
		return;
	}
	dup3(fd, *slot_fd, O_CLOEXEC);
	close(fd);
}

/* Returns 0 or a negative errno.  Caller holds open_lock. */
static int request_slot_fd(struct link_addr *addr, unsigned int slot)
{
	int fd = -ENOENT;

	if (!link_has_slot(addr->link, slot))
		fd = link_broker_slot_fd(addr->link, &addr->endpoint, slot);
	if (fd >= 0)
		store_slot_fd(&addr->slot_fd[slot], fd);
	atomic_store(&addr->next_slot_fd_ms[slot], link_now_ms() + REQUEST_PAUSE_MS);
	return fd < 0 ? fd : 0;
}

void link_addr_open_slot_fd(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;

	link_mutex_lock(link, &link->open_lock);
	if (link_now_ms() >= atomic_load(&addr->next_slot_fd_ms[slot]))
		request_slot_fd(addr, slot);
	link_mutex_unlock(link, &link->open_lock);
}

bool link_addr_want_slot_fd(struct link_addr *addr, unsigned int slot)
{
	int64_t next = atomic_load(&addr->next_slot_fd_ms[slot]), now = link_now_ms();
	bool is_first = next == 0;

	if (link_slot_set_has(&addr->wanted_slot_fds, slot))
		return now < next;
	if (now < next)
		return false;
	/* Only the first request delays senders: usually a slot without a socket stays so. */
	atomic_store(&addr->next_slot_fd_ms[slot], now + (is_first ? REQUEST_PAUSE_MS : 0));
	link_slot_set_add(&addr->wanted_slot_fds, slot);
	atomic_store(&addr->link->slot_fds_wanted, true);
	link_broker_wake(&addr->link->broker, 0);
	return is_first;
}

/* Returns 0, or the error of a request if the broker is lost.  Caller holds open_lock. */
static int request_wanted(struct link_addr *addr)
{
	struct link_slot_set *wanted = &addr->wanted_slot_fds;
	unsigned int slot;

	for (slot = 0; (slot = link_slot_set_next(wanted, slot)) < LINK_SLOTS; slot++) {
		int error = request_slot_fd(addr, slot);

		if (link_broker_is_lost(error))
			return error;
		link_slot_set_remove(wanted, slot);
	}
	return 0;
}

void link_open_wanted_slot_fds(struct link *link, void (*wait_callback)(void *arg), void *arg)
{
	struct link_broker *broker = &link->broker;
	struct link_addr *addr;
	int error = 0;

	if (!atomic_load(&link->slot_fds_wanted) || atomic_load(&broker->retry_ms) != 0)
		return;
	if (!link_broker_try_lock(link, wait_callback, arg)) {
		link_broker_wake(broker, LOCKED_PAUSE_MS);
		return;
	}
	atomic_store(&link->slot_fds_wanted, false);
	/* Addresses are added and removed under open_lock. */
	for (addr = link->addrs; addr && !error; addr = addr->next)
		error = request_wanted(addr);
	/* The end of the connection to a lost broker makes link_broker_fd() readable again. */
	if (error)
		atomic_store(&link->slot_fds_wanted, true);
	link_broker_unlock(link);
}
