/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The scripted side's packets, and what a test expects of the engine. */
#include "dut.h"

#include <stdlib.h>
#include <string.h>

/* Payload of requests, for packets of every size. */
static uint8_t pattern[WIRE_MAX_MTU];

struct wire_packet dut_packet(const struct dut *dut, uint8_t opcode, uint32_t psn)
{
	(void)dut;
	return (struct wire_packet){ .opcode = opcode,
				     .migrated = true,
				     .pkey = WIRE_DEFAULT_PKEY,
				     .dest_qpn = DUT_QPN,
				     .psn = psn & WIRE_24BIT_MASK };
}

struct wire_packet dut_request(const struct dut *dut, uint8_t opcode, uint32_t psn,
			       uint32_t payload_length)
{
	struct wire_packet packet = dut_packet(dut, opcode, psn);

	dut_fill(pattern, sizeof(pattern), 0);
	packet.ack_request = true;
	packet.va = DUT_REMOTE_VA;
	packet.rkey = DUT_RKEY;
	packet.dma_length = payload_length;
	packet.immediate = 0xcafe0001;
	packet.payload = pattern;
	packet.payload_length = payload_length;
	return packet;
}

void dut_give(struct dut *dut, const struct wire_packet *packet)
{
	uint8_t header[WIRE_MAX_HEADER_BYTES];
	struct wire_packet on_wire = *packet, parsed;
	uint32_t pad = -packet->payload_length & 3;
	unsigned int length;
	uint8_t *bytes;

	on_wire.pad_count = (uint8_t)pad;
	length = wire_build_headers(&on_wire, header);
	/*
	 * Exactly as long as the packet, and freed afterwards, so that the sanitizer detects an
	 * overrun, and a pointer that the engine keeps.
	 */
	bytes = malloc(length + packet->payload_length + pad + WIRE_ICRC_BYTES);
	memcpy(bytes, header, length);
	if (packet->payload_length)
		memcpy(bytes + length, packet->payload, packet->payload_length);
	length += packet->payload_length;
	memset(bytes + length, 0, pad + WIRE_ICRC_BYTES);
	length += pad + WIRE_ICRC_BYTES;
	assert_int_equal(wire_parse(bytes, length, &parsed), WIRE_OK);
	parsed.congestion |= packet->congestion & WIRE_CE;
	eng_receive(dut->qp, &parsed, dut->now);
	memset(bytes, 0xdd, length);
	free(bytes);
}

void dut_give_request(struct dut *dut, uint8_t opcode, uint32_t psn, uint32_t payload_length)
{
	struct wire_packet packet = dut_request(dut, opcode, psn, payload_length);

	dut_give(dut, &packet);
}

void dut_give_read(struct dut *dut, uint32_t psn, uint32_t offset, uint32_t length)
{
	struct wire_packet packet = dut_request(dut, WIRE_READ_REQUEST, psn, 0);

	packet.va += offset;
	packet.dma_length = length;
	dut_give(dut, &packet);
}

void dut_give_atomic(struct dut *dut, uint8_t opcode, uint32_t psn, uint32_t offset,
		     uint64_t compare, uint64_t swap_add)
{
	struct wire_packet packet = dut_request(dut, opcode, psn, 0);

	packet.va += offset;
	packet.compare = compare;
	packet.swap_add = swap_add;
	dut_give(dut, &packet);
}

void dut_nak(struct dut *dut, uint32_t psn, uint8_t syndrome, uint32_t msn)
{
	struct wire_packet packet = dut_packet(dut, WIRE_ACKNOWLEDGE, psn);

	packet.syndrome = syndrome;
	packet.msn = msn & WIRE_24BIT_MASK;
	dut_give(dut, &packet);
}

void dut_ack(struct dut *dut, uint32_t psn, uint8_t credit_code, uint32_t msn)
{
	dut_nak(dut, psn, credit_code, msn);
}

