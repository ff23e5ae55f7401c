/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pcapng.h"

enum {
	FILE_MODE = 0666, /* modified by umask(2) */
	/* Growth of the filler: twice the maximum of one call, so that the file grows rarely. */
	FILLER_BYTES = 2 * CAPTURE_FILE_APPEND_MAX,
	BLOCK_START = 8, /* type and length */
	BLOCK_END = 4,	 /* repeated length */
	PAGE = 4096,
	PAGES_AT_ONCE = 256,
};

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

_Static_assert(CAPTURE_FILE_TAIL >= BLOCK_START, "a filler's start stands behind the blocks");

/* Writes one line to error: name and text, or if text is NULL strerror(3). */
static int set_error(int result, const char *name, const char *text, char error[CAPTURE_ERROR_TEXT])
{
	snprintf(error, CAPTURE_ERROR_TEXT, "%.150s: %s", name, text ? text : strerror(-result));
	return result;
}

static int write_at(const struct capture_file *file, const uint8_t *bytes, size_t count,
		    uint64_t offset)
{
	while (count > 0) {
		ssize_t written = pwrite(file->fd, bytes, count, (off_t)offset);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -ENOSPC;
		bytes += written;
		count -= (size_t)written;
		offset += (uint64_t)written;
	}
	return 0;
}

static int write_stream(const struct capture_file *file, const uint8_t *bytes, size_t count)
{
	while (count > 0) {
		struct pollfd wait = { .fd = file->fd, .events = POLLOUT };
		ssize_t written = write(file->fd, bytes, count);

		if (written < 0 && errno == EAGAIN)
			poll(&wait, 1, -1);
		else if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			bytes += written;
			count -= (size_t)written;
		}
	}
	return 0;
}

static void unmap_filler(struct capture_file *file)
{
	if (file->map)
		munmap(file->map, file->size - file->map_start);
	file->map = NULL;
}

/* If the file cannot be mapped, write_at() is used. */
static void map_filler(struct capture_file *file)
{
	void *memory;

	file->map_start = file->end - file->end % PAGE;
	memory = mmap(NULL, file->size - file->map_start, PROT_READ | PROT_WRITE, MAP_SHARED,
		      file->fd, (off_t)file->map_start);
	file->map = memory == MAP_FAILED ? NULL : memory;
	if (file->map)
		madvise(file->map, file->size - file->map_start, MADV_DONTFORK);
}

/*
 * Faults in the pages for a store.  An error here, as when another program has truncated the file,
 * would be a SIGBUS there.
 */
static bool populate_pages(const struct capture_file *file, uint64_t offset, size_t bytes)
{
	uint64_t from = offset - offset % PAGE, to = offset + bytes;

	to += (PAGE - to % PAGE) % PAGE;
	return madvise(file->map + (from - file->map_start), to - from, MADV_POPULATE_WRITE) == 0;
}

/* Type and length of a block, at any multiple of four. */
struct block_start {
	uint64_t words;
} __attribute__((packed, aligned(4), may_alias));

/*
 * Two adjacent stores: a process that is killed in between leaves an invalid file.  No sanitizer
 * code may come in between, and the page of the second store is read first, so that it does not
 * fault.
 */
__attribute__((noinline, no_sanitize("thread", "address", "undefined"))) static void
store_end_and_start(volatile uint32_t *end, uint32_t last, volatile struct block_start *start,
		    struct block_start next)
{
	(void)start->words;
	(void)*end;
	*end = last;
	start->words = next.words;
}

/*
 * Sets the repeated length at the end of the filler and the first bytes of the block at its start.
 * The file is invalid between the two.
 */
static int update_filler(struct capture_file *file, const uint8_t start[BLOCK_START], uint32_t last)
{
	uint64_t at = file->size - BLOCK_END;
	uint8_t end[BLOCK_END];
	int error;

	if (file->map && populate_pages(file, at, BLOCK_END) &&
	    populate_pages(file, file->end, BLOCK_START)) {
		void *to = file->map + (at - file->map_start);
		void *first = file->map + (file->end - file->map_start);
		struct block_start next;

		memcpy(&next, start, sizeof(next));
		store_end_and_start(to, last, first, next);
		return 0;
	}
	pcapng_put_filler_end(end, last);
	error = write_at(file, end, sizeof(end), at);
	return error ? error : write_at(file, start, BLOCK_START, file->end);
}

