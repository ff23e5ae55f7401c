/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "gsi_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "find_broker.h"
#include "link_child.h"
#include "progress_end.h"
#include "progress/loop.h"
#include "wire/bytes.h"

enum {
	HANDLES = 2048,
	ORDER_MS = 20000,
};

/* Writes the destination to the header that begins the private data of librdmacm's requests. */
static void write_destination(uint8_t *header, const uint8_t ipv4[4])
{
	static const uint8_t none[4];

	if (!memcmp(ipv4, none, sizeof(none)))
		return;
	header[1] = 0x40;
	memcpy(header + 32, ipv4, 4);
}

void mad_make(uint8_t mad[MAD_BYTES], const struct mad_spec *spec)
{
	static const uint8_t begin[] = { 1, 7, 2, 3 };

	memset(mad, 0, MAD_BYTES);
	memcpy(mad, begin, sizeof(begin));
	wire_put_be32(mad + 12, spec->tag);
	wire_put_be16(mad + 16, spec->attribute);
	wire_put_be32(mad + 24, spec->local_id);
	if (spec->attribute == MAD_REQ || spec->attribute == MAD_SIDR_REQ)
		wire_put_be64(mad + 32, spec->service_id);
	else
		wire_put_be32(mad + 28, spec->remote_id);
	if (spec->attribute == MAD_SIDR_REQ)
		write_destination(mad + 40, spec->ipv4);
	if (spec->attribute == MAD_REQ) {
		wire_put_be64(mad + 40, spec->guid);
		write_destination(mad + 164, spec->ipv4);
	}
	if (spec->attribute == MAD_REJ && spec->guid) {
		wire_put_be16(mad + 34, 4);
		wire_put_be64(mad + 36, spec->guid);
	}
}

uint32_t mad_tag(const uint8_t mad[MAD_BYTES])
{
	return wire_get_be32(mad + 12);
}

/* ---- the other process ---- */

static struct {
	int sock;
	struct progress *progress;
	struct gsi *gsi;
	struct gsi_port *port[HANDLES];
	unsigned int ports;
} self;

static void report(const struct gsi_report *what)
{
	if (send(self.sock, what, sizeof(*what), MSG_NOSIGNAL) != sizeof(*what))
		_exit(0);
}

/* Held between GSI_HOLD and GSI_RELEASE. */
static pthread_mutex_t callback_lock = PTHREAD_MUTEX_INITIALIZER;

static void received(void *arg, const struct gsi_mad *mad)
{
	struct gsi_report what = { .what = GSI_MAD, .mad = *mad };

	(void)arg;
	pthread_mutex_lock(&callback_lock);
	pthread_mutex_unlock(&callback_lock);
	report(&what);
}

static void expired(void *arg, uint64_t now)
{
	struct gsi_report what = { .what = GSI_EXPIRED, .value = now };

	(void)arg;
	report(&what);
}

static void bind_port(const struct gsi_order *order, struct gsi_report *result)
{
	struct gsi_port_address address = { .scope_id = order->scope_id };

	memcpy(address.gid, order->gid, sizeof(address.gid));
	result->port = order->port;
	result->handle = self.ports;
	result->error = gsi_port_bind(self.gsi, order->space, &address, &result->port, order->flags,
				      &self.port[self.ports]);
	if (!result->error)
		self.ports++;
}

/* Sends the MAD, or stores it as a last message, which the broker sends after this process ends. */
static int send_mad(const struct gsi_order *order, unsigned int *last_message)
{
	struct gsi_path path = { .scope_id = order->scope_id };
	uint8_t mad[MAD_BYTES];

	memcpy(path.sgid, order->gid, sizeof(path.sgid));
	memcpy(path.dgid, order->dgid, sizeof(path.dgid));
	mad_make(mad, &order->mad);
	return order->what == GSI_LAST_MESSAGE_SET
		       ? gsi_last_message_set(self.gsi, &path, mad, last_message)
		       : gsi_send(self.gsi, &path, mad);
}

