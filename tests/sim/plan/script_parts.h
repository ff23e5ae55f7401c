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

/* Empties the script; its memory gets new addresses and keys. */
void script_start(struct script *script, struct sim_random *random);
/* Returns the next message, zeroed; the caller increments message_count. */
struct message *script_new_message(struct script *script);
struct receive *script_new_receive(struct script *script);

/*
 * Adds bytes to the end of the area, the same to bytes and image; returns NO_INDEX if it is full.
 */
uint32_t area_grow(struct area *area, uint32_t length);
/* Makes SGEs in new memory with gaps between them; returns false if there is no room. */
bool script_land(struct area *area, uint32_t length, uint32_t most, struct eng_sge *sge,
		 uint32_t *count, struct sim_random *random);
/* Makes the data of a SEND or WRITE, gathered from several places. */
void script_gather(struct script *script, struct message *message, const struct end_plan *plan,
		   struct sim_random *random);
/* Chooses the target of a WRITE: new memory, or that of an earlier WRITE. */
bool script_aim(struct script *script, struct script *peer, struct message *message,
		struct sim_random *random);

enum eng_op script_pick_op(const struct end_plan *plan, struct sim_random *random);
/* Prefers lengths around multiples of the MTU, where errors are likely. */
uint32_t script_pick_length(const struct end_plan *plan, uint32_t mtu, struct sim_random *random);
void script_pick_flags(struct message *message, const struct end_plan *plan,
		       struct sim_random *random);

#endif
