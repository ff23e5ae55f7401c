/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Listeners and connections in the snapshot that uroce-stat reads. */
#include <stdio.h>
#include <string.h>

#include <rdma/uroce-abi.h>

#include "id.h"
#include "ucm_core.h"
#include "verbs/stats/stats.h"

#define NS_PER_MS 1000000

static void write_listener(struct ucm_id *id, void *writer)
{
	struct uroce_abi_stat_listener *record;

	if (!id->listener)
		return;
	record = uroce_stats_append(writer, UROCE_ABI_RECORD_LISTENER, sizeof(*record));
	if (!record)
		return;
	snprintf(record->space, sizeof(record->space), "%s", cm_port_space_name(id->port_space));
	memcpy(record->address, id->source.ip, sizeof(record->address));
	record->port = id->source.port;
	record->backlog = id->backlog;
	record->waiting = id->unread_requests;
}

static void write_connection(void *writer, const struct cm_conn *conn)
{
	struct uroce_abi_stat_connection *record =
		uroce_stats_append(writer, UROCE_ABI_RECORD_CONNECTION, sizeof(*record));
	struct cm_conn_info info;
	uint64_t now = progress_now();

	if (!record)
		return;
	cm_conn_info(conn, &info);
	snprintf(record->service, sizeof(record->service), "%s", cm_service_name(info.service));
	snprintf(record->state, sizeof(record->state), "%s", cm_state_name(info.state));
	memcpy(record->local, info.path.sgid, sizeof(record->local));
	memcpy(record->remote, info.path.dgid, sizeof(record->remote));
	record->service_id = info.service_id;
	record->local_id = info.local_id;
	record->remote_id = info.remote_id;
	record->local_qpn = info.local_qpn;
	record->remote_qpn = info.remote_qpn;
	record->active = info.active;
	record->destroyed = info.destroyed;
	record->resent = info.resent;
	record->flow_control = info.flow_control;
	record->peer_flow_control = info.peer_flow_control;
	record->private_length = info.private_length;
	record->peer_private_length = info.peer_private_length;
	record->age_ms = (uint32_t)((now - info.created) / NS_PER_MS);
	record->changed_ms = (uint32_t)((now - info.changed) / NS_PER_MS);
}

static void write_message(void *writer, const struct cm_counters *counters, size_t attr)
{
	struct uroce_abi_stat_message *record;

	if (!counters->sent[attr] && !counters->received[attr])
		return;
	record = uroce_stats_append(writer, UROCE_ABI_RECORD_MESSAGE, sizeof(*record));
	if (!record)
		return;
	snprintf(record->name, sizeof(record->name), "%s",
		 mad_attr_name((uint16_t)(MAD_ATTR_FIRST + attr)));
	record->sent = counters->sent[attr];
	record->resent = counters->resent[attr];
	record->received = counters->received[attr];
	record->repeated = counters->repeated[attr];
	record->refused = counters->refused[attr];
}

static void write_refusal(void *writer, const struct cm_counters *counters, uint16_t reason)
{
	struct uroce_abi_stat_reject *record;

	if (!counters->rejected[reason])
		return;
	record = uroce_stats_append(writer, UROCE_ABI_RECORD_REJECT, sizeof(*record));
	if (!record)
		return;
	snprintf(record->name, sizeof(record->name), "%s", mad_reject_name(reason));
	record->reason = reason;
	record->sent = counters->rejected[reason];
}

static void write_counters(void *writer, const struct cm_counters *counters)
{
	for (size_t attr = 0; attr < MAD_ATTRS; attr++)
		write_message(writer, counters, attr);
	for (uint16_t reason = 0;
	     reason < sizeof(counters->rejected) / sizeof(counters->rejected[0]); reason++)
		write_refusal(writer, counters, reason);
}

void ucm_stat_write(void *writer)
{
	ucm_lock();
	ucm_ids_each(write_listener, writer);
	if (ucm_cm()) {
		cm_each_conn(ucm_cm(), write_connection, writer);
		write_counters(writer, cm_counters(ucm_cm()));
	}
	ucm_unlock();
}
