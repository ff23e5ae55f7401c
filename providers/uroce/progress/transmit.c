/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "transmit.h"

#include <errno.h>
#include <stdlib.h>

enum {
	STAGING_BYTES = 65536,
	/* A run of 15 packets of 4 KB, each gathered from several stretches of memory. */
	PIECES = 256,
	/* Below, a copy is cheaper than one more piece (bench: 128 pieces halve the rate). */
	GATHER_FROM = 2048,
	/* A post that meets no more packets than this under way may be an answer: see below. */
	ANSWER_WINDOW = 16,
	/* Posts that make a full run when each is one packet of the largest size. */
	RUN_PACKETS_MIN = 15,
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

/* NULL only when memory is out. */
static struct tx_buffer *take_buffer(struct progress *progress)
{
	for (unsigned int i = 0; i < PROGRESS_TX_BUFFERS; i++) {
		_Atomic(struct tx_buffer *) *place = &progress->tx[i];
		struct tx_buffer *tx;

		if (!atomic_load_explicit(place, memory_order_relaxed))
			continue;
		tx = atomic_exchange_explicit(place, NULL, memory_order_acquire);
		if (tx)
			return tx;
	}
	/* As many threads as have ever posted at once make that many buffers, then it is over. */
	return tx_buffer_new();
}

static void give_buffer(struct progress *progress, struct tx_buffer *tx)
{
	for (unsigned int i = 0; i < PROGRESS_TX_BUFFERS; i++) {
		struct tx_buffer *none = NULL;

		if (!atomic_load_explicit(&progress->tx[i], memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(&progress->tx[i], &none, tx,
							    memory_order_release,
							    memory_order_relaxed))
			return;
	}
	tx_buffer_free(tx);
}

static void count_failure(struct progress *progress, int error)
{
	count_anywhere(progress, error == -EAGAIN || error == -ENOBUFS
					 ? PROGRESS_COUNT_SOCKET_FULL
					 : PROGRESS_COUNT_SEND_ERRORS);
}

void transmit_datagram(struct progress *progress, struct link_peer *peer, const uint8_t *bytes,
		       size_t length)
{
	struct iovec piece = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = length };
	int error = link_send(peer, &piece, 1, 0);

	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	if (error)
		count_failure(progress, error);
}

static int send_run(struct progress *progress, struct progress_qp *qp, struct tx_buffer *tx,
		    const struct eng_run *run, uint64_t now)
{
	/* A connected QP has one peer; a datagram QP's is that of the address handle. */
	struct link_peer *peer = qp->peer ? qp->peer : run->path->link;

	if (!peer)
		return -EDESTADDRREQ;
	if (__builtin_expect(progress->fault != NULL, 0)) {
		fault_send(progress->fault, peer, run, now);
		return 0;
	}
	for (uint32_t i = 0; i < run->piece_count; i++) {
		tx->iov[i].iov_base = (void *)(uintptr_t)run->pieces[i].bytes;
		tx->iov[i].iov_len = run->pieces[i].length;
	}
	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	return link_send(peer, tx->iov, run->piece_count, run->packets > 1 ? run->segment : 0);
}

/* What is known now about how many posts make a full run. */
static void note_sent(struct progress *progress, struct progress_qp *qp, const struct eng_run *run)
{
	uint32_t fit = LINK_MAX_BYTES / run->segment;

	qp->run_packets = fit < progress->max_segments ? fit : progress->max_segments;
	qp->gathered = 0;
	qp->heard = false;
	qp->sent = true;
}

enum transmit_end transmit(struct progress *progress, struct progress_qp *qp, unsigned int sides,
			   struct tx_buffer *tx, uint64_t now)
{
	struct tx_buffer *used = tx ? tx : take_buffer(progress);
	enum transmit_end end = TRANSMIT_DONE;
	struct eng_run run;
	unsigned int runs;

	if (!used)
		return TRANSMIT_BLOCKED;
	run.staging = used->staging;
	run.staging_bytes = STAGING_BYTES;
	run.pieces = used->pieces;
	run.max_pieces = PIECES;
	run.max_packets = progress->max_segments;
	run.max_bytes = LINK_MAX_BYTES;
	run.gather_from = GATHER_FROM;
	for (runs = 0; eng_transmit(qp->engine, &run, sides, now) == ENG_TX_RUN; runs++) {
		int error = send_run(progress, qp, used, &run, now);

		if (error)
			count_failure(progress, error);
		if (error == -EAGAIN || error == -ENOBUFS) {
			eng_unsent(qp->engine, &run);
			end = TRANSMIT_BLOCKED;
			break;
		}
		/* Other errors lose the run, as the network might: retries are the engine's. */
		if (sides & ENG_REQUESTS)
			note_sent(progress, qp, &run);
		if (runs + 1 == TRANSMIT_RUNS) {
			end = TRANSMIT_MORE;
			break;
		}
	}
	if (!tx)
		give_buffer(progress, used);
	return end;
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
		end = transmit(progress, qp, ENG_REQUESTS, NULL, now);
	if (eng_owed(qp->engine) != ENG_OWED_NOTHING && end != TRANSMIT_BLOCKED) {
		enum transmit_end other = transmit(progress, qp, ENG_RESPONSES, NULL, now);

		if (other != TRANSMIT_DONE)
			end = other;
	}
	qp->ack_due = 0;
	transmit_deadline(progress, qp);
	progress->hooks.leave();
	if (end != TRANSMIT_DONE)
		transmit_pend(progress, qp, true);
}

void progress_posted_send(struct progress *progress, struct progress_qp *qp)
{
	uint32_t in_flight;

	if (progress->dead)
		return;
	in_flight = eng_in_flight(qp->engine);
	qp->gathered++;
	qp->no_answers = false;
	/*
	 * Gather while packets are under way: the turn that brings their ACKs sends all of it in
	 * one call.  But an answer to what has just come must not wait for the ACK of the message
	 * before it, which its peer has sent right behind: that would cost each round trip a turn.
	 */
	if (in_flight == 0 || (qp->heard && in_flight <= ANSWER_WINDOW) ||
	    qp->gathered >= (qp->run_packets ? qp->run_packets : RUN_PACKETS_MIN) ||
	    helper_is_armed(progress))
		send_now(progress, qp, ENG_REQUESTS);
	else
		transmit_pend(progress, qp, true);
}

void progress_posted_receive(struct progress *progress, struct progress_qp *qp)
{
	enum eng_owed owed;

	if (progress->dead)
		return;
	/* rule C10: credits for a peer that may have run out of them do not wait for a turn. */
	owed = eng_owed(qp->engine);
	if (owed == ENG_OWED_NOW || (owed == ENG_OWED_SOON && helper_is_armed(progress)))
		send_now(progress, qp, ENG_RESPONSES);
}

void progress_changed(struct progress *progress, struct progress_qp *qp)
{
	if (!progress->dead)
		send_now(progress, qp, ENG_REQUESTS);
}
