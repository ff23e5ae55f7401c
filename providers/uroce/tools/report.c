/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "uroce_stat.h"

#include <arpa/inet.h>
#include <string.h>

#include "link/link.h"

#define PORT_STATE_ACTIVE 4

static const char *address_text(const uint8_t address[16], char text[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(address, mapped, sizeof(mapped)) == 0)
		inet_ntop(AF_INET, address + sizeof(mapped), text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, text, INET6_ADDRSTRLEN);
	return text;
}

static void table_devices(FILE *out, const struct snapshot *snapshot)
{
	const struct uroce_abi_record *record = NULL;
	char text[INET6_ADDRSTRLEN];

	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_DEVICE, record))) {
		const struct uroce_abi_stat_device *device =
			(const struct uroce_abi_stat_device *)record;

		fprintf(out,
			"  device %.64s  netdev %.32s  port %s  mtu %u  address %s  contexts %u\n",
			device->name, device->netdev,
			device->port_state == PORT_STATE_ACTIVE ? "ACTIVE" : "DOWN",
			device->active_mtu, address_text(device->gid, text), device->contexts);
	}
}

struct counters {
	const char *names;
	const uint64_t *values;
	uint32_t count;
};

static void table_counters(FILE *out, const char *title, const struct counters *counters, bool all)
{
	uint32_t column = 0;

	for (uint32_t i = 0; i < counters->count; i++) {
		if (!all && counters->values[i] == 0)
			continue;
		fprintf(out, "%s%s %.32s=%llu", column == 0 ? title : "",
			column > 0 && column % 6 == 0 ? "\n             " : "",
			counters->names + (size_t)i * UROCE_ABI_NAME_BYTES,
			(unsigned long long)counters->values[i]);
		column++;
	}
	if (column > 0)
		fputc('\n', out);
}

/* Returns the number of QPs of the process that belong to a worker. */
static unsigned int count_qps(const struct snapshot *snapshot,
			      const struct uroce_abi_stat_worker *worker)
{
	const struct uroce_abi_record *record = NULL;
	unsigned int count = 0;

	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_QP, record))) {
		const struct uroce_abi_stat_qp *qp = (const struct uroce_abi_stat_qp *)record;

		count += qp->qpn >> LINK_SLOT_SHIFT == worker->slot;
	}
	return count;
}

/* Prints the workers of a process that has more than one. */
static void table_workers(FILE *out, const struct snapshot *snapshot, bool all)
{
	const struct uroce_abi_record *record =
		snapshot_next(snapshot, UROCE_ABI_RECORD_WORKER, NULL);

	if (!record || !snapshot_next(snapshot, UROCE_ABI_RECORD_WORKER, record))
		return;
	for (; record; record = snapshot_next(snapshot, UROCE_ABI_RECORD_WORKER, record)) {
		const struct uroce_abi_stat_worker *worker =
			(const struct uroce_abi_stat_worker *)record;
		struct counters counters = { .names = snapshot->port_names };

		counters.values = snapshot_worker_counters(snapshot, worker, &counters.count);

		fprintf(out, "  worker %u  slot %u  queue pairs 0x%06x to 0x%06x: %u\n",
			worker->number, worker->slot, worker->slot << LINK_SLOT_SHIFT,
			worker->slot << LINK_SLOT_SHIFT | LINK_INDEX_MASK,
			count_qps(snapshot, worker));
		table_counters(out, "     counters", &counters, all);
	}
}

static void format_peer_credits(const struct uroce_abi_stat_qp *qp, char text[16])
{
	if (qp->unlimited)
		snprintf(text, 16, "unlimited");
	else if (qp->credits_reported == UINT32_MAX)
		snprintf(text, 16, "none yet");
	else
		snprintf(text, 16, "%u", qp->credits_reported);
}

