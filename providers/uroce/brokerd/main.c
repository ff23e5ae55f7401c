/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/names.h"
#include "brokerd.h"

enum {
	LISTENER_FD = 3, /* descriptor of the listener if a client has started the broker */
	IDLE_MS = 5000,
	EVENTS = 64,
	/* Maximum number of datagrams of one socket before the next event is served. */
	DATAGRAMS_MAX = 64,
	/* Maximum time between checks for connections without a HELLO. */
	TICK_MS = 250,
};

static const char usage[] =
	"usage: uroce-broker --stay\n"
	"Makes the sockets of UDP port 4791 and receives the MADs of queue pair 1 for all uroce\n"
	"processes of one user in one network namespace.  The first process that needs a broker\n"
	"starts it; it exits 5 seconds after its last client.\n"
	"      --stay     start here and do not exit: for programs that may not start others\n"
	"  -h, --help     print this text\n"
	"      --version  print the version\n";

/* ---- events ---- */

static void receive_probes(struct brokerd *brokerd, struct address *address)
{
	for (unsigned int i = 0;
	     i < DATAGRAMS_MAX && socket_receive(address->sink_fd, &brokerd->datagram); i++)
		probe_receive(brokerd, address, GROUP_SINK, brokerd->datagram.bytes,
			      brokerd->datagram.head.bytes);
}

static void serve_event(struct brokerd *brokerd, uint64_t data)
{
	void *object = (void *)(uintptr_t)(data & ~(uint64_t)EVENT_SOURCE_MASK);

	switch ((enum event_source)(data & EVENT_SOURCE_MASK)) {
	case EVENT_LISTENER:
		connection_accept(brokerd);
		break;
	case EVENT_CONTROL:
		connection_receive(brokerd, object);
		break;
	case EVENT_DELIVERY:
		connection_receive_delivery(brokerd, object);
		break;
	case EVENT_GSI:
		gsi_receive(brokerd, object);
		break;
	case EVENT_SINK:
		receive_probes(brokerd, object);
		break;
	}
}

static void serve_timers(struct brokerd *brokerd)
{
	uint64_t now = brokerd_now();

	for (struct address *address = brokerd->addresses; address; address = address->next)
		if (address->state == ADDRESS_PARTLY_KNOWN && address->probe_at <= now)
			probe_run_round(brokerd, address, now);
	if (last_mads_serve(brokerd, now) || gsi_deadline(brokerd) <= now)
		gsi_route_kept(brokerd);
	gsi_appoint_watcher(brokerd, now);
	connection_free_ended(brokerd, now);
	member_free_removed(brokerd);
	if (brokerd->clients)
		brokerd->idle_since = 0;
	else if (!brokerd->idle_since)
		brokerd->idle_since = now;
}

static int wait_ms(const struct brokerd *brokerd)
{
	uint64_t now = brokerd_now(), until = now + (uint64_t)TICK_MS * NS_PER_MS;

	for (const struct address *address = brokerd->addresses; address; address = address->next)
		if (address->state == ADDRESS_PARTLY_KNOWN && address->probe_at < until)
			until = address->probe_at;
	if (last_mads_deadline(brokerd) < until)
		until = last_mads_deadline(brokerd);
	if (gsi_deadline(brokerd) < until)
		until = gsi_deadline(brokerd);
	if (!brokerd->clients && !brokerd->ended_clients && !brokerd->kept_mads)
		until = now + brokerd->idle_ns;
	return until <= now ? 0 : (int)((until - now) / NS_PER_MS) + 1;
}

static bool must_exit(const struct brokerd *brokerd)
{
	if (brokerd->superseded)
		return true;
	return !brokerd->stays_when_idle && brokerd->idle_since && !brokerd->ended_clients &&
	       brokerd_now() >= brokerd->idle_since + brokerd->idle_ns;
}

static void serve_until_exit(struct brokerd *brokerd)
{
	struct epoll_event events[EVENTS];

	while (!must_exit(brokerd)) {
		int count = epoll_wait(brokerd->epoll_fd, events, EVENTS, wait_ms(brokerd));

		for (int i = 0; i < count; i++)
			serve_event(brokerd, events[i].data.u64);
		serve_timers(brokerd);
	}
}

/* ---- start ---- */

/*
 * Asks brokers of the user with lower numbers to exit.  Returns false if there is one with a higher
 * number: it was started because this broker did not reply, so this broker must exit.
 */
