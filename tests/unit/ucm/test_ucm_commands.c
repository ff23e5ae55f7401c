/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Framing, ids and states: commands must return the same results as those of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include <infiniband/ib.h>

#include "caller.h"
#include "ucm/cmd/command.h"
#include "ucm/ucm_core.h"
#include "world.h"

/* A write that is too short, is shorter than its length field, or has no known command: EINVAL. */
static void framing(void **state)
{
	struct rdma_ucm_cmd_hdr header = { .cmd = RDMA_USER_CM_CMD_DISCONNECT, .in = 4 };
	struct rdma_ucm_destroy_id body = { .response = 0 };
	uint8_t bytes[32] = { 0 };
	int fd = open_channel();
	ssize_t result;

	(void)state;
	for (size_t length = 0; length < 8 + 4; length++) {
		memcpy(bytes, &header, sizeof(header));
		assert_true(ucm_channels.write(fd, bytes, length, &result));
		assert_int_equal(result, -1);
		assert_int_equal(errno, EINVAL);
	}
	assert_true(ucm_channels.write(fd, bytes, 12, &result));
	assert_int_equal(errno, ENOENT);
	assert_int_equal(world_call(fd, UCM_COMMANDS, &body, sizeof(body), 0), EINVAL);
	assert_int_equal(world_call(fd, UINT32_MAX, &body, sizeof(body), 0), EINVAL);
	assert_int_equal(world_call(fd, RDMA_USER_CM_CMD_GET_OPTION, &body, sizeof(body), 64),
			 ENOSYS);
	assert_int_equal(world_call(fd, UCM_CMD_RESOLVE_IB_SERVICE, &body, sizeof(body), 64),
			 ENOSYS);
	/* The response buffer is too small (and its address is NULL). */
	assert_int_equal(world_call(fd, RDMA_USER_CM_CMD_DESTROY_ID, &body, sizeof(body), 3),
			 ENOSPC);
	assert_true(world_close(fd));
	assert_false(world_close(fd));
	assert_int_equal(world_call(fd, RDMA_USER_CM_CMD_DESTROY_ID, &body, sizeof(body), 8),
			 EBADF);
}

