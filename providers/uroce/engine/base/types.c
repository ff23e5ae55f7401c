/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "types.h"

#include <stddef.h>

#include "engine/engine.h"

static const char *name_of(const char *const *names, size_t count, size_t value)
{
	if (value >= count || !names[value])
		return "unknown";
	return names[value];
}

#define NAME(table, value) name_of(table, sizeof(table) / sizeof((table)[0]), (size_t)(value))

const char *eng_qp_type_name(enum eng_qp_type type)
{
	static const char *const names[] = {
		[ENG_RC] = "RC",
		[ENG_UC] = "UC",
		[ENG_UD] = "UD",
		[ENG_XRC_SEND] = "XRC_SEND",
		[ENG_XRC_RECV] = "XRC_RECV",
	};

	return NAME(names, type);
}

const char *eng_qp_state_name(enum eng_qp_state state)
{
	static const char *const names[] = {
		[ENG_RESET] = "RESET", [ENG_INIT] = "INIT", [ENG_RTR] = "RTR", [ENG_RTS] = "RTS",
		[ENG_SQD] = "SQD",     [ENG_SQE] = "SQE",   [ENG_ERR] = "ERR",
	};

	return NAME(names, state);
}

const char *eng_op_name(enum eng_op op)
{
	static const char *const names[] = {
		[ENG_SEND] = "SEND",
		[ENG_SEND_IMM] = "SEND_WITH_IMM",
		[ENG_SEND_INV] = "SEND_WITH_INV",
		[ENG_WRITE] = "RDMA_WRITE",
		[ENG_WRITE_IMM] = "RDMA_WRITE_WITH_IMM",
		[ENG_READ] = "RDMA_READ",
		[ENG_COMPARE_SWAP] = "ATOMIC_CMP_AND_SWP",
		[ENG_FETCH_ADD] = "ATOMIC_FETCH_AND_ADD",
		[ENG_ATOMIC_WRITE] = "ATOMIC_WRITE",
		[ENG_FLUSH] = "FLUSH",
		[ENG_LOCAL_INV] = "LOCAL_INV",
		[ENG_BIND_MW] = "BIND_MW",
	};

	return NAME(names, op);
}

const char *eng_status_name(enum eng_status status)
{
	static const char *const names[] = {
		[ENG_SUCCESS] = "success",
		[ENG_LOC_LEN_ERR] = "local length error",
		[ENG_LOC_QP_OP_ERR] = "local QP operation error",
		[ENG_LOC_PROT_ERR] = "local protection error",
		[ENG_WR_FLUSH_ERR] = "work request flushed",
		[ENG_MW_BIND_ERR] = "memory window bind error",
		[ENG_BAD_RESP_ERR] = "bad response",
		[ENG_LOC_ACCESS_ERR] = "local access error",
		[ENG_REM_INV_REQ_ERR] = "remote invalid request",
		[ENG_REM_ACCESS_ERR] = "remote access error",
		[ENG_REM_OP_ERR] = "remote operation error",
		[ENG_RETRY_EXC_ERR] = "transport retry counter exceeded",
		[ENG_RNR_RETRY_EXC_ERR] = "RNR retry counter exceeded",
		[ENG_FATAL_ERR] = "fatal error",
	};

	return NAME(names, status);
}

const char *eng_event_name(enum eng_event event)
{
	static const char *const names[] = {
		[ENG_EVENT_COMM_EST] = "COMM_EST",
		[ENG_EVENT_FIRST_REQUEST] = "first request",
		[ENG_EVENT_CREDITS_HIDDEN] = "credits hidden",
		[ENG_EVENT_SQ_DRAINED] = "SQ_DRAINED",
		[ENG_EVENT_QP_FATAL] = "QP_FATAL",
		[ENG_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
		[ENG_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
		[ENG_EVENT_LAST_WQE_REACHED] = "LAST_WQE_REACHED",
		[ENG_EVENT_SRQ_LIMIT] = "SRQ_LIMIT",
	};

	return NAME(names, event);
}

const char *eng_counter_name(enum eng_counter counter)
{
#define COUNTER_NAME(id, name) [ENG_COUNT_##id] = name,
	static const char *const names[] = { ENG_COUNTERS(COUNTER_NAME) };
#undef COUNTER_NAME

	return NAME(names, counter);
}

const char *eng_tx_name(enum eng_tx reason)
{
	static const char *const names[] = {
		[ENG_TX_BURST] = "sending",
		[ENG_TX_IDLE] = "idle",
		[ENG_TX_CREDIT] = "credit",
		[ENG_TX_FENCE] = "fence",
		[ENG_TX_READ_DEPTH] = "read depth",
		[ENG_TX_CWND] = "congestion window",
		[ENG_TX_BUDGET] = "budget",
		[ENG_TX_RNR] = "RNR timer",
		[ENG_TX_PACING] = "pacing",
		[ENG_TX_DRAINED] = "drained",
		[ENG_TX_STATE] = "state",
		[ENG_TX_BATCH] = "batch",
		[ENG_TX_ACK_DELAY] = "ACK delay",
		[ENG_TX_BACKPRESSURE] = "transport full",
		[ENG_TX_LOCAL_ERROR] = "local error",
		[ENG_TX_RESP_ERROR] = "response error",
	};

	return NAME(names, reason);
}
