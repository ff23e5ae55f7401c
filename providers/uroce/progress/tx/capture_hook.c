/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "capture_hook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/icrc.h"
#include "wire/packet.h"

static const char *const drop_reasons[PROGRESS_COUNTER_COUNT] = {
	[PROGRESS_COUNT_ICRC_ERRORS] = "refused: wrong ICRC",
	[PROGRESS_COUNT_MALFORMED] = "refused: malformed",
	[PROGRESS_COUNT_UNKNOWN_QP] = "refused: unknown queue pair",
	[PROGRESS_COUNT_WRONG_SOURCE] = "refused: not from the peer of the queue pair",
	[PROGRESS_COUNT_WRONG_PKEY] = "refused: wrong P_Key",
	[PROGRESS_COUNT_MAD_NO_LISTENER] = "refused: no program here uses the connection manager",
	[PROGRESS_COUNT_MAD_MALFORMED] = "refused: malformed MAD",
	[PROGRESS_COUNT_MAD_WRONG_QKEY] = "refused: wrong Q_Key for queue pair 1",
	[PROGRESS_COUNT_FORWARDED] = "forwarded: for a queue pair of another process of this host",
};

static const char *const tx_comments[CAPTURE_TX_KINDS] = {
	[CAPTURE_TX_CORRUPTED] = "corrupted by fault injection",
	[CAPTURE_TX_DROPPED] = "not sent: dropped by fault injection",
};

static struct capture_path path_of(const struct link_peer *peer)
{
	struct capture_path path;
	struct link_path link;

	link_peer_path(peer, &link);
	memcpy(path.src, link.src, sizeof(path.src));
	memcpy(path.dst, link.dst, sizeof(path.dst));
	path.src_port = link.src_port;
	path.traffic_class = link.traffic_class;
	path.hop_limit = link.hop_limit;
	path.ipv6 = !gid_is_ipv4(link.dst);
	return path;
}

static size_t total_bytes(const struct iovec *pieces, unsigned int count)
{
	size_t total = 0;

	for (unsigned int i = 0; i < count; i++)
		total += pieces[i].iov_len;
	return total;
}

int tx_send_captured(struct capture *capture, struct link_peer *peer, uint32_t qpn,
		     enum capture_tx_kind kind, const struct iovec *pieces, unsigned int count,
		     unsigned int segment)
{
	const struct capture_path path = path_of(peer);
	struct capture_packets packets = {
		.path = &path,
		.pieces = pieces,
		.count = count,
		.bytes = total_bytes(pieces, count),
		.segment = segment,
		.identification = link_peer_ip_id(peer),
		.outbound = true,
		.qpn = qpn,
		.comment = tx_comments[kind],
	};
	struct capture_record *record = capture_begin(capture, &packets);
	int error = link_send(peer, pieces, count, segment);
	char why[64];

	if (record)
		capture_end(record, !error);
	if (error && !(kind == CAPTURE_TX_RETRIED && (error == -EAGAIN || error == -ENOBUFS))) {
		snprintf(why, sizeof(why), "not sent: %s", strerror(-error));
		packets.comment = why;
		capture_put(capture, &packets);
	}
	return error;
}

void capture_tx_dropped(struct link_peer *peer, uint32_t qpn, const uint8_t *bytes, size_t length)
{
	const struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	struct capture *capture = capture_running();
	struct capture_path path;
	/* Shown as if the packet had been sent alone, with IPv4 ID 0. */
	const struct capture_packets packets = {
		.path = &path,
		.pieces = &piece,
		.count = 1,
		.bytes = length,
		.outbound = true,
		.qpn = qpn,
		.comment = tx_comments[CAPTURE_TX_DROPPED],
	};

	if (!capture)
		return;
	path = path_of(peer);
	capture_put(capture, &packets);
}

static void put_received(struct capture *capture, const struct rx_datagram *datagram,
			 uint16_t ip_id, const char *comment)
{
	const struct iovec piece = { .iov_base = (void *)(uintptr_t)datagram->bytes,
				     .iov_len = datagram->length };
	struct capture_path path = { .src_port = datagram->path->src_port,
				     .traffic_class = datagram->batch->traffic_class,
				     .hop_limit = datagram->batch->hop_limit,
				     .ipv6 = datagram->path->ipv6 };
	const struct capture_packets shown = { .path = &path,
					       .pieces = &piece,
					       .count = 1,
					       .bytes = datagram->length,
					       .identification = ip_id,
					       .comment = comment,
					       .batch_time = datagram->batch_time };

	memcpy(path.src, datagram->path->src, sizeof(path.src));
	memcpy(path.dst, datagram->path->dst, sizeof(path.dst));
	capture_put(capture, &shown);
}

void capture_rx(struct capture *capture, const struct rx_datagram *datagram, uint16_t ip_id)
{
	put_received(capture, datagram, ip_id, NULL);
}

void capture_rx_dropped(struct capture *capture, const struct rx_datagram *datagram, uint16_t ip_id,
			enum progress_counter why)
{
	if (datagram->length >= WIRE_BTH_BYTES + WIRE_ICRC_BYTES &&
	    why != PROGRESS_COUNT_ICRC_ERRORS)
		wire_icrc_check(datagram->path, &ip_id, datagram->bytes, datagram->length);
	put_received(capture, datagram, ip_id, drop_reasons[why] ? drop_reasons[why] : "refused");
}
