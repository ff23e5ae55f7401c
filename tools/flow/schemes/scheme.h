/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Interface of a flow-control scheme: what a sender counts so that it does not overrun the
 * receiver, how free receives are reported, when, and what is reserved for these reports.  A scheme
 * is a file scheme_NAME.c and a line in schemes.c.
 *
 * A scheme is pure: it is called for messages sent and received and for receives posted, and
 * decides whether a message may be sent.  It uses neither system calls nor verbs nor time, so the
 * same code runs on a device and in the simulation of tests/unit/flow.
 *
 * Each endpoint of a connection has one struct scheme_state for both roles: sender of messages, and
 * receiver that posts receives for the messages of the peer.
 */
#ifndef UROCE_FLOW_SCHEME_H
#define UROCE_FLOW_SCHEME_H

#include <stdbool.h>
#include <stdint.h>

/* Type of a message.  All but FLOW_CONTROL are application messages. */
enum flow_kind {
	FLOW_DATA,
	FLOW_IMMEDIATE, /* RDMA WRITE with immediate, which also consumes a receive */
	FLOW_REQUEST,	/* is answered by a FLOW_RESPONSE */
	FLOW_RESPONSE,
	FLOW_CONTROL, /* an update: message of the scheme itself */
	FLOW_KINDS,
};

/* Header fields of the scheme; each scheme uses those that the original has on the wire. */
struct flow_update {
	uint8_t flags;	 /* defined by the scheme */
	uint16_t count;	 /* credit increment */
	uint32_t number; /* sequence number of this message */
	uint32_t limit;	 /* absolute limit: messages that may be sent since the start */
};

/* State of a scheme; all counts begin at 0, and each scheme uses some of them. */
struct scheme_state {
	const struct scheme *scheme;
	uint32_t depth; /* negotiated number of receives promised to the peer; at least 4 */

	/* Sender. */
	uint32_t credits;  /* incremental schemes: messages that may be sent */
	uint32_t limit;	   /* absolute schemes: messages that may be sent since the start */
	uint32_t sent;	   /* counted messages sent */
	uint32_t reserved; /* free local receives for responses */

	/* Receiver. */
	uint32_t received;     /* counted messages received */
	uint32_t posted;       /* receives reposted, of counted messages */
	uint32_t unreported;   /* incremental schemes: reposted receives not yet reported */
	uint32_t reported;     /* absolute schemes: last limit reported to the peer */
	uint32_t threshold;    /* threshold for an update, defined by the scheme */
	bool update_requested; /* an update has been requested and is due */
	/* ucx: a grant is due with the next message; rds: an ACK is due when the ring is full */
	bool report_pending;
	uint32_t bogus_updates; /* updates that cannot be true: a credit was duplicated */
};

enum scheme_flags {
	SCHEME_TRANSPORT_CREDITS = 1, /* uses the transport's credits */
	SCHEME_UPDATE_BY_WRITE = 2,   /* updates are RDMA WRITEs into the peer's memory */
	SCHEME_RNR_IS_PART = 4,	      /* relies on RNR NAKs: overruns are not faults */
	SCHEME_SHARES_RECEIVES = 8,   /* promises nothing per connection: receives can be shared */
	SCHEME_CONTROL = 16,	      /* negative control, which must fail */
	SCHEME_OVER_BY_ACK = 32,      /* an update may overrun without being a fault */
};

struct scheme {
	const char *name;
	unsigned int flags; /* enum scheme_flags */
	/* Descriptions for --list, one line each. */
	const char *counted, *carried_by, *reported, *reserved, *source;

