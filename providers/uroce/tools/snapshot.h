/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Snapshots of uroce processes, as they send them, and a reader of their records.
 */
#ifndef UROCE_TOOLS_SNAPSHOT_H
#define UROCE_TOOLS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/guest.h"
#include <rdma/uroce-abi.h>

#define SNAPSHOT_MAX_COUNTERS 64

struct snapshot {
	uint8_t *bytes; /* mapped */
	size_t length;
	/* Filled by snapshot_fetch() from the records; they point into bytes. */
	const struct uroce_abi_stat_process *process;
	const char *qp_names; /* qp_name_count x UROCE_ABI_NAME_BYTES */
	uint32_t qp_name_count;
	const char *port_names;
	const uint64_t *port_values;
	uint32_t port_count;
};

/*
 * Asks the client of a slot: a connection on which answers are waited for two seconds, or a
 * negative errno as below.
 */
int snapshot_ask(struct link_guest *broker, uint32_t slot, enum uroce_abi_message message);
/*
 * Gets the snapshot of the client of a slot.  0; -ENOENT when there is none, or it is a further
 * worker of a process; -EPROTO when its answer makes no sense; -ETIMEDOUT when it does not answer.
 */
int snapshot_fetch(struct link_guest *broker, uint32_t slot, struct snapshot *snapshot);
void snapshot_free(struct snapshot *snapshot);

/* The next record of kind behind previous (NULL: the first), or NULL. */
const struct uroce_abi_record *snapshot_next(const struct snapshot *snapshot, uint32_t kind,
					     const struct uroce_abi_record *previous);

/* The counters behind a QP's or a device's record; never more than both sides agree on. */
const uint64_t *snapshot_device_counters(const struct snapshot *snapshot,
					 const struct uroce_abi_stat_device *device,
					 uint32_t *count);
const uint64_t *snapshot_qp_counters(const struct snapshot *snapshot,
				     const struct uroce_abi_stat_qp *qp, uint32_t *count);
/* Those of a worker, which have the names of the process's. */
const uint64_t *snapshot_worker_counters(const struct snapshot *snapshot,
					 const struct uroce_abi_stat_worker *worker,
					 uint32_t *count);

#endif
