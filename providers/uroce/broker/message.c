/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "message.h"

#include <stdbool.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>

/* Padding would differ between compilers and architectures. */
_Static_assert(sizeof(struct uroce_broker_header) == 16, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_hello) == 280, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_welcome) == 32, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_slot) == 24, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_address) == 48, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_switch) == 24, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_ports) == 2584, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_lookup) == 48, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_connect) == 24, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_list) == 536, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_probed) == 48, "padding in a message");
_Static_assert(sizeof(struct uroce_broker_datagram) == 72, "padding in a message");

/* Array at the end of a message: the count field has the number of entries that are sent. */
struct trailing_array {
	size_t entries; /* offset of the first entry; 0: no array */
	size_t entry;	/* size of an entry in bytes */
	size_t count;	/* offset of the count field */
	uint32_t limit;
};

struct format {
	size_t bytes; /* size of the whole structure; 0: the type does not exist */
	struct trailing_array array;
	bool is_reply;	    /* the error field may be set */
	size_t reserved[2]; /* offsets of __u32 fields that must be 0; 0: none */
	/* Returns true if the values of the fields are valid.  NULL: all values are valid. */
	bool (*check)(const union broker_message *message);
};

static bool is_slot(uint32_t slot)
{
	return slot < UROCE_BROKER_SLOTS;
}

static bool has_failed(const union broker_message *message)
{
	return message->header.error != 0;
}

static bool is_duplicate_slot(const struct uroce_broker_hello *hello, uint32_t i)
{
	for (uint32_t j = 0; j < i; j++)
		if (hello->slot[j] == hello->slot[i])
			return true;
	return false;
}

static bool check_hello(const union broker_message *message)
{
	const struct uroce_broker_hello *hello = &message->hello;

	for (uint32_t i = 0; i < hello->slots; i++)
		if (!is_slot(hello->slot[i]) || is_duplicate_slot(hello, i))
			return false;
	if (hello->role == UROCE_BROKER_RETURNING)
		return hello->slots > 0;
	return hello->slots == 0 &&
	       (hello->role == UROCE_BROKER_WORKER || hello->role == UROCE_BROKER_GUEST);
}

static bool check_welcome(const union broker_message *message)
{
	const struct uroce_broker_welcome *welcome = &message->welcome;

	if (has_failed(message))
		return true;
	if (welcome->role == UROCE_BROKER_GUEST)
		return welcome->slot == UROCE_BROKER_NO_SLOT;
	return is_slot(welcome->slot) &&
	       (welcome->role == UROCE_BROKER_WORKER || welcome->role == UROCE_BROKER_RETURNING);
}

static bool check_slot(const union broker_message *message)
{
	return message->slot.slot == UROCE_BROKER_NO_SLOT;
}

static bool check_slot_reply(const union broker_message *message)
{
	return has_failed(message) || is_slot(message->slot.slot);
}

static bool check_address(const union broker_message *message)
{
	const uint32_t known = UROCE_BROKER_CLAIM | UROCE_BROKER_UNSTEERED;

	return !(message->address.flags & ~known) &&
	       message->address.flags != UROCE_BROKER_UNSTEERED;
}

static bool check_address_reply(const union broker_message *message)
{
	const uint32_t known = UROCE_BROKER_CLAIM | UROCE_BROKER_UNSTEERED;

	return !(message->address.flags & ~known);
}

static bool check_address_end(const union broker_message *message)
{
	return message->address.flags == 0;
}

static bool check_gsi(const union broker_message *message)
{
	const uint32_t flags = message->on_off.flags;

	return flags == 0 || flags == UROCE_BROKER_ON ||
	       flags == (UROCE_BROKER_ON | UROCE_BROKER_MESSAGES);
}

static bool check_watch(const union broker_message *message)
{
	return message->on_off.flags <= UROCE_BROKER_ON;
}

static bool is_port_space(uint32_t space)
{
	return space == RDMA_PS_IPOIB || space == RDMA_PS_TCP || space == RDMA_PS_UDP ||
	       space == RDMA_PS_IB;
}

