/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "tx.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture_hook.h"
#include "wire/bytes.h"
#include "wire/packet.h"

enum {
	STAGING_BYTES = 65536,
	TX_BUFFERS_MIN = 8,
	/* Enough for a burst of 15 packets of 4 KB, each gathered from several memory ranges. */
	PIECES = 256,
	/* Shorter payloads are copied, which is cheaper than another piece. */
	GATHER_FROM = 2048,
	/* Bytes of the receiver's socket buffer to leave free. */
	NEEDED_ROOM = 16384,
	BTH_DEST_QPN = 4, /* offset of 4 bytes, whose lower 24 bits are the QPN */
	/* Maximum number of packets of a short burst (progress_qp.may_fill_ring). */
	SHORT_BURST_PACKETS = 8,
};

struct tx_buffer {
	struct eng_burst burst;
	struct eng_piece pieces[PIECES];
	struct iovec iov[PIECES];
	_Alignas(PROGRESS_CACHE_LINE) uint8_t staging[STAGING_BYTES];
};

struct tx_buffer *tx_buffer_new(unsigned int max_packets)
{
	struct tx_buffer *tx = aligned_alloc(PROGRESS_CACHE_LINE, sizeof(*tx));

	if (!tx)
		return NULL;
	/* Fields that are the same for all bursts. */
	tx->burst.staging = tx->staging;
	tx->burst.staging_bytes = STAGING_BYTES;
	tx->burst.pieces = tx->pieces;
	tx->burst.max_pieces = PIECES;
	tx->burst.max_bytes = LINK_MAX_BYTES;
	tx->burst.max_packets = max_packets;
	tx->burst.gather_from = GATHER_FROM;
	return tx;
}

void tx_buffer_free(struct tx_buffer *tx)
{
	free(tx);
}

/*
 * TX_BUFFERS_MIN is for machines with few CPUs, where a thread may wait for a CPU while it has a
 * buffer.
 */
unsigned int tx_pool_size(void)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (processors < TX_BUFFERS_MIN)
		return TX_BUFFERS_MIN;
	return processors < PROGRESS_TX_BUFFERS ? (unsigned int)processors : PROGRESS_TX_BUFFERS;
}

/* Takes a buffer from the pool; returns NULL if all are in use by other threads. */
static struct tx_buffer *get_tx_buffer(struct progress *progress)
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

