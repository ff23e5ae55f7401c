/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Invariants, checked from the outside: from the posted work, the packets that the engine sends and
 * receives, and its completions; of the engine's state only its public functions are used
 * (eng_qp_query(), eng_deadline()).  None of its code is used: tables and arithmetic are a second
 * derivation.
 * - oracle_requests.c: request packets: order, form, credits, fence, depth, retries
 * - oracle_arrivals.c: responses as the requester must handle them, timeouts
 * - oracle_responses.c: response packets: reported credits, order, NAKs; pending responses
 * - oracle_completions.c: completions and memory
 * - oracle_uc_ud.h: all of that for UC and UD
 * - oracle_schedule.c: reasons and durations of delays; inputs of the engine
 * - oracle_ecn.c: congestion notification, and the window
 * - oracle_flows.c: shares of flows through one bottleneck
 *
 * Positions are PSNs without wrap, see script.h.
 */
#ifndef UROCE_SIM_ORACLE_H
#define UROCE_SIM_ORACLE_H

#include "engine/engine.h"
#include "sim/plan/script.h"
#include "wire/packet.h"

struct sim_end;
struct net_packet;

/* Maximum number of local requests in a send queue. */
#define ASKING_LOCALS 64

/* An end as requester. */
struct asking {
	int64_t high;	     /* lowest position that has never been sent */
	int64_t next;	     /* next position to be sent; below high while sending again */
	int64_t unacked;     /* lowest position that no delivered response acknowledges */
	int64_t asked;	     /* highest position in flight with AckReq; -1: none */
	uint32_t begun;	     /* number of messages of which a packet has been sent */
	uint32_t oldest;     /* message that unacked belongs to */
	uint32_t settled;    /* number of messages whose result has been checked */
	uint8_t *handed_out; /* [position]: number of times sent, without rollbacks */
	uint32_t room;
	uint8_t *placed; /* [position]: its READ response arrived after a missing one */
	uint32_t placed_room;
	int64_t placed_to;	/* one past the last placed response, or an ACK after the hole */
	int64_t parts_to;	/* one past the last READ part requested again */
	bool hears_credits;	/* the peer has reported credits */
	uint64_t repeat_serial; /* serial of the packet that began going back, or of the last repair
				 */
	/*
	 * Values of unacked (-1: none) at the last NAK that asked to go back, at the first such NAK
	 * since the requester last went back, and at the first one of the time before that.
	 */
	int64_t nak_cause, nak_first, nak_cause_before;
	bool waited;	     /* a timeout, probe, repair or RNR wait asks to go back instead */
	bool may_repeat;     /* a NAK, an RNR NAK or a timeout asks to go back to unacked */
	bool may_ask;	     /* an ACK probe may be sent */
	int64_t repaired_to; /* one past the last packet of the last repair */
	bool jumped;	     /* response beyond a repair: the peer keeps out-of-order packets */

	/*
	 * rule C12, derived differently: the n-th message that uses a receive request has credit if
	 * n is at most the number of such messages that the MSN counts, plus the credits.
	 */
	uint64_t allowed; /* by all AETHs received */
	uint64_t granted; /* by the AETHs that the requester must have used */

	/*
	 * A limited request may wait for credits if the peer has sent unsolicited ACKs with
	 * credits, and no longer than the last RNR NAK made it wait (0: there was none).
	 */
	bool volunteers;
	uint64_t last_rnr_ns;
	uint64_t news_from; /* start of the wait; ENG_NEVER: no request waits */

