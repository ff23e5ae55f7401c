/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ops.h"

#include "answer.h"
#include "uroce.h"

#define PLAIN(name)
#define ANSWERED(name, parameters, arguments)                \
	static int answer_##name parameters                  \
	{                                                    \
		return UROCE_ANSWER(uroce_##name arguments); \
	}
#define WHOLE(name, parameters, arguments)                                \
	static int answer_##name parameters                               \
	{                                                                 \
		return UROCE_ANSWER(UROCE_WHOLE(uroce_##name arguments)); \
	}
/*
 * The memory of a closed context is kept while objects point to it (belongings.h).  EBADF is what
 * the kernel returns without a file descriptor.
 */
#define MAKER(result, name, parameters, arguments, context)         \
	static result make_##name parameters                        \
	{                                                           \
		if (!to_uroce_context(context)->closed)             \
			return UROCE_WHOLE(uroce_##name arguments); \
		errno = EBADF;                                      \
		return NULL;                                        \
	}
UROCE_OPS(PLAIN, ANSWERED, WHOLE, MAKER)
#undef MAKER
#undef WHOLE
#undef ANSWERED
#undef PLAIN

const struct abi_ops uroce_ops = {
#define PLAIN(name) .name = uroce_##name,
#define ANSWERED(name, parameters, arguments) .name = answer_##name,
#define WHOLE(name, parameters, arguments) .name = answer_##name,
#define MAKER(result, name, ...) .name = make_##name,
	UROCE_OPS(PLAIN, ANSWERED, WHOLE, MAKER)
#undef MAKER
#undef WHOLE
#undef ANSWERED
#undef PLAIN
		.async_event = uroce_async_event_op,
};
