/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* End of connections: events of both sides, for either initiator and with lost messages. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cm_fixture.h"

static struct cm_conn *conn[2];

/* Disconnect: the peer's application responds, and each side gets one event. */
static void test_disconnect(void **state)
{
	(void)state;
	pair_establish(pair, conn);
	assert_int_equal(cm_disconnect(cm[0], conn[0], pair->now), CM_OK);
	pair_lose(pair);
	pair_wait(pair, 50 * CM_MS);
	pair_deliver_twice(pair);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_DISCONNECTED);
	assert_int_equal(pair_deliver(pair), CM_REPEATED);
	assert_int_equal(pair->on_wire, 0);
	assert_int_equal(cm_disconnect(cm[1], conn[1], pair->now), CM_OK);
	assert_int_equal(pair->wire[0].mad.transaction_id >> 32, MAD_DREQ);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_DISCONNECTED);
	pair_wait(pair, CM_TIMEWAIT_MAX_NS);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(pair_count(pair, i, CM_EVENT_DISCONNECTED), 1);
		assert_int_equal(pair_last_event(pair, i), CM_EVENT_TIMEWAIT_EXIT);
		assert_int_equal(cm_conn_state(conn[i]), CM_IDLE);
	}
}

/* If the application does not react to a DREQ, the manager sends the DREP after a second. */
static void test_grace(void **state)
{
	(void)state;
	pair_establish(pair, conn);
	assert_int_equal(cm_disconnect(cm[0], conn[0], pair->now), CM_OK);
	pair_deliver(pair);
	pair_wait(pair, 49 * CM_MS);
	assert_int_equal(pair->on_wire, 0);
	pair_wait(pair, CM_DREP_DELAY_NS);
	while (pair_next(pair) == MAD_DREQ)
		pair_lose(pair);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_disconnect(cm[1], conn[1], pair->now), CM_OK);
}

/* DREQs that cross: each side reports one disconnect, whether or not DREPs arrive. */
static void test_crossing_disconnects(void **state)
{
	(void)state;
	pair_establish(pair, conn);
	assert_int_equal(cm_disconnect(cm[0], conn[0], pair->now), CM_OK);
	assert_int_equal(cm_disconnect(cm[1], conn[1], pair->now), CM_OK);
	pair_deliver(pair);
	pair_deliver(pair);
	pair_deliver_all(pair);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(cm_conn_state(conn[i]), CM_TIMEWAIT);
		assert_int_equal(pair_count(pair, i, CM_EVENT_DISCONNECTED), 1);
	}
}

/* A destroyed connection repeats its DREQ in the background and is then released. */
static void test_destroy_sends_dreqs(void **state)
{
	(void)state;
	pair_establish(pair, conn);
	cm_destroy(cm[0], conn[0], pair->now);
	assert_int_equal(pair->side[0].released, 0);
	pair_lose(pair);
	pair_wait(pair, 50 * CM_MS);
	pair_lose(pair);
	pair_wait(pair, 200 * CM_MS);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 1), CM_EVENT_DISCONNECTED);
	cm_destroy(cm[1], conn[1], pair->now);
	assert_int_equal(pair_deliver(pair), CM_HANDLED);
	pair_wait(pair, CM_TIMEWAIT_MAX_NS);
	assert_int_equal(pair->side[0].released, 1);
	assert_int_equal(pair->side[1].released, 1);
	assert_int_equal(pair_count(pair, 0, CM_EVENT_DISCONNECTED), 0);
}

/* DREQs to a peer that no longer exists end after 15 s. */
static void test_destroy_dreqs_end(void **state)
{
	(void)state;
	pair_establish(pair, conn);
	cm_destroy(cm[0], conn[0], pair->now);
	pair_wait(pair, CM_DESTROY_DREQ_NS + CM_TIMEWAIT_MAX_NS);
	assert_int_equal(pair->side[0].released, 1);
}

/* DREQ for an unknown connection: DREP with the ids exchanged.  For another queue pair: nothing. */
static void test_foreign_disconnects(void **state)
{
	struct mad dreq = { .attr = MAD_DREQ, .transaction_id = 99 };
	struct cm_conn_info info;

	(void)state;
	dreq.dreq.local_id = 11;
	dreq.dreq.remote_id = 12;
	assert_int_equal(pair_inject(pair, 0, &dreq), CM_REPLIED_UNKNOWN);
	assert_int_equal(pair_next(pair), MAD_DREP);
	assert_int_equal(pair->wire[0].mad.drep.local_id, 12);
	assert_int_equal(pair->wire[0].mad.drep.remote_id, 11);
	assert_int_equal(pair->wire[0].mad.transaction_id, 99);
	pair_lose(pair);
	pair_establish(pair, conn);
	cm_conn_info(conn[0], &info);
	dreq.dreq.local_id = info.remote_id;
	dreq.dreq.remote_id = info.local_id;
	dreq.dreq.remote_qpn = info.local_qpn + 1;
	assert_int_equal(pair_inject(pair, 0, &dreq), CM_DROP_QPN);
	assert_int_equal(pair->on_wire, 0);
}

