/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Responder resources: the last max_dest_rd_atomic READs and Atomics, so that duplicates can be
 * answered (rules S4, S12), and the answers that are still to be sent.
 */
#ifndef UROCE_ENGINE_REPLAY_H
#define UROCE_ENGINE_REPLAY_H

#include "qp.h"

/* Is there room for one more?  Not when the peer has more under way than was agreed. */
bool replay_has_room(const struct eng_qp *qp);
/* A fresh entry for a request with psn that takes packets PSNs; all of its answer is pending. */
struct replay *replay_new(struct eng_qp *qp, uint32_t psn, uint32_t packets);
/* The entry whose PSNs hold psn, or NULL. */
struct replay *replay_find(struct eng_qp *qp, uint32_t psn);
/*
 * Mark packets [from, end) of the entry as wanted once more: they alone, or, if they lie behind
 * others of it that are to be sent again, with these.
 */
void replay_again(struct eng_qp *qp, struct replay *entry, uint32_t from, uint32_t end);
/* The oldest entry with an answer pending, or NULL. */
struct replay *replay_pending(struct eng_qp *qp);
/* The same, only to be looked at. */
const struct replay *replay_look(const struct eng_qp *qp);
/* Is the next packet of the entry the first, or the last, that one request has asked for? */
bool replay_begins_part(const struct replay *entry);
bool replay_ends_part(const struct replay *entry);
/* A burst of answers begins: what is handed out from now on is what replay_unsent() takes back. */
void replay_begin(struct eng_qp *qp);
/* Packets of entry up to next have been handed out; its answer may be complete by that. */
void replay_sent(struct eng_qp *qp, struct replay *entry, uint32_t next);
/* Take back: all that was handed out since replay_begin() is wanted again. */
void replay_unsent(struct eng_qp *qp);
/* Nothing is to be sent any more. */
void replay_cancel(struct eng_qp *qp);

#endif
