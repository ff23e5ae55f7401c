/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * One of many processes that connect to each other by librdmacm, for test_rdmacm_chaos.py.  Each
 * listens at a port of its own, and keeps some connections to other listeners: it connects, sends
 * messages that the other end returns modified, checks every byte, marks the last message as such,
 * and disconnects.
 *
 * A file has one byte for the state of each process (enum fate).  Any error of a process that is
 * not doomed is a disturbance: it is reported, and the exit code is 1.  Errors are: a connection
 * that is not established in time, is requested or established twice, or ends although its active
 * end has not announced it; a message that is damaged or not returned.
 *
 * usage: cm_end SELF PROCESSES ADDRESS PORT FILE SECONDS SEED ACTIVE LIMIT
 * PORT is that of process 0.  ACTIVE connections are kept for SECONDS; with LIMIT there are that
 * many connections in all, of two messages each, without a pause.  Ends when all others have ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cm_end.h"

enum {
	PROCESSES = 64,
	CONNECTIONS = 512,
	BACKLOG = 128,
	NUMBERS = 1 << 16, /* maximum number of connections that a process begins */
	MESSAGES_MAX = 100,
	RETRIES = 7,
	ACK_TIMEOUT = 13, /* 34 ms; used with LIMIT, where packets are lost */
	/* Time limit of each step of a connection or message. */
	PATIENCE_MS = 20000,
};
#define PATIENCE_NS (PATIENCE_MS * UINT64_C(1000000))

static const char *const stage_names[] = { "free", "resolving", "connecting", "open", "closing" };

unsigned int self;
bool in_a_row;
struct ibv_pd *pd;
static struct connection connection[CONNECTIONS];
static struct ibv_cq *cq;
static struct ibv_comp_channel *completions;
static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static volatile uint8_t *fate;
static unsigned int processes, active_wanted, limit;
static uint32_t begun, ended;
static uint64_t end_at, next_at;
static struct sockaddr_in address;
static uint8_t seen[PROCESSES][NUMBERS / 8];
static struct {
	unsigned int accepted, messages, lost, given_up;
	uint64_t slowest_ns;
} told;

uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

uint32_t draw(uint32_t below)
{
	return (uint32_t)random() % below;
}

/* ---- disturbances ---- */

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list list;

	fprintf(stderr, "process %u: ", self);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	/* Other processes need not report errors that this exit causes. */
	fate[self] = FATE_DOOMED;
	_exit(1);
}

static void need(bool good, const char *what)
{
	if (!good)
		fail("%s: %s", what, strerror(errno));
}

void complain(const struct connection *c, const char *what)
{
	fail("connection %u %s process %u (%s%s): %s", c->number, c->active ? "to" : "from",
	     c->peer, stage_names[c->stage], c->said_last ? ", last message said" : "", what);
}

static bool is_doomed(const struct connection *c)
{
	return fate[c->peer] == FATE_DOOMED;
}

/* ---- connections ---- */

static struct connection *new_connection(struct rdma_cm_id *id, bool active, unsigned int peer,
					 uint32_t number)
{
	struct connection *c = connection;

	while (c < connection + CONNECTIONS && c->stage != STAGE_FREE)
		c++;
	if (c == connection + CONNECTIONS)
		fail("too many connections at once");
	*c = (struct connection){
		.place = (unsigned int)(c - connection),
		.stage = STAGE_RESOLVING,
		.active = active,
		.generation = (uint16_t)(c->generation + 1),
		.id = id,
		.peer = peer,
		.number = number,
		.messages = limit ? 2 : 1 + draw(MESSAGES_MAX),
		.since = now_ns(),
	};
	if (id)
		id->context = c;
	return c;
}

static void close_connection(struct connection *c)
{
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (rdma_destroy_id(c->id))
		complain(c, "rdma_destroy_id");
	ended += c->active;
	told.messages += c->answers;
	c->stage = STAGE_FREE;
}

static void make_queue_pair(struct connection *c)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	uint8_t timeout = ACK_TIMEOUT;

	if (in_a_row &&
	    rdma_set_option(c->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1))
		complain(c, "rdma_set_option");

	if (!pd) {
		pd = ibv_alloc_pd(c->id->verbs);
		completions = ibv_create_comp_channel(c->id->verbs);
		need(pd && completions, "ibv_alloc_pd");
		cq = ibv_create_cq(c->id->verbs, 4 * CONNECTIONS, NULL, completions, 0);
		need(cq && messages_prepare(CONNECTIONS) && !ibv_req_notify_cq(cq, 0),
		     "ibv_create_cq");
	}
	init.send_cq = init.recv_cq = cq;
	if (rdma_create_qp(c->id, pd, &init))
		complain(c, "rdma_create_qp");
	post_receive(c);
}

