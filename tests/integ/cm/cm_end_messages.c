/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The messages of cm_end: each byte depends on the message, the end that sends it, and the offset.
 */
#include <stdlib.h>
#include <string.h>

#include "cm_end.h"

enum { BYTES = 4096 };

struct header {
	uint32_t from, number, sequence, length;
	uint32_t last; /* the sender disconnects when this message has been returned */
};

struct buffers {
	uint8_t in[BYTES], out[BYTES];
};

static struct buffers *buffers;
static struct ibv_mr *mr;

bool messages_prepare(unsigned int connections)
{
	buffers = calloc(connections, sizeof(*buffers));
	mr = buffers ? ibv_reg_mr(pd, buffers, connections * sizeof(*buffers),
				  IBV_ACCESS_LOCAL_WRITE)
		     : NULL;
	return mr;
}

static uint8_t byte_of(const struct header *header, uint32_t at)
{
	uint32_t mix = (header->number * 31 + header->sequence) * 31 + header->from + at;

	return (uint8_t)(mix ^ mix >> 8);
}

static void fill(uint8_t *bytes, const struct header *header, uint8_t change)
{
	memcpy(bytes, header, sizeof(*header));
	for (uint32_t i = sizeof(*header); i < header->length; i++)
		bytes[i] = byte_of(header, i) ^ change;
}

static bool is_filled(const uint8_t *bytes, const struct header *header, uint8_t change)
{
	if (memcmp(bytes, header, sizeof(*header)) != 0)
		return false;
	for (uint32_t i = sizeof(*header); i < header->length; i++)
		if (bytes[i] != (uint8_t)(byte_of(header, i) ^ change))
			return false;
	return true;
}

static uint64_t work_id(const struct connection *c, bool send)
{
	return (uint64_t)c->generation << 32 | (uint64_t)c->place << 1 | send;
}

void post_receive(struct connection *c)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffers[c->place].in,
			       .length = BYTES,
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = work_id(c, false), .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(c->id->qp, &wr, &bad))
		complain(c, "ibv_post_recv");
}

static void post_send(struct connection *c, const struct header *header, uint8_t change)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffers[c->place].out,
			       .length = header->length,
			       .lkey = mr->lkey };
	struct ibv_send_wr wr = { .wr_id = work_id(c, true),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	fill(buffers[c->place].out, header, change);
	c->sending = true;
	if (ibv_post_send(c->id->qp, &wr, &bad))
		complain(c, "ibv_post_send");
}

static struct header sent_header(const struct connection *c)
{
	struct header header;

	memcpy(&header, buffers[c->place].out, sizeof(header));
	return header;
}

void ask(struct connection *c)
{
	struct header header = {
		.from = self,
		.number = c->number,
		.sequence = ++c->sequence,
		.length = (uint32_t)sizeof(header) + draw(BYTES - sizeof(header) + 1),
		.last = c->sequence >= c->messages,
	};

	c->said_last = header.last;
	c->awaiting = true;
	c->since = now_ns();
	post_send(c, &header, 0);
}

void hear_answer(struct connection *c, uint32_t length)
{
	struct header header = sent_header(c);

	if (!c->awaiting || length != header.length ||
	    !is_filled(buffers[c->place].in, &header, 0xff))
		complain(c, "another message has come back than was sent");
	c->awaiting = false;
	c->since = now_ns();
	c->pause_until = in_a_row ? 0 : c->since + draw(PAUSE_MS) * UINT64_C(1000000);
	c->answers++;
	post_receive(c);
}

void give_back(struct connection *c)
{
	struct header header;

	memcpy(&header, buffers[c->place].in, sizeof(header));
	if (header.from != c->peer || header.number != c->number ||
	    header.sequence != ++c->sequence || header.length > BYTES || c->said_last ||
	    !is_filled(buffers[c->place].in, &header, 0))
		complain(c, "a message is not what was sent");
	c->said_last = header.last;
	c->awaiting = false;
	post_receive(c);
	post_send(c, &header, 0xff);
}
