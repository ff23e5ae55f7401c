/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"
#include "verbs/uroce.h"

struct uroce_abi uroce_abi;
bool abi_has_dropin;

/*
 * Verified against the headers of each release.  v34 has fewer slots, and v36 follows sysfs
 * pointers that uroce devices do not have; neither is supported.
 */
static const struct abi_layout layouts[] = {
	/* clang-format off */
	{
		.first_release = 37, .last_release = 48, .private_node = 34,
		.ops_release = 36, .slots = 76, .context_offset = 320, .port_attr_bytes = 52,
		.probe = "ibv_query_qp_data_in_order", .probe_node = "IBVERBS_1.14",
		.absent = "ibv_wr_opcode_str", .absent_node = "IBVERBS_PRIVATE_34",
	},
	{
		.first_release = 49, .last_release = 56, .private_node = 34,
		.ops_release = 36, .slots = 76, .context_offset = 320, .port_attr_bytes = 56,
		.qp_comp_mask = 360,
		.probe = "ibv_wr_opcode_str", .probe_node = "IBVERBS_PRIVATE_34",
		.absent = "ibv_reg_mr_ex", .absent_node = "IBVERBS_1.15",
	},
	{
		.first_release = 57, .last_release = 58, .private_node = 57,
		.ops_release = 36, .slots = 76, .context_offset = 320, .port_attr_bytes = 56,
		.qp_comp_mask = 360,
		.probe = "ibv_wr_opcode_str", .probe_node = "IBVERBS_PRIVATE_57",
		.absent = "ibv_reg_mr_ex", .absent_node = "IBVERBS_1.15",
	},
	{
		.first_release = 59, .last_release = 61, .private_node = 59,
		.ops_release = 59, .slots = 79, .context_offset = 344, .port_attr_bytes = 56,
		.qp_comp_mask = 360,
		.probe = "ibv_reg_mr_ex", .probe_node = "IBVERBS_1.15",
		.absent = "ibv_query_port_speed", .absent_node = "IBVERBS_1.16",
	},
	{
		.first_release = 62, .last_release = 63, .private_node = 59,
		.ops_release = 62, .slots = 81, .context_offset = 352, .port_attr_bytes = 56,
		.qp_comp_mask = 360,
		.probe = "ibv_query_port_speed", .probe_node = "IBVERBS_1.16",
		.absent = "ibv_alloc_buf", .absent_node = "IBVERBS_1.17",
	},
	{
		.first_release = 64, .last_release = 64, .private_node = 64,
		.ops_release = 64, .slots = 83, .context_offset = 368, .port_attr_bytes = 56,
		.qp_comp_mask = 360,
		.probe = "ibv_alloc_buf", .probe_node = "IBVERBS_1.17",
		.absent = "ibv_create_comp_cntr", .absent_node = "IBVERBS_1.18",
	},
	{
		.first_release = 65, .last_release = 65, .private_node = 65,
		.ops_release = 65, .slots = 93, .context_offset = 368, .port_attr_bytes = 56,
		.qp_comp_mask = 360,
		.probe = "ibv_create_comp_cntr", .probe_node = "IBVERBS_1.18",
		/*
		 * No .absent: the symbols that the next release adds are not known yet, so a newer
		 * release is recognised by its file name.
		 */
	},
	/* clang-format on */
};

#define LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))
#define NODE_BYTES 32

/* Offset of comp_mask in the verbs_qp of v37 to v48, whose symbols are the same. */
static unsigned int old_qp_comp_mask(unsigned int release)
{
	if (release == 0)
		return 0;
	if (release <= 43)
		return 344;
	return release == 44 ? 352 : 360;
}

/* Returns the release in a name such as libibverbs.so.1.14.44.0 (44), or 0 in any other name. */
static unsigned int parse_release(const char *file_name)
{
	const char *base = file_name ? strrchr(file_name, '/') : NULL;
	unsigned int major, minor, release;

	base = base ? base + 1 : file_name;
	if (!base || sscanf(base, "libibverbs.so.%u.%u.%u.", &major, &minor, &release) != 3)
		return 0;
	return release;
}

static const struct abi_layout *find_layout(abi_lookup lookup, void *library)
{
	char node[NODE_BYTES], entry[NODE_BYTES];
	const struct abi_layout *layout;

	for (layout = layouts; layout < layouts + LAYOUTS; layout++) {
		snprintf(node, sizeof(node), "IBVERBS_PRIVATE_%u", layout->private_node);
		snprintf(entry, sizeof(entry), "verbs_register_driver_%u", layout->private_node);
		if (lookup(library, entry, node) &&
		    lookup(library, layout->probe, layout->probe_node) &&
		    !(layout->absent && lookup(library, layout->absent, layout->absent_node)))
			return layout;
	}
	return NULL;
}

/*
 * memcpy() because ISO C forbids, and POSIX requires, the conversion of the result of dlsym() to a
 * function pointer.
 */
static bool find_function(void *function, abi_lookup lookup, void *library, const char *symbol,
			  const char *node)
{
	void *found = lookup(library, symbol, node);

	memcpy(function, &found, sizeof(found));
	return found;
}

