/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "trace.h"

#include <string.h>

#include "array.h"
#include "trace/input/capture_file.h"
#include "trace/input/burst.h"

/* Context of add_packet(). */
struct add_context {
	struct trace *trace;
	const struct capture_frame *captured;
	const struct frame *frame;
};

static uint16_t packet_flags(const struct frame *frame, const struct burst_packet *packet)
{
	const struct wire_packet *wire = &packet->wire;

	return (uint16_t)((wire->ack_request ? TRACE_ACK_REQUEST : 0) |
			  (wire->solicited ? TRACE_SOLICITED : 0) |
			  (wire->migrated ? TRACE_MIGRATED : 0) |
			  (wire->pkey != WIRE_DEFAULT_PKEY ? TRACE_OTHER_PKEY : 0) |
			  (packet->icrc_is_wrong ? TRACE_WRONG_ICRC : 0) |
			  (frame->ip_id ? TRACE_COUNTED_ID : 0) |
			  (wire->congestion ? TRACE_CONGESTION : 0));
}

static enum trace_way packet_direction(const struct add_context *add_context)
{
	if (add_context->captured->meta.way != TRACE_WAY_UNKNOWN)
		return add_context->captured->meta.way;
	return add_context->frame->way;
}

static void add_cm_message(struct trace *trace, const struct frame *frame,
			   const struct burst_packet *packet)
{
	const struct cm_connection *connection =
		cm_log_add(&trace->cm, frame->path.src, frame->path.dst, packet->wire.payload,
			   packet->captured);

	trace->totals.management++;
	if (!connection)
		return;
	/* QP numbers are reused: packets from now on belong to this connection. */
	if (connection->accepted)
		flows_end_qp(&trace->flows, connection->active.address, connection->passive.address,
			     connection->passive.qpn);
	else
		flows_end_qp(&trace->flows, connection->passive.address, connection->active.address,
			     connection->active.qpn);
}

static void add_packet(void *context, const struct burst_packet *packet, unsigned int part)
{
	const struct add_context *add_context = context;
	struct trace *trace = add_context->trace;
	const struct wire_packet *wire = &packet->wire;
	struct trace_packet *added = array_append(&trace->packets);

	*added = (struct trace_packet){
		.time_ns = add_context->captured->time_ns,
		.hash = packet->hash,
		.frame = add_context->captured->number,
		.flow = FLOW_NONE,
		.psn = wire->psn,
		.msn = wire->msn,
		.dma_length = wire->dma_length,
		.payload = (uint16_t)wire->payload_length,
		.part = (uint16_t)part,
		.flags = packet_flags(add_context->frame, packet),
		.opcode = wire->opcode,
		.syndrome = wire->syndrome,
		.way = (uint8_t)packet_direction(add_context),
	};
	trace->totals.unchecked += packet->icrc_unchecked;
	trace->totals.congestion += (added->flags & TRACE_CONGESTION) != 0;
	if (add_context->captured->meta.refused) {
		added->flags |= TRACE_REFUSED;
		trace->totals.refused++;
	}
	if (added->flags & TRACE_IGNORED)
		return;
	if (wire->dest_qpn == MAD_QPN && (wire->opcode & WIRE_SERVICE_MASK) == WIRE_UD)
		add_cm_message(trace, add_context->frame, packet);
	else
		added->flow =
			flows_add(&trace->flows, &add_context->frame->path, wire, added->time_ns);
}

void trace_add(void *context, const struct capture_frame *captured)
{
	struct trace *trace = context;
	struct trace_totals *totals = &trace->totals;
	struct frame frame;
	struct add_context add_context = { trace, captured, &frame };
	enum frame_verdict verdict = frame_read(captured->link_type, captured->bytes,
						captured->captured, captured->length, &frame);
	enum wire_error error;
	unsigned int parts;
	bool lost;

	if (totals->frames++ == 0 || captured->time_ns < totals->begin_ns)
		totals->begin_ns = captured->time_ns;
	if (captured->time_ns < totals->end_ns)
		totals->backwards = true;
	else
		totals->end_ns = captured->time_ns;
	totals->verdicts[verdict]++;
	if (verdict != FRAME_ROCE)
		return;
	parts = burst_split(&frame, add_packet, &add_context, &error, &lost);
	/*
	 * The kernel increments its counter once for a burst, so later packets have the IPv4 IDs of
	 * its second and further packets again: they are not unique.
	 */
	for (unsigned int i = 0; i < parts && parts > 1; i++)
		trace->packets.items[trace->packets.count - 1 - i].flags &=
			(uint16_t)~TRACE_COUNTED_ID;
	totals->roce += parts;
	totals->bursts += parts > 1;
	totals->cut_bursts += lost;
	if (parts == 0 && !lost && totals->malformed++ == 0) {
		totals->first_malformed = captured->number;
		totals->why = error;
	}
}

void trace_free(struct trace *trace)
{
	for (size_t i = 0; i < trace->connections.count; i++)
		for (int side = 0; side < 2 && trace->connections.items[i].is_reliable; side++)
			stream_free(&trace->connections.items[i].streams[side]);
	free(trace->connections.items);
	free(trace->packets.items);
	flows_free(&trace->flows);
	cm_log_free(&trace->cm);
}
