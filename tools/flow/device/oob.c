// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "oob.h"

#define OOB_VERSION UINT64_C(0x666c6f7700000001)
enum { CLOCK_EXCHANGES = 16, PLAN_NUMBERS = 10, ADDRESS_NUMBERS = 7 };

uint64_t clock_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static int send_numbers(struct oob_sock sock, uint64_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		numbers[i] = htobe64(numbers[i]);
	return oob_sock_send(sock, numbers, count * sizeof(numbers[0]));
}

static int receive_numbers(struct oob_sock sock, uint64_t *numbers, size_t count)
{
	if (oob_sock_receive(sock, numbers, count * sizeof(numbers[0])))
		return -1;
	for (size_t i = 0; i < count; i++)
		numbers[i] = be64toh(numbers[i]);
	return 0;
}

/* ---- the plan ---- */

static int send_plan(struct oob_sock sock, const struct run_plan *plan)
{
	uint64_t numbers[PLAN_NUMBERS] = { OOB_VERSION,	       plan->seed,     plan->depth,
					   plan->bytes,	       plan->links,    plan->count[0],
					   plan->count[1],     plan->requests, plan->service_ns[0],
					   plan->service_ns[1] };

	return send_numbers(sock, numbers, PLAN_NUMBERS) ||
			       oob_sock_send(sock, plan->scheme, sizeof(plan->scheme)) ||
			       oob_sock_send(sock, plan->scenario, sizeof(plan->scenario))
		       ? -1
		       : 0;
}

static int receive_plan(struct oob_sock sock, struct run_plan *plan)
{
	uint64_t n[PLAN_NUMBERS];

	if (receive_numbers(sock, n, PLAN_NUMBERS) || n[0] != OOB_VERSION ||
	    oob_sock_receive(sock, plan->scheme, sizeof(plan->scheme)) ||
	    oob_sock_receive(sock, plan->scenario, sizeof(plan->scenario)))
		return -1;
	plan->seed = n[1];
	plan->depth = (uint32_t)n[2];
	plan->bytes = (uint32_t)n[3];
	plan->links = (uint32_t)n[4];
	plan->count[0] = (uint32_t)n[5];
	plan->count[1] = (uint32_t)n[6];
	plan->requests = (uint32_t)n[7];
	plan->service_ns[0] = n[8];
	plan->service_ns[1] = n[9];
	plan->scheme[sizeof(plan->scheme) - 1] = 0;
	plan->scenario[sizeof(plan->scenario) - 1] = 0;
	return 0;
}

void plan_from_scenario(struct run_plan *plan, const struct scenario *sc)
{
	snprintf(plan->scenario, sizeof(plan->scenario), "%s", sc->name);
	plan->depth = sc->depth;
	plan->bytes = sc->bytes;
	plan->links = sc->links;
	plan->requests = sc->requests;
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		plan->count[side] = sc->count[side];
		plan->service_ns[side] = sc->service_ns[side];
	}
}

bool plan_scenario(const struct run_plan *plan, struct scenario *sc)
{
	const struct scenario *base = scenario_find(plan->scenario);

	/* The plan may come from the peer, so it is not trusted. */
	if (!base || !scheme_find(plan->scheme) || plan->links < 1 || plan->links > FLOW_LINKS ||
	    plan->depth < MIN_DEPTH || plan->depth > MAX_DEPTH || plan->bytes < HEADER_BYTES ||
	    plan->bytes > DEVICE_SCRATCH || plan->requests > ENDPOINT_RESPONSES ||
	    (uint64_t)plan->links * (2 * plan->depth + 4) > ENDPOINT_INBOX ||
	    (base->requests && !plan->requests) || plan->count[0] > MAX_COUNT ||
	    plan->count[1] > MAX_COUNT)
		return false;
	*sc = *base;
	sc->depth = plan->depth;
	sc->bytes = plan->bytes;
	sc->links = plan->links;
	sc->requests = plan->requests;
	for (unsigned int side = 0; side < FLOW_SIDES; side++) {
		sc->count[side] = plan->count[side];
		sc->service_ns[side] = plan->service_ns[side];
	}
	return true;
}

