/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The thread that writes the buffer to the file, or to the files of a ring. */
#ifndef UROCE_CAPTURE_WRITER_H
#define UROCE_CAPTURE_WRITER_H

#include <pthread.h>
#include <stdatomic.h>

#include "buffer.h"
#include "capture.h"
#include "file.h"

struct capture_writer {
	const struct capture_config *config;
	struct capture_buffer *buffer;
	struct capture_file file;
	pthread_t thread;
	atomic_bool stop;    /* request: write out the buffer and exit */
	atomic_bool ended;   /* the thread has closed the file and is about to exit */
	unsigned int number; /* number of the current file in the ring, from 1; 0: no ring */
	uint64_t file_bytes; /* size of the blocks in the current file */
	uint64_t packets;    /* packets taken from the buffer; others may read it after ended */
	size_t used;	     /* bytes of blocks in use */
	uint8_t *blocks;     /* CAPTURE_FILE_APPEND_MAX + CAPTURE_FILE_TAIL bytes */
};

/*
 * Opens the file, or takes ownership of fd if that is not negative (also on failure), and starts
 * the thread.  Returns 0 or a negative errno, with one line in error.
 */
int capture_writer_start(struct capture_writer *writer, const struct capture_config *config,
			 struct capture_buffer *buffer, int fd, char error[CAPTURE_ERROR_TEXT]);
/*
 * Writes out the buffer, which must be closed, and ends the thread.  Returns false if it does not
 * end in time, as its file blocks; the thread then continues to use writer and buffer.
 */
bool capture_writer_stop(struct capture_writer *writer);
/*
 * To be called before and after fork().  In between no writer opens or closes a file, so that each
 * file.fd is a valid descriptor or negative.
 */
void capture_writer_fork_prepare(void);
void capture_writer_fork_done(void);

#endif
