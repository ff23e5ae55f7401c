/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * When a member of queue pair 1 asks its holder, and when it steps in for one that says nothing.
 * The clock, the connection to the holder and the sockets are what the test says they are; with
 * processes that run and stop the same is tested in test_progress_gsi_standby.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/exchange.h"
#include "progress/gsi_internal.h"

#define MS UINT64_C(1000000)

enum {
	SLOT = 3,
	SOCKET = 77,
	CONNECTION = 78,
};

/* What stands around the file that is tested, and what it has done to it. */
static struct {
	uint64_t now;
	pid_t holder;	 /* 0: of another PID namespace */
	int socket;	 /* the holder's, or -1 */
	int watch_error; /* of the next watch */
	bool answers;	 /* there is an answer to be read */
	unsigned int asked, stepped_in;
	int watched; /* the socket that is, or -1 */
} world;

static struct gsi gsi;
static struct gsi_address address;

uint64_t progress_now(void)
{
	return world.now;
}

int link_exchange_say(int fd, enum link_exchange_kind kind)
{
	assert_int_equal(fd, CONNECTION);
	assert_int_equal(kind, LINK_EXCHANGE_ASK);
	world.asked++;
	return 0;
}

pid_t link_exchange_pid(int fd)
{
	assert_int_equal(fd, CONNECTION);
	return world.holder;
}

int link_exchange_socket_of(const struct link_addr *addr, unsigned int slot)
{
	(void)addr;
	assert_int_equal(slot, SLOT);
	return world.socket;
}

int gsi_address_watch(const struct gsi_address *of, int fd, uint32_t events, enum gsi_what what,
		      unsigned int place)
{
	(void)of;
	(void)events;
	(void)place;
	assert_int_equal(what, GSI_WHAT_TRAFFIC);
	if (!world.watch_error)
		world.watched = fd;
	return world.watch_error;
}

void gsi_address_unwatch(const struct gsi_address *of, int fd)
{
	(void)of;
	assert_int_equal(fd, world.watched);
	world.watched = -1;
}

void gsi_set_deadline(struct gsi *of)
{
	assert_ptr_equal(of, &gsi);
}

void gsi_address_hear_holder(struct gsi_address *of)
{
	if (world.answers)
		gsi_standby_heard(of, world.now);
	world.answers = false;
}

void gsi_address_step_in(struct gsi_address *of, uint64_t now)
{
	assert_int_equal(now, world.now);
	world.stepped_in++;
	of->role = GSI_HOLDER;
	gsi_standby_end(of);
}

/* A member that has just connected; its holder is this process, which is not stopped. */
static int connect_to_holder(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.now = 1000 * MS;
	world.holder = getpid();
	world.socket = SOCKET;
	world.watched = -1;
	address = (struct gsi_address){ .gsi = &gsi, .role = GSI_MEMBER, .fd = CONNECTION };
	gsi_standby_begin(&address, world.now);
	address.standby.slot = SLOT;
	return 0;
}

/* Time goes on to a moment, with a look at each deadline, as the helper does. */
static void go_on(uint64_t ns)
{
	uint64_t end = world.now + ns;

	while (gsi_standby_deadline(&address) <= end) {
		world.now = gsi_standby_deadline(&address);
		gsi_standby_look(&address, world.now);
		assert_true(gsi_standby_deadline(&address) > world.now);
	}
	world.now = end;
}

static void hear(void)
{
	gsi_standby_heard(&address, world.now);
}

/* A busy host is late: only after ten seconds without an answer another process steps in. */
static void test_silence(void **state)
{
	(void)state;
	go_on(9900 * MS);
	assert_int_equal(world.stepped_in, 0);
	go_on(200 * MS);
	assert_int_equal(world.stepped_in, 1);
	assert_true(gsi_standby_deadline(&address) == ENG_NEVER);
}

/* The ten seconds begin with the question that is not answered, not with the last answer. */
static void test_silence_begins_with_the_question(void **state)
{
	(void)state;
	hear();
	go_on(60000 * MS);
	assert_int_equal(world.asked, 0);
	gsi_standby_traffic(&address, world.now);
	assert_int_equal(world.asked, 1);
	go_on(9900 * MS);
	assert_int_equal(world.stepped_in, 0);
	hear();
	go_on(60000 * MS);
	assert_int_equal(world.stepped_in, 0);
}

