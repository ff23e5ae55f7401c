/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The state table, compared with a second derivation: the table of ibv_modify_qp(3), typed from
 * there with the names of libibverbs, and the transitions that the specification allows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#include "engine/qp_state.h"

struct service {
	enum eng_qp_type type;
	const char *name;
	int init, rtr, rts; /* required, as in the manual page */
};

static const struct service services[] = {
	{ ENG_UD, "UD", IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, IBV_QP_STATE,
	  IBV_QP_STATE | IBV_QP_SQ_PSN },
	{ ENG_UC, "UC", IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	  IBV_QP_STATE | IBV_QP_SQ_PSN },
	{ ENG_RC, "RC", IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
		  IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT },
	/* XRC as in the kernel's table: each side requires only the attributes that it uses. */
	{ ENG_XRC_SEND, "XRC_SEND",
	  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
		  IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT },
	{ ENG_XRC_RECV, "XRC_RECV",
	  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT },
};
#define SERVICES (sizeof(services) / sizeof(services[0]))

static enum eng_modify check(const struct service *service, enum ibv_qp_state from,
			     enum ibv_qp_state to, int mask)
{
	return eng_modify_check(service->type, (enum eng_qp_state)from, (enum eng_qp_state)to,
				(uint32_t)mask);
}

/* The required attributes alone are enough, and each single one is needed. */
static void check_required(const struct service *service, enum ibv_qp_state from,
			   enum ibv_qp_state to, int required)
{
	assert_int_equal(check(service, from, to, required), ENG_MODIFY_OK);
	for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		if (!(required & bit) || bit == IBV_QP_STATE)
			continue;
		assert_int_equal(check(service, from, to, required & ~bit),
				 ENG_MODIFY_MISSING_ATTR);
	}
}

static void test_required_attributes(void **state)
{
	(void)state;
	/* rule S2 test, rule S10 test */
	for (unsigned int i = 0; i < SERVICES; i++) {
		const struct service *service = &services[i];

		check_required(service, IBV_QPS_RESET, IBV_QPS_INIT, service->init);
		check_required(service, IBV_QPS_INIT, IBV_QPS_RTR, service->rtr);
		check_required(service, IBV_QPS_RTR, IBV_QPS_RTS, service->rts);
	}
}

/* The numbers of states and attributes are those of libibverbs. */
static void test_numbers_are_those_of_verbs(void **state)
{
	(void)state;
	assert_int_equal((int)ENG_RESET, (int)IBV_QPS_RESET);
	assert_int_equal((int)ENG_INIT, (int)IBV_QPS_INIT);
	assert_int_equal((int)ENG_RTR, (int)IBV_QPS_RTR);
	assert_int_equal((int)ENG_RTS, (int)IBV_QPS_RTS);
	assert_int_equal((int)ENG_SQD, (int)IBV_QPS_SQD);
	assert_int_equal((int)ENG_SQE, (int)IBV_QPS_SQE);
	assert_int_equal((int)ENG_ERR, (int)IBV_QPS_ERR);
	assert_int_equal((int)ENG_ATTR_STATE, (int)IBV_QP_STATE);
	assert_int_equal((int)ENG_ATTR_CUR_STATE, (int)IBV_QP_CUR_STATE);
	assert_int_equal((int)ENG_ATTR_EN_SQD_ASYNC_NOTIFY, (int)IBV_QP_EN_SQD_ASYNC_NOTIFY);
	assert_int_equal((int)ENG_ATTR_ACCESS_FLAGS, (int)IBV_QP_ACCESS_FLAGS);
	assert_int_equal((int)ENG_ATTR_PKEY_INDEX, (int)IBV_QP_PKEY_INDEX);
	assert_int_equal((int)ENG_ATTR_PORT, (int)IBV_QP_PORT);
	assert_int_equal((int)ENG_ATTR_QKEY, (int)IBV_QP_QKEY);
	assert_int_equal((int)ENG_ATTR_AV, (int)IBV_QP_AV);
	assert_int_equal((int)ENG_ATTR_PATH_MTU, (int)IBV_QP_PATH_MTU);
	assert_int_equal((int)ENG_ATTR_TIMEOUT, (int)IBV_QP_TIMEOUT);
	assert_int_equal((int)ENG_ATTR_RETRY_CNT, (int)IBV_QP_RETRY_CNT);
	assert_int_equal((int)ENG_ATTR_RNR_RETRY, (int)IBV_QP_RNR_RETRY);
	assert_int_equal((int)ENG_ATTR_RQ_PSN, (int)IBV_QP_RQ_PSN);
	assert_int_equal((int)ENG_ATTR_MAX_QP_RD_ATOMIC, (int)IBV_QP_MAX_QP_RD_ATOMIC);
	assert_int_equal((int)ENG_ATTR_ALT_PATH, (int)IBV_QP_ALT_PATH);
	assert_int_equal((int)ENG_ATTR_MIN_RNR_TIMER, (int)IBV_QP_MIN_RNR_TIMER);
	assert_int_equal((int)ENG_ATTR_SQ_PSN, (int)IBV_QP_SQ_PSN);
	assert_int_equal((int)ENG_ATTR_MAX_DEST_RD_ATOMIC, (int)IBV_QP_MAX_DEST_RD_ATOMIC);
	assert_int_equal((int)ENG_ATTR_PATH_MIG_STATE, (int)IBV_QP_PATH_MIG_STATE);
	assert_int_equal((int)ENG_ATTR_CAP, (int)IBV_QP_CAP);
	assert_int_equal((int)ENG_ATTR_DEST_QPN, (int)IBV_QP_DEST_QPN);
}

