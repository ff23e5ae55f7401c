/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The transport of one queue pair.  The caller passes in packets (eng_receive()), posted work and
 * the time, and gets packets (eng_transmit()) and the next deadline (eng_deadline()).  Times are in
 * ns and never 0.  Pure: no socket, thread, clock, allocation or errno, and no memory that other
 * QPs use but struct eng_inflight_budget; one caller at a time for each QP.
 *
 *   requester   takes send WQEs, decides what may be sent next (credits, fence, cwnd ...)
 *   completer   takes responses, retires send WQEs (in the specification a part of the requester)
 *   responder   takes requests, executes them, sends ACKs, NAKs, READ and Atomic responses
 *
 * The contents of a packet are a function of its WQE and PSN, except AckReq, so a retry is next_psn
 * = unacked_psn.  Whether a packet may be sent is computed each time, as a value of enum eng_tx.
 *
 * Terms of the specification: PSN packet sequence number, SSN number of a send WQE (first is 1),
 * MSN messages that the responder has completed, LSN the highest SSN that credits allow (MSN plus
 * credit count of the last AETH, rule C12).
 */
#ifndef UROCE_ENGINE_ENGINE_H
#define UROCE_ENGINE_ENGINE_H

#include "engine/base/burst.h"
#include "engine/base/types.h"
#include "engine/base/wqe.h"
#include "wire/packet.h"

#define ENG_MAX_RD_ATOMIC 128
#define ENG_GRH_BYTES 40

enum eng_wc_flag {
	ENG_WC_GRH = 1,
	ENG_WC_IMMEDIATE = 2,
	ENG_WC_INVALIDATED = 8,
};

/* A completion.  Receive completions have op ENG_SEND, ENG_SEND_IMM or ENG_WRITE_IMM. */
struct eng_wc {
	uint64_t wr_id;
	enum eng_status status;
	enum eng_op op;
	uint32_t byte_len;
	uint32_t immediate; /* host order; or the invalidated R_Key */
	uint32_t flags;	    /* set of enum eng_wc_flag */
	uint32_t src_qpn;   /* UD */
	uint32_t srqn;	    /* XRC: shared receive queue of the receive WQE */
	bool receive;	    /* belongs to the receive queue */
	bool solicited;	    /* wakes a consumer that waits for solicited completions only */
	bool ipv6;	    /* UD: the datagram came by IPv6; false: by IPv4 */
};

/* A receive WQE in use; its SGEs are stored separately. */
struct eng_recv_desc {
	uint64_t wr_id;
	uint32_t length; /* bytes: sum of the SGEs */
	uint32_t sge_count;
};

enum eng_rq_result {
	ENG_RQ_OK,
	ENG_RQ_EMPTY,  /* no receive request is posted */
	ENG_RQ_DENIED, /* no such queue, or this QP may not use it */
};

/* Use of memory by its L_Key; every use but ENG_USE_SEND writes to it. */
enum eng_use {
	ENG_USE_SEND,	 /* the payload of a request */
	ENG_USE_RESULT,	 /* the result of a READ or an Atomic */
	ENG_USE_RECEIVE, /* a receive request, whose keys are of its queue's protection domain */
};

/* A FLUSH to execute. */
struct eng_flush {
	uint64_t addr;
	uint32_t length; /* in bytes */
	uint32_t rkey;
	uint32_t need;	   /* ENG_FLUSH_GLOBAL, ENG_FLUSH_PERSISTENT or both */
	bool whole_region; /* all memory of rkey instead of the range */
};

/*
 * All calls that leave the engine.  owner is eng_qp.owner.  They are made inside eng_receive(),
 * eng_transmit(), eng_expire(), eng_flush() and eng_set_state() and must not call back into the
 * same QP.
 */
