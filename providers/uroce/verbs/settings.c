/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "settings_number.h"
#include "util/gid.h"

enum {
	ECN_MARKED = 3,
};

static bool parse_switch(const char *text, bool *on)
{
	*on = strcmp(text, "on") == 0;
	return *on || strcmp(text, "off") == 0;
}

/* Accepts addresses of 127.0.0.0/8 to which a socket can be bound. */
static bool parse_loopback(const char *text, uint8_t gid[16])
{
	struct in_addr address;
	uint32_t host;

	if (inet_pton(AF_INET, text, &address) != 1)
		return false;
	host = ntohl(address.s_addr) & ~IN_CLASSA_NET;
	gid_from_ipv4(gid, &address);
	return gid_is_loopback(gid) && host && host != IN_CLASSA_HOST;
}

bool uroce_settings_loopback_address(uint8_t gid[16])
{
	const char *loopback = getenv("UROCE_LOOPBACK");
	uint8_t parsed[16];

	if (!loopback || !parse_loopback(loopback, parsed))
		return false;
	memcpy(gid, parsed, sizeof(parsed));
	return true;
}

/* Refuses the ECN bits 11b, which only routers set. */
static int read_traffic_class(struct uroce_settings *settings, char error[PROGRESS_ERROR_TEXT])
{
	const char *text = getenv("UROCE_TOS");
	uint32_t value = 0;

	if (text && !settings_parse_number(text, 0, 0, UINT8_MAX, &value)) {
		snprintf(error, PROGRESS_ERROR_TEXT,
			 "UROCE_TOS=%.60s: must be a traffic class from 0 to 255, such as 106 or "
			 "0x6a",
			 text);
		return -EINVAL;
	}
	if ((value & ECN_MARKED) == ECN_MARKED) {
		snprintf(error, PROGRESS_ERROR_TEXT,
			 "UROCE_TOS=%.60s: the ECN bits (last two) are 11, which only routers "
			 "set on congestion; 10 enables ECN, as in %u",
			 text, value - 1);
		return -EINVAL;
	}
	settings->traffic_class = (uint8_t)value;
	return 0;
}

static int read_workers(struct uroce_settings *settings, char error[PROGRESS_ERROR_TEXT])
{
	const char *text = getenv("UROCE_WORKERS");

	settings->worker_for_each_cq = text && strcmp(text, "cq") == 0;
	if (!text || settings->worker_for_each_cq ||
	    settings_parse_number(text, 10, 1, PROGRESS_WORKERS, &settings->workers))
		return 0;
	snprintf(error, PROGRESS_ERROR_TEXT,
		 "UROCE_WORKERS=%.60s: must be a number from 1 to %d, or cq", text,
		 PROGRESS_WORKERS);
	return -EINVAL;
}

void uroce_settings_apply(const struct uroce_settings *settings, struct progress *worker)
{
	link_set_receive_buffer(progress_link(worker), settings->receive_buffer);
	link_set_shared_memory(progress_link(worker), settings->shared_memory);
}

bool uroce_settings_loopback_enabled(void)
{
	const char *loopback = getenv("UROCE_LOOPBACK");

	return !loopback || strcmp(loopback, "off") != 0;
}

/* The name of UROCE_OOO before November 2026, read for one more release. */
#define OLD_UROCE_OOO "UROCE_EARLY"

int uroce_settings_read(struct uroce_settings *settings, char error[PROGRESS_ERROR_TEXT])
{
	const char *credits = getenv("UROCE_CREDITS");
	const char *buffer = getenv("UROCE_RECEIVE_BUFFER");
	const char *memory = getenv("UROCE_SHM");
	const char *log = getenv("UROCE_LOG");
	const char *loopback = getenv("UROCE_LOOPBACK");
	const char *ooo_name = getenv("UROCE_OOO") ? "UROCE_OOO" : OLD_UROCE_OOO;
	const char *ooo = getenv(ooo_name);
	bool credits_shown = true, ooo_buffered = true, loopback_shown;
	uint8_t loopback_gid[16];
	enum uroce_log level;
	struct uroce_settings read = { .receive_buffer = RECEIVE_BUFFER_DEFAULT };

	if (credits && !parse_switch(credits, &credits_shown)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "UROCE_CREDITS=%.60s: must be on or off",
			 credits);
		return -EINVAL;
	}
	if (buffer && !settings_parse_receive_buffer(buffer, &read.receive_buffer)) {
		snprintf(error, PROGRESS_ERROR_TEXT,
			 "UROCE_RECEIVE_BUFFER=%.60s: must be a number of bytes from %d to %d",
			 buffer, RECEIVE_BUFFER_MIN, RECEIVE_BUFFER_MAX);
		return -EINVAL;
	}
	/* auto is off at present: Documentation/decisions/shared-memory.md */
	if (memory && strcmp(memory, "auto") != 0 && !parse_switch(memory, &read.shared_memory)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "UROCE_SHM=%.60s: must be auto, on or off",
			 memory);
		return -EINVAL;
	}
	if (loopback && !parse_switch(loopback, &loopback_shown) &&
	    !parse_loopback(loopback, loopback_gid)) {
		snprintf(error, PROGRESS_ERROR_TEXT,
			 "UROCE_LOOPBACK=%.60s: must be on, off or an address of 127.0.0.0/8",
			 loopback);
		return -EINVAL;
	}
	if (log && !uroce_log_parse(log, &level)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "UROCE_LOG=%.60s: must be off, error or debug",
			 log);
		return -EINVAL;
	}
	if (read_traffic_class(&read, error) || read_workers(&read, error))
		return -EINVAL;
	if (ooo && !parse_switch(ooo, &ooo_buffered)) {
		snprintf(error, PROGRESS_ERROR_TEXT, "%s=%.60s: must be on or off", ooo_name, ooo);
		return -EINVAL;
	}
	read.ooo_dropped = !ooo_buffered;
	read.credits_hidden = !credits_shown;
	*settings = read;
	return 0;
}

int uroce_settings_read_capture(struct capture_config *config, char error[PROGRESS_ERROR_TEXT])
{
	/* It names a file. */
	const char *text = secure_getenv("UROCE_CAPTURE");
	char why[CAPTURE_ERROR_TEXT];

	config->name[0] = '\0';
	if (!text || capture_config_parse(config, text, why) == 0)
		return 0;
	snprintf(error, PROGRESS_ERROR_TEXT, "UROCE_CAPTURE: %.200s", why);
	return -EINVAL;
}
