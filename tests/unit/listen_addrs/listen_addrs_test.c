/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Addresses at which the connection manager receives while addresses appear and disappear or cannot
 * be opened, and after its start fails or the process exits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ucm_fixture.h"
#include "progress/gsi/gsi.h"
#include "ucm/addr/devices.h"
#include "ucm/ucm_core.h"
#include "verbs/context/context.h"

enum {
	LOOPBACK, /* 127.0.0.1 */
	FIRST,	  /* 10.0.0.1, and so on */
	SECOND_ONE,
	THIRD,
	ADDRESSES,
	/* Time limit: a test that takes longer hangs. */
	PATIENCE_S = 20,
};

static struct {
	uint8_t gid[16];
	uint32_t device;
	bool there;	/* a device has the address */
	int refusal;	/* errno with which opening it fails; 0: it can be opened */
	int references; /* of gsi_addr_get() */
} host[ADDRESSES];

static int start_refusal;
static unsigned int reports; /* calls of uroce_err() */
static bool stopped, change_done, other_began;
static bool is_child; /* of the test */

/* LeakSanitizer must not check a child that calls exit(): the parent's memory is not freed. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return is_child;
}

/* ---- the world ---- */

int __wrap_gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
			char error[PROGRESS_ERROR_TEXT]);
void __wrap_gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id);
int __wrap_gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **gsi,
		   char error[PROGRESS_ERROR_TEXT]);
int __real_gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **gsi,
		   char error[PROGRESS_ERROR_TEXT]);
int __wrap_uroce_provider_start(struct progress **progress, struct uroce_settings *settings,
				char error[PROGRESS_ERROR_TEXT]);
int __real_uroce_provider_start(struct progress **progress, struct uroce_settings *settings,
				char error[PROGRESS_ERROR_TEXT]);
void __wrap_uroce_provider_stop(struct progress *progress);
bool __wrap_ucm_device_of_gid(const uint8_t gid[16], uint32_t scope_id, uint32_t *number,
			      unsigned int *index);
void __wrap_ucm_devices_each_gid(void (*visit)(const uint8_t *gid, uint32_t device, void *arg),
				 void *arg);

void __wrap_uroce_err(const char *format, ...) __attribute__((format(printf, 1, 2)));

void __wrap_uroce_err(const char *format, ...)
{
	(void)format;
	reports++;
}

static unsigned int find(const uint8_t gid[16])
{
	unsigned int i = 0;

	while (i < ADDRESSES && memcmp(host[i].gid, gid, 16))
		i++;
	return i;
}

int __wrap_gsi_addr_get(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id,
			char error[PROGRESS_ERROR_TEXT])
{
	unsigned int i = find(gid);

	(void)gsi;
	(void)error;
	assert_int_equal(scope_id, 0);
	assert_uint_in_range(i, 0, ADDRESSES - 1);
	if (host[i].refusal)
		return -host[i].refusal;
	host[i].references++;
	return 0;
}

void __wrap_gsi_addr_put(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id)
{
	unsigned int i = find(gid);

	(void)gsi;
	assert_int_equal(scope_id, 0);
	assert_uint_in_range(i, 0, ADDRESSES - 1);
	host[i].references--;
}

bool __wrap_ucm_device_of_gid(const uint8_t gid[16], uint32_t scope_id, uint32_t *number,
			      unsigned int *index)
{
	unsigned int i = find(gid);

	(void)scope_id;
	if (i == ADDRESSES || !host[i].there)
		return false;
	*number = host[i].device;
	*index = 0;
	return true;
}

void __wrap_ucm_devices_each_gid(void (*visit)(const uint8_t *gid, uint32_t device, void *arg),
				 void *arg)
{
	for (unsigned int i = 0; i < ADDRESSES; i++)
		if (host[i].there)
			visit(host[i].gid, host[i].device, arg);
}

static void change(unsigned int address, bool there)
{
	host[address].there = there;
	/* No device is gone, but an address has changed. */
	world_remove_device(0);
}

static void expect_heard(unsigned int address, bool heard)
{
	assert_int_equal(host[address].references, heard);
}

