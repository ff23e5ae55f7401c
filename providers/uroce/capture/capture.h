/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Writes the packets of this process to a pcapng file (Documentation/capture.md).  The thread that
 * sends or receives copies packets into a ring buffer, in the order of their timestamps; the writer
 * thread moves them to the file.  At most one capture runs in a process.
 *
 * Functions return 0 or a negative errno unless noted otherwise.
 */
#ifndef UROCE_CAPTURE_CAPTURE_H
#define UROCE_CAPTURE_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "config.h"

struct capture;
struct capture_record;

/* Contents of the headers in front of the UDP payload. */
struct capture_path {
	uint8_t src[16]; /* GID format: an IPv4 address is ::ffff:a.b.c.d */
	uint8_t dst[16];
	uint16_t src_port; /* host order; the destination port is 4791 */
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0 if unknown */
	bool ipv6;
};

/* One packet, or the packets of one system call; the pieces in order are their bytes. */
struct capture_packets {
	const struct capture_path *path;
	const struct iovec *pieces;
	unsigned int count;
	size_t bytes;	/* total size of all packets */
	size_t segment; /* size of each packet but the last, which may be shorter; 0: one packet */
	uint16_t identification; /* IPv4 ID of the first packet; then consecutive */
	bool outbound;
	uint32_t qpn;	     /* number of the sending QP, if it is one of this process, else 0 */
	const char *comment; /* why the packet was dropped or not sent, or NULL */
	/*
	 * Timestamp shared by the packets of one receive call, or NULL.  Set to 0 before the first
	 * of them is captured, which then stores the current time.
	 */
	uint64_t *batch_time;
};

struct capture_counts {
	uint64_t packets; /* taken from the buffer and written to the file, unless that failed */
	uint64_t lost;	  /* dropped, because the buffer was full */
};

extern _Atomic(struct capture *) capture_now;

/*
 * Returns the running capture, or NULL.  The pointer stays valid for the life of the process; after
 * the end of the capture capture_begin() drops the packets.
 */
static inline struct capture *capture_running(void)
{
	return atomic_load_explicit(&capture_now, memory_order_acquire);
}

/*
 * Copies packets into the buffer, with a timestamp.  Returns NULL if the filter does not match or
 * there is no room; else the same thread must call capture_end() soon, as the writer waits for it.
 * Any thread, with any locks held: the lock taken here is the innermost one.  Waits for room for at
 * most 100 ms, and after a timeout does not wait again until half of the buffer is free.
 */
struct capture_record *capture_begin(struct capture *capture,
				     const struct capture_packets *packets);
/* Completes a record; keep is false if the packets were not sent, and drops the record. */
void capture_end(struct capture_record *record, bool keep);

/* Captures packets that have already been sent or received. */
static inline void capture_put(struct capture *capture, const struct capture_packets *packets)
{
	struct capture_record *record = capture_begin(capture, packets);

	if (record)
		capture_end(record, true);
}

/*
 * Control calls; each may wait for the file.
 *
 * Starts a capture into fd, or if fd is negative into the file that config names.  Takes ownership
 * of fd, even on failure.  Returns -EBUSY if a capture is running.  On failure error holds one line
 * for the user.
 */
int capture_start(const struct capture_config *config, int fd, char error[CAPTURE_ERROR_TEXT]);
/*
 * As capture_start(), for the capture that the environment requests.  After a successful start
 * further calls in this process return 0 without effect, even if that capture has ended.
 */
int capture_start_once(const struct capture_config *config, char error[CAPTURE_ERROR_TEXT]);
/*
 * Ends the capture after writing what is in the buffer.  *counts (may be NULL) gets its counts, or
 * 0 if none was running or the writer does not end.
 */
void capture_stop(struct capture_counts *counts);

/* Handlers for pthread_atfork(); the child does not capture.  Their lock is the innermost one. */
void capture_fork_prepare(void);
void capture_fork_parent(void);
void capture_fork_child(void);

#endif
