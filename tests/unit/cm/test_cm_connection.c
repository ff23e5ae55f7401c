/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Establishment of connections between two managers, message by message: effects of losses,
 * repetitions and rejections on the other side.  test_cm_end.c tests the end of connections.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm_fixture.h"

static struct cm_conn *conn[2];

static void request(void)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);

	conn[0] = pair_conn(pair, 0);
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_OK);
}

static void request_and_hear(void)
{
	request();
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	conn[1] = pair->side[1].newest;
	assert_int_equal(cm_conn_state(conn[1]), CM_REQ_RCVD);
}

static void accept_it(void)
{
	struct cm_accept_param accept = pair_accept_param(pair, 1);

	assert_int_equal(cm_accept(cm[1], conn[1], &accept, pair->now), CM_OK);
}

static enum cm_result reject(uint32_t side, uint16_t reason)
{
	const struct cm_reject_param param = { .reason = reason,
					       .private_data = (const uint8_t *)"no",
					       .private_length = 2 };

	return cm_reject(cm[side], conn[side], &param, pair->now);
}

/* Both sides get the other side's parameters, with the depths exchanged. */
static void test_parameters_arrive(void **state)
{
	struct cm_qp_attr attr[2];
	struct cm_conn_info info[2];

	(void)state;
	pair_establish(pair, conn);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(cm_qp_attr(conn[i], &attr[i]), CM_OK);
		cm_conn_info(conn[i], &info[i]);
		assert_memory_equal(attr[i].path.dgid, pair->side[i].path.dgid, MAD_GID_BYTES);
		assert_memory_equal(attr[i].path.sgid, pair->side[i].path.sgid, MAD_GID_BYTES);
		assert_int_equal(info[i].local_id >> (32 - CM_SLOT_BITS), 5 + i);
		assert_int_equal(attr[i].path_mtu, 3);
	}
	assert_int_equal(attr[0].dest_qpn, 0x22);
	assert_int_equal(attr[1].dest_qpn, 0x11);
	assert_int_equal(attr[0].rq_psn, 0x1000);
	assert_int_equal(attr[1].sq_psn, 0x1000);
	assert_int_equal(attr[0].sq_psn, 0x2001);
	assert_int_equal(attr[1].rq_psn, 0x2001);
	assert_int_equal(attr[0].max_rd_atomic, 2);
	assert_int_equal(attr[0].max_dest_rd_atomic, 1);
	assert_int_equal(attr[1].max_rd_atomic, 1);
	assert_int_equal(attr[1].max_dest_rd_atomic, 2);
	assert_int_equal(attr[0].retry_count, 6);
	assert_int_equal(attr[1].retry_count, 6);
	assert_int_equal(attr[0].rnr_retry, 7);
	assert_int_equal(attr[0].peer_rnr_retry, 5);
	assert_int_equal(attr[1].peer_rnr_retry, 5);
	assert_int_equal(attr[1].rnr_retry, 5);
	assert_int_equal(attr[1].ack_timeout, 17);
	assert_int_equal(attr[0].ack_timeout, 17);
	assert_int_equal(info[0].local_id, info[1].remote_id);
	assert_int_equal(info[1].local_id, info[0].remote_id);
	/* rule C19 test: each side knows the flow control bit of both sides. */
	assert_true(info[0].flow_control && info[1].peer_flow_control);
	assert_false(info[1].flow_control || info[0].peer_flow_control);
}

/* A lost REQ or REP is repeated after 50 ms, and a lost RTU in response to the repeated REP. */
static void test_losses_heal_early(void **state)
{
	(void)state;
	request();
	pair_lose(pair);
	pair_wait(pair, 50 * CM_MS);
	assert_int_equal(pair_next(pair), MAD_REQ);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	conn[1] = pair->side[1].newest;
	accept_it();
	pair_lose(pair);
	pair_wait(pair, 50 * CM_MS);
	assert_int_equal(pair_next(pair), MAD_REP);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(cm_rtu(cm[0], conn[0], NULL, 0, pair->now), CM_OK);
	pair_lose(pair);
	pair_wait(pair, 200 * CM_MS);
	assert_int_equal(pair_next(pair), MAD_REP);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair_next(pair), MAD_RTU);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(cm_conn_state(conn[1]), CM_ESTABLISHED);
	assert_int_equal(pair_count(pair, 1, CM_EVENT_REQ), 1);
	assert_int_equal(pair_count(pair, 0, CM_EVENT_REP), 1);
	assert_int_equal(pair_count(pair, 1, CM_EVENT_ESTABLISHED), 1);
}

