/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Protocol rules that are checked in a capture, with their numbers in Documentation/rules.md. */
#ifndef UROCE_TRACE_RULES_H
#define UROCE_TRACE_RULES_H

#include <stdbool.h>
#include <stdint.h>

/* identifier, rule number, side that violates it, description */
#define TRACE_RULES(X)                                                                             \
	X(CREDITS_MIXED, "C7", RESPONDER,                                                          \
	  "credits are counted in one response and \"not "                                         \
	  "reported\" in another")                                                                 \
	X(CREDITS_TOO_HIGH, "C5", RESPONDER, "RNR NAK for a request that the credits had covered") \
	X(INITIAL_MSN, "C9", RESPONDER, "initial credits come with an MSN that is not 0")          \
	X(MSN, "C11", RESPONDER, "the MSN does not count the requests that are complete")          \
	X(LIMITED_WITHOUT_ACK_REQ, "C13", REQUESTER, "a limited request goes out without AckReq")  \
	X(LIMITED_BEYOND_LSN, "C13", REQUESTER, "more of a limited request is sent beyond LSN")    \
	X(PASSES_LIMITED, "C15", REQUESTER, "a request passes a limited one before a response")    \
	X(LENGTH, "S1", REQUESTER, "a packet is not as long as its place in the message asks")     \
	X(NAK_TWICE, "S4", RESPONDER, "a sequence NAK again, while nothing with its PSN came")     \
	X(OPCODE_ORDER, "S5", REQUESTER, "the opcode does not follow the one before")              \
	X(ACK_LATE, "S7", RESPONDER, "a packet with AckReq is answered late")                      \
	X(RNR_EARLY, "S10", REQUESTER, "sent again before the RNR NAK's time is over")             \
	X(NAK_LATE, "S11", REQUESTER, "a sequence NAK is answered late")                           \
	X(READ_DEPTH, "S12", REQUESTER, "more READs and Atomics at once than REQ and REP allow")   \
	X(ICRC, "S14", SENDER, "wrong ICRC")                                                       \
	X(MIGREQ, "S15", SENDER, "MigReq is 0")                                                    \
	X(PKEY, "S15", SENDER, "the P_Key is not FFFFh")                                           \
	X(SOLICITED, "S15", REQUESTER, "SE is set before the last packet of a message")

enum trace_rule {
#define TRACE_RULE_ENUM(id, number, by, text) RULE_##id,
	TRACE_RULES(TRACE_RULE_ENUM)
#undef TRACE_RULE_ENUM
		TRACE_RULE_COUNT,
};

enum rule_by {
	RULE_BY_REQUESTER,
	RULE_BY_RESPONDER,
	RULE_BY_SENDER, /* sender of the packet, requester or responder */
};

struct rule_row {
	const char *number, *text;
	enum rule_by by;
};
extern const struct rule_row rule_rows[TRACE_RULE_COUNT];
const char *rule_by_name(enum rule_by by);

/* Number of violations of a rule, and the frames of the first ones. */
#define RULE_EXAMPLES 8
struct rule_hits {
	uint64_t count;
	uint32_t frames[RULE_EXAMPLES];
};

void rule_hit(struct rule_hits *hits, uint32_t frame);

#endif
