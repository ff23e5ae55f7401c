/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Compares the state table with an independent one, whose rows were typed from the kernel's state
 * machine (effect of a message or call on a state, messages sent, events raised), with our
 * differences marked.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm/cm_priv.h"

/* Messages sent: none, a new one, the old one again, or a response that is not kept. */
enum sent { NONE, NEW, AGAIN, ANSWER };

struct row {
	const char *state;
	enum cm_input input;
	const char *next;
	enum sent sent;
	enum cm_event_type event; /* or CM_NO_EVENT */
};

static const struct row rows[] = {
	/* Active side. */
	{ "IDLE", CM_IN_CONNECT, "REQ_SENT", NEW, CM_NO_EVENT },
	{ "REQ_SENT", CM_IN_MRA_REQ, "MRA_REQ_RCVD", NONE, CM_NO_EVENT },
	{ "REQ_SENT", CM_IN_REP, "REP_RCVD", NONE, CM_EVENT_REP },
	{ "REQ_SENT", CM_IN_REJ_REQ, "IDLE", NONE, CM_EVENT_REJECTED },
	{ "REQ_SENT", CM_IN_REJ, "IDLE", NONE, CM_EVENT_REJECTED },
	{ "REQ_SENT", CM_IN_REJ_STALE_FIRST, "REQ_SENT", NONE,
	  CM_NO_EVENT }, /* kernel: reported at once */
	{ "REQ_SENT", CM_IN_REPEAT, "REQ_SENT", AGAIN, CM_NO_EVENT },
	{ "REQ_SENT", CM_IN_EXPIRED, "REJ_SENT", NEW, CM_EVENT_UNREACHABLE }, /* kernel: no REJ */
	{ "REQ_SENT", CM_IN_DESTROY, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "MRA_REQ_RCVD", CM_IN_MRA_REQ, "MRA_REQ_RCVD", NONE, CM_NO_EVENT },
	{ "MRA_REQ_RCVD", CM_IN_REP, "REP_RCVD", NONE, CM_EVENT_REP },
	{ "MRA_REQ_RCVD", CM_IN_REJ_REQ, "IDLE", NONE, CM_EVENT_REJECTED },
	{ "MRA_REQ_RCVD", CM_IN_REJ, "IDLE", NONE, CM_EVENT_REJECTED },
	{ "MRA_REQ_RCVD", CM_IN_REJ_STALE_FIRST, "REQ_SENT", NONE, CM_NO_EVENT },
	{ "MRA_REQ_RCVD", CM_IN_REPEAT, "MRA_REQ_RCVD", AGAIN, CM_NO_EVENT },
	{ "MRA_REQ_RCVD", CM_IN_EXPIRED, "REJ_SENT", NEW, CM_EVENT_UNREACHABLE },
	{ "MRA_REQ_RCVD", CM_IN_DESTROY, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REP_RCVD", CM_IN_SEND_RTU, "ESTABLISHED", NEW, CM_NO_EVENT },
	{ "REP_RCVD", CM_IN_REP, "REP_RCVD", NONE, CM_NO_EVENT }, /* kernel: MRA */
	{ "REP_RCVD", CM_IN_REJECT, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REP_RCVD", CM_IN_DESTROY, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REP_RCVD", CM_IN_REJ, "TIMEWAIT", NONE, CM_EVENT_REJECTED },
	{ "REP_RCVD", CM_IN_STALE, "TIMEWAIT", NONE, CM_EVENT_REJECTED }, /* kernel: nothing */
	{ "ESTABLISHED", CM_IN_REP, "ESTABLISHED", AGAIN, CM_NO_EVENT },
	/* Passive side. */
	{ "IDLE", CM_IN_NEW_REQ, "REQ_RCVD", NONE, CM_EVENT_REQ },
	{ "REQ_RCVD", CM_IN_DUP_REQ, "REQ_RCVD", NONE, CM_NO_EVENT }, /* kernel: MRA */
	{ "REQ_RCVD", CM_IN_ACCEPT, "REP_SENT", NEW, CM_NO_EVENT },
	{ "REQ_RCVD", CM_IN_REJECT, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REQ_RCVD", CM_IN_DESTROY, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REQ_RCVD", CM_IN_REJ, "TIMEWAIT", NONE, CM_EVENT_REJECTED },
	{ "REQ_RCVD", CM_IN_STALE, "TIMEWAIT", NONE, CM_EVENT_REJECTED }, /* kernel: nothing */
	{ "REP_SENT", CM_IN_RTU, "ESTABLISHED", NONE, CM_EVENT_ESTABLISHED },
	{ "REP_SENT", CM_IN_ESTABLISHED, "ESTABLISHED", NONE, CM_EVENT_ESTABLISHED },
	{ "REP_SENT", CM_IN_MRA_REP, "MRA_REP_RCVD", NONE, CM_NO_EVENT },
	{ "REP_SENT", CM_IN_DUP_REQ, "REP_SENT", AGAIN, CM_NO_EVENT }, /* kernel: nothing */
	{ "REP_SENT", CM_IN_REJ, "TIMEWAIT", NONE, CM_EVENT_REJECTED },
	{ "REP_SENT", CM_IN_DREQ, "DREQ_RCVD", NONE, CM_EVENT_DISCONNECTED },
	{ "REP_SENT", CM_IN_STALE, "DREQ_SENT", NEW, CM_NO_EVENT },	 /* kernel: nothing */
	{ "REP_SENT", CM_IN_DISCONNECT, "DREQ_SENT", NEW, CM_NO_EVENT }, /* kernel: nothing */
	{ "REP_SENT", CM_IN_REJECT, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REP_SENT", CM_IN_DESTROY, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "REP_SENT", CM_IN_REPEAT, "REP_SENT", AGAIN, CM_NO_EVENT },
	{ "REP_SENT", CM_IN_EXPIRED, "REJ_SENT", NEW, CM_EVENT_UNREACHABLE }, /* kernel: no REJ */
	{ "MRA_REP_RCVD", CM_IN_RTU, "ESTABLISHED", NONE, CM_EVENT_ESTABLISHED },
	{ "MRA_REP_RCVD", CM_IN_ESTABLISHED, "ESTABLISHED", NONE, CM_EVENT_ESTABLISHED },
	{ "MRA_REP_RCVD", CM_IN_MRA_REP, "MRA_REP_RCVD", NONE, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_DUP_REQ, "MRA_REP_RCVD", AGAIN, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_REJ, "TIMEWAIT", NONE, CM_EVENT_REJECTED },
	{ "MRA_REP_RCVD", CM_IN_DREQ, "DREQ_RCVD", NONE, CM_EVENT_DISCONNECTED },
	{ "MRA_REP_RCVD", CM_IN_STALE, "DREQ_SENT", NEW, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_DISCONNECT, "DREQ_SENT", NEW, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_REJECT, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_DESTROY, "REJ_SENT", NEW, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_REPEAT, "MRA_REP_RCVD", AGAIN, CM_NO_EVENT },
	{ "MRA_REP_RCVD", CM_IN_EXPIRED, "REJ_SENT", NEW, CM_EVENT_UNREACHABLE },
	/* End of a connection. */
	{ "ESTABLISHED", CM_IN_DUP_REQ, "ESTABLISHED", NONE, CM_NO_EVENT },
	{ "ESTABLISHED", CM_IN_RTU, "ESTABLISHED", NONE, CM_NO_EVENT },
	{ "ESTABLISHED", CM_IN_DISCONNECT, "DREQ_SENT", NEW, CM_NO_EVENT },
	{ "ESTABLISHED", CM_IN_DESTROY, "DREQ_SENT", NEW,
	  CM_NO_EVENT }, /* kernel: one DREQ, and gone */
	{ "ESTABLISHED", CM_IN_STALE, "DREQ_SENT", NEW, CM_NO_EVENT },
	{ "ESTABLISHED", CM_IN_DREQ, "DREQ_RCVD", NONE, CM_EVENT_DISCONNECTED },
	{ "ESTABLISHED", CM_IN_REJ, "TIMEWAIT", NONE, CM_EVENT_REJECTED },
	{ "DREQ_SENT", CM_IN_DREP, "TIMEWAIT", NONE, CM_EVENT_DISCONNECTED },
	{ "DREQ_SENT", CM_IN_DREQ, "TIMEWAIT", ANSWER,
	  CM_EVENT_DISCONNECTED },					     /* kernel: DREQ_RCVD */
	{ "DREQ_SENT", CM_IN_REJ, "TIMEWAIT", NONE, CM_EVENT_DISCONNECTED }, /* kernel: REJECTED */
	{ "DREQ_SENT", CM_IN_REPEAT, "DREQ_SENT", AGAIN, CM_NO_EVENT },
	{ "DREQ_SENT", CM_IN_EXPIRED, "TIMEWAIT", NONE, CM_EVENT_DISCONNECTED },
	{ "DREQ_SENT", CM_IN_DISCONNECT, "DREQ_SENT", NONE, CM_NO_EVENT },
	{ "DREQ_SENT", CM_IN_DESTROY, "DREQ_SENT", NONE, CM_NO_EVENT },
	{ "DREQ_SENT", CM_IN_DUP_REQ, "DREQ_SENT", NONE, CM_NO_EVENT },
	{ "DREQ_SENT", CM_IN_REP, "DREQ_SENT", NONE, CM_NO_EVENT },
	{ "DREQ_SENT", CM_IN_RTU, "DREQ_SENT", NONE, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_DISCONNECT, "TIMEWAIT", ANSWER, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_DESTROY, "TIMEWAIT", ANSWER, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_EXPIRED, "TIMEWAIT", ANSWER,
	  CM_NO_EVENT }, /* kernel: waits without limit */
	{ "DREQ_RCVD", CM_IN_DREP, "TIMEWAIT", NONE, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_DREQ, "DREQ_RCVD", NONE, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_DUP_REQ, "DREQ_RCVD", NONE, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_REP, "DREQ_RCVD", NONE, CM_NO_EVENT },
	{ "DREQ_RCVD", CM_IN_RTU, "DREQ_RCVD", NONE, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_DREQ, "TIMEWAIT", ANSWER, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_EXPIRED, "IDLE", NONE, CM_EVENT_TIMEWAIT_EXIT },
	{ "TIMEWAIT", CM_IN_DUP_REQ, "TIMEWAIT", ANSWER, CM_NO_EVENT }, /* kernel: a new request */
	{ "TIMEWAIT", CM_IN_REP, "TIMEWAIT", NONE, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_RTU, "TIMEWAIT", NONE, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_DREP, "TIMEWAIT", NONE, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_REJ, "TIMEWAIT", NONE, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_DISCONNECT, "TIMEWAIT", NONE, CM_NO_EVENT },
	{ "TIMEWAIT", CM_IN_DESTROY, "TIMEWAIT", NONE, CM_NO_EVENT },
	/* The kernel drops a rejection at once. */
	{ "REJ_SENT", CM_IN_DUP_REQ, "REJ_SENT", AGAIN, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_REP, "REJ_SENT", AGAIN, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_RTU, "REJ_SENT", AGAIN, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_DREQ, "REJ_SENT", ANSWER, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_REJ, "REJ_SENT", NONE, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_REJ_REQ, "REJ_SENT", NONE, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_EXPIRED, "IDLE", NONE, CM_NO_EVENT },
	{ "REJ_SENT", CM_IN_DESTROY, "REJ_SENT", NONE, CM_NO_EVENT },
	{ "IDLE", CM_IN_DESTROY, "IDLE", NONE, CM_NO_EVENT },
	/* Datagrams. */
	{ "IDLE", CM_IN_SIDR_REQUEST, "SIDR_REQ_SENT", NEW, CM_NO_EVENT },
	{ "SIDR_REQ_SENT", CM_IN_SIDR_REP, "IDLE", NONE, CM_EVENT_SIDR_REP },
	{ "SIDR_REQ_SENT", CM_IN_REPEAT, "SIDR_REQ_SENT", AGAIN, CM_NO_EVENT },
	{ "SIDR_REQ_SENT", CM_IN_EXPIRED, "IDLE", NONE, CM_EVENT_UNREACHABLE },
	{ "SIDR_REQ_SENT", CM_IN_DESTROY, "IDLE", NONE, CM_NO_EVENT },
	{ "IDLE", CM_IN_NEW_SIDR_REQ, "SIDR_REQ_RCVD", NONE, CM_EVENT_SIDR_REQ },
	{ "SIDR_REQ_RCVD", CM_IN_DUP_SIDR_REQ, "SIDR_REQ_RCVD", NONE, CM_NO_EVENT },
	{ "SIDR_REQ_RCVD", CM_IN_SIDR_REPLY, "SIDR_REPLIED", NEW, CM_NO_EVENT },
	{ "SIDR_REQ_RCVD", CM_IN_REJECT, "SIDR_REPLIED", NEW, CM_NO_EVENT },
	{ "SIDR_REQ_RCVD", CM_IN_DESTROY, "SIDR_REPLIED", NEW, CM_NO_EVENT },
	{ "SIDR_REPLIED", CM_IN_DUP_SIDR_REQ, "SIDR_REPLIED", AGAIN,
	  CM_NO_EVENT }, /* kernel: a new one */
	{ "SIDR_REPLIED", CM_IN_EXPIRED, "IDLE", NONE, CM_NO_EVENT },
	{ "SIDR_REPLIED", CM_IN_DESTROY, "SIDR_REPLIED", NONE, CM_NO_EVENT },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static enum sent sent_of(enum cm_send send)
{
	static const enum sent kinds[CM_SENDS] = {
		[CM_SEND_NOTHING] = NONE,     [CM_SEND_PREPARED] = NEW,
		[CM_SEND_AGAIN] = AGAIN,      [CM_SEND_DREQ] = NEW,
		[CM_SEND_DREP] = ANSWER,      [CM_SEND_REJ_TIMEOUT] = NEW,
		[CM_SEND_REJ_CONSUMER] = NEW, [CM_SEND_REJ_CLOSED] = ANSWER,
		[CM_SEND_SIDR_REJECT] = NEW,
	};

	return kinds[send];
}

static const struct row *row_of(enum cm_state state, enum cm_input input)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strcmp(rows[i].state, cm_state_name(state)) == 0 && rows[i].input == input)
			return &rows[i];
	return NULL;
}

static void compare(enum cm_state state, enum cm_input input)
{
	const struct cm_step *step = cm_step_of(state, input);
	const struct row *row = row_of(state, input);

	if ((step != NULL) != (row != NULL))
		fail_msg("%s, input %d: legal is %d", cm_state_name(state), input, !!step);
	if (!step)
		return;
	if (strcmp(cm_state_name(step->next), row->next) != 0)
		fail_msg("%s, input %d: to %s", row->state, row->input, cm_state_name(step->next));
	if (sent_of(step->send) != row->sent)
		fail_msg("%s, input %d: sends %d", row->state, row->input, step->send);
	if (step->event != row->event)
		fail_msg("%s, input %d: tells %d", row->state, row->input, step->event);
	assert_true(!step->repeated || (step->next == state && step->event == CM_NO_EVENT));
}

static void test_every_state_and_input(void **state)
{
	size_t legal = 0;

	(void)state;
	for (enum cm_state s = 0; s < CM_STATES; s++)
		for (enum cm_input i = 0; i < CM_INPUTS; i++) {
			compare(s, i);
			legal += cm_step_of(s, i) != NULL;
		}
	assert_int_equal(legal, ROWS);
}

/*
 * Every wait ends: a state whose timer runs has a step for its expiry, and, if messages are
 * repeated, for the repetition; a state without timer has none for its expiry.
 */
static void test_every_wait_ends(void **state)
{
	(void)state;
	for (enum cm_state s = 0; s < CM_STATES; s++)
		for (enum cm_input i = 0; i < CM_INPUTS; i++) {
			const struct cm_step *step = cm_step_of(s, i);

			if (!step)
				continue;
			if (step->timer != CM_TIMER_STOP && step->timer != CM_TIMER_KEEP)
				assert_non_null(cm_step_of(step->next, CM_IN_EXPIRED));
			if (step->timer == CM_TIMER_REPEAT || step->timer == CM_TIMER_EXTEND)
				assert_non_null(cm_step_of(step->next, CM_IN_REPEAT));
			if (step->timer == CM_TIMER_STOP)
				assert_null(cm_step_of(step->next, CM_IN_EXPIRED));
		}
}

/* A destroyed connection reaches IDLE by expired timers alone. */
static void test_destroyed_ends(void **state)
{
	(void)state;
	for (enum cm_state s = 0; s < CM_STATES; s++) {
		const struct cm_step *step = cm_step_of(s, CM_IN_DESTROY);
		unsigned int steps = 0;

		assert_non_null(step);
		for (; step->next != CM_IDLE; steps++) {
			assert_true(steps < 4);
			step = cm_step_of(step->next, CM_IN_EXPIRED);
			assert_non_null(step);
		}
	}
}

/* A missing step fails the assertion, even if the connection counts toward the request limit. */
static void test_missing_step(void **state)
{
	static struct cm cm;
	static struct cm_conn conn = { .req_limit = { .state = REQ_LIMIT_COUNTED } };
	const struct cm_trigger trigger = { .now = 1 };
	const struct rlimit no_core = { 0 };
	pid_t child = fork();
	int status;

	(void)state;
	assert_return_code(child, errno);
	if (!child) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		close(STDERR_FILENO);
		cm_apply(&cm, &conn, NULL, &trigger);
		_exit(0);
	}
	assert_return_code(waitpid(child, &status, 0), errno);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_state_and_input),
		cmocka_unit_test(test_every_wait_ends),
		cmocka_unit_test(test_destroyed_ends),
		cmocka_unit_test(test_missing_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
