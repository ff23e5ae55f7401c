/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * An output file that is a valid pcapng file at any time, even if the process is killed during a
 * write, which may then be incomplete.  A regular file therefore ends with a filler, a block that
 * readers skip.  New blocks are written into the filler.  Writing the end of the new filler and
 * then the start of the first new block makes them visible: two adjacent stores into the mapped
 * file, or two short writes if the file cannot be mapped.  The file grows by fillers of one page
 * each, which are written completely or not at all.
 *
 * Pipes, terminals and the like get the blocks only.
 */
#ifndef UROCE_CAPTURE_FILE_H
#define UROCE_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* Maximum number of bytes for one capture_file_append(). */
#define CAPTURE_FILE_APPEND_MAX (1u << 20)
/* Number of bytes behind the blocks that capture_file_append() may overwrite. */
#define CAPTURE_FILE_TAIL 8

struct capture_file {
	int fd;
	bool regular;
	uint64_t end;  /* regular file: offset of the filler */
	uint64_t size; /* regular file: size with the filler, a multiple of a page */
	uint8_t *map;  /* mapping of map_start to size, or NULL */
	uint64_t map_start;
	uint64_t size_limit; /* size limit, set by the caller; 0: none */
};

/*
 * Opens a file by name and empties it if it is a regular file; "-" is standard output, which is not
 * emptied.  A regular file is locked; -EBUSY if another process captures into it.  Does not wait
 * for the reader of a FIFO (-ENXIO).  Returns 0 or a negative errno, with one line in error.
 */
int capture_file_open(struct capture_file *file, const char *name, char error[CAPTURE_ERROR_TEXT]);
/*
 * As capture_file_open(), for a descriptor that is open for writing.  Takes ownership of fd, even
 * on failure.  The existing contents are kept.
 */
int capture_file_adopt(struct capture_file *file, int fd, char error[CAPTURE_ERROR_TEXT]);

/*
 * Appends complete blocks.  Returns 0 or a negative errno; the file is then valid and has the
 * earlier blocks, and on ENOSPC those of the new ones that still fitted.  Blocks while a pipe is
 * full.
 */
int capture_file_append(struct capture_file *file, uint8_t *blocks, size_t bytes);
/* Cuts off the filler, closes the file and sets fd to -1. */
void capture_file_close(struct capture_file *file);

#endif
