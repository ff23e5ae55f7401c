/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* SO_REUSEPORT groups of UDP port 4791: their members and their steering program */
#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "brokerd.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

static const bool allowed_next[ADDRESS_STATES][ADDRESS_STATES] = {
	/* A lower broker that has not received SUPERSEDE yet may add members to the group. */
	[ADDRESS_KNOWN] = { [ADDRESS_PARTLY_KNOWN] = true },
	[ADDRESS_PARTLY_KNOWN] = { [ADDRESS_KNOWN] = true },
};

void address_set_state(struct address *address, enum address_state state)
{
	assert(address->state == state || allowed_next[address->state][state]);
	address->state = state;
}

struct address *address_find(const struct brokerd *brokerd,
			     const struct uroce_broker_endpoint *endpoint)
{
	struct address *address = brokerd->addresses;

	while (address && (address->endpoint.scope_id != endpoint->scope_id ||
			   memcmp(address->endpoint.gid, endpoint->gid, 16) != 0))
		address = address->next;
	return address;
}

struct member *address_find_member(const struct address *address, uint32_t slot)
{
	struct member *member = address->members;

	while (member && member->slot != slot)
		member = member->next;
	return member;
}

bool address_is_used(const struct address *address, uint32_t slot)
{
	const struct member *member = address_find_member(address, slot);

	return member && member->state == MEMBER_USED;
}

int address_member_fd(const struct address *address, uint32_t slot)
{
	const struct member *member = address_find_member(address, slot);

	return member && member->state == MEMBER_USED ? member->fd : -1;
}

/* ---- steering ---- */

static int attach_program(int fd, const struct sock_fprog *program)
{
	if (getenv("UROCE_TEST_NO_STEERING"))
		return -ENOPROTOOPT;
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program, sizeof(*program))
		       ? -errno
		       : 0;
}

int address_attach_program(const struct brokerd *brokerd, const struct address *address)
{
	static struct sock_filter code[BPF_MAXINSNS];
	static struct steer_table table;
	struct sock_fprog program;

	memset(&program, 0, sizeof(program));
	group_fill_table(&address->group, &brokerd->slots, &table);
	program.filter = code;
	program.len = (unsigned short)steer_build(&table, code);
	return program.len ? attach_program(address->gsi_fd, &program) : -ENOSPC;
}

int address_update_program(struct brokerd *brokerd, struct address *address)
{
	return address->state == ADDRESS_UNSTEERED ? 0 : address_attach_program(brokerd, address);
}

void address_update_all_programs(struct brokerd *brokerd)
{
	for (struct address *address = brokerd->addresses; address; address = address->next)
		address_update_program(brokerd, address);
}

/* ---- close ---- */

void address_close_sockets(struct address *address)
{
	for (struct member *member = address->members; member; member = member->next)
		link_close_fd(&member->fd);
	link_close_fd(&address->sink_fd);
	link_close_fd(&address->gsi_fd);
}

void address_free(struct address *address)
{
	struct member *member;

	address_close_sockets(address);
	while ((member = address->members)) {
		address->members = member->next;
		free(member);
	}
	free(address);
}
