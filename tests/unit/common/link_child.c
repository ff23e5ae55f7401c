/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "link_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 5, FD_MIN = 16 };

const uint8_t loopback4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1 };
const uint8_t other4[16] = { [10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2 };
const uint8_t loopback6[16] = { [15] = 1 };

static bool fresh;

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, text, strlen(text)) < 0)
			fprintf(stderr, "%s: %s\n", path, strerror(errno));
		close(fd);
	}
}

static bool unshare_network(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWNET) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	write_file("/proc/self/gid_map", map);
	return true;
}

int enter_new_netns(void **state)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int sock;

	(void)state;
	fresh = unshare_network();
	if (!fresh)
		return 0;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(sock >= 0);
	assert_return_code(ioctl(sock, SIOCSIFFLAGS, &request), errno);
	close(sock);
	return 0;
}

bool in_new_netns(void)
{
	return fresh;
}

void put_datagram(uint8_t *bytes, size_t length, uint32_t qpn, uint32_t tag)
{
	size_t i;

	for (i = 12; i < length; i++)
		bytes[i] = (uint8_t)(tag + i);
	memset(bytes, 0, 12);
	for (i = 0; i < 3; i++)
		bytes[5 + i] = (uint8_t)(qpn >> (16 - 8 * i));
	/* The other bits of the word with the QPN must be ignored. */
	bytes[4] = 0xff;
	for (i = 0; i < 4; i++)
		bytes[8 + i] = (uint8_t)(tag >> (24 - 8 * i));
}

