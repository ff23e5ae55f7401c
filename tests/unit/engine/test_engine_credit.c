/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * End-to-end credits, compared with a model whose numbers do not wrap: SSN, MSN and LSN as 64-bit
 * counts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/aeth.h"
#include "engine/credit.h"
#include "engine/tx/sq.h"
#include "engine_fixture.h"

enum {
	SLOTS = 64,
	NUMBERS = 1 << 24,
	STEPS = 4000,
};

/* ---- the requester's side ---- */

/* A send queue, and the model of it. */
struct books {
	struct engine_fixture fixture;
	uint64_t posted, begun, msn, lsn; /* numbers of requests, from the start of the QP */
	/* By request number: true if the request needs no receive. */
	bool uncredited[STEPS + 1];
};

/*
 * Sequence numbers may start anywhere; here they start at first, so that a test lies around the
 * wrap.
 */
static struct books *open_books(uint32_t first)
{
	struct books *books = calloc(1, sizeof(*books));
	struct requester *req;

	assert_non_null(books);
	engine_fixture_open(&books->fixture, ENG_RC, SLOTS, NULL, NULL);
	req = &books->fixture.qp->req;
	req->posted_ssn = first & PSN_MASK;
	req->begun_ssn = req->posted_ssn;
	req->credit.lsn = req->posted_ssn;
	books->posted = books->begun = books->msn = books->lsn = first;
	return books;
}

static void close_books(struct books *books)
{
	engine_fixture_close(&books->fixture);
	free(books);
}

static void post(struct books *books, uint64_t first)
{
	static const enum eng_op ops[] = { ENG_SEND, ENG_WRITE,	    ENG_WRITE_IMM,
					   ENG_READ, ENG_FETCH_ADD, ENG_LOCAL_INV };
	enum eng_op op = ops[rand_below(sizeof(ops) / sizeof(ops[0]))];
	struct eng_send_wqe *wqe = eng_sq_next(books->fixture.qp);

	if (!wqe)
		return;
	*wqe = (struct eng_send_wqe){ .op = (uint8_t)op, .length = 8 };
	sq_push(books->fixture.qp);
	if (op == ENG_LOCAL_INV)
		return;
	books->posted++;
	books->uncredited[books->posted - first] = op != ENG_SEND && op != ENG_WRITE_IMM;
	assert_int_equal(wqe->ssn, books->posted & PSN_MASK);
}

/* The requester begins the next request, even a limited one, as it may do with one at a time. */
static void begin(struct books *books, uint64_t first)
{
	struct eng_qp *qp = books->fixture.qp;
	const struct eng_send_wqe *wqe;

	if (qp->req.begun == qp->sq->head)
		return;
	wqe = sq_at(qp, qp->req.begun);
	if (!op_is_local(wqe->op)) {
		uint64_t number = books->begun + 1;
		bool uncredited = books->uncredited[number - first];

		/* rule C13 test: a request is limited if it needs a receive and is beyond LSN. */
		assert_int_equal(credit_limited(qp, wqe), !uncredited && number > books->lsn);
		/* rule C12 test, rule C14 test */
		books->lsn += uncredited;
		books->begun = number;
		credit_consume_uncredited(qp, wqe);
		qp->req.begun_ssn = wqe->ssn;
	}
	qp->req.begun++;
	qp->req.next_wqe = qp->req.begun;
}

/* Receives an ACK whose MSN is number, with this credit code. */
static void hear(struct books *books, uint64_t first, uint64_t number, uint8_t code)
{
	uint64_t lsn = number + credit_decode(code);

	/* LSN moves one further for each request begun beyond the MSN that needs no receive. */
	for (uint64_t i = number + 1; i <= books->begun; i++)
		lsn += books->uncredited[i - first];
	if (lsn > books->lsn)
		books->lsn = lsn;
	credit_update(books->fixture.qp, syndrome_make(AETH_ACK, code), number & PSN_MASK);
	assert_int_equal(books->fixture.qp->req.credit.lsn, books->lsn & PSN_MASK);
}

/* An old ACK, sent before all requests that are still in the queue, changes nothing. */
static void hear_of_the_past(struct books *books)
{
	uint64_t number = books->msn - 200 - rand_below(NUMBERS / 4);

	credit_update(books->fixture.qp, syndrome_make(AETH_ACK, 5), number & PSN_MASK);
	assert_int_equal(books->fixture.qp->req.credit.lsn, books->lsn & PSN_MASK);
}

/* The peer completes some more requests, and completed requests are removed from the queue. */
static void complete_some(struct books *books)
{
	struct eng_qp *qp = books->fixture.qp;

	if (books->msn < books->begun)
		books->msn += 1 + rand_below((uint32_t)(books->begun - books->msn));
	while (qp->sq->tail != qp->req.begun &&
	       psn_diff(sq_at(qp, qp->sq->tail)->ssn, books->msn & PSN_MASK) <= 0)
		qp->sq->tail++;
}

