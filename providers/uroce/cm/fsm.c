/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Carries out the steps of the table in fsm_table.c. */
#include <assert.h>
#include <stddef.h>

#include "cm_priv.h"

#define REJ_REASONS (sizeof(((struct cm_counters *)0)->rejected) / sizeof(uint64_t))

void cm_send_mad(struct cm *cm, const struct cm_path *path, const struct mad *mad)
{
	uint8_t bytes[MAD_BYTES];

	mad_encode(mad, bytes);
	cm->counters.sent[mad->attr - MAD_ATTR_FIRST]++;
	if (mad->attr == MAD_REJ)
		cm->counters.rejected[mad->rej.reason < REJ_REASONS ? mad->rej.reason : 0]++;
	cm->config.ops->send(cm->config.owner, path, bytes);
}

/*
 * Returns true if conn->last_mad is a request and must be queued because of the limit of its peer.
 * REP and REJ are replies and are sent immediately, as are messages of destroyed connections,
 * because the process may be about to exit.
 */
static bool must_be_queued(struct cm *cm, struct cm_conn *conn)
{
	uint16_t attr = conn->last_mad.attr;

	if (conn->destroyed)
		return false;
	if (attr != MAD_REQ && attr != MAD_SIDR_REQ && attr != MAD_DREQ)
		return false;
	return !cm_req_limit_add(&cm->req_limit, &conn->req_limit, conn->path.dgid);
}

/* Called before the state changes, because cm_build_rej() depends on the old state. */
static void send_for_step(struct cm *cm, struct cm_conn *conn, enum cm_send send,
			  const struct cm_trigger *trigger)
{
	struct mad reply;

	switch (send) {
	case CM_SEND_NOTHING:
	case CM_SENDS:
		return;
	case CM_SEND_PREPARED:
		break;
	case CM_SEND_AGAIN:
		conn->resent++;
		cm->counters.resent[conn->last_mad.attr - MAD_ATTR_FIRST]++;
		cm_send_mad(cm, &conn->path, &conn->last_mad);
		return;
	case CM_SEND_DREQ:
		cm_build_dreq(conn, &conn->last_mad);
		break;
	case CM_SEND_REJ_TIMEOUT:
		cm_build_rej(conn, MAD_REJECT_TIMEOUT, &conn->last_mad);
		break;
	case CM_SEND_REJ_CONSUMER:
		cm_build_rej(conn, MAD_REJECT_CONSUMER, &conn->last_mad);
		break;
	case CM_SEND_SIDR_REJECT:
		cm_build_sidr_rep(conn->remote_id, conn->service_id, conn->transaction_id,
				  MAD_SIDR_REJECT, &conn->last_mad);
		break;
	case CM_SEND_DREP:
		cm_build_drep(conn, &reply);
		cm_send_mad(cm, &conn->path, &reply);
		return;
	case CM_SEND_REJ_CLOSED:
		cm_build_rej_of_req(trigger->mad, MAD_REJECT_CONSUMER, &reply);
		cm_send_mad(cm, &conn->path, &reply);
		return;
	}
	if (!must_be_queued(cm, conn))
		cm_send_mad(cm, &conn->path, &conn->last_mad);
}

/* Uses another id, so that late replies to the first REQ are not taken for replies to this one. */
static void retry_with_new_id(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	cm_assign_id(cm, conn);
	conn->stale_retried = true;
	conn->transaction_id = (uint64_t)MAD_REQ << 32 | conn->local_id;
	conn->last_mad.transaction_id = conn->transaction_id;
	conn->last_mad.req.local_id = conn->local_id;
	conn->timing.repeat_at = now + CM_STALE_RETRY_DELAY_NS;
}

static void start_repetition(struct cm_conn *conn, uint64_t now)
{
	cm_timing_start(&conn->timing, conn->destroyed ? CM_DESTROY_DREQ_NS : CM_GIVE_UP_NS, now);
}

void cm_send_first(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	cm_send_mad(cm, &conn->path, &conn->last_mad);
	start_repetition(conn, now);
	heap_set(&cm->deadlines, &conn->deadline, cm_timing_next(&conn->timing));
}

/* Sends the next queued request of a bucket of the request limit, after a request has left it. */
static void send_next_queued(struct cm *cm, uint32_t bucket, uint64_t now)
{
	struct req_limit_node *node = cm_req_limit_next(&cm->req_limit, bucket);
	struct cm_conn *conn;

	if (!node)
		return;
	conn = container_of(node, struct cm_conn, req_limit);
	cm_send_first(cm, conn, now);
}

