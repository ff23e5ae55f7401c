/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Formats shared by processes, other than the messages of the broker (uroce-broker.h): messages
 * between two clients of the broker on a connection that the broker has made for them, and shared
 * memory.  All integers are in host byte order; structures have no padding.
 */
#ifndef RDMA_UROCE_ABI_H
#define RDMA_UROCE_ABI_H

#include <linux/types.h>

/* Incremented for every change of a format in this file; sent in every message. */
#define UROCE_ABI_VERSION 9

enum uroce_abi_message {
	/* On a connection between workers for shared memory. */
	/* struct uroce_abi_shm: requests the receiver's region, to write to it. */
	UROCE_ABI_SHM_REQUEST = 1,
	UROCE_ABI_SHM_REPLY,   /* struct uroce_abi_shm, with the region by SCM_RIGHTS */
	UROCE_ABI_SHM_REFUSED, /* struct uroce_abi_shm: no region */
	/* struct uroce_abi_header: the receiver's region has new frames. */
	UROCE_ABI_SHM_DOORBELL,
	/* On a connection between a tool and a process. */
	UROCE_ABI_STAT_REQUEST, /* struct uroce_abi_header */
	UROCE_ABI_STAT_REPLY,	/* struct uroce_abi_stat_reply, with the snapshot by SCM_RIGHTS */
	/* On a connection between a tool and a process, open while the capture runs. */
	UROCE_ABI_CAPTURE_REQUEST, /* struct uroce_abi_header */
	/* struct uroce_abi_capture: the process waits for CAPTURE_START. */
	UROCE_ABI_CAPTURE_READY,
	UROCE_ABI_CAPTURE_START, /* struct uroce_abi_capture, with the file by SCM_RIGHTS */
	/* struct uroce_abi_capture: sent at the start and at the end of the capture. */
	UROCE_ABI_CAPTURE_REPLY,
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
	__u32 slot; /* slot of the sender */
};

#define UROCE_ABI_MAD_BYTES 256

/*
 * Entry of the memory file of last messages, which the broker sends if the process exits without
 * sending them.  The size of the file is sealed.  The process holds a lock (fcntl(2), F_SETLK) on
 * its first byte until it exits.
 */
#define UROCE_ABI_LAST_MESSAGES 4096
struct uroce_abi_last_message {
	__u32 valid;	/* 1 if the entry is in use; stored last and cleared first */
	__u32 scope_id; /* interface index if dgid is link-local */
	__u8 sgid[16];
	__u8 dgid[16];
	__u8 traffic_class;
	__u8 reserved[7];
	__u8 mad[UROCE_ABI_MAD_BYTES];
};

/*
 * Memory file (region) of a worker for one of its addresses: a head, then one ring per slot.  Only
 * the worker that owns the slot writes to its ring, and only the owner of the region reads it.  The
 * size is sealed.  The owner holds a lock (fcntl(2), F_SETLK) on the first byte until it exits.
 * The file is sparse: unused pages take no memory.
 */
#define UROCE_ABI_REGION_HEAD_BYTES 65536
#define UROCE_ABI_RING_HEAD_BYTES 65536
#define UROCE_ABI_RING_BYTES 1048576
#define UROCE_ABI_RING_STRIDE (UROCE_ABI_RING_HEAD_BYTES + UROCE_ABI_RING_BYTES)
#define UROCE_ABI_RING_ALIGN 64

struct uroce_abi_region {
	/*
	 * Sequence number of the owner's current sleep, or 0 if it does not sleep.  After each
	 * frame a writer checks it: if it is not 0, the writer sends UROCE_ABI_SHM_DOORBELL, then
	 * sets it to 0 if it still has the same value.
	 */
	__u32 waiting;
};

/* Positions are byte counts that never wrap, multiples of UROCE_ABI_RING_ALIGN. */
struct uroce_abi_ring {
	__u64 written; /* advanced by the writer after each complete frame */
	__u64 reserved1[15];
	__u64 read; /* advanced by the reader when it has finished with a frame */
	__u64 reserved2[15];
};

/*
 * Header of a frame, followed by the bytes of a burst of datagrams.  Frames begin at multiples of
 * UROCE_ABI_RING_ALIGN and do not extend beyond the end of the ring.  A header with bytes 0 means
 * that the rest of the ring is skipped and the next frame is at its start: the frame did not fit
 * before the end, or the writer chose to return.
 */
struct uroce_abi_frame {
	__u32 bytes;
	__u16 segment; /* length of each datagram except the last, which may be shorter */
	__u16 src_port;
	__u64 reserved;
};

/*
 * Reply to STAT_REQUEST, which a tool sends on the connection that the broker has made to the
 * process.  SCM_RIGHTS passes a memory file with the snapshot: a sequence of records that each
 * begin with struct uroce_abi_record.  Readers skip unknown kinds.
 */
struct uroce_abi_stat_reply {
	struct uroce_abi_header header;
	__u64 bytes; /* length of the snapshot */
};

#define UROCE_ABI_CAPTURE_TEXT 512
struct uroce_abi_capture {
	struct uroce_abi_header header;
	__u64 packets, lost; /* in the REPLY at the end: numbers of captured and of lost packets */
	__s32 error;	     /* negative errno, or 0 */
	__u32 reserved;
	/* START: options; READY or REPLY with an error: its reason; NUL-terminated */
	char text[UROCE_ABI_CAPTURE_TEXT];
};

