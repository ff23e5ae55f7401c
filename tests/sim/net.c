/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "sim/net.h"

#include <stdlib.h>
#include <string.h>

const char *net_loss_name(enum net_loss loss)
{
	static const char *const names[] = {
		[NET_LOST] = "lost",
		[NET_OVERFLOW] = "lost: queue full",
		[NET_DAMAGED] = "damaged",
	};

	return names[loss];
}

void net_queue_append(struct net_queue *queue, struct net_packet *packet)
{
	packet->next = NULL;
	if (queue->tail)
		queue->tail->next = packet;
	else
		queue->head = packet;
	queue->tail = packet;
	queue->count++;
}

struct net_packet *net_queue_take(struct net_queue *queue)
{
	struct net_packet *packet = queue->head;

	if (!packet)
		return NULL;
	queue->head = packet->next;
	if (!queue->head)
		queue->tail = NULL;
	queue->count--;
	packet->next = NULL;
	return packet;
}

/* Inserts by due time, after packets of the same time. */
static void queue_insert(struct net_queue *queue, struct net_packet *packet)
{
	struct net_packet **at = &queue->head;

	if (!queue->tail || queue->tail->due <= packet->due) {
		net_queue_append(queue, packet);
		return;
	}
	while ((*at)->due <= packet->due)
		at = &(*at)->next;
	packet->next = *at;
	*at = packet;
	queue->count++;
}

struct net_packet *net_packet_new(struct net *net)
{
	struct net_packet *packet = net->free;

	if (packet)
		net->free = packet->next;
	else
		packet = malloc(sizeof(*packet));
	if (!packet)
		abort();
	packet->next = NULL;
	packet->copy = packet->cnp = false;
	packet->flow = 0;
	packet->ecn = NET_NOT_ECT;
	return packet;
}

void net_packet_free(struct net *net, struct net_packet *packet)
{
	packet->next = net->free;
	net->free = packet;
}

static void lose(struct net *net, struct net_packet *packet, enum net_loss why)
{
	net->dropped++;
	net->lost(net->context, packet, why);
	net_packet_free(net, packet);
}

static uint64_t first_due(const struct net_node *node)
{
	return node->queue.head ? node->queue.head->due : ENG_NEVER;
}

static void pass_due(struct net_node *node, uint64_t now)
{
	while (node->queue.head && node->queue.head->due <= now) {
		struct net_packet *packet = net_queue_take(&node->queue);

		node->next->forward(node->next, packet, now);
	}
}

static void damage(struct net *net, struct net_packet *packet)
{
	uint32_t at = random_below(&net->random, packet->length);

	packet->bytes[at] ^= (uint8_t)random_between(&net->random, 1, 255);
	net->damaged++;
}

static void faults_forward(struct net_node *node, struct net_packet *packet, uint64_t now)
{
	struct net *net = node->net;
	const struct net_plan *plan = node->plan;

	if (node->losing == 0 && random_chance(&net->random, plan->loss))
		node->losing = random_between(&net->random, 1, plan->loss_burst);
	if (node->losing > 0) {
		node->losing--;
		lose(net, packet, NET_LOST);
		return;
	}
	if (random_chance(&net->random, plan->duplicate)) {
		struct net_packet *copy = net_packet_new(net);

		memcpy(copy, packet, offsetof(struct net_packet, bytes) + packet->length);
		copy->copy = true;
		net->copied++;
		node->next->forward(node->next, copy, now);
	}
	if (random_chance(&net->random, plan->corrupt))
		damage(net, packet);
	node->next->forward(node->next, packet, now);
}

static uint64_t never_runs(const struct net_node *node)
{
	(void)node;
	return ENG_NEVER;
}

static void does_nothing(struct net_node *node, uint64_t now)
{
	(void)node;
	(void)now;
}

static uint32_t level_of(uint32_t bytes)
{
	uint32_t level = (bytes + NET_LEVEL_BYTES - 1) / NET_LEVEL_BYTES;

	return level < NET_LEVELS ? level : NET_LEVELS - 1;
}

/* To be called before the level changes. */
static void watch_level(struct net_node *node, uint64_t now)
{
	struct net_watch *watch = &node->watch;

	if (watch->on)
		watch->level_ns[level_of(node->queued_bytes)] += now - watch->since;
	watch->since = now;
}

void net_watch(struct net_node *bottleneck, bool on, uint64_t now)
{
	watch_level(bottleneck, now);
	bottleneck->watch.on = on;
}

uint64_t net_watch_level(const struct net_watch *watch, uint32_t per_mille)
{
	uint64_t all = 0, below = 0;
	uint32_t level = 0;

	for (uint32_t n = 0; n < NET_LEVELS; n++)
		all += watch->level_ns[n];
	while (level < NET_LEVELS - 1 && (below += watch->level_ns[level]) * 1000 < all * per_mille)
		level++;
	return (uint64_t)level * NET_LEVEL_BYTES;
}

/* Marks like the marker of tests/net: on arrival, also packets that the queue then drops. */
static void mark(struct net_node *node, struct net_packet *packet, uint32_t bytes, uint64_t now)
{
	const struct net_plan *plan = node->plan;
	uint64_t drained =
		(now - node->virtual_at) * 10 * plan->mark_percent / plan->ns_per_byte_x1000;

	node->virtual_at = now;
	node->virtual_bytes = node->virtual_bytes > drained ? node->virtual_bytes - drained : 0;
	node->virtual_bytes += bytes;
	if (node->virtual_bytes <= plan->mark_bytes || packet->ecn == NET_NOT_ECT)
		return;
	node->watch.marks += node->watch.on;
	packet->ecn = NET_CE;
}

