/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Shared memory and other parts of the link: the socket gets its turn, doorbells are not lost to
 * threads that read the control socket, short bursts find room, and a broken ring is replaced.
 */
#include "link_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

static char error[LINK_ERROR_TEXT];

/* Makes the child send bursts through shared memory; does not read the control socket. */
static void let_send(struct link_fixture *fixture, uint32_t tag, uint32_t bursts)
{
	struct child_order order = shm_order(fixture, tag, bursts, 64);

	shm_obey(fixture, &order, NULL, CHILD_TIMEOUT_MS);
}

/* A datagram in the socket is received after a limited number of frames, however many wait. */
static void test_socket_beside_full_rings(void **state)
{
	enum { FRAMES = 300, MOST_BEFORE = 32, FROM_SOCKET = 100000 };
	struct link_fixture *fixture = *state;
	struct link_batch batch;

	/* Afterwards the socket has been empty for a long time. */
	shm_let_child_share(fixture);
	for (uint32_t round = 0; round < 5; round++) {
		uint32_t tag = 0, from_socket = 0;

		send_to_qpn(fixture->addr, loopback4, fixture->qpn, FROM_SOCKET);
		let_send(fixture, 0, FRAMES);
		while (tag < FRAMES) {
			assert_int_equal(shm_receive(fixture, &batch), 0);
			if (!batch.ring) {
				assert_int_equal(datagram_tag(batch.buffer), FROM_SOCKET);
				assert_true(tag < MOST_BEFORE);
				from_socket++;
				continue;
			}
			/* No frame of the ring is skipped for it. */
			assert_int_equal(datagram_tag(batch.buffer), tag++);
			link_release(&batch);
		}
		assert_int_equal(from_socket, 1);
	}
}

/* Removes all doorbells that wait.  Returns true if there were any. */
static bool take_doorbell(struct link_fixture *fixture)
{
	bool found = false;

	while (link_serve_writers(fixture->link))
		found = true;
	return found;
}

/*
 * A thread that opens an address reads the control socket.  The doorbell of a sleeping reader must
 * still be there afterwards.
 */
static void test_doorbell_while_an_address_is_opened(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_addr *addr;

	shm_let_child_share(fixture);
	/* The child has the address before the test's process opens it. */
	child_open_good(&fixture->child, other4, fixture->link);
	for (unsigned int i = 0; i < 6; i++) {
		bool asleep = i % 2;

		serve(fixture->link);
		if (asleep)
			assert_false(link_addr_begin_sleep(fixture->addr));
		let_send(fixture, 1, 1);
		assert_int_equal(link_addr_open(fixture->link, other4, 0, &addr, error), 0);
		assert_int_equal(take_doorbell(fixture), asleep);
		link_addr_end_sleep(fixture->addr);
		shm_drain(fixture, 1);
		link_addr_close(addr);
	}
}

/* Waits until the child has detected that the ring is broken. */
static void await_give_up(const struct link_channel *channel)
{
	for (unsigned int i = 0; i < CHILD_TIMEOUT_MS; i++) {
		uint64_t read = __atomic_load_n(&channel->ring.shared->read, __ATOMIC_ACQUIRE);

		if (read % UROCE_ABI_RING_ALIGN)
			break;
		usleep(1000);
	}
}

/*
 * A ring that its writer has broken is lost to its peers, but peers that are opened later get a new
 * one, whether anything has been sent through the broken ring since or not.
 */
static void test_broken_ring_is_replaced(void **state)
{
	struct link_fixture *fixture = *state;
	struct link_peer *old = shm_open_memory(fixture), *peer;

	for (uint32_t round = 0; round < 4; round++) {
		assert_int_equal(shm_send(fixture, old, 1, 1000), 0);
		shm_expect(fixture, 1, true);
		__atomic_fetch_add(&old->channel->ring.shared->written, 1, __ATOMIC_RELEASE);
		await_give_up(old->channel);
		for (uint32_t i = 0; i < 3 * (round % 2); i++)
			assert_int_equal(shm_send(fixture, old, 666, 1000), 0);
		peer = shm_open_memory(fixture);
		assert_ptr_not_equal(peer->channel, old->channel);
		for (uint32_t tag = 10; tag < 20; tag++) {
			assert_int_equal(shm_send(fixture, old, 666, 1000), 0);
			assert_int_equal(shm_send(fixture, peer, tag, 1000), 0);
			shm_expect(fixture, tag, true);
		}
		link_peer_close(old);
		old = peer;
	}
	link_peer_close(old);
}

/* When link_peer_is_full() is true, one long burst that was started and short ones still fit. */
static void test_room_for_short_bursts(void **state)
{
	enum { BYTES = 60000, SHORT = 100 };
	struct link_fixture *fixture = *state;
	struct link_peer *peer = shm_open_memory(fixture);
	uint32_t sent = 0;

	assert_false(link_peer_is_full(peer));
	/* The child must be stopped between two reads, not during one. */
	child_share(&fixture->child, fixture->link, true);
	kill(fixture->child.pid, SIGSTOP);
	while (!link_peer_is_full(peer) && sent < 100)
		assert_int_equal(shm_send(fixture, peer, sent++, BYTES), 0);
	assert_uint_in_range(sent, 2, UROCE_ABI_RING_BYTES / BYTES);
	assert_int_equal(shm_send(fixture, peer, sent++, SHORT), 0);
	assert_int_equal(shm_send(fixture, peer, sent++, BYTES), 0);
	assert_int_equal(shm_send(fixture, peer, 999, LINK_MAX_BYTES), -EAGAIN);
	assert_int_equal(shm_send(fixture, peer, sent++, SHORT), 0);
	kill(fixture->child.pid, SIGCONT);
	for (uint32_t tag = 0; tag < sent; tag++)
		shm_expect(fixture, tag, true);
	/* The child may not have released the last one yet. */
	for (unsigned int i = 0; i < CHILD_TIMEOUT_MS && link_peer_is_full(peer); i++)
		usleep(1000);
	assert_false(link_peer_is_full(peer));
	link_peer_close(peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_TWO(test_socket_beside_full_rings),
		WITH_TWO(test_doorbell_while_an_address_is_opened),
		WITH_TWO(test_broken_ring_is_replaced),
		WITH_TWO(test_room_for_short_bursts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
