/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Members of the groups of UDP port 4791, which are given to clients.  The broker keeps a
 * descriptor of every member, so that the end of a client moves no index.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/names.h"
#include "brokerd.h"

/* Number of spare members in a new group, for the next clients. */
enum { SPARE_MEMBERS = 3 };

/* ---- making a group ---- */

/* Makes the broker's own members: first that of queue pair 1, then the sink. */
static int make_own_members(struct address *address)
{
	address->gsi_fd = socket_make_member(&address->endpoint, false);
	if (address->gsi_fd < 0)
		return address->gsi_fd;
	address->sink_fd = socket_make_member(&address->endpoint, false);
	return address->sink_fd < 0 ? address->sink_fd : 0;
}

/*
 * Returns true if a broker with a lower number still exists: it is stopped and has not received
 * SUPERSEDE yet.
 */
static bool has_lower_broker(const struct brokerd *brokerd)
{
	struct names_search_result found;
	int fd = names_search(brokerd->user, brokerd->name_number, &found);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || fd == -EAGAIN;
}

/* Returns 1 if the port is free, 0 if it is in use, or a negative errno. */
static int is_port_free(const struct uroce_broker_endpoint *endpoint)
{
	int fd = socket_bind(endpoint, UDP_PORT, false);

	if (fd == -EADDRINUSE)
		return 0;
	if (fd < 0)
		return fd;
	close(fd);
	return 1;
}

static bool cannot_steer(int error)
{
	return error == ENOPROTOOPT || error == EOPNOTSUPP || error == ENOSYS;
}

static int make_group(struct brokerd *brokerd, struct address *address, bool is_new)
{
	int error = make_own_members(address);

	if (error)
		return error;
	group_init(&address->group, 0);
	if (is_new) {
		group_add_member(&address->group, GROUP_GSI);
		group_add_member(&address->group, GROUP_SINK);
		error = address_attach_program(brokerd, address);
	} else {
		address->state = ADDRESS_PARTLY_KNOWN;
		probe_start(address, brokerd_now());
	}
	if (error && cannot_steer(-error)) {
		link_close_fd(&address->sink_fd);
		address->state = ADDRESS_UNSTEERED;
		return 0;
	}
	return error;
}

static int watch_own_members(const struct brokerd *brokerd, struct address *address)
{
	int error;

	/* The clients read the socket of an unsteered address. */
	if (address->state == ADDRESS_UNSTEERED)
		return 0;
	error = brokerd_watch(brokerd, address->gsi_fd, EVENT_GSI, address);
	return error ? error : brokerd_watch(brokerd, address->sink_fd, EVENT_SINK, address);
}

static int add_address(struct brokerd *brokerd, const struct uroce_broker_endpoint *endpoint,
		       bool claimed, struct address **result)
{
	struct address *address;
	int is_new = is_port_free(endpoint), error;

	/* The host lacks the address at present, but the client has a member: the group exists. */
	if (is_new == -EADDRNOTAVAIL && claimed)
		is_new = 0;
	/*
	 * The port is in use: by the group of an earlier broker if that broker or one of its
	 * workers still exists, otherwise by another program.
	 */
	if (!is_new && !claimed && !has_lower_broker(brokerd) &&
	    !client_update_absent_slots(brokerd))
		return -EADDRINUSE;
	address = calloc(1, sizeof(*address));
	if (!address)
		return -ENOMEM;
	address->endpoint = *endpoint;
	address->gsi_fd = -1;
	address->sink_fd = -1;
	error = is_new < 0 ? is_new : make_group(brokerd, address, is_new);
	if (!error)
		error = watch_own_members(brokerd, address);
	if (error) {
		address_free(address);
		return error;
	}
	address->next = brokerd->addresses;
	brokerd->addresses = address;
	*result = address;
	return 0;
}

/* Adopts the shared socket of an unsteered address, which a returning client has passed. */
static int adopt_shared_socket(struct brokerd *brokerd,
			       const struct uroce_broker_endpoint *endpoint, int *fd,
			       struct address **result)
{
	struct address *address = calloc(1, sizeof(*address));

	if (!address)
		return -ENOMEM;
	address->endpoint = *endpoint;
	address->state = ADDRESS_UNSTEERED;
	address->gsi_fd = *fd;
	address->sink_fd = -1;
	*fd = -1;
	address->next = brokerd->addresses;
	brokerd->addresses = address;
	*result = address;
	return 0;
}

/* ---- members ---- */

static int add_member(struct address *address, uint32_t slot, int fd)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member)
		return -ENOMEM;
	member->slot = slot;
	member->state = MEMBER_USED;
	member->fd = fd;
	member->next = address->members;
	address->members = member;
	return 0;
}

