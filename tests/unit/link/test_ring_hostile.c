/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The ring of shared memory with a side that violates the format: the ring is found broken, and
 * nothing outside it is accessed.
 */
#include "ring_fixture.h"

#include <string.h>

static void put_head(struct ring_fixture *fixture, uint64_t at, uint32_t bytes)
{
	struct uroce_abi_frame frame = { .bytes = bytes };

	memcpy(fixture->data + at % ROOM, &frame, sizeof(frame));
}

static enum link_ring_result next_of(struct ring_fixture *fixture)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes;

	return link_ring_next(&fixture->reader, &frame, &bytes);
}

/*
 * Returns the result of a reader at position read, with a frame of this number of bytes there and
 * the writer at position written.
 */
static enum link_ring_result read_hostile(struct ring_fixture *fixture, uint64_t read,
					  uint64_t written, uint32_t bytes)
{
	/* A skip to the ring's end that lies within the written bytes is completed at once. */
	bool skips = bytes == 0 && read % ROOM && written - read >= ROOM - read % ROOM;
	enum link_ring_result result;

	fixture->shared->read = read;
	fixture->shared->written = written;
	link_ring_open_reader(&fixture->reader, fixture->shared, fixture->data);
	if (read % UNIT == 0)
		put_head(fixture, read, bytes);
	result = next_of(fixture);
	/* A second call has the same result, and a frame that does not exist is not released. */
	assert_int_equal(next_of(fixture), result);
	assert_int_equal(fixture->shared->read, skips ? read - read % ROOM + ROOM : read);
	return result;
}

static void test_hostile_writer_positions(void **state)
{
	static const uint64_t reads[] = { 0, 64, ROOM - 64, ROOM, 5 * (uint64_t)ROOM + 640 };
	struct ring_fixture *fixture = *state;

	for (unsigned int i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		const uint64_t read = reads[i], wrong[] = {
			read + ROOM + 64, read + 2 * (uint64_t)ROOM, read + 1,
			read + 63,	  read + ROOM - 1,	     read - 64,
			read - ROOM,	  read + (1ull << 63),	     read ^ 1,
		};

		for (unsigned int n = 0; n < sizeof(wrong) / sizeof(wrong[0]); n++) {
			assert_int_equal(read_hostile(fixture, read, wrong[n], 8),
					 LINK_RING_BROKEN);
			assert_false(link_ring_has_frame(&fixture->reader));
		}
		assert_int_equal(read_hostile(fixture, read, read, 8), LINK_RING_EMPTY);
		assert_int_equal(read_hostile(fixture, read, read + 64, 8), LINK_RING_OK);
		assert_int_equal(read_hostile(fixture, read, read + ROOM, 8), LINK_RING_OK);
	}
	/* An unaligned position of the reader itself is wrong as well. */
	assert_int_equal(read_hostile(fixture, 32, 96, 8), LINK_RING_BROKEN);
}

static void test_hostile_lengths(void **state)
{
	struct ring_fixture *fixture = *state;

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
	struct ring_fixture *fixture = *state;

	/* A skip at the start of the ring, where the reader would loop */
	assert_int_equal(read_hostile(fixture, 0, 64, 0), LINK_RING_BROKEN);
	assert_int_equal(read_hostile(fixture, 0, ROOM, 0), LINK_RING_BROKEN);
	/* A skip beyond the written bytes, to what looks like a frame */
	put_head(fixture, 0, 8);
	assert_int_equal(read_hostile(fixture, 64, 128, 0), LINK_RING_BROKEN);
	assert_int_equal(read_hostile(fixture, 64, ROOM - 64, 0), LINK_RING_BROKEN);
	/* A skip with nothing after it */
	assert_int_equal(read_hostile(fixture, 64, ROOM, 0), LINK_RING_EMPTY);
	/* A skip followed by another skip */
	put_head(fixture, 0, 0);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 0), LINK_RING_BROKEN);
	/* A skip followed by a frame, and by a frame that is too long */
	put_head(fixture, 0, 64 - HEAD);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 0), LINK_RING_OK);
	put_head(fixture, 0, 65 - HEAD);
	assert_int_equal(read_hostile(fixture, ROOM - 64, ROOM + 64, 0), LINK_RING_BROKEN);
}

/* The writer's position goes back while the reader continues. */
static void test_writer_turns_back(void **state)
{
	struct ring_fixture *fixture = *state;

	for (unsigned int i = 0; i < 3; i++)
		put_head(fixture, i * 64, 8);
	fixture->shared->written = 3 * 64;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(next_of(fixture), LINK_RING_OK);
		link_ring_release(&fixture->reader);
	}
	fixture->shared->written = 64;
	assert_false(link_ring_has_frame(&fixture->reader));
	/* A frame that was complete may still be read. */
	assert_int_equal(next_of(fixture), LINK_RING_OK);
	link_ring_release(&fixture->reader);
	assert_int_equal(next_of(fixture), LINK_RING_BROKEN);
}

