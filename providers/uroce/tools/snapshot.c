/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "link/scm_rights.h"

#define REPLY_TIMEOUT_SECONDS 2

int snapshot_request(struct link_guest *broker, uint32_t slot, enum uroce_abi_message message)
{
	const struct uroce_abi_header request = { .message = message,
						  .version = UROCE_ABI_VERSION };
	struct timeval timeout = { .tv_sec = REPLY_TIMEOUT_SECONDS };
	int result, fd = link_guest_connect(broker, slot);

	if (fd < 0)
		return fd;
	fcntl(fd, F_SETFL, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) >= 0)
		return fd;
	result = errno == EPIPE ? -ENOENT : -errno;
	close(fd);
	return result;
}

/* Returns the memory file of the reply, or a negative errno. */
static int receive_file(int fd)
{
	struct uroce_abi_header reply;
	int file;
	ssize_t n = link_receive_with_fd(fd, &reply, sizeof(reply), 0, &file);

	if (n == -EAGAIN)
		return -ETIMEDOUT;
	if (n == -ECONNRESET || (n == 0 && file < 0))
		return -ENOENT; /* a further worker, or the process has exited */
	if (n < 0)
		return (int)n;
	/* Only memory files have seals; reading another file might block. */
	if (n == sizeof(reply) && reply.message == UROCE_ABI_STAT_REPLY && file >= 0 &&
	    fcntl(file, F_GET_SEALS) >= 0)
		return file;
	if (file >= 0)
		close(file);
	return -EPROTO;
}

int snapshot_fetch(struct link_guest *broker, uint32_t slot, json_t **snapshot)
{
	int file, fd = snapshot_request(broker, slot, UROCE_ABI_STAT_REQUEST);
	FILE *stream;

	*snapshot = NULL;
	if (fd < 0)
		return fd;
	file = receive_file(fd);
	close(fd);
	if (file < 0)
		return file;
	stream = fdopen(file, "r");
	if (!stream) {
		close(file);
		return -ENOMEM;
	}
	*snapshot = json_loadf(stream, 0, NULL);
	fclose(stream);
	if (!json_is_object(*snapshot)) {
		json_decref(*snapshot);
		*snapshot = NULL;
		return -EPROTO;
	}
	return json_integer_value(json_object_get(*snapshot, "format")) == UROCE_ABI_STAT_FORMAT
		       ? 0
		       : -EPROTONOSUPPORT;
}

unsigned long snapshot_pid(const json_t *snapshot)
{
	return (unsigned long)json_integer_value(json_object_get(snapshot, "pid"));
}

static const char *const renamed[][2] = {
	{ "ack_probes", "ack_solicitations" },
	{ "ooo_pkts_buffered", "early_pkts_kept" },
	{ "ooo_pkts_executed", "early_pkts_used" },
	{ "fast_retransmits", "repairs" },
	{ "acks_past_hole", "ack_jumps" },
	{ "ooo_read_resps", "read_resps_placed" },
	{ "mad_no_listener", "mad_unheard" },
	{ "thread_cycles", "helper_turns" },
	{ "poll_cycles", "poll_turns" },
	{ "credits_reported", "credits_heard" },
};
#define RENAMED (sizeof(renamed) / sizeof(renamed[0]))

const char *snapshot_old_name(const char *name)
{
	for (size_t i = 0; i < RENAMED; i++) {
		if (!strcmp(name, renamed[i][0]))
			return renamed[i][1];
	}
	return NULL;
}

void snapshot_add_old_names(json_t *value)
{
	const char *name;
	json_t *member;
	size_t i;

	json_array_foreach(value, i, member) snapshot_add_old_names(member);
	json_object_foreach(value, name, member) snapshot_add_old_names(member);
	for (i = 0; i < RENAMED; i++) {
		member = json_object_get(value, renamed[i][0]);
		if (member)
			json_object_set(value, renamed[i][1], member);
	}
}
