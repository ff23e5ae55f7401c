/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A time-sequence graph of one direction of a connection, as tcptrace draws for TCP: sent and
 * acknowledged messages, and the credit limit.  Drawn by gnuplot.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* More points would be indistinguishable and slow to draw. */
#define SERIES_POINTS_MAX 20000
/* Number of messages before and after the limited one that the lower half of the plot shows. */
#define SECTION_MESSAGES_BEFORE 6
#define SECTION_MESSAGES_AFTER 24

static const struct format {
	const char *suffix, *terminal;
} formats[] = {
	{ ".png", "pngcairo size 1200,900" },
	{ ".svg", "svg size 1200,900" },
	{ ".pdf", "pdfcairo size 12,9" },
	{ ".gp", NULL },
};

static const struct format *find_format(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(dot, formats[i].suffix) == 0)
			return &formats[i];
	return NULL;
}

int plot_name_known(const char *name)
{
	return find_format(name) != NULL;
}

/* Series in the order of drawing; their colours are distinguishable with colour blindness. */
static const struct series {
	unsigned int kinds; /* set of 1 << enum stream_event_kind */
	const char *title, *style;
	enum series_height {
		SERIES_PACKET, /* from the start of the packet to its end */
		SERIES_POINT,
		SERIES_ACKNOWLEDGED,
		SERIES_LIMIT,
	} height;
} all_series[] = {
	{ ~0u, "acknowledged", "steps lw 2 lc rgb '#009e73'", SERIES_ACKNOWLEDGED },
	{ ~0u, "credit limit (LSN)", "steps lw 2 lc rgb '#d55e00'", SERIES_LIMIT },
	{ 1u << STREAM_SENT, "sent", "vectors nohead lw 3 lc rgb '#000000'", SERIES_PACKET },
	{ 1u << STREAM_RESENT | 1u << STREAM_LATE, "sent again",
	  "vectors nohead lw 3 lc rgb '#cc79a7'", SERIES_PACKET },
	{ 1u << STREAM_LIMITED, "limited request", "points pt 7 ps 1 lc rgb '#e69f00'",
	  SERIES_POINT },
	{ 1u << STREAM_UNSOLICITED, "unsolicited ACK", "points pt 9 ps 1 lc rgb '#56b4e9'",
	  SERIES_LIMIT },
	{ 1u << STREAM_RNR_NAK, "RNR NAK", "points pt 5 ps 1 lc rgb '#c00000'", SERIES_POINT },
	{ 1u << STREAM_SEQUENCE_NAK, "sequence NAK", "points pt 2 ps 1.5 lw 2 lc rgb '#0072b2'",
	  SERIES_POINT },
};
#define SERIES_COUNT (sizeof(all_series) / sizeof(all_series[0]))

static double event_seconds(const struct trace *trace, const struct stream_event *event)
{
	return (double)(event->time_ns - trace->totals.begin_ns) / 1e9;
}

static bool series_has_event(const struct series *series, const struct stream_event *event)
{
	if (series->height == SERIES_LIMIT && event->limit < 0)
		return false;
	return series->kinds >> event->kind & 1;
}

static void write_point(FILE *out, const struct trace *trace, const struct stream *stream,
			const struct series *series, const struct stream_event *event)
{
	double at = stream_message_at(stream, event->position);

	fprintf(out, "%.9f ", event_seconds(trace, event));
	if (series->height == SERIES_LIMIT)
		fprintf(out, "%" PRId64 "\n", event->limit);
	else if (series->height == SERIES_ACKNOWLEDGED)
		fprintf(out, "%.4f\n", stream_message_at(stream, event->unacked));
	else if (series->height == SERIES_PACKET)
		fprintf(out, "%.4f 0 %.4f\n", at,
			stream_message_at(stream, event->position + 1) - at);
	else
		fprintf(out, "%.4f\n", at);
}

/* Writes the data of a series; returns false if there is none. */
static bool write_series(FILE *out, const struct trace *trace, const struct stream *stream,
			 size_t number, const struct plot_range *range)
{
	const struct series *series = &all_series[number];
	size_t count = 0, seen = 0, stride;

	for (size_t pass = 0; pass < 2; pass++) {
		if (pass == 1 && count == 0)
			return false;
		if (pass == 1)
			fprintf(out, "$series%zu << END\n", number);
		stride = count / SERIES_POINTS_MAX + 1;
		for (size_t i = 0; i < stream->events.count; i++) {
			const struct stream_event *event = &stream->events.items[i];
			double at = event_seconds(trace, event);

			if (!series_has_event(series, event) || at < range->from ||
			    (range->to >= 0 && at > range->to))
				continue;
			if (pass == 0)
				count++;
			else if (seen++ % stride == 0)
				write_point(out, trace, stream, series, event);
		}
	}
	fprintf(out, "END\n");
	return true;
}

static void write_panel(FILE *out, unsigned int present, const char *title)
{
	const char *comma = "plot ";

	fprintf(out, "set title \"%s\"\n", title);
	for (size_t i = 0; i < SERIES_COUNT; i++) {
		if (!(present >> i & 1))
			continue;
		fprintf(out, "%s$series%zu with %s title '%s'", comma, i, all_series[i].style,
			all_series[i].title);
		comma = ", \\\n     ";
	}
	fputc('\n', out);
}

/*
 * Returns the first event from *from on with at least this many messages begun, or the last event;
 * moves *from to it.
 */
static const struct stream_event *find_event_by_messages(const struct stream *stream, size_t *from,
							 uint32_t messages)
{
	while (*from + 1 < stream->events.count && stream->events.items[*from].messages < messages)
		(*from)++;
	return &stream->events.items[*from];
}

