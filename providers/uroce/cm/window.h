/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How many requests (REQ, SIDR_REQ, DREQ) to a peer may be unanswered at a time: a storm of them
 * would only overrun its socket.  Later ones wait their turn; a request that has to be repeated no
 * longer counts, so that peers that are gone hold up others for no longer than the first pause.
 */
#ifndef UROCE_CM_WINDOW_H
#define UROCE_CM_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Peers share a place when their addresses fall together: it only makes the limit narrower. */
#define WINDOW_PLACES 64

struct window_node {
	struct window_node *next, *before; /* while it waits */
	uint32_t place;
	enum { WINDOW_OUT, WINDOW_WAITS, WINDOW_COUNTS } how;
};

struct window_place {
	struct window_node *first, *last; /* those that wait */
	uint32_t count;
};

struct window {
	struct window_place place[WINDOW_PLACES];
	uint32_t limit;
};

/* gid: 16 bytes of the peer's address.  True: send now.  False: it waits. */
bool cm_window_enter(struct window *window, struct window_node *node, const uint8_t *gid);
/* Answered, repeated, or no longer wanted; whether it counts, waits or neither. */
void cm_window_leave(struct window *window, struct window_node *node);
/* The next of this place that may be sent now, which counts from here on; or NULL. */
struct window_node *cm_window_next(struct window *window, uint32_t place);

#endif
