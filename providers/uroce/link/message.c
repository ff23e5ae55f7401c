/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "link/link.h"
#include "message.h"

/* These cross process borders: a hole would be a difference between compilers. */
_Static_assert(sizeof(struct uroce_abi_header) == 16, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_forward) == 56, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_pool) == 48, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_shm) == 40, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_gsi_hello) == 24, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_gsi_service) == 48, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_gsi_mad) == 48, "padding in the host ABI");

/* What follows the head has the length that the head tells. */
#define TOLD SIZE_MAX

/* What every message of a kind is like. */
struct format {
	size_t head; /* bytes, those of the header included; 0: no such kind */
	size_t body; /* bytes behind the head, or TOLD */
	/* Numbers that could not be right; NULL: it has none. */
	enum link_message_error (*check)(const struct link_message *message, size_t body);
};

static enum link_message_error check_forward(const struct link_message *message, size_t body)
{
	size_t told = message->forward.length;

	return told == 0 || told > LINK_MAX_BYTES || told != body ? LINK_MESSAGE_LENGTH
								  : LINK_MESSAGE_OK;
}

static enum link_message_error check_pool(const struct link_message *message, size_t body)
{
	(void)body;
	return message->pool.slots == 0 || message->pool.slots > LINK_SLOTS ? LINK_MESSAGE_SLOTS
									    : LINK_MESSAGE_OK;
}

static enum link_message_error check_channel(const struct link_message *message, size_t body)
{
	(void)body;
	return message->channel.slot >= LINK_SLOTS ? LINK_MESSAGE_SLOTS : LINK_MESSAGE_OK;
}

static enum link_message_error check_hello(const struct link_message *message, size_t body)
{
	(void)body;
	return message->hello.slot >= LINK_SLOTS ? LINK_MESSAGE_SLOTS : LINK_MESSAGE_OK;
}

static const struct format formats[] = {
	[UROCE_ABI_FORWARD] = { sizeof(struct uroce_abi_forward), TOLD, check_forward },
	[UROCE_ABI_POOL_REQUEST] = { sizeof(struct uroce_abi_pool), 0, check_pool },
	[UROCE_ABI_POOL_REPLY] = { sizeof(struct uroce_abi_pool), 0, check_pool },
	[UROCE_ABI_POOL_UNKNOWN] = { sizeof(struct uroce_abi_pool), 0, check_pool },
	[UROCE_ABI_STAT_REQUEST] = { sizeof(struct uroce_abi_header), 0, NULL },
	[UROCE_ABI_SHM_REQUEST] = { sizeof(struct uroce_abi_shm), 0, check_channel },
	[UROCE_ABI_SHM_REPLY] = { sizeof(struct uroce_abi_shm), 0, check_channel },
	[UROCE_ABI_SHM_REFUSED] = { sizeof(struct uroce_abi_shm), 0, check_channel },
	[UROCE_ABI_SHM_DOORBELL] = { sizeof(struct uroce_abi_header), 0, NULL },
	[UROCE_ABI_GSI_HELLO] = { sizeof(struct uroce_abi_gsi_hello), 0, check_hello },
	[UROCE_ABI_GSI_LISTEN] = { sizeof(struct uroce_abi_gsi_service), 0, NULL },
	[UROCE_ABI_GSI_UNLISTEN] = { sizeof(struct uroce_abi_gsi_service), 0, NULL },
	[UROCE_ABI_GSI_MAD] = { sizeof(struct uroce_abi_gsi_mad), UROCE_ABI_MAD_BYTES, NULL },
	[UROCE_ABI_GSI_BELL] = { sizeof(struct uroce_abi_header), 0, NULL },
	[UROCE_ABI_GSI_ASK] = { sizeof(struct uroce_abi_header), 0, NULL },
	[UROCE_ABI_GSI_HERE] = { sizeof(struct uroce_abi_header), 0, NULL },
};

static const struct format *format_of(uint32_t kind)
{
	if (kind >= sizeof(formats) / sizeof(formats[0]) || !formats[kind].head)
		return NULL;
	return &formats[kind];
}

enum link_message_error link_message_parse(const uint8_t *head, size_t length,
					   struct link_message *message)
{
	struct uroce_abi_header header;
	struct link_message found = { 0 };
	const struct format *format;
	enum link_message_error error = LINK_MESSAGE_OK;

	if (length < sizeof(header))
		return LINK_MESSAGE_SHORT;
	memcpy(&header, head, sizeof(header));
	if (header.version != UROCE_ABI_VERSION)
		return LINK_MESSAGE_VERSION;
	format = format_of(header.message);
	if (!format)
		return LINK_MESSAGE_KIND;
	if (length < format->head)
		return LINK_MESSAGE_SHORT;
	if (format->body != TOLD && length != format->head + format->body)
		return LINK_MESSAGE_LENGTH;
	memcpy(found.head, head, format->head);
	if (format->check)
		error = format->check(&found, length - format->head);
	if (error)
		return error;
	found.kind = (enum uroce_abi_message)header.message;
	*message = found;
	return LINK_MESSAGE_OK;
}
