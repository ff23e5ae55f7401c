/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Congestion notification and its effects (annex A17): marks cause a CNP at once, but at most one
 * in 50 us; the window is reduced at most once in a round trip, and not below two packets.  The
 * window and the state of loss recovery are the only internals of the engine that this oracle
 * reads: they are part of the contract.
 */
#include <inttypes.h>

#include "engine/recovery/loss_state.h"
#include "sim/world.h"

#define CNP_INTERVAL_NS 50000
#define WINDOW_PACKETS 2

void oracle_cnp(struct sim_end *end, const struct wire_packet *packet)
{
	struct telling *telling = &end->oracle.telling;
	uint64_t now = end->world->now;

	if (telling->marks == 0)
		world_fail(end->world, "%s: a CNP without a mark", end->name);
	else if (telling->cnps > 0 && now < telling->cnp_at + CNP_INTERVAL_NS)
		world_fail(end->world, "%s: a CNP %" PRIu64 " ns after another", end->name,
			   now - telling->cnp_at);
	if (packet->dest_qpn != end->peer->qpn || packet->pkey != WIRE_DEFAULT_PKEY ||
	    packet->psn != 0 || packet->ack_request || packet->solicited || packet->migrated ||
	    packet->congestion != WIRE_BECN)
		world_fail(end->world, "%s: a CNP of another form", end->name);
	telling->marks = 0;
	telling->owed = false;
	telling->cnp_at = now;
	telling->cnps++;
}

void oracle_marked(struct sim_end *end)
{
	struct telling *telling = &end->oracle.telling;

	telling->marks++;
	if (telling->cnps == 0 || end->world->now >= telling->cnp_at + CNP_INTERVAL_NS)
		telling->owed = true;
}

void oracle_tells(struct sim_end *end)
{
	if (end->oracle.telling.owed && end->state == ENG_RTS)
		world_fail(end->world, "%s: withholds a CNP", end->name);
}

/*
 * Marks reduce the window once for the packets sent before the reduction; losses, and losses that a
 * tail loss probe assumes, may reduce it again.
 */
void oracle_cwnd(struct sim_end *end)
{
	struct telling *telling = &end->oracle.telling;
	const struct asking *asking = &end->oracle.asking;
	uint64_t cwnd = end->qp->req.cwnd;
	bool less = cwnd < telling->cwnd;

	if (end->state != ENG_RTS)
		return;
	if (cwnd < (uint64_t)WINDOW_PACKETS * end->world->plan.mtu)
		world_fail(end->world, "%s: a window of %" PRIu64 " bytes", end->name, cwnd);
	if (less && end->world->net.dropped == 0 && asking->probed_at != end->world->now &&
	    asking->unacked < telling->cut_at)
		world_fail(end->world,
			   "%s: the window is cut twice in a round trip, to %" PRIu64 " bytes",
			   end->name, cwnd);
	if (less)
		world_trace(end, "  the window is cut to %" PRIu64 " bytes", cwnd);
	if (less)
		telling->cut_at = asking->high;
	telling->cwnd = cwnd;
}

void oracle_loss_state(struct sim_end *end)
{
	enum loss_state state = end->qp->req.loss.state;

	if (end->state != ENG_RTS)
		return;
	if ((state == LOSS_RECOVERY && eng_in_flight(end->qp) == 0) ||
	    (state == LOSS_PROBE && !end->oracle.asking.probed))
		world_fail(end->world, "%s: loss recovery is still in state %s", end->name,
			   loss_state_name(state));
}
