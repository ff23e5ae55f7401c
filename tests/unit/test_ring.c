/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The ring of shared memory: against a queue that knows nothing of memory, against a side that does
 * not keep to the format, and with two threads.
 *
 * Pages that nobody may touch are around the ring's head and around its data.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/link.h"
#include "link/ring.h"

enum {
	ROOM = UROCE_ABI_RING_BYTES,
	UNIT = UROCE_ABI_RING_ALIGN,
	HEAD = 16, /* of a frame */
	OPERATIONS = 100000,
	THREAD_FRAMES = 100000,
	/* Each frame is a window into these random bytes. */
	NOISE_BYTES = 2 * 65536,
};

static uint8_t noise[NOISE_BYTES];
static uint64_t seed = 88172645463325252u;

static unsigned int draw(unsigned int below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned int)(seed >> 20) % below;
}

struct fixture {
	uint8_t *mapping;
	size_t page;
	struct uroce_abi_ring *shared;
	uint8_t *data;
	struct link_ring_writer writer;
	struct link_ring_reader reader;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = mmap(NULL, 4 * page + ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || mprotect(at + page, page, PROT_READ | PROT_WRITE) ||
	    mprotect(at + 3 * page, ROOM, PROT_READ | PROT_WRITE))
		return -1;
	mprotect(at + 3 * page + ROOM, page, PROT_NONE);
	for (unsigned int i = 0; i < NOISE_BYTES; i++)
		noise[i] = (uint8_t)draw(256);
	fixture->mapping = at;
	fixture->page = page;
	/* At the end of its page, so that what is behind it is guarded to the byte. */
	fixture->shared = (void *)(at + 2 * page - sizeof(*fixture->shared));
	fixture->data = at + 3 * page;
	link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
	link_ring_open_reader(&fixture->reader, fixture->shared, fixture->data);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	munmap(fixture->mapping, 4 * fixture->page + ROOM);
	free(fixture);
	return 0;
}

/* ---- the model ---- */

struct expected {
	struct uroce_abi_frame frame;
	unsigned int noise_at;
	unsigned int room; /* with what it skipped at the end */
};

#define MODEL_FRAMES (ROOM / UNIT + 1)
static struct {
	struct expected frames[MODEL_FRAMES];
	unsigned int first, count;
	bool given;		     /* the first one, and not released yet */
	unsigned int used;	     /* bytes of the ring */
	uint64_t written, read;	     /* positions */
	unsigned int full, skipped;  /* how often */
	unsigned int written_frames; /* all */
} model;

static void reset_model(void)
{
	memset(&model, 0, sizeof(model));
}

/* What a frame takes, by counting and not by formula. */
static unsigned int room_of(unsigned int bytes)
{
	unsigned int room = 0;

	while (room < HEAD + bytes)
		room += UNIT;
	return room;
}

static void write_pieces(struct fixture *fixture, const struct expected *wanted, bool fits)
{
	static uint8_t source[LINK_MAX_BYTES];
	struct iovec pieces[4];
	unsigned int count = 1 + draw(4), left = wanted->frame.bytes;
	uint8_t *at = source;

	memcpy(source, noise + wanted->noise_at, left);
	for (unsigned int i = 0; i < count; i++) {
		unsigned int part = i + 1 == count ? left : draw(left + 1);

		pieces[i] = (struct iovec){ .iov_base = at, .iov_len = part };
		at += part;
		left -= part;
	}
	assert_int_equal(link_ring_write(&fixture->writer, &wanted->frame, pieces, count),
			 fits ? LINK_RING_OK : LINK_RING_FULL);
}

static unsigned int draw_bytes(void)
{
	switch (draw(16)) {
	case 0:
		return 1 + draw(LINK_MAX_BYTES);
	case 1:
		return LINK_MAX_BYTES - draw(2);
	case 2: /* about where one more unit is needed */
		return UNIT * (1 + draw(20)) - HEAD + draw(3) - 1;
	default:
		return 1 + draw(400);
	}
}

static void model_write(struct fixture *fixture)
{
	unsigned int bytes = draw_bytes(), offset = (unsigned int)(model.written % ROOM);
	struct expected wanted = {
		.frame = { .bytes = bytes,
			   .segment = (uint16_t)draw(65536),
			   .src_port = (uint16_t)draw(65536),
			   .reserved = draw(1u << 30) },
		.noise_at = draw(65536),
		.room = room_of(bytes),
	};
	bool fits;

	if (offset + wanted.room > ROOM) {
		wanted.room += ROOM - offset;
		model.skipped++;
	}
	fits = model.used + wanted.room <= ROOM;
	write_pieces(fixture, &wanted, fits);
	if (!fits) {
		model.full++;
		return;
	}
	model.frames[(model.first + model.count++) % MODEL_FRAMES] = wanted;
	model.used += wanted.room;
	model.written += wanted.room;
	model.written_frames++;
}

