/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Layouts of libibverbs' private interface: how each release is recognized, which ones are refused,
 * and the slot of each operation.  The slot numbers are derived independently: they were counted in
 * the headers of the releases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "verbs/abi/abi.h"

/* A simulated library is the list of symbols that dlvsym() finds in it. */
struct symbol {
	const char *name, *node;
};

static const struct symbol private_34[] = {
	{ "verbs_register_driver_34", "IBVERBS_PRIVATE_34" },
	{ "_verbs_init_and_alloc_context", "IBVERBS_PRIVATE_34" },
	{ "verbs_uninit_context", "IBVERBS_PRIVATE_34" },
	{ "verbs_set_ops", "IBVERBS_PRIVATE_34" },
	{ "verbs_open_device", "IBVERBS_PRIVATE_34" },
	{ "verbs_init_cq", "IBVERBS_PRIVATE_34" },
};

struct library {
	unsigned int private_node;
	const struct symbol *public[6];
	const char *lacks; /* missing private function */
};

static const struct symbol data_in_order = { "ibv_query_qp_data_in_order", "IBVERBS_1.14" };
static const struct symbol opcode_str_34 = { "ibv_wr_opcode_str", "IBVERBS_PRIVATE_34" };
static const struct symbol opcode_str_57 = { "ibv_wr_opcode_str", "IBVERBS_PRIVATE_57" };
static const struct symbol reg_mr_ex = { "ibv_reg_mr_ex", "IBVERBS_1.15" };
static const struct symbol port_speed = { "ibv_query_port_speed", "IBVERBS_1.16" };
static const struct symbol alloc_buf = { "ibv_alloc_buf", "IBVERBS_1.17" };
static const struct symbol comp_cntr = { "ibv_create_comp_cntr", "IBVERBS_1.18" };

static const struct library v44 = { 34, { &data_in_order }, NULL };
static const struct library v56 = { 34, { &data_in_order, &opcode_str_34 }, NULL };
static const struct library v58 = { 57, { &data_in_order, &opcode_str_57 }, NULL };
static const struct library v61 = { 59, { &data_in_order, &reg_mr_ex }, NULL };
static const struct library v63 = { 59, { &data_in_order, &reg_mr_ex, &port_speed }, NULL };
static const struct library v64 = { 64,
				    { &data_in_order, &reg_mr_ex, &port_speed, &alloc_buf },
				    NULL };
static const struct library v65 = {
	65, { &data_in_order, &reg_mr_ex, &port_speed, &alloc_buf, &comp_cntr }, NULL
};

/*
 * Returns true if text is the pattern, whose suffix _34, if present, stands for the number: private
 * nodes and verbs_register_driver_NN differ only in their number.
 */
static bool same_but_number(const char *text, const char *pattern, unsigned int number)
{
	size_t length = strlen(pattern);
	char wanted[64];

	if (length < 3 || strcmp(pattern + length - 3, "_34") != 0)
		return strcmp(text, pattern) == 0;
	snprintf(wanted, sizeof(wanted), "%.*s_%u", (int)length - 3, pattern, number);
	return strcmp(text, wanted) == 0;
}

static void *look_up(void *handle, const char *name, const char *node)
{
	const struct library *library = handle;
	static int found;
	size_t i;

	if (library->lacks && strcmp(name, library->lacks) == 0)
		return NULL;
	for (i = 0; i < sizeof(private_34) / sizeof(private_34[0]); i++) {
		if (same_but_number(name, private_34[i].name, library->private_node) &&
		    same_but_number(node, private_34[i].node, library->private_node))
			return &found;
	}
	for (i = 0; i < 6 && library->public[i]; i++) {
		if (strcmp(name, library->public[i] -> name) == 0 &&
		    strcmp(node, library->public[i] -> node) == 0)
			return &found;
	}
	return NULL;
}

/* Size of struct ibv_qp, the beginning of struct ibv_qp_ex, on amd64. */
#define QP_ON_AMD64 160

static char error[512];

static bool probe(struct uroce_abi *abi, const struct library *library, const char *file_name)
{
	error[0] = 0;
	return abi_probe(abi, look_up, (void *)library, file_name, error, sizeof(error));
}

