/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "link/link.h"
#include "message.h"

/* These cross process borders: a hole would be a difference between compilers. */
_Static_assert(sizeof(struct uroce_abi_header) == 16, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_forward) == 56, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_pool) == 48, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_lane) == 40, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_gsi_hello) == 24, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_gsi_service) == 48, "padding in the host ABI");
_Static_assert(sizeof(struct uroce_abi_gsi_mad) == 48, "padding in the host ABI");

static enum link_message_error parse_forward(const uint8_t *head, size_t length,
					     struct uroce_abi_forward *out)
{
	struct uroce_abi_forward forward;

	if (length < sizeof(forward))
		return LINK_MESSAGE_SHORT;
	memcpy(&forward, head, sizeof(forward));
	if (forward.length == 0 || forward.length > LINK_MAX_BYTES ||
	    forward.length != length - sizeof(forward))
		return LINK_MESSAGE_LENGTH;
	*out = forward;
	return LINK_MESSAGE_OK;
}

static enum link_message_error parse_pool(const uint8_t *head, size_t length,
					  struct uroce_abi_pool *out)
{
	struct uroce_abi_pool pool;

	if (length < sizeof(pool))
		return LINK_MESSAGE_SHORT;
	if (length != sizeof(pool))
		return LINK_MESSAGE_LENGTH;
	memcpy(&pool, head, sizeof(pool));
	if (pool.slots == 0 || pool.slots > LINK_SLOTS)
		return LINK_MESSAGE_SLOTS;
	*out = pool;
	return LINK_MESSAGE_OK;
}

static enum link_message_error parse_lane(const uint8_t *head, size_t length,
					  struct uroce_abi_lane *out)
{
	struct uroce_abi_lane lane;

	if (length < sizeof(lane))
		return LINK_MESSAGE_SHORT;
	if (length != sizeof(lane))
		return LINK_MESSAGE_LENGTH;
	memcpy(&lane, head, sizeof(lane));
	if (lane.slot >= LINK_SLOTS)
		return LINK_MESSAGE_SLOTS;
	*out = lane;
	return LINK_MESSAGE_OK;
}

static enum link_message_error parse_hello(const uint8_t *head, size_t length,
					   struct uroce_abi_gsi_hello *out)
{
	struct uroce_abi_gsi_hello hello;

	if (length < sizeof(hello))
		return LINK_MESSAGE_SHORT;
	if (length != sizeof(hello))
		return LINK_MESSAGE_LENGTH;
	memcpy(&hello, head, sizeof(hello));
	if (hello.slot >= LINK_SLOTS)
		return LINK_MESSAGE_SLOTS;
	*out = hello;
	return LINK_MESSAGE_OK;
}

/* A head of so many bytes, with so many more behind it. */
static enum link_message_error parse_plain(const uint8_t *head, size_t length, size_t head_bytes,
					   size_t more, void *out)
{
	if (length < head_bytes)
		return LINK_MESSAGE_SHORT;
	if (length != head_bytes + more)
		return LINK_MESSAGE_LENGTH;
	memcpy(out, head, head_bytes);
	return LINK_MESSAGE_OK;
}

enum link_message_error link_message_parse(const uint8_t *head, size_t length,
					   struct link_message *message)
{
	struct uroce_abi_header header;
	enum link_message_error error;

	if (length < sizeof(header))
		return LINK_MESSAGE_SHORT;
	memcpy(&header, head, sizeof(header));
	memset(message, 0, sizeof(*message));
	if (header.version != UROCE_ABI_VERSION)
		return LINK_MESSAGE_VERSION;
	switch (header.message) {
	case UROCE_ABI_FORWARD:
		error = parse_forward(head, length, &message->forward);
		break;
	case UROCE_ABI_POOL_REQUEST:
	case UROCE_ABI_POOL_REPLY:
	case UROCE_ABI_POOL_UNKNOWN:
		error = parse_pool(head, length, &message->pool);
		break;
	case UROCE_ABI_LANE_REQUEST:
	case UROCE_ABI_LANE_REPLY:
	case UROCE_ABI_LANE_REFUSED:
		error = parse_lane(head, length, &message->lane);
		break;
	case UROCE_ABI_GSI_HELLO:
		error = parse_hello(head, length, &message->hello);
		break;
	case UROCE_ABI_GSI_LISTEN:
	case UROCE_ABI_GSI_UNLISTEN:
		error = parse_plain(head, length, sizeof(message->service), 0, &message->service);
		break;
	case UROCE_ABI_GSI_MAD:
		error = parse_plain(head, length, sizeof(message->mad), UROCE_ABI_MAD_BYTES,
				    &message->mad);
		break;
	case UROCE_ABI_LANE_BELL:
	case UROCE_ABI_STAT_REQUEST:
		error = length == sizeof(header) ? LINK_MESSAGE_OK : LINK_MESSAGE_LENGTH;
		break;
	default:
		return LINK_MESSAGE_KIND;
	}
	if (error == LINK_MESSAGE_OK)
		message->kind = (enum uroce_abi_message)header.message;
	return error;
}
