// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Data path of one endpoint: headers, receives, messages and updates by RDMA WRITE. */
#include <arpa/inet.h>
#include <endian.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "device.h"

_Static_assert(HEADER_BYTES == 32, "the header has no holes");

static void header_encode(struct flow_header *header, const struct flow_message *message,
			  uint64_t update)
{
	*header = (struct flow_header){ .magic = htobe32(HEADER_MAGIC),
					.kind = (uint8_t)message->kind,
					.flags = message->update.flags,
					.count = htobe16(message->update.count),
					.number = htobe32(message->update.number),
					.limit = htobe32(message->update.limit),
					.ready_ns = htobe64(message->ready_ns),
					.update = htobe64(update) };
}

/* Returns false if the magic or the kind is wrong. */
static bool header_decode(const struct flow_header *header, struct flow_message *message)
{
	if (be32toh(header->magic) != HEADER_MAGIC || header->kind >= FLOW_KINDS)
		return false;
	message->kind = (enum flow_kind)header->kind;
	message->update.flags = header->flags;
	message->update.count = be16toh(header->count);
	message->update.number = be32toh(header->number);
	message->update.limit = be32toh(header->limit);
	message->ready_ns = be64toh(header->ready_ns);
	return true;
}

/* Returns the link whose stack holds the receive buffers: the first one with an SRQ. */
static struct device_link *buffer_owner(struct device *device, uint32_t link)
{
	return &device->link[device->shared ? 0 : link];
}

static uint8_t *receive_buffer(struct device *device, uint32_t index)
{
	return device->receive_buffers + (size_t)index * device->bytes;
}

int device_post_receives(struct device *device, uint32_t link, uint32_t count)
{
	struct device_link *l = buffer_owner(device, link);

	while (count--) {
		uint32_t index = l->free_buffers[--l->free_count];
		struct ibv_sge sge = { .addr = (uintptr_t)receive_buffer(device, index),
				       .length = device->bytes,
				       .lkey = device->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = WR_RECEIVE | index,
					  .sg_list = &sge,
					  .num_sge = 1 },
				   *bad;
		int error = device->srq ? ibv_post_srq_recv(device->srq, &wr, &bad)
					: ibv_post_recv(l->qp, &wr, &bad);

		if (error) {
			snprintf(device->error, sizeof(device->error), "posting a receive: %s",
				 strerror(error));
			return -1;
		}
	}
	return 0;
}

static const enum ibv_wr_opcode opcodes[FLOW_OPS] = {
	[OP_SEND] = IBV_WR_SEND,
	[OP_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	[OP_WRITE] = IBV_WR_RDMA_WRITE,
	[OP_READ] = IBV_WR_RDMA_READ,
};

/* Returns the peer's address for a WRITE or READ. */
static uint64_t remote_address(struct device_link *l, const struct flow_message *m)
{
	if (m->op == OP_WRITE_IMM)
		return l->peer.slots + (uint64_t)(l->slot % DEVICE_SLOTS) * m->bytes;
	if (m->op == OP_WRITE && m->kind == FLOW_CONTROL)
		return l->peer.window + offsetof(struct device_window, update);
	return l->peer.window + offsetof(struct device_window, scratch);
}

int device_post(struct device *device, const struct flow_message *m)
{
	struct device_link *l = &device->link[m->link];
	uint8_t *buffer = l->send_buffers + (size_t)(l->sq_in++ % ENDPOINT_SQ) * device->bytes;
	bool update = m->kind == FLOW_CONTROL && m->op == OP_WRITE;
	struct ibv_sge sge = { .addr = (uintptr_t)buffer,
			       .length = at_least(HEADER_BYTES, m->bytes),
			       .lkey = device->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = m->link,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcodes[m->op] },
			   *bad;
	int error;

	if (update)
		l->updates_out++;
	if (m->op != OP_READ) {
		struct flow_header header;

		header_encode(&header, m, update ? l->updates_out : 0);
		memcpy(buffer, &header, sizeof(header));
	}
	wr.wr.rdma.remote_addr = remote_address(l, m);
	wr.wr.rdma.rkey = l->peer.rkey;
	if (m->op == OP_WRITE_IMM)
		wr.imm_data = htonl(l->slot++ % DEVICE_SLOTS);
	error = ibv_post_send(l->qp, &wr, &bad);
	if (error)
		snprintf(device->error, sizeof(device->error), "posting a message: %s",
			 strerror(error));
	return error ? -1 : 0;
}

static uint32_t find_link(const struct device *device, uint32_t qpn)
{
	uint32_t link = 0;

	while (link < device->links && device->link[link].qp->qp_num != qpn)
		link++;
	return link;
}

bool device_read_message(struct device *device, const struct ibv_wc *wc, struct flow_message *m)
{
	uint32_t index = (uint32_t)wc->wr_id, link = find_link(device, wc->qp_num);
	struct device_link *l;
	struct flow_header header;

	*m = (struct flow_message){ .op = OP_SEND, .link = link };
	if (link == device->links)
		return false;
	l = buffer_owner(device, link);
	l->free_buffers[l->free_count++] = index;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		uint32_t slot = ntohl(wc->imm_data) % DEVICE_SLOTS;

		m->op = OP_WRITE_IMM;
		memcpy(&header, device->link[link].slots + (size_t)slot * device->bytes,
		       sizeof(header));
	} else {
		memcpy(&header, receive_buffer(device, index), sizeof(header));
	}
	return header_decode(&header, m);
}

bool device_poll_update(struct device *device, uint32_t link, struct flow_message *m)
{
	struct device_link *l = &device->link[link];
	volatile struct flow_header *update = &l->window->update;
	struct flow_header header;
	uint64_t number = be64toh(update->update);

	if (number == l->update_seen)
		return false;
	/* The device may be writing the next update: accept it if two reads agree. */
	header = l->window->update;
	atomic_thread_fence(memory_order_acquire);
	if (be64toh(update->update) != be64toh(header.update) ||
	    be32toh(update->limit) != be32toh(header.limit))
		return false;
	l->update_seen = be64toh(header.update);
	*m = (struct flow_message){ .op = OP_WRITE, .link = link };
	return header_decode(&header, m);
}
