/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Connects to the peer and brings the queue pairs up. */
#include "end.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	HOP_LIMIT = 64,
	RNR_RETRIES = 7, /* unlimited */
	RNR_CODE = 12,	 /* 0.64 ms */
	MAX_READS = 16,
	PAGE = 4096,
};

static const int ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

static int server_socket(const struct addrinfo *address)
{
	int listener = socket(address->ai_family, SOCK_STREAM, 0), stream;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (listener < 0 || bind(listener, address->ai_addr, address->ai_addrlen) ||
	    listen(listener, 1))
		die("listening: %m");
	stream = accept(listener, NULL, NULL);
	close(listener);
	return stream;
}

static int client_socket(const struct addrinfo *address)
{
	int stream = socket(address->ai_family, SOCK_STREAM, 0);

	if (stream < 0 || connect(stream, address->ai_addr, address->ai_addrlen))
		die("connect: %m");
	return stream;
}

static void open_tcp(struct interop_end *end)
{
	struct addrinfo *address, hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };

	hints.ai_flags = is_client(end) ? 0 : AI_PASSIVE;
	if (getaddrinfo(end->options.address, end->options.port, &hints, &address))
		die("no such address");
	end->tcp = is_client(end) ? client_socket(address) : server_socket(address);
	freeaddrinfo(address);
	if (end->tcp < 0)
		die("accept: %m");
	setsockopt(end->tcp, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

void end_send(struct interop_end *end, const void *bytes, size_t size)
{
	if (send(end->tcp, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		die("the peer is gone: %m");
}

void end_receive(struct interop_end *end, void *bytes, size_t size)
{
	if (recv(end->tcp, bytes, size, MSG_WAITALL) != (ssize_t)size)
		die("the peer is gone");
}

void end_barrier(struct interop_end *end)
{
	char byte = '.';

	end_send(end, &byte, sizeof(byte));
	end_receive(end, &byte, sizeof(byte));
}

static void lay_out(struct interop_end *end)
{
	struct layout *layout = &end->layout;
	size_t depth = end->options.depth;

	layout->place = end->options.plan.max_size + SLACK;
	layout->words = 0;
	layout->source = WORDS * sizeof(uint64_t);
	layout->receives = layout->source + layout->place;
	layout->targets = layout->receives + RECEIVES * layout->place;
	layout->immediates = layout->targets + PLACES * layout->place;
	layout->out = layout->immediates + PLACES * layout->place;
	layout->in = layout->out + depth * layout->place;
	layout->bytes = layout->in + depth * layout->place;
	layout->bytes = (layout->bytes + PAGE - 1) / PAGE * PAGE;
}

static void open_device(struct interop_end *end)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	for (int i = 0; i < count && !end->context; i++) {
		if (strcmp(ibv_get_device_name(list[i]), end->options.device) == 0)
			end->context = ibv_open_device(list[i]);
	}
	if (!end->context)
		die("device %s: %m", end->options.device);
	ibv_free_device_list(list);
}

static void open_objects(struct interop_end *end)
{
	const struct options *options = &end->options;
	size_t bytes = end->layout.bytes * options->connections;
	/* A WRITE is followed by a READ; each receive has a completion. */
	int cqe = (int)(options->connections * (2 * options->depth + RECEIVES));

	open_device(end);
	end->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (end->memory == MAP_FAILED)
		die("%zu bytes of memory: %m", bytes);
	end->pd = ibv_alloc_pd(end->context);
	end->channel = options->events ? ibv_create_comp_channel(end->context) : NULL;
	end->cq = ibv_create_cq(end->context, cqe, NULL, end->channel, 0);
	if (!end->pd || !end->cq)
		die("PD or CQ: %m");
	end->mr = ibv_reg_mr(end->pd, end->memory, bytes, ACCESS);
	if (!end->mr)
		die("region of %zu bytes: %m", bytes);
}

static void create_qp(struct interop_end *end, struct connection *connection)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = end->options.type,
		.cap = { .max_send_wr = 2 * end->options.depth,
			 .max_recv_wr = RECEIVES,
			 .max_send_sge = 2,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	connection->qp = ibv_create_qp(end->pd, &init);
	if (!connection->qp)
		die("queue pair: %m");
	attr.qp_access_flags = (unsigned int)ACCESS;
	if (end->options.type == IBV_QPT_UC)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (ibv_modify_qp(connection->qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		die("queue pair to INIT: %m");
}

static void connect_qp(struct interop_end *end, struct connection *connection)
{
	const struct options *options = &end->options;
	bool rc = options->type == IBV_QPT_RC;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = options->mtu,
		.dest_qp_num = connection->remote.qpn,
		.rq_psn = connection->remote.psn,
		.max_dest_rd_atomic = MAX_READS,
		.min_rnr_timer = RNR_CODE,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = connection->remote.gid,
				      .sgid_index = (uint8_t)options->gid_index,
				      .hop_limit = HOP_LIMIT } },
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = connection->local.psn,
		.max_rd_atomic = MAX_READS,
		.timeout = options->timeout,
		.retry_cnt = options->retries,
		.rnr_retry = RNR_RETRIES,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (ibv_modify_qp(connection->qp, &rtr, mask))
		die("queue pair to RTR: %m");
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (ibv_modify_qp(connection->qp, &rts, mask))
		die("queue pair to RTS: %m");
}

static void open_connection(struct interop_end *end, unsigned int number)
{
	struct connection *connection = &end->connections[number];
	struct conn_attrs *local = &connection->local;

	connection->memory = end->memory + number * end->layout.bytes;
	create_qp(end, connection);
	local->qpn = connection->qp->qp_num;
	if (getrandom(&local->psn, sizeof(local->psn), 0) < 0)
		die("getrandom: %m");
	local->psn &= 0xFFFFFF;
	local->rkey = end->mr->rkey;
	local->memory = (uintptr_t)connection->memory;
	if (ibv_query_gid(end->context, 1, end->options.gid_index, &local->gid))
		die("GID %d: %m", end->options.gid_index);
	responder_prepare(end, connection);
}

void end_open(struct interop_end *end)
{
	lay_out(end);
	open_objects(end);
	for (unsigned int i = 0; i < end->options.connections; i++)
		open_connection(end, i);
	open_tcp(end);
	for (unsigned int i = 0; i < end->options.connections; i++) {
		struct connection *connection = &end->connections[i];

		end_send(end, &connection->local, sizeof(connection->local));
		end_receive(end, &connection->remote, sizeof(connection->remote));
		connect_qp(end, connection);
	}
	end_barrier(end);
}

void end_close(struct interop_end *end)
{
	for (unsigned int i = 0; i < end->options.connections; i++) {
		if (ibv_destroy_qp(end->connections[i].qp))
			die("destroying a queue pair: %m");
	}
	if (ibv_dereg_mr(end->mr) || ibv_destroy_cq(end->cq) ||
	    (end->channel && ibv_destroy_comp_channel(end->channel)) || ibv_dealloc_pd(end->pd) ||
	    ibv_close_device(end->context))
		die("closing: %m");
	close(end->tcp);
}
