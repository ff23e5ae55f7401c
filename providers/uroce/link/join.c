/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Asking the other processes for a pool.
 *
 * The requests leave from a socket of their own, so that the answers cannot be taken by another
 * thread that reads the slot's socket.  Whoever waits here serves his slot's socket himself: two
 * processes that ask each other, both without another thread to answer, must not wait for ever.
 *
 * Processes are asked one after the other, since any one of them will do and each answer puts
 * LINK_SLOTS descriptors in flight.  One that stays silent is passed over: he may be stopped, or
 * belong to another user and drop what we send.  Only when nobody had the pool are the silent ones
 * asked again until the deadline.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "internal.h"
#include "message.h"

/* A process that runs answers within microseconds; an answer that comes later is taken as well. */
#define PATIENCE_MS 4
/* The question is repeated because its receiver may have died and the slot have a new owner. */
#define REPEAT_MS 100

enum slot_state {
	SLOT_SILENT, /* lives, has not answered */
	SLOT_DONE,   /* nobody there, or does not have the pool */
};

struct join {
	struct link *link;
	const struct link_endpoint *endpoint;
	int64_t deadline_ms;
	int *fds;
	bool joined;
	int error; /* what stops the join, negative errno */
	int reply_fd;
	uint64_t cookie; /* the low LINK_SLOT_BITS bits are the slot's */
	enum slot_state state[LINK_SLOTS];
	struct link_stash stash;
};

static void ask(struct join *join, unsigned int slot)
{
	struct uroce_abi_pool request = {
		.header = { .message = UROCE_ABI_POOL_REQUEST, .version = UROCE_ABI_VERSION },
		.scope_id = join->endpoint->scope_id,
		.slots = LINK_SLOTS,
		.cookie = join->cookie | slot,
	};
	struct iovec piece = { .iov_base = &request, .iov_len = sizeof(request) };
	struct sockaddr_un name;
	socklen_t name_bytes = link_control_name(slot, &name);
	int error;

	memcpy(request.address, join->endpoint->gid, sizeof(request.address));
	error = link_control_send(join->reply_fd, &name, name_bytes, &piece, 1, NULL, 0);
	/* With any other error, as a full queue, somebody lives there: he is asked again. */
	join->state[slot] = error == -ECONNREFUSED ? SLOT_DONE : SLOT_SILENT;
}

static void close_received(struct link_control_input *input)
{
	unsigned int i;

	for (i = 0; i < input->fd_count; i++)
		close(input->fds[i]);
}

/* A pool came: keep it if it is what was asked for. */
static void take_pool(struct join *join, struct link_control_input *input, unsigned int slot)
{
	if (input->cut || input->fd_count != LINK_SLOTS) {
		close_received(input);
		/* Descriptors are cut off when this process may not have so many. */
		if (input->cut)
			join->error = link_raise_descriptor_limit();
		else
			join->state[slot] = SLOT_DONE;
		return;
	}
	/* First of all to where a forked child will find them. */
	memcpy(join->fds, input->fds, sizeof(input->fds));
	join->joined = link_pool_is_valid(join->endpoint, join->fds);
	if (!join->joined) {
		link_pool_close(join->fds);
		join->state[slot] = SLOT_DONE;
	}
}

/* An answer came: keep its descriptors or close them. */
static void take_answer(struct join *join, struct link_control_input *input)
{
	struct link_message message;
	unsigned int slot;

	if (!input->same_user) {
		atomic_fetch_add_explicit(&join->link->foreign_credentials, 1,
					  memory_order_relaxed);
		close_received(input);
		return;
	}
	if (link_message_parse(input->head, input->bytes, &message) != LINK_MESSAGE_OK ||
	    (message.kind != UROCE_ABI_POOL_REPLY && message.kind != UROCE_ABI_POOL_UNKNOWN) ||
	    (message.pool.cookie & ~(uint64_t)(LINK_SLOTS - 1)) != join->cookie) {
		close_received(input);
		return;
	}
	slot = (unsigned int)message.pool.cookie & (LINK_SLOTS - 1);
	if (message.kind == UROCE_ABI_POOL_REPLY) {
		take_pool(join, input, slot);
		return;
	}
	join->state[slot] = SLOT_DONE;
	close_received(input);
}

