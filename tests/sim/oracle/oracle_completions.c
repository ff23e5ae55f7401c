/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The oracle of the application: completions in order, exactly once, never early, never late; and
 * every byte of memory as in the script.
 */
#include <string.h>

#include "sim/oracle/invariants.h"
#include "sim/oracle/oracle_uc_ud.h"
#include "sim/world.h"

static const struct message *message_at(const struct sim_end *end, uint32_t index)
{
	return &end->script->messages[index];
}

static const uint8_t *content_of(const struct sim_end *end, const struct message *message)
{
	return end->script->blob + message->content;
}

/* The data of the message must be in the memory of this end, or of the peer, now. */
static void check_placed(struct sim_end *end, uint32_t index)
{
	const struct message *message = message_at(end, index);
	struct area *landing = &end->script->landing;
	const struct area *remote = &end->peer->script->remote;
	const uint8_t *bytes = content_of(end, message);
	bool overwritten = message->next_writer < end->oracle.asking.begun;
	bool right = true;

	if (op_is_atomic(message->op))
		bytes = (const uint8_t *)&message->original;
	if (op_is_read(message->op) || op_is_atomic(message->op)) {
		right = area_holds(landing, message->sge, message->sge_count, bytes,
				   message->length);
		area_expect(landing, message->sge, message->sge_count, bytes, message->length);
	} else if (op_is_write(message->op) && !overwritten) {
		right = memcmp(remote->bytes + message->target, bytes, message->length) == 0;
	}
	if (!right)
		world_fail(end->world, "%s: message %u (%s) has not put its bytes in place",
			   end->name, index, eng_op_name(message->op));
}

/* rule S9 test: an acknowledged message is in memory, and completed if it is signaled. */
static void settle(struct sim_end *end)
{
	struct asking *asking = &end->oracle.asking;

	for (; asking->settled < asking->oldest; asking->settled++) {
		const struct message *message = message_at(end, asking->settled);

		if (end->peer->oracle.answering.expected < message_end(message))
			world_fail(end->world, "%s: message %u is acknowledged but not executed",
				   end->name, asking->settled);
		else
			check_placed(end, asking->settled);
		if (message->signaled && end->oracle.completed <= asking->settled &&
		    !end->oracle.erred)
			world_fail(end->world, "%s: no completion for message %u", end->name,
				   asking->settled);
	}
}

/* Returns true if all posted send requests have their completions. */
static bool all_told(const struct sim_end *end)
{
	uint32_t last = end->oracle.completed;

	/* Successful requests without a completion. */
	while (last < end->sent_posted && !message_at(end, last)->signaled &&
	       last < end->oracle.asking.oldest)
		last++;
	return last == end->sent_posted;
}

/* rule S13 test: an error flushes all posted requests at once. */
void oracle_check_flushed(struct sim_end *end)
{
	const struct oracle *oracle = &end->oracle;

	if (!all_told(end))
		world_fail(end->world, "%s: in ERR, but not all sends are flushed", end->name);
	if (oracle->answering.holding)
		world_fail(end->world, "%s: in ERR, but receive %u is not flushed", end->name,
			   oracle->answering.held);
	/* Shared receive requests outlive the QP. */
	if (end->rq_shared)
		return;
	if (oracle->receives_completed + oracle->receives_erred != end->queue->posted)
		world_fail(end->world, "%s: %u receives posted, %u completed and %u flushed",
			   end->name, end->queue->posted, oracle->receives_completed,
			   oracle->receives_erred);
}

void oracle_after_step(struct sim_end *end)
{
	struct oracle *oracle = &end->oracle;

	oracle_check_invariants(end->qp);
	if (service_is_uc_ud(end->type)) {
		oracle_uc_ud_after_step(end);
		return;
	}
	if (eng_qp_state(end->qp) == ENG_ERR && end->state != ENG_ERR) {
		end->state = ENG_ERR;
		oracle->broke = true;
		/* rule S13 test: packets may follow only after a fault of the peer. */
		if (!oracle->answering.fatal)
			oracle->answering.rnr_owed = oracle->answering.nak_owed = false;
		oracle_check_flushed(end);
		if (!oracle->may_be_in_error)
			world_fail(end->world, "%s: the QP went to ERR for no reason", end->name);
	}
	settle(end);
	if (oracle->invalidated != oracle->answering.invalidated)
		world_fail(end->world, "%s: a key of the peer is not invalidated", end->name);
	if (oracle->receives_completed != oracle->answering.received && !oracle->in_final)
		world_fail(end->world, "%s: %u receive completions, %u messages came", end->name,
			   oracle->receives_completed, oracle->answering.received);
}

