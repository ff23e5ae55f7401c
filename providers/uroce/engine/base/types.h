/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Basic types of the engine: operations, completion states, events, counters.  Each enum has a name
 * function for tools and tests.
 */
#ifndef UROCE_ENGINE_BASE_TYPES_H
#define UROCE_ENGINE_BASE_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* Time is in nanoseconds of one monotonic clock that the caller chooses. */
#define ENG_NEVER UINT64_MAX

enum eng_qp_type {
	ENG_RC,
	ENG_UC,
	ENG_UD,
	ENG_XRC_SEND,
	ENG_XRC_RECV,
};
const char *eng_qp_type_name(enum eng_qp_type type);

/* Values are those of enum ibv_qp_state. */
enum eng_qp_state {
	ENG_RESET,
	ENG_INIT,
	ENG_RTR,
	ENG_RTS,
	ENG_SQD,
	ENG_SQE,
	ENG_ERR,
	ENG_STATES,
};
const char *eng_qp_state_name(enum eng_qp_state state);

/* Operation of a work request. */
enum eng_op {
	ENG_SEND,
	ENG_SEND_IMM,
	ENG_SEND_INV,
	ENG_WRITE,
	ENG_WRITE_IMM,
	ENG_READ,
	ENG_COMPARE_SWAP,
	ENG_FETCH_ADD,
	ENG_ATOMIC_WRITE,
	ENG_FLUSH,
	ENG_LOCAL_INV,
	ENG_BIND_MW,
	ENG_OPS,
};
const char *eng_op_name(enum eng_op op);

enum eng_send_flag {
	ENG_FENCE = 1,
	ENG_SIGNALED = 2,
	ENG_SOLICITED = 4,
	ENG_INLINE = 8, /* the WQE contains the data instead of an SGE list */
};

/* Values are those of enum ibv_wc_status. */
enum eng_status {
	ENG_SUCCESS = 0,
	ENG_LOC_LEN_ERR = 1,
	ENG_LOC_QP_OP_ERR = 2,
	ENG_LOC_PROT_ERR = 4,
	ENG_WR_FLUSH_ERR = 5,
	ENG_MW_BIND_ERR = 6,
	ENG_BAD_RESP_ERR = 7,
	ENG_LOC_ACCESS_ERR = 8,
	ENG_REM_INV_REQ_ERR = 9,
	ENG_REM_ACCESS_ERR = 10,
	ENG_REM_OP_ERR = 11,
	ENG_RETRY_EXC_ERR = 12,
	ENG_RNR_RETRY_EXC_ERR = 13,
	ENG_FATAL_ERR = 19,
};
const char *eng_status_name(enum eng_status status);

/* Values are those of enum ibv_access_flags. */
enum eng_access {
	ENG_LOCAL_WRITE = 1,
	ENG_REMOTE_WRITE = 2,
	ENG_REMOTE_READ = 4,
	ENG_REMOTE_ATOMIC = 8,
	ENG_MW_BIND = 16,
	ENG_FLUSH_GLOBAL = 256,
	ENG_FLUSH_PERSISTENT = 512,
};

/* Events of a QP other than completions. */
enum eng_event {
	/*
	 * The first request of the peer has arrived: COMM_EST in RTR, FIRST_REQUEST in later
	 * states.
	 */
	ENG_EVENT_COMM_EST,
	ENG_EVENT_FIRST_REQUEST,
	/* The peer reports 11111b, for the first time: it does not report credits (rule C3). */
	ENG_EVENT_CREDITS_HIDDEN,
	ENG_EVENT_SQ_DRAINED,
	ENG_EVENT_QP_FATAL,
	ENG_EVENT_QP_REQ_ERR,
	ENG_EVENT_QP_ACCESS_ERR,
	ENG_EVENT_LAST_WQE_REACHED,
	ENG_EVENT_SRQ_LIMIT,
};
const char *eng_event_name(enum eng_event event);

/*
 * Counters of one QP.  Up to dropped_pkts they are general, most with the names of rxe's
 * hw_counters; limited_requests to credit_waits are about credits.  Probes and retransmissions:
 * recovery/; congestion (with the names of mlx5's hw_counters): ecn.h; out-of-order packets:
 * ooo_rx.h.  X(identifier, "printed name").
 */
#define ENG_COUNTERS(X)                                       \
	X(SENT_PACKETS, "sent_pkts")                          \
	X(RECEIVED_PACKETS, "rcvd_pkts")                      \
	X(SENT_BYTES, "sent_bytes")                           \
	X(RECEIVED_BYTES, "rcvd_bytes")                       \
	X(DUPLICATE_REQUEST, "duplicate_request")             \
	X(OUT_OF_SEQ_REQUEST, "out_of_seq_request")           \
	X(RECEIVED_RNR, "rcvd_rnr_err")                       \
	X(SENT_RNR, "send_rnr_err")                           \
	X(RECEIVED_SEQ_NAK, "rcvd_seq_err")                   \
	X(ACK_DEFERRED, "ack_deferred")                       \
	X(RETRY_EXCEEDED, "retry_exceeded_err")               \
	X(RNR_RETRY_EXCEEDED, "retry_rnr_exceeded_err")       \
	X(COMPLETER_RETRY, "completer_retry_err")             \
	X(TIMEOUTS, "timeouts")                               \
	X(SENDS, "rdma_sends")                                \
	X(RECEIVES, "rdma_recvs")                             \
	X(DROPPED, "dropped_pkts")                            \
	X(LIMITED_REQUESTS, "limited_requests")               \
	X(UNSOLICITED_ACKS_SENT, "unsolicited_acks_sent")     \
	X(UNSOLICITED_ACKS_RECEIVED, "unsolicited_acks_rcvd") \
	X(CREDIT_WAITS, "credit_waits")                       \
	X(TAIL_LOSS_PROBES, "tail_loss_probes")               \
	X(ACK_PROBES, "ack_probes")                           \
	X(ECN_MARKED, "np_ecn_marked_roce_packets")           \
	X(CNP_SENT, "np_cnp_sent")                            \
	X(CNP_HANDLED, "rp_cnp_handled")                      \
	X(CNP_IGNORED, "rp_cnp_ignored")                      \
	X(OOO_BUFFERED, "ooo_pkts_buffered")                  \
	X(OOO_EXECUTED, "ooo_pkts_executed")                  \
	X(FAST_RETRANSMITS, "fast_retransmits")               \
	X(ACKS_PAST_HOLE, "acks_past_hole")                   \
	X(OOO_READ_RESPS, "ooo_read_resps")

enum eng_counter {
#define ENG_COUNTER_ENUM(id, name) ENG_COUNT_##id,
	ENG_COUNTERS(ENG_COUNTER_ENUM)
#undef ENG_COUNTER_ENUM
		ENG_COUNTER_COUNT,
};
const char *eng_counter_name(enum eng_counter counter);

/*
 * Intervals in ns between two calls of the engine.  Threads read the clock before they take the
 * queue pair's lock, so a call may have an earlier time than the one before it: the interval is 0
 * then.
 */
static inline uint64_t elapsed(uint64_t since, uint64_t now)
{
	return now > since ? now - since : 0;
}

#endif
