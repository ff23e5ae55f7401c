/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "guest.h"

#include <unistd.h>

#include "client.h"
#include "broker/names.h"

static int exchange_message(struct link_guest *guest, union broker_message *message,
			    struct link_fds *fds)
{
	struct link_broker broker = { .number = guest->number };
	int error = link_broker_exchange(&broker, guest->fd, message, -1, fds);

	guest->number = broker.number;
	return error;
}

int link_guest_open(struct link_guest *guest)
{
	struct link_fds fds;
	union broker_message message;
	struct names_search_result found;
	int error;

	*guest = (struct link_guest){ .fd = names_search(geteuid(), UROCE_BROKER_NAMES, &found) };
	if (guest->fd < 0)
		return guest->fd;
	broker_message_init(&message, UROCE_BROKER_HELLO, 0);
	message.hello.role = UROCE_BROKER_GUEST;
	error = exchange_message(guest, &message, &fds);
	if (error)
		link_guest_close(guest);
	return error;
}

void link_guest_close(struct link_guest *guest)
{
	close(guest->fd);
}

/*
 * Stores the next clients, from slot first on, in *result.  Returns their number; 0 at the end or
 * after an error.
 */
static uint32_t list_clients(struct link_guest *guest, uint32_t first,
			     struct uroce_broker_list *result)
{
	struct link_fds fds;
	union broker_message message;

	broker_message_init(&message, UROCE_BROKER_LIST, 0);
	message.list.first = first;
	if (first >= UROCE_BROKER_SLOTS || exchange_message(guest, &message, &fds))
		return 0;
	*result = message.list;
	return result->clients;
}

bool link_guest_for_each(struct link_guest *guest, bool (*visit)(void *arg, uint32_t slot),
			 void *arg)
{
	struct uroce_broker_list part;
	uint32_t first = 0, count;

	while ((count = list_clients(guest, first, &part))) {
		for (uint32_t i = 0; i < count; i++)
			if (visit(arg, part.client[i].slot))
				return true;
		first = part.client[count - 1].slot + 1;
	}
	return false;
}

int link_guest_connect(struct link_guest *guest, uint32_t slot)
{
	struct link_fds fds;
	union broker_message message;
	int error;

	broker_message_init(&message, UROCE_BROKER_CONNECT, 0);
	message.connect.slot = slot;
	message.connect.purpose = UROCE_BROKER_STATISTICS;
	error = exchange_message(guest, &message, &fds);
	return error ? error : fds.fd[0];
}