struct eng_ops {
	/*
	 * L_Key check and bounds check: returns the memory of length bytes at addr, or NULL if the
	 * key, the protection domain, the bounds or the rights do not allow the use.
	 */
	void *(*map_local)(void *owner, uint32_t lkey, uint64_t addr, uint32_t length,
			   enum eng_use use);
	/* R_Key check and bounds check for need (set of enum eng_access); NULL as above. */
	void *(*map_remote)(void *owner, uint32_t rkey, uint64_t addr, uint32_t length,
			    uint32_t need);
	/*
	 * Executes a FLUSH after the checks of map_remote() for flush->need.  Returns false if they
	 * fail, or if the memory cannot be made persistent.  May be NULL: then the operation is
	 * refused.
	 */
	bool (*flush)(void *owner, const struct eng_flush *flush);
	void (*complete)(void *owner, const struct eng_wc *wc);
	void (*event)(void *owner, enum eng_event event);
	/*
	 * Shared receive queues: take the next receive request of the queue that serves this QP
	 * (XRC: of queue srqn) into wqe and sge (max_recv_sge entries).  NULL: they are taken from
	 * rq itself, which the caller of the engine has locked.
	 */
	enum eng_rq_result (*get_recv_wqe)(void *owner, uint32_t srqn, struct eng_recv_desc *wqe,
					   struct eng_sge *sge);
	/* Invalidate a window or region key (SEND with invalidate, LOCAL_INV); false if refused.
	 * May be NULL: then the operation is refused. */
	bool (*invalidate)(void *owner, uint32_t key);
	/*
	 * ooo_alloc() returns a block of eng_ooo_packet_bytes() bytes, aligned as by malloc(), for
	 * an out-of-order packet, or NULL; ooo_free() takes it back.  ooo_alloc may be NULL: then
	 * no packet is kept.
	 */
	void *(*ooo_alloc)(void *owner);
	void (*ooo_free)(void *owner, void *block);
	/* MW bind: executes a BIND_MW work request; false gives ENG_MW_BIND_ERR.  May be NULL. */
	bool (*bind)(void *owner, const struct eng_send_wqe *wqe);
};

/* Attributes of modify_qp.  The owner writes them before eng_set_state(), under the QP's lock. */
struct eng_attr {
	uint32_t mtu; /* path MTU in bytes: 256, 512, 1024, 2048 or 4096 */
	uint32_t dest_qpn;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t access; /* set of enum eng_access: what the peer may ask for */
	uint32_t qkey;
	uint16_t pkey;
	uint8_t timeout_code;	    /* Local ACK Timeout: 4.096 us x 2^n, 0: none (rule S10) */
	uint8_t retry_count;	    /* 0..7 */
	uint8_t rnr_retry;	    /* number of retries 0..6; 7: unlimited */
	uint8_t min_rnr_timer;	    /* code that our RNR NAKs carry */
	uint8_t max_rd_atomic;	    /* initiator depth */
	uint8_t max_dest_rd_atomic; /* responder resources, see eng_set_resp_res() */
	bool sq_drained_event;
	struct eng_path path;
};

/* Result of eng_transmit(): a burst, or the reason why there is none. */
enum eng_tx {
	ENG_TX_BURST,	     /* the burst has at least one packet: send it, then call again */
	ENG_TX_RESP_ERROR,   /* internal: a response cannot be sent, so the QP fails */
	ENG_TX_LOCAL_ERROR,  /* a request has a local error, and fails once it is the oldest */
	ENG_TX_IDLE,	     /* nothing to send */
	ENG_TX_CREDIT,	     /* a limited request waits for a response, or for credits (rule C13) */
	ENG_TX_FENCE,	     /* earlier READs or Atomics are not complete (rule C16) */
	ENG_TX_READ_DEPTH,   /* max_rd_atomic READs and Atomics are under way (rule S12) */
	ENG_TX_CWND,	     /* the congestion window is full */
	ENG_TX_BUDGET,	     /* the in-flight budget of all QPs is used up */
	ENG_TX_BATCH,	     /* waits for more posts, to be sent in one burst */
	ENG_TX_ACK_DELAY,    /* an ACK is delayed until requests are sent */
	ENG_TX_BACKPRESSURE, /* the transport has no room for a long burst */
	ENG_TX_RNR,	     /* the RNR NAK timer runs */
	ENG_TX_PACING,	     /* READ responses wait so as not to overrun the peer's socket */
	ENG_TX_DRAINED,	     /* SQD: no request is started */
	ENG_TX_STATE,	     /* the QP state does not allow sending */
	ENG_TX_REASONS,
};
const char *eng_tx_name(enum eng_tx reason);

