/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Sends the last messages of clients that have ended.  Without these messages the peers would
 * notice the end of a connection only by exhausted retries, or never.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "broker/gsi_packet.h"
#include "brokerd.h"
#include "util/gid.h"
#include "link/shm/memfd.h"
#include <rdma/uroce-abi.h>

/* Number of entries read at a time. */
enum { READ_ENTRIES = 16 };

_Static_assert(LAST_MESSAGES_ENTRIES == UROCE_ABI_LAST_MESSAGES, "the file has another size");
_Static_assert(LAST_MESSAGES_CHUNK % READ_ENTRIES == 0, "the last part would be cut");

void last_mads_start(struct brokerd *brokerd, int *last_messages_fd, uint64_t now)
{
	struct ended_client *ended = *last_messages_fd >= 0 ? calloc(1, sizeof(*ended)) : NULL;

	if (!ended)
		return;
	ended->fd = *last_messages_fd;
	*last_messages_fd = -1;
	last_messages_start(&ended->schedule, now);
	ended->next = brokerd->ended_clients;
	brokerd->ended_clients = ended;
}

/*
 * Sends one message.  Returns false if it is invalid, true also if it could not be sent, so that
 * further rounds follow.
 */
static bool send_message(const struct uroce_abi_last_message *entry)
{
	struct uroce_broker_endpoint from = { .scope_id = entry->scope_id };
	struct uroce_broker_endpoint to = { .scope_id = entry->scope_id };
	struct wire_path path = { .ipv6 = !gid_is_ipv4(entry->sgid) };
	uint8_t packet[GSI_PACKET_BYTES];
	uint32_t psn = 0;
	int fd;

	memcpy(from.gid, entry->sgid, sizeof(from.gid));
	memcpy(to.gid, entry->dgid, sizeof(to.gid));
	if (gid_is_ipv4(to.gid) == path.ipv6)
		return false;
	fd = socket_bind(&from, 0, false);
	if (fd < 0)
		return true;
	if (!socket_set_packet_options(fd, !path.ipv6, entry->traffic_class)) {
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
static void send_chunk(struct ended_client *ended, uint64_t now)
{
	struct uroce_abi_last_message entry[READ_ENTRIES];
	uint32_t sent = 0;

	for (uint32_t i = 0; i < LAST_MESSAGES_CHUNK; i += READ_ENTRIES) {
		off_t at = (off_t)((ended->schedule.position + i) * sizeof(entry[0]));

		if (pread(ended->fd, entry, sizeof(entry), at) != (ssize_t)sizeof(entry))
			break;
		for (unsigned int j = 0; j < READ_ENTRIES; j++)
			sent += entry[j].valid && send_message(&entry[j]);
	}
	last_messages_chunk_sent(&ended->schedule, sent, now);
}

/* Executes the next step.  Returns true if the schedule has ended. */
static bool run_next_step(struct ended_client *ended, uint64_t now)
{
	switch (last_messages_next_step(&ended->schedule, now)) {
	case LAST_MESSAGES_WAIT:
		break;
	case LAST_MESSAGES_CHECK_LOCK:
		if (memfd_owner_alive(ended->fd) != 0)
			last_messages_owner_runs(&ended->schedule, now);
		else
			last_messages_owner_ended(&ended->schedule);
		break;
	case LAST_MESSAGES_SEND:
		send_chunk(ended, now);
		break;
	case LAST_MESSAGES_DONE:
		return true;
	}
	return false;
}

bool last_mads_serve(struct brokerd *brokerd, uint64_t now)
{
	struct ended_client **from = &brokerd->ended_clients, *ended;
	bool had_to_wait = last_mads_come_first(brokerd);

	while ((ended = *from)) {
		if (!run_next_step(ended, now)) {
			from = &ended->next;
			continue;
		}
		*from = ended->next;
		close(ended->fd);
		free(ended);
	}
	return had_to_wait && !last_mads_come_first(brokerd);
}

uint64_t last_mads_deadline(const struct brokerd *brokerd)
{
	uint64_t deadline = UINT64_MAX;

	for (const struct ended_client *ended = brokerd->ended_clients; ended; ended = ended->next)
		if (ended->schedule.due < deadline)
			deadline = ended->schedule.due;
	return deadline;
}

bool last_mads_come_first(const struct brokerd *brokerd)
{
	const struct ended_client *ended = brokerd->ended_clients;

	while (ended && !last_messages_delay_requests(&ended->schedule))
		ended = ended->next;
	return ended != NULL;
}
