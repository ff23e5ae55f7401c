/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "visits.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "internal.h"
#include "shm.h"

/* Maximum number of messages served in one call, so that others get their share */
enum { SERVED_MAX = 16 };

static struct link_visits *visits_of(struct link *link, uint32_t purpose)
{
	return purpose == UROCE_BROKER_SHARED_MEMORY ? &link->writers : &link->visitors;
}

int link_visits_open(struct link_visits *visits)
{
	do {
		visits->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	} while (visits->epoll_fd < 0 && errno == EMFILE && !link_raise_descriptor_limit());
	return visits->epoll_fd < 0 ? -errno : 0;
}

void link_visits_close(struct link_visits *visits, bool abandoned)
{
	struct link_visit *visit = visits->first, *next;

	for (; visit; visit = next) {
		next = visit->next;
		link_close_fd(&visit->fd);
		if (!abandoned)
			free(visit);
	}
	if (!abandoned)
		visits->first = NULL;
	link_close_fd(&visits->epoll_fd);
}

void link_visits_add(struct link *link, uint32_t purpose, uint32_t slot, int fd)
{
	struct link_visits *visits = visits_of(link, purpose);
	/* Tools address a process, which its first worker represents. */
	bool wanted = purpose != UROCE_BROKER_STATISTICS || !link->further;
	struct link_visit *visit = wanted ? calloc(1, sizeof(*visit)) : NULL;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = visit };
	bool added;

	if (!visit) {
		close(fd);
		return;
	}
	visit->fd = fd;
	visit->slot = slot;
	/* After epoll_ctl() another thread may serve the visit, and end it. */
	link_mutex_lock(link, &link->lock);
	visit->next = visits->first;
	visits->first = visit;
	added = !epoll_ctl(visits->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	if (!added)
		visits->first = visit->next;
	link_mutex_unlock(link, &link->lock);
	if (!added) {
		free(visit);
		close(fd);
	}
}

/* Removes a visit.  Returns its descriptor, which the caller then owns. */
static int take_out(struct link *link, struct link_visits *visits, struct link_visit *visit)
{
	_Atomic(struct link_visit *) *from = &visits->first;
	int fd = visit->fd;

	link_mutex_lock(link, &link->lock);
	epoll_ctl(visits->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	while (*from != visit)
		from = &(*from)->next;
	*from = visit->next;
	link_mutex_unlock(link, &link->lock);
	free(visit);
	return fd;
}

static struct link_visit *next_event(struct link_visits *visits)
{
	struct epoll_event event;

	return epoll_wait(visits->epoll_fd, &event, 1, 0) > 0 ? event.data.ptr : NULL;
}

/* ---- writers of shared memory ---- */

static bool is_request(const struct uroce_abi_shm *message, ssize_t bytes, uint32_t slot)
{
	return bytes == (ssize_t)sizeof(*message) && slot < LINK_SLOTS &&
	       message->header.message == UROCE_ABI_SHM_REQUEST &&
	       message->header.version == UROCE_ABI_VERSION && message->slot == slot;
}

int link_writers_fd(const struct link *link)
{
	return link->writers.epoll_fd;
}

bool link_serve_writers(struct link *link)
{
	struct link_visit *visit;
	bool rung = false;

	for (unsigned int i = 0; i < SERVED_MAX && (visit = next_event(&link->writers)); i++) {
		struct uroce_abi_shm message;
		ssize_t bytes = recv(visit->fd, &message, sizeof(message), MSG_DONTWAIT);

		if (is_request(&message, bytes, visit->slot)) {
			link_region_answer(link, visit->fd, &message);
		} else if (bytes > 0) {
			rung = true;
		} else if (bytes == 0 || errno != EAGAIN) {
			close(take_out(link, &link->writers, visit));
		}
	}
	return rung;
}

/* ---- tools ---- */

int link_visitors_fd(const struct link *link)
{
	return link->visitors.epoll_fd;
}

int link_next_visitor(struct link *link, void *question, size_t room, size_t *bytes)
{
	struct link_visit *visit = next_event(&link->visitors);
	ssize_t count;
	int fd;

	if (!visit)
		return -EAGAIN;
	count = recv(visit->fd, question, room, MSG_DONTWAIT);
	if (count < 0 && errno == EAGAIN)
		return -EAGAIN;
	fd = take_out(link, &link->visitors, visit);
	if (count > 0) {
		*bytes = (size_t)count;
		return fd;
	}
	close(fd);
	return -EAGAIN;
}