int oob_negotiate(struct oob_sock sock, uint32_t side, struct device *device, struct run_plan *plan)
{
	struct run_plan offered;
	const struct scheme *scheme = scheme_find(plan->scheme);
	uint64_t depth = 0;

	if (side == 0) {
		offered = *plan;
		offered.depth = device_max_depth(device, scheme, plan->depth);
		if (!offered.depth || send_plan(sock, &offered) || receive_numbers(sock, &depth, 1))
			goto failed;
	} else {
		uint32_t own_limit = plan->two_hosts ? plan->depth : UINT32_MAX;

		if (receive_plan(sock, &offered))
			goto failed;
		/* Use the smaller depth; the rest of the plan is that of the active side. */
		scheme = scheme_find(offered.scheme);
		if (scheme && offered.depth >= MIN_DEPTH && offered.depth <= MAX_DEPTH)
			depth = device_max_depth(device, scheme, at_most(own_limit, offered.depth));
		offered.two_hosts = plan->two_hosts;
		*plan = offered;
		if (send_numbers(sock, &(uint64_t){ depth }, 1))
			goto failed;
	}
	plan->depth = (uint32_t)depth;
	if (depth >= MIN_DEPTH && depth <= offered.depth)
		return 0;
failed:
	if (!device->error[0])
		snprintf(device->error, sizeof(device->error), "the peer rejected the plan");
	return -1;
}

/* ---- addresses ---- */

static int exchange_addresses(struct oob_sock sock, const struct device_address *own,
			      struct device_address *peer)
{
	uint64_t n[ADDRESS_NUMBERS] = { own->qpn,  own->psn,	own->lid,  own->mtu,
					own->rkey, own->window, own->slots };

	if (send_numbers(sock, n, ADDRESS_NUMBERS) ||
	    oob_sock_send(sock, own->gid, sizeof(own->gid)) ||
	    receive_numbers(sock, n, ADDRESS_NUMBERS) ||
	    oob_sock_receive(sock, peer->gid, sizeof(peer->gid)))
		return -1;
	peer->qpn = (uint32_t)n[0];
	peer->psn = (uint32_t)n[1];
	peer->lid = (uint32_t)n[2];
	peer->mtu = (uint32_t)n[3];
	peer->rkey = (uint32_t)n[4];
	peer->window = n[5];
	peer->slots = n[6];
	return 0;
}

int oob_connect(struct oob_sock sock, struct device *device, bool rnr_retry)
{
	for (uint32_t link = 0; link < device->links; link++) {
		struct device_address own, peer;

		device_get_address(device, link, &own);
		if (exchange_addresses(sock, &own, &peer)) {
			snprintf(device->error, sizeof(device->error), "the peer has exited");
			return -1;
		}
		if (device_connect(device, link, &peer, rnr_retry))
			return -1;
	}
	return 0;
}

int oob_barrier(struct oob_sock sock)
{
	char byte = 'r';

	return oob_sock_send(sock, &byte, 1) || oob_sock_receive(sock, &byte, 1) ? -1 : 0;
}

int oob_measure_clock(struct oob_sock sock, uint32_t side, int64_t *offset_ns)
{
	uint64_t quickest = UINT64_MAX, n;
	int64_t offset = 0;

	for (unsigned int i = 0; i < CLOCK_EXCHANGES; i++) {
		uint64_t begun = clock_ns();

		if (side == 1) {
			if (receive_numbers(sock, &n, 1) ||
			    send_numbers(sock, &(uint64_t){ clock_ns() }, 1))
				return -1;
			continue;
		}
		if (send_numbers(sock, &(uint64_t){ 0 }, 1) || receive_numbers(sock, &n, 1))
			return -1;
		if (clock_ns() - begun < quickest) {
			quickest = clock_ns() - begun;
			offset = (int64_t)(begun + quickest / 2) - (int64_t)n;
		}
	}
	n = (uint64_t)-offset;
	if (side == 0 ? send_numbers(sock, &n, 1) : receive_numbers(sock, &n, 1))
		return -1;
	*offset_ns = side == 0 ? offset : (int64_t)n;
	return 0;
}