/*
 * Appends pages, each a filler block, by one call, which a fatal signal interrupts only between two
 * pages.  size grows by the complete pages.
 */
static int append_filler_pages(struct capture_file *file, uint64_t pages)
{
	struct iovec pieces[PAGES_AT_ONCE];
	uint8_t page[PAGE] = { 0 };
	ssize_t written;
	size_t rest;
	int error;

	pcapng_put_filler_start(page, PAGE);
	pcapng_put_filler_end(page + PAGE - BLOCK_END, PAGE);
	if (pages > PAGES_AT_ONCE)
		pages = PAGES_AT_ONCE;
	for (uint64_t i = 0; i < pages; i++)
		pieces[i] = (struct iovec){ .iov_base = page, .iov_len = PAGE };
	do {
		written = pwritev(file->fd, pieces, (int)pages, (off_t)file->size);
	} while (written < 0 && errno == EINTR);
	if (written <= 0)
		return written ? -errno : -ENOSPC;
	rest = (size_t)written % PAGE;
	file->size += (size_t)written - rest;
	if (rest == 0)
		return 0;
	error = write_at(file, page + rest, PAGE - rest, file->size + rest);
	if (!error)
		file->size += PAGE;
	return error;
}

/*
 * Grows the filler to at least bytes, and to FILLER_BYTES more if the disk has room.  On error it
 * may have grown by less.
 */
static int grow_filler(struct capture_file *file, uint64_t bytes)
{
	uint64_t before = file->size, wanted = bytes + FILLER_BYTES;
	uint8_t start[BLOCK_START];
	int error = 0, changed;

	if (file->size - file->end >= bytes)
		return 0;
	unmap_filler(file);
	/* A file with a size limit, as in a ring, needs no long filler. */
	if (file->size_limit && file->end + wanted > file->size_limit)
		wanted =
			file->end + bytes > file->size_limit ? bytes : file->size_limit - file->end;
	while (!error && file->size - file->end < wanted)
		error = append_filler_pages(file,
					    (wanted - (file->size - file->end) + PAGE - 1) / PAGE);
	/* Cut off an incomplete page. */
	if (error && ftruncate(file->fd, (off_t)file->size)) {
		file->size = file->end;
		return error;
	}
	map_filler(file);
	if (file->size != before) {
		pcapng_put_filler_start(start, (uint32_t)(file->size - file->end));
		changed = update_filler(file, start, (uint32_t)(file->size - file->end));
		if (changed) {
			unmap_filler(file);
			file->size = file->end;
			return changed;
		}
	}
	return file->size - file->end < bytes ? error : 0;
}

/* Writes the first blocks and a filler: one page. */
static int write_first_page(struct capture_file *file, const uint8_t *blocks, size_t bytes)
{
	uint8_t page[PAGE] = { 0 };
	int error;

	assert(bytes + PCAPNG_FILLER_MIN <= PAGE);
	memcpy(page, blocks, bytes);
	pcapng_put_filler_start(page + bytes, (uint32_t)(PAGE - bytes));
	pcapng_put_filler_end(page + PAGE - BLOCK_END, (uint32_t)(PAGE - bytes));
	error = write_at(file, page, PAGE, 0);
	if (error)
		return error;
	file->end = bytes;
	file->size = PAGE;
	map_filler(file);
	return 0;
}

/* Returns the size of the complete blocks that fit into room. */
static size_t complete_blocks(const uint8_t *blocks, size_t bytes, uint64_t room)
{
	size_t complete = 0;

	while (complete < bytes) {
		uint32_t length = pcapng_block_bytes(blocks + complete);

		if (length > room - complete)
			break;
		complete += length;
	}
	return complete;
}

/* Writes blocks into the filler, which has room for them and for a smaller filler. */
static int write_into_filler(struct capture_file *file, uint8_t *blocks, size_t bytes)
{
	uint32_t left;
	int error;

	left = (uint32_t)(file->size - file->end - bytes);
	/* Write all but the first bytes, and the start of the next filler, inside the filler. */
	pcapng_put_filler_start(blocks + bytes, left);
	error = write_at(file, blocks + BLOCK_START, bytes, file->end + BLOCK_START);
	if (!error)
		error = update_filler(file, blocks, left);
	if (!error)
		file->end += bytes;
	return error;
}

