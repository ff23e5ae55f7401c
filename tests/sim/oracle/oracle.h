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

/* As many local requests as a send queue holds. */
#define ASKING_LOCALS 64

/* An end as requester. */
struct asking {
	int64_t high;	     /* the next position that has never been handed out */
	int64_t next;	     /* next position to be sent; below high for a repeat */
	int64_t unacked;     /* the first that the responses delivered do not acknowledge */
	int64_t asked;	     /* the last that asks for an answer, among those under way; -1: none */
	uint32_t begun;	     /* messages of which a packet has been handed out */
	uint32_t oldest;     /* message of unacked */
	uint32_t settled;    /* messages whose outcome has been looked at */
	uint8_t *handed_out; /* [position]: how often, without those taken back */
	uint32_t room;
	uint8_t *placed; /* [position]: its READ response has come ahead of its turn */
	uint32_t placed_room;
	int64_t placed_to;	/* behind the last of them */
	int64_t parts_to;	/* since the first of them: behind the last that was asked for */
	bool hears_credits;	/* the peer has reported credits */
	uint64_t repeat_serial; /* of the packet with which the last going back began */
	/*
	 * Where unacked stood when the last NAK asked to go back, and the first one since that was
	 * last done; and the first one of the time before.  -1: there was none.
	 */
	int64_t nak_cause, nak_first, nak_cause_before;
	bool waited;	     /* ... or rather a timeout or an RNR wait did */
	bool may_repeat;     /* a NAK, an RNR NAK or a timeout asks to go back to unacked */
	bool may_ask;	     /* an ACK may be solicited, by a packet of the past */
	int64_t repaired_to; /* behind the last repair */
	bool jumped;	     /* an answer has been beyond one: the peer keeps what comes early */

	/*
	 * rule C12, derived differently: the n-th message that uses a receive request has credit if
	 * n is at most the number of such messages that the MSN counts, plus the credits.
	 */
	uint64_t allowed; /* by all AETHs that came */
	uint64_t granted; /* by those that must have been taken as news */

	/*
	 * A limited request may wait for news of credits where they have come unasked, and no
	 * longer than the last RNR NAK made it wait (0: there was none).
	 */
	bool volunteers;
	uint64_t last_rnr_ns;
	uint64_t news_from; /* it has waited from then on; ENG_NEVER: none does */

	uint64_t rnr_until;
	uint32_t rnr_count, retry_count; /* since the last progress */
	uint64_t timer_from;		 /* the ACK timer cannot have started earlier */
	bool told; /* the peer has reported a loss since the last progress or timeout */
	uint64_t probed_at;
	uint64_t repeated_at; /* a READ response came for what had come before */
	bool lossy;   /* the peer has reported a loss since the last timeout: probes are allowed */
	bool probing; /* then one packet goes alone, until it is answered */
	bool probed;  /* the same since the last progress, whatever the peer has reported since */
	/* Lost packets that a timeout may have to recover. */
	int64_t lost_response; /* highest position of a response that was lost */
	int64_t lost_repeat;   /* highest of a repeated request that was lost */
	int64_t lost_last;     /* highest of a request that was lost */
	uint64_t lost_serial;  /* and when that was handed out, for the last time */
	/*
	 * Since the last progress: has a solicitation been sent, and has one come to a peer that
	 * can answer it?
	 */
	bool solicitation_sent, solicitation_came;
	/* Local requests executed, and those of them whose place has been checked. */
	uint32_t local_keys[ASKING_LOCALS];
	uint32_t local_count, locals_seen;
	uint64_t timeouts, probes, solicitations, repeats, naks, rnr_naks, limited;
};

