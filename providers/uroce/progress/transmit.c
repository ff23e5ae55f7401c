/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "transmit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/bytes.h"
#include "wire/packet.h"

enum {
	STAGING_BYTES = 65536,
	TX_BUFFERS_MIN = 8,
	/* A run of 15 packets of 4 KB, each gathered from several stretches of memory. */
	PIECES = 256,
	/* Below, a copy is cheaper than one more piece (bench: 128 pieces halve the rate). */
	GATHER_FROM = 2048,
	/* A post that meets more packets than this under way belongs to a stream. */
	STREAM_PACKETS = 16,
	/* Bytes of socket buffer to leave beside a run. */
	NEEDED_ROOM = 16384,
	BTH_DEST_QPN = 4, /* the four bytes that end in it */
	/* BTH, AETH and ICRC; and what the engine wants to have free for any packet. */
	ACK_BYTES = 20,
	ACK_STAGING_BYTES = 128,
	/* Posts that make a full run when each is one packet of the largest size. */
	RUN_PACKETS_MIN = 15,
	/*
	 * Through shared memory a run costs no system call: so many are enough for it, and the peer
	 * works on them while the next ones are posted.
	 */
	MEMORY_POSTS = 16,
	SHORT_RUN = 8,
};

struct tx_buffer {
	struct eng_piece pieces[PIECES];
	struct iovec iov[PIECES];
	_Alignas(PROGRESS_CACHE_LINE) uint8_t staging[STAGING_BYTES];
};

struct tx_buffer *tx_buffer_new(void)
{
	return aligned_alloc(PROGRESS_CACHE_LINE, sizeof(struct tx_buffer));
}

void tx_buffer_free(struct tx_buffer *tx)
{
	free(tx);
}

/* The least for machines with few processors, where whoever has one may wait for a processor. */
unsigned int tx_buffers_wanted(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (processors < TX_BUFFERS_MIN)
		return TX_BUFFERS_MIN;
	return processors < PROGRESS_TX_BUFFERS ? (unsigned int)processors : PROGRESS_TX_BUFFERS;
}

/* NULL when as many threads as there are buffers are sending just now. */
static struct tx_buffer *take_buffer(struct progress *progress)
{
	for (unsigned int i = 0; i < progress->tx_count; i++) {
		_Atomic(struct tx_buffer *) *place = &progress->tx[i];
		struct tx_buffer *tx;

		if (!atomic_load_explicit(place, memory_order_relaxed))
			continue;
		tx = atomic_exchange_explicit(place, NULL, memory_order_acquire);
		if (tx)
			return tx;
	}
	return NULL;
}

static void give_buffer(struct progress *progress, struct tx_buffer *tx)
{
	/* There are as many places as buffers, so that one is empty, if not always the same. */
	for (unsigned int i = 0;; i = (i + 1) % progress->tx_count) {
		struct tx_buffer *none = NULL;

		if (!atomic_load_explicit(&progress->tx[i], memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&progress->tx[i], &none, tx,
							    memory_order_release,
							    memory_order_relaxed))
			return;
	}
}

static void count_failure(struct progress *progress, int error)
{
	count_anywhere(progress, error == -EAGAIN || error == -ENOBUFS
					 ? PROGRESS_COUNT_SOCKET_FULL
					 : PROGRESS_COUNT_SEND_ERRORS);
}

void transmit_pieces(struct progress *progress, struct link_peer *peer, const struct iovec *pieces,
		     unsigned int count, unsigned int segment)
{
	int error = link_send(peer, pieces, count, segment);

	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	if (error)
		count_failure(progress, error);
}

/* What leaves in one call: a run of requests or responses, and perhaps the ACK behind it. */
struct parcel {
	struct link_peer *peer;
	struct eng_run run;
	bool with_ack;
	struct eng_run ack;
	struct eng_piece ack_piece;
};

/*
 * Let the ACK that is owed travel as the last, shorter segment of a run of requests: the kernel
 * takes both for hardly more than one, and so does the peer, who often waits for both (the answer,
 * and the completion of what is answered) before he sends again.
 */
static void add_ack(struct progress *progress, struct progress_qp *qp, struct tx_buffer *tx,
		    struct parcel *parcel, uint64_t now)
{
	struct eng_run *run = &parcel->run, *ack = &parcel->ack;

