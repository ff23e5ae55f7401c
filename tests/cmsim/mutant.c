/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults of one line each: changed rows of the state table, and functions that
 * misbehave.  The linker inserts them (--wrap).
 */
#include <stddef.h>

#include "cm/cm_priv.h"
#include "cmsim/world.h"

uint32_t mutant_now;

/* A row of the state table and its replacement; if that is not legal, the row is removed. */
struct changed_row {
	const char *name;
	enum cm_state state;
	enum cm_input input;
	struct cm_step step;
};

#define ROW(state, input) CM_##state, CM_IN_##input
#define GONE                   \
	{                      \
		.legal = false \
	}
#define INTO(next, send, timer, event)                                          \
	{                                                                       \
		true, false, CM_##next, CM_SEND_##send, CM_TIMER_##timer, event \
	}

static const struct changed_row rows[] = {
	{ "req is not repeated", ROW(REQ_SENT, REPEAT),
	  INTO(REQ_SENT, NOTHING, NEXT, CM_NO_EVENT) },
	{ "rep is not repeated", ROW(REP_SENT, REPEAT),
	  INTO(REP_SENT, NOTHING, NEXT, CM_NO_EVENT) },
	{ "rtu is not repeated", ROW(ESTABLISHED, REP),
	  INTO(ESTABLISHED, NOTHING, KEEP, CM_NO_EVENT) },
	{ "dreq is not repeated", ROW(DREQ_SENT, REPEAT),
	  INTO(DREQ_SENT, NOTHING, NEXT, CM_NO_EVENT) },
	{ "destroy says nothing", ROW(ESTABLISHED, DESTROY),
	  INTO(IDLE, NOTHING, STOP, CM_NO_EVENT) },
	{ "rtu establishes twice", ROW(ESTABLISHED, RTU),
	  INTO(ESTABLISHED, NOTHING, KEEP, CM_EVENT_ESTABLISHED) },
	{ "rep is told twice", ROW(REP_RCVD, REP), INTO(REP_RCVD, NOTHING, KEEP, CM_EVENT_REP) },
	{ "crossing dreq is dropped", ROW(DREQ_SENT, DREQ), GONE },
	{ "no grace", ROW(DREQ_RCVD, EXPIRED), INTO(DREQ_RCVD, NOTHING, STOP, CM_NO_EVENT) },
	{ "timewait never ends", ROW(TIMEWAIT, EXPIRED),
	  INTO(TIMEWAIT, NOTHING, STOP, CM_NO_EVENT) },
	{ "rep before ready establishes", ROW(REQ_SENT, REP),
	  INTO(ESTABLISHED, NOTHING, STOP, CM_EVENT_REP) },
	{ "given up without a word", ROW(REQ_SENT, EXPIRED),
	  INTO(REJ_SENT, REJ_TIMEOUT, TIMEWAIT, CM_NO_EVENT) },
	{ "refused without a word", ROW(REP_SENT, REJ),
	  INTO(TIMEWAIT, NOTHING, TIMEWAIT, CM_NO_EVENT) },
	{ "accept does not repeat", ROW(REQ_RCVD, ACCEPT),
	  INTO(REP_SENT, PREPARED, STOP, CM_NO_EVENT) },
	{ "stale connection is kept", ROW(ESTABLISHED, STALE), GONE },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *const others[] = {
	"repeated requests are new ones",
	"any id is the right one",
	"released is forgotten",
	"no turn ever comes",
};
enum other {
	NO_DUPLICATES = ROWS + 1,
	ANY_ID,
	NO_RELEASE,
	NO_TURN,
	MUTANTS,
};

const char *mutant_name(uint32_t mutant)
{
	if (mutant == 0 || mutant >= MUTANTS)
		return NULL;
	return mutant <= ROWS ? rows[mutant - 1].name : others[mutant - 1 - ROWS];
}

const struct cm_step *__real_cm_step_of(enum cm_state state, enum cm_input input);
const struct cm_step *__wrap_cm_step_of(enum cm_state state, enum cm_input input);
struct cm_conn *__real_cm_find_remote_id(const struct cm *cm, uint64_t guid, uint32_t id);
struct cm_conn *__wrap_cm_find_remote_id(const struct cm *cm, uint64_t guid, uint32_t id);
struct cm_conn *__real_cm_find_pair(const struct cm *cm, uint32_t local_id, uint32_t remote_id);
struct cm_conn *__wrap_cm_find_pair(const struct cm *cm, uint32_t local_id, uint32_t remote_id);
void __real_cm_release(struct cm *cm, struct cm_conn *conn);
void __wrap_cm_release(struct cm *cm, struct cm_conn *conn);

struct req_limit_node *__real_cm_req_limit_next(struct req_limit *req_limit, uint32_t place);
struct req_limit_node *__wrap_cm_req_limit_next(struct req_limit *req_limit, uint32_t place);

struct req_limit_node *__wrap_cm_req_limit_next(struct req_limit *req_limit, uint32_t place)
{
	return mutant_now == NO_TURN ? NULL : __real_cm_req_limit_next(req_limit, place);
}

const struct cm_step *__wrap_cm_step_of(enum cm_state state, enum cm_input input)
{
	const struct changed_row *row = NULL;

	if (mutant_now >= 1 && mutant_now <= ROWS)
		row = &rows[mutant_now - 1];
	if (!row || row->state != state || row->input != input)
		return __real_cm_step_of(state, input);
	return row->step.legal ? &row->step : NULL;
}

struct cm_conn *__wrap_cm_find_remote_id(const struct cm *cm, uint64_t guid, uint32_t id)
{
	return mutant_now == NO_DUPLICATES ? NULL : __real_cm_find_remote_id(cm, guid, id);
}

struct cm_conn *__wrap_cm_find_pair(const struct cm *cm, uint32_t local_id, uint32_t remote_id)
{
	return mutant_now == ANY_ID ? cm_find_local_id(cm, local_id)
				    : __real_cm_find_pair(cm, local_id, remote_id);
}

void __wrap_cm_release(struct cm *cm, struct cm_conn *conn)
{
	if (mutant_now != NO_RELEASE)
		__real_cm_release(cm, conn);
}
