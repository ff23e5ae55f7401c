/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "tlp.h"

#include "codes.h"
#include "credit.h"
#include "cwnd.h"
#include "gaps.h"
#include "interval.h"
#include "law.h"
#include "op.h"
#include "repair.h"
#include "sendqueue.h"
#include "solicit.h"

/* Above the time between two bursts of READ responses at the lowest rate (pacing.c). */
#define TLP_READ_MIN_NS UINT64_C(5000000)
/* Of a network, where responses have been timed; a longer one counts at once. */
#define TLP_SILENCES 4
#define SILENCE_MIN_NS UINT64_C(250000)
#define SILENCE_DECAY 64
#define TLP_ROUND_TRIPS 4
/*
 * To a peer of a network that keeps what comes early a probe is one packet.  A lost NAK is found so
 * much sooner: ib_send_bw with a loss of 1 % has 0.978 of the line and not 0.975 (each of three
 * turns).  After one and a half it is 0.980, but the simulator's flows send much twice then.
 */
#define TLP_ROUND_TRIPS_REPAIRED 3
/* What stays doubled leaves time for some probes before the timeout. */
#define TLP_MAX_DOUBLED 16
#define TLP_PART_OF_TIMEOUT 8
/* The probe of a repair comes after this part of the timeout at the latest. */
#define TLP_REPAIR_PART 2
/* So many times its wait, a timeout leaves time for a probe. */
#define TLP_TIMEOUT 4
#define LOSSY_NS UINT64_C(1000000000)
#define ROUND_TRIP_DECAY 8

bool tlp_has_time(const struct eng_qp *qp)
{
	return qp->attr.timeout_code != 0 &&
	       ack_timeout_ns(qp->attr.timeout_code) >= TLP_TIMEOUT * TLP_MIN_NS;
}

bool tlp_has_time_for_reads(const struct eng_qp *qp)
{
	return tlp_has_time(qp) && ack_timeout_ns(qp->attr.timeout_code) > TLP_READ_MIN_NS;
}

void tlp_told_of_loss(struct eng_qp *qp, uint64_t now)
{
	qp->req.tlp.lossy_until = now + LOSSY_NS;
}

void tlp_stop(struct eng_qp *qp)
{
	struct tlp *tlp = &qp->req.tlp;

	tlp->lossy_until = 0;
	tlp->reads_told = false;
	tlp->marked = false;
	tlp->alone = false;
	tlp->sent = 0;
	tlp->doubted_ns = 0;
}

void tlp_read_response(struct eng_qp *qp, uint64_t since, uint64_t now)
{
	struct tlp *tlp = &qp->req.tlp;

	if (!law_is_of_networks(qp))
		return;
	tlp->reads_told = !qp->ecn.cnp && credit_is_told(qp);
	if (tlp->repeated_at > since)
		since = tlp->repeated_at;
	/* It counts only if the probe turns out to have been needless. */
	if (tlp->sent > 0) {
		tlp->doubted_ns = elapsed(since, now);
		return;
	}
	interval_keep_longest(&tlp->silence_ns, elapsed(since, now), SILENCE_DECAY);
}

void tlp_repeated_response(struct eng_qp *qp, uint64_t now)
{
	struct tlp *tlp = &qp->req.tlp;

	if (tlp->doubted_ns > tlp->silence_ns)
		tlp->silence_ns = tlp->doubted_ns;
	tlp->doubted_ns = 0;
	tlp->repeated_at = now;
}

/*
 * A round trip, or most of it, has passed when what had been sent at some time is acknowledged.  No
 * measure when some of it was sent again; then the wait stays doubled until there is one, for a
 * queue may have become longer than the wait, and each needless probe would prevent the next
 * measure.
 */
inline void tlp_progress(struct eng_qp *qp, uint64_t now)
{
	struct requester *req = &qp->req;
	struct tlp *tlp = &req->tlp;

	tlp->doubled += tlp->sent;
	if (tlp->doubled > TLP_MAX_DOUBLED)
		tlp->doubled = TLP_MAX_DOUBLED;
	tlp->sent = 0;
	tlp->alone = false;
	if (tlp->marked && psn_diff(req->unacked_psn, tlp->mark_psn) < 0)
		return;
	if (tlp->marked) {
		tlp->doubled = 0;
		interval_keep_longest(&tlp->round_trip_ns, elapsed(tlp->marked_at, now),
				      ROUND_TRIP_DECAY);
	}
	tlp->marked = req->next_psn == req->end_psn && !req->repair.waits;
	tlp->mark_psn = req->end_psn;
	tlp->marked_at = now;
}

/* Is the oldest one answered at once, or, as a READ is, at a rate that only the peer knows? */
static bool is_answered_by_and_by(const struct eng_qp *qp)
{
	return op_is_read_or_atomic(sq_at(qp, qp->sq->tail)->op);
}

static uint64_t still_doubled(const struct tlp *tlp, uint64_t wait, uint64_t timeout_ns)
{
	uint64_t most = timeout_ns / TLP_PART_OF_TIMEOUT;

	if (wait << tlp->doubled <= most)
		return wait << tlp->doubled;
	return wait > most ? wait : most;
}

/* The longest wait in silence for the answer to a READ or Atomic, where that has been measured. */
static uint64_t silence_at_most(const struct tlp *tlp)
{
	uint64_t silence = tlp->silence_ns;

	if (silence == 0)
		return ENG_NEVER;
	return TLP_SILENCES * (silence < SILENCE_MIN_NS ? SILENCE_MIN_NS : silence);
}

