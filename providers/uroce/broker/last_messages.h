/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When the broker sends the last messages (DREQ, REJ) of a client that has gone.  They stand in a
 * memory file, which the client filled while it lived.  Nobody waits for replies, so all are sent
 * in several rounds; and nothing is sent while the client's lock on the file shows that it lives,
 * only without a connection.  Pure: the caller looks at the lock, reads and sends.
 */
#ifndef UROCE_BROKER_LAST_MESSAGES_H
#define UROCE_BROKER_LAST_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#define LAST_MESSAGES_ENTRIES 4096
/* Entries of one step; others have their turn in between. */
#define LAST_MESSAGES_CHUNK 512

enum last_messages_step {
	LAST_MESSAGES_WAIT, /* until due */
	LAST_MESSAGES_LOOK, /* whether the client lives: last_messages_lives() or _dead() */
	LAST_MESSAGES_SEND, /* the entries from position on, then last_messages_sent() */
	LAST_MESSAGES_END,  /* close the file */
};

struct last_messages {
	enum last_messages_step step; /* when due has come */
	uint64_t due;		      /* nanoseconds */
	uint32_t position;	      /* of the first entry to send */
	uint32_t round;
	uint32_t looks;	 /* number of those that found the client alive */
	bool found_some; /* messages, in this round */
};

/* The connection of the client has ended. */
void last_messages_begin(struct last_messages *last, uint64_t now);
enum last_messages_step last_messages_next(const struct last_messages *last, uint64_t now);
void last_messages_lives(struct last_messages *last, uint64_t now);
void last_messages_dead(struct last_messages *last);
/* A chunk from position on was sent, of which count entries were messages. */
void last_messages_sent(struct last_messages *last, uint32_t count, uint64_t now);

/*
 * Returns true if requests for the client's ports must wait: a dead client may have refused a
 * request whose repetition would be answered otherwise.
 */
bool last_messages_come_first(const struct last_messages *last);

#endif