	if (progress->fault || run->kind != ENG_RUN_REQUESTS || run->closed ||
	    run->segment < ACK_BYTES || run->packets >= progress->max_segments ||
	    run->bytes + ACK_BYTES > LINK_MAX_BYTES || run->piece_count == PIECES ||
	    run->staged + ACK_STAGING_BYTES > STAGING_BYTES ||
	    eng_owed(qp->engine) != ENG_OWED_SOON)
		return;
	/* Who gets it stops polling, and the rest of the answer would find nobody. */
	if (qp->ack_for_answer && eng_has_unsent(qp->engine))
		return;
	ack->staging = tx->staging + run->staged;
	ack->staging_bytes = ACK_STAGING_BYTES;
	ack->pieces = &parcel->ack_piece;
	ack->max_pieces = 1;
	ack->max_packets = 1;
	ack->max_bytes = ACK_BYTES;
	ack->gather_from = UINT32_MAX;
	ack->identification = (uint16_t)(run->identification + run->packets);
	if (eng_transmit(qp->engine, ack, ENG_RESPONSES, now) != ENG_TX_RUN)
		return;
	assert(ack->packets == 1 && ack->bytes == ACK_BYTES && ack->piece_count == 1);
	parcel->with_ack = true;
}

static int send_parcel(struct progress *progress, struct tx_buffer *tx, const struct parcel *parcel,
		       uint64_t now)
{
	const struct eng_run *run = &parcel->run;
	uint32_t count = run->piece_count, packets = run->packets + parcel->with_ack;

	if (!parcel->peer)
		return -EDESTADDRREQ;
	if (__builtin_expect(progress->fault != NULL, 0)) {
		fault_send(progress->fault, parcel->peer, run, now);
		return 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		tx->iov[i].iov_base = (void *)(uintptr_t)run->pieces[i].bytes;
		tx->iov[i].iov_len = run->pieces[i].length;
	}
	if (parcel->with_ack) {
		/* The run's last piece ends with an ICRC in staging, and there the ACK begins. */
		assert(run->pieces[count - 1].bytes + run->pieces[count - 1].length ==
		       parcel->ack.staging);
		tx->iov[count - 1].iov_len += ACK_BYTES;
	}
	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	return link_send(parcel->peer, tx->iov, count, packets > 1 ? run->segment : 0);
}

static uint32_t posts_for_run(const struct progress_qp *qp)
{
	if (qp->transport == LINK_SHARED_MEMORY)
		return MEMORY_POSTS;
	return qp->run_packets ? qp->run_packets : RUN_PACKETS_MIN;
}

/* What is known now about how many posts make a full run. */
static void note_sent(struct progress *progress, struct progress_qp *qp, const struct eng_run *run)
{
	uint32_t fit = LINK_MAX_BYTES / run->segment;

	qp->run_packets = fit < progress->max_segments ? fit : progress->max_segments;
	/* By and by: a crowd may come after a single one. */
	qp->gathered_before /= 2;
	if (qp->gathered_before < qp->gathered)
		qp->gathered_before = qp->gathered;
	qp->gathered = 0;
	qp->gathered_signals = 0;
	qp->heard = false;
	qp->sent = true;
	qp->sent_in_turn = poll_turns(progress);
}

/*
 * Nothing slows down the sender of an unreliable service, as a wire would; so between processes of
 * this host, where it can be seen, at least the receiver's socket is not made to overflow.
 */
static bool has_room(const struct link_peer *peer, const struct eng_run *run)
{
	/* The kernel counts a page for each piece of a page, and who else asks just now also sends.
	 */
	uint64_t need = 3 * (uint64_t)run->bytes + NEEDED_ROOM;
	uint32_t dest_qpn = wire_get_be32(run->pieces[0].bytes + BTH_DEST_QPN) & WIRE_24BIT_MASK;

	return link_peer_room(peer, dest_qpn >> LINK_SLOT_SHIFT) >= need;
}

/* What may be so long that a look whether there is room for it pays; an ACK never is. */
static bool has_much(const struct progress_qp *qp, unsigned int side)
{
	return side == ENG_REQUESTS ? eng_packets_unsent(qp->engine) > SHORT_RUN
				    : eng_owed(qp->engine) == ENG_OWED_NOW;
}

