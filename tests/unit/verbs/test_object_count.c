/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Number of objects of a device: it never exceeds the maximum that the device reports, and objects
 * that remain in a closed context, or are destroyed through an import, are subtracted once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "verbs/mr/mr.h"
#include "verbs/qp/qp.h"

/*
 * Not declared by ops.h, whose weak declarations do not make the linker extract objects from a
 * library.
 */
#define STRONG(name) extern __typeof__(*((struct abi_ops *)0)->name) uroce_##name;
STRONG(alloc_pd)
STRONG(dealloc_pd)
STRONG(import_pd)
STRONG(unimport_pd)
STRONG(reg_mr)
STRONG(dereg_mr)
STRONG(alloc_mw)
STRONG(dealloc_mw)

static const unsigned int most[UROCE_OBJECTS] = {
	[UROCE_OBJECT_PD] = UROCE_MAX_PD, [UROCE_OBJECT_MR] = UROCE_MAX_MR,
	[UROCE_OBJECT_MW] = UROCE_MAX_MW, [UROCE_OBJECT_AH] = UROCE_MAX_AH,
	[UROCE_OBJECT_CQ] = UROCE_MAX_CQ, [UROCE_OBJECT_SRQ] = UROCE_MAX_SRQ,
	[UROCE_OBJECT_QP] = UROCE_MAX_QP,
};

static struct uroce_device device;
/* Two contexts of one file, such as a context and its import. */
static struct uroce_context contexts[2];
static struct ibv_context *const first = &contexts[0].base.context;
static struct ibv_context *const second = &contexts[1].base.context;

static int set_up(void **state)
{
	(void)state;
	memset(&device, 0, sizeof(device));
	memset(contexts, 0, sizeof(contexts));
	for (int i = 0; i < 2; i++) {
		contexts[i].device = &device;
		contexts[i].file = 7;
		contexts[i].refs = 1;
	}
	return 0;
}

static void nothing_is_left(void)
{
	for (int kind = 0; kind < UROCE_OBJECTS; kind++) {
		assert_int_equal(device.objects[kind], 0);
		assert_int_equal(contexts[0].objects[kind], 0);
		assert_int_equal(contexts[1].objects[kind], 0);
	}
	assert_int_equal(contexts[0].refs, 1);
	assert_int_equal(contexts[1].refs, 1);
}

/* rule U1 test */
static void each_kind_has_its_limit(void **state)
{
	(void)state;
	for (int kind = 0; kind < UROCE_OBJECTS; kind++) {
		for (unsigned int i = 0; i < most[kind]; i++)
			assert_int_equal(
				uroce_object_add(i % 2 ? first : second, (enum uroce_object)kind),
				0);
		assert_int_equal(uroce_object_add(first, (enum uroce_object)kind), ENOMEM);
		assert_int_equal(uroce_object_add(second, (enum uroce_object)kind), ENOMEM);
	}
	for (int kind = 0; kind < UROCE_OBJECTS; kind++) {
		for (unsigned int i = 0; i < most[kind]; i++)
			uroce_object_remove(i % 2 ? first : second, (enum uroce_object)kind);
	}
	nothing_is_left();
}

static void forgotten_objects_are_not_removed_twice(void **state)
{
	(void)state;
	assert_int_equal(uroce_object_add(first, UROCE_OBJECT_QP), 0);
	assert_int_equal(uroce_object_add(first, UROCE_OBJECT_QP), 0);
	assert_int_equal(uroce_object_add(second, UROCE_OBJECT_QP), 0);
	uroce_object_move(first, second, UROCE_OBJECT_QP);
	assert_int_equal(device.objects[UROCE_OBJECT_QP], 3);
	uroce_objects_uncount_all(&contexts[0]);
	assert_int_equal(device.objects[UROCE_OBJECT_QP], 2);
	uroce_object_remove(first, UROCE_OBJECT_QP);
	assert_int_equal(device.objects[UROCE_OBJECT_QP], 2);
	uroce_object_remove(second, UROCE_OBJECT_QP);
	uroce_object_remove(second, UROCE_OBJECT_QP);
	nothing_is_left();
}

static void calls_at_the_limit(void **state)
{
	static uint8_t buffer[64];
	struct ibv_pd *pd = uroce_alloc_pd(first);
	struct ibv_mr *mr;
	struct ibv_mw *mw;

	(void)state;
	assert_non_null(pd);
	device.objects[UROCE_OBJECT_PD] = UROCE_MAX_PD;
	assert_null(uroce_alloc_pd(first));
	assert_int_equal(errno, ENOMEM);
	device.objects[UROCE_OBJECT_PD] = 1;

	mr = uroce_reg_mr(pd, buffer, sizeof(buffer), 0, 0);
	assert_non_null(mr);
	device.objects[UROCE_OBJECT_MR] = UROCE_MAX_MR;
	assert_null(uroce_reg_mr(pd, buffer, sizeof(buffer), 0, 0));
	assert_int_equal(errno, ENOMEM);
	device.objects[UROCE_OBJECT_MR] = 1;
	/* An object that is refused for another reason does not count. */
	assert_null(uroce_reg_mr(pd, NULL, sizeof(buffer), 0, 0));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(device.objects[UROCE_OBJECT_MR], 1);
	assert_int_equal(uroce_dereg_mr((struct verbs_mr *)mr), 0);

	mw = uroce_alloc_mw(pd, IBV_MW_TYPE_1);
	assert_non_null(mw);
	device.objects[UROCE_OBJECT_MW] = UROCE_MAX_MW;
	assert_null(uroce_alloc_mw(pd, IBV_MW_TYPE_2));
	assert_int_equal(errno, ENOMEM);
	device.objects[UROCE_OBJECT_MW] = 1;
	assert_int_equal(uroce_dealloc_mw(mw), 0);
	assert_int_equal(uroce_dealloc_pd(pd), 0);
	nothing_is_left();
}

/* The PD is counted in the context that created it, which may be closed by now. */
static void an_import_destroys_the_object(void **state)
{
	struct ibv_pd *pd = uroce_alloc_pd(first), *import;

	(void)state;
	import = uroce_import_pd(second, pd->handle);
	assert_non_null(import);
	assert_int_equal(device.objects[UROCE_OBJECT_PD], 1);
	uroce_unimport_pd(pd);
	assert_int_equal(device.objects[UROCE_OBJECT_PD], 1);
	assert_int_equal(contexts[0].refs, 2);
	assert_int_equal(uroce_dealloc_pd(import), 0);
	nothing_is_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_kind_has_its_limit, set_up),
		cmocka_unit_test_setup(forgotten_objects_are_not_removed_twice, set_up),
		cmocka_unit_test_setup(calls_at_the_limit, set_up),
		cmocka_unit_test_setup(an_import_destroys_the_object, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