	uint64_t rnr_until;
	uint32_t rnr_count, retry_count; /* since the last progress */
	uint64_t timer_from;		 /* the ACK timer cannot have started earlier */
	bool told; /* the peer has reported a loss since the last progress or timeout */
	uint64_t probed_at;
	uint64_t repeated_at; /* time of the last duplicate READ or Atomic response */
	bool lossy;   /* the peer has reported a loss since the last timeout: probes are allowed */
	bool probing; /* a probe: only the oldest packet may be sent until a response */
	bool probed;  /* a probe without repair was sent since the last progress */
	/* Lost packets that a timeout may have to recover. */
	int64_t lost_response; /* highest position of a response that was lost */
	int64_t lost_repeat;   /* highest position of a request that was lost when sent again */
	int64_t lost_last;     /* highest position of a request that was lost */
	uint64_t lost_serial;  /* serial of its last transmission */
	/*
	 * Since the last progress: an ACK probe has been sent; one has arrived at a peer that had
	 * something new to acknowledge.
	 */
	bool solicitation_sent, solicitation_came;
	/*
	 * Keys of the local requests executed, their number, and the number of those whose order
	 * has been checked.
	 */
	uint32_t local_keys[ASKING_LOCALS];
	uint32_t local_count, locals_seen;
	uint64_t timeouts, probes, solicitations, repeats, naks, rnr_naks, limited;
};

/* An end as responder. */
struct answering {
	uint32_t shown;	     /* number of unsolicited ACKs without new credits */
	uint32_t kept_count; /* number of packets in end.kept */
	bool filled;	     /* the hole before them has just been filled */
	bool came;	     /* the expected request has just arrived */
	bool after_rnr;	     /* the expected request was refused by an RNR NAK */
	bool any_kept;	     /* some of the kept packets have been executed */
	int64_t expected;
	uint32_t done;	      /* messages executed: the MSN (rule C11) */
	uint32_t taken;	      /* number of receive requests taken by messages */
	bool holding;	      /* a receive request is taken and not completed */
	uint32_t held;	      /* number of that request in its queue */
	uint32_t received;    /* number of receive completions due so far */
	uint64_t last_serial; /* latest request received that is not a duplicate */
	uint64_t ahead_since; /* time of the last out-of-order request without a pending NAK */
	int64_t ahead_to;     /* highest position received out of order */
	int64_t answered;     /* highest position of a positive response */
	int64_t settled;      /* highest position that a response of any kind acknowledges */
	int64_t again_to;     /* end of the READ responses to repeat; or -1 */
	int64_t ack_asked;    /* highest executed position with AckReq */
	bool rnr_owed, nak_owed, fatal_owed, repeat_owed;
	int64_t repeat_at; /* position of the duplicate that repeat_owed is for */
	bool naked;	   /* a NAK was sent; the expected request has not arrived since */
	bool established;  /* an expected request has arrived */
	bool fatal;	   /* a request arrived that ends the connection */
	uint8_t fatal_syndrome;
	uint32_t asked;	 /* number of requests to acknowledge since the last ACK */
	uint64_t told;	 /* number of receive requests advertised, from the first one ever */
	uint8_t *starts; /* [position]: first (1) or last (2) position of a READ request */
	uint32_t room;
	uint32_t invalidated; /* number of keys that executed SENDs invalidate */
	uint32_t final_acks;  /* number of final ACKs that may still be sent */
	bool answers_again; /* a duplicate READ or Atomic has arrived since all responses were sent
			     */
	uint64_t acks, unsolicited;
};

/* An end as receiver of UC or UD. */
struct listening {
	int64_t expected;
	uint32_t under_way; /* UC: message received in part, without a loss; or NO_INDEX */
	uint32_t due;	    /* message whose receive completion is due at once, or NO_INDEX */
	const struct sim_end *sender; /* sender of due */
	struct extent written; /* part of the remote memory that the last packet has written */
	uint64_t dropped;      /* UD: datagrams that were not for this QP, or had no room */
};

/* State of congestion notification at an end, as sender and receiver of CNPs. */
struct telling {
	uint64_t marks; /* number of marks received since the last CNP */
	uint64_t cnps, cnp_at;
	bool owed;
	uint64_t cwnd;	/* congestion window at the last check */
	int64_t cut_at; /* asking.high when the window was last reduced */
};

