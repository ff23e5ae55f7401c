/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of UC and UD: each packet is sent once and in order, and a message is complete when it
 * has been sent.  Arriving packets are tracked one by one, so that each byte of memory and the
 * receive that must complete are known.
 */
#ifndef UROCE_SIM_ORACLE_UC_UD_H
#define UROCE_SIM_ORACLE_UC_UD_H

#include "sim/oracle/oracle.h"

/* oracle_uc_ud.c: the sender */
void oracle_uc_ud_start(struct sim_end *end);
void oracle_uc_ud_request(struct sim_end *end, const struct wire_packet *packet, bool taken_back);
void oracle_uc_ud_after_step(struct sim_end *end);
void oracle_uc_ud_nothing(struct sim_end *end, enum eng_tx reason);
void oracle_uc_ud_sent(struct sim_end *end, const struct eng_wc *wc);
void oracle_uc_ud_event(struct sim_end *end, enum eng_event event);
bool oracle_uc_ud_all_done(const struct sim_end *end);
void oracle_uc_ud_final(struct sim_end *end);
/* The message of this end that a packet at position belongs to, or NO_INDEX. */
uint32_t oracle_uc_ud_find(const struct sim_end *end, int64_t position);

/* oracle_uc_ud_arrivals.c: the receiver */
void oracle_uc_ud_arrival(struct sim_end *end, const struct wire_packet *packet,
			  const struct net_packet *from);
void oracle_uc_ud_received(struct sim_end *end, const struct eng_wc *wc);
/* Checks that the data of the last packet are in memory, and a due completion was reported. */
void oracle_uc_ud_check_arrived(struct sim_end *end);

#endif