/* States that each state may change to: r RESET, i INIT, R RTR, S RTS, d SQD, e SQE, E ERR. */
static const char *const leads_to[7] = {
	"riE", "riRE", "rSE", "rSdE", "rSdE", "rSE", "rE",
};

static bool may_move(const struct service *service, enum ibv_qp_state from, enum ibv_qp_state to)
{
	static const char letters[] = "riRSdeE";
	const char *p;

	if (from == IBV_QPS_SQE && to == IBV_QPS_RTS && service->type != ENG_UC &&
	    service->type != ENG_UD)
		return false; /* reliable services have no SQE */
	for (p = leads_to[from]; *p; p++)
		if (*p == letters[to])
			return true;
	return false;
}

/* All 49 transitions: those of the specification are legal, no other is. */
static void test_legal_moves(void **state)
{
	(void)state;
	/* rule S13 test: ERR and RESET from anywhere. */
	for (unsigned int i = 0; i < SERVICES; i++) {
		for (int from = 0; from < 7; from++) {
			for (int to = 0; to < 7; to++) {
				enum eng_modify answer =
					check(&services[i], (enum ibv_qp_state)from,
					      (enum ibv_qp_state)to, IBV_QP_STATE);
				bool legal = answer != ENG_MODIFY_ILLEGAL_MOVE;

				if (legal != may_move(&services[i], (enum ibv_qp_state)from,
						      (enum ibv_qp_state)to))
					fail_msg("%s: %d to %d", services[i].name, from, to);
			}
		}
	}
}

/* Transitions without required attributes need nothing but the state. */
static void test_moves_without_requirements(void **state)
{
	static const int moves[][2] = {
		{ IBV_QPS_RTS, IBV_QPS_RTS },	{ IBV_QPS_RTS, IBV_QPS_SQD },
		{ IBV_QPS_SQD, IBV_QPS_RTS },	{ IBV_QPS_SQD, IBV_QPS_SQD },
		{ IBV_QPS_INIT, IBV_QPS_INIT }, { IBV_QPS_RTS, IBV_QPS_ERR },
		{ IBV_QPS_ERR, IBV_QPS_RESET },
	};

	(void)state;
	for (unsigned int i = 0; i < SERVICES; i++)
		for (unsigned int m = 0; m < sizeof(moves) / sizeof(moves[0]); m++)
			assert_int_equal(check(&services[i], (enum ibv_qp_state)moves[m][0],
					       (enum ibv_qp_state)moves[m][1], IBV_QP_STATE),
					 ENG_MODIFY_OK);
}