static void check_frame(const struct uroce_abi_frame *frame, const uint8_t *bytes)
{
	const struct expected *wanted = &model.frames[model.first];

	assert_memory_equal(frame, &wanted->frame, sizeof(*frame));
	assert_true(memcmp(bytes, noise + wanted->noise_at, frame->bytes) == 0);
}

static void model_next(struct fixture *fixture)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes = NULL;
	enum link_ring_result result = link_ring_next(&fixture->reader, &frame, &bytes);

	assert_int_equal(result, model.count ? LINK_RING_OK : LINK_RING_EMPTY);
	if (result != LINK_RING_OK)
		return;
	assert_true(bytes >= fixture->data && bytes + frame.bytes <= fixture->data + ROOM);
	check_frame(&frame, bytes);
	model.given = true;
}

/* What was given is still as it was, whatever has been written since. */
static void model_release(struct fixture *fixture)
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

static void check_positions(const struct fixture *fixture)
{
	static const __u64 zeros[15];

	assert_int_equal(fixture->shared->written, model.written);
	assert_int_equal(fixture->shared->read, model.read);
	assert_int_equal(fixture->shared->written % UNIT, 0);
	assert_int_equal(fixture->shared->read % UNIT, 0);
	assert_memory_equal(fixture->shared->reserved1, zeros, sizeof(zeros));
	assert_memory_equal(fixture->shared->reserved2, zeros, sizeof(zeros));
	assert_int_equal(link_ring_has_more(&fixture->reader), model.count > 0);
}

/* Either side may begin anew: the ring goes on, and what was not released comes again. */
static void model_reopen(struct fixture *fixture)
{
	if (draw(2)) {
		memset(&fixture->writer, 0xa5, sizeof(fixture->writer));
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		return;
	}
	memset(&fixture->reader, 0xa5, sizeof(fixture->reader));
	link_ring_open_reader(&fixture->reader, fixture->shared, fixture->data);
	model.given = false;
}

/* Frames of all sizes come out as they went in, and there is room for exactly what fits. */
static void test_against_a_queue(void **state)
{
	struct fixture *fixture = *state;
	bool filling = true;

	reset_model();
	for (unsigned int i = 0; i < OPERATIONS; i++) {
		/* Now more is written than read, now the other way round: full and empty. */
		if (draw(300) == 0)
			filling = !filling;
		if (draw(64) == 0)
			model_reopen(fixture);
		if (draw(10) < (filling ? 7u : 3u))
			model_write(fixture);
		else if (model.given)
			model_release(fixture);
		else
			model_next(fixture);
		check_positions(fixture);
	}
	/* The script did go everywhere. */
	assert_true(model.full > 1000 && model.skipped > 100 && model.written_frames > 10000);
}

/* ---- the other side does not keep to the format ---- */

static void put_head(struct fixture *fixture, uint64_t at, uint32_t bytes)
{
	struct uroce_abi_frame frame = { .bytes = bytes };

	memcpy(fixture->data + at % ROOM, &frame, sizeof(frame));
}

static enum link_ring_result next_of(struct fixture *fixture)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes;

	return link_ring_next(&fixture->reader, &frame, &bytes);
}

/* A reader at read, of a ring with frames of bytes each that are said to end at written. */
static enum link_ring_result read_hostile(struct fixture *fixture, uint64_t read, uint64_t written,
					  uint32_t bytes)
{
	enum link_ring_result result;

	fixture->shared->read = read;
	fixture->shared->written = written;
	link_ring_open_reader(&fixture->reader, fixture->shared, fixture->data);
	if (read % UNIT == 0)
		put_head(fixture, read, bytes);
	result = next_of(fixture);
	/* What it says it says again, and a frame that is not there is not released. */
	assert_int_equal(next_of(fixture), result);
	assert_int_equal(fixture->shared->read, read);
	return result;
}

static void test_hostile_writer_positions(void **state)
{
	static const uint64_t reads[] = { 0, 64, ROOM - 64, ROOM, 5 * (uint64_t)ROOM + 640 };
	struct fixture *fixture = *state;

	for (unsigned int i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		const uint64_t read = reads[i], wrong[] = {
			read + ROOM + 64, read + 2 * (uint64_t)ROOM, read + 1,
			read + 63,	  read + ROOM - 1,	     read - 64,
			read - ROOM,	  read + (1ull << 63),	     read ^ 1,
		};

		for (unsigned int n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
			assert_int_equal(read_hostile(fixture, read, wrong[n], 8),
					 LINK_RING_BROKEN);
			assert_false(link_ring_has_more(&fixture->reader));
		}
		assert_int_equal(read_hostile(fixture, read, read, 8), LINK_RING_EMPTY);
		assert_int_equal(read_hostile(fixture, read, read + 64, 8), LINK_RING_OK);
		assert_int_equal(read_hostile(fixture, read, read + ROOM, 8), LINK_RING_OK);
	}
	/* What this reader has read so far: an earlier position of its own cannot be right. */
	assert_int_equal(read_hostile(fixture, 32, 96, 8), LINK_RING_BROKEN);
}

