/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "view.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/types.h"
#include "link/link.h"
#include "tools/snapshot.h"

#define NO_COUNTER ENG_COUNTER_COUNT /* the file always contains 0 */

/* The kernel's port counters and the uroce counter that each of them shows. */
static const struct {
	const char *name;
	enum eng_counter counter;
	unsigned int unit; /* divisor: the kernel counts data in units of 4 bytes */
} port_counters[] = {
	{ "port_xmit_data", ENG_COUNT_SENT_BYTES, 4 },
	{ "port_rcv_data", ENG_COUNT_RECEIVED_BYTES, 4 },
	{ "port_xmit_packets", ENG_COUNT_SENT_PACKETS, 1 },
	{ "port_rcv_packets", ENG_COUNT_RECEIVED_PACKETS, 1 },
	{ "unicast_xmit_packets", ENG_COUNT_SENT_PACKETS, 1 },
	{ "unicast_rcv_packets", ENG_COUNT_RECEIVED_PACKETS, 1 },
	{ "port_rcv_errors", ENG_COUNT_DROPPED, 1 },
	{ "port_xmit_discards", NO_COUNTER, 1 },
	{ "symbol_error", NO_COUNTER, 1 },
	{ "link_downed", NO_COUNTER, 1 },
	{ "link_error_recovery", NO_COUNTER, 1 },
	{ "VL15_dropped", NO_COUNTER, 1 },
};

static const char *const hw_counter_names[ENG_COUNTER_COUNT] = {
#define COUNTER_NAME(id, name) [ENG_COUNT_##id] = name,
	ENG_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

struct total {
	char device[64];
	uint64_t value[ENG_COUNTER_COUNT];
};

struct totals {
	struct total *device;
	unsigned int count;
};

/* Last counters of the process in each slot, and the sum of the processes that have exited. */
static struct {
	uint32_t pid;
	struct totals totals;
	bool replied; /* has replied in the current update */
} processes[LINK_SLOTS];
static struct totals exited;

static struct total *get_total(struct totals *totals, const char *device)
{
	struct total *grown;

	for (unsigned int i = 0; i < totals->count; i++) {
		if (!strcmp(totals->device[i].device, device))
			return &totals->device[i];
	}
	grown = realloc(totals->device, sizeof(*grown) * (totals->count + 1));
	if (!grown)
		return NULL;
	totals->device = grown;
	grown += totals->count++;
	memset(grown, 0, sizeof(*grown));
	snprintf(grown->device, sizeof(grown->device), "%s", device);
	return grown;
}

static void add_counters(struct total *total, const uint64_t values[ENG_COUNTER_COUNT])
{
	for (unsigned int i = 0; total && i < ENG_COUNTER_COUNT; i++)
		total->value[i] += values[i];
}

static void retire_process(unsigned int slot)
{
	struct totals *totals = &processes[slot].totals;

	for (unsigned int i = 0; i < totals->count; i++)
		add_counters(get_total(&exited, totals->device[i].device), totals->device[i].value);
	free(totals->device);
	totals->device = NULL;
	totals->count = 0;
	processes[slot].pid = 0;
}

/*
 * Keeps counters from decreasing: a QP that is being destroyed may be missing both in the list of
 * QPs and in the sum of destroyed ones.
 */
static void keep_monotonic(struct totals *now, const struct totals *before)
{
	for (unsigned int i = 0; i < before->count; i++) {
		struct total *total = get_total(now, before->device[i].device);

		for (unsigned int j = 0; total && j < ENG_COUNTER_COUNT; j++) {
			if (total->value[j] < before->device[i].value[j])
				total->value[j] = before->device[i].value[j];
		}
	}
}

/*
 * Adds the counters of each object in a list to those of the device that it names; device and
 * counters are the keys of both.
 */
static void sum_list(struct totals *totals, const json_t *list, const char *device,
		     const char *counters)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *name = json_string_value(json_object_get(item, device));
		const json_t *values = json_object_get(item, counters);
		uint64_t value[ENG_COUNTER_COUNT];

		for (unsigned int j = 0; j < ENG_COUNTER_COUNT; j++)
			value[j] = (uint64_t)json_integer_value(
				json_object_get(values, hw_counter_names[j]));
		if (name)
			add_counters(get_total(totals, name), value);
	}
}

/* Queries the process of a slot.  Callback of link_guest_for_each(). */
static bool query_process(void *arg, uint32_t slot)
{
	struct totals now = { 0 };
	json_t *snapshot;
	uint32_t pid;

	/* A process that does not reply is taken for one that has exited. */
	if (snapshot_fetch(arg, slot, &snapshot)) {
		json_decref(snapshot);
		return false;
	}
	pid = (uint32_t)snapshot_pid(snapshot);
	if (processes[slot].pid != pid)
		retire_process(slot);
	sum_list(&now, json_object_get(snapshot, "devices"), "name", "destroyed_qp_counters");
	sum_list(&now, json_object_get(snapshot, "qps"), "device", "counters");
	json_decref(snapshot);
	keep_monotonic(&now, &processes[slot].totals);
	free(processes[slot].totals.device);
	processes[slot].totals = now;
	processes[slot].pid = pid;
	processes[slot].replied = true;
	return false;
}

static void query_all(void)
{
	struct link_guest broker;

	if (link_guest_open(&broker))
		return;
	link_guest_for_each(&broker, query_process, &broker);
	link_guest_close(&broker);
}

void counters_each(void (*visit)(void *arg, const char *group, const char *name), void *arg)
{
	for (size_t i = 0; i < sizeof(port_counters) / sizeof(port_counters[0]); i++)
		visit(arg, "counters", port_counters[i].name);
	for (unsigned int i = 0; i < ENG_COUNTER_COUNT; i++) {
		const char *old_name = snapshot_old_name(hw_counter_names[i]);

		visit(arg, "hw_counters", hw_counter_names[i]);
		if (old_name)
			visit(arg, "hw_counters", old_name);
	}
}

static void write_counters(struct tree *tree, const struct total *total)
{
	for (size_t i = 0; i < sizeof(port_counters) / sizeof(port_counters[0]); i++) {
		if (port_counters[i].counter != NO_COUNTER)
			tree_write_counter(tree, total->device, "counters", port_counters[i].name,
					   total->value[port_counters[i].counter] /
						   port_counters[i].unit);
	}
	for (unsigned int i = 0; i < ENG_COUNTER_COUNT; i++) {
		const char *old_name = snapshot_old_name(hw_counter_names[i]);

		tree_write_counter(tree, total->device, "hw_counters", hw_counter_names[i],
				   total->value[i]);
		if (old_name)
			tree_write_counter(tree, total->device, "hw_counters", old_name,
					   total->value[i]);
	}
}

void counters_update(struct tree *tree)
{
	struct totals all = { 0 };

	query_all();
	for (unsigned int slot = 0; slot < LINK_SLOTS; slot++) {
		struct totals *totals = &processes[slot].totals;

		if (!processes[slot].replied)
			retire_process(slot);
		processes[slot].replied = false;
		for (unsigned int i = 0; i < totals->count; i++)
			add_counters(get_total(&all, totals->device[i].device),
				     totals->device[i].value);
	}
	for (unsigned int i = 0; i < exited.count; i++)
		add_counters(get_total(&all, exited.device[i].device), exited.device[i].value);
	for (unsigned int i = 0; i < all.count; i++)
		write_counters(tree, &all.device[i]);
	free(all.device);
}