/*
 * Converts an offset after struct ibv_qp on amd64 to this processor, independently of the product:
 * by the public header.
 */
static unsigned int here(unsigned int on_amd64)
{
	return on_amd64 ? on_amd64 + (unsigned int)sizeof(struct ibv_qp) - QP_ON_AMD64 : 0;
}

static void each_release_has_its_layout(void **state)
{
	static const struct {
		const struct library *library;
		const char *file_name;
		unsigned int release, slots, context_offset, qp_comp_mask, port_attr_bytes;
	} rows[] = {
		{ &v44, "/l/libibverbs.so.1.14.39.0", 39, 76, 320, 344, 52 },
		{ &v44, "/l/libibverbs.so.1.14.44.0", 44, 76, 320, 352, 52 },
		{ &v44, "/l/libibverbs.so.1.14.48.0", 48, 76, 320, 360, 52 },
		{ &v44, "libibverbs.so.1", 0, 76, 320, 0, 52 },
		{ &v44, NULL, 0, 76, 320, 0, 52 },
		{ &v56, "/l/libibverbs.so.1.14.56.1", 56, 76, 320, 360, 56 },
		{ &v56, NULL, 0, 76, 320, 360, 56 },
		{ &v58, "/l/libibverbs.so.1.14.58.0", 58, 76, 320, 360, 56 },
		{ &v61, "/l/libibverbs.so.1.15.61.0", 61, 79, 344, 360, 56 },
		{ &v63, "/l/libibverbs.so.1.16.62.0", 62, 81, 352, 360, 56 },
		{ &v64, "/l/libibverbs.so.1.17.64.0", 64, 83, 368, 360, 56 },
		{ &v65, "/l/libibverbs.so.1.18.65.0", 65, 93, 368, 360, 56 },
	};
	struct uroce_abi abi;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!probe(&abi, rows[i].library, rows[i].file_name))
			fail_msg("row %zu: %s", i, error);
		assert_int_equal(abi.release, rows[i].release);
		assert_int_equal(abi.layout->slots, rows[i].slots);
		assert_int_equal(abi.layout->context_offset, rows[i].context_offset);
		assert_int_equal(abi.qp_comp_mask, here(rows[i].qp_comp_mask));
		assert_int_equal(abi.layout->port_attr_bytes, rows[i].port_attr_bytes);
		assert_true(abi.layout->context_offset <= ABI_CONTEXT_FRONT);
		assert_true(abi.qp_comp_mask + sizeof(uint32_t) <= ABI_QP_BYTES);
		assert_non_null(abi.set_ops);
		assert_non_null(abi.register_driver);
	}
}

/* Probing fails with an error of one line that names the library. */
static void assert_refused(const struct library *library, const char *file_name)
{
	struct uroce_abi abi;

	assert_false(probe(&abi, library, file_name));
	assert_null(strchr(error, '\n'));
	assert_non_null(strstr(error, file_name));
}

static void unknown_layouts_are_refused(void **state)
{
	const struct library nothing = { 0, { NULL }, NULL };
	const struct library v34 = { 34, { NULL }, NULL };
	const struct library v66 = {
		66, { &data_in_order, &reg_mr_ex, &port_speed, &alloc_buf, &comp_cntr }, NULL
	};
	/* Its symbols are newer than its private node: the table is unknown. */
	const struct library patched = {
		64, { &data_in_order, &reg_mr_ex, &port_speed, &alloc_buf, &comp_cntr }, NULL
	};
	const struct library incomplete = { 34, { &data_in_order }, "verbs_set_ops" };

	(void)state;
	assert_refused(&nothing, "/l/libibverbs.so.1.0.0");
	assert_refused(&v34, "/l/libibverbs.so.1.12.34.0");
	assert_refused(&v66, "/l/libibverbs.so.1.19.66.0");
	/* A later release may share a private node with an earlier one, as has happened. */
	assert_refused(&v65, "/l/libibverbs.so.1.19.66.0");
	assert_refused(&patched, "/l/libibverbs.so.1.17.64.0");
	assert_refused(&incomplete, "/l/libibverbs.so.1.14.44.0");
	/* v36 has v37's symbols but follows sysfs pointers of our devices. */
	assert_refused(&v44, "/l/libibverbs.so.1.14.36.0");
	/* The name and the symbols contradict each other. */
	assert_refused(&v44, "/l/libibverbs.so.1.14.56.0");
	assert_refused(&v61, "/l/libibverbs.so.1.14.47.0");
}

