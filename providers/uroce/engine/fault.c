/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fault.h"

/* clang-format off */
const struct fault_row fault_rows[FAULT_COUNT] = {
	[FAULT_NONE] = { "none", 0, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[FAULT_PSN_SEQUENCE] = { "PSN sequence error",
		AETH_NAK << 5 | NAK_PSN_SEQUENCE, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[FAULT_RNR] = { "receiver not ready",
		AETH_RNR_NAK << 5, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[FAULT_INVALID_REQUEST] = { "invalid request",
		AETH_NAK << 5 | NAK_INVALID_REQUEST, true, ENG_WR_FLUSH_ERR,
		ENG_EVENT_QP_REQ_ERR },
	/* rule C18: the consumer gets the length error, the requester an invalid request. */
	[FAULT_RECEIVE_LENGTH] = { "message longer than the receive buffer",
		AETH_NAK << 5 | NAK_INVALID_REQUEST, true, ENG_LOC_LEN_ERR,
		ENG_EVENT_QP_REQ_ERR },
	[FAULT_REMOTE_ACCESS] = { "remote access error",
		AETH_NAK << 5 | NAK_REMOTE_ACCESS, true, ENG_WR_FLUSH_ERR,
		ENG_EVENT_QP_ACCESS_ERR },
	[FAULT_RECEIVE_MEMORY] = { "remote operational error",
		AETH_NAK << 5 | NAK_REMOTE_OPERATIONAL, true, ENG_LOC_PROT_ERR,
		ENG_EVENT_QP_FATAL },
};
/* clang-format on */
