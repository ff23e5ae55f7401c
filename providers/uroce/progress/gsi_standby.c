/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Is the holder of queue pair 1 there?  A process that has ended is known by the end of its
 * connections; one that stands still, as in a debugger, is not, and all others would wait for it.
 *
 * So a member asks it: when it has connected, when it sends (an answer is to come through the
 * holder), and when something arrives at the holder's socket, which most processes have as well.
 * Where nothing happens no member asks.  A member whose socket that is not asks now and then.
 *
 * An answer that is late says little on a busy host, so the kernel is asked too whether the process
 * has been stopped; without that it has longer.  To step in for a holder that was only slow is
 * harmless (gsi_address.c), but costs what is under way.
 */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "gsi_internal.h"

/* Looks for an answer, and when a holder that has not been stopped is given up. */
#define STEP_NS UINT64_C(100000000)
#define SILENCE_NS UINT64_C(10000000000)
/* After an answer: not asked again because of what is sent, and because of what arrives. */
#define PAUSE_NS UINT64_C(100000000)
#define REST_NS UINT64_C(300000000)
/* Where nothing tells that something arrives. */
#define LONG_REST_NS UINT64_C(1000000000)

static bool is_stopped(pid_t pid)
{
	char path[32], line[256], *state;
	bool stopped = false;
	FILE *file;

	/* It is in another PID namespace. */
	if (!pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	/* "pid (name) state": the name may have anything in it. */
	state = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	if (state && state[1] == ' ')
		stopped = state[2] == 'T' || state[2] == 't';
	fclose(file);
	return stopped;
}

static void stop_watching(struct gsi_address *address)
{
	struct gsi_standby *standby = &address->standby;

	if (standby->socket >= 0)
		gsi_address_unwatch(address, standby->socket);
	standby->socket = -1;
}

static void rest(struct gsi_address *address, uint64_t time, uint64_t now)
{
	address->standby.phase = GSI_STANDBY_RESTS;
	address->standby.look_at = now + time;
}

static void ask(struct gsi_address *address, uint64_t now)
{
	stop_watching(address);
	/* Where there is no room for it, the holder has not read for long. */
	link_exchange_say(address->fd, LINK_EXCHANGE_ASK);
	address->standby.phase = GSI_STANDBY_ASKED;
	address->standby.asked_at = now;
	address->standby.look_at = now + STEP_NS;
	gsi_set_deadline(address->gsi);
}

/* Be told when something arrives at the holder's socket: be it a MAD, or anything else. */
static void watch(struct gsi_address *address, uint64_t now)
{
	struct gsi_standby *standby = &address->standby;
	int fd = link_exchange_socket_of(address->addr, standby->slot);

	if (fd < 0 || gsi_address_watch(address, fd, EPOLLIN | EPOLLONESHOT, GSI_WHAT_TRAFFIC, 0)) {
		ask(address, now);
		return;
	}
	standby->socket = fd;
	standby->phase = GSI_STANDBY_WATCHES;
	standby->look_at = ENG_NEVER;
}

void gsi_standby_begin(struct gsi_address *address, uint64_t now)
{
	/* It has been told hello, which it answers. */
	address->standby = (struct gsi_standby){
		.phase = GSI_STANDBY_ASKED,
		.asked_at = now,
		.look_at = now + STEP_NS,
		.pid = link_exchange_pid(address->fd),
		.slot = LINK_SLOTS,
		.socket = -1,
	};
}

void gsi_standby_end(struct gsi_address *address)
{
	stop_watching(address);
	address->standby.look_at = ENG_NEVER;
}

void gsi_standby_heard(struct gsi_address *address, uint64_t now)
{
	struct gsi_standby *standby = &address->standby;
	bool watchable = standby->slot < LINK_SLOTS &&
			 link_exchange_socket_of(address->addr, standby->slot) >= 0;

	standby->heard_at = now;
	if (standby->phase == GSI_STANDBY_ASKED)
		rest(address, watchable ? REST_NS : LONG_REST_NS, now);
}

void gsi_standby_traffic(struct gsi_address *address, uint64_t now)
{
	if (address->standby.phase == GSI_STANDBY_WATCHES)
		ask(address, now);
}

void gsi_standby_sent(struct gsi_address *address)
{
	struct gsi_standby *standby = &address->standby;
	uint64_t now = progress_now();

	if (address->role == GSI_MEMBER && standby->phase != GSI_STANDBY_ASKED &&
	    now >= standby->heard_at + PAUSE_NS)
		ask(address, now);
}

void gsi_standby_look(struct gsi_address *address, uint64_t now)
{
	struct gsi_standby *standby = &address->standby;

	if (address->role != GSI_MEMBER || now < standby->look_at)
		return;
	if (standby->phase == GSI_STANDBY_RESTS) {
		watch(address, now);
		return;
	}
	/* It may have answered while this process was not served. */
	gsi_address_hear_holder(address);
	if (address->role != GSI_MEMBER || standby->phase != GSI_STANDBY_ASKED)
		return;
	standby->look_at = now + STEP_NS;
	if (is_stopped(standby->pid) || now >= standby->asked_at + SILENCE_NS)
		gsi_address_step_in(address, now);
}

uint64_t gsi_standby_deadline(const struct gsi_address *address)
{
	return address->role == GSI_MEMBER ? address->standby.look_at : ENG_NEVER;
}
