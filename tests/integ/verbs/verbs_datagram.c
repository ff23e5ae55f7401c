/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * UD and UC queue pairs through the stock library: the data and the network header that a receiver
 * gets, address handles, Q_Keys, and the errors of wrong requests.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	GRH = 40,
	IPV4_AT = 20,
	FROM = 0, /* offsets in the buffer of a fixture */
	TO = 64 << 10,
};

static struct verbs_fixture here, there;
static struct ibv_qp *sender, *receiver;
static struct ibv_ah *ah;

static int set_up(void **state)
{
	(void)state;
	fixture_open(&here);
	fixture_open(&there);
	sender = fixture_qp(&here, IBV_QPT_UD, NULL);
	receiver = fixture_qp(&there, IBV_QPT_UD, NULL);
	fixture_connect(sender, 0);
	fixture_connect(receiver, 0);
	ah = fixture_ah(&here, the_gid_index(), NULL);
	for (size_t i = 0; i < TO; i++)
		here.bytes[FROM + i] = (uint8_t)(i * 7 + (i >> 8));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (ah)
		assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(sender), 0);
	assert_int_equal(ibv_destroy_qp(receiver), 0);
	fixture_close(&here);
	fixture_close(&there);
	return 0;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static uint16_t sum_of(const uint8_t *bytes, int count)
{
	uint32_t sum = 0;

	for (int i = 0; i < count; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Checks the header in front of a datagram of length bytes, sent from this GID to itself. */
static void check_header(const uint8_t *header, const union ibv_gid *gid, size_t length)
{
	/* UDP, BTH, DETH, ImmDt, payload and pad, ICRC */
	size_t udp = 8 + 12 + 8 + 4 + ((length + 3) & ~3u) + 4;

	if (is_ipv4(gid)) {
		const uint8_t *ip = header + IPV4_AT;

		assert_int_equal(ip[0], 0x45);
		assert_int_equal(ip[2] << 8 | ip[3], 20 + udp);
		assert_int_equal(ip[9], 17);
		assert_true(ip[8] > 0);
		assert_int_equal(sum_of(ip, 20), 0xffff);
		assert_memory_equal(ip + 12, gid->raw + 12, 4);
		assert_memory_equal(ip + 16, gid->raw + 12, 4);
	} else {
		assert_int_equal(header[0] >> 4, 6);
		assert_int_equal(header[4] << 8 | header[5], udp);
		assert_int_equal(header[6], 17);
		assert_true(header[7] > 0);
		assert_memory_equal(header + 8, gid->raw, 16);
		assert_memory_equal(header + 24, gid->raw, 16);
	}
}

/*
 * RoCE has no service level; adapters return in its place the type of the network that the datagram
 * arrived on, and UCX up to 1.18 drops other values.
 */
static int kind_of_network(const union ibv_gid *gid)
{
	return is_ipv4(gid) ? 2 : 1;
}

/* A UD queue pair receives datagrams at all addresses of the device. */
static void datagrams_of_every_size(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 3, 4, 1023, 1024, 2048, 4095, 4096 };
	uint8_t index = 0;
	union ibv_gid gid;

	(void)state;
	for (; index < 16; index++) {
		struct ibv_ah *way;

		assert_int_equal(ibv_query_gid(the_context(), 1, index, &gid), 0);
		if (!gid.global.interface_id)
			continue;
		way = fixture_ah(&here, index, NULL);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct ibv_wc wc;

			memset(there.bytes + TO, 0xee, GRH + sizes[i] + 8);
			assert_int_equal(fixture_post_recv(&there, receiver, i, TO, GRH + 4096), 0);
			assert_int_equal(fixture_post_datagram(sender, way, receiver->qp_num,
							       100 + i,
							       fixture_sge(&here, FROM, sizes[i])),
					 0);
			wc = fixture_expect(here.cq, 100 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_SEND);
			wc = fixture_expect(there.cq, i, IBV_WC_SUCCESS);
			assert_int_equal(wc.opcode, IBV_WC_RECV);
			assert_int_equal(wc.byte_len, GRH + sizes[i]);
			assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
			assert_int_equal(ntohl(wc.imm_data), 100 + i);
			assert_int_equal(wc.src_qp, sender->qp_num);
			assert_int_equal(wc.qp_num, receiver->qp_num);
			assert_int_equal(wc.sl, kind_of_network(&gid));
			assert_int_equal(wc.pkey_index, 0);
			check_header(there.bytes + TO, &gid, sizes[i]);
			assert_memory_equal(there.bytes + TO + GRH, here.bytes + FROM, sizes[i]);
			assert_int_equal(there.bytes[TO + GRH + sizes[i]], 0xee);
		}
		assert_int_equal(ibv_destroy_ah(way), 0);
	}
}

