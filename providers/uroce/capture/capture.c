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
 * any later time.  It then finds the buffer shut.
 */
struct capture {
	struct capture *older;
	struct capture_config config;
	struct capture_buffer buffer;
	struct capture_writer writer;
};

_Atomic(struct capture *) capture_now;

/* Serializes control calls; protects newest, running and begun_once. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *newest;
static bool running; /* newest has not been stopped, though an error may have ended its writer */
static bool begun_once;

/* Position in the pieces of packets. */
struct cursor {
	const struct iovec *piece;
	size_t offset;
};

/* Copies the first most of the next length bytes; adds all of them to *sum unless it is NULL. */
static void copy(struct cursor *cursor, uint8_t *to, size_t length, size_t most, uint32_t *sum)
{
	size_t done = 0;

	while (done < length) {
		const uint8_t *from = (const uint8_t *)cursor->piece->iov_base + cursor->offset;
		size_t part = cursor->piece->iov_len - cursor->offset;

		if (part > length - done)
			part = length - done;
		if (done < most)
			memcpy(to + done, from, part < most - done ? part : most - done);
		if (sum)
			*sum = frame_sum(*sum, from, part, done & 1);
		done += part;
		cursor->offset += part;
		if (cursor->offset == cursor->piece->iov_len) {
			cursor->piece++;
			cursor->offset = 0;
		}
	}
}

/* Parameters of a packet block. */
struct shape {
	size_t head; /* size of the headers in front of the UDP payload */
	uint32_t snaplen;
	struct pcapng_packet packet;
};

static void set_length(struct shape *shape, size_t payload)
{
	shape->packet.original = (uint32_t)(shape->head + payload);
	shape->packet.captured =
		shape->packet.original < shape->snaplen ? shape->packet.original : shape->snaplen;
}

/* Writes the block of one packet; returns its size. */
static size_t put_one(uint8_t *to, struct shape *shape, const struct capture_packets *packets,
		      struct cursor *cursor, size_t payload, uint16_t identification)
{
	uint8_t *frame = to + PCAPNG_PACKET_HEAD;
	uint32_t sum = 0;

	set_length(shape, payload);
	copy(cursor, frame + shape->head, payload, shape->packet.captured - shape->head,
	     packets->path->ipv6 ? &sum : NULL);
	frame_put_head(frame, packets->path, identification, payload, sum);
	pcapng_put_packet(to, &shape->packet);
	return pcapng_packet_bytes(&shape->packet);
}

/* Sizes of the packets; all but the last have the same. */
struct division {
	uint32_t count;
	size_t segment, last;
};

static struct division divide(const struct capture_packets *packets)
{
	struct division into = { .count = 1, .last = packets->bytes };

	if (packets->segment && packets->bytes > packets->segment) {
		into.segment = packets->segment;
		into.count = (uint32_t)((packets->bytes + into.segment - 1) / into.segment);
		into.last = packets->bytes - (into.count - 1) * into.segment;
	}
	return into;
}

static size_t blocks_bytes(struct shape *shape, const struct division *into)
{
	size_t bytes;

	set_length(shape, into->last);
	bytes = pcapng_packet_bytes(&shape->packet);
	if (into->count == 1)
		return bytes;
	set_length(shape, into->segment);
	return bytes + (into->count - 1) * pcapng_packet_bytes(&shape->packet);
}

struct capture_record *capture_begin(struct capture *capture, const struct capture_packets *packets)
{
	const struct division into = divide(packets);
	struct cursor cursor = { .piece = packets->pieces };
	struct shape shape = {
		.head = frame_head_bytes(packets->path),
		.snaplen = capture->config.snaplen,
		.packet = { .outbound = packets->outbound, .comment = packets->comment },
	};
	struct capture_record *record;
	size_t bytes;
	uint8_t *to;

	if (capture->config.filters && !capture_config_wants(&capture->config, packets))
		return NULL;
	bytes = blocks_bytes(&shape, &into);
	if (packets->came)
		shape.packet.time = *packets->came;
	record = capture_buffer_add(&capture->buffer, bytes, into.count, &shape.packet.time);
	if (!record)
		return NULL;
	if (packets->came && !*packets->came)
		*packets->came = shape.packet.time;
	record->used = (uint32_t)bytes;
	to = record->data;
	for (uint32_t i = 0; i < into.count; i++)
		to += put_one(to, &shape, packets, &cursor,
			      i + 1 < into.count ? into.segment : into.last,
			      (uint16_t)(packets->identification + i));
	return record;
}

void capture_end(struct capture_record *record, bool keep)
{
	capture_buffer_end(record, keep);
}

/* Caller holds control_lock. */
static int start(const struct capture_config *config, int fd, char error[CAPTURE_ERROR_TEXT])
{
	struct capture *made = calloc(1, sizeof(*made));
	int result;

	if (!made || capture_buffer_open(&made->buffer)) {
		snprintf(error, CAPTURE_ERROR_TEXT, "no memory for its buffer");
		if (fd >= 0)
			close(fd);
		free(made);
		return -ENOMEM;
	}
	made->config = *config;
	result = capture_writer_start(&made->writer, &made->config, &made->buffer, fd, error);
	if (result) {
		capture_buffer_close(&made->buffer);
		free(made);
		return result;
	}
	made->older = newest;
	newest = made;
	running = true;
	atomic_store(&capture_now, made);
	return 0;
}

int capture_start(const struct capture_config *config, int fd, char error[CAPTURE_ERROR_TEXT])
{
	int result = -EBUSY;

	pthread_mutex_lock(&control_lock);
	if (!running) {
		result = start(config, fd, error);
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
	if (!begun_once && !running) {
		result = start(config, -1, error);
		/* A failed start is retried, and reported, each time. */
		begun_once = !result;
	}
	pthread_mutex_unlock(&control_lock);
	return result;
}

/* Caller holds control_lock. */
static void stop(struct capture *capture, struct capture_counts *counts)
{
	running = false;
	atomic_store(&capture_now, NULL);
	capture_buffer_shut(&capture->buffer);
	/* A writer that blocks in the file still uses the buffer. */
	if (!capture_writer_stop(&capture->writer))
		return;
	counts->packets = capture->writer.packets;
	counts->lost = atomic_load(&capture->buffer.lost);
	/* So does a thread that has not completed its record. */
	if (capture_buffer_shut(&capture->buffer))
		capture_buffer_close(&capture->buffer);
}

void capture_stop(struct capture_counts *counts)
{
	struct capture_counts those = { 0 };

	pthread_mutex_lock(&control_lock);
	if (running)
		stop(newest, &those);
	pthread_mutex_unlock(&control_lock);
	if (counts)
		*counts = those;
}

/* Programs may exit without closing their devices. */
__attribute__((destructor)) static void end(void)
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
	begun_once = false;
	capture_writer_fork_done();
	pthread_mutex_unlock(&control_lock);
}
