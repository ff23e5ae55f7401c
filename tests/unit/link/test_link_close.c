/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Closing an address while the broker does not read */
#include "link_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

/* Replaces the connection to the broker by one without room.  Returns the end that is not read. */
static int fill_control(const struct link_broker *broker)
{
	int pair[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), errno);
	while (send(pair[0], pair, 1, MSG_DONTWAIT) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	assert_return_code(dup3(pair[0], broker->control, O_CLOEXEC), errno);
	close(pair[0]);
	return pair[1];
}

static void *close_addr(void *addr)
{
	link_addr_close(addr);
	return NULL;
}

static bool is_free(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex))
		return false;
	pthread_mutex_unlock(mutex);
	return true;
}

/* Other threads may use the lists during the second in which the link waits for the broker. */
static void test_lock_is_free_while_waiting(void **state)
{
	struct link_fixture *fixture = *state;
	struct link *link = fixture->link;
	int unread = fill_control(&link->broker);
	struct link_counters counters;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, close_addr, fixture->addr), 0);
	while (is_free(&link->open_lock))
		usleep(100);
	link_counters(link, &counters);
	/* Still waiting: the lists were not locked in the meantime. */
	assert_false(is_free(&link->open_lock));
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(unread);
	link_close(link);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lock_is_free_while_waiting, link_set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
