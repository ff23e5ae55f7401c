/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "demux.h"

#include <string.h>

#include "group.h"
#include "broker/gsi_packet.h"
#include "gsi_service.h"
#include "listen.h"
#include "network_header.h"
#include "tap.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#define PKEY_BASE_MASK 0x7fffu
/* ECN codepoint "congestion experienced" */
#define ECN_CE 3

/* Context of the datagrams of one batch. */
struct visitor {
	struct turn *turn;
	const struct link_batch *batch;
	const struct progress_group *group; /* NULL: received by an address */
	bool forwarded;
	uint8_t marks; /* WIRE_CE if switches have marked the batch, else 0 */
	/* Path of the batch; valid if has_path. */
	struct wire_path path;
	bool has_path;
	const uint8_t *dst; /* address to which it was sent */
	/* Connected QP of the previous datagram and the path of its peer's packets, or NULL. */
	struct progress_qp *qp;
	const struct wire_path *qp_path;
	/*
	 * IPv4 ID expected for the next datagram: within one send it counts up from 0, or from the
	 * peer's counter.
	 */
	uint16_t ip_id;
	bool first;		       /* the current datagram is the first of the batch */
	uint8_t header[ENG_GRH_BYTES]; /* for the current datagram, if UD */
	struct capture *capture;       /* or NULL */
	/* For the capture: all packets of one call share a timestamp */
	uint64_t came;
};

static __attribute__((noinline)) void make_path(struct visitor *visitor)
{
	const struct link_batch *batch = visitor->batch;

	memcpy(visitor->path.src, batch->src, sizeof(visitor->path.src));
	memcpy(visitor->path.dst, visitor->dst, sizeof(visitor->path.dst));
	visitor->path.src_port = batch->src_port;
	visitor->path.ipv6 = !link_gid_is_ipv4(visitor->dst);
	visitor->path.known = 0;
	visitor->has_path = true;
}

static const struct wire_path *path_of_batch(struct visitor *visitor)
{
	if (!visitor->has_path)
		make_path(visitor);
	return &visitor->path;
}

static struct tap_datagram datagram_of(struct visitor *visitor, const uint8_t *bytes, size_t length)
{
	return (struct tap_datagram){
		.path = path_of_batch(visitor),
		.batch = visitor->batch,
		.bytes = bytes,
		.length = length,
		.came = &visitor->came,
	};
}

static void drop(struct visitor *visitor, enum progress_counter why, const uint8_t *bytes,
		 size_t length)
{
	const struct tap_datagram datagram = datagram_of(visitor, bytes, length);

	count_in_turn(visitor->turn->progress, why);
	if (visitor->capture)
		tap_refused(visitor->capture, &datagram, visitor->ip_id, why);
}

/* Not inlined, so that nothing is prepared without a capture. */
static __attribute__((noinline)) void show(struct visitor *visitor, const uint8_t *bytes,
					   size_t length)
{
	const struct tap_datagram datagram = datagram_of(visitor, bytes, length);

	tap_received(visitor->capture, &datagram, visitor->ip_id);
}

/* Captures a datagram before its QP receives it. */
static inline void admitted(struct visitor *visitor, const uint8_t *bytes, size_t length)
{
	if (__builtin_expect(visitor->capture != NULL, 0))
		show(visitor, bytes, length);
}

static void show_forwarded(struct visitor *visitor, const uint8_t *bytes, size_t length)
{
	const struct tap_datagram datagram = datagram_of(visitor, bytes, length);

	tap_refused(visitor->capture, &datagram, visitor->ip_id, PROGRESS_COUNT_FORWARDED);
}

