/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Parser of capture settings: FILE[,OPTION=VALUE...], the syntax of UROCE_CAPTURE. */
#ifndef UROCE_CAPTURE_CONFIG_H
#define UROCE_CAPTURE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CAPTURE_ERROR_TEXT 256
#define CAPTURE_NAME_BYTES 1024
#define CAPTURE_FILTERS_MAX 8
#define CAPTURE_FILTERS_TEXT 192

enum {
	/* Room for Ethernet, IPv6, UDP and BTH headers, so that the destination QP is captured. */
	CAPTURE_SNAPLEN_MIN = 80,
	CAPTURE_SNAPLEN_MAX = 65535,
	CAPTURE_FILES_MAX = 9999,
	CAPTURE_FILE_BYTES_MIN = 65536,
};

enum capture_filter_kind {
	CAPTURE_FILTER_QPN,
	CAPTURE_FILTER_PEER,
};

struct capture_filter {
	enum capture_filter_kind kind;
	uint32_t qpn;
	uint8_t peer[16]; /* GID format */
};

struct capture_config {
	char name[CAPTURE_NAME_BYTES]; /* before expansion of "%p"; "-": standard output */
	uint32_t snaplen;	       /* maximum number of bytes captured of a frame */
	uint32_t files; /* number of files in the ring; 0: one file of unlimited size */
	uint64_t file_bytes;
	/* A packet is captured if any filter matches, or if there are no filters. */
	unsigned int filters;
	struct capture_filter filter[CAPTURE_FILTERS_MAX];
	char filters_text[CAPTURE_FILTERS_TEXT]; /* text of the filters, written to the file */
	/* Reports an error that ends the capture; may be NULL. */
	void (*report_error)(const char *format, ...);
};

/* Parses text.  Returns 0, or -EINVAL with one line in error, which quotes text. */
int capture_config_parse(struct capture_config *config, const char *text,
			 char error[CAPTURE_ERROR_TEXT]);
/* Parses options only, with or without a leading comma; the name is set to "". */
int capture_config_parse_options(struct capture_config *config, const char *text,
				 char error[CAPTURE_ERROR_TEXT]);

struct capture_packets;
/* Returns true if the filters match any of the packets, which have the same QP and destination. */
bool capture_config_matches(const struct capture_config *config,
			    const struct capture_packets *packets);

/*
 * Expands the name for a process.  A number above 0 is the number of a file in the ring and is
 * inserted before the suffix.  Returns false if the name exceeds CAPTURE_NAME_BYTES.
 */
bool capture_config_name(const struct capture_config *config, int process, unsigned int number,
			 char name[CAPTURE_NAME_BYTES]);

#endif
