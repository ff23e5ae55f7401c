/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "demux.h"

#include <string.h>

#include "broker/gsi_packet.h"
#include "progress/gsi/gsi_progress.h"
#include "progress/tx/capture_hook.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define PKEY_BASE_MASK 0x7fffu
/* ECN codepoint "congestion experienced" */
#define ECN_CE 3

/* Context of the datagrams of one batch. */
struct rx_ctx {
	struct progress_cycle *cycle;
	const struct link_batch *batch;
	const struct progress_group *group; /* NULL: received by an address */
	bool forwarded;
	uint8_t ce_mark; /* WIRE_CE if switches have marked the batch, else 0 */
	/* Path of the batch; valid if has_path. */
	struct wire_path path;
	bool has_path;
	const uint8_t *dst; /* destination address of the batch */
	/* Connected QP of the previous datagram and the path of its peer's packets, or NULL. */
	struct progress_qp *qp;
	const struct wire_path *qp_path;
	/*
	 * IPv4 ID expected for the next datagram: within one send it counts up from 0, or from the
	 * peer's counter.
	 */
	uint16_t ip_id;
	bool first;		       /* the current datagram is the first of the batch */
	uint8_t header[ENG_GRH_BYTES]; /* GRH of the current datagram, if UD */
	struct capture *capture;       /* or NULL */
	/* For the capture: all packets of one call share a timestamp. */
	uint64_t timestamp;
};

static __attribute__((noinline)) void make_batch_path(struct rx_ctx *rx)
{
	const struct link_batch *batch = rx->batch;

	memcpy(rx->path.src, batch->src, sizeof(rx->path.src));
	memcpy(rx->path.dst, rx->dst, sizeof(rx->path.dst));
	rx->path.src_port = batch->src_port;
	rx->path.ipv6 = !gid_is_ipv4(rx->dst);
	rx->path.icrc_state = 0;
	rx->has_path = true;
}

static const struct wire_path *path_of_batch(struct rx_ctx *rx)
{
	if (!rx->has_path)
		make_batch_path(rx);
	return &rx->path;
}

static struct rx_datagram capture_datagram_of(struct rx_ctx *rx, const uint8_t *bytes,
					      size_t length)
{
	return (struct rx_datagram){
		.path = path_of_batch(rx),
		.batch = rx->batch,
		.bytes = bytes,
		.length = length,
		.batch_time = &rx->timestamp,
	};
}

static void drop_packet(struct rx_ctx *rx, enum progress_counter why, const uint8_t *bytes,
			size_t length)
{
	const struct rx_datagram datagram = capture_datagram_of(rx, bytes, length);

	count_in_cycle(rx->cycle->progress, why);
	if (rx->capture)
		capture_rx_dropped(rx->capture, &datagram, rx->ip_id, why);
}

/* Not inlined, so that nothing is prepared without a capture. */
static __attribute__((noinline)) void capture_datagram(struct rx_ctx *rx, const uint8_t *bytes,
						       size_t length)
{
	const struct rx_datagram datagram = capture_datagram_of(rx, bytes, length);

	capture_rx(rx->capture, &datagram, rx->ip_id);
}

/* Captures a datagram before its QP receives it. */
static inline void capture_accepted(struct rx_ctx *rx, const uint8_t *bytes, size_t length)
{
	if (__builtin_expect(rx->capture != NULL, 0))
		capture_datagram(rx, bytes, length);
}

static void capture_forwarded(struct rx_ctx *rx, const uint8_t *bytes, size_t length)
{
	const struct rx_datagram datagram = capture_datagram_of(rx, bytes, length);

	capture_rx_dropped(rx->capture, &datagram, rx->ip_id, PROGRESS_COUNT_FORWARDED);
}

static struct progress_qp *find_qp(struct rx_ctx *rx, const struct wire_packet *packet,
				   const uint8_t *bytes, size_t length)
{
	struct progress *progress = rx->cycle->progress;
	bool ours;
	struct progress_qp *qp = qpn_table_find(&progress->table, packet->dest_qpn, &ours);

	if (__builtin_expect(qp != NULL, 1))
		return qp;
	if (!ours && !rx->forwarded) {
		/* The link counts the packet, whether or not forwarding succeeds. */
		link_forward(rx->batch, bytes, length);
		if (rx->capture)
			capture_forwarded(rx, bytes, length);
		return NULL;
	}
	drop_packet(rx, PROGRESS_COUNT_UNKNOWN_QP, bytes, length);
	return NULL;
}

