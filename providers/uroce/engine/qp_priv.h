/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Private structures of a queue pair, by role and by mechanism; each names the files that write it,
 * unless these are many.  Only the engine and the tests include this header.
 */
#ifndef UROCE_ENGINE_QP_PRIV_H
#define UROCE_ENGINE_QP_PRIV_H

#include "engine.h"
#include "engine/base/psn.h"
#include "engine/cc/pacing.h"
#include "engine/recovery/rtt.h"

/* Credits in the last AETH from the peer. */
enum credit_report {
	CREDIT_REPORT_NONE,	 /* no AETH received yet */
	CREDIT_REPORT_UNLIMITED, /* 11111b (rule C3); always on unreliable services */
	CREDIT_REPORT_COUNT,
};

/* End-to-end credits that the peer has granted (credit.c). */
struct credit {
	uint32_t lsn; /* limit sequence number; never decreases (rules C12, U3) */
	enum credit_report report;
	bool peer_sends_unsolicited; /* an unsolicited ACK moved lsn since a futile wait */
	uint8_t last_code;	     /* credit code of the last AETH */
	uint32_t uncredited;	     /* number of uncredited requests started (rule C12) */
	uint64_t last_rnr_ns;	     /* ns; RNR NAK timer last received; 0: none */
	uint64_t wait_deadline; /* ns; a limited request waits for credits until then; 0: none */
};

/* Number of packets that may be kept ahead of a missing one: more than a window holds. */
#define ENG_AHEAD_PACKETS 1024

/* Loss recovery (recovery/loss_state.h). */
enum loss_state {
	LOSS_OPEN,
	LOSS_RECOVERY,
	LOSS_GO_BACK,
	LOSS_PROBE,
	LOSS_RNR_WAIT,
	LOSS_STATES,
};

/* Packets that loss recovery sends before new ones; at most one action is pending. */
enum loss_action {
	LOSS_ACTION_NONE,
	LOSS_ACTION_ACK_PROBE,
	LOSS_ACTION_RETRANSMIT,
	LOSS_ACTION_READ_RETRY,
};

struct loss {
	enum loss_state state;
	enum loss_state resume;	 /* OPEN or GO_BACK: next state of RNR_WAIT, previous of PROBE */
	enum loss_action action; /* pending, not sent yet */
	uint64_t rnr_until;	 /* ns; end of RNR_WAIT */
	uint64_t lossy_until;	 /* ns; until then silence of the peer counts as a loss */
	uint64_t acted_at;	 /* ns; time of the last action, start of the probe timer */
	uint64_t ack_probe_at;	 /* ns; time of the last ACK probe; 0: progress since then */
	uint8_t probes;		 /* back-off: number of times the probe timeout is doubled */
	uint8_t timeout_shift;	 /* number of times the Local ACK Timeout is doubled */
};

/* Congestion control of a network path (cc.c). */
struct cc_state {
	uint64_t acked, marked; /* bytes acknowledged in this window, and those with marks */
	uint32_t window_psn;	/* first PSN after this window */
	uint16_t alpha;		/* smoothed fraction of marked bytes, in 1024ths */
	bool ack_has_ece;	/* the ACK being processed has BECN set */
	bool peer_echoes_ce;	/* the peer has set BECN in an ACK before */
	bool slow_start; /* no congestion so far: the window grows by all acknowledged bytes */
};

/* How the peer treats packets after a lost one, as far as is known. */
enum peer {
	PEER_RESPONDED,	 /* nothing else is known; also before any response */
	PEER_UNANSWERED, /* on a network: no response yet, and no credits reported */
	PEER_KEEPS,	 /* it keeps out-of-order packets: it has acknowledged beyond a hole */
};

/* Selective retransmission of requests (recovery/retransmit.c). */
struct retransmit {
	uint32_t psn;	   /* first PSN of the last retransmission */
	uint32_t packets;  /* its number of packets; 0: an ACK beyond it has arrived */
	uint32_t sent_psn; /* next_psn when that retransmission became pending */
	enum peer peer;
	uint8_t trials; /* number of announcements and retransmissions before PEER_KEEPS */
};

