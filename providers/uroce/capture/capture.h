/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Packets of this process into a pcapng file (Documentation/capture.md).  The thread that sends or
 * receives puts them into a buffer in memory, in the order of their time stamps; a thread of the
 * capture writes them out.  There is one capture in a process at a time.
 *
 * Functions return 0 or a negative errno unless they say otherwise.
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

/* All that stands in front of the UDP payload. */
struct capture_path {
	uint8_t src[16]; /* as in a GID: IPv4 addresses are ::ffff:a.b.c.d */
	uint8_t dst[16];
	uint16_t src_port; /* host order; the destination port is always 4791 */
	uint8_t traffic_class;
	uint8_t hop_limit; /* 0: not known */
	bool ipv6;
};

/* One packet, or several that leave in one call; pieces in order make them back to back. */
struct capture_packets {
	const struct capture_path *path;
	const struct iovec *pieces;
	unsigned int count;
	size_t bytes;		 /* of all packets together */
	size_t segment;		 /* of each packet, the last one perhaps fewer; 0: there is one */
	uint16_t identification; /* IPv4's, of the first packet; the others count up from there */
	bool outbound;
	uint32_t qpn;	     /* of the queue pair that sends, if it is ours, else 0 */
	const char *comment; /* why it was refused or did not leave; NULL: nothing happened to it */
	/*
	 * NULL, or the time of those that came in one call: 0 before the first of them is put down,
	 * which is the only one that asks the clock.
	 */
	uint64_t *came;
};

struct capture_counts {
	uint64_t packets; /* in the file, or on their way to it */
	uint64_t lost;	  /* not captured, because the file took too long */
};

extern _Atomic(struct capture *) capture_now;

/* The capture, or NULL.  It may be used at any later time, too: what comes too late is left out. */
static inline struct capture *capture_on(void)
{
	return atomic_load_explicit(&capture_now, memory_order_acquire);
}

/*
 * Stamp packets with the time and put them down.  NULL when the filter does not want them or there
 * is no room; else capture_end() has to be called, soon and on the same thread, for what is behind
 * them in the file waits.  Any thread, with any locks: the only lock in here is the innermost one.
 * Waits for room at most a tenth of a second, and then not again until there is much of it.
 */
struct capture_record *capture_begin(struct capture *capture,
				     const struct capture_packets *packets);
/* keep: false when the packets have not left after all. */
void capture_end(struct capture_record *record, bool keep);

/* Packets about which all is known already. */
static inline void capture_put(struct capture *capture, const struct capture_packets *packets)
{
	struct capture_record *record = capture_begin(capture, packets);

	if (record)
		capture_end(record, true);
}

/*
 * Control calls; each may wait for the file.  Start into the file that config names, or into fd if
 * that is not negative, which the capture then owns also when this fails.  -EBUSY while there is
 * another capture.  error gets one line for the user when the result is not 0.
 */
int capture_start(const struct capture_config *config, int fd, char error[CAPTURE_ERROR_TEXT]);
/* The same for what the environment asks for: done once in a process, whatever came of it then. */
int capture_start_once(const struct capture_config *config, char error[CAPTURE_ERROR_TEXT]);
/* Write out what is there and end; counts (may be NULL) of the capture that was, or of none. */
void capture_stop(struct capture_counts *counts);

/* Handlers for fork(2); the child does not capture.  The lock is taken inside of all others. */
void capture_fork_prepare(void);
void capture_fork_parent(void);
void capture_fork_child(void);

#endif
