/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 of one address among the processes that use it: which one holds it, and to which
 * ones the holder hands what comes.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gsi_internal.h"

/* The next look for a holder: a process is just becoming it, or something is in the way. */
#define RETRY_SOON_NS UINT64_C(1000000)
#define RETRY_LATE_NS UINT64_C(100000000)
/*
 * After a holder's end the members come to the next one within milliseconds.  So long it
 * is not said that a process is missing which may still come: a busy host takes longer.
 */
#define GRACE_NS UINT64_C(2000000000)
/* Messages of one member in a row; others have their turn then. */
#define MESSAGES_MAX 256

enum what {
	WHAT_LISTENER,
	WHAT_HOLDER,
	WHAT_GUEST,
};

/* An event is about an address, a descriptor's kind, and the place of a guest. */
static uint64_t event_data(const struct gsi_address *address, enum what what, unsigned int place)
{
	return (uint64_t)address->id << 32 | (uint32_t)what << 8 | place;
}

static int watch(const struct gsi_address *address, int fd, enum what what, unsigned int place)
{
	struct epoll_event event = {
		.events = EPOLLIN,
		.data.u64 = event_data(address, what, place),
	};

	return epoll_ctl(address->gsi->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* A child that has been forked may have it as well, and then closing it would not take it out. */
static void unwatch(const struct gsi_address *address, int fd)
{
	epoll_ctl(address->gsi->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void close_fd(const struct gsi_address *address, int *fd)
{
	if (*fd < 0)
		return;
	unwatch(address, *fd);
	close(*fd);
	*fd = -1;
}

struct gsi_address *gsi_address_find(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id)
{
	struct gsi_address *address;

	for (address = gsi->addresses; address; address = address->next)
		if (address->scope_id == scope_id &&
		    !memcmp(address->gid, gid, sizeof(address->gid)))
			break;
	return address;
}

static unsigned int own_slot(const struct gsi_address *address)
{
	return address->gsi->progress->slot;
}

static void count(const struct gsi_address *address, enum progress_counter counter)
{
	count_anywhere(address->gsi->progress, counter);
}

/* ---- while it is not known which process a MAD is for ---- */

/* Until a holder is found, or a member has said who it is. */
static void keep(struct gsi_address *address, const struct gsi_mad *mad)
{
	struct gsi_waiting *waiting = &address->gsi->waiting;

	if (waiting->count == GSI_QUEUE_MAX)
		count(address, PROGRESS_COUNT_MAD_LOST);
	else
		waiting->entry[waiting->count++] =
			(struct gsi_entry){ .came = GSI_CAME_HERE, .mad = *mad };
}

void gsi_take_kept(struct gsi *gsi, uint64_t now)
{
	struct gsi_waiting *waiting = &gsi->waiting;

	for (unsigned int i = 0; i < waiting->count; i++)
		/* What is as old as that has been sent anew. */
		if (now < waiting->entry[i].mad.when + GRACE_NS)
			gsi_enqueue(gsi, &waiting->entry[i]);
		else
			count_anywhere(gsi->progress, PROGRESS_COUNT_MAD_LOST);
	waiting->count = 0;
}

/* ---- becoming a holder or a member ---- */

static void close_will(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Its will stays: whichever process holds next executes it. */
static void lose_holder(struct gsi_address *address, uint64_t now)
{
	close_fd(address, &address->fd);
	address->role = GSI_SEEKING;
	address->retry_at = now;
}

static int tell_service(struct gsi_address *address, const struct link_service *service,
			bool listen)
{
	if (!gsi_port_concerns(service, address))
		return 0;
	if (address->role == GSI_MEMBER)
		return link_exchange_service(address->fd, service, listen);
	if (listen)
		return gsi_services_add(&address->services, service, own_slot(address));
	gsi_services_remove(&address->services, service, own_slot(address));
	return 0;
}

static int tell_port(struct gsi_address *address, const struct gsi_port *port, bool listen)
{
	struct link_service service[2];
	unsigned int services = gsi_port_services(port, service);
	int error = 0;

	for (unsigned int i = 0; i < services && !error; i++)
		error = tell_service(address, &service[i], listen);
	return error;
}

/* All that listens here. */
static int tell_all(struct gsi_address *address)
{
	int error = 0;

	for (unsigned int i = 0; i < GSI_PORT_BUCKETS; i++)
		for (struct gsi_port *port = address->gsi->ports[i]; port && !error;
		     port = port->next)
			if (port->listening)
				error = tell_port(address, port, true);
	return error;
}

static int become_holder(struct gsi_address *address, uint64_t now)
{
	int error = link_addr_claim_gsi(address->addr);

	if (error)
		return error;
	error = watch(address, link_exchange_listener(address->addr), WHAT_LISTENER, 0);
	if (error) {
		link_addr_release_gsi(address->addr);
		return error;
	}
	address->role = GSI_HOLDER;
	address->held_since = now;
	count(address, PROGRESS_COUNT_GSI_CLAIMED);
	gsi_will_inherit(address, &address->will_fd);
	/* Memory that is out leaves a listener unheard; no caller could be told. */
	tell_all(address);
	return 0;
}

static int become_member(struct gsi_address *address)
{
	int error;

	address->fd = link_exchange_connect(address->addr);
	if (address->fd < 0)
		return address->fd;
	address->role = GSI_MEMBER;
	error = link_exchange_hello(address->fd, address->gsi->progress->link, -1);
	if (!error)
		error = tell_all(address);
	if (!error)
		error = watch(address, address->fd, WHAT_HOLDER, 0);
	if (error) {
		close_fd(address, &address->fd);
		address->role = GSI_SEEKING;
	}
	return error;
}

void gsi_address_seek(struct gsi_address *address, uint64_t now)
{
	int error;

	if (address->role != GSI_SEEKING || now < address->retry_at)
		return;
	error = address->leaving ? -EADDRINUSE : become_holder(address, now);
	if (error == -EADDRINUSE)
		error = become_member(address);
	address->seek_error = error;
	if (!error) {
		gsi_take_kept(address->gsi, now);
		return;
	}
	address->retry_at = now + (error == -ECONNREFUSED || error == -EAGAIN ||
						   error == -ECONNRESET || error == -EPIPE
					   ? RETRY_SOON_NS
					   : RETRY_LATE_NS);
}

/* ---- guests ---- */

static void lose_guest(struct gsi_address *address, struct gsi_guest *guest)
{
	close_fd(address, &guest->fd);
	gsi_will_inherit(address, &guest->will_fd);
	if (guest->slot < LINK_SLOTS) {
		gsi_services_forget(&address->services, guest->slot);
		gsi_requests_forget(&address->requests, guest->slot);
	}
	guest->slot = LINK_SLOTS;
}

static struct gsi_guest *find_guest(struct gsi_address *address, unsigned int slot)
{
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		if (address->guest[i].fd >= 0 && address->guest[i].slot == slot)
			return &address->guest[i];
	return NULL;
}

/* It says hello twice: at first, and with its will when it has been answered. */
static void greet(struct gsi_address *address, struct gsi_guest *guest, unsigned int slot)
{
	struct gsi_guest *old = find_guest(address, slot);
	struct gsi *gsi = address->gsi;

	if (old == guest)
		return;
	/* Of the slot's owner before; its end has not been read yet. */
	if (old)
		lose_guest(address, old);
	guest->slot = slot;
	link_exchange_hello(guest->fd, gsi->progress->link, gsi->will.fd);
}

static void replace_will(int *fd, int with)
{
	close_will(fd);
	*fd = with;
}

/* What came to the wrong process, or has been handed to this one. */
static void enqueue(struct gsi_address *address, const struct link_mad *from, enum gsi_came came)
{
	struct gsi_entry entry = {
		.came = came,
		.mad = { .scope_id = address->scope_id,
			 .when = from->when,
			 .reason =
				 from->reason == GSI_FOR_ANYBODY ? GSI_FOR_ANYBODY : GSI_FOR_YOU },
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
		if (message->will_fd >= 0)
			replace_will(&guest->will_fd, message->will_fd);
	} else if (guest->slot == LINK_SLOTS) {
		return;
	} else if (message->kind == LINK_EXCHANGE_LISTEN) {
		gsi_services_add(&address->services, &message->service, guest->slot);
		gsi_take_kept(address->gsi, progress_now());
	} else if (message->kind == LINK_EXCHANGE_UNLISTEN) {
		gsi_services_remove(&address->services, &message->service, guest->slot);
	} else if (message->kind == LINK_EXCHANGE_MAD) {
		enqueue(address, &message->mad, GSI_CAME_HERE);
	}
}

static void read_guest(struct gsi_address *address, struct gsi_guest *guest)
{
	struct link_exchange_message message;

	for (unsigned int i = 0; i < MESSAGES_MAX && guest->fd >= 0; i++) {
		int error = link_exchange_receive(guest->fd, &message);

		if (error == -EAGAIN)
			return;
		if (error)
			lose_guest(address, guest);
		else
			hear_guest(address, guest, &message);
	}
}

static void accept_guests(struct gsi_address *address)
{
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		struct gsi_guest *guest = &address->guest[i];

		if (guest->fd >= 0)
			continue;
		guest->fd = link_exchange_accept(address->addr);
		if (guest->fd < 0)
			return;
		guest->slot = LINK_SLOTS;
		if (watch(address, guest->fd, WHAT_GUEST, i))
			close_fd(address, &guest->fd);
	}
}

/* Before a process is said to be missing: read what all of them have sent. */
static void hear_all(struct gsi_address *address)
{
	accept_guests(address);
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		if (address->guest[i].fd >= 0)
			read_guest(address, &address->guest[i]);
}

/* ---- events ---- */

/*
 * It lives, so the will of the one before is its business, and it can take this process's.  Not
 * before: while a process ends, its listener may last longer than its connections.
 */
static void answer_holder(struct gsi_address *address, int will_fd)
{
	const struct gsi *gsi = address->gsi;

	replace_will(&address->will_fd, will_fd);
	link_exchange_hello(address->fd, gsi->progress->link, gsi->will.fd);
}

static void hear_holder(struct gsi_address *address)
{
	struct link_exchange_message message;
	int error = 0;

	for (unsigned int i = 0; i < MESSAGES_MAX && !error; i++) {
		error = link_exchange_receive(address->fd, &message);
		if (!error && message.kind == LINK_EXCHANGE_MAD)
			enqueue(address, &message.mad, GSI_CAME_HANDED);
		if (!error && message.kind == LINK_EXCHANGE_HELLO)
			answer_holder(address, message.will_fd);
	}
	if (error && error != -EAGAIN)
		lose_holder(address, progress_now());
}

void gsi_address_event(struct gsi *gsi, uint64_t data)
{
	struct gsi_address *address = gsi->addresses;
	unsigned int place = data & 0xff;

	while (address && address->id != data >> 32)
		address = address->next;
	/* It may have been closed since, or have become something else. */
	if (!address)
		return;
	switch ((enum what)(data >> 8 & 0xff)) {
	case WHAT_LISTENER:
		if (address->role == GSI_HOLDER)
			accept_guests(address);
		break;
	case WHAT_HOLDER:
		if (address->role == GSI_MEMBER)
			hear_holder(address);
		break;
	case WHAT_GUEST:
		if (address->guest[place].fd >= 0)
			read_guest(address, &address->guest[place]);
		break;
	}
}

void gsi_address_service(struct gsi_address *address, const struct link_service *service,
			 bool listen)
{
	/* When a holder has been found all is told. */
	if (address->role == GSI_SEEKING)
		return;
	/* A holder that does not hear is as good as none; all is told anew then. */
	if (tell_service(address, service, listen) && address->role == GSI_MEMBER) {
		lose_holder(address, progress_now());
		gsi_set_deadline(address->gsi);
	}
}

void gsi_address_leave(struct gsi_address *address)
{
	/* First, so that no member connects again. */
	if (address->role == GSI_HOLDER) {
		unwatch(address, link_exchange_listener(address->addr));
		link_addr_release_gsi(address->addr);
	}
	close_fd(address, &address->fd);
	close_will(&address->will_fd);
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		close_fd(address, &address->guest[i].fd);
		close_will(&address->guest[i].will_fd);
	}
	address->role = GSI_SEEKING;
	gsi_services_free(&address->services);
}

bool gsi_address_step_down(struct gsi_address *address)
{
	if (address->role != GSI_HOLDER)
		return false;
	/* One that has ended does not take over: its end may not have been read yet. */
	hear_all(address);
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		if (address->guest[i].fd < 0)
			continue;
		address->leaving = true;
		address->retry_at = 0;
		gsi_address_leave(address);
		return true;
	}
	return false;
}

void gsi_address_abandon(struct gsi_address *address)
{
	/* The listener is the link's. */
	if (address->fd >= 0)
		close(address->fd);
	close_will(&address->will_fd);
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		if (address->guest[i].fd >= 0)
			close(address->guest[i].fd);
		close_will(&address->guest[i].will_fd);
	}
}

/* ---- where to ---- */

static void send_to(struct gsi_address *address, int fd, const struct gsi_mad *mad,
		    enum gsi_for reason)
{
	struct link_mad out = { .when = mad->when, .reason = reason };

	memcpy(out.src, mad->src, sizeof(out.src));
	memcpy(out.bytes, mad->bytes, sizeof(out.bytes));
	/* One that cannot be sent is lost, as by a network: it will come again. */
	count(address,
	      link_exchange_mad(fd, &out) ? PROGRESS_COUNT_MAD_LOST : PROGRESS_COUNT_MAD_FORWARDED);
}

static bool send_to_all(struct gsi_address *address, const struct gsi_mad *mad,
			enum gsi_for *reason)
{
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		if (address->guest[i].fd >= 0 && address->guest[i].slot < LINK_SLOTS)
			send_to(address, address->guest[i].fd, mad, GSI_FOR_ANYBODY);
	*reason = GSI_FOR_ANYBODY;
	return true;
}

/* Is the slot that of a process that can be reached? */
static bool is_here(struct gsi_address *address, unsigned int slot)
{
	return slot == own_slot(address) || (slot < LINK_SLOTS && find_guest(address, slot));
}

/* The slot that is to have it, or LINK_SLOTS. */
static unsigned int choose(struct gsi_address *address, const struct gsi_target *target,
			   uint64_t now)
{
	unsigned int slot = LINK_SLOTS;

	switch (target->kind) {
	case GSI_TARGET_SLOT:
		return is_here(address, target->slot) ? target->slot : LINK_SLOTS;
	case GSI_TARGET_REQUEST:
	case GSI_TARGET_SENDER:
		slot = gsi_requests_find(&address->requests, target, now);
		if (is_here(address, slot) || target->kind == GSI_TARGET_SENDER)
			break;
		slot = gsi_services_find(&address->services, target->service_id, address->gid,
					 address->scope_id);
		if (slot < LINK_SLOTS)
			gsi_requests_add(&address->requests, target, slot, now);
		break;
	case GSI_TARGET_SERVICE:
		slot = gsi_services_find(&address->services, target->service_id, address->gid,
					 address->scope_id);
		break;
	case GSI_TARGET_NOBODY:
		break;
	}
	return is_here(address, slot) ? slot : LINK_SLOTS;
}

/* A new holder may not know all members yet: no answer is better then than a wrong one. */
static bool may_come_later(struct gsi_address *address, const struct gsi_target *target,
			   uint64_t now)
{
	if (target->kind == GSI_TARGET_NOBODY)
		return false;
	/* The dead process has the first word: it may have refused a REQ that is repeated here. */
	if (gsi_will_is_due(address))
		return true;
	if (now >= address->held_since + GRACE_NS)
		return false;
	/* The dead hold no names, so their peers need not wait. */
	if (target->kind == GSI_TARGET_SLOT)
		return link_slot_is_taken(target->slot);
	return gsi_port_is_owned(address, target->service_id);
}

static bool route_as_holder(struct gsi_address *address, const struct gsi_mad *mad,
			    enum gsi_for *reason)
{
	const struct gsi_target target = gsi_target_of(mad->bytes);
	uint64_t now = progress_now();
	unsigned int slot = choose(address, &target, now);

	if (slot == LINK_SLOTS && target.kind != GSI_TARGET_NOBODY) {
		hear_all(address);
		slot = choose(address, &target, now);
	}
	if (slot == own_slot(address)) {
		*reason = GSI_FOR_YOU;
		return true;
	}
	if (slot < LINK_SLOTS) {
		send_to(address, find_guest(address, slot)->fd, mad, GSI_FOR_YOU);
		return false;
	}
	if (target.kind == GSI_TARGET_SENDER)
		return send_to_all(address, mad, reason);
	if (may_come_later(address, &target, now)) {
		keep(address, mad);
		return false;
	}
	count(address, PROGRESS_COUNT_MAD_NO_OWNER);
	*reason = GSI_FOR_NOBODY;
	return true;
}

bool gsi_address_route(struct gsi_address *address, const struct gsi_mad *mad, enum gsi_for *reason)
{
	switch (address->role) {
	case GSI_HOLDER:
		return route_as_holder(address, mad, reason);
	case GSI_MEMBER:
		/* It was steered here before the holder was, or came with others. */
		send_to(address, address->fd, mad, GSI_FOR_YOU);
		return false;
	case GSI_SEEKING:
		keep(address, mad);
		break;
	}
	return false;
}
