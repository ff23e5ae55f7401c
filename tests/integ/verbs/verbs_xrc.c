/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * XRC through the stock library: messages that name their SRQ, with its CQ and protection domain;
 * XRC domains and how they are shared; openings of a target queue pair; and calls that must fail.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "verbs_fixture.h"

enum {
	TO = 64 << 10,
	BYTES = 3000, /* several packets */
};

static struct verbs_fixture sender, first, second; /* the last two own the SRQs */
static struct ibv_xrcd *xrcd;
static struct ibv_srq *srq[2];
static struct ibv_qp *initiator, *target;

static struct ibv_xrcd *open_domain_in(struct ibv_context *context, int fd, int flags)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = fd,
					   .oflags = flags };

	errno = 0;
	return ibv_open_xrcd(context, &attr);
}

static struct ibv_xrcd *open_domain(int fd, int flags)
{
	return open_domain_in(the_context(), fd, flags);
}

static struct ibv_srq *make_srq(struct verbs_fixture *fixture, struct ibv_xrcd *domain)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = fixture->pd,
		.xrcd = domain,
		.cq = fixture->cq,
	};
	struct ibv_srq *made = ibv_create_srq_ex(the_context(), &attr);

	assert_non_null(made);
	assert_ptr_equal(made->context, the_context());
	assert_ptr_equal(made->pd, fixture->pd);
	return made;
}

static struct ibv_qp *make_target(struct ibv_xrcd *domain)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = domain };
	struct ibv_qp *qp = ibv_create_qp_ex(domain->context, &attr);

	assert_non_null(qp);
	return qp;
}

static struct ibv_qp_open_attr open_attr_of(const struct ibv_qp *qp, struct ibv_xrcd *domain)
{
	return (struct ibv_qp_open_attr){ .comp_mask = IBV_QP_OPEN_ATTR_NUM |
						       IBV_QP_OPEN_ATTR_XRCD |
						       IBV_QP_OPEN_ATTR_TYPE,
					  .qp_num = qp->qp_num,
					  .xrcd = domain,
					  .qp_type = IBV_QPT_XRC_RECV };
}

static int set_up(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_SEND,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .cap = { .max_send_wr = 16, .max_send_sge = 1 } };

	(void)state;
	fixture_open(&sender);
	fixture_open(&first);
	fixture_open(&second);
	xrcd = fixture_xrcd(the_context());
	srq[0] = make_srq(&first, xrcd);
	srq[1] = make_srq(&second, xrcd);
	target = make_target(xrcd);
	attr.pd = sender.pd;
	attr.send_cq = sender.cq;
	initiator = ibv_create_qp_ex(the_context(), &attr);
	assert_non_null(initiator);
	fixture_connect(initiator, target->qp_num);
	fixture_connect(target, initiator->qp_num);
	for (size_t i = 0; i < BYTES; i++)
		sender.bytes[i] = (uint8_t)(i * 13);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(ibv_destroy_qp(initiator), 0);
	if (target)
		assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_destroy_srq(srq[0]), 0);
	assert_int_equal(ibv_destroy_srq(srq[1]), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	fixture_close(&sender);
	fixture_close(&first);
	fixture_close(&second);
	return 0;
}

static uint32_t number_of(struct ibv_srq *queue)
{
	uint32_t number = 0;

	assert_int_equal(ibv_get_srq_num(queue, &number), 0);
	assert_int_not_equal(number, 0);
	return number;
}

static void post(enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t srqn,
		 const struct verbs_fixture *remote)
{
	struct ibv_sge sge = fixture_sge(&sender, 0, BYTES);
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .imm_data = htonl(5),
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (remote) {
		wr.wr.rdma.remote_addr = (uintptr_t)remote->bytes + TO;
		wr.wr.rdma.rkey = remote->mr->rkey;
	}
	wr.qp_type.xrc.remote_srqn = srqn;
	assert_int_equal(ibv_post_send(initiator, &wr, &bad), 0);
}

