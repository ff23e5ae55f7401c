/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The classic BPF program of a SO_REUSEPORT group: it maps the slot of the destination queue pair
 * number to the index of the group member that the slot's worker reads.  The kernel runs it with
 * the UDP payload, which begins with the BTH, at offset 0 for IPv4 and IPv6 alike.
 *
 * - A probe (struct uroce_broker_probe) reaches the member whose index it names.
 * - Queue pair 1 leads to the member gsi.
 * - A held slot leads to its member.
 * - A free slot leads to the member sink.  If the program would be too long otherwise, some lead to
 *   a worker, which drops the packets.
 * - A datagram under 8 bytes reaches the member of index 0: the kernel takes a load beyond the end
 *   for that.
 */
#ifndef UROCE_BROKER_STEER_H
#define UROCE_BROKER_STEER_H

#include <linux/filter.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

/* In place of an index: nobody holds the slot. */
#define STEER_NONE UINT16_MAX

struct steer_table {
	uint16_t gsi;			     /* index of the member for queue pair 1 */
	uint16_t sink;			     /* index of the member for slots that nobody holds */
	uint16_t member[UROCE_BROKER_SLOTS]; /* index by slot, or STEER_NONE */
};

/* Clears the table: no slot is held. */
void steer_clear(struct steer_table *table, uint16_t gsi, uint16_t sink);

/*
 * Writes the program into code.  Returns its number of instructions, or 0 if it would need more
 * than BPF_MAXINSNS.  Slots in the order of their indexes need next to none; 2,000 in any order
 * fit.
 */
unsigned int steer_build(const struct steer_table *table, struct sock_filter code[BPF_MAXINSNS]);

#endif
