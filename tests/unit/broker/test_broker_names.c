/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Abstract names of brokers and slots; other users have bound some of them.
 */
#include "link_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "broker/names.h"

enum { RACERS = 16 };

static struct names_search_result found;

static int search(void)
{
	return names_search(geteuid(), UROCE_BROKER_NAMES, &found);
}

/* Starts a child of user nobody that listens at the name until it is killed. */
static pid_t start_stranger(unsigned int number)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (setresuid(CHILD_NOBODY, CHILD_NOBODY, CHILD_NOBODY) ||
		    names_listen(number) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

static void stop_stranger(pid_t child)
{
	kill_child(child);
}

static void test_highest(void **state)
{
	int first, second, fd, stranger;

	enter_new_netns(state);
	assert_int_equal(search(), -ENOENT);
	assert_int_equal(found.free, 0);
	first = names_listen(0);
	assert_true(first >= 0);
	assert_int_equal(names_listen(0), -EADDRINUSE);
	fd = search();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 0);
	assert_int_equal(found.free, 1);
	/* A second broker, as started if the first one does not reply */
	second = names_listen(1);
	assert_true(second >= 0);
	fd = search();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 1);
	/* The broker that was replaced */
	fd = names_search(geteuid(), 1, &found);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 0);
	for (unsigned int i = 0; i < 2; i++) {
		fd = names_accept(first, geteuid(), &stranger);
		assert_true(fd >= 0);
		close(fd);
	}
	assert_int_equal(names_accept(first, geteuid(), &stranger), -EAGAIN);
	close(second);
	fd = search();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 0);
	close(first);
	assert_int_equal(search(), -ENOENT);
}

static void test_all_taken(void **state)
{
	int fd[UROCE_BROKER_NAMES];

	enter_new_netns(state);
	for (unsigned int i = 0; i < UROCE_BROKER_NAMES; i++) {
		fd[i] = names_listen(i);
		assert_true(fd[i] >= 0);
	}
	assert_int_equal(names_search(geteuid() + 1, UROCE_BROKER_NAMES, &found), -ENOENT);
	assert_int_equal(found.free, UROCE_BROKER_NAMES);
	for (unsigned int i = 0; i < UROCE_BROKER_NAMES; i++)
		close(fd[i]);
}

/*
 * Other users may have bound any names: each user finds its own broker, and connections of other
 * users are not accepted.
 */
static void test_strangers(void **state)
{
	pid_t below, above;
	int listener, fd, stranger = -1;

	if (getuid())
		skip();
	enter_new_netns(state);
	below = start_stranger(0);
	assert_int_equal(search(), -ENOENT);
	assert_int_equal(found.free, 1);
	listener = names_listen(1);
	assert_true(listener >= 0);
	above = start_stranger(2);
	fd = search();
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 1);
	assert_int_equal(found.free, 3);
	/* The other user finds its own brokers. */
	fd = names_search(CHILD_NOBODY, UROCE_BROKER_NAMES, &found);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 2);
	stop_stranger(above);
	fd = names_search(CHILD_NOBODY, UROCE_BROKER_NAMES, &found);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(found.number, 0);
	/* For a broker of one user, a connection of another user is foreign. */
	fd = names_accept(listener, CHILD_NOBODY, &stranger);
	assert_int_equal(fd, -EPERM);
	assert_true(stranger >= 0);
	close(stranger);
	stop_stranger(below);
	close(listener);
}

/* If many processes find no broker at the same time, one of them gets the name. */
static void test_election(void **state)
{
	pid_t child[RACERS];
	int ready[2], go[2], won[2], elected = 0;
	char byte;

	enter_new_netns(state);
	assert_int_equal(pipe(ready) | pipe(go) | pipe(won), 0);
	for (unsigned int i = 0; i < RACERS; i++) {
		child[i] = fork();
		assert_true(child[i] >= 0);
		if (child[i])
			continue;
		close(go[1]);
		close(ready[1]);
		if (read(go[0], &byte, 1) < 0)
			_exit(1);
		if (search() == -ENOENT && names_listen(found.free) >= 0 &&
		    write(won[1], "", 1) != 1)
			_exit(1);
		close(won[1]);
		/* Keep the name until the last process has tried. */
		if (read(ready[0], &byte, 1) < 0)
			_exit(1);
		_exit(0);
	}
	close(go[1]);
	close(won[1]);
	while (read(won[0], &byte, 1) == 1)
		elected++;
	assert_int_equal(elected, 1);
	close(ready[1]);
	for (unsigned int i = 0; i < RACERS; i++)
		await_child(child[i], NULL);
	close(ready[0]);
	close(go[0]);
	close(won[0]);
}

/*
 * A client receives descriptors from the broker, whose user it has checked; the broker receives
 * descriptors from the client after it has allowed them.
 */
