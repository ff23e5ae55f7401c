/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The reader and the writer of a ring in shared memory, into which the other process may write
 * anything at any time: positions and frame headers.  Both report that the ring is broken or stay
 * within it; memory around it is not accessed, and a reader without new input stops.
 *
 * The input: the reader's position (in units, and the number of rounds before), the number of bytes
 * written, then steps of STEP_BYTES: the action, the place (in units from the reader or the start),
 * and a number.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The source and not its library: fuzz programs link the pure layers only, and this file is pure.
 */
#include "link/shm/ring.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ROOM = UROCE_ABI_RING_BYTES,
	UNIT = UROCE_ABI_RING_ALIGN,
	/* Bytes before and after the ring that are checked, in addition to the sanitizer. */
	GUARD = 65536,
	START_BYTES = 8,
	STEP_BYTES = 8,
};

enum step {
	STEP_HEAD,    /* store the header of a frame of number bytes */
	STEP_WRITTEN, /* add number to the shared position written */
	STEP_READ,    /* add number to the shared position read, which only the writer reads */
	STEP_NEXT,
	STEP_RELEASE,
	STEP_DRAIN, /* read and release all frames */
	STEP_WRITE, /* write a frame of number bytes */
	STEP_REOPEN,
	STEP_COUNT,
};

static struct {
	uint8_t before[GUARD];
	uint8_t data[ROOM];
	uint8_t behind[GUARD];
} memory;

static struct uroce_abi_ring shared;
static struct link_ring_reader reader;
static struct link_ring_writer writer;
static bool given;

static void require(int holds)
{
	if (!holds)
		abort();
}

static uint64_t number_at(const uint8_t *data, unsigned int bytes)
{
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | data[bytes];
	return value;
}

static void check_frame(const struct uroce_abi_frame *frame, const uint8_t *bytes)
{
	volatile uint8_t sum = 0;

	require(frame->bytes > 0 && frame->bytes <= LINK_MAX_BYTES);
	require(bytes >= memory.data + sizeof(*frame));
	require(bytes + frame->bytes <= memory.data + ROOM);
	require((size_t)(bytes - memory.data) % UNIT == sizeof(*frame));
	sum = (uint8_t)(bytes[0] + bytes[frame->bytes - 1]);
	(void)sum;
}

static enum link_ring_result next(void)
{
	struct uroce_abi_frame frame;
	uint8_t *bytes = NULL;
	uint64_t read = shared.read, own = reader.read;
	enum link_ring_result result = link_ring_next(&reader, &frame, &bytes);

	require(result != LINK_RING_FULL);
	if (result == LINK_RING_OK)
		check_frame(&frame, bytes);
	given = result == LINK_RING_OK;
	/* Only a release frees room, except for space that is skipped up to the ring's end. */
	if (reader.read == own)
		require(shared.read == read);
	else
		require(shared.read == reader.read && reader.read % ROOM == 0 &&
			reader.read - own < ROOM);
	return result;
}

static void release(void)
{
	if (given)
		link_ring_release(&reader);
	given = false;
}

/* Each frame takes a unit at least, and each round begins with one. */
static void drain(void)
{
	uint64_t left = 2 * (ROOM / UNIT) + 2;

	while (next() == LINK_RING_OK) {
		require(left-- > 0);
		release();
	}
}

static void write_frame(uint32_t number)
{
	static const uint8_t bytes[LINK_MAX_BYTES];
	struct uroce_abi_frame frame = { .bytes = 1 + number % LINK_MAX_BYTES };
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = frame.bytes };
	uint64_t written = shared.written, own = writer.written;
	enum link_ring_result result = link_ring_write(&writer, &frame, &piece, 1);

	require(result != LINK_RING_EMPTY);
	/* Compares the distance and not the order: a forged position may wrap. */
	if (result == LINK_RING_OK)
		require(shared.written == writer.written && writer.written != own &&
			writer.written - own <= ROOM && writer.written % UNIT == 0);
	else
		require(shared.written == written && writer.written == own);
}

static void put_head(uint16_t unit, uint32_t bytes)
{
	struct uroce_abi_frame frame = { .bytes = bytes };
	/* Counted from the reader's position, or from the start. */
	uint64_t at = unit & 0x8000 ? (reader.read / UNIT + (unit & 0x7fff)) * UNIT
				    : (uint64_t)unit * UNIT;

	memcpy(memory.data + at % ROOM, &frame, sizeof(frame));
}

static void do_step(const uint8_t *step)
{
	uint16_t where = (uint16_t)number_at(step + 2, 2);
	uint32_t number = (uint32_t)number_at(step + 4, 4);

	switch (step[0] % STEP_COUNT) {
	case STEP_HEAD:
		put_head(where, number);
		break;
	case STEP_WRITTEN:
		shared.written += (uint64_t)(int64_t)(int32_t)number << step[1] % 33;
		break;
	case STEP_READ:
		shared.read += (uint64_t)(int64_t)(int32_t)number << step[1] % 33;
		break;
	case STEP_NEXT:
		next();
		break;
	case STEP_RELEASE:
		release();
		break;
	case STEP_DRAIN:
		drain();
		break;
	case STEP_WRITE:
		write_frame(number);
		break;
	case STEP_REOPEN:
		link_ring_open_writer(&writer, &shared, memory.data);
		break;
	}
}

static void check_guards(void)
{
	static uint8_t untouched[GUARD];

	memset(untouched, 0x5a, sizeof(untouched));
	require(memcmp(memory.before, untouched, GUARD) == 0);
	require(memcmp(memory.behind, untouched, GUARD) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < START_BYTES)
		return 0;
	memset(memory.before, 0x5a, GUARD);
	memset(memory.behind, 0x5a, GUARD);
	/* Bytes of a memory file that were never written are zero. */
	memset(memory.data, 0, ROOM);
	memset(&shared, 0, sizeof(shared));
	given = false;
	/* The reader's position is its own, and valid; the position written may be anything. */
	shared.read = (number_at(data, 2) + (uint64_t)data[2] * (ROOM / UNIT)) * UNIT;
	shared.written = shared.read + (uint64_t)(int64_t)(int32_t)number_at(data + 4, 4);
	link_ring_open_reader(&reader, &shared, memory.data);
	link_ring_open_writer(&writer, &shared, memory.data);
	data += START_BYTES;
	size -= START_BYTES;
	for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES)
		do_step(data);
	drain();
	link_ring_has_frame(&reader);
	check_guards();
	return 0;
}
