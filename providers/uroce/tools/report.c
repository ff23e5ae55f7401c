/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "uroce_stat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/*
 * Lines of the report.  {KEY} is the value of a member of the object; {KEY:N} a string padded to N
 * characters, or a number in hexadecimal with N digits; {KEY?YES|NO} one of two texts.
 */
static const char process_line[] = "process {pid}  {command}  slot {slot}  uroce {version}\n";
static const char device_line[] = "  device {name}  netdev {netdev}  port {active?ACTIVE|DOWN}  "
				  "mtu {mtu}  address {address}  contexts {contexts}\n";
static const char worker_line[] = "  worker {number}  slot {slot}  "
				  "queue pairs {first_qpn:6} to {last_qpn:6}: {qps}\n";
static const char qp_lines[] =
	"  QP {qpn:6}  {type} {state}  {device} -> QP {dest_qpn:6} at {remote}  mtu {mtu}"
	"{shared_memory?  shared memory|}\n"
	"     PSN      next {next_psn}  unacked {unacked_psn}  expected {expected_psn}\n"
	"     credits  SSN {sent_ssn}/{ssn}  LSN {lsn}  reported by peer {peer_credits} | MSN "
	"{msn}  "
	"advertised {credits_advertised}  free now {credits_now}\n"
	"     queues   send {sq_used}  receive {rq_used}  in flight {in_flight} of {cwnd} packets  "
	"reads {outstanding_reads}  retries left {retries_left} (RNR {rnr_retries_left})  "
	"{waiting}\n";
static const char listener_line[] = "  listens at {space} port {port} of {address}  "
				    "requests unread {waiting} of {backlog}\n";
static const char connection_lines[] =
	"  connection {local_id:8}  {service} {state}  {active?to|by} port {port} at {remote}  "
	"QP {local_qpn:6} -> {remote_qpn:6}  age {age_ms} ms  resent {resent}{closed?  closed|}\n"
	"     reports credits: this side {flow_control?yes|no}, the peer "
	"{peer_flow_control?yes|no} "
	"(its AETHs: {peer_credits}){mismatch?  MISMATCH|}\n"
	"     private data: {private_length} bytes sent, {peer_private_length} received\n";
static const char message_line[] = "  messages {name:8}  sent {sent} (again {resent})  "
				   "received {received} (again {repeated}, refused {refused})\n";
static const char reject_line[] = "  REJ {reason} ({name})  sent {sent}\n";

/* Bytes of names that are not ASCII are U+0080 to U+00FF in JSON (json_write_string()). */
static void print_string(FILE *out, const char *text, int width)
{
	for (; *text; text++, width--) {
		if ((*text & 0xfc) == 0xc0 && text[1]) {
			fputc((*text & 3) << 6 | (text[1] & 0x3f), out);
			text++;
		} else {
			fputc(*text, out);
		}
	}
	fprintf(out, "%*s", width > 0 ? width : 0, "");
}

static void print_value(FILE *out, const json_t *value, int width)
{
	if (json_is_string(value))
		print_string(out, json_string_value(value), width);
	else if (!value)
		fputc('-', out);
	else if (width > 0)
		fprintf(out, "0x%0*" PRIx64, width, (uint64_t)json_integer_value(value));
	else
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
}

/* Prints the field that begins after a brace.  Returns the rest of the line. */
static const char *print_field(FILE *out, const char *field, const json_t *object)
{
	size_t length = strcspn(field, ":?}");
	const char *format = field + length, *bar, *end = format + strcspn(format, "}");
	const json_t *value;
	char key[32];

	snprintf(key, sizeof(key), "%.*s", (int)length, field);
	value = json_object_get(object, key);
	if (*format == '?') {
		bar = strchr(format, '|');
		if (json_is_true(value))
			fprintf(out, "%.*s", (int)(bar - format - 1), format + 1);
		else
			fprintf(out, "%.*s", (int)(end - bar - 1), bar + 1);
	} else {
		print_value(out, value, *format == ':' ? atoi(format + 1) : 0);
	}
	return end + 1;
}

static void print_lines(FILE *out, const char *lines, const json_t *object)
{
	while (*lines) {
		if (*lines == '{')
			lines = print_field(out, lines + 1, object);
		else
			fputc(*lines++, out);
	}
}

static void print_list(FILE *out, const char *lines, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) print_lines(out, lines, item);
}