/* An end as responder. */
struct answering {
	uint32_t shown;	     /* number of unsolicited ACKs without new credits */
	uint32_t kept_count; /* of end.kept */
	bool filled;	     /* the gap before them has just been filled, */
	bool came;	     /* the expected request has */
	bool after_rnr;	     /* what is expected was refused by an RNR NAK */
	bool any_kept;	     /* ... and some of them have had their turn */
	int64_t expected;
	uint32_t done;	      /* messages executed: the MSN (rule C11) */
	uint32_t taken;	      /* receive requests taken by messages */
	bool holding;	      /* ... of which held is not completed */
	uint32_t held;	      /* number of the request in its queue */
	uint32_t received;    /* receive completions due */
	uint64_t last_serial; /* latest request that came */
	uint64_t ahead_since; /* when a request came too early for the last time */
	int64_t ahead_to;     /* highest position that came too early */
	int64_t answered;     /* highest position of a positive response */
	int64_t settled;      /* highest position that an answer of any kind covers */
	int64_t again_to;     /* end of the READ responses to repeat; or -1 */
	int64_t ack_asked;    /* highest executed position that asks for an answer */
	bool rnr_owed, nak_owed, fatal_owed, repeat_owed;
	int64_t repeat_at; /* position of the duplicate that repeat_owed is for */
	bool naked;	   /* a NAK has gone, and the expected request has not come since */
	bool established;  /* an expected request has come */
	bool fatal;	   /* the request came that ends it all */
	uint8_t fatal_syndrome;
	uint32_t asked;	 /* requests come since the last ACK that an ACK may answer */
	uint64_t told;	 /* receive requests promised, counted from the first one ever */
	uint8_t *starts; /* [position]: a READ was asked for from there on (1), up to there (2) */
	uint32_t room;
	uint32_t invalidated; /* number of keys that SENDs are to invalidate so far */
	uint32_t final_acks;  /* ACKs without news that may still go */
	bool answers_again; /* a duplicate READ or Atomic has arrived since all responses were sent
			     */
	uint64_t acks, unsolicited;
};

/* An end as receiver of UC or UD. */
struct listening {
	int64_t expected;
	uint32_t
		under_way; /* UC: message of which all has come so far, but not its end; or NO_INDEX
			    */
	uint32_t due;	   /* message that must be responded to at once, or NO_INDEX */
	const struct sim_end *sender; /* of due */
	struct extent written;	      /* by the last packet, in the remote memory */
	uint64_t dropped;	      /* UD: datagrams that were not for this QP, or had no room */
};

/* State of congestion notification at an end, as sender and receiver of CNPs. */
struct telling {
	uint64_t marks; /* that have come since the last CNP */
	uint64_t cnps, cnp_at;
	bool owed;
	uint64_t cwnd;	/* when last looked at */
	int64_t cut_at; /* the window has been cut when all before it had been handed out */
};

struct oracle {
	struct asking asking;
	struct answering answering;
	struct listening listening;
	struct telling telling;
	uint32_t completed;	     /* send requests that completions are past */
	uint32_t receives_completed; /* receive requests, with success */
	uint32_t receives_erred;     /* after those */
	uint32_t next_taking;	     /* peer's message that the next receive completion is of */
	bool erred;		     /* an error completion came: only flushed ones from now on */
	bool may_be_in_error;
	uint32_t invalidated; /* keys of SENDs that the engine has invalidated */
	bool broke;	      /* went to ERR by itself */
	bool comm_est;
	bool credits_hidden; /* its peer does not report credits */
	uint32_t drains, drained_events, last_wqes;
	bool in_final;
};

void oracle_start(struct sim_end *end);
void oracle_free(struct sim_end *end);

/* A request or response packet of a burst; taken_back: eng_tx_rollback() will follow. */
/* The request that has just come too early is kept by the engine. */
void oracle_kept(struct sim_end *end, const struct wire_packet *packet);
/* The next one that is kept has its turn, if it has. */
bool oracle_kept_turn(struct sim_end *end);
/* The engine has returned from the request that filled a gap. */
void oracle_kept_over(struct sim_end *end);
void oracle_repair(struct sim_end *end, const struct wire_packet *packet, bool taken_back);
void oracle_request(struct sim_end *end, const struct wire_packet *packet, bool taken_back);
/* The packets of a burst have all been shown. */
void oracle_burst_ends(struct sim_end *end);
/* The burst that begins with this request packet goes back. */
void oracle_taken_back(struct sim_end *end, const struct wire_packet *first);
void oracle_response(struct sim_end *end, const struct wire_packet *packet);
/* Returns true if responses to READs or Atomics are pending. */
bool oracle_pauses(const struct sim_end *end);
/* ... also of a queue pair that has failed since: they go before its NAK. */
bool oracle_has_answers(const struct sim_end *end);
/* Returns true if the responder must send something now. */
bool oracle_owes_answer(const struct sim_end *end);
/* A burst has gone: is no more under way than the window allows? */
void oracle_in_flight(struct sim_end *end);
/* A packet has passed the rx demux and goes to the engine next. */
void oracle_arrival(struct sim_end *end, const struct wire_packet *packet,
		    const struct net_packet *from);