static bool check_ports(const union broker_message *message)
{
	const struct uroce_broker_ports *ports = &message->ports;
	const uint32_t fresh = UROCE_BROKER_PORT_REUSE | UROCE_BROKER_PORT_AF_ONLY;
	const uint32_t returning = fresh | UROCE_BROKER_PORT_RETURNING |
				   UROCE_BROKER_PORT_LISTENING | UROCE_BROKER_PORT_CHOSEN;

	for (uint32_t i = 0; i < ports->ports; i++) {
		const struct uroce_broker_port *port = &ports->port[i];

		if (!is_port_space(port->space) || port->reserved || port->endpoint.reserved)
			return false;
		if (port->flags & UROCE_BROKER_PORT_RETURNING) {
			if (!port->port || (port->flags & ~returning))
				return false;
		} else if (ports->ports > 1 || (port->flags & ~fresh)) {
			return false;
		}
	}
	return ports->ports > 0;
}

/* Checks a message about one port that is bound already. */
static bool check_one_port(const union broker_message *message)
{
	return message->ports.ports == 1 && message->ports.port[0].port &&
	       !(message->ports.port[0].flags & UROCE_BROKER_PORT_RETURNING) &&
	       check_ports(message);
}

static bool check_lookup(const union broker_message *message)
{
	return is_slot(message->lookup.slot);
}

static bool is_purpose(uint32_t purpose)
{
	return purpose == UROCE_BROKER_SHARED_MEMORY || purpose == UROCE_BROKER_STATISTICS;
}

static bool check_connect(const union broker_message *message)
{
	return is_slot(message->connect.slot) && is_purpose(message->connect.purpose);
}

static bool check_connection(const union broker_message *message)
{
	const struct uroce_broker_connect *connection = &message->connect;

	return (is_slot(connection->slot) || connection->slot == UROCE_BROKER_NO_SLOT) &&
	       is_purpose(connection->purpose);
}

static bool check_list(const union broker_message *message)
{
	return is_slot(message->list.first) && message->list.clients == 0;
}

static bool check_list_reply(const union broker_message *message)
{
	const struct uroce_broker_list *list = &message->list;

	for (uint32_t i = 0; i < list->clients; i++)
		if (!is_slot(list->client[i].slot) ||
		    (i && list->client[i].slot <= list->client[i - 1].slot))
			return false;
	return true;
}

static bool check_probed(const union broker_message *message)
{
	return message->probed.index < UINT16_MAX;
}

static bool check_datagram(const union broker_message *message)
{
	const struct uroce_broker_datagram *datagram = &message->datagram;

	return datagram->bytes <= BROKER_DATAGRAM_MAX && datagram->reason > 0 &&
	       datagram->reason <= UROCE_BROKER_MAD_NONE;
}

#define ARRAY(type, member, counter, most)                               \
	{                                                                \
		.entries = offsetof(struct type, member),                \
		.entry = sizeof(((struct type *)0)->member[0]),          \
		.count = offsetof(struct type, counter), .limit = (most) \
	}
#define SLOTS ARRAY(uroce_broker_hello, slot, slots, UROCE_BROKER_CLIENT_SLOTS)
#define PORTS ARRAY(uroce_broker_ports, port, ports, UROCE_BROKER_PORTS)
#define CLIENTS ARRAY(uroce_broker_list, client, clients, UROCE_BROKER_LISTED)

#define BYTES(type) .bytes = sizeof(struct uroce_broker_##type)
#define REPLY(type) BYTES(type), .is_reply = true
#define ZERO(type, member) offsetof(struct uroce_broker_##type, member)
#define ZERO_SLOT .reserved = { ZERO(slot, reserved) }
#define ZERO_ADDRESS .reserved = { ZERO(address, endpoint.reserved), ZERO(address, reserved) }
#define ZERO_SWITCH .reserved = { ZERO(switch, reserved) }
#define ZERO_PORTS .reserved = { ZERO(ports, reserved) }
#define ZERO_LOOKUP .reserved = { ZERO(lookup, endpoint.reserved), ZERO(lookup, reserved) }
#define ZERO_PROBED .reserved = { ZERO(probed, endpoint.reserved) }
#define ZERO_DATAGRAM \
	.reserved = { ZERO(datagram, source.reserved), ZERO(datagram, destination.reserved) }