/* A new id gets the lowest free number.  ENOENT: no such id; EINVAL: id of another channel. */
static void handles(void **state)
{
	int fd = open_channel(), other = open_channel();
	uint32_t id, reported;

	(void)state;
	for (uint32_t i = 0; i < 40; i++) {
		assert_int_equal(create_id(fd, RDMA_PS_TCP, i + 1, &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(destroy_id(other, 7, NULL), EINVAL);
	assert_int_equal(destroy_id(fd, 40, NULL), ENOENT);
	assert_int_equal(destroy_id(fd, UINT32_MAX, NULL), ENOENT);
	assert_int_equal(destroy_id(fd, 33, NULL), 0);
	assert_int_equal(destroy_id(fd, 7, &reported), 0);
	assert_int_equal(reported, 0);
	assert_int_equal(destroy_id(fd, 7, NULL), ENOENT);
	assert_int_equal(create_id(other, RDMA_PS_UDP, 1, &id), 0);
	assert_int_equal(id, 7);
	assert_int_equal(create_id(other, RDMA_PS_UDP, 1, &id), 0);
	assert_int_equal(id, 33);
	assert_int_equal(create_id(other, 0x0107, 1, &id), EINVAL);
	world_close(fd);
	assert_int_equal(create_id(other, RDMA_PS_IPOIB, 1, &id), 0);
	assert_int_equal(id, 0);
	world_close(other);
}

/* Commands in a state that does not allow them. */
static void wrong_states(void **state)
{
	const int on = 1;
	const uint8_t tos = 8;
	struct ib_uverbs_qp_attr attr;
	int fd = open_channel();
	uint32_t id, group;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(resolve_route_id(fd, id), EINVAL);
	assert_int_equal(connect_id(fd, id, NULL, 0), EINVAL);
	assert_int_equal(accept_id(fd, id, 1, NULL, 0), EINVAL);
	assert_int_equal(establish_id(fd, id), EINVAL);
	assert_int_equal(reject_id(fd, id, 0, NULL, 0), EINVAL);
	assert_int_equal(disconnect_id(fd, id), EINVAL);
	assert_int_equal(notify_id(fd, id, 4), EINVAL);
	assert_int_equal(init_qp_attr_id(fd, id, 1, &attr), EINVAL);
	assert_int_equal(join_id(fd, id, 1, "224.1.1.1", 0, &group), EINVAL);
	assert_int_equal(option_id(fd, id, 0, RDMA_OPTION_ID_TOS, &tos, 1), 0);
	assert_int_equal(option_id(fd, id, 0, RDMA_OPTION_ID_TOS, &tos, 4), EINVAL);
	assert_int_equal(option_id(fd, id, 0, RDMA_OPTION_ID_TOS, NULL, 1), EFAULT);
	assert_int_equal(option_id(fd, id, 0, 4, &on, sizeof(on)), ENOSYS);
	assert_int_equal(option_id(fd, id, 1, 1, &on, sizeof(on)), ENOSYS);
	assert_int_equal(bind_id(fd, id, "10.0.0.7", 0), EADDRNOTAVAIL);
	assert_int_equal(bind_id(fd, id, "10.0.0.1", 7471), 0);
	assert_int_equal(bind_id(fd, id, "10.0.0.1", 7471), EINVAL);
	assert_int_equal(port_of(fd, id), 7471);
	assert_int_equal(listen_id(fd, id, 0), 0);
	assert_int_equal(listen_id(fd, id, 0), EINVAL);
	assert_int_equal(option_id(fd, id, 0, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), EINVAL);
	assert_int_equal(option_id(fd, id, 0, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), EINVAL);
	assert_int_equal(resolve_id(fd, id, "10.0.0.1", 1), EINVAL);
	world_close(fd);
	assert_int_equal(world_ports(), 0);
}

/*
 * An id that is bound to an address has the device of that address; 127.0.0.0/8 belongs to the
 * loopback device.
 */
static void devices(void **state)
{
	struct rdma_ucm_query_route_resp answer;
	const char *const addresses[] = { NULL, "127.0.0.1", "127.1.2.3", "10.0.0.1" };
	const uint64_t guids[] = { 0, WORLD_GUID, WORLD_GUID, WORLD_GUID + 1 };
	int fd = open_channel();
	uint32_t id;

	(void)state;
	for (int i = 0; i < 4; i++) {
		assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
		assert_int_equal(bind_id(fd, id, addresses[i], 0), 0);
		assert_int_equal(query_route_id(fd, id, &answer), 0);
		assert_true(answer.node_guid == htobe64(guids[i]));
		assert_int_equal(answer.port_num, i > 0);
		assert_int_equal(answer.num_paths, 0);
	}
	world_close(fd);
}

/*
 * With UROCE_LOOPBACK=off no list contains the loopback device, so librdmacm would not find it: the
 * id has no device.
 */
static void no_loopback_device(void **state)
{
	struct rdma_ucm_query_route_resp answer;
	int fd = open_channel();
	uint32_t id;

	(void)state;
	world_hide_loopback(true);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(bind_id(fd, id, "127.0.0.1", 0), 0);
	assert_int_equal(query_route_id(fd, id, &answer), 0);
	assert_true(answer.node_guid == 0);
	world_hide_loopback(false);
	world_close(fd);
}

/*
 * A port belongs to one id, unless all that share it allow reuse; it is free when the id is
 * destroyed.
 */
static void ports(void **state)
{
	int fd = open_channel(), on = 1;
	uint32_t first, second;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &first), 0);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &second), 0);
	assert_int_equal(bind_id(fd, first, NULL, 7471), 0);
	assert_int_equal(bind_id(fd, second, NULL, 7471), EADDRINUSE);
	/* Binding may be repeated after a failure. */
	assert_int_equal(destroy_id(fd, first, NULL), 0);
	assert_int_equal(bind_id(fd, second, NULL, 7471), 0);
	assert_int_equal(create_id(fd, RDMA_PS_UDP, 1, &first), 0);
	assert_int_equal(bind_id(fd, first, NULL, 7471), 0);
	assert_int_equal(destroy_id(fd, first, NULL), 0);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &first), 0);
	assert_int_equal(option_id(fd, first, 0, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind_id(fd, first, NULL, 7471), EADDRINUSE);
	world_close(fd);
	assert_int_equal(world_ports(), 0);
}

