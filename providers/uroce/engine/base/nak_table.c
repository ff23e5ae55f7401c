/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "nak_table.h"

/* clang-format off */
const struct request_error_row request_error_rows[REQUEST_ERRORS] = {
	[REQUEST_RIGHT] = { 0, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[REQUEST_PSN_SEQUENCE] = {
		AETH_NAK << 5 | NAK_PSN_SEQUENCE, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[REQUEST_RNR] = { AETH_RNR_NAK << 5, false, ENG_SUCCESS, ENG_EVENT_QP_FATAL },
	[REQUEST_INVALID] = {
		AETH_NAK << 5 | NAK_INVALID_REQUEST, true,
		ENG_WR_FLUSH_ERR, ENG_EVENT_QP_REQ_ERR },
	/*
	 * rule C18: the responder completes with a length error, the requester with an invalid
	 * request.
	 */
	[REQUEST_RECEIVE_LENGTH] = {
		AETH_NAK << 5 | NAK_INVALID_REQUEST, true,
		ENG_LOC_LEN_ERR, ENG_EVENT_QP_REQ_ERR },
	[REQUEST_REMOTE_ACCESS] = {
		AETH_NAK << 5 | NAK_REMOTE_ACCESS, true,
		ENG_WR_FLUSH_ERR, ENG_EVENT_QP_ACCESS_ERR },
	[REQUEST_RECEIVE_MEMORY] = {
		AETH_NAK << 5 | NAK_REMOTE_OPERATIONAL, true,
		ENG_LOC_PROT_ERR, ENG_EVENT_QP_FATAL },
	[REQUEST_INVALIDATE] = {
		AETH_ACK << 5, true,
		ENG_REM_INV_REQ_ERR, ENG_EVENT_QP_ACCESS_ERR },
};
/* clang-format on */
