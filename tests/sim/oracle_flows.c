/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the law of the window promises for flows that meet at a bottleneck.  Each limit is what the
 * worst of thousands of plans may show, not what the usual one does (flows_print() tells that).
 */
#include "sim/flows.h"
#include "sim/world.h"

/* Of what the line carries, so much is payload that arrived for the first time. */
static const struct {
	uint32_t loss; /* chance, up to which this holds */
	double line, with_reads;
} goodputs[] = {
	{ 1, 0.10, 0.015 },
	{ 10, 0.10, 0.015 },
	{ 50, 0.05, 0.015 },
};

static double goodput_wanted(const struct plan *plan)
{
	uint32_t row = 0;

	while (plan->net[0].loss > goodputs[row].loss)
		row++;
	for (uint32_t n = 0; n < plan->connections; n++)
		if (plan->flow_op[n] == ENG_READ)
			return goodputs[row].with_reads;
	return goodputs[row].line;
}

void oracle_flows(struct world *world)
{
	const struct flow_figures *figures = &world->flows.figures;

	if (figures->ns == 0)
		return;
	if (figures->line < goodput_wanted(&world->plan))
		world_fail(world, "flows get %.3f of the line, and not %.3f", figures->line,
			   goodput_wanted(&world->plan));
}
