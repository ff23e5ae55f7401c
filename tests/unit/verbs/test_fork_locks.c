/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * fork() while one thread closes the last context and waits for a callback of the progress thread,
 * which is about to take locks: the forking thread must not hold any of these locks while it waits
 * for the lock of the closing thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/uroce-abi.h>

#include "link_child.h"
#include "progress/path/ud_path.h"
#include "link/broker/guest.h"
#include "verbs/context/context.h"
#include "verbs/context/device.h"
#include "verbs/stats/stats.h"
#include "verbs/qp/qp.h"
#include "verbs/qp/ud.h"

enum {
	SETTLE_US = 100000, /* time for another thread to reach its wait */
	PATIENCE_S = 10,    /* time limit of operations that take no time */
};

/*
 * hold_recv makes the next call of recv() wait for released; held is then true.  The thread waits
 * at the beginning of recv(), before it takes any lock.
 */
static atomic_bool hold_recv, held, released;

ssize_t recv(int fd, void *buffer, size_t bytes, int flags)
{
	if (atomic_exchange(&hold_recv, false)) {
		atomic_store(&held, true);
		while (!atomic_load(&released))
			usleep(1000);
	}
	return syscall(SYS_recvfrom, fd, buffer, bytes, flags, NULL, NULL);
}

static struct progress *progress;

static void await_held(void)
{
	for (int i = 0; !atomic_load(&held); i++) {
		assert_true(i < PATIENCE_S * 1000);
		usleep(1000);
	}
}

static void *put_stat(void *arg)
{
	(void)arg;
	uroce_stats_put(progress);
	return NULL;
}

static void *put_watch(void *arg)
{
	(void)arg;
	uroce_netdev_events_put(progress);
	return NULL;
}

static atomic_bool forked;

static void *fork_once(void *arg)
{
	pid_t child = fork();
	int status = 1;

	(void)arg;
	if (!child)
		_exit(0);
	if (child > 0 && waitpid(child, &status, 0) == child && !status)
		atomic_store(&forked, true);
	return NULL;
}

/*
 * Forks while a callback is held and another thread waits for it in put(); then releases the
 * callback.
 */
static void fork_meanwhile(void *(*put)(void *arg))
{
	pthread_t closing, forking;

	await_held();
	atomic_store(&forked, false);
	assert_int_equal(pthread_create(&closing, NULL, put, NULL), 0);
	usleep(SETTLE_US);
	assert_int_equal(pthread_create(&forking, NULL, fork_once, NULL), 0);
	usleep(SETTLE_US);
	atomic_store(&released, true);
	/* Ends the program in case of a deadlock. */
	alarm(PATIENCE_S);
	pthread_join(closing, NULL);
	pthread_join(forking, NULL);
	alarm(0);
	assert_true(atomic_load(&forked));
}

static int set_up(void **state)
{
	char error[PROGRESS_ERROR_TEXT] = "";

	(void)state;
	atomic_store(&held, false);
	atomic_store(&released, false);
	return progress_get(&progress, NULL, error);
}

static int tear_down(void **state)
{
	(void)state;
	progress_put(progress);
	return 0;
}

static void while_uroce_stat_looks(void **state)
{
	const struct uroce_abi_header question = { .message = UROCE_ABI_STAT_REQUEST,
						   .version = UROCE_ABI_VERSION };
	struct link_guest broker;
	int fd;

	(void)state;
	uroce_stats_get(progress);
	assert_int_equal(link_guest_open(&broker), 0);
	fd = link_guest_connect(&broker, link_slot(progress_link(progress)));
	assert_return_code(fd, -fd);
	atomic_store(&hold_recv, true);
	assert_return_code(send(fd, &question, sizeof(question), 0), errno);
	fork_meanwhile(put_stat);
	close(fd);
	link_guest_close(&broker);
}

static void add_address(const char *label, uint32_t address)
{
	struct ifreq request = { 0 };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", label);
	memcpy(&request.ifr_addr, &in, sizeof(in));
	assert_return_code(ioctl(sock, SIOCSIFADDR, &request), errno);
	close(sock);
}

static void while_an_address_comes(void **state)
{
	static struct uroce_context context;
	static struct uroce_qp qp;
	struct ibv_device **list;
	unsigned int count;

	(void)state;
	if (!in_new_netns())
		skip();
	assert_int_equal(uroce_list_devices(&list, &count), 0);
	assert_int_equal(count, 1);
	context.progress = progress;
	context.device = to_uroce_device(list[0]);
	context.generation = qp.generation;
	qp.context = &context;
	qp.progress.worker = progress;
	pthread_mutex_init(&qp.progress.lock, NULL);
	assert_int_equal(uroce_ud_listen(&qp), 0);
	uroce_netdev_events_get(progress);
	atomic_store(&hold_recv, true);
	add_address("lo:1", INADDR_LOOPBACK + 8);
	fork_meanwhile(put_watch);
	progress_ud_addrs_close(progress, context.listen[0]);
	free(list);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(while_uroce_stat_looks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(while_an_address_comes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, enter_new_netns, NULL);
}