struct oracle {
	struct asking asking;
	struct answering answering;
	struct listening listening;
	struct telling telling;
	uint32_t completed;	     /* one past the message of the last send completion */
	uint32_t receives_completed; /* number of receive requests completed successfully */
	uint32_t receives_erred;     /* number of receive requests that failed after those */
	uint32_t next_taking; /* peer's message of the next receive completion, or before it */
	bool erred;	      /* an error completion occurred: only flushed ones may follow */
	bool may_be_in_error;
	uint32_t invalidated; /* number of keys invalidated for the peer's SENDs */
	bool broke;	      /* went to ERR by itself */
	bool comm_est;
	bool credits_hidden; /* its peer does not report credits */
	uint32_t drains, drained_events, last_wqes;
	bool in_final;
};

void oracle_start(struct sim_end *end);
void oracle_free(struct sim_end *end);

/* The engine keeps the out-of-order request that has just arrived. */
void oracle_kept(struct sim_end *end, const struct wire_packet *packet);
/*
 * Executes the kept request at the expected position.  Returns false if that must not happen now,
 * or there is none.
 */
bool oracle_kept_turn(struct sim_end *end);
/* eng_receive() has returned: requests after a filled hole have been executed. */
void oracle_kept_over(struct sim_end *end);
/*
 * oracle_repair(), oracle_request(), oracle_response(): a packet of a burst; a repair is a
 * retransmission without going back.  taken_back: eng_tx_rollback() will follow.
 */
void oracle_repair(struct sim_end *end, const struct wire_packet *packet, bool taken_back);
void oracle_request(struct sim_end *end, const struct wire_packet *packet, bool taken_back);
/* All packets of a burst have been passed in. */
void oracle_burst_ends(struct sim_end *end);
/* The burst that begins with this request packet is rolled back. */
void oracle_taken_back(struct sim_end *end, const struct wire_packet *first);
void oracle_response(struct sim_end *end, const struct wire_packet *packet);
/* Returns true if responses to READs or Atomics are pending. */
bool oracle_pauses(const struct sim_end *end);
/* The same, also for a QP that has failed since: these responses are sent before its NAK. */
bool oracle_has_answers(const struct sim_end *end);
/* Returns true if the responder must send something now. */
bool oracle_owes_answer(const struct sim_end *end);
/* A burst has been sent: no more may be in flight than the window allows. */
void oracle_in_flight(struct sim_end *end);
/* A packet has passed the rx demux and is passed to the engine next. */
void oracle_arrival(struct sim_end *end, const struct wire_packet *packet,
		    const struct net_packet *from);
/*
 * The engine has been called: checks that due completions were reported, and the reason of an error
 * state.
 */
void oracle_after_step(struct sim_end *end);
/* A packet from this end was lost. */
void oracle_lost(struct sim_end *end, const struct net_packet *packet);
/* Called before and after eng_expire(); timeout: it has counted a timeout. */
void oracle_before_expiry(struct sim_end *end);
void oracle_after_expiry(struct sim_end *end, bool timeout);
/* eng_expire() has counted a probe; repair: one that is a retransmission. */
void oracle_tlp(struct sim_end *end, bool repair);
/* eng_expire() has counted an ACK probe. */
void oracle_solicitation(struct sim_end *end);
/* eng_transmit() had nothing to send for sides, for this reason. */
void oracle_nothing_to_send(struct sim_end *end, enum eng_tx reason, unsigned int sides);
void oracle_completion(struct sim_end *end, const struct eng_wc *wc);
/* The engine invalidates a key, for a local request or for one of the peer's. */
void oracle_invalidate(struct sim_end *end, uint32_t key);
/* The engine binds a window. */
void oracle_bind(struct sim_end *end, const struct eng_send_wqe *wqe);
/* Memory of this end has been deregistered. */
void oracle_gone(struct sim_end *end);
void oracle_event(struct sim_end *end, enum eng_event event);
/* The host is about to destroy the QP and sends its final ACKs. */
void oracle_final_acks(struct sim_end *end);
/* The host puts the QP into ERR. */
void oracle_to_error(struct sim_end *end);
/* Checks at the end of a round, when nothing is under way. */
void oracle_final(struct sim_end *end);
/* Returns true if all of this end's messages are acknowledged and completed. */
bool oracle_all_done(const struct sim_end *end);

/*
 * oracle_ecn.c: a CNP is sent; a marked packet is received; every pending CNP must have been sent.
 */
