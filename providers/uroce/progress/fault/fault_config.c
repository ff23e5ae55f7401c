/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "fault_config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define VARIABLE "UROCE_FAULT"
/* Maximum length of the invalid part in a message. */
#define SHOWN_BYTES 60

/* Maximum number of digits before the point, and after it; more would overflow. */
#define MAX_DIGITS 18

enum part {
	DROP,
	DUPLICATE,
	REORDER,
	CORRUPT,
	DELAY,
	SEED,
	PARTS,
};

static const char *const part_names[PARTS] = {
	[DROP] = "drop",       [DUPLICATE] = "dup", [REORDER] = "reorder",
	[CORRUPT] = "corrupt", [DELAY] = "delay",   [SEED] = "seed",
};

struct text {
	const char *bytes;
	size_t length;
};

static bool text_equals(struct text text, const char *name)
{
	return text.length == strlen(name) && !memcmp(text.bytes, name, text.length);
}

/* Parses digits from the front of *text; returns false if there are too many. */
static bool parse_digits(struct text *text, uint64_t *value, unsigned int *digits)
{
	*value = 0;
	for (*digits = 0; text->length && *text->bytes >= '0' && *text->bytes <= '9'; ++*digits) {
		if (*digits == MAX_DIGITS)
			return false;
		*value = *value * 10 + (uint64_t)(*text->bytes - '0');
		text->bytes++;
		text->length--;
	}
	return true;
}

/*
 * Parses an unsigned decimal number from the front of *text.  Not strtod(), which accepts signs,
 * blanks, NaN and hexadecimal numbers, and depends on the locale.
 */
static bool parse_decimal(struct text *text, double *value)
{
	uint64_t whole, fraction = 0;
	unsigned int whole_digits, digits = 0;
	double scale = 1;

	if (!parse_digits(text, &whole, &whole_digits))
		return false;
	if (text->length && *text->bytes == '.') {
		text->bytes++;
		text->length--;
		if (!parse_digits(text, &fraction, &digits))
			return false;
	}
	if (whole_digits + digits == 0)
		return false;
	while (digits--)
		scale *= 10;
	*value = (double)whole + (double)fraction / scale;
	return true;
}

static const char *parse_probability(struct text text, double *probability)
{
	if (!parse_decimal(&text, probability) || text.length || *probability > 1)
		return "probability must be 0..1";
	return NULL;
}

static const char *parse_delay(struct text text, uint64_t *delay_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	double number;

	if (!parse_decimal(&text, &number))
		return "delay must be a number with its unit: ns, us, ms or s";
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!text_equals(text, units[i].name))
			continue;
		if (number * units[i].ns > (double)FAULT_MAX_DELAY_NS)
			return "delay must be at most 10s";
		*delay_ns = (uint64_t)(number * units[i].ns + 0.5);
		return NULL;
	}
	return "unit must be ns, us, ms or s";
}

static const char *parse_seed(struct text text, uint64_t *seed)
{
	static const char wrong[] = "seed must be an integer below 2^64";

	*seed = 0;
	if (!text.length)
		return wrong;
	for (; text.length; text.bytes++, text.length--) {
		unsigned int digit = (unsigned int)(*text.bytes - '0');

		if (digit > 9 || *seed > (UINT64_MAX - digit) / 10)
			return wrong;
		*seed = *seed * 10 + digit;
	}
	return NULL;
}

static const char *parse_value(enum part part, struct text value, struct fault_config *config)
{
	switch (part) {
	case DROP:
		return parse_probability(value, &config->drop);
	case DUPLICATE:
		return parse_probability(value, &config->duplicate);
	case REORDER:
		return parse_probability(value, &config->reorder);
	case CORRUPT:
		return parse_probability(value, &config->corrupt);
	case DELAY:
		return parse_delay(value, &config->delay_ns);
	case SEED:
		return parse_seed(value, &config->seed);
	case PARTS:
		break;
	}
	return "unknown name, known are drop, dup, reorder, corrupt, delay and seed";
}

static const char *parse_part(struct text text, unsigned int *seen, struct fault_config *config)
{
	const char *sign = memchr(text.bytes, '=', text.length);
	struct text name = { text.bytes, text.length }, value = { text.bytes + text.length, 0 };
	enum part part = DROP;

	if (!text.length)
		return "a part is empty";
	if (sign) {
		name.length = (size_t)(sign - text.bytes);
		value = (struct text){ sign + 1, text.length - name.length - 1 };
	}
	while (part < PARTS && !text_equals(name, part_names[part]))
		part++;
	if (part < PARTS && !sign)
		return "'=' and a value are missing";
	if (part < PARTS && *seen & 1u << part)
		return "given twice";
	*seen |= 1u << part;
	return parse_value(part, value, config);
}

static void set_error(struct text part, const char *problem, char error[PROGRESS_ERROR_TEXT])
{
	bool cut = part.length > SHOWN_BYTES;

	snprintf(error, PROGRESS_ERROR_TEXT, "%s: %.*s%s: %s", VARIABLE,
		 cut ? SHOWN_BYTES : (int)part.length, part.bytes, cut ? "..." : "", problem);
}

int fault_parse(const char *text, struct fault_config *config, char error[PROGRESS_ERROR_TEXT])
{
	struct fault_config parsed = { 0 };
	unsigned int seen = 0;
	const char *from = text;

	for (;;) {
		struct text part = { from, strcspn(from, ",") };
		const char *problem = parse_part(part, &seen, &parsed);

		if (problem) {
			/* An empty part shows nothing: show the whole text. */
			set_error(part.length ? part : (struct text){ text, strlen(text) }, problem,
				  error);
			return -EINVAL;
		}
		if (!from[part.length])
			break;
		from += part.length + 1;
	}
	*config = parsed;
	return 0;
}

/* Returns the random number of packet n for a kind of decision (enum part), by mixing bits. */
static uint64_t random_number(uint64_t seed, uint64_t n, unsigned int kind)
{
	uint64_t x = seed * UINT64_C(0xd1342543de82ef95) + n * 8 + kind;

	for (unsigned int round = 0; round < 3; round++) {
		x += UINT64_C(0x9e3779b97f4a7c15);
		x ^= x >> 31;
		x *= UINT64_C(0xbf58476d1ce4e5b9);
		x ^= x >> 29;
	}
	return x;
}

static bool fault_happens(const struct fault_config *config, uint64_t n, enum part kind,
			  double probability)
{
	/* A double holds 53 bits; the result is below 1, so probability 1 always happens. */
	return (double)(random_number(config->seed, n, kind) >> 11) * 0x1p-53 < probability;
}

struct fault_action fault_action(const struct fault_config *config, uint64_t n)
{
	struct fault_action action = { .dropped = fault_happens(config, n, DROP, config->drop) };
	uint64_t random = random_number(config->seed, n, PARTS);

	if (action.dropped)
		return action;
	action.duplicated = fault_happens(config, n, DUPLICATE, config->duplicate);
	action.corrupted = fault_happens(config, n, CORRUPT, config->corrupt);
	if (fault_happens(config, n, REORDER, config->reorder))
		action.hold_packets = 1 + (unsigned int)(random >> 32) % 3;
	action.random = (uint32_t)random;
	return action;
}
