/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The ring of shared memory, compared with a plain queue as a model, and with two threads.
 */
#include "ring_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	OPERATIONS = 100000,
	THREAD_FRAMES = 100000,
};

/* ---- the model ---- */

struct expected {
	struct uroce_abi_frame frame;
	unsigned int noise_at;
	unsigned int room;    /* bytes of the frame in the ring, without skipped */
	unsigned int skipped; /* bytes skipped before it; free once the reader has seen the frame */
};

#define MODEL_FRAMES (ROOM / UNIT + 1)
static struct {
	struct expected frames[MODEL_FRAMES];
	unsigned int first, count;
	bool given;			       /* the first frame; not released yet */
	unsigned int used;		       /* number of bytes in use */
	uint64_t written, read;		       /* positions */
	unsigned int full, skipped, restarted; /* number of times */
	unsigned int written_frames;	       /* total number */
} model;

static void reset_model(void)
{
	memset(&model, 0, sizeof(model));
}

/* Size of a frame in the ring, by counting and not by formula. */
static unsigned int room_of(unsigned int bytes)
{
	unsigned int room = 0;

	while (room < HEAD + bytes)
		room += UNIT;
	return room;
}

static void write_pieces(struct ring_fixture *fixture, const struct expected *wanted, bool fits)
{
	static uint8_t source[LINK_MAX_BYTES];
	struct iovec pieces[4];
	unsigned int count = 1 + rand_below(4), left = wanted->frame.bytes;
	uint8_t *at = source;

	memcpy(source, ring_noise + wanted->noise_at, left);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int part = i + 1 == count ? left : rand_below(left + 1);

		pieces[i] = (struct iovec){ .iov_base = at, .iov_len = part };
		at += part;
		left -= part;
	}
	assert_int_equal(link_ring_write(&fixture->writer, &wanted->frame, pieces, count),
			 fits ? LINK_RING_OK : LINK_RING_FULL);
}

static unsigned int draw_bytes(void)
{
	switch (rand_below(16)) {
	case 0:
		return 1 + rand_below(LINK_MAX_BYTES);
	case 1:
		return LINK_MAX_BYTES - rand_below(2);
	case 2: /* about where one more unit is needed */
		return UNIT * (1 + rand_below(20)) - HEAD + rand_below(3) - 1;
	default:
		return 1 + rand_below(400);
	}
}

/*
 * Returns true if the next frame of an empty ring goes to the start: if it would reach into another
 * interval of 64 KiB, fits in front of its regular position, and is short.
 */
static bool begins_anew(unsigned int offset, unsigned int room)
{
	bool other_stretch = false;

	for (unsigned int unit = offset + UNIT; unit < offset + room; unit += UNIT)
		other_stretch |= unit % 65536 == 0;
	return room <= 4096 && room <= offset && other_stretch;
}

static void model_write(struct ring_fixture *fixture, unsigned int bytes)
{
	unsigned int offset = (unsigned int)(model.written % ROOM);
	struct expected wanted = {
		.frame = { .bytes = bytes,
			   .segment = (uint16_t)rand_below(65536),
			   .src_port = (uint16_t)rand_below(65536),
			   .reserved = rand_below(1u << 30) },
		.noise_at = rand_below(65536),
		.room = room_of(bytes),
	};
	bool fits;

	if (offset + wanted.room > ROOM) {
		wanted.skipped = ROOM - offset;
		model.skipped++;
	} else if (model.count == 0 && begins_anew(offset, wanted.room)) {
		wanted.skipped = ROOM - offset;
		model.restarted++;
	}
	fits = model.used + wanted.skipped + wanted.room <= ROOM;
	write_pieces(fixture, &wanted, fits);
	if (!fits) {
		model.full++;
		return;
	}
	model.frames[(model.first + model.count++) % MODEL_FRAMES] = wanted;
	model.used += wanted.skipped + wanted.room;
	model.written += wanted.skipped + wanted.room;
	model.written_frames++;
}

static void check_frame(const struct uroce_abi_frame *frame, const uint8_t *bytes)
{
	const struct expected *wanted = &model.frames[model.first];

	assert_memory_equal(frame, &wanted->frame, sizeof(*frame));
	assert_true(memcmp(bytes, ring_noise + wanted->noise_at, frame->bytes) == 0);
}

static void model_next(struct ring_fixture *fixture)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes = NULL;
	enum link_ring_result result = link_ring_next(&fixture->reader, &frame, &bytes);

	assert_int_equal(result, model.count ? LINK_RING_OK : LINK_RING_EMPTY);
	if (result != LINK_RING_OK)
		return;
	assert_true(bytes >= fixture->data && bytes + frame.bytes <= fixture->data + ROOM);
	check_frame(&frame, bytes);
	model.used -= model.frames[model.first].skipped;
	model.read += model.frames[model.first].skipped;
	model.frames[model.first].skipped = 0;
	model.given = true;
}

/* A frame is unchanged until it is released, whatever has been written since. */
static void model_release(struct ring_fixture *fixture)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes;

	assert_int_equal(link_ring_next(&fixture->reader, &frame, &bytes), LINK_RING_OK);
	check_frame(&frame, bytes);
	link_ring_release(&fixture->reader);
	model.used -= model.frames[model.first].room;
	model.read += model.frames[model.first].room;
	model.first = (model.first + 1) % MODEL_FRAMES;
	model.count--;
	model.given = false;
}

