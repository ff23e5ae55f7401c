/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The device under test (dut) is one real engine; the peer is scripted by the test, which makes
 * each packet of the peer and checks every packet, completion and event of the engine.  Only the
 * test advances the time.  Memory regions are malloc'ed blocks of exactly their size at invented
 * addresses, so that the sanitizer detects an access outside of them.
 *
 * Every packet that the engine sends gets the same checks (dut_pull()): the burst must be valid for
 * UDP_SEGMENT, the ICRC must be right, and the BTH must have the values of rule S15.
 *
 * Everything belongs to the dut and is freed by dut_teardown(), which DUT_TEST() arranges.
 */
#ifndef UROCE_TESTS_CONFORMANCE_DUT_H
#define UROCE_TESTS_CONFORMANCE_DUT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine.h"

#define DUT_TEST(test) cmocka_unit_test_teardown(test, dut_teardown)

/* Times in nanoseconds. */
#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

enum dut_number {
	DUT_QPN = 0x000111,	 /* the engine's */
	DUT_DEST_QPN = 0x222222, /* the scripted side's */
	DUT_SQ_PSN = 0x001000,
	DUT_RQ_PSN = 0x002000,
	DUT_LKEY = 0x1001,
	DUT_RKEY = 0x2002,	 /* of the engine's memory, for requests of the scripted side */
	DUT_THEIR_RKEY = 0x3003, /* of the scripted side's memory, which does not exist */
	DUT_MTU = 1024,
	DUT_REGION_BYTES = 65536,
};
#define DUT_LOCAL_VA UINT64_C(0x100000000)
#define DUT_REMOTE_VA UINT64_C(0x700000000)
#define DUT_THEIR_VA UINT64_C(0x900000000)

/* 0 is the default of every field: RC, 64 entries, the numbers above. */
struct dut_config {
	enum eng_qp_type type;
	bool shared; /* receives are taken from an SRQ */
	bool credits_hidden;
	struct eng_inflight_budget *share;
	bool signal_all;
	uint32_t cwnd;
	uint32_t mtu;
	uint32_t sq_psn, rq_psn;
	bool psn_zero; /* 0 in sq_psn and rq_psn is the PSN 0, not the default */
	uint32_t sq_slots, rq_slots;
	uint32_t timeout_code;			    /* default 14: 67.1 ms; DUT_NO_TIMEOUT: 0 */
	uint32_t retry_count;			    /* default 7; DUT_NO_RETRY: 0 */
	uint32_t rnr_retry;			    /* default 7; DUT_NO_RETRY: 0 */
	uint32_t max_rd_atomic, max_dest_rd_atomic; /* default 4 */
	uint32_t access;			    /* default all; DUT_NO_ACCESS: none */
	bool ipv6;
	bool gather;  /* payload is sent from its memory, without a copy in the staging memory */
	bool ecn;     /* packets are sent with ECT (eng_set_ecn()) */
	bool network; /* congestion control ENG_CC_NETWORK instead of ENG_CC_LOCAL */
};
#define DUT_NO_TIMEOUT 99
#define DUT_NO_RETRY 99
#define DUT_NO_ACCESS 0x80000000u

struct dut_region {
	uint32_t key;
	uint64_t va;
	uint64_t length;
	uint8_t *bytes;
	uint32_t access;
	bool folded; /* longer than its memory: all addresses map to its start (DUT_FOLD_BYTES) */
};

/* A packet that the engine has sent, parsed, with its bytes. */
struct dut_packet {
	struct wire_packet packet;
	uint8_t *bytes;
	uint64_t time;
};

#define DUT_LOG 2048
#define DUT_PIECES 300
#define DUT_BURST_PACKETS 128
#define DUT_BURST_BYTES 65507

struct dut {
	struct dut_config config;
	struct eng_qp *qp;
	void *replay;
	struct eng_attr *attr;
	struct eng_path cnp_path;
	struct eng_ring sq, rq;
	struct eng_ops ops;
	uint64_t now;

	struct dut_region regions[8];
	unsigned int region_count;
	uint8_t *local;	 /* memory of DUT_LKEY */
	uint8_t *remote; /* memory of DUT_RKEY */

	struct dut_packet sent[DUT_LOG];
	unsigned int sent_count, sent_read;
	struct eng_wc wcs[DUT_LOG];
	unsigned int wc_count, wc_read;
	enum eng_event events[64];
	unsigned int event_count;

	/* For long messages: if set, receives each packet; packets are counted and not kept. */
	void (*sink)(struct dut *dut, const struct wire_packet *packet);
	uint64_t sunk;
	enum eng_tx why; /* result of the last eng_transmit() */
	uint64_t next_send_id, next_recv_id;
	uint32_t invalidated; /* the last key given to invalidate() */
	bool refuse_invalidate;
	/* staging memory of bursts (dut_empty_burst()) */
	uint8_t *staging;
	struct eng_piece pieces[DUT_PIECES];
};

/* Returns a queue pair in RESET, with attributes and memory. */
struct dut *dut_new(struct dut_config config);
int dut_teardown(void **state);
/* Moves the queue pair through all states up to the state to; takes no packets from the engine. */
void dut_raise(struct dut *dut, enum eng_qp_state to);
/* Returns a default RC queue pair in RTS; packets sent until then are dropped from the record. */
struct dut *dut_rts(struct dut_config config);
/* As dut_rts(), with a peer that has reported credit code 11111b: no limit. */
struct dut *dut_unlimited(struct dut_config config);
void dut_set_state(struct dut *dut, enum eng_qp_state to);
/* Sets memory for responder resources: depth READs and Atomics, not fewer than before. */
void dut_set_replay(struct dut *dut, uint32_t depth);
struct eng_qp_info dut_info(const struct dut *dut);
/*
 * A region of more than DUT_FOLD_BYTES has its nominal length but only this much memory: all
 * addresses in it are mapped to its start.
 */
