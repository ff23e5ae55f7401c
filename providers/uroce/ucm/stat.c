/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Listeners and connections in the snapshot that uroce-stat reads. */
#include "id.h"
#include "ucm_core.h"
#include "verbs/stats/json_writer.h"

#define NS_PER_MS 1000000

static void write_listener(struct ucm_id *id, void *arg)
{
	struct json_writer *json = arg;

	if (!id->listener)
		return;
	json_write_begin(json, NULL, '{');
	json_write_string(json, "space", cm_port_space_name(id->port_space));
	json_write_number(json, "port", id->source.port);
	json_write_address(json, "address", id->source.ip);
	json_write_number(json, "waiting", id->unread_requests);
	json_write_number(json, "backlog", id->backlog);
	json_write_end(json, '}');
}

static void write_connection(void *arg, const struct cm_conn *conn)
{
	struct json_writer *json = arg;
	struct cm_conn_info info;
	uint64_t now = progress_now();

	cm_conn_info(conn, &info);
	json_write_begin(json, NULL, '{');
	json_write_string(json, "service", cm_service_name(info.service));
	json_write_string(json, "state", cm_state_name(info.state));
	json_write_address(json, "local", info.path.sgid);
	json_write_address(json, "remote", info.path.dgid);
	json_write_number(json, "service_id", info.service_id);
	json_write_number(json, "port", info.service_id & 0xffff);
	json_write_number(json, "local_id", info.local_id);
	json_write_number(json, "remote_id", info.remote_id);
	json_write_number(json, "local_qpn", info.local_qpn);
	json_write_number(json, "remote_qpn", info.remote_qpn);
	json_write_bool(json, "active", info.active);
	json_write_bool(json, "closed", info.destroyed);
	json_write_number(json, "resent", info.resent);
	json_write_number(json, "age_ms", (now - info.created) / NS_PER_MS);
	json_write_number(json, "changed_ms", (now - info.changed) / NS_PER_MS);
	json_write_number(json, "private_length", info.private_length);
	json_write_number(json, "peer_private_length", info.peer_private_length);
	json_write_bool(json, "flow_control", info.flow_control);
	json_write_bool(json, "peer_flow_control", info.peer_flow_control);
	json_write_end(json, '}');
}

static void write_messages(struct json_writer *json, const struct cm_counters *counters)
{
	json_write_begin(json, "messages", '{');
	for (size_t attr = 0; attr < MAD_ATTRS; attr++) {
		if (!counters->sent[attr] && !counters->received[attr])
			continue;
		json_write_begin(json, mad_attr_name((uint16_t)(MAD_ATTR_FIRST + attr)), '{');
		json_write_number(json, "sent", counters->sent[attr]);
		json_write_number(json, "resent", counters->resent[attr]);
		json_write_number(json, "received", counters->received[attr]);
		json_write_number(json, "repeated", counters->repeated[attr]);
		json_write_number(json, "refused", counters->refused[attr]);
		json_write_end(json, '}');
	}
	json_write_end(json, '}');
}

static void write_rejects(struct json_writer *json, const struct cm_counters *counters)
{
	const size_t reasons = sizeof(counters->rejected) / sizeof(counters->rejected[0]);

	json_write_begin(json, "rejects", '[');
	for (uint16_t reason = 0; reason < reasons; reason++) {
		if (!counters->rejected[reason])
			continue;
		json_write_begin(json, NULL, '{');
		json_write_number(json, "reason", reason);
		json_write_string(json, "name", mad_reject_name(reason));
		json_write_number(json, "sent", counters->rejected[reason]);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

void ucm_stat_write(struct json_writer *json)
{
	static const struct cm_counters none;
	const struct cm_counters *counters = &none;

	ucm_lock();
	json_write_begin(json, "listeners", '[');
	ucm_ids_each(write_listener, json);
	json_write_end(json, ']');
	json_write_begin(json, "connections", '[');
	if (ucm_cm()) {
		cm_each_conn(ucm_cm(), write_connection, json);
		counters = cm_counters(ucm_cm());
	}
	json_write_end(json, ']');
	write_messages(json, counters);
	write_rejects(json, counters);
	ucm_unlock();
}
