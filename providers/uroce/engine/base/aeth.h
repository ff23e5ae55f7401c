/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * 5-bit codes of the protocol and their values: credit counts, RNR NAK timers, Local ACK Timeouts,
 * and the syndrome byte of the AETH, which carries the first two.
 */
#ifndef UROCE_ENGINE_BASE_AETH_H
#define UROCE_ENGINE_BASE_AETH_H

#include <stdint.h>

/* "Credits are not reported" (rules C3, C7). */
#define CREDIT_CODE_UNLIMITED 31

/* Largest code whose value is at most credits: never report more than there are (rule C4). */
uint8_t credit_encode(uint32_t credits);
/* Number of receive WQEs of a code 0..30. */
uint32_t credit_decode(uint8_t code);

/* Time in ns of an RNR NAK timer code 0..31. */
uint64_t rnr_timer_ns(uint8_t code);

/* Time in ns of a Local ACK Timeout code 1..31: 4.096 us x 2^code (rule S10). */
uint64_t ack_timeout_ns(uint8_t code);

/*
 * Maximum delay of this device's ACKs, as a code: 16.8 ms.  An ACK is sent once a thread of the
 * process gets a processor, which on a busy host takes several time slices of the scheduler.
 */
#define ACK_DELAY_CODE 12

/*
 * Returns the Local ACK Timeout code of a queue pair whose program asks for this code: 0 (none)
 * stays, and codes below ACK_DELAY_CODE + 1 (33.6 ms) become that, since the requester and the
 * responder may each be late by the ACK delay.  Adapters round short timeouts up as well.
 */
uint8_t ack_timeout_used(uint8_t code);

/* Bits 6..5 of the syndrome are the kind of an AETH, bits 4..0 are a code or enum nak_code. */
enum aeth_kind {
	AETH_ACK = 0,
	AETH_RNR_NAK = 1,
	AETH_RESERVED = 2,
	AETH_NAK = 3,
};

enum nak_code {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATIONAL = 3,
};

static inline enum aeth_kind syndrome_kind(uint8_t syndrome)
{
	return (enum aeth_kind)((syndrome >> 5) & 3);
}

static inline uint8_t syndrome_code(uint8_t syndrome)
{
	return syndrome & 31;
}

static inline uint8_t syndrome_make(enum aeth_kind kind, uint8_t code)
{
	return (uint8_t)((unsigned int)kind << 5 | (code & 31u));
}

#endif