enum uroce_abi_record_kind {
	UROCE_ABI_RECORD_PROCESS = 1, /* struct uroce_abi_stat_process */
	UROCE_ABI_RECORD_QP_NAMES,    /* names of the QP counters, UROCE_ABI_NAME_BYTES each */
	/* Names of the process's counters, UROCE_ABI_NAME_BYTES each. */
	UROCE_ABI_RECORD_PORT_NAMES,
	UROCE_ABI_RECORD_PORT_VALUES, /* __u64 each */
	UROCE_ABI_RECORD_DEVICE,      /* struct uroce_abi_stat_device, then __u64 counters */
	UROCE_ABI_RECORD_QP,	      /* struct uroce_abi_stat_qp, then __u64 counters */
	UROCE_ABI_RECORD_LISTENER,    /* struct uroce_abi_stat_listener */
	UROCE_ABI_RECORD_CONNECTION,  /* struct uroce_abi_stat_connection */
	UROCE_ABI_RECORD_MESSAGE,     /* struct uroce_abi_stat_message */
	UROCE_ABI_RECORD_REJECT,      /* struct uroce_abi_stat_reject */
	UROCE_ABI_RECORD_WORKER,      /* struct uroce_abi_stat_worker, then __u64 counters */
};
#define UROCE_ABI_NAME_BYTES 32

struct uroce_abi_record {
	__u32 kind;
	__u32 bytes; /* length of the record including this header; a multiple of 8 */
};

struct uroce_abi_stat_process {
	struct uroce_abi_record record;
	__u32 pid;
	__u32 slot;
	char command[UROCE_ABI_NAME_BYTES]; /* as in /proc/self/comm */
	char version[UROCE_ABI_NAME_BYTES];
};

/* A worker and its counters, which have the names in PORT_NAMES. */
struct uroce_abi_stat_worker {
	struct uroce_abi_record record;
	__u32 number;
	__u32 slot;
};

struct uroce_abi_stat_device {
	struct uroce_abi_record record;
	char name[64];
	char netdev[UROCE_ABI_NAME_BYTES];
	__u32 contexts;	  /* number of open contexts */
	__u32 port_state; /* enum ibv_port_state */
	__u32 active_mtu; /* bytes */
	__u32 gid_count;
	__u8 gid[16];	/* index 0 */
	__u32 counters; /* number of __u64 that follow: sums over destroyed queue pairs */
	__u32 reserved;
};

struct uroce_abi_stat_qp {
	struct uroce_abi_record record;
	char device[64];
	char type[16];
	char state[16];
	char waiting[16]; /* reason why the requester is not sending */
	__u8 sgid[16];
	__u8 dgid[16];
	__u32 qpn, dest_qpn;
	__u32 src_port, mtu;
	__u32 next_psn, unacked_psn, expected_psn;
	__u32 ssn, sent_ssn, msn, lsn;
	__u32 unlimited;	/* 1: the peer does not report credits */
	__u32 credits_reported; /* last reported by the peer; -1: none yet */
	__u32 credits_advertised, credits_now;
	__u32 sq_used, rq_used;
	__u32 outstanding_reads, in_flight, cwnd;
	__u32 retries_left, rnr_retries_left;
	__u32 counters;	     /* number of __u64 that follow */
	__u32 shared_memory; /* 1: packets are sent through shared memory */
};

/* A listener of the connection manager. */
struct uroce_abi_stat_listener {
	struct uroce_abi_record record;
	char space[8];	  /* "TCP" ... */
	__u8 address[16]; /* all zero or ::ffff:0.0.0.0: any address */
	__u32 port;
	__u32 backlog;
	__u32 waiting; /* REQs whose events the application has not read */
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
	__u32 active;	 /* 1: this side sent the REQ */
	__u32 destroyed; /* 1: the application has destroyed the connection */
	__u32 resent;	 /* number of retransmitted messages */
	/* End-to-end flow control in REQ and REP: this side, or the peer, reports credits. */
	__u32 flow_control, peer_flow_control;
	__u32 age_ms, changed_ms; /* since its creation, and since the last change of state */
	/*
	 * Bytes of private data in REQ or REP, with the IP CM header: sent by this side, and
	 * received, up to the last byte that is not 0.
	 */
	__u32 private_length, peer_private_length;
	__u32 reserved;
};

/* Counters of one type of message of the process's connection manager. */
struct uroce_abi_stat_message {
	struct uroce_abi_record record;
	char name[16]; /* "REQ" ... */
	__u64 sent;
	__u64 resent; /* subset of sent: repeated for lack of a reply */
	__u64 received;
	__u64 repeated; /* subset of received: duplicates */
	/* Subset of received: rejected without an event to the application. */
	__u64 refused;
};

/* Number of REJs sent with one reason. */
struct uroce_abi_stat_reject {
	struct uroce_abi_record record;
	char name[UROCE_ABI_NAME_BYTES]; /* "stale connection" ... */
	__u32 reason;
	__u32 reserved;
	__u64 sent;
};

#endif