static void begin(unsigned int peer)
{
	struct sockaddr_in to = address;
	struct connection *c = new_connection(NULL, true, peer, begun++);

	if (begun == NUMBERS)
		fail("too many connections");
	to.sin_port = htons((uint16_t)(ntohs(address.sin_port) + peer));
	if (rdma_create_id(channel, &c->id, c, RDMA_PS_TCP) ||
	    rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&to, PATIENCE_MS))
		complain(c, "rdma_resolve_addr");
}

static void address_resolved(struct connection *c)
{
	if (rdma_resolve_route(c->id, PATIENCE_MS))
		complain(c, "rdma_resolve_route");
}

static void route_resolved(struct connection *c)
{
	const uint32_t words[] = { self, c->number };
	struct rdma_conn_param param = {
		.private_data = words,
		.private_data_len = sizeof(words),
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
	};

	make_queue_pair(c);
	c->stage = STAGE_CONNECTING;
	c->since = now_ns();
	if (rdma_connect(c->id, &param))
		complain(c, "rdma_connect");
}

static void requested(const struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .rnr_retry_count = RETRIES };
	struct connection *c;
	uint32_t words[2];
	uint8_t *bits;

	memcpy(words, event->param.conn.private_data, sizeof(words));
	if (words[0] >= processes || words[1] >= NUMBERS)
		fail("a request of no process of ours");
	c = new_connection(event->id, false, words[0], words[1]);
	bits = &seen[c->peer][c->number / 8];
	if (*bits & 1 << c->number % 8)
		complain(c, "asked for twice");
	*bits |= (uint8_t)(1 << c->number % 8);
	make_queue_pair(c);
	c->stage = STAGE_CONNECTING;
	told.accepted++;
	/* The process that sent the request may have been killed. */
	if (!rdma_accept(c->id, &param))
		return;
	if (!is_doomed(c))
		complain(c, "rdma_accept");
	close_connection(c);
}

static void established(struct connection *c)
{
	uint64_t now = now_ns();

	if (c->established)
		complain(c, "established twice");
	c->established = true;
	if (now - c->since > told.slowest_ns)
		told.slowest_ns = now - c->since;
	c->stage = STAGE_OPEN;
	c->since = now;
}

/* The connection has ended: the active end must have wanted this, or the peer is doomed. */
static void over(struct connection *c, const char *what)
{
	bool expected = c->active ? c->stage == STAGE_CLOSING : c->said_last;

	if (!expected && !is_doomed(c))
		complain(c, what);
	told.lost += !expected;
	if (!c->active)
		rdma_disconnect(c->id);
	close_connection(c);
}

