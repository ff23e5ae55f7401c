/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <string.h>

#include "sim/plan/script.h"

/* The first and last bytes of an area are not registered. */
#define GUARD 64

void *area_map(const struct area *area, uint32_t key, uint64_t addr, uint32_t length, uint32_t need)
{
	uint64_t offset = addr - area->base;

	if (area->gone || key != area->key || (area->access & need) != need)
		return NULL;
	if (offset < GUARD || offset > area->used - GUARD || length > area->used - GUARD - offset)
		return NULL;
	return area->bytes + offset;
}

bool area_holds(const struct area *area, const struct eng_sge *sge, uint32_t count,
		const uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t offset = (uint32_t)(sge[i].addr - area->base);
		uint32_t n = sge[i].length < length ? sge[i].length : length;

		if (memcmp(area->bytes + offset, bytes, n) != 0)
			return false;
		if (memcmp(area->bytes + offset + n, area->image + offset + n, sge[i].length - n) !=
		    0)
			return false;
		bytes += n;
		length -= n;
	}
	return length == 0;
}

void area_expect_at(struct area *area, const struct eng_sge *sge, uint32_t count, uint32_t offset,
		    const uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < count && length > 0 && !area->gone; i++) {
		uint32_t n = sge[i].length, skip = offset < n ? offset : n;

		offset -= skip;
		n -= skip;
		if (n > length)
			n = length;
		memcpy(area->image + (sge[i].addr - area->base) + skip, bytes, n);
		bytes += n;
		length -= n;
	}
}

void area_expect(struct area *area, const struct eng_sge *sge, uint32_t count, const uint8_t *bytes,
		 uint32_t length)
{
	area_expect_at(area, sge, count, 0, bytes, length);
}

bool area_list_right(const struct area *area, const struct eng_sge *sge, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t offset = sge[i].addr - area->base;

		if (memcmp(area->bytes + offset, area->image + offset, sge[i].length) != 0)
			return false;
	}
	return true;
}

void area_forget(struct area *area, uint32_t offset, uint32_t length)
{
	if (!area->gone)
		memcpy(area->image + offset, area->bytes + offset, length);
}

void area_go(struct area *area)
{
	memcpy(area->image, area->bytes, area->used);
	area->gone = true;
}

void area_forget_list(struct area *area, const struct eng_sge *sge, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		area_forget(area, (uint32_t)(sge[i].addr - area->base), sge[i].length);
}

uint32_t area_compare(const struct area *area)
{
	if (memcmp(area->bytes, area->image, area->used) == 0)
		return NO_INDEX;
	for (uint32_t i = 0; i < area->used; i++)
		if (area->bytes[i] != area->image[i])
			return i;
	return NO_INDEX;
}
