/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "req_limit.h"

#include <assert.h>
#include <stddef.h>

#include "wire/bytes.h"

static uint32_t bucket_of_gid(const uint8_t *gid)
{
	uint64_t mixed =
		(wire_get_be64(gid) ^ wire_get_be64(gid + 8)) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(mixed >> 32) % REQ_LIMIT_BUCKETS;
}

void cm_req_limit_init(struct req_limit *req_limit, uint32_t limit)
{
	req_limit->limit = limit;
	for (uint32_t i = 0; i < REQ_LIMIT_BUCKETS; i++)
		TAILQ_INIT(&req_limit->bucket[i].queued);
}

bool cm_req_limit_add(struct req_limit *req_limit, struct req_limit_node *node, const uint8_t *gid)
{
	struct peer_limit *bucket;

	assert(node->state == REQ_LIMIT_NONE);
	node->bucket = bucket_of_gid(gid);
	bucket = &req_limit->bucket[node->bucket];
	if (bucket->count < req_limit->limit) {
		bucket->count++;
		node->state = REQ_LIMIT_COUNTED;
		return true;
	}
	node->state = REQ_LIMIT_QUEUED;
	TAILQ_INSERT_TAIL(&bucket->queued, node, link);
	return false;
}

void cm_req_limit_remove(struct req_limit *req_limit, struct req_limit_node *node)
{
	struct peer_limit *bucket = &req_limit->bucket[node->bucket];

	if (node->state == REQ_LIMIT_COUNTED) {
		assert(bucket->count > 0);
		bucket->count--;
	} else if (node->state == REQ_LIMIT_QUEUED) {
		TAILQ_REMOVE(&bucket->queued, node, link);
	}
	node->state = REQ_LIMIT_NONE;
}

struct req_limit_node *cm_req_limit_next(struct req_limit *req_limit, uint32_t number)
{
	struct peer_limit *bucket = &req_limit->bucket[number];
	struct req_limit_node *node = TAILQ_FIRST(&bucket->queued);

	if (!node || bucket->count >= req_limit->limit)
		return NULL;
	TAILQ_REMOVE(&bucket->queued, node, link);
	bucket->count++;
	node->state = REQ_LIMIT_COUNTED;
	return node;
}