/* The extended way to read a completion returns the network type as well. */
static void kind_of_network_extended(void **state)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(the_context(), &attr);
	struct ibv_poll_cq_attr poll_attr = { 0 };
	struct verbs_fixture fixture = there;
	struct ibv_qp *qp;
	union ibv_gid gid;
	int result;

	(void)state;
	assert_non_null(cq);
	fixture.cq = ibv_cq_ex_to_cq(cq);
	qp = fixture_qp(&fixture, IBV_QPT_UD, NULL);
	fixture_connect(qp, 0);
	for (uint8_t index = 0; index < 16; index++) {
		struct ibv_ah *way;

		assert_int_equal(ibv_query_gid(the_context(), 1, index, &gid), 0);
		if (!gid.global.interface_id)
			continue;
		way = fixture_ah(&here, index, NULL);
		assert_int_equal(fixture_post_recv(&there, qp, index, TO, GRH + 8), 0);
		assert_int_equal(fixture_post_datagram(sender, way, qp->qp_num, 1,
						       fixture_sge(&here, FROM, 8)),
				 0);
		fixture_expect(here.cq, 1, IBV_WC_SUCCESS);
		result = ibv_start_poll(cq, &poll_attr);
		for (int i = 0; i < PATIENCE_MS && result == ENOENT; i++) {
			usleep(1000);
			result = ibv_start_poll(cq, &poll_attr);
		}
		assert_int_equal(result, 0);
		assert_int_equal(cq->wr_id, index);
		assert_int_equal(ibv_wc_read_sl(cq), kind_of_network(&gid));
		ibv_end_poll(cq);
		assert_int_equal(ibv_destroy_ah(way), 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(fixture.cq), 0);
}

