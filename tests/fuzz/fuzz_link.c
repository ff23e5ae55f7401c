/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The parser of the messages between processes: any bytes, of which it may read no more than the
 * longest header, give an error or a message that keeps every promise of message.h.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The source and not its library: fuzz programs link the pure layers only, and this file is pure.
 */
#include "link/message.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static void check_good(const uint8_t *data, size_t size, const struct link_message *message)
{
	const uint32_t version = UROCE_ABI_VERSION;
	uint32_t kind;

	memcpy(&kind, data, sizeof(kind));
	require(message->kind == kind);
	if (message->kind == UROCE_ABI_FORWARD) {
		require(message->forward.length > 0 && message->forward.length <= LINK_MAX_BYTES);
		require(message->forward.length + sizeof(message->forward) == size);
		require(memcmp(&message->forward, data, sizeof(message->forward)) == 0);
	} else if (kind == UROCE_ABI_SHM_REQUEST || kind == UROCE_ABI_SHM_REPLY ||
		   kind == UROCE_ABI_SHM_REFUSED) {
		require(message->channel.slot < LINK_SLOTS);
		require(size == sizeof(message->channel));
		require(memcmp(&message->channel, data, sizeof(message->channel)) == 0);
	} else if (kind == UROCE_ABI_GSI_HELLO) {
		require(message->hello.slot < LINK_SLOTS);
		require(size == sizeof(message->hello));
		require(memcmp(&message->hello, data, sizeof(message->hello)) == 0);
	} else if (kind == UROCE_ABI_GSI_LISTEN || kind == UROCE_ABI_GSI_UNLISTEN) {
		require(size == sizeof(message->service));
		require(memcmp(&message->service, data, sizeof(message->service)) == 0);
	} else if (kind == UROCE_ABI_GSI_MAD) {
		require(size == sizeof(message->mad) + UROCE_ABI_MAD_BYTES);
		require(memcmp(&message->mad, data, sizeof(message->mad)) == 0);
	} else if (kind == UROCE_ABI_SHM_DOORBELL || kind == UROCE_ABI_STAT_REQUEST ||
		   kind == UROCE_ABI_GSI_BELL || kind == UROCE_ABI_GSI_ASK ||
		   kind == UROCE_ABI_GSI_HERE) {
		require(size == sizeof(struct uroce_abi_header));
		require(memcmp(data + sizeof(kind), &version, sizeof(version)) == 0);
	} else {
		require(kind == UROCE_ABI_POOL_REQUEST || kind == UROCE_ABI_POOL_REPLY ||
			kind == UROCE_ABI_POOL_UNKNOWN);
		require(message->pool.header.version == UROCE_ABI_VERSION);
		require(message->pool.slots > 0 && message->pool.slots <= LINK_SLOTS);
		require(size == sizeof(message->pool));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t readable = size;
	struct link_message message;
	uint8_t *head;

	if (readable > sizeof(struct uroce_abi_forward))
		readable = sizeof(struct uroce_abi_forward);
	/* A copy of just that, so that the sanitizer sees any byte read beyond it. */
	head = malloc(readable ? readable : 1);
	if (!head)
		return 0;
	if (readable)
		memcpy(head, data, readable);
	if (link_message_parse(head, size, &message) == LINK_MESSAGE_OK)
		check_good(data, size, &message);
	free(head);
	return 0;
}
