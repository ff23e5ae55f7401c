/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

static int receive_file(int fd, uint64_t *bytes)
{
	struct uroce_abi_stat_reply reply;
	int file;
	ssize_t n = link_receive_with_fd(fd, &reply, sizeof(reply), 0, &file);

	if (n < 0)
		return n == -EAGAIN ? -ETIMEDOUT : (int)n;
	if (n == 0 && file < 0)
		return -ENOENT; /* a further worker, or the process has exited */
	if (n != sizeof(reply) || reply.header.message != UROCE_ABI_STAT_REPLY ||
	    reply.header.version != UROCE_ABI_VERSION || file < 0) {
		if (file >= 0)
			close(file);
		return -EPROTO;
	}
	*bytes = reply.bytes;
	return file;
}

/* Checks, once, that every record lies within the file and has a complete header. */
static bool records_valid(const struct snapshot *snapshot)
{
	size_t at = 0;

	while (at < snapshot->length) {
		const struct uroce_abi_record *record =
			(const struct uroce_abi_record *)(snapshot->bytes + at);

		if (snapshot->length - at < sizeof(*record) || record->bytes < sizeof(*record) ||
		    record->bytes % 8 || record->bytes > snapshot->length - at)
			return false;
		at += record->bytes;
	}
	return true;
}

const struct uroce_abi_record *snapshot_next(const struct snapshot *snapshot, uint32_t kind,
					     const struct uroce_abi_record *previous)
{
	static const uint32_t min_bytes[] = {
		[UROCE_ABI_RECORD_PROCESS] = sizeof(struct uroce_abi_stat_process),
		[UROCE_ABI_RECORD_DEVICE] = sizeof(struct uroce_abi_stat_device),
		[UROCE_ABI_RECORD_QP] = sizeof(struct uroce_abi_stat_qp),
		[UROCE_ABI_RECORD_LISTENER] = sizeof(struct uroce_abi_stat_listener),
		[UROCE_ABI_RECORD_CONNECTION] = sizeof(struct uroce_abi_stat_connection),
		[UROCE_ABI_RECORD_MESSAGE] = sizeof(struct uroce_abi_stat_message),
		[UROCE_ABI_RECORD_REJECT] = sizeof(struct uroce_abi_stat_reject),
		[UROCE_ABI_RECORD_WORKER] = sizeof(struct uroce_abi_stat_worker),
	};
	size_t at =
		previous ? (size_t)((const uint8_t *)previous - snapshot->bytes) + previous->bytes
			 : 0;

	while (at < snapshot->length) {
		const struct uroce_abi_record *record =
			(const struct uroce_abi_record *)(snapshot->bytes + at);

		if (record->kind == kind &&
		    (kind > UROCE_ABI_RECORD_WORKER || record->bytes >= min_bytes[kind]))
			return record;
		at += record->bytes;
	}
	return NULL;
}

static uint32_t body_bytes(const struct uroce_abi_record *record)
{
	return record->bytes - (uint32_t)sizeof(*record);
}

static bool index_records(struct snapshot *snapshot)
{
	const struct uroce_abi_record *record;

	snapshot->process = (const struct uroce_abi_stat_process *)snapshot_next(
		snapshot, UROCE_ABI_RECORD_PROCESS, NULL);
	if (!snapshot->process)
		return false;
	record = snapshot_next(snapshot, UROCE_ABI_RECORD_QP_NAMES, NULL);
	if (record) {
		snapshot->qp_names = (const char *)(record + 1);
		snapshot->qp_name_count = body_bytes(record) / UROCE_ABI_NAME_BYTES;
	}
	record = snapshot_next(snapshot, UROCE_ABI_RECORD_PORT_NAMES, NULL);
	if (record) {
		snapshot->port_names = (const char *)(record + 1);
		snapshot->port_count = body_bytes(record) / UROCE_ABI_NAME_BYTES;
	}
	record = snapshot_next(snapshot, UROCE_ABI_RECORD_PORT_VALUES, NULL);
	if (!record || body_bytes(record) / sizeof(uint64_t) < snapshot->port_count)
		snapshot->port_count = 0;
	else
		snapshot->port_values = (const uint64_t *)(record + 1);
	return true;
}

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK)

static int map_file(int file, uint64_t bytes, struct snapshot *snapshot)
{
	int seals = fcntl(file, F_GET_SEALS);
	struct stat status;

	if (fstat(file, &status) < 0)
		return -errno;
	/* The seals keep the file from being changed or truncated after the check. */
	if (seals < 0 || (seals & SEALS) != SEALS)
		return -EPROTO;
	if (bytes == 0 || (uint64_t)status.st_size < bytes)
		return -EPROTO;
	snapshot->bytes = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
	if (snapshot->bytes == MAP_FAILED) {
		snapshot->bytes = NULL;
		return -errno;
	}
	snapshot->length = bytes;
	if (!records_valid(snapshot) || !index_records(snapshot)) {
		snapshot_free(snapshot);
		return -EPROTO;
	}
	return 0;
}

int snapshot_fetch(struct link_guest *broker, uint32_t slot, struct snapshot *snapshot)
{
	uint64_t bytes = 0;
	int file, result, fd = snapshot_request(broker, slot, UROCE_ABI_STAT_REQUEST);

	memset(snapshot, 0, sizeof(*snapshot));
	if (fd < 0)
		return fd;
	file = receive_file(fd, &bytes);
	close(fd);
	if (file < 0)
		return file == -ECONNRESET ? -ENOENT : file;
	result = map_file(file, bytes, snapshot);
	close(file);
	return result;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (snapshot->bytes)
		munmap(snapshot->bytes, snapshot->length);
	memset(snapshot, 0, sizeof(*snapshot));
}

static uint32_t limit_counters(const struct snapshot *snapshot,
			       const struct uroce_abi_record *record, size_t head, uint32_t said)
{
	uint32_t count = (record->bytes - (uint32_t)head) / (uint32_t)sizeof(uint64_t);

	if (count > said)
		count = said;
	return count < snapshot->qp_name_count ? count : snapshot->qp_name_count;
}

const uint64_t *snapshot_qp_counters(const struct snapshot *snapshot,
				     const struct uroce_abi_stat_qp *qp, uint32_t *count)
{
	*count = limit_counters(snapshot, &qp->record, sizeof(*qp), qp->counters);
	return (const uint64_t *)(qp + 1);
}

const uint64_t *snapshot_device_counters(const struct snapshot *snapshot,
					 const struct uroce_abi_stat_device *device,
					 uint32_t *count)
{
	*count = limit_counters(snapshot, &device->record, sizeof(*device), device->counters);
	return (const uint64_t *)(device + 1);
}

const uint64_t *snapshot_worker_counters(const struct snapshot *snapshot,
					 const struct uroce_abi_stat_worker *worker,
					 uint32_t *count)
{
	*count = (uint32_t)((worker->record.bytes - sizeof(*worker)) / sizeof(uint64_t));
	if (*count > snapshot->port_count)
		*count = snapshot->port_count;
	return (const uint64_t *)(worker + 1);
}

const char *snapshot_old_counter_name(const char *name)
{
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
	};

	for (size_t i = 0; i < sizeof(renamed) / sizeof(renamed[0]); i++) {
		if (!strncmp(name, renamed[i][0], UROCE_ABI_NAME_BYTES))
			return renamed[i][1];
	}
	return NULL;
}
