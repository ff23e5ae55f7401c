/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The receive demultiplexer (rule S14): the checks of a received datagram before an engine receives
 * it.  Cheap checks come first, the ICRC last; packets that fail are dropped and counted.
 */
#ifndef UROCE_PROGRESS_RX_DEMUX_H
#define UROCE_PROGRESS_RX_DEMUX_H

#include "progress/loop.h"

/*
 * Processes the datagrams of batch: passes those of this process to their QPs, which are scheduled,
 * and forwards those of other slots to their owners, unless forwarded is set, that is, batch has
 * itself been forwarded to us.  (The kernel steers a batch by its first datagram.)  Returns the
 * number of datagrams.
 */
unsigned int demux_batch(struct progress_cycle *cycle, const struct link_batch *batch,
			 bool forwarded);

struct progress_group;
/* Processes a batch received from a multicast group: passes each datagram to all members. */
unsigned int demux_group(struct progress_cycle *cycle, const struct link_batch *batch,
			 const struct progress_group *group);

#endif