/*
 * Source address check: returns true if the batch may be for qp, which the caller has locked.
 * Datagram QPs receive from anywhere on the addresses of their device.  Also returns true if the QP
 * is not connected: its engine is in a state in which it drops the packet.
 */
static bool is_from_peer(const struct rx_ctx *rx, const struct progress_qp *qp)
{
	const struct eng_attr *attr;

	if (qp->ud_addrs)
		return ud_addrs_contain(qp->ud_addrs, rx->batch->addr);
	if (!qp->addr)
		return true;
	attr = eng_qp_attr(qp->engine);
	return qp->addr == rx->batch->addr &&
	       !memcmp(attr->path.wire.dst, rx->batch->src, sizeof(attr->path.wire.dst));
}

/*
 * Returns the path of the batch.  If its packets are from the connected peer of qp, only the source
 * port can differ from that of earlier ones; for a port seen twice the ICRC of the path is
 * precomputed.
 */
static const struct wire_path *path_of_peer(struct rx_ctx *rx, struct progress_qp *qp)
{
	if (!qp->addr)
		return path_of_batch(rx);
	if (qp->rx_path.src_port != rx->batch->src_port)
		qp->rx_path = *path_of_batch(rx);
	else if (__builtin_expect(!qp->rx_path.icrc_state, 0))
		wire_icrc_precompute(&qp->rx_path);
	return &qp->rx_path;
}

static inline __attribute__((always_inline)) bool
has_valid_icrc(struct rx_ctx *rx, const struct wire_path *path, const uint8_t *bytes, size_t length)
{
	switch (wire_icrc_check(path, &rx->ip_id, bytes, length)) {
	case WIRE_ICRC_OK:
		return true;
	case WIRE_ICRC_SOLVED:
		/*
		 * In shared memory the IPv4 IDs count from 0 in each burst, so an ICRC that fits
		 * another ID is wrong.
		 */
		if (rx->batch->ring)
			break;
		count_in_cycle(rx->cycle->progress, PROGRESS_COUNT_ICRC_SOLVED);
		return true;
	case WIRE_ICRC_BAD:
		break;
	}
	return false;
}

/*
 * Returns true if the IPv4 ID is plausible for this peer.  The IDs characterize the sender's
 * socket, so packets by another transport do not count, and neither do CNPs, which another device
 * may have sent.
 */
static bool ip_id_is_plausible(const struct rx_ctx *rx, struct progress_qp *qp, bool ipv6,
			       uint8_t opcode)
{
	bool request;

	if (!qp->addr || ipv6 || rx->batch->ring || ip_id_is_any(&qp->ip_ids))
		return true;
	request = wire_op_is_request(opcode);
	if (!request && !wire_op_is_response(opcode))
		return true;
	return ip_id_check(&qp->ip_ids, request, rx->ip_id);
}

/*
 * ICRC check of a packet from the peer of qp, which the caller has locked.  On failure rx->ip_id
 * keeps the expected IPv4 ID.
 */
static bool icrc_is_ok(struct rx_ctx *rx, struct progress_qp *qp, const struct wire_path *path,
		       uint8_t opcode, const uint8_t *bytes, size_t length)
{
	uint16_t expected = rx->ip_id;

	if (!has_valid_icrc(rx, path, bytes, length))
		ip_id_bad_icrc(&qp->ip_ids);
	else if (ip_id_is_plausible(rx, qp, path->ipv6, opcode))
		return true;
	rx->ip_id = expected;
	return false;
}

/*
 * P_Key check: the table contains only the default key, as a full member, which accepts packets of
 * full and limited members.
 */
static bool has_valid_pkey(const struct wire_packet *packet)
{
	return (packet->pkey & PKEY_BASE_MASK) == (WIRE_DEFAULT_PKEY & PKEY_BASE_MASK);
}

static bool is_ud(const struct wire_packet *packet)
{
	return (packet->opcode & WIRE_SERVICE_MASK) == WIRE_UD;
}

/*
 * Builds the UD GRH, the 40 bytes in front of a received datagram: its IPv6 header, or in the last
 * 20 bytes its IPv4 header.  A UDP socket does not deliver headers.  The caller has checked the
 * ICRC, so that the IPv4 ID is known.
 */