/* Returns true if the process that used the member has ended and not only lost its connection. */
static bool has_owner_ended(const struct brokerd *brokerd, const struct member *member)
{
	int fd;

	if (slots_holder(&brokerd->slots, member->slot) != SLOTS_NO_CLIENT)
		return true;
	fd = names_lock_slot(member->slot);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Returns a member that no client uses, preferably that of the slot, or NULL. */
static struct member *find_unused_member(const struct brokerd *brokerd,
					 const struct address *address, uint32_t slot)
{
	struct member *member = address_find_member(address, slot);

	if (member && member->state != MEMBER_USED)
		return member;
	for (member = address->members; member; member = member->next)
		if (member->state == MEMBER_UNUSED && member->fd >= 0 &&
		    has_owner_ended(brokerd, member))
			break;
	return member;
}

/* Gives an unused member, without the datagrams queued in it, to the client with this slot. */
static void assign_member(struct address *address, struct member *member, uint32_t slot)
{
	uint16_t index = address->group.index[member->slot];

	socket_drain(member->fd);
	member->state = MEMBER_USED;
	if (member->slot == slot)
		return;
	member->slot = slot;
	if (index != STEER_NONE)
		group_record_owner(&address->group, index, slot);
}

/*
 * Adds members for the next clients.  The order of the group is certain as long as it has no other
 * sockets; later each new index must be found by probes, which are visible in captures of the
 * interface.
 */
static void add_spare_members(struct address *address, uint32_t slot)
{
	for (uint32_t i = 1; i <= SPARE_MEMBERS && slot + i < UROCE_BROKER_SLOTS; i++) {
		int fd = socket_make_member(&address->endpoint, true);

		if (fd < 0)
			return;
		if (add_member(address, slot + i, fd)) {
			close(fd);
			return;
		}
		address->members->state = MEMBER_UNUSED;
		group_add_member(&address->group, slot + i);
	}
}

/*
 * Marks the address as used by the slot, without a new socket: the client has its member or uses
 * the shared socket.
 */
static int mark_used(struct address *address, uint32_t slot)
{
	struct member *member = address_find_member(address, slot);

	if (!member)
		return add_member(address, slot, -1);
	member->state = MEMBER_USED;
	return 0;
}

/*
 * Finds the index of a new member.  Other processes of this user may have added sockets to the
 * group after the known members.
 */
static void locate_member(struct brokerd *brokerd, struct address *address, uint32_t slot, int fd)
{
	uint32_t known = address->state == ADDRESS_KNOWN ? address->group.count : 0;
	uint32_t index = probe_find_last(brokerd, address, fd, known);

	if (index >= GROUP_MEMBERS_MAX - 1) {
		/* All probes were lost, or no descriptor was left to send them; try again later. */
		address_set_state(address, ADDRESS_PARTLY_KNOWN);
		probe_start(address, brokerd_now());
		return;
	}
	if (known && index > known)
		address_set_state(address, ADDRESS_PARTLY_KNOWN);
	if (index < address->group.count)
		group_reset_owners(&address->group, index);
	group_add_unknown(&address->group, index + 1);
	group_record_owner(&address->group, index, slot);
	if (address->state == ADDRESS_PARTLY_KNOWN)
		probe_start(address, brokerd_now());
}

static int give_member(struct brokerd *brokerd, struct address *address, uint32_t slot)
{
	struct member *unused = find_unused_member(brokerd, address, slot);
	int fd, error;

	if (address->state == ADDRESS_UNSTEERED)
		return mark_used(address, slot);
	if (unused) {
		assign_member(address, unused, slot);
		return address_update_program(brokerd, address);
	}
	fd = socket_make_member(&address->endpoint, true);
	if (fd < 0)
		return fd;
	error = add_member(address, slot, fd);
	if (error) {
		close(fd);
		return error;
	}
	locate_member(brokerd, address, slot, fd);
	return address_update_program(brokerd, address);
}

int member_look_up(struct brokerd *brokerd, struct address *address, const struct client *client)
{
	struct member *member = address_find_member(address, client->slot);
	int error;

	if (member && member->state != MEMBER_UNUSED)
		return member->fd < 0 ? -ENOENT : member->fd;
	/*
	 * A client of an earlier broker still has its socket and will report it; an unsteered
	 * address has no members to give.
	 */
	if (client->returned || address->state == ADDRESS_UNSTEERED)
		return -ENOENT;
	error = give_member(brokerd, address, client->slot);
	member = address_find_member(address, client->slot);
	if (member)
		member->state = MEMBER_RESERVED;
	return error ? error : member->fd;
}

static bool is_udp_socket(int fd)
{
	int type = 0;
	socklen_t bytes = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) && type == SOCK_DGRAM;
}