enum eng_side {
	ENG_REQUESTS = 1,
	ENG_RESPONSES = 2,
};

/* Responses that are pending, by urgency. */
enum eng_resp_pending {
	ENG_RESP_NONE,
	ENG_RESP_DELAYABLE, /* a plain ACK: may wait for data that goes the same way, but not for
			       long */
	ENG_RESP_IMMEDIATE, /* READ and Atomic responses, NAKs, credits for a sender that has none
			     */
};

struct eng_qp; /* private: qp_priv.h */

size_t eng_ooo_packet_bytes(void);

/*
 * Bytes of a struct eng_qp whose receive requests have up to max_recv_sge SGEs, from whatever queue
 * they come; for its owner to allocate, aligned to 64 bytes.
 */
size_t eng_qp_bytes(uint32_t max_recv_sge);

/*
 * Bytes that all QPs of a worker have in flight: their packets share a few socket buffers.  The
 * owner zeroes it and sets the limit; the engines add and subtract atomically, since several
 * threads use the QPs.  A QP with nothing in flight may always send one burst, unless queued is
 * set.
 */
struct eng_inflight_budget {
	uint64_t under_way; /* bytes in flight, as a socket charges them */
	uint64_t limit;
	/*
	 * True if the caller calls those QPs again that got ENG_TX_BUDGET: then QPs with nothing in
	 * flight wait for the budget like the others.
	 */
	bool queued;
};

struct eng_qp_init {
	enum eng_qp_type type;
	uint32_t qpn;
	void *owner;
	const struct eng_ops *ops;
	struct eng_ring *sq;   /* send queue, owner's memory */
	struct eng_ring *rq;   /* receive queue of its own or shared */
	uint32_t max_recv_sge; /* as passed to eng_qp_bytes() */
	bool rq_shared;	       /* SRQ: credits are reported as 11111b (rule C7) */
	bool credits_hidden;   /* report 11111b although the receive queue is our own */
	bool signal_all;       /* sq_sig_all */
	struct eng_inflight_budget *inflight_budget; /* may be NULL */
	uint32_t cwnd_packets; /* maximum congestion window in packets of 4 KB; 0: default */
};
void eng_qp_init(struct eng_qp *qp, const struct eng_qp_init *init);
struct eng_attr *eng_qp_attr(struct eng_qp *qp);
enum eng_qp_state eng_qp_state(const struct eng_qp *qp);

/*
 * Sets the memory for responder resources: depth READs and Atomics that the peer may request again.
 * memory: eng_resp_res_bytes(depth) bytes, aligned as by malloc().  Must be called before
 * max_dest_rd_atomic is raised to depth; depth may only grow.  Entries in use are copied.  Returns
 * the previous memory, which the caller must free, or NULL.
 */
size_t eng_resp_res_bytes(uint32_t depth);
void *eng_set_resp_res(struct eng_qp *qp, void *memory, uint32_t depth);

/*
 * Enters state to; the caller has checked the transition by eng_modify_check() and has set the
 * attributes.  ERR flushes both queues, RESET clears everything (rules C5, S13).
 */
void eng_set_state(struct eng_qp *qp, enum eng_qp_state to, uint64_t now);

/* Posting: returns the next free send WQE, or NULL if the queue is full; eng_sq_push() posts it. */
struct eng_send_wqe *eng_sq_next(struct eng_qp *qp);
void eng_sq_push(struct eng_qp *qp);
/* In ERR and SQE: completes all posted requests as flushed (rule S13). */
void eng_flush(struct eng_qp *qp);

/* Posting: returns the next free receive WQE, or NULL; eng_rq_push() posts it. */
struct eng_recv_wqe *eng_rq_next(struct eng_ring *rq);
static inline void eng_rq_push(struct eng_ring *rq)
{
	rq->head++;
}

