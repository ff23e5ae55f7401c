/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The parser of the messages between uroce-broker and its clients: any bytes give an error, or a
 * message that would be sent with the same bytes and whose fields are within their limits.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The source and not its library: fuzz programs link the pure layers only, and this file is pure.
 */
#include "broker/message.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void check_slots(const union broker_message *message)
{
	switch (message->header.type) {
	case UROCE_BROKER_HELLO:
		require(message->hello.slots <= UROCE_BROKER_CLIENT_SLOTS);
		for (uint32_t i = 0; i < message->hello.slots; i++)
			require(message->hello.slot[i] < UROCE_BROKER_SLOTS);
		break;
	case UROCE_BROKER_LOOKUP:
		require(message->lookup.slot < UROCE_BROKER_SLOTS);
		break;
	case UROCE_BROKER_CONNECT:
		require(message->connect.slot < UROCE_BROKER_SLOTS);
		break;
	case UROCE_BROKER_LIST_REPLY:
		require(message->list.clients <= UROCE_BROKER_LISTED);
		break;
	case UROCE_BROKER_PORT:
		require(message->ports.ports > 0 && message->ports.ports <= UROCE_BROKER_PORTS);
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size, so that the sanitizer detects reads beyond it. */
	uint8_t *bytes = malloc(size ? size : 1);
	union broker_message message;
	size_t length, payload = 0;

	if (!bytes)
		return 0;
	if (size)
		memcpy(bytes, data, size);
	if (broker_message_parse(bytes, size, &message) == BROKER_MESSAGE_OK) {
		length = broker_message_bytes(&message);
		if (message.header.type == UROCE_BROKER_DATAGRAM)
			payload = message.datagram.bytes;
		require(length + payload == size);
		require(memcmp(&message, data, length) == 0);
		require(broker_message_descriptor_count(&message) <= BROKER_DESCRIPTORS_MAX);
		check_slots(&message);
	}
	free(bytes);
	return 0;
}
