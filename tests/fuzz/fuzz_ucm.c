/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Any commands in any order, on two channels in a world without network (tests/unit/ucm/world.h):
 * no access out of bounds, and nothing is left at the end.  Where a command contains an address of
 * the program's memory, it is replaced by a valid one, or 0.
 *
 * An input is a list of steps: a byte for the action (a command below FIRST_STEP), a byte for its
 * variant, and its arguments.  make_ucm_corpus.py writes inputs that connect.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "ucm/cmd/command.h"
#include "world.h"

enum {
	CHANNELS = 2,
	MAX_COMMANDS = 200,
	BODY = 296, /* of the largest command, ACCEPT */
	FIRST_STEP = 192,
};

/* Actions other than commands. */
enum {
	DELIVER,
	LOSE,
	PASS,
	REOPEN,
	STEPS,
};

static uint8_t answers[4096];
/* Values of options: 0 at offset 0, and 1 at offset 64. */
static const uint8_t values[128] = { [64] = 1 };

struct input {
	const uint8_t *bytes;
	size_t left;
};

static uint8_t take(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->bytes++;
}

/* Offset in a command of the address of its response, or of an option's value; BODY: none. */
static size_t address_at(unsigned int command)
{
	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		return 8;
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
	case RDMA_USER_CM_CMD_GET_EVENT:
	case RDMA_USER_CM_CMD_SET_OPTION:
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
	case RDMA_USER_CM_CMD_LEAVE_MCAST:
	case RDMA_USER_CM_CMD_MIGRATE_ID:
	case RDMA_USER_CM_CMD_QUERY:
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		return 0;
	default:
		return BODY;
	}
}

/* Offset of the program's private data within a command; BODY: none. */
static size_t data_at(unsigned int command)
{
	switch (command) {
	case RDMA_USER_CM_CMD_CONNECT:
		return offsetof(struct rdma_ucm_connect, conn_param.private_data);
	case RDMA_USER_CM_CMD_ACCEPT:
		return offsetof(struct rdma_ucm_accept, conn_param.private_data);
	default:
		return BODY;
	}
}

/*
 * Offset in a command of byte i of the input, in which all fields precede the private data: a
 * length of one byte would not reach fields after the data.
 */
static size_t place_of(unsigned int command, size_t i)
{
	const size_t fields = BODY - RDMA_MAX_PRIVATE_DATA;
	size_t data = data_at(command);

	if (data == BODY || i < data)
		return i;
	return i < fields ? i + RDMA_MAX_PRIVATE_DATA : i - fields + data;
}

static void call(struct input *input, const int *channels, unsigned int command, uint8_t how)
{
	uint8_t body[BODY];
	size_t in = (size_t)take(input) * 2, out = (size_t)take(input) * 2, given = take(input);
	size_t at = address_at(command);
	uint64_t address = how & 0x80 ? 0 : (uintptr_t)answers;

	memset(body, 0, sizeof(body));
	for (size_t i = 0; i < given && i < sizeof(body); i++)
		body[place_of(command, i)] = take(input);
	if (command == RDMA_USER_CM_CMD_SET_OPTION && address)
		address = (uintptr_t)values + (how & 0x40);
	if (at < BODY)
		memcpy(body + at, &address, sizeof(address));
	/* Small handles occur in the input by chance, but not the other channel's descriptor. */
	if (command == RDMA_USER_CM_CMD_MIGRATE_ID)
		memcpy(body + 12, &channels[!(how & 1)], 4);
	world_call(channels[how & 1], command, body, in < BODY ? in : BODY,
		   out < sizeof(answers) ? out : sizeof(answers));
}

static int open_channel(void)
{
	int fd = world_open();

	if (fd < 0)
		abort();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static void take_step(unsigned int step, int *channels, uint8_t how)
{
	switch (step) {
	case DELIVER:
		world_deliver();
		break;
	case LOSE:
		world_lose();
		break;
	case PASS:
		world_pass(UINT64_C(1000000) << how % 12);
		break;
	case REOPEN:
		world_close(channels[how & 1]);
		channels[how & 1] = open_channel();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct input input = { bytes, length };
	int channels[CHANNELS] = { open_channel(), open_channel() };

	for (int i = 0; i < MAX_COMMANDS && input.left; i++) {
		uint8_t step = take(&input), how = take(&input);

		if (step < FIRST_STEP)
			call(&input, channels, step % UCM_COMMANDS, how);
		else
			take_step(step % STEPS, channels, how);
	}
	for (int i = 0; i < CHANNELS; i++)
		world_close(channels[i]);
	if (world_ports())
		abort();
	/* A closed connection may exist until its peer has been notified, or until retries end. */
	for (int i = 0; i < 3; i++) {
		world_deliver();
		world_pass(UINT64_C(100000000000));
	}
	world_lose();
	return 0;
}
