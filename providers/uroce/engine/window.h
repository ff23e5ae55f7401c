/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * How much may be under way.  The peer's socket buffer is finite and drops what does not fit, so
 * the window counts bytes as a socket charges them, starts with what a default buffer holds, halves
 * when packets were lost and grows by what is acknowledged.  A READ request weighs as much as its
 * responses, which come into our own buffer.
 */
#ifndef UROCE_ENGINE_WINDOW_H
#define UROCE_ENGINE_WINDOW_H

#include "qp.h"

void window_reset(struct requester *req, uint32_t packets);
/* Weight of the first packets of a message, out of all that it has. */
uint64_t window_cost(const struct eng_send_wqe *wqe, uint32_t packets, uint32_t mtu);
/* May a packet of this weight be sent?  An empty wire always takes one. */
bool window_open(const struct requester *req, uint64_t cost);
/* After a packet of this weight, would another one like it have to wait? */
bool window_closes(const struct requester *req, uint64_t cost);
/* Packets of this weight have been acknowledged. */
void window_progress(struct requester *req, uint64_t cost);
/* Packets were lost: reduces once per window. */
void window_loss(struct requester *req);

#endif
