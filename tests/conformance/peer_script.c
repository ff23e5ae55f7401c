/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The scripted side's packets, and what a test expects of the engine. */
#include "peer.h"

#include <stdlib.h>
#include <string.h>

/* More than the longest message that is written out as one pattern. */
static uint8_t pattern[WIRE_MAX_MTU];

struct wire_packet peer_packet(const struct peer *peer, uint8_t opcode, uint32_t psn)
{
	(void)peer;
	return (struct wire_packet){ .opcode = opcode,
				     .migrated = true,
				     .pkey = WIRE_DEFAULT_PKEY,
				     .dest_qpn = PEER_QPN,
				     .psn = psn & WIRE_24BIT_MASK };
}

struct wire_packet peer_request(const struct peer *peer, uint8_t opcode, uint32_t psn,
				uint32_t payload_length)
{
	struct wire_packet packet = peer_packet(peer, opcode, psn);

	peer_fill(pattern, sizeof(pattern), 0);
	packet.ack_request = true;
	packet.va = PEER_REMOTE_VA;
	packet.rkey = PEER_RKEY;
	packet.dma_length = payload_length;
	packet.immediate = 0xcafe0001;
	packet.payload = pattern;
	packet.payload_length = payload_length;
	return packet;
}

void peer_give(struct peer *peer, const struct wire_packet *packet)
{
	uint8_t header[WIRE_MAX_HEADER_BYTES];
	struct wire_packet on_wire = *packet, parsed;
	uint32_t pad = -packet->payload_length & 3;
	unsigned int length;
	uint8_t *bytes;

	on_wire.pad_count = (uint8_t)pad;
	length = wire_build_headers(&on_wire, header);
	/* Exactly as long as the packet, and gone afterwards: the engine keeps no pointer. */
	bytes = malloc(length + packet->payload_length + pad + WIRE_ICRC_BYTES);
	memcpy(bytes, header, length);
	if (packet->payload_length)
		memcpy(bytes + length, packet->payload, packet->payload_length);
	length += packet->payload_length;
	memset(bytes + length, 0, pad + WIRE_ICRC_BYTES);
	length += pad + WIRE_ICRC_BYTES;
	assert_int_equal(wire_parse(bytes, length, &parsed), WIRE_OK);
	eng_receive(peer->qp, &parsed, peer->now);
	memset(bytes, 0xdd, length);
	free(bytes);
}

void peer_give_request(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t payload_length)
{
	struct wire_packet packet = peer_request(peer, opcode, psn, payload_length);

	peer_give(peer, &packet);
}

void peer_give_read(struct peer *peer, uint32_t psn, uint32_t offset, uint32_t length)
{
	struct wire_packet packet = peer_request(peer, WIRE_READ_REQUEST, psn, 0);

	packet.va += offset;
	packet.dma_length = length;
	peer_give(peer, &packet);
}

void peer_give_atomic(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t offset,
		      uint64_t compare, uint64_t swap_add)
{
	struct wire_packet packet = peer_request(peer, opcode, psn, 0);

	packet.va += offset;
	packet.compare = compare;
	packet.swap_add = swap_add;
	peer_give(peer, &packet);
}

void peer_nak(struct peer *peer, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct wire_packet packet = peer_packet(peer, WIRE_ACKNOWLEDGE, psn);

	packet.syndrome = syndrome;
	packet.msn = msn & WIRE_24BIT_MASK;
	peer_give(peer, &packet);
}

void peer_ack(struct peer *peer, uint32_t psn, uint8_t credit_code, uint32_t msn)
{
	peer_nak(peer, psn, credit_code, msn);
}

void peer_give_response(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t msn,
			const void *payload, uint32_t payload_length)
{
	struct wire_packet packet = peer_packet(peer, opcode, psn);

	packet.syndrome = NO_CREDITS_REPORTED;
	packet.msn = msn;
	if (opcode == WIRE_ATOMIC_ACKNOWLEDGE) {
		memcpy(&packet.original, payload, sizeof(packet.original));
	} else {
		packet.payload = payload;
		packet.payload_length = payload_length;
	}
	peer_give(peer, &packet);
}

