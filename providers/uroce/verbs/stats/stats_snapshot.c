/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "json_writer.h"
#include "stats.h"
#include "verbs/context/device.h"
#include "verbs/qp/qp.h"

/* Copy of a queue pair's state, made with locks of the data path held */
struct qp_copy {
	char device[IBV_SYSFS_NAME_MAX];
	struct wire_path path;
	unsigned int worker;
	bool shared_memory;
	struct eng_qp_info info;
};

struct snapshot {
	struct json_writer json;
	struct qp_copy *qps;
	size_t qp_count, qp_room;
	bool incomplete; /* no room for a copy */
	unsigned int worker_qps[PROGRESS_WORKERS];
};

static void (*write_extension)(struct json_writer *json);

void uroce_stats_extend(void (*more)(struct json_writer *json))
{
	write_extension = more;
}

static void write_qp_counters(struct json_writer *json, const char *key, const uint64_t *counters)
{
	json_write_begin(json, key, '{');
	for (unsigned int i = 0; i < ENG_COUNTER_COUNT; i++)
		json_write_number(json, eng_counter_name((enum eng_counter)i), counters[i]);
	json_write_end(json, '}');
}

static void write_port_counters(struct json_writer *json, const uint64_t *counters)
{
	json_write_begin(json, "counters", '{');
	for (unsigned int i = 0; i < PROGRESS_COUNTER_COUNT; i++)
		json_write_number(json, progress_counter_name((enum progress_counter)i),
				  counters[i]);
	json_write_end(json, '}');
}

static void write_process(struct json_writer *json, struct progress *progress)
{
	uint64_t counters[PROGRESS_COUNTER_COUNT];

	json_write_number(json, "format", UROCE_ABI_STAT_FORMAT);
	json_write_number(json, "pid", (uint64_t)getpid());
	json_write_number(json, "slot", link_slot(progress_link(progress)));
	json_write_string(json, "command", program_invocation_short_name);
	json_write_string(json, "version", UROCE_VERSION);
	progress_counters(counters);
	write_port_counters(json, counters);
}

