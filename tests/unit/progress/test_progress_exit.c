/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* ACKs that the process sends at exit(). */
#include "progress_end.h"

#include "link_child.h"
#include "progress/progress_priv.h"
#include "progress/loop.h"
#include "progress/thread.h"

enum { ROUNDS = 20, BUFFERS_MAX = 64 };

/*
 * The progress thread may write `received` while this thread reads `sent`: ThreadSanitizer cannot
 * see that the datagram orders the two.
 */
static uint8_t sent[16], received[16];

/* Makes the progress thread leave the sockets to this thread. */
static void disarm(struct progress *progress)
{
	while (wakeup_is_armed(progress))
		progress_poll(progress);
}

static enum eng_resp_pending pending_of(struct progress_end *end)
{
	enum eng_resp_pending pending;

	pthread_mutex_lock(&end->qp.lock);
	pending = eng_resp_pending(end->qp.engine);
	pthread_mutex_unlock(&end->qp.lock);
	return pending;
}

/* A message that has arrived, and that no thread has received yet, is acknowledged. */
static void test_unread_message(void **state)
{
	struct progress *progress = get_progress();
	struct progress_end from, to;

	(void)state;
	end_pair(&from, &to, progress);
	for (unsigned int i = 1; i <= ROUNDS; i++) {
		assert_true(end_receive(&to, received, sizeof(received)));
		disarm(progress);
		assert_true(end_send(&from, sent, sizeof(sent)));
		progress_exit_flush();
		/* On a busy host the progress thread may need more than the 100 ms of the flush. */
		exit_flush_wait(progress, progress_now() + END_PATIENCE_NS);
		assert_int_equal(atomic_load(&to.received), i);
		assert_int_equal(pending_of(&to), ENG_RESP_NONE);
		assert_true(end_poll_for(progress, &from.sent, i));
	}
	end_close(&from);
	end_close(&to);
	progress_put(progress);
}

static void make_acks_pending(struct progress_end *end)
{
	pthread_mutex_lock(&end->qp.lock);
	eng_send_final_acks(end->qp.engine);
	assert_int_not_equal(eng_resp_pending(end->qp.engine), ENG_RESP_NONE);
	pthread_mutex_unlock(&end->qp.lock);
}

/* An ACK does not wait for a later cycle if other threads have all staging buffers. */
static void test_no_buffer(void **state)
{
	struct tx_buffer *taken[BUFFERS_MAX];
	struct progress *progress = get_progress();
	struct progress_end from, to;

	(void)state;
	assert_uint_in_range(progress->tx_count, 1, BUFFERS_MAX);
	end_pair(&from, &to, progress);
	assert_true(end_receive(&to, received, sizeof(received)));
	assert_true(end_send(&from, sent, sizeof(sent)));
	assert_true(end_poll_for(progress, &from.sent, 1));
	for (unsigned int i = 0; i < progress->tx_count; i++)
		taken[i] = atomic_exchange(&progress->tx[i], NULL);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		disarm(progress);
		make_acks_pending(&to);
		exit_flush_run(progress);
		assert_int_equal(pending_of(&to), ENG_RESP_NONE);
	}
	for (unsigned int i = 0; i < progress->tx_count; i++)
		atomic_store(&progress->tx[i], taken[i]);
	end_close(&from);
	end_close(&to);
	progress_put(progress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_unread_message, enter_new_netns),
		cmocka_unit_test(test_no_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
