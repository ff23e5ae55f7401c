/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Each operation of the table that returns an errno value must also set errno. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "verbs/abi/ops.h"

struct row {
	const char *name;
	bool answered; /* sets errno */
};

static const struct row served[] = {
#define PLAIN(name) { #name, false },
#define ANSWERED(name, parameters, arguments) { #name, true },
#define WHOLE(name, parameters, arguments) { #name, true },
#define MAKER(result, name, ...) { #name, false },
	UROCE_OPS(PLAIN, ANSWERED, WHOLE, MAKER)
};

static bool is_plain(const char *name)
{
	for (size_t i = 0; i < sizeof(served) / sizeof(served[0]); i++) {
		if (!strcmp(served[i].name, name))
			return !served[i].answered;
	}
	return false;
}

static void check(const char *name, bool returns_number)
{
	/* Returns the number of completions, or less than 0. */
	if (!strcmp(name, "poll_cq"))
		return;
	/* post.c sees to errno itself: verbs_errno tests it. */
	if (!strcmp(name, "post_send") || !strcmp(name, "post_recv"))
		return;
	if (returns_number && is_plain(name))
		fail_msg("%s returns an errno value and does not set errno", name);
}

static void test_numbers_are_in_errno(void **state)
{
	(void)state;
#define CHECK(release, result, name, parameters) \
	check(#name, __builtin_types_compatible_p(result, int));
	ABI_OPS(CHECK)
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_are_in_errno),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