static struct progress_qp *find_qp(struct visitor *visitor, const struct wire_packet *packet,
				   const uint8_t *bytes, size_t length)
{
	struct progress *progress = visitor->turn->progress;
	bool ours;
	struct progress_qp *qp = table_find(&progress->table, packet->dest_qpn, &ours);

	if (__builtin_expect(qp != NULL, 1))
		return qp;
	if (!ours && !visitor->forwarded) {
		/* The link counts it, even if forwarding fails. */
		link_pass_on(visitor->batch, bytes, length);
		if (visitor->capture)
			show_forwarded(visitor, bytes, length);
		return NULL;
	}
	drop(visitor, PROGRESS_COUNT_UNKNOWN_QP, bytes, length);
	return NULL;
}

/*
 * Returns true if the batch may be for qp, which the caller has locked.  Datagram QPs receive from
 * anywhere on the addresses of their device.  A QP that is not connected passes too: its engine is
 * in no state to receive.
 */
static bool is_from_peer(const struct visitor *visitor, const struct progress_qp *qp)
{
	const struct eng_attr *attr;

	if (qp->listen)
		return listen_hears(qp->listen, visitor->batch->addr);
	if (!qp->addr)
		return true;
	attr = eng_qp_attr(qp->engine);
	return qp->addr == visitor->batch->addr &&
	       !memcmp(attr->path.wire.dst, visitor->batch->src, sizeof(attr->path.wire.dst));
}

/*
 * Returns the path of the batch.  If its packets are from the connected peer of qp, only the source
 * port can differ from that of earlier ones; for a port seen twice the ICRC of the path is
 * precomputed.
 */
static const struct wire_path *path_of(struct visitor *visitor, struct progress_qp *qp)
{
	if (!qp->addr)
		return path_of_batch(visitor);
	if (qp->heard.src_port != visitor->batch->src_port)
		qp->heard = *path_of_batch(visitor);
	else if (__builtin_expect(!qp->heard.known, 0))
		wire_icrc_precompute(&qp->heard);
	return &qp->heard;
}

static inline __attribute__((always_inline)) bool has_right_icrc(struct visitor *visitor,
								 const struct wire_path *path,
								 const uint8_t *bytes,
								 size_t length)
{
	switch (wire_icrc_check(path, &visitor->ip_id, bytes, length)) {
	case WIRE_ICRC_RIGHT:
		return true;
	case WIRE_ICRC_SOLVED:
		/* A batch in shared memory is a burst as it was sent: its IPv4 IDs count from 0. */
		if (visitor->batch->ring)
			break;
		count_in_turn(visitor->turn->progress, PROGRESS_COUNT_ICRC_SOLVED);
		return true;
	case WIRE_ICRC_WRONG:
		break;
	}
	return false;
}

/*
 * Returns true if the IPv4 ID is plausible for this peer.  The IDs characterize the sender's
 * socket, so packets by another transport do not count, and neither do CNPs, which another device
 * may have sent.
 */
static bool has_believable_identification(const struct visitor *visitor, struct progress_qp *qp,
					  bool ipv6, uint8_t opcode)
{
	bool request;

	if (!qp->addr || ipv6 || visitor->batch->ring || identification_is_any(&qp->identification))
		return true;
	request = wire_op_is_request(opcode);
	if (!request && !wire_op_is_response(opcode))
		return true;
	return identification_believed(&qp->identification, request, visitor->ip_id);
}

/* Checks the ICRC of a packet from the peer of qp, which the caller has locked. */
static bool is_undamaged(struct visitor *visitor, struct progress_qp *qp,
			 const struct wire_path *path, uint8_t opcode, const uint8_t *bytes,
			 size_t length)
{
	uint16_t expected = visitor->ip_id;

	if (!has_right_icrc(visitor, path, bytes, length))
		identification_damaged(&qp->identification);
	else if (has_believable_identification(visitor, qp, path->ipv6, opcode))
		return true;
	visitor->ip_id = expected;
	return false;
}

/* The P_Key table contains only the default key, as a full member. */
static bool has_right_pkey(const struct wire_packet *packet)
{
	return (packet->pkey & PKEY_BASE_MASK) == (WIRE_DEFAULT_PKEY & PKEY_BASE_MASK);
}