static void set_timer(struct cm *cm, struct cm_conn *conn, enum cm_timer timer,
		      const struct cm_trigger *trigger)
{
	uint64_t now = trigger->now, at = 0;

	switch (timer) {
	case CM_TIMER_KEEP:
		return;
	case CM_TIMER_STOP:
		heap_remove(&cm->deadlines, &conn->deadline);
		return;
	case CM_TIMER_REPEAT:
		/* A queued request starts its timer in send_next_queued(). */
		if (conn->req_limit.state == REQ_LIMIT_QUEUED) {
			heap_remove(&cm->deadlines, &conn->deadline);
			return;
		}
		start_repetition(conn, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_NEXT:
		cm_timing_repeated(&conn->timing, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_EXTEND:
		cm_timing_extend(&conn->timing, trigger->mad->mra.service_time, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_RESTART:
		retry_with_new_id(cm, conn, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_DREP:
		at = now + CM_DREP_DELAY_NS;
		break;
	case CM_TIMER_TIMEWAIT:
		at = now + cm_timing_timewait(conn->ack_timeout);
		break;
	case CM_TIMER_SIDR:
		at = now + CM_SIDR_REPLY_CACHE_NS;
		break;
	}
	heap_set(&cm->deadlines, &conn->deadline, at);
}

static void report_event(struct cm *cm, struct cm_conn *conn, enum cm_event_type type,
			 const struct cm_trigger *trigger)
{
	const struct cm_event event = {
		.type = type,
		.now = trigger->now,
		.mad = trigger->mad,
		.from = trigger->from,
		.listener = trigger->listener,
	};

	if (type == CM_NO_EVENT || conn->destroyed)
		return;
	if (type == CM_EVENT_TIMEWAIT_EXIT && !conn->disconnected)
		return;
	if (type == CM_EVENT_DISCONNECTED) {
		assert(!conn->disconnected);
		conn->disconnected = true;
	}
	cm->config.ops->event(cm->config.owner, conn, &event);
}

/*
 * Returns the type of the message to send at process exit.  DREQ: the peer has a connection with
 * us, or will have, and waits for its end.  REJ: the peer was rejected, but the message may be
 * lost; one from this process to its own address is lost when the process exits.
 */
static uint16_t last_message_type(enum cm_state state)
{
	static const uint16_t last_messages[CM_STATES] = {
		[CM_REP_RCVD] = MAD_DREQ,     [CM_REP_SENT] = MAD_DREQ,
		[CM_MRA_REP_RCVD] = MAD_DREQ, [CM_ESTABLISHED] = MAD_DREQ,
		[CM_DREQ_SENT] = MAD_DREQ,    [CM_DREQ_RCVD] = MAD_DREQ,
		[CM_REJ_SENT] = MAD_REJ,
	};

	return last_messages[state];
}

static void update_last_message(struct cm *cm, struct cm_conn *conn)
{
	uint16_t wanted = last_message_type(conn->state);
	uint8_t bytes[MAD_BYTES];
	struct mad dreq;

	if (wanted == conn->last_message || !cm->config.ops->last_message)
		return;
	if (conn->last_message)
		cm->config.ops->last_message(cm->config.owner, conn, &conn->path, NULL);
	conn->last_message = wanted;
	if (!wanted)
		return;
	if (wanted == MAD_DREQ)
		cm_build_dreq(conn, &dreq);
	mad_encode(wanted == MAD_DREQ ? &dreq : &conn->last_mad, bytes);
	cm->config.ops->last_message(cm->config.owner, conn, &conn->path, bytes);
}

void cm_apply(struct cm *cm, struct cm_conn *conn, const struct cm_step *step,
	      const struct cm_trigger *trigger)
{
	uint32_t bucket = conn->req_limit.bucket;
	bool leaves_limit;

	assert(step && step->legal);
	leaves_limit = conn->req_limit.state != REQ_LIMIT_NONE && step->timer != CM_TIMER_KEEP;
	if (leaves_limit)
		cm_req_limit_remove(&cm->req_limit, &conn->req_limit);
	send_for_step(cm, conn, step->send, trigger);
	if (conn->state != step->next) {
		conn->state = step->next;
		conn->changed = trigger->now;
	}
	if (conn->state == CM_TIMEWAIT || conn->state == CM_REJ_SENT)
		cm_unlink_remote_qp(cm, conn);
	update_last_message(cm, conn);
	set_timer(cm, conn, step->timer, trigger);
	if (leaves_limit)
		send_next_queued(cm, bucket, trigger->now);
	report_event(cm, conn, step->event, trigger);
	if (conn->state != CM_IDLE)
		return;
	cm_unlink(cm, conn);
	if (conn->destroyed)
		cm_release(cm, conn);
}

enum cm_verdict cm_apply_msg(struct cm *cm, struct cm_conn *conn, enum cm_input input,
			     const struct cm_trigger *trigger)
{
	const struct cm_step *step = cm_step_of(conn->state, input);

	if (!step)
		return CM_DROP_STATE;
	cm_apply(cm, conn, step, trigger);
	return step->repeated ? CM_REPEATED : CM_HANDLED;
}

enum cm_result cm_apply_call(struct cm *cm, struct cm_conn *conn, enum cm_input input, uint64_t now)
{
	const struct cm_step *step = cm_step_of(conn->state, input);
	const struct cm_trigger trigger = { .now = now };

	if (!step)
		return CM_BAD_STATE;
	cm_apply(cm, conn, step, &trigger);
	return CM_OK;
}

void cm_expire(struct cm *cm, uint64_t now)
{
	const struct cm_trigger trigger = { .now = now };
	struct heap_node *first;

	while ((first = cm->deadlines.first) != NULL && first->at <= now) {
		struct cm_conn *conn = container_of(first, struct cm_conn, deadline);
		bool repeats = cm_step_of(conn->state, CM_IN_REPEAT) != NULL;
		enum cm_input input = CM_IN_EXPIRED;

		if (repeats && now < conn->timing.give_up_at)
			input = CM_IN_REPEAT;
		cm_apply(cm, conn, cm_step_of(conn->state, input), &trigger);
	}
}
