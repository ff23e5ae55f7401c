/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Responder resources: the last max_dest_rd_atomic READs and Atomics, so that duplicates can be
 * answered (rules S4, S12), and the responses that are still to send.
 */
#ifndef UROCE_ENGINE_RX_RESP_RES_H
#define UROCE_ENGINE_RX_RESP_RES_H

#include "engine/qp_priv.h"

/* Returns true if there is a free entry; false if the peer exceeds max_dest_rd_atomic. */
bool resp_res_has_room(const struct eng_qp *qp);
/* Returns a new entry for a request at psn with this number of responses, all pending. */
struct resp_res *resp_res_new(struct eng_qp *qp, uint32_t psn, uint32_t packets);
/* Returns the entry that contains psn, or NULL. */
struct resp_res *resp_res_find(struct eng_qp *qp, uint32_t psn);
/*
 * Makes response packets [from, end) of the entry pending again: together with earlier parts of it
 * that are pending again, otherwise alone.
 */
void resp_res_replay(struct eng_qp *qp, struct resp_res *entry, uint32_t from, uint32_t end);
/* Returns the oldest entry with pending responses, or NULL. */
struct resp_res *resp_res_pending(struct eng_qp *qp);
/* As resp_res_pending(), read-only. */
const struct resp_res *resp_res_peek(const struct eng_qp *qp);
/*
 * Return true if the entry's next packet is the first, or the last, of a part that was requested.
 */
bool resp_res_begins_part(const struct resp_res *entry);
bool resp_res_ends_part(const struct resp_res *entry);
/* To be called before a burst of responses, which resp_res_rollback() would take back. */
void resp_res_begin_burst(struct eng_qp *qp);
/* To be called when the response packets of entry before next have been added to the burst. */
void resp_res_sent(struct eng_qp *qp, struct resp_res *entry, uint32_t next);
/* Makes all responses since resp_res_begin_burst() pending again. */
void resp_res_rollback(struct eng_qp *qp);
/* Drops all pending responses. */
void resp_res_cancel(struct eng_qp *qp);

#endif
