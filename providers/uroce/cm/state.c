/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "state.h"

#define STEP(next, send, timer, event)                                                     \
	{                                                                                  \
		true, false, CM_##next, CM_SEND_##send, CM_TIMER_##timer, CM_EVENT_##event \
	}
#define QUIET(next, send, timer)                                                      \
	{                                                                             \
		true, false, CM_##next, CM_SEND_##send, CM_TIMER_##timer, CM_NO_EVENT \
	}
#define KNOWN(state, send)                                                         \
	{                                                                          \
		true, true, CM_##state, CM_SEND_##send, CM_TIMER_KEEP, CM_NO_EVENT \
	}

/* Active side before and after an MRA; only the first MRA extends the time. */
#define REQUEST_UNDER_WAY(state)                                    \
	[CM_IN_REP] = STEP(REP_RCVD, NOTHING, STOP, REP),           \
	[CM_IN_REJ_REQ] = STEP(IDLE, NOTHING, STOP, REJECTED),      \
	[CM_IN_REJ_STALE_FIRST] = QUIET(REQ_SENT, NOTHING, ANEW),   \
	[CM_IN_REJ] = STEP(IDLE, NOTHING, STOP, REJECTED),          \
	[CM_IN_REPEAT] = QUIET(state, AGAIN, NEXT),                 \
	[CM_IN_END] = STEP(REJ_SENT, TIMED_OUT, WAIT, UNREACHABLE), \
	[CM_IN_DESTROY] = QUIET(REJ_SENT, TIMED_OUT, WAIT)

/* Passive side before and after an MRA. */
#define REPLY_UNDER_WAY(state)                                               \
	[CM_IN_SAME_REQ] = KNOWN(state, AGAIN),                              \
	[CM_IN_RTU] = STEP(ESTABLISHED, NOTHING, STOP, ESTABLISHED),         \
	[CM_IN_ESTABLISHED] = STEP(ESTABLISHED, NOTHING, STOP, ESTABLISHED), \
	[CM_IN_REJ] = STEP(TIMEWAIT, NOTHING, WAIT, REJECTED),               \
	[CM_IN_DREQ] = STEP(DREQ_RCVD, NOTHING, GRACE, DISCONNECTED),        \
	[CM_IN_STALE] = QUIET(DREQ_SENT, DREQ, REPEAT),                      \
	[CM_IN_REPEAT] = QUIET(state, AGAIN, NEXT),                          \
	[CM_IN_END] = STEP(REJ_SENT, TIMED_OUT, WAIT, UNREACHABLE),          \
	[CM_IN_REJECT] = QUIET(REJ_SENT, PREPARED, WAIT),                    \
	[CM_IN_DISCONNECT] = QUIET(DREQ_SENT, DREQ, REPEAT),                 \
	[CM_IN_DESTROY] = QUIET(REJ_SENT, CONSUMER, WAIT)

