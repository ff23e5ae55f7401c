// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "end.h"
#include "report_peer.h"

enum { BATCH = 32, ERROR_OF_END = 1000 };

struct flow_end {
	struct end_options *options;
	struct device device;
	struct scenario sc;
	const struct scheme *scheme;
	struct station *station;
	struct side_ledger *mine;
	int64_t offset_ns; /* to be added to timestamps of the peer */
	struct peer_reports reports;
	struct judge judge;
};

static int failed(struct flow_end *end, const char *what)
{
	snprintf(end->mine->what, sizeof(end->mine->what), "%s", what);
	end->mine->error = ERROR_OF_END;
	return -1;
}

static int post_receives(struct flow_end *end)
{
	struct station *st = end->station;

	for (uint32_t link = 0; link < (st->shared ? 1 : st->link_count); link++)
		if (device_post_receives(&end->device, link, end->device.receives))
			return -1;
	station_first_posted(st);
	return 0;
}

static int set_up(struct flow_end *end)
{
	struct end_options *o = end->options;
	bool rnr_retry; /* otherwise an overrun is a completion error of the device */

	if (device_open(&end->device, &o->device) ||
	    rendezvous_agree(o->stream, o->side, &end->device, &o->plan))
		return failed(end, end->device.error);
	if (!plan_scenario(&o->plan, &end->sc))
		return failed(end, "scenario, scheme, depth and size are not within the limits");
	end->scheme = scheme_find(o->plan.scheme);
	end->mine->depth = o->plan.depth;
	rnr_retry = end->scheme->flags & (SCHEME_RNR_IS_PART | SCHEME_OVER_BY_ACK);
	if (device_make(&end->device, &end->sc, end->scheme, o->side) ||
	    rendezvous_addresses(o->stream, &end->device, rnr_retry))
		return failed(end, end->device.error);
	station_begin(end->station, &end->sc, end->scheme, o->plan.seed, o->side, o->ledger);
	end->station->peer_seen = !o->plan.apart;
	if (post_receives(end))
		return failed(end, end->device.error);
	if (o->plan.apart && rendezvous_clock(o->stream, o->side, &end->offset_ns))
		return failed(end, "the peer has gone");
	if (rendezvous_barrier(o->stream))
		return failed(end, "the peer has gone");
	judge_begin(&end->judge, o->ledger, &end->sc, end->scheme, clock_ns());
	return 0;
}

/*
 * Converts the timestamp of a message to our clock.  Requests and responses carry the requester's
 * timestamp, which the responder returns unchanged.
 */
static void adjust_clock(const struct flow_end *end, struct flow_message *m)
{
	if (m->kind != FLOW_REQUEST && m->kind != FLOW_RESPONSE)
		m->ready_ns += (uint64_t)end->offset_ns;
}

static int take_completion(struct flow_end *end, const struct ibv_wc *wc, uint64_t now)
{
	struct flow_message m;

	if (wc->status != IBV_WC_SUCCESS) {
		if (!end->mine->error)
			snprintf(end->mine->what, sizeof(end->mine->what), "%s",
				 ibv_wc_status_str(wc->status));
		end->mine->error = wc->status;
		return -1;
	}
	if (!(wc->wr_id & WR_RECEIVE)) {
		station_completed(end->station, (uint32_t)wc->wr_id, now);
		return 0;
	}
	if (!device_received(&end->device, wc, &m))
		return failed(end, "a message came that is none of this program's");
	adjust_clock(end, &m);
	station_arrived(end->station, &m, true, now);
	return 0;
}

/* Polls the CQ and updates by WRITE.  Returns -1 on error, 1 if anything arrived, otherwise 0. */
static int take_all(struct flow_end *end)
{
	struct ibv_wc wc[BATCH];
	struct flow_message m;
	int count = ibv_poll_cq(end->device.cq, BATCH, wc), moved = count != 0;
	/* Read after the poll; otherwise a message could arrive before it was sent. */
	uint64_t now = clock_ns();

	if (count < 0)
		return failed(end, "ibv_poll_cq() fails");
	for (int i = 0; i < count; i++)
		if (take_completion(end, &wc[i], now))
			return -1;
	if (end->scheme->flags & SCHEME_BY_WRITE) {
		for (uint32_t link = 0; link < end->sc.links; link++) {
			if (device_update(&end->device, link, &m)) {
				station_arrived(end->station, &m, false, now);
				moved = 1;
			}
		}
	}
	return moved;
}

static int give_all(struct flow_end *end, uint64_t now)
{
	struct station *st = end->station;
	struct flow_message out;
	int moved = 0;

	station_advance(st, now);
	for (uint32_t link = 0; link < st->link_count; link++) {
		uint32_t count = station_to_post(st, link);

		if (!count)
			continue;
		if (device_post_receives(&end->device, link, count))
			return failed(end, end->device.error);
		station_posted(st, link, count);
		moved = 1;
	}
	for (uint32_t link = 0; link < st->link_count; link++) {
		while (station_next(st, link, now, &out)) {
			if (device_post(&end->device, &out))
				return failed(end, end->device.error);
			moved = 1;
		}
	}
	return moved;
}

static void publish(struct flow_end *end, bool moved)
{
	struct side_ledger *mine = end->mine;

	if (!moved) {
		mine->done = station_done(end->station);
		mine->idle = station_quiet(end->station);
	} else {
		mine->idle = 0;
	}
	ledger_add(&mine->loops, 1);
}

/* Endpoints on two hosts: exchanges reports; side 0 also runs the judge. */
static enum flow_verdict confer(struct flow_end *end, uint64_t now)
{
	struct end_options *o = end->options;
	enum flow_verdict verdict = VERDICT_RUNNING;

	if (peer_reports_move(&end->reports, o->stream, o->ledger, o->side, now))
		verdict = VERDICT_ERROR;
	else if (o->side == 0)
		verdict = judge_look(&end->judge, now);
	if (verdict != VERDICT_RUNNING)
		o->ledger->stop = 1;
	return verdict;
}

static enum flow_verdict run(struct flow_end *end)
{
	enum flow_verdict verdict = VERDICT_RUNNING;
	bool broken = false;

	station_start(end->station, clock_ns());
	while (!end->options->ledger->stop) {
		int came = broken ? 0 : take_all(end);
		uint64_t now = clock_ns();
		int went = broken || came < 0 ? 0 : give_all(end, now);

		if (came < 0 || went < 0)
			broken = true;
		else
			publish(end, came || went);
		if (!came && !went)
			sched_yield();
		if (end->options->plan.apart)
			verdict = confer(end, now);
	}
	return verdict;
}

int end_run(struct end_options *options, enum flow_verdict *verdict)
{
	struct flow_end *end = calloc(1, sizeof(*end));
	int error = -1;

	*verdict = VERDICT_ERROR;
	if (end)
		end->station = calloc(1, sizeof(*end->station));
	if (end && end->station) {
		end->options = options;
		end->mine = &options->ledger->side[options->side];
		error = set_up(end);
		if (!error) {
			end->mine->ready = 1;
			*verdict = run(end);
			station_end(end->station);
			if (options->finished)
				options->finished(options->argument);
			if (options->plan.apart)
				error = peer_reports_finish(&end->reports, options->stream,
							    options->ledger, options->side,
							    verdict);
			if (!error && options->plan.apart)
				*verdict = judge_balance(&end->judge, *verdict);
		}
		device_close(&end->device);
		end->mine->ended = 1;
	}
	if (end)
		free(end->station);
	free(end);
	return error;
}
