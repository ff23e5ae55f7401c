/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The steering program: interpreted for many tables, and run by the kernel for a real group.
 */
#include "link_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/steer.h"
#include "rand.h"

enum {
	MEMBERS = 320, /* number of members of a real group */
	PORT = 4791,
	GSI = 7,
	SINK = 9,
	SCATTERED = 2000,
	ALONE = 1000, /* slots without a held neighbour */
	TABLES = 30,
};

static struct steer_table table;
static struct sock_filter code[BPF_MAXINSNS];
static unsigned int length;

struct packet {
	uint32_t word[5]; /* big-endian */
	size_t bytes;
};

static struct packet to_qpn(uint32_t qpn)
{
	return (struct packet){
		/* The upper byte is reserved and may have any value. */
		.word = { htonl(0x04000000), htonl(qpn | 0xa5000000), htonl(0x80000001) },
		.bytes = 12,
	};
}

static struct packet to_slot(unsigned int slot)
{
	return to_qpn(slot << UROCE_BROKER_SLOT_SHIFT | (slot ? 0 : 2));
}

static struct packet probe_of(uint32_t index)
{
	return (struct packet){
		.word = { htonl(UROCE_BROKER_PROBE), 0, htonl(index), 1, 2 },
		.bytes = sizeof(struct uroce_broker_probe),
	};
}

static void build(void)
{
	length = steer_build(&table, code);
	assert_true(length && length <= BPF_MAXINSNS);
}

static bool jumps(const struct sock_filter *step, uint32_t value)
{
	switch (BPF_OP(step->code)) {
	case BPF_JGT:
		return value > step->k;
	case BPF_JGE:
		return value >= step->k;
	default:
		assert_int_equal(BPF_OP(step->code), BPF_JEQ);
		return value == step->k;
	}
}

static uint32_t calculate(const struct sock_filter *step, uint32_t value)
{
	switch (BPF_OP(step->code)) {
	case BPF_ADD:
		return value + step->k;
	case BPF_AND:
		return value & step->k;
	default:
		assert_int_equal(BPF_OP(step->code), BPF_RSH);
		return value >> step->k;
	}
}

/* Interprets the program.  Returns the index that the program returns for the packet. */
static uint32_t run(const struct packet *packet)
{
	uint32_t value = 0;

	for (unsigned int at = 0; at < length; at++) {
		const struct sock_filter *step = &code[at];

		switch (BPF_CLASS(step->code)) {
		case BPF_LD:
			if (step->k + 4 > packet->bytes)
				return 0;
			value = ntohl(packet->word[step->k / 4]);
			break;
		case BPF_ALU:
			value = calculate(step, value);
			break;
		case BPF_JMP:
			if (BPF_OP(step->code) == BPF_JA)
				at += step->k;
			else
				at += jumps(step, value) ? step->jt : step->jf;
			break;
		default:
			return BPF_RVAL(step->code) == BPF_A ? value : step->k;
		}
	}
	fail_msg("the program has no end");
	return 0;
}

static void check_program(bool exact)
{
	const struct packet gsi = to_qpn(1), runt = { .bytes = 7 };

	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++) {
		const struct packet packet = to_slot(slot);
		uint16_t index = table.member[slot];

		if (index != STEER_NONE || exact)
			assert_int_equal(run(&packet), index == STEER_NONE ? SINK : index);
	}
	assert_int_equal(run(&gsi), GSI);
	assert_int_equal(run(&runt), 0);
	for (uint32_t index = 0; index < UROCE_BROKER_SLOTS + 2; index += 100) {
		const struct packet probe = probe_of(index);

		assert_int_equal(run(&probe), index);
	}
}

static void hold_in_order(unsigned int first, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		table.member[first + i] = (uint16_t)(2 + i);
}

/* Marks count random slots as held, with indexes in a random order. */
static void hold_scattered(unsigned int count)
{
	static uint16_t slots[UROCE_BROKER_SLOTS];

	steer_clear(&table, GSI, SINK);
	for (unsigned int i = 0; i < UROCE_BROKER_SLOTS; i++)
		slots[i] = (uint16_t)i;
	for (unsigned int i = 0; i < count; i++) {
		unsigned int other = i + rand_below(UROCE_BROKER_SLOTS - i);
		uint16_t slot = slots[other];

		slots[other] = slots[i];
		table.member[slot] = (uint16_t)(2 + i);
	}
}

static void test_empty(void **state)
{
	(void)state;
	steer_clear(&table, GSI, SINK);
	build();
	assert_true(length < 16);
	check_program(true);
}

