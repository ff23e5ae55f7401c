/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of a queue pair: one structure per role, each owned by the file of its name.  Only
 * the engine includes this header.
 */
#ifndef UROCE_ENGINE_QP_PRIV_H
#define UROCE_ENGINE_QP_PRIV_H

#include "engine.h"
#include "engine/base/psn.h"
#include "engine/cc/pacing.h"
#include "engine/recovery/rtt.h"

/* What the peer's AETHs have reported last. */
enum credit_report {
	CREDIT_REPORT_NONE,	 /* none has come */
	CREDIT_REPORT_UNLIMITED, /* 11111b (rule C3); always on unreliable services */
	CREDIT_REPORT_COUNT,
};

/*
 * What the peer's AETHs allow (credit.c).  lsn never moves back (rules C12, U3).
 */
struct credit {
	uint32_t lsn;
	enum credit_report report;
	bool peer_sends_unsolicited; /* the last news of credits that were waited for came unasked
				      */
	uint8_t last_code;
	uint32_t uncredited;	/* requests begun that need no receive WQE (rule C12) */
	uint64_t last_rnr_ns;	/* what the last RNR NAK made us wait; 0: there was none */
	uint64_t wait_deadline; /* a limited request waits for news so long; 0: none does */
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

/* Packets that loss recovery sends ahead of new ones; one action is pending at a time. */
enum loss_action {
	LOSS_ACTION_NONE,
	LOSS_ACTION_ACK_PROBE,
	LOSS_ACTION_RETRANSMIT,
	LOSS_ACTION_READ_RETRY,
};

struct loss {
	enum loss_state state;
	enum loss_state resume;	 /* after RNR_WAIT: OPEN, or GO_BACK, which PROBE has left */
	enum loss_action action; /* pending, that is not sent yet */
	uint64_t rnr_until;	 /* ns; end of RNR_WAIT */
	uint64_t lossy_until;	 /* ns; the peer's silence is taken for a loss before this */
	uint64_t acted_at;	 /* ns; the last action, from which on the probe timer runs */
	uint64_t ack_probe_at;	 /* ns; the last solicitation, 0 once something is acknowledged */
	uint8_t probes;		 /* back-off: number of times the probe timeout is doubled */
	uint8_t timeout_shift;	 /* number of times the Local ACK Timeout is doubled */
};

/* What the law of networks remembers (cc.c). */
struct cc_state {
	uint64_t acked, marked; /* bytes of this window, by weight, and those that met marks */
	uint32_t window_psn;	/* this window ends before it */
	uint16_t alpha;		/* part of what was marked of late, in 1024ths */
	bool ack_has_ece;	/* the ACK at hand has BECN */
	bool peer_echoes_ce;	/* ... and so has been seen to mean something at the peer */
	bool slow_start;	/* no congestion so far: grow by all that is acknowledged */
};

/* How the peer treats losses, as far as is known. */
enum peer {
	PEER_ANSWERED,	 /* nothing special */
	PEER_UNANSWERED, /* on a network: it has answered nothing yet, nor reported credits */
	PEER_KEEPS,	 /* it has acknowledged beyond a gap, and so keeps what comes early */
};

/* Packets that are sent again because the peer lacks them (recovery/retransmit.c). */
struct retransmit {
	uint32_t psn;	   /* first PSN of the last repair */
	uint32_t packets;  /* number of its packets; 0: the ACK has jumped beyond them */
	uint32_t sent_psn; /* next_psn when it was sent */
	enum peer peer;
	uint8_t trials; /* repairs sent before the peer has been seen to keep packets */
};

/* READ responses that have been placed ahead of their turn (recovery/read_retry.c). */
struct read_retry {
	uint32_t count;		 /* of bits below; all else counts only when there are some */
	uint32_t placed_max_psn; /* they all lie before it, and what an ACK behind a gap is for, */
	uint32_t rx_max_psn;	 /* ... and behind the newest one that has come since going back is
				    this */
	uint32_t requested_psn;	 /* what is missing before it has been asked for again */
	uint32_t behind_psn;	 /* what was first asked for when that was done lies before it */
	uint32_t parts_psn;	 /* parts of READs that have been asked for lie before it */
	uint32_t from_psn;	 /* first PSN of the parts to request; they end at requested_psn */
	uint32_t sent_from_psn;	 /* first PSN of the last burst of such requests */
	uint64_t requested_at;	 /* ns; when parts were requested last */
	uint64_t placed[ENG_AHEAD_PACKETS / 64]; /* a bit for each PSN, modulo their number */
};

/*
 * The send queue in PSNs: unacked_psn <= next_psn <= end_psn <= post_psn.  Packets from unacked_psn
 * to next_psn are under way; next_psn behind end_psn means that packets are sent again.  WQE
 * indexes: sq.tail <= next_wqe <= begun <= sq.head; WQEs before begun have had a packet sent.
 */
struct requester {
	uint32_t next_psn;
	uint32_t end_psn;
	uint32_t unacked_psn;
	uint32_t post_psn;
	uint32_t next_wqe;
	uint32_t begun;
	uint32_t reads_outstanding; /* READs and Atomics begun and not complete */
	uint32_t posted_uncredited; /* posted requests that need no receive WQE */
	uint32_t repeated_psn;	/* answers to duplicates and solicitations come before its ACK */
	uint32_t ack_probe_psn; /* behind ackreq_psn at the last solicitation */
	uint32_t ackreq_psn;	/* the newest packet sent with AckReq, or READ response due */
	uint32_t posted_ssn;	/* SSN of the last request posted (rule C11) */
	uint32_t begun_ssn;	/* SSN of the last request begun */
	enum eng_tx waiting;	/* the last answer, only to be looked at */

