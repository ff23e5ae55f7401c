/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The members of an address whose queue pair 1 this process holds, and what they say.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gsi_internal.h"

/* Messages of one member in a row; others have their turn then. */
#define MESSAGES_MAX 256

void gsi_guest_lose(struct gsi_address *address, struct gsi_guest *guest)
{
	gsi_address_close(address, &guest->fd);
	gsi_will_inherit(address, &guest->will_fd, false);
	if (guest->slot < LINK_SLOTS) {
		gsi_services_forget(&address->services, guest->slot);
		gsi_requests_forget(&address->requests, guest->slot);
	}
	guest->slot = LINK_SLOTS;
}

struct gsi_guest *gsi_address_guest(struct gsi_address *address, unsigned int slot)
{
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		if (address->guest[i].fd >= 0 && address->guest[i].slot == slot)
			return &address->guest[i];
	return NULL;
}

/* It says hello twice: at first, and with its will when it has been answered. */
static void greet(struct gsi_address *address, struct gsi_guest *guest, unsigned int slot)
{
	struct gsi_guest *old = gsi_address_guest(address, slot);
	struct gsi *gsi = address->gsi;

	if (old == guest)
		return;
	/* Of the slot's owner before; its end has not been read yet. */
	if (old)
		gsi_guest_lose(address, old);
	guest->slot = slot;
	address->absent &= ~(UINT64_C(1) << slot);
	link_exchange_hello(guest->fd, gsi->progress->link, gsi->will.fd);
	link_exchange_bell(guest->fd, address->bell_fd);
}

/* What came to the wrong process, or has been handed to this one. */
void gsi_address_enqueue(struct gsi_address *address, const struct link_mad *from,
			 enum gsi_came came)
{
	struct gsi_entry entry = {
		.came = came,
		.mad = { .scope_id = address->scope_id,
			 .when = from->when,
			 .reason = from->reason == GSI_FOR_ANY ? GSI_FOR_ANY : GSI_FOR_THIS },
	};

	memcpy(entry.mad.bytes, from->bytes, sizeof(entry.mad.bytes));
	memcpy(entry.mad.src, from->src, sizeof(entry.mad.src));
	memcpy(entry.mad.dst, address->gid, sizeof(entry.mad.dst));
	gsi_enqueue(address->gsi, &entry);
}

static void hear_guest(struct gsi_address *address, struct gsi_guest *guest,
		       const struct link_exchange_message *message)
{
	if (message->kind == LINK_EXCHANGE_HELLO) {
		greet(address, guest, message->slot);
		gsi_take_kept(address->gsi, progress_now());
		if (message->fd >= 0) {
			gsi_replace_will(&guest->will_fd, message->fd);
			gsi_will_return(address, message->fd);
		}
	} else if (message->kind == LINK_EXCHANGE_ASK) {
		link_exchange_say(guest->fd, LINK_EXCHANGE_HERE);
	} else if (message->kind == LINK_EXCHANGE_BELL) {
		/* That is for members. */
		if (message->fd >= 0)
			close(message->fd);
	} else if (guest->slot == LINK_SLOTS) {
		return;
	} else if (message->kind == LINK_EXCHANGE_LISTEN) {
		gsi_services_add(&address->services, &message->service, guest->slot);
		gsi_take_kept(address->gsi, progress_now());
	} else if (message->kind == LINK_EXCHANGE_UNLISTEN) {
		gsi_services_remove(&address->services, &message->service, guest->slot);
	} else if (message->kind == LINK_EXCHANGE_MAD) {
		gsi_address_enqueue(address, &message->mad, GSI_CAME_HERE);
	}
}

void gsi_guest_read(struct gsi_address *address, struct gsi_guest *guest)
{
	struct link_exchange_message message;

	for (unsigned int i = 0; i < MESSAGES_MAX && guest->fd >= 0; i++) {
		int error = link_exchange_receive(guest->fd, &message);

		if (error == -EAGAIN)
			return;
		if (error)
			gsi_guest_lose(address, guest);
		else
			hear_guest(address, guest, &message);
	}
}

/*
 * A process says hello as soon as it has connected, and is answered here and not by the next round:
 * what it has sent to queue pair 1 since may be delivered in this one, and make the application
 * end. Its REJ is in the will, which comes with the answer.
 */
void gsi_guests_accept(struct gsi_address *address)
{
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		struct gsi_guest *guest = &address->guest[i];

		if (guest->fd >= 0)
			continue;
		guest->fd = link_exchange_accept(address->addr);
		if (guest->fd < 0)
			return;
		guest->slot = LINK_SLOTS;
		/* It may be one that has stepped in. */
		address->looks_up = true;
		if (gsi_address_watch(address, guest->fd, EPOLLIN, GSI_WHAT_GUEST, i))
			gsi_address_close(address, &guest->fd);
		else
			gsi_guest_read(address, guest);
	}
}

void gsi_address_hear_all(struct gsi_address *address)
{
	gsi_guests_accept(address);
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		if (address->guest[i].fd >= 0)
			gsi_guest_read(address, &address->guest[i]);
}
