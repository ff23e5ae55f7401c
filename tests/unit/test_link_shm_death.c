/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared memory when a process is killed, forks, lies, or belongs to another user.
 */
#include "link_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BYTES = 4000 };

/* A new process in the slot of one that was killed is reached by connecting anew. */
static void test_reader_is_killed(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_peer *old, *peer;

	shm_start_agent(fixture);
	old = shm_open_memory(fixture);
	assert_int_equal(shm_send(fixture, old, 1, BYTES), 0);
	shm_expect(fixture, 1, true);
	for (unsigned int round = 0; round < 5; round++) {
		unsigned int slot = fixture->agent.slot;
		struct agent_report report;

		agent_kill(&fixture->agent);
		shm_start_agent(fixture);
		assert_int_equal(fixture->agent.slot, slot);
		peer = shm_open_memory(fixture);
		/* Into nothing, until that is full, and then still. */
		for (uint32_t i = 0; i < 300; i++) {
			int result = shm_send(fixture, old, 666, BYTES);

			assert_true(result == 0 || result == -EAGAIN);
		}
		assert_int_equal(shm_send(fixture, peer, round, BYTES), 0);
		shm_expect(fixture, round, true);
		assert_false(agent_report(&fixture->agent, fixture->link, 20, &report));
		link_peer_close(old);
		old = peer;
	}
	link_peer_close(old);
	agent_stop(&fixture->agent);
}

static bool is_whole(const struct link_batch *batch)
{
	uint8_t expected[LINK_MAX_BYTES];

	put_datagram(expected, batch->bytes, datagram_qpn(batch->buffer),
		     datagram_tag(batch->buffer));
	return memcmp(expected, batch->buffer, batch->bytes) == 0;
}

/*
 * Receive by shared memory for some milliseconds from the first burst on, or (0) until nothing is
 * left: only whole bursts, in order.  How many.
 */
static unsigned int stream(struct link_fixture *fixture, uint32_t tag, int milliseconds)
{
	int64_t begin = link_now_ms(), end = begin + milliseconds;
	unsigned int count = 0, vain = 0;

	while (milliseconds ? link_now_ms() < (count ? end : begin + 5000) : vain < 3) {
		struct link_batch batch;

		serve(fixture->link);
		vain++;
		if (shm_receive(fixture, &batch))
			continue;
		vain = 0;
		if (count == 0)
			end = link_now_ms() + milliseconds;
		assert_non_null(batch.ring);
		assert_int_equal(batch.bytes, 9000);
		assert_int_equal(datagram_tag(batch.buffer), tag + count++);
		assert_true(is_whole(&batch));
		link_release(&batch);
	}
	return count;
}

