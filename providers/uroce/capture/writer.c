/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "link/fd.h"
#include "link/thread.h"
#include "pcapng.h"

enum {
	/* Poll intervals of the buffer: after data was found, and after it was empty. */
	BUSY_POLL_NS = 1000000,
	IDLE_POLL_NS = 10000000,
	/* Leaves room for a statistics block. */
	BLOCKS_MAX = CAPTURE_FILE_APPEND_MAX - PCAPNG_STATISTICS_MAX,
	/* Maximum wait at the end for open records, whose threads may have been preempted. */
	OPEN_RECORDS_TIMEOUT_NS = 1000000000,
	STOP_TIMEOUT_SECONDS = 2,
};

/* Held while a file is opened or closed, against a concurrent fork(). */
static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;

void capture_writer_fork_prepare(void)
{
	pthread_mutex_lock(&file_lock);
}

void capture_writer_fork_done(void)
{
	pthread_mutex_unlock(&file_lock);
}

static int flush_blocks(struct capture_writer *writer)
{
	int error = capture_file_append(&writer->file, writer->blocks, writer->used);

	writer->file_bytes += writer->used;
	writer->used = 0;
	return error;
}

static void get_process_name(char *text, size_t room)
{
	FILE *file = fopen("/proc/self/comm", "re");
	char command[64] = "?";

	if (file) {
		if (fgets(command, sizeof(command), file))
			command[strcspn(command, "\n")] = '\0';
		fclose(file);
	}
	snprintf(text, room, "%s, process %d", command, (int)getpid());
}

static int write_file_header(struct capture_writer *writer)
{
	char command[128];

	get_process_name(command, sizeof(command));
	writer->used = pcapng_put_head(writer->blocks, writer->config->snaplen, command,
				       writer->config->filters_text);
	return flush_blocks(writer);
}

static void add_statistics(struct capture_writer *writer)
{
	uint64_t lost = atomic_load(&writer->buffer->lost);

	writer->used += pcapng_put_statistics(writer->blocks + writer->used,
					      clock_ns(CLOCK_REALTIME), writer->packets, lost);
}

/* Opens the next file of the ring, or the only one. */
static int open_next_file(struct capture_writer *writer, char error[CAPTURE_ERROR_TEXT])
{
	char name[CAPTURE_NAME_BYTES];

	if (writer->config->files)
		writer->number = writer->number % writer->config->files + 1;
	if (!capture_config_name(writer->config, (int)getpid(), writer->number, name)) {
		snprintf(error, CAPTURE_ERROR_TEXT, "the file's name is too long");
		return -ENAMETOOLONG;
	}
	writer->file_bytes = 0;
	writer->file.size_limit = writer->config->files ? writer->config->file_bytes : 0;
	return capture_file_open(&writer->file, name, error);
}

static int rotate_file(struct capture_writer *writer, char error[CAPTURE_ERROR_TEXT])
{
	int result;

	add_statistics(writer);
	result = flush_blocks(writer);
	pthread_mutex_lock(&file_lock);
	capture_file_close(&writer->file);
	if (!result)
		result = open_next_file(writer, error);
	pthread_mutex_unlock(&file_lock);
	return result ? result : write_file_header(writer);
}

static bool needs_rotation(const struct capture_writer *writer, uint32_t more)
{
	return writer->config->files && writer->packets &&
	       writer->file_bytes + writer->used + more + PCAPNG_STATISTICS_MAX >
		       writer->config->file_bytes;
}

static int add_record(struct capture_writer *writer, const struct capture_record *record,
		      char error[CAPTURE_ERROR_TEXT])
{
	int result = 0;

	if (needs_rotation(writer, record->used))
		result = rotate_file(writer, error);
	else if (writer->used + record->used > BLOCKS_MAX)
		result = flush_blocks(writer);
	if (result)
		return result;
	memcpy(writer->blocks + writer->used, record->data, record->used);
	writer->used += record->used;
	writer->packets += record->packets;
	return 0;
}

