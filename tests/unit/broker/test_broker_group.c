/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Order of a group's members in the broker, compared with that of the kernel, after the broker was
 * killed and after the probes of the next one.
 */
#include "link_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "broker/group.h"
#include "rand.h"

enum {
	WORKERS = 120,
	PORT = 4791,
	ROUNDS = 20,
	ENDED = 10, /* workers in a round */
	SECRET = 0x5ec2e7,
};

static struct broker_slots slots;
static struct broker_group group;
static struct steer_table table;
static struct sock_filter code[BPF_MAXINSNS];
static int member[GROUP_OWNERS]; /* by owner, or -1 */
static int sender;
static struct sockaddr_in name;

static int make_member(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static void add(unsigned int owner)
{
	member[owner] = make_member();
	assert_int_not_equal(group_add_member(&group, owner), STEER_NONE);
}

static void attach(void)
{
	struct sock_fprog program;

	memset(&program, 0, sizeof(program));
	group_fill_table(&group, &slots, &table);
	program.len = (unsigned short)steer_build(&table, code);
	program.filter = code;
	assert_true(program.len);
	if (setsockopt(member[GROUP_GSI], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
		       sizeof(program)) == 0)
		return;
	/* qemu-user and gVisor do not support the option. */
	assert_true(errno == ENOPROTOOPT || errno == EOPNOTSUPP || errno == ENOSYS);
	skip();
}

static void expect_at(uint32_t qpn, unsigned int owner)
{
	uint32_t packet[3] = { htonl(0x04000000), htonl(qpn), 0 }, seen[3];

	assert_int_equal(
		sendto(sender, packet, sizeof(packet), 0, (struct sockaddr *)&name, sizeof(name)),
		sizeof(packet));
	assert_int_equal(recv(member[owner], seen, sizeof(seen), 0), sizeof(packet));
	assert_memory_equal(packet, seen, sizeof(packet));
}

static void check(void)
{
	attach();
	expect_at(1, GROUP_GSI);
	for (unsigned int slot = 0; slot < WORKERS; slot++)
		expect_at(slot << UROCE_BROKER_SLOT_SHIFT | 16,
			  member[slot] >= 0 ? slot : GROUP_SINK);
	/* Another slot of worker 0 */
	expect_at(4000 << UROCE_BROKER_SLOT_SHIFT, member[0] >= 0 ? 0 : GROUP_SINK);
}

static void begin(void **state)
{
	enter_new_netns(state);
	name = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_true(sender >= 0);
	memset(member, -1, sizeof(member));
	slots_init(&slots);
	group_init(&group, 0);
	add(GROUP_GSI);
	add(GROUP_SINK);
	for (unsigned int slot = 0; slot < WORKERS; slot++) {
		assert_true(slots_hold(&slots, slot, slot + 1, slot));
		add(slot);
	}
	assert_true(slots_hold(&slots, 4000, 1, 0));
}

static void end(void)
{
	for (unsigned int owner = 0; owner < GROUP_OWNERS; owner++)
		if (member[owner] >= 0)
			close(member[owner]);
	close(sender);
}

static void probe(unsigned int index, uint32_t round)
{
	struct uroce_broker_probe packet = {
		.opcode = htonl(UROCE_BROKER_PROBE),
		.index = htonl(index),
		.secret = htonl(SECRET),
		.round = htonl(round),
	};

	assert_int_equal(
		sendto(sender, &packet, sizeof(packet), 0, (struct sockaddr *)&name, sizeof(name)),
		sizeof(packet));
}

/* Returns the lowest index whose probe of a round has reached the socket, or STEER_NONE. */
static unsigned int probed(int fd, uint32_t round)
{
	struct uroce_broker_probe packet;
	unsigned int index = STEER_NONE;

	while (recv(fd, &packet, sizeof(packet), 0) == sizeof(packet))
		if (packet.round == htonl(round) && ntohl(packet.index) < index)
			index = ntohl(packet.index);
	return index;
}

/*
 * The next broker has appended its members, and its sink is the last one: the sink's index plus 1
 * is the size of the group.  Probes for higher indexes reach any member, by hash, so the lowest
 * index that reaches the sink is its own.
 */
static void find_all(uint32_t round)
{
	unsigned int last;

	for (unsigned int index = 0; index < WORKERS + 8; index++)
		probe(index, round);
	last = probed(member[GROUP_SINK], round);
	assert_true(last < WORKERS + 4);
	group_init(&group, last + 1);
	assert_int_equal(group.unknown, last + 1);
	for (unsigned int owner = 0; owner < GROUP_UNKNOWN; owner++)
		if (member[owner] >= 0 && owner != GROUP_SINK)
			group_record_owner(&group, probed(member[owner], round), owner);
	group_record_owner(&group, last, GROUP_SINK);
}

/* When a broker is killed, its own members are closed, and those of workers that have ended. */
static void test_broker_dies(void **state)
{
	begin(state);
	check();
	for (unsigned int round = 0; round < ROUNDS; round++) {
		unsigned int kept[ENDED], count = 0;

		/* Slots of workers that have ended; only the old broker kept their members open. */
		for (unsigned int slot = rand_below(7); slot < WORKERS && count < ENDED; slot += 11)
			if (member[slot] >= 0)
				kept[count++] = slot;
		for (unsigned int i = 0; i < count; i++)
			slots_free(&slots, kept[i]);
		for (unsigned int i = 0; i < count; i++) {
			close(member[kept[i]]);
			member[kept[i]] = -1;
		}
		close(member[GROUP_GSI]);
		close(member[GROUP_SINK]);
		member[GROUP_GSI] = make_member();
		member[GROUP_SINK] = make_member();
		find_all(round);
		if (member[0] < 0)
			slots_free(&slots, 4000);
		assert_int_equal(group.unknown, 0);
		check();
		for (unsigned int i = 0; i < count; i++) {
			assert_true(slots_hold(&slots, kept[i], kept[i] + 1, kept[i]));
			add(kept[i]);
		}
		if (member[0] >= 0)
			assert_true(slots_hold(&slots, 4000, 1, 0));
		check();
	}
	end();
}

/* A stopped worker does not reply to probes: the program omits its slot until it does. */
static void test_unknown(void **state)
{
	(void)state;
	slots_init(&slots);
	group_init(&group, 4);
	assert_true(slots_hold(&slots, 7, 1, 7));
	group_record_owner(&group, 0, GROUP_SINK);
	group_record_owner(&group, 1, GROUP_GSI);
	group_fill_table(&group, &slots, &table);
	assert_int_equal(table.member[7], STEER_NONE);
	assert_int_equal(group.unknown, 2);
	/* A reply for an index that no member has */
	group_record_owner(&group, 4, 7);
	group_record_owner(&group, STEER_NONE, 7);
	assert_int_equal(group.unknown, 2);
	group_record_owner(&group, 2, 7);
	/* The later reply counts, even if it contradicts an earlier one. */
	group_record_owner(&group, 3, 7);
	assert_int_equal(group.unknown, 1);
	group_record_owner(&group, 3, GROUP_SINK);
	assert_int_equal(group.unknown, 2);
	assert_int_equal(group.index[7], STEER_NONE);
	group_record_owner(&group, 2, 7);
	group_fill_table(&group, &slots, &table);
	assert_int_equal(table.member[7], 2);
	assert_int_equal(table.sink, 3);
	assert_int_equal(group.index[GROUP_SINK], 3);
	group_reset_owners(&group, 3);
	assert_int_equal(group.unknown, 3);
	assert_int_equal(group.index[GROUP_GSI], STEER_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_broker_dies),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
