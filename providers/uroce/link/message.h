/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The control messages of <rdma/uroce-abi.h>, checked.  Pure: no socket, no allocation.
 */
#ifndef UROCE_LINK_MESSAGE_H
#define UROCE_LINK_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/uroce-abi.h>

enum link_message_error {
	LINK_MESSAGE_OK,
	LINK_MESSAGE_SHORT,   /* fewer bytes than the header of its kind */
	LINK_MESSAGE_VERSION, /* of another UROCE_ABI_VERSION */
	LINK_MESSAGE_KIND,    /* no kind of this version */
	LINK_MESSAGE_LENGTH,  /* a length that does not fit the bytes */
	LINK_MESSAGE_SLOTS,   /* a pool of a size, or a slot, that cannot be */
};

/* No kind of message has a longer head. */
#define LINK_MESSAGE_HEAD_MAX 64

struct link_message {
	enum uroce_abi_message kind;
	union {
		uint8_t head[LINK_MESSAGE_HEAD_MAX];
		struct uroce_abi_forward forward;     /* UROCE_ABI_FORWARD */
		struct uroce_abi_pool pool;	      /* UROCE_ABI_POOL_* */
		struct uroce_abi_shm channel;	      /* UROCE_ABI_SHM_REQUEST, _REPLY */
		struct uroce_abi_gsi_hello hello;     /* UROCE_ABI_GSI_HELLO */
		struct uroce_abi_gsi_service service; /* UROCE_ABI_GSI_LISTEN, _UNLISTEN */
		struct uroce_abi_gsi_mad mad;	      /* UROCE_ABI_GSI_MAD */
	};
};
_Static_assert(sizeof(struct link_message) == LINK_MESSAGE_HEAD_MAX + sizeof(uint64_t),
	       "a head is longer than the longest");

/*
 * Check a message of length bytes of which the first min(length, sizeof(struct uroce_abi_forward))
 * are readable at head (any alignment).  When the result is LINK_MESSAGE_OK all of *message is set:
 * what its kind does not have is 0; else nothing.
 */
enum link_message_error link_message_parse(const uint8_t *head, size_t length,
					   struct link_message *message);

#endif