/* rule S10 test, rule S13 test: the error that ends the connection, of the oldest request. */
static bool error_right(const struct sim_end *end, uint32_t index, enum eng_status status)
{
	const struct asking *asking = &end->oracle.asking;
	const struct plan *plan = &end->world->plan;
	uint8_t lacks = oracle_lacks_remote(end, message_at(end, index));
	bool bad = index == end->script->bad;

	if (index != asking->oldest)
		return false;
	switch (status) {
	case ENG_RETRY_EXC_ERR:
		return asking->retry_count > plan->retry_count &&
		       (!plan->lossless || end->peer->state == ENG_ERR);
	case ENG_RNR_RETRY_EXC_ERR:
		return plan->rnr_retry != 7 && asking->rnr_count > plan->rnr_retry;
	case ENG_REM_ACCESS_ERR:
		return lacks == 0x62 ||
		       (bad && (plan->trouble == TROUBLE_RKEY || plan->trouble == TROUBLE_BOUNDS ||
				plan->trouble == TROUBLE_DEAD_WINDOW));
	case ENG_REM_OP_ERR:
		return lacks == 0x63;
	case ENG_MW_BIND_ERR:
		return bad && plan->trouble == TROUBLE_BIND;
	case ENG_REM_INV_REQ_ERR:
		return bad &&
		       (plan->trouble == TROUBLE_ACCESS || plan->trouble == TROUBLE_SHORT_RECEIVE);
	case ENG_LOC_PROT_ERR:
		return oracle_lacks_local(end, message_at(end, index)) ||
		       (bad &&
			(plan->trouble == TROUBLE_LKEY || plan->trouble == TROUBLE_LOCAL_INV));
	default:
		return false;
	}
}

static void send_error(struct sim_end *end, const struct eng_wc *wc)
{
	struct oracle *oracle = &end->oracle;
	uint32_t index = (uint32_t)wc->wr_id;

	if (wc->status == ENG_WR_FLUSH_ERR) {
		if (!oracle->erred && !oracle->may_be_in_error)
			world_fail(end->world, "%s: message %u is flushed for no reason", end->name,
				   index);
	} else {
		if (oracle->erred || !error_right(end, index, wc->status))
			world_fail(end->world, "%s: message %u ends with %s", end->name, index,
				   eng_status_name(wc->status));
		end->world->total.errors++;
	}
	oracle->erred = true;
	oracle->may_be_in_error = true;
	oracle->completed = index + 1;
}

/* rule S9 test, rule S13 test */
void oracle_sent_completion(struct sim_end *end, const struct eng_wc *wc,
			    void (*error)(struct sim_end *end, const struct eng_wc *wc),
			    const char *when)
{
	struct oracle *oracle = &end->oracle;
	const struct message *message;
	uint32_t next = oracle->completed;

	/* Skips requests without completion, but not those that fail. */
	while (next < end->sent_posted && wc->wr_id != next &&
	       (!message_at(end, next)->signaled && next < oracle->asking.oldest))
		next++;
	if (next >= end->sent_posted || wc->wr_id != next) {
		world_fail(end->world, "%s: completion of message %llu, next is %u", end->name,
			   (unsigned long long)wc->wr_id, next);
		return;
	}
	message = message_at(end, next);
	if (wc->op != message->op)
		world_fail(end->world, "%s: completion of message %u says %s", end->name, next,
			   eng_op_name(wc->op));
	if (wc->status != ENG_SUCCESS) {
		error(end, wc);
		return;
	}
	if (!message->signaled || oracle->erred)
		world_fail(end->world, "%s: message %u must not have this completion", end->name,
			   next);
	if (next >= oracle->asking.oldest)
		world_fail(end->world, "%s: message %u completes before it is %s", end->name, next,
			   when);
	if (wc->byte_len != message->length)
		world_fail(end->world, "%s: message %u of %u bytes completes with %u", end->name,
			   next, message->length, wc->byte_len);
	oracle->completed = next + 1;
}

