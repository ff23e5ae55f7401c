/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared memory when a process is killed or forks
 */
#include "link_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "link/shm/memfd.h"

enum { BYTES = 4000 };

/* After the reader of a ring has been killed, a new process is reached by a new peer. */
static void test_reader_is_killed(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_peer *old, *peer;

	shm_start_child(fixture);
	old = shm_open_memory(fixture);
	assert_int_equal(shm_send(fixture, old, 1, BYTES), 0);
	shm_expect(fixture, 1, true);
	for (unsigned int round = 0; round < 5; round++) {
		struct child_report report;

		child_kill(&fixture->child);
		shm_start_child(fixture);
		peer = shm_open_memory(fixture);
		/* Data sent to the killed process is lost, also after its ring is full. */
		for (uint32_t i = 0; i < 300; i++) {
			int result = shm_send(fixture, old, 666, BYTES);

			assert_true(result == 0 || result == -EAGAIN);
		}
		assert_int_equal(shm_send(fixture, peer, round, BYTES), 0);
		shm_expect(fixture, round, true);
		assert_false(child_report(&fixture->child, fixture->link, 20, &report));
		link_peer_close(old);
		old = peer;
	}
	link_peer_close(old);
	child_stop(&fixture->child);
}

static bool is_whole(const struct link_batch *batch)
{
	uint8_t expected[LINK_MAX_BYTES];

	put_datagram(expected, batch->bytes, datagram_qpn(batch->buffer),
		     datagram_tag(batch->buffer));
	return memcmp(expected, batch->buffer, batch->bytes) == 0;
}

struct stream {
	uint32_t tag; /* tag of the next burst */
	unsigned int count;
	int64_t looked_ms; /* time of the last look at the ring */
	bool was_away;	   /* The writer drops bursts when none is read for 100 ms. */
};

/*
 * Receives through shared memory for this number of milliseconds from the first burst on, or (0)
 * until nothing is left.  Expects complete bursts, all of them and in order.
 */
static void receive_stream(struct link_fixture *fixture, struct stream *stream, int milliseconds)
{
	int64_t begin = link_now_ms(), end = begin + milliseconds, now = begin;
	unsigned int vain = 0;

	while (milliseconds ? now < (stream->count ? end : begin + CHILD_TIMEOUT_MS) : vain < 3) {
		struct link_batch batch;

		now = link_now_ms();
		stream->was_away |= now - stream->looked_ms >= 100;
		stream->looked_ms = now;
		serve(fixture->link);
		vain++;
		if (shm_receive(fixture, &batch))
			continue;
		vain = 0;
		if (stream->count++ == 0)
			end = now + milliseconds;
		assert_non_null(batch.ring);
		assert_int_equal(batch.bytes, 9000);
		if (stream->was_away && datagram_tag(batch.buffer) > stream->tag)
			stream->tag = datagram_tag(batch.buffer);
		assert_int_equal(datagram_tag(batch.buffer), stream->tag++);
		assert_true(is_whole(&batch));
		link_release(&batch);
	}
}

/*
 * The writer is killed at any moment: all received bursts are complete, and a new writer can send.
 */
static void test_writer_is_killed(void **state)
{
	struct link_fixture *fixture = *state;
	struct child_order order = shm_order(fixture, 0, 1u << 30, 9000);

	for (unsigned int round = 0; round < 20; round++) {
		struct stream stream = { .tag = round << 20 };

		order.tag = stream.tag;
		shm_start_child(fixture);
		shm_let_child_share(fixture);
		stream.looked_ms = link_now_ms();
		child_order(&fixture->child, &order);
		receive_stream(fixture, &stream, 1 + (int)round);
		child_kill(&fixture->child);
		receive_stream(fixture, &stream, 0);
		assert_true(stream.count > 0);
	}
}

/* ---- fork ---- */

static unsigned int count_regions(void)
{
	char name[300], target[300];
	struct dirent *entry;
	unsigned int count = 0;
	DIR *folder = opendir("/proc/self/fd");

	while ((entry = readdir(folder))) {
		ssize_t bytes;

		snprintf(name, sizeof(name), "/proc/self/fd/%s", entry->d_name);
		bytes = readlink(name, target, sizeof(target) - 1);
		if (bytes > 0) {
			target[bytes] = 0;
			count += strstr(target, "uroce-region") != NULL;
		}
	}
	closedir(folder);
	return count;
}

