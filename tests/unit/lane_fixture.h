/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two processes on 127.0.0.1 that share memory, the test's own and an agent, for the tests of it.
 * What does not succeed fails the test at hand.
 */
#ifndef UROCE_TESTS_LANE_FIXTURE_H
#define UROCE_TESTS_LANE_FIXTURE_H

#include "link_agent.h"

#include "link/lane.h"
#include "link/question.h"

enum { LANE_PORT = 0xc345 }; /* the test's process sends from it */

struct lane_fixture {
	struct link *link; /* shares memory; the fixture's, as addr is */
	struct link_addr *addr;
	struct agent agent;	 /* see lane_start_agent() */
	uint32_t qpn, agent_qpn; /* one queue pair number of each process */
	uint8_t room[LINK_MAX_BYTES + 1];
};

/*
 * cmocka set-up and tear-down.  *state is a struct lane_fixture, which belongs to the set-up: there
 * is one at a time, and what was in it before is gone.  Alone: the test's process only; an agent
 * that a test starts is its own to stop.  Otherwise there is an agent, which may be left stopped by
 * SIGSTOP, but alive.
 */
int lane_set_up_alone(void **state);
int lane_tear_down_alone(void **state);
int lane_set_up(void **state);
int lane_tear_down(void **state);

#define WITH_ONE(test) \
	cmocka_unit_test_setup_teardown(test, lane_set_up_alone, lane_tear_down_alone)
#define WITH_TWO(test) cmocka_unit_test_setup_teardown(test, lane_set_up, lane_tear_down)

/* Fill in agent and agent_qpn: a process of the same user and address, which shares memory. */
void lane_start_agent(struct lane_fixture *fixture);

/* ---- from the test's process to the agent ---- */

/*
 * A peer of one's own for a queue pair, from LANE_PORT; the caller's to close.  By shared memory if
 * the process that it is of answers.
 */
struct link_peer *lane_open_own(struct lane_fixture *fixture, uint32_t qpn);
/* A peer for the agent that has shared memory; the caller's to close. */
struct link_peer *lane_open_memory(struct lane_fixture *fixture);
/* Send a test datagram of so many bytes (at least 12) to the agent; the result of link_send(). */
int lane_send(struct lane_fixture *fixture, struct link_peer *peer, uint32_t tag, size_t bytes);
/* It is the next thing that the agent reports: whole, and by shared memory or not. */
void lane_expect(struct lane_fixture *fixture, uint32_t tag, bool memory);

/* ---- from the agent to the test's process ---- */

/*
 * An order to send so many runs to the test's process, by shared memory if that is had already; the
 * caller fills in more, if it wants to.
 */
struct agent_order lane_order(const struct lane_fixture *fixture, uint32_t tag, uint32_t runs,
			      uint32_t bytes);
/*
 * Have it done within so many milliseconds.  serving is served meanwhile; NULL: what comes to the
 * control socket is left there.
 */
void lane_obey(struct lane_fixture *fixture, const struct agent_order *order, struct link *serving,
	       int timeout_ms);
/* The agent has shared memory from now on: one run came by it, and nothing is left of that. */
void lane_let_agent_in(struct lane_fixture *fixture);
/*
 * link_receive(), once, into fixture->room if it comes by the socket.  Of what it is to fill in
 * nothing is left as it was.  The caller releases the batch.
 */
int lane_receive(struct lane_fixture *fixture, struct link_batch *batch);
/* The same, as often as it takes until the socket has been looked at too. */
int lane_receive_any(struct lane_fixture *fixture, struct link_batch *batch);
/* So many runs are there and no more; released. */
void lane_drain(struct lane_fixture *fixture, unsigned int expected);

/* ---- messages of shared memory, from whoever has a slot's name ---- */

/* A socket with the name of a slot; the caller's to close. */
int lane_bind_slot(unsigned int slot);
/* UROCE_ABI_LANE_REQUEST or UROCE_ABI_LANE_REPLY, of a slot. */
struct uroce_abi_lane lane_message(uint32_t kind, const uint8_t gid[16], unsigned int slot);
/* A connection to ask who has the slot, from where who has another one asks (LINK_SLOTS: nobody).
 */
int lane_connect(unsigned int slot, unsigned int asker);

#endif