/* rule C11 test, rule C12 test, rule C13 test, rule U3 test: any order of events, at the wrap. */
static void test_lsn_is_what_counting_gives(void **state)
{
	(void)state;
	for (uint32_t before = 0; before < 200; before++) {
		uint64_t first = (uint64_t)NUMBERS - before;
		struct books *books = open_books((uint32_t)first);
		uint64_t told = first;

		for (unsigned int step = 0; step < STEPS; step++) {
			switch (rand_below(5)) {
			case 0:
				post(books, first);
				break;
			case 1:
				begin(books, first);
				break;
			case 2: /* the ACK is handled before any request completes */
				told = books->msn;
				hear(books, first, told, (uint8_t)rand_below(12));
				break;
			case 3:
				hear_of_the_past(books);
				break;
			default:
				complete_some(books);
				hear(books, first, books->msn, (uint8_t)rand_below(12));
			}
		}
		close_books(books);
	}
}

/* rule C12 test, rule U3 test: with nothing outstanding, every MSN with each of four LSNs. */
static void test_every_msn(void **state)
{
	static const uint32_t limits[] = { 0, 1, NUMBERS / 2, NUMBERS - 1 };
	struct engine_fixture fixture;

	(void)state;
	engine_fixture_open(&fixture, ENG_RC, SLOTS, NULL, NULL);
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		for (int64_t msn = 0; msn < NUMBERS; msn++) {
			/* With 3 credits; the shorter way around the circle counts. */
			int64_t ahead = (msn + 3 - limits[i] + 2 * (int64_t)NUMBERS) % NUMBERS;
			bool moves = ahead > 0 && ahead < NUMBERS / 2;
			uint32_t right = moves ? (uint32_t)(msn + 3) & PSN_MASK : limits[i];

			fixture.qp->req.credit.lsn = limits[i];
			fixture.qp->req.begun_ssn = (uint32_t)msn;
			credit_update(fixture.qp, syndrome_make(AETH_ACK, 3), (uint32_t)msn);
			/* assert_int_equal() for each would take most of a minute. */
			if (fixture.qp->req.credit.lsn != right)
				fail_msg("MSN %#x, LSN %#x gave %#x", (uint32_t)msn, limits[i],
					 fixture.qp->req.credit.lsn);
		}
	}
	engine_fixture_close(&fixture);
}

/* Ignores the event that the peer does not report credits. */
static void ignore_event(void *owner, enum eng_event event)
{
	(void)owner;
	(void)event;
}

/* rule C3 test: 11111b lifts the limit, a number afterwards sets it again. */
static void test_no_limit(void **state)
{
	static const struct eng_ops ops = { .event = ignore_event };
	struct engine_fixture fixture;
	struct eng_send_wqe *wqe;

	(void)state;
	engine_fixture_open(&fixture, ENG_RC, SLOTS, &ops, NULL);
	wqe = eng_sq_next(fixture.qp);
	*wqe = (struct eng_send_wqe){ .op = ENG_SEND, .length = 8 };
	sq_push(fixture.qp);
	assert_true(credit_limited(fixture.qp, wqe));
	credit_update(fixture.qp, syndrome_make(AETH_ACK, CREDIT_CODE_UNLIMITED), 0);
	assert_false(credit_limited(fixture.qp, wqe));
	credit_update(fixture.qp, syndrome_make(AETH_ACK, 0), 0);
	assert_true(credit_limited(fixture.qp, wqe));
	credit_update(fixture.qp, syndrome_make(AETH_ACK, 1), 0);
	assert_false(credit_limited(fixture.qp, wqe));
	engine_fixture_close(&fixture);
}

/* ---- the responder's side ---- */

/* Opens a responder whose free-running counters begin at first. */
static void open_responder(struct engine_fixture *fixture, uint32_t slots, uint32_t first)
{
	engine_fixture_open(fixture, ENG_RC, slots, NULL, NULL);
	fixture->qp->resp.wqes_consumed = first;
	fixture->qp->resp.wqes_done = first;
	fixture->qp->resp.credit_adv.promised = first;
	fixture->rq.head = first;
	fixture->rq.tail = first;
}

/* A message takes the oldest receive and completes. */
static void take_one(struct engine_fixture *fixture)
{
	fixture->rq.tail++;
	fixture->qp->resp.wqes_consumed++;
	fixture->qp->resp.wqes_done++;
}

/*
 * rule C4 test, rule C5 test: the reported credits are the free receives, rounded down to a code.
 */