/* rule S6 test */
static void check_received(struct sim_end *end, const struct eng_wc *wc,
			   const struct message *message)
{
	uint32_t number = end->oracle.answering.held;
	const struct receive *receive = queue_receive(end->queue, number);
	struct area *landing = &end->queue->script->landing;
	uint32_t flag = message->op == ENG_SEND	      ? 0
			: message->op == ENG_SEND_INV ? ENG_WC_INVALIDATED
						      : ENG_WC_IMMEDIATE;
	const char *wrong = NULL;

	if (op_is_send(message->op)) {
		const uint8_t *bytes = content_of(end->peer, message);

		if (!area_holds(landing, receive->sge, receive->sge_count, bytes, message->length))
			wrong = "data";
		area_expect(landing, receive->sge, receive->sge_count, bytes, message->length);
	}
	if (wc->byte_len != message->length)
		wrong = "length";
	else if (wc->flags != flag || (flag != 0 && wc->immediate != message->immediate))
		wrong = "immediate data";
	else if (wc->solicited != ((message->flags & ENG_SOLICITED) != 0))
		wrong = "solicited event";
	else if ((wc->op == ENG_WRITE_IMM) != (message->op == ENG_WRITE_IMM))
		wrong = "operation";
	else if (end->type == ENG_XRC_RECV && wc->srqn != end->srqn)
		wrong = "receive queue";
	if (wrong)
		world_fail(end->world, "%s: receive %u has the wrong %s", end->name, number, wrong);
}

/* Packets of incomplete messages are tracked on UC and UD only. */
static void forget_held(struct sim_end *end)
{
	struct answering *answering = &end->oracle.answering;
	const struct receive *receive;

	if (!answering->holding)
		return;
	oracle_let_go(end);
	if (service_is_uc_ud(end->type))
		return;
	receive = queue_receive(end->queue, answering->held);
	area_forget_list(&end->queue->script->landing, receive->sge, receive->sge_count);
}

void oracle_receive_error(struct sim_end *end, const struct eng_wc *wc)
{
	struct oracle *oracle = &end->oracle;
	bool short_one = wc->status == ENG_LOC_LEN_ERR && oracle->answering.fatal &&
			 end->world->plan.trouble == TROUBLE_SHORT_RECEIVE &&
			 oracle->receives_erred == 0;

	bool gone = wc->status == ENG_LOC_PROT_ERR && end->queue->script->landing.gone &&
		    oracle->receives_erred == 0;
	/* rule S11 test */
	bool kept_key = wc->status == ENG_REM_INV_REQ_ERR && oracle->answering.fatal &&
			end->world->plan.trouble == TROUBLE_REMOTE_INV &&
			oracle->receives_erred == 0;

	if (!short_one && !gone && !kept_key &&
	    (wc->status != ENG_WR_FLUSH_ERR || !oracle->may_be_in_error))
		world_fail(end->world, "%s: receive %llu ends with %s", end->name,
			   (unsigned long long)~wc->wr_id, eng_status_name(wc->status));
	oracle->receives_erred++;
	forget_held(end);
}

/*
 * The next receive is that of the message in progress; without one, those of the QP's own queue
 * complete in order.
 */
static bool is_next_receive(const struct sim_end *end, uint64_t number)
{
	const struct oracle *oracle = &end->oracle;

	if (oracle->answering.holding)
		return number == oracle->answering.held;
	return !end->rq_shared && number < end->queue->posted &&
	       number == oracle->receives_completed + oracle->receives_erred;
}