/* clang-format off */
static const struct cm_step steps[CM_STATES][CM_INPUTS] = {
	[CM_IDLE] = {
		[CM_IN_CONNECT] = QUIET(REQ_SENT, PREPARED, REPEAT),
		[CM_IN_SIDR_REQUEST] = QUIET(SIDR_REQ_SENT, PREPARED, REPEAT),
		[CM_IN_NEW_REQ] = STEP(REQ_RCVD, NOTHING, STOP, REQ),
		[CM_IN_NEW_SIDR_REQ] = STEP(SIDR_REQ_RCVD, NOTHING, STOP, SIDR_REQ),
		[CM_IN_DESTROY] = QUIET(IDLE, NOTHING, STOP),
	},
	[CM_REQ_SENT] = {
		REQUEST_UNDER_WAY(REQ_SENT),
		[CM_IN_MRA_REQ] = QUIET(MRA_REQ_RCVD, NOTHING, STRETCH),
	},
	[CM_MRA_REQ_RCVD] = {
		REQUEST_UNDER_WAY(MRA_REQ_RCVD),
		[CM_IN_MRA_REQ] = KNOWN(MRA_REQ_RCVD, NOTHING),
	},
	[CM_REP_RCVD] = {
		[CM_IN_REP] = KNOWN(REP_RCVD, NOTHING),
		[CM_IN_READY] = QUIET(ESTABLISHED, PREPARED, STOP),
		[CM_IN_REJECT] = QUIET(REJ_SENT, PREPARED, WAIT),
		[CM_IN_DESTROY] = QUIET(REJ_SENT, CONSUMER, WAIT),
		[CM_IN_REJ] = STEP(TIMEWAIT, NOTHING, WAIT, REJECTED),
		[CM_IN_STALE] = STEP(TIMEWAIT, NOTHING, WAIT, REJECTED),
	},
	[CM_REQ_RCVD] = {
		[CM_IN_SAME_REQ] = KNOWN(REQ_RCVD, NOTHING),
		[CM_IN_ACCEPT] = QUIET(REP_SENT, PREPARED, REPEAT),
		[CM_IN_REJECT] = QUIET(REJ_SENT, PREPARED, WAIT),
		[CM_IN_DESTROY] = QUIET(REJ_SENT, CONSUMER, WAIT),
		[CM_IN_REJ] = STEP(TIMEWAIT, NOTHING, WAIT, REJECTED),
		[CM_IN_STALE] = STEP(TIMEWAIT, NOTHING, WAIT, REJECTED),
	},
	[CM_REP_SENT] = {
		REPLY_UNDER_WAY(REP_SENT),
		[CM_IN_MRA_REP] = QUIET(MRA_REP_RCVD, NOTHING, STRETCH),
	},
	[CM_MRA_REP_RCVD] = {
		REPLY_UNDER_WAY(MRA_REP_RCVD),
		[CM_IN_MRA_REP] = KNOWN(MRA_REP_RCVD, NOTHING),
	},
	[CM_ESTABLISHED] = {
		[CM_IN_SAME_REQ] = KNOWN(ESTABLISHED, NOTHING),
		[CM_IN_REP] = KNOWN(ESTABLISHED, AGAIN),
		[CM_IN_RTU] = KNOWN(ESTABLISHED, NOTHING),
		[CM_IN_REJ] = STEP(TIMEWAIT, NOTHING, WAIT, REJECTED),
		[CM_IN_DREQ] = STEP(DREQ_RCVD, NOTHING, GRACE, DISCONNECTED),
		[CM_IN_STALE] = QUIET(DREQ_SENT, DREQ, REPEAT),
		[CM_IN_DISCONNECT] = QUIET(DREQ_SENT, DREQ, REPEAT),
		[CM_IN_DESTROY] = QUIET(DREQ_SENT, DREQ, REPEAT),
	},
	[CM_DREQ_SENT] = {
		[CM_IN_SAME_REQ] = KNOWN(DREQ_SENT, NOTHING),
		[CM_IN_REP] = KNOWN(DREQ_SENT, NOTHING),
		[CM_IN_RTU] = KNOWN(DREQ_SENT, NOTHING),
		[CM_IN_DREP] = STEP(TIMEWAIT, NOTHING, WAIT, DISCONNECTED),
		[CM_IN_DREQ] = STEP(TIMEWAIT, DREP, WAIT, DISCONNECTED),
		[CM_IN_REJ] = STEP(TIMEWAIT, NOTHING, WAIT, DISCONNECTED),
		[CM_IN_REPEAT] = QUIET(DREQ_SENT, AGAIN, NEXT),
		[CM_IN_END] = STEP(TIMEWAIT, NOTHING, WAIT, DISCONNECTED),
		[CM_IN_DISCONNECT] = KNOWN(DREQ_SENT, NOTHING),
		[CM_IN_DESTROY] = KNOWN(DREQ_SENT, NOTHING),
	},
	[CM_DREQ_RCVD] = {
		[CM_IN_SAME_REQ] = KNOWN(DREQ_RCVD, NOTHING),
		[CM_IN_REP] = KNOWN(DREQ_RCVD, NOTHING),
		[CM_IN_RTU] = KNOWN(DREQ_RCVD, NOTHING),
		[CM_IN_DREQ] = KNOWN(DREQ_RCVD, NOTHING),
		[CM_IN_DREP] = QUIET(TIMEWAIT, NOTHING, WAIT),
		[CM_IN_END] = QUIET(TIMEWAIT, DREP, WAIT),
		[CM_IN_DISCONNECT] = QUIET(TIMEWAIT, DREP, WAIT),
		[CM_IN_DESTROY] = QUIET(TIMEWAIT, DREP, WAIT),
	},
	[CM_TIMEWAIT] = {
		[CM_IN_SAME_REQ] = KNOWN(TIMEWAIT, NOT_AGAIN),
		[CM_IN_REP] = KNOWN(TIMEWAIT, NOTHING),
		[CM_IN_RTU] = KNOWN(TIMEWAIT, NOTHING),
		[CM_IN_DREQ] = KNOWN(TIMEWAIT, DREP),
		[CM_IN_DREP] = KNOWN(TIMEWAIT, NOTHING),
		[CM_IN_REJ] = KNOWN(TIMEWAIT, NOTHING),
		[CM_IN_END] = STEP(IDLE, NOTHING, STOP, TIMEWAIT_EXIT),
		[CM_IN_DISCONNECT] = KNOWN(TIMEWAIT, NOTHING),
		[CM_IN_DESTROY] = KNOWN(TIMEWAIT, NOTHING),
	},
	[CM_REJ_SENT] = {
		[CM_IN_SAME_REQ] = KNOWN(REJ_SENT, AGAIN),
		[CM_IN_REP] = KNOWN(REJ_SENT, AGAIN),
		[CM_IN_RTU] = KNOWN(REJ_SENT, AGAIN),
		[CM_IN_DREQ] = KNOWN(REJ_SENT, DREP),
		[CM_IN_REJ] = KNOWN(REJ_SENT, NOTHING),
		[CM_IN_REJ_REQ] = KNOWN(REJ_SENT, NOTHING),
		[CM_IN_END] = QUIET(IDLE, NOTHING, STOP),
		[CM_IN_DESTROY] = KNOWN(REJ_SENT, NOTHING),
	},
	[CM_SIDR_REQ_SENT] = {
		[CM_IN_SIDR_REP] = STEP(IDLE, NOTHING, STOP, SIDR_REP),
		[CM_IN_REPEAT] = QUIET(SIDR_REQ_SENT, AGAIN, NEXT),
		[CM_IN_END] = STEP(IDLE, NOTHING, STOP, UNREACHABLE),
		[CM_IN_DESTROY] = QUIET(IDLE, NOTHING, STOP),
	},
	[CM_SIDR_REQ_RCVD] = {
		[CM_IN_SAME_SIDR_REQ] = KNOWN(SIDR_REQ_RCVD, NOTHING),
		[CM_IN_SIDR_REPLY] = QUIET(SIDR_REPLIED, PREPARED, SIDR),
		[CM_IN_REJECT] = QUIET(SIDR_REPLIED, PREPARED, SIDR),
		[CM_IN_DESTROY] = QUIET(SIDR_REPLIED, SIDR_REJECT, SIDR),
	},
	[CM_SIDR_REPLIED] = {
		[CM_IN_SAME_SIDR_REQ] = KNOWN(SIDR_REPLIED, AGAIN),
		[CM_IN_END] = QUIET(IDLE, NOTHING, STOP),
		[CM_IN_DESTROY] = KNOWN(SIDR_REPLIED, NOTHING),
	},
};
/* clang-format on */