const struct wire_packet *peer_expect_packet(struct peer *peer, uint8_t opcode, uint32_t psn,
					     const char *file, int line)
{
	const struct wire_packet *packet;

	peer_pull(peer);
	if (peer->sent_read == peer->sent_count) {
		print_error("expected %s PSN %06x, but nothing is sent (%s)\n",
			    wire_op_name(opcode), psn & WIRE_24BIT_MASK, eng_tx_name(peer->why));
		_fail(file, line);
	}
	packet = &peer->sent[peer->sent_read++].packet;
	if (packet->opcode != opcode || packet->psn != (psn & WIRE_24BIT_MASK)) {
		print_error("expected %s PSN %06x, but %s PSN %06x syndrome %02x is sent\n",
			    wire_op_name(opcode), psn & WIRE_24BIT_MASK,
			    wire_op_name(packet->opcode), packet->psn, packet->syndrome);
		_fail(file, line);
	}
	return packet;
}

void peer_expect_ack(struct peer *peer, uint32_t psn, uint8_t syndrome, uint32_t msn,
		     const char *file, int line)
{
	const struct wire_packet *packet;

	packet = peer_expect_packet(peer, WIRE_ACKNOWLEDGE, psn, file, line);
	if (packet->syndrome != syndrome || packet->msn != (msn & WIRE_24BIT_MASK)) {
		print_error("expected syndrome %02x MSN %06x, but got %02x %06x\n", syndrome,
			    msn & WIRE_24BIT_MASK, packet->syndrome, packet->msn);
		_fail(file, line);
	}
	_assert_true(packet->payload_length == 0 && !packet->ack_request, "a bare ACK", file, line);
}

void peer_expect_silence(struct peer *peer, const char *file, int line)
{
	peer_pull(peer);
	if (peer->sent_read != peer->sent_count) {
		const struct wire_packet *packet = &peer->sent[peer->sent_read].packet;

		print_error("expected silence, but %s PSN %06x syndrome %02x is sent\n",
			    wire_op_name(packet->opcode), packet->psn, packet->syndrome);
		_fail(file, line);
	}
}

const struct eng_wc *peer_expect_wc(struct peer *peer, uint64_t wr_id, enum eng_status status,
				    const char *file, int line)
{
	const struct eng_wc *wc;

	if (peer->wc_read == peer->wc_count) {
		print_error("expected completion of %llx, but there is none\n",
			    (unsigned long long)wr_id);
		_fail(file, line);
	}
	wc = &peer->wcs[peer->wc_read++];
	if (wc->wr_id != wr_id || wc->status != status) {
		print_error("expected %llx %s, but %llx %s is completed\n",
			    (unsigned long long)wr_id, eng_status_name(status),
			    (unsigned long long)wc->wr_id, eng_status_name(wc->status));
		_fail(file, line);
	}
	return wc;
}

void peer_expect_no_wc(struct peer *peer, const char *file, int line)
{
	if (peer->wc_read != peer->wc_count) {
		const struct eng_wc *wc = &peer->wcs[peer->wc_read];

		print_error("expected no completion, but %llx %s is completed\n",
			    (unsigned long long)wc->wr_id, eng_status_name(wc->status));
		_fail(file, line);
	}
}

void peer_expect_pattern(const uint8_t *bytes, uint64_t length, uint64_t position, const char *file,
			 int line)
{
	for (uint64_t i = 0; i < length; i++) {
		if (bytes[i] != peer_pattern(position + i)) {
			print_error("byte %llu is %02x instead of %02x\n", (unsigned long long)i,
				    bytes[i], peer_pattern(position + i));
			_fail(file, line);
		}
	}
}
