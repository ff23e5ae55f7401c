/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Programs have tens of thousands of objects, and often destroy them all at once: the time for each
 * object must not grow with the number of others.
 */
#include "verbs_fixture.h"

#include "growth.h"

enum { MOST = 20000 };

static struct verbs_fixture fixture;
static void *objects[MOST];

static struct ibv_qp *small_qp(enum ibv_qp_type type, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .qp_type = type,
					 .cap = { 1, srq ? 0 : 8, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(fixture.pd, &attr);

	assert_non_null(qp);
	return qp;
}

static uint64_t destroy_qps(unsigned int count)
{
	uint64_t begin = used_ns();

	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(ibv_destroy_qp(objects[i]), 0);
	return used_ns() - begin;
}

static uint64_t connected(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		struct ibv_qp *qp = objects[i] = small_qp(IBV_QPT_RC, fixture.cq, NULL);

		fixture_connect(qp, qp->qp_num);
	}
	return destroy_qps(count);
}

static void connected_queue_pairs_are_destroyed(void **state)
{
	(void)state;
	assert_linear(1250, connected);
}

static uint64_t handles(unsigned int count)
{
	uint64_t begin = used_ns();

	for (unsigned int i = 0; i < count; i++) {
		uint32_t address = htonl(INADDR_LOOPBACK + i);
		union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

		memcpy(gid.raw + 12, &address, sizeof(address));
		objects[i] = fixture_ah(&fixture, the_gid_index(), &gid);
	}
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(ibv_destroy_ah(objects[i]), 0);
	return used_ns() - begin;
}

static void address_handles_of_many_destinations_are_made(void **state)
{
	(void)state;
	assert_linear(1250, handles);
}

static uint64_t imports(unsigned int count)
{
	uint64_t used = 0, begin;

	for (unsigned int i = 0; i < count; i++) {
		objects[i] = ibv_alloc_pd(the_context());
		assert_non_null(objects[i]);
	}
	for (unsigned int i = 0; i < count; i++) {
		struct ibv_pd *pd = objects[i], *import;

		begin = used_ns();
		import = ibv_import_pd(the_context(), pd->handle);
		used += used_ns() - begin;
		assert_non_null(import);
		ibv_unimport_pd(import);
	}
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(ibv_dealloc_pd(objects[i]), 0);
	return used;
}

static void protection_domains_are_imported(void **state)
{
	(void)state;
	assert_linear(1250, imports);
}

/* ---- XRC ---- */

static uint64_t targets(unsigned int count)
{
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = xrcd };
	uint64_t used = 0, begin;

	for (unsigned int i = 0; i < count; i++) {
		objects[i] = ibv_create_qp_ex(the_context(), &attr);
		assert_non_null(objects[i]);
	}
	for (unsigned int i = 0; i < count; i++) {
		struct ibv_qp *target = objects[i], *again;
		struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM |
							      IBV_QP_OPEN_ATTR_XRCD |
							      IBV_QP_OPEN_ATTR_TYPE,
						 .qp_num = target->qp_num,
						 .xrcd = xrcd,
						 .qp_type = IBV_QPT_XRC_RECV };

		begin = used_ns();
		again = ibv_open_qp(the_context(), &open);
		used += used_ns() - begin;
		assert_non_null(again);
		assert_int_equal(ibv_destroy_qp(again), 0);
	}
	used += destroy_qps(count);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	return used;
}

static void targets_are_opened_and_destroyed(void **state)
{
	(void)state;
	assert_linear(750, targets);
}

static uint64_t openings(unsigned int count)
{
	struct ibv_xrcd *xrcd = fixture_xrcd(the_context());
	struct ibv_qp_init_attr_ex attr = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					    .xrcd = xrcd };
	struct ibv_qp *target = ibv_create_qp_ex(the_context(), &attr);
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .xrcd = xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	uint64_t used;

	assert_non_null(target);
	open.qp_num = target->qp_num;
	for (unsigned int i = 0; i < count; i++) {
		objects[i] = ibv_open_qp(the_context(), &open);
		assert_non_null(objects[i]);
	}
	used = destroy_qps(count);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	return used;
}

static void openings_of_a_target_are_closed(void **state)
{
	(void)state;
	assert_linear(1250, openings);
}

static uint64_t domains(unsigned int count)
{
	uint64_t begin = used_ns();

	for (unsigned int i = 0; i < count; i++)
		objects[i] = fixture_xrcd(the_context());
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(ibv_close_xrcd(objects[i]), 0);
	return used_ns() - begin;
}

static void xrc_domains_are_opened_and_closed(void **state)
{
	(void)state;
	assert_linear(1250, domains);
}

static int open_fixture(void **state)
{
	(void)state;
	fixture_open(&fixture);
	return 0;
}

static int close_fixture(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connected_queue_pairs_are_destroyed),
		cmocka_unit_test(address_handles_of_many_destinations_are_made),
		cmocka_unit_test(protection_domains_are_imported),
		cmocka_unit_test(targets_are_opened_and_destroyed),
		cmocka_unit_test(openings_of_a_target_are_closed),
		cmocka_unit_test(xrc_domains_are_opened_and_closed),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
