/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Order of the sockets (members) of a SO_REUSEPORT group, as the kernel keeps it: a new member gets
 * the next index, and when a member is closed the last member moves to its index.  A broker that
 * replaces an earlier broker only knows the size of an existing group; it finds the owners of the
 * indexes by probes.
 */
#ifndef UROCE_BROKER_GROUP_H
#define UROCE_BROKER_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"
#include "steer.h"

/*
 * Maximum number of members: one for each slot, two of the broker, and nearly as many members of an
 * earlier broker that still runs.
 */
#define GROUP_MEMBERS_MAX (2 * UROCE_BROKER_SLOTS)

/* Owner of a member: the first slot of a client, or one of these values. */
enum group_owner {
	GROUP_GSI = UROCE_BROKER_SLOTS, /* the broker, for queue pair 1 */
	GROUP_SINK,			/* the broker, for slots that no client holds */
	GROUP_UNKNOWN,			/* an owner that has not been found yet */
	GROUP_OWNERS,			/* number of owners */
};

struct broker_group {
	uint16_t count;			   /* number of members */
	uint16_t unknown;		   /* number of members with owner GROUP_UNKNOWN */
	uint16_t owner[GROUP_MEMBERS_MAX]; /* owner of each member, by index */
	/* Index of each owner's member (except GROUP_UNKNOWN), or STEER_NONE. */
	uint16_t index[GROUP_OWNERS];
};

/* Initializes a group of count members with unknown owners; count is 0 for a new group. */
void group_init(struct broker_group *group, unsigned int count);
/* Appends a member.  Returns its index, or STEER_NONE if the group is full. */
uint16_t group_add_member(struct broker_group *group, unsigned int owner);
/* Appends members of unknown owners until the group has at least count members. */
void group_add_unknown(struct broker_group *group, unsigned int count);
/* Records that the member at index belongs to owner, because owner received a probe for index. */
void group_record_owner(struct broker_group *group, unsigned int index, unsigned int owner);
/*
 * Sets the number of members and marks all owners as unknown.  Called if a process may have closed
 * a member of unknown owner, since any other member may have moved then.
 */
void group_reset_owners(struct broker_group *group, unsigned int count);

/* Fills in the table of the steering program: slots of a client map to the client's member. */
void group_fill_table(const struct broker_group *group, const struct broker_slots *slots,
		      struct steer_table *table);

#endif
