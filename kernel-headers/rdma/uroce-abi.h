/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What crosses a process border: the messages that uroce processes of one host exchange over
 * abstract UNIX sockets.  Names are scoped to the network namespace, as UDP ports are.  All numbers
 * are in host byte order, structures have no padding.  Every receiver checks the sender's
 * credentials (SCM_CREDENTIALS, SO_PEERCRED): messages of another user are dropped.
 */
#ifndef RDMA_UROCE_ABI_H
#define RDMA_UROCE_ABI_H

#include <linux/types.h>

/* Raised whenever anything in this file changes; it is part of every name. */
#define UROCE_ABI_VERSION 1

/*
 * Abstract names (without the leading NUL), for printf: version and slot.  The slot name is a
 * datagram socket; who has it bound owns the slot.  The stat name is a SEQPACKET listener.
 */
#define UROCE_ABI_SLOT_NAME "uroce/%u/slot/%u"
#define UROCE_ABI_STAT_NAME "uroce/%u/stat/%u"
/* Held while a pool is being made for an address; the address as 32 hex digits, then scope. */
#define UROCE_ABI_POOL_LOCK_NAME "uroce/%u/pool/%s/%u"

enum uroce_abi_message {
	UROCE_ABI_FORWARD = 1,	  /* struct uroce_abi_forward, then the datagram */
	UROCE_ABI_POOL_REQUEST,	  /* struct uroce_abi_pool: send me the descriptors */
	UROCE_ABI_POOL_REPLY,	  /* struct uroce_abi_pool with SCM_RIGHTS, in slot order */
	UROCE_ABI_POOL_UNKNOWN,	  /* struct uroce_abi_pool: I do not hold that address */
};

struct uroce_abi_header {
	__u32 message; /* enum uroce_abi_message */
	__u32 version; /* UROCE_ABI_VERSION */
};

struct uroce_abi_forward {
	struct uroce_abi_header header;
	__u8 src[16];
	__u8 dst[16];
	__u32 scope_id;
	__u16 src_port;
	__u16 length;
};

struct uroce_abi_pool {
	struct uroce_abi_header header;
	__u8 address[16];
	__u32 scope_id;
	__u32 slots;
	__u64 cookie; /* the reply repeats the request's */
};

#endif
