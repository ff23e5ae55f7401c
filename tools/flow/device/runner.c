// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"

enum { BATCH = 32, RUNNER_ERROR = 1000 };

struct runner {
	struct runner_options *options;
	struct device device;
	struct scenario sc;
	const struct scheme *scheme;
	struct flow_endpoint *endpoint;
	struct endpoint_stats *mine;
	int64_t offset_ns; /* to be added to timestamps of the peer */
	struct peer_reports reports;
	struct run_checker checker;
};

static int fail_with(struct runner *runner, const char *what)
{
	snprintf(runner->mine->what, sizeof(runner->mine->what), "%s", what);
	runner->mine->error = RUNNER_ERROR;
	return -1;
}

static int post_receives(struct runner *runner)
{
	struct flow_endpoint *st = runner->endpoint;

	for (uint32_t link = 0; link < (st->shared ? 1 : st->link_count); link++)
		if (device_post_receives(&runner->device, link, runner->device.receives))
			return -1;
	endpoint_receives_posted(st);
	return 0;
}

static int set_up(struct runner *runner)
{
	struct runner_options *o = runner->options;
	bool rnr_retry; /* otherwise an overrun is a completion error of the device */

	if (device_open(&runner->device, &o->device) ||
	    oob_negotiate(o->sock, o->side, &runner->device, &o->plan))
		return fail_with(runner, runner->device.error);
	if (!plan_scenario(&o->plan, &runner->sc))
		return fail_with(runner, "scenario, scheme, depth or size is out of limits");
	runner->scheme = scheme_find(o->plan.scheme);
	runner->mine->depth = o->plan.depth;
	rnr_retry = runner->scheme->flags & (SCHEME_RNR_IS_PART | SCHEME_OVER_BY_ACK);
	if (device_create_objects(&runner->device, &runner->sc, runner->scheme, o->side) ||
	    oob_connect(o->sock, &runner->device, rnr_retry))
		return fail_with(runner, runner->device.error);
	runner->endpoint->sc = &runner->sc;
	runner->endpoint->scheme = runner->scheme;
	runner->endpoint->seed = o->plan.seed;
	runner->endpoint->side = o->side;
	endpoint_init(runner->endpoint, o->stats);
	runner->endpoint->stats_shared = !o->plan.two_hosts;
	if (post_receives(runner))
		return fail_with(runner, runner->device.error);
	if (o->plan.two_hosts && oob_measure_clock(o->sock, o->side, &runner->offset_ns))
		return fail_with(runner, "the peer has exited");
	if (oob_barrier(o->sock))
		return fail_with(runner, "the peer has exited");
	checker_init(&runner->checker, o->stats, &runner->sc, runner->scheme, clock_ns());
	return 0;
}

/*
 * Converts the timestamp of a received message to the local clock.  Those of requests and responses
 * are left: they are by the requester's clock, and the responder returns them unchanged.
 */
static void adjust_clock(const struct runner *runner, struct flow_message *m)
{
	if (m->kind != FLOW_REQUEST && m->kind != FLOW_RESPONSE)
		m->ready_ns += (uint64_t)runner->offset_ns;
}

static int handle_completion(struct runner *runner, const struct ibv_wc *wc, uint64_t now)
{
	struct flow_message m;

	if (wc->status != IBV_WC_SUCCESS) {
		if (!runner->mine->error)
			snprintf(runner->mine->what, sizeof(runner->mine->what), "%s",
				 ibv_wc_status_str(wc->status));
		runner->mine->error = wc->status;
		return -1;
	}
	if (!(wc->wr_id & WR_RECEIVE)) {
		endpoint_completed(runner->endpoint, (uint32_t)wc->wr_id, now);
		return 0;
	}
	if (!device_read_message(&runner->device, wc, &m))
		return fail_with(runner, "received a message that is not from uroce-flow");
	adjust_clock(runner, &m);
	endpoint_arrived(runner->endpoint, &m, true, now);
	return 0;
}

/*
 * Polls the CQ and updates by WRITE.  Returns -1 on error, 1 if there was a completion or an
 * update, otherwise 0.
 */