static void table_qp(FILE *out, const struct snapshot *snapshot, const struct uroce_abi_stat_qp *qp,
		     bool all)
{
	char address[INET6_ADDRSTRLEN], credits[16];
	struct counters counters = { .names = snapshot->qp_names };

	counters.values = snapshot_qp_counters(snapshot, qp, &counters.count);
	format_peer_credits(qp, credits);
	fprintf(out, "  QP 0x%06x  %.16s %.16s  %.64s -> QP 0x%06x at %s  mtu %u%s\n", qp->qpn,
		qp->type, qp->state, qp->device, qp->dest_qpn, address_text(qp->dgid, address),
		qp->mtu, qp->shared_memory ? "  shared memory" : "");
	fprintf(out, "     PSN      next %u  unacked %u  expected %u\n", qp->next_psn,
		qp->unacked_psn, qp->expected_psn);
	fprintf(out,
		"     credits  SSN %u/%u  LSN %u  heard %s | MSN %u  advertised %u  free now %u\n",
		qp->sent_ssn, qp->ssn, qp->lsn, credits, qp->msn, qp->credits_advertised,
		qp->credits_now);
	fprintf(out,
		"     queues   send %u  receive %u  in flight %u of %u packets  reads %u  "
		"retries left %u (RNR %u)  %.16s\n",
		qp->sq_used, qp->rq_used, qp->in_flight, qp->cwnd, qp->outstanding_reads,
		qp->retries_left, qp->rnr_retries_left, qp->waiting);
	table_counters(out, "     counters", &counters, all);
}

static const struct uroce_abi_stat_qp *find_qp(const struct snapshot *snapshot, uint32_t qpn)
{
	const struct uroce_abi_record *record = NULL;

	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_QP, record))) {
		const struct uroce_abi_stat_qp *qp = (const struct uroce_abi_stat_qp *)record;

		if (qp->qpn == qpn)
			return qp;
	}
	return NULL;
}

/* Returns true if the peer claims to report credits, but does not (rule C19). */
static bool peer_credits_mismatch(const struct uroce_abi_stat_connection *connection,
				  const struct uroce_abi_stat_qp *qp)
{
	return connection->peer_flow_control && qp && qp->unlimited;
}

/* Prints the End-to-End Flow Control bits of REQ and REP, and what AETHs report. */
static void table_flow_control(FILE *out, const struct snapshot *snapshot,
			       const struct uroce_abi_stat_connection *connection)
{
	const struct uroce_abi_stat_qp *qp = find_qp(snapshot, connection->local_qpn);
	char credits[16] = "no queue pair";

	if (qp)
		format_peer_credits(qp, credits);
	fprintf(out, "     reports credits: this side %s, the peer %s (its AETHs: %s)%s\n",
		connection->flow_control ? "yes" : "no",
		connection->peer_flow_control ? "yes" : "no", credits,
		peer_credits_mismatch(connection, qp) ? "  MISMATCH" : "");
	fprintf(out, "     private data: %u bytes sent, %u received\n", connection->private_length,
		connection->peer_private_length);
}

static void table_messages(FILE *out, const struct snapshot *snapshot)
{
	const struct uroce_abi_record *record = NULL;

	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_MESSAGE, record))) {
		const struct uroce_abi_stat_message *message =
			(const struct uroce_abi_stat_message *)record;

		fprintf(out,
			"  messages %-8.16s  sent %llu (again %llu)  received %llu (again %llu, "
			"refused %llu)\n",
			message->name, (unsigned long long)message->sent,
			(unsigned long long)message->resent, (unsigned long long)message->received,
			(unsigned long long)message->repeated,
			(unsigned long long)message->refused);
	}
	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_REJECT, record))) {
		const struct uroce_abi_stat_reject *refusal =
			(const struct uroce_abi_stat_reject *)record;

		fprintf(out, "  REJ %u (%.32s)  sent %llu\n", refusal->reason, refusal->name,
			(unsigned long long)refusal->sent);
	}
}

