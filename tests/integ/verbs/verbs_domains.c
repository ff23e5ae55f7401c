/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Parent domains with their allocators, thread domains, and objects shared by ibv_import_*().
 */
#include "verbs_pair.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "../../../providers/uroce/infiniband/urocedv.h"

/* An allocator that counts, and returns a given result. */
static struct {
	unsigned int asked, given, freed;
	unsigned int by_resource[UROCEDV_COMPLETION_QUEUE + 1];
	enum { GIVE, USE_DEFAULT, FAIL, GIVE_MISALIGNED } answer;
	struct ibv_pd *pd;
	void *context;
} heap;

static void *give(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		  uint64_t resource)
{
	uint8_t *memory;

	heap.asked++;
	heap.pd = pd;
	heap.context = pd_context;
	assert_true(resource >= UROCEDV_SEND_QUEUE && resource <= UROCEDV_COMPLETION_QUEUE);
	heap.by_resource[resource]++;
	switch (heap.answer) {
	case USE_DEFAULT:
		return IBV_ALLOCATOR_USE_DEFAULT;
	case FAIL:
		return NULL;
	case GIVE:
	case GIVE_MISALIGNED:
		break;
	}
	memory = aligned_alloc(alignment, size + alignment);
	assert_non_null(memory);
	memset(memory, 0, size + alignment);
	heap.given++;
	return heap.answer == GIVE_MISALIGNED ? memory + 8 : memory;
}

static void take_back(struct ibv_pd *pd, void *pd_context, void *memory, uint64_t resource)
{
	assert_ptr_equal(pd, heap.pd);
	assert_ptr_equal(pd_context, heap.context);
	assert_true(resource >= UROCEDV_SEND_QUEUE && resource <= UROCEDV_COMPLETION_QUEUE);
	heap.freed++;
	free(heap.answer == GIVE_MISALIGNED ? (uint8_t *)memory - 8 : memory);
}

static struct ibv_pd *pd;
static struct ibv_td *td;

static struct ibv_pd *open_parent(int answer)
{
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_parent_domain_init_attr attr = {
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = give,
		.free = take_back,
		.pd_context = &heap,
	};
	struct ibv_pd *parent;

	memset(&heap, 0, sizeof(heap));
	heap.answer = answer;
	pd = ibv_alloc_pd(the_context());
	td = ibv_alloc_td(the_context(), &td_attr);
	assert_non_null(pd);
	assert_non_null(td);
	attr.pd = pd;
	attr.td = td;
	parent = ibv_alloc_parent_domain(the_context(), &attr);
	assert_non_null(parent);
	return parent;
}

static void close_parent(struct ibv_pd *parent)
{
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(heap.given, heap.freed);
}

static struct ibv_cq_ex *create_cq(struct ibv_pd *parent)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 100,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent,
	};

	return ibv_create_cq_ex(the_context(), &attr);
}

static struct ibv_qp *create_qp(struct ibv_pd *domain, struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 10,
			 .max_recv_wr = 10,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ibv_create_qp(domain, &attr);
}

static void queues_are_in_memory_of_the_application(void **state)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 10, .max_sge = 1 } };
	struct ibv_pd *parent = open_parent(GIVE);
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	(void)state;
	cq = ibv_cq_ex_to_cq(create_cq(parent));
	assert_non_null(cq);
	assert_int_equal(heap.by_resource[UROCEDV_COMPLETION_QUEUE], 1);
	assert_ptr_equal(heap.pd, parent);
	assert_ptr_equal(heap.context, &heap);
	assert_int_equal(ibv_resize_cq(cq, 1000), 0);
	assert_int_equal(heap.by_resource[UROCEDV_COMPLETION_QUEUE], 2);
	assert_int_equal(heap.freed, 1);
	srq = ibv_create_srq(parent, &srq_attr);
	assert_non_null(srq);
	assert_int_equal(heap.by_resource[UROCEDV_SHARED_RECEIVE_QUEUE], 1);
	qp = create_qp(parent, cq, NULL);
	assert_non_null(qp);
	assert_int_equal(heap.by_resource[UROCEDV_SEND_QUEUE], 1);
	assert_int_equal(heap.by_resource[UROCEDV_RECEIVE_QUEUE], 1);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	close_parent(parent);
}

static void an_allocator_may_decline(void **state)
{
	struct ibv_pd *parent = open_parent(USE_DEFAULT);
	struct ibv_cq *cq = ibv_cq_ex_to_cq(create_cq(parent));
	struct ibv_qp *qp = create_qp(parent, cq, NULL);

	(void)state;
	assert_non_null(qp);
	assert_true(heap.asked >= 3);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(heap.freed, 0);
	close_parent(parent);
}

