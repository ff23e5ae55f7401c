/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of UC and UD: what is sent is sent once and in order, and complete when it is sent;
 * what arrives is followed packet by packet, so that it is known to the byte what memory must hold
 * and which receive must complete.
 */
#ifndef UROCE_SIM_ORACLE_LOOSE_H
#define UROCE_SIM_ORACLE_LOOSE_H

#include "sim/oracle/oracle.h"

/* oracle_loose.c: the sender */
void loose_start(struct sim_end *end);
void loose_request(struct sim_end *end, const struct wire_packet *packet, bool taken_back);
void loose_after_step(struct sim_end *end);
void loose_nothing(struct sim_end *end, enum eng_tx reason);
void loose_sent(struct sim_end *end, const struct eng_wc *wc);
void loose_event(struct sim_end *end, enum eng_event event);
bool loose_all_done(const struct sim_end *end);
void loose_final(struct sim_end *end);
/* The message of this end that a packet at position belongs to, or NO_INDEX. */
uint32_t loose_find(const struct sim_end *end, int64_t position);

/* oracle_loose_arrivals.c: the receiver */
void loose_arrival(struct sim_end *end, const struct wire_packet *packet,
		   const struct net_packet *from);
void loose_received(struct sim_end *end, const struct eng_wc *wc);
/* The data of the last packet must be in memory now, and completed. */
void loose_check_arrived(struct sim_end *end);

#endif
