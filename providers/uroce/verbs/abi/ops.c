/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ops.h"

#include "api_call.h"
#include "verbs/uroce.h"

#define PLAIN(name)
#define SETS_ERRNO(name, parameters, arguments)                 \
	static int call_##name parameters                       \
	{                                                       \
		return UROCE_SET_ERRNO(uroce_##name arguments); \
	}
#define NO_CANCEL(name, parameters, arguments)                                   \
	static int call_##name parameters                                        \
	{                                                                        \
		return UROCE_SET_ERRNO(UROCE_NO_CANCEL(uroce_##name arguments)); \
	}
/*
 * The memory of a closed context is kept while objects point to it (context_objects.h).  EBADF is
 * what the kernel returns without a file descriptor.
 */
#define CREATES(result, name, parameters, arguments, context)           \
	static result create_##name parameters                          \
	{                                                               \
		if (!to_uroce_context(context)->closed)                 \
			return UROCE_NO_CANCEL(uroce_##name arguments); \
		errno = EBADF;                                          \
		return NULL;                                            \
	}
UROCE_OPS(PLAIN, SETS_ERRNO, NO_CANCEL, CREATES)
#undef CREATES
#undef NO_CANCEL
#undef SETS_ERRNO
#undef PLAIN

const struct abi_ops uroce_ops = {
#define PLAIN(name) .name = uroce_##name,
#define SETS_ERRNO(name, parameters, arguments) .name = call_##name,
#define NO_CANCEL(name, parameters, arguments) .name = call_##name,
#define CREATES(result, name, ...) .name = create_##name,
	UROCE_OPS(PLAIN, SETS_ERRNO, NO_CANCEL, CREATES)
#undef CREATES
#undef NO_CANCEL
#undef SETS_ERRNO
#undef PLAIN
		.async_event = uroce_async_event_op,
};