static void an_allocator_may_fail(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(the_context(), 10, NULL, NULL, 0);

	(void)state;
	for (int answer = FAIL; answer <= GIVE_MISALIGNED; answer++) {
		struct ibv_pd *parent = open_parent(answer);

		errno = 0;
		assert_null(create_cq(parent));
		assert_int_equal(errno, ENOMEM);
		errno = 0;
		assert_null(create_qp(parent, cq, NULL));
		assert_int_equal(errno, ENOMEM);
		close_parent(parent);
	}
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Keys of a parent domain and of its protection domain belong to the same domain. */
static void a_parent_domain_is_its_domain(void **state)
{
	struct ibv_pd *parent = open_parent(GIVE), *kept;
	static const struct pair_options options;
	struct ibv_qp *qp, *kept_qp;
	struct ibv_mr *mr;
	struct pair pair;

	(void)state;
	pair_open(&pair, NULL);
	/* End a has a queue pair of the parent domain, and a region of its protection domain. */
	kept = pair.a.pd, kept_qp = pair.a.qp;
	pair.a.qp = qp = create_qp(parent, pair.a.cq, NULL);
	assert_non_null(qp);
	mr = ibv_reg_mr(pd, pair.a.buffer, END_BUFFER, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(to_init(qp, 0), 0);
	assert_int_equal(to_rtr(qp, pair.b.qp->qp_num, &options), 0);
	assert_int_equal(to_rts(qp, &options), 0);
	assert_int_equal(to_state(pair.b.qp, IBV_QPS_RESET), 0);
	assert_int_equal(to_init(pair.b.qp, IBV_ACCESS_REMOTE_WRITE), 0);
	assert_int_equal(to_rtr(pair.b.qp, qp->qp_num, &options), 0);
	assert_int_equal(to_rts(pair.b.qp, &options), 0);
	pair.a.buffer[5] = 5;
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1,
		 (struct ibv_sge){ (uintptr_t)pair.a.buffer, 6, mr->lkey }, pair.b.mr->rkey,
		 (uintptr_t)pair.b.buffer);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[5], 5);
	/* A key of another domain is refused. */
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 2, sge_of(&pair.a, 0, 6), pair.b.mr->rkey,
		 (uintptr_t)pair.b.buffer);
	expect_wc(&pair.a, 2, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	pair.a.pd = kept, pair.a.qp = kept_qp;
	pair_close(&pair);
	close_parent(parent);
}

static int parent_errno(const struct ibv_parent_domain_init_attr *attr)
{
	struct ibv_parent_domain_init_attr copy = *attr;
	struct ibv_pd *parent;

	errno = 0;
	parent = ibv_alloc_parent_domain(the_context(), &copy);
	if (!parent)
		return errno;
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	return 0;
}

static void domains_that_are_refused(void **state)
{
	struct ibv_pd *parent = open_parent(GIVE);
	struct ibv_td_init_attr td_attr = { .comp_mask = 1 };
	struct ibv_parent_domain_init_attr good = { .pd = pd }, bad;
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 10,
					       .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					       .parent_domain = pd };

	(void)state;
	errno = 0;
	assert_null(ibv_alloc_td(the_context(), &td_attr));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(parent_errno(&good), 0);
	bad = good, bad.pd = NULL;
	assert_int_equal(parent_errno(&bad), EINVAL);
	bad = good, bad.pd = parent;
	assert_int_equal(parent_errno(&bad), EINVAL);
	bad = good, bad.comp_mask = 1 << 7;
	assert_int_equal(parent_errno(&bad), EOPNOTSUPP);
	bad = good, bad.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	assert_int_equal(parent_errno(&bad), EINVAL);
	/* A CQ needs a parent domain; a protection domain is refused. */
	errno = 0;
	assert_null(ibv_create_cq_ex(the_context(), &cq_attr));
	assert_int_equal(errno, EINVAL);
	cq_attr.parent_domain = NULL;
	assert_null(ibv_create_cq_ex(the_context(), &cq_attr));
	assert_int_equal(errno, EINVAL);
	close_parent(parent);
}

static struct ibv_context *import(struct ibv_context *context)
{
	int fd = dup(context->cmd_fd);
	struct ibv_context *other = ibv_import_device(fd);

	assert_non_null(other);
	assert_ptr_not_equal(other, context);
	assert_int_equal(other->cmd_fd, fd);
	return other;
}