/* Killed at any moment: what has come is whole, and the next in that slot goes on. */
static void test_writer_is_killed(void **state)
{
	struct link_fixture *fixture = *state;
	struct agent_order order = shm_order(fixture, 0, 1u << 30, 9000);
	unsigned int slot = 0;

	for (unsigned int round = 0; round < 20; round++) {
		unsigned int count;

		order.tag = round << 20;
		shm_start_agent(fixture);
		assert_true(round == 0 || fixture->agent.slot == slot);
		slot = fixture->agent.slot;
		agent_order(&fixture->agent, &order);
		count = stream(fixture, order.tag, 1 + (int)round);
		agent_kill(&fixture->agent);
		count += stream(fixture, order.tag + count, 0);
		assert_true(count > 0);
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
 * Take the place of the parent's memory, which the child must not have, before anything else does.
 * Any access ends the child by a signal until use_place().
 */
static uint8_t *take_place(void *at, size_t bytes)
{
	uint8_t *mine = mmap(at, bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (mine == at)
		return mine;
#ifdef __SANITIZE_THREAD__
	/* It begins a thread of its own in the child, whose memory may be there already. */
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
	const struct link_channel *channel = fixture->addr->channel[fixture->agent.slot];
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
	if (shm_receive(fixture, &batch) != -EOWNERDEAD || link_addr_await(fixture->addr))
		_exit(15);
	link_addr_awake(fixture->addr);
	use_place(head, UROCE_ABI_REGION_HEAD_BYTES);
	use_place(ring, UROCE_ABI_RING_STRIDE);
	use_place(region, 1 << 20);
	link_peer_close(peer);
	link_addr_close(fixture->addr);
	link_close(fixture->link);
	/* All of what took the place is there still; if not, this is a signal. */
	for (size_t i = 0; i < UROCE_ABI_REGION_HEAD_BYTES; i++)
		if (head[i] != 0x77 || ring[i] != 0x77)
			_exit(13);
	_exit(ring[UROCE_ABI_RING_STRIDE - 1] == 0x77 && region[(1 << 20) - 1] == 0x77 ? 0 : 14);
}

/* The child of a fork has no way into shared memory, its parent goes on. */
static void test_fork(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_peer *peer;
	pid_t child;

	shm_start_agent(fixture);
	peer = shm_open_memory(fixture);
	shm_let_agent_in(fixture);
	assert_non_null(fixture->addr->region);
	assert_int_equal(count_regions(), 2);
	link_fork_await_openers(fixture->link);
	link_fork_prepare(fixture->link);
	child = fork();
	if (child == 0)
		run_child(fixture, peer);
	link_fork_parent(fixture->link);
	await_child(child, NULL);
	assert_int_equal(shm_send(fixture, peer, 5, BYTES), 0);
	shm_expect(fixture, 5, true);
	link_peer_close(peer);
	/* Its lock on its region has outlived the child. */
	peer = shm_open_memory(fixture);
	assert_int_equal(shm_send(fixture, peer, 6, BYTES), 0);
	shm_expect(fixture, 6, true);
	link_peer_close(peer);
	agent_stop(&fixture->agent);
}

/* ---- a process that has a slot's name and sends what it likes ---- */

enum {
	LIAR_SLOT = 9,
};

static int make_file(off_t bytes, int seals)
{
	int fd = memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_return_code(ftruncate(fd, bytes), errno);
	assert_return_code(fcntl(fd, F_ADD_SEALS, seals), errno);
	return fd;
}

/* Answers the first question that comes to a slot. */
struct liar {
	struct link_fixture *fixture;
	int listener; /* of LIAR_SLOT */
	const struct uroce_abi_shm *reply;
	const int *fds;
	size_t count;
};

static void *lie(void *arg)
{
	const struct liar *liar = arg;
	struct pollfd asked = { .fd = liar->listener, .events = POLLIN };
	uint8_t question[LINK_MESSAGE_HEAD_MAX];
	int fd = poll(&asked, 1, AGENT_PATIENCE_MS) == 1 ? accept(liar->listener, NULL, NULL) : -1;

	if (fd >= 0 && recv(fd, question, sizeof(question), 0) > 0)
		link_send_with_fds(fd, liar->reply, sizeof(*liar->reply), liar->fds, liar->count);
	link_close_fd(&fd);
	return NULL;
}

/* Is the liar's slot reached through memory that this answer brings? */
static bool is_taken(struct liar liar, const struct uroce_abi_shm *reply, const int *fds,
		     size_t count)
{
	unsigned int before = count_descriptors();
	struct link_peer *peer;
	pthread_t thread;
	bool taken;

	liar.reply = reply;
	liar.fds = fds;
	liar.count = count;
	/* A process that was refused before asks again at once; and for a channel only. */
	liar.fixture->addr->ask_again[LIAR_SLOT] = 0;
	liar.fixture->addr->extend_again[LIAR_SLOT] = INT64_MAX;
	assert_int_equal(pthread_create(&thread, NULL, lie, &liar), 0);
	peer = shm_open_own(liar.fixture, LIAR_SLOT << LINK_SLOT_SHIFT | 5);
	pthread_join(thread, NULL);
	taken = link_peer_transport(peer) == LINK_SHARED_MEMORY;
	link_peer_close(peer);
	if (!taken)
		assert_int_equal(count_descriptors(), before);
	return taken;
}

/* A region that is none is not taken, and nothing of it is kept. */
static void test_bad_replies(void **state)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct link_fixture *fixture = *state;
	struct uroce_abi_shm reply = shm_message(UROCE_ABI_SHM_REPLY, loopback4, LIAR_SLOT);
	struct uroce_abi_shm other = shm_message(UROCE_ABI_SHM_REPLY, other4, LIAR_SLOT);
	struct uroce_abi_shm slot = shm_message(UROCE_ABI_SHM_REPLY, loopback4, LIAR_SLOT + 1);
	struct uroce_abi_shm refused = shm_message(UROCE_ABI_SHM_REFUSED, loopback4, LIAR_SLOT);
	struct uroce_abi_shm request = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, LIAR_SLOT);
	int listener = link_listen(UROCE_ABI_ANSWER_NAME, LIAR_SLOT);
	int good = make_file(LINK_REGION_BYTES, seals), pair[2] = { good, good };
	int bad[] = {
		make_file(LINK_REGION_BYTES, F_SEAL_GROW),
		make_file(LINK_REGION_BYTES - 1, seals),
		make_file(LINK_REGION_BYTES + 4096, seals),
		make_file(0, seals),
		make_file(LINK_REGION_BYTES, seals | F_SEAL_WRITE),
		open("/dev/zero", O_RDWR | O_CLOEXEC),
		socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	};
	struct liar liar = { .fixture = fixture, .listener = listener };

	assert_true(listener >= 0);

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(is_taken(liar, &reply, &bad[i], 1));
	assert_false(is_taken(liar, &reply, NULL, 0));
	assert_false(is_taken(liar, &reply, pair, 2));
	assert_false(is_taken(liar, &other, &good, 1));
	assert_false(is_taken(liar, &slot, &good, 1));
	assert_false(is_taken(liar, &refused, &good, 1));
	assert_false(is_taken(liar, &request, &good, 1));
	/* All of it right: it is taken. */
	assert_true(is_taken(liar, &reply, &good, 1));
	assert_non_null(fixture->addr->channel[LIAR_SLOT]);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		close(bad[i]);
	close(good);
	close(listener);
}

static int64_t open_to_silent_process(void *arg)
{
	enum { QPS = 50, PATIENCE_MS = 100, PAUSE_MS = 1000 };
	struct link_fixture *fixture = arg;
	int listener = link_listen(UROCE_ABI_ANSWER_NAME, LIAR_SLOT), asker, requests = 0;
	struct link_peer *peers[QPS];
	struct uroce_abi_shm request;
	int64_t begin, took;

	/* What an attempt before this one has learned is forgotten. */
	fixture->addr->ask_again[LIAR_SLOT] = 0;
	begin = link_now_ms();
	for (unsigned int i = 0; i < QPS; i++) {
		peers[i] = shm_open_own(fixture, LIAR_SLOT << LINK_SLOT_SHIFT | i);
		assert_int_equal(link_peer_transport(peers[i]), LINK_SOCKET);
	}
	took = link_now_ms() - begin;
	assert_true(took >= PATIENCE_MS);
	while ((asker = accept(listener, NULL, NULL)) >= 0) {
		if (recv(asker, &request, sizeof(request), MSG_DONTWAIT) == sizeof(request))
			requests += request.header.message == UROCE_ABI_SHM_REQUEST;
		close(asker);
	}
	assert_true(requests >= 1 && requests <= 1 + took / PAUSE_MS);
	for (unsigned int i = 0; i < QPS; i++)
		link_peer_close(peers[i]);
	close(listener);
	return took;
}

/*
 * A process that does not answer costs some time once, and is not asked by each queue pair that
 * connects.
 */
static void test_silent_process(void **state)
{
	assert_true(takes_less(1000, open_to_silent_process, *state));
}

static int64_t open_with_nobody_there(void *arg)
{
	struct link_fixture *fixture = arg;
	struct link_peer *peer;
	int64_t begin, took;

	/* What an attempt before this one has learned is forgotten. */
	fixture->addr->ask_again[LIAR_SLOT] = 0;
	begin = link_now_ms();
	peer = shm_open_own(fixture, LIAR_SLOT << LINK_SLOT_SHIFT | 5);
	took = link_now_ms() - begin;
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	link_peer_close(peer);
	return took;
}

/* Where the slot is free there is nothing to wait for. */
static void test_nobody_there(void **state)
{
	assert_true(takes_less(50, open_with_nobody_there, *state));
}

/*
 * Send a message, and descriptors, to the slot's datagram socket: has the kernel taken it?  Linux
 * 6.16 and later refuse descriptors.
 */
static bool send_datagram(int sock, const struct link *link, const void *bytes, size_t length,
			  const int *fds, size_t count)
{
	const struct sockaddr *name = (const struct sockaddr *)&link->names[link->slot];
	int error;

	assert_return_code(connect(sock, name, link->name_bytes[link->slot]), errno);
	error = link_send_with_fds(sock, bytes, length, fds, count);
	assert_true(error == 0 || (error == -EPERM && count > 0));
	return error == 0;
}

/* Only datagrams with the address's key come in; descriptors that come with them are let go. */
static void test_datagrams_need_the_key(void **state)
{
	struct link_fixture *fixture = *state;
	struct link *link = fixture->link;
	struct uroce_abi_forward forward = {
		.header = { UROCE_ABI_FORWARD, UROCE_ABI_VERSION, fixture->addr->key },
		.length = 20,
	};
	uint8_t datagram[sizeof(forward) + 20] = { 0 };
	struct link_batch batch = { .buffer = fixture->room,
				    .buffer_bytes = sizeof(fixture->room) };
	int sock = shm_bind_slot(LIAR_SLOT), fds[LINK_SLOTS];
	unsigned int before;

	memcpy(forward.dst, loopback4, sizeof(forward.dst));
	for (unsigned int i = 0; i < LINK_SLOTS; i++)
		fds[i] = sock;
	before = count_descriptors();
	for (unsigned int count = 0; count <= LINK_SLOTS; count += LINK_SLOTS / 4) {
		memcpy(datagram, &forward, sizeof(forward));
		if (send_datagram(sock, link, datagram, sizeof(datagram), fds, count)) {
			assert_int_equal(link_control_receive(link, &batch), 0);
			assert_int_equal(batch.bytes, 20);
		}
		assert_int_equal(count_descriptors(), before);
		/* A bit of it is wrong, it is too short to have one: nothing is there to receive.
		 */
		for (unsigned int bit = 0; bit < 64; bit++) {
			datagram[offsetof(struct uroce_abi_header, key) + bit / 8] ^=
				(uint8_t)(1 << bit % 8);
			send_datagram(sock, link, datagram, sizeof(datagram), fds, count);
			memcpy(datagram, &forward, sizeof(forward));
		}
		for (size_t length = 0; length < sizeof(struct uroce_abi_header); length++)
			send_datagram(sock, link, datagram, length, fds, count);
		assert_int_equal(recv(link->control_fd, fixture->room, 1, MSG_DONTWAIT), -1);
		/* As long as it needs to be for the key, but no message. */
		send_datagram(sock, link, datagram, sizeof(struct uroce_abi_header), fds, count);
		assert_int_equal(link_control_receive(link, &batch), -EAGAIN);
		assert_int_equal(count_descriptors(), before);
	}
	close(sock);
}

/* What a question from a slot is answered with, 0: not at all. */
static uint32_t answer_to(struct link_fixture *fixture, unsigned int asker,
			  const struct uroce_abi_shm *request)
{
	int fd = shm_connect(link_slot(fixture->link), asker);
	struct link_answer answer;
	uint32_t kind = 0;

	assert_int_equal(send(fd, request, sizeof(*request), 0), sizeof(*request));
	serve(fixture->link);
	if (link_await_answer(fixture->link, fd, link_now_ms(), &answer) == 0) {
		kind = answer.message.kind;
		assert_int_equal(answer.message.channel.slot, link_slot(fixture->link));
		assert_memory_equal(answer.message.channel.address, request->address, 16);
		assert_int_equal(answer.fd_count, kind == UROCE_ABI_SHM_REPLY);
	}
	close(fd);
	if (kind != UROCE_ABI_SHM_REPLY)
		return kind;
	assert_int_equal(lseek(answer.fds[0], 0, SEEK_END), LINK_REGION_BYTES);
	assert_int_equal(ftruncate(answer.fds[0], 4096), -1);
	assert_int_equal(ftruncate(answer.fds[0], 2 * LINK_REGION_BYTES), -1);
	/* Kept open: closed in its owner's process, which this is, the owner's lock would go. */
	return kind;
}

/*
 * Only the owner of the slot is let in, and when it is wanted; also to an address that opens later.
 */
static void test_requests(void **state)
{
	struct link_fixture *fixture = *state;
	struct uroce_abi_shm request = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, LIAR_SLOT);
	struct uroce_abi_shm other = shm_message(UROCE_ABI_SHM_REQUEST, other4, LIAR_SLOT);
	struct uroce_abi_shm slot = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, LIAR_SLOT + 1);
	struct uroce_abi_shm own =
		shm_message(UROCE_ABI_SHM_REQUEST, loopback4, link_slot(fixture->link));

	assert_int_equal(answer_to(fixture, LIAR_SLOT, &slot), 0);
	assert_int_equal(answer_to(fixture, LIAR_SLOT, &own), 0);
	assert_int_equal(answer_to(fixture, LINK_SLOTS, &request), 0);
	link_set_shared_memory(fixture->link, false);
	assert_int_equal(answer_to(fixture, LIAR_SLOT, &request), UROCE_ABI_SHM_REFUSED);
	assert_null(fixture->addr->region);
	link_set_shared_memory(fixture->link, true);
	assert_int_equal(answer_to(fixture, LIAR_SLOT, &request), UROCE_ABI_SHM_REPLY);
	assert_int_equal(fixture->addr->region->slots, 1ull << LIAR_SLOT);
	assert_int_equal(answer_to(fixture, LIAR_SLOT, &other), UROCE_ABI_SHM_REPLY);
}

