/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The formats that processes share beside the broker's messages (uroce-broker.h): messages between
 * two clients of the broker on a connection that it has made for them, and shared memory.
 * All numbers are in host byte order, structures have no padding.
 */
#ifndef RDMA_UROCE_ABI_H
#define RDMA_UROCE_ABI_H

#include <linux/types.h>

/* Raised whenever anything in this file changes; part of every message. */
#define UROCE_ABI_VERSION 9

enum uroce_abi_message {
	/* On a connection for shared memory. */
	UROCE_ABI_SHM_REQUEST = 1, /* struct uroce_abi_shm: let me write to your region */
	UROCE_ABI_SHM_REPLY,	   /* struct uroce_abi_shm with the region by SCM_RIGHTS */
	UROCE_ABI_SHM_REFUSED,	   /* struct uroce_abi_shm: there is none */
	UROCE_ABI_SHM_DOORBELL,	   /* struct uroce_abi_header: your region has something */
	/* On a connection of a tool. */
	UROCE_ABI_STAT_REQUEST, /* struct uroce_abi_header */
	UROCE_ABI_STAT_REPLY,	/* struct uroce_abi_stat_reply with the snapshot by SCM_RIGHTS */
	/* The same, for as long as the capture lasts. */
	UROCE_ABI_CAPTURE_REQUEST, /* struct uroce_abi_header */
	UROCE_ABI_CAPTURE_READY,   /* struct uroce_abi_capture: now you may send a descriptor */
	UROCE_ABI_CAPTURE_START,   /* struct uroce_abi_capture, with the file by SCM_RIGHTS */
	UROCE_ABI_CAPTURE_REPLY,   /* struct uroce_abi_capture: when it has begun, and ended */
};

struct uroce_abi_header {
	__u32 message; /* enum uroce_abi_message */
	__u32 version; /* UROCE_ABI_VERSION */
	__u64 reserved;
};

struct uroce_abi_shm {
	struct uroce_abi_header header;
	__u8 address[16];
	__u32 scope_id;
	__u32 slot; /* the sender's */
};

#define UROCE_ABI_MAD_BYTES 256

/*
 * An entry of the memory file of last messages, which the broker sends when the process has ended
 * without having sent them.  The size of the file is sealed.  Its owner keeps a lock (fcntl(2),
 * F_SETLK) on its first byte until it ends.
 */
#define UROCE_ABI_LAST_MESSAGES 4096
struct uroce_abi_last_message {
	__u32 valid;	/* 1; stored last, and cleared first */
	__u32 scope_id; /* interface index, if dgid is link-local */
	__u8 sgid[16];
	__u8 dgid[16];
	__u8 traffic_class;
	__u8 reserved[7];
	__u8 mad[UROCE_ABI_MAD_BYTES];
};

/*
 * A region is a memory file of a worker for one of its addresses: a head, then a ring for each
 * slot, which only the worker that has the slot writes to and only the region's owner reads.  Its
 * size is sealed.  The owner keeps a lock (fcntl(2), F_SETLK) on its first byte until it ends.
 * Only the pages in use take memory.
 */
#define UROCE_ABI_REGION_HEAD_BYTES 65536
#define UROCE_ABI_RING_HEAD_BYTES 65536
#define UROCE_ABI_RING_BYTES 1048576
#define UROCE_ABI_RING_STRIDE (UROCE_ABI_RING_HEAD_BYTES + UROCE_ABI_RING_BYTES)
#define UROCE_ABI_RING_ALIGN 64

struct uroce_abi_region {
	/*
	 * Not 0: the owner sleeps, and this is the number of its sleep.  A writer sends
	 * UROCE_ABI_SHM_DOORBELL, then sets it to 0 if it is still the same number.
	 */
	__u32 waiting;
};

/* Positions count bytes and never wrap; both are multiples of UROCE_ABI_RING_ALIGN. */
struct uroce_abi_ring {
	__u64 written; /* stored by the writer when a frame is complete */
	__u64 reserved1[15];
	__u64 read; /* stored by the reader when a frame is done with */
	__u64 reserved2[15];
};

/*
 * A frame, at a multiple of UROCE_ABI_RING_ALIGN, is this and the bytes of one run of datagrams; it
 * does not go beyond the ring's end.  Where bytes is 0 the next frame is at the start: there was no
 * room for it, or the writer chose to go back.
 */
struct uroce_abi_frame {
	__u32 bytes;
	__u16 segment; /* of each datagram but the last, which may be shorter */
	__u16 src_port;
	__u64 reserved;
};

/*
 * uroce-stat.  A tool sends STAT_REQUEST over the connection that the broker has made for it and
 * the process.  The reply is one struct uroce_abi_stat_reply and, by SCM_RIGHTS, a memory file that
 * holds the snapshot: a sequence of records, each of which begins with struct uroce_abi_record.
 * Readers skip kinds that they do not know.
 */