static void test_descriptors(void **state)
{
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct cmsghdr *cmsg = (struct cmsghdr *)(void *)control;
	char byte = 7;
	struct iovec piece = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &piece,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int listener, fd, accepted, stranger;

	enter_new_netns(state);
	listener = names_listen(0);
	fd = search();
	accepted = names_accept(listener, geteuid(), &stranger);
	assert_true(listener >= 0 && fd >= 0 && accepted >= 0);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &listener, sizeof(listener));
	assert_int_equal(sendmsg(accepted, &message, 0), 1);
	assert_int_equal(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), 1);
	assert_int_equal(message.msg_controllen, CMSG_SPACE(sizeof(int)));
	memcpy(&stranger, CMSG_DATA(cmsg), sizeof(stranger));
	close(stranger);
	assert_int_equal(names_allow_descriptors(accepted), 0);
	memcpy(CMSG_DATA(cmsg), &listener, sizeof(listener));
	assert_int_equal(sendmsg(fd, &message, 0), 1);
	assert_int_equal(recvmsg(accepted, &message, MSG_CMSG_CLOEXEC), 1);
	memcpy(&stranger, CMSG_DATA(cmsg), sizeof(stranger));
	close(stranger);
	close(accepted);
	close(fd);
	close(listener);
}

/* A slot stays locked until all copies of the descriptor of its lock are closed. */
static void test_slots(void **state)
{
	int fd, copy;

	enter_new_netns(state);
	fd = names_lock_slot(4095);
	assert_true(fd >= 0);
	assert_int_equal(names_lock_slot(4095), -EADDRINUSE);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	close(fd);
	assert_int_equal(names_lock_slot(4095), -EADDRINUSE);
	close(copy);
	fd = names_lock_slot(4095);
	assert_true(fd >= 0);
	close(fd);
}

static int bind_name(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t bytes = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path + 1, name, strlen(name));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, (socklen_t)bytes), 0);
	return fd;
}

/* Names that only partly look like a slot's do not count as bound slots. */
static void test_bound_slots(void **state)
{
	static const char *const others[] = { "uroce-broker/1/slot/41x", "uroce-broker/1/slot/4096",
					      "uroce-broker/2/slot/42", "other/1/slot/43" };
	static bool bound[UROCE_BROKER_SLOTS];
	int fd[2 + sizeof(others) / sizeof(others[0])];
	unsigned int count = 0;

	enter_new_netns(state);
	fd[0] = names_lock_slot(0);
	fd[1] = names_lock_slot(4095);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		fd[2 + i] = bind_name(others[i]);
	assert_true(names_read_bound_slots(bound));
	assert_true(bound[0] && bound[4095]);
	for (unsigned int slot = 0; slot < UROCE_BROKER_SLOTS; slot++)
		count += bound[slot];
	assert_int_equal(count, 2);
	for (size_t i = 0; i < sizeof(fd) / sizeof(fd[0]); i++)
		close(fd[i]);
	assert_true(names_read_bound_slots(bound));
	assert_false(bound[0] || bound[4095]);
}

static int listen_at(const char *name)
{
	int fd = bind_name(name);

	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static bool other_version_is(const char *expected)
{
	char text[NAMES_OTHER_VERSION_TEXT], words[64];

	if (!names_find_other_version(geteuid(), text))
		return false;
	snprintf(words, sizeof(words), "(process %d) is running, with protocol version %s, ",
		 getpid(), expected);
	assert_non_null(strstr(text, words));
	return true;
}

/* A broker of another version is found by its name, if it is of this user and running. */
static void test_other_version(void **state)
{
	static const char *const others[] = { "uroce-broker/0/slot/3", "uroce-broker/0/3x",
					      "uroce-broker/0/" };
	char text[NAMES_OTHER_VERSION_TEXT];
	int own, bound, listener;

	enter_new_netns(state);
	own = names_listen(0);
	bound = bind_name("uroce-broker/7/2");
	assert_true(own >= 0 && bound >= 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		listener = listen_at(others[i]);
		assert_false(other_version_is(""));
		close(listener);
	}
	listener = listen_at("uroce-broker/0/63");
	assert_true(other_version_is("0"));
	assert_false(names_find_other_version(geteuid() + 1, text));
	close(listener);
	assert_false(other_version_is(""));
	/* The longest text has room. */
	listener = listen_at("uroce-broker/4294967295/0");
	assert_true(other_version_is("4294967295"));
	close(listener);
	close(bound);
	close(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_highest),	    cmocka_unit_test(test_all_taken),
		cmocka_unit_test(test_strangers),   cmocka_unit_test(test_election),
		cmocka_unit_test(test_descriptors), cmocka_unit_test(test_slots),
		cmocka_unit_test(test_bound_slots), cmocka_unit_test(test_other_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