void oracle_cnp(struct sim_end *end, const struct wire_packet *packet);
void oracle_marked(struct sim_end *end);
void oracle_tells(struct sim_end *end);
/* A packet has been received: loss recovery must end when its missing packets are acknowledged. */
void oracle_loss_state(struct sim_end *end);
/* A sender with ENG_CC_NETWORK has received a packet, or its timer has expired. */
void oracle_cwnd(struct sim_end *end);

/* oracle_schedule.c: there are no responses to send, for this reason. */
void oracle_responses_wait(struct sim_end *end, enum eng_tx reason);
/*
 * Receives were posted, eng_receive_posted() returned false, and before that everything had been
 * sent that could be.
 */
void oracle_receives_say_nothing(struct sim_end *end);
/*
 * shared: the engine was informed that other QPs wait for the in-flight budget; full: that the
 * transport has little room.
 */
void oracle_burst_minds(struct sim_end *end, const struct eng_burst *burst, bool shared, bool full);
/* Returns true if requests may wait for the in-flight budget. */
bool oracle_share_is_used_up(const struct sim_end *end);
bool oracle_is_too_long(const struct sim_end *end);

/* Functions shared by the files of the oracle. */
/*
 * Bytes in flight as a socket charges them; share: as the host's in-flight budget counts them;
 * requests, unless NULL: their number.
 */
uint64_t asking_under_way(const struct sim_end *end, bool share, uint32_t *requests);
/* Returns true if the end is between two messages and has no receives to report. */
bool oracle_lacks_receives(const struct sim_end *end);
/* The bits of the opcode that name the end's service. */
uint8_t oracle_service(const struct sim_end *end);
void oracle_check_flushed(struct sim_end *end);
/*
 * Checks a send completion of end: completions are in order; error() checks an unsuccessful one; a
 * successful one is due when the whole message has been acknowledged or, for UC and UD, sent; when
 * names that condition in the failure text.
 */
void oracle_sent_completion(struct sim_end *end, const struct eng_wc *wc,
			    void (*error)(struct sim_end *end, const struct eng_wc *wc),
			    const char *when);
void oracle_receive_error(struct sim_end *end, const struct eng_wc *wc);
uint8_t asking_opcode(const struct message *message, bool first, bool last);
bool asking_remote_right(const struct message *message, const struct wire_packet *packet,
			 uint32_t offset);
bool asking_payload_right(const struct sim_end *end, const struct message *message,
			  const struct wire_packet *packet, uint32_t offset);
void asking_arrival(struct sim_end *end, const struct wire_packet *packet);
void answering_arrival(struct sim_end *end, const struct wire_packet *packet, uint64_t serial);
void asking_local(struct sim_end *end, uint32_t key);
void asking_locals(struct sim_end *end);
bool asking_may_ask(const struct sim_end *end);
/* How long a request without credit may wait for a credit update; 0: not at all. */
uint64_t asking_wait_ns(const struct sim_end *end);
void asking_pass_locals(struct sim_end *end);
void asking_nak_useless(struct sim_end *end);
/* A duplicate has arrived at the peer: notes whether it is an ACK probe whose ACK is new. */
void asking_solicitation_came(struct sim_end *end, int64_t position,
			      const struct wire_packet *packet);
/*
 * Returns true if the message cannot be executed since memory was deregistered, at its sender or at
 * its receiver.
 */
bool oracle_lacks_local(const struct sim_end *end, const struct message *message);
uint8_t oracle_lacks_remote(const struct sim_end *end, const struct message *message);
void asking_nothing(struct sim_end *end, enum eng_tx reason);
void answering_nothing(struct sim_end *end);
int64_t oracle_position(uint32_t psn, uint32_t start, int64_t near);
/* A message takes the next request of the receive queue. */
void oracle_take(struct sim_end *end);
/* The receive request that the message took completes. */
void oracle_let_go(struct sim_end *end);
uint32_t oracle_credits(uint32_t code);
uint32_t oracle_credit_code(uint32_t credits);
uint64_t oracle_rnr_ns(uint32_t code);

#endif
