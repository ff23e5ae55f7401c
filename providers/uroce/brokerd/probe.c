/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Finds the owners of the indexes in a group that an earlier broker made.  A probe is a datagram
 * that the steering program, of any broker, gives to the member with the index in the probe.
 *
 * To count the members, one more is added for a moment, which is the last: probes with rising
 * indexes are sent until it receives one.  An index beyond the group may reach any member, so the
 * lowest index that it receives is the right one.
 */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "brokerd.h"

enum {
	SHORT_INTERVAL_MS = 20,
	/*
	 * Packets for members that have moved are lost until the next count, so this interval is
	 * short: it costs a sender one or two Local ACK Timeouts of 67 ms.
	 */
	LONG_INTERVAL_MS = 100,
	/* Number of rounds at the short interval, during which most clients return. */
	SHORT_ROUNDS = 25,
	/* In later rounds with an unchanged count, one in this many sends probes. */
	REPEAT_ROUNDS = 10,
	/* Number of probes sent between two reads of the new member. */
	PROBES_PER_READ = 16,
};

/* Returns true if the round is the current one and not that of a late reply. */
static bool is_current_round(const struct address *address, uint32_t round)
{
	return address->state == ADDRESS_PARTLY_KNOWN && round == address->round;
}

static bool parse_probe(const struct brokerd *brokerd, const uint8_t *bytes, size_t length,
			struct uroce_broker_probe *probe)
{
	if (length != sizeof(*probe))
		return false;
	memcpy(probe, bytes, sizeof(*probe));
	return ntohl(probe->opcode) == UROCE_BROKER_PROBE && !probe->destination &&
	       ntohl(probe->secret) == brokerd->probe_secret;
}

static void send_probe(const struct brokerd *brokerd, const struct address *address, int fd,
		       uint32_t index)
{
	const struct uroce_broker_probe probe = {
		.opcode = htonl(UROCE_BROKER_PROBE),
		.index = htonl(index),
		.secret = htonl(brokerd->probe_secret),
		.round = htonl(address->round),
	};

	socket_send(fd, &address->endpoint, UDP_PORT, &probe, sizeof(probe));
}

/* Returns the lowest index of the probes that the socket has received, or lowest. */
static uint32_t read_lowest_index(struct brokerd *brokerd, const struct address *address, int fd,
				  uint32_t lowest)
{
	struct uroce_broker_probe probe;

	while (socket_receive(fd, &brokerd->datagram))
		if (parse_probe(brokerd, brokerd->datagram.bytes, brokerd->datagram.head.bytes,
				&probe) &&
		    ntohl(probe.round) == address->round && ntohl(probe.index) < lowest)
			lowest = ntohl(probe.index);
	return lowest;
}

uint32_t probe_find_last(struct brokerd *brokerd, struct address *address, int fd, uint32_t first)
{
	int sender = socket_bind(&address->endpoint, 0, false);
	uint32_t found = GROUP_MEMBERS_MAX;

	if (sender < 0)
		return found;
	/*
	 * Counting uses odd round numbers, probe_run_round() even ones: so a client's reply to a
	 * counting probe is never of the current round, and is ignored.
	 */
	address->round += 1 + (address->round & 1);
	for (uint32_t index = first; index < GROUP_MEMBERS_MAX && found == GROUP_MEMBERS_MAX;
	     index++) {
		send_probe(brokerd, address, sender, index);
		if (index == first || index % PROBES_PER_READ == 0)
			found = read_lowest_index(brokerd, address, fd, found);
	}
	close(sender);
	return found;
}

/* Returns the number of members of the group, or GROUP_MEMBERS_MAX if that is not known. */
static uint32_t count_members(struct brokerd *brokerd, struct address *address)
{
	int last = socket_make_member(&address->endpoint, false);
	uint32_t count;

	if (last < 0)
		return GROUP_MEMBERS_MAX;
	count = probe_find_last(brokerd, address, last, 0);
	close(last);
	return count;
}

void probe_start(struct address *address, uint64_t now)
{
	address->rounds_unchanged = 0;
	address->probe_at = now;
}

static bool is_complete(const struct address *address)
{
	return !address->group.unknown && address->group.index[GROUP_GSI] != STEER_NONE &&
	       address->group.index[GROUP_SINK] != STEER_NONE;
}

static void update_address(struct brokerd *brokerd, struct address *address)
{
	address_update_program(brokerd, address);
	if (is_complete(address))
		address_set_state(address, ADDRESS_KNOWN);
}

/*
 * Returns true if this round should send no probes: no member has moved, and slow clients may still
 * reply to the last ones.
 */
static bool awaits_replies(const struct address *address, uint32_t count)
{
	return count == address->group.count && address->rounds_unchanged > SHORT_ROUNDS &&
	       address->rounds_unchanged % REPEAT_ROUNDS != 0;
}

void probe_run_round(struct brokerd *brokerd, struct address *address, uint64_t now)
{
	int fd = socket_bind(&address->endpoint, 0, false);
	uint32_t round = address->round, count;

	address->probe_at =
		now + (uint64_t)(++address->rounds_unchanged < SHORT_ROUNDS ? SHORT_INTERVAL_MS
									    : LONG_INTERVAL_MS) *
			      NS_PER_MS;
	if (fd < 0)
		return;
	count = count_members(brokerd, address);
	if (awaits_replies(address, count)) {
		address->round = round;
		close(fd);
		return;
	}
	address->round++;
	if (count < GROUP_MEMBERS_MAX) {
		if (count != address->group.count) {
			group_reset_owners(&address->group, count);
			address->rounds_unchanged = 0;
		}
		for (uint32_t index = 0; index < count; index++)
			if (address->group.owner[index] == GROUP_UNKNOWN)
				send_probe(brokerd, address, fd, index);
	}
	close(fd);
	update_address(brokerd, address);
}

static void record_owner(struct brokerd *brokerd, struct address *address, unsigned int index,
			 unsigned int owner)
{
	group_record_owner(&address->group, index, owner);
	update_address(brokerd, address);
}

void probe_receive(struct brokerd *brokerd, struct address *address, unsigned int owner,
		   const uint8_t *bytes, size_t length)
{
	struct uroce_broker_probe probe;

	if (parse_probe(brokerd, bytes, length, &probe) &&
	    is_current_round(address, ntohl(probe.round)))
		record_owner(brokerd, address, ntohl(probe.index), owner);
}

void probe_receive_reply(struct brokerd *brokerd, const struct client *client,
			 const struct uroce_broker_probed *probed)
{
	struct address *address = address_find(brokerd, &probed->endpoint);

	if (client->state == CLIENT_WORKER && address && is_current_round(address, probed->round) &&
	    address_member_fd(address, client->slot) >= 0)
		record_owner(brokerd, address, probed->index, client->slot);
}