const struct cm_step *cm_step_of(enum cm_state state, enum cm_input input)
{
	const struct cm_step *step = &steps[state][input];

	return step->legal ? step : NULL;
}

const char *cm_input_name(enum cm_input input)
{
	static const char *const names[CM_INPUTS] = {
		[CM_IN_NEW_REQ] = "new REQ",
		[CM_IN_SAME_REQ] = "same REQ",
		[CM_IN_MRA_REQ] = "MRA of REQ",
		[CM_IN_MRA_REP] = "MRA of REP",
		[CM_IN_REJ_REQ] = "REJ of REQ",
		[CM_IN_REJ_STALE_FIRST] = "first REJ 10",
		[CM_IN_REJ] = "REJ",
		[CM_IN_REP] = "REP",
		[CM_IN_RTU] = "RTU",
		[CM_IN_DREQ] = "DREQ",
		[CM_IN_DREP] = "DREP",
		[CM_IN_STALE] = "stale",
		[CM_IN_NEW_SIDR_REQ] = "new SIDR_REQ",
		[CM_IN_SAME_SIDR_REQ] = "same SIDR_REQ",
		[CM_IN_SIDR_REP] = "SIDR_REP",
		[CM_IN_REPEAT] = "repeat",
		[CM_IN_END] = "end",
		[CM_IN_CONNECT] = "connect",
		[CM_IN_ACCEPT] = "accept",
		[CM_IN_READY] = "ready",
		[CM_IN_REJECT] = "reject",
		[CM_IN_DISCONNECT] = "disconnect",
		[CM_IN_ESTABLISHED] = "established",
		[CM_IN_DESTROY] = "destroy",
		[CM_IN_SIDR_REQUEST] = "SIDR request",
		[CM_IN_SIDR_REPLY] = "SIDR reply",
	};

	return (size_t)input < CM_INPUTS ? names[input] : "?";
}