void dut_give_response(struct dut *dut, uint8_t opcode, uint32_t psn, uint32_t msn,
		       const void *payload, uint32_t payload_length)
{
	struct wire_packet packet = dut_packet(dut, opcode, psn);

	packet.syndrome = NO_CREDITS_REPORTED;
	packet.msn = msn;
	if (opcode == WIRE_ATOMIC_ACKNOWLEDGE) {
		memcpy(&packet.original, payload, sizeof(packet.original));
	} else {
		packet.payload = payload;
		packet.payload_length = payload_length;
	}
	dut_give(dut, &packet);
}

const struct wire_packet *dut_expect_packet(struct dut *dut, uint8_t opcode, uint32_t psn,
					    const char *file, int line)
{
	const struct wire_packet *packet;

	dut_pull(dut);
	if (dut->sent_read == dut->sent_count) {
		print_error("expected %s PSN %06x, but nothing is sent (%s)\n",
			    wire_op_name(opcode), psn & WIRE_24BIT_MASK, eng_tx_name(dut->why));
		_fail(file, line);
	}
	packet = &dut->sent[dut->sent_read++].packet;
	if (packet->opcode != opcode || packet->psn != (psn & WIRE_24BIT_MASK)) {
		print_error("expected %s PSN %06x, but %s PSN %06x syndrome %02x is sent\n",
			    wire_op_name(opcode), psn & WIRE_24BIT_MASK,
			    wire_op_name(packet->opcode), packet->psn, packet->syndrome);
		_fail(file, line);
	}
	return packet;
}

void dut_expect_ack(struct dut *dut, uint32_t psn, uint8_t syndrome, uint32_t msn, const char *file,
		    int line)
{
	const struct wire_packet *packet;

	packet = dut_expect_packet(dut, WIRE_ACKNOWLEDGE, psn, file, line);
	if (packet->syndrome != syndrome || packet->msn != (msn & WIRE_24BIT_MASK)) {
		print_error("expected syndrome %02x MSN %06x, but got %02x %06x\n", syndrome,
			    msn & WIRE_24BIT_MASK, packet->syndrome, packet->msn);
		_fail(file, line);
	}
	_assert_true(packet->payload_length == 0 && !packet->ack_request, "a bare ACK", file, line);
}

void dut_expect_silence(struct dut *dut, const char *file, int line)
{
	dut_pull(dut);
	if (dut->sent_read != dut->sent_count) {
		const struct wire_packet *packet = &dut->sent[dut->sent_read].packet;

		print_error("expected silence, but %s PSN %06x syndrome %02x is sent\n",
			    wire_op_name(packet->opcode), packet->psn, packet->syndrome);
		_fail(file, line);
	}
}

const struct eng_wc *dut_expect_wc(struct dut *dut, uint64_t wr_id, enum eng_status status,
				   const char *file, int line)
{
	const struct eng_wc *wc;

	if (dut->wc_read == dut->wc_count) {
		print_error("expected completion of %llx, but there is none\n",
			    (unsigned long long)wr_id);
		_fail(file, line);
	}
	wc = &dut->wcs[dut->wc_read++];
	if (wc->wr_id != wr_id || wc->status != status) {
		print_error("expected %llx %s, but %llx %s is completed\n",
			    (unsigned long long)wr_id, eng_status_name(status),
			    (unsigned long long)wc->wr_id, eng_status_name(wc->status));
		_fail(file, line);
	}
	return wc;
}

void dut_expect_no_wc(struct dut *dut, const char *file, int line)
{
	if (dut->wc_read != dut->wc_count) {
		const struct eng_wc *wc = &dut->wcs[dut->wc_read];

		print_error("expected no completion, but %llx %s is completed\n",
			    (unsigned long long)wc->wr_id, eng_status_name(wc->status));
		_fail(file, line);
	}
}

void dut_expect_pattern(const uint8_t *bytes, uint64_t length, uint64_t position, const char *file,
			int line)
{
	for (uint64_t i = 0; i < length; i++) {
		if (bytes[i] != dut_pattern(position + i)) {
			print_error("byte %llu is %02x instead of %02x\n", (unsigned long long)i,
				    bytes[i], dut_pattern(position + i));
			_fail(file, line);
		}
	}
}
