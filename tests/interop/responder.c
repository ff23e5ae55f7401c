/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The responder's part: keeps receives posted, and checks the requests of the peer. */
#include "end.h"

#include <arpa/inet.h>
#include <string.h>

static void post_receive(struct interop_end *end, struct connection *connection)
{
	uint8_t *at = connection->memory + end->layout.receives +
		      connection->recvs_posted % RECEIVES * end->layout.place;
	struct ibv_sge sge = { .addr = (uintptr_t)at,
			       .length = end->options.plan.max_size,
			       .lkey = end->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = (uint64_t)(connection - end->connections),
					.sg_list = &sge,
					.num_sge = 1 };

	if (ibv_post_recv(connection->qp, &wr, &bad))
		die("a receive was refused: %m");
	connection->recvs_posted++;
}

static uint64_t source_seed(bool client)
{
	return client ? 0xC11E47 : 0x5E47E4;
}

void responder_prepare(struct interop_end *end, struct connection *connection)
{
	plan_fill(connection->memory + end->layout.source, end->layout.place,
		  source_seed(is_client(end)));
	plan_fill(end->peer_source, end->layout.place, source_seed(!is_client(end)));
	while (connection->recvs_posted < RECEIVES)
		post_receive(end, connection);
}

static struct request peer_request(const struct interop_end *end,
				   const struct connection *connection, uint32_t number)
{
	return plan_request(&end->options.plan, !is_client(end),
			    (unsigned int)(connection - end->connections), number);
}

/* The peer's next request that takes a receive. */
static struct request next_told(const struct interop_end *end, struct connection *connection)
{
	struct request request;

	for (;;) {
		request = peer_request(end, connection, connection->peer_requests_seen);
		if (plan_takes_receive(request.kind))
			return request;
		connection->peer_requests_seen++;
	}
}

static void check_payload(const struct interop_end *end, const struct connection *connection,
			  const struct request *request, const uint8_t *at)
{
	long difference = plan_difference(at, request->size, request->seed);

	if (difference >= 0)
		die("connection %u: the peer's %s %u of %u bytes is wrong from byte %ld on",
		    (unsigned int)(connection - end->connections), plan_kind_name(request->kind),
		    request->number, request->size, difference);
}

void responder_completed(struct interop_end *end, struct connection *connection,
			 const struct ibv_wc *wc)
{
	struct request request = next_told(end, connection);
	const char *name = plan_kind_name(request.kind);
	const uint8_t *at = connection->memory;

	if (wc->status != IBV_WC_SUCCESS)
		die("connection %u: receive of %s %u: %s",
		    (unsigned int)(connection - end->connections), name, request.number,
		    ibv_wc_status_str(wc->status));
	if (wc->byte_len != request.size)
		die("%s %u of %u bytes comes as %u", name, request.number, request.size,
		    wc->byte_len);
	if ((wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) != (request.kind == WRITE_IMM) ||
	    !!(wc->wc_flags & IBV_WC_WITH_IMM) != (request.kind != SEND))
		die("%s %u comes as opcode %d, flags %x", name, request.number, wc->opcode,
		    wc->wc_flags);
	if (request.kind != SEND && ntohl(wc->imm_data) != (uint32_t)(request.seed >> 7))
		die("%s %u has the wrong immediate", name, request.number);
	if (request.kind == WRITE_IMM)
		at += end->layout.immediates +
		      connection->peer_requests_with_recv % PLACES * end->layout.place +
		      request.shift;
	else
		at += end->layout.receives +
		      connection->peer_requests_with_recv % RECEIVES * end->layout.place;
	check_payload(end, connection, &request, at);
	connection->peer_requests_seen++;
	connection->peer_requests_with_recv++;
	post_receive(end, connection);
}

bool responder_is_done(struct interop_end *end, struct connection *connection)
{
	while (connection->peer_requests_seen < connection->peer_requests_total) {
		if (plan_takes_receive(
			    peer_request(end, connection, connection->peer_requests_seen).kind))
			return false;
		connection->peer_requests_seen++;
	}
	return true;
}

/* Checks the swapped word and the last WRITEs; returns the sum of the connection's FETCH_ADDs. */
static uint64_t check_connection(const struct interop_end *end, const struct connection *connection)
{
	uint64_t added = 0, swapped = 0, word;

	for (uint32_t number = 0; number < connection->peer_requests_total; number++) {
		struct request request = peer_request(end, connection, number);

		if (request.kind == FETCH_ADD)
			added += request.seed >> 32;
		else if (request.kind == CMP_SWAP && request.seed & 6)
			swapped = request.seed;
	}
	memcpy(&word, connection->memory + WORD_SWAP * sizeof(word), sizeof(word));
	if (word != swapped)
		die("the word of CMP_SWAP is %#lx, not %#lx", (unsigned long)word,
		    (unsigned long)swapped);
	for (uint32_t back = 1; back <= PLACES && back <= connection->peer_requests_total; back++) {
		struct request request =
			peer_request(end, connection, connection->peer_requests_total - back);
		const uint8_t *at = connection->memory + end->layout.targets +
				    request.number % PLACES * end->layout.place + request.shift;

		if (request.kind == WRITE)
			check_payload(end, connection, &request, at);
	}
	return added;
}

void responder_check_memory(struct interop_end *end)
{
	uint64_t added = 0, word;

	for (unsigned int i = 0; i < end->options.connections; i++)
		added += check_connection(end, &end->connections[i]);
	memcpy(&word, end->connections[0].memory + WORD_ADD * sizeof(word), sizeof(word));
	if (word != added)
		die("the word of FETCH_ADD is %#lx, not %#lx", (unsigned long)word,
		    (unsigned long)added);
}
