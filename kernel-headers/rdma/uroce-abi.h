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
#define UROCE_ABI_VERSION 10

enum uroce_abi_message {
	/* On a connection between workers for shared memory. */
	/* struct uroce_abi_shm: requests the receiver's region, to write to it. */
	UROCE_ABI_SHM_REQUEST = 1,
	UROCE_ABI_SHM_REPLY, /* struct uroce_abi_shm, with the region by SCM_RIGHTS */
	/*
	 * struct uroce_abi_shm: no region.  The reply to a request of another version is struct
	 * uroce_abi_header with the version of the replying process, or with that of the request if
	 * the process has shared memory off.
	 */
	UROCE_ABI_SHM_REFUSED,
	/* struct uroce_abi_header: the receiver's region has new frames. */
	UROCE_ABI_SHM_DOORBELL,
	/* On a connection between a tool and a process. */
	UROCE_ABI_STAT_REQUEST, /* struct uroce_abi_header, of any version */
	/* struct uroce_abi_header, with a memory file by SCM_RIGHTS: a JSON object (below). */
	UROCE_ABI_STAT_REPLY,
	/* On a connection between a tool and a process, open while the capture runs. */
	UROCE_ABI_CAPTURE_REQUEST, /* struct uroce_abi_header */
	/*
	 * struct uroce_abi_capture: the process waits for CAPTURE_START.  To a request of another
	 * version: struct uroce_abi_header with the version of the process, which refuses.
	 */
	UROCE_ABI_CAPTURE_READY,
	UROCE_ABI_CAPTURE_START, /* struct uroce_abi_capture, with the file by SCM_RIGHTS */
	/* struct uroce_abi_capture: sent at the start and at the end of the capture. */
	UROCE_ABI_CAPTURE_REPLY,
};

/* The same in all versions, as are the numbers of the messages above. */
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
 * its first byte until it exits.  A change of this format also changes UROCE_BROKER_VERSION.
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
 * Member "format" of the JSON object that STAT_REPLY passes.  Incremented if a member is removed or
 * gets another meaning.  "pid" and "version" stay what they are in all formats.
 */
#define UROCE_ABI_STAT_FORMAT 1

#define UROCE_ABI_CAPTURE_TEXT 512
struct uroce_abi_capture {
	struct uroce_abi_header header;
	__u64 packets, lost; /* in the REPLY at the end: numbers of captured and of lost packets */
	__s32 error;	     /* negative errno, or 0 */
	__u32 reserved;
	/* START: options; READY or REPLY with an error: its reason; NUL-terminated */
	char text[UROCE_ABI_CAPTURE_TEXT];
};

#endif
