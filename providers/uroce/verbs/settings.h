/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the environment sets (UROCE_FAULT is progress's own).  Read when a device is opened; a wrong
 * value is refused there.
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
	uint8_t traffic_class;	 /* UROCE_TOS: of what asks for none; 0 as well without it */
	bool early_dropped;	 /* UROCE_EARLY=off */
	/* UROCE_WORKERS: number of workers at most; 0: as many as processors. */
	uint32_t workers;
	bool worker_for_each_cq; /* UROCE_WORKERS=cq: not for each thread */
};

/* UROCE_CAPTURE, apart because it is large; its name is empty where there is none. */
int uroce_settings_read_capture(struct capture_config *config, char error[PROGRESS_ERROR_TEXT]);

/* 0, or -EINVAL with one line in error that names the variable and what is wrong with it. */
int uroce_settings_read(struct uroce_settings *settings, char error[PROGRESS_ERROR_TEXT]);

/* Set what the links of a worker have to know. */
void uroce_settings_apply(const struct uroce_settings *settings, struct progress *worker);

/* UROCE_LOOPBACK=off: no list has the device of the loopback interface.  Read for each list. */
bool uroce_settings_loopback(void);
/*
 * UROCE_LOOPBACK=127.X.Y.Z: the GID that device has instead of its own; false, and gid is left as
 * it is, when that is not set.
 */
bool uroce_settings_loopback_address(uint8_t gid[16]);

#endif