static void test_hostile_lengths(void **state)
{
	struct fixture *fixture = *state;

	/* The largest, and one byte more. */
	assert_int_equal(read_hostile(fixture, 64, ROOM + 64, LINK_MAX_BYTES), LINK_RING_OK);
	assert_int_equal(read_hostile(fixture, 64, ROOM + 64, LINK_MAX_BYTES + 1),
			 LINK_RING_BROKEN);
	assert_int_equal(read_hostile(fixture, 64, ROOM + 64, UINT32_MAX), LINK_RING_BROKEN);
	assert_int_equal(read_hostile(fixture, 64, ROOM + 64, UINT32_MAX - HEAD + 1),
			 LINK_RING_BROKEN);
	/* Up to the end of the ring, and one byte more. */
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 64 - HEAD), LINK_RING_OK);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 65 - HEAD), LINK_RING_BROKEN);
	/* Up to what is written, and one byte more. */
	assert_int_equal(read_hostile(fixture, 0, 128, 128 - HEAD), LINK_RING_OK);
	assert_int_equal(read_hostile(fixture, 0, 128, 129 - HEAD), LINK_RING_BROKEN);
}

static void test_hostile_skips(void **state)
{
	struct fixture *fixture = *state;

	/* None is at the start, where it would go round for ever. */
	assert_int_equal(read_hostile(fixture, 0, 64, 0), LINK_RING_BROKEN);
	assert_int_equal(read_hostile(fixture, 0, ROOM, 0), LINK_RING_BROKEN);
	/* It leads beyond what is written, to what looks like a frame. */
	put_head(fixture, 0, 8);
	assert_int_equal(read_hostile(fixture, 64, 128, 0), LINK_RING_BROKEN);
	assert_int_equal(read_hostile(fixture, 64, ROOM - 64, 0), LINK_RING_BROKEN);
	/* Nothing behind it. */
	assert_int_equal(read_hostile(fixture, 64, ROOM, 0), LINK_RING_EMPTY);
	/* Behind it another one. */
	put_head(fixture, 0, 0);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 0), LINK_RING_BROKEN);
	/* A frame behind it, and one that is too long. */
	put_head(fixture, 0, 64 - HEAD);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 0), LINK_RING_OK);
	put_head(fixture, 0, 65 - HEAD);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 0), LINK_RING_BROKEN);
}

/* The writer goes back while the reader goes on. */
static void test_writer_turns_back(void **state)
{
	struct fixture *fixture = *state;

	for (unsigned int i = 0; i < 3; i++)
		put_head(fixture, i * 64, 8);
	fixture->shared->written = 3 * 64;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(next_of(fixture), LINK_RING_OK);
		link_ring_release(&fixture->reader);
	}
	fixture->shared->written = 64;
	assert_false(link_ring_has_more(&fixture->reader));
	/* What was seen to be written may be read still. */
	assert_int_equal(next_of(fixture), LINK_RING_OK);
	link_ring_release(&fixture->reader);
	assert_int_equal(next_of(fixture), LINK_RING_BROKEN);
}

/* Write until there is no more room: what ended it. */
static enum link_ring_result write_all(struct fixture *fixture, unsigned int bytes)
{
	struct uroce_abi_frame frame = { .bytes = bytes };
	struct iovec piece = { .iov_base = noise, .iov_len = bytes };
	enum link_ring_result result = LINK_RING_OK;

	for (unsigned int i = 0; i <= 2 * ROOM / UNIT && result == LINK_RING_OK; i++)
		result = link_ring_write(&fixture->writer, &frame, &piece, 1);
	return result;
}

