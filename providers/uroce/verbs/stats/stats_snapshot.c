/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "stats.h"
#include "verbs/context/device.h"
#include "verbs/qp/qp.h"

/* Records in a growing buffer; lack of memory is reported at the end. */
struct writer {
	uint8_t *bytes;
	size_t used, size;
	bool failed;
};

/* Appends zeroed bytes; returns NULL without memory. */
static void *append_bytes(struct writer *writer, size_t bytes)
{
	uint8_t *place;

	if (writer->used + bytes > writer->size) {
		size_t size = writer->size * 2 + bytes + 4096;
		uint8_t *grown = writer->failed ? NULL : realloc(writer->bytes, size);

		if (!grown) {
			writer->failed = true;
			return NULL;
		}
		writer->bytes = grown;
		writer->size = size;
	}
	place = writer->bytes + writer->used;
	memset(place, 0, bytes);
	writer->used += bytes;
	return place;
}

static void *append_record(struct writer *writer, enum uroce_abi_record_kind kind, size_t bytes)
{
	struct uroce_abi_record *record = append_bytes(writer, bytes);

	if (record) {
		record->kind = kind;
		record->bytes = (uint32_t)bytes;
	}
	return record;
}

static void (*write_extension)(void *writer);

void uroce_stats_extend(void (*more)(void *writer))
{
	write_extension = more;
}

void *uroce_stats_append(void *writer, unsigned int kind, size_t bytes)
{
	return append_record(writer, (enum uroce_abi_record_kind)kind, bytes);
}

static void copy_string(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
}

static void write_process(struct writer *writer, struct progress *progress)
{
	struct uroce_abi_stat_process *process =
		append_record(writer, UROCE_ABI_RECORD_PROCESS, sizeof(*process));

	if (!process)
		return;
	process->pid = (uint32_t)getpid();
	process->slot = link_slot(progress_link(progress));
	copy_string(process->command, sizeof(process->command), program_invocation_short_name);
	copy_string(process->version, sizeof(process->version), UROCE_VERSION);
}

static const char *qp_counter_name(unsigned int counter)
{
	return eng_counter_name((enum eng_counter)counter);
}

static const char *port_counter_name(unsigned int counter)
{
	return progress_counter_name((enum progress_counter)counter);
}

static void write_names(struct writer *writer, enum uroce_abi_record_kind kind, unsigned int count,
			const char *(*name)(unsigned int))
{
	struct uroce_abi_record *record =
		append_record(writer, kind, sizeof(*record) + (size_t)count * UROCE_ABI_NAME_BYTES);
	char *names = (char *)(record + 1);

	for (unsigned int i = 0; record && i < count; i++)
		copy_string(names + (size_t)i * UROCE_ABI_NAME_BYTES, UROCE_ABI_NAME_BYTES,
			    name(i));
}

static void write_port_values(struct writer *writer)
{
	uint64_t counters[PROGRESS_COUNTER_COUNT];
	struct uroce_abi_record *record = append_record(writer, UROCE_ABI_RECORD_PORT_VALUES,
							sizeof(*record) + sizeof(counters));

	if (!record)
		return;
	progress_counters(counters);
	memcpy(record + 1, counters, sizeof(counters));
}

static void write_worker(struct writer *writer, struct progress *worker)
{
	uint64_t counters[PROGRESS_COUNTER_COUNT];
	struct uroce_abi_stat_worker *record =
		append_record(writer, UROCE_ABI_RECORD_WORKER, sizeof(*record) + sizeof(counters));

	if (!record)
		return;
	record->number = progress_worker_number(worker);
	record->slot = link_slot(progress_link(worker));
	progress_worker_counters(worker, counters);
	memcpy(record + 1, counters, sizeof(counters));
}

static void write_workers(struct writer *writer)
{
	for (unsigned int i = 0; i < PROGRESS_WORKERS; i++) {
		struct progress *worker = progress_worker(i);

		if (worker)
			write_worker(writer, worker);
	}
}