/* READ responses received out of order, and READ retry (recovery/read_retry.c). */
struct read_retry {
	uint32_t count;		 /* number of bits set in placed; 0: no other field is valid */
	uint32_t placed_max_psn; /* one past the highest PSN placed, or acknowledged out of order */
	uint32_t rx_max_psn;	 /* one past the highest PSN received since going back */
	uint32_t requested_psn;	 /* everything missing before this PSN has been requested again */
	uint32_t behind_psn;	 /* next_psn when parts were last requested again */
	uint32_t parts_psn;	 /* one past the highest PSN ever requested again */
	uint32_t from_psn;	 /* first PSN of the pending request, which ends at requested_psn */
	uint32_t sent_from_psn;	 /* first PSN of the last burst of such requests */
	uint64_t requested_at;	 /* ns; time when parts were last requested again */
	uint64_t placed[ENG_AHEAD_PACKETS / 64]; /* bit psn % ENG_AHEAD_PACKETS: placed */
};

/* Retries since the last progress (rule S10), which clears them by one store of 32 bits. */
struct retries {
	uint8_t used;	   /* retries other than for RNR NAKs */
	uint8_t rnr_used;  /* not counted if attr.rnr_retry is unlimited */
	uint16_t timeouts; /* at most EXTEND_AFTER_TIMEOUTS */
};

/*
 * The send queue in PSNs: unacked_psn <= next_psn <= end_psn <= post_psn.  Packets from unacked_psn
 * to next_psn are in flight; next_psn < end_psn means that packets are being retransmitted.  In WQE
 * indexes: sq.tail <= next_wqe <= begun <= sq.head; WQEs before begun have been sent in part or in
 * whole.
 */
struct requester {
	uint32_t next_psn;
	uint32_t end_psn;
	uint32_t unacked_psn;
	uint32_t post_psn;
	uint32_t next_wqe;
	uint32_t begun;
	uint32_t reads_outstanding; /* number of READs and Atomics started and not complete */
	uint32_t posted_uncredited; /* number of uncredited requests posted (rule C12) */
	uint32_t
		repeated_psn; /* ACKs of duplicates and of ACK probes are expected up to this PSN */
	uint32_t ack_probe_psn; /* one past ackreq_psn at the last ACK probe */
	uint32_t ackreq_psn;	/* highest PSN sent with AckReq, or last PSN of a READ */
	uint32_t posted_ssn;	/* SSN of the last request posted (rule C11) */
	uint32_t begun_ssn;	/* SSN of the last request started */
	enum eng_tx waiting;	/* last reason for not sending, for eng_qp_query() */

	/* Congestion window in bytes, and running sums of the bytes of PSNs (cwnd.c). */
	uint64_t cost_next;	 /* bytes before next_psn */
	uint64_t cost_unacked;	 /* bytes before unacked_psn */
	uint64_t cost_published; /* their difference as added to the in-flight budget */
	uint64_t cwnd;
	uint64_t cwnd_limit;
	uint32_t cwnd_recovery_psn; /* no further reduction until this PSN is acknowledged */
	struct cc_state cc;

	/* Retries (rule S10). */
	uint64_t last_progress; /* ns; start of the Local ACK Timeout */
	struct retries retries;
	uint64_t first_timeout; /* ns; time of the first of retries.timeouts */
	uint32_t repeats; /* number of PSNs retransmitted by timeouts: responses may come twice */
	bool drained_reported;
	struct rtt rtt;
	struct loss loss;
	struct retransmit retransmit;
	struct credit credit;
	struct read_retry read_retry;
};

/*
 * Maximum number of holes between the parts of a READ that are requested again (8 parts); further
 * holes are sent as well.
 */
#define RESP_RES_HOLES 7

enum resp_res_kind {
	RESP_RES_FREE,
	RESP_RES_READ, /* also ATOMIC_WRITE and FLUSH, answered as a READ of 0 bytes */
	RESP_RES_ATOMIC,
};