/* A message uses the receives, the CQ and the memory of the SRQ that it names. */
static void messages_name_their_queue(void **state)
{
	struct verbs_fixture *const owner[] = { &first, &second };

	(void)state;
	for (uint64_t i = 0; i < 6; i++) {
		struct verbs_fixture *fixture = owner[i % 2];
		struct ibv_wc wc;

		memset(fixture->bytes, 0, BYTES);
		assert_int_equal(fixture_post_srq(fixture, srq[i % 2], i, 0, BYTES), 0);
		post(i < 3 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, 100 + i, number_of(srq[i % 2]),
		     NULL);
		wc = fixture_expect(fixture->cq, i, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, target->qp_num);
		assert_int_equal(wc.byte_len, BYTES);
		assert_int_equal(wc.wc_flags, i < 3 ? 0 : IBV_WC_WITH_IMM);
		assert_memory_equal(fixture->bytes, sender.bytes, BYTES);
		wc = fixture_expect(sender.cq, 100 + i, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, initiator->qp_num);
	}
	fixture_expect_nothing(first.cq);
	fixture_expect_nothing(second.cq);
}

static void one_sided(void **state)
{
	(void)state;
	post(IBV_WR_RDMA_WRITE, 1, number_of(srq[0]), &first);
	fixture_expect(sender.cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(first.bytes + TO, sender.bytes, BYTES);
	assert_int_equal(fixture_post_srq(&second, srq[1], 2, 0, 1), 0);
	post(IBV_WR_RDMA_WRITE_WITH_IMM, 3, number_of(srq[1]), &second);
	fixture_expect(sender.cq, 3, IBV_WC_SUCCESS);
	fixture_expect(second.cq, 2, IBV_WC_SUCCESS);
	memset(first.bytes + TO, 0x77, BYTES);
	post(IBV_WR_RDMA_READ, 4, number_of(srq[0]), &first);
	fixture_expect(sender.cq, 4, IBV_WC_SUCCESS);
	assert_memory_equal(first.bytes + TO, sender.bytes, BYTES);
}

/* An R_Key must be of the protection domain of the SRQ that the request names. */
static void keys_of_another_queue(void **state)
{
	(void)state;
	post(IBV_WR_RDMA_WRITE, 1, number_of(srq[1]), &first);
	fixture_expect(sender.cq, 1, IBV_WC_REM_ACCESS_ERR);
}

static void no_such_queue(void **state)
{
	struct ibv_xrcd *elsewhere = fixture_xrcd(the_context());
	struct ibv_srq *foreign = make_srq(&first, elsewhere);

	(void)state;
	assert_int_equal(fixture_post_srq(&first, foreign, 1, 0, BYTES), 0);
	post(IBV_WR_SEND, 1, number_of(foreign), NULL);
	fixture_expect(sender.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	fixture_expect_nothing(first.cq);
	assert_int_equal(ibv_destroy_srq(foreign), 0);
	assert_int_equal(ibv_close_xrcd(elsewhere), 0);
}

/* An SRQ may be destroyed while target queue pairs of its domain exist; then its number is unknown.
 */
static void queue_destroyed_meanwhile(void **state)
{
	uint32_t number = number_of(srq[0]);

	(void)state;
	assert_int_equal(ibv_destroy_srq(srq[0]), 0);
	srq[0] = make_srq(&first, xrcd);
	assert_int_not_equal(number_of(srq[0]), number);
	assert_int_equal(fixture_post_srq(&first, srq[0], 1, 0, BYTES), 0);
	post(IBV_WR_SEND, 1, number, NULL);
	fixture_expect(sender.cq, 1, IBV_WC_REM_INV_REQ_ERR);
}

/* As with a queue pair, the completions of a destroyed SRQ are removed; those of others stay. */
static void completions_go_with_their_queue(void **state)
{
	struct ibv_srq *other = make_srq(&first, xrcd);

	(void)state;
	assert_int_equal(fixture_post_srq(&first, srq[0], 1, 0, BYTES), 0);
	assert_int_equal(fixture_post_srq(&first, other, 2, 0, BYTES), 0);
	post(IBV_WR_SEND, 3, number_of(srq[0]), NULL);
	post(IBV_WR_SEND, 4, number_of(other), NULL);
	fixture_expect(sender.cq, 3, IBV_WC_SUCCESS);
	fixture_expect(sender.cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_srq(srq[0]), 0);
	fixture_expect(first.cq, 2, IBV_WC_SUCCESS);
	fixture_expect_nothing(first.cq);
	assert_int_equal(ibv_destroy_srq(other), 0);
	srq[0] = make_srq(&first, xrcd);
}

/* The target exists until its last opening is closed; each opening gets its events. */
static void openings(void **state)
{
	struct ibv_qp_open_attr attr = open_attr_of(target, xrcd);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr asked;
	struct ibv_qp *other;

	(void)state;
	attr.comp_mask |= IBV_QP_OPEN_ATTR_CONTEXT;
	attr.qp_context = &attr;
	other = ibv_open_qp(the_context(), &attr);
	assert_non_null(other);
	assert_ptr_not_equal(other, target);
	assert_int_equal(other->qp_num, target->qp_num);
	assert_ptr_equal(other->qp_context, &attr);
	assert_int_equal(other->state, IBV_QPS_RTS);
	assert_int_equal(ibv_query_qp(other, &asked, IBV_QP_STATE, &init), 0);
	assert_int_equal(asked.dest_qp_num, initiator->qp_num);
	assert_int_equal(ibv_destroy_qp(target), 0);
	target = other;
	assert_int_equal(fixture_post_srq(&first, srq[0], 1, 0, BYTES), 0);
	post(IBV_WR_SEND, 2, number_of(srq[0]), NULL);
	fixture_expect(first.cq, 1, IBV_WC_SUCCESS);
	fixture_expect(sender.cq, 2, IBV_WC_SUCCESS);

	attr.qp_num ^= 1;
	assert_null(ibv_open_qp(the_context(), &attr));
	assert_int_equal(errno, EINVAL);
	attr.qp_num ^= 1;
	attr.qp_type = IBV_QPT_RC;
	assert_null(ibv_open_qp(the_context(), &attr));
	assert_int_equal(errno, EINVAL);
}

static void events_reach_every_opening(void **state)
{
	struct ibv_qp_open_attr attr = open_attr_of(target, xrcd);
	struct ibv_qp *other = ibv_open_qp(the_context(), &attr);
	struct pollfd fd = { .fd = the_context()->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	unsigned int told[2] = { 0 };

	(void)state;
	assert_non_null(other);
	post(IBV_WR_SEND, 1, 0xffff, NULL);
	fixture_expect(sender.cq, 1, IBV_WC_REM_INV_REQ_ERR);
	while (poll(&fd, 1, told[0] && told[1] ? 100 : PATIENCE_MS) == 1) {
		assert_int_equal(ibv_get_async_event(the_context(), &event), 0);
		if (event.event_type == IBV_EVENT_QP_REQ_ERR) {
			assert_true(event.element.qp == target || event.element.qp == other);
			told[event.element.qp == other]++;
		}
		ibv_ack_async_event(&event);
	}
	assert_int_equal(told[0], 1);
	assert_int_equal(told[1], 1);
	assert_int_equal(ibv_destroy_qp(other), 0);
}

static void domains_and_files(void **state)
{
	char path[] = "/tmp/uroce-xrc-XXXXXX";
	int fd = mkstemp(path), again;
	struct ibv_xrcd *domain[2];
	struct ibv_srq *queue;
	struct ibv_qp *qp;

	(void)state;
	assert_true(fd >= 0);
	assert_null(open_domain(-1, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(open_domain(12345, O_CREAT));
	assert_int_equal(errno, EBADF);
	assert_null(open_domain(fd, 0));
	assert_int_equal(errno, EAGAIN);
	domain[0] = open_domain(fd, O_CREAT | O_EXCL);
	assert_non_null(domain[0]);
	assert_null(open_domain(fd, O_CREAT | O_EXCL));
	assert_int_equal(errno, EINVAL);
	/* Another descriptor of the same file stands for the same domain. */
	again = open(path, O_RDONLY);
	domain[1] = open_domain(again, 0);
	assert_non_null(domain[1]);
	queue = make_srq(&first, domain[0]);
	qp = make_target(domain[1]);
	assert_int_equal(ibv_close_xrcd(domain[0]), EBUSY);
	assert_int_equal(ibv_close_xrcd(domain[1]), EBUSY);
	/* Connects the sender of this test to the new target. */
	assert_int_equal(to_state(initiator, IBV_QPS_RESET), 0);
	fixture_connect(initiator, qp->qp_num);
	fixture_connect(qp, initiator->qp_num);
	assert_int_equal(fixture_post_srq(&first, queue, 1, 0, BYTES), 0);
	post(IBV_WR_SEND, 2, number_of(queue), NULL);
	fixture_expect(first.cq, 1, IBV_WC_SUCCESS);
	fixture_expect(sender.cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(queue), 0);
	assert_int_equal(ibv_close_xrcd(domain[0]), 0);
	assert_int_equal(ibv_close_xrcd(domain[1]), 0);
	close(again);
	close(fd);
	unlink(path);
}

static void wrong_uses(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp_init_attr_ex rc = { .qp_type = IBV_QPT_RC,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = sender.pd,
					  .send_cq = sender.cq,
					  .recv_cq = sender.cq,
					  .srq = srq[0] };
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr receive = { .num_sge = 0 }, *bad_receive;

	(void)state;
	assert_int_equal(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_cq(first.cq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(first.pd), EBUSY);
	assert_null(ibv_create_qp(sender.pd, &attr));
	assert_int_equal(errno, EINVAL);
	/* An XRC queue serves only target queue pairs. */
	assert_null(ibv_create_qp_ex(the_context(), &rc));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_post_send(target, &send, &bad_send), EINVAL);
	assert_ptr_equal(bad_send, &send);
	assert_int_equal(ibv_post_recv(target, &receive, &bad_receive), EINVAL);
	assert_int_equal(ibv_post_recv(initiator, &receive, &bad_receive), EINVAL);
}

/* librdmacm creates its targets like this, and the SRQ in the protection domain of qp->pd. */
static void target_shows_its_protection_domain(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask =
						    IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD,
					    .pd = sender.pd,
					    .xrcd = xrcd };
	struct ibv_qp *qp = ibv_create_qp_ex(the_context(), &attr);

	(void)state;
	assert_non_null(qp);
	assert_ptr_equal(qp->pd, sender.pd);
	assert_null(target->pd);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* The context in which a target was created may be closed once its opening there is destroyed. */
static void target_outlives_the_context_of_its_first_opening(void **state)
{
	struct ibv_context *context = ibv_open_device(the_context()->device);
	FILE *file = tmpfile();
	struct ibv_xrcd *here = open_domain(fileno(file), O_CREAT);
	struct ibv_xrcd *there = open_domain_in(context, fileno(file), O_CREAT);
	struct ibv_qp *made = make_target(there);
	struct ibv_qp_open_attr attr = open_attr_of(made, here);
	struct ibv_qp *opened = ibv_open_qp(the_context(), &attr);

	(void)state;
	assert_non_null(opened);
	assert_int_equal(ibv_destroy_qp(made), 0);
	assert_int_equal(ibv_close_xrcd(there), 0);
	assert_int_equal(ibv_close_device(context), 0);
	fixture_connect(opened, 17);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	assert_int_equal(ibv_close_xrcd(here), 0);
	fclose(file);
}

/* The last opening that is destroyed may be of a closed context; then the context of the other one
 * is closed, too. */
static void target_ends_with_its_last_open_opening(void **state)
{
	struct ibv_context *one = ibv_open_device(the_context()->device);
	struct ibv_context *two = ibv_open_device(the_context()->device);
	FILE *file = tmpfile();
	struct ibv_xrcd *here = open_domain_in(one, fileno(file), O_CREAT);
	struct ibv_xrcd *there = open_domain_in(two, fileno(file), O_CREAT);
	struct ibv_qp *made = make_target(here);
	struct ibv_qp_open_attr attr = open_attr_of(made, there);
	struct ibv_qp *opened = ibv_open_qp(two, &attr);

	(void)state;
	assert_non_null(opened);
	fixture_connect(made, 17);
	assert_int_equal(ibv_close_device(one), 0);
	assert_int_equal(ibv_destroy_qp(opened), 0);
	assert_int_equal(ibv_close_xrcd(there), 0);
	assert_int_equal(ibv_close_device(two), 0);
	assert_int_equal(ibv_destroy_qp(made), 0);
	assert_int_equal(ibv_close_xrcd(here), 0);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_name_their_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_sided, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keys_of_another_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_such_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(queue_destroyed_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(completions_go_with_their_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(openings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(events_reach_every_opening, set_up, tear_down),
		cmocka_unit_test_setup_teardown(domains_and_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(wrong_uses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(target_shows_its_protection_domain, set_up,
						tear_down),
		cmocka_unit_test(target_outlives_the_context_of_its_first_opening),
		cmocka_unit_test(target_ends_with_its_last_open_opening),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