static void bottleneck_forward(struct net_node *node, struct net_packet *packet, uint64_t now)
{
	const struct net_plan *plan = node->plan;
	uint32_t bytes = packet->length + plan->overhead;

	if (plan->ns_per_byte_x1000 == 0) {
		node->next->forward(node->next, packet, now);
		return;
	}
	if (plan->mark_bytes > 0)
		mark(node, packet, bytes, now);
	if (node->queued_bytes + bytes > plan->queue_bytes) {
		node->watch.drops += node->watch.on;
		lose(node->net, packet, NET_OVERFLOW);
		return;
	}
	if (node->busy_until < now)
		node->busy_until = now;
	node->busy_until += bytes * plan->ns_per_byte_x1000 / 1000;
	packet->due = node->busy_until;
	watch_level(node, now);
	node->queued_bytes += bytes;
	net_queue_append(&node->queue, packet);
}

static void bottleneck_run(struct net_node *node, uint64_t now)
{
	while (node->queue.head && node->queue.head->due <= now) {
		struct net_packet *packet = net_queue_take(&node->queue);

		watch_level(node, now);
		node->queued_bytes -= packet->length + node->plan->overhead;
		node->next->forward(node->next, packet, now);
	}
}

static void delay_forward(struct net_node *node, struct net_packet *packet, uint64_t now)
{
	const struct net_plan *plan = node->plan;
	struct sim_random *random = &node->net->random;
	uint64_t *last_due = &node->last_due[packet->flow];

	packet->due = now + plan->delay_ns + plan->flow_delay_ns[packet->flow] +
		      random_skewed(random, plan->jitter_ns);
	if (packet->due < *last_due)
		packet->due = *last_due;
	*last_due = packet->due;
	/* A delayed packet does not delay those after it. */
	if (random_chance(random, plan->reorder)) {
		packet->due += random_skewed(random, plan->reorder_ns);
		node->net->held_back++;
	}
	queue_insert(&node->queue, packet);
}

static void inbox_forward(struct net_node *node, struct net_packet *packet, uint64_t now)
{
	(void)now;
	node->net->arrived(node->net->context, packet);
}

static void node_start(struct net *net, struct net_node *node, const struct net_plan *plan,
		       struct net_node *next)
{
	node->net = net;
	node->plan = plan;
	node->next = next;
	node->next_run_at = never_runs;
	node->run = does_nothing;
	node->busy_until = 0;
	node->queued_bytes = 0;
	node->virtual_bytes = node->virtual_at = 0;
	node->losing = 0;
	memset(node->last_due, 0, sizeof(node->last_due));
	memset(&node->watch, 0, sizeof(node->watch));
}

void net_start(struct net *net, const struct plan *plan, uint32_t round)
{
	random_seed(&net->random, plan->seed, 1 + 1000 * (uint64_t)round);
	net->sent = net->dropped = net->copied = net->damaged = net->held_back = 0;
	for (uint32_t side = 0; side < 2; side++) {
		const struct net_plan *way = &plan->net[side];

		node_start(net, &net->faults[side], way, &net->bottleneck[side]);
		net->faults[side].forward = faults_forward;
		node_start(net, &net->bottleneck[side], way, &net->delay[side]);
		net->bottleneck[side].forward = bottleneck_forward;
		net->bottleneck[side].next_run_at = first_due;
		net->bottleneck[side].run = bottleneck_run;
		node_start(net, &net->delay[side], way, &net->inbox[side]);
		net->delay[side].forward = delay_forward;
		net->delay[side].next_run_at = first_due;
		net->delay[side].run = pass_due;
		node_start(net, &net->inbox[side], way, NULL);
		net->inbox[side].forward = inbox_forward;
	}
}

void net_send(struct net *net, uint32_t side, struct net_packet *packet, uint64_t now)
{
	net->sent++;
	net->faults[side].forward(&net->faults[side], packet, now);
}

uint64_t net_next_run_at(const struct net *net)
{
	uint64_t first = ENG_NEVER;

	for (uint32_t side = 0; side < 2; side++) {
		const struct net_node *node = &net->faults[side];

		for (; node; node = node->next) {
			uint64_t at = node->next_run_at(node);

			if (at < first)
				first = at;
		}
	}
	return first;
}

void net_run(struct net *net, uint64_t now)
{
	for (uint32_t side = 0; side < 2; side++)
		for (struct net_node *node = &net->faults[side]; node; node = node->next)
			node->run(node, now);
}

static void queue_clear(struct net *net, struct net_queue *queue)
{
	struct net_packet *packet;

	while ((packet = net_queue_take(queue)) != NULL)
		net_packet_free(net, packet);
}

void net_clear(struct net *net)
{
	for (uint32_t side = 0; side < 2; side++)
		for (struct net_node *node = &net->faults[side]; node; node = node->next)
			queue_clear(net, &node->queue);
}

void net_free(struct net *net)
{
	while (net->free) {
		struct net_packet *packet = net->free;

		net->free = packet->next;
		free(packet);
	}
}