/* Responder resource: a READ or Atomic that the peer may request again (resp_res.c). */
struct resp_res {
	enum resp_res_kind kind;
	bool again;   /* the pending response repeats one that was sent before */
	uint32_t psn; /* PSN of the request and of the first response */
	uint32_t packets;
	uint64_t va;
	uint32_t rkey;
	uint32_t length;
	uint32_t until;	   /* READ: end of the requested bytes in the message, at most length */
	uint32_t srqn;	   /* XRC */
	uint64_t original; /* Atomic: value before the operation */
	uint32_t from;	   /* READ: first response packet requested */
	uint32_t next;	   /* READ: next response packet to send; next == end: nothing is pending */
	uint32_t end;	   /* READ: one past the last response packet requested */
	uint32_t before;   /* next before the last burst, if that has responses of this request */
	uint32_t holes;	   /* number of entries of hole[]: packets [from, to) not requested */
	struct {
		uint32_t from, to;
	} hole[RESP_RES_HOLES];
};

/* Credits as last advertised to the peer (rules C8 to C10). */
struct credit_adv {
	uint32_t promised; /* receive WQEs granted, counted like wqes_consumed; never decreases */
	uint32_t last_positive_psn; /* highest PSN acknowledged by a response or a NAK */
	int32_t marks;	  /* number of packets received with CE and not echoed yet (ecn.c) */
	bool by_response; /* last_positive_psn is that of a READ or Atomic response */
	uint8_t code;	  /* last credit code sent */
};

/* Congestion notification to the peer (ecn.c). */
struct ecn {
	const struct eng_path *cnp; /* path of CNPs; NULL: ECT is off */
	uint64_t next_cnp;	    /* ns; no CNP is sent before */
	bool cnp_pending;
};

/* Requests received out of order, which are executed in their turn (ooo_rx.c). */
struct ooo_queue {
	struct ooo_packet *first, *last; /* list in PSN order; NULL: empty */
	uint32_t count;
	bool peer_supports; /* the peer handles ACKs beyond a hole, as uroce does */
};

/* A NAK is sent once until expected_psn arrives (rule S4). */
enum nak_state {
	NAK_STATE_NONE,
	NAK_STATE_PENDING, /* not sent yet */
	NAK_STATE_SENT,
};

struct responder {
	uint32_t expected_psn;
	uint32_t msn;
	int previous_opcode; /* last opcode of the message being received; -1: none */
	uint32_t received;   /* bytes received of that message */
	uint64_t write_va;
	uint32_t write_rkey;
	uint32_t write_length;
	bool established;	/* a request has been received */
	uint8_t repeats;	/* number of repetitions of the last positive response to send */
	uint8_t repeats_before; /* repeats before the last burst, for eng_tx_rollback() */

	bool ack_pending;
	uint32_t ack_psn; /* PSN of the last SEND or WRITE packet executed */
	enum nak_state nak;
	uint8_t nak_syndrome;
	uint32_t nak_psn;

	/* Highest PSN received out of order since the last NAK (rule S4), or kept in ooo. */
	uint32_t ooo_psn;
	struct ooo_queue ooo;

	/* Number of receive WQEs taken, and of messages completed that took one; free running. */
	uint32_t wqes_consumed, wqes_done;
	struct credit_adv credit_adv;
	struct credit_adv credit_adv_before; /* before the last burst, for eng_tx_rollback() */

	struct pacing pacing;
	uint32_t resp_res_head;	   /* free running; the newest is resp_res[(head - 1) % slots] */
	uint32_t resp_res_pending; /* number of entries with responses to send */
	uint32_t resp_res_oldest;  /* the oldest of these; resp_res_head if there are none */
	/* Bit n: the last burst has responses of resp_res[n]. */
	uint64_t resp_res_burst[ENG_MAX_RD_ATOMIC / 64];

	uint32_t srqn;		  /* XRC: shared receive queue of the request being received */
	bool taken;		  /* wqe holds the receive WQE of the message being received */
	struct eng_recv_desc wqe; /* its SGEs are eng_qp.recv_sge */
};

/* tx_sched.since_post before the application has posted anything: any large number. */
#define TX_SCHED_NO_POST (UINT32_MAX / 2)

/* Why the pending ACK is delayed until ack_due. */
enum ack_wait {
	ACK_WAIT_MESSAGE_END, /* for the rest of a message */
	ACK_WAIT_REPLY,	      /* for a post that replies to a message */
	ACK_WAIT_RECEIVE,     /* for a post that replies, or a receive WQE that gives credits */
};

