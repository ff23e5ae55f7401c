/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The work of one connection end, prepared before anything runs: its messages with their expected
 * results, its receive requests, and its memory with the image that it must have at the end.
 *
 * A reliable connection executes messages in the order of posting, so results are known beforehand
 * by executing them in that order on the image (rules S2, C15).  Where a later message would change
 * memory that an earlier READ may still be reading, it carries the fence.
 *
 * Positions are PSNs without wrap: the distance from the first PSN.
 */
#ifndef UROCE_SIM_SCRIPT_H
#define UROCE_SIM_SCRIPT_H

#include "engine/engine.h"
#include "sim/plan/plan.h"
#include "sim/random.h"

#define NO_INDEX UINT32_MAX
#define SCRIPT_WINDOWS 64

/* Registered memory: bytes as they are, image as they must be when all is done. */
struct area {
	uint8_t *bytes;
	uint8_t *image;
	uint32_t room; /* allocated */
	uint32_t used; /* including guard zones */
	uint64_t base; /* address of bytes[0] in work requests */
	uint32_t key;
	uint32_t access; /* set of enum eng_access */
	bool gone;	 /* deregistered: must not be read or written any more */
};

/* A memory window on the remote area. */
struct window {
	uint32_t key;
	uint32_t offset, length; /* in the area */
	uint32_t binder;	 /* message that binds it */
	bool promised_end;	 /* a message of the peer invalidates it */
	bool bound, ended;	 /* current state */
};

struct extent {
	uint32_t offset, length;
};

struct message {
	enum eng_op op;
	uint32_t flags; /* set of enum eng_send_flag */
	uint32_t length;
	uint32_t immediate;
	int64_t first; /* position */
	uint32_t packets;
	uint32_t ssn;		/* rule C11: of this message; local request: of the one before */
	uint32_t takes_receive; /* number among the messages that take a receive; 0: takes none */
	uint32_t receives_upto; /* number of those messages up to and including this one */
	uint32_t content;	/* offset in blob of the data sent, or that a READ must return */
	uint32_t target;	/* offset in the peer's remote area */
	uint32_t next_writer;	/* message that overwrites target, or NO_INDEX */
	uint32_t sge_count;
	struct eng_sge sge[ENG_MAX_SGE];
	uint64_t va, compare_add, swap, original;
	uint32_t rkey;
	bool dead; /* this message or an earlier one fails on purpose */
	bool signaled;
	bool read_later; /* a later READ reads its target */
	bool limited;	 /* rule C13: had no credit when it was begun (the oracle's) */
	uint32_t window; /* BIND_MW: own; others: peer's, bound before use; or NO_INDEX */
	/* UC and UD, where first is not known before the message is begun. */
	enum eng_status local_status; /* status if it fails without being sent, or ENG_SUCCESS */
	bool refused;		      /* refers to memory that the receiver does not have */
	bool cut;		      /* UC: it failed before its last packet was sent */
	uint32_t dest;		      /* UD: connection */
	bool grouped;		      /* UD: multicast to all members, by the path to dest */
	uint32_t qkey, wire_qkey;     /* UD: as posted, and as sent */
};

struct receive {
	uint32_t length; /* in bytes */
	uint32_t sge_count;
	struct eng_sge sge[ENG_MAX_SGE];
};

struct script {
	struct message *messages;
	uint32_t message_count, message_room;
	int64_t positions;	  /* number of positions of all messages */
	uint32_t wire_messages;	  /* number of messages that are not local */
	uint32_t receives_needed; /* number of receives that its messages take at the peer */
	uint32_t bad;		  /* message that goes wrong, or NO_INDEX */

	struct receive *receives; /* posted by this end: as many as the peer needs, and some more */
	uint32_t receive_count, receive_room;
	bool receives_again; /* posted any number of times, in memory that is free */

	uint8_t *blob; /* contents of messages */
	uint32_t blob_used, blob_room;

	struct area source;	  /* data to send is gathered from here; never written */
	struct area landing;	  /* receive buffers, results of READs and Atomics */
	struct area remote;	  /* target of the peer's WRITEs, READs and Atomics */
	uint32_t last_writes[64]; /* recent WRITEs whose target may be used again */
	uint32_t last_write_count;
	struct window windows[SCRIPT_WINDOWS];
	uint32_t window_count;
	uint32_t windows_used; /* number of windows that the peer's messages use */
};

