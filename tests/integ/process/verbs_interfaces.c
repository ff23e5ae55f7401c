/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * A device belongs to an interface, whatever its name: an open device follows a rename and ends
 * with the interface.  A later interface with the same name does not bring it back.
 */
#include <net/if.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>

#include "verbs_fixture.h"

#include "own_network.h"

static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), *found = NULL;

	assert_non_null(list);
	for (int i = 0; list[i]; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name))
			continue;
		assert_null(found);
		found = list[i];
	}
	ibv_free_device_list(list);
	return found;
}

/* The kernel reports the carrier some time after the interface was set up. */
static struct ibv_device *await_device(const char *name)
{
	struct ibv_device *device = NULL;

	for (int waited = 0; waited < PATIENCE_MS && !device; waited += 10) {
		device = find_device(name);
		if (!device)
			usleep(10000);
	}
	assert_non_null(device);
	return device;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *context = ibv_open_device(await_device(name));

	assert_non_null(context);
	return context;
}

static void await_state(struct ibv_context *context, enum ibv_port_state state)
{
	struct ibv_port_attr port;

	for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
		assert_int_equal(ibv_query_port(context, 1, &port), 0);
		if (port.state == state)
			return;
		usleep(10000);
	}
	assert_int_equal(port.state, state);
}

static void await_name(const struct ibv_context *context, const char *name)
{
	for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
		if (!strcmp(ibv_get_device_name(context->device), name))
			return;
		usleep(10000);
	}
	assert_string_equal(ibv_get_device_name(context->device), name);
}

/* Checks that the context's device has this name and, at GID index 0, address 192.0.2.LAST. */
static void assert_is(struct ibv_context *context, const char *name, uint8_t last)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	/* Until the kernel has reported the new name, the state may be that before the change. */
	await_name(context, name);
	await_state(context, IBV_PORT_ACTIVE);
	assert_ptr_equal(context->device, find_device(name));
	assert_int_equal(ibv_query_gid_ex(context, 1, 0, &entry, 0), 0);
	assert_int_equal(entry.ndev_ifindex, if_nametoindex(name + 6));
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_int_equal(gid.raw[12], 192);
	assert_int_equal(gid.raw[15], last);
}

/* Checks that this number of events of the type has arrived once none arrives for 300 ms. */
static void expect_events(struct ibv_context *context, enum ibv_event_type type,
			  unsigned int expected)
{
	struct pollfd wait = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	unsigned int count = 0;

	while (poll(&wait, 1, count < expected ? PATIENCE_MS : 300) == 1) {
		assert_int_equal(ibv_get_async_event(context, &event), 0);
		count += event.event_type == type;
		ibv_ack_async_event(&event);
	}
	assert_int_equal(count, expected);
}

static void assert_is_gone(struct ibv_context *context)
{
	union ibv_gid gid;

	expect_events(context, IBV_EVENT_DEVICE_FATAL, 1);
	await_state(context, IBV_PORT_DOWN);
	/* An empty entry of the GID table reads as zeros. */
	assert_int_equal(ibv_query_gid(context, 1, 0, &gid), 0);
	assert_true(gid.global.interface_id == 0);
	assert_null(ibv_open_device(context->device));
	assert_int_equal(errno, ENODEV);
}

static void a_renamed_interface_keeps_its_device(void **state)
{
	struct ibv_context *context;

	(void)state;
	add_veth("rnA", 0, "rnB");
	ip("address add 192.0.2.1/24 dev rnA");
	context = open_device("uroce_rnA");
	ip("link set rnA down");
	ip("link set rnA name rnC");
	ip("link set rnC up");
	assert_is(context, "uroce_rnC", 1);
	assert_null(find_device("uroce_rnA"));
	expect_events(context, IBV_EVENT_DEVICE_FATAL, 0);
	assert_int_equal(ibv_close_device(context), 0);
	ip("link delete rnC");
}

static void interfaces_that_swap_names_keep_theirs(void **state)
{
	struct ibv_context *first, *second;

	(void)state;
	add_veth("swA", 0, "swC");
	add_veth("swB", 0, "swD");
	ip("address add 192.0.2.1/24 dev swA");
	ip("address add 192.0.2.2/24 dev swB");
	first = open_device("uroce_swA");
	second = open_device("uroce_swB");
	ip("link set swA down");
	ip("link set swB down");
	ip("link set swA name swX");
	ip("link set swB name swA");
	ip("link set swX name swB");
	ip("link set swA up");
	ip("link set swB up");
	assert_is(first, "uroce_swB", 1);
	assert_is(second, "uroce_swA", 2);
	assert_int_equal(ibv_close_device(first), 0);
	assert_int_equal(ibv_close_device(second), 0);
	ip("link delete swA");
	ip("link delete swB");
}

static void a_deleted_interface_ends_its_device(void **state)
{
	struct ibv_context *old, *new;

	(void)state;
	add_veth("dlA", 700, "dlB");
	ip("address add 192.0.2.1/24 dev dlA");
	old = open_device("uroce_dlA");
	ip("link delete dlA");
	assert_is_gone(old);
	add_veth("dlA", 701, "dlB");
	ip("address add 192.0.2.2/24 dev dlA");
	new = open_device("uroce_dlA");
	assert_is(new, "uroce_dlA", 2);
	await_state(old, IBV_PORT_DOWN);
	ip("link delete dlA");
	assert_is_gone(new);
	expect_events(old, IBV_EVENT_DEVICE_FATAL, 0);
	/* A third interface, with the index of the first one. */
	add_veth("dlA", 700, "dlB");
	ip("address add 192.0.2.3/24 dev dlA");
	await_state(old, IBV_PORT_DOWN);
	assert_int_equal(ibv_close_device(new), 0);
	new = open_device("uroce_dlA");
	assert_is(new, "uroce_dlA", 3);
	assert_ptr_not_equal(new->device, old->device);
	assert_int_equal(ibv_close_device(new), 0);
	assert_int_equal(ibv_close_device(old), 0);
	ip("link delete dlA");
}

/* Kills the child, which must be alive until then: its network namespace ends with it. */
static void kill_child(pid_t child)
{
	int status;

	assert_return_code(kill(child, SIGKILL), errno);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void a_moved_interface_ends_its_device(void **state)
{
	struct ibv_context *context;
	int ready[2];
	pid_t child;
	char byte;

	(void)state;
	add_veth("mvA", 0, "mvB");
	ip("address add 192.0.2.1/24 dev mvA");
	context = open_device("uroce_mvA");
	assert_return_code(pipe(ready), errno);
	child = fork();
	assert_return_code(child, errno);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	ip("link set mvA netns %d", child);
	assert_is_gone(context);
	assert_int_equal(ibv_close_device(context), 0);
	kill_child(child);
	close(ready[0]);
	close(ready[1]);
}

static int own_network(void **state)
{
	(void)state;
	return set_up_network();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_renamed_interface_keeps_its_device),
		cmocka_unit_test(interfaces_that_swap_names_keep_theirs),
		cmocka_unit_test(a_deleted_interface_ends_its_device),
		cmocka_unit_test(a_moved_interface_ends_its_device),
	};

	return cmocka_run_group_tests(tests, own_network, NULL);
}