static int poll_all(struct runner *runner)
{
	struct ibv_wc wc[BATCH];
	struct flow_message m;
	int count = ibv_poll_cq(runner->device.cq, BATCH, wc), moved = count != 0;
	/* Read after the poll; otherwise a message could arrive before it was sent. */
	uint64_t now = clock_ns();

	if (count < 0)
		return fail_with(runner, "ibv_poll_cq() failed");
	for (int i = 0; i < count; i++)
		if (handle_completion(runner, &wc[i], now))
			return -1;
	if (runner->scheme->flags & SCHEME_UPDATE_BY_WRITE) {
		for (uint32_t link = 0; link < runner->sc.links; link++) {
			if (device_poll_update(&runner->device, link, &m)) {
				endpoint_arrived(runner->endpoint, &m, false, now);
				moved = 1;
			}
		}
	}
	return moved;
}

static int post_all(struct runner *runner, uint64_t now)
{
	struct flow_endpoint *st = runner->endpoint;
	struct flow_message out;
	int moved = 0;

	endpoint_advance(st, now);
	for (uint32_t link = 0; link < st->link_count; link++) {
		uint32_t count = endpoint_to_post(st, link);

		if (!count)
			continue;
		if (device_post_receives(&runner->device, link, count))
			return fail_with(runner, runner->device.error);
		endpoint_posted(st, link, count);
		moved = 1;
	}
	for (uint32_t link = 0; link < st->link_count; link++) {
		while (endpoint_next(st, link, now, &out)) {
			if (device_post(&runner->device, &out))
				return fail_with(runner, runner->device.error);
			moved = 1;
		}
	}
	return moved;
}

static void publish_state(struct runner *runner, bool moved)
{
	struct endpoint_stats *mine = runner->mine;

	if (!moved) {
		mine->done = endpoint_is_done(runner->endpoint);
		mine->idle = endpoint_is_idle(runner->endpoint);
	} else {
		mine->idle = 0;
	}
	stats_add(&mine->loops, 1);
}

/*
 * Exchanges reports with an endpoint on another host; side 0 also runs the checker.  Returns
 * VERDICT_RUNNING, or sets stats->stop and returns another verdict.
 */
static enum flow_verdict exchange_reports(struct runner *runner, uint64_t now)
{
	struct runner_options *o = runner->options;
	enum flow_verdict verdict = VERDICT_RUNNING;

	if (peer_reports_exchange(&runner->reports, o->sock, o->stats, o->side, now))
		verdict = VERDICT_ERROR;
	else if (o->side == 0)
		verdict = checker_poll(&runner->checker, now);
	if (verdict != VERDICT_RUNNING)
		o->stats->stop = 1;
	return verdict;
}

static enum flow_verdict run_loop(struct runner *runner)
{
	enum flow_verdict verdict = VERDICT_RUNNING;
	bool broken = false;

	endpoint_start(runner->endpoint, clock_ns());
	while (!runner->options->stats->stop) {
		int polled = broken ? 0 : poll_all(runner);
		uint64_t now = clock_ns();
		int posted = broken || polled < 0 ? 0 : post_all(runner, now);

		if (polled < 0 || posted < 0)
			broken = true;
		else
			publish_state(runner, polled || posted);
		if (!polled && !posted)
			sched_yield();
		if (runner->options->plan.two_hosts)
			verdict = exchange_reports(runner, now);
	}
	return verdict;
}

int runner_run(struct runner_options *options, enum flow_verdict *verdict)
{
	struct runner *runner = calloc(1, sizeof(*runner));
	int error = -1;

	*verdict = VERDICT_ERROR;
	if (runner)
		runner->endpoint = calloc(1, sizeof(*runner->endpoint));
	if (runner && runner->endpoint) {
		runner->options = options;
		runner->mine = &options->stats->side[options->side];
		error = set_up(runner);
		if (!error) {
			*verdict = run_loop(runner);
			endpoint_finish(runner->endpoint);
			if (options->finished)
				options->finished(options->argument);
			if (options->plan.two_hosts)
				error = peer_reports_finish(&runner->reports, options->sock,
							    options->stats, options->side, verdict);
			if (!error && options->plan.two_hosts)
				*verdict = checker_final(&runner->checker, *verdict);
		}
		device_close(&runner->device);
		runner->mine->finished = 1;
	}
	if (runner)
		free(runner->endpoint);
	free(runner);
	return error;
}