/*
 * Returns true if this packet starts a timer that must not be shortened (RNR NAK, rule S10): the
 * time passed to eng_receive() must be read after the packet has been received.
 */
bool eng_needs_timestamp(const struct wire_packet *packet);
/*
 * Handles a packet for this QP that has passed the checks of rule S14.  packet is not kept.  As in
 * all calls, now may be slightly earlier than in the previous call.
 */
void eng_receive(struct eng_qp *qp, const struct wire_packet *packet, uint64_t now);

/* Reason for a call of eng_transmit(). */
enum eng_tx_trigger {
	ENG_TX_TRIGGER_POLL,  /* packets have been received, or deadlines have expired */
	ENG_TX_TRIGGER_POST,  /* requests have been posted: pending responses are sent with them */
	ENG_TX_TRIGGER_FINAL, /* this may be the last call: nothing is delayed */
};

/* Inputs that only the caller has; the engine decides. */
struct eng_tx_ctx {
	uint64_t now;
	uint64_t round; /* number of progress cycles started: shows if one began since a burst */
	enum eng_tx_trigger trigger;
	unsigned int sides; /* what may be sent now: set of enum eng_side */
	bool polled;	    /* an application thread polls: its next progress cycle comes soon */
	bool watched;	    /* an awake thread handles deadlines, so a delay costs no wake-up */
	bool budget_waits;  /* other QPs wait for the in-flight budget, so this one must as well */
	bool full;	    /* the transport has no room for a long burst at this moment */
};

/*
 * Fills burst with the next packets, and possibly an ACK after requests.  If there is nothing to
 * send, returns the reason; eng_deadline() is the time of the next call.  Packets in the burst
 * count as sent.  The burst's pieces are valid until memory regions may be deregistered, that is as
 * long as the caller holds its lock.
 */
enum eng_tx eng_transmit(struct eng_qp *qp, struct eng_burst *burst, const struct eng_tx_ctx *ctx);

/*
 * To be called after requests have been posted.  Returns ENG_TX_BURST if eng_transmit() must be
 * called for them, otherwise the reason why they wait for the next progress cycle.  Ignores now,
 * trigger and sides of ctx.
 */
enum eng_tx eng_sq_kick(struct eng_qp *qp, const struct eng_tx_ctx *ctx);
/*
 * To be called after receive requests have been posted.  Returns true if eng_transmit() must be
 * called to report the new credits (rule C10).
 */
bool eng_receive_posted(struct eng_qp *qp);

/* Undoes eng_transmit(): the burst could not be sent, since the socket buffer or ring is full. */
void eng_tx_rollback(struct eng_qp *qp, const struct eng_burst *burst);

enum eng_resp_pending eng_resp_pending(const struct eng_qp *qp);
/*
 * To be called before the QP is destroyed: makes several repetitions of the last ACK pending if the
 * peer has sent requests, since afterwards nothing answers a retry of a peer that has not received
 * the ACK.  The repetitions are unsolicited ACKs, which are allowed at any time (rule C8).
 */
void eng_send_final_acks(struct eng_qp *qp);

/* Number of PSNs sent and not acknowledged. */
uint32_t eng_in_flight(const struct eng_qp *qp);
/*
 * Returns true if all posted requests have been sent and a response has been outstanding for less
 * than timeout_ns.
 */
bool eng_awaits_response(const struct eng_qp *qp, uint64_t now, uint64_t timeout_ns);
/*
 * eng_deadline(): time of the next call of eng_expire() and then eng_transmit(), or ENG_NEVER: the
 * earliest of eng_timer(), the pace of READ responses and the end of an ACK delay.  eng_timer() is
 * the time that eng_expire() waits for: Local ACK Timeout, RNR NAK timer (rule S10), probe timeout
 * or end of a wait for credits.
 */
