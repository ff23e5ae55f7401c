/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The test's own process on 127.0.0.1, for tests of the link; and two processes there that share
 * memory, the test's own and a child.  What does not succeed fails the test at hand.
 */
#ifndef UROCE_TESTS_LINK_FIXTURE_H
#define UROCE_TESTS_LINK_FIXTURE_H

#include "link_child.h"

#include "link/shm/shm.h"

enum { SHM_PORT = 0xc345 }; /* the test's process sends from it */

struct link_fixture {
	struct link *link;
	struct link_addr *addr; /* loopback4 */
	/* With shared memory only: */
	struct link_child child; /* see shm_start_child() */
	uint32_t qpn, child_qpn; /* one queue pair number of each process */
	uint8_t room[LINK_MAX_BYTES + 1];
};

/*
 * Open a link and 127.0.0.1 on it, in whatever network namespace the caller is: 0, or -1 with the
 * reason on stderr.  Both are the caller's, to be given back to close_loopback().  It asserts
 * nothing, so that a forked child may use it.
 */
int open_loopback(struct link **link, struct link_addr **addr);
void close_loopback(struct link *link, struct link_addr *addr);

/*
 * cmocka set-up and tear-down: the same in a fresh network.  *state is a struct link_fixture, which
 * belongs to the set-up: there is one at a time.  What a test opens besides it closes itself.
 */
int link_set_up(void **state);
int link_tear_down(void **state);

#define WITH_LINK(test) cmocka_unit_test_setup_teardown(test, link_set_up, link_tear_down)

/*
 * The same with shared memory switched on; what was in *state before is gone.  Alone: the test's
 * process only; a child that a test starts is its own to stop.  Otherwise there is a child, which
 * may be left stopped by SIGSTOP, but alive.
 */
int shm_set_up_alone(void **state);
int shm_set_up(void **state);
int shm_tear_down(void **state);

#define WITH_ONE(test) cmocka_unit_test_setup_teardown(test, shm_set_up_alone, link_tear_down)
#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, shm_set_up, shm_tear_down)

/* Fill in child and child_qpn: a process of the same user and address, which shares memory. */
void shm_start_child(struct link_fixture *fixture);

/* ---- from the test's process to the child ---- */

/*
 * A peer of one's own for a queue pair, from SHM_PORT; the caller's to close.  By shared memory if
 * the process that it is of answers.
 */
struct link_peer *shm_open_own(struct link_fixture *fixture, uint32_t qpn);
/*
 * The same by shared memory, which must work.  A process that has no processor for 100 ms does not
 * answer in time, so it is asked several times.
 */
struct link_peer *shm_open_memory_to(struct link_fixture *fixture, uint32_t qpn);
/* The same for child_qpn. */
struct link_peer *shm_open_memory(struct link_fixture *fixture);
/* Send a test datagram of so many bytes (at least 12) to the child; the result of link_send(). */
int shm_send(struct link_fixture *fixture, struct link_peer *peer, uint32_t tag, size_t bytes);
/* It is the next thing that the child reports: whole, and by shared memory or not. */
void shm_expect(struct link_fixture *fixture, uint32_t tag, bool memory);

/* ---- from the child to the test's process ---- */

/*
 * An order to send so many bursts to the test's process, by shared memory if that is had already;
 * the caller may fill in more.
 */
struct child_order shm_order(const struct link_fixture *fixture, uint32_t tag, uint32_t bursts,
			     uint32_t bytes);
/*
 * Waits this number of ms for an order to be carried out.  serving is served in between; NULL:
 * messages to the control socket stay there.
 */
void shm_obey(struct link_fixture *fixture, const struct child_order *order, struct link *serving,
	      int timeout_ms);
/*
 * Receives the one burst that waits.  Returns true if it came by shared memory.  Otherwise the test
 * had no processor to answer the child in time, and the child asks again with its next order.
 */
bool shm_is_shared(struct link_fixture *fixture);
/* The child has shared memory from now on: one burst came by it, and nothing is left of that. */
void shm_let_child_share(struct link_fixture *fixture);
/*
 * link_receive(), once, into fixture->room if it comes by the socket.  Of what it is to fill in
 * nothing is left as it was.  The caller releases the batch.
 */
int shm_receive(struct link_fixture *fixture, struct link_batch *batch);
/* The same, as often as it takes until the socket has been looked at too. */
int shm_receive_any(struct link_fixture *fixture, struct link_batch *batch);
/* Receives and releases bursts; fails unless there are exactly this many. */
void shm_drain(struct link_fixture *fixture, unsigned int expected);

#endif