static const struct format formats[] = {
	[UROCE_BROKER_HELLO] = { BYTES(hello), .array = SLOTS, .check = check_hello },
	[UROCE_BROKER_WELCOME] = { REPLY(welcome), .check = check_welcome,
				   .reserved = { ZERO(welcome, reserved) } },
	[UROCE_BROKER_SLOT] = { BYTES(slot), .check = check_slot, ZERO_SLOT },
	[UROCE_BROKER_SLOT_REPLY] = { REPLY(slot), .check = check_slot_reply, ZERO_SLOT },
	[UROCE_BROKER_ADDRESS] = { BYTES(address), .check = check_address, ZERO_ADDRESS },
	[UROCE_BROKER_ADDRESS_REPLY] = { REPLY(address), .check = check_address_reply,
					 ZERO_ADDRESS },
	[UROCE_BROKER_GSI] = { BYTES(switch), .check = check_gsi, ZERO_SWITCH },
	[UROCE_BROKER_GSI_REPLY] = { REPLY(switch), .check = check_gsi, ZERO_SWITCH },
	[UROCE_BROKER_PORT] = { BYTES(ports), .array = PORTS, .check = check_ports, ZERO_PORTS },
	[UROCE_BROKER_PORT_LISTEN] = { BYTES(ports), .array = PORTS, .check = check_one_port,
				       ZERO_PORTS },
	[UROCE_BROKER_PORT_REPLY] = { REPLY(ports), .array = PORTS, .check = check_ports,
				      ZERO_PORTS },
	[UROCE_BROKER_LOOKUP] = { BYTES(lookup), .check = check_lookup, ZERO_LOOKUP },
	[UROCE_BROKER_LOOKUP_REPLY] = { REPLY(lookup), .check = check_lookup, ZERO_LOOKUP },
	[UROCE_BROKER_CONNECT] = { BYTES(connect), .check = check_connect },
	[UROCE_BROKER_CONNECT_REPLY] = { REPLY(connect), .check = check_connect },
	[UROCE_BROKER_LIST] = { BYTES(list), .array = CLIENTS, .check = check_list },
	[UROCE_BROKER_LIST_REPLY] = { REPLY(list), .array = CLIENTS, .check = check_list_reply },
	[UROCE_BROKER_PING] = { BYTES(header) },
	[UROCE_BROKER_PONG] = { BYTES(header) },
	[UROCE_BROKER_ADDRESS_END] = { BYTES(address), .check = check_address_end, ZERO_ADDRESS },
	[UROCE_BROKER_PORT_END] = { BYTES(ports), .array = PORTS, .check = check_one_port,
				    ZERO_PORTS },
	[UROCE_BROKER_PROBED] = { BYTES(probed), .check = check_probed, ZERO_PROBED },
	[UROCE_BROKER_SUPERSEDE] = { BYTES(header) },
	[UROCE_BROKER_DATAGRAM] = { BYTES(datagram), .check = check_datagram, ZERO_DATAGRAM },
	[UROCE_BROKER_CONNECTION] = { BYTES(connect), .check = check_connection },
	[UROCE_BROKER_WATCH] = { BYTES(switch), .check = check_watch, ZERO_SWITCH },
};

static bool has_nonzero_reserved(const struct format *format, const union broker_message *message)
{
	for (size_t i = 0; i < sizeof(format->reserved) / sizeof(format->reserved[0]); i++) {
		uint32_t value = 0;

		if (format->reserved[i])
			memcpy(&value, (const uint8_t *)message + format->reserved[i],
			       sizeof(value));
		if (value)
			return true;
	}
	return false;
}