static void check_positions(const struct ring_fixture *fixture)
{
	static const __u64 zeros[15];

	assert_int_equal(fixture->shared->written, model.written);
	assert_int_equal(fixture->shared->read, model.read);
	assert_int_equal(fixture->shared->written % UNIT, 0);
	assert_int_equal(fixture->shared->read % UNIT, 0);
	assert_memory_equal(fixture->shared->reserved1, zeros, sizeof(fixture->shared->reserved1));
	assert_memory_equal(fixture->shared->reserved2, zeros, sizeof(fixture->shared->reserved2));
	assert_int_equal(link_ring_has_frame(&fixture->reader), model.count > 0);
}

/* Either side may reopen the ring: it continues, and unreleased frames are returned again. */
static void model_reopen(struct ring_fixture *fixture)
{
	if (rand_below(2)) {
		memset(&fixture->writer, 0xa5, sizeof(fixture->writer));
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		return;
	}
	memset(&fixture->reader, 0xa5, sizeof(fixture->reader));
	link_ring_open_reader(&fixture->reader, fixture->shared, fixture->data);
	model.given = false;
}

/* The reader keeps up with a writer of short frames. */
static void model_keep_up(struct ring_fixture *fixture)
{
	for (unsigned int i = 0; i < 400; i++) {
		while (model.count > 0) {
			model_next(fixture);
			model_release(fixture);
		}
		model_write(fixture, 1 + rand_below(800));
		check_positions(fixture);
	}
}

/* Frames of all sizes come out as they went in, and there is room for exactly what fits. */
static void test_against_a_queue(void **state)
{
	struct ring_fixture *fixture = *state;
	bool filling = true;

	reset_model();
	for (unsigned int i = 0; i < OPERATIONS; i++) {
		/* Phases of mostly writes and mostly reads: the ring gets full and empty. */
		if (rand_below(300) == 0)
			filling = !filling;
		if (rand_below(64) == 0)
			model_reopen(fixture);
		if (rand_below(2000) == 0)
			model_keep_up(fixture);
		if (rand_below(10) < (filling ? 7u : 3u))
			model_write(fixture, draw_bytes());
		else if (model.given)
			model_release(fixture);
		else
			model_next(fixture);
		check_positions(fixture);
	}
	/* All cases have occurred. */
	assert_true(model.full > 500 && model.skipped > 50 && model.restarted > 10 &&
		    model.written_frames > 10000);
}

/* A writer whose reader keeps up uses the first pages of the ring, however much it writes. */
static void test_few_pages(void **state)
{
	enum { FRAMES = 100000, BYTES = 300, STRETCH = 65536 };
	struct ring_fixture *fixture = *state;
	struct uroce_abi_frame frame = { .bytes = BYTES };
	struct iovec piece = { .iov_base = ring_noise, .iov_len = BYTES };
	uint8_t *bytes, *furthest = fixture->data;

	for (unsigned int i = 0; i < FRAMES; i++) {
		assert_int_equal(link_ring_write(&fixture->writer, &frame, &piece, 1),
				 LINK_RING_OK);
		assert_int_equal(link_ring_next(&fixture->reader, &frame, &bytes), LINK_RING_OK);
		if (bytes > furthest)
			furthest = bytes;
		link_ring_release(&fixture->reader);
	}
	assert_uint_in_range(furthest + BYTES - fixture->data, STRETCH / 2, STRETCH);
}

/* ---- two threads ---- */

static unsigned int thread_bytes(unsigned int number)
{
	return number % 97 == 0 ? LINK_MAX_BYTES - number % 5 : 1 + number * 7 % 1500;
}

static void *write_frames(void *arg)
{
	struct ring_fixture *fixture = arg;

	for (unsigned int i = 0; i < THREAD_FRAMES; i++) {
		struct uroce_abi_frame frame = { .bytes = thread_bytes(i), .reserved = i };
		struct iovec piece = { .iov_base = ring_noise + i % 65536, .iov_len = frame.bytes };
		enum link_ring_result result;

		while ((result = link_ring_write(&fixture->writer, &frame, &piece, 1)) ==
		       LINK_RING_FULL)
			sched_yield();
		if (result != LINK_RING_OK)
			return "not written";
	}
	return NULL;
}

static void *read_frames(void *arg)
{
	struct ring_fixture *fixture = arg;

	for (unsigned int i = 0; i < THREAD_FRAMES; i++) {
		struct uroce_abi_frame frame;
		enum link_ring_result result;
		uint8_t *bytes;

		while ((result = link_ring_next(&fixture->reader, &frame, &bytes)) ==
		       LINK_RING_EMPTY)
			sched_yield();
		if (result != LINK_RING_OK)
			return "not read";
		if (frame.reserved != i || frame.bytes != thread_bytes(i))
			return "another frame";
		if (memcmp(bytes, ring_noise + i % 65536, frame.bytes))
			return "other bytes";
		link_ring_release(&fixture->reader);
	}
	return link_ring_has_frame(&fixture->reader) ? "more than was written" : NULL;
}

static void test_two_threads(void **state)
{
	struct ring_fixture *fixture = *state;
	pthread_t writer, reader;
	void *complaint;

	assert_int_equal(pthread_create(&writer, NULL, write_frames, fixture), 0);
	assert_int_equal(pthread_create(&reader, NULL, read_frames, fixture), 0);
	pthread_join(reader, &complaint);
	if (complaint)
		fail_msg("reader: %s", (const char *)complaint);
	pthread_join(writer, &complaint);
	if (complaint)
		fail_msg("writer: %s", (const char *)complaint);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(test_against_a_queue),
		WITH_RING(test_few_pages),
		WITH_RING(test_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
