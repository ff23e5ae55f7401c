/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The table of states against a second derivation: rows typed from the kernel's state machine
 * (effect of a message or call on a state, messages sent, events raised), with our differences
 * marked.
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
	const char *state, *input, *next;
	enum sent sent;
	const char *event; /* NULL: none */
};

static const struct row rows[] = {
	/* Active side. */
	{ "IDLE", "connect", "REQ_SENT", NEW, NULL },
	{ "REQ_SENT", "MRA of REQ", "MRA_REQ_RCVD", NONE, NULL },
	{ "REQ_SENT", "REP", "REP_RCVD", NONE, "REP" },
	{ "REQ_SENT", "REJ of REQ", "IDLE", NONE, "REJECTED" },
	{ "REQ_SENT", "REJ", "IDLE", NONE, "REJECTED" },
	{ "REQ_SENT", "first stale REJ", "REQ_SENT", NONE, NULL }, /* kernel: reported at once */
	{ "REQ_SENT", "repeat", "REQ_SENT", AGAIN, NULL },
	{ "REQ_SENT", "end", "REJ_SENT", NEW, "UNREACHABLE" }, /* kernel: no REJ */
	{ "REQ_SENT", "destroy", "REJ_SENT", NEW, NULL },
	{ "MRA_REQ_RCVD", "MRA of REQ", "MRA_REQ_RCVD", NONE, NULL },
	{ "MRA_REQ_RCVD", "REP", "REP_RCVD", NONE, "REP" },
	{ "MRA_REQ_RCVD", "REJ of REQ", "IDLE", NONE, "REJECTED" },
	{ "MRA_REQ_RCVD", "REJ", "IDLE", NONE, "REJECTED" },
	{ "MRA_REQ_RCVD", "first stale REJ", "REQ_SENT", NONE, NULL },
	{ "MRA_REQ_RCVD", "repeat", "MRA_REQ_RCVD", AGAIN, NULL },
	{ "MRA_REQ_RCVD", "end", "REJ_SENT", NEW, "UNREACHABLE" },
	{ "MRA_REQ_RCVD", "destroy", "REJ_SENT", NEW, NULL },
	{ "REP_RCVD", "ready", "ESTABLISHED", NEW, NULL },
	{ "REP_RCVD", "REP", "REP_RCVD", NONE, NULL }, /* kernel: MRA */
	{ "REP_RCVD", "reject", "REJ_SENT", NEW, NULL },
	{ "REP_RCVD", "destroy", "REJ_SENT", NEW, NULL },
	{ "REP_RCVD", "REJ", "TIMEWAIT", NONE, "REJECTED" },
	{ "REP_RCVD", "stale", "TIMEWAIT", NONE, "REJECTED" }, /* kernel: nothing */
	{ "ESTABLISHED", "REP", "ESTABLISHED", AGAIN, NULL },
	/* Passive side. */
	{ "IDLE", "new REQ", "REQ_RCVD", NONE, "REQ" },
	{ "REQ_RCVD", "same REQ", "REQ_RCVD", NONE, NULL }, /* kernel: MRA */
	{ "REQ_RCVD", "accept", "REP_SENT", NEW, NULL },
	{ "REQ_RCVD", "reject", "REJ_SENT", NEW, NULL },
	{ "REQ_RCVD", "destroy", "REJ_SENT", NEW, NULL },
	{ "REQ_RCVD", "REJ", "TIMEWAIT", NONE, "REJECTED" },
	{ "REQ_RCVD", "stale", "TIMEWAIT", NONE, "REJECTED" }, /* kernel: nothing */
	{ "REP_SENT", "RTU", "ESTABLISHED", NONE, "ESTABLISHED" },
	{ "REP_SENT", "established", "ESTABLISHED", NONE, "ESTABLISHED" },
	{ "REP_SENT", "MRA of REP", "MRA_REP_RCVD", NONE, NULL },
	{ "REP_SENT", "same REQ", "REP_SENT", AGAIN, NULL }, /* kernel: nothing */
	{ "REP_SENT", "REJ", "TIMEWAIT", NONE, "REJECTED" },
	{ "REP_SENT", "DREQ", "DREQ_RCVD", NONE, "DISCONNECTED" },
	{ "REP_SENT", "stale", "DREQ_SENT", NEW, NULL },      /* kernel: nothing */
	{ "REP_SENT", "disconnect", "DREQ_SENT", NEW, NULL }, /* kernel: nothing */
	{ "REP_SENT", "reject", "REJ_SENT", NEW, NULL },
	{ "REP_SENT", "destroy", "REJ_SENT", NEW, NULL },
	{ "REP_SENT", "repeat", "REP_SENT", AGAIN, NULL },
	{ "REP_SENT", "end", "REJ_SENT", NEW, "UNREACHABLE" }, /* kernel: no REJ */
	{ "MRA_REP_RCVD", "RTU", "ESTABLISHED", NONE, "ESTABLISHED" },
	{ "MRA_REP_RCVD", "established", "ESTABLISHED", NONE, "ESTABLISHED" },
	{ "MRA_REP_RCVD", "MRA of REP", "MRA_REP_RCVD", NONE, NULL },
	{ "MRA_REP_RCVD", "same REQ", "MRA_REP_RCVD", AGAIN, NULL },
	{ "MRA_REP_RCVD", "REJ", "TIMEWAIT", NONE, "REJECTED" },
	{ "MRA_REP_RCVD", "DREQ", "DREQ_RCVD", NONE, "DISCONNECTED" },
	{ "MRA_REP_RCVD", "stale", "DREQ_SENT", NEW, NULL },
	{ "MRA_REP_RCVD", "disconnect", "DREQ_SENT", NEW, NULL },
	{ "MRA_REP_RCVD", "reject", "REJ_SENT", NEW, NULL },
	{ "MRA_REP_RCVD", "destroy", "REJ_SENT", NEW, NULL },
	{ "MRA_REP_RCVD", "repeat", "MRA_REP_RCVD", AGAIN, NULL },
	{ "MRA_REP_RCVD", "end", "REJ_SENT", NEW, "UNREACHABLE" },
	/* The end. */
	{ "ESTABLISHED", "same REQ", "ESTABLISHED", NONE, NULL },
	{ "ESTABLISHED", "RTU", "ESTABLISHED", NONE, NULL },
	{ "ESTABLISHED", "disconnect", "DREQ_SENT", NEW, NULL },
	{ "ESTABLISHED", "destroy", "DREQ_SENT", NEW, NULL }, /* kernel: one DREQ, and gone */
	{ "ESTABLISHED", "stale", "DREQ_SENT", NEW, NULL },
	{ "ESTABLISHED", "DREQ", "DREQ_RCVD", NONE, "DISCONNECTED" },
	{ "ESTABLISHED", "REJ", "TIMEWAIT", NONE, "REJECTED" },
	{ "DREQ_SENT", "DREP", "TIMEWAIT", NONE, "DISCONNECTED" },
	{ "DREQ_SENT", "DREQ", "TIMEWAIT", ANSWER, "DISCONNECTED" }, /* kernel: DREQ_RCVD */
	{ "DREQ_SENT", "REJ", "TIMEWAIT", NONE, "DISCONNECTED" },    /* kernel: REJECTED */
	{ "DREQ_SENT", "repeat", "DREQ_SENT", AGAIN, NULL },
	{ "DREQ_SENT", "end", "TIMEWAIT", NONE, "DISCONNECTED" },
	{ "DREQ_SENT", "disconnect", "DREQ_SENT", NONE, NULL },
	{ "DREQ_SENT", "destroy", "DREQ_SENT", NONE, NULL },
	{ "DREQ_SENT", "same REQ", "DREQ_SENT", NONE, NULL },
	{ "DREQ_SENT", "REP", "DREQ_SENT", NONE, NULL },
	{ "DREQ_SENT", "RTU", "DREQ_SENT", NONE, NULL },
	{ "DREQ_RCVD", "disconnect", "TIMEWAIT", ANSWER, NULL },
	{ "DREQ_RCVD", "destroy", "TIMEWAIT", ANSWER, NULL },
	{ "DREQ_RCVD", "end", "TIMEWAIT", ANSWER, NULL }, /* kernel: waits without limit */
	{ "DREQ_RCVD", "DREP", "TIMEWAIT", NONE, NULL },
	{ "DREQ_RCVD", "DREQ", "DREQ_RCVD", NONE, NULL },
	{ "DREQ_RCVD", "same REQ", "DREQ_RCVD", NONE, NULL },
	{ "DREQ_RCVD", "REP", "DREQ_RCVD", NONE, NULL },
	{ "DREQ_RCVD", "RTU", "DREQ_RCVD", NONE, NULL },
	{ "TIMEWAIT", "DREQ", "TIMEWAIT", ANSWER, NULL },
	{ "TIMEWAIT", "end", "IDLE", NONE, "TIMEWAIT_EXIT" },
	{ "TIMEWAIT", "same REQ", "TIMEWAIT", ANSWER, NULL }, /* kernel: a new request */
	{ "TIMEWAIT", "REP", "TIMEWAIT", NONE, NULL },
	{ "TIMEWAIT", "RTU", "TIMEWAIT", NONE, NULL },
	{ "TIMEWAIT", "DREP", "TIMEWAIT", NONE, NULL },
	{ "TIMEWAIT", "REJ", "TIMEWAIT", NONE, NULL },
	{ "TIMEWAIT", "disconnect", "TIMEWAIT", NONE, NULL },
	{ "TIMEWAIT", "destroy", "TIMEWAIT", NONE, NULL },
	/* The kernel drops a rejection at once. */
	{ "REJ_SENT", "same REQ", "REJ_SENT", AGAIN, NULL },
	{ "REJ_SENT", "REP", "REJ_SENT", AGAIN, NULL },
	{ "REJ_SENT", "RTU", "REJ_SENT", AGAIN, NULL },
	{ "REJ_SENT", "DREQ", "REJ_SENT", ANSWER, NULL },
	{ "REJ_SENT", "REJ", "REJ_SENT", NONE, NULL },
	{ "REJ_SENT", "REJ of REQ", "REJ_SENT", NONE, NULL },
	{ "REJ_SENT", "end", "IDLE", NONE, NULL },
	{ "REJ_SENT", "destroy", "REJ_SENT", NONE, NULL },
	{ "IDLE", "destroy", "IDLE", NONE, NULL },
	/* Datagrams. */
	{ "IDLE", "SIDR request", "SIDR_REQ_SENT", NEW, NULL },
	{ "SIDR_REQ_SENT", "SIDR_REP", "IDLE", NONE, "SIDR_REP" },
	{ "SIDR_REQ_SENT", "repeat", "SIDR_REQ_SENT", AGAIN, NULL },
	{ "SIDR_REQ_SENT", "end", "IDLE", NONE, "UNREACHABLE" },
	{ "SIDR_REQ_SENT", "destroy", "IDLE", NONE, NULL },
	{ "IDLE", "new SIDR_REQ", "SIDR_REQ_RCVD", NONE, "SIDR_REQ" },
	{ "SIDR_REQ_RCVD", "same SIDR_REQ", "SIDR_REQ_RCVD", NONE, NULL },
	{ "SIDR_REQ_RCVD", "SIDR reply", "SIDR_REPLIED", NEW, NULL },
	{ "SIDR_REQ_RCVD", "reject", "SIDR_REPLIED", NEW, NULL },
	{ "SIDR_REQ_RCVD", "destroy", "SIDR_REPLIED", NEW, NULL },
	{ "SIDR_REPLIED", "same SIDR_REQ", "SIDR_REPLIED", AGAIN, NULL }, /* kernel: a new one */
	{ "SIDR_REPLIED", "end", "IDLE", NONE, NULL },
	{ "SIDR_REPLIED", "destroy", "SIDR_REPLIED", NONE, NULL },
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
		if (strcmp(rows[i].state, cm_state_name(state)) == 0 &&
		    strcmp(rows[i].input, cm_input_name(input)) == 0)
			return &rows[i];
	return NULL;
}

static void compare(enum cm_state state, enum cm_input input)
{
	const struct cm_step *step = cm_step_of(state, input);
	const struct row *row = row_of(state, input);

	if ((step != NULL) != (row != NULL))
		fail_msg("%s, %s: legal is %d", cm_state_name(state), cm_input_name(input), !!step);
	if (!step)
		return;
	if (strcmp(cm_state_name(step->next), row->next) != 0)
		fail_msg("%s, %s: to %s", row->state, row->input, cm_state_name(step->next));
	if (sent_of(step->send) != row->sent)
		fail_msg("%s, %s: sends %d", row->state, row->input, step->send);
	if ((step->event != CM_NO_EVENT) != (row->event != NULL) ||
	    (row->event && strcmp(cm_event_name(step->event), row->event) != 0))
		fail_msg("%s, %s: tells %d", row->state, row->input, step->event);
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

/* Whatever waits, ends: each state that a timer brings about has an end, and a side that goes has a
 * way to IDLE by it. */
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

/* A destroyed connection comes to IDLE by time alone. */
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

/* A step that is missing fails the assertion, also if the connection counts for the limit. */
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