uint32_t datagram_qpn(const uint8_t *bytes)
{
	return (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}

uint32_t datagram_tag(const uint8_t *bytes)
{
	return (uint32_t)bytes[8] << 24 | (uint32_t)bytes[9] << 16 | (uint32_t)bytes[10] << 8 |
	       bytes[11];
}

static bool datagram_is_whole(const uint8_t *bytes, size_t length)
{
	uint32_t tag = datagram_tag(bytes);
	size_t i;

	for (i = 12; i < length; i++)
		if (bytes[i] != (uint8_t)(tag + i))
			return false;
	return true;
}

/* Keeps the broker executable accessible for a user who cannot enter the build directory. */
static void open_broker(void)
{
	const char *path = getenv("UROCE_TEST_BROKER");
	int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
	char name[32];

	if (fd < 0)
		return;
	/* Starting a broker overwrites the lowest descriptor numbers. */
	fd = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	setenv("UROCE_TEST_BROKER", name, 1);
}

void become_user(uid_t uid)
{
	open_broker();
	if (setgid((gid_t)uid) || setuid(uid)) {
		fprintf(stderr, "setuid(%u): %s\n", uid, strerror(errno));
		_exit(1);
	}
}

void need_root(void)
{
	if (geteuid() != 0) {
		fprintf(stderr, "SKIPPED: needs root\n");
		skip();
	}
}

static uint8_t buffer[LINK_MAX_BYTES + 1];

bool serve(struct link *link)
{
	struct link_batch batch = { .buffer = buffer, .buffer_bytes = sizeof(buffer) };

	link_maintain_broker(link, NULL, NULL);
	while (link_delivery_receive(link, &batch) == 0)
		;
	return link_serve_writers(link);
}

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool takes_less(int64_t limit_ms, int64_t (*attempt_ms)(void *arg), void *arg)
{
	for (unsigned int i = 0; i < ATTEMPTS; i++)
		if (attempt_ms(arg) < limit_ms)
			return true;
	return false;
}

unsigned int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

int receive_wait(struct link_addr *addr, struct link_batch *batch, int timeout_ms)
{
	struct pollfd wait = { .fd = link_addr_fd(addr), .events = POLLIN };
	int64_t until = now_ms() + timeout_ms;
	int result, left = timeout_ms;

	/*
	 * The socket may also be readable because of a probe of the broker, which is not returned.
	 */
	while ((result = link_receive(addr, batch)) == -EAGAIN && left > 0) {
		poll(&wait, 1, left);
		left = (int)(until - now_ms());
	}
	return result;
}

void send_to_qpn(struct link_addr *addr, const uint8_t dst[16], uint32_t qpn, uint32_t tag)
{
	uint8_t bytes[40];
	struct iovec piece = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct link_peer *peer;
	uint16_t port = 0xc000;

	put_datagram(bytes, sizeof(bytes), qpn, tag);
	assert_int_equal(link_peer_open(addr, &(struct link_dst){ .gid = dst }, &port, &peer), 0);
	assert_int_equal(link_send(peer, &piece, 1, 0), 0);
	link_peer_close(peer);
}

void await_child(pid_t child, struct link *own)
{
	int status = -1;
	pid_t ended;

	do {
		ended = waitpid(child, &status, own ? WNOHANG : 0);
		if (own)
			serve(own);
	} while (ended == 0);
	assert_int_equal(ended, child);
	assert_int_equal(status, 0);
}

void kill_child(pid_t child)
{
	int status = -1;

	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* ---- the child's side; it reports and never asserts ---- */

#define CHILD_ADDRS 4
static struct {
	struct link *link;
	struct link_addr *addr[CHILD_ADDRS];
	unsigned int addrs;
	int sock;
	struct link_peer *peer; /* of CHILD_SEND */
} self;

static void report(const struct child_report *what)
{
	if (send(self.sock, what, sizeof(*what), MSG_NOSIGNAL) < 0)
		_exit(0);
}

static void report_datagram(const struct link_batch *batch, const uint8_t *bytes, size_t length,
			    bool forwarded)
{
	struct child_report what = { .event = CHILD_DATAGRAM, .slot = link_slot(self.link) };

	if (length >= 12) {
		what.qpn = datagram_qpn(bytes);
		what.tag = datagram_tag(bytes);
		what.error = datagram_is_whole(bytes, length) ? 0 : -EBADMSG;
	}
	what.bytes = (unsigned int)length;
	what.segments = (unsigned int)((batch->bytes + batch->segment - 1) /
				       (batch->segment | !batch->segment));
	what.src_port = batch->src_port;
	what.forwarded = forwarded;
	what.memory = !forwarded && batch->ring;
	report(&what);
}

static void take_batch(const struct link_batch *batch, bool forwarded)
{
	size_t offset, length;
	unsigned int slot;

	for (offset = 0; offset < batch->bytes; offset += length) {
		const uint8_t *bytes = batch->buffer + offset;

		length = batch->bytes - offset;
		if (length > batch->segment)
			length = batch->segment;
		slot = link_slot(self.link);
		if (length >= 8 && datagram_qpn(bytes) > LINK_GSI_QPN_MAX)
			slot = datagram_qpn(bytes) >> LINK_SLOT_SHIFT;
		if (slot == link_slot(self.link))
			report_datagram(batch, bytes, length, forwarded);
		else
			link_forward(batch, bytes, length);
	}
}

static void open_and_report(const uint8_t gid[16])
{
	struct child_report what = { .event = CHILD_OPENED };

	if (!self.link)
		what.error = link_open(&self.link, what.text);
	if (!what.error)
		what.error = link_addr_open(self.link, gid, 0, &self.addr[self.addrs], what.text);
	if (!what.error)
		self.addrs++;
	if (self.link)
		what.slot = link_slot(self.link);
	report(&what);
}

static int get_peer(const struct child_order *order)
{
	struct link_addr *addr = self.addr[self.addrs - 1];
	uint16_t port = 0xc123;

	if (self.peer)
		return 0;
	return link_peer_open_exclusive(addr, &(struct link_dst){ .gid = link_addr_gid(addr) },
					order->qpn, &port, &self.peer);
}

static void send_and_report(const struct child_order *order)
{
	static uint8_t bytes[LINK_MAX_BYTES];
	struct child_report what = { .event = CHILD_DONE, .error = get_peer(order) };
	struct iovec piece = { .iov_base = bytes, .iov_len = order->bytes };

	for (uint32_t i = 0; i < order->bursts && !what.error; i++) {
		put_datagram(bytes, order->bytes, order->qpn, order->tag + i);
		do
			what.error = link_send(self.peer, &piece, 1, order->segment);
		while (what.error == -EAGAIN && sched_yield() == 0);
	}
	report(&what);
}

static void obey(const struct child_order *order)
{
	struct child_report done = { .event = CHILD_DONE };

	if (order->what == CHILD_ADD_SLOT) {
		done.error = link_add_slot(self.link, &done.slot);
		report(&done);
		return;
	}
	if (order->what == CHILD_SEND) {
		send_and_report(order);
		return;
	}
	link_set_shared_memory(self.link, order->on);
	/*
	 * The next CHILD_SEND opens a new peer, which decides again whether to use shared memory.
	 */
	if (self.peer)
		link_peer_close(self.peer);
	self.peer = NULL;
	report(&done);
}

static void close_all(void)
{
	if (self.peer)
		link_peer_close(self.peer);
	while (self.addrs)
		link_addr_close(self.addr[--self.addrs]);
	if (self.link)
		link_close(self.link);
	_exit(0);
}

static void take_request(void)
{
	union {
		uint8_t gid[16];
		struct child_order order;
	} request;

	switch (recv(self.sock, &request, sizeof(request), MSG_DONTWAIT)) {
	case sizeof(request.gid):
		open_and_report(request.gid);
		break;
	case sizeof(request.order):
		obey(&request.order);
		break;
	default:
		close_all();
	}
}

static void receive_all(struct link_addr *addr)
{
	for (;;) {
		/*
		 * For data in shared memory link_receive() replaces the pointer to the buffer, so
		 * each call needs a new batch.
		 */
		struct link_batch batch = { .buffer = buffer, .buffer_bytes = sizeof(buffer) };

		if (link_receive(addr, &batch))
			return;
		take_batch(&batch, false);
		link_release(&batch);
	}
}

static void run(void)
{
	struct link_batch batch = { .buffer = buffer, .buffer_bytes = sizeof(buffer) };
	struct pollfd fds[3 + CHILD_ADDRS];
	unsigned int i;
	int timeout;

	for (;;) {
		fds[0] = (struct pollfd){ .fd = self.sock, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = self.link ? link_broker_fd(self.link) : -1,
					  .events = POLLIN };
		fds[2] = (struct pollfd){ .fd = self.link ? link_writers_fd(self.link) : -1,
					  .events = POLLIN };
		timeout = 10;
		for (i = 0; i < self.addrs; i++) {
			fds[3 + i] = (struct pollfd){ .fd = link_addr_fd(self.addr[i]),
						      .events = POLLIN };
			if (link_addr_begin_sleep(self.addr[i]))
				timeout = 0;
		}
		poll(fds, 3 + self.addrs, timeout);
		for (i = 0; i < self.addrs; i++)
			link_addr_end_sleep(self.addr[i]);
		for (i = 0; i < self.addrs; i++)
			receive_all(self.addr[i]);
		if (fds[1].revents)
			while (link_delivery_receive(self.link, &batch) == 0)
				take_batch(&batch, true);
		if (fds[1].revents)
			link_maintain_broker(self.link, NULL, NULL);
		if (fds[2].revents)
			link_serve_writers(self.link);
		if (fds[0].revents)
			take_request();
	}
}

/* ---- the test's side ---- */

void child_start(struct link_child *child, uid_t uid, const uint8_t gid[16], struct link *own,
		 struct child_report *result)
{
	int pair[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	child->pid = fork();
	assert_return_code(child->pid, errno);
	if (child->pid == 0) {
		close(pair[0]);
		if (own)
			link_abandon(own);
		if (uid)
			become_user(uid);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		self.sock = pair[1];
		open_and_report(gid);
		run();
	}
	close(pair[1]);
	child->sock = pair[0];
	assert_true(child_report(child, own, CHILD_TIMEOUT_MS, result));
	assert_int_equal(result->event, CHILD_OPENED);
	child->slot = result->slot;
}

void child_start_good(struct link_child *child, uid_t uid, const uint8_t gid[16], struct link *own)
{
	struct child_report result;

	child_start(child, uid, gid, own, &result);
	if (result.error)
		fail_msg("child: %s: %s", strerror(-result.error), result.text);
}

void child_open(struct link_child *child, const uint8_t gid[16])
{
	assert_int_equal(send(child->sock, gid, 16, MSG_NOSIGNAL), 16);
}

void child_open_good(struct link_child *child, const uint8_t gid[16], struct link *own)
{
	struct child_report result;

	child_open(child, gid);
	assert_true(child_report(child, own, CHILD_TIMEOUT_MS, &result));
	assert_int_equal(result.event, CHILD_OPENED);
	if (result.error)
		fail_msg("child: %s: %s", strerror(-result.error), result.text);
}

void child_order(struct link_child *child, const struct child_order *order)
{
	assert_int_equal(send(child->sock, order, sizeof(*order), MSG_NOSIGNAL), sizeof(*order));
}

void child_share(struct link_child *child, struct link *own, bool on)
{
	struct child_order order = { .what = CHILD_SHARE, .on = on };
	struct child_report report;

	child_order(child, &order);
	assert_true(child_report(child, own, CHILD_TIMEOUT_MS, &report));
	assert_int_equal(report.event, CHILD_DONE);
}

unsigned int child_add_slot(struct link_child *child, struct link *own)
{
	struct child_order order = { .what = CHILD_ADD_SLOT };
	struct child_report report;

	child_order(child, &order);
	assert_true(child_report(child, own, CHILD_TIMEOUT_MS, &report));
	assert_int_equal(report.event, CHILD_DONE);
	assert_int_equal(report.error, 0);
	return report.slot;
}

bool child_report(struct link_child *child, struct link *own, int timeout_ms,
		  struct child_report *result)
{
	struct pollfd fds[3] = {
		{ .fd = child->sock, .events = POLLIN },
		{ .fd = own ? link_broker_fd(own) : -1, .events = POLLIN },
		{ .fd = own ? link_writers_fd(own) : -1, .events = POLLIN },
	};

	while (poll(fds, 3, timeout_ms) > 0) {
		if (fds[1].revents || fds[2].revents)
			serve(own);
		if (fds[0].revents)
			return recv(child->sock, result, sizeof(*result), 0) == sizeof(*result);
	}
	return false;
}

struct child_report child_expect_datagram(struct link_child *child, struct link *own, uint32_t qpn,
					  uint32_t tag)
{
	struct child_report result;

	assert_true(child_report(child, own, CHILD_TIMEOUT_MS, &result));
	assert_int_equal(result.event, CHILD_DATAGRAM);
	assert_int_equal(result.error, 0);
	assert_int_equal(result.qpn, qpn);
	assert_int_equal(result.tag, tag);
	assert_int_equal(result.slot, child->slot);
	return result;
}

void child_stop(struct link_child *child)
{
	send(child->sock, "q", 1, MSG_NOSIGNAL);
	close(child->sock);
	await_child(child->pid, NULL);
}

void child_kill(struct link_child *child)
{
	kill_child(child->pid);
	close(child->sock);
}
