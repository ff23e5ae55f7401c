/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared memory between processes of one address: when it is used, that batches are the same as
 * from the socket, what wakes the receiver, and the effects of a full ring.
 */
#include "link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mock_clock.h"

static struct link_counters counters_of(struct link_fixture *fixture)
{
	struct link_counters counters;

	link_counters(fixture->link, &counters);
	return counters;
}

/* Makes the child send bursts to the test's process, through shared memory if both allow it. */
static void let_send(struct link_fixture *fixture, uint32_t tag, uint32_t bursts, uint32_t bytes,
		     uint32_t segment)
{
	struct child_order order = shm_order(fixture, tag, bursts, bytes);

	order.segment = segment;
	shm_obey(fixture, &order, fixture->link, CHILD_TIMEOUT_MS);
}

static bool is_socket_empty(struct link_fixture *fixture)
{
	char byte;

	return recv(link_addr_fd(fixture->addr), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
	       errno == EAGAIN;
}

/* Both processes allow shared memory: they use no sockets any more, in either direction. */
static void test_both_want_it(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_peer *peer = shm_open_memory(fixture);
	struct link_batch batch;

	assert_int_equal(link_peer_ip_id(peer), 0);
	for (uint32_t tag = 0; tag < 5; tag++)
		assert_int_equal(shm_send(fixture, peer, tag, 40 + 1000 * tag), 0);
	for (uint32_t tag = 0; tag < 5; tag++)
		shm_expect(fixture, tag, true);
	assert_int_equal(counters_of(fixture).shm_sent, 5);
	assert_int_equal(counters_of(fixture).shm_received, 0);
	assert_true(link_peer_has_room(peer, fixture->child.slot, UINT32_MAX));

	shm_let_child_share(fixture);
	let_send(fixture, 100, 3, 500, 0);
	assert_true(is_socket_empty(fixture));
	for (uint32_t tag = 100; tag < 103; tag++) {
		assert_int_equal(shm_receive_any(fixture, &batch), 0);
		assert_non_null(batch.ring);
		assert_int_equal(datagram_tag(batch.buffer), tag);
		link_release(&batch);
	}
	assert_int_equal(shm_receive_any(fixture, &batch), -EAGAIN);
	assert_int_equal(counters_of(fixture).shm_received, 1 + 3);
	assert_int_equal(counters_of(fixture).shm_sent, 5);
	link_peer_close(peer);
}

/*
 * One of the two processes forbids shared memory, or the peer is not exclusive: sockets are used.
 */
static void test_one_does_not_want_it(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_batch batch;
	struct link_peer *peer;
	uint16_t port = 0xc345;

	child_share(&fixture->child, fixture->link, false);
	peer = shm_open_own(fixture, fixture->child_qpn);
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	assert_int_equal(shm_send(fixture, peer, 1, 40), 0);
	shm_expect(fixture, 1, false);
	link_peer_close(peer);

	child_share(&fixture->child, fixture->link, true);
	link_set_shared_memory(fixture->link, false);
	let_send(fixture, 2, 1, 500, 0);
	assert_false(is_socket_empty(fixture));
	assert_int_equal(shm_receive_any(fixture, &batch), 0);
	assert_null(batch.ring);
	peer = shm_open_own(fixture, fixture->child_qpn);
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	assert_int_equal(shm_send(fixture, peer, 3, 40), 0);
	shm_expect(fixture, 3, false);
	link_peer_close(peer);

	link_set_shared_memory(fixture->link, true);
	assert_int_equal(
		link_peer_open(fixture->addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
		0);
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	assert_int_equal(shm_send(fixture, peer, 4, 40), 0);
	shm_expect(fixture, 4, false);
	link_peer_close(peer);
	assert_int_equal(counters_of(fixture).shm_sent, 0);
	assert_int_equal(counters_of(fixture).shm_received, 0);
}

/*
 * A peer that is not exclusive has no slot: it requests no memory, and slot 0, which is that of
 * another link here, must not be taken for its slot.
 */
static void test_peer_of_no_slot(void **state)
{
	char error[LINK_ERROR_TEXT];
	struct link_addr *addr;
	struct link_peer *peer;
	struct link *link, *other;
	uint16_t port = 0xc345;

	(void)state;
	assert_int_equal(link_open(&other, error), 0);
	assert_int_equal(link_slot(other), 0);
	assert_int_equal(open_loopback(&link, &addr), 0);
	link_set_shared_memory(link, true);
	assert_int_equal(link_peer_open(addr, &(struct link_dst){ .gid = loopback4 }, &port, &peer),
			 0);
	assert_int_equal(link_peer_transport(peer), LINK_SOCKET);
	link_peer_close(peer);
	close_loopback(link, addr);
	link_close(other);
}

static void check_batch(struct link_fixture *fixture, unsigned int bytes, unsigned int segment,
			bool memory)
{
	uint8_t expected[8192];
	struct link_batch batch;

	put_datagram(expected, bytes, fixture->qpn, bytes);
	assert_int_equal(shm_receive_any(fixture, &batch), 0);
	assert_int_equal(batch.ring != NULL, memory);
	assert_int_equal(batch.buffer == fixture->room, !memory);
	assert_int_equal(batch.bytes, bytes);
	assert_int_equal(batch.segment, segment);
	assert_memory_equal(batch.buffer, expected, bytes);
	assert_memory_equal(batch.src, loopback4, 16);
	assert_int_equal(batch.src_port, 0xc123);
	assert_ptr_equal(batch.addr, fixture->addr);
	assert_int_equal(batch.traffic_class, 0);
	assert_int_equal(batch.hop_limit, 0);
	link_release(&batch);
}

/* A batch has the same fields whether it was received from the socket or through shared memory. */
static void test_batches_are_alike(void **state)
{
	static const struct {
		unsigned int bytes, asked, segment;
	} bursts[] = {
		{ 40, 0, 40 },	      { 40, 40, 40 },	    { 40, 4096, 40 }, { 100, 40, 40 },
		{ 8192, 4128, 4128 }, { 4129, 4128, 4128 }, { 4128, 64, 64 },
	};
	struct link_fixture *fixture = *state;

	for (unsigned int way = 0; way < 2; way++) {
		child_share(&fixture->child, fixture->link, way == 1);
		if (way == 1)
			shm_let_child_share(fixture);
		for (unsigned int i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
			let_send(fixture, bursts[i].bytes, 1, bursts[i].bytes, bursts[i].asked);
			check_batch(fixture, bursts[i].bytes, bursts[i].segment, way == 1);
		}
	}
}

/* Removes all doorbells that wait.  Returns true if there were any. */
static bool take_doorbells(struct link_fixture *fixture)
{
	bool found = false;

	while (link_serve_writers(fixture->link))
		found = true;
	return found;
}

/* A datagram in the socket is received even if the socket was empty for a long time before. */
static void test_socket_is_heard(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_batch batch;

	shm_let_child_share(fixture);
	for (uint32_t tag = 1; tag < 4; tag++) {
		for (unsigned int i = 0; i < 50; i++)
			assert_int_equal(shm_receive_any(fixture, &batch), -EAGAIN);
		send_to_qpn(fixture->addr, loopback4, fixture->qpn, tag);
		let_send(fixture, 100, 1, 64, 0);
		for (unsigned int i = 0; i < 2; i++) {
			assert_int_equal(shm_receive_any(fixture, &batch), 0);
			assert_int_equal(datagram_tag(batch.buffer), batch.ring ? 100 : tag);
			assert_int_equal(batch.ring != NULL, i == 0);
			link_release(&batch);
		}
	}
}

/* A sleeping reader gets a doorbell; a reader that is awake gets none. */
static void test_doorbell(void **state)
{
	struct link_fixture *fixture = *state;
	struct child_order order = shm_order(fixture, 0, 3, 64);

	shm_let_child_share(fixture);
	for (unsigned int i = 0; i < 20; i++) {
		bool asleep = i % 2;

		if (asleep)
			assert_false(link_addr_begin_sleep(fixture->addr));
		shm_obey(fixture, &order, NULL, CHILD_TIMEOUT_MS);
		assert_int_equal(take_doorbells(fixture), asleep);
		/* A reader that is about to sleep is notified that frames wait. */
		assert_true(link_addr_begin_sleep(fixture->addr));
		link_addr_end_sleep(fixture->addr);
		shm_drain(fixture, 3);
	}
}

/*
 * A receiver may have gone to sleep before there was shared memory, and another thread may have
 * granted the channel, so the first frame must be followed by a doorbell as well.
 */
static void test_first_doorbell(void **state)
{
	enum { TRIES = 10 };
	struct link_fixture *fixture = *state;
	struct child_order order = shm_order(fixture, 0, 1, 64);
	struct child_report report;
	bool reported, rung;
	int tries = 0;

	do {
		assert_true(tries++ < TRIES);
		reported = rung = false;
		assert_false(link_addr_begin_sleep(fixture->addr));
		child_order(&fixture->child, &order);
		for (unsigned int i = 0; i < CHILD_TIMEOUT_MS && !reported; i++) {
			rung |= serve(fixture->link);
			reported = child_report(&fixture->child, NULL, 1, &report);
		}
		assert_true(reported);
		rung |= take_doorbells(fixture);
		link_addr_end_sleep(fixture->addr);
	} while (!shm_is_shared(fixture));
	assert_true(rung);
}

/*
 * As in the helper thread of progress: the doorbell arrives while the thread sleeps, and the frame
 * that it announces is there.
 */
static void test_doorbell_wakes(void **state)
{
	struct link_fixture *fixture = *state;
	struct pollfd wait = { .fd = link_writers_fd(fixture->link), .events = POLLIN };
	struct child_order order = shm_order(fixture, 0, 1, 64);
	struct child_report report;

	shm_let_child_share(fixture);
	for (unsigned int i = 0; i < 200; i++) {
		child_order(&fixture->child, &order);
		if (!link_addr_begin_sleep(fixture->addr))
			assert_int_equal(poll(&wait, 1, CHILD_TIMEOUT_MS), 1);
		link_addr_end_sleep(fixture->addr);
		serve(fixture->link);
		shm_drain(fixture, 1);
		assert_true(child_report(&fixture->child, NULL, CHILD_TIMEOUT_MS, &report));
	}
}

/* A full ring makes the sender wait (-EAGAIN); if it stays full, what is sent is lost. */
static void test_full_ring(void **state)
{
	/* FIT frames fill the ring exactly. */
	enum { FIT = 32, BYTES = UROCE_ABI_RING_BYTES / FIT - sizeof(struct uroce_abi_frame) };
	struct link_fixture *fixture = *state;
	struct link_peer *peer = shm_open_memory(fixture);
	uint32_t tag = 0;
	int64_t begin;
	int result;

	for (unsigned int round = 0; round < 2; round++) {
		/* The child must be stopped between two reads, not during one. */
		child_share(&fixture->child, fixture->link, true);
		kill(fixture->child.pid, SIGSTOP);
		for (unsigned int i = 0; i < FIT; i++)
			assert_int_equal(shm_send(fixture, peer, tag + i, BYTES), 0);
		begin = now_ms();
		assert_int_equal(shm_send(fixture, peer, 999, BYTES), -EAGAIN);
		result = shm_send(fixture, peer, 999, BYTES);
		assert_true(result == -EAGAIN || (result == 0 && now_ms() - begin >= 100));
		mock_clock_advance_ms(200);
		for (unsigned int i = 0; i < 3; i++)
			assert_int_equal(shm_send(fixture, peer, 999, BYTES), 0);
		kill(fixture->child.pid, SIGCONT);
		for (unsigned int i = 0; i < FIT; i++)
			shm_expect(fixture, tag++, true);
		while ((result = shm_send(fixture, peer, tag, BYTES)) == -EAGAIN)
			usleep(100);
		assert_int_equal(result, 0);
		shm_expect(fixture, tag++, true);
	}
	assert_int_equal(counters_of(fixture).shm_sent, tag);
	link_peer_close(peer);
}

/* All peers use shared memory, not only the first LINK_MAX_CONNECTED. */
static void test_many_peers(void **state)
{
	enum { COUNT = LINK_MAX_CONNECTED + 20 };
	struct link_fixture *fixture = *state;
	struct link_peer *peers[COUNT];

	for (unsigned int i = 0; i < COUNT; i++) {
		peers[i] = shm_open_memory(fixture);
		assert_int_equal(link_peer_ip_id(peers[i]), 0);
		assert_int_equal(shm_send(fixture, peers[i], i, 100), 0);
	}
	for (unsigned int i = 0; i < COUNT; i++)
		shm_expect(fixture, i, true);
	assert_int_equal(counters_of(fixture).shm_sent, COUNT);
	for (unsigned int i = 0; i < COUNT; i++)
		link_peer_close(peers[i]);
}

/* Two slots of one process share a ring, so peers of both use the same writer. */
static void test_two_slots_of_one_process(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_peer *peers[2] = { shm_open_memory(fixture) };
	uint32_t slot = child_add_slot(&fixture->child, fixture->link);

	peers[1] = shm_open_memory_to(fixture, slot << LINK_SLOT_SHIFT | 99);
	for (uint32_t tag = 0; tag < 10; tag++)
		assert_int_equal(shm_send(fixture, peers[tag % 2], tag, 100), 0);
	for (uint32_t tag = 0; tag < 10; tag++)
		shm_expect(fixture, tag, true);
	link_peer_close(peers[0]);
	link_peer_close(peers[1]);
}

static unsigned int fstats;

/* Replaces the function of the C library, to count its calls. */
int fstat(int fd, struct stat *status)
{
	fstats++;
	return fstatat(fd, "", status, AT_EMPTY_PATH);
}

/*
 * The number of system calls of a request for a channel does not depend on the number of channels.
 */
static void test_cost_of_a_request(void **state)
{
	enum { COUNT = 5 };
	struct link_fixture *fixture = *state;
	struct link_child children[COUNT];
	struct link_peer *peers[COUNT];
	unsigned int calls[COUNT];

	for (unsigned int i = 0; i < COUNT; i++) {
		child_start_good(&children[i], 0, loopback4, fixture->link);
		child_share(&children[i], fixture->link, true);
		fstats = 0;
		peers[i] = shm_open_memory_to(fixture, children[i].slot << LINK_SLOT_SHIFT | 99);
		calls[i] = fstats;
	}
	assert_int_not_equal(calls[0], 0);
	assert_int_equal(calls[COUNT - 1], calls[0]);
	for (unsigned int i = 0; i < COUNT; i++) {
		link_peer_close(peers[i]);
		child_stop(&children[i]);
	}
}

/* Queue pairs of one process use sockets, whichever of its slots they have. */
static void test_own_slots(void **state)
{
	struct link_fixture *fixture = *state;
	struct pollfd requested = { .fd = link_broker_fd(fixture->link), .events = POLLIN };
	struct link_peer *first = shm_open_own(fixture, fixture->qpn), *second;
	unsigned int slot, before;

	assert_int_equal(link_add_slot(fixture->link, &slot), 0);
	before = count_descriptors();
	second = shm_open_own(fixture, slot << LINK_SLOT_SHIFT | 99);
	assert_int_equal(link_peer_transport(second), LINK_SOCKET);
	/* This process is not asked for its memory or socket: only a transmit socket is new. */
	assert_int_equal(poll(&requested, 1, 0), 0);
	assert_int_equal(count_descriptors(), before + 1);
	link_peer_close(first);
	link_peer_close(second);
}

/*
 * A peer can use shared memory before the other process has opened the address; what is sent waits
 * until then.
 */
static void test_address_opens_later(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_addr *first = fixture->addr;
	char error[LINK_ERROR_TEXT];
	struct link_peer *peer;

	assert_int_equal(link_addr_open(fixture->link, other4, 0, &fixture->addr, error), 0);
	peer = shm_open_memory(fixture);
	assert_int_equal(shm_send(fixture, peer, 6, 100), 0);
	child_open_good(&fixture->child, other4, fixture->link);
	shm_expect(fixture, 6, true);
	link_peer_close(peer);
	link_addr_close(fixture->addr);
	fixture->addr = first;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(test_both_want_it),
		WITH_TWO(test_one_does_not_want_it),
		WITH_TWO(test_batches_are_alike),
		WITH_TWO(test_doorbell),
		WITH_TWO(test_first_doorbell),
		WITH_TWO(test_doorbell_wakes),
		WITH_TWO(test_socket_is_heard),
		WITH_TWO(test_full_ring),
		WITH_TWO(test_many_peers),
		WITH_TWO(test_two_slots_of_one_process),
		WITH_ONE(test_cost_of_a_request),
		WITH_ONE(test_own_slots),
		WITH_TWO(test_address_opens_later),
		cmocka_unit_test_setup(test_peer_of_no_slot, enter_new_netns),
	};

	mock_clock_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