/* Prepares both ends of a connection; scripts may have been used before. */
void script_make(struct script scripts[2], const struct plan *plan, uint32_t connection,
		 struct sim_random *random);
/* The same for a connection of UC or UD. */
void script_make_uc_ud(struct script scripts[2], const struct plan *plan, uint32_t connection,
		       struct sim_random *random);
/* The same for a flow of plan->flows. */
void script_make_flow(struct script scripts[2], const struct plan *plan, uint32_t connection,
		      struct sim_random *random);
/* The receive requests that the QPs of a side share; there are no messages. */
void script_make_common(struct script *script, const struct plan *plan, uint32_t side,
			struct sim_random *random);
void script_free(struct script *script);

/* Fills in the work request of a message. */
void script_fill_send(const struct script *script, uint32_t index, struct eng_send_wqe *wqe);

/* The message that position belongs to, or NO_INDEX. */
uint32_t script_find(const struct script *script, int64_t position);
/* The message with this SSN. */
uint32_t script_by_ssn(const struct script *script, uint32_t ssn);
static inline int64_t message_end(const struct message *message)
{
	return message->first + message->packets;
}
static inline bool op_is_read(enum eng_op op)
{
	return op == ENG_READ;
}
static inline bool op_is_atomic(enum eng_op op)
{
	return op == ENG_COMPARE_SWAP || op == ENG_FETCH_ADD;
}
static inline bool op_is_send(enum eng_op op)
{
	return op == ENG_SEND || op == ENG_SEND_IMM || op == ENG_SEND_INV;
}
/* Takes a receive request at the peer, whose completion may be a solicited one. */
static inline bool op_takes_receive(enum eng_op op)
{
	return op_is_send(op) || op == ENG_WRITE_IMM;
}
/* Executed without a packet. */
static inline bool op_is_local(enum eng_op op)
{
	return op == ENG_LOCAL_INV || op == ENG_BIND_MW;
}
/* Completed only by a response of its own. */
static inline bool op_answers(enum eng_op op)
{
	return op_is_read(op) || op_is_atomic(op) || op == ENG_ATOMIC_WRITE;
}
/* Writes to the peer's memory. */
static inline bool op_is_write(enum eng_op op)
{
	return op == ENG_WRITE || op == ENG_WRITE_IMM || op == ENG_ATOMIC_WRITE;
}
/* Set in keys that local requests invalidate, to distinguish them from those of SENDs. */
#define LOCAL_KEY 0x80000000u

/* Memory of a range, or NULL (the engine's map calls). */
void *area_map(const struct area *area, uint32_t key, uint64_t addr, uint32_t length,
	       uint32_t need);
/* Deregisters the area: its bytes must not change any more. */
void area_go(struct area *area);
/* The window with this key, or NULL. */
struct window *script_window(struct script *script, uint32_t key);
/* Compares the memory of an SGE list with bytes; the rest of the list must be unchanged. */
bool area_holds(const struct area *area, const struct eng_sge *sge, uint32_t count,
		const uint8_t *bytes, uint32_t length);
/* Puts bytes into the image of an SGE list. */
void area_expect(struct area *area, const struct eng_sge *sge, uint32_t count, const uint8_t *bytes,
		 uint32_t length);
/* The same from an offset in the list on. */
void area_expect_at(struct area *area, const struct eng_sge *sge, uint32_t count, uint32_t offset,
		    const uint8_t *bytes, uint32_t length);
/* Returns true if all memory of the list equals its image. */
bool area_list_right(const struct area *area, const struct eng_sge *sge, uint32_t count);
/* The expected value of these bytes is unknown: copies them to the image as they are. */
void area_forget(struct area *area, uint32_t offset, uint32_t length);
void area_forget_list(struct area *area, const struct eng_sge *sge, uint32_t count);
/* Returns the offset of the first byte that differs from the image, or NO_INDEX. */
uint32_t area_compare(const struct area *area);

#endif
