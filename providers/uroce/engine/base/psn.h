/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * 24-bit serial number arithmetic for PSN, MSN, SSN and LSN.  Such numbers must be compared by
 * these functions only: by the sign of their 24-bit distance, so they must lie within 2^23 of each
 * other.
 */
#ifndef UROCE_ENGINE_BASE_PSN_H
#define UROCE_ENGINE_BASE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define PSN_MASK 0xffffffu
/*
 * Maximum number of PSNs in flight: half of all, so that old and new packets can be distinguished
 * (rule S2).
 */
#define PSN_WINDOW (PSN_MASK / 2 + 1)

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

static inline uint32_t psn_sub(uint32_t psn, uint32_t n)
{
	return (psn - n) & PSN_MASK;
}

/* Signed distance a - b, in -2^23 .. 2^23 - 1. */
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/* Returns true if psn is one of the n numbers that start at first. */
static inline bool psn_in(uint32_t psn, uint32_t first, uint32_t n)
{
	return ((psn - first) & PSN_MASK) < n;
}

/*
 * Keeps a PSN that marks the past from appearing to lie ahead after 2^23 more: it follows the
 * newest PSN at a distance of a quarter of the number space.
 */
static inline void psn_follow(uint32_t *old, uint32_t newest)
{
	const uint32_t distance = PSN_MASK / 4;

	if (psn_diff(newest, *old) > (int32_t)distance)
		*old = psn_sub(newest, distance);
}

#endif