static void what_one_context_has_another_uses(void **state)
{
	struct ibv_context *context = import(the_context());
	struct ibv_pd *other_pd;
	struct ibv_mr *other_mr;
	struct pair pair;
	int fd;

	(void)state;
	pair_open(&pair, NULL);
	other_pd = ibv_import_pd(context, pair.b.pd->handle);
	assert_non_null(other_pd);
	assert_ptr_equal(other_pd->context, context);
	other_mr = ibv_import_mr(other_pd, pair.b.mr->handle);
	assert_non_null(other_mr);
	assert_int_equal(other_mr->rkey, pair.b.mr->rkey);
	assert_null(other_mr->addr);

	/* A key of the imported domain can be used with a queue pair of the original. */
	struct ibv_mr *mr = ibv_reg_mr(other_pd, pair.b.buffer + 100, 100,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	pair.a.buffer[0] = 4;
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 1), mr->rkey,
		 (uintptr_t)pair.b.buffer + 199);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	assert_int_equal(pair.b.buffer[199], 4);
	assert_int_equal(ibv_dealloc_pd(other_pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);

	ibv_unimport_mr(other_mr);
	/* The original region still works. */
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 2, sge_of(&pair.a, 0, 1), pair.b.mr->rkey,
		 (uintptr_t)pair.b.buffer);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	ibv_unimport_pd(other_pd);
	fd = context->cmd_fd;
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
	pair_close(&pair);
}

/* An object is destroyed for all holders; the others unimport it: ibv_import_pd(3). */
static void an_import_may_destroy(void **state)
{
	struct ibv_context *context = import(the_context());
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_pd *original = ibv_alloc_pd(the_context()), *other_pd;
	struct ibv_pd *another_pd = ibv_alloc_pd(the_context());
	struct ibv_dm *dm = ibv_alloc_dm(the_context(), &dm_attr), *other_dm;
	struct ibv_mr *mr, *other_mr;
	uint8_t bytes[64] = { 1, 2, 3 };

	(void)state;
	mr = ibv_reg_mr(original, bytes, sizeof(bytes), 0);
	other_pd = ibv_import_pd(context, original->handle);
	other_mr = ibv_import_mr(other_pd, mr->handle);
	other_dm = ibv_import_dm(context, dm->handle);
	assert_non_null(other_dm);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, bytes, 64), 0);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(ibv_memcpy_from_dm(bytes, other_dm, 0, 64), 0);
	assert_int_equal(bytes[2], 3);

	assert_int_equal(ibv_dealloc_pd(other_pd), EBUSY);
	assert_int_equal(ibv_dereg_mr(other_mr), 0);
	/* The destroyed region has no reference to original that this call could move. */
	assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, another_pd, NULL, 0, 0), 0);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dealloc_pd(another_pd), 0);
	assert_int_equal(ibv_dereg_mr(mr), EINVAL);
	ibv_unimport_mr(mr);
	assert_int_equal(ibv_dealloc_pd(other_pd), 0);
	assert_int_equal(ibv_dealloc_pd(original), EINVAL);
	ibv_unimport_pd(original);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_free_dm(other_dm), EINVAL);
	ibv_unimport_dm(other_dm);

	/* Now the original is destroyed first. */
	original = ibv_alloc_pd(the_context());
	other_pd = ibv_import_pd(context, original->handle);
	assert_int_equal(ibv_dealloc_pd(original), 0);
	ibv_unimport_pd(other_pd);
	assert_int_equal(ibv_close_device(context), 0);
}

static void bind_whole(struct verbs_end *end, struct ibv_mw *mw, struct ibv_mr *mr)
{
	struct ibv_mw_bind bind = { .wr_id = 9,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = mr,
						   .addr = (uintptr_t)mr->addr,
						   .length = mr->length,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } };

	assert_int_equal(ibv_bind_mw(end->qp, mw, &bind), 0);
	expect_wc(end, 9, IBV_WC_SUCCESS);
}

/* As with the kernel, unimporting destroys neither the object nor objects made in it. */
static void what_is_only_unimported_stays(void **state)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_context *context = the_context();
	struct ibv_dm *dm = ibv_alloc_dm(context, &dm_attr);
	uint32_t dm_handle = dm->handle, mr_handle, pd_handle;
	struct ibv_mr *dm_mr, *mr;
	struct ibv_mw *mw;
	struct pair pair;
	struct ibv_pd *lone = ibv_alloc_pd(context);

	(void)state;
	pd_handle = lone->handle;
	ibv_unimport_pd(lone);
	pair_open(&pair, NULL);
	dm_mr = ibv_reg_dm_mr(pair.b.pd, dm, 0, 64,
			      IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE);
	assert_non_null(dm_mr);
	ibv_unimport_dm(dm);
	mr = ibv_reg_mr(pair.b.pd, pair.b.buffer, 100, ALL_ACCESS | IBV_ACCESS_MW_BIND);
	assert_non_null(mr);
	mw = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_1);
	bind_whole(&pair.b, mw, mr);
	mr_handle = mr->handle;
	ibv_unimport_mr(mr);
	/* The peer writes through the window, and to the device's memory. */
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 1, sge_of(&pair.a, 0, 1), mw->rkey,
		 (uintptr_t)pair.b.buffer);
	expect_wc(&pair.a, 1, IBV_WC_SUCCESS);
	post_sge(&pair.a, IBV_WR_RDMA_WRITE, 2, sge_of(&pair.a, 0, 1), dm_mr->rkey, 0);
	expect_wc(&pair.a, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(dm_mr), 0);
	/* All of them still exist, and can be imported and destroyed. */
	mr = ibv_import_mr(pair.b.pd, mr_handle);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	dm = ibv_import_dm(context, dm_handle);
	assert_non_null(dm);
	assert_int_equal(ibv_free_dm(dm), 0);
	lone = ibv_import_pd(context, pd_handle);
	assert_non_null(lone);
	assert_int_equal(ibv_dealloc_pd(lone), 0);
	assert_null(ibv_import_pd(context, pd_handle));
	pair_close(&pair);
}

