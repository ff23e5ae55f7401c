/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 of one address among the processes that use it: which one holds it, and to which
 * ones the holder hands what comes.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gsi_internal.h"

/* The next look for a holder: a process is just becoming it, or something is in the way. */
#define RETRY_SOON_NS UINT64_C(1000000)
#define RETRY_LATE_NS UINT64_C(100000000)
/* So often a name is asked for again that does not say whose it is; a stranger may have it. */
#define PATIENT_TRIES 200
/* Messages of the holder in a row; others have their turn then. */
#define MESSAGES_MAX 256

/* An event is about an address, a descriptor's kind, and the place of a guest. */
static uint64_t event_data(const struct gsi_address *address, enum gsi_what what,
			   unsigned int place)
{
	return (uint64_t)address->id << 32 | (uint32_t)what << 8 | place;
}

int gsi_address_watch(const struct gsi_address *address, int fd, uint32_t events,
		      enum gsi_what what, unsigned int place)
{
	struct epoll_event event = {
		.events = events,
		.data.u64 = event_data(address, what, place),
	};

	return epoll_ctl(address->gsi->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Other processes may have it as well, and then closing it would not take it out. */
void gsi_address_unwatch(const struct gsi_address *address, int fd)
{
	epoll_ctl(address->gsi->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void gsi_address_close(const struct gsi_address *address, int *fd)
{
	if (*fd < 0)
		return;
	gsi_address_unwatch(address, *fd);
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

static struct gsi_address *find_by_id(struct gsi *gsi, uint32_t id)
{
	struct gsi_address *address = gsi->addresses;

	while (address && address->id != id)
		address = address->next;
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

/* ---- becoming a holder or a member ---- */

static void close_will(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void gsi_replace_will(int *fd, int with)
{
	close_will(fd);
	*fd = with;
}

/* Its will stays: whichever process holds next executes it. */
static void lose_holder(struct gsi_address *address, uint64_t now)
{
	gsi_standby_end(address);
	gsi_address_close(address, &address->fd);
	gsi_address_close(address, &address->bell_fd);
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

/* Where it fails the name is let go. */
static int take_office(struct gsi_address *address)
{
	int listener = link_exchange_listener(address->addr), error;

	address->bell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (address->bell_fd < 0)
		error = -errno;
	else
		error = gsi_address_watch(address, address->bell_fd, EPOLLIN, GSI_WHAT_BELL, 0);
	if (!error)
		error = gsi_address_watch(address, listener, EPOLLIN, GSI_WHAT_LISTENER, 0);
	if (!error)
		error = link_exchange_steer(address->addr);
	if (!error)
		return 0;
	gsi_address_unwatch(address, listener);
	gsi_address_close(address, &address->bell_fd);
	link_addr_release_gsi(address->addr);
	return error;
}

static void hold(struct gsi_address *address, unsigned int level, uint64_t now)
{
	address->role = GSI_HOLDER;
	address->level = level;
	address->looks_up = false;
	address->gave_way = 0;
	address->absent = 0;
	address->held_since = now;
	count(address, PROGRESS_COUNT_GSI_CLAIMED);
	/* Memory that is out leaves a listener unheard; no caller could be told. */
	tell_all(address);
}

static int become_holder(struct gsi_address *address, bool patient, uint64_t now)
{
	int error = link_exchange_claim(address->addr, 0, patient);

	if (!error)
		error = take_office(address);
	if (error)
		return error;
	hold(address, 0, now);
	gsi_will_inherit(address, &address->will_fd, false);
	return 0;
}

static int become_member(struct gsi_address *address, bool patient, uint64_t now)
{
	int error;

	address->fd = link_exchange_connect(address->addr, patient, &address->level);
	if (address->fd < 0)
		return address->fd;
	address->role = GSI_MEMBER;
	gsi_standby_begin(address, now);
	error = link_exchange_hello(address->fd, address->gsi->progress->link, -1);
	if (!error)
		error = tell_all(address);
	if (!error)
		error = gsi_address_watch(address, address->fd, EPOLLIN, GSI_WHAT_HOLDER, 0);
	if (error) {
		gsi_standby_end(address);
		gsi_address_close(address, &address->fd);
		address->role = GSI_SEEKING;
	}
	return error;
}

void gsi_address_seek(struct gsi_address *address, uint64_t now)
{
	bool patient = address->tries < PATIENT_TRIES;
	int error;

	if (address->role != GSI_SEEKING || now < address->retry_at)
		return;
	error = become_member(address, patient, now);
	if (error == -ECONNREFUSED && !address->leaving) {
		error = become_holder(address, patient, now);
		/* Another one is just becoming it. */
		if (error == -EADDRINUSE)
			error = become_member(address, patient, now);
	}
	address->seek_error = error;
	if (!error) {
		address->tries = 0;
		gsi_take_kept(address->gsi, now);
		return;
	}
	address->tries++;
	address->retry_at = now + (error == -ECONNREFUSED || error == -EAGAIN ||
						   error == -ECONNRESET || error == -EPIPE
					   ? RETRY_SOON_NS
					   : RETRY_LATE_NS);
}

/* ---- stepping in, and giving way ---- */

/* Of the other processes of this host that use uroce. */
static uint64_t taken_slots(const struct gsi_address *address)
{
	uint64_t slots = 0;

	_Static_assert(LINK_SLOTS <= 64, "too many for the mask");
	for (unsigned int slot = 0; slot < LINK_SLOTS; slot++)
		if (slot != own_slot(address) && link_slot_is_taken(slot))
			slots |= UINT64_C(1) << slot;
	return slots;
}

/* The next level that can be had: a stranger may have names.  0: another process was faster. */
static unsigned int claim_above(struct gsi_address *address)
{
	unsigned int level = address->level + 1;

	for (; level < UROCE_ABI_GSI_LEVELS; level++) {
		if (!link_exchange_claim(address->addr, level, true))
			return level;
		/* One of this user that says nothing has others to accept, and looks up then. */
		if (link_exchange_look_up(address->addr, address->level) == 1)
			return 0;
	}
	return level;
}

/*
 * Whenever the holder goes on it finds that its bell has been rung, and gives way; so do the other
 * members.  The name comes first: it is what they then look for.  And then the packets, which the
 * holder would answer if it went on before.
 */
void gsi_address_step_in(struct gsi_address *address, uint64_t now)
{
	const uint64_t ring = 1;
	unsigned int level = claim_above(address);

	if (level == UROCE_ABI_GSI_LEVELS)
		return;
	/* It fails when it has been rung too often to be counted. */
	if (level > 0 && address->bell_fd >= 0 &&
	    write(address->bell_fd, &ring, sizeof(ring)) < 0 && errno != EAGAIN)
		gsi_address_close(address, &address->bell_fd);
	lose_holder(address, now);
	if (level == 0 || take_office(address))
		return;
	hold(address, level, now);
	address->absent = taken_slots(address);
	gsi_will_inherit(address, &address->will_fd, true);
	gsi_take_kept(address->gsi, now);
}

/* ---- giving way ---- */

static void give_way(struct gsi_address *address, uint64_t now)
{
	gsi_address_unwatch(address, link_exchange_listener(address->addr));
	link_addr_release_gsi(address->addr);
	gsi_address_close(address, &address->bell_fd);
	/* Which of them have ended meanwhile this process alone may know. */
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		if (address->guest[i].fd >= 0)
			gsi_guest_lose(address, &address->guest[i]);
	gsi_services_free(&address->services);
	address->role = GSI_SEEKING;
	address->retry_at = now;
	address->gave_way = now;
	gsi_set_deadline(address->gsi);
}

bool gsi_address_gives_way(struct gsi_address *address)
{
	uint64_t rings, now;
	bool rung;
	int higher;

	if (address->role != GSI_HOLDER)
		return false;
	rung = read(address->bell_fd, &rings, sizeof(rings)) == sizeof(rings);
	if (!rung && !address->looks_up)
		return false;
	now = progress_now();
	address->looks_up = false;
	higher = link_exchange_look_up(address->addr, address->level);
	if (higher == 1 || (higher < 0 && rung)) {
		give_way(address, now);
		return true;
	}
	/* The other one may have gone again; then packets went to it, and members did. */
	link_exchange_steer(address->addr);
	if (rung)
		address->held_since = now;
	return false;
}

/* ---- events ---- */

/*
 * It lives, so the will of the one before is its business, and it can take this process's.  Not
 * before: while a process ends, its listener may last longer than its connections.
 */
static void answer_holder(struct gsi_address *address, int will_fd)
{
	const struct gsi *gsi = address->gsi;

	gsi_replace_will(&address->will_fd, will_fd);
	link_exchange_hello(address->fd, gsi->progress->link, gsi->will.fd);
}

/* ET: it stays rung until the holder sees it. */
static void take_bell(struct gsi_address *address, int fd)
{
	if (fd < 0)
		return;
	gsi_address_close(address, &address->bell_fd);
	address->bell_fd = fd;
	gsi_address_watch(address, fd, EPOLLIN | EPOLLET, GSI_WHAT_BELL, 0);
}

static void hear_one(struct gsi_address *address, const struct link_exchange_message *message)
{
	if (message->kind == LINK_EXCHANGE_MAD)
		gsi_address_enqueue(address, &message->mad, GSI_CAME_HANDED);
	if (message->kind == LINK_EXCHANGE_BELL)
		take_bell(address, message->fd);
	if (message->kind == LINK_EXCHANGE_HELLO) {
		address->standby.slot = message->slot;
		answer_holder(address, message->fd);
	}
}

void gsi_address_hear_holder(struct gsi_address *address)
{
	struct link_exchange_message message;
	bool heard = false;
	int error = 0;

	for (unsigned int i = 0; i < MESSAGES_MAX && !error; i++) {
		error = link_exchange_receive(address->fd, &message);
		if (!error)
			hear_one(address, &message);
		heard |= !error;
	}
	if (heard)
		gsi_standby_heard(address, progress_now());
	if (error && error != -EAGAIN)
		lose_holder(address, progress_now());
}

void gsi_address_event(struct gsi *gsi, uint64_t data)
{
	struct gsi_address *address = find_by_id(gsi, data >> 32);
	unsigned int place = data & 0xff;

	/* It may have been closed since, or have become something else. */
	if (!address)
		return;
	switch ((enum gsi_what)(data >> 8 & 0xff)) {
	case GSI_WHAT_LISTENER:
		if (address->role == GSI_HOLDER)
			gsi_guests_accept(address);
		gsi_address_gives_way(address);
		break;
	case GSI_WHAT_HOLDER:
		if (address->role == GSI_MEMBER)
			gsi_address_hear_holder(address);
		break;
	case GSI_WHAT_GUEST:
		if (address->guest[place].fd >= 0)
			gsi_guest_read(address, &address->guest[place]);
		break;
	case GSI_WHAT_BELL:
		if (address->role == GSI_MEMBER)
			lose_holder(address, progress_now());
		gsi_address_gives_way(address);
		break;
	case GSI_WHAT_TRAFFIC:
		if (address->role == GSI_MEMBER)
			gsi_standby_traffic(address, progress_now());
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
		gsi_address_unwatch(address, link_exchange_listener(address->addr));
		link_addr_release_gsi(address->addr);
	}
	if (address->role == GSI_MEMBER)
		gsi_standby_end(address);
	gsi_address_close(address, &address->fd);
	gsi_address_close(address, &address->bell_fd);
	close_will(&address->will_fd);
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		gsi_address_close(address, &address->guest[i].fd);
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
	gsi_address_hear_all(address);
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
	if (address->bell_fd >= 0)
		close(address->bell_fd);
	close_will(&address->will_fd);
	for (unsigned int i = 0; i < LINK_SLOTS; i++) {
		if (address->guest[i].fd >= 0)
			close(address->guest[i].fd);
		close_will(&address->guest[i].will_fd);
	}
}