static void add_grh(struct rx_ctx *rx, struct wire_packet *packet, size_t length)
{
	const struct wire_path *path = path_of_batch(rx);
	const struct wire_ip ip = {
		.ipv6 = path->ipv6,
		.src = path->src,
		.dst = path->dst,
		.traffic_class = rx->batch->traffic_class,
		.hop_limit = rx->batch->hop_limit,
		.id = rx->ip_id,
		.payload_length = length,
	};

	memset(rx->header, 0, ENG_GRH_BYTES - WIRE_IPV4_BYTES);
	wire_put_ip(&ip, rx->header + (ip.ipv6 ? 0 : ENG_GRH_BYTES - WIRE_IPV4_BYTES));
	packet->network_header = rx->header;
}

/* Passes a datagram from a multicast group to all members.  It must have the multicast QPN. */
static void rx_group(struct rx_ctx *rx, const uint8_t *bytes, size_t length)
{
	const struct progress_group *group = rx->group;
	struct wire_packet packet;

	if (wire_parse(bytes, length, &packet) != WIRE_OK || !is_ud(&packet)) {
		drop_packet(rx, PROGRESS_COUNT_MALFORMED, bytes, length);
		return;
	}
	if (packet.dest_qpn != WIRE_MULTICAST_QPN) {
		drop_packet(rx, PROGRESS_COUNT_UNKNOWN_QP, bytes, length);
		return;
	}
	if (!has_valid_pkey(&packet)) {
		drop_packet(rx, PROGRESS_COUNT_WRONG_PKEY, bytes, length);
		return;
	}
	if (!has_valid_icrc(rx, path_of_batch(rx), bytes, length)) {
		drop_packet(rx, PROGRESS_COUNT_ICRC_ERRORS, bytes, length);
		return;
	}
	capture_accepted(rx, bytes, length);
	add_grh(rx, &packet, length);
	for (unsigned int i = 0; i < group->count; i++) {
		cycle_lock_qp(rx->cycle, group->member[i]);
		cycle_schedule_qp(rx->cycle, group->member[i]);
		eng_receive(group->member[i]->engine, &packet, rx->cycle->now);
	}
}

/* Receives a packet for queue pair 1, which all processes share (rule S14). */
static void rx_gsi(struct rx_ctx *rx, const struct wire_packet *packet, const uint8_t *bytes,
		   size_t length)
{
	static const enum progress_counter counter[] = {
		[GSI_NO_MAD] = PROGRESS_COUNT_MAD_MALFORMED,
		[GSI_WRONG_QKEY] = PROGRESS_COUNT_MAD_WRONG_QKEY,
	};
	struct progress *progress = rx->cycle->progress;
	enum gsi_packet_error fault = gsi_packet_check(packet);

	if (!rx->forwarded) {
		/*
		 * The broker must see it: it has come here because no broker was running, or
		 * because the kernel cannot steer packets.
		 */
		link_forward(rx->batch, bytes, length);
	} else if (!progress->gsi || rx->batch->reason < LINK_MAD_OWN) {
		drop_packet(rx, PROGRESS_COUNT_MAD_NO_LISTENER, bytes, length);
	} else if (!has_valid_pkey(packet)) {
		drop_packet(rx, PROGRESS_COUNT_WRONG_PKEY, bytes, length);
	} else if (fault != GSI_OK) {
		drop_packet(rx, counter[fault], bytes, length);
	} else if (!has_valid_icrc(rx, path_of_batch(rx), bytes, length)) {
		drop_packet(rx, PROGRESS_COUNT_ICRC_ERRORS, bytes, length);
	} else {
		capture_accepted(rx, bytes, length);
		gsi_rx(progress, packet, rx->batch, rx->cycle->now);
	}
}

/*
 * Returns the QP of packet, locked, and sets the path of its packets.  Returns NULL if the packet
 * is not for a QP of this process, or is dropped.
 */
