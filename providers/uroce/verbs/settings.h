/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Settings from environment variables (but UROCE_FAULT, which progress reads).  Read when a device
 * is opened, which fails if a value is invalid.
 */
#ifndef UROCE_VERBS_SETTINGS_H
#define UROCE_VERBS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/config.h"
#include "progress/progress.h"

struct uroce_settings {
	bool credits_hidden;	 /* UROCE_CREDITS=off */
	uint32_t receive_buffer; /* UROCE_RECEIVE_BUFFER: bytes */
	bool shared_memory;	 /* UROCE_SHM=on */
	uint8_t traffic_class;	 /* UROCE_TOS: default for QPs and AHs without one; 0 if not set */
	bool ooo_dropped;	 /* UROCE_OOO=off */
	/* UROCE_WORKERS: maximum number of workers; 0: the number of processors. */
	uint32_t workers;
	bool worker_for_each_cq; /* UROCE_WORKERS=cq: a worker per CQ, not per thread */
};

/*
 * Reads UROCE_CAPTURE; config->name is empty if it is not set.  A function of its own because the
 * configuration is large.  Returns 0, or -EINVAL with one line in error.
 */
int uroce_settings_read_capture(struct capture_config *config, char error[PROGRESS_ERROR_TEXT]);

/*
 * Reads all other settings.  Returns 0, or -EINVAL with one line in error that names the variable
 * and its fault.
 */
int uroce_settings_read(struct uroce_settings *settings, char error[PROGRESS_ERROR_TEXT]);

/* Applies the settings that concern sockets and shared memory to worker. */
void uroce_settings_apply(const struct uroce_settings *settings, struct progress *worker);

/* Returns false if UROCE_LOOPBACK=off: lists have no loopback device.  Read for each list. */
bool uroce_settings_loopback_enabled(void);
/*
 * If UROCE_LOOPBACK=127.X.Y.Z, stores that address as the only GID of the loopback device; else
 * returns false and does not change gid.
 */
bool uroce_settings_loopback_address(uint8_t gid[16]);

#endif