/* One run; -ENODATA when the engine has none, -EBUSY when it has to wait for other QPs. */
static int transmit_one(struct progress *progress, struct progress_qp *qp, unsigned int side,
			bool take_ack, struct tx_buffer *tx, uint64_t now)
{
	struct parcel parcel = { .with_ack = false };
	struct eng_run *run = &parcel.run;
	enum eng_tx reason;
	int error;

	if (side == ENG_REQUESTS && eng_awaits_room(qp->engine, posts_for_run(qp)))
		return -ENODATA;
	run->staging = tx->staging;
	run->staging_bytes = STAGING_BYTES;
	run->pieces = tx->pieces;
	run->max_pieces = PIECES;
	run->max_packets = progress->max_segments;
	run->max_bytes = LINK_MAX_BYTES;
	run->gather_from = GATHER_FROM;
	if (qp->transport == LINK_SHARED_MEMORY && has_much(qp, side) &&
	    link_peer_is_full(qp->peer)) {
		count_anywhere(progress, PROGRESS_COUNT_SOCKET_FULL);
		return -EAGAIN;
	}
	/* A connected QP has one peer; a datagram QP's is that of the address handle. */
	if (qp->peer)
		run->identification = link_peer_identification(qp->peer);
	reason = eng_transmit(qp->engine, run, side, now);
	if (reason != ENG_TX_RUN)
		return reason == ENG_TX_SHARE ? -EBUSY : -ENODATA;
	parcel.peer = qp->peer ? qp->peer : run->path->link;
	if (qp->unreliable && !has_room(parcel.peer, run)) {
		count_anywhere(progress, PROGRESS_COUNT_SOCKET_FULL);
		eng_unsent(qp->engine, run);
		return -EAGAIN;
	}
	if (take_ack)
		add_ack(progress, qp, tx, &parcel, now);
	error = send_parcel(progress, tx, &parcel, now);
	if (error)
		count_failure(progress, error);
	if (error == -EAGAIN || error == -ENOBUFS) {
		if (parcel.with_ack)
			eng_unsent(qp->engine, &parcel.ack);
		eng_unsent(qp->engine, run);
		return -EAGAIN;
	}
	/* Other errors lose the run, as the network might: retries are the engine's. */
	if (side == ENG_REQUESTS)
		note_sent(progress, qp, run);
	return 0;
}

enum transmit_end transmit(struct progress *progress, struct progress_qp *qp, unsigned int sides,
			   unsigned int max_runs, struct tx_buffer *tx, uint64_t now)
{
	unsigned int side = sides & ENG_REQUESTS ? ENG_REQUESTS : ENG_RESPONSES;
	struct tx_buffer *used = tx;
	int result;

	if (!used)
		used = take_buffer(progress);
	result = used ? 0 : -EAGAIN;
	for (unsigned int runs = 0; !result && runs < max_runs; runs++)
		result = transmit_one(progress, qp, side, sides & ENG_RESPONSES, used, now);
	if (!tx && used)
		give_buffer(progress, used);
	if (result == -ENODATA)
		return TRANSMIT_DONE;
	if (result == -EBUSY)
		return TRANSMIT_CROWDED;
	return result ? TRANSMIT_BLOCKED : TRANSMIT_MORE;
}

void transmit_deadline(struct progress *progress, struct progress_qp *qp)
{
	uint64_t deadline = eng_deadline(qp->engine);

	if (qp->ack_due && qp->ack_due < deadline)
		deadline = qp->ack_due;
	if (deadline < deadline_queued(qp) && deadline_queue(&progress->deadlines, qp, deadline))
		helper_earlier(progress, deadline);
}

static void push(struct progress *progress, struct progress_qp *qp)
{
	struct progress_qp *first = atomic_load_explicit(&progress->pending, memory_order_relaxed);

	do {
		qp->next_pending = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&progress->pending, &first, qp, memory_order_seq_cst, memory_order_relaxed));
}

void transmit_pend(struct progress *progress, struct progress_qp *qp, bool wake)
{
	if (qp->pending)
		return;
	qp->pending = true;
	push(progress, qp);
	/* Against the helper, who arms and then looks whether anything is pending. */
	if (wake && helper_is_armed(progress))
		helper_wake(progress);
}

struct progress_qp *transmit_take_pending(struct progress *progress)
{
	struct progress_qp *newest, *oldest = NULL;

