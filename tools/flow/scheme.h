/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A flow-control scheme: what a sender counts so that it does not overrun the receiver, where news
 * of free receives travel, when they are told, and what is kept back for them.  Each is one file
 * (scheme_NAME.c) behind this interface; a new one is such a file and a line in schemes.c.
 *
 * A scheme is pure: it sees messages that come and go and receives that are posted, and answers
 * whether one more may be sent.  It makes no system call and knows neither verbs nor time, so that
 * the same code runs on a device and in the simulation of tests/unit/flow.
 *
 * Each end of a connection has one struct scheme_state for both its roles: it sends messages to the
 * peer, and it posts the receives that the peer's messages take.
 */
#ifndef UROCE_FLOW_SCHEME_H
#define UROCE_FLOW_SCHEME_H

#include <stdbool.h>
#include <stdint.h>

/* What a message is to a scheme.  All but FLOW_CONTROL are the application's. */
enum flow_kind {
	FLOW_DATA,
	FLOW_IMMEDIATE, /* RDMA WRITE with immediate: takes a receive, too */
	FLOW_REQUEST,	/* asks for one FLOW_RESPONSE */
	FLOW_RESPONSE,
	FLOW_CONTROL, /* the scheme's own */
	FLOW_KINDS,
};
const char *flow_kind_name(enum flow_kind kind);

/* A scheme's part of a message's header; each uses of it what the original has on the wire. */
struct flow_news {
	uint8_t flags;	 /* the scheme's own */
	uint16_t count;	 /* an increment */
	uint32_t number; /* of this message */
	uint32_t limit;	 /* absolute: how many may be sent in all */
};

/* Counts begin at 0; the terms are the same in every scheme, and each uses some of them. */
struct scheme_state {
	const struct scheme *scheme;
	uint32_t depth; /* receives that are promised to the peer, as negotiated; at least 4 */

	/* The sender's half. */
	uint32_t credits;  /* schemes of increments: messages that may still be sent */
	uint32_t limit;	   /* absolute schemes: messages that may be sent in all */
	uint32_t sent;	   /* messages sent that count */
	uint32_t reserved; /* receives of our own that are free for answers */

	/* The receiver's half. */
	uint32_t received; /* messages received that count */
	uint32_t posted;   /* receives posted again, of messages that count */
	uint32_t untold;   /* schemes of increments: of these, what the peer was not told */
	uint32_t told;	   /* absolute schemes: the limit that the peer was told last */
	uint32_t mark;	   /* the scheme's own mark */
	bool asked;	   /* an update was asked for and is due */
	bool owed;	   /* something is due with the next message */
	uint32_t lied;	   /* news that cannot be true: a credit was doubled somewhere */
};

enum scheme_flags {
	SCHEME_TRANSPORT = 1,	 /* the device's own credits are wanted */
	SCHEME_BY_WRITE = 2,	 /* updates are RDMA WRITEs into the peer's memory */
	SCHEME_RNR_IS_PART = 4,	 /* overruns belong to it: no promise is checked */
	SCHEME_POOLS = 8,	 /* makes no promise to one connection: can share receives */
	SCHEME_CONTROL = 16,	 /* a negative control, which must fail */
	SCHEME_OVER_BY_ACK = 32, /* its updates, and only they, may overrun */
};

struct scheme {
	const char *name;
	unsigned int flags; /* enum scheme_flags */
	/* For the reader; one line each. */
	const char *counted, *travels, *told, *reserved, *source;

	/* Receives to post for a connection whose depth is this; NULL: as many as depth. */
	uint32_t (*receives)(uint32_t depth);
	/*
	 * Free buffers are posted when at most so many receives of the connection are; NULL: at
	 * once.
	 */
	uint32_t (*refill_at)(uint32_t depth);
	/* After depth receives have been posted at both ends; the state is zero but for depth. */
	void (*begin)(struct scheme_state *s);
	/* An application's message may go now.  Not asked for FLOW_CONTROL. */
	bool (*may_send)(const struct scheme_state *s, enum flow_kind kind);
	/* A message is sent: account for it and fill in the news that it carries. */
	void (*sending)(struct scheme_state *s, enum flow_kind kind, struct flow_news *news);
	/* A message, or an update by RDMA WRITE, has come. */
	void (*heard)(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news);
	/* The receive that a message of this kind took has been posted again. */
	void (*posted)(struct scheme_state *s, enum flow_kind kind);
	/*
	 * An update should leave now, and may.  waiting: the application has a message to send,
	 * whether it may go or not.  At most one is on its way at a time, but for SCHEME_BY_WRITE.
	 */
	bool (*wants_control)(const struct scheme_state *s, bool waiting);
	/*
	 * For the judge, NULL where nothing is promised: messages of the application that may still
	 * be sent, with what is kept back; and posted receives that the peer does not know of.
	 * Between messages the two make up all receives that are free and promised.
	 */
	int32_t (*allowance)(const struct scheme_state *s);
	int32_t (*hidden)(const struct scheme_state *s);
};

/* In the order in which the table shows them; ends with NULL. */
extern const struct scheme *const schemes[];
const struct scheme *scheme_find(const char *name);

/* What may be NULL, with its default. */
uint32_t scheme_receives(const struct scheme *scheme, uint32_t depth);
uint32_t scheme_refill_at(const struct scheme *scheme, uint32_t depth);
void scheme_begin(struct scheme_state *s, const struct scheme *scheme, uint32_t depth);

/* Is a before b?  Counts may wrap. */
static inline bool before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

static inline uint32_t at_least(uint32_t minimum, uint32_t value)
{
	return value < minimum ? minimum : value;
}

static inline uint32_t at_most(uint32_t maximum, uint32_t value)
{
	return value > maximum ? maximum : value;
}

/* For schemes that do not count receives that are posted again, and that have no updates. */
void uncounted_posted(struct scheme_state *s, enum flow_kind kind);
bool wants_no_control(const struct scheme_state *s, bool waiting);

/* How schemes of increments hear and answer; most of them share these. */
void increment_heard(struct scheme_state *s, enum flow_kind kind, const struct flow_news *news);
void increment_posted(struct scheme_state *s, enum flow_kind kind);
int32_t increment_allowance(const struct scheme_state *s);
int32_t increment_hidden(const struct scheme_state *s);
/* When as many are untold as the mark says, and there is a credit for it. */
bool increment_wants_control(const struct scheme_state *s, bool waiting);
/* All that is untold, up to a maximum, goes into the news. */
void increment_tell(struct scheme_state *s, uint32_t maximum, struct flow_news *news);

/* How absolute schemes do; a limit counts what may be sent in all. */
bool absolute_heard(struct scheme_state *s, uint32_t limit);
void absolute_posted(struct scheme_state *s, enum flow_kind kind);
int32_t absolute_allowance(const struct scheme_state *s);
int32_t absolute_hidden(const struct scheme_state *s);

extern const struct scheme scheme_rnr, scheme_credits, scheme_rds, scheme_rds_lowwater,
	scheme_rds_mainline, scheme_o2iblnd_v1, scheme_o2iblnd_v2, scheme_smbd, scheme_ucx,
	scheme_rxm, scheme_nccl, scheme_rsockets, scheme_perftest;
/* Negative controls. */
extern const struct scheme scheme_o2iblnd_nonoop, scheme_o2iblnd_hiw, scheme_rds_guess,
	scheme_rds_literal, scheme_smbd_chatty, scheme_naive, scheme_blind_imm, scheme_grant_early;

#endif
