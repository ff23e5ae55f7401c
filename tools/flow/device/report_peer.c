// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "oob.h"
#include "runner.h"

#define REPORT_INTERVAL_NS UINT64_C(5000000)

/* Fields of struct endpoint_stats and struct endpoint_result in the order of transmission. */
static const size_t counts[] = {
	offsetof(struct endpoint_stats, arrived),
	offsetof(struct endpoint_stats, sent_all),
	offsetof(struct endpoint_stats, data_sent),
	offsetof(struct endpoint_stats, consumed),
	offsetof(struct endpoint_stats, control_sent),
	offsetof(struct endpoint_stats, overruns),
	offsetof(struct endpoint_stats, excess),
	offsetof(struct endpoint_stats, bogus_updates),
	offsetof(struct endpoint_stats, loops),
};
static const size_t flags[] = {
	offsetof(struct endpoint_stats, idle),
	offsetof(struct endpoint_stats, done),
	offsetof(struct endpoint_stats, error),
};
static const size_t results[] = {
	offsetof(struct endpoint_result, first_sent_ns),
	offsetof(struct endpoint_result, last_consumed_ns),
	offsetof(struct endpoint_result, data_sent),
	offsetof(struct endpoint_result, control_sent),
	offsetof(struct endpoint_result, consumed),
	offsetof(struct endpoint_result, consumed_bytes),
	offsetof(struct endpoint_result, blocked_ns),
	offsetof(struct endpoint_result, max_blocked_ns),
	offsetof(struct endpoint_result, stalls),
	offsetof(struct endpoint_result, receives),
	offsetof(struct endpoint_result, p50_ns),
	offsetof(struct endpoint_result, p99_ns),
	offsetof(struct endpoint_result, free_p50_ns),
	offsetof(struct endpoint_result, free_p99_ns),
};
enum {
	COUNTS = sizeof(counts) / sizeof(counts[0]),
	FLAGS = sizeof(flags) / sizeof(flags[0]),
	RESULTS = sizeof(results) / sizeof(results[0]),
	FRAME = 1 + COUNTS + FLAGS, /* word 0 is the stop flag */
	LAST = 2 + RESULTS + 4 * FLOW_LINKS,
};

static int send_report(struct oob_sock sock, struct endpoint_stats *mine, uint64_t stop)
{
	uint64_t frame[FRAME] = { htobe64(stop) };

	for (unsigned int i = 0; i < COUNTS; i++)
		frame[1 + i] = htobe64(stats_get((_Atomic uint64_t *)((char *)mine + counts[i])));
	for (unsigned int i = 0; i < FLAGS; i++)
		frame[1 + COUNTS + i] = htobe64(*(_Atomic uint32_t *)((char *)mine + flags[i]));
	return oob_sock_send(sock, frame, sizeof(frame));
}

static void apply_report(struct peer_reports *reports, struct endpoint_stats *peer,
			 const uint64_t *frame)
{
	reports->peer_stopped |= be64toh(frame[0]) != 0;
	for (unsigned int i = 0; i < COUNTS; i++)
		*(_Atomic uint64_t *)((char *)peer + counts[i]) = be64toh(frame[1 + i]);
	for (unsigned int i = 0; i < FLAGS; i++)
		*(_Atomic uint32_t *)((char *)peer + flags[i]) =
			(uint32_t)be64toh(frame[1 + COUNTS + i]);
}

int peer_reports_exchange(struct peer_reports *reports, struct oob_sock sock,
			  struct run_stats *stats, uint32_t side, uint64_t now)
{
	uint64_t frame[FRAME];

	if (now < reports->next_ns)
		return 0;
	reports->next_ns = now + REPORT_INTERVAL_NS;
	if (send_report(sock, &stats->side[side], 0))
		return -1;
	while (!reports->peer_stopped) {
		ssize_t n = oob_sock_peek(sock, frame, sizeof(frame));

		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			return -1;
		if (n < (ssize_t)sizeof(frame))
			return 0;
		if (oob_sock_receive(sock, frame, sizeof(frame)))
			return -1;
		apply_report(reports, &stats->side[!side], frame);
	}
	stats->stop = 1;
	return 0;
}

static int send_results(struct oob_sock sock, struct endpoint_stats *mine,
			enum flow_verdict verdict)
{
	uint64_t last[LAST] = { verdict, mine->result.fairness_permille };

	for (unsigned int i = 0; i < RESULTS; i++)
		last[2 + i] = *(uint64_t *)((char *)&mine->result + results[i]);
	for (unsigned int i = 0; i < FLOW_LINKS; i++) {
		uint64_t *of_link = last + 2 + RESULTS + 4 * i;

		of_link[0] = stats_get(&mine->posted[i]);
		of_link[1] = stats_get(&mine->sent[i]);
		of_link[2] = (uint64_t)(int64_t)mine->result.allowance[i];
		of_link[3] = (uint64_t)(int64_t)mine->result.unreported[i];
	}
	for (unsigned int i = 0; i < LAST; i++)
		last[i] = htobe64(last[i]);
	return oob_sock_send(sock, last, sizeof(last)) ||
			       oob_sock_send(sock, mine->what, sizeof(mine->what))
		       ? -1
		       : 0;
}

static int receive_results(struct oob_sock sock, struct endpoint_stats *peer, uint64_t *verdict)
{
	uint64_t last[LAST];

	if (oob_sock_receive(sock, last, sizeof(last)) ||
	    oob_sock_receive(sock, peer->what, sizeof(peer->what)))
		return -1;
	peer->what[sizeof(peer->what) - 1] = 0;
	for (unsigned int i = 0; i < LAST; i++)
		last[i] = be64toh(last[i]);
	*verdict = last[0];
	peer->result.fairness_permille = (uint32_t)last[1];
	for (unsigned int i = 0; i < RESULTS; i++)
		*(uint64_t *)((char *)&peer->result + results[i]) = last[2 + i];
	for (unsigned int i = 0; i < FLOW_LINKS; i++) {
		const uint64_t *of_link = last + 2 + RESULTS + 4 * i;

		peer->posted[i] = of_link[0];
		peer->sent[i] = of_link[1];
		peer->result.allowance[i] = (int32_t)of_link[2];
		peer->result.unreported[i] = (int32_t)of_link[3];
	}
	return 0;
}

int peer_reports_finish(struct peer_reports *reports, struct oob_sock sock, struct run_stats *stats,
			uint32_t side, enum flow_verdict *verdict)
{
	uint64_t frame[FRAME], peer_verdict;

	if (send_report(sock, &stats->side[side], 1) ||
	    send_results(sock, &stats->side[side], *verdict))
		return -1;
	while (!reports->peer_stopped) {
		if (oob_sock_receive(sock, frame, sizeof(frame)))
			return -1;
		apply_report(reports, &stats->side[!side], frame);
	}
	if (receive_results(sock, &stats->side[!side], &peer_verdict))
		return -1;
	if (side == 1)
		*verdict = peer_verdict < FLOW_VERDICTS ? (enum flow_verdict)peer_verdict
							: VERDICT_ERROR;
	return 0;
}