	if (!transmit_is_pending(progress))
		return NULL;
	newest = atomic_exchange_explicit(&progress->pending, NULL, memory_order_acquire);
	while (newest) {
		struct progress_qp *next = newest->next_pending;

		newest->next_pending = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

void transmit_forget(struct progress *progress, struct progress_qp *qp)
{
	struct progress_qp *other = transmit_take_pending(progress);

	while (other) {
		struct progress_qp *next = other->next_pending;

		if (other != qp)
			push(progress, other); /* it has its mark already */
		other = next;
	}
}

/* Send at once: requests first, because an ACK ahead of data costs the peer's latency. */
static void send_now(struct progress *progress, struct progress_qp *qp, unsigned int sides)
{
	uint64_t now = progress_now();
	enum transmit_end end = TRANSMIT_DONE;

	progress->hooks.enter();
	if (sides & ENG_REQUESTS)
		end = transmit(progress, qp, sides | ENG_RESPONSES, TRANSMIT_RUNS, NULL, now);
	if (eng_owed(qp->engine) != ENG_OWED_NOTHING && end != TRANSMIT_BLOCKED) {
		enum transmit_end other =
			transmit(progress, qp, ENG_RESPONSES, TRANSMIT_RUNS, NULL, now);

		if (other != TRANSMIT_DONE)
			end = other;
	}
	transmit_ack_leaves(qp);
	transmit_deadline(progress, qp);
	progress->hooks.leave();
	/* What waits for other QPs is looked at when their ACKs come. */
	if (end != TRANSMIT_DONE)
		transmit_pend(progress, qp, end != TRANSMIT_CROWDED);
}

/*
 * Is the request posted last the first of a batch that will make a completion?  Its poster will
 * wait for that, not for those behind it: the peer may as well have it while they are posted.
 */
static bool ends_batch(struct progress_qp *qp)
{
	if (!eng_newest_is_signaled(qp->engine))
		return false;
	return qp->gathered_signals++ == 0 && eng_packets_unsent(qp->engine) > STREAM_PACKETS;
}

/*
 * Gather while packets are under way: the turn that brings their ACKs sends all of it in one call.
 * But an answer to what has just come must not wait for the ACK of the message before it, which its
 * peer has sent right behind: that would cost each round trip a turn.  And when nobody polls, that
 * turn may be far, so that only streams are gathered, whose ACKs are on their way.  What nobody has
 * asked an ACK for may have arrived long ago: it says no more than that when a turn has passed.
 *
 * On an idle wire a post goes at once, but not where polls come and posts did in crowds: such a
 * sender has waited for a completion, and will post the next crowd now.
 */
static bool may_gather(const struct progress *progress, const struct progress_qp *qp)
{
	uint32_t in_flight = eng_in_flight(qp->engine);
	bool is_stream = qp->gathered_before > STREAM_PACKETS, due;

	if (qp->gathered >= posts_for_run(qp))
		return false;
	if (in_flight == 0)
		return is_stream && !helper_is_armed(progress);
	due = eng_answer_is_due(qp->engine);
	if (helper_is_armed(progress))
		return due && (is_stream || in_flight > STREAM_PACKETS);
	return in_flight > STREAM_PACKETS ||
	       (!qp->heard && (due || qp->sent_in_turn == poll_turns(progress)));
}

void progress_posted_send(struct progress *progress, struct progress_qp *qp)
{
	if (progress->dead)
		return;
	qp->gathered++;
	qp->no_answers = false;
	/* The helper need not be woken: the ACK of what is under way will do that, or its time-out.
	 */
	if (crowd_waits(&progress->crowd) || (!ends_batch(qp) && may_gather(progress, qp)))
		transmit_pend(progress, qp, false);
	else
		send_now(progress, qp, ENG_REQUESTS);
}

void progress_posted_receive(struct progress *progress, struct progress_qp *qp)
{
	enum eng_owed owed;
	bool waited_for;

	if (progress->dead)
		return;
	/* rule C10: credits for a peer that may have run out of them do not wait for a turn. */
	owed = eng_owed(qp->engine);
	waited_for = qp->ack_due && qp->ack_for_receive && !eng_ack_awaits_receive(qp->engine);
	if (owed == ENG_OWED_NOW || (owed == ENG_OWED_SOON && waited_for))
		send_now(progress, qp, ENG_RESPONSES);
}

void progress_changed(struct progress *progress, struct progress_qp *qp)
{
	if (!progress->dead)
		send_now(progress, qp, ENG_REQUESTS);
}
