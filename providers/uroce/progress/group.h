/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Multicast groups and their member QPs. */
#ifndef UROCE_PROGRESS_GROUP_H
#define UROCE_PROGRESS_GROUP_H

#include "instance.h"

/* Changed under turn_lock. */
struct progress_group {
	struct link_group *link;
	uint32_t interface;
	unsigned int count, capacity;
	struct progress_qp **member;
};

#endif