/*
 * While a connection is established, a DREQ is stored for the case that the process is killed; the
 * peer accepts it like a DREQ of the process.
 */
static void test_last_message(void **state)
{
	(void)state;
	pair_establish(pair, conn);
	assert_int_equal(pair->side[0].last_messages, 1);
	assert_int_equal(pair->side[1].last_messages, 1);
	assert_int_equal(pair->side[1].last_message.attr, MAD_DREQ);
	assert_int_equal(pair_inject(pair, 0, &pair->side[1].last_message), CM_HANDLED);
	assert_int_equal(pair_last_event(pair, 0), CM_EVENT_DISCONNECTED);
	assert_int_equal(cm_disconnect(cm[0], conn[0], pair->now), CM_OK);
	assert_int_equal(pair->side[0].last_messages, 0);
	cm_destroy(cm[1], conn[1], pair->now);
	assert_int_equal(pair->side[1].last_messages, 1);
	pair_deliver_all(pair);
	assert_int_equal(pair->side[1].last_messages, 0);
}

/*
 * A REJ is stored as well, as long as the manager would repeat it: it may be lost right before its
 * sender is killed.  A connection that has been accepted before the rejection has a DREQ as last
 * message until then.
 */
static void test_will_of_refusal(void **state)
{
	const struct cm_reject_param refusal = { .reason = MAD_REJECT_CONSUMER,
						 .private_data = (const uint8_t *)"no",
						 .private_length = 2 };

	(void)state;
	for (unsigned int accepted = 0; accepted < 2; accepted++) {
		const struct cm_accept_param accept = pair_accept_param(pair, 1);
		struct cm_connect_param param = pair_connect_param(pair, 0);

		conn[0] = pair_conn(pair, 0);
		assert_int_equal(cm_connect(cm[0], conn[0], &param, pair->now), CM_OK);
		assert_int_equal(pair_deliver(pair), CM_HANDLED);
		conn[1] = pair->side[1].newest;
		assert_int_equal(pair->side[1].last_messages, 0);
		if (accepted) {
			assert_int_equal(cm_accept(cm[1], conn[1], &accept, pair->now), CM_OK);
			pair_lose(pair);
			assert_int_equal(pair->side[1].last_message.attr, MAD_DREQ);
		}
		assert_int_equal(cm_reject(cm[1], conn[1], &refusal, pair->now), CM_OK);
		pair_lose(pair);
		assert_int_equal(pair->side[1].last_messages, 1);
		assert_int_equal(pair->side[1].last_message.attr, MAD_REJ);
		assert_memory_equal(pair->side[1].last_message.rej.private_data, "no", 2);
		assert_int_equal(pair_inject(pair, 0, &pair->side[1].last_message), CM_HANDLED);
		assert_int_equal(pair_last_event(pair, 0), CM_EVENT_REJECTED);
		pair_wait(pair, CM_TIMEWAIT_MAX_NS);
		assert_int_equal(pair->side[1].last_messages, 0);
	}
}

/*
 * Connections that are destroyed together all send their DREQ; so do those that still wait for the
 * request limit.
 */
static void test_many_destroyed(void **state)
{
	const uint64_t *sent = &cm_counters(cm[0])->sent[MAD_DREQ - MAD_ATTR_FIRST];
	struct cm_conn *all[2 * CM_REQ_LIMIT];

	(void)state;
	pair->side[1].room = 2 * CM_REQ_LIMIT;
	for (uint32_t i = 0; i < 2 * CM_REQ_LIMIT; i++) {
		pair->side[0].events = pair->side[1].events = 0;
		pair_establish_qps(pair, conn, 1000 + i, 2000 + i);
		all[i] = conn[0];
	}
	for (uint32_t i = 0; i < CM_REQ_LIMIT + 10; i++) {
		assert_int_equal(cm_disconnect(cm[0], all[i], pair->now), CM_OK);
		pair->on_wire = 0;
	}
	assert_int_equal(*sent, CM_REQ_LIMIT);
	for (uint32_t i = 0; i < 2 * CM_REQ_LIMIT; i++) {
		cm_destroy(cm[0], all[i], pair->now);
		pair->on_wire = 0;
	}
	assert_int_equal(*sent, 2 * CM_REQ_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PAIR(test_disconnect),	      WITH_PAIR(test_grace),
		WITH_PAIR(test_crossing_disconnects), WITH_PAIR(test_destroy_sends_dreqs),
		WITH_PAIR(test_destroy_dreqs_end),    WITH_PAIR(test_foreign_disconnects),
		WITH_PAIR(test_last_message),	      WITH_PAIR(test_will_of_refusal),
		WITH_PAIR(test_many_destroyed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