struct uroce_abi_stat_reply {
	struct uroce_abi_header header;
	__u64 bytes; /* of the snapshot */
};

#define UROCE_ABI_CAPTURE_TEXT 512
struct uroce_abi_capture {
	struct uroce_abi_header header;
	__u64 packets, lost; /* of a capture that has ended */
	__s32 error;	     /* a negative errno */
	__u32 reserved;
	char text[UROCE_ABI_CAPTURE_TEXT]; /* START: options; a refusal: why.  Ends with a NUL. */
};

enum uroce_abi_record_kind {
	UROCE_ABI_RECORD_PROCESS = 1, /* struct uroce_abi_stat_process */
	UROCE_ABI_RECORD_QP_NAMES,    /* names of the QP counters: NAME_BYTES each */
	UROCE_ABI_RECORD_PORT_NAMES,  /* names of the process's counters: NAME_BYTES each */
	UROCE_ABI_RECORD_PORT_VALUES, /* __u64 each */
	UROCE_ABI_RECORD_DEVICE,      /* struct uroce_abi_stat_device, then __u64 counters */
	UROCE_ABI_RECORD_QP,	      /* struct uroce_abi_stat_qp, then __u64 counters */
	UROCE_ABI_RECORD_LISTENER,    /* struct uroce_abi_stat_listener */
	UROCE_ABI_RECORD_CONNECTION,  /* struct uroce_abi_stat_connection */
	UROCE_ABI_RECORD_MESSAGE,     /* struct uroce_abi_stat_message */
	UROCE_ABI_RECORD_REFUSAL,     /* struct uroce_abi_stat_refusal */
	UROCE_ABI_RECORD_WORKER,      /* struct uroce_abi_stat_worker, then __u64 counters */
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

/* The names of its counters are those of PORT_NAMES. */
struct uroce_abi_stat_worker {
	struct uroce_abi_record record;
	__u32 number;
	__u32 slot;
};

struct uroce_abi_stat_device {
	struct uroce_abi_record record;
	char name[64];
	char netdev[UROCE_ABI_NAME_BYTES];
	__u32 contexts;	  /* open ones */
	__u32 port_state; /* enum ibv_port_state */
	__u32 active_mtu; /* bytes */
	__u32 gid_count;
	__u8 gid[16];	/* index 0 */
	__u32 counters; /* number of __u64 that follow: sums of queue pairs that are gone */
	__u32 reserved;
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
	__u32 credits_heard; /* that the peer reported last; -1: none yet */
	__u32 credits_advertised, credits_now;
	__u32 sq_used, rq_used;
	__u32 outstanding_reads, in_flight, cwnd;
	__u32 retries_left, rnr_retries_left;
	__u32 counters;	     /* number of __u64 that follow */
	__u32 shared_memory; /* 1: what it sends goes through shared memory */
};

/* A port that a program listens at, by the connection manager. */
struct uroce_abi_stat_listener {
	struct uroce_abi_record record;
	char space[8];	  /* "TCP" ... */
	__u8 address[16]; /* all zero, or ::ffff:0.0.0.0: any */
	__u32 port;
	__u32 backlog;
	__u32 waiting; /* requests that the application has not read */
	__u32 reserved;
};

struct uroce_abi_stat_connection {
	struct uroce_abi_record record;
	char service[8]; /* "RC" ... */
	char state[24];
	__u8 local[16];
	__u8 remote[16];
	__u64 service_id; /* port space and port of the passive side */
	__u32 local_id, remote_id;
	__u32 local_qpn, remote_qpn;
	__u32 active;	 /* this side has asked */
	__u32 destroyed; /* the application has destroyed it */
	__u32 resent;	 /* messages that were repeated */
	/* End-to-end flow control bits of REQ and REP: this side reports credits, and the peer. */
	__u32 flow_control, peer_flow_control;
	__u32 age_ms, changed_ms; /* since it began, and since its state changed */
	/*
	 * Bytes of private data in REQ or REP, with the addresses at its beginning: of what this
	 * side has sent, and of what it has received, up to the last byte that is not 0.
	 */
	__u32 private_length, peer_private_length;
	__u32 reserved;
};

/* Messages of one kind, of the connection manager of the process. */
struct uroce_abi_stat_message {
	struct uroce_abi_record record;
	char name[16]; /* "REQ" ... */
	__u64 sent;
	__u64 resent; /* part of sent: there was no answer */
	__u64 received;
	__u64 repeated; /* part of received: duplicates */
	/* Part of received: answered by REJ or a status without asking a listener. */
	__u64 refused;
};

/* REJs that were sent for one reason. */
struct uroce_abi_stat_refusal {
	struct uroce_abi_record record;
	char name[UROCE_ABI_NAME_BYTES]; /* "stale connection" ... */
	__u32 reason;
	__u32 reserved;
	__u64 sent;
};

#endif
