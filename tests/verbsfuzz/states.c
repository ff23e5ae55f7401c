/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The states of queue pairs: the transitions and attributes that ibv_modify_qp(3) allows. */
#include <stdio.h>

#include "world.h"

#define STATE(state) (1u << IBV_QPS_##state)

enum {
	ALL_STATES = 7,
	BASE = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
	CONNECT = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	RESPONDER = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	REQUESTER = IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	MIGRATION = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
	REMOTE_ACCESS = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

/* The attributes of a transition. */
struct move {
	int needed, allowed;
};

static bool is_reliable(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

static void move_to_init(enum ibv_qp_type type, enum ibv_qp_state from, struct move *move)
{
	int attributes = BASE | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	if (from == IBV_QPS_RESET)
		move->needed = attributes;
	else
		move->allowed = attributes;
}

static void move_to_rtr(enum ibv_qp_type type, struct move *move)
{
	move->allowed = IBV_QP_PKEY_INDEX;
	if (type == IBV_QPT_UD) {
		move->allowed |= IBV_QP_QKEY;
		return;
	}
	move->needed = CONNECT | (is_reliable(type) ? RESPONDER : 0);
	move->allowed |= IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS;
}

static void move_to_rts(enum ibv_qp_type type, enum ibv_qp_state from, struct move *move)
{
	move->allowed = IBV_QP_CUR_STATE;
	if (from == IBV_QPS_RTR) {
		move->needed = IBV_QP_SQ_PSN;
		if (is_reliable(type))
			move->needed |= IBV_QP_TIMEOUT | REQUESTER;
	}
	if (type == IBV_QPT_UD) {
		move->allowed |= IBV_QP_QKEY;
		return;
	}
	move->allowed |= IBV_QP_ACCESS_FLAGS;
	if (from == IBV_QPS_SQE)
		return;
	move->allowed |= MIGRATION;
	if (is_reliable(type))
		move->allowed |= IBV_QP_MIN_RNR_TIMER;
}

static void move_in_sqd(enum ibv_qp_type type, struct move *move)
{
	move->allowed = IBV_QP_PKEY_INDEX;
	if (type == IBV_QPT_UD) {
		move->allowed |= IBV_QP_QKEY;
		return;
	}
	move->allowed |= IBV_QP_AV | IBV_QP_ACCESS_FLAGS | MIGRATION;
	if (is_reliable(type))
		move->allowed |= IBV_QP_TIMEOUT | REQUESTER | RESPONDER;
}

static bool find_move(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		      struct move *move)
{
	*move = (struct move){ 0 };
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) {
		move->allowed = IBV_QP_CUR_STATE;
		return true;
	}
	if (to == IBV_QPS_INIT && from <= IBV_QPS_INIT) {
		move_to_init(type, from, move);
	} else if (to == IBV_QPS_RTR && from == IBV_QPS_INIT) {
		move_to_rtr(type, move);
	} else if (to == IBV_QPS_RTS &&
		   (from == IBV_QPS_RTR || from == IBV_QPS_RTS || from == IBV_QPS_SQD ||
		    (from == IBV_QPS_SQE && !is_reliable(type)))) {
		move_to_rts(type, from, move);
	} else if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
		move->allowed = IBV_QP_EN_SQD_ASYNC_NOTIFY;
	} else if (to == IBV_QPS_SQD && from == IBV_QPS_SQD) {
		move_in_sqd(type, move);
	} else {
		return false;
	}
	return true;
}

/* Attributes of the half that an XRC queue pair lacks are ignored. */
static int ignored(enum ibv_qp_type type)
{
	if (type == IBV_QPT_XRC_SEND)
		return RESPONDER;
	return type == IBV_QPT_XRC_RECV ? REQUESTER : 0;
}

/* Returns true if the transition is legal for a queue pair in state from. */
static bool is_legal(const struct pair *pair, enum ibv_qp_state from,
		     const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	int given = mask & ~IBV_QP_STATE;
	struct move move;

	if ((unsigned int)to >= ALL_STATES || !find_move(pair->type, from, to, &move))
		return false;
	given &= ~ignored(pair->type);
	move.needed &= ~ignored(pair->type);
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return false;
	return (given & move.needed) == move.needed && !(given & ~(move.needed | move.allowed));
}