/* Writes all complete records to the file. */
static int drain_buffer(struct capture_writer *writer, bool *found, char error[CAPTURE_ERROR_TEXT])
{
	struct capture_record *record;
	int result;

	*found = false;
	while ((record = capture_buffer_peek(writer->buffer))) {
		*found = true;
		result = add_record(writer, record, error);
		if (result)
			return result;
		capture_buffer_pop(writer->buffer, record);
	}
	return flush_blocks(writer);
}

static void abort_capture(struct capture_writer *writer, int error, const char *text)
{
	capture_buffer_close(writer->buffer);
	if (writer->config->report_error)
		writer->config->report_error("the capture ends, the program goes on: %s%s%s",
					     *text ? "" : writer->config->name, *text ? "" : ": ",
					     *text ? text : strerror(-error));
}

/* Writes the rest of the buffer; waits for at most OPEN_RECORDS_TIMEOUT_NS for open records. */
static int drain_remaining(struct capture_writer *writer, char error[CAPTURE_ERROR_TEXT])
{
	const struct timespec pause = { .tv_nsec = BUSY_POLL_NS };
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + OPEN_RECORDS_TIMEOUT_NS;
	bool found;
	int result;

	do {
		result = drain_buffer(writer, &found, error);
		if (result || capture_buffer_close(writer->buffer))
			break;
		nanosleep(&pause, NULL);
	} while (clock_ns(CLOCK_MONOTONIC) < until);
	if (result)
		return result;
	add_statistics(writer);
	return flush_blocks(writer);
}

static int run_writer(struct capture_writer *writer, char error[CAPTURE_ERROR_TEXT])
{
	int result = write_file_header(writer);
	bool found;

	while (!result && !atomic_load(&writer->stop)) {
		struct timespec pause = { .tv_nsec = IDLE_POLL_NS };

		result = drain_buffer(writer, &found, error);
		if (found)
			pause.tv_nsec = BUSY_POLL_NS;
		nanosleep(&pause, NULL);
	}
	return result ? result : drain_remaining(writer, error);
}

static void *writer_thread(void *arg)
{
	struct capture_writer *writer = arg;
	char error[CAPTURE_ERROR_TEXT] = "";
	int result = run_writer(writer, error);

	if (result)
		abort_capture(writer, result, error);
	pthread_mutex_lock(&file_lock);
	if (writer->file.fd >= 0)
		capture_file_close(&writer->file);
	pthread_mutex_unlock(&file_lock);
	atomic_store(&writer->ended, true);
	return NULL;
}

int capture_writer_start(struct capture_writer *writer, const struct capture_config *config,
			 struct capture_buffer *buffer, int fd, char error[CAPTURE_ERROR_TEXT])
{
	int result;

	*writer = (struct capture_writer){ .config = config, .buffer = buffer };
	result = fd < 0 ? open_next_file(writer, error)
			: capture_file_adopt(&writer->file, fd, error);
	if (result)
		return result;
	writer->blocks = malloc(CAPTURE_FILE_APPEND_MAX + CAPTURE_FILE_TAIL);
	if (!writer->blocks) {
		snprintf(error, CAPTURE_ERROR_TEXT, "out of memory");
		result = -ENOMEM;
		goto close;
	}
	result = thread_start(&writer->thread, "uroce-capture", writer_thread, writer);
	if (result) {
		snprintf(error, CAPTURE_ERROR_TEXT, "cannot start a thread: %s", strerror(-result));
		goto free;
	}
	return 0;

free:
	free(writer->blocks);
close:
	capture_file_close(&writer->file);
	return result;
}

bool capture_writer_stop(struct capture_writer *writer)
{
	const struct timespec pause = { .tv_nsec = BUSY_POLL_NS };
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + STOP_TIMEOUT_SECONDS * UINT64_C(1000000000);

	atomic_store(&writer->stop, true);
	while (!atomic_load(&writer->ended)) {
		if (clock_ns(CLOCK_MONOTONIC) > until)
			return false;
		nanosleep(&pause, NULL);
	}
	pthread_join(writer->thread, NULL);
	free(writer->blocks);
	return true;
}
