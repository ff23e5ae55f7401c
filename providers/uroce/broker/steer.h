/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Steering program (classic BPF) of a SO_REUSEPORT group.  It maps the slot in the destination
 * queue pair number to the index of the member that the slot's worker reads.  The kernel runs it on
 * the UDP payload, which starts with the BTH, both for IPv4 and IPv6.
 *
 * - A probe (struct uroce_broker_probe) is given to the member with the index in the probe.
 * - Packets for queue pair 1 are given to member gsi.
 * - Packets for a slot that a client holds are given to the member of that slot.
 * - Packets for other slots are given to member sink; if the program would become too long, some
 *   are given to a worker, which drops them.
 * - Datagrams of less than 8 bytes are given to the member with index 0: the program ends with
 *   result 0 at the load beyond their end.
 */
#ifndef UROCE_BROKER_STEER_H
#define UROCE_BROKER_STEER_H

#include <linux/filter.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

/* Used instead of an index if no client holds the slot. */
#define STEER_NONE UINT16_MAX

struct steer_table {
	uint16_t gsi; /* index of the member for queue pair 1 */
	/* Index of the member for slots that no client holds. */
	uint16_t sink;
	uint16_t member[UROCE_BROKER_SLOTS]; /* index of each slot's member, or STEER_NONE */
};

/* Initializes the table; no client holds a slot. */
void steer_clear(struct steer_table *table, uint16_t gsi, uint16_t sink);

/*
 * Writes the program to code.  Returns the number of instructions, or 0 if they would exceed
 * BPF_MAXINSNS.  A run of slots with consecutive indexes takes one or two instructions; 2,000 slots
 * in any order fit.
 */
unsigned int steer_build(const struct steer_table *table, struct sock_filter code[BPF_MAXINSNS]);

#endif