/* The engine has done something: completions are due, or an error state is explained. */
void oracle_after_step(struct sim_end *end);
/* A packet from this end was lost. */
void oracle_lost(struct sim_end *end, const struct net_packet *packet);
/* The engine's deadline is over; eng_expire() follows, and counts a timeout or does not. */
void oracle_before_expiry(struct sim_end *end);
void oracle_after_expiry(struct sim_end *end, bool timeout);
/* ... and counts a probe. */
void oracle_tlp(struct sim_end *end, bool repair);
/* ... or a solicitation. */
void oracle_solicitation(struct sim_end *end);
/* eng_transmit() had nothing to send for sides, for this reason. */
void oracle_nothing_to_send(struct sim_end *end, enum eng_tx reason, unsigned int sides);
void oracle_completion(struct sim_end *end, const struct eng_wc *wc);
/* The engine invalidates a key, for a local request or for one of the peer's. */
void oracle_invalidate(struct sim_end *end, uint32_t key);
/* The engine binds a window. */
void oracle_bind(struct sim_end *end, const struct eng_send_wqe *wqe);
/* Registered memory of this end goes. */
void oracle_gone(struct sim_end *end);
void oracle_event(struct sim_end *end, enum eng_event event);
/* The host is about to destroy the QP and sends its final ACKs. */
void oracle_final_acks(struct sim_end *end);
/* The host puts the QP into ERR. */
void oracle_to_error(struct sim_end *end);
/* Everything has come to rest. */
void oracle_final(struct sim_end *end);
/* Returns true if all of this end's messages are acknowledged and completed. */
bool oracle_all_done(const struct sim_end *end);

/* oracle_ecn.c: a CNP leaves; a marked packet comes; all that was owed must have left. */
void oracle_cnp(struct sim_end *end, const struct wire_packet *packet);
void oracle_marked(struct sim_end *end);
void oracle_tells(struct sim_end *end);
/* A packet has come: does loss recovery end when what it waits for has come? */
void oracle_loss_state(struct sim_end *end);
/* Something has come to a sender whose window goes by the law of networks, or a timer expired. */
void oracle_cwnd(struct sim_end *end);

/* oracle_schedule.c: there are no responses to send, for this reason. */
void oracle_responses_wait(struct sim_end *end, enum eng_tx reason);
/* eng_receive_posted() was false, and all that could be sent had been sent before. */
void oracle_receives_say_nothing(struct sim_end *end);
/*
 * shared: the engine was informed that others wait for the in-flight budget; full: that there is
 * little room.
 */
void oracle_burst_minds(struct sim_end *end, const struct eng_burst *burst, bool shared, bool full);
/* Returns true if requests may wait for the in-flight budget. */
bool oracle_share_is_used_up(const struct sim_end *end);
bool oracle_is_too_long(const struct sim_end *end);

/* Shared by the parts. */
/*
 * Bytes in flight as a socket charges them; share: as the host's in-flight budget counts them;
 * requests, unless NULL: their number.
 */
uint64_t asking_under_way(const struct sim_end *end, bool share, uint32_t *requests);
/* Returns true between two messages if it has no receives to report. */
bool oracle_lacks_receives(const struct sim_end *end);
/* The bits of the opcode that name the end's service. */
uint8_t oracle_service(const struct sim_end *end);
void oracle_check_flushed(struct sim_end *end);
/*
 * The next completion of end's posted requests, in order: error judges one without success; a
 * successful one is due when all of the message is acknowledged, or sent, depending on when.
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
/* A packet that the peer has had comes there again: is it a solicitation, and will the ACK do? */
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
/* The request that it took completes. */
void oracle_let_go(struct sim_end *end);
uint32_t oracle_credits(uint32_t code);
uint32_t oracle_credit_code(uint32_t credits);
uint64_t oracle_rnr_ns(uint32_t code);

#endif