/* A repeated REQ creates no second connection; the response is the REP again, never an MRA. */
static void test_same_req_brings_rep(void **state)
{
	(void)state;
	request();
	pair_deliver_twice(pair);
	conn[1] = pair->side[1].newest;
	assert_int_equal(pair_deliver_twice(pair), CM_REPEATED);
	assert_int_equal(pair->on_wire, 1);
	accept_it();
	assert_int_equal(pair_next(pair), MAD_REQ);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair->on_wire, 2);
	assert_int_equal(pair->wire[0].mad.attr, MAD_REP);
	assert_int_equal(pair->wire[1].mad.attr, MAD_REP);
	assert_int_equal(pair_count(pair, 1, CM_EVENT_REQ), 1);
}

/* The first packet replaces a lost RTU; an RTU that arrives later has no effect. */
static void test_first_packet_establishes(void **state)
{
	(void)state;
	request_and_hear();
	accept_it();
	pair_deliver(pair);
	assert_int_equal(cm_rtu(cm[0], conn[0], NULL, 0, pair->now), CM_OK);
	assert_int_equal(cm_established(cm[1], conn[1], pair->now), CM_OK);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_ESTABLISHED);
	assert_int_equal(cm_established(cm[1], conn[1], pair->now), CM_BAD_STATE);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair_count(pair, 1, CM_EVENT_ESTABLISHED), 1);
}

/* A peer that never answers is unreachable after 16 times 4.8 s, at most 70 s. */
static void test_gives_up(void **state)
{
	uint64_t began;

	(void)state;
	request();
	began = pair->now;
	pair_wait(pair, CM_GIVE_UP_NS - 1);
	assert_int_equal(pair->side[0].events, 0);
	pair_wait(pair, 1);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_UNREACHABLE);
	assert_true(pair->now - began == CM_GIVE_UP_NS);
}

/*
 * With fewer retries the manager gives up sooner: after max_cm_retries + 1 intervals, each the
 * response time plus two packet life times.
 */
static void test_gives_up_as_attributes_say(void **state)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	uint64_t answer;

	(void)state;
	connect.max_cm_retries = 2;
	connect.response_time = 18;
	conn[0] = pair_conn(pair, 0);
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_OK);
	answer = 2 * (UINT64_C(4096) << 16) + (UINT64_C(4096) << 18);
	pair_wait(pair, 3 * answer - 1);
	assert_int_equal(pair->side[0].events, 0);
	pair_wait(pair, 1);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_UNREACHABLE);
}

/* An MRA extends the time limit of the active side, but only once. */
static void test_mra_stretches_once(void **state)
{
	struct mad mra = { .attr = MAD_MRA };
	struct cm_conn_info info;

	(void)state;
	request();
	cm_conn_info(conn[0], &info);
	mra.mra.remote_id = info.local_id;
	mra.mra.local_id = 77;
	mra.mra.service_time = 24;
	pair_wait(pair, 10000 * CM_MS);
	assert_int_equal(pair_inject(pair, 0, &mra), CM_HANDLED);
	assert_int_equal(cm_conn_state(conn[0]), CM_MRA_REQ_RCVD);
	pair_wait(pair, 60000 * CM_MS);
	assert_int_equal(pair_inject(pair, 0, &mra), CM_REPEATED);
	assert_int_equal(pair->side[0].events, 0);
	pair_wait(pair, 10000 * CM_MS);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_UNREACHABLE);
}

/* A request that no listener accepts, or for which there is no room, is rejected at once. */
static void test_refusals(void **state)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);

	(void)state;
	connect.service_id++;
	conn[0] = pair_conn(pair, 0);
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_SERVICE);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_REJECTED);
	assert_int_equal(pair->side[0].event[0].mad.rej.reason, MAD_REJECT_INVALID_SERVICE_ID);
	assert_int_equal(pair->side[0].event[0].mad.rej.local_id, 0);

	connect.service_id--;
	connect.service = CM_UC;
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_MISMATCH);
	pair_deliver(pair);
	assert_int_equal(pair->side[0].event[1].mad.rej.reason, MAD_REJECT_CONSUMER);

	connect.service = CM_RC;
	pair->side[1].room = 0;
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_BACKLOG);
	pair_deliver(pair);
	assert_int_equal(pair->side[0].event[2].mad.rej.reason, MAD_REJECT_NO_RESOURCES);
}

/*
 * The application's rejection arrives with its private data; if the REJ is lost, it is sent again
 * in response to the repeated REQ.
 */
