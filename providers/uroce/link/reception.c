/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connections of this user on which a question is to come.  Most bring it along.  The others are
 * not waited for: they get a seat, and an epoll is readable when one of them asks.
 */
#include "reception.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "internal.h"
#include "visitor.h"

/* What an event of the epoll is about: the number of a seat, or this. */
#define LISTENER LINK_SEATS

void link_reception_init(struct link_reception *reception)
{
	reception->listener = -1;
	reception->epoll_fd = -1;
	reception->next = 0;
	for (unsigned int i = 0; i < LINK_SEATS; i++)
		reception->seat[i].fd = -1;
}

static int watch(const struct link_reception *reception, int fd, uint32_t what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = what };

	return epoll_ctl(reception->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int link_reception_open(struct link_reception *reception, const char *format, unsigned int slot)
{
	int error;

	link_reception_init(reception);
	reception->listener = link_listen(format, slot);
	if (reception->listener < 0)
		return reception->listener;
	reception->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	error = reception->epoll_fd < 0 ? -errno : watch(reception, reception->listener, LISTENER);
	if (error)
		link_reception_close(reception);
	return error;
}

/* The connection may be in a forked child as well, so that closing it would not take it out. */
static void vacate(struct link_reception *reception, unsigned int number)
{
	epoll_ctl(reception->epoll_fd, EPOLL_CTL_DEL, reception->seat[number].fd, NULL);
	link_close_fd(&reception->seat[number].fd);
}

void link_reception_close(struct link_reception *reception)
{
	for (unsigned int i = 0; i < LINK_SEATS; i++)
		link_close_fd(&reception->seat[i].fd);
	link_close_fd(&reception->epoll_fd);
	link_stop_listening(&reception->listener);
}

void link_reception_abandon(struct link_reception *reception)
{
	for (unsigned int i = 0; i < LINK_SEATS; i++)
		link_close_fd(&reception->seat[i].fd);
	link_close_fd(&reception->epoll_fd);
	link_close_fd(&reception->listener);
}

/* A free seat, or the one that has been taken for longest. */
static unsigned int choose_seat(struct link_reception *reception)
{
	unsigned int number;

	for (unsigned int i = 0; i < LINK_SEATS; i++) {
		number = (reception->next + i) % LINK_SEATS;
		if (reception->seat[number].fd < 0)
			break;
	}
	number = reception->seat[number].fd < 0 ? number : reception->next;
	reception->next = (number + 1) % LINK_SEATS;
	if (reception->seat[number].fd >= 0)
		vacate(reception, number);
	return number;
}

/*
 * A connection that has the last descriptor of this process cannot stay: no other one could be
 * accepted.
 */
static void give_seat(struct link *link, struct link_reception *reception,
		      struct link_visitor *visitor)
{
	unsigned int number;

	link_keep_reserve(link);
	if (atomic_load(&link->reserve_fd) < 0) {
		link_close_fd(&visitor->fd);
		link_keep_reserve(link);
		return;
	}
	number = choose_seat(reception);
	if (watch(reception, visitor->fd, number))
		link_close_fd(&visitor->fd);
	else
		reception->seat[number] = *visitor;
}

/* 0 and the visitor, whose fd is -1 if it has only been seated; or a negative errno. */
static int receive_new(struct link *link, struct link_reception *reception, void *question,
		       size_t *bytes, struct link_visitor *visitor)
{
	ssize_t count;

	visitor->from_bytes = sizeof(visitor->from);
	visitor->fd = link_accept(link, reception->listener, &visitor->from, &visitor->from_bytes);
	if (visitor->fd < 0)
		return visitor->fd;
	count = recv(visitor->fd, question, *bytes, MSG_DONTWAIT);
	if (count >= 0) {
		*bytes = (size_t)count;
		return 0;
	}
	if (errno == EAGAIN)
		give_seat(link, reception, visitor);
	else
		link_close_fd(&visitor->fd);
	visitor->fd = -1;
	return 0;
}

/* As receive_new(), for a connection that has a seat. */
static int receive_seated(struct link_reception *reception, unsigned int number, void *question,
			  size_t *bytes, struct link_visitor *visitor)
{
	ssize_t count = recv(reception->seat[number].fd, question, *bytes, MSG_DONTWAIT);

	*visitor = reception->seat[number];
	if (count < 0 && errno == EAGAIN) {
		visitor->fd = -1;
		return 0;
	}
	epoll_ctl(reception->epoll_fd, EPOLL_CTL_DEL, visitor->fd, NULL);
	reception->seat[number].fd = -1;
	if (count < 0)
		link_close_fd(&visitor->fd);
	*bytes = count < 0 ? 0 : (size_t)count;
	return 0;
}

int link_reception_next(struct link *link, struct link_reception *reception, void *question,
			size_t room, struct link_visitor *visitor)
{
	struct epoll_event event;
	int result;

	/*
	 * A connection without a question gets a seat, or keeps it: each is looked at once and no
	 * more.
	 */
	for (unsigned int i = 0; i < 2 * LINK_SEATS; i++) {
		size_t bytes = room;

		if (epoll_wait(reception->epoll_fd, &event, 1, 0) <= 0)
			return -EAGAIN;
		if (event.data.u32 == LISTENER)
			result = receive_new(link, reception, question, &bytes, visitor);
		else
			result = receive_seated(reception, event.data.u32, question, &bytes,
						visitor);
		if (result)
			return result;
		if (visitor->fd >= 0)
			return (int)bytes;
	}
	return -EAGAIN;
}
