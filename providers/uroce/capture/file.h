/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A file that blocks are appended to, so that it is whole at any time: a process may be killed
 * while it writes, and then only a part of what it writes arrives.  So in a regular file new blocks
 * are written into a filler, a block that readers pass over and that reaches to the end of the
 * file.  What makes them visible are its end and then its start, two stores one after the other
 * into the file's pages, which are mapped; where they cannot be, two short writes.  The file grows
 * by fillers of a page, which arrive wholly or not at all.
 *
 * Pipes, terminals and the like get the blocks as they come.
 */
#ifndef UROCE_CAPTURE_FILE_H
#define UROCE_CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config.h"

/* capture_file_add() takes so many bytes at most. */
#define CAPTURE_FILE_ADD_MAX (1u << 20)
/* What has to be left behind the bytes that it is given, for it to write to. */
#define CAPTURE_FILE_TAIL 8

struct capture_file {
	int fd;
	bool regular;
	uint64_t end;  /* of the blocks, in a regular file */
	uint64_t size; /* with the filler; a multiple of a page */
	uint8_t *map;  /* from map_start to size, or NULL */
	uint64_t map_start;
	uint64_t most; /* that it is to have, the owner's; 0: not known */
};

/*
 * Make the file empty, or open what the name leads to; "-" is standard output.  A regular file is
 * locked: -EBUSY when another process captures into it.  A FIFO that nothing reads is not waited
 * for.  0 or a negative errno, with one line in error.
 */
int capture_file_open(struct capture_file *file, const char *name, char error[CAPTURE_ERROR_TEXT]);
/*
 * The same with a descriptor that is open for writing, which the file then owns also when this
 * fails.  What is in it stays.
 */
int capture_file_adopt(struct capture_file *file, int fd, char error[CAPTURE_ERROR_TEXT]);

/*
 * Append whole blocks.  0, or a negative errno: then the file has all that was there before.  The
 * file waits as long as its reader does.
 */
int capture_file_add(struct capture_file *file, uint8_t *blocks, size_t bytes);
/* Without the filler; the file is closed, and fd is negative, as where opening one has failed. */
void capture_file_close(struct capture_file *file);

#endif