/* A child that has stopped, by a signal or for its tracer. */
static pid_t start_stopped(bool traced)
{
	pid_t child = fork();
	int status;

	assert_return_code(child, errno);
	if (child == 0) {
		if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	if (traced && WIFEXITED(status))
		return 0;
	assert_true(WIFSTOPPED(status));
	return child;
}

/* One that is stopped is not waited for, be it by a signal or by a debugger. */
static void stopped(bool traced)
{
	world.holder = start_stopped(traced);
	/* Here no process may be traced. */
	if (!world.holder)
		skip();
	gsi_standby_begin(&address, world.now);
	go_on(99 * MS);
	assert_int_equal(world.stepped_in, 0);
	go_on(1 * MS);
	assert_int_equal(world.stepped_in, 1);
	kill(world.holder, SIGKILL);
	waitpid(world.holder, NULL, 0);
}

static void test_stopped(void **state)
{
	(void)state;
	stopped(false);
}

static void test_traced(void **state)
{
	(void)state;
	stopped(true);
}

/* What is sent asks, since an answer is to come by way of the holder; soon after another not. */
static void test_sending_asks(void **state)
{
	(void)state;
	hear();
	go_on(50 * MS);
	gsi_standby_sent(&address);
	assert_int_equal(world.asked, 0);
	go_on(50 * MS);
	gsi_standby_sent(&address);
	assert_int_equal(world.asked, 1);
	/* Once is enough, until it has answered. */
	gsi_standby_sent(&address);
	assert_int_equal(world.asked, 1);
	hear();
	/* And while the holder's socket is watched. */
	go_on(1000 * MS);
	assert_int_equal(world.watched, SOCKET);
	gsi_standby_sent(&address);
	assert_int_equal(world.asked, 2);
	assert_int_equal(world.watched, -1);
	/* A holder does not ask. */
	hear();
	go_on(1000 * MS);
	address.role = GSI_HOLDER;
	gsi_standby_sent(&address);
	assert_int_equal(world.asked, 2);
}

/* The answer came while this process itself was not served: it is read before any conclusion. */
static void test_late_answer(void **state)
{
	(void)state;
	world.now += 20000 * MS;
	world.answers = true;
	gsi_standby_look(&address, world.now);
	assert_int_equal(world.stepped_in, 0);
	go_on(60000 * MS);
	assert_int_equal(world.stepped_in, 0);
	assert_int_equal(world.watched, SOCKET);
}

/* What arrives at the holder's socket asks, but only where that is watched: after a rest. */
static void test_arrivals_ask(void **state)
{
	(void)state;
	hear();
	go_on(299 * MS);
	assert_int_equal(world.watched, -1);
	gsi_standby_traffic(&address, world.now);
	assert_int_equal(world.asked, 0);
	go_on(1 * MS);
	assert_int_equal(world.watched, SOCKET);
	assert_true(gsi_standby_deadline(&address) == ENG_NEVER);
	gsi_standby_traffic(&address, world.now);
	assert_int_equal(world.asked, 1);
	assert_int_equal(world.watched, -1);
}

/* A socket that is not here, or cannot be watched: it asks now and then, and is answered. */
static void test_unwatched(void **state)
{
	(void)state;
	world.socket = -1;
	hear();
	for (unsigned int i = 0; i < 5; i++) {
		assert_int_equal(world.asked, i);
		go_on(999 * MS);
		assert_int_equal(world.asked, i);
		go_on(1 * MS);
		hear();
	}
	world.socket = SOCKET;
	world.watch_error = -ENOSPC;
	go_on(1000 * MS);
	assert_int_equal(world.asked, 6);
	go_on(10100 * MS);
	assert_int_equal(world.stepped_in, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_silence, connect_to_holder),
		cmocka_unit_test_setup(test_silence_begins_with_the_question, connect_to_holder),
		cmocka_unit_test_setup(test_stopped, connect_to_holder),
		cmocka_unit_test_setup(test_traced, connect_to_holder),
		cmocka_unit_test_setup(test_sending_asks, connect_to_holder),
		cmocka_unit_test_setup(test_late_answer, connect_to_holder),
		cmocka_unit_test_setup(test_arrivals_ask, connect_to_holder),
		cmocka_unit_test_setup(test_unwatched, connect_to_holder),
	};

	/* A program may be called anything, and /proc shows it as it is. */
	prctl(PR_SET_NAME, "a) R (b");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
