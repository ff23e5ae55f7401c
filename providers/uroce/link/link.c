/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Opens and closes a link */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "link/shm/shm.h"

static void close_fds(struct link *link, bool abandoned)
{
	link_client_conns_close(&link->writers, abandoned);
	link_client_conns_close(&link->tools, abandoned);
	link_broker_close(&link->broker);
}

/* Connects to the broker and opens the epoll sets for connections from writers and tools. */
static int init_link(struct link *link, char error[LINK_ERROR_TEXT])
{
	int result = link_check_userns(error);

	if (result)
		return result;
	result = link_broker_open(link, error);
	if (result)
		return result;
	link->slot = link->broker.slot[0];
	result = link_client_conns_open(&link->writers);
	if (!result)
		result = link_client_conns_open(&link->tools);
	if (result)
		link_set_error(error, "cannot create an epoll set: %s", strerror(-result));
	return result;
}

static int open_link(struct link **result, bool further, char error[LINK_ERROR_TEXT])
{
	struct link *link = calloc(1, sizeof(*link));
	int failure;

	if (!link) {
		link_set_error(error, "out of memory");
		return -ENOMEM;
	}
	link_broker_init(&link->broker);
	link->writers.epoll_fd = -1;
	link->tools.epoll_fd = -1;
	link->further = further;
	link->user = geteuid();
	link->receive_buffer = LINK_SOCKET_BUFFER;
	link_set_error(error, "%s", "");
	failure = init_link(link, error);
	if (failure) {
		close_fds(link, false);
		free(link);
		return failure;
	}
	link->max_segments = link_probe_segments();
	pthread_mutex_init(&link->open_lock, NULL);
	pthread_mutex_init(&link->lock, NULL);
	*result = link;
	return 0;
}

int link_open(struct link **link, char error[LINK_ERROR_TEXT])
{
	return open_link(link, false, error);
}

int link_open_further(struct link **link, char error[LINK_ERROR_TEXT])
{
	return open_link(link, true, error);
}

void link_close(struct link *link)
{
	close_fds(link, atomic_load_explicit(&link->abandoned, memory_order_relaxed));
	if (!atomic_load_explicit(&link->abandoned, memory_order_relaxed)) {
		pthread_mutex_destroy(&link->open_lock);
		pthread_mutex_destroy(&link->lock);
	}
	link_region_close_all(link);
	free(link);
}

void link_abandon(struct link *link)
{
	struct link_addr *addr;
	struct link_group *group;
	struct link_region *region;

	atomic_store(&link->abandoned, true);
	for (addr = link->addrs; addr; addr = addr->next)
		link_addr_close_fds(addr);
	for (group = link->groups; group; group = group->next)
		link_close_fd(&group->fd);
	for (region = link->regions; region; region = region->next_region)
		link_close_fd(&region->fd);
	close_fds(link, true);
}

void link_fork_wait_openers(struct link *link)
{
	link_mutex_lock(link, &link->open_lock);
}

void link_fork_prepare(struct link *link)
{
	link_mutex_lock(link, &link->lock);
}

void link_fork_parent(struct link *link)
{
	link_mutex_unlock(link, &link->lock);
	link_mutex_unlock(link, &link->open_lock);
}

unsigned int link_slot(const struct link *link)
{
	return link->slot;
}

void link_set_receive_buffer(struct link *link, uint32_t bytes)
{
	atomic_store(&link->receive_buffer, (int)bytes);
}

void link_set_shared_memory(struct link *link, bool on)
{
	atomic_store(&link->shares_memory, on);
}

unsigned int link_max_segments(const struct link *link)
{
	return link->max_segments;
}

void link_counters(const struct link *const_link, struct link_counters *counters)
{
	/* Only the lists are const for the caller, not the lock that guards them. */
	struct link *link = (struct link *)(uintptr_t)const_link;
	struct link_group *group;
	struct link_addr *addr;

	link_mutex_lock(link, &link->lock);
	counters->receive_overflow = link->closed_overflow;
	for (group = link->groups; group; group = group->next)
		counters->receive_overflow += link_socket_drops(group->fd);
	for (addr = link->addrs; addr; addr = addr->next)
		counters->receive_overflow += link_socket_drops(addr->fd) - addr->overflow_base;
	link_mutex_unlock(link, &link->lock);
	counters->forwarded = atomic_load(&link->forwarded);
	counters->forward_received = atomic_load(&link->forward_received);
	counters->forward_lost = atomic_load(&link->forward_lost);
	counters->shm_sent = atomic_load(&link->shm_sent);
	counters->shm_received = atomic_load(&link->shm_received);
}