static void print_counters(FILE *out, const char *title, json_t *object, bool all)
{
	unsigned int column = 0;
	const char *name;
	json_t *value;

	json_object_foreach(json_object_get(object, "counters"), name, value)
	{
		if (!all && json_integer_value(value) == 0)
			continue;
		fprintf(out, "%s%s %s=%" JSON_INTEGER_FORMAT, column == 0 ? title : "",
			column > 0 && column % 6 == 0 ? "\n             " : "", name,
			json_integer_value(value));
		column++;
	}
	if (column > 0)
		fputc('\n', out);
}

/* Prints the lines and the counters of each object in a list. */
static void print_counted(FILE *out, const char *lines, const json_t *list, bool all)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		print_lines(out, lines, item);
		print_counters(out, "     counters", item, all);
	}
}

static void print_messages(FILE *out, json_t *messages)
{
	const char *name;
	json_t *message;

	json_object_foreach(messages, name, message)
	{
		json_object_set_new(message, "name", json_string(name));
		print_lines(out, message_line, message);
	}
}

/* Adds "peer_credits": the credits that the peer has reported last, or why there are none. */
static void add_peer_credits(json_t *qps)
{
	json_t *qp, *credits;
	size_t i;

	json_array_foreach(qps, i, qp)
	{
		credits = json_object_get(qp, "credits_reported");
		if (json_is_true(json_object_get(qp, "unlimited")))
			json_object_set_new(qp, "peer_credits", json_string("unlimited"));
		else if (json_is_null(credits))
			json_object_set_new(qp, "peer_credits", json_string("none yet"));
		else
			json_object_set(qp, "peer_credits", credits);
	}
}

/* Returns the text of a number of an object. */
static const char *number_text(const json_t *object, const char *member, char text[24])
{
	snprintf(text, 24, "%" JSON_INTEGER_FORMAT,
		 json_integer_value(json_object_get(object, member)));
	return text;
}

/*
 * Adds to connections what their queue pairs report.  There is a mismatch if the peer claims to
 * report credits, but does not (rule C19).
 */
static void add_credits_of_connections(const json_t *snapshot)
{
	json_t *qps = json_object(), *item, *qp;
	char qpn[24];
	size_t i;

	json_array_foreach(json_object_get(snapshot, "qps"), i, item)
		json_object_set(qps, number_text(item, "qpn", qpn), item);
	json_array_foreach(json_object_get(snapshot, "connections"), i, item)
	{
		bool claims = json_is_true(json_object_get(item, "peer_flow_control"));

		qp = json_object_get(qps, number_text(item, "local_qpn", qpn));
		json_object_set_new(
			item, "mismatch",
			json_boolean(claims && json_is_true(json_object_get(qp, "unlimited"))));
		json_object_set(item, "peer_credits", json_object_get(qp, "peer_credits"));
	}
	json_decref(qps);
}

void report_text(FILE *out, json_t *snapshot, bool all)
{
	const json_t *workers = json_object_get(snapshot, "workers");

	add_peer_credits(json_object_get(snapshot, "qps"));
	add_credits_of_connections(snapshot);
	print_lines(out, process_line, snapshot);
	print_list(out, device_line, json_object_get(snapshot, "devices"));
	print_counters(out, "  counters", snapshot, all);
	if (json_array_size(workers) > 1)
		print_counted(out, worker_line, workers, all);
	print_counted(out, qp_lines, json_object_get(snapshot, "qps"), all);
	print_list(out, listener_line, json_object_get(snapshot, "listeners"));
	print_list(out, connection_lines, json_object_get(snapshot, "connections"));
	print_messages(out, json_object_get(snapshot, "messages"));
	print_list(out, reject_line, json_object_get(snapshot, "rejects"));
}

void report_json(FILE *out, json_t *snapshot)
{
	json_t *rejections = json_object(), *reject;
	char reason[24];
	size_t i;

	add_credits_of_connections(snapshot);
	json_array_foreach(json_object_get(snapshot, "rejects"), i, reject) json_object_set(
		rejections, number_text(reject, "reason", reason), json_object_get(reject, "sent"));
	json_object_set_new(snapshot, "rejections", rejections);
	snapshot_add_old_names(snapshot);
	json_dumpf(snapshot, out, JSON_COMPACT | JSON_ENSURE_ASCII);
}