/* Transmit scheduling (tx_sched.c). */
struct tx_sched {
	uint64_t received_at;	   /* ns; time of the last packet, equal for a progress cycle */
	uint64_t sent_at;	   /* ns; time of the last burst of requests */
	uint64_t sent_in_round;	   /* eng_tx_ctx.round of the last burst of requests */
	uint64_t ack_due;	   /* ns; end of the ACK delay; 0: no ACK is delayed */
	uint32_t messages;	   /* number of messages received to their end at received_at */
	uint32_t unanswered;	   /* number of request packets received since the last ACK */
	uint32_t since_post;	   /* number of messages received since the application posted */
	uint32_t gathered;	   /* number of posts since the last burst */
	uint32_t gathered_signals; /* number of signaled posts since the last burst */
	uint32_t gathered_before;  /* decaying maximum of gathered over the last bursts */
	uint32_t burst_packets;	   /* number of packets of burst_segment bytes that fill a burst */
	uint32_t burst_segment;	   /* bytes of each packet of the last burst */
	bool rx_since_tx;	   /* a packet has been received since the last burst of requests */
	bool responses_first;	   /* requests were sent last, so responses go first */
	enum ack_wait ack_wait;
	bool last_has_no_cqe; /* the last message is a WRITE without a completion at the receiver */
	bool app_never_replies[2]; /* the last delayed ACK met no post; index: last_has_no_cqe */
};

struct eng_qp {
	enum eng_qp_type type;
	enum eng_qp_state state;
	uint32_t qpn;
	bool rq_shared;
	bool reports_credits; /* AETHs carry credit counts (rules C2, C7) */
	bool signal_all;
	enum eng_path_loss path_loss; /* eng_set_path_loss() */
	uint32_t cwnd_packets;
	const struct cc_ops *cc_ops;
	struct eng_inflight_budget *inflight_budget;
	void *owner;
	const struct eng_ops *ops;
	struct eng_ring *sq;
	struct eng_ring *rq;
	struct eng_attr attr;
	struct tx_sched tx_sched;
	struct ecn ecn;
	struct requester req;
	struct resp_res *resp_res; /* owner's memory, resp_res_slots entries; NULL: none */
	uint32_t resp_res_slots;   /* a power of two */
	uint64_t counters[ENG_COUNTER_COUNT];
	struct responder resp;
	uint32_t max_recv_sge;
	struct eng_sge recv_sge[]; /* SGEs of resp.wqe */
};

static inline void count(struct eng_qp *qp, enum eng_counter counter)
{
	qp->counters[counter]++;
}

/* Numbers of retries left; 0 as well if modify_qp has lowered the attribute below those used. */
static inline uint8_t retries_left(const struct eng_qp *qp)
{
	uint8_t used = qp->req.retries.used;

	return used < qp->attr.retry_count ? qp->attr.retry_count - used : 0;
}

static inline uint8_t rnr_retries_left(const struct eng_qp *qp)
{
	uint8_t used = qp->req.retries.rnr_used;

	return used < qp->attr.rnr_retry ? qp->attr.rnr_retry - used : 0;
}

static inline struct eng_send_wqe *sq_at(const struct eng_qp *qp, uint32_t index)
{
	return eng_ring_slot(qp->sq, index);
}

/* Returns true if the request generates a completion also on success. */
static inline bool is_signaled(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	return qp->signal_all || (wqe->flags & ENG_SIGNALED);
}

/* Returns true for services with acknowledgements: RC and XRC. */
static inline bool is_reliable(const struct eng_qp *qp)
{
	return qp->type != ENG_UC && qp->type != ENG_UD;
}

static inline bool can_respond(const struct eng_qp *qp)
{
	/* SQE: a send has failed, the receiving side goes on (UC and UD). */
	const unsigned int states = 1u << ENG_RTR | 1u << ENG_RTS | 1u << ENG_SQD | 1u << ENG_SQE;

	return states >> qp->state & 1;
}

static inline bool can_request(const struct eng_qp *qp)
{
	return qp->state == ENG_RTS || qp->state == ENG_SQD;
}

#endif