static void receive_completion(struct sim_end *end, const struct eng_wc *wc)
{
	struct oracle *oracle = &end->oracle;
	const struct script *script = end->peer->script;

	while (oracle->receives_completed >= oracle->answering.received && oracle_kept_turn(end))
		;
	if (!is_next_receive(end, ~wc->wr_id)) {
		world_fail(end->world, "%s: completion of receive %llu, next is %u", end->name,
			   (unsigned long long)~wc->wr_id, oracle->answering.held);
		return;
	}
	if (wc->status != ENG_SUCCESS) {
		oracle_receive_error(end, wc);
		return;
	}
	if (oracle->receives_erred > 0 || !oracle->answering.holding ||
	    oracle->receives_completed >= oracle->answering.received) {
		world_fail(end->world, "%s: receive %llu completes for no message", end->name,
			   (unsigned long long)~wc->wr_id);
		return;
	}
	while (script->messages[oracle->next_taking].takes_receive == 0)
		oracle->next_taking++;
	check_received(end, wc, &script->messages[oracle->next_taking]);
	oracle->next_taking++;
	oracle->receives_completed++;
	oracle_let_go(end);
}

void oracle_completion(struct sim_end *end, const struct eng_wc *wc)
{
	end->world->last_progress = end->world->now;
	world_trace(end, "  %s completion %llu %s %s %u bytes%s", wc->receive ? "receive" : "send",
		    (unsigned long long)(wc->receive ? ~wc->wr_id : wc->wr_id), eng_op_name(wc->op),
		    eng_status_name(wc->status), wc->byte_len, wc->solicited ? " solicited" : "");
	if (wc->receive)
		(service_is_uc_ud(end->type) ? oracle_uc_ud_received : receive_completion)(end, wc);
	else if (service_is_uc_ud(end->type))
		oracle_uc_ud_sent(end, wc);
	else
		oracle_sent_completion(end, wc, send_error, "acknowledged");
}

void oracle_event(struct sim_end *end, enum eng_event event)
{
	struct oracle *oracle = &end->oracle;

	world_trace(end, "  event %s", eng_event_name(event));
	if (event == ENG_EVENT_LAST_WQE_REACHED) {
		if (!end->rq_shared || !oracle->may_be_in_error || ++oracle->last_wqes > 1)
			world_fail(end->world, "%s: an event LAST_WQE_REACHED too many", end->name);
		return;
	}
	if (service_is_uc_ud(end->type)) {
		oracle_uc_ud_event(end, event);
		return;
	}
	while ((event == ENG_EVENT_QP_REQ_ERR || event == ENG_EVENT_QP_ACCESS_ERR ||
		event == ENG_EVENT_QP_FATAL) &&
	       oracle_kept_turn(end))
		;
	switch (event) {
	case ENG_EVENT_COMM_EST:
		if (!oracle->answering.established || oracle->comm_est || end->state != ENG_RTR)
			world_fail(end->world, "%s: an event COMM_EST too many", end->name);
		oracle->comm_est = true;
		return;
	case ENG_EVENT_FIRST_REQUEST:
		if (!oracle->answering.established || oracle->comm_est || end->state == ENG_RTR)
			world_fail(end->world, "%s: a first request too many", end->name);
		oracle->comm_est = true;
		return;
	case ENG_EVENT_CREDITS_HIDDEN:
		if (!end->peer->plan->hides_credits || oracle->credits_hidden)
			world_fail(end->world, "%s: credits that are hidden too often", end->name);
		oracle->credits_hidden = true;
		return;
	case ENG_EVENT_SQ_DRAINED:
		oracle->drained_events++;
		if (oracle->drained_events > oracle->drains || end->state != ENG_SQD)
			world_fail(end->world, "%s: a drained event too many", end->name);
		if (oracle->asking.oldest != oracle->asking.begun)
			world_fail(end->world, "%s: drained, but %u of %u messages are complete",
				   end->name, oracle->asking.oldest, oracle->asking.begun);
		return;
	default:
		if (!oracle->may_be_in_error)
			world_fail(end->world, "%s: event %s for no reason", end->name,
				   eng_event_name(event));
	}
}

void oracle_to_error(struct sim_end *end)
{
	end->oracle.may_be_in_error = true;
	end->oracle.in_final = true;
}

