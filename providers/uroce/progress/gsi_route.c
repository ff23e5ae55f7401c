/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Queue pair 1 of one address: to which process a MAD goes.
 */
#include <string.h>

#include "gsi_internal.h"

/*
 * After a holder's end the members come to the next one within milliseconds.  So long it
 * is not said that a process is missing which may still come: a busy host takes longer.
 */
#define GRACE_NS UINT64_C(2000000000)
/* In which a process that has given way reads what its socket has. */
#define STALE_NS UINT64_C(1000000000)

static unsigned int own_slot(const struct gsi_address *address)
{
	return address->gsi->progress->slot;
}

static void count(const struct gsi_address *address, enum progress_counter counter)
{
	count_anywhere(address->gsi->progress, counter);
}

/* ---- while it is not known which process a MAD is for ---- */

/* Until a holder is found, or a member has said which slot it has. */
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
			send_to(address, address->guest[i].fd, mad, GSI_FOR_ANY);
	*reason = GSI_FOR_ANY;
	return true;
}

/* Is the slot that of a process that can be reached? */
static bool is_here(struct gsi_address *address, unsigned int slot)
{
	return slot == own_slot(address) || (slot < LINK_SLOTS && gsi_address_guest(address, slot));
}

/*
 * Which process listens, and whether the port is anyone's.  A request at 127.0.0.0/8 is for the
 * address that it names; for its GID, if there is nothing, for what looks like a name may be none.
 */
static unsigned int listener_of(const struct gsi_address *address, const struct gsi_target *target)
{
	const uint8_t *gids[] = { gsi_target_address(target, address->gid), address->gid };
	unsigned int slot = LINK_SLOTS;

	for (unsigned int i = 0; i < 2 && slot == LINK_SLOTS; i++)
		slot = gsi_services_find(&address->services, target->service_id, gids[i],
					 address->scope_id);
	return slot;
}

static bool has_owner(const struct gsi_address *address, const struct gsi_target *target)
{
	const uint8_t *named = gsi_target_address(target, address->gid);

	return gsi_port_is_owned(target->service_id, named, address->scope_id) ||
	       (named != address->gid &&
		gsi_port_is_owned(target->service_id, address->gid, address->scope_id));
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
		slot = listener_of(address, target);
		if (slot < LINK_SLOTS)
			gsi_requests_add(&address->requests, target, slot, now);
		break;
	case GSI_TARGET_SERVICE:
		slot = listener_of(address, target);
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
	return has_owner(address, target);
}

/*
 * Is it for a process that lives and stood still when this one stepped in for a holder?  Nothing is
 * said in its place: it may go on, and finds what has been sent again.  Nor is a REP or RTU
 * answered while any process has the slot, for the REJ would end its connection, if it is only
 * late.
 */
static bool is_absent(struct gsi_address *address, const struct gsi_target *target)
{
	uint64_t slot;

	if (target->kind == GSI_TARGET_NOBODY)
		return false;
	if (target->kind != GSI_TARGET_SLOT)
		return address->absent && has_owner(address, target);
	slot = UINT64_C(1) << target->slot;
	if (!target->is_reply && !(address->absent & slot))
		return false;
	if (link_slot_is_taken(target->slot))
		return true;
	address->absent &= ~slot;
	return false;
}

static bool route_as_holder(struct gsi_address *address, const struct gsi_mad *mad,
			    enum gsi_for *reason)
{
	const struct gsi_target target = gsi_target_of(mad->bytes);
	uint64_t now = progress_now();
	unsigned int slot = choose(address, &target, now);

	if (slot == LINK_SLOTS && target.kind != GSI_TARGET_NOBODY) {
		gsi_address_hear_all(address);
		if (gsi_address_gives_way(address)) {
			count(address, PROGRESS_COUNT_MAD_LOST);
			return false;
		}
		slot = choose(address, &target, now);
	}
	if (slot == own_slot(address)) {
		*reason = GSI_FOR_THIS;
		return true;
	}
	if (slot < LINK_SLOTS) {
		send_to(address, gsi_address_guest(address, slot)->fd, mad, GSI_FOR_THIS);
		return false;
	}
	if (target.kind == GSI_TARGET_SENDER)
		return send_to_all(address, mad, reason);
	if (may_come_later(address, &target, now)) {
		keep(address, mad);
		return false;
	}
	if (is_absent(address, &target)) {
		count(address, PROGRESS_COUNT_MAD_LOST);
		return false;
	}
	count(address, PROGRESS_COUNT_MAD_NO_OWNER);
	*reason = GSI_FOR_NONE;
	return true;
}

/*
 * What comes to a process that has just given way has been at its socket since before the other one
 * stepped in: it has been sent again, and some of those that have sent it are gone.
 */
static bool is_stale(const struct gsi_address *address)
{
	return address->gave_way && progress_now() < address->gave_way + STALE_NS;
}

bool gsi_address_route(struct gsi_address *address, const struct gsi_mad *mad, enum gsi_for *reason)
{
	/* Before anything is answered in another process's place. */
	gsi_address_gives_way(address);
	if (is_stale(address)) {
		count(address, PROGRESS_COUNT_MAD_LOST);
		return false;
	}
	switch (address->role) {
	case GSI_HOLDER:
		return route_as_holder(address, mad, reason);
	case GSI_MEMBER:
		/* It was steered here before the holder was, or came with others. */
		send_to(address, address->fd, mad, GSI_FOR_THIS);
		return false;
	case GSI_SEEKING:
		keep(address, mad);
		break;
	}
	return false;
}
