/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The rx demux (rule S14): what a received datagram has to pass before an engine sees it.  The
 * cheap checks come first, the ICRC last; what fails is dropped and counted.
 */
#ifndef UROCE_PROGRESS_DEMUX_H
#define UROCE_PROGRESS_DEMUX_H

#include "turn.h"

/*
 * Walk the datagrams of batch: hand those of this process to their QPs, which are scheduled, and
 * those of other slots (steering goes by the first of a batch) to their owners, unless batch has
 * been forwarded to us itself.  How many datagrams there were.
 */
unsigned int demux_batch(struct turn *turn, const struct link_batch *batch, bool forwarded);

struct progress_group;
/* The same for what has come to a multicast group: each datagram is for all its members. */
unsigned int demux_group(struct turn *turn, const struct link_batch *batch,
			 const struct progress_group *group);

#endif