/* Records the member that a returning client has. */
static int claim_member(const struct client *client, struct address *address, struct link_fds *fds)
{
	struct member *member = address_find_member(address, client->slot);
	int error;

	if (member && member->state == MEMBER_USED)
		return -EEXIST;
	if (member || address->state == ADDRESS_UNSTEERED)
		return mark_used(address, client->slot);
	error = add_member(address, client->slot, fds->fd[0]);
	if (error)
		return error;
	fds->count = 0;
	if (address->state == ADDRESS_KNOWN)
		address_set_state(address, ADDRESS_PARTLY_KNOWN);
	probe_start(address, brokerd_now());
	return 0;
}

static bool has_users(const struct address *address)
{
	const struct member *member = address->members;

	while (member && member->state != MEMBER_USED)
		member = member->next;
	return member != NULL;
}

/*
 * Closes the group, so that another user can have the port, and has the address freed by
 * member_free_removed().
 */
static void remove_address(struct brokerd *brokerd, struct address *address)
{
	struct address **from = &brokerd->addresses;

	while (*from != address)
		from = &(*from)->next;
	*from = address->next;
	address->next = brokerd->removed_addresses;
	brokerd->removed_addresses = address;
	address_close_sockets(address);
}

static void remove_if_unused(struct brokerd *brokerd, struct address *address)
{
	if (!has_users(address))
		remove_address(brokerd, address);
}

/*
 * Called after a failed request: marks the member of the slot as unused, and removes the address if
 * no client uses it.
 */
static void undo_request(struct brokerd *brokerd, struct address *address, uint32_t slot)
{
	struct member *member = address_find_member(address, slot);

	if (member)
		member->state = MEMBER_UNUSED;
	remove_if_unused(brokerd, address);
}

/* Puts a duplicate of the slot's member, or of the shared socket, into fds. */
static int duplicate_member(const struct address *address, uint32_t slot, struct link_fds *fds)
{
	fds->fd[0] = dup(address->state == ADDRESS_UNSTEERED ? address->gsi_fd
							     : address_member_fd(address, slot));
	if (fds->fd[0] < 0)
		return -errno;
	fds->count = 1;
	return 0;
}

int member_request(struct brokerd *brokerd, struct client *client,
		   struct uroce_broker_address *request, struct link_fds *fds)
{
	bool claims = request->flags & UROCE_BROKER_CLAIM;
	struct address *address = address_find(brokerd, &request->endpoint);
	bool is_new = !address, was_used;
	int error = 0;

	if (claims && !is_udp_socket(fds->fd[0]))
		return -EINVAL;
	if (!address && (request->flags & UROCE_BROKER_UNSTEERED))
		error = adopt_shared_socket(brokerd, &request->endpoint, &fds->fd[0], &address);
	else if (!address)
		error = add_address(brokerd, &request->endpoint, claims, &address);
	if (!error && is_new && address->state == ADDRESS_KNOWN)
		add_spare_members(address, client->slot);
	if (error)
		return error;
	request->flags = (claims ? UROCE_BROKER_CLAIM : 0) |
			 (address->state == ADDRESS_UNSTEERED ? UROCE_BROKER_UNSTEERED : 0);
	if (claims) {
		error = claim_member(client, address, fds);
		link_close_fds(fds);
		remove_if_unused(brokerd, address);
		return error;
	}
	was_used = address_is_used(address, client->slot);
	if (!was_used)
		error = give_member(brokerd, address, client->slot);
	if (!error)
		error = duplicate_member(address, client->slot, fds);
	if (error && !was_used)
		undo_request(brokerd, address, client->slot);
	return error;
}

/* ---- release ---- */

void member_free_removed(struct brokerd *brokerd)
{
	struct address *address;

	while ((address = brokerd->removed_addresses)) {
		brokerd->removed_addresses = address->next;
		address_free(address);
	}
}

static void release_member(struct brokerd *brokerd, struct address *address, uint32_t slot)
{
	struct member *member = address_find_member(address, slot);

	if (!member || member->state == MEMBER_UNUSED)
		return;
	member->state = MEMBER_UNUSED;
	if (member->fd >= 0)
		socket_drain(member->fd);
	if (has_users(address))
		address_update_program(brokerd, address);
	else
		remove_address(brokerd, address);
}

void member_release(struct brokerd *brokerd, const struct client *client,
		    const struct uroce_broker_endpoint *endpoint)
{
	struct address *address = address_find(brokerd, endpoint);

	if (address)
		release_member(brokerd, address, client->slot);
}

void member_release_all(struct brokerd *brokerd, const struct client *client)
{
	struct address *address = brokerd->addresses, *next;

	for (; address; address = next) {
		next = address->next;
		release_member(brokerd, address, client->slot);
	}
}
