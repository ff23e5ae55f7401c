/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests snapshots from uroce processes and reads their records (rdma/uroce-abi.h). */
#ifndef UROCE_TOOLS_SNAPSHOT_H
#define UROCE_TOOLS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/broker/guest.h"
#include <rdma/uroce-abi.h>

struct snapshot {
	uint8_t *bytes; /* mapped memory of length bytes */
	size_t length;
	/* Set by snapshot_fetch() from the records; pointers into bytes. */
	const struct uroce_abi_stat_process *process;
	const char *qp_names; /* qp_name_count names of UROCE_ABI_NAME_BYTES bytes */
	uint32_t qp_name_count;
	const char *port_names;
	const uint64_t *port_values;
	uint32_t port_count;
};

/*
 * Sends message to the owner of a slot.  Returns a connected socket, whose send and receive
 * timeouts are REPLY_TIMEOUT_SECONDS, or a negative errno as snapshot_fetch() does.  The caller
 * closes it.
 */
int snapshot_request(struct link_guest *broker, uint32_t slot, enum uroce_abi_message message);
/*
 * Requests the snapshot of the owner of a slot.  Returns 0 or a negative errno: -ENOENT if the slot
 * has no owner or belongs to a further worker of a process; -EPROTO if the reply is invalid;
 * -ETIMEDOUT if there is none.  Release the result with snapshot_free().
 */
int snapshot_fetch(struct link_guest *broker, uint32_t slot, struct snapshot *snapshot);
void snapshot_free(struct snapshot *snapshot);

/* Returns the next record of a kind after previous (NULL: the first one), or NULL. */
const struct uroce_abi_record *snapshot_next(const struct snapshot *snapshot, uint32_t kind,
					     const struct uroce_abi_record *previous);

/* Return the counters of a device or QP and set *count, at most the number of names. */
const uint64_t *snapshot_device_counters(const struct snapshot *snapshot,
					 const struct uroce_abi_stat_device *device,
					 uint32_t *count);
const uint64_t *snapshot_qp_counters(const struct snapshot *snapshot,
				     const struct uroce_abi_stat_qp *qp, uint32_t *count);
/* Returns the counters of a worker; their names are port_names. */
const uint64_t *snapshot_worker_counters(const struct snapshot *snapshot,
					 const struct uroce_abi_stat_worker *worker,
					 uint32_t *count);
/*
 * Returns the name that a counter had before November 2026, or NULL.  Scripts that read the old
 * names work for one more release.
 */
const char *snapshot_old_counter_name(const char *name);

#endif