static bool is_datagram(const struct wire_packet *packet)
{
	return (packet->opcode & WIRE_SERVICE_MASK) == WIRE_UD;
}

/* Builds the GRH of a datagram.  The caller has checked the ICRC, so that the IPv4 ID is known. */
static void show_network_header(struct visitor *visitor, struct wire_packet *packet, size_t length)
{
	network_header(visitor->header, path_of_batch(visitor), visitor->ip_id, length,
		       visitor->batch);
	packet->network_header = visitor->header;
}

/* Passes a datagram for a group to all members; it may be for no QP of its own. */
static void admit_to_group(struct visitor *visitor, const uint8_t *bytes, size_t length)
{
	const struct progress_group *group = visitor->group;
	struct wire_packet packet;

	if (wire_parse(bytes, length, &packet) != WIRE_OK || !is_datagram(&packet)) {
		drop(visitor, PROGRESS_COUNT_MALFORMED, bytes, length);
		return;
	}
	if (packet.dest_qpn != WIRE_MULTICAST_QPN) {
		drop(visitor, PROGRESS_COUNT_UNKNOWN_QP, bytes, length);
		return;
	}
	if (!has_right_pkey(&packet)) {
		drop(visitor, PROGRESS_COUNT_WRONG_PKEY, bytes, length);
		return;
	}
	if (!has_right_icrc(visitor, path_of_batch(visitor), bytes, length)) {
		drop(visitor, PROGRESS_COUNT_ICRC_ERRORS, bytes, length);
		return;
	}
	admitted(visitor, bytes, length);
	show_network_header(visitor, &packet, length);
	for (unsigned int i = 0; i < group->count; i++) {
		turn_visit(visitor->turn, group->member[i]);
		turn_schedule(visitor->turn, group->member[i]);
		eng_receive(group->member[i]->engine, &packet, visitor->turn->now);
	}
}

/* Receives a packet for QP 1, which all processes share (rule S14). */
static void admit_to_gsi(struct visitor *visitor, const struct wire_packet *packet,
			 const uint8_t *bytes, size_t length)
{
	static const enum progress_counter counter[] = {
		[GSI_NO_MAD] = PROGRESS_COUNT_MAD_MALFORMED,
		[GSI_WRONG_QKEY] = PROGRESS_COUNT_MAD_WRONG_QKEY,
	};
	struct progress *progress = visitor->turn->progress;
	enum gsi_fault fault = gsi_packet_check(packet);

	if (!visitor->forwarded) {
		/*
		 * It was received while no broker was running, or the kernel cannot steer packets.
		 */
		link_pass_on(visitor->batch, bytes, length);
	} else if (!progress->gsi || visitor->batch->reason < LINK_MAD_OWN) {
		drop(visitor, PROGRESS_COUNT_MAD_UNHEARD, bytes, length);
	} else if (!has_right_pkey(packet)) {
		drop(visitor, PROGRESS_COUNT_WRONG_PKEY, bytes, length);
	} else if (fault != GSI_OK) {
		drop(visitor, counter[fault], bytes, length);
	} else if (!has_right_icrc(visitor, path_of_batch(visitor), bytes, length)) {
		drop(visitor, PROGRESS_COUNT_ICRC_ERRORS, bytes, length);
	} else {
		admitted(visitor, bytes, length);
		gsi_admit(progress, packet, visitor->batch, visitor->turn->now);
	}
}

/*
 * Returns the QP of packet, locked, and sets the path of its packets.  Returns NULL if the packet
 * is not for a QP of this process, or is dropped.
 */
