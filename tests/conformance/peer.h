/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One real engine and a scripted peer.  The test writes the peer's packets by hand and looks at
 * every packet, completion and event that the engine answers with.  Time is a number that only the
 * test moves; memory regions are malloc'ed blocks of exactly their size under invented addresses,
 * so that the sanitizer sees an access outside of them.
 *
 * Every packet that the engine hands out goes through the same checks (peer_pull()): the run keeps
 * the rule of UDP_SEGMENT, the ICRC is right, and the BTH has the values of rule S15.
 *
 * Everything belongs to the peer and is freed by peer_teardown(), which PEER_TEST() arranges.
 */
#ifndef UROCE_TESTS_CONFORMANCE_PEER_H
#define UROCE_TESTS_CONFORMANCE_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"

#define PEER_TEST(test) cmocka_unit_test_teardown(test, peer_teardown)

/* Times in nanoseconds. */
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

enum peer_number {
	PEER_QPN = 0x000111,	  /* the engine's */
	PEER_DEST_QPN = 0x222222, /* the scripted side's */
	PEER_SQ_PSN = 0x001000,
	PEER_RQ_PSN = 0x002000,
	PEER_LKEY = 0x1001,
	PEER_RKEY = 0x2002,	  /* of the engine's memory, for requests of the scripted side */
	PEER_THEIR_RKEY = 0x3003, /* of the scripted side's memory, which does not exist */
	PEER_MTU = 1024,
	PEER_REGION_BYTES = 65536,
};
#define PEER_LOCAL_VA UINT64_C(0x100000000)
#define PEER_REMOTE_VA UINT64_C(0x700000000)
#define PEER_THEIR_VA UINT64_C(0x900000000)

/* 0 is the default of every field: RC, 64 entries, the numbers above. */
struct peer_config {
	enum eng_qp_type type;
	bool shared; /* receives come from an SRQ */
	bool credits_hidden;
	struct eng_cwnd_share *share;
	bool signal_all;
	uint32_t cwnd;
	uint32_t mtu;
	uint32_t sq_psn, rq_psn;
	bool psn_zero; /* sq_psn and rq_psn 0 are meant */
	uint32_t sq_slots, rq_slots;
	uint32_t timeout_code;			    /* default 14: 67.1 ms; PEER_NO_TIMEOUT: 0 */
	uint32_t retry_count;			    /* default 7; PEER_NO_RETRY: 0 */
	uint32_t rnr_retry;			    /* default 7; PEER_NO_RETRY: 0 */
	uint32_t max_rd_atomic, max_dest_rd_atomic; /* default 4 */
	uint32_t access;			    /* default all; PEER_NO_ACCESS: none */
	bool ipv6;
	bool gather; /* payload is left where it lies */
};
#define PEER_NO_TIMEOUT 99
#define PEER_NO_RETRY 99
#define PEER_NO_ACCESS 0x80000000u

struct peer_region {
	uint32_t key;
	uint64_t va;
	uint64_t length;
	uint8_t *bytes;
	uint32_t access;
	bool folded; /* longer than its memory: every packet lands in the same page */
};

/* A packet that the engine has sent, parsed, with its bytes. */
struct peer_packet {
	struct wire_packet packet;
	uint8_t *bytes;
	uint64_t time;
};

#define PEER_LOG 2048
#define PEER_PIECES 300
#define PEER_RUN_PACKETS 128
#define PEER_RUN_BYTES 65507

struct peer {
	struct peer_config config;
	struct eng_qp *qp;
	void *replay;
	struct eng_attr *attr;
	struct eng_ring sq, rq;
	struct eng_ops ops;
	uint64_t now;

	struct peer_region regions[8];
	unsigned int region_count;
	uint8_t *local;	 /* memory of PEER_LKEY */
	uint8_t *remote; /* memory of PEER_RKEY */

	struct peer_packet sent[PEER_LOG];
	unsigned int sent_count, sent_read;
	struct eng_wc wcs[PEER_LOG];
	unsigned int wc_count, wc_read;
	enum eng_event events[64];
	unsigned int event_count;

	/* Long messages: count packets and keep none, but hand each to this function. */
	void (*sink)(struct peer *peer, const struct wire_packet *packet);
	uint64_t sunk;
	enum eng_tx why; /* what the last eng_transmit() said */
	uint64_t next_send_id, next_recv_id;
	uint32_t invalidated; /* the last key given to invalidate() */
	bool refuse_invalidate;
	/* What a run is put together in (peer_empty_run()). */
	uint8_t *staging;
	struct eng_piece pieces[PEER_PIECES];
};

/* In RESET, with attributes and memory. */
struct peer *peer_new(struct peer_config config);
int peer_teardown(void **state);
/* To RTS without looking at packets on the way. */
void peer_raise(struct peer *peer, enum eng_qp_state to);
/* Default RC queue pair in RTS; what it has sent till then is forgotten. */
struct peer *peer_rts(struct peer_config config);
void peer_set_state(struct peer *peer, enum eng_qp_state to);
/* Memory for depth READs and Atomics, more than before. */
void peer_set_replay(struct peer *peer, uint32_t depth);
struct eng_view peer_view(const struct peer *peer);
/*
 * A region of more than PEER_FOLD_BYTES is as long as it says, but has only that much memory: any
 * address in it is mapped to its beginning.
 */
