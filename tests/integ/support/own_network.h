/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Gives a test program its own network namespace, with interfaces made by ip(8).  Included after
 * cmocka.h.
 */
#ifndef UROCE_TESTS_OWN_NETWORK_H
#define UROCE_TESTS_OWN_NETWORK_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	if (file) {
		fputs(text, file);
		fclose(file);
	}
}

/*
 * Moves the process to a new network namespace, which has only the loopback interface, down.
 * Returns false if the host forbids it.
 */
static inline bool fresh_network(void)
{
	char map[64];
	uid_t uid = geteuid();

	if (unshare(CLONE_NEWNET) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", map);
	return true;
}

/* Runs "ip WORDS" without uroce, whose libraries the test program has in LD_LIBRARY_PATH. */
__attribute__((format(printf, 1, 2))) static inline void ip(const char *words, ...)
{
	char line[300] = "LD_LIBRARY_PATH= ip ";
	size_t length = strlen(line);
	va_list arguments;

	va_start(arguments, words);
	vsnprintf(line + length, sizeof(line) - length, words, arguments);
	va_end(arguments);
	assert_int_equal(system(line), 0);
}

/* Group setup for cmocka: exits with 77 (skipped) if the host does not permit new interfaces. */
static inline int set_up_network(void)
{
	if (!fresh_network() || system("ip link add prA type veth peer name prB 2>/dev/null")) {
		fprintf(stderr, "skipped: this host lets no test make interfaces\n");
		exit(77);
	}
	ip("link delete prA");
	ip("link set lo up");
	return 0;
}

/* Adds a pair of interfaces, up and without addresses.  index: of the first interface; 0: any. */
static inline void add_veth(const char *name, unsigned int index, const char *peer)
{
	char text[32] = "";

	if (index)
		snprintf(text, sizeof(text), "index %u", index);
	ip("link add %s %s type veth peer name %s", name, text, peer);
	ip("link set %s addrgenmode none", name);
	ip("link set %s addrgenmode none", peer);
	ip("link set %s up", name);
	ip("link set %s up", peer);
}

#endif
