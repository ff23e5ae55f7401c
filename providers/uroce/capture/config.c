/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "capture.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/gid.h"
#include "wire/packet.h"

enum {
	OPTION_BYTES = 128,
};

__attribute__((format(printf, 2, 3))) static int set_error(char error[CAPTURE_ERROR_TEXT],
							   const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, CAPTURE_ERROR_TEXT, format, args);
	va_end(args);
	return -EINVAL;
}

/* Parses a number, with C prefixes, and advances *text past it. */
static bool parse_number(const char **text, uint64_t least, uint64_t most, uint64_t *value)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*value = strtoull(*text, &end, 0);
	*text = end;
	return !errno && *value >= least && *value <= most;
}

static bool parse_snaplen(struct capture_config *config, const char *text)
{
	uint64_t value;

	if (!parse_number(&text, CAPTURE_SNAPLEN_MIN, CAPTURE_SNAPLEN_MAX, &value) || *text)
		return false;
	config->snaplen = (uint32_t)value;
	return true;
}

static bool parse_unit(const char *text, uint64_t *bytes)
{
	static const char units[] = "kMG";
	const char *unit = *text ? strchr(units, *text) : NULL;

	if (!*text)
		return true;
	if (!unit || text[1])
		return false;
	for (const char *u = units; u <= unit; u++)
		*bytes *= 1024;
	return true;
}

static bool parse_ring(struct capture_config *config, const char *text)
{
	uint64_t files, bytes;

	if (!parse_number(&text, 2, CAPTURE_FILES_MAX, &files) || *text++ != 'x' ||
	    !parse_number(&text, 1, UINT32_MAX, &bytes) || !parse_unit(text, &bytes) ||
	    bytes < CAPTURE_FILE_BYTES_MIN)
		return false;
	config->files = (uint32_t)files;
	config->file_bytes = bytes;
	return true;
}

static bool parse_peer(const char *text, uint8_t gid[16])
{
	memcpy(gid, gid_ipv4_prefix, sizeof(gid_ipv4_prefix));
	return inet_pton(AF_INET, text, gid + sizeof(gid_ipv4_prefix)) == 1 ||
	       inet_pton(AF_INET6, text, gid) == 1;
}

/* Text that does not fit into filters_text is missing in the file only; the filter works. */
static void append_filter_text(struct capture_config *config, const char *text)
{
	size_t length = strlen(config->filters_text);

	snprintf(config->filters_text + length, sizeof(config->filters_text) - length, "%s%s",
		 length ? " or " : "", text);
}

static bool parse_filter(struct capture_config *config, const char *text)
{
	struct capture_filter *filter = &config->filter[config->filters];
	uint64_t qpn;

	if (config->filters == CAPTURE_FILTERS_MAX)
		return false;
	append_filter_text(config, text);
	if (strncmp(text, "qpn:", 4) == 0) {
		text += 4;
		if (!parse_number(&text, 0, WIRE_24BIT_MASK, &qpn) || *text)
			return false;
		filter->kind = CAPTURE_FILTER_QPN;
		filter->qpn = (uint32_t)qpn;
	} else if (strncmp(text, "peer:", 5) == 0) {
		if (!parse_peer(text + 5, filter->peer))
			return false;
		filter->kind = CAPTURE_FILTER_PEER;
	} else {
		return false;
	}
	config->filters++;
	return true;
}

static const struct option {
	const char *name;
	bool (*parse)(struct capture_config *config, const char *text);
	const char *expected;
} options[] = {
	{ "snaplen=", parse_snaplen, "has to be 80 to 65535 bytes of each packet" },
	{ "ring=", parse_ring,
	  "has to be a number of files (2 to 9999), x and the size of each (64k or more), as "
	  "10x16M" },
	{ "filter=", parse_filter,
	  "has to be qpn:NUMBER or peer:ADDRESS, at most 8 times; each adds packets" },
};

static int parse_option(struct capture_config *config, const char *text,
			char error[CAPTURE_ERROR_TEXT])
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size_t length = strlen(options[i].name);

		if (strncmp(text, options[i].name, length) != 0)
			continue;
		if (options[i].parse(config, text + length))
			return 0;
		return set_error(error, "%.60s: %s", text, options[i].expected);
	}
	return set_error(error, "%.60s: the options are snaplen=, ring= and filter=", text);
}