static void table_connections(FILE *out, const struct snapshot *snapshot)
{
	const struct uroce_abi_record *record = NULL;
	char text[INET6_ADDRSTRLEN];

	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_LISTENER, record))) {
		const struct uroce_abi_stat_listener *listener =
			(const struct uroce_abi_stat_listener *)record;

		fprintf(out, "  listens at %.8s port %u of %s  requests unread %u of %u\n",
			listener->space, listener->port, address_text(listener->address, text),
			listener->waiting, listener->backlog);
	}
	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_CONNECTION, record))) {
		const struct uroce_abi_stat_connection *c =
			(const struct uroce_abi_stat_connection *)record;

		fprintf(out,
			"  connection 0x%08x  %.8s %.24s  %s port %u at %s  QP 0x%06x -> 0x%06x  "
			"age %u ms  resent %u%s\n",
			c->local_id, c->service, c->state, c->active ? "to" : "by",
			(unsigned int)(c->service_id & 0xffff), address_text(c->remote, text),
			c->local_qpn, c->remote_qpn, c->age_ms, c->resent,
			c->destroyed ? "  closed" : "");
		table_flow_control(out, snapshot, c);
	}
}

void report_table(FILE *out, const struct snapshot *snapshot, bool all)
{
	const struct counters counters = { snapshot->port_names, snapshot->port_values,
					   snapshot->port_count };
	const struct uroce_abi_record *record = NULL;

	fprintf(out, "process %u  %.32s  slot %u  uroce %.32s\n", snapshot->process->pid,
		snapshot->process->command, snapshot->process->slot, snapshot->process->version);
	table_devices(out, snapshot);
	table_counters(out, "  counters", &counters, all);
	table_workers(out, snapshot, all);
	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_QP, record)))
		table_qp(out, snapshot, (const struct uroce_abi_stat_qp *)record, all);
	table_connections(out, snapshot);
	table_messages(out, snapshot);
}

