/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Parts of scripts, for all services: memory that grows, buffers in it, choices.  Only the files
 * that lay out scripts include this header.
 */
#ifndef UROCE_SIM_SCRIPT_PARTS_H
#define UROCE_SIM_SCRIPT_PARTS_H

#include "sim/plan/script.h"

#define POOL_BYTES (1u << 20)
#define SOURCE_BYTES (192u << 10)
#define LANDING_ROOM (6u << 20)
#define REMOTE_ROOM (3u << 20)
#define BLOB_ROOM (1200u << 10)
#define GUARD 64
#define GAP 32
#define CONSTANT_BYTES (64u << 10) /* of the remote area: only read */
#define CELLS 8			   /* of the remote area: for Atomics */

/* Empty, with memory that has other addresses and keys than before. */
void script_start(struct script *script, struct sim_random *random);
/* The next message, all zero; message_count is the caller's to move. */
struct message *script_new_message(struct script *script);
struct receive *script_new_receive(struct script *script);

/* Adds bytes to the end of the area, the same in both images; returns NO_INDEX when it is full. */
uint32_t area_grow(struct area *area, uint32_t length);
/* SGEs in fresh memory with gaps between them; false when there is no room. */
bool script_land(struct area *area, uint32_t length, uint32_t most, struct eng_sge *sge,
		 uint32_t *count, struct sim_random *random);
/* Makes the data of a SEND or WRITE, gathered from several places. */
void script_gather(struct script *script, struct message *message, const struct end_plan *plan,
		   struct sim_random *random);
/* Where a WRITE goes: fresh memory, or that of an earlier one. */
bool script_aim(struct script *script, struct script *peer, struct message *message,
		struct sim_random *random);

enum eng_op script_pick_op(const struct end_plan *plan, struct sim_random *random);
/* Lengths around whole packets are where the mistakes are. */
uint32_t script_pick_length(const struct end_plan *plan, uint32_t mtu, struct sim_random *random);
void script_pick_flags(struct message *message, const struct end_plan *plan,
		       struct sim_random *random);

#endif