/*
 * Maps memory in place of the parent's shared memory, which the child must not have, before
 * anything else is mapped there.  Any access terminates the child by a signal until use_place().
 */
static uint8_t *take_place(void *at, size_t bytes)
{
	uint8_t *mine = mmap(at, bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (mine == at)
		return mine;
#ifdef __SANITIZE_THREAD__
	/* ThreadSanitizer starts a thread in the child, whose memory may be there already. */
	if (mine != MAP_FAILED)
		return mine;
	mine = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mine != MAP_FAILED)
		return mine;
#endif
	_exit(10);
}

static void use_place(uint8_t *mine, size_t bytes)
{
	if (mprotect(mine, bytes, PROT_READ | PROT_WRITE))
		_exit(16);
	memset(mine, 0x77, bytes);
}

static void run_child(struct link_fixture *fixture, struct link_peer *peer)
{
	const struct link_channel *channel = fixture->addr->channel[fixture->child.slot];
	struct link_batch batch;
	uint8_t *head = take_place(channel->region, UROCE_ABI_REGION_HEAD_BYTES);
	uint8_t *ring = take_place(channel->ring_memory, UROCE_ABI_RING_STRIDE);
	uint8_t *region = take_place(fixture->addr->region->memory, 1 << 20);

	signal(SIGSEGV, SIG_DFL);
	link_abandon(fixture->link);
	if (count_regions())
		_exit(11);
	if (shm_send(fixture, peer, 1, BYTES) != -EOWNERDEAD)
		_exit(12);
	if (shm_receive(fixture, &batch) != -EOWNERDEAD || link_addr_begin_sleep(fixture->addr))
		_exit(15);
	link_addr_end_sleep(fixture->addr);
	use_place(head, UROCE_ABI_REGION_HEAD_BYTES);
	use_place(ring, UROCE_ABI_RING_STRIDE);
	use_place(region, 1 << 20);
	link_peer_close(peer);
	link_addr_close(fixture->addr);
	link_close(fixture->link);
	/* The mappings must still exist, or this access causes a signal, and be unchanged. */
	for (size_t i = 0; i < UROCE_ABI_REGION_HEAD_BYTES; i++)
		if (head[i] != 0x77 || ring[i] != 0x77)
			_exit(13);
	_exit(ring[UROCE_ABI_RING_STRIDE - 1] == 0x77 && region[(1 << 20) - 1] == 0x77 ? 0 : 14);
}

/*
 * Fails unless this process still has the lock on its region, by which writers see that it is
 * alive.  fcntl(2) shows a process no lock of its own, so a forked child looks.
 */
static void expect_region_locked(const struct link_fixture *fixture)
{
	pid_t child = fork();

	if (child == 0)
		_exit(memfd_owner_alive(fixture->addr->region->fd) == 1 ? 0 : 1);
	await_child(child, NULL);
}

/* A forked child has no access to shared memory; its parent continues to use it. */
static void test_fork(void **state)
{
	struct link_fixture *fixture = *state;
	const struct link_channel *channel;
	struct link_peer *peer;
	pid_t child;

	shm_start_child(fixture);
	peer = shm_open_memory(fixture);
	shm_let_child_share(fixture);
	channel = fixture->addr->channel[fixture->child.slot];
	assert_non_null(fixture->addr->region);
	assert_int_equal(count_regions(), 2);
	link_fork_wait_openers(fixture->link);
	link_fork_prepare(fixture->link);
	child = fork();
	if (child == 0)
		run_child(fixture, peer);
	link_fork_parent(fixture->link);
	await_child(child, NULL);
	expect_region_locked(fixture);
	assert_int_equal(shm_send(fixture, peer, 5, BYTES), 0);
	shm_expect(fixture, 5, true);
	link_peer_close(peer);
	/* A new peer gets the same channel, because the region that it leads to is locked too. */
	peer = shm_open_memory(fixture);
	assert_ptr_equal(fixture->addr->channel[fixture->child.slot], channel);
	assert_int_equal(shm_send(fixture, peer, 6, BYTES), 0);
	shm_expect(fixture, 6, true);
	link_peer_close(peer);
	child_stop(&fixture->child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ONE(test_reader_is_killed),
		WITH_ONE(test_writer_is_killed),
		WITH_ONE(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