unsigned int states_now(const struct pair *pair)
{
	unsigned int states = pair->core->possible;

	if (states & (STATE(RTR) | STATE(RTS) | STATE(SQD) | STATE(SQE)))
		states |= STATE(ERR);
	if (!is_reliable(pair->type) && (states & (STATE(RTS) | STATE(SQD))))
		states |= STATE(SQE);
	if ((states & STATE(INIT)) &&
	    (may_be_dead(pair->send_queue) || may_be_dead(pair->recv_queue)))
		states |= STATE(ERR);
	return states;
}

/* Stores the attributes that were set in the model. */
static void merge(struct core *core, const struct ibv_qp_attr *attr, int mask)
{
#define TAKE(bit, field)                                \
	do {                                            \
		if (mask & (bit))                       \
			core->attr.field = attr->field; \
	} while (0)
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
	core->set |= mask;
}

static void moved(struct world *world, struct pair *pair, const struct ibv_qp_attr *attr, int mask,
		  unsigned int before)
{
	struct core *core = pair->core;
	enum ibv_qp_state to = attr->qp_state;

	merge(core, attr, mask);
	if (!(mask & IBV_QP_STATE)) {
		/* Only the states in which the call was legal remain possible. */
		core->possible = before;
		return;
	}
	core->possible = 1u << to;
	if (to == IBV_QPS_RESET) {
		forget_works(world, pair);
		core->set = 0;
	}
	if (to == IBV_QPS_RESET || (to == IBV_QPS_RTS && (before & STATE(SQE))))
		pair->epoch++;
}

int modify(struct world *world, struct pair *pair, struct ibv_qp_attr *attr, int mask, bool bad,
	   bool odd)
{
	unsigned int states = states_now(pair), legal = 0;
	int error;

	for (unsigned int from = 0; from < ALL_STATES; from++)
		if ((states >> from & 1) && is_legal(pair, (enum ibv_qp_state)from, attr, mask))
			legal |= 1u << from;
	error = ibv_modify_qp(pair->verbs, attr, mask);
	note(world, "modify_qp %u (type %d), mask 0x%x, to %d: %d; states 0x%x, legal in 0x%x%s%s",
	     pair->number, pair->type, (unsigned int)mask,
	     mask & IBV_QP_STATE ? (int)attr->qp_state : -1, error, states, legal,
	     bad ? ", bad" : "", odd ? ", odd" : "");
	if (pair->context->closed) {
		MUST(world, error == EIO, "modify_qp in a closed context: %d", error);
		return error;
	}
	if (error) {
		MUST(world, error == EINVAL || odd, "modify_qp: %s", strerror(error));
		MUST(world, bad || odd || legal != states,
		     "modify_qp is refused in states 0x%x, mask 0x%x, to %d", states,
		     (unsigned int)mask, attr->qp_state);
		return error;
	}
	MUST(world, legal && !bad, "modify_qp succeeds in states 0x%x, mask 0x%x, to %d", states,
	     (unsigned int)mask, attr->qp_state);
	moved(world, pair, attr, mask, legal);
	return 0;
}