static void write_workers(struct snapshot *snapshot)
{
	struct json_writer *json = &snapshot->json;
	uint64_t counters[PROGRESS_COUNTER_COUNT];

	json_write_begin(json, "workers", '[');
	for (unsigned int i = 0; i < PROGRESS_WORKERS; i++) {
		struct progress *worker = progress_worker(i);
		uint32_t slot;

		if (!worker)
			continue;
		slot = link_slot(progress_link(worker));
		json_write_begin(json, NULL, '{');
		json_write_number(json, "number", i);
		json_write_number(json, "slot", slot);
		json_write_number(json, "first_qpn", slot << LINK_SLOT_SHIFT);
		json_write_number(json, "last_qpn", slot << LINK_SLOT_SHIFT | LINK_INDEX_MASK);
		json_write_number(json, "qps", snapshot->worker_qps[i]);
		progress_worker_counters(worker, counters);
		write_port_counters(json, counters);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void write_device(struct uroce_device *device, unsigned int open, void *arg)
{
	struct json_writer *json = arg;

	json_write_begin(json, NULL, '{');
	json_write_string(json, "name", device->base.device.name);
	json_write_number(json, "contexts", open);
	pthread_mutex_lock(&device->port_lock);
	json_write_string(json, "netdev", device->netdev.name);
	json_write_bool(json, "active", device->exists && device->netdev.up);
	json_write_number(json, "mtu", 128u << uroce_active_mtu(device->netdev.mtu));
	json_write_address(json, "address", device->gids.gid[0].raw);
	write_qp_counters(json, "destroyed_qp_counters", device->destroyed_qp_counters);
	pthread_mutex_unlock(&device->port_lock);
	json_write_end(json, '}');
}

static void write_qp_numbers(struct json_writer *json, const struct eng_qp_info *info)
{
#define NUMBER(member) json_write_number(json, #member, info->member)
	NUMBER(qpn);
	NUMBER(dest_qpn);
	NUMBER(mtu);
	NUMBER(next_psn);
	NUMBER(unacked_psn);
	NUMBER(expected_psn);
	NUMBER(ssn);
	NUMBER(sent_ssn);
	NUMBER(msn);
	NUMBER(lsn);
	NUMBER(credits_advertised);
	NUMBER(credits_now);
	NUMBER(sq_used);
	NUMBER(rq_used);
	NUMBER(outstanding_reads);
	NUMBER(in_flight);
	NUMBER(cwnd);
	NUMBER(retries_left);
	NUMBER(rnr_retries_left);
#undef NUMBER
	json_write_bool(json, "unlimited", info->unlimited);
	if (info->credits_known)
		json_write_number(json, "credits_reported", info->credits_last_known);
	else
		json_write_null(json, "credits_reported");
}

static void count_qp(struct progress_qp *progress_qp, void *count)
{
	(void)progress_qp;
	++*(size_t *)count;
}

/*
 * Makes room for copies, also of queue pairs that are created until they are made.  Touches its
 * pages, which takes longer than copying.  Returns false if there is no memory.
 */
static bool reserve_qp_copies(struct snapshot *snapshot)
{
	enum { MORE = 64 };
	size_t count = 0;

	progress_for_each_qp(count_qp, &count);
	count += count / 8 + MORE;
	free(snapshot->qps);
	snapshot->qps = malloc(count * sizeof(*snapshot->qps));
	if (!snapshot->qps)
		return false;
	memset(snapshot->qps, 0xff, count * sizeof(*snapshot->qps));
	snapshot->qp_room = count;
	return true;
}

/* Callback of progress_for_each_qp(): only copies, because the worker waits. */
static void copy_qp(struct progress_qp *progress_qp, void *arg)
{
	const struct uroce_qp *qp = to_uroce_qp_of_progress(progress_qp);
	struct snapshot *snapshot = arg;
	struct qp_copy *copy;

	if (snapshot->qp_count == snapshot->qp_room) {
		snapshot->incomplete = true;
		return;
	}
	copy = &snapshot->qps[snapshot->qp_count++];
	memcpy(copy->device, qp->context->device->base.device.name, sizeof(copy->device));
	copy->path = eng_qp_attr(progress_qp->engine)->path.wire;
	copy->worker = progress_worker_number(progress_qp->worker);
	copy->shared_memory = progress_qp->transport == LINK_SHARED_MEMORY;
	eng_qp_query(progress_qp->engine, &copy->info);
	snapshot->worker_qps[copy->worker]++;
}

/* Repeats the copying if more queue pairs were created than there is room for. */
static void copy_all_qps(struct snapshot *snapshot)
{
	enum { TRIES = 4 };

	snapshot->incomplete = true;
	for (int i = 0; i < TRIES && snapshot->incomplete && reserve_qp_copies(snapshot); i++) {
		snapshot->incomplete = false;
		snapshot->qp_count = 0;
		memset(snapshot->worker_qps, 0, sizeof(snapshot->worker_qps));
		progress_for_each_qp(copy_qp, snapshot);
	}
}

static void write_qp(struct json_writer *json, const struct qp_copy *qp)
{
	const struct eng_qp_info *info = &qp->info;

	json_write_begin(json, NULL, '{');
	json_write_string(json, "device", qp->device);
	json_write_string(json, "type", eng_qp_type_name(info->type));
	json_write_string(json, "state", eng_qp_state_name(info->state));
	json_write_string(json, "waiting", eng_tx_name(info->waiting));
	json_write_address(json, "local", qp->path.src);
	json_write_address(json, "remote", qp->path.dst);
	json_write_number(json, "src_port", qp->path.src_port);
	json_write_bool(json, "shared_memory", qp->shared_memory);
	write_qp_numbers(json, info);
	write_qp_counters(json, "counters", info->counters);
	json_write_end(json, '}');
}

static void write_qps(struct snapshot *snapshot)
{
	copy_all_qps(snapshot);
	json_write_begin(&snapshot->json, "qps", '[');
	for (size_t i = 0; i < snapshot->qp_count; i++)
		write_qp(&snapshot->json, &snapshot->qps[i]);
	json_write_end(&snapshot->json, ']');
}

static void write_all(struct snapshot *snapshot, struct progress *progress)
{
	struct json_writer *json = &snapshot->json;

	json_write_begin(json, NULL, '{');
	write_process(json, progress);
	json_write_begin(json, "devices", '[');
	uroce_devices_visit_open(write_device, json);
	json_write_end(json, ']');
	write_qps(snapshot);
	write_workers(snapshot);
	if (write_extension)
		write_extension(json);
	json_write_end(json, '}');
}

int uroce_stats_snapshot(struct progress *progress)
{
	struct snapshot snapshot = { 0 };
	const struct json_writer *json = &snapshot.json;
	int file = -ENOMEM;

	write_all(&snapshot, progress);
	free(snapshot.qps);
	if (!json->failed && !snapshot.incomplete)
		file = memfd_create("uroce-stat", MFD_CLOEXEC);
	/* At an offset, so that the reader's file position is that of the first byte. */
	if (file >= 0 && pwrite(file, json->text, json->used, 0) != (ssize_t)json->used) {
		close(file);
		file = -EIO;
	}
	free(json->text);
	return file;
}