/* However many addresses a process asks for, the regions are bounded. */
static void test_too_many_regions(void **state)
{
	struct link_fixture *fixture = *state;
	struct uroce_abi_shm request = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, LIAR_SLOT);

	for (unsigned int i = 0; i < LINK_REGIONS_MAX; i++) {
		assert_int_equal(answer_to(fixture, LIAR_SLOT, &request), UROCE_ABI_SHM_REPLY);
		request.address[15]++;
	}
	assert_int_equal(answer_to(fixture, LIAR_SLOT, &request), UROCE_ABI_SHM_REFUSED);
}

static void test_other_user(void **state)
{
	struct uroce_abi_shm request = shm_message(UROCE_ABI_SHM_REQUEST, loopback4, LIAR_SLOT);
	struct link_fixture *fixture = *state;

	link_expect_refusal(fixture, LIAR_SLOT, &request, sizeof(request));
	assert_null(fixture->addr->region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ONE(test_reader_is_killed),
		WITH_ONE(test_writer_is_killed),
		WITH_ONE(test_fork),
		WITH_ONE(test_bad_replies),
		WITH_ONE(test_datagrams_need_the_key),
		WITH_ONE(test_silent_process),
		WITH_ONE(test_nobody_there),
		WITH_ONE(test_requests),
		WITH_ONE(test_too_many_regions),
		WITH_ONE(test_other_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
