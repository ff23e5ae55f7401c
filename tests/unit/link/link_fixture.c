/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "link_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	TRIES = 10,
	/* Time for which a process that has not replied gets no further request */
	REQUEST_PAUSE_MS = 1000,
};

int open_loopback(struct link **link, struct link_addr **addr)
{
	char error[LINK_ERROR_TEXT];

	if (link_open(link, error) || link_addr_open(*link, loopback4, 0, addr, error)) {
		fprintf(stderr, "%s\n", error);
		return -1;
	}
	return 0;
}

void close_loopback(struct link *link, struct link_addr *addr)
{
	link_addr_close(addr);
	link_close(link);
}

int link_set_up(void **state)
{
	static struct link_fixture fixture;

	memset(&fixture, 0, sizeof(fixture));
	*state = &fixture;
	enter_new_netns(state);
	return open_loopback(&fixture.link, &fixture.addr);
}

int link_tear_down(void **state)
{
	struct link_fixture *fixture = *state;

	close_loopback(fixture->link, fixture->addr);
	return 0;
}

int shm_set_up_alone(void **state)
{
	struct link_fixture *fixture;

	if (link_set_up(state))
		return -1;
	fixture = *state;
	link_set_shared_memory(fixture->link, true);
	fixture->qpn = link_slot(fixture->link) << LINK_SLOT_SHIFT | 77;
	return 0;
}

int shm_set_up(void **state)
{
	if (shm_set_up_alone(state))
		return -1;
	shm_start_child(*state);
	return 0;
}

int shm_tear_down(void **state)
{
	struct link_fixture *fixture = *state;

	/* A failed test may have left the child stopped. */
	kill(fixture->child.pid, SIGCONT);
	child_stop(&fixture->child);
	return link_tear_down(state);
}

void shm_start_child(struct link_fixture *fixture)
{
	child_start_good(&fixture->child, 0, loopback4, fixture->link);
	child_share(&fixture->child, fixture->link, true);
	fixture->child_qpn = fixture->child.slot << LINK_SLOT_SHIFT | 99;
}

struct link_peer *shm_open_own(struct link_fixture *fixture, uint32_t qpn)
{
	struct link_peer *peer;
	uint16_t port = SHM_PORT;

	assert_int_equal(
		link_peer_open_exclusive(fixture->addr,
					 &(struct link_dst){ .gid = link_addr_gid(fixture->addr) },
					 qpn, &port, &peer),
		0);
	assert_int_equal(port, SHM_PORT);
	return peer;
}

struct link_peer *shm_open_memory_to(struct link_fixture *fixture, uint32_t qpn)
{
	struct link_peer *peer = shm_open_own(fixture, qpn);

	for (int i = 1; i < TRIES && link_peer_transport(peer) == LINK_SOCKET; i++) {
		link_peer_close(peer);
		fixture->addr->next_request_ms[qpn >> LINK_SLOT_SHIFT] = 0;
		peer = shm_open_own(fixture, qpn);
	}
	assert_int_equal(link_peer_transport(peer), LINK_SHARED_MEMORY);
	return peer;
}

struct link_peer *shm_open_memory(struct link_fixture *fixture)
{
	return shm_open_memory_to(fixture, fixture->child_qpn);
}

int shm_send(struct link_fixture *fixture, struct link_peer *peer, uint32_t tag, size_t bytes)
{
	static uint8_t datagram[LINK_MAX_BYTES];
	struct iovec piece = { datagram, bytes };

	put_datagram(datagram, bytes, fixture->child_qpn, tag);
	return link_send(peer, &piece, 1, 0);
}

void shm_expect(struct link_fixture *fixture, uint32_t tag, bool memory)
{
	struct child_report report =
		child_expect_datagram(&fixture->child, fixture->link, fixture->child_qpn, tag);

	assert_int_equal(report.src_port, SHM_PORT);
	assert_int_equal(report.memory, memory);
}

struct child_order shm_order(const struct link_fixture *fixture, uint32_t tag, uint32_t bursts,
			     uint32_t bytes)
{
	return (struct child_order){ .what = CHILD_SEND,
				     .qpn = fixture->qpn,
				     .tag = tag,
				     .bursts = bursts,
				     .bytes = bytes };
}

void shm_obey(struct link_fixture *fixture, const struct child_order *order, struct link *serving,
	      int timeout_ms)
{
	struct child_report report;

	child_order(&fixture->child, order);
	assert_true(child_report(&fixture->child, serving, timeout_ms, &report));
	assert_int_equal(report.event, CHILD_DONE);
	assert_int_equal(report.error, 0);
}

bool shm_is_shared(struct link_fixture *fixture)
{
	struct link_batch batch;
	bool shared;

	assert_int_equal(shm_receive_any(fixture, &batch), 0);
	shared = batch.ring;
	link_release(&batch);
	shm_drain(fixture, 0);
	if (shared)
		return true;
	usleep(REQUEST_PAUSE_MS * 1000);
	child_share(&fixture->child, fixture->link, true);
	return false;
}

void shm_let_child_share(struct link_fixture *fixture)
{
	struct child_order order = shm_order(fixture, 0, 1, 64);
	int tries = 0;

	do {
		assert_true(tries++ < TRIES);
		shm_obey(fixture, &order, fixture->link, CHILD_TIMEOUT_MS);
	} while (!shm_is_shared(fixture));
	serve(fixture->link);
}

int shm_receive(struct link_fixture *fixture, struct link_batch *batch)
{
	memset(batch, 0xee, sizeof(*batch));
	batch->buffer = fixture->room;
	batch->buffer_bytes = sizeof(fixture->room);
	return link_receive(fixture->addr, batch);
}

int shm_receive_any(struct link_fixture *fixture, struct link_batch *batch)
{
	for (unsigned int i = 0; i < 100; i++)
		if (shm_receive(fixture, batch) == 0)
			return 0;
	return -EAGAIN;
}

void shm_drain(struct link_fixture *fixture, unsigned int expected)
{
	struct link_batch batch;

	while (expected--) {
		assert_int_equal(shm_receive_any(fixture, &batch), 0);
		link_release(&batch);
	}
	assert_int_equal(shm_receive_any(fixture, &batch), -EAGAIN);
}
