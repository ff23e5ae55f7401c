/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "capture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"
#include "frame.h"
#include "pcapng.h"
#include "writer.h"

/*
 * Never freed, except for the buffer's memory: a thread may have loaded capture_now and use it at
 * any later time.  It then finds the buffer closed.
 */
struct capture {
	struct capture *older;
	struct capture_config config;
	struct capture_buffer buffer;
	struct capture_writer writer;
};

_Atomic(struct capture *) capture_now;

/* Serializes control calls; protects newest, running and started_once. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *newest;
static bool running; /* newest has not been stopped, though an error may have ended its writer */
static bool started_once;

/* Position in the pieces of packets. */
struct cursor {
	const struct iovec *piece;
	size_t offset;
};

/*
 * Copies at most max_copy of the next length bytes and skips the rest; adds all of them to *sum
 * unless it is NULL.
 */
static void copy_payload(struct cursor *cursor, uint8_t *to, size_t length, size_t max_copy,
			 uint32_t *sum)
{
	size_t done = 0;

	while (done < length) {
		const uint8_t *from = (const uint8_t *)cursor->piece->iov_base + cursor->offset;
		size_t part = cursor->piece->iov_len - cursor->offset;

		if (part > length - done)
			part = length - done;
		if (done < max_copy)
			memcpy(to + done, from, part < max_copy - done ? part : max_copy - done);
		if (sum)
			*sum = frame_add_checksum(*sum, from, part, done & 1);
		done += part;
		cursor->offset += part;
		if (cursor->offset == cursor->piece->iov_len) {
			cursor->piece++;
			cursor->offset = 0;
		}
	}
}

/* Parameters of a packet block. */
struct block_params {
	size_t head; /* size of the headers in front of the UDP payload */
	uint32_t snaplen;
	struct pcapng_packet packet;
};

static void set_payload_length(struct block_params *params, size_t payload)
{
	params->packet.original = (uint32_t)(params->head + payload);
	params->packet.captured = params->packet.original < params->snaplen
					  ? params->packet.original
					  : params->snaplen;
}

/* Writes the block of one packet; returns its size. */
static size_t put_packet_block(uint8_t *to, struct block_params *params,
			       const struct capture_packets *packets, struct cursor *cursor,
			       size_t payload, uint16_t identification)
{
	uint8_t *frame = to + PCAPNG_PACKET_HEADER;
	uint32_t sum = 0;

	set_payload_length(params, payload);
	copy_payload(cursor, frame + params->head, payload, params->packet.captured - params->head,
		     packets->path->ipv6 ? &sum : NULL);
	frame_put_headers(frame, packets->path, identification, payload, sum);
	pcapng_put_packet(to, &params->packet);
	return pcapng_packet_bytes(&params->packet);
}

/* Sizes of packets: count - 1 of segment bytes, then one of last bytes. */
struct segmentation {
	uint32_t count;
	size_t segment, last;
};

static struct segmentation get_segmentation(const struct capture_packets *packets)
{
	struct segmentation segments = { .count = 1, .last = packets->bytes };

	if (packets->segment && packets->bytes > packets->segment) {
		segments.segment = packets->segment;
		segments.count =
			(uint32_t)((packets->bytes + segments.segment - 1) / segments.segment);
		segments.last = packets->bytes - (segments.count - 1) * segments.segment;
	}
	return segments;
}

static size_t total_block_bytes(struct block_params *params, const struct segmentation *segments)
{
	size_t bytes;

	set_payload_length(params, segments->last);
	bytes = pcapng_packet_bytes(&params->packet);
	if (segments->count == 1)
		return bytes;
	set_payload_length(params, segments->segment);
	return bytes + (segments->count - 1) * pcapng_packet_bytes(&params->packet);
}

struct capture_record *capture_begin(struct capture *capture, const struct capture_packets *packets)
{
	const struct segmentation segments = get_segmentation(packets);
	struct cursor cursor = { .piece = packets->pieces };
	struct block_params params = {
		.head = frame_headers_bytes(packets->path),
		.snaplen = capture->config.snaplen,
		.packet = { .outbound = packets->outbound, .comment = packets->comment },
	};
	struct capture_record *record;
	size_t bytes;
	uint8_t *to;

