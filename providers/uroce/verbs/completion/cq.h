/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Completion queues.  Producers are the engines' complete() calls, which hold their QP's lock and
 * may be made by any thread; consumers are the threads that poll.  cq->lock makes one of each at a
 * time.  The ring holds finished struct ibv_wc, so that a poll is a copy.
 */
#ifndef UROCE_VERBS_CQ_H
#define UROCE_VERBS_CQ_H

#include "cq_moderate.h"
#include "cq_workers.h"
#include "verbs/memory/pd.h"
#include "verbs/uroce.h"

struct uroce_cq {
	struct verbs_cq base;
	struct uroce_context *context;
	struct uroce_comp_channel *channel; /* NULL: no events */
	struct uroce_pd *pd;		    /* parent domain, or NULL; constant as all up here */
	bool ignores_overrun;		    /* the oldest completions are lost instead */
	bool single_threaded;		    /* one thread polls */
	struct uroce_cq_workers workers;
	pthread_mutex_t lock;	    /* all below but what is atomic */
	struct uroce_buffer buffer; /* for ring and stamps */
	struct ibv_wc *ring;
	uint64_t *stamps; /* completion times in ns; NULL unless asked for by create_cq_ex */
	uint32_t mask;	  /* entries - 1 */
	/* Run freely; written under lock, read without it to see whether anything is there. */
	_Atomic uint32_t head; /* next to be written */
	_Atomic uint32_t tail; /* oldest that is not yet polled */
	enum uroce_notify notify;
	/*
	 * Indexes like head, between tail and head: behind what events have told of, and behind the
	 * last solicited one.
	 */
	uint32_t told, solicited;
	struct uroce_unwritten unwritten; /* under the lock of channel */
	struct uroce_moderation moderation;
	atomic_bool dead;    /* overrun: takes and gives nothing any more */
	atomic_bool mourned; /* the user has been told of it */
	atomic_uint users;   /* QPs, once for each of their queues */
	/* What the application has been told of: completion events, asynchronous events. */
	atomic_uint events_taken, asyncs_taken;
	unsigned int generation; /* forked.h */
	struct uroce_belonging belonging;

	/*
	 * Extended poll: held from start_poll to end_poll (unless one thread polls), and what the
	 * read calls tell about.
	 */
	pthread_mutex_t poll_lock;
	struct ibv_wc current;
	uint64_t current_stamp;
};

static inline struct uroce_cq *to_uroce_cq(struct ibv_cq *cq)
{
	return (struct uroce_cq *)cq;
}

/* Entries of a CQ that was asked to hold cqe: a power of two; 0 when cqe is out of range. */
uint32_t uroce_cq_entries(int cqe);
/* The ring and the lock of a CQ whose storage is zeroed; 0 or ENOMEM.  And back. */
int uroce_cq_init(struct uroce_cq *cq, uint32_t entries, bool stamps);
void uroce_cq_fini(struct uroce_cq *cq);

/*
 * A completion of queue pair qpn.  Caller holds that QP's lock.  Allocates nothing; when the ring
 * is full the CQ dies: IBV_EVENT_CQ_ERR is raised and its QPs follow into ERR (cq_overrun.h).
 */
void uroce_cq_complete(struct uroce_cq *cq, uint32_t qpn, const struct eng_wc *wc);
/* Forget all completions of a QP that is being destroyed or reset. */
void uroce_cq_forget(struct uroce_cq *cq, uint32_t qpn);
/* Forget all completions of receives of an XRC SRQ that is being destroyed. */
void uroce_cq_forget_srq(struct uroce_cq *cq, uint32_t srqn);
/* Copy out up to count completions without making progress; stamps may be NULL. */
int uroce_cq_take(struct uroce_cq *cq, int count, struct ibv_wc *wc, uint64_t *stamps);
/* The same, and when nothing is there makes progress once.  Negative: the CQ is dead. */
int uroce_cq_poll(struct uroce_cq *cq, int count, struct ibv_wc *wc, uint64_t *stamps);

/* Armed, with completions that no event has told of?  Caller holds cq->lock. */
bool uroce_cq_has_backlog(const struct uroce_cq *cq);
/* Write an event, once for each arming.  Caller holds cq->lock. */
void uroce_cq_send_event(struct uroce_cq *cq);

/* What a CQ can be asked for beyond size and events. */
struct uroce_cq_options {
	struct uroce_pd *pd; /* parent domain, or NULL */
	bool stamps;
	bool ignores_overrun;
	bool single_threaded;
};

/* create_cq and the common part of create_cq_ex; NULL with errno. */
struct uroce_cq *uroce_cq_create(struct ibv_context *context, int cqe,
				 struct ibv_comp_channel *channel, int comp_vector,
				 const struct uroce_cq_options *options);

#endif
