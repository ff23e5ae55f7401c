/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The order of the members of a SO_REUSEPORT group, as the kernel has it: a new member gets the
 * next index, and when a member closes the last one moves into its place.  A broker that finds a
 * group of an earlier one knows its size, and learns the owners of the indexes by probes.
 */
#ifndef UROCE_BROKER_GROUP_H
#define UROCE_BROKER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"
#include "steer.h"

/*
 * A member for each slot and the broker's own two; beyond that, what an earlier broker that still
 * lives has.
 */
#define GROUP_MEMBERS (2 * UROCE_BROKER_SLOTS)

/* Owner of a member: the first slot of a client, or one of these. */
enum group_owner {
	GROUP_GSI = UROCE_BROKER_SLOTS, /* the broker, for queue pair 1 */
	GROUP_SINK,			/* the broker, for slots that nobody holds */
	GROUP_UNKNOWN,			/* not found yet */
	GROUP_OWNERS,			/* number of owners */
};

struct broker_group {
	uint16_t count;		       /* of members */
	uint16_t unknown;	       /* of those, how many are GROUP_UNKNOWN */
	uint16_t owner[GROUP_MEMBERS]; /* by index */
	uint16_t index[GROUP_OWNERS];  /* by owner, but for GROUP_UNKNOWN; or STEER_NONE */
};

/* A group of count members of unknown owners: 0 for a new one. */
void group_init(struct broker_group *group, unsigned int count);
/* A new member.  Returns its index, or STEER_NONE if there is no room. */
uint16_t group_append(struct broker_group *group, unsigned int owner);
/* Others have added members: there are count now, if that is more than were known. */
void group_extend(struct broker_group *group, unsigned int count);
/* A probe for the index has reached the owner's member. */
void group_found(struct broker_group *group, unsigned int index, unsigned int owner);
/* The owner's member is closed. */
void group_remove(struct broker_group *group, unsigned int owner);
/*
 * A member of an unknown owner may have been closed by its process, so that any other may have
 * moved: all but the count is forgotten, and is to be found again.
 */
void group_forget(struct broker_group *group, unsigned int count);

/* The table of the steering program.  Each slot of a client leads to the client's member. */
void group_table(const struct broker_group *group, const struct broker_slots *slots,
		 struct steer_table *table);

#endif