#define DUT_FOLD_BYTES (1u << 24)
struct dut_region *dut_region_add(struct dut *dut, uint32_t key, uint64_t va, uint64_t length,
				  uint32_t access);

/*
 * Posting.  dut_wqe() does not call eng_sq_push(), so that the test can change the WQE before; its
 * data is the start of dut->local.
 */
struct eng_send_wqe *dut_wqe(struct dut *dut, enum eng_op op, uint32_t length, uint32_t flags);
uint64_t dut_post(struct dut *dut, enum eng_op op, uint32_t length, uint32_t flags);
uint64_t dut_post_inline(struct dut *dut, const void *bytes, uint32_t length);
/* Posts a receive of length bytes at offset in the region of DUT_LKEY. */
uint64_t dut_post_recv_at(struct dut *dut, uint32_t offset, uint32_t length);
uint64_t dut_post_recv(struct dut *dut, uint32_t length);

/* The scripted side's packets.  Defaults are filled in; bytes are a pattern unless set. */
struct wire_packet dut_packet(const struct dut *dut, uint8_t opcode, uint32_t psn);
struct wire_packet dut_request(const struct dut *dut, uint8_t opcode, uint32_t psn,
			       uint32_t payload_length);
void dut_give(struct dut *dut, const struct wire_packet *packet);
/* A request with AckReq and a payload of the pattern. */
void dut_give_request(struct dut *dut, uint8_t opcode, uint32_t psn, uint32_t payload_length);
void dut_give_read(struct dut *dut, uint32_t psn, uint32_t offset, uint32_t length);
void dut_give_atomic(struct dut *dut, uint8_t opcode, uint32_t psn, uint32_t offset,
		     uint64_t compare, uint64_t swap_add);
/* Responses. */
void dut_ack(struct dut *dut, uint32_t psn, uint8_t credit_code, uint32_t msn);
void dut_nak(struct dut *dut, uint32_t psn, uint8_t syndrome, uint32_t msn);
void dut_give_response(struct dut *dut, uint8_t opcode, uint32_t psn, uint32_t msn,
		       const void *payload, uint32_t payload_length);
/* The pattern that request payloads and local memory have: a function of the position. */
uint8_t dut_pattern(uint64_t position);
void dut_fill(uint8_t *bytes, uint64_t length, uint64_t position);

/* Syndromes of an AETH. */
#define ACK_CODE(code) (code)
#define RNR_NAK(timer) (0x20 | (timer))
#define NAK_SEQUENCE 0x60
#define NAK_INVALID 0x61
#define NAK_ACCESS 0x62
#define NAK_OPERATIONAL 0x63
#define NO_CREDITS_REPORTED 0x1f

/*
 * Returns an empty burst for eng_transmit(), of at most max_packets packets, for tests that check
 * bursts or roll them back.  All bursts of a dut share its memory, so only one may be in use.
 */
struct eng_burst dut_empty_burst(struct dut *dut, uint32_t max_packets);
/* eng_transmit() at the time of the dut, for a set of enum eng_side, without batching or delay. */
enum eng_tx dut_transmit(struct dut *dut, struct eng_burst *burst, unsigned int sides);
/* Takes packets from the engine until it has none; sides is a set of enum eng_side. */
enum eng_tx dut_pull_sides(struct dut *dut, unsigned int sides);
enum eng_tx dut_pull(struct dut *dut);
/* Advances the time and serves every deadline of the engine at its time. */
void dut_advance(struct dut *dut, uint64_t ns);
/* Advances to the engine's next deadline and serves it; returns false if there is none. */
bool dut_advance_to_deadline(struct dut *dut);
/* Drops all packets sent so far from the record. */
void dut_forget(struct dut *dut);
/* As dut_forget(), and frees the log, for tests that send more packets than it holds. */
void dut_begin_log(struct dut *dut);
unsigned int dut_count_events(const struct dut *dut, enum eng_event event);

/*
 * expect_packet(), expect_ack() and expect_silence() call dut_pull() first.  expect_packet() takes
 * the next packet that was sent; the result is valid until dut_begin_log() or dut_teardown().
 */
#define expect_packet(dut, opcode, psn) dut_expect_packet(dut, opcode, psn, __FILE__, __LINE__)
#define expect_ack(dut, psn, syndrome, msn) \
	dut_expect_ack(dut, psn, syndrome, msn, __FILE__, __LINE__)
#define expect_silence(dut) dut_expect_silence(dut, __FILE__, __LINE__)
#define expect_wc(dut, wr_id, status) dut_expect_wc(dut, wr_id, status, __FILE__, __LINE__)
#define expect_no_wc(dut) dut_expect_no_wc(dut, __FILE__, __LINE__)
#define expect_pattern(bytes, length, position) \
	dut_expect_pattern(bytes, length, position, __FILE__, __LINE__)

const struct wire_packet *dut_expect_packet(struct dut *dut, uint8_t opcode, uint32_t psn,
					    const char *file, int line);
void dut_expect_ack(struct dut *dut, uint32_t psn, uint8_t syndrome, uint32_t msn, const char *file,
		    int line);
void dut_expect_silence(struct dut *dut, const char *file, int line);
const struct eng_wc *dut_expect_wc(struct dut *dut, uint64_t wr_id, enum eng_status status,
				   const char *file, int line);
void dut_expect_no_wc(struct dut *dut, const char *file, int line);
void dut_expect_pattern(const uint8_t *bytes, uint64_t length, uint64_t position, const char *file,
			int line);

#endif