/* A section of the plot, which the lower half enlarges. */
struct section {
	struct plot_range range;
	double heights[2];
	bool whole; /* not truncated by the start or end of the connection */
};

static bool is_better_section(const struct section *one, const struct section *other)
{
	if (other->range.to < 0 || one->whole != other->whole)
		return other->range.to < 0 || one->whole;
	return one->range.to - one->range.from < other->range.to - other->range.from;
}

/*
 * Finds the section where the sender reaches the limit and continues without a pause: the shortest
 * time with the wanted messages around a limited one.  Returns false if there is none.
 */
static bool find_limit_section(const struct trace *trace, const struct stream *stream,
			       struct section *best)
{
	size_t first = 0, last = 0;

	*best = (struct section){ .range.to = -1 };
	for (size_t i = 0; i < stream->events.count; i++) {
		uint32_t hit = stream->events.items[i].messages;
		uint32_t least = hit > SECTION_MESSAGES_BEFORE ? hit - SECTION_MESSAGES_BEFORE : 0;
		const struct stream_event *from, *to;
		struct section section;

		if (stream->events.items[i].kind != STREAM_LIMITED)
			continue;
		from = find_event_by_messages(stream, &first, least);
		to = find_event_by_messages(stream, &last, hit + SECTION_MESSAGES_AFTER);
		section = (struct section){
			.range = { event_seconds(trace, from), event_seconds(trace, to) },
			.heights = { (double)least - 2, (double)to->messages + 2 },
			.whole = least > 0 && to->messages >= hit + SECTION_MESSAGES_AFTER,
		};
		if (is_better_section(&section, best))
			*best = section;
	}
	return best->range.to > best->range.from;
}

static void format_title(char text[256], const struct trace *trace,
			 const struct trace_connection *connection, int side)
{
	uint32_t index = connection->flows[side];
	bool forward = index != FLOW_NONE;
	const struct flow *flow =
		&trace->flows.items[forward ? index : connection->flows[1 - side]];
	char from[TRACE_ADDRESS_BYTES], to[TRACE_ADDRESS_BYTES];

	report_address(forward ? flow->src : flow->dst, from);
	report_address(forward ? flow->dst : flow->src, to);
	snprintf(text, 256, "%s QP 0x%06x to %s QP 0x%06x", from,
		 forward ? flow->src_qpn : flow->dst_qpn, to,
		 forward ? flow->dst_qpn : flow->src_qpn);
}

static void write_plot(FILE *out, const struct trace *trace,
		       const struct trace_connection *connection, int side,
		       const struct plot_range *range)
{
	const struct stream *stream = &connection->streams[side];
	struct section section;
	unsigned int present = 0;
	char text[256];
	bool both;

	for (size_t i = 0; i < SERIES_COUNT; i++)
		if (write_series(out, trace, stream, i, range))
			present |= 1u << i;
	format_title(text, trace, connection, side);
	both = range->to < 0 && find_limit_section(trace, stream, &section);
	fprintf(out, "set grid\nset key left top\nset xlabel 'seconds'\nset ylabel 'messages'\n");
	fprintf(out, "set xtics format '%%.6g'\nset lmargin 10\n");
	if (!both) {
		write_panel(out, present, text);
		return;
	}
	fprintf(out, "set multiplot layout 2,1\n");
	write_panel(out, present, text);
	fprintf(out, "set xrange [%.9f:%.9f]\nset yrange [%.1f:%.1f]\nunset key\n",
		section.range.from, section.range.to, section.heights[0], section.heights[1]);
	write_panel(out, present, "the same, where the sender comes to the credit limit");
	fprintf(out, "unset multiplot\n");
}

static const struct trace_connection *choose_stream(const struct trace *trace, int *side)
{
	const struct trace_connection *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < trace->connections.count; i++) {
		const struct trace_connection *connection = &trace->connections.items[i];

		for (int j = 0; j < 2 && connection->is_reliable; j++) {
			uint64_t packets = connection->streams[j].counts.request_packets;

			if (packets <= most)
				continue;
			most = packets;
			best = connection;
			*side = j;
		}
	}
	return best;
}

/* Writes a string in single quotes; quotes inside are doubled. */
static void write_quoted(FILE *out, const char *text)
{
	fputc('\'', out);
	for (; *text; text++) {
		if (*text == '\'')
			fputc('\'', out);
		fputc(*text, out);
	}
	fputc('\'', out);
}

int plot_draw(const char *name, const struct trace *trace, const struct plot_range *range)
{
	const struct format *format = find_format(name);
	const struct trace_connection *connection;
	int side = 0, result;
	FILE *out;

	connection = choose_stream(trace, &side);
	if (!connection) {
		fprintf(stderr, "uroce-trace: nothing to plot: no requests of a reliable "
				"connection\n");
		return -1;
	}
	/*
	 * If gnuplot is missing, pclose() fails and an error is printed; SIGPIPE would end the
	 * program without one.
	 */
	signal(SIGPIPE, SIG_IGN);
	out = format->terminal ? popen("exec gnuplot", "w") : fopen(name, "w");
	if (!out) {
		fprintf(stderr, "uroce-trace: %s: %s\n", name, strerror(errno));
		return -1;
	}
	if (format->terminal) {
		fprintf(out, "set terminal %s\nset output ", format->terminal);
		write_quoted(out, name);
		fputc('\n', out);
	}
	write_plot(out, trace, connection, side, range);
	result = format->terminal ? pclose(out) : fclose(out);
	if (result != 0)
		fprintf(stderr, "uroce-trace: %s was not drawn: %s\n", name,
			format->terminal ? "gnuplot failed" : strerror(errno));
	return result ? -1 : 0;
}