uint64_t eng_timer(const struct eng_qp *qp);
uint64_t eng_deadline(const struct eng_qp *qp);
/* Returns true if eng_deadline() is earlier than time; cheaper than computing it. */
bool eng_deadline_before(const struct eng_qp *qp, uint64_t time);
/*
 * Returns true if eng_expire() would count a Local ACK Timeout (rule S10).  The caller should first
 * pass in all received packets, which may include the ACK.
 */
bool eng_times_out(const struct eng_qp *qp, uint64_t now);
void eng_expire(struct eng_qp *qp, uint64_t now);
/*
 * Restores the number of retries, as progress does (rule S10), but not beyond 10 s after the first
 * timeout without progress.  For timeouts that do not show that the peer is gone, since packets
 * were lost inside this host.
 */
void eng_restore_retries(struct eng_qp *qp, uint64_t now);
/* Returns true if at least half of the retries have been used up. */
bool eng_retries_nearly_spent(const struct eng_qp *qp);
/* Number of Local ACK Timeouts (rule S10) on this and earlier connections of the QP. */
uint64_t eng_timeouts(const struct eng_qp *qp);

enum eng_path_loss {
	/* Default: probes on a network, and within a host only after a loss was reported. */
	ENG_PATH_USUAL,
	/*
	 * The transport blocks (eng_tx_rollback()) instead of dropping packets, as shared memory
	 * does.  READ responses are not paced.
	 */
	ENG_PATH_LOSSLESS,
	/*
	 * The path is known to lose packets: there are always probes (recovery/probe.h), and the
	 * response to an ACK probe of any peer shows a loss (recovery/retransmit.h).
	 */
	ENG_PATH_LOSSY,
};
void eng_set_path_loss(struct eng_qp *qp, enum eng_path_loss loss);

/*
 * Enables congestion notification for a QP whose packets the caller sends with ECT: received marks
 * (WIRE_CE) are reported to the peer by BECN in ACKs and by CNPs on the path cnp, with IPv4 ID 0.
 * cnp must stay valid until the next call of this function.  NULL: no ECT; marks are only counted.
 */
void eng_set_ecn(struct eng_qp *qp, const struct eng_path *cnp);

/* Congestion control algorithm (cc.h).  Changing it restarts the congestion window. */
enum eng_cc_algo {
	ENG_CC_LOCAL,	/* default: only the socket buffer of the peer can overflow */
	ENG_CC_NETWORK, /* queues of a network, shared with other flows */
	ENG_CC_ALGOS,
};
void eng_set_cc(struct eng_qp *qp, enum eng_cc_algo algo);

/* State of a QP for uroce-stat and tests. */
struct eng_qp_info {
	enum eng_qp_type type;
	enum eng_qp_state state;
	uint32_t qpn, dest_qpn;
	uint32_t mtu;
	uint32_t next_psn, unacked_psn, expected_psn;
	uint32_t ssn;		     /* SSN of the last request posted */
	uint32_t sent_ssn;	     /* SSN of the last request started */
	uint32_t msn;		     /* MSN of the responder */
	uint32_t lsn;		     /* LSN of the requester */
	bool unlimited;		     /* the peer reports 11111b: no credit counts */
	bool credits_known;	     /* an AETH has been received */
	uint32_t credits_last_known; /* credit count in the last AETH received */
	uint32_t credits_advertised; /* credit count in the last AETH sent */
	uint32_t credits_now;	     /* number of receive WQEs free */
	uint32_t sq_used, rq_used;
	uint32_t outstanding_reads;
	bool in_message;	  /* a message has been received in part */
	uint32_t in_flight, cwnd; /* number of PSNs; window in packets of 4 KB */
	uint32_t retries_left, rnr_retries_left;
	enum eng_tx waiting; /* reason why the requester is not sending */
	uint64_t counters[ENG_COUNTER_COUNT];
};
void eng_qp_query(const struct eng_qp *qp, struct eng_qp_info *view);

/*
 * XRC: returns the number of the shared receive queue of the request being executed, whose
 * protection domain R_Keys are checked against.  For use inside eng_ops.map_remote().
 */
uint32_t eng_current_srqn(const struct eng_qp *qp);

#endif