/* Wait up to timeout_ms for answers, but no longer than the deadline; serve the own slot. */
static void wait_for_answers(struct join *join, int timeout_ms)
{
	struct pollfd fds[2] = {
		{ .fd = join->reply_fd, .events = POLLIN },
		{ .fd = join->link->control_fd, .events = POLLIN },
	};
	struct link_control_input input;

	if (poll(fds, 2, timeout_ms) <= 0)
		return;
	if (fds[1].revents)
		link_control_serve(join->link, &join->stash);
	while (!join->joined && !join->error &&
	       link_control_read(join->reply_fd, NULL, 0, &input) == 0)
		take_answer(join, &input);
}

static bool is_over(const struct join *join)
{
	return join->joined || join->error || link_now_ms() >= join->deadline_ms;
}

/* Ask one process and give it some time. */
static void ask_patiently(struct join *join, unsigned int slot)
{
	int64_t until = link_now_ms() + PATIENCE_MS, now;

	ask(join, slot);
	while (join->state[slot] == SLOT_SILENT && !is_over(join)) {
		now = link_now_ms();
		if (now >= until)
			return;
		wait_for_answers(join, (int)(until - now));
	}
}

/* The next slot from first on whose process has not answered; LINK_SLOTS when there is none. */
static unsigned int next_silent(const struct join *join, unsigned int first)
{
	while (first < LINK_SLOTS && join->state[first] == SLOT_DONE)
		first++;
	return first;
}

static void ask_everybody(struct join *join)
{
	unsigned int slot;

	for (slot = 0; slot < LINK_SLOTS && !is_over(join); slot++)
		if (slot != join->link->slot)
			ask_patiently(join, slot);
	while (next_silent(join, 0) < LINK_SLOTS && !is_over(join)) {
		int64_t repeat = link_now_ms() + REPEAT_MS, now;

		for (slot = next_silent(join, 0); slot < LINK_SLOTS;
		     slot = next_silent(join, slot + 1))
			ask(join, slot);
		while ((now = link_now_ms()) < repeat && next_silent(join, 0) < LINK_SLOTS &&
		       !is_over(join))
			wait_for_answers(join, (int)(repeat - now));
	}
}

/* An unnamed datagram socket gets an abstract name when it first binds without one. */
static int open_reply_socket(void)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int fd = link_control_socket();
	int error;

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&any, sizeof(any.sun_family)) == 0)
		return fd;
	error = -errno;
	link_close_fd(&fd);
	return error;
}

int link_join(struct link *link, const struct link_endpoint *endpoint, int timeout_ms,
	      int fds[LINK_SLOTS], unsigned int *silent)
{
	struct join join = { .link = link, .endpoint = endpoint, .fds = fds };

	join.deadline_ms = link_now_ms() + timeout_ms;
	join.state[link->slot] = SLOT_DONE;
	join.reply_fd = open_reply_socket();
	if (join.reply_fd < 0)
		return join.reply_fd;
	/* It only tells late answers to an earlier question; names are not reused that fast. */
	if (getrandom(&join.cookie, sizeof(join.cookie), GRND_NONBLOCK) < 0)
		join.cookie = (uint64_t)link_now_ms() << 16;
	join.cookie &= ~(uint64_t)(LINK_SLOTS - 1);
	ask_everybody(&join);
	/* What is still in the queue is closed with it, descriptors included. */
	link_close_fd(&join.reply_fd);
	link_stash_return(link, &join.stash);
	if (join.joined)
		return 0;
	if (join.error)
		return join.error;
	*silent = next_silent(&join, 0);
	return *silent < LINK_SLOTS ? -ETIMEDOUT : -ENOENT;
}
