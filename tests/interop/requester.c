/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* The requester's part: posts the requests of the plan, and checks the results. */
#include "end.h"

#include <arpa/inet.h>
#include <string.h>

static uint8_t *place(const struct interop_end *end, const struct connection *connection,
		      size_t area, uint32_t number)
{
	return connection->memory + area + number * end->layout.place;
}

static uint64_t remote_place(const struct interop_end *end, const struct connection *connection,
			     size_t area, const struct request *request, uint32_t number)
{
	return connection->remote.memory + area + number * end->layout.place + request->shift;
}

/* Every other payload is gathered from two pieces. */
static int pieces(const struct interop_end *end, const struct request *request, uint8_t *at,
		  struct ibv_sge sge[2])
{
	uint32_t first = request->number % 2 && request->size > 1 ? request->size / 3 : 0;
	int count = 0;

	if (first) {
		sge[count++] = (struct ibv_sge){ .addr = (uintptr_t)at,
						 .length = first,
						 .lkey = end->mr->lkey };
	}
	sge[count++] = (struct ibv_sge){ .addr = (uintptr_t)at + first,
					 .length = request->size - first,
					 .lkey = end->mr->lkey };
	return count;
}

static void post(struct interop_end *end, struct connection *connection, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error;

	wr->wr_id = (uint64_t)(connection - end->connections);
	error = ibv_post_send(connection->qp, wr, &bad);
	if (error)
		die("request %u was refused: %s", connection->requests_posted, strerror(error));
}

/* Written data is read back: it has been transferred both ways, and in order. */
static void post_read_back(struct interop_end *end, struct connection *connection,
			   const struct request *request)
{
	uint8_t *in = place(end, connection, end->layout.in, request->number % end->options.depth);
	struct ibv_sge sge = { .addr = (uintptr_t)in,
			       .length = request->size,
			       .lkey = end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED };

	memset(in, 0, request->size);
	wr.wr.rdma.rkey = connection->remote.rkey;
	wr.wr.rdma.remote_addr = remote_place(end, connection, end->layout.targets, request,
					      request->number % PLACES);
	post(end, connection, &wr);
}

static void post_payload(struct interop_end *end, struct connection *connection,
			 const struct request *request)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[SEND] = IBV_WR_SEND,
		[SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[WRITE] = IBV_WR_RDMA_WRITE,
		[WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	const struct layout *layout = &end->layout;
	uint8_t *out = place(end, connection, layout->out, request->number % end->options.depth);
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .sg_list = sge, .opcode = opcodes[request->kind] };

	plan_fill(out + request->shift, request->size, request->seed);
	wr.num_sge = pieces(end, request, out + request->shift, sge);
	wr.imm_data = htonl((uint32_t)(request->seed >> 7));
	wr.wr.rdma.rkey = connection->remote.rkey;
	if (request->kind == WRITE) {
		wr.wr.rdma.remote_addr = remote_place(end, connection, layout->targets, request,
						      request->number % PLACES);
		post(end, connection, &wr);
		post_read_back(end, connection, request);
		return;
	}
	if (request->kind == WRITE_IMM)
		wr.wr.rdma.remote_addr = remote_place(end, connection, layout->immediates, request,
						      connection->requests_with_recv % PLACES);
	connection->requests_with_recv++;
	wr.send_flags = IBV_SEND_SIGNALED;
	post(end, connection, &wr);
}

static void post_read(struct interop_end *end, struct connection *connection,
		      const struct request *request)
{
	uint8_t *in = place(end, connection, end->layout.in, request->number % end->options.depth);
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = { .sg_list = sge,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED };

	memset(in, 0, request->size);
	wr.num_sge = pieces(end, request, in, sge);
	wr.wr.rdma.rkey = connection->remote.rkey;
	wr.wr.rdma.remote_addr = remote_place(end, connection, end->layout.source, request, 0);
	post(end, connection, &wr);
}

static void post_atomic(struct interop_end *end, struct connection *connection,
			struct pending_request *pending)
{
	const struct request *request = &pending->request;
	uint8_t *in = place(end, connection, end->layout.in, request->number % end->options.depth);
	struct ibv_sge sge = { .addr = (uintptr_t)in,
			       .length = ATOMIC_BYTES,
			       .lkey = end->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				  .send_flags = IBV_SEND_SIGNALED };