int capture_config_parse_options(struct capture_config *config, const char *text,
				 char error[CAPTURE_ERROR_TEXT])
{
	*config = (struct capture_config){ .snaplen = CAPTURE_SNAPLEN_MAX };
	if (*text == ',' && *++text == '\0')
		return set_error(error, "a comma with no option behind it");
	while (*text) {
		char option[OPTION_BYTES];
		size_t length = strcspn(text, ",");
		int result;

		snprintf(option, sizeof(option), "%.*s", (int)length, text);
		result = length < sizeof(option)
				 ? parse_option(config, option, error)
				 : set_error(error, "%.60s: longer than any option", option);
		if (result)
			return result;
		text += length;
		if (*text == ',' && !text[1])
			return set_error(error, "a comma with no option behind it");
		text += *text == ',';
	}
	return 0;
}

int capture_config_parse(struct capture_config *config, const char *text,
			 char error[CAPTURE_ERROR_TEXT])
{
	size_t length = strcspn(text, ",");
	int result;

	if (length == 0)
		return set_error(error, "the name of a file has to come first");
	/* Leave room for the numbers of the process and of the file. */
	if (length > CAPTURE_NAME_BYTES - 32)
		return set_error(error, "%.60s...: the name is too long", text);
	for (const char *at = text; (at = memchr(at, '%', length - (size_t)(at - text))); at += 2) {
		if (at[1] != 'p' && at[1] != '%')
			return set_error(
				error,
				"%.60s: %%p stands for the number of the process, %%%% for a "
				"percent sign, and nothing else may follow one",
				text);
		if (at + 2 >= text + length)
			break;
	}
	result = capture_config_parse_options(config, text + length, error);
	memcpy(config->name, text, length);
	config->name[length] = '\0';
	if (!result && config->files && strcmp(config->name, "-") == 0)
		return set_error(error, "ring= needs the name of a file, not standard output");
	return result;
}

static bool filter_matches(const struct capture_filter *filter,
			   const struct capture_packets *packets, uint32_t dest_qpn)
{
	const uint8_t *peer = packets->outbound ? packets->path->dst : packets->path->src;

	if (filter->kind == CAPTURE_FILTER_PEER)
		return memcmp(peer, filter->peer, sizeof(filter->peer)) == 0;
	return dest_qpn == filter->qpn || (packets->outbound && packets->qpn == filter->qpn);
}

/* Returns the destination QP of the first packet; 0 if its BTH is not in one piece. */
static uint32_t first_dest_qpn(const struct capture_packets *packets)
{
	const uint8_t *bth = packets->pieces[0].iov_base;

	if (packets->pieces[0].iov_len < WIRE_BTH_BYTES)
		return 0;
	return (uint32_t)bth[5] << 16 | (uint32_t)bth[6] << 8 | bth[7];
}

bool capture_config_matches(const struct capture_config *config,
			    const struct capture_packets *packets)
{
	uint32_t dest_qpn = first_dest_qpn(packets);

	for (unsigned int i = 0; i < config->filters; i++)
		if (filter_matches(&config->filter[i], packets, dest_qpn))
			return true;
	return config->filters == 0;
}

/* Offset of the last path component's suffix, or of the end of the name. */
static size_t suffix_offset(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *dot = strrchr(slash ? slash : name, '.');

	return dot ? (size_t)(dot - name) : strlen(name);
}

bool capture_config_name(const struct capture_config *config, int process, unsigned int number,
			 char name[CAPTURE_NAME_BYTES])
{
	size_t suffix = suffix_offset(config->name), length = 0;
	int added;

	for (size_t i = 0;; i++) {
		const char *at = config->name + i;
		char *to = name + length;
		size_t room = CAPTURE_NAME_BYTES - length;

		if (i == suffix && number) {
			added = snprintf(to, room, "_%05u", number);
			length += (size_t)added;
			if (length >= CAPTURE_NAME_BYTES)
				return false;
			to += added;
			room -= (size_t)added;
		}
		if (!*at) {
			*to = '\0';
			return true;
		}
		added = 1;
		if (at[0] == '%' && at[1] == 'p')
			added = snprintf(to, room, "%d", process);
		else
			*to = *at;
		i += *at == '%';
		length += (size_t)added;
		if (length >= CAPTURE_NAME_BYTES)
			return false;
	}
}