/* No address is open yet. */
static int begin_host(void **state)
{
	(void)state;
	ucm_listen_addrs_forked();
	for (unsigned int i = 0; i < ADDRESSES; i++) {
		host[i].device = i == LOOPBACK ? WORLD_LOOPBACK : WORLD_DEVICE;
		host[i].there = i != THIRD;
		host[i].refusal = 0;
		memcpy(host[i].gid, (const uint8_t[16]){ [10] = 0xff, [11] = 0xff }, 16);
		host[i].gid[12] = i == LOOPBACK ? 127 : 10;
		host[i].gid[15] = (uint8_t)(i == LOOPBACK ? 1 : i);
	}
	return 0;
}

static int end_host(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < ADDRESSES; i++)
		host[i].there = false;
	world_remove_device(0);
	for (unsigned int i = 0; i < ADDRESSES; i++)
		if (host[i].references)
			return -1;
	return 0;
}

/* ---- a start that fails ---- */

int __wrap_gsi_get(struct progress *progress, const struct gsi_hooks *hooks, struct gsi **gsi,
		   char error[PROGRESS_ERROR_TEXT])
{
	int refusal = start_refusal;

	start_refusal = 0;
	return refusal ? -refusal : __real_gsi_get(progress, hooks, gsi, error);
}

int __wrap_uroce_provider_start(struct progress **progress, struct uroce_settings *settings,
				char error[PROGRESS_ERROR_TEXT])
{
	static int dummy;
	int failed = __real_uroce_provider_start(progress, settings, error);

	*progress = (struct progress *)&dummy;
	return failed;
}

static void *tell_of_change(void *arg)
{
	world_remove_device(0);
	change_done = true;
	return arg;
}

static void *begin_too(void *arg)
{
	int fd = open_channel();
	uint32_t id;

	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	other_began = bind_id(fd, id, "10.0.0.1", PORT) == 0;
	world_close(fd);
	return arg;
}

/* Waits up to PATIENCE_S for the thread to end; a thread that hangs is left running. */
static void run_thread(void *(*routine)(void *))
{
	struct timespec until;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, routine, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_timedjoin_np(thread, NULL, &until);
}

/*
 * Like the real function, waits for a thread that reports a change.  Another thread starts the
 * manager before the stop is over.
 */
void __wrap_uroce_provider_stop(struct progress *progress)
{
	(void)progress;
	stopped = true;
	run_thread(tell_of_change);
	if (change_done)
		run_thread(begin_too);
}

/* Must be the first test: later the manager is running. */
static void test_failed_start(void **state)
{
	int fd = open_channel();
	uint32_t id;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	start_refusal = EMFILE;
	assert_int_equal(bind_id(fd, id, "10.0.0.1", PORT), EMFILE);
	assert_true(stopped);
	assert_true(change_done);
	assert_true(other_began);
	assert_int_equal(bind_id(fd, id, "10.0.0.1", PORT), 0);
	world_close(fd);
}

/* ---- addresses that come and go ---- */

static void test_any(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	expect_heard(LOOPBACK, true);
	expect_heard(FIRST, true);
	expect_heard(SECOND_ONE, true);
	expect_heard(THIRD, false);
	for (unsigned int i = 0; i < 10; i++) {
		change(THIRD, true);
		expect_heard(THIRD, true);
		change(THIRD, false);
		expect_heard(THIRD, false);
		expect_heard(FIRST, true);
	}
	ucm_fixture_close(&fixture);
}

/* The address that an id is bound to may return: it is opened as long as the id exists. */
static void test_bound(void **state)
{
	int fd = open_channel();
	uint32_t id, idle;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(bind_id(fd, id, "10.0.0.2", PORT), 0);
	change(SECOND_ONE, false);
	expect_heard(SECOND_ONE, true);
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &idle), 0);
	assert_int_equal(destroy_id(fd, id, NULL), 0);
	/* The idle id might be about to be bound to the address. */
	change(SECOND_ONE, false);
	expect_heard(SECOND_ONE, true);
	assert_int_equal(destroy_id(fd, idle, NULL), 0);
	change(SECOND_ONE, false);
	expect_heard(SECOND_ONE, false);
	world_close(fd);
}

/*
 * An id bound to any address of 127.0.0.0/8 keeps 127.0.0.1 open, which receives for all of them.
 */
static void test_bound_to_loopback(void **state)
{
	int fd = open_channel();
	uint32_t id;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(bind_id(fd, id, "127.0.0.5", PORT), 0);
	change(LOOPBACK, false);
	expect_heard(LOOPBACK, true);
	assert_int_equal(destroy_id(fd, id, NULL), 0);
	change(LOOPBACK, false);
	expect_heard(LOOPBACK, false);
	world_close(fd);
}