static void test_reject(void **state)
{
	(void)state;
	request_and_hear();
	assert_int_equal(reject(1, MAD_REJECT_CONSUMER), CM_OK);
	pair_lose(pair);
	pair_wait(pair, 50 * CM_MS);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_REJECTED);
	assert_memory_equal(pair->side[0].event[0].mad.rej.private_data, "no", 3);
	assert_int_equal(pair->side[0].event[0].mad.rej.refers_to, MAD_REFERS_TO_REQ);
	assert_int_equal(pair_count(pair, 1, CM_EVENT_REQ), 1);
	assert_int_equal(cm_conn_state(conn[1]), CM_REJ_SENT);
	pair_wait(pair, CM_TIMEWAIT_MAX_NS);
	assert_int_equal(cm_conn_state(conn[1]), CM_IDLE);
}

/* A REJ of the REQ that arrives after the REP rejects a copy of the REQ, and has no effect. */
static void test_late_refusal_of_a_copy(void **state)
{
	struct mad rej = { .attr = MAD_REJ };
	struct cm_conn_info info;

	(void)state;
	pair_establish(pair, conn);
	cm_conn_info(conn[0], &info);
	rej.rej.remote_id = info.local_id;
	rej.rej.refers_to = MAD_REFERS_TO_REQ;
	rej.rej.reason = MAD_REJECT_INVALID_SERVICE_ID;
	assert_int_equal(pair_inject(pair, 0, &rej), CM_DROP_STATE);
	assert_int_equal(cm_conn_state(conn[0]), CM_ESTABLISHED);
}

/* If the active side is destroyed before it sends the RTU, the passive side gets a rejection. */
static void test_destroyed_before_ready(void **state)
{
	(void)state;
	request_and_hear();
	accept_it();
	pair_deliver(pair);
	cm_destroy(cm[0], conn[0], pair->now);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_REJECTED);
	assert_int_equal(pair->side[1].event[1].mad.rej.refers_to, MAD_REFERS_TO_REP);
}

/*
 * If the active side is destroyed before the REP arrives, its REJ has no remote id: the passive
 * side finds the connection by GUID and local id of the sender.
 */
static void test_destroyed_before_reply(void **state)
{
	(void)state;
	request_and_hear();
	accept_it();
	cm_destroy(cm[0], conn[0], pair->now);
	assert_int_equal(pair->wire[1].mad.attr, MAD_REJ);
	assert_int_equal(pair->wire[1].mad.rej.reason, MAD_REJECT_TIMEOUT);
	assert_int_equal(pair->wire[1].mad.rej.remote_id, 0);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_REJECTED);
}

/* A REP that arrives long after the active side was destroyed is answered with a REJ. */
static void test_reply_to_nobody(void **state)
{
	(void)state;
	request_and_hear();
	cm_destroy(cm[0], conn[0], pair->now);
	pair_lose(pair);
	pair_wait(pair, 2 * CM_TIMEWAIT_MAX_NS);
	assert_int_equal(pair->side[0].released, 1);
	accept_it();
	assert_int_equal(pair_deliver(pair), CM_REPLIED_UNKNOWN);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_REJECTED);
	assert_int_equal(pair->side[1].event[1].mad.rej.reason, MAD_REJECT_INVALID_COMM_ID);
}

/*
 * A restarted peer uses the same QPN: it gets MAD_REJECT_STALE, and a DREQ for the old connection,
 * and repeats its REQ once automatically, with another id.
 */
static void test_stale(void **state)
{
	struct cm_conn *old[2];
	struct cm_conn_info info;
	uint32_t first_id;

	(void)state;
	pair_establish(pair, old);
	request();
	cm_conn_info(conn[0], &info);
	first_id = info.local_id;
	assert_int_equal(pair_deliver(pair), CM_REFUSED_STALE);
	assert_int_equal(cm_conn_state(old[1]), CM_DREQ_SENT);
	assert_int_equal(pair->wire[0].mad.rej.reason, MAD_REJECT_STALE);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_count(pair, 0, CM_EVENT_REJECTED), 0);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(cm_disconnect(cm[0], old[0], pair->now), CM_OK);
	pair_deliver(pair);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_DISCONNECTED);
	pair_wait(pair, CM_STALE_RETRY_DELAY_NS);
	cm_conn_info(conn[0], &info);
	assert_int_not_equal(info.local_id, first_id);
	assert_int_equal(pair_next(pair), MAD_REQ);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	conn[1] = pair->side[1].newest;
	accept_it();
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
}

/*
 * A peer restarts after its REQ or its REP, before we were ready: its new REQ is rejected, and the
 * old connection reports a rejection with a REJ that the manager has made up.
 */
