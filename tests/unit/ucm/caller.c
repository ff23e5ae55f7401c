/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "caller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include <infiniband/ib.h>

#include "ucm/cmd/command.h"
#include "world.h"

#define CALL(fd, command, body, out) \
	world_call(fd, RDMA_USER_CM_CMD_##command, &(body), sizeof(body), out)

static void fill(const char *text, uint16_t port, struct sockaddr_in6 *to)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (text)
		assert_int_equal(inet_pton(AF_INET, text, &address.sin_addr), 1);
	memcpy(to, &address, sizeof(address));
}

static int create(int fd, uint16_t space, uint8_t qp_type, uint64_t uid, uint32_t *id)
{
	struct rdma_ucm_create_id_resp answer;
	struct rdma_ucm_create_id in = {
		.uid = uid,
		.response = (uintptr_t)&answer,
		.ps = space,
		.qp_type = qp_type,
	};
	int error = CALL(fd, CREATE_ID, in, sizeof(answer));

	if (!error)
		*id = answer.id;
	return error;
}

int create_id(int fd, uint16_t space, uint64_t uid, uint32_t *id)
{
	return create(fd, space, QP_RC, uid, id);
}

int create_ib_id(int fd, uint8_t qp_type, uint32_t *id)
{
	return create(fd, RDMA_PS_IB, qp_type, 1, id);
}

int destroy_id(int fd, uint32_t id, uint32_t *reported)
{
	struct rdma_ucm_destroy_id_resp answer = { 0 };
	struct rdma_ucm_destroy_id in = { .response = (uintptr_t)&answer, .id = id };
	int error = CALL(fd, DESTROY_ID, in, sizeof(answer));

	if (reported)
		*reported = answer.events_reported;
	return error;
}

int bind_id(int fd, uint32_t id, const char *address, uint16_t port)
{
	struct rdma_ucm_bind_ip in = { .id = id };

	fill(address, port, &in.addr);
	return CALL(fd, BIND_IP, in, 0);
}

int bind_ipv6_id(int fd, uint32_t id, uint16_t port)
{
	struct rdma_ucm_bind_ip in = {
		.id = id,
		.addr = { .sin6_family = AF_INET6, .sin6_port = htons(port) },
	};

	return CALL(fd, BIND_IP, in, 0);
}

int listen_id(int fd, uint32_t id, uint32_t backlog)
{
	struct rdma_ucm_listen in = { .id = id, .backlog = backlog };

	return CALL(fd, LISTEN, in, 0);
}

int resolve_id(int fd, uint32_t id, const char *address, uint16_t port)
{
	struct rdma_ucm_resolve_ip in = { .id = id, .timeout_ms = 2000 };

	fill(address, port, &in.dst_addr);
	return CALL(fd, RESOLVE_IP, in, 0);
}

int resolve_ib_id(int fd, uint32_t id, const char *address, uint16_t port)
{
	struct sockaddr_ib to = {
		.sib_family = AF_IB,
		.sib_pkey = 0xffff,
		.sib_sid = htobe64((uint64_t)RDMA_PS_IB << 16 | port),
		.sib_sid_mask = UINT64_MAX,
	};
	struct rdma_ucm_resolve_addr in = { .id = id, .timeout_ms = 2000, .dst_size = sizeof(to) };
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };

	assert_int_equal(inet_pton(AF_INET, address, gid + 12), 1);
	memcpy(&to.sib_addr, gid, sizeof(gid));
	memcpy(&in.dst_addr, &to, sizeof(to));
	return CALL(fd, RESOLVE_ADDR, in, 0);
}

int resolve_route_id(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route in = { .id = id, .timeout_ms = 2000 };

	return CALL(fd, RESOLVE_ROUTE, in, 0);
}

int query_route_id(int fd, uint32_t id, struct rdma_ucm_query_route_resp *answer)
{
	struct rdma_ucm_destroy_id in = { .response = (uintptr_t)answer, .id = id };

	return CALL(fd, QUERY_ROUTE, in, sizeof(*answer));
}

uint16_t port_of(int fd, uint32_t id)
{
	struct rdma_ucm_query_route_resp answer;
	struct sockaddr_in address;

	assert_int_equal(query_route_id(fd, id, &answer), 0);
	memcpy(&address, &answer.src_addr, sizeof(address));
	return ntohs(address.sin_port);
}

/* Two queue pairs of one device never have the same number at one time. */
uint32_t qpn_of(uint32_t id)
{
	return 0x012300 + id;
}

uint8_t said_rnr_retry = 5;

static void fill_param(struct rdma_ucm_conn_param *param, const void *data, uint8_t length)
{
	param->responder_resources = 3;
	param->initiator_depth = 2;
	param->retry_count = 6;
	param->rnr_retry_count = said_rnr_retry;
	param->valid = 1;
	param->private_data_len = length;
	if (length)
		memcpy(param->private_data, data, length);
}

