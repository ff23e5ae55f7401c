/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Carries out the steps of the table in state.c. */
#include <assert.h>
#include <stddef.h>

#include "conn.h"

#define REASONS (sizeof(((struct cm_counters *)0)->rejected) / sizeof(uint64_t))

void cm_send(struct cm *cm, const struct cm_path *path, const struct mad *mad)
{
	uint8_t bytes[MAD_BYTES];

	mad_encode(mad, bytes);
	cm->counters.sent[mad->attr - MAD_ATTR_FIRST]++;
	if (mad->attr == MAD_REJ)
		cm->counters.rejected[mad->rej.reason < REASONS ? mad->rej.reason : 0]++;
	cm->config.ops->send(cm->config.owner, path, bytes);
}

/*
 * Returns true if conn->kept is a request and must be queued because of the limit of its peer.  REP
 * and REJ are replies and are sent immediately, as are messages of destroyed connections, because
 * the process may be about to exit.
 */
static bool waits_for_turn(struct cm *cm, struct cm_conn *conn)
{
	uint16_t attr = conn->kept.attr;

	if (conn->destroyed)
		return false;
	if (attr != MAD_REQ && attr != MAD_SIDR_REQ && attr != MAD_DREQ)
		return false;
	return !cm_quota_enter(&cm->quota, &conn->in_quota, conn->path.dgid);
}

/* Called before the state changes, because cm_compose_rej() depends on the old state. */
static void send_of(struct cm *cm, struct cm_conn *conn, enum cm_send send,
		    const struct cm_cause *cause)
{
	struct mad answer;

	switch (send) {
	case CM_SEND_NOTHING:
	case CM_SENDS:
		return;
	case CM_SEND_PREPARED:
		break;
	case CM_SEND_AGAIN:
		conn->resent++;
		cm->counters.resent[conn->kept.attr - MAD_ATTR_FIRST]++;
		cm_send(cm, &conn->path, &conn->kept);
		return;
	case CM_SEND_DREQ:
		cm_compose_dreq(conn, &conn->kept);
		break;
	case CM_SEND_TIMED_OUT:
		cm_compose_rej(conn, MAD_REJECT_TIMEOUT, &conn->kept);
		break;
	case CM_SEND_CONSUMER:
		cm_compose_rej(conn, MAD_REJECT_CONSUMER, &conn->kept);
		break;
	case CM_SEND_SIDR_REJECT:
		cm_compose_sidr_rep(conn->remote_id, conn->service_id, conn->transaction_id,
				    MAD_SIDR_REJECT, &conn->kept);
		break;
	case CM_SEND_DREP:
		cm_compose_drep(conn, &answer);
		cm_send(cm, &conn->path, &answer);
		return;
	case CM_SEND_NOT_AGAIN:
		cm_compose_rej_of_req(cause->mad, MAD_REJECT_CONSUMER, &answer);
		cm_send(cm, &conn->path, &answer);
		return;
	}
	if (!waits_for_turn(cm, conn))
		cm_send(cm, &conn->path, &conn->kept);
}

/* Uses another id, so that late replies to the first REQ are not taken for replies to this one. */
static void request_anew(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	cm_give_id(cm, conn);
	conn->stale_repeated = true;
	conn->transaction_id = (uint64_t)MAD_REQ << 32 | conn->local_id;
	conn->kept.transaction_id = conn->transaction_id;
	conn->kept.req.local_id = conn->local_id;
	conn->timing.repeat_at = now + CM_STALE_PAUSE_NS;
}

static void start_timing(struct cm_conn *conn, uint64_t now)
{
	cm_timing_start(&conn->timing, conn->destroyed ? CM_FAREWELL_NS : CM_GIVE_UP_NS, now);
}

void cm_begin(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	cm_send(cm, &conn->path, &conn->kept);
	start_timing(conn, now);
	cm_heap_set(&cm->deadlines, &conn->deadline, cm_timing_next(&conn->timing));
}

/* Sends the next queued request of a bucket of the request limit, after a request has left it. */
static void send_next(struct cm *cm, uint32_t place, uint64_t now)
{
	struct quota_node *node = cm_quota_next(&cm->quota, place);
	struct cm_conn *conn;

	if (!node)
		return;
	conn = (struct cm_conn *)((char *)node - offsetof(struct cm_conn, in_quota));
	cm_begin(cm, conn, now);
}