static void answer_by_the_header(void **state)
{
	struct ibv_ah *back;
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(fixture_post_recv(&there, receiver, 1, TO, GRH + 100), 0);
	assert_int_equal(fixture_post_recv(&here, sender, 2, TO, GRH + 100), 0);
	assert_int_equal(fixture_post_datagram(sender, ah, receiver->qp_num, 3,
					       fixture_sge(&here, FROM, 100)),
			 0);
	wc = fixture_expect(there.cq, 1, IBV_WC_SUCCESS);
	fixture_expect(here.cq, 3, IBV_WC_SUCCESS);
	back = ibv_create_ah_from_wc(there.pd, &wc, (struct ibv_grh *)(there.bytes + TO), 1);
	assert_non_null(back);
	assert_int_equal(fixture_post_datagram(receiver, back, wc.src_qp, 4,
					       fixture_sge(&there, TO + GRH, 100)),
			 0);
	fixture_expect(here.cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(here.bytes + TO + GRH, here.bytes + FROM, 100);
	assert_int_equal(ibv_destroy_ah(back), 0);
}

static int send_with_qkey(uint32_t qkey, uint64_t wr_id)
{
	struct ibv_sge sge = fixture_sge(&here, FROM, 8);
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = receiver->qp_num;
	wr.wr.ud.remote_qkey = qkey;
	return ibv_post_send(sender, &wr, &bad);
}

/*
 * rule S14 test: a datagram with a wrong Q_Key is dropped; if the highest bit of a request's Q_Key
 * is set, the Q_Key of the queue pair is sent.
 */
static void qkeys(void **state)
{
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(fixture_post_recv(&there, receiver, 1, TO, GRH + 8), 0);
	assert_int_equal(send_with_qkey(FIXTURE_QKEY + 1, 10), 0);
	fixture_expect(here.cq, 10, IBV_WC_SUCCESS);
	fixture_expect_nothing(there.cq);
	assert_int_equal(send_with_qkey(0x80000000, 11), 0);
	fixture_expect(here.cq, 11, IBV_WC_SUCCESS);
	wc = fixture_expect(there.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
}

/* Datagrams that do not fit, or that find no posted receive, are lost; no others are. */
static void losses(void **state)
{
	(void)state;
	assert_int_equal(
		fixture_post_datagram(sender, ah, receiver->qp_num, 1, fixture_sge(&here, FROM, 8)),
		0);
	fixture_expect(here.cq, 1, IBV_WC_SUCCESS);
	fixture_expect_nothing(there.cq);
	assert_int_equal(fixture_post_recv(&there, receiver, 2, TO, GRH + 8), 0);
	assert_int_equal(
		fixture_post_datagram(sender, ah, receiver->qp_num, 3, fixture_sge(&here, FROM, 9)),
		0);
	fixture_expect(here.cq, 3, IBV_WC_SUCCESS);
	fixture_expect_nothing(there.cq);
	assert_int_equal(
		fixture_post_datagram(sender, ah, receiver->qp_num, 4, fixture_sge(&here, FROM, 8)),
		0);
	fixture_expect(here.cq, 4, IBV_WC_SUCCESS);
	fixture_expect(there.cq, 2, IBV_WC_SUCCESS);
}

/*
 * A request that is too long, or of an operation that UD does not have, moves the queue pair to
 * SQE, from which it can recover.
 */
static void bad_requests_and_sqe(void **state)
{
	struct ibv_sge sge = fixture_sge(&here, FROM, 8);
	struct ibv_send_wr read = { .wr_id = 5,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_READ },
			   *bad;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };
	struct ibv_qp_init_attr init;

	(void)state;
	assert_int_equal(fixture_post_datagram(sender, ah, receiver->qp_num, 1,
					       fixture_sge(&here, FROM, 4097)),
			 0);
	fixture_expect(here.cq, 1, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(ibv_query_qp(sender, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_SQE);
	assert_int_equal(
		fixture_post_datagram(sender, ah, receiver->qp_num, 2, fixture_sge(&here, FROM, 8)),
		0);
	fixture_expect(here.cq, 2, IBV_WC_WR_FLUSH_ERR);
	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_SQE;
	assert_int_equal(ibv_modify_qp(sender, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
	assert_int_equal(fixture_post_recv(&there, receiver, 3, TO, GRH + 8), 0);
	assert_int_equal(
		fixture_post_datagram(sender, ah, receiver->qp_num, 4, fixture_sge(&here, FROM, 8)),
		0);
	fixture_expect(here.cq, 4, IBV_WC_SUCCESS);
	fixture_expect(there.cq, 3, IBV_WC_SUCCESS);

	assert_int_equal(ibv_post_send(sender, &read, &bad), 0);
	fixture_expect(here.cq, 5, IBV_WC_LOC_QP_OP_ERR);
}

/* Waiting requests keep the address handle, which the application may destroy. */
static void handle_destroyed_while_in_use(void **state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };

	(void)state;
	assert_int_equal(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(fixture_post_recv(&there, receiver, i, TO, GRH + 8), 0);
		assert_int_equal(fixture_post_datagram(sender, ah, receiver->qp_num, 10 + i,
						       fixture_sge(&here, FROM, 8)),
				 0);
	}
	assert_int_equal(ibv_destroy_ah(ah), 0);
	ah = NULL;
	fixture_expect_nothing(here.cq);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
	for (uint64_t i = 0; i < 3; i++) {
		fixture_expect(here.cq, 10 + i, IBV_WC_SUCCESS);
		fixture_expect(there.cq, i, IBV_WC_SUCCESS);
	}
	/* A queue that is reset with requests in it releases their address handles. */
	ah = fixture_ah(&here, the_gid_index(), NULL);
	attr.qp_state = IBV_QPS_SQD;
	assert_int_equal(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
	assert_int_equal(
		fixture_post_datagram(sender, ah, receiver->qp_num, 1, fixture_sge(&here, FROM, 8)),
		0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	ah = NULL;
	attr.qp_state = IBV_QPS_RESET;
	assert_int_equal(ibv_modify_qp(sender, &attr, IBV_QP_STATE), 0);
	fixture_expect_nothing(here.cq);
}

static void posts_with_wrong_addresses(void **state)
{
	struct ibv_ah *foreign = fixture_ah(&there, the_gid_index(), NULL);

	(void)state;
	assert_int_equal(fixture_post_datagram(sender, NULL, receiver->qp_num, 1,
					       fixture_sge(&here, FROM, 8)),
			 EINVAL);
	assert_int_equal(fixture_post_datagram(sender, foreign, receiver->qp_num, 1,
					       fixture_sge(&here, FROM, 8)),
			 EINVAL);
	assert_int_equal(
		fixture_post_datagram(sender, ah, 0x1000000, 1, fixture_sge(&here, FROM, 8)),
		EINVAL);
	fixture_expect_nothing(here.cq);
	assert_int_equal(ibv_destroy_ah(foreign), 0);
}

static int ah_errno(const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr copy = *attr;
	struct ibv_ah *handle;

	errno = 0;
	handle = ibv_create_ah(here.pd, &copy);
	if (!handle)
		return errno;
	assert_int_equal(ibv_destroy_ah(handle), 0);
	return 0;
}

static void address_handles(void **state)
{
	struct ibv_ah_attr good = { .is_global = 1,
				    .port_num = 1,
				    .grh.sgid_index = the_gid_index() };
	struct ibv_ah_attr attr;

	(void)state;
	assert_int_equal(ibv_query_gid(the_context(), 1, the_gid_index(), &good.grh.dgid), 0);
	assert_int_equal(ah_errno(&good), 0);
	attr = good;
	attr.grh.hop_limit = 3;
	attr.grh.traffic_class = 8;
	attr.grh.flow_label = 77;
	assert_int_equal(ah_errno(&attr), 0);
	attr = good;
	attr.is_global = 0; /* which RoCE does not have */
	assert_int_equal(ah_errno(&attr), EINVAL);
	attr = good;
	attr.port_num = 2;
	assert_int_equal(ah_errno(&attr), EINVAL);
	attr = good;
	attr.grh.sgid_index = 15; /* empty */
	assert_int_equal(ah_errno(&attr), EINVAL);
	attr = good;
	attr.grh.sgid_index = 16;
	assert_int_equal(ah_errno(&attr), EINVAL);
	attr = good;
	memset(&attr.grh.dgid, 0, sizeof(attr.grh.dgid));
	assert_int_equal(ah_errno(&attr), EINVAL);
	attr = good;
	memset(&attr.grh.dgid, is_ipv4(&good.grh.dgid) ? 0xfd : 0, sizeof(attr.grh.dgid));
	attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = is_ipv4(&good.grh.dgid) ? 0xfd : 0xff;
	assert_int_equal(ah_errno(&attr), EINVAL);
}

/* Unreliable connections: SEND and WRITE, with immediate, over several packets. */
static void unreliable_connection(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						      IBV_WR_RDMA_WRITE,
						      IBV_WR_RDMA_WRITE_WITH_IMM };
	struct ibv_qp *a = fixture_qp(&here, IBV_QPT_UC, NULL),
		      *b = fixture_qp(&there, IBV_QPT_UC, NULL);
	struct ibv_sge sge = fixture_sge(&here, FROM, 5000);

	(void)state;
	fixture_connect(a, b->qp_num);
	fixture_connect(b, a->qp_num);
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_send_wr wr = { .wr_id = i,
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = opcodes[i],
					  .imm_data = htonl(77),
					  .send_flags = IBV_SEND_SIGNALED },
				   *bad;
		struct ibv_wc wc;

		wr.wr.rdma.remote_addr = (uintptr_t)there.bytes + TO;
		wr.wr.rdma.rkey = there.mr->rkey;
		memset(there.bytes + TO, 0, 5000);
		assert_int_equal(fixture_post_recv(&there, b, 10 + i, TO, 5000), 0);
		assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
		fixture_expect(here.cq, i, IBV_WC_SUCCESS);
		if (opcodes[i] == IBV_WR_RDMA_WRITE) {
			fixture_expect_nothing(there.cq);
		} else {
			/* The WRITE with immediate gets the receive that the WRITE has left. */
			wc = fixture_expect(there.cq, i < 3 ? 10 + i : 9 + i, IBV_WC_SUCCESS);
			assert_int_equal(wc.byte_len, 5000);
			assert_int_equal(wc.wc_flags, i & 1 ? IBV_WC_WITH_IMM : 0);
		}
		assert_memory_equal(there.bytes + TO, here.bytes + FROM, 5000);
	}
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(datagrams_of_every_size, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kind_of_network_extended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answer_by_the_header, set_up, tear_down),
		cmocka_unit_test_setup_teardown(qkeys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(losses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bad_requests_and_sqe, set_up, tear_down),
		cmocka_unit_test_setup_teardown(handle_destroyed_while_in_use, set_up, tear_down),
		cmocka_unit_test_setup_teardown(posts_with_wrong_addresses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(address_handles, set_up, tear_down),
		cmocka_unit_test_setup_teardown(unreliable_connection, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