/* When its device is removed, an address is closed for good. */
static void test_device_gone(void **state)
{
	int fd = open_channel();
	uint32_t id;

	(void)state;
	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(bind_id(fd, id, "10.0.0.2", PORT), 0);
	host[SECOND_ONE].there = false;
	world_remove_device(WORLD_DEVICE);
	expect_heard(SECOND_ONE, false);
	world_close(fd);
}

/* A connection remains without its ids, and its address open, until the peer knows of its end. */
static void test_connection(void **state)
{
	struct ucm_fixture fixture;

	(void)state;
	ucm_fixture_open(&fixture, RDMA_PS_TCP, 3);
	establish_connection(&fixture);
	world_close(fixture.client);
	world_close(fixture.server);
	assert_int_not_equal(world_connections(), 0);
	change(FIRST, false);
	expect_heard(FIRST, true);
	world_deliver();
	world_pass(200 * SECOND);
	world_lose();
	assert_int_equal(world_connections(), 0);
	change(FIRST, false);
	expect_heard(FIRST, false);
}

/* ---- addresses that cannot be opened ---- */

static uint32_t listen_at_any(int fd, uint16_t port, int wanted)
{
	uint32_t id;

	assert_int_equal(create_id(fd, RDMA_PS_TCP, 1, &id), 0);
	assert_int_equal(bind_id(fd, id, NULL, port), 0);
	assert_int_equal(listen_id(fd, id, 1), wanted);
	return id;
}

/*
 * One of several addresses cannot be opened: the others are, including a later one.  Addresses that
 * could not be opened are tried again.
 */
static void test_refused(void **state)
{
	int fd = open_channel();

	(void)state;
	host[SECOND_ONE].refusal = EPERM;
	listen_at_any(fd, PORT, 0);
	expect_heard(FIRST, true);
	expect_heard(SECOND_ONE, false);
	host[THIRD].refusal = EMFILE;
	change(THIRD, true);
	expect_heard(THIRD, false);
	host[THIRD].refusal = 0;
	change(THIRD, true);
	expect_heard(THIRD, true);
	expect_heard(SECOND_ONE, false);
	host[SECOND_ONE].refusal = 0;
	listen_at_any(fd, PORT + 1, 0);
	expect_heard(SECOND_ONE, true);
	world_close(fd);
}

static void expect_reports(unsigned int wanted)
{
	assert_int_equal(reports, wanted);
	reports = 0;
}

/* Each new failure is reported, and each new reason, but not those of repeated attempts. */
static void test_reports(void **state)
{
	int fd = open_channel();

	(void)state;
	reports = 0;
	host[FIRST].refusal = EPERM;
	host[SECOND_ONE].refusal = EPERM;
	listen_at_any(fd, PORT, 0);
	expect_reports(2);
	change(FIRST, true);
	expect_reports(0);
	/* The same number of failures as before, but of another address */
	host[FIRST].refusal = 0;
	host[THIRD].refusal = EMFILE;
	change(THIRD, true);
	expect_reports(1);
	host[THIRD].refusal = EPERM;
	change(THIRD, true);
	expect_reports(1);
	/* A failed address that has disappeared is reported again when it returns. */
	change(THIRD, false);
	change(THIRD, true);
	expect_reports(1);
	host[SECOND_ONE].refusal = 0;
	host[THIRD].refusal = 0;
	change(THIRD, true);
	expect_reports(0);
	world_close(fd);
}

/* ---- the end ---- */

static void run_to_exit(bool used)
{
	pid_t child;
	int status;

	fflush(NULL);
	child = fork();
	assert_return_code(child, errno);
	if (child == 0) {
		is_child = true;
		alarm(PATIENCE_S);
		if (used)
			listen_at_any(open_channel(), PORT, 0);
		exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* A process ends normally, whether it has used queue pair 1 or not. */
static void test_exit(void **state)
{
	(void)state;
	run_to_exit(false);
	run_to_exit(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_failed_start, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_any, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_bound, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_bound_to_loopback, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_device_gone, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_connection, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_refused, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_reports, begin_host, end_host),
		cmocka_unit_test_setup_teardown(test_exit, begin_host, end_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