static bool find_functions(struct uroce_abi *abi, abi_lookup lookup, void *library)
{
	char node[NODE_BYTES], entry[NODE_BYTES];

	snprintf(node, sizeof(node), "IBVERBS_PRIVATE_%u", abi->layout->private_node);
	snprintf(entry, sizeof(entry), "verbs_register_driver_%u", abi->layout->private_node);
	return find_function(&abi->init_and_alloc_context, lookup, library,
			     "_verbs_init_and_alloc_context", node) &&
	       find_function(&abi->uninit_context, lookup, library, "verbs_uninit_context", node) &&
	       find_function(&abi->set_ops, lookup, library, "verbs_set_ops", node) &&
	       find_function(&abi->open_device, lookup, library, "verbs_open_device", node) &&
	       find_function(&abi->verbs_init_cq, lookup, library, "verbs_init_cq", node) &&
	       find_function(&abi->register_driver, lookup, library, entry, node);
}

bool abi_probe(struct uroce_abi *abi, abi_lookup lookup, void *library, const char *file_name,
	       char *error, size_t error_bytes)
{
	const char *shown = file_name ? file_name : "libibverbs";
	const struct abi_layout *layout = find_layout(lookup, library);
	unsigned int release = parse_release(file_name);

	memset(abi, 0, sizeof(*abi));
	if (!layout) {
		snprintf(error, error_bytes,
			 "%s has an unsupported provider interface: there are no uroce devices; "
			 "use rdma-core %u to %u",
			 shown, layouts[0].first_release, layouts[LAYOUTS - 1].last_release);
		return false;
	}
	if (release && (release < layout->first_release || release > layout->last_release)) {
		snprintf(error, error_bytes,
			 "%s has the name of release %u but the symbols of %u to %u: there are no "
			 "uroce devices; use an unpatched rdma-core",
			 shown, release, layout->first_release, layout->last_release);
		return false;
	}
	abi->layout = layout;
	abi->release = release;
	abi->qp_comp_mask = layout->qp_comp_mask ? layout->qp_comp_mask : old_qp_comp_mask(release);
	if (abi->qp_comp_mask)
		abi->qp_comp_mask += ABI_LOCK_GROWTH;
	if (!find_functions(abi, lookup, library)) {
		snprintf(error, error_bytes,
			 "%s lacks functions of its provider interface: there are no uroce "
			 "devices; use an unpatched rdma-core",
			 shown);
		return false;
	}
	return true;
}

static void *lookup_loaded(void *library, const char *symbol, const char *node)
{
	return dlvsym(library, symbol, node);
}

/*
 * Returns the path of the file that contains the library's functions, with links resolved; the
 * caller frees it.
 */
static char *library_file(void *library)
{
	void *symbol = dlsym(library, "verbs_set_ops");
	Dl_info info;

	if (!symbol || !dladdr(symbol, &info) || !info.dli_fname)
		return NULL;
	return realpath(info.dli_fname, NULL);
}

bool abi_load(void *library)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static enum { UNTRIED, LOADED, REFUSED } state;
	char error[512];
	char *file_name;
	bool loaded;

	pthread_mutex_lock(&lock);
	if (state == UNTRIED) {
		if (!library)
			library = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
		if (library) {
			file_name = library_file(library);
			state = abi_probe(&uroce_abi, lookup_loaded, library, file_name, error,
					  sizeof(error))
					? LOADED
					: REFUSED;
			if (state == REFUSED)
				uroce_err("%s", error);
			free(file_name);
		}
	}
	loaded = state == LOADED;
	pthread_mutex_unlock(&lock);
	return loaded;
}

unsigned int abi_fill_slots(const struct abi_layout *layout, const struct abi_ops *ops,
			    void (*slots[ABI_OP_COUNT])(void))
{
	unsigned int slot = 0;

#define ABI_OP_SLOT(release, result, name, parameters) \
	if ((release) <= layout->ops_release)          \
		slots[slot++] = (void (*)(void))ops->name;
	ABI_OPS(ABI_OP_SLOT)
#undef ABI_OP_SLOT
	assert(slot == layout->slots);
	return slot;
}

void *abi_verbs_context(struct verbs_context_max *context)
{
	return (char *)&context->context - uroce_abi.layout->context_offset;
}

void abi_set_ops(struct verbs_context_max *context, const struct abi_ops *ops)
{
	void (*slots[ABI_OP_COUNT])(void) = { NULL };

	abi_fill_slots(uroce_abi.layout, ops, slots);
	uroce_abi.set_ops(abi_verbs_context(context), slots);
}

/* Offset of wr_flush in ibv_qp_ex. */
#define WR_FLUSH_OFFSET (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(abi_wr_flush))

bool abi_qp_has_flush(void)
{
	return abi_has_dropin || uroce_abi.qp_comp_mask > WR_FLUSH_OFFSET;
}

void abi_qp_set_flush(struct verbs_qp *qp, abi_wr_flush flush)
{
	memcpy(qp->bytes + WR_FLUSH_OFFSET, &flush, sizeof(flush));
}

void abi_qp_set_ex(struct verbs_qp *qp)
{
	const uint32_t has_qp_ex = 1 << 1; /* VERBS_QP_EX in libibverbs' comp_mask */

	qp->has_ex = true;
	/* If the offset is unknown nothing is written: a function pointer may be there. */
	if (uroce_abi.qp_comp_mask)
		memcpy(qp->bytes + uroce_abi.qp_comp_mask, &has_qp_ex, sizeof(has_qp_ex));
}