	/* The congestion window in bytes, and running sums over the PSNs (cwnd.c). */
	uint64_t cost_next;
	uint64_t cost_unacked;
	uint64_t cost_published; /* what the share knows of their difference */
	uint64_t cwnd;
	uint64_t cwnd_limit;
	uint32_t cwnd_recovery_psn; /* one reduction per window: none before this is acknowledged */
	struct cc_state cc;

	/* Retries (rule S10). */
	uint64_t last_progress;
	uint8_t retries_left;
	uint8_t rnr_left;
	uint32_t repeats; /* PSNs sent again after a timeout: responses may come twice */
	bool drained_reported;
	struct rtt rtt;
	struct loss loss;
	struct retransmit retransmit;
	struct credit credit;
	struct read_retry read_retry;
};

/* Up to eight parts of a READ may be asked for at once; of more, what lies between is sent too. */
#define RESP_RES_HOLES 7

enum resp_res_kind {
	RESP_RES_FREE,
	RESP_RES_READ, /* and ATOMIC_WRITE, which is answered as a READ of no bytes */
	RESP_RES_ATOMIC,
};

/* A READ or Atomic that the peer may ask for again (resp_res.c). */
struct resp_res {
	enum resp_res_kind kind;
	bool again;   /* the pending answer repeats one that was given before */
	uint32_t psn; /* of the request, that is of the first response */
	uint32_t packets;
	uint64_t va;
	uint32_t rkey;
	uint32_t length;
	uint32_t until;	    /* READ: bytes of the message that are wanted, length or fewer */
	uint32_t srqn;	    /* XRC */
	uint64_t original;  /* Atomic: the value before */
	uint32_t from;	    /* READ: response packets [from, end) are wanted, next is the next; */
	uint32_t next, end; /* nothing is pending when next == end */
	uint32_t before;    /* what next was before the last burst, if that holds answers of this */
	uint32_t holes;	    /* packets [from, to) that are not wanted, between from and end above */
	struct {
		uint32_t from, to;
	} hole[RESP_RES_HOLES];
};

/* What the peer has been told (rules C8 to C10). */
struct credit_adv {
	uint32_t promised;	    /* receive WQEs, counted like wqes_taken: never moves back */
	uint32_t last_positive_psn; /* the newest PSN that has been acknowledged */
	int32_t marks;		    /* packets that came marked and have not been told of (ecn.c) */
	bool by_answer;		    /* it was, by a READ or Atomic response */
	uint8_t code;		    /* the last credit count */
};

/* What is told of congestion (ecn.c). */
struct ecn {
	const struct eng_path *cnp; /* NULL: no ECT was asked for */
	uint64_t quiet_until;	    /* no CNP before */
	bool cnp_pending;
};

/* Requests that are kept until their turn comes (ooo_rx.c). */
struct ooo_queue {
	struct ooo_packet *first, *last; /* by their PSNs; NULL: none */
	uint32_t count;
	bool peer_supports; /* the peer is one that can be told beyond a gap */
};

/* The NAK that the responder has raised: no other one until expected_psn arrives (rule S4). */
enum nak_state {
	NAK_STATE_NONE,
	NAK_STATE_PENDING, /* not sent yet */
	NAK_STATE_SENT,
};

struct responder {
	uint32_t expected_psn;
	uint32_t msn;
	int previous_opcode; /* of the message under way, or -1 */
	uint32_t received;   /* bytes of the message under way */
	uint64_t write_va;
	uint32_t write_rkey;
	uint32_t write_length;
	bool established;
	uint8_t repeats;	/* of the last positive response, that are still to be sent */
	uint8_t repeats_before; /* the last burst of responses, for eng_tx_rollback() */