static inline struct progress_qp *look_up(struct visitor *visitor, const struct wire_packet *packet,
					  const uint8_t *bytes, size_t length)
{
	struct progress_qp *qp;

	visitor->qp = NULL;
	if (packet->dest_qpn == MAD_QPN) {
		admit_to_gsi(visitor, packet, bytes, length);
		return NULL;
	}
	qp = find_qp(visitor, packet, bytes, length);
	if (!qp)
		return NULL;
	if (!has_right_pkey(packet)) {
		drop(visitor, PROGRESS_COUNT_WRONG_PKEY, bytes, length);
		return NULL;
	}
	turn_visit(visitor->turn, qp);
	if (!is_from_peer(visitor, qp)) {
		drop(visitor, PROGRESS_COUNT_WRONG_SOURCE, bytes, length);
		return NULL;
	}
	visitor->qp_path = path_of(visitor, qp);
	if (qp->addr)
		visitor->qp = qp;
	return qp;
}

static void admit_one(struct visitor *visitor, const uint8_t *bytes, size_t length)
{
	struct progress_qp *qp = visitor->qp;
	struct wire_packet packet;

	if (wire_parse(bytes, length, &packet) != WIRE_OK) {
		drop(visitor, PROGRESS_COUNT_MALFORMED, bytes, length);
		return;
	}
	/* All datagrams of a batch are from the same sender. */
	if (!qp || qp->qpn != packet.dest_qpn || !has_right_pkey(&packet)) {
		qp = look_up(visitor, &packet, bytes, length);
		if (!qp)
			return;
	}
	if (visitor->first && !visitor->batch->ring)
		visitor->ip_id = identification_expected(&qp->identification);
	if (!is_undamaged(visitor, qp, visitor->qp_path, packet.opcode, bytes, length)) {
		drop(visitor, PROGRESS_COUNT_ICRC_ERRORS, bytes, length);
		return;
	}
	/* A CNP is sent from another socket, or by a switch. */
	if (visitor->first && !visitor->batch->ring && packet.opcode != WIRE_CNP_OPCODE)
		identification_began(&qp->identification, visitor->ip_id);
	if (is_datagram(&packet))
		show_network_header(visitor, &packet, length);
	packet.congestion |= visitor->marks;
	turn_schedule(visitor->turn, qp);
	admitted(visitor, bytes, length);
	if (__builtin_expect(eng_needs_timestamp(&packet), 0))
		visitor->turn->now = progress_now();
	eng_receive(qp->engine, &packet, visitor->turn->now);
}

/* Processes the datagrams of the batch and returns their number. */
static unsigned int admit_all(struct visitor *visitor)
{
	const struct link_batch *batch = visitor->batch;
	size_t offset = 0;
	unsigned int count = 0;

	do {
		size_t length = batch->bytes - offset;

		if (batch->segment && length > batch->segment)
			length = batch->segment;
		visitor->first = offset == 0;
		if (visitor->group)
			admit_to_group(visitor, batch->buffer + offset, length);
		else
			admit_one(visitor, batch->buffer + offset, length);
		visitor->ip_id++;
		offset += length;
		count++;
	} while (offset < batch->bytes);
	return count;
}

/* Fields that are not set here are set before they are read. */
static inline void begin(struct visitor *visitor, struct turn *turn, const struct link_batch *batch,
			 const uint8_t dst[16])
{
	visitor->turn = turn;
	visitor->batch = batch;
	visitor->group = NULL;
	visitor->forwarded = false;
	visitor->marks = (batch->traffic_class & ECN_MASK) == ECN_CE ? WIRE_CE : 0;
	visitor->has_path = false;
	visitor->dst = dst;
	visitor->qp = NULL;
	visitor->ip_id = 0;
	visitor->capture = capture_on();
	visitor->came = 0;
}

unsigned int demux_batch(struct turn *turn, const struct link_batch *batch, bool forwarded)
{
	struct visitor visitor;

	begin(&visitor, turn, batch, link_addr_gid(batch->addr));
	visitor.forwarded = forwarded;
	return admit_all(&visitor);
}

unsigned int demux_group(struct turn *turn, const struct link_batch *batch,
			 const struct progress_group *group)
{
	struct visitor visitor;

	begin(&visitor, turn, batch, link_group_gid(group->link));
	visitor.group = group;
	return admit_all(&visitor);
}
