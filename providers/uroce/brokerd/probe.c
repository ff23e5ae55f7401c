/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Which member has which index, in a group that an earlier broker began.  A probe is a datagram
 * that any broker's program gives to the member of the index that it names.
 *
 * To count the members one more is added for a moment, which is the last: probes with rising
 * indexes are sent until it gets one.  An index beyond the group may reach any member, so the
 * lowest one that it gets counts.
 */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "brokerd.h"

enum {
	AGAIN_MS = 20,
	/* Moved members lose packets until the next count: one or two timeouts of 67 ms, not eight.
	 */
	LATER_MS = 100,
	/* Number of rounds at the short interval, for clients that return now. */
	SOON_ROUNDS = 25,
	/* Number of later rounds of which one sends probes although the count is as before. */
	REPEAT_ROUNDS = 10,
	/* Number of probes between two reads of the member that is looked for. */
	STEP = 16,
};

/* Late answers of an earlier count name the round that they belong to. */
static bool is_current(const struct address *address, uint32_t round)
{
	return address->state == ADDRESS_PARTLY && round == address->round;
}

static bool parse(const struct brokerd *brokerd, const uint8_t *bytes, size_t length,
		  struct uroce_broker_probe *probe)
{
	if (length != sizeof(*probe))
		return false;
	memcpy(probe, bytes, sizeof(*probe));
	return ntohl(probe->opcode) == UROCE_BROKER_PROBE && !probe->destination &&
	       ntohl(probe->secret) == brokerd->secret;
}

static void send_one(const struct brokerd *brokerd, const struct address *address, int fd,
		     uint32_t index)
{
	const struct uroce_broker_probe probe = {
		.opcode = htonl(UROCE_BROKER_PROBE),
		.index = htonl(index),
		.secret = htonl(brokerd->secret),
		.round = htonl(address->round),
	};

	socket_send(fd, &address->endpoint, UDP_PORT, &probe, sizeof(probe));
}

/* The lowest index whose probe has come to the socket, or lowest. */
static uint32_t read_lowest(struct brokerd *brokerd, const struct address *address, int fd,
			    uint32_t lowest)
{
	struct uroce_broker_probe probe;

	while (socket_receive(fd, &brokerd->datagram))
		if (parse(brokerd, brokerd->datagram.bytes, brokerd->datagram.head.bytes, &probe) &&
		    ntohl(probe.round) == address->round && ntohl(probe.index) < lowest)
			lowest = ntohl(probe.index);
	return lowest;
}

uint32_t probe_last(struct brokerd *brokerd, struct address *address, int fd, uint32_t first)
{
	int sender = socket_bind(&address->endpoint, 0, false);
	uint32_t found = GROUP_MEMBERS;

	if (sender < 0)
		return found;
	/* Answers to these probes are of an odd round, and mean nothing. */
	address->round += 1 + (address->round & 1);
	for (uint32_t index = first; index < GROUP_MEMBERS && found == GROUP_MEMBERS; index++) {
		send_one(brokerd, address, sender, index);
		if (index == first || index % STEP == 0)
			found = read_lowest(brokerd, address, fd, found);
	}
	close(sender);
	return found;
}

/* The number of members of the group, or GROUP_MEMBERS if it cannot be told. */
static uint32_t count_members(struct brokerd *brokerd, struct address *address)
{
	int last = socket_member(&address->endpoint, false);
	uint32_t count;

	if (last < 0)
		return GROUP_MEMBERS;
	count = probe_last(brokerd, address, last, 0);
	close(last);
	return count;
}

void probe_begin(struct address *address, uint64_t now)
{
	address->probes = 0;
	address->probe_at = now;
}

static bool is_complete(const struct address *address)
{
	return !address->group.unknown && address->group.index[GROUP_GSI] != STEER_NONE &&
	       address->group.index[GROUP_SINK] != STEER_NONE;
}

static void finish(struct brokerd *brokerd, struct address *address)
{
	address_steer(brokerd, address);
	if (is_complete(address))
		address_set_state(address, ADDRESS_KNOWN);
}

/* No member has moved, and clients that are slow may yet answer the last probes. */
static bool answers_may_come(const struct address *address, uint32_t count)
{
	return count == address->group.count && address->probes > SOON_ROUNDS &&
	       address->probes % REPEAT_ROUNDS != 0;
}

void probe_again(struct brokerd *brokerd, struct address *address, uint64_t now)
{
	int fd = socket_bind(&address->endpoint, 0, false);
	uint32_t round = address->round, count;

	address->probe_at =
		now + (uint64_t)(++address->probes < SOON_ROUNDS ? AGAIN_MS : LATER_MS) * NS_PER_MS;
	if (fd < 0)
		return;
	count = count_members(brokerd, address);
	if (answers_may_come(address, count)) {
		address->round = round;
		close(fd);
		return;
	}
	address->round++;
	if (count < GROUP_MEMBERS) {
		if (count != address->group.count) {
			group_forget(&address->group, count);
			address->probes = 0;
		}
		for (uint32_t index = 0; index < count; index++)
			if (address->group.owner[index] == GROUP_UNKNOWN)
				send_one(brokerd, address, fd, index);
	}
	close(fd);
	finish(brokerd, address);
}

static void found(struct brokerd *brokerd, struct address *address, unsigned int index,
		  unsigned int owner)
{
	group_found(&address->group, index, owner);
	finish(brokerd, address);
}

void probe_came(struct brokerd *brokerd, struct address *address, unsigned int owner,
		const uint8_t *bytes, size_t length)
{
	struct uroce_broker_probe probe;

	if (parse(brokerd, bytes, length, &probe) && is_current(address, ntohl(probe.round)))
		found(brokerd, address, ntohl(probe.index), owner);
}

void probe_answered(struct brokerd *brokerd, const struct client *client,
		    const struct uroce_broker_probed *probed)
{
	struct address *address = address_find(brokerd, &probed->endpoint);

	if (client->state == CLIENT_WORKER && address && is_current(address, probed->round) &&
	    address_member(address, client->slot) >= 0)
		found(brokerd, address, probed->index, client->slot);
}
