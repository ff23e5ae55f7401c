/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Requests snapshots from uroce processes: JSON objects (verbs/stats). */
#ifndef UROCE_TOOLS_SNAPSHOT_H
#define UROCE_TOOLS_SNAPSHOT_H

#include <jansson.h>
#include <stdint.h>

#include "link/broker/guest.h"
#include <rdma/uroce-abi.h>

/*
 * Sends message to the owner of a slot.  Returns a connected socket, whose send and receive
 * timeouts are REPLY_TIMEOUT_SECONDS, or a negative errno as snapshot_fetch() does.  The caller
 * closes it.
 */
int snapshot_request(struct link_guest *broker, uint32_t slot, enum uroce_abi_message message);
/*
 * Requests the snapshot of the owner of a slot.  Returns 0 or a negative errno: -ENOENT if the slot
 * has no owner or belongs to a further worker of a process; -EPROTO if the reply is invalid;
 * -ETIMEDOUT if there is none; -EPROTONOSUPPORT if the process is of another release, whose format
 * differs.  *snapshot is an object if the result is 0 or -EPROTONOSUPPORT, otherwise NULL.  The
 * caller drops the reference.
 */
int snapshot_fetch(struct link_guest *broker, uint32_t slot, json_t **snapshot);

unsigned long snapshot_pid(const json_t *snapshot);

/*
 * Returns the name that a counter had before November 2026, or NULL.  Scripts that read the old
 * names work for one more release.
 */
const char *snapshot_old_name(const char *name);
/* Adds members with the old names to all objects in value. */
void snapshot_add_old_names(json_t *value);

#endif
