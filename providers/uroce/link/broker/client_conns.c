/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "link/link_priv.h"
#include "link/shm/shm.h"

/* Maximum number of messages served in one call of link_serve_writers() */
enum { SERVED_MAX = 16 };

static struct link_client_conns *conns_of_purpose(struct link *link, uint32_t purpose)
{
	return purpose == UROCE_BROKER_SHARED_MEMORY ? &link->writers : &link->tools;
}

int link_client_conns_open(struct link_client_conns *conns)
{
	do {
		conns->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	} while (conns->epoll_fd < 0 && errno == EMFILE && !link_raise_fd_limit());
	return conns->epoll_fd < 0 ? -errno : 0;
}

void link_client_conns_close(struct link_client_conns *conns, bool abandoned)
{
	struct link_client_conn *conn = conns->first, *next;

	for (; conn; conn = next) {
		next = conn->next;
		link_close_fd(&conn->fd);
		if (!abandoned)
			free(conn);
	}
	if (!abandoned)
		conns->first = NULL;
	link_close_fd(&conns->epoll_fd);
}

void link_client_conns_add(struct link *link, uint32_t purpose, uint32_t slot, int fd)
{
	struct link_client_conns *conns = conns_of_purpose(link, purpose);
	/*
	 * Tools address a process, which its first worker represents, so further workers close
	 * connections from tools.
	 */
	bool wanted = purpose != UROCE_BROKER_STATISTICS || !link->further;
	struct link_client_conn *conn = wanted ? calloc(1, sizeof(*conn)) : NULL;
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };
	bool added;

	if (!conn) {
		close(fd);
		return;
	}
	conn->fd = fd;
	conn->slot = slot;
	/*
	 * Added to the list first, because after epoll_ctl() another thread may serve the
	 * connection, and end it.
	 */
	link_mutex_lock(link, &link->lock);
	conn->next = conns->first;
	conns->first = conn;
	added = !epoll_ctl(conns->epoll_fd, EPOLL_CTL_ADD, fd, &event);
	if (!added)
		conns->first = conn->next;
	link_mutex_unlock(link, &link->lock);
	if (!added) {
		free(conn);
		close(fd);
	}
}

/* Removes a connection.  Returns its descriptor, which the caller then owns. */
static int remove_conn(struct link *link, struct link_client_conns *conns,
		       struct link_client_conn *conn)
{
	_Atomic(struct link_client_conn *) *from = &conns->first;
	int fd = conn->fd;

	link_mutex_lock(link, &link->lock);
	epoll_ctl(conns->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	while (*from != conn)
		from = &(*from)->next;
	*from = conn->next;
	link_mutex_unlock(link, &link->lock);
	free(conn);
	return fd;
}

static struct link_client_conn *next_ready_conn(struct link_client_conns *conns)
{
	struct epoll_event event;

	return epoll_wait(conns->epoll_fd, &event, 1, 0) > 0 ? event.data.ptr : NULL;
}

/* ---- writers of shared memory ---- */

static bool is_request(const struct uroce_abi_shm *message, ssize_t bytes, uint32_t slot)
{
	return bytes == (ssize_t)sizeof(*message) && slot < LINK_SLOTS &&
	       message->header.message == UROCE_ABI_SHM_REQUEST &&
	       message->header.version == UROCE_ABI_VERSION && message->slot == slot;
}

/* A message of another version may have any length; only its header is known. */
static bool is_foreign_request(const struct uroce_abi_shm *message, ssize_t bytes)
{
	return bytes >= (ssize_t)sizeof(message->header) &&
	       message->header.message == UROCE_ABI_SHM_REQUEST &&
	       message->header.version != UROCE_ABI_VERSION;
}

/* Replies at once, so that the other process does not wait, and shows it the version. */
static void refuse_version(struct link *link, int fd, struct uroce_abi_header reply)
{
	reply.message = UROCE_ABI_SHM_REFUSED;
	if (atomic_load(&link->shares_memory))
		reply.version = UROCE_ABI_VERSION;
	link_send_with_fds(fd, &reply, sizeof(reply), NULL, 0);
}

int link_writers_fd(const struct link *link)
{
	return link->writers.epoll_fd;
}

bool link_serve_writers(struct link *link)
{
	struct link_client_conn *conn;
	bool rung = false;

	for (unsigned int i = 0; i < SERVED_MAX && (conn = next_ready_conn(&link->writers)); i++) {
		struct uroce_abi_shm message;
		ssize_t bytes = recv(conn->fd, &message, sizeof(message), MSG_DONTWAIT);

		if (is_request(&message, bytes, conn->slot)) {
			link_region_reply(link, conn->fd, &message);
		} else if (is_foreign_request(&message, bytes)) {
			refuse_version(link, conn->fd, message.header);
		} else if (bytes > 0) {
			rung = true;
		} else if (bytes == 0 || errno != EAGAIN) {
			close(remove_conn(link, &link->writers, conn));
		}
	}
	return rung;
}

/* ---- tools ---- */

int link_tools_fd(const struct link *link)
{
	return link->tools.epoll_fd;
}

int link_next_tool(struct link *link, void *request, size_t room, size_t *bytes)
{
	struct link_client_conn *conn = next_ready_conn(&link->tools);
	ssize_t count;
	int fd;

	if (!conn)
		return -EAGAIN;
	count = recv(conn->fd, request, room, MSG_DONTWAIT);
	if (count < 0 && errno == EAGAIN)
		return -EAGAIN;
	fd = remove_conn(link, &link->tools, conn);
	if (count > 0) {
		*bytes = (size_t)count;
		return fd;
	}
	close(fd);
	return -EAGAIN;
}