static int append_to_filler(struct capture_file *file, uint8_t *blocks, size_t bytes)
{
	int error = grow_filler(file, bytes + PCAPNG_FILLER_MIN), last;
	uint64_t room = file->size - file->end;

	/* When the disk is full, write the blocks that still fit. */
	if (error)
		bytes = room < PCAPNG_FILLER_MIN
				? 0
				: complete_blocks(blocks, bytes, room - PCAPNG_FILLER_MIN);
	if (error && bytes == 0)
		return error;
	last = write_into_filler(file, blocks, bytes);
	return error ? error : last;
}

int capture_file_append(struct capture_file *file, uint8_t *blocks, size_t bytes)
{
	assert(bytes <= CAPTURE_FILE_APPEND_MAX);
	if (bytes == 0)
		return 0;
	if (!file->regular)
		return write_stream(file, blocks, bytes);
	return file->size ? append_to_filler(file, blocks, bytes)
			  : write_first_page(file, blocks, bytes);
}

/*
 * Initializes file for its descriptor.  truncate: empty a regular file; else one that has contents,
 * or is open with O_APPEND, is written to like a pipe.
 */
static int init_file(struct capture_file *file, const char *name, bool truncate,
		     char error[CAPTURE_ERROR_TEXT])
{
	struct stat status;

	file->end = 0;
	file->size = 0;
	file->map = NULL;
	if (fstat(file->fd, &status))
		return set_error(-errno, name, NULL, error);
	file->regular = S_ISREG(status.st_mode);
	if (!file->regular)
		return 0;
	/* On file systems without locks concurrent captures are not detected. */
	if (flock(file->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return set_error(
			-EBUSY, name,
			"another process captures into it; with %p in the name each has its "
			"own",
			error);
	if (truncate && ftruncate(file->fd, 0))
		return set_error(-errno, name, NULL, error);
	if ((!truncate && status.st_size) || (fcntl(file->fd, F_GETFL) & O_APPEND))
		file->regular = false;
	return 0;
}

static void close_fd(struct capture_file *file)
{
	close(file->fd);
	file->fd = -1;
}

int capture_file_adopt(struct capture_file *file, int fd, char error[CAPTURE_ERROR_TEXT])
{
	int result;

	file->fd = fd;
	result = init_file(file, "the file", false, error);
	if (result)
		close_fd(file);
	return result;
}

/* Mapping a file requires read access; a pipe must not be opened for reading. */
static int open_by_name(const char *name)
{
	const int flags = O_CREAT | O_CLOEXEC | O_NOCTTY;
	struct stat status;
	int fd;

	if (strcmp(name, "-") == 0)
		return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	if (stat(name, &status) == 0 && !S_ISREG(status.st_mode)) {
		fd = open(name, O_WRONLY | O_NONBLOCK | flags, FILE_MODE);
		/* O_NONBLOCK was needed for open() only. */
		if (fd >= 0)
			fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
		return fd;
	}
	fd = open(name, O_RDWR | flags, FILE_MODE);
	return fd < 0 && errno == EACCES ? open(name, O_WRONLY | flags, FILE_MODE) : fd;
}

int capture_file_open(struct capture_file *file, const char *name, char error[CAPTURE_ERROR_TEXT])
{
	int result;

	file->fd = open_by_name(name);
	if (file->fd < 0 && errno == ENXIO)
		return set_error(-ENXIO, name, "nothing reads this FIFO: start its reader first",
				 error);
	if (file->fd < 0)
		return set_error(-errno, name, NULL, error);
	result = init_file(file, name, strcmp(name, "-") != 0, error);
	if (result)
		close_fd(file);
	return result;
}

void capture_file_close(struct capture_file *file)
{
	unmap_filler(file);
	/* If this fails the filler stays, which is valid. */
	if (file->regular)
		(void)!ftruncate(file->fd, (off_t)file->end);
	close_fd(file);
}
