/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The queue pair's state machine as a table: which transitions are legal and which attributes each
 * needs or allows, per service (IBA volume 1, "Modify QP/EE"; ibv_modify_qp(3)).
 */
#ifndef UROCE_ENGINE_QP_STATE_H
#define UROCE_ENGINE_QP_STATE_H

#include "engine/base/types.h"

/* Values are those of enum ibv_qp_attr_mask. */
enum eng_attr_mask {
	ENG_ATTR_STATE = 1 << 0,
	ENG_ATTR_CUR_STATE = 1 << 1,
	ENG_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	ENG_ATTR_ACCESS_FLAGS = 1 << 3,
	ENG_ATTR_PKEY_INDEX = 1 << 4,
	ENG_ATTR_PORT = 1 << 5,
	ENG_ATTR_QKEY = 1 << 6,
	ENG_ATTR_AV = 1 << 7,
	ENG_ATTR_PATH_MTU = 1 << 8,
	ENG_ATTR_TIMEOUT = 1 << 9,
	ENG_ATTR_RETRY_CNT = 1 << 10,
	ENG_ATTR_RNR_RETRY = 1 << 11,
	ENG_ATTR_RQ_PSN = 1 << 12,
	ENG_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
	ENG_ATTR_ALT_PATH = 1 << 14,
	ENG_ATTR_MIN_RNR_TIMER = 1 << 15,
	ENG_ATTR_SQ_PSN = 1 << 16,
	ENG_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	ENG_ATTR_PATH_MIG_STATE = 1 << 18,
	ENG_ATTR_CAP = 1 << 19,
	ENG_ATTR_DEST_QPN = 1 << 20,
};

enum eng_modify {
	ENG_MODIFY_OK,
	ENG_MODIFY_ILLEGAL_MOVE,
	ENG_MODIFY_MISSING_ATTR,
	ENG_MODIFY_EXTRA_ATTR,
};

/*
 * Checks the transition from -> to of a QP of this type with the attributes of mask (set of enum
 * eng_attr_mask).
 */
enum eng_modify eng_modify_check(enum eng_qp_type type, enum eng_qp_state from,
				 enum eng_qp_state to, uint32_t mask);

#endif