/* The usual case costs a handful of instructions. */
static void test_order(void **state)
{
	(void)state;
	steer_clear(&table, GSI, SINK);
	hold_in_order(0, UROCE_BROKER_SLOTS);
	build();
	assert_true(length < 16);
	check_program(true);
	steer_clear(&table, GSI, SINK);
	hold_in_order(1000, 1024);
	/* Further slots of one worker */
	for (unsigned int slot = 3000; slot < 3016; slot++)
		table.member[slot] = 5;
	build();
	assert_true(length < 32);
	check_program(true);
}

static void test_scattered(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < TABLES; i++) {
		hold_scattered(1 + rand_below(500));
		build();
		check_program(true);
	}
	/* Too many held slots for all others between them to go to the sink. */
	hold_scattered(SCATTERED);
	build();
	check_program(false);
}

static void test_too_long(void **state)
{
	(void)state;
	hold_scattered(UROCE_BROKER_SLOTS);
	assert_int_equal(steer_build(&table, code), 0);
	/* Held slots without a held neighbour */
	steer_clear(&table, GSI, SINK);
	for (unsigned int i = 0; i < ALONE; i++)
		table.member[4 * i] = (uint16_t)(2 + ALONE - i);
	build();
	check_program(true);
}

/* ---- a real group ---- */

struct group {
	int member[MEMBERS];
	int sender;
	struct sockaddr_storage name;
	socklen_t name_bytes;
};

static void open_group(struct group *group, int family)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)&group->name;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&group->name;
	const int on = 1;

	memset(group, 0, sizeof(*group));
	group->name.ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		group->name_bytes = sizeof(*v4);
		v4->sin_port = htons(PORT);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	} else {
		group->name_bytes = sizeof(*v6);
		v6->sin6_port = htons(PORT);
		v6->sin6_addr = in6addr_loopback;
	}
	for (unsigned int i = 0; i < MEMBERS; i++) {
		int fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		assert_true(fd >= 0);
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
		assert_int_equal(bind(fd, (struct sockaddr *)&group->name, group->name_bytes), 0);
		group->member[i] = fd;
	}
	group->sender = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(group->sender >= 0);
}

static void close_group(struct group *group)
{
	for (unsigned int i = 0; i < MEMBERS; i++)
		close(group->member[i]);
	close(group->sender);
}

static void attach(const struct group *group)
{
	struct sock_fprog program;

	build();
	memset(&program, 0, sizeof(program));
	program.len = (unsigned short)length;
	program.filter = code;
	if (setsockopt(group->member[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
		       sizeof(program)) == 0)
		return;
	/* qemu-user and gVisor do not support the option. */
	assert_true(errno == ENOPROTOOPT || errno == EOPNOTSUPP || errno == ENOSYS);
	skip();
}

/* Sends the packet, which the member with this index must receive. */
static void expect_at(const struct group *group, const struct packet *packet, unsigned int index)
{
	uint32_t seen[5];

	assert_int_equal(sendto(group->sender, packet->word, packet->bytes, 0,
				(const struct sockaddr *)&group->name, group->name_bytes),
			 packet->bytes);
	assert_int_equal(recv(group->member[index], seen, sizeof(seen), 0), packet->bytes);
	assert_memory_equal(seen, packet->word, packet->bytes);
}

static void expect_nothing(const struct group *group)
{
	char byte;

	for (unsigned int i = 0; i < MEMBERS; i++)
		assert_int_equal(recv(group->member[i], &byte, 1, 0), -1);
}

static void check_group(int family)
{
	const struct packet gsi = to_qpn(1);
	struct group group;

	open_group(&group, family);
	hold_scattered(MEMBERS - 2);
	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++)
		if (table.member[slot] == GSI || table.member[slot] == SINK)
			table.member[slot] = STEER_NONE;
	attach(&group);
	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++) {
		const struct packet packet = to_slot(slot);
		uint16_t index = table.member[slot];

		expect_at(&group, &packet, index == STEER_NONE ? SINK : index);
	}
	expect_at(&group, &gsi, GSI);
	for (uint32_t index = 0; index < MEMBERS; index++) {
		const struct packet probe = probe_of(index);

		expect_at(&group, &probe, index);
	}
	expect_nothing(&group);
	close_group(&group);
}

static void test_group_ipv4(void **state)
{
	enter_new_netns(state);
	check_group(AF_INET);
}

static void test_group_ipv6(void **state)
{
	enter_new_netns(state);
	check_group(AF_INET6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),	   cmocka_unit_test(test_order),
		cmocka_unit_test(test_scattered),  cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_group_ipv4), cmocka_unit_test(test_group_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
