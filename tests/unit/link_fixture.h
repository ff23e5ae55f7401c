/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The test's own process on 127.0.0.1, for tests of the link.
 */
#ifndef UROCE_TESTS_LINK_FIXTURE_H
#define UROCE_TESTS_LINK_FIXTURE_H

#include "link_agent.h"

struct link_fixture {
	struct link *link;
	struct link_addr *addr; /* loopback4 */
};

/*
 * Open a link and 127.0.0.1 on it, in whatever network namespace the caller is: 0, or -1 with the
 * reason on stderr.  Both are the caller's, who gives them back to close_loopback().  It asserts
 * nothing, so that a forked child may use it.
 */
int open_loopback(struct link **link, struct link_addr **addr);
void close_loopback(struct link *link, struct link_addr *addr);

/*
 * cmocka set-up and tear-down: the same in a fresh network.  *state is a struct link_fixture, which
 * belongs to the set-up: there is one at a time.  What a test opens besides it closes itself.
 */
int link_set_up(void **state);
int link_tear_down(void **state);

#define WITH_LINK(test) cmocka_unit_test_setup_teardown(test, link_set_up, link_tear_down)

#endif
