/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The thread that writes what is in the buffer to the file, or to the files of the ring.
 */
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
	atomic_bool stop;    /* write what is there, and end */
	atomic_bool ended;   /* by itself, since the file takes no more */
	unsigned int number; /* of the file in the ring, from 1; 0: there is one file */
	uint64_t file_bytes; /* in the file */
	uint64_t packets;    /* the thread's, until it has ended */
	size_t used;	     /* of blocks */
	uint8_t *blocks;     /* CAPTURE_FILE_ADD_MAX and the tail */
};

/*
 * Open the file, or take fd if that is not negative, and start.  0 or a negative errno, with a line
 * in error.
 */
int capture_writer_start(struct capture_writer *writer, const struct capture_config *config,
			 struct capture_buffer *buffer, int fd, char error[CAPTURE_ERROR_TEXT]);
/*
 * The buffer has been shut: write what is in it, and end.  False when the file takes nothing for so
 * long that it is left alone: the thread then goes on to use writer and buffer.
 */
bool capture_writer_stop(struct capture_writer *writer);
/*
 * Between these two, which are around a fork(), no writer opens or closes a file: file.fd of each
 * is its file's descriptor or negative.
 */
void capture_writer_fork_prepare(void);
void capture_writer_fork_done(void);

#endif