static void set_timer(struct cm *cm, struct cm_conn *conn, enum cm_timer timer,
		      const struct cm_cause *cause)
{
	uint64_t now = cause->now, at = 0;

	switch (timer) {
	case CM_TIMER_KEEP:
		return;
	case CM_TIMER_STOP:
		cm_heap_remove(&cm->deadlines, &conn->deadline);
		return;
	case CM_TIMER_REPEAT:
		/* A queued request starts its timer in send_next(). */
		if (conn->in_quota.how == QUOTA_WAITS) {
			cm_heap_remove(&cm->deadlines, &conn->deadline);
			return;
		}
		start_timing(conn, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_NEXT:
		cm_timing_repeated(&conn->timing, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_STRETCH:
		cm_timing_stretch(&conn->timing, cause->mad->mra.service_time, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_ANEW:
		request_anew(cm, conn, now);
		at = cm_timing_next(&conn->timing);
		break;
	case CM_TIMER_GRACE:
		at = now + CM_DREP_GRACE_NS;
		break;
	case CM_TIMER_WAIT:
		at = now + cm_timing_timewait(conn->ack_timeout);
		break;
	case CM_TIMER_SIDR:
		at = now + CM_SIDR_MEMORY_NS;
		break;
	}
	cm_heap_set(&cm->deadlines, &conn->deadline, at);
}

static void tell(struct cm *cm, struct cm_conn *conn, enum cm_event_type type,
		 const struct cm_cause *cause)
{
	const struct cm_event event = {
		.type = type,
		.now = cause->now,
		.mad = cause->mad,
		.from = cause->from,
		.listener = cause->listener,
	};

	if (type == CM_NO_EVENT || conn->destroyed)
		return;
	if (type == CM_EVENT_TIMEWAIT_EXIT && !conn->disconnected)
		return;
	if (type == CM_EVENT_DISCONNECTED) {
		assert(!conn->disconnected);
		conn->disconnected = true;
	}
	cm->counters.event[type]++;
	cm->config.ops->event(cm->config.owner, conn, &event);
}

/*
 * Returns the type of the message to send at process exit.  DREQ: the peer has a connection with
 * us, or will have, and waits for its end.  REJ: the peer was rejected, but the message may be
 * lost; one from this process to its own address is lost when the process exits.
 */
static uint16_t last_message_in(enum cm_state state)
{
	static const uint16_t last_messages[CM_STATES] = {
		[CM_REP_RCVD] = MAD_DREQ,     [CM_REP_SENT] = MAD_DREQ,
		[CM_MRA_REP_RCVD] = MAD_DREQ, [CM_ESTABLISHED] = MAD_DREQ,
		[CM_DREQ_SENT] = MAD_DREQ,    [CM_DREQ_RCVD] = MAD_DREQ,
		[CM_REJ_SENT] = MAD_REJ,
	};

	return last_messages[state];
}

static void set_last_message(struct cm *cm, struct cm_conn *conn)
{
	uint16_t wanted = last_message_in(conn->state);
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
		cm_compose_dreq(conn, &dreq);
	mad_encode(wanted == MAD_DREQ ? &dreq : &conn->kept, bytes);
	cm->config.ops->last_message(cm->config.owner, conn, &conn->path, bytes);
}

void cm_take(struct cm *cm, struct cm_conn *conn, const struct cm_step *step,
	     const struct cm_cause *cause)
{
	uint32_t place = conn->in_quota.place;
	bool leaves = conn->in_quota.how != QUOTA_OUT && step->timer != CM_TIMER_KEEP;

	assert(step && step->legal);
	if (leaves)
		cm_quota_leave(&cm->quota, &conn->in_quota);
	send_of(cm, conn, step->send, cause);
	if (conn->state != step->next) {
		conn->state = step->next;
		conn->changed = cause->now;
	}
	if (conn->state == CM_TIMEWAIT || conn->state == CM_REJ_SENT)
		cm_free_qp(cm, conn);
	set_last_message(cm, conn);
	set_timer(cm, conn, step->timer, cause);
	if (leaves)
		send_next(cm, place, cause->now);
	tell(cm, conn, step->event, cause);
	if (conn->state != CM_IDLE)
		return;
	cm_forget(cm, conn);
	if (conn->destroyed)
		cm_release(cm, conn);
}

enum cm_verdict cm_take_message(struct cm *cm, struct cm_conn *conn, enum cm_input input,
				const struct cm_cause *cause)
{
	const struct cm_step *step = cm_step_of(conn->state, input);

	if (!step)
		return CM_DROP_STATE;
	cm_take(cm, conn, step, cause);
	return step->repeated ? CM_REPEATED : CM_TAKEN;
}

enum cm_result cm_take_call(struct cm *cm, struct cm_conn *conn, enum cm_input input, uint64_t now)
{
	const struct cm_step *step = cm_step_of(conn->state, input);
	const struct cm_cause cause = { .now = now };

	if (!step)
		return CM_BAD_STATE;
	cm_take(cm, conn, step, &cause);
	return CM_OK;
}