bool oracle_all_done(const struct sim_end *end)
{
	if (service_is_uc_ud(end->type))
		return oracle_uc_ud_all_done(end);
	return end->oracle.asking.oldest == end->script->message_count &&
	       end->peer->oracle.receives_completed == end->script->receives_needed;
}

/* Only the bytes around a truncated message are known. */
static void forget_unfinished(struct sim_end *end)
{
	const struct asking *asking = &end->oracle.asking;
	struct area *remote = &end->peer->script->remote;

	for (uint32_t i = asking->oldest; i < end->script->message_count; i++) {
		const struct message *message = message_at(end, i);

		if (op_is_read(message->op) || op_is_atomic(message->op))
			area_forget_list(&end->script->landing, message->sge, message->sge_count);
		if (message->dead || !(op_is_write(message->op) || op_is_atomic(message->op)))
			continue;
		if (message_end(message) > end->peer->oracle.answering.expected)
			area_forget(remote, message->target, message->length);
	}
}

static void check_area(struct sim_end *end, const struct area *area, const char *name)
{
	uint32_t at = area_compare(area);

	if (at != NO_INDEX)
		world_fail(end->world, "%s: byte %u of the %s memory is %02x and not %02x",
			   end->name, at, name, area->bytes[at], area->image[at]);
}

static void check_cost(struct sim_end *end)
{
	const struct plan *plan = &end->world->plan;
	const struct asking *asking = &end->oracle.asking;

	if (!plan->lossless || end->oracle.broke || end->peer->oracle.broke)
		return;
	if (asking->naks > 0 || asking->timeouts > 0)
		world_fail(end->world, "%s: nothing was lost, but %llu NAKs and %llu timeouts",
			   end->name, (unsigned long long)asking->naks,
			   (unsigned long long)asking->timeouts);
	if (asking->repeats > 0 && asking->rnr_naks == 0)
		world_fail(end->world, "%s: nothing was lost, but %llu packets are repeated",
			   end->name, (unsigned long long)asking->repeats);
}

/* The engine's counters must match the observed events. */
static void check_counters(struct sim_end *end)
{
	const struct oracle *oracle = &end->oracle;
	struct eng_qp_info view;
	const char *wrong = NULL;

	eng_qp_query(end->qp, &view);
	for (uint32_t i = 0; i < ENG_COUNTER_COUNT; i++)
		view.counters[i] -= end->at_start.counters[i];
	if (view.counters[ENG_COUNT_SENT_PACKETS] != end->packets_sent)
		wrong = "packets sent";
	else if (view.counters[ENG_COUNT_TIMEOUTS] != oracle->asking.timeouts)
		wrong = "timeouts";
	else if (view.counters[ENG_COUNT_TAIL_LOSS_PROBES] != oracle->asking.probes)
		wrong = "probes";
	else if (view.counters[ENG_COUNT_ACK_PROBES] != oracle->asking.solicitations)
		wrong = "ACK solicitations";
	else if (view.counters[ENG_COUNT_RECEIVES] != oracle->receives_completed)
		wrong = "receives";
	else if (view.msn != oracle->answering.done || view.qpn != end->qpn ||
		 view.dest_qpn != end->peer->qpn)
		wrong = "MSN or QP numbers";
	if (wrong)
		world_fail(end->world, "%s: the engine shows wrong %s", end->name, wrong);
}

/* Called for both ends, which are in ERR, before the memory is compared. */
void oracle_final(struct sim_end *end)
{
	oracle_check_flushed(end);
	if (end->oracle.last_wqes != end->rq_shared)
		world_fail(end->world, "%s: no event LAST_WQE_REACHED", end->name);
	if (service_is_uc_ud(end->type)) {
		oracle_uc_ud_final(end);
	} else {
		check_counters(end);
		forget_unfinished(end);
		forget_unfinished(end->peer);
		check_cost(end);
	}
	check_area(end, &end->script->source, "source");
	check_area(end, &end->script->landing, "landing");
	check_area(end, &end->script->remote, "remote");
}
