// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <endian.h>
#include <string.h>

#include "header.h"

_Static_assert(HEADER_BYTES == 32, "the header has no holes");

void header_put(struct flow_header *header, const struct flow_message *message, uint64_t update)
{
	*header = (struct flow_header){ .magic = htobe32(HEADER_MAGIC),
					.kind = (uint8_t)message->kind,
					.flags = message->news.flags,
					.count = htobe16(message->news.count),
					.number = htobe32(message->news.number),
					.limit = htobe32(message->news.limit),
					.ready_ns = htobe64(message->ready_ns),
					.update = htobe64(update) };
}

bool header_get(const struct flow_header *header, struct flow_message *message)
{
	if (be32toh(header->magic) != HEADER_MAGIC || header->kind >= FLOW_KINDS)
		return false;
	message->kind = (enum flow_kind)header->kind;
	message->news.flags = header->flags;
	message->news.count = be16toh(header->count);
	message->news.number = be32toh(header->number);
	message->news.limit = be32toh(header->limit);
	message->ready_ns = be64toh(header->ready_ns);
	return true;
}
