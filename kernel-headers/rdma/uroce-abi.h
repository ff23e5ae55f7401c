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
/* Held by the process that gets what is for queue pairs 0 and 1 of an address, named as above. */
#define UROCE_ABI_GSI_NAME "uroce/%u/gsi/%s/%u"

enum uroce_abi_message {
	UROCE_ABI_FORWARD = 1,	/* struct uroce_abi_forward, then the datagram */
	UROCE_ABI_POOL_REQUEST, /* struct uroce_abi_pool: send me the descriptors */
	UROCE_ABI_POOL_REPLY,	/* struct uroce_abi_pool with SCM_RIGHTS, in slot order */
	UROCE_ABI_POOL_UNKNOWN, /* struct uroce_abi_pool: I do not hold that address */
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

/*
 * uroce-stat.  A client connects to the stat name; the server checks the peer's user and answers
 * with one struct uroce_abi_stat_reply and, by SCM_RIGHTS, a memory file that holds the snapshot:
 * a row of records, each begun by struct uroce_abi_record.  Readers skip kinds they do not know.
 */
struct uroce_abi_stat_reply {
	struct uroce_abi_header header; /* message UROCE_ABI_STAT_REPLY */
	__u64 bytes;			/* of the snapshot */
};
#define UROCE_ABI_STAT_REPLY 0x100

enum uroce_abi_record_kind {
	UROCE_ABI_RECORD_PROCESS = 1, /* struct uroce_abi_stat_process */
	UROCE_ABI_RECORD_QP_NAMES,    /* names of the QP counters: NAME_BYTES each */
	UROCE_ABI_RECORD_PORT_NAMES,  /* names of the process's counters: NAME_BYTES each */
	UROCE_ABI_RECORD_PORT_VALUES, /* __u64 each */
	UROCE_ABI_RECORD_DEVICE,      /* struct uroce_abi_stat_device */
	UROCE_ABI_RECORD_QP,	      /* struct uroce_abi_stat_qp, then __u64 counters */
};
#define UROCE_ABI_NAME_BYTES 32

struct uroce_abi_record {
	__u32 kind;
	__u32 bytes; /* of this header and what follows it; a multiple of 8 */
};

struct uroce_abi_stat_process {
	struct uroce_abi_record record;
	__u32 pid;
	__u32 slot;
	char command[UROCE_ABI_NAME_BYTES]; /* as in /proc/self/comm */
	char version[UROCE_ABI_NAME_BYTES];
};

struct uroce_abi_stat_device {
	struct uroce_abi_record record;
	char name[64];
	char netdev[UROCE_ABI_NAME_BYTES];
	__u32 contexts;	  /* open ones */
	__u32 port_state; /* enum ibv_port_state */
	__u32 active_mtu; /* bytes */
	__u32 gid_count;
	__u8 gid[16]; /* index 0 */
};

struct uroce_abi_stat_qp {
	struct uroce_abi_record record;
	char device[64];
	char type[16];
	char state[16];
	char waiting[16]; /* why the requester is not sending */
	__u8 sgid[16];
	__u8 dgid[16];
	__u32 qpn, dest_qpn;
	__u32 src_port, mtu;
	__u32 next_psn, unacked_psn, expected_psn;
	__u32 ssn, sent_ssn, msn, lsn;
	__u32 unlimited;     /* the peer reports no credits */
	__u32 credits_heard; /* -1: none heard yet */
	__u32 credits_advertised, credits_now;
	__u32 sq_used, rq_used;
	__u32 outstanding_reads, in_flight, window;
	__u32 retries_left, rnr_retries_left;
	__u32 counters; /* how many __u64 follow */
	__u32 reserved;
};

#endif
