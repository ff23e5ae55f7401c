/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "window.h"

/* What the kernel charges a socket beyond the payload of a packet in a run, about. */
#define PACKET_OVERHEAD 116
/* bench: 90 packets of 4 KB in runs are what the default socket buffer of 208 KB holds. */
#define DEFAULT_PACKETS 90
#define FULL_PACKET (WIRE_MAX_MTU + PACKET_OVERHEAD)
#define WINDOW_MIN ((uint64_t)4 * FULL_PACKET)

void window_reset(struct requester *req, uint32_t packets)
{
	req->window_limit = (uint64_t)(packets ? packets : DEFAULT_PACKETS) * FULL_PACKET;
	if (req->window_limit < WINDOW_MIN)
		req->window_limit = WINDOW_MIN;
	req->window = (uint64_t)DEFAULT_PACKETS * FULL_PACKET;
	if (req->window > req->window_limit)
		req->window = req->window_limit;
	req->cost_next = 0;
	req->cost_unacked = 0;
	req->window_recovering = false;
}

uint64_t window_cost(const struct eng_send_wqe *wqe, uint32_t packets, uint32_t mtu)
{
	uint64_t bytes = packets == wqe->packets ? wqe->length : (uint64_t)packets * mtu;

	return bytes + (uint64_t)packets * PACKET_OVERHEAD;
}

bool window_open(const struct requester *req, uint64_t cost)
{
	uint64_t under_way = req->cost_next - req->cost_unacked;

	return under_way == 0 || under_way + cost <= req->window;
}

bool window_closes(const struct requester *req, uint64_t cost)
{
	return req->cost_next - req->cost_unacked + 2 * cost > req->window;
}

void window_progress(struct requester *req, uint64_t cost)
{
	req->cost_unacked += cost;
	/* After going back, what was sent before may be acknowledged ahead of next_psn. */
	if (req->cost_next < req->cost_unacked)
		req->cost_next = req->cost_unacked;
	if (req->window_recovering && psn_diff(req->unacked_psn, req->window_recovery_psn) >= 0)
		req->window_recovering = false;
	if (!req->window_recovering && req->window < req->window_limit) {
		/* One full packet per window acknowledged, a quarter of it faster when small. */
		req->window += 1 + cost * FULL_PACKET * 4 / req->window;
		if (req->window > req->window_limit)
			req->window = req->window_limit;
	}
}

void window_loss(struct requester *req)
{
	if (req->window_recovering)
		return;
	req->window_recovering = true;
	req->window_recovery_psn = req->end_psn;
	req->window /= 2;
	if (req->window < WINDOW_MIN)
		req->window = WINDOW_MIN;
}