static void test_stale_before_ready(void **state)
{
	struct cm_conn *old;
	struct mad req;

	(void)state;
	request_and_hear();
	old = conn[1];
	request();
	assert_int_equal(pair_deliver(pair), CM_REFUSED_STALE);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_REJECTED);
	assert_int_equal(pair->side[1].event[1].mad.rej.reason, MAD_REJECT_STALE);
	assert_int_equal(cm_conn_state(old), CM_TIMEWAIT);
	pair_lose(pair);
	pair_wait(pair, 50 * CM_MS);
	while (pair->on_wire > 1)
		pair_lose(pair);
	req = pair->wire[0].mad;
	pair_deliver(pair);
	conn[1] = pair->side[1].newest;
	accept_it();
	pair_deliver(pair);
	assert_int_equal(cm_conn_state(conn[0]), CM_REP_RCVD);
	req.req.ca_guid = pair->side[1].guid;
	req.req.local_qpn = 0x22;
	assert_int_equal(pair_inject(pair, 0, &req), CM_REFUSED_STALE);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_REJECTED);
}

/*
 * A REP from a queue pair that already has a connection here: the old connection is disconnected,
 * and the REP is accepted.
 */
static void test_stale_reply(void **state)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	struct cm_conn *old[2];

	(void)state;
	pair_establish(pair, old);
	connect.qpn = 0x99;
	conn[0] = pair_conn(pair, 0);
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_OK);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	conn[1] = pair->side[1].newest;
	accept_it();
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(cm_conn_state(conn[0]), CM_REP_RCVD);
	assert_int_equal(cm_conn_state(old[0]), CM_DREQ_SENT);
	assert_int_equal(pair_next(pair), MAD_DREQ);
	assert_int_equal(pair->on_wire, 1);
}

/*
 * An RTU for a connection that no longer exists: its sender is connected to nothing, and gets a
 * DREQ or REJ, also where this process answers for a process that has exited.
 */
static void test_rtu_to_nobody(void **state)
{
	struct mad rtu = { .attr = MAD_RTU };
	struct cm_conn_info info;
	const struct mad *rej;

	(void)state;
	pair_establish(pair, conn);
	cm_conn_info(conn[0], &info);
	rtu.rtu.local_id = info.local_id;
	rtu.rtu.remote_id = info.remote_id + 1;
	assert_int_equal(pair_inject(pair, 1, &rtu), CM_REPLIED_UNKNOWN);
	pair->wire[0].mad.rej.local_id = info.remote_id;
	mad_encode(&pair->wire[0].mad, pair->wire[0].bytes);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_REJECTED);
	rtu.rtu.remote_id ^= 1u << 31;
	assert_int_equal(pair_inject(pair, 1, &rtu), CM_REPLIED_UNKNOWN);
	rej = &pair->wire[pair->on_wire - 1].mad;
	assert_int_equal(rej->attr, MAD_REJ);
	assert_int_equal(rej->rej.reason, MAD_REJECT_INVALID_COMM_ID);
	assert_int_equal(rej->rej.local_id, rtu.rtu.remote_id);
	assert_int_equal(rej->rej.remote_id, rtu.rtu.local_id);
	rtu.rtu.remote_id = 0;
	assert_int_equal(pair_inject(pair, 1, &rtu), CM_DROP_UNKNOWN_ID);
}

/*
 * The active side is killed before the passive one replies: another process of its host sends a REJ
 * as soon as the REP arrives, and the passive side need not wait for its timeout.
 */
static void test_rep_for_the_dead(void **state)
{
	struct mad rep;

	(void)state;
	request();
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	conn[1] = pair->side[1].newest;
	accept_it();
	rep = pair->wire[0].mad;
	pair_lose(pair);
	/* The REJ contains both ids, like a REJ of the process itself. */
	rep.rep.remote_id ^= 1u << 31;
	assert_int_equal(pair_inject(pair, 0, &rep), CM_REPLIED_UNKNOWN);
	assert_int_equal(pair->wire[0].mad.rej.local_id, rep.rep.remote_id);
	pair->wire[0].mad.rej.local_id ^= 1u << 31;
	mad_encode(&pair->wire[0].mad, pair->wire[0].bytes);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_REJECTED);
}

/* The second rejection with MAD_REJECT_STALE is reported. */
static void test_stale_twice(void **state)
{
	struct cm_conn *old[2];

	(void)state;
	pair_establish(pair, old);
	request();
	pair_deliver(pair);
	pair_deliver(pair);
	pair_lose(pair);
	pair_wait(pair, CM_STALE_RETRY_DELAY_NS);
	while (pair_next(pair) != MAD_REQ)
		pair_lose(pair);
	assert_int_equal(pair_deliver(pair), CM_REFUSED_STALE);
	while (pair_next(pair) != MAD_REJ)
		pair_lose(pair);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_REJECTED);
}