/*
 * Attributes that a service does not have are refused; those that a state may change are accepted.
 */
static void test_optional_and_extra_attributes(void **state)
{
	static const struct {
		enum eng_qp_type type;
		int from, to, extra;
		bool allowed;
	} rows[] = {
		{ ENG_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_CUR_STATE, true },
		{ ENG_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_ACCESS_FLAGS, true },
		{ ENG_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_MIN_RNR_TIMER, true },
		{ ENG_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_ALT_PATH, true },
		{ ENG_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_QKEY, false },
		{ ENG_RC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RQ_PSN, false },
		{ ENG_RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PKEY_INDEX, true },
		{ ENG_RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_ACCESS_FLAGS, true },
		{ ENG_RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_SQ_PSN, false },
		{ ENG_RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_TIMEOUT, false },
		{ ENG_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_QKEY, false },
		{ ENG_RC, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_AV, false },
		{ ENG_RC, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY, true },
		{ ENG_RC, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_TIMEOUT, false },
		{ ENG_RC, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_TIMEOUT, true },
		{ ENG_RC, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_RETRY_CNT, true },
		{ ENG_RC, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_AV, true },
		{ ENG_RC, IBV_QPS_SQD, IBV_QPS_SQD, IBV_QP_PATH_MTU, false },
		{ ENG_UC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_MIN_RNR_TIMER, false },
		{ ENG_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_TIMEOUT, false },
		{ ENG_UC, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_RETRY_CNT, false },
		{ ENG_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_QKEY, true },
		{ ENG_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_PATH_MTU, false },
		{ ENG_UD, IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_QKEY, true },
		{ ENG_UD, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_ACCESS_FLAGS, false },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct service *service = services;
		int required = IBV_QP_STATE;

		while (service->type != rows[i].type)
			service++;
		if (rows[i].to == IBV_QPS_INIT)
			required = service->init;
		else if (rows[i].to == IBV_QPS_RTR)
			required = service->rtr;
		else if (rows[i].from == IBV_QPS_RTR)
			required = service->rts;
		if (check(service, (enum ibv_qp_state)rows[i].from, (enum ibv_qp_state)rows[i].to,
			  required | rows[i].extra) !=
		    (rows[i].allowed ? ENG_MODIFY_OK : ENG_MODIFY_EXTRA_ATTR))
			fail_msg("row %u", i);
	}
}

/* Resizing is always refused. */
static void test_no_resizing(void **state)
{
	(void)state;
	/* rule U1 test: the capacities granted at creation stay. */
	for (unsigned int i = 0; i < SERVICES; i++) {
		assert_int_equal(check(&services[i], IBV_QPS_RESET, IBV_QPS_INIT,
				       services[i].init | IBV_QP_CAP),
				 ENG_MODIFY_EXTRA_ATTR);
		assert_int_equal(
			check(&services[i], IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_CAP),
			ENG_MODIFY_EXTRA_ATTR);
	}
}

/* States out of range are refused. */
static void test_states_out_of_range(void **state)
{
	(void)state;
	assert_int_equal(eng_modify_check(ENG_RC, ENG_STATES, ENG_RTS, 1), ENG_MODIFY_ILLEGAL_MOVE);
	assert_int_equal(eng_modify_check(ENG_RC, ENG_RTS, ENG_STATES, 1), ENG_MODIFY_ILLEGAL_MOVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_required_attributes),
		cmocka_unit_test(test_numbers_are_those_of_verbs),
		cmocka_unit_test(test_legal_moves),
		cmocka_unit_test(test_moves_without_requirements),
		cmocka_unit_test(test_optional_and_extra_attributes),
		cmocka_unit_test(test_no_resizing),
		cmocka_unit_test(test_states_out_of_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
