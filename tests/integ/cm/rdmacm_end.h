/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One end of a connection through stock librdmacm, and its events, for the programs rdmacm_*.c.
 * A call that fails makes the current test fail.
 */
#ifndef UROCE_TESTS_RDMACM_END_H
#define UROCE_TESTS_RDMACM_END_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define PATIENCE_MS 10000

struct cm_end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char bytes[64];
};

/*
 * Returns the next event of the channel, which must have this type and arrive within PATIENCE_MS.
 * The caller acknowledges it.
 */
static inline struct rdma_cm_event *next(struct rdma_event_channel *channel,
					 enum rdma_cm_event_type type)
{
	struct pollfd wait = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
	assert_return_code(rdma_get_cm_event(channel, &event), errno);
	assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

/* As next(), but the event must not contain an error, and is acknowledged here. */
static inline void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next(channel, type);

	assert_int_equal(event->status, 0);
	rdma_ack_cm_event(event);
}

/* Polls the next completion, which must be successful and arrive within PATIENCE_MS. */
static inline void await_completion(struct cm_end *end)
{
	struct ibv_wc wc;
	int got = 0;

	for (unsigned int i = 0; !got && i < PATIENCE_MS; i++) {
		got = ibv_poll_cq(end->cq, 1, &wc);
		if (!got)
			usleep(1000);
	}
	assert_int_equal(got, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* The kernel reports the carrier some time after the interface was set up. */
static inline void await_device(const char *name)
{
	bool found = false;

	for (int waited = 0; waited < PATIENCE_MS && !found; waited += 10) {
		struct ibv_device **list = ibv_get_device_list(NULL);

		for (int i = 0; list[i]; i++)
			found |= !strcmp(ibv_get_device_name(list[i]) + strlen("uroce_"), name);
		ibv_free_device_list(list);
		if (!found)
			usleep(10000);
	}
	assert_true(found);
}

#endif