static void put_tx_buffer(struct progress *progress, struct tx_buffer *tx)
{
	/*
	 * There are as many places as buffers, so one is always empty, though not always the same.
	 */
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

void tx_send_pieces(struct progress *progress, const struct fault_path *path,
		    const struct iovec *pieces, unsigned int count, unsigned int segment)
{
	int error = tx_send(path->peer, path->qpn,
			    path->corrupted ? CAPTURE_TX_CORRUPTED : CAPTURE_TX_ONCE, pieces, count,
			    segment);

	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	if (error)
		count_failure(progress, error);
}

static int send_burst(struct progress *progress, struct tx_buffer *tx, struct link_peer *peer,
		      uint32_t qpn, uint64_t now)
{
	const struct eng_burst *burst = &tx->burst;

	if (!peer)
		return -EDESTADDRREQ;
	if (__builtin_expect(progress->fault != NULL, 0)) {
		fault_send(progress->fault, peer, qpn, burst, now);
		wakeup_for_deadline(progress, fault_deadline(progress->fault));
		return 0;
	}
	for (uint32_t i = 0; i < burst->piece_count; i++) {
		tx->iov[i].iov_base = (void *)(uintptr_t)burst->pieces[i].bytes;
		tx->iov[i].iov_len = burst->pieces[i].length;
	}
	count_anywhere(progress, PROGRESS_COUNT_SEND_CALLS);
	return tx_send(peer, qpn, CAPTURE_TX_RETRIED, tx->iov, burst->piece_count,
		       burst->packets > 1 ? burst->segment : 0);
}

/*
 * Returns false if the burst might overflow the receiver's socket buffer, if that can be checked
 * (link_peer_has_room()).  Within a host nothing else slows down the sender of an unreliable
 * service, as a wire would.
 */
static bool receiver_has_room(const struct link_peer *peer, const struct eng_burst *burst)
{
	/*
	 * More than the burst's bytes: the kernel charges a whole page for each piece of a page,
	 * and other senders may count on the same room.
	 */
	uint64_t need = 3 * (uint64_t)burst->bytes + NEEDED_ROOM;
	uint32_t dest_qpn = wire_get_be32(burst->pieces[0].bytes + BTH_DEST_QPN) & WIRE_24BIT_MASK;

	return link_peer_has_room(peer, dest_qpn >> LINK_SLOT_SHIFT, need);
}

/*
 * Returns true if the ring is full, to avoid building a burst that does not fit.  Checks only QPs
 * that found the ring full or sent a long burst before, and so not for each ACK.
 */
static bool ring_is_full(struct progress_qp *qp)
{
	if (qp->transport != LINK_SHARED_MEMORY || !qp->may_fill_ring)
		return false;
	return link_peer_is_full(qp->peer);
}

/* Builds the next burst.  The engine sets the other fields of the burst. */
static inline enum eng_tx build_burst(struct progress_qp *qp, struct tx_buffer *tx,
				      struct eng_tx_ctx *ctx)
{
	/*
	 * A datagram QP sends through the peer of an address handle, where IPv4 IDs begin with 0.
	 */
	tx->burst.identification = qp->peer ? link_peer_ip_id(qp->peer) : 0;
	ctx->full = ring_is_full(qp);
	return eng_transmit(qp->engine, &tx->burst, ctx);
}

/*
 * Sends the burst that the engine has built.  Returns ENG_TX_BURST, or ENG_TX_BACKPRESSURE if the
 * socket buffer or ring was full.  Not inlined, as usually there is nothing to send.
 */
static __attribute__((noinline)) enum eng_tx send_built_burst(struct progress *progress,
							      struct progress_qp *qp,
							      struct tx_buffer *tx, uint64_t now)
{
	struct eng_burst *burst = &tx->burst;
	struct link_peer *peer;
	int error;

	qp->may_fill_ring = burst->packets > SHORT_BURST_PACKETS;
	peer = qp->peer && burst->kind != ENG_BURST_CNP ? qp->peer : burst->path->link;
	error = qp->unreliable && !receiver_has_room(peer, burst)
			? -EAGAIN
			: send_burst(progress, tx, peer, qp->qpn, now);
	/* With other errors the burst is lost, as in the network; the engine retries. */
	if (error != -EAGAIN && error != -ENOBUFS) {
		if (error)
			count_anywhere(progress, PROGRESS_COUNT_SEND_ERRORS);
		return ENG_TX_BURST;
	}
	qp->may_fill_ring = true;
	eng_tx_rollback(qp->engine, burst);
	return ENG_TX_BACKPRESSURE;
}

enum tx_result tx_run(struct progress *progress, struct progress_qp *qp, struct eng_tx_ctx *ctx,
		      unsigned int max_bursts, struct tx_buffer *tx, unsigned int *bursts)
{
	enum eng_tx reason;

	*bursts = 0;
	while ((reason = build_burst(qp, tx, ctx)) == ENG_TX_BURST) {
		reason = send_built_burst(progress, qp, tx, ctx->now);
		if (reason != ENG_TX_BURST)
			break;
		++*bursts;
		if (tx->burst.last)
			return TX_DONE;
		if (*bursts == max_bursts)
			return TX_MORE;
	}
	switch (reason) {
	case ENG_TX_BACKPRESSURE:
		count_anywhere(progress, PROGRESS_COUNT_SOCKET_FULL);
		return TX_BLOCKED;
	case ENG_TX_BUDGET:
		return TX_NO_BUDGET;
	default:
		return TX_DONE;
	}
}

void tx_queue_deadline(struct progress *progress, struct progress_qp *qp)
{
	uint64_t deadline = eng_deadline(qp->engine);

	if (deadline_queue(&progress->deadlines, qp, deadline))
		wakeup_for_deadline(progress, deadline);
}

static void push_scheduled(struct progress *progress, struct progress_qp *qp)
{
	struct progress_qp *first =
		atomic_load_explicit(&progress->scheduled, memory_order_relaxed);

	do {
		qp->next_scheduled = first;
	} while (!atomic_compare_exchange_weak_explicit(
		&progress->scheduled, &first, qp, memory_order_seq_cst, memory_order_relaxed));
}

void tx_schedule(struct progress *progress, struct progress_qp *qp, bool wake)
{
	if (qp->scheduled)
		return;
	qp->scheduled = true;
	push_scheduled(progress, qp);
	/* Pairs with the progress thread, which arms and then checks for scheduled QPs. */
	if (wake && wakeup_is_armed(progress))
		wakeup_thread(progress);
}

void tx_recheck(struct progress *progress)
{
	if (tx_is_scheduled(progress) && wakeup_is_armed(progress))
		wakeup_thread(progress);
}

struct progress_qp *tx_take_scheduled(struct progress *progress)
{
	struct progress_qp *newest, *oldest = NULL;

	if (!tx_is_scheduled(progress))
		return NULL;
	newest = atomic_exchange_explicit(&progress->scheduled, NULL, memory_order_acquire);
	while (newest) {
		struct progress_qp *next = newest->next_scheduled;

		newest->next_scheduled = oldest;
		oldest = newest;
		newest = next;
	}
	return oldest;
}

void tx_unschedule(struct progress *progress, struct progress_qp *qp)
{
	struct progress_qp *other = tx_take_scheduled(progress);

	while (other) {
		struct progress_qp *next = other->next_scheduled;

		if (other != qp)
			push_scheduled(progress, other); /* already marked as scheduled */
		other = next;
	}
	tx_recheck(progress);
}

/* Sends at once.  Preserves errno of the posting thread. */
static void send_now(struct progress *progress, struct progress_qp *qp, enum eng_tx_trigger trigger)
{
	bool polled = !wakeup_is_armed(progress);
	struct eng_tx_ctx ctx = tx_ctx(progress, qp, trigger, progress_now(), polled, polled);
	struct tx_buffer *tx = get_tx_buffer(progress);
	enum tx_result end = TX_BLOCKED;
	unsigned int bursts;
	int saved_errno = errno;

	if (tx) {
		progress->hooks.enter(progress->number);
		end = tx_run(progress, qp, &ctx, TX_BURSTS_MAX, tx, &bursts);
		progress->hooks.leave(progress->number);
		put_tx_buffer(progress, tx);
	}
	tx_update_deadline(progress, qp);
	/*
	 * A QP that waits for the in-flight budget needs no wake-up: it is served when ACKs of
	 * other QPs arrive.
	 */
	if (end != TX_DONE)
		tx_schedule(progress, qp, end != TX_NO_BUDGET);
	errno = saved_errno;
}

inline void progress_posted_send(struct progress *progress, struct progress_qp *qp)
{
	bool polled = !wakeup_is_armed(progress);
	struct eng_tx_ctx ctx;

	if (progress->forked)
		return;
	ctx = tx_ctx(progress, qp, ENG_TX_TRIGGER_POST, 0, polled, polled);
	/*
	 * No wake-up is needed if the progress thread is armed: requests that were not sent wait
	 * for an ACK or a timeout, which cause a cycle.  If the application polls, they are left to
	 * its next poll.  If the thread has armed since `polled` was read, it may have looked
	 * before this request was scheduled, so tx_schedule() wakes it.
	 */
	if (eng_sq_kick(qp->engine, &ctx) == ENG_TX_BURST)
		send_now(progress, qp, ENG_TX_TRIGGER_POST);
	else
		tx_schedule(progress, qp, polled);
}

void progress_posted_receive(struct progress *progress, struct progress_qp *qp)
{
	if (!progress->forked && eng_receive_posted(qp->engine))
		send_now(progress, qp, ENG_TX_TRIGGER_POST);
}

void progress_qp_changed(struct progress *progress, struct progress_qp *qp)
{
	if (!progress->forked)
		send_now(progress, qp, ENG_TX_TRIGGER_FINAL);
}
