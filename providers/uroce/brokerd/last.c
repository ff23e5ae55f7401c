/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Sends the last messages of clients that have ended.  Without them their peers would notice the
 * end of a connection only by exhausted retries, or never.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/gsi_packet.h"
#include "brokerd.h"
#include "link/gid.h"
#include "link/memory_file.h"
#include <rdma/uroce-abi.h>

/* Number of entries read at a time. */
enum { CHUNK = 16 };

_Static_assert(LAST_MESSAGES_ENTRIES == UROCE_ABI_LAST_MESSAGES, "the file has another size");
_Static_assert(LAST_MESSAGES_CHUNK % CHUNK == 0, "the last part would be cut");

void last_begin(struct brokerd *brokerd, int *messages_fd, uint64_t now)
{
	struct dead *dead = *messages_fd >= 0 ? calloc(1, sizeof(*dead)) : NULL;

	if (!dead)
		return;
	dead->fd = *messages_fd;
	*messages_fd = -1;
	last_messages_begin(&dead->last, now);
	dead->next = brokerd->dead;
	brokerd->dead = dead;
}

/* Sends one message.  Returns false if it is invalid. */
static bool send_entry(const struct uroce_abi_last_message *entry)
{
	struct uroce_broker_endpoint from = { .scope_id = entry->scope_id };
	struct uroce_broker_endpoint to = { .scope_id = entry->scope_id };
	struct wire_path path = { .ipv6 = !link_gid_is_ipv4(entry->sgid) };
	uint8_t packet[GSI_PACKET_BYTES];
	uint32_t psn = 0;
	int fd;

	memcpy(from.gid, entry->sgid, sizeof(from.gid));
	memcpy(to.gid, entry->dgid, sizeof(to.gid));
	if (link_gid_is_ipv4(to.gid) == path.ipv6)
		return false;
	fd = socket_bind(&from, 0, false);
	if (fd < 0)
		return true;
	if (!socket_set_class(fd, !path.ipv6, entry->traffic_class)) {
		memcpy(path.src, from.gid, sizeof(path.src));
		memcpy(path.dst, to.gid, sizeof(path.dst));
		path.src_port = socket_port(fd);
		if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) < 0)
			psn = 1;
		gsi_packet_build(&path, psn, entry->mad, packet);
		/* If this fails, the next round may succeed. */
		socket_send(fd, &to, UDP_PORT, packet, sizeof(packet));
	}
	close(fd);
	return true;
}

/* Sends one chunk of a round. */
static void send_some(struct dead *dead, uint64_t now)
{
	struct uroce_abi_last_message entry[CHUNK];
	uint32_t sent = 0;

	for (uint32_t i = 0; i < LAST_MESSAGES_CHUNK; i += CHUNK) {
		off_t at = (off_t)((dead->last.position + i) * sizeof(entry[0]));

		if (pread(dead->fd, entry, sizeof(entry), at) != (ssize_t)sizeof(entry))
			break;
		for (unsigned int j = 0; j < CHUNK; j++)
			sent += entry[j].valid && send_entry(&entry[j]);
	}
	last_messages_sent(&dead->last, sent, now);
}

/* Executes the next step.  Returns true if the schedule has ended. */
static bool serve_one(struct dead *dead, uint64_t now)
{
	switch (last_messages_next(&dead->last, now)) {
	case LAST_MESSAGES_WAIT:
		break;
	case LAST_MESSAGES_LOOK:
		if (memory_file_owner_lives(dead->fd) != 0)
			last_messages_lives(&dead->last, now);
		else
			last_messages_dead(&dead->last);
		break;
	case LAST_MESSAGES_SEND:
		send_some(dead, now);
		break;
	case LAST_MESSAGES_END:
		return true;
	}
	return false;
}

bool last_serve(struct brokerd *brokerd, uint64_t now)
{
	struct dead **from = &brokerd->dead, *dead;
	bool came_first = last_come_first(brokerd);

	while ((dead = *from)) {
		if (!serve_one(dead, now)) {
			from = &dead->next;
			continue;
		}
		*from = dead->next;
		close(dead->fd);
		free(dead);
	}
	return came_first && !last_come_first(brokerd);
}

uint64_t last_deadline(const struct brokerd *brokerd)
{
	uint64_t deadline = UINT64_MAX;

	for (const struct dead *dead = brokerd->dead; dead; dead = dead->next)
		if (dead->last.due < deadline)
			deadline = dead->last.due;
	return deadline;
}

bool last_come_first(const struct brokerd *brokerd)
{
	const struct dead *dead = brokerd->dead;

	while (dead && !last_messages_come_first(&dead->last))
		dead = dead->next;
	return dead != NULL;
}
