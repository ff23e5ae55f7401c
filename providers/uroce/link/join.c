/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Asking the other processes for a pool.
 *
 * Processes are asked one after the other, since the first one that has enough of it will do and
 * each answer puts descriptors in flight.  One that stays silent is passed over: it may be
 * stopped.  Only when none had enough are the silent ones asked again until the deadline, with
 * more time.
 */
#include <errno.h>
#include <string.h>

#include "question.h"

enum {
	/* A process that runs answers within microseconds. */
	PATIENCE_MS = 4,
	/* It may be busy, or have died and the slot have a new owner. */
	REPEAT_PATIENCE_MS = 50,
	/* When many ask it. */
	FULL_PAUSE_MS = 1,
	/*
	 * A process that does not give what this one could do without is not asked again for so
	 * long.
	 */
	EXTEND_PAUSE_MS = 1000,
};

enum slot_state {
	SLOT_SILENT, /* lives, has not answered */
	SLOT_FULL,   /* there is no getting through to it: many ask it, or it is a stranger's */
	SLOT_DONE,   /* no process of this user is there, or there is nothing more to be had */
};

struct join {
	struct link *link;
	struct link_addr *addr;
	unsigned int wanted; /* descriptors */
	int64_t deadline_ms;
	int error; /* what stops the join, negative errno */
	enum slot_state state[LINK_SLOTS];
};

/* A part of the pool came: keep it if it is longer than what there is. */
static void take_pool(struct join *join, struct link_answer *answer)
{
	struct link_addr *addr = join->addr;
	unsigned int count = answer->message.pool.slots;

	/* Descriptors are cut off when this process may not have so many. */
	if (answer->cut)
		join->error = link_raise_descriptor_limit();
	if (answer->cut || answer->fd_count != count || count > join->wanted ||
	    count <= addr->pool_count || !link_pool_is_valid(&addr->endpoint, answer->fds, count))
		return;
	link_pool_close(addr->pool, addr->pool_count);
	memcpy(addr->pool, answer->fds, count * sizeof(answer->fds[0]));
	answer->fd_count = 0;
	addr->pool_count = count;
	addr->key = answer->message.pool.key;
}

static bool is_over(const struct join *join)
{
	return join->addr->pool_count == join->wanted || join->error ||
	       link_now_ms() >= join->deadline_ms;
}

/* Ask one process and give it some time. */
static void ask(struct join *join, unsigned int slot, int patience_ms)
{
	const struct link_endpoint *endpoint = &join->addr->endpoint;
	struct uroce_abi_pool request = {
		.header = { .message = UROCE_ABI_POOL_REQUEST, .version = UROCE_ABI_VERSION },
		.scope_id = endpoint->scope_id,
		.slots = join->wanted,
	};
	struct link_answer answer;
	int fd, error;

	memcpy(request.address, endpoint->gid, sizeof(request.address));
	fd = link_ask(join->link, slot, &request, sizeof(request));
	if (fd < 0) {
		join->state[slot] = fd == -EAGAIN  ? SLOT_FULL
				    : fd == -EPIPE ? SLOT_SILENT /* it may have closed */
						   : SLOT_DONE;
		if (fd == -EMFILE || fd == -ENFILE)
			join->error = fd;
		return;
	}
	error = link_await_answer(join->link, fd, link_now_ms() + patience_ms, &answer);
	link_close_fd(&fd);
	/* Without a word: it was not quick enough to hear the question, or is ending. */
	join->state[slot] = error ? SLOT_SILENT : SLOT_DONE;
	if (!error && answer.message.kind == UROCE_ABI_POOL_REPLY) {
		take_pool(join, &answer);
		/* The limit has been raised: once more. */
		if (answer.cut)
			join->state[slot] = SLOT_SILENT;
	}
	if (!error)
		link_drop_answer(&answer);
}

/* The next slot from first on whose process has not answered; LINK_SLOTS when there is none. */
static unsigned int next_silent(const struct join *join, unsigned int first)
{
	while (first < LINK_SLOTS && join->state[first] == SLOT_DONE)
		first++;
	return first;
}

static bool has_any(const struct join *join, enum slot_state state)
{
	unsigned int slot;

	for (slot = 0; slot < LINK_SLOTS && join->state[slot] != state; slot++)
		;
	return slot < LINK_SLOTS;
}

/*
 * Where a part of the pool has been had, a process that asks sees in the end whether the rest is
 * with those that it could not get through to (link_pool_grow()).
 */
static bool is_worth_asking(const struct join *join)
{
	return has_any(join, SLOT_SILENT) || (has_any(join, SLOT_FULL) && !join->addr->pool_count);
}

static void ask_silent(struct join *join, int patience_ms)
{
	unsigned int slot;

	for (slot = next_silent(join, 0); slot < LINK_SLOTS && !is_over(join);
	     slot = next_silent(join, slot + 1))
		ask(join, slot, patience_ms);
}

int link_join(struct link *link, struct link_addr *addr, unsigned int wanted, int timeout_ms,
	      unsigned int *silent)
{
	struct join join = { .link = link, .addr = addr, .wanted = wanted };

	join.deadline_ms = link_now_ms() + timeout_ms;
	join.state[link->slot] = SLOT_DONE;
	ask_silent(&join, PATIENCE_MS);
	while (is_worth_asking(&join) && !is_over(&join)) {
		link_serve_for(link, FULL_PAUSE_MS);
		ask_silent(&join, REPEAT_PATIENCE_MS);
	}
	*silent = next_silent(&join, 0);
	if (join.error)
		return join.error;
	if (addr->pool_count)
		return 0;
	return *silent < LINK_SLOTS ? -ETIMEDOUT : -ENOENT;
}

void link_extend(struct link_addr *addr, unsigned int slot)
{
	struct link *link = addr->link;
	/* Only what is used of an address to ask for its pool. */
	struct link_addr more = { .link = link, .endpoint = addr->endpoint };
	struct join join = {
		.link = link,
		.addr = &more,
		.wanted = link_pool_share(slot),
		.deadline_ms = link_now_ms() + REPEAT_PATIENCE_MS,
	};
	unsigned int i, had;

	if (slot == link->slot)
		return;
	link_mutex_lock(link, &link->open_lock);
	if (addr->pool_count < join.wanted && link_now_ms() >= addr->extend_again[slot]) {
		ask(&join, slot, REPEAT_PATIENCE_MS);
		addr->extend_again[slot] = link_now_ms() + EXTEND_PAUSE_MS;
	}
	link_mutex_lock(link, &link->lock);
	had = addr->pool_count;
	for (i = had; i < more.pool_count; i++) {
		__atomic_store_n(&addr->pool[i], more.pool[i], __ATOMIC_RELEASE);
		more.pool[i] = -1;
	}
	if (more.pool_count > had)
		addr->pool_count = more.pool_count;
	link_mutex_unlock(link, &link->lock);
	link_pool_close(more.pool, more.pool_count);
	link_mutex_unlock(link, &link->open_lock);
}