	wr.wr.atomic.rkey = connection->remote.rkey;
	if (request->kind == FETCH_ADD) {
		/* All connections add to one word: it is at least the sum that this one has added.
		 */
		pending->found = connection->word_add;
		wr.wr.atomic.remote_addr =
			end->connections[0].remote.memory + WORD_ADD * sizeof(uint64_t);
		wr.wr.atomic.compare_add = request->seed >> 32;
		connection->word_add += request->seed >> 32;
		post(end, connection, &wr);
		return;
	}
	pending->found = connection->word_swap;
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.remote_addr = connection->remote.memory + WORD_SWAP * sizeof(uint64_t);
	/* One in four compares with another value than that of the word, and must not swap. */
	wr.wr.atomic.compare_add =
		request->seed & 6 ? connection->word_swap : ~connection->word_swap;
	wr.wr.atomic.swap = request->seed;
	if (request->seed & 6)
		connection->word_swap = request->seed;
	post(end, connection, &wr);
}

bool requester_is_done(const struct interop_end *end, const struct connection *connection)
{
	(void)end;
	return connection->requests_posted == connection->requests_completed;
}

bool requester_post(struct interop_end *end, struct connection *connection)
{
	const struct options *options = &end->options;
	struct pending_request *pending =
		&connection->pending[connection->requests_posted % options->depth];
	struct request *request = &pending->request;

	if (connection->requests_posted - connection->requests_completed >= options->depth ||
	    now_ns() < connection->resume_ns)
		return false;
	*request = plan_request(&options->plan, is_client(end),
				(unsigned int)(connection - end->connections),
				connection->requests_posted);
	pending->since = now_ns();
	switch (request->kind) {
	case READ:
		post_read(end, connection, request);
		break;
	case FETCH_ADD:
	case CMP_SWAP:
		post_atomic(end, connection, pending);
		break;
	default:
		post_payload(end, connection, request);
	}
	connection->requests_posted++;
	return true;
}

static void check_read(struct interop_end *end, const struct connection *connection,
		       const struct request *request)
{
	const uint8_t *in =
		place(end, connection, end->layout.in, request->number % end->options.depth);

	if (memcmp(in, end->peer_source + request->shift, request->size) != 0)
		die("READ %u of %u bytes has brought wrong ones", request->number, request->size);
}

static void check_read_back(struct interop_end *end, const struct connection *connection,
			    const struct request *request)
{
	const uint8_t *in =
		place(end, connection, end->layout.in, request->number % end->options.depth);
	long at = plan_difference(in, request->size, request->seed);

	if (at >= 0)
		die("WRITE %u of %u bytes is wrong from byte %ld on when read back",
		    request->number, request->size, at);
}

static void check_atomic(struct interop_end *end, const struct connection *connection,
			 const struct pending_request *pending)
{
	const struct request *request = &pending->request;
	uint64_t found;
	bool right;

	memcpy(&found, place(end, connection, end->layout.in, request->number % end->options.depth),
	       sizeof(found));
	right = found == pending->found;
	if (request->kind == FETCH_ADD && end->options.connections > 1)
		right = found >= pending->found;
	if (!right)
		die("%s %u has found %#lx instead of %#lx", plan_kind_name(request->kind),
		    request->number, (unsigned long)found, (unsigned long)pending->found);
}

void requester_completed(struct interop_end *end, struct connection *connection,
			 const struct ibv_wc *wc)
{
	const struct pending_request *pending =
		&connection->pending[connection->requests_completed % end->options.depth];
	const struct request *request = &pending->request;
	uint64_t took = now_ns() - pending->since;

	if (wc->status != IBV_WC_SUCCESS)
		die("connection %u: %s %u of %u bytes: %s",
		    (unsigned int)(connection - end->connections), plan_kind_name(request->kind),
		    request->number, request->size, ibv_wc_status_str(wc->status));
	if (connection->requests_completed == connection->requests_posted)
		die("more completions than requests");
	if (request->kind == READ)
		check_read(end, connection, request);
	else if (request->kind == WRITE)
		check_read_back(end, connection, request);
	else if (!plan_takes_receive(request->kind))
		check_atomic(end, connection, pending);
	connection->requests_completed++;
	connection->resume_ns = now_ns() + (uint64_t)(end->options.pause * 1e9);
	end->requests++;
	end->bytes += request->size;
	if (took > end->slowest)
		end->slowest = took;
}