/*
 * For the answer to a READ or Atomic.  What has been asked for again is behind what CNPs slow down,
 * if there are any: then the silence between two responses says nothing of it.
 */
static uint64_t wait_for_read(const struct tlp *tlp, uint64_t wait, bool again)
{
	uint64_t silence = again && !tlp->reads_told ? ENG_NEVER : silence_at_most(tlp);

	if (!again && wait < TLP_READ_MIN_NS)
		wait = TLP_READ_MIN_NS;
	return silence < wait ? silence : wait;
}

static bool is_lossy(const struct eng_qp *qp)
{
	return qp->req.last_progress < qp->req.tlp.lossy_until;
}

/* Since when has nothing been heard?  The answer to a sentinel has told of a lost repair. */
static uint64_t silent_since(const struct requester *req)
{
	const struct repair *repair = &req->repair;

	if (repair->waits && repair->told_at > req->last_progress)
		return repair->told_at;
	return req->last_progress;
}

/*
 * When this wait is over.  A responder that repeats what has come will get to what is missing, but
 * is not waited for until the timeout.
 */
static uint64_t wait_ends(const struct eng_qp *qp, uint64_t wait, uint64_t timeout_ns)
{
	const struct requester *req = &qp->req;
	uint64_t silent = silent_since(req) + wait, repeating = req->tlp.repeated_at + wait,
		 latest = req->last_progress + timeout_ns / TLP_REPAIR_PART;

	if (!is_answered_by_and_by(qp) || repeating <= silent || latest <= silent)
		return silent;
	return repeating < latest ? repeating : latest;
}

/*
 * The first thing that is tried in a silence is a sentinel (repair.h), sooner than a probe may
 * repeat anything, and also where nothing has been lost of late: a window that has grown for a long
 * time loses its end to a full queue, and no NAK tells of that.
 */
static bool sentinel_first(const struct eng_qp *qp)
{
	const struct requester *req = &qp->req;

	return law_is_of_networks(qp) && req->tlp.sent == 0 && !req->repair.waits &&
	       req->next_psn == req->end_psn && req->repair.sentinel_at < req->last_progress &&
	       repair_may_have_sentinel(qp);
}

static uint64_t round_trip_and_a_half(const struct tlp *tlp)
{
	return tlp->round_trip_ns + tlp->round_trip_ns / 2;
}

uint64_t tlp_deadline(const struct eng_qp *qp, uint64_t timeout_ns)
{
	const struct requester *req = &qp->req;
	const struct tlp *tlp = &req->tlp;
	uint64_t wait = tlp->round_trip_ns * TLP_ROUND_TRIPS,
		 asked = gaps_exist(qp) ? gaps_wait_ns(qp) : 0;
	bool repairs = repair_is_unanswered(qp), sentinel = sentinel_first(qp);

	if (req->repair.confirmed && law_is_of_networks(qp))
		wait = tlp->round_trip_ns * TLP_ROUND_TRIPS_REPAIRED;
	/* It costs little, and nothing else is sent meanwhile. */
	if (repairs)
		wait = round_trip_and_a_half(tlp);
	if (sentinel)
		wait = is_answered_by_and_by(qp) ? tlp->silence_ns : round_trip_and_a_half(tlp);
	if (asked > 0)
		wait = asked;
	if (!(is_lossy(qp) || sentinel || (tlp->reads_told && is_answered_by_and_by(qp))) ||
	    qp->attr.retry_count == 0)
		return ENG_NEVER;
	if (wait < TLP_MIN_NS)
		wait = TLP_MIN_NS;
	if (is_answered_by_and_by(qp) && !sentinel)
		wait = wait_for_read(tlp, wait, repairs || asked > 0);
	wait = still_doubled(tlp, wait, timeout_ns);
	/* The peer has told of what is missing: a slow round trip is no reason to time out. */
	if (repairs && wait > timeout_ns / TLP_REPAIR_PART)
		wait = timeout_ns / TLP_REPAIR_PART;
	wait <<= tlp->sent;
	if (wait >= timeout_ns)
		return ENG_NEVER;
	return wait_ends(qp, wait, timeout_ns);
}

static void send_probe(struct eng_qp *qp, uint64_t now)
{
	bool lossy = is_lossy(qp);

	/* It is a packet, or those that were asked for before, and makes no queue. */
	if (gaps_probe(qp, now) || (lossy && repair_probe(qp, now)))
		return;
	/* Where no response has told of a loss, it is the first, if it is one. */
	if (lossy)
		cwnd_lost_again(qp);
	else if (!qp->req.cwnd_recovering)
		cwnd_loss(qp);
	qp->req.tlp.alone = true;
	sendqueue_go_back(qp);
}

/* Asked so late that a probe is due as well, that is sent. */
static bool send_sentinel(struct eng_qp *qp, uint64_t timeout_ns, uint64_t now)
{
	if (!sentinel_first(qp))
		return false;
	qp->req.repair.sentinel_at = now;
	if (tlp_deadline(qp, timeout_ns) > now) {
		solicit_begin(qp);
		return true;
	}
	qp->req.repair.sentinel_at = 0;
	return false;
}

void tlp_begin(struct eng_qp *qp, uint64_t timeout_ns, uint64_t now)
{
	struct tlp *tlp = &qp->req.tlp;

	if (send_sentinel(qp, timeout_ns, now))
		return;
	tlp->sent++;
	tlp->marked = false;
	count(qp, ENG_COUNT_TAIL_LOSS_PROBES);
	send_probe(qp, now);
	/* Asked late, those that would have been due meanwhile are this one. */
	while (tlp_deadline(qp, timeout_ns) <= now)
		tlp->sent++;
}
