/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Deliberate faults.  A mutant changes the inputs or outputs of an engine, so that the pair of them
 * behaves like a faulty engine; the oracle must find it within some seeds.  Mutants prove that the
 * simulator can fail.
 *
 * Some scheduling rules have no mutant, because breaking them costs only time and no oracle defines
 * how much is too much: that posts are batched, and how many (tx_sched_post()); whether an ACK is
 * delayed for a reply, or sent with requests (that the delay ends is checked); that a burst waits
 * for a part of the window (requester_waits_for_cwnd()); and that a probe is sent, since the
 * timeout may find the same loss, which is right where the tail was lost.  Of some 1,600 seeds
 * without any fault one has a timeout after a reported loss without a probe, so an oracle for that
 * would have to repeat probe.c.
 */
#ifndef UROCE_SIM_MUTANT_H
#define UROCE_SIM_MUTANT_H

#include "engine/engine.h"
#include "sim/plan/script.h"
#include "wire/packet.h"

struct sim_end;
struct net_packet;
struct world;

/* Fault of the congestion window. */
enum mutant_law {
	MUTANT_LAW_RIGHT,
	MUTANT_LAW_ONE_PACKET,
	MUTANT_LAW_NO_FLOOR,
	MUTANT_LAW_EACH_NOTICE,
	MUTANT_LAW_DEAF,
	MUTANT_LAW_SELFISH,
	MUTANT_LAW_TELLS_ALWAYS,
	MUTANT_LAW_TELLS_NOTHING,
	/* Faults of loss recovery (mutant_losses.c). */
	MUTANT_GAP_IS_PASSED,
	MUTANT_PLACED_WRONG,
	MUTANT_KEPT_WRONG,
	MUTANT_KEPT_NOT_USED,
	MUTANT_REPAIRS_NOTHING,
	MUTANT_STAYS_IN_RECOVERY,
	MUTANT_STAYS_IN_GO_BACK,
	MUTANT_STAYS_IN_PROBE,
	MUTANT_STAYS_IN_RNR_WAIT,
	MUTANT_NO_RECOVERY,
	MUTANT_NO_GO_BACK,
	MUTANT_NO_PROBE,
	MUTANT_NO_RNR_WAIT,
	/* Faults of the scheduler (mutant_schedule.c). */
	MUTANT_ACK_FORGOTTEN,
	MUTANT_ACK_NOT_RELEASED,
	MUTANT_GATHERS_FOR_EVER,
	MUTANT_RIDING_ACK_LOST,
	MUTANT_PAUSES_FOR_EVER,
	MUTANT_EARLY_PROBE,
	MUTANT_UNSENT_FORGOTTEN,
	MUTANT_IGNORES_FULL,
	MUTANT_SHARE_NEVER_OPENS,
	MUTANT_OVERTAKES,
};

struct mutant {
	const char *name;
	const char *fault; /* what the engine seems to do wrong */
	/* Called for each packet sent; returns true if it changed the packet. */
	bool (*departure)(struct sim_end *end, struct wire_packet *packet);
	/*
	 * Called for each packet received, after the oracle; returns true if it changed the packet.
	 */
	bool (*arrival)(struct sim_end *end, struct wire_packet *packet);
	/* Responses sent and requests received are dropped if this returns true. */
	bool (*swallows)(struct sim_end *end, const struct wire_packet *packet);
	bool unseen; /* the oracle does not see the dropped packets either */
	/* Requests for which this returns true are neither sent nor shown to the oracle. */
	bool (*withholds)(struct sim_end *end, const struct wire_packet *packet);
	bool (*post)(struct sim_end *end, struct eng_send_wqe *wqe);
	bool (*attr)(struct sim_end *end, struct eng_attr *attr);
	/* Number of times that the completion is reported: 1 is right. */
	uint32_t (*completion)(struct sim_end *end, struct eng_wc *wc);
	/*
	 * Returns true if a receive request taken by eng_ops.get_recv_wqe must stay in the queue.
	 */
	bool (*takes_again)(struct sim_end *end);
	bool (*hides)(struct sim_end *end, enum eng_event event);
	bool answers_last;  /* responses are sent only if there are no requests to send */
	bool keeps_memory;  /* keys of deregistered memory stay valid */
	bool keeps_windows; /* keys of invalidated windows stay valid */
	bool flows;	    /* found by flows through a bottleneck */
	enum mutant_law law;
	uint64_t seed; /* first seed to run, if few seeds can show the fault; or 0 */
};

extern const struct mutant mutants_of_services[];
extern const uint32_t mutants_of_services_count;
extern const struct mutant mutants_of_flows[];
extern const uint32_t mutants_of_flows_count;
extern const struct mutant mutants_of_losses[];
extern const uint32_t mutants_of_losses_count;
extern const struct mutant mutants_of_schedule[];
extern const uint32_t mutants_of_schedule_count;

/* Returns true if the engine under test has this fault, and counts it as an effect. */
bool mutant_has(enum mutant_law law);

const struct mutant *mutant_find(const char *name);
/* The n-th mutant, or NULL. */
const struct mutant *mutant_at(uint32_t n);

/* To be called at the start of each seed. */
void mutant_start(struct world *world);

enum mutant_way {
	MUTANT_SEND,
	MUTANT_SWALLOW, /* not sent, without a notice to the oracle */
	MUTANT_UNSEEN,	/* not sent and not shown to the oracle */
};

/*
 * Called at each place, with or without a mutant.  mutant_arrival() returns false if the packet
 * must be dropped.
 */
enum mutant_way mutant_departure(struct sim_end *end, struct net_packet *bytes,
				 struct wire_packet *packet);
bool mutant_arrival(struct sim_end *end, struct wire_packet *packet);
void mutant_post(struct sim_end *end, struct eng_send_wqe *wqe);
void mutant_attr(struct sim_end *end, struct eng_attr *attr);
uint32_t mutant_completion(struct sim_end *end, struct eng_wc *wc);
bool mutant_takes_again(struct sim_end *end);
bool mutant_hides(struct sim_end *end, enum eng_event event);
bool mutant_answers_last(struct sim_end *end);
bool mutant_keeps_memory(struct sim_end *end, const struct area *area);
bool mutant_keeps_window(struct sim_end *end, const struct window *window);

#endif
