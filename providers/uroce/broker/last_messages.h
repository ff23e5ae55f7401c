/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Schedule by which the broker sends the last messages (DREQ, REJ) of a client whose connection has
 * ended.  The client wrote them to a memory file while it ran.  No replies are awaited; instead the
 * messages are sent in several rounds.  Nothing is sent while the client holds its lock on the
 * file: it then still runs and has only lost its connection.
 *
 * Pure: the caller checks the lock, reads the file and sends.
 */
#ifndef UROCE_BROKER_LAST_MESSAGES_H
#define UROCE_BROKER_LAST_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#define LAST_MESSAGES_ENTRIES 4096
/* Number of entries sent in one step; between two steps the broker serves its clients. */
#define LAST_MESSAGES_CHUNK 512

enum last_messages_step {
	LAST_MESSAGES_WAIT, /* nothing to do before the time due */
	/* Check the client's lock, then call last_messages_owner_runs() or ..._owner_ended(). */
	LAST_MESSAGES_CHECK_LOCK,
	LAST_MESSAGES_SEND, /* send a chunk from position on, then call last_messages_chunk_sent()
			     */
	LAST_MESSAGES_DONE, /* close the file */
};

struct last_messages {
	enum last_messages_step step; /* next step, at the time due */
	uint64_t due;		      /* time of the next step, ns */
	uint32_t position;	      /* first entry to send */
	uint32_t round;
	uint32_t alive_checks; /* number of checks that found the lock held */
	bool has_sent;	       /* this round has sent messages */
};

/* Starts the schedule, when the client's connection has ended. */
void last_messages_start(struct last_messages *last, uint64_t now);
enum last_messages_step last_messages_next_step(const struct last_messages *last, uint64_t now);
void last_messages_owner_runs(struct last_messages *last, uint64_t now);
void last_messages_owner_ended(struct last_messages *last);
/* Records that a chunk from position on was processed and contained count messages. */
void last_messages_chunk_sent(struct last_messages *last, uint32_t count, uint64_t now);

/*
 * Returns true if requests for the client's ports must wait: the client may have rejected a REQ
 * before it ended, and its REJ must precede the reply of the host to a retransmission of that REQ.
 */
bool last_messages_delay_requests(const struct last_messages *last);

#endif