static bool supersede_others(const struct brokerd *brokerd)
{
	union broker_message message;
	struct names_search_result found;
	unsigned int below = UROCE_BROKER_NAMES;
	int fd;

	while ((fd = names_search(brokerd->user, below, &found)) >= 0) {
		below = found.number;
		if (below < brokerd->name_number) {
			broker_message_init(&message, UROCE_BROKER_SUPERSEDE, 0);
			send(fd, &message, broker_message_bytes(&message),
			     MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		close(fd);
		if (below > brokerd->name_number)
			return false;
	}
	return true;
}

/* Returns the number in the listener's name, or UROCE_BROKER_NAMES. */
static unsigned int listener_number(int listener)
{
	for (unsigned int number = 0; number < UROCE_BROKER_NAMES; number++)
		if (names_is_bound_to(listener, number))
			return number;
	return UROCE_BROKER_NAMES;
}

static void close_other_descriptors(void)
{
	if (close_range(LISTENER_FD + 1, UINT32_MAX, 0) == 0)
		return;
	for (int fd = LISTENER_FD + 1; fd < 1024; fd++)
		close(fd);
}

/*
 * Detaches from the process that started the broker.  Closes the descriptors of that process, since
 * a program may wait for the end of its child's output; allows all processors and resets the
 * scheduling class, since the broker serves programs on all of them; and unblocks the signals,
 * because the starter blocks all of them.
 */
static void detach_from_starter(void)
{
	const struct sched_param none = { 0 };
	sigset_t no_signals;
	int fd = secure_getenv("UROCE_TEST_BROKER_STDERR") ? -1 : open("/dev/null", O_RDWR);
	cpu_set_t all;

	for (int i = 0; fd >= 0 && i <= STDERR_FILENO; i++)
		dup2(fd, i);
	close_other_descriptors();
	memset(&all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), &all);
	sched_setscheduler(0, SCHED_OTHER, &none);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&no_signals);
	sigprocmask(SIG_SETMASK, &no_signals, NULL);
}

static int listen_at_free_name(void)
{
	struct names_search_result found;
	int fd = names_search(geteuid(), UROCE_BROKER_NAMES, &found);

	if (fd >= 0) {
		close(fd);
		return -EEXIST;
	}
	return fd == -ENOENT ? names_listen(found.free) : fd;
}

static uint64_t idle_timeout_ns(void)
{
	const char *text = secure_getenv("UROCE_TEST_BROKER_IDLE");

	return (text ? strtoull(text, NULL, 10) : IDLE_MS) * NS_PER_MS;
}

/* Raises the soft limit: the broker holds a socket for each address of each client. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int init_broker(struct brokerd *brokerd)
{
	uint32_t random;

	brokerd->user = geteuid();
	brokerd->name_number = listener_number(brokerd->listener);
	brokerd->idle_ns = idle_timeout_ns();
	brokerd->started_at = brokerd_now();
	brokerd->kept_mads_end = &brokerd->kept_mads;
	brokerd->spare_fd = eventfd(0, EFD_CLOEXEC);
	slots_init(&brokerd->slots);
	client_update_absent_slots(brokerd);
	if (brokerd->name_number == UROCE_BROKER_NAMES)
		return -EINVAL;
	if (getrandom(&brokerd->probe_secret, sizeof(brokerd->probe_secret), 0) < 0 ||
	    getrandom(&random, sizeof(random), 0) < 0)
		return -errno;
	if (brokerd->slots.absent > 0)
		slots_set_start(&brokerd->slots, random);
	brokerd->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (brokerd->epoll_fd < 0)
		return -errno;
	return brokerd_watch(brokerd, brokerd->listener, EVENT_LISTENER, NULL);
}

/* Parses the options.  Returns 0 to continue, or the exit status plus one. */
static int parse_options(int argc, char **argv, bool *stays)
{
	static const struct option names[] = {
		{ "stay", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
		switch (option) {
		case 's':
			*stays = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case 'V':
			puts("uroce-broker " UROCE_VERSION);
			return 1;
		default:
			fputs(usage, stderr);
			return 3;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return 3;
	}
	return 0;
}

static bool is_socket(int fd)
{
	int type;
	socklen_t bytes = sizeof(type);

	return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
}

int main(int argc, char **argv)
{
	static struct brokerd brokerd = { .listener = LISTENER_FD };
	int result = parse_options(argc, argv, &brokerd.stays_when_idle);

	if (result)
		return result - 1;
	if (brokerd.stays_when_idle) {
		brokerd.listener = listen_at_free_name();
	} else if (!is_socket(LISTENER_FD)) {
		fputs(usage, stderr);
		return 2;
	} else {
		detach_from_starter();
		if (chdir("/"))
			return 1;
	}
	raise_descriptor_limit();
	result = brokerd.listener < 0 ? brokerd.listener : init_broker(&brokerd);
	if (result) {
		fprintf(stderr, "uroce-broker: cannot start: %s\n",
			result == -EEXIST ? "a broker of this user is running already"
					  : strerror(-result));
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	if (supersede_others(&brokerd))
		serve_until_exit(&brokerd);
	return 0;
}
