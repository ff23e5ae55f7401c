// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <inttypes.h>
#include <string.h>

#include "report.h"

void report_header(FILE *out)
{
	fprintf(out, "%-14s %-14s %5s %-12s %9s %8s %8s %8s %8s %8s %8s %8s %5s\n", "scenario",
		"scheme", "depth", "end", "MB/s", "p50 us", "p99 us", "RNR NAKs", "overruns",
		"ctl/data", "receives", "blocked", "Jain");
}

/* Returns the result of the side that consumes the measured messages: side 0 for responses. */
static const struct endpoint_result *measured_result(const struct run_result *result)
{
	return &result->side[result->sc.shape != SHAPE_REQUESTS].result;
}

static uint64_t receives_posted(const struct run_result *result)
{
	return result->side[1].result.receives;
}

static double blocked_share(const struct run_result *result)
{
	double ns = (double)result->side[0].result.blocked_ns;

	return result->seconds > 0 ? ns / 1e9 / result->seconds / result->sc.links : 0;
}

static uint64_t sum_overruns(const struct run_result *result)
{
	return result->side[0].overruns + result->side[1].overruns;
}

void report_row(FILE *out, const struct run_result *result)
{
	const struct endpoint_result *m = measured_result(result);
	char naks[24] = "-";

	if (result->rnr_naks >= 0)
		snprintf(naks, sizeof(naks), "%" PRId64, result->rnr_naks);
	fprintf(out,
		"%-14s %-14s %5u %-12s %9.2f %8.1f %8.1f %8s %8" PRIu64 " %8.3f %8" PRIu64
		" %7.0f%% %5.2f%s\n",
		result->sc.name, result->scheme->name, result->sc.depth,
		flow_verdict_name(result->verdict), run_goodput_mb(result), (double)m->p50_ns / 1e3,
		(double)m->p99_ns / 1e3, naks, sum_overruns(result),
		run_updates_per_message(result), receives_posted(result),
		100 * blocked_share(result), measured_result(result)->fairness_permille / 1000.0,
		run_is_as_predicted(result) ? "" : "   <== NOT AS PREDICTED");
}

void report_details(FILE *out, const struct run_result *result)
{
	if (result->verdict == VERDICT_OK && !result->predicted)
		return;
	fprintf(out, "  %s, %s: %s", result->sc.name, result->scheme->name,
		flow_verdict_name(result->verdict));
	if (result->predicted)
		fprintf(out,
			run_is_as_predicted(result) ? ", as predicted: %s"
						    : ", but predicted was: %s",
			result->predicted->reason);
	fputc('\n', out);
	for (unsigned int side = 0; side < FLOW_SIDES; side++)
		fprintf(out,
			"    side %u: %" PRIu64 " messages and %" PRIu64 " updates sent, %" PRIu64
			" consumed; %s\n",
			side, (uint64_t)result->side[side].data_sent,
			(uint64_t)result->side[side].control_sent,
			(uint64_t)result->side[side].consumed, result->side[side].what);
}

static bool is_one_way(const struct run_result *r, const struct scheme *scheme)
{
	return r->scheme == scheme && !r->predicted && !strcmp(r->sc.name, "one-way");
}

void report_smallest_depths(FILE *out, const struct run_result *results, unsigned int count)
{
	fputs("receives for 95 % of the best goodput, one-way:\n", out);
	for (const struct scheme *const *s = schemes; *s; s++) {
		const struct run_result *least = NULL;
		double best = 0;

		for (unsigned int i = 0; i < count; i++)
			if (is_one_way(&results[i], *s) && run_goodput_mb(&results[i]) > best)
				best = run_goodput_mb(&results[i]);
		for (unsigned int i = 0; i < count; i++)
			if (is_one_way(&results[i], *s) &&
			    run_goodput_mb(&results[i]) >= 0.95 * best &&
			    (!least || results[i].sc.depth < least->sc.depth))
				least = &results[i];
		if (least)
			fprintf(out, "  %-14s %5" PRIu64 " (depth %u) of %8.2f MB/s\n", (*s)->name,
				receives_posted(least), least->sc.depth, best);
	}
}

/* ---- JSON ---- */

static void json_side(FILE *out, const struct endpoint_stats *side)
{
	const struct endpoint_result *r = &side->result;

	fprintf(out,
		"{\"data_sent\":%" PRIu64 ",\"control_sent\":%" PRIu64 ",\"consumed\":%" PRIu64
		",\"overruns\":%" PRIu64 ",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
		",\"free_p50_ns\":%" PRIu64 ",\"free_p99_ns\":%" PRIu64 ",\"blocked_ns\":%" PRIu64
		",\"longest_blocked_ns\":%" PRIu64 ",\"stalls\":%" PRIu64 ",\"receives\":%" PRIu64
		",\"error\":%u}",
		(uint64_t)side->data_sent, (uint64_t)side->control_sent, (uint64_t)side->consumed,
		(uint64_t)side->overruns, r->p50_ns, r->p99_ns, r->free_p50_ns, r->free_p99_ns,
		r->blocked_ns, r->max_blocked_ns, r->stalls, r->receives, side->error);
}

static void json_run(FILE *out, const struct run_result *r)
{
	fprintf(out,
		"{\"scenario\":\"%s\",\"scheme\":\"%s\",\"seed\":%" PRIu64 ",\"depth\":%u,"
		"\"links\":%u,\"bytes\":%u,\"service_ns\":%" PRIu64
		",\"verdict\":\"%s\",\"predicted\":\"%s\","
		"\"seconds\":%.6f,\"goodput_mb\":%.3f,\"messages_per_second\":%.1f,"
		"\"control_per_data\":%.4f,\"fairness\":%.3f,\"blocked_share\":%.4f,",
		r->sc.name, r->scheme->name, r->seed, r->sc.depth, r->sc.links, r->sc.bytes,
		r->sc.service_ns[1], flow_verdict_name(r->verdict),
		flow_verdict_name(r->predicted ? r->predicted->predicted : VERDICT_OK), r->seconds,
		run_goodput_mb(r), run_messages(r), run_updates_per_message(r),
		measured_result(r)->fairness_permille / 1000.0, blocked_share(r));
	if (r->rnr_naks >= 0)
		fprintf(out, "\"rnr_naks\":%" PRId64 ",", r->rnr_naks);
	else
		fputs("\"rnr_naks\":null,", out);
	fputs("\"sides\":[", out);
	json_side(out, &r->side[0]);
	fputc(',', out);
	json_side(out, &r->side[1]);
	fputs("]}", out);
}

void report_json(FILE *out, const struct run_result *results, unsigned int count)
{
	fputs("[", out);
	for (unsigned int i = 0; i < count; i++) {
		fputs(i ? ",\n" : "\n", out);
		json_run(out, &results[i]);
	}
	fputs("\n]\n", out);
}

void report_schemes(FILE *out)
{
	for (const struct scheme *const *s = schemes; *s; s++)
		fprintf(out,
			"%s%s\n  counted     %s\n  carried by  %s\n  reported    %s\n"
			"  reserved    %s\n  source      %s\n",
			(*s)->name, (*s)->flags & SCHEME_CONTROL ? " (negative control)" : "",
			(*s)->counted, (*s)->carried_by, (*s)->reported, (*s)->reserved,
			(*s)->source);
	fputs("\nscenarios\n", out);
	for (const struct scenario *sc = scenarios; sc->name; sc++)
		fprintf(out, "  %-15s %s\n", sc->name, sc->about);
}