/* In a forked child, calls for the instance of the parent must return -EOWNERDEAD. */
static void live_on(int sock)
{
	const struct gsi_order order = { .what = GSI_SEND };
	struct gsi_path path = { 0 };
	struct gsi_report what = { .what = GSI_DONE, .value = (uint64_t)getpid() };
	uint8_t mad[MAD_BYTES];

	mad_make(mad, &order.mad);
	what.error = gsi_send(self.gsi, &path, mad);
	if (gsi_addr_get(self.gsi, loopback4, 0, what.text) != what.error)
		what.error = 0;
	if (self.ports > 0 && gsi_port_listen(self.port[0]) != -EOWNERDEAD)
		what.error = 0;
	gsi_addr_put(self.gsi, loopback4, 0);
	gsi_deadline(self.gsi, 1);
	gsi_put(self.gsi);
	report(&what);
	close(sock);
	for (;;)
		pause();
}

static void *poll_on(void *arg)
{
	for (;;)
		progress_poll(self.progress);
	return arg;
}

static void begin_to_poll(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, poll_on, NULL), 0);
	pthread_detach(thread);
}

static void obey(const struct gsi_order *order, struct gsi_report *result)
{
	switch (order->what) {
	case GSI_ADDR_GET:
		result->error = gsi_addr_get(self.gsi, order->gid, order->scope_id, result->text);
		break;
	case GSI_ADDR_PUT:
		gsi_addr_put(self.gsi, order->gid, order->scope_id);
		break;
	case GSI_BIND:
		bind_port(order, result);
		break;
	case GSI_LISTEN:
		result->error = gsi_port_listen(self.port[order->handle]);
		break;
	case GSI_CLOSE:
		gsi_port_close(self.port[order->handle]);
		break;
	case GSI_SEND:
	case GSI_LAST_MESSAGE_SET:
		result->error = send_mad(order, &result->handle);
		break;
	case GSI_LAST_MESSAGE_DROP:
		gsi_last_message_drop(self.gsi, order->handle);
		break;
	case GSI_COUNT:
		result->value = progress_count(self.progress, order->counter);
		break;
	case GSI_DEADLINE:
		result->value = progress_now() + order->delay_ns;
		gsi_deadline(self.gsi, result->value);
		break;
	case GSI_FORK:
		if (fork() == 0)
			live_on(self.sock);
		break;
	case GSI_POLL:
		begin_to_poll();
		break;
	case GSI_HOLD:
		pthread_mutex_lock(&callback_lock);
		break;
	case GSI_RECEIVE:
		progress_lock(self.progress);
		progress_run_deliveries(self.progress);
		progress_unlock(self.progress);
		break;
	case GSI_RELEASE:
		pthread_mutex_unlock(&callback_lock);
		break;
	}
}

static void run(int sock, uid_t uid)
{
	const struct gsi_hooks hooks = { .receive = received, .expire = expired };
	struct gsi_report result = { .what = GSI_DONE };
	struct gsi_order order;

	self.sock = sock;
	pthread_atfork(progress_fork_prepare, progress_fork_parent, progress_fork_child);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (uid)
		become_user(uid);
	result.error = progress_get(&self.progress, NULL, result.text);
	if (!result.error)
		result.error = gsi_get(self.progress, &hooks, &self.gsi, result.text);
	if (!result.error)
		result.value = gsi_slot(self.gsi);
	report(&result);
	while (recv(sock, &order, sizeof(order), 0) == sizeof(order)) {
		result = (struct gsi_report){ .what = GSI_DONE };
		obey(&order, &result);
		/* The forked child sends the report. */
		if (order.what != GSI_FORK)
			report(&result);
	}
	_exit(0);
}

/* ---- the test's side ---- */

static bool read_report(struct gsi_child *child, int timeout_ms, struct gsi_report *what)
{
	struct pollfd wait = { .fd = child->sock, .events = POLLIN };

	if (poll(&wait, 1, timeout_ms) <= 0)
		return false;
	/* 0 bytes: the child has ended. */
	assert_int_equal(recv(child->sock, what, sizeof(*what), 0), sizeof(*what));
	return true;
}

struct gsi_report gsi_child_await(struct gsi_child *child)
{
	struct gsi_report what;

	for (;;) {
		assert_true(read_report(child, ORDER_MS, &what));
		if (what.what == GSI_DONE)
			return what;
		assert_true(child->kept_count < CHILD_KEPT);
		child->kept[child->kept_count++] = what;
	}
}