	if (capture->config.filters && !capture_config_matches(&capture->config, packets))
		return NULL;
	bytes = total_block_bytes(&params, &segments);
	if (packets->batch_time)
		params.packet.time = *packets->batch_time;
	record = capture_buffer_reserve(&capture->buffer, bytes, segments.count,
					&params.packet.time);
	if (!record)
		return NULL;
	if (packets->batch_time && !*packets->batch_time)
		*packets->batch_time = params.packet.time;
	record->used = (uint32_t)bytes;
	to = record->data;
	for (uint32_t i = 0; i < segments.count; i++)
		to += put_packet_block(to, &params, packets, &cursor,
				       i + 1 < segments.count ? segments.segment : segments.last,
				       (uint16_t)(packets->identification + i));
	return record;
}

void capture_end(struct capture_record *record, bool keep)
{
	capture_buffer_complete(record, keep);
}

/* Caller holds control_lock. */
static int start_locked(const struct capture_config *config, int fd, char error[CAPTURE_ERROR_TEXT])
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int result;

	if (!capture || capture_buffer_open(&capture->buffer)) {
		snprintf(error, CAPTURE_ERROR_TEXT, "no memory for its buffer");
		if (fd >= 0)
			close(fd);
		free(capture);
		return -ENOMEM;
	}
	capture->config = *config;
	result = capture_writer_start(&capture->writer, &capture->config, &capture->buffer, fd,
				      error);
	if (result) {
		capture_buffer_free(&capture->buffer);
		free(capture);
		return result;
	}
	capture->older = newest;
	newest = capture;
	running = true;
	atomic_store(&capture_now, capture);
	return 0;
}

int capture_start(const struct capture_config *config, int fd, char error[CAPTURE_ERROR_TEXT])
{
	int result = -EBUSY;

	pthread_mutex_lock(&control_lock);
	if (!running) {
		result = start_locked(config, fd, error);
	} else {
		snprintf(error, CAPTURE_ERROR_TEXT, "it captures already, into %.150s",
			 *newest->config.name ? newest->config.name
					      : "what another uroce-stat has opened");
		if (fd >= 0)
			close(fd);
	}
	pthread_mutex_unlock(&control_lock);
	return result;
}

int capture_start_once(const struct capture_config *config, char error[CAPTURE_ERROR_TEXT])
{
	int result = 0;

	pthread_mutex_lock(&control_lock);
	if (!started_once && !running) {
		result = start_locked(config, -1, error);
		/* A failed start is retried, and reported, each time. */
		started_once = !result;
	}
	pthread_mutex_unlock(&control_lock);
	return result;
}

/* Caller holds control_lock. */
static void stop_locked(struct capture *capture, struct capture_counts *counts)
{
	running = false;
	atomic_store(&capture_now, NULL);
	capture_buffer_close(&capture->buffer);
	/* A writer that blocks in the file still uses the buffer. */
	if (!capture_writer_stop(&capture->writer))
		return;
	counts->packets = capture->writer.packets;
	counts->lost = atomic_load(&capture->buffer.lost);
	/* So does a thread that has not completed its record. */
	if (capture_buffer_close(&capture->buffer))
		capture_buffer_free(&capture->buffer);
}

void capture_stop(struct capture_counts *counts)
{
	struct capture_counts result = { 0 };

	pthread_mutex_lock(&control_lock);
	if (running)
		stop_locked(newest, &result);
	pthread_mutex_unlock(&control_lock);
	if (counts)
		*counts = result;
}

/* Programs may exit without closing their devices. */
__attribute__((destructor)) static void stop_at_exit(void)
{
	capture_stop(NULL);
}

void capture_fork_prepare(void)
{
	pthread_mutex_lock(&control_lock);
	capture_writer_fork_prepare();
}

void capture_fork_parent(void)
{
	capture_writer_fork_done();
	pthread_mutex_unlock(&control_lock);
}

/* The child has neither the thread nor the buffer's memory. */
void capture_fork_child(void)
{
	atomic_store(&capture_now, NULL);
	if (running && newest->writer.file.fd >= 0)
		close(newest->writer.file.fd);
	running = false;
	started_once = false;
	capture_writer_fork_done();
	pthread_mutex_unlock(&control_lock);
}