/*
 * No region can be created of device memory that another holder has freed; a region of a protection
 * domain keeps the domain.
 */
static void imports_of_what_is_destroyed(void **state)
{
	const int access = IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE;
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_context *context = the_context();
	struct ibv_dm *dm = ibv_alloc_dm(context, &dm_attr);
	struct ibv_dm *other_dm = ibv_import_dm(context, dm->handle);
	struct ibv_pd *original = ibv_alloc_pd(context);
	struct ibv_pd *other = ibv_import_pd(context, original->handle);
	uint8_t bytes[8];
	struct ibv_mr *mr;

	(void)state;
	assert_int_equal(ibv_free_dm(dm), 0);
	errno = 0;
	assert_null(ibv_reg_dm_mr(original, other_dm, 0, 64, access));
	assert_int_equal(errno, EINVAL);
	ibv_unimport_dm(other_dm);

	assert_int_equal(ibv_dealloc_pd(original), 0);
	mr = ibv_reg_mr(other, bytes, sizeof(bytes), 0);
	assert_non_null(mr);
	ibv_unimport_pd(other);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void *deregister(void *mr)
{
	return (void *)(intptr_t)ibv_dereg_mr(mr);
}

/* One of the holders deregisters the region; the other gets EINVAL, and must unimport it. */
static void two_holders_deregister_at_once(void **state)
{
	struct ibv_pd *original = ibv_alloc_pd(the_context());
	uint8_t bytes[8];

	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		struct ibv_mr *mr = ibv_reg_mr(original, bytes, sizeof(bytes), 0);
		struct ibv_mr *other = ibv_import_mr(original, mr->handle);
		pthread_t thread;
		void *result;
		int error;

		assert_int_equal(pthread_create(&thread, NULL, deregister, other), 0);
		error = ibv_dereg_mr(mr);
		pthread_join(thread, &result);
		assert_int_equal(error + (int)(intptr_t)result, EINVAL);
		ibv_unimport_mr(error ? mr : other);
	}
	assert_int_equal(ibv_dealloc_pd(original), 0);
}

static void imports_that_are_refused(void **state)
{
	struct ibv_context *context = import(the_context()), *alone;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *original = ibv_alloc_pd(the_context());
	struct ibv_mr *mr = ibv_reg_mr(original, &heap, sizeof(heap), 0);
	int pipes[2];

	(void)state;
	errno = 0;
	assert_null(ibv_import_pd(context, original->handle + 12345));
	assert_int_equal(errno, ENOENT);
	assert_null(ibv_import_pd(context, mr->handle));
	assert_null(ibv_import_mr(original, original->handle));
	assert_null(ibv_import_dm(context, original->handle));
	/* A context that was opened separately shares no objects. */
	alone = ibv_open_device(the_context()->device);
	assert_non_null(alone);
	assert_null(ibv_import_pd(alone, original->handle));
	/* Descriptors that do not belong to a context. */
	assert_int_equal(pipe(pipes), 0);
	assert_null(ibv_import_device(pipes[0]));
	assert_int_equal(errno, EOPNOTSUPP);
	close(pipes[0]);
	close(pipes[1]);
	errno = 0;
	assert_null(ibv_import_device(pipes[0]));
	assert_int_not_equal(errno, 0);

	assert_int_equal(ibv_close_device(alone), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(original), 0);
	assert_int_equal(ibv_close_device(context), 0);
	ibv_free_device_list(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queues_are_in_memory_of_the_application),
		cmocka_unit_test(an_allocator_may_decline),
		cmocka_unit_test(an_allocator_may_fail),
		cmocka_unit_test(a_parent_domain_is_its_domain),
		cmocka_unit_test(domains_that_are_refused),
		cmocka_unit_test(what_one_context_has_another_uses),
		cmocka_unit_test(an_import_may_destroy),
		cmocka_unit_test(what_is_only_unimported_stays),
		cmocka_unit_test(imports_of_what_is_destroyed),
		cmocka_unit_test(two_holders_deregister_at_once),
		cmocka_unit_test(imports_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
