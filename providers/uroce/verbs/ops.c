/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "ops.h"

#include "answer.h"

#define PLAIN(name)
#define ANSWERED(name, parameters, arguments)                \
	static int answer_##name parameters                  \
	{                                                    \
		return UROCE_ANSWER(uroce_##name arguments); \
	}
UROCE_OPS(PLAIN, ANSWERED)
#undef ANSWERED
#undef PLAIN

const struct abi_ops uroce_ops = {
#define PLAIN(name) .name = uroce_##name,
#define ANSWERED(name, parameters, arguments) .name = answer_##name,
	UROCE_OPS(PLAIN, ANSWERED)
#undef ANSWERED
#undef PLAIN
		.async_event = uroce_async_event_op,
};