static void test_never_more_than_there_are(void **state)
{
	struct engine_fixture fixture;

	(void)state;
	open_responder(&fixture, 65536, 0xffff8000u);
	for (uint32_t free = 0; free <= 65536; free++) {
		uint32_t told;

		fixture.rq.head = fixture.rq.tail + free;
		told = credit_decode(syndrome_code(credit_advertise(fixture.qp, 7)));
		assert_int_equal(credit_free(fixture.qp), free);
		assert_true(told <= free);
		/* The next larger code is 3/2 or 4/3 of it at most. */
		assert_true(free >= 32768 || 3 * (uint64_t)told + 1 >= 2 * (uint64_t)free);
	}
	engine_fixture_close(&fixture);
}

/*
 * rule C10 test, rule U2 test: a sender without credits gets an update with the first receive
 * posted; a burst of n receives costs about one ACK for each doubling; when no update is pending,
 * the sender knows of at least half of the receives.
 */
static void test_a_burst_of_receives(void **state)
{
	static const uint32_t firsts[] = { 0, 0xfffffff0u, 0x7ffffff0u };

	(void)state;
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		struct engine_fixture fixture;
		unsigned int acks = 0;

		open_responder(&fixture, 4096, firsts[i]);
		assert_false(credit_update_pending(fixture.qp));
		for (uint32_t posted = 1; posted <= 4096; posted++) {
			fixture.rq.head++;
			if (posted == 1)
				assert_true(credit_update_pending(fixture.qp));
			if (credit_update_pending(fixture.qp)) {
				credit_advertise(fixture.qp, 7);
				acks++;
				assert_false(credit_update_pending(fixture.qp));
			}
			/*
			 * The sender knows of half of the receives, or of a quarter of the queue.
			 */
			assert_true(2 * (fixture.qp->resp.credit_adv.promised - firsts[i]) >=
					    posted ||
				    fixture.qp->resp.credit_adv.promised - firsts[i] > 4096 / 4);
		}
		assert_true(acks >= 10 && acks <= 14);
		engine_fixture_close(&fixture);
	}
}

/*
 * rule C10 test: if a receive is posted for each one that the sender uses, one ACK reports many of
 * them.
 */
static void test_receives_that_are_replaced(void **state)
{
	struct engine_fixture fixture;
	unsigned int acks = 0;

	(void)state;
	open_responder(&fixture, 256, 0xfffffe00u);
	fixture.rq.head += 256;
	credit_advertise(fixture.qp, 7);
	for (unsigned int i = 0; i < 4096; i++) {
		take_one(&fixture);
		fixture.rq.head++;
		if (credit_update_pending(fixture.qp)) {
			credit_advertise(fixture.qp, 7);
			acks++;
		}
	}
	/*
	 * One ACK whenever the sender has credits for a quarter of the queue left; it grants the
	 * other three quarters.
	 */
	assert_int_equal(acks, 4096 / 192);
	engine_fixture_close(&fixture);
}

/* rule C7 test: a queue pair that does not report credits sends 11111b and no updates. */
static void test_reports_nothing(void **state)
{
	struct engine_fixture fixture;

	(void)state;
	open_responder(&fixture, 64, 0);
	fixture.qp->reports_credits = false;
	fixture.rq.head += 64;
	assert_int_equal(syndrome_code(credit_advertise(fixture.qp, 7)), CREDIT_CODE_UNLIMITED);
	assert_false(credit_update_pending(fixture.qp));
	engine_fixture_close(&fixture);
}

/* rule C8 test: the PSN of an unsolicited ACK is the newest acknowledged one, at every PSN. */
static void test_newest_acknowledged_psn(void **state)
{
	struct engine_fixture fixture;

	(void)state;
	engine_fixture_open(&fixture, ENG_RC, SLOTS, NULL, NULL);
	for (uint32_t psn = 0; psn < NUMBERS; psn++) {
		fixture.qp->resp.credit_adv.last_positive_psn = psn;
		credit_acknowledged(fixture.qp, (psn + 5) % NUMBERS);
		credit_acknowledged(fixture.qp, psn);
		credit_acknowledged(fixture.qp, (psn + NUMBERS - 9) % NUMBERS);
		if (fixture.qp->resp.credit_adv.last_positive_psn != (psn + 5) % NUMBERS)
			fail_msg("at PSN %#x", psn);
	}
	engine_fixture_close(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lsn_is_what_counting_gives),
		cmocka_unit_test(test_every_msn),
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_never_more_than_there_are),
		cmocka_unit_test(test_a_burst_of_receives),
		cmocka_unit_test(test_receives_that_are_replaced),
		cmocka_unit_test(test_reports_nothing),
		cmocka_unit_test(test_newest_acknowledged_psn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
