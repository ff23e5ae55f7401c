/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * This process's slot of the host's queue pair numbers.  Owning a slot is having its abstract name
 * bound: the kernel frees the name when the process ends, however it ends, and leaves nothing
 * behind on disk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shm.h"
#include "visitor.h"
#include <rdma/uroce-abi.h>

enum { LISTEN_TRIES = 50 };

/* The process that had the slot before may be about to release the listener's name as well. */
static int listen_soon(struct link *link)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int error;

	for (unsigned int tries = 0; tries < LISTEN_TRIES; tries++) {
		error = link_reception_open(&link->questions, UROCE_ABI_ANSWER_NAME, link->slot);
		if (error != -EADDRINUSE)
			break;
		nanosleep(&pause, NULL);
	}
	return error;
}

/* Bind both names of the slot: 0, -EADDRINUSE when another process has one, or a negative errno. */
static int claim(struct link *link, unsigned int slot)
{
	int result;

	if (link->control_fd < 0) {
		link->control_fd = link_control_socket();
		if (link->control_fd < 0)
			return link->control_fd;
		/* Before it has a name: from the first moment on nothing comes in that should not.
		 */
		result = link_control_admit(link);
		if (result)
			return result;
	}
	result = link_control_bind(link->control_fd, slot);
	if (result)
		return result;
	link->slot = slot;
	result = listen_soon(link);
	/* A socket keeps the name that it has. */
	if (result)
		link_close_fd(&link->control_fd);
	return result;
}

/*
 * Take the lowest free slot of the first so many.  (Packets of queue pair 1 go to slot 0 as well,
 * so it should be taken.)
 */
static int claim_slot(struct link *link, unsigned int slots, char error[LINK_ERROR_TEXT])
{
	unsigned int slot;

	for (slot = 0; slot < slots; slot++) {
		int result = claim(link, slot);

		if (result == 0)
			return 0;
		if (result != -EADDRINUSE) {
			link_explain(error, "cannot have the UNIX socket names of slot %u: %s",
				     slot, strerror(-result));
			return result;
		}
	}
	link_explain(error,
		     "all %u queue pair number slots of this host are taken: end one of the "
		     "programs that use uroce (abstract UNIX sockets @uroce/%u/slot/*)",
		     slots, UROCE_ABI_VERSION);
	return -ENOSPC;
}

static int init_link(struct link *link, unsigned int slots, char error[LINK_ERROR_TEXT])
{
	unsigned int slot;
	int result;

	result = link_check_user(error);
	if (result)
		return result;
	result = claim_slot(link, slots, error);
	if (result)
		return result;
	link_keep_reserve(link);
	for (slot = 0; slot < LINK_SLOTS; slot++)
		link->name_bytes[slot] =
			link_slot_name(UROCE_ABI_SLOT_NAME, slot, &link->names[slot]);
	link->max_segments = link_probe_segments();
	pthread_mutex_init(&link->open_lock, NULL);
	pthread_mutex_init(&link->answer_lock, NULL);
	pthread_mutex_init(&link->lock, NULL);
	return 0;
}

static void close_reserve(struct link *link)
{
	int fd = atomic_exchange(&link->reserve_fd, -1);

	link_close_fd(&fd);
}

static void close_descriptors(struct link *link)
{
	link_reception_close(&link->questions);
	link_close_fd(&link->control_fd);
	close_reserve(link);
}

static int open_among(struct link **result, unsigned int slots, char error[LINK_ERROR_TEXT])
{
	struct link *link = calloc(1, sizeof(*link));
	int failure;

	if (!link) {
		link_explain(error, "out of memory");
		return -ENOMEM;
	}
	link->control_fd = -1;
	link_reception_init(&link->questions);
	link->reserve_fd = -1;
	link->user = geteuid();
	link->receive_buffer = LINK_SOCKET_BUFFER;
	link_explain(error, "%s", "");
	failure = init_link(link, slots, error);
	if (failure) {
		close_descriptors(link);
		free(link);
		return failure;
	}
	*result = link;
	return 0;
}

int link_open(struct link **link, char error[LINK_ERROR_TEXT])
{
	return open_among(link, LINK_SLOTS, error);
}

int link_open_further(struct link **link, char error[LINK_ERROR_TEXT])
{
	return open_among(link, LINK_SLOTS / 2, error);
}

void link_close(struct link *link)
{
	close_descriptors(link);
	if (!atomic_load_explicit(&link->abandoned, memory_order_relaxed)) {
		pthread_mutex_destroy(&link->open_lock);
		pthread_mutex_destroy(&link->answer_lock);
		pthread_mutex_destroy(&link->lock);
	}
	link_region_close_all(link);
	free(link);
}

void link_abandon(struct link *link)
{
	struct link_addr *addr, *building = link->building;
	struct link_group *group;
	struct link_region *region;

	atomic_store(&link->abandoned, true);
	for (addr = link->addrs; addr; addr = addr->next)
		link_addr_close_descriptors(addr);
	/* An address that a thread of the parent was opening. */
	if (building)
		link_addr_close_descriptors(building);
	for (group = link->groups; group; group = group->next)
		link_close_fd(&group->fd);
	for (region = link->regions; region; region = region->older)
		link_close_fd(&region->fd);
	link_reception_abandon(&link->questions);
	link_close_fd(&link->control_fd);
	close_reserve(link);
}

void link_fork_await_openers(struct link *link)
{
	link_mutex_lock(link, &link->open_lock);
}

void link_fork_prepare(struct link *link)
{
	link_mutex_lock(link, &link->answer_lock);
	link_mutex_lock(link, &link->lock);
}

void link_fork_parent(struct link *link)
{
	link_mutex_unlock(link, &link->lock);
	link_mutex_unlock(link, &link->answer_lock);
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

int link_control_fd(const struct link *link)
{
	return link->control_fd;
}

int link_question_fd(const struct link *link)
{
	return link->questions.epoll_fd;
}

unsigned int link_max_segments(const struct link *link)
{
	return link->max_segments;
}

void link_counters(const struct link *const_link, struct link_counters *counters)
{
	/* The list's lock is not part of what const promises. */
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
	counters->foreign_credentials = atomic_load(&link->foreign_credentials);
	counters->memory_sent = atomic_load(&link->memory_sent);
	counters->memory_received = atomic_load(&link->memory_received);
}