/*
 * At most CM_REQ_LIMIT requests to a peer are unanswered; the next one is sent when one of them is
 * answered or is due for repetition, whichever comes first.
 */
static void test_storm(void **state)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	const uint64_t *sent = &cm_counters(cm[0])->sent[MAD_REQ - MAD_ATTR_FIRST];
	struct cm_conn *all[CM_REQ_LIMIT + 3];

	(void)state;
	for (uint32_t i = 0; i < CM_REQ_LIMIT + 3; i++) {
		all[i] = pair_conn(pair, 0);
		connect.qpn = 100 + i;
		assert_int_equal(cm_connect(cm[0], all[i], &connect, pair->now), CM_OK);
		if (pair->on_wire > 1)
			pair->on_wire = 1;
	}
	assert_int_equal(*sent, CM_REQ_LIMIT);
	/*
	 * One is answered, one that is queued is destroyed by its owner, and all others are due for
	 * repetition.
	 */
	pair->side[1].room = 0;
	assert_int_equal(pair_deliver(pair), CM_REFUSED_BACKLOG);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(*sent, CM_REQ_LIMIT + 1);
	assert_int_equal(pair_next(pair), MAD_REQ);
	assert_int_equal(pair->wire[0].mad.req.local_qpn, 100 + CM_REQ_LIMIT);
	cm_destroy(cm[0], all[CM_REQ_LIMIT + 1], pair->now);
	assert_int_equal(*sent, CM_REQ_LIMIT + 1);
	pair->now += 50 * CM_MS;
	pair->on_wire = 0;
	for (uint32_t i = 0; i < 4; i++)
		cm_destroy(cm[0], all[i + 1], pair->now);
	assert_int_equal(*sent, CM_REQ_LIMIT + 2);
	for (uint32_t i = 5; i < CM_REQ_LIMIT + 3; i++) {
		pair->on_wire = 0;
		if (i != CM_REQ_LIMIT + 1)
			cm_destroy(cm[0], all[i], pair->now);
	}
	pair->on_wire = 0;
	cm_destroy(cm[0], all[0], pair->now);
}

/* Calls that the state does not allow fail and send nothing. */
static void test_calls_in_wrong_states(void **state)
{
	struct cm_connect_param connect = pair_connect_param(pair, 0);
	struct cm_accept_param accept = pair_accept_param(pair, 0);

	(void)state;
	pair_establish(pair, conn);
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_BAD_STATE);
	assert_int_equal(cm_accept(cm[1], conn[1], &accept, pair->now), CM_BAD_STATE);
	assert_int_equal(cm_rtu(cm[0], conn[0], NULL, 0, pair->now), CM_BAD_STATE);
	assert_int_equal(reject(1, 28), CM_BAD_STATE);
	conn[0] = pair_conn(pair, 0);
	assert_int_equal(cm_disconnect(cm[0], conn[0], pair->now), CM_BAD_STATE);
	assert_int_equal(cm_established(cm[0], conn[0], pair->now), CM_BAD_STATE);
	connect.private_data = (const uint8_t *)"";
	connect.private_length = MAD_REQ_PRIVATE + 1;
	assert_int_equal(cm_connect(cm[0], conn[0], &connect, pair->now), CM_BAD_ARGUMENT);
	assert_int_equal(pair->on_wire, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(test_parameters_arrive),
		WITH_PAIR(test_losses_heal_early),
		WITH_PAIR(test_same_req_brings_rep),
		WITH_PAIR(test_first_packet_establishes),
		WITH_PAIR(test_gives_up),
		WITH_PAIR(test_gives_up_as_attributes_say),
		WITH_PAIR(test_mra_stretches_once),
		WITH_PAIR(test_refusals),
		WITH_PAIR(test_reject),
		WITH_PAIR(test_late_refusal_of_a_copy),
		WITH_PAIR(test_destroyed_before_ready),
		WITH_PAIR(test_destroyed_before_reply),
		WITH_PAIR(test_reply_to_nobody),
		WITH_PAIR(test_stale),
		WITH_PAIR(test_stale_before_ready),
		WITH_PAIR(test_stale_reply),
		WITH_PAIR(test_rtu_to_nobody),
		WITH_PAIR(test_rep_for_the_dead),
		WITH_PAIR(test_stale_twice),
		WITH_PAIR(test_storm),
		WITH_PAIR(test_calls_in_wrong_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