static const struct format *find_format(uint32_t type)
{
	if (type >= sizeof(formats) / sizeof(formats[0]) || !formats[type].bytes)
		return NULL;
	return &formats[type];
}

/* Returns the size of the message without the entries of its array. */
static size_t size_without_array(const struct format *format)
{
	return format->array.entries ? format->array.entries : format->bytes;
}

static uint32_t read_array_count(const struct format *format, const void *message)
{
	uint32_t count;

	if (!format->array.entries)
		return 0;
	memcpy(&count, (const uint8_t *)message + format->array.count, sizeof(count));
	return count;
}

/* Returns the length that type and count require, or 0 if the count is invalid. */
static size_t expected_length(const struct format *format, const uint8_t *bytes)
{
	uint32_t count = read_array_count(format, bytes);
	struct uroce_broker_datagram datagram;

	if (format == &formats[UROCE_BROKER_DATAGRAM]) {
		memcpy(&datagram, bytes, sizeof(datagram));
		return sizeof(datagram) + datagram.bytes;
	}
	if (count > format->array.limit)
		return 0;
	return size_without_array(format) + count * format->array.entry;
}

enum broker_message_error broker_message_parse(const uint8_t *bytes, size_t length,
					       union broker_message *message)
{
	struct uroce_broker_header header;
	union broker_message parsed = { 0 };
	const struct format *format;

	if (length < sizeof(header))
		return BROKER_MESSAGE_SHORT;
	memcpy(&header, bytes, sizeof(header));
	if (header.version != UROCE_BROKER_VERSION)
		return BROKER_MESSAGE_VERSION;
	format = find_format(header.type);
	if (!format)
		return BROKER_MESSAGE_TYPE;
	if (length < size_without_array(format))
		return BROKER_MESSAGE_SHORT;
	if (length != expected_length(format, bytes))
		return BROKER_MESSAGE_LENGTH;
	memcpy(&parsed, bytes, length < format->bytes ? length : format->bytes);
	if (header.error > 0 || (header.error && !format->is_reply))
		return BROKER_MESSAGE_VALUE;
	if (has_nonzero_reserved(format, &parsed) || (format->check && !format->check(&parsed)))
		return BROKER_MESSAGE_VALUE;
	*message = parsed;
	return BROKER_MESSAGE_OK;
}

void broker_message_init(union broker_message *message, enum uroce_broker_type type,
			 uint32_t number)
{
	memset(message, 0, sizeof(*message));
	message->header.type = type;
	message->header.version = UROCE_BROKER_VERSION;
	message->header.number = number;
}

enum uroce_broker_type broker_message_reply_type(enum uroce_broker_type request)
{
	return request == UROCE_BROKER_PORT ? UROCE_BROKER_PORT_REPLY : request + 1;
}

size_t broker_message_bytes(const union broker_message *message)
{
	const struct format *format = find_format(message->header.type);

	if (!format)
		return 0;
	return size_without_array(format) + read_array_count(format, message) * format->array.entry;
}

unsigned int broker_message_descriptor_count(const union broker_message *message)
{
	if (message->header.error)
		return 0;
	switch (message->header.type) {
	case UROCE_BROKER_WELCOME:
		return message->welcome.role == UROCE_BROKER_WORKER	 ? 2
		       : message->welcome.role == UROCE_BROKER_RETURNING ? 1
									 : 0;
	case UROCE_BROKER_ADDRESS:
		return message->address.flags & UROCE_BROKER_CLAIM ? 1 : 0;
	case UROCE_BROKER_ADDRESS_REPLY:
		return message->address.flags & UROCE_BROKER_CLAIM ? 0 : 1;
	case UROCE_BROKER_GSI:
		return message->on_off.flags & UROCE_BROKER_MESSAGES ? 1 : 0;
	case UROCE_BROKER_SLOT_REPLY:
	case UROCE_BROKER_LOOKUP_REPLY:
	case UROCE_BROKER_CONNECT_REPLY:
	case UROCE_BROKER_CONNECTION:
		return 1;
	default:
		return 0;
	}
}