/* Each slot gets an address of its own, so that slots can be distinguished. */
static void fill_with_numbers(struct abi_ops *ops)
{
	uintptr_t number = 1;

	_Static_assert(sizeof(*ops) == ABI_OP_COUNT * sizeof(number), "functions only");
	for (size_t i = 0; i < ABI_OP_COUNT; i++, number++)
		memcpy((char *)ops + i * sizeof(number), &number, sizeof(number));
}

static void slots_are_where_the_releases_have_them(void **state)
{
	static const struct {
		const struct library *library;
		unsigned int advise_mr, alloc_pd, create_qp, free_context, poll_cq, post_send;
		unsigned int query_port, reg_mr, req_notify_cq, unimport_pd;
	} rows[] = {
		{ &v44, 0, 5, 19, 39, 53, 55, 60, 68, 69, 75 },
		{ &v56, 0, 5, 19, 39, 53, 55, 60, 68, 69, 75 },
		{ &v58, 0, 5, 19, 39, 53, 55, 60, 68, 69, 75 },
		{ &v61, 0, 6, 20, 41, 55, 57, 62, 70, 72, 78 },
		{ &v63, 0, 6, 20, 42, 56, 58, 63, 72, 74, 80 },
		{ &v64, 0, 7, 21, 44, 58, 60, 65, 74, 76, 82 },
		{ &v65, 0, 7, 22, 46, 62, 64, 71, 82, 84, 92 },
	};
	void (*slots[ABI_OP_COUNT])(void);
	struct abi_ops ops;
	struct uroce_abi abi;
	size_t i;

	(void)state;
	fill_with_numbers(&ops);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(slots, 0, sizeof(slots));
		assert_true(probe(&abi, rows[i].library, NULL));
		assert_int_equal(abi_fill_slots(abi.layout, &ops, slots), abi.layout->slots);
#define CHECK_SLOT(name) assert_ptr_equal(slots[rows[i].name], (void (*)(void))ops.name)
		CHECK_SLOT(advise_mr);
		CHECK_SLOT(alloc_pd);
		CHECK_SLOT(create_qp);
		CHECK_SLOT(free_context);
		CHECK_SLOT(poll_cq);
		CHECK_SLOT(post_send);
		CHECK_SLOT(query_port);
		CHECK_SLOT(reg_mr);
		CHECK_SLOT(req_notify_cq);
		CHECK_SLOT(unimport_pd);
#undef CHECK_SLOT
	}
}

/* Sizes of libibverbs' own structures, the same in all supported releases. */
static void structures_have_libibverbs_sizes(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct verbs_device), 712);
	assert_int_equal(offsetof(struct verbs_device, refcount), 672);
	assert_int_equal(offsetof(struct verbs_device, sysfs), 696);
	assert_int_equal(offsetof(struct verbs_device, core_support), 704);
	assert_int_equal(sizeof(struct verbs_device_ops), 72);
	assert_int_equal(sizeof(struct verbs_match_ent), 24);
	assert_int_equal(sizeof(struct verbs_mr), 56);
	assert_int_equal(sizeof(struct verbs_cq) - sizeof(struct ibv_cq_ex), 0);
	assert_int_equal(sizeof(struct verbs_srq) - sizeof(struct ibv_srq), 32);
	assert_int_equal(offsetof(struct verbs_context_max, context), ABI_CONTEXT_FRONT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_release_has_its_layout),
		cmocka_unit_test(unknown_layouts_are_refused),
		cmocka_unit_test(slots_are_where_the_releases_have_them),
		cmocka_unit_test(structures_have_libibverbs_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