void gsi_child_tell(struct gsi_child *child, const struct gsi_order *order)
{
	assert_int_equal(send(child->sock, order, sizeof(*order), MSG_NOSIGNAL), sizeof(*order));
}

struct gsi_report gsi_child_do(struct gsi_child *child, const struct gsi_order *order)
{
	gsi_child_tell(child, order);
	return gsi_child_await(child);
}

void gsi_child_start(struct gsi_child *child, uid_t uid, const uint8_t gid[16])
{
	struct gsi_order order = { .what = GSI_ADDR_GET };
	struct gsi_report result;
	int pair[2];

	memset(child, 0, sizeof(*child));
	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	child->pid = fork();
	assert_return_code(child->pid, errno);
	if (child->pid == 0) {
		close(pair[0]);
		run(pair[1], uid);
	}
	close(pair[1]);
	child->sock = pair[0];
	result = gsi_child_await(child);
	if (result.error)
		print_error("child: %s\n", result.text);
	assert_int_equal(result.error, 0);
	child->slot = (unsigned int)result.value;
	if (!gid)
		return;
	memcpy(order.gid, gid, sizeof(order.gid));
	result = gsi_child_do(child, &order);
	if (result.error)
		print_error("child: %s\n", result.text);
	assert_int_equal(result.error, 0);
}

void gsi_child_kill(struct gsi_child *child)
{
	kill_child(child->pid);
	close(child->sock);
}

void gsi_child_stop(struct gsi_child *child)
{
	shutdown(child->sock, SHUT_RDWR);
	await_child(child->pid, NULL);
	close(child->sock);
}

uint64_t gsi_child_count(struct gsi_child *child, enum progress_counter counter)
{
	const struct gsi_order order = { .what = GSI_COUNT, .counter = counter };

	return gsi_child_do(child, &order).value;
}

int gsi_child_bind(struct gsi_child *child, const uint8_t gid[16], uint16_t *port,
		   unsigned int flags, bool listen, unsigned int *handle)
{
	struct gsi_order order = {
		.what = GSI_BIND, .space = SPACE_TCP, .port = *port, .flags = flags
	};
	struct gsi_report result;

	memcpy(order.gid, gid, sizeof(order.gid));
	result = gsi_child_do(child, &order);
	if (result.error)
		return result.error;
	*port = result.port;
	if (handle)
		*handle = result.handle;
	if (!listen)
		return 0;
	order = (struct gsi_order){ .what = GSI_LISTEN, .handle = result.handle };
	return gsi_child_do(child, &order).error;
}

int gsi_child_send(struct gsi_child *child, const uint8_t sgid[16], const uint8_t dgid[16],
		   const struct mad_spec *mad)
{
	struct gsi_order order = { .what = GSI_SEND, .mad = *mad };

	memcpy(order.gid, sgid, sizeof(order.gid));
	memcpy(order.dgid, dgid, sizeof(order.dgid));
	return gsi_child_do(child, &order).error;
}

bool gsi_child_next(struct gsi_child *child, int timeout_ms, struct gsi_report *what)
{
	if (!child->kept_count)
		return read_report(child, timeout_ms, what);
	*what = child->kept[0];
	memmove(&child->kept[0], &child->kept[1], --child->kept_count * sizeof(child->kept[0]));
	return true;
}

struct gsi_mad gsi_child_expect(struct gsi_child *child, uint32_t tag, enum gsi_match reason)
{
	struct gsi_report what = { .what = GSI_DONE };

	assert_true(gsi_child_next(child, CHILD_TIMEOUT_MS, &what));
	assert_int_equal(what.what, GSI_MAD);
	assert_int_equal(mad_tag(what.mad.bytes), tag);
	assert_int_equal(what.mad.reason, reason);
	return what.mad;
}

void gsi_fail_lost(uint32_t tag)
{
	unsigned int number;
	pid_t broker = find_broker(&number);

	/* The first broker of a namespace has number 0; a change of brokers can lose MADs. */
	fail_msg("MAD %u does not arrive; broker: number %u, process %d", tag, number, (int)broker);
}
