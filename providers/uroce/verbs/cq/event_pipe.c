/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "event_pipe.h"

/* Limit of an unprivileged process (/proc/sys/fs/pipe-max-size): 131072 completion events. */
#define PIPE_MAX_BYTES (1 << 20)
#define CHUNK_BYTES 4096

/*
 * Returns a write end that is open for reading as well: the pipe then always has a reader, and a
 * write never raises SIGPIPE, even if the application has closed its end.  Without /proc returns
 * write_fd itself.
 */
static int reopen_read_write(int write_fd)
{
	char path[32];
	int both;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", write_fd);
	both = open(path, O_RDWR | O_CLOEXEC);
	if (both < 0)
		return write_fd;
	close(write_fd);
	return both;
}

int event_pipe_open(int *read_fd, int *write_fd)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return errno;
	fds[1] = reopen_read_write(fds[1]);
	/* The read end blocks until the application sets O_NONBLOCK. */
	if (fcntl(fds[1], F_SETFL, O_NONBLOCK)) {
		int error = errno;

		close(fds[0]);
		close(fds[1]);
		return error;
	}
	*read_fd = fds[0];
	*write_fd = fds[1];
	return 0;
}

int event_pipe_push(int write_fd, const void *record, size_t bytes)
{
	int size;

	/*
	 * Up to PIPE_BUF bytes are written atomically.  Locks are held, so write() must not be
	 * used: it is a cancellation point.
	 */
	while (syscall(SYS_write, write_fd, record, bytes) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return errno;
		size = fcntl(write_fd, F_GETPIPE_SZ);
		if (size < 0 || size >= PIPE_MAX_BYTES ||
		    fcntl(write_fd, F_SETPIPE_SZ, size * 2) < 0)
			return ENOBUFS;
	}
	return 0;
}

/* Reads without blocking, although fd may be in blocking mode. */
static ssize_t read_nonblocking(int fd, void *buffer, size_t bytes)
{
	struct iovec piece = { .iov_base = buffer, .iov_len = bytes };
	ssize_t got = preadv2(fd, &piece, 1, -1, RWF_NOWAIT);
	char path[32];
	int other;

	if (got >= 0 || errno != EOPNOTSUPP)
		return got;
	/* Kernels before 6.4 lack RWF_NOWAIT for pipes: open a second description, non-blocking. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (other < 0)
		return -1;
	got = read(other, buffer, bytes);
	close(other);
	return got;
}

/* Moves the records that do not match to the front; returns their size in bytes. */
static size_t compact_unmatched(uint8_t *chunk, size_t chunk_bytes, size_t bytes,
				bool (*match)(const void *record, const void *arg), const void *arg)
{
	size_t kept = 0, offset;

	for (offset = 0; offset + bytes <= chunk_bytes; offset += bytes) {
		if (match(chunk + offset, arg))
			continue;
		memmove(chunk + kept, chunk + offset, bytes);
		kept += bytes;
	}
	return kept;
}

void event_pipe_purge(int read_fd, int write_fd, size_t bytes,
		      bool (*match)(const void *record, const void *arg), const void *arg)
{
	uint8_t chunk[CHUNK_BYTES];
	size_t kept, left;
	ssize_t got;
	int waiting;

	assert(bytes <= EVENT_PIPE_MAX_RECORD && CHUNK_BYTES % bytes == 0);
	/*
	 * Read each record once and write those that do not match to the end.  If the application
	 * reads at the same time, the pipe runs empty and the loop ends early.
	 */
	if (ioctl(read_fd, FIONREAD, &waiting))
		return;
	for (left = (size_t)waiting; left > 0; left -= (size_t)got) {
		got = read_nonblocking(read_fd, chunk, left < sizeof(chunk) ? left : sizeof(chunk));
		if (got <= 0)
			return;
		kept = compact_unmatched(chunk, (size_t)got, bytes, match, arg);
		/*
		 * There is room: reading a chunk frees at least the first page of a full pipe, and
		 * the write needs at most one.
		 */
		if (kept)
			event_pipe_push(write_fd, chunk, kept);
	}
}
