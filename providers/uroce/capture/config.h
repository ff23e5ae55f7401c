/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What is to be captured, and where to: FILE[,OPTION=VALUE...], as UROCE_CAPTURE says it.
 */
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
	/* Ethernet, IPv6, UDP and BTH fit, so that the queue pair is in what is left. */
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
	uint8_t peer[16]; /* as in a GID */
};

struct capture_config {
	char name[CAPTURE_NAME_BYTES]; /* "%p" still in it; "-": standard output */
	uint32_t snaplen;	       /* bytes of each frame */
	uint32_t files;		       /* of a ring of files; 0: one file without a limit */
	uint64_t file_bytes;
	/* A packet that any of them matches is captured; without filters every one. */
	unsigned int filters;
	struct capture_filter filter[CAPTURE_FILTERS_MAX];
	char filters_text[CAPTURE_FILTERS_TEXT]; /* for the file */
	/* How the end of the capture by an error is told; NULL: not at all. */
	void (*complain)(const char *format, ...);
};

/* 0, or -EINVAL with what is wrong in error; text stands in it. */
int capture_config_parse(struct capture_config *config, const char *text,
			 char error[CAPTURE_ERROR_TEXT]);
/* Only the options, with or without a comma in front; the name becomes empty. */
int capture_config_parse_options(struct capture_config *config, const char *text,
				 char error[CAPTURE_ERROR_TEXT]);

struct capture_packets;
/* Is any of the packets wanted?  They are all of one queue pair and to one. */
bool capture_config_wants(const struct capture_config *config,
			  const struct capture_packets *packets);

/*
 * The file's name with the number of a process in it; number 1 and on: of a file of the ring,
 * before the name's ending.  False when it is longer than CAPTURE_NAME_BYTES.
 */
bool capture_config_name(const struct capture_config *config, int process, unsigned int number,
			 char name[CAPTURE_NAME_BYTES]);

#endif