/* Whatever the reader says, nothing is written outside, and it comes to an end. */
static void test_hostile_reader(void **state)
{
	static const uint64_t wrong[] = { 1,	    32,		63,	    65,
					  ROOM + 1, ROOM + 128, 1ull << 62, UINT64_MAX };
	static const unsigned int sizes[] = { 1, 48, 49, 4096, LINK_MAX_BYTES };
	struct fixture *fixture = *state;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]) * 5; i++) {
		unsigned int bytes = sizes[i % 5];

		/* Seen when there is no room any more. */
		fixture->shared->read = fixture->shared->written = 640;
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		fixture->shared->read = 640 - wrong[i / 5];
		assert_int_equal(write_all(fixture, bytes), LINK_RING_BROKEN);
		assert_int_equal(write_all(fixture, bytes), LINK_RING_BROKEN);
		/* Seen by a writer that begins, and where it begins is wrong itself. */
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		assert_int_not_equal(write_all(fixture, bytes), LINK_RING_OK);
		fixture->shared->written = 640 - wrong[i / 5];
		fixture->shared->read = 640;
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		assert_int_not_equal(write_all(fixture, bytes), LINK_RING_OK);
	}
	/* Before the writer himself, where there would be room. */
	fixture->shared->written = fixture->shared->read = 640;
	link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
	assert_int_equal(write_all(fixture, 100), LINK_RING_FULL);
	fixture->shared->read = fixture->shared->written + 64;
	assert_int_equal(write_all(fixture, 100), LINK_RING_BROKEN);
	assert_int_equal(write_all(fixture, 100), LINK_RING_BROKEN);
}

/* Where the last writer is said to have ended cannot be: not one frame is written from there. */
static void test_hostile_beginnings(void **state)
{
	static const struct {
		uint64_t written, read;
	} wrong[] = {
		{ 32, 32 },
		{ ROOM - 1, 0 },
		{ ROOM - 1, 64 },
		{ UINT64_MAX, 0 },
		{ ROOM, 1 },
		{ 0, 64 },
		{ 64, 128 },
		{ ROOM + 64, 0 },
		{ 64, ROOM },
		{ 63, 0 },
		{ (1ull << 63) + 64, 64 },
	};
	struct fixture *fixture = *state;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fixture->shared->written = wrong[i].written;
		fixture->shared->read = wrong[i].read;
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		for (unsigned int bytes = 1; bytes <= LINK_MAX_BYTES; bytes += 9357)
			assert_int_equal(write_all(fixture, bytes), LINK_RING_BROKEN);
		assert_int_equal(fixture->shared->written, wrong[i].written);
	}
}

/* A reader that gives up is heard by the writer, who writes nothing more, until both begin anew. */
static void test_giving_up(void **state)
{
	struct fixture *fixture = *state;
	uint64_t written;

	assert_int_equal(write_all(fixture, 1000), LINK_RING_FULL);
	while (next_of(fixture) == LINK_RING_OK)
		link_ring_release(&fixture->reader);
	assert_false(link_ring_is_given_up(&fixture->writer));
	assert_true(link_ring_has_room(&fixture->writer, 2 * LINK_MAX_BYTES));
	fixture->shared->written++;
	assert_int_equal(next_of(fixture), LINK_RING_BROKEN);
	assert_false(link_ring_is_given_up(&fixture->writer));
	link_ring_give_up(&fixture->reader);
	assert_true(link_ring_is_given_up(&fixture->writer));
	assert_false(link_ring_has_more(&fixture->reader));
	assert_int_equal(write_all(fixture, 1000), LINK_RING_BROKEN);
	written = fixture->shared->written;
	assert_int_equal(write_all(fixture, 1000), LINK_RING_BROKEN);
	assert_int_equal(fixture->shared->written, written);

	link_ring_renew(&fixture->reader);
	link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
	assert_false(link_ring_is_given_up(&fixture->writer));
	assert_int_equal(write_all(fixture, 1000), LINK_RING_FULL);
	assert_int_equal(next_of(fixture), LINK_RING_OK);
}

/* ---- two threads ---- */

static unsigned int thread_bytes(unsigned int number)
{
	return number % 97 == 0 ? LINK_MAX_BYTES - number % 5 : 1 + number * 7 % 1500;
}

static void *write_frames(void *arg)
{
	struct fixture *fixture = arg;

	for (unsigned int i = 0; i < THREAD_FRAMES; i++) {
		struct uroce_abi_frame frame = { .bytes = thread_bytes(i), .reserved = i };
		struct iovec piece = { .iov_base = noise + i % 65536, .iov_len = frame.bytes };
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
	struct fixture *fixture = arg;

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
		if (memcmp(bytes, noise + i % 65536, frame.bytes))
			return "other bytes";
		link_ring_release(&fixture->reader);
	}
	return link_ring_has_more(&fixture->reader) ? "more than was written" : NULL;
}

static void test_two_threads(void **state)
{
	struct fixture *fixture = *state;
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

#define WITH_RING(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(test_against_a_queue),    WITH_RING(test_hostile_writer_positions),
		WITH_RING(test_hostile_lengths),    WITH_RING(test_hostile_skips),
		WITH_RING(test_writer_turns_back),  WITH_RING(test_hostile_reader),
		WITH_RING(test_hostile_beginnings), WITH_RING(test_giving_up),
		WITH_RING(test_two_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