/* Writes frames until a write fails.  Returns the result of that write. */
static enum link_ring_result write_all(struct ring_fixture *fixture, unsigned int bytes)
{
	struct uroce_abi_frame frame = { .bytes = bytes };
	struct iovec piece = { .iov_base = ring_noise, .iov_len = bytes };
	enum link_ring_result result = LINK_RING_OK;

	for (unsigned int i = 0; i <= 2 * ROOM / UNIT && result == LINK_RING_OK; i++)
		result = link_ring_write(&fixture->writer, &frame, &piece, 1);
	return result;
}

/* Whatever the reader's position is, nothing is written outside the ring, and writing ends. */
static void test_hostile_reader(void **state)
{
	static const uint64_t wrong[] = { 1,	    32,		63,	    65,
					  ROOM + 1, ROOM + 128, 1ull << 62, UINT64_MAX };
	static const unsigned int sizes[] = { 1, 48, 49, 4096, LINK_MAX_BYTES };
	struct ring_fixture *fixture = *state;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]) * 5; i++) {
		unsigned int bytes = sizes[i % 5];

		/* The writer detects the wrong position when no room is left. */
		fixture->shared->read = fixture->shared->written = 640;
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		fixture->shared->read = 640 - wrong[i / 5];
		assert_int_equal(write_all(fixture, bytes), LINK_RING_BROKEN);
		assert_int_equal(write_all(fixture, bytes), LINK_RING_BROKEN);
		/* A new writer finds a wrong position of the reader, or of its own. */
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		assert_int_not_equal(write_all(fixture, bytes), LINK_RING_OK);
		fixture->shared->written = 640 - wrong[i / 5];
		fixture->shared->read = 640;
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		assert_int_not_equal(write_all(fixture, bytes), LINK_RING_OK);
	}
	/* A reader's position beyond that of the writer, which would mean that there is room */
	fixture->shared->written = fixture->shared->read = 640;
	link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
	assert_int_equal(write_all(fixture, 100), LINK_RING_FULL);
	fixture->shared->read = fixture->shared->written + 64;
	assert_int_equal(write_all(fixture, 100), LINK_RING_BROKEN);
	assert_int_equal(write_all(fixture, 100), LINK_RING_BROKEN);
}

/* The position that the last writer left is impossible: no frame is written there. */
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
	struct ring_fixture *fixture = *state;

	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		fixture->shared->written = wrong[i].written;
		fixture->shared->read = wrong[i].read;
		link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
		for (unsigned int bytes = 1; bytes <= LINK_MAX_BYTES; bytes += 9357)
			assert_int_equal(write_all(fixture, bytes), LINK_RING_BROKEN);
		assert_int_equal(fixture->shared->written, wrong[i].written);
	}
}

/* A writer sees that its reader has given up, and writes nothing until both reopen. */
static void test_giving_up(void **state)
{
	struct ring_fixture *fixture = *state;
	uint64_t written;

	assert_int_equal(write_all(fixture, 1000), LINK_RING_FULL);
	while (next_of(fixture) == LINK_RING_OK)
		link_ring_release(&fixture->reader);
	assert_false(link_ring_is_broken(&fixture->writer));
	assert_true(link_ring_has_room(&fixture->writer, 2 * LINK_MAX_BYTES));
	fixture->shared->written++;
	assert_int_equal(next_of(fixture), LINK_RING_BROKEN);
	assert_true(link_ring_is_broken(&fixture->writer));
	fixture->shared->written--;
	assert_false(link_ring_is_broken(&fixture->writer));
	link_ring_set_broken(&fixture->reader);
	assert_true(link_ring_is_broken(&fixture->writer));
	assert_false(link_ring_has_frame(&fixture->reader));
	assert_int_equal(write_all(fixture, 1000), LINK_RING_BROKEN);
	written = fixture->shared->written;
	assert_int_equal(write_all(fixture, 1000), LINK_RING_BROKEN);
	assert_int_equal(fixture->shared->written, written);

	/* The reader has reset the ring for another writer. */
	link_ring_reset(&fixture->reader);
	assert_true(link_ring_is_broken(&fixture->writer));
	link_ring_open_writer(&fixture->writer, fixture->shared, fixture->data);
	assert_false(link_ring_is_broken(&fixture->writer));
	assert_int_equal(write_all(fixture, 1000), LINK_RING_FULL);
	assert_int_equal(next_of(fixture), LINK_RING_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RING(test_hostile_writer_positions),
		WITH_RING(test_hostile_lengths),
		WITH_RING(test_hostile_skips),
		WITH_RING(test_writer_turns_back),
		WITH_RING(test_hostile_reader),
		WITH_RING(test_hostile_beginnings),
		WITH_RING(test_giving_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