static void write_device(struct uroce_device *device, unsigned int open, void *arg)
{
	struct uroce_abi_stat_device *record =
		append_record(arg, UROCE_ABI_RECORD_DEVICE,
			      sizeof(*record) + sizeof(device->destroyed_qp_counters));

	if (!record)
		return;
	copy_string(record->name, sizeof(record->name), device->base.device.name);
	pthread_mutex_lock(&device->port_lock);
	copy_string(record->netdev, sizeof(record->netdev), device->netdev.name);
	record->contexts = open;
	record->port_state = device->exists && device->netdev.up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	record->active_mtu = 128u << uroce_active_mtu(device->netdev.mtu);
	for (unsigned int i = 0; i < device->gids.entries; i++)
		record->gid_count += device->gids.gid[i].global.interface_id != 0;
	memcpy(record->gid, device->gids.gid[0].raw, sizeof(record->gid));
	record->counters = ENG_COUNTER_COUNT;
	memcpy(record + 1, device->destroyed_qp_counters, sizeof(device->destroyed_qp_counters));
	pthread_mutex_unlock(&device->port_lock);
}

static void fill_qp_fields(struct uroce_abi_stat_qp *record, const struct eng_qp_info *info)
{
	record->qpn = info->qpn;
	record->dest_qpn = info->dest_qpn;
	record->mtu = info->mtu;
	record->next_psn = info->next_psn;
	record->unacked_psn = info->unacked_psn;
	record->expected_psn = info->expected_psn;
	record->ssn = info->ssn;
	record->sent_ssn = info->sent_ssn;
	record->msn = info->msn;
	record->lsn = info->lsn;
	record->unlimited = info->unlimited;
	record->credits_reported = info->credits_known ? info->credits_last_known : UINT32_MAX;
	record->credits_advertised = info->credits_advertised;
	record->credits_now = info->credits_now;
	record->sq_used = info->sq_used;
	record->rq_used = info->rq_used;
	record->outstanding_reads = info->outstanding_reads;
	record->in_flight = info->in_flight;
	record->cwnd = info->cwnd;
	record->retries_left = info->retries_left;
	record->rnr_retries_left = info->rnr_retries_left;
}

static void write_qp(struct progress_qp *progress_qp, void *arg)
{
	const struct uroce_qp *qp = to_uroce_qp_of_progress(progress_qp);
	const struct eng_attr *attr;
	struct eng_qp_info info;
	struct uroce_abi_stat_qp *record;

	record = append_record(arg, UROCE_ABI_RECORD_QP, sizeof(*record) + sizeof(info.counters));
	if (!record)
		return;
	eng_qp_query(progress_qp->engine, &info);
	attr = eng_qp_attr(progress_qp->engine);
	copy_string(record->device, sizeof(record->device), qp->context->device->base.device.name);
	copy_string(record->type, sizeof(record->type), eng_qp_type_name(info.type));
	copy_string(record->state, sizeof(record->state), eng_qp_state_name(info.state));
	copy_string(record->waiting, sizeof(record->waiting), eng_tx_name(info.waiting));
	memcpy(record->sgid, attr->path.wire.src, sizeof(record->sgid));
	memcpy(record->dgid, attr->path.wire.dst, sizeof(record->dgid));
	record->src_port = attr->path.wire.src_port;
	fill_qp_fields(record, &info);
	record->shared_memory = progress_qp->transport == LINK_SHARED_MEMORY;
	record->counters = ENG_COUNTER_COUNT;
	memcpy(record + 1, info.counters, sizeof(info.counters));
}

static int write_memfd(const struct writer *writer)
{
	int error, file = memfd_create("uroce-stat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t done = 0;

	if (file < 0)
		return -errno;
	while (done < writer->used) {
		ssize_t n = write(file, writer->bytes + done, writer->used - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			error = n < 0 ? -errno : -EIO;
			close(file);
			return error;
		}
		done += (size_t)n;
	}
	fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return file;
}

int uroce_stats_snapshot(struct progress *progress, uint64_t *bytes)
{
	struct writer writer = { 0 };
	int file;

	write_process(&writer, progress);
	write_names(&writer, UROCE_ABI_RECORD_PORT_NAMES, PROGRESS_COUNTER_COUNT,
		    port_counter_name);
	write_port_values(&writer);
	write_workers(&writer);
	write_names(&writer, UROCE_ABI_RECORD_QP_NAMES, ENG_COUNTER_COUNT, qp_counter_name);
	uroce_devices_visit_open(write_device, &writer);
	progress_for_each_qp(write_qp, &writer);
	if (write_extension)
		write_extension(&writer);
	file = writer.failed ? -ENOMEM : write_memfd(&writer);
	*bytes = writer.used;
	free(writer.bytes);
	return file;
}