/* Options that are set on a bound id apply to its port, whose number does not change. */
static void options_of_bound(void **state)
{
	const int on = 1, off = 0;
	int fd = open_channel();
	uint32_t first, second;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &first), 0);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &second), 0);
	assert_int_equal(bind_id(fd, first, NULL, 7471), 0);
	assert_int_equal(option_id(fd, second, 0, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind_id(fd, second, NULL, 7471), EADDRINUSE);
	assert_int_equal(option_id(fd, first, 0, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)), 0);
	assert_int_equal(bind_id(fd, second, NULL, 7471), 0);
	assert_int_equal(port_of(fd, first), 7471);
	assert_int_equal(world_ports(), 2);
	assert_int_equal(destroy_id(fd, first, NULL), 0);
	assert_int_equal(destroy_id(fd, second, NULL), 0);

	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &first), 0);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &second), 0);
	assert_int_equal(option_id(fd, first, 0, RDMA_OPTION_ID_AFONLY, &off, sizeof(off)), 0);
	assert_int_equal(bind_ipv6_id(fd, first, 7471), 0);
	assert_int_equal(bind_id(fd, second, NULL, 7471), EADDRINUSE);
	assert_int_equal(option_id(fd, first, 0, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
	assert_int_equal(bind_id(fd, second, NULL, 7471), 0);
	/* The IPv4 port is in use now: the call fails, and the option has no effect. */
	assert_int_equal(option_id(fd, first, 0, RDMA_OPTION_ID_AFONLY, &off, sizeof(off)),
			 EADDRINUSE);
	assert_int_equal(world_ports(), 2);
	assert_int_equal(listen_id(fd, first, 0), 0);
	assert_int_equal(listen_id(fd, second, 0), 0);
	world_close(fd);
	assert_int_equal(world_ports(), 0);
}

/* Programs may write only two types of events. */
static void written_events(void **state)
{
	struct rdma_ucm_event_resp event;
	const uint64_t argument = UINT64_C(0x123456789abcdef0);
	int fd = open_channel();
	uint32_t id, reported;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 17, &id), 0);
	for (uint32_t type = 0; type < 24; type++) {
		int error = write_event_id(fd, id, type, 5, argument);

		if (type != 18 && type != 19) {
			assert_int_equal(error, EINVAL);
			continue;
		}
		assert_int_equal(error, 0);
		expect_event(fd, type, 5, id, &event);
		assert_int_equal(event.uid, 17);
		assert_memory_equal(&event.param, &argument, sizeof(argument));
	}
	assert_int_equal(write_event_id(fd, id, UINT32_MAX, 0, 0), EINVAL);
	expect_no_event(fd);
	assert_int_equal(write_event_id(fd, id + 1, 4, 0, 0), EINVAL);
	assert_int_equal(write_event_id(fd, id + 1, 18, 0, 0), ENOENT);
	assert_int_equal(destroy_id(fd, id, &reported), 0);
	assert_int_equal(reported, 2);
	world_close(fd);
}

/* An address that cannot be opened is reported by an event; the id can be used again. */
static void resolving_fails(void **state)
{
	int fd = open_channel();
	uint32_t id;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(bind_id(fd, id, NULL, 0), 0);
	world_refuse(EPERM);
	/*
	 * 127.0.0.2 belongs to the loopback device as well; its GID has not been requested before.
	 */
	assert_int_equal(resolve_id(fd, id, "127.0.0.2", 1), 0);
	expect_event(fd, 1, -EPERM, id, NULL);
	assert_int_equal(resolve_id(fd, id, "127.0.0.2", 1), 0);
	expect_event(fd, 0, 0, id, NULL);
	world_close(fd);
}

/* As in the kernel, QUERY_ROUTE truncates AF_IB addresses to the size of its fields. */
static void ib_addresses_are_cut(void **state)
{
	const uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 };
	const uint8_t zeros[sizeof(((struct rdma_ucm_query_route_resp *)0)->reserved)] = { 0 };
	struct rdma_ucm_query_route_resp answer;
	struct sockaddr_ib address;
	int fd = open_channel();
	uint32_t id;

	(void)state;
	assert_int_equal(create_ib_id(fd, QP_RC, &id), 0);
	assert_int_equal(resolve_ib_id(fd, id, "10.0.0.1", 7471), 0);
	expect_event(fd, 0, 0, id, NULL);
	assert_int_equal(query_route_id(fd, id, &answer), 0);
	memcpy(&address, &answer.src_addr, sizeof(answer.src_addr));
	assert_int_equal(address.sib_family, AF_IB);
	assert_memory_equal(&address.sib_addr, gid, sizeof(gid));
	memcpy(&address, &answer.dst_addr, sizeof(answer.dst_addr));
	assert_int_equal(address.sib_family, AF_IB);
	assert_memory_equal(&address.sib_addr, gid, sizeof(gid));
	assert_int_equal(answer.num_paths, 0);
	assert_memory_equal(answer.reserved, zeros, sizeof(zeros));
	world_close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(framing),
		cmocka_unit_test(handles),
		cmocka_unit_test(resolving_fails),
		cmocka_unit_test(wrong_states),
		cmocka_unit_test(ports),
		cmocka_unit_test(devices),
		cmocka_unit_test(no_loopback_device),
		cmocka_unit_test(options_of_bound),
		cmocka_unit_test(written_events),
		cmocka_unit_test(ib_addresses_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