	/* Returns the number of receives to post for a connection of this depth; NULL: depth. */
	uint32_t (*receives)(uint32_t depth);
	/*
	 * Returns the number of posted receives of a connection at or below which free buffers are
	 * reposted.  NULL: they are reposted immediately.
	 */
	uint32_t (*refill_at)(uint32_t depth);
	/*
	 * Called at the start, with all fields zero except scheme and depth.  Both endpoints post
	 * their receives before the first message.
	 */
	void (*init)(struct scheme_state *s);
	/* Returns true if an application message may be sent.  Not called for FLOW_CONTROL. */
	bool (*may_send)(const struct scheme_state *s, enum flow_kind kind);
	/*
	 * Called for each message that consumes a receive, and for each update: updates the counts
	 * and sets the header fields.
	 */
	void (*on_send)(struct scheme_state *s, enum flow_kind kind, struct flow_update *update);
	/* Called for each message or update by RDMA WRITE received. */
	void (*on_receive)(struct scheme_state *s, enum flow_kind kind,
			   const struct flow_update *update);
	/* Called when the receive that a message of this kind consumed has been reposted. */
	void (*on_post)(struct scheme_state *s, enum flow_kind kind);
	/*
	 * Returns true if an update is needed and allowed now.  waiting: the application has a
	 * message to send, allowed or not.  At most one update is in flight at a time,
	 * except with SCHEME_UPDATE_BY_WRITE.
	 */
	bool (*update_is_due)(const struct scheme_state *s, bool waiting);
	/*
	 * For the checker; NULL if the scheme makes no promise.  allowance(): number of messages
	 * that may be sent, including reserved credits.  unreported(): number of posted receives
	 * not yet reported to the peer.  When no message is in flight, allowance() of one side and
	 * unreported() of the other add up to the promised receives that are free.
	 */
	int32_t (*allowance)(const struct scheme_state *s);
	int32_t (*unreported)(const struct scheme_state *s);
};

/* All schemes in the order of the table; ends with NULL. */
extern const struct scheme *const schemes[];
const struct scheme *scheme_find(const char *name);

/* The functions of a scheme that may be NULL, with their defaults. */
uint32_t scheme_receives(const struct scheme *scheme, uint32_t depth);
uint32_t scheme_refill_at(const struct scheme *scheme, uint32_t depth);
void scheme_begin(struct scheme_state *s, const struct scheme *scheme, uint32_t depth);

/* Returns true if count a is less than b; counts may wrap. */
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

/* Functions for schemes that do not count reposted receives, and for schemes without updates. */
void ignore_post(struct scheme_state *s, enum flow_kind kind);
bool no_update_is_due(const struct scheme_state *s, bool waiting);

/* Functions shared by incremental schemes. */
void increment_on_receive(struct scheme_state *s, enum flow_kind kind,
			  const struct flow_update *update);
void increment_on_post(struct scheme_state *s, enum flow_kind kind);
int32_t increment_allowance(const struct scheme_state *s);
int32_t increment_unreported(const struct scheme_state *s);
/* Returns true if unreported receives have reached threshold and there is a credit. */
bool increment_update_is_due(const struct scheme_state *s, bool waiting);
/* Reports the unreported receives, at most maximum, in update->count. */
void increment_report(struct scheme_state *s, uint32_t maximum, struct flow_update *update);

/*
 * Functions shared by absolute schemes.  absolute_on_receive() returns true if the limit has
 * increased.
 */
bool absolute_on_receive(struct scheme_state *s, uint32_t limit);
void absolute_on_post(struct scheme_state *s, enum flow_kind kind);
int32_t absolute_allowance(const struct scheme_state *s);
int32_t absolute_unreported(const struct scheme_state *s);

extern const struct scheme scheme_rnr, scheme_credits, scheme_rds, scheme_rds_lowwater,
	scheme_rds_mainline, scheme_o2iblnd_v1, scheme_o2iblnd_v2, scheme_smbd, scheme_ucx,
	scheme_rxm, scheme_nccl, scheme_rsockets, scheme_perftest;
/* Negative controls. */
extern const struct scheme scheme_o2iblnd_nonoop, scheme_o2iblnd_hiw, scheme_rds_guess,
	scheme_rds_literal, scheme_smbd_chatty, scheme_naive, scheme_blind_imm, scheme_grant_early;

#endif