/* Attributes for any transition; *bad: a value in the mask must be refused; *odd: it may be. */
static void draw_attributes(struct world *world, struct ibv_qp_attr *attr, int mask, bool *bad,
			    bool *odd)
{
	struct pair *peer = PICK(world, pairs);
	bool spoil = chance(world, 8);

	*bad = !draw_address(world, &attr->ah_attr, odd) && (mask & IBV_QP_AV);
	*odd = *odd && (mask & IBV_QP_AV);
	attr->pkey_index = spoil && chance(world, 20) ? 1 : 0;
	attr->port_num = spoil && chance(world, 20) ? 2 : 1;
	attr->qp_access_flags = chance(world, 80) ? REMOTE_ACCESS : below(world, 16);
	attr->qkey = chance(world, 80) ? ANY_QKEY : (uint32_t)random_next(&world->random);
	attr->path_mtu = (enum ibv_mtu)(spoil ? below(world, 8) : 1 + below(world, 5));
	attr->dest_qp_num = peer && chance(world, 90) ? peer->number : below(world, 1 << 24);
	attr->rq_psn = (uint32_t)random_next(&world->random) & 0xffffff;
	attr->sq_psn = (uint32_t)random_next(&world->random) & 0xffffff;
	attr->timeout = (uint8_t)(spoil ? below(world, 40) : 6 + below(world, 9));
	attr->retry_cnt = (uint8_t)below(world, spoil ? 12 : 8);
	attr->rnr_retry = (uint8_t)below(world, spoil ? 12 : 8);
	attr->min_rnr_timer = (uint8_t)(spoil ? below(world, 40) : 1 + below(world, 6));
	attr->max_rd_atomic = (uint8_t)below(world, spoil ? 200 : 17);
	attr->max_dest_rd_atomic = (uint8_t)below(world, spoil ? 200 : 17);
	attr->path_mig_state = (enum ibv_mig_state)(spoil ? below(world, 4) : IBV_MIG_MIGRATED);
	attr->en_sqd_async_notify = (uint8_t)below(world, 2);
	*bad |= (mask & IBV_QP_PKEY_INDEX) && attr->pkey_index;
	*bad |= (mask & IBV_QP_PORT) && attr->port_num != 1;
	*bad |= (mask & IBV_QP_PATH_MTU) && (attr->path_mtu < 1 || attr->path_mtu > 5);
	*bad |= (mask & IBV_QP_TIMEOUT) && attr->timeout > 31;
	*bad |= (mask & IBV_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31;
	*bad |= (mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > 128;
	*bad |= (mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > 128;
	*bad |= (mask & IBV_QP_ALT_PATH) != 0;
	*bad |= (mask & IBV_QP_PATH_MIG_STATE) && attr->path_mig_state != IBV_MIG_MIGRATED;
	/* Seven is the maximum of the fields' three bits; larger values may be taken for seven. */
	*odd |= (mask & IBV_QP_RETRY_CNT) && attr->retry_cnt > 7;
	*odd |= (mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7;
}

/* Returns a queue pair that can be modified and queried, or NULL. */
static struct pair *pick_pair(struct world *world)
{
	struct pair *pair = PICK(world, pairs);

	return pair && pair->core->ended && pair->type == IBV_QPT_XRC_RECV ? NULL : pair;
}

void do_modify(struct world *world)
{
	struct pair *pair = pick_pair(world);
	struct ibv_qp_attr attr = { 0 };
	unsigned int states;
	struct move move;
	bool bad, odd;
	int mask;

	if (!pair)
		return;
	states = states_now(pair);
	attr.qp_state = (enum ibv_qp_state)below(world, ALL_STATES + chance(world, 3) * 90);
	/* Prefer a state to which a transition may be legal. */
	for (int tries = 0; tries < 6 && chance(world, 85); tries++) {
		if (find_move(pair->type, (enum ibv_qp_state)__builtin_ctz(states), attr.qp_state,
			      &move))
			break;
		attr.qp_state = (enum ibv_qp_state)below(world, ALL_STATES);
	}
	find_move(pair->type, (enum ibv_qp_state)__builtin_ctz(states), attr.qp_state, &move);
	mask = move.needed | (move.allowed & (int)random_next(&world->random));
	if (chance(world, 50))
		mask &= ~MIGRATION;
	if (chance(world, 90))
		mask |= IBV_QP_STATE;
	if (chance(world, 10))
		mask ^= 1 << below(world, 25);
	attr.cur_qp_state = (enum ibv_qp_state)__builtin_ctz(states);
	if (chance(world, 10))
		attr.cur_qp_state = (enum ibv_qp_state)below(world, ALL_STATES);
	draw_attributes(world, &attr, mask & ~ignored(pair->type), &bad, &odd);
	modify(world, pair, &attr, mask, bad, odd);
}

/* One transition of a connection, with good attributes; returns true if it succeeds. */
static bool step(struct world *world, struct pair *pair, enum ibv_qp_state to,
		 const struct pair *peer)
{
	struct ibv_qp_attr attr = { 0 };
	bool odd = false, bad = false;
	struct move move;

	if (!find_move(pair->type, (enum ibv_qp_state)(to - (to != IBV_QPS_RESET)), to, &move))
		return false;
	do
		draw_attributes(world, &attr, move.needed, &bad, &odd);
	while (bad || odd);
	attr.qp_state = to;
	attr.qp_access_flags = REMOTE_ACCESS;
	attr.qkey = ANY_QKEY;
	attr.dest_qp_num = peer->number;
	attr.ah_attr.grh.sgid_index = 0;
	attr.ah_attr.grh.dgid = world->gid[0];
	/* Both ends choose their PSNs from the queue pairs' numbers, so they agree. */
	attr.sq_psn = pair->number * 7 & 0xffffff;
	attr.rq_psn = peer->number * 7 & 0xffffff;
	return !modify(world, pair, &attr, move.needed | IBV_QP_STATE, false, false);
}

static bool fits(const struct pair *pair, const struct pair *peer)
{
	if (pair->type == IBV_QPT_XRC_SEND)
		return peer->type == IBV_QPT_XRC_RECV;
	return pair->type == peer->type && pair->type != IBV_QPT_XRC_RECV;
}

static void connect(struct world *world, struct pair *pair, struct pair *peer)
{
	struct pair *ends[] = { pair, peer };
	/* Some connections stop early. */
	enum ibv_qp_state last =
		chance(world, 85) ? IBV_QPS_RTS : (enum ibv_qp_state)(1 + below(world, 3));

	for (int i = 0; i < (pair == peer ? 1 : 2); i++) {
		if (ends[i]->core->possible != STATE(RESET) &&
		    !step(world, ends[i], IBV_QPS_RESET, ends[!i]))
			return;
		for (enum ibv_qp_state to = IBV_QPS_INIT; to <= last; to++)
			if (!step(world, ends[i], to, ends[!i]))
				return;
	}
}

void do_connect(struct world *world)
{
	struct pair *pair = pick_pair(world), *peer = NULL;
	unsigned int ready = STATE(RTS) | STATE(SQD);

	if (!pair || pair->context->closed || !world->gids)
		return;
	for (int tries = 0; tries < 30; tries++) {
		peer = pick_pair(world);
		if (peer && !peer->context->closed && fits(pair, peer))
			break;
		peer = NULL;
	}
	/* Leave most of those that are connected as they are. */
	if (peer && (!((pair->core->possible | peer->core->possible) & ready) || chance(world, 20)))
		connect(world, pair, peer);
}

static void compare(struct world *world, const struct pair *pair, const struct ibv_qp_attr *attr)
{
	const struct core *core = pair->core;

#define SAME(bit, field)                                                                  \
	MUST(world, !(core->set & (bit)) || core->attr.field == attr->field,              \
	     "query_qp gives %u for " #field " instead of %u", (unsigned int)attr->field, \
	     (unsigned int)core->attr.field)
	SAME(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	SAME(IBV_QP_QKEY, qkey);
	SAME(IBV_QP_PATH_MTU, path_mtu);
	SAME(IBV_QP_TIMEOUT, timeout);
	SAME(IBV_QP_DEST_QPN, dest_qp_num);
	if (pair->type != IBV_QPT_XRC_RECV)
		SAME(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	if (pair->type != IBV_QPT_XRC_SEND) {
		SAME(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
		SAME(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	}
#undef SAME
}

void do_query(struct world *world)
{
	struct pair *pair = pick_pair(world);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int states;
	int error;

	if (!pair)
		return;
	error = ibv_query_qp(pair->verbs, &attr, IBV_QP_STATE | IBV_QP_CAP, &init);
	states = states_now(pair);
	note(world, "query_qp %u: %d, state %d of 0x%x", pair->number, error, attr.qp_state,
	     states);
	if (pair->context->closed) {
		MUST(world, error == EIO, "query_qp in a closed context: %d", error);
		return;
	}
	MUST(world, !error, "query_qp: %s", strerror(error));
	MUST(world, (unsigned int)attr.qp_state < ALL_STATES && (states >> attr.qp_state & 1),
	     "query_qp gives state %d, which is none of 0x%x", attr.qp_state, states);
	pair->core->possible = 1u << attr.qp_state;
	compare(world, pair, &attr);
	if (pair->type != IBV_QPT_XRC_RECV)
		MUST(world, !memcmp(&init.cap, &pair->cap, sizeof(init.cap)),
		     "query_qp gives other limits than create_qp");
}