static void take_event(void)
{
	struct rdma_cm_event *event, copy;
	struct connection *c;

	need(!rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
	copy = *event;
	if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		requested(event);
	need(!rdma_ack_cm_event(event), "rdma_ack_cm_event");
	c = copy.id->context;
	switch (copy.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		address_resolved(c);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route_resolved(c);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(c);
		break;
	default:
		over(c, rdma_event_str(copy.event));
	}
}

static void complete(const struct ibv_wc *wc)
{
	struct connection *c = &connection[(wc->wr_id & 0xffffffff) >> 1];

	if (c->stage == STAGE_FREE || c->generation != wc->wr_id >> 32)
		return;
	if (wc->status == IBV_WC_SUCCESS && wc->wr_id & 1) {
		c->sending = false;
		if (!c->active && c->awaiting)
			give_back(c);
	} else if (wc->status == IBV_WC_SUCCESS && c->active) {
		hear_answer(c, wc->byte_len);
	} else if (wc->status == IBV_WC_SUCCESS) {
		c->awaiting = true;
		if (!c->sending)
			give_back(c);
	} else if (c->active ? c->stage == STAGE_OPEN : !c->said_last) {
		/* A flush error belongs to a connection whose end event may arrive after this. */
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			over(c, ibv_wc_status_str(wc->status));
	}
}

static void take_completions(void)
{
	struct ibv_cq *of;
	void *context;
	struct ibv_wc wc;
	int got;

	need(!ibv_get_cq_event(completions, &of, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(of, 1);
	need(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	while ((got = ibv_poll_cq(cq, 1, &wc)) > 0)
		complete(&wc);
	need(got == 0, "ibv_poll_cq");
}

/* ---- time ---- */

static void go_on(struct connection *c, uint64_t now)
{
	if (!c->active || c->stage != STAGE_OPEN || c->sending || c->awaiting ||
	    now < c->pause_until)
		return;
	if (!limit && now >= end_at && c->messages > c->sequence + 1)
		c->messages = c->sequence + 1;
	if (!c->said_last) {
		ask(c);
		return;
	}
	c->stage = STAGE_CLOSING;
	c->since = now;
	if (rdma_disconnect(c->id))
		complain(c, "rdma_disconnect");
}

/* If the active end has waited for too long: fails, or gives up if the peer is doomed. */
static void look_at_patience(struct connection *c, uint64_t now)
{
	bool waits = c->stage != STAGE_OPEN || c->awaiting || c->sending;

	if (!c->active || !waits || now < c->since + PATIENCE_NS)
		return;
	if (!is_doomed(c))
		complain(c, "nothing has happened for too long");
	told.given_up++;
	close_connection(c);
}

/* Continues all connections.  Returns the number of those that this end has begun. */
static unsigned int tend(uint64_t now)
{
	unsigned int active = 0;

	for (struct connection *c = connection; c < connection + CONNECTIONS; c++) {
		if (c->stage != STAGE_FREE)
			go_on(c, now);
		if (c->stage != STAGE_FREE)
			look_at_patience(c, now);
		active += c->stage != STAGE_FREE && c->active;
	}
	return active;
}

/* A finished process still listens, but may exit before the connection ends. */
static bool can_be_asked(unsigned int peer)
{
	return peer != self &&
	       (fate[peer] == FATE_LISTENS || (limit && fate[peer] == FATE_FINISHED));
}

static void begin_some(unsigned int active, uint64_t now)
{
	unsigned int peer = draw(processes);

	if (active >= active_wanted || now < next_at || (limit && begun == limit) ||
	    !can_be_asked(peer))
		return;
	if (!limit)
		next_at = now + draw(PAUSE_MS) * UINT64_C(1000000);
	begin(peer);
}

/* Returns true if all processes, except doomed ones, have finished and have no connection here. */
static bool all_finished(void)
{
	for (unsigned int i = 0; i < processes; i++)
		if (fate[i] != FATE_FINISHED && fate[i] != FATE_DOOMED)
			return false;
	for (struct connection *c = connection; c < connection + CONNECTIONS; c++)
		if (c->stage != STAGE_FREE && !is_doomed(c))
			return false;
	return true;
}

static void wait_for_something(void)
{
	struct pollfd poll_fds[] = {
		{ .fd = channel->fd, .events = POLLIN },
		{ .fd = completions ? completions->fd : -1, .events = POLLIN },
	};

	need(poll(poll_fds, 2, limit ? 1 : 5) >= 0, "poll");
	/* Completions first: received messages show whether the end of a connection is expected. */
	if (poll_fds[1].revents)
		take_completions();
	else if (poll_fds[0].revents)
		take_event();
}

static void run(void)
{
	uint64_t finished_at = 0;

	for (;;) {
		uint64_t now = now_ns();
		unsigned int active = tend(now);
		bool over = now >= end_at && (!limit || begun == limit);

		if (!over)
			begin_some(active, now);
		if (over && active == 0 && fate[self] == FATE_LISTENS) {
			fate[self] = FATE_FINISHED;
			finished_at = now;
		}
		if (finished_at && all_finished())
			return;
		wait_for_something();
	}
}

static void listen_at_port(void)
{
	struct sockaddr_in own = address;

	own.sin_port = htons((uint16_t)(ntohs(address.sin_port) + self));
	channel = rdma_create_event_channel();
	need(channel, "rdma_create_event_channel");
	need(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	need(!rdma_bind_addr(listener, (struct sockaddr *)&own), "rdma_bind_addr");
	need(!rdma_listen(listener, BACKLOG), "rdma_listen");
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 10)
		return 2;
	self = (unsigned int)atoi(argv[1]);
	processes = (unsigned int)atoi(argv[2]);
	address = (struct sockaddr_in){ .sin_family = AF_INET,
					.sin_port = htons((uint16_t)atoi(argv[4])) };
	fd = open(argv[5], O_RDWR);
	end_at = now_ns() + (uint64_t)atoi(argv[6]) * UINT64_C(1000000000);
	srandom((unsigned int)atoi(argv[7]) * PROCESSES + self);
	active_wanted = (unsigned int)atoi(argv[8]);
	limit = (unsigned int)atoi(argv[9]);
	in_a_row = limit > 0;
	if (!active_wanted)
		limit = 0;
	fate = mmap(NULL, PROCESSES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fate == MAP_FAILED || self >= processes || processes > PROCESSES ||
	    inet_pton(AF_INET, argv[3], &address.sin_addr) != 1)
		return 2;
	listen_at_port();
	fate[self] = FATE_LISTENS;
	run();
	/* A connection that is left is from a process that has been killed. */
	for (struct connection *c = connection; c < connection + CONNECTIONS; c++)
		if (c->stage != STAGE_FREE)
			close_connection(c);
	need(!rdma_destroy_id(listener), "rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	printf("connected %u accepted %u messages %u lost %u given-up %u slowest-ms %u\n", ended,
	       told.accepted, told.messages, told.lost, told.given_up,
	       (unsigned int)(told.slowest_ns / 1000000));
	return 0;
}