	bool ack_pending;
	uint32_t ack_psn; /* the last SEND or WRITE packet executed */
	enum nak_state nak;
	uint8_t nak_syndrome;
	uint32_t nak_psn;

	/* The highest PSN that came too early since the NAK was raised (rule S4), or is kept. */
	uint32_t ooo_psn;
	struct ooo_queue ooo;

	/* Receive WQEs taken so far, and messages completed that took one; free running. */
	uint32_t wqes_taken, wqes_done;
	struct credit_adv credit_adv;
	struct credit_adv
		credit_adv_before; /* the last burst of responses, for eng_tx_rollback() */

	struct pacing pacing;
	uint32_t resp_res_head;	   /* free running; the newest is replay[(head - 1) % slots] */
	uint32_t resp_res_pending; /* how many of them have answers pending; if any, the oldest */
	uint32_t resp_res_oldest;  /* of those is this, and else it is resp_res_head */
	/* Which of replay[] the last burst of answers is of, a bit each. */
	uint64_t resp_res_burst[ENG_MAX_RD_ATOMIC / 64];

	uint32_t srqn;		  /* XRC: the queue that the request under way names */
	bool taken;		  /* wqe below is the receive request under way */
	struct eng_recv_desc wqe; /* its SGEs are at the end of the queue pair */
};

/* schedule.since_post of an application that has posted nothing yet: any large number. */
#define TX_SCHED_NO_POST (UINT32_MAX / 2)

enum ack_wait {
	ACK_WAIT_REST,	  /* the rest of a message */
	ACK_WAIT_ANSWER,  /* a post that answers a whole message */
	ACK_WAIT_RECEIVE, /* the same, or a receive that gives credits */
};

/* What the scheduler remembers (tx_sched.c). */
struct tx_sched {
	uint64_t received_at;	   /* when the last packet came; one time is one round */
	uint64_t sent_at;	   /* when requests left last, */
	uint64_t sent_in_round;	   /* ... and in which round of a poller */
	uint64_t ack_due;	   /* until when an ACK waits; 0: none waits */
	uint32_t messages;	   /* requests whose end came at received_at */
	uint32_t unanswered;	   /* packets of requests received since the last ACK left */
	uint32_t since_post;	   /* requests whose end came since the application posted */
	uint32_t gathered;	   /* posts since the last burst was sent, those that will make */
	uint32_t gathered_signals; /* ... completions, */
	uint32_t gathered_before;  /* ... and posts behind the bursts sent, the older the less */
	uint32_t burst_packets;	   /* packets that fill a burst, by the size of the last one sent */
	uint32_t burst_segment;	   /* ... which this was: bytes of each packet */
	bool rx_since_tx;	   /* a packet has come since requests left last */
	bool responses_first;	   /* requests have had their turn */
	enum ack_wait ack_wait;	   /* what the ACK waits for until ack_due */
	bool last_is_silent; /* the last message is a WRITE of which the application learns nothing
			      */
	/* The last ACK that waited for a post got none: behind messages that are not silent, ... */
	bool app_never_replies[2]; /* ... and behind those that are */
};

struct eng_qp {
	enum eng_qp_type type;
	enum eng_qp_state state;
	uint32_t qpn;
	bool rq_shared;
	bool reports_credits; /* rules C2, C7 */
	bool signal_all;
	bool lossless_transport;
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
	struct resp_res *resp_res; /* owner's memory, a power of two of entries; NULL: none */
	uint32_t resp_res_slots;
	uint64_t counters[ENG_COUNTER_COUNT];
	struct responder resp;
	uint32_t max_recv_sge;
	struct eng_sge taken_sge[]; /* of the receive request under way */
};

static inline void count(struct eng_qp *qp, enum eng_counter counter)
{
	qp->counters[counter]++;
}

static inline struct eng_send_wqe *sq_at(const struct eng_qp *qp, uint32_t index)
{
	return eng_ring_slot(qp->sq, index);
}

/* Does the request make a completion also when all goes well? */
static inline bool is_signaled(const struct eng_qp *qp, const struct eng_send_wqe *wqe)
{
	return qp->signal_all || (wqe->flags & ENG_SIGNALED);
}

/* Answers its peer, and is answered. */
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
