/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A libibverbs with one device, of another provider than uroce.  Its other functions return a
 * number that the real ones would not, so that a test sees which function was called.  The version
 * script determines which release the library seems to be.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER 77

/* The used part of struct verbs_device; with the header the prototypes below would conflict. */
struct device {
	char public[664];
	const void *ops;
	int refcount;
	char more[36];
};
#define NAME_OFFSET 24

static struct device device = { .refcount = 1 };

__attribute__((constructor)) static void name_device(void)
{
	strcpy(device.public + NAME_OFFSET, "real0");
}

struct device **ibv_get_device_list(int *count);
struct device **ibv_get_device_list(int *count)
{
	struct device **list = calloc(2, sizeof(*list));

	if (!list)
		return NULL;
	list[0] = &device;
	device.refcount++;
	if (count)
		*count = 1;
	return list;
}

#define ANSWERS(name)          \
	intptr_t name(void);   \
	intptr_t name(void)    \
	{                      \
		return ANSWER; \
	}

ANSWERS(_ibv_query_gid_ex)
ANSWERS(_ibv_query_gid_table)
ANSWERS(ibv_create_ah_from_wc)
ANSWERS(ibv_create_comp_channel)
ANSWERS(ibv_destroy_comp_channel)
ANSWERS(ibv_fork_init)
ANSWERS(ibv_get_device_guid)
ANSWERS(ibv_get_device_index)
ANSWERS(ibv_get_pkey_index)
ANSWERS(ibv_import_device)
ANSWERS(ibv_init_ah_from_wc)
ANSWERS(ibv_is_fork_initialized)
ANSWERS(ibv_qp_to_qp_ex)
ANSWERS(ibv_query_gid)
ANSWERS(ibv_query_gid_type)
ANSWERS(ibv_query_pkey)
ANSWERS(ibv_resolve_eth_l2_from_gid)

/* Functions that distinguish the releases, and those that a provider looks up; never called. */
ANSWERS(ibv_alloc_buf)
ANSWERS(_verbs_init_and_alloc_context)
ANSWERS(verbs_init_cq)
ANSWERS(verbs_open_device)
ANSWERS(verbs_register_driver_64)
ANSWERS(verbs_register_driver_99)
ANSWERS(verbs_set_ops)
ANSWERS(verbs_uninit_context)
