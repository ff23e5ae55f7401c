/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Fixtures for tests of the link on 127.0.0.1: the test's own process, or two processes that share
 * memory, the test's own and a child.  Functions fail the test if they do not succeed.
 */
#ifndef UROCE_TESTS_LINK_FIXTURE_H
#define UROCE_TESTS_LINK_FIXTURE_H

#include "link_child.h"

#include "link/shm/shm.h"

enum { SHM_PORT = 0xc345 }; /* source port of the test's process */

struct link_fixture {
	struct link *link;
	struct link_addr *addr; /* loopback4 */
	/* With shared memory only: */
	struct link_child child; /* see shm_start_child() */
	uint32_t qpn, child_qpn; /* one queue pair number of each process */
	uint8_t room[LINK_MAX_BYTES + 1];
};

/*
 * Opens a link and 127.0.0.1 on it, in the current network namespace; the caller closes both with
 * close_loopback().  Returns 0, or -1 with the reason on stderr.  Asserts nothing, so that a forked
 * child may use it.
 */
int open_loopback(struct link **link, struct link_addr **addr);
void close_loopback(struct link *link, struct link_addr *addr);

/*
 * cmocka set-up and tear-down: open_loopback() in a new network namespace.  *state is a struct
 * link_fixture, owned by the set-up; only one exists at a time.  A test closes what it opens in
 * addition.
 */
int link_set_up(void **state);
int link_tear_down(void **state);

#define WITH_LINK(test) cmocka_unit_test_setup_teardown(test, link_set_up, link_tear_down)

/*
 * The same with shared memory enabled; the previous *state is overwritten.  shm_set_up_alone()
 * starts no child; a test stops a child that it starts itself.  shm_set_up() starts a child, which
 * a test may leave stopped by SIGSTOP, but must not kill.
 */
int shm_set_up_alone(void **state);
int shm_set_up(void **state);
int shm_tear_down(void **state);

#define WITH_ONE(test) cmocka_unit_test_setup_teardown(test, shm_set_up_alone, link_tear_down)
#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, shm_set_up, shm_tear_down)

/* Sets child and child_qpn: starts a process of the same user and address, which shares memory. */
void shm_start_child(struct link_fixture *fixture);

/* ---- from the test's process to the child ---- */

/*
 * Opens an exclusive peer for a queue pair, with source port SHM_PORT; the caller closes it.  It
 * uses shared memory if the process of the queue pair replies.
 */
struct link_peer *shm_open_own(struct link_fixture *fixture, uint32_t qpn);
/*
 * As shm_open_own(), but shared memory must be used.  A process that is not scheduled for 100 ms
 * does not reply in time, so the request is repeated several times.
 */
struct link_peer *shm_open_memory_to(struct link_fixture *fixture, uint32_t qpn);
/* As shm_open_memory_to(), for child_qpn. */
struct link_peer *shm_open_memory(struct link_fixture *fixture);
/* Sends a test datagram of at least 12 bytes to the child.  Returns the result of link_send(). */
int shm_send(struct link_fixture *fixture, struct link_peer *peer, uint32_t tag, size_t bytes);
/*
 * Expects that the child reports this datagram next, complete and, if memory is true, received
 * through shared memory, or else from the socket.
 */
void shm_expect(struct link_fixture *fixture, uint32_t tag, bool memory);

/* ---- from the child to the test's process ---- */

/*
 * Returns an order to send this number of bursts to the test's process, through shared memory if
 * the child has that already.  The caller may set more fields.
 */
struct child_order shm_order(const struct link_fixture *fixture, uint32_t tag, uint32_t bursts,
			     uint32_t bytes);
/*
 * Sends an order and waits up to timeout_ms for the child to execute it.  serving is served in
 * between; NULL: messages to the control socket stay there.
 */
void shm_obey(struct link_fixture *fixture, const struct child_order *order, struct link *serving,
	      int timeout_ms);
/*
 * Receives the one burst that waits.  Returns true if it came through shared memory.  Otherwise the
 * test was not scheduled in time to reply to the child, which repeats the request with its next
 * order.
 */
bool shm_is_shared(struct link_fixture *fixture);
/* Makes the child use shared memory from now on: one burst has come through it and was received. */
void shm_let_child_share(struct link_fixture *fixture);
/*
 * Calls link_receive() once, with fixture->room as the buffer for datagrams from the socket.
 * Overwrites *batch before, so that no field keeps its old value.  The caller releases the batch.
 */
int shm_receive(struct link_fixture *fixture, struct link_batch *batch);
/* Repeats shm_receive() often enough that the socket has been checked too. */
int shm_receive_any(struct link_fixture *fixture, struct link_batch *batch);
/* Receives and releases bursts; fails unless there are exactly this many. */
void shm_drain(struct link_fixture *fixture, unsigned int expected);

#endif