/* Prints a quoted string of at most limit bytes; names of processes have arbitrary bytes. */
static void json_string(FILE *out, const char *text, size_t limit)
{
	fputc('"', out);
	for (size_t i = 0; i < limit && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void json_text_field(FILE *out, const char *name, const char *text, size_t limit)
{
	fprintf(out, "\"%s\":", name);
	json_string(out, text, limit);
	fputc(',', out);
}

static void json_counters(FILE *out, const char *names, const uint64_t *values, uint32_t count)
{
	fputs("\"counters\":{", out);
	for (uint32_t i = 0; i < count; i++) {
		const char *name = names + (size_t)i * UROCE_ABI_NAME_BYTES;
		const char *old_name = snapshot_old_counter_name(name);

		if (i > 0)
			fputc(',', out);
		json_string(out, name, UROCE_ABI_NAME_BYTES);
		fprintf(out, ":%llu", (unsigned long long)values[i]);
		if (old_name)
			fprintf(out, ",\"%s\":%llu", old_name, (unsigned long long)values[i]);
	}
	fputc('}', out);
}

/* Prints an array with one object for each record of a kind; fields prints its members. */
static void json_list(FILE *out, const struct snapshot *snapshot, const char *name, uint32_t kind,
		      void (*fields)(FILE *out, const struct snapshot *snapshot,
				     const struct uroce_abi_record *record))
{
	const struct uroce_abi_record *record = NULL;
	const char *separator = "";

	fprintf(out, "\"%s\":[", name);
	while ((record = snapshot_next(snapshot, kind, record))) {
		fprintf(out, "%s{", separator);
		fields(out, snapshot, record);
		fputc('}', out);
		separator = ",";
	}
	fputc(']', out);
}

static void json_device(FILE *out, const struct snapshot *snapshot,
			const struct uroce_abi_record *record)
{
	const struct uroce_abi_stat_device *device = (const struct uroce_abi_stat_device *)record;
	char text[INET6_ADDRSTRLEN];

	(void)snapshot;
	json_text_field(out, "name", device->name, sizeof(device->name));
	json_text_field(out, "netdev", device->netdev, sizeof(device->netdev));
	fprintf(out, "\"active\":%s,\"mtu\":%u,\"address\":\"%s\",\"contexts\":%u",
		device->port_state == PORT_STATE_ACTIVE ? "true" : "false", device->active_mtu,
		address_text(device->gid, text), device->contexts);
}

static void json_worker(FILE *out, const struct snapshot *snapshot,
			const struct uroce_abi_record *record)
{
	const struct uroce_abi_stat_worker *worker = (const struct uroce_abi_stat_worker *)record;
	uint32_t count;
	const uint64_t *values = snapshot_worker_counters(snapshot, worker, &count);

	fprintf(out, "\"number\":%u,\"slot\":%u,\"qps\":%u,", worker->number, worker->slot,
		count_qps(snapshot, worker));
	json_counters(out, snapshot->port_names, values, count);
}

static void json_qp_numbers(FILE *out, const struct uroce_abi_stat_qp *qp)
{
	const struct {
		const char *name;
		uint32_t value;
	} numbers[] = {
		{ "qpn", qp->qpn },
		{ "dest_qpn", qp->dest_qpn },
		{ "src_port", qp->src_port },
		{ "mtu", qp->mtu },
		{ "next_psn", qp->next_psn },
		{ "unacked_psn", qp->unacked_psn },
		{ "expected_psn", qp->expected_psn },
		{ "ssn", qp->ssn },
		{ "sent_ssn", qp->sent_ssn },
		{ "msn", qp->msn },
		{ "lsn", qp->lsn },
		{ "credits_advertised", qp->credits_advertised },
		{ "credits_now", qp->credits_now },
		{ "sq_used", qp->sq_used },
		{ "rq_used", qp->rq_used },
		{ "outstanding_reads", qp->outstanding_reads },
		{ "in_flight", qp->in_flight },
		{ "cwnd", qp->cwnd },
		{ "retries_left", qp->retries_left },
		{ "rnr_retries_left", qp->rnr_retries_left },
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		fprintf(out, "\"%s\":%u,", numbers[i].name, numbers[i].value);
	fprintf(out, "\"shared_memory\":%s,", qp->shared_memory ? "true" : "false");
	fprintf(out, "\"unlimited\":%s,", qp->unlimited ? "true" : "false");
	if (qp->credits_reported == UINT32_MAX)
		fputs("\"credits_heard\":null,", out);
	else
		fprintf(out, "\"credits_heard\":%u,", qp->credits_reported);
}

static void json_qp(FILE *out, const struct snapshot *snapshot,
		    const struct uroce_abi_record *record)
{
	const struct uroce_abi_stat_qp *qp = (const struct uroce_abi_stat_qp *)record;
	char text[INET6_ADDRSTRLEN];
	uint32_t count;
	const uint64_t *counters = snapshot_qp_counters(snapshot, qp, &count);

	json_text_field(out, "device", qp->device, sizeof(qp->device));
	json_text_field(out, "type", qp->type, sizeof(qp->type));
	json_text_field(out, "state", qp->state, sizeof(qp->state));
	json_text_field(out, "waiting", qp->waiting, sizeof(qp->waiting));
	fprintf(out, "\"local\":\"%s\",", address_text(qp->sgid, text));
	fprintf(out, "\"remote\":\"%s\",", address_text(qp->dgid, text));
	json_qp_numbers(out, qp);
	json_counters(out, snapshot->qp_names, counters, count);
}

static void json_listener(FILE *out, const struct snapshot *snapshot,
			  const struct uroce_abi_record *record)
{
	const struct uroce_abi_stat_listener *listener =
		(const struct uroce_abi_stat_listener *)record;
	char text[INET6_ADDRSTRLEN];

	(void)snapshot;
	json_text_field(out, "space", listener->space, sizeof(listener->space));
	fprintf(out, "\"port\":%u,\"address\":\"%s\",\"waiting\":%u,\"backlog\":%u", listener->port,
		address_text(listener->address, text), listener->waiting, listener->backlog);
}

static void json_connection(FILE *out, const struct snapshot *snapshot,
			    const struct uroce_abi_record *record)
{
	const struct uroce_abi_stat_connection *c =
		(const struct uroce_abi_stat_connection *)record;
	char text[INET6_ADDRSTRLEN];

	json_text_field(out, "service", c->service, sizeof(c->service));
	json_text_field(out, "state", c->state, sizeof(c->state));
	fprintf(out, "\"local\":\"%s\",", address_text(c->local, text));
	fprintf(out, "\"remote\":\"%s\",", address_text(c->remote, text));
	fprintf(out, "\"service_id\":%llu,\"local_id\":%u,\"remote_id\":%u,",
		(unsigned long long)c->service_id, c->local_id, c->remote_id);
	fprintf(out, "\"local_qpn\":%u,\"remote_qpn\":%u,\"active\":%s,", c->local_qpn,
		c->remote_qpn, c->active ? "true" : "false");
	fprintf(out, "\"closed\":%s,\"resent\":%u,\"age_ms\":%u,\"changed_ms\":%u,",
		c->destroyed ? "true" : "false", c->resent, c->age_ms, c->changed_ms);
	fprintf(out, "\"private_length\":%u,\"peer_private_length\":%u,", c->private_length,
		c->peer_private_length);
	fprintf(out, "\"flow_control\":%s,\"peer_flow_control\":%s,\"mismatch\":%s",
		c->flow_control ? "true" : "false", c->peer_flow_control ? "true" : "false",
		peer_credits_mismatch(c, find_qp(snapshot, c->local_qpn)) ? "true" : "false");
}

static void json_messages(FILE *out, const struct snapshot *snapshot)
{
	const struct uroce_abi_record *record = NULL;
	const char *separator = "";

	fputs("\"messages\":{", out);
	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_MESSAGE, record))) {
		const struct uroce_abi_stat_message *message =
			(const struct uroce_abi_stat_message *)record;

		fputs(separator, out);
		json_string(out, message->name, sizeof(message->name));
		fprintf(out,
			":{\"sent\":%llu,\"resent\":%llu,\"received\":%llu,\"repeated\":%llu,"
			"\"refused\":%llu}",
			(unsigned long long)message->sent, (unsigned long long)message->resent,
			(unsigned long long)message->received,
			(unsigned long long)message->repeated,
			(unsigned long long)message->refused);
		separator = ",";
	}
	fputs("},\"rejections\":{", out);
	separator = "";
	while ((record = snapshot_next(snapshot, UROCE_ABI_RECORD_REJECT, record))) {
		const struct uroce_abi_stat_reject *refusal =
			(const struct uroce_abi_stat_reject *)record;

		fprintf(out, "%s\"%u\":%llu", separator, refusal->reason,
			(unsigned long long)refusal->sent);
		separator = ",";
	}
	fputs("},", out);
}

void report_json(FILE *out, const struct snapshot *snapshot)
{
	const struct uroce_abi_stat_process *process = snapshot->process;

	fprintf(out, "{\"pid\":%u,\"slot\":%u,", process->pid, process->slot);
	json_text_field(out, "command", process->command, sizeof(process->command));
	json_text_field(out, "version", process->version, sizeof(process->version));
	json_list(out, snapshot, "devices", UROCE_ABI_RECORD_DEVICE, json_device);
	fputc(',', out);
	json_counters(out, snapshot->port_names, snapshot->port_values, snapshot->port_count);
	fputc(',', out);
	json_list(out, snapshot, "workers", UROCE_ABI_RECORD_WORKER, json_worker);
	fputc(',', out);
	json_list(out, snapshot, "listeners", UROCE_ABI_RECORD_LISTENER, json_listener);
	fputc(',', out);
	json_list(out, snapshot, "connections", UROCE_ABI_RECORD_CONNECTION, json_connection);
	fputc(',', out);
	json_messages(out, snapshot);
	json_list(out, snapshot, "qps", UROCE_ABI_RECORD_QP, json_qp);
	fputc('}', out);
}
