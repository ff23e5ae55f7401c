/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Clients and their slots */
#include <assert.h>
#include <errno.h>

#include "broker/names.h"
#include "brokerd.h"

/* Allowed transitions. */
static const bool allowed_next[CLIENT_STATES][CLIENT_STATES] = {
	[CLIENT_NEW] = { [CLIENT_WORKER] = true, [CLIENT_GUEST] = true, [CLIENT_GONE] = true },
	[CLIENT_WORKER] = { [CLIENT_GONE] = true },
	[CLIENT_GUEST] = { [CLIENT_GONE] = true },
};

void client_set_state(struct client *client, enum client_state state)
{
	assert(allowed_next[client->state][state]);
	client->state = state;
}

struct client *client_find(const struct brokerd *brokerd, uint32_t number)
{
	struct client *client = brokerd->clients;

	while (client && (client->number != number || client->state == CLIENT_GONE))
		client = client->next;
	return client;
}

struct client *client_of_slot(const struct brokerd *brokerd, uint32_t slot)
{
	uint32_t number = slots_holder(&brokerd->slots, slot);

	return number == SLOTS_NO_CLIENT ? NULL : client_find(brokerd, number);
}

bool client_send(int fd, const union broker_message *message, const struct link_fds *fds)
{
	return !link_send_with_fds(fd, message, broker_message_bytes(message), fds ? fds->fd : NULL,
				   fds ? fds->count : 0);
}

/* ---- slots ---- */

/* Binds the name of a free slot.  Returns the socket, which holds it, or a negative errno. */
static int lock_free_slot(struct brokerd *brokerd, uint32_t *slot)
{
	int fd;

	while ((*slot = slots_propose(&brokerd->slots)) != UROCE_BROKER_NO_SLOT) {
		fd = names_lock_slot(*slot);
		if (fd != -EADDRINUSE)
			return fd;
		slots_mark_absent(&brokerd->slots, *slot);
	}
	return -ENOSPC;
}

bool client_update_absent_slots(struct brokerd *brokerd)
{
	static bool bound[UROCE_BROKER_SLOTS];
	bool listed = names_read_bound_slots(bound);

	for (uint32_t slot = 0; listed && slot < UROCE_BROKER_SLOTS; slot++) {
		if (brokerd->slots.slot[slot].state == SLOT_HELD)
			continue;
		if (bound[slot])
			slots_mark_absent(&brokerd->slots, slot);
		else if (brokerd->slots.slot[slot].state == SLOT_ABSENT)
			slots_free(&brokerd->slots, slot);
	}
	return !listed || brokerd->slots.absent;
}

int client_find_lost_slot(const struct brokerd *brokerd, const struct client *client,
			  uint32_t *slot)
{
	for (*slot = 0; *slot < UROCE_BROKER_SLOTS; ++*slot) {
		int fd = -EADDRINUSE;

		if (slots_holder(&brokerd->slots, *slot) == client->number)
			fd = names_lock_slot(*slot);
		if (fd != -EADDRINUSE)
			return fd;
	}
	return -ENOENT;
}

int client_assign_slot(struct brokerd *brokerd, struct client *client, uint32_t *slot)
{
	int fd = lock_free_slot(brokerd, slot);

	if (fd == -ENOSPC && brokerd->slots.absent) {
		client_update_absent_slots(brokerd);
		fd = lock_free_slot(brokerd, slot);
	}
	if (fd >= 0)
		slots_hold(&brokerd->slots, *slot, client->number,
			   client->state == CLIENT_WORKER ? client->slot : *slot);
	return fd;
}

void client_free_slots(struct brokerd *brokerd, const struct client *client)
{
	for (uint32_t slot = 0; slot < UROCE_BROKER_SLOTS; slot++)
		if (slots_holder(&brokerd->slots, slot) == client->number)
			slots_free(&brokerd->slots, slot);
}
