/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Responder resources: the last max_dest_rd_atomic READs and Atomics, so that duplicates can be
 * answered (rules S4, S12), and the answers that are still to be sent.
 */
#ifndef UROCE_ENGINE_RX_RESP_RES_H
#define UROCE_ENGINE_RX_RESP_RES_H

#include "engine/qp_priv.h"

/* Is there room for one more?  Not when the peer has more under way than was agreed. */
bool resp_res_has_room(const struct eng_qp *qp);
/* A fresh entry for a request with psn that takes packets PSNs; all of its answer is pending. */
struct resp_res *resp_res_new(struct eng_qp *qp, uint32_t psn, uint32_t packets);
/* The entry whose PSNs hold psn, or NULL. */
struct resp_res *resp_res_find(struct eng_qp *qp, uint32_t psn);
/*
 * Mark packets [from, end) of the entry as wanted once more: they alone, or, if they lie behind
 * others of it that are to be sent again, with these.
 */
void resp_res_replay(struct eng_qp *qp, struct resp_res *entry, uint32_t from, uint32_t end);
/* The oldest entry with an answer pending, or NULL. */
struct resp_res *resp_res_pending(struct eng_qp *qp);
/* The same, only to be looked at. */
const struct resp_res *resp_res_peek(const struct eng_qp *qp);
/* Is the next packet of the entry the first, or the last, that one request has asked for? */
bool resp_res_begins_part(const struct resp_res *entry);
bool resp_res_ends_part(const struct resp_res *entry);
/* A burst of answers begins: what is handed out from now on is what resp_res_rollback() takes back.
 */
void resp_res_begin_burst(struct eng_qp *qp);
/* Packets of entry up to next have been handed out; its answer may be complete by that. */
void resp_res_sent(struct eng_qp *qp, struct resp_res *entry, uint32_t next);
/* Take back: all that was handed out since resp_res_begin_burst() is wanted again. */
void resp_res_rollback(struct eng_qp *qp);
/* Nothing is to be sent any more. */
void resp_res_cancel(struct eng_qp *qp);

#endif
