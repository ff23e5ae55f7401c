/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "qp_state.h"

enum service_kind {
	KIND_CONNECTED, /* RC, XRC */
	KIND_UC,
	KIND_UD,
	KINDS,
};

struct move {
	bool legal;
	uint32_t required[KINDS];
	uint32_t optional[KINDS];
};

#define INIT_COMMON (ENG_ATTR_PKEY_INDEX | ENG_ATTR_PORT)
#define RTR_COMMON (ENG_ATTR_AV | ENG_ATTR_PATH_MTU | ENG_ATTR_DEST_QPN | ENG_ATTR_RQ_PSN)
#define RTR_RC (ENG_ATTR_MAX_DEST_RD_ATOMIC | ENG_ATTR_MIN_RNR_TIMER)
#define RTS_RC \
	(ENG_ATTR_TIMEOUT | ENG_ATTR_RETRY_CNT | ENG_ATTR_RNR_RETRY | ENG_ATTR_MAX_QP_RD_ATOMIC)
#define PATHS (ENG_ATTR_ALT_PATH | ENG_ATTR_PATH_MIG_STATE)
#define SQD_MAY_CHANGE (ENG_ATTR_AV | ENG_ATTR_ACCESS_FLAGS | ENG_ATTR_PKEY_INDEX | PATHS)

/* Transitions to RESET and ERR are legal from any state and need no attribute; not listed. */
/* clang-format off */
static const struct move moves[ENG_STATES][ENG_STATES] = {
	[ENG_RESET] = {
		[ENG_INIT] = { true,
			{ INIT_COMMON | ENG_ATTR_ACCESS_FLAGS, INIT_COMMON | ENG_ATTR_ACCESS_FLAGS,
			  INIT_COMMON | ENG_ATTR_QKEY },
			{ 0, 0, 0 } },
	},
	[ENG_INIT] = {
		[ENG_INIT] = { true,
			{ 0, 0, 0 },
			{ INIT_COMMON | ENG_ATTR_ACCESS_FLAGS, INIT_COMMON | ENG_ATTR_ACCESS_FLAGS,
			  INIT_COMMON | ENG_ATTR_QKEY } },
		[ENG_RTR] = { true,
			{ RTR_COMMON | RTR_RC, RTR_COMMON, 0 },
			{ ENG_ATTR_ALT_PATH | ENG_ATTR_ACCESS_FLAGS | ENG_ATTR_PKEY_INDEX,
			  ENG_ATTR_ALT_PATH | ENG_ATTR_ACCESS_FLAGS | ENG_ATTR_PKEY_INDEX,
			  ENG_ATTR_PKEY_INDEX | ENG_ATTR_QKEY } },
	},
	[ENG_RTR] = {
		[ENG_RTS] = { true,
			{ ENG_ATTR_SQ_PSN | RTS_RC, ENG_ATTR_SQ_PSN, ENG_ATTR_SQ_PSN },
			{ ENG_ATTR_CUR_STATE | PATHS | ENG_ATTR_ACCESS_FLAGS |
				ENG_ATTR_MIN_RNR_TIMER,
			  ENG_ATTR_CUR_STATE | PATHS | ENG_ATTR_ACCESS_FLAGS,
			  ENG_ATTR_CUR_STATE | ENG_ATTR_QKEY } },
	},
	[ENG_RTS] = {
		[ENG_RTS] = { true,
			{ 0, 0, 0 },
			{ ENG_ATTR_CUR_STATE | PATHS | ENG_ATTR_ACCESS_FLAGS |
				ENG_ATTR_MIN_RNR_TIMER,
			  ENG_ATTR_CUR_STATE | PATHS | ENG_ATTR_ACCESS_FLAGS,
			  ENG_ATTR_CUR_STATE | ENG_ATTR_QKEY } },
		[ENG_SQD] = { true,
			{ 0, 0, 0 },
			{ ENG_ATTR_EN_SQD_ASYNC_NOTIFY, ENG_ATTR_EN_SQD_ASYNC_NOTIFY,
			  ENG_ATTR_EN_SQD_ASYNC_NOTIFY } },
	},
	[ENG_SQD] = {
		[ENG_RTS] = { true,
			{ 0, 0, 0 },
			{ ENG_ATTR_CUR_STATE | PATHS | ENG_ATTR_ACCESS_FLAGS |
				ENG_ATTR_MIN_RNR_TIMER,
			  ENG_ATTR_CUR_STATE | PATHS | ENG_ATTR_ACCESS_FLAGS,
			  ENG_ATTR_CUR_STATE | ENG_ATTR_QKEY } },
		[ENG_SQD] = { true,
			{ 0, 0, 0 },
			{ SQD_MAY_CHANGE | RTS_RC | ENG_ATTR_MAX_DEST_RD_ATOMIC |
				ENG_ATTR_MIN_RNR_TIMER,
			  SQD_MAY_CHANGE, ENG_ATTR_PKEY_INDEX | ENG_ATTR_QKEY } },
	},
	[ENG_SQE] = {
		[ENG_RTS] = { true,
			{ 0, 0, 0 },
			{ 0, ENG_ATTR_CUR_STATE | ENG_ATTR_ACCESS_FLAGS,
			  ENG_ATTR_CUR_STATE | ENG_ATTR_QKEY } },
	},
};
/* clang-format on */

static enum service_kind kind_of(enum eng_qp_type type)
{
	if (type == ENG_UC)
		return KIND_UC;
	return type == ENG_UD ? KIND_UD : KIND_CONNECTED;
}

/* Returns the attributes that the QP does not use because it is one half of XRC. */
static uint32_t not_for_half(enum eng_qp_type type)
{
	if (type == ENG_XRC_SEND)
		return ENG_ATTR_MAX_DEST_RD_ATOMIC | ENG_ATTR_MIN_RNR_TIMER;
	if (type == ENG_XRC_RECV)
		return ENG_ATTR_RETRY_CNT | ENG_ATTR_RNR_RETRY | ENG_ATTR_MAX_QP_RD_ATOMIC;
	return 0;
}

enum eng_modify eng_modify_check(enum eng_qp_type type, enum eng_qp_state from,
				 enum eng_qp_state to, uint32_t mask)
{
	const struct move *move;
	uint32_t required, optional, given = mask & ~(uint32_t)ENG_ATTR_STATE;

	if (from >= ENG_STATES || to >= ENG_STATES)
		return ENG_MODIFY_ILLEGAL_MOVE;
	if (to == ENG_RESET || to == ENG_ERR)
		return given & ~(uint32_t)ENG_ATTR_CUR_STATE ? ENG_MODIFY_EXTRA_ATTR
							     : ENG_MODIFY_OK;
	move = &moves[from][to];
	if (!move->legal || (from == ENG_SQE && kind_of(type) == KIND_CONNECTED))
		return ENG_MODIFY_ILLEGAL_MOVE;
	required = move->required[kind_of(type)] & ~not_for_half(type);
	optional = move->optional[kind_of(type)] & ~not_for_half(type);
	if ((given & required) != required)
		return ENG_MODIFY_MISSING_ATTR;
	if (given & ~(required | optional))
		return ENG_MODIFY_EXTRA_ATTR;
	return ENG_MODIFY_OK;
}
