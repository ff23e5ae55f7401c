/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* GIDs and P_Keys of an open device. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "dropin.h"

DROPIN_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
				union ibv_gid *gid)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&ibv_query_gid) real;
	struct ibv_gid_entry entry;
	int error;

	if (!provider) {
		real = DROPIN_REAL(ibv_query_gid, "IBVERBS_1.1");
		return real ? real(context, port, index, gid) : -1;
	}
	error = provider->query_gid_entry(context, port, (uint32_t)index, &entry);
	/* ibv_query_gid() succeeds for empty entries and returns a zero GID; entry is zeroed. */
	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	*gid = entry.gid;
	return 0;
}

/* The size of the caller's struct ibv_gid_entry depends on the header it was compiled with. */
static void copy_entry(void *to, const struct ibv_gid_entry *entry, size_t size)
{
	memset(to, 0, size);
	memcpy(to, entry, size < sizeof(*entry) ? size : sizeof(*entry));
}

DROPIN_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
				    struct ibv_gid_entry *to, uint32_t flags, size_t entry_size)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&_ibv_query_gid_ex) real;
	struct ibv_gid_entry entry;
	int error;

	if (!provider) {
		real = DROPIN_REAL(_ibv_query_gid_ex, "IBVERBS_1.11");
		return real ? real(context, port, index, to, flags, entry_size) : ENOSYS;
	}
	error = flags ? EINVAL : provider->query_gid_entry(context, port, index, &entry);
	if (error)
		errno = error;
	else
		copy_entry(to, &entry, entry_size);
	return error;
}

DROPIN_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *to,
					   size_t max_entries, uint32_t flags, size_t entry_size)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&_ibv_query_gid_table) real;
	struct ibv_gid_entry entry;
	size_t count = 0;
	uint32_t index;
	int error;

	if (!provider) {
		real = DROPIN_REAL(_ibv_query_gid_table, "IBVERBS_1.11");
		return real ? real(context, to, max_entries, flags, entry_size) : -ENOSYS;
	}
	if (flags || entry_size == 0) {
		errno = EINVAL;
		return -EINVAL;
	}
	for (index = 0;; index++) {
		error = provider->query_gid_entry(context, 1, index, &entry);
		if (error == ENODATA)
			continue;
		if (error) /* the end of the table */
			break;
		if (count == max_entries) {
			errno = EINVAL;
			return -EINVAL;
		}
		copy_entry((char *)to + count++ * entry_size, &entry, entry_size);
	}
	return (ssize_t)count;
}

static int query_gid_type(struct ibv_context *context, uint8_t port, unsigned int index,
			  enum dropin_gid_type *type, const char *node)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&ibv_query_gid_type) real;
	struct ibv_gid_entry entry;
	int error;

	if (!provider) {
		real = DROPIN_REAL(ibv_query_gid_type, node);
		return real ? real(context, port, index, type) : -1;
	}
	error = provider->query_gid_entry(context, port, index, &entry);
	if (error && error != ENODATA) {
		errno = error;
		return -1;
	}
	*type = error ? DROPIN_GID_ROCE_V1 : DROPIN_GID_ROCE_V2;
	return 0;
}

/* A private function that programs use nevertheless; its version node depends on the release. */
/* clang-format off */
#define QUERY_GID_TYPE(release)                                                                    \
	DROPIN_EXPORT int query_gid_type_##release(struct ibv_context *context, uint8_t port,      \
						   unsigned int index,                             \
						   enum dropin_gid_type *type);                    \
	int query_gid_type_##release(struct ibv_context *context, uint8_t port,                    \
				     unsigned int index, enum dropin_gid_type *type)               \
	{                                                                                          \
		return query_gid_type(context, port, index, type, "IBVERBS_PRIVATE_" #release);    \
	}                                                                                          \
	__asm__(".symver query_gid_type_" #release ", ibv_query_gid_type@IBVERBS_PRIVATE_" #release)
/* clang-format on */
QUERY_GID_TYPE(34);
QUERY_GID_TYPE(57);
QUERY_GID_TYPE(59);
QUERY_GID_TYPE(64);
QUERY_GID_TYPE(65);

int dropin_find_gid(const struct uroce_dropin_ops *provider, struct ibv_context *context,
		    uint8_t port, const union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	uint32_t index;
	int error;

	for (index = 0;; index++) {
		error = provider->query_gid_entry(context, port, index, &entry);
		if (error == ENODATA)
			continue;
		if (error) {
			errno = error;
			return -1;
		}
		if (memcmp(&entry.gid, gid, sizeof(*gid)) == 0)
			return (int)index;
	}
}

DROPIN_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	const struct uroce_dropin_ops *provider = dropin_provider_of(context->device);
	__typeof__(&ibv_query_pkey) real;
	int error;

	if (!provider) {
		real = DROPIN_REAL(ibv_query_pkey, "IBVERBS_1.1");
		return real ? real(context, port, index, pkey) : -1;
	}
	error = provider->query_pkey(context, port, index, pkey);
	if (error)
		errno = error;
	return error ? -1 : 0;
}

DROPIN_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	__typeof__(&ibv_get_pkey_index) real;
	__be16 found;
	int index;

	if (!dropin_provider_of(context->device)) {
		real = DROPIN_REAL(ibv_get_pkey_index, "IBVERBS_1.5");
		return real ? real(context, port, pkey) : -1;
	}
	for (index = 0; ibv_query_pkey(context, port, index, &found) == 0; index++) {
		if (found == pkey)
			return index;
	}
	return -1;
}