#define PEER_FOLD_BYTES (1u << 24)
struct peer_region *peer_region_add(struct peer *peer, uint32_t key, uint64_t va, uint64_t length,
				    uint32_t access);

/* Posting.  peer_wqe() leaves room for changes before eng_sq_push(); data is the start of local. */
struct eng_send_wqe *peer_wqe(struct peer *peer, enum eng_op op, uint32_t length, uint32_t flags);
uint64_t peer_post(struct peer *peer, enum eng_op op, uint32_t length, uint32_t flags);
uint64_t peer_post_inline(struct peer *peer, const void *bytes, uint32_t length);
/* A receive of length bytes at offset in the region of PEER_LKEY. */
uint64_t peer_post_recv_at(struct peer *peer, uint32_t offset, uint32_t length);
uint64_t peer_post_recv(struct peer *peer, uint32_t length);

/* The scripted side's packets.  Defaults are filled in; bytes are a pattern unless set. */
struct wire_packet peer_packet(const struct peer *peer, uint8_t opcode, uint32_t psn);
struct wire_packet peer_request(const struct peer *peer, uint8_t opcode, uint32_t psn,
				uint32_t payload_length);
void peer_give(struct peer *peer, const struct wire_packet *packet);
/* A request with AckReq and a payload of the pattern. */
void peer_give_request(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t payload_length);
void peer_give_read(struct peer *peer, uint32_t psn, uint32_t offset, uint32_t length);
void peer_give_atomic(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t offset,
		      uint64_t compare, uint64_t swap_add);
/* Responses. */
void peer_ack(struct peer *peer, uint32_t psn, uint8_t credit_code, uint32_t msn);
void peer_nak(struct peer *peer, uint32_t psn, uint8_t syndrome, uint32_t msn);
void peer_give_response(struct peer *peer, uint8_t opcode, uint32_t psn, uint32_t msn,
			const void *payload, uint32_t payload_length);
/* The pattern that request payloads and local memory have: a function of the position. */
uint8_t peer_pattern(uint64_t position);
void peer_fill(uint8_t *bytes, uint64_t length, uint64_t position);

/* Syndromes of an AETH. */
#define ACK_CODE(code) (code)
#define RNR_NAK(timer) (0x20 | (timer))
#define NAK_SEQUENCE 0x60
#define NAK_INVALID 0x61
#define NAK_ACCESS 0x62
#define NAK_OPERATIONAL 0x63
#define NO_CREDITS_REPORTED 0x1f

/*
 * A run for eng_transmit(), of at most so many packets, for tests that look at runs or take them
 * back.  There is room for one at a time.
 */
struct eng_run peer_empty_run(struct peer *peer, uint32_t max_packets);
/* eng_transmit() at the time of the peer, for a set of enum eng_side; nothing waits for company. */
enum eng_tx peer_transmit(struct peer *peer, struct eng_run *run, unsigned int sides);
/* Ask the engine for packets until it has none; sides is a set of enum eng_side. */
enum eng_tx peer_pull_sides(struct peer *peer, unsigned int sides);
enum eng_tx peer_pull(struct peer *peer);
/* Move time on, serving every deadline on the way at its time. */
void peer_advance(struct peer *peer, uint64_t ns);
/* Move to the engine's next deadline and serve it; false when there is none. */
bool peer_advance_to_deadline(struct peer *peer);
/* Forget what was sent till now. */
void peer_forget(struct peer *peer);
unsigned int peer_count_events(const struct peer *peer, enum eng_event event);

/*
 * Expectations pull first.  expect_packet() takes the next packet that was sent; the result lives
 * as long as the peer.
 */
#define expect_packet(peer, opcode, psn) peer_expect_packet(peer, opcode, psn, __FILE__, __LINE__)
#define expect_ack(peer, psn, syndrome, msn) \
	peer_expect_ack(peer, psn, syndrome, msn, __FILE__, __LINE__)
#define expect_silence(peer) peer_expect_silence(peer, __FILE__, __LINE__)
#define expect_wc(peer, wr_id, status) peer_expect_wc(peer, wr_id, status, __FILE__, __LINE__)
#define expect_no_wc(peer) peer_expect_no_wc(peer, __FILE__, __LINE__)
#define expect_pattern(bytes, length, position) \
	peer_expect_pattern(bytes, length, position, __FILE__, __LINE__)

const struct wire_packet *peer_expect_packet(struct peer *peer, uint8_t opcode, uint32_t psn,
					     const char *file, int line);
void peer_expect_ack(struct peer *peer, uint32_t psn, uint8_t syndrome, uint32_t msn,
		     const char *file, int line);
void peer_expect_silence(struct peer *peer, const char *file, int line);
const struct eng_wc *peer_expect_wc(struct peer *peer, uint64_t wr_id, enum eng_status status,
				    const char *file, int line);
void peer_expect_no_wc(struct peer *peer, const char *file, int line);
void peer_expect_pattern(const uint8_t *bytes, uint64_t length, uint64_t position, const char *file,
			 int line);

#endif