int connect_id(int fd, uint32_t id, const void *data, uint8_t length)
{
	struct rdma_ucm_connect in = { .id = id };

	fill_param(&in.conn_param, data, length);
	in.conn_param.qp_num = qpn_of(id);
	return CALL(fd, CONNECT, in, 0);
}

int accept_id(int fd, uint32_t id, uint64_t uid, const void *data, uint8_t length)
{
	struct rdma_ucm_accept in = { .id = id, .uid = uid };

	fill_param(&in.conn_param, data, length);
	in.conn_param.qp_num = qpn_of(id);
	return CALL(fd, ACCEPT, in, 0);
}

int establish_id(int fd, uint32_t id)
{
	struct rdma_ucm_accept in = { .id = id };

	return CALL(fd, ACCEPT, in, 0);
}

int reject_id(int fd, uint32_t id, uint8_t reason, const void *data, uint8_t length)
{
	struct rdma_ucm_reject in = { .id = id, .reason = reason, .private_data_len = length };

	if (length)
		memcpy(in.private_data, data, length);
	return CALL(fd, REJECT, in, 0);
}

int disconnect_id(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect in = { .id = id };

	return CALL(fd, DISCONNECT, in, 0);
}

int notify_id(int fd, uint32_t id, uint32_t event)
{
	struct rdma_ucm_notify in = { .id = id, .event = event };

	return CALL(fd, NOTIFY, in, 0);
}

int option_id(int fd, uint32_t id, uint32_t level, uint32_t name, const void *value, uint32_t bytes)
{
	struct rdma_ucm_set_option in = {
		.optval = (uintptr_t)value,
		.id = id,
		.level = level,
		.optname = name,
		.optlen = bytes,
	};

	return CALL(fd, SET_OPTION, in, 0);
}

int init_qp_attr_id(int fd, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr)
{
	struct rdma_ucm_init_qp_attr in = {
		.response = (uintptr_t)attr,
		.id = id,
		.qp_state = state,
	};

	return CALL(fd, INIT_QP_ATTR, in, sizeof(*attr));
}

int migrate_id(int to, int from, uint32_t id, uint32_t *reported)
{
	struct rdma_ucm_migrate_resp answer = { 0 };
	struct rdma_ucm_migrate_id in = {
		.response = (uintptr_t)&answer,
		.id = id,
		.fd = (__u32)from,
	};
	int error = CALL(to, MIGRATE_ID, in, sizeof(answer));

	if (reported)
		*reported = answer.events_reported;
	return error;
}

int write_event_id(int fd, uint32_t id, uint32_t event, uint32_t status, uint64_t argument)
{
	struct ucm_write_cm_event in = {
		.id = id,
		.event = event,
		.status = status,
		.argument = argument,
	};

	return world_call(fd, UCM_CMD_WRITE_CM_EVENT, &in, sizeof(in), 0);
}

int join_id(int fd, uint32_t id, uint64_t uid, const char *group, uint16_t flags, uint32_t *handle)
{
	struct rdma_ucm_create_id_resp answer = { 0 };
	struct rdma_ucm_join_mcast in = {
		.response = (uintptr_t)&answer,
		.uid = uid,
		.id = id,
		.addr_size = sizeof(struct sockaddr_in),
		.join_flags = flags,
	};
	struct sockaddr_in address = { .sin_family = AF_INET };
	int error;

	assert_int_equal(inet_pton(AF_INET, group, &address.sin_addr), 1);
	memcpy(&in.addr, &address, sizeof(address));
	error = CALL(fd, JOIN_MCAST, in, sizeof(answer));
	*handle = answer.id;
	return error;
}

int leave_group(int fd, uint32_t handle, uint32_t *reported)
{
	struct rdma_ucm_destroy_id_resp answer = { 0 };
	struct rdma_ucm_destroy_id in = { .response = (uintptr_t)&answer, .id = handle };
	int error = CALL(fd, LEAVE_MCAST, in, sizeof(answer));

	*reported = answer.events_reported;
	return error;
}

int get_event(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event in = { .response = (uintptr_t)event };

	return CALL(fd, GET_EVENT, in, sizeof(*event));
}

int open_channel(void)
{
	int fd = world_open();

	assert_uint_in_range(fd, 0, 65535);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static short readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	poll(&poll_fd, 1, 0);
	return poll_fd.revents;
}

void expect_event(int fd, uint32_t type, int status, uint32_t id, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_event_resp unwanted;

	if (!event)
		event = &unwanted;
	assert_int_equal(readable(fd), POLLIN);
	assert_int_equal(get_event(fd, event), 0);
	assert_int_equal(event->event, type);
	assert_int_equal((int)event->status, status);
	assert_int_equal(event->id, id);
}

void expect_no_event(int fd)
{
	struct rdma_ucm_event_resp event;
	int error = get_event(fd, &event);

	if (!error)
		fail_msg("event %u, status %d, of id %u", event.event, (int)event.status, event.id);
	assert_int_equal(error, EAGAIN);
	assert_int_equal(readable(fd), 0);
}