static inline struct progress_qp *find_locked_qp(struct rx_ctx *rx,
						 const struct wire_packet *packet,
						 const uint8_t *bytes, size_t length)
{
	struct progress_qp *qp;

	rx->qp = NULL;
	if (packet->dest_qpn == MAD_QPN) {
		rx_gsi(rx, packet, bytes, length);
		return NULL;
	}
	qp = find_qp(rx, packet, bytes, length);
	if (!qp)
		return NULL;
	if (!has_valid_pkey(packet)) {
		drop_packet(rx, PROGRESS_COUNT_WRONG_PKEY, bytes, length);
		return NULL;
	}
	cycle_lock_qp(rx->cycle, qp);
	if (!is_from_peer(rx, qp)) {
		drop_packet(rx, PROGRESS_COUNT_WRONG_SOURCE, bytes, length);
		return NULL;
	}
	rx->qp_path = path_of_peer(rx, qp);
	if (qp->addr)
		rx->qp = qp;
	return qp;
}

static void rx_packet(struct rx_ctx *rx, const uint8_t *bytes, size_t length)
{
	struct progress_qp *qp = rx->qp;
	struct wire_packet packet;

	if (wire_parse(bytes, length, &packet) != WIRE_OK) {
		drop_packet(rx, PROGRESS_COUNT_MALFORMED, bytes, length);
		return;
	}
	/*
	 * All datagrams of a batch are from the same sender, so the source is checked once for each
	 * QP.
	 */
	if (!qp || qp->qpn != packet.dest_qpn || !has_valid_pkey(&packet)) {
		qp = find_locked_qp(rx, &packet, bytes, length);
		if (!qp)
			return;
	}
	if (rx->first && !rx->batch->ring)
		rx->ip_id = ip_id_expected(&qp->ip_ids);
	if (!icrc_is_ok(rx, qp, rx->qp_path, packet.opcode, bytes, length)) {
		drop_packet(rx, PROGRESS_COUNT_ICRC_ERRORS, bytes, length);
		return;
	}
	/* Not the ID of a CNP, which is sent from another socket, or by a switch. */
	if (rx->first && !rx->batch->ring && packet.opcode != WIRE_CNP_OPCODE)
		ip_id_batch_start(&qp->ip_ids, rx->ip_id);
	if (is_ud(&packet))
		add_grh(rx, &packet, length);
	packet.congestion |= rx->ce_mark;
	cycle_schedule_qp(rx->cycle, qp);
	capture_accepted(rx, bytes, length);
	if (__builtin_expect(eng_needs_timestamp(&packet), 0))
		rx->cycle->now = progress_now();
	eng_receive(qp->engine, &packet, rx->cycle->now);
}

/* Processes the datagrams of the batch and returns their number. */
static unsigned int rx_packets(struct rx_ctx *rx)
{
	const struct link_batch *batch = rx->batch;
	size_t offset = 0;
	unsigned int count = 0;

	do {
		size_t length = batch->bytes - offset;

		if (batch->segment && length > batch->segment)
			length = batch->segment;
		rx->first = offset == 0;
		if (rx->group)
			rx_group(rx, batch->buffer + offset, length);
		else
			rx_packet(rx, batch->buffer + offset, length);
		rx->ip_id++;
		offset += length;
		count++;
	} while (offset < batch->bytes);
	return count;
}

/* Fields that are not set here are set before they are read. */
static inline void init_rx_ctx(struct rx_ctx *rx, struct progress_cycle *cycle,
			       const struct link_batch *batch, const uint8_t dst[16])
{
	rx->cycle = cycle;
	rx->batch = batch;
	rx->group = NULL;
	rx->forwarded = false;
	rx->ce_mark = (batch->traffic_class & ECN_MASK) == ECN_CE ? WIRE_CE : 0;
	rx->has_path = false;
	rx->dst = dst;
	rx->qp = NULL;
	rx->ip_id = 0;
	rx->capture = capture_running();
	rx->timestamp = 0;
}

unsigned int demux_batch(struct progress_cycle *cycle, const struct link_batch *batch,
			 bool forwarded)
{
	struct rx_ctx rx;

	init_rx_ctx(&rx, cycle, batch, link_addr_gid(batch->addr));
	rx.forwarded = forwarded;
	return rx_packets(&rx);
}

unsigned int demux_group(struct progress_cycle *cycle, const struct link_batch *batch,
			 const struct progress_group *group)
{
	struct rx_ctx rx;

	init_rx_ctx(&rx, cycle, batch, link_group_gid(group->link));
	rx.group = group;
	return rx_packets(&rx);
}
