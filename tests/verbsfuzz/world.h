/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The fuzzer of the verbs API: random calls on real objects over uroce_lo, and a model that
 * predicts the possible results of each call from the manual pages alone.  One process runs one
 * seed.
 *
 * The model knows only the arguments and results of calls.  Packets travel between the calls, so
 * it often knows only a set of possibilities: the states that a queue pair may be in, the requests
 * that may have completed.  A result outside of that set is a finding.
 */
#ifndef UROCE_TESTS_VERBSFUZZ_WORLD_H
#define UROCE_TESTS_VERBSFUZZ_WORLD_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "sim/random.h"

enum {
	MAX_CONTEXTS = 3,
	MAX_DOMAINS = 4,
	MAX_CHANNELS = 3,
	MAX_QUEUES = 8,
	MAX_SHARED = 4,
	MAX_XRC_DOMAINS = 3,
	MAX_REGIONS = 20,
	MAX_WINDOWS = 6,
	MAX_DEVICE_MEMORY = 3,
	MAX_HANDLES = 6,
	MAX_PAIRS = 12,
	MAX_WORKS = 1 << 16,
	MAX_GROUPS = 3,
	PAGE = 4096,
	ARENA_PAGES = 48,
	ARENA_BYTES = ARENA_PAGES * PAGE,
	/* The last two pages of the arena: one to read only, and one without any access. */
	READ_ONLY_PAGE = ARENA_PAGES - 2,
	NO_ACCESS_PAGE = ARENA_PAGES - 1,
	DM_BYTES = 4096,
	ANY_QKEY = 0x11111111,
};

/* Each object is in use while its pointer is set; an object of a closed context stays in use. */
struct context {
	struct ibv_context *verbs;
	bool closed;
};

struct domain {
	struct ibv_pd *verbs;
	struct context *context;
	struct domain *below; /* the domain that a parent domain was made of, or NULL */
};

struct channel {
	struct ibv_comp_channel *verbs;
	struct context *context;
};

struct queue {
	struct ibv_cq *verbs;
	struct context *context;
	struct channel *channel;
	bool extended;
	bool ignores_overrun;
	bool dead;	    /* a poll has failed */
	uint32_t least_cqe; /* smallest size so far */
	uint32_t peak;	    /* maximum number of completions that it may have held at a time */
	uint64_t armings, events;
};

struct xrc_domain {
	struct ibv_xrcd *verbs;
	struct context *context;
};

/* Requests in the order of their posting, linked by work.next; 0 is none. */
struct fifo {
	uint32_t first, last, count;
};

struct shared {
	struct ibv_srq *verbs;
	struct context *context;
	struct domain *domain;
	struct xrc_domain *xrc_domain; /* XRC only, as are queue and number */
	struct queue *queue;
	uint32_t number;
	uint32_t max_wr, max_sge;
	uint32_t outstanding;
};

enum region_kind {
	REGION_PLAIN,
	REGION_NULL,
	REGION_DEVICE,
	REGION_IMPLICIT,
};

struct device_memory {
	struct ibv_dm *verbs;
	struct context *context;
};

struct region {
	struct ibv_mr *verbs;
	struct context *context;
	struct domain *domain;
	struct device_memory *memory;
	enum region_kind kind;
	uint8_t *addr;
	uint64_t length, start; /* start: address by which requests name it */
	int access;
	bool may_be_bound;
};

struct window {
	struct ibv_mw *verbs;
	struct context *context;
	struct domain *domain;
};

struct handle {
	struct ibv_ah *verbs;
	struct context *context;
	struct domain *domain;
};

/* State that all openings of an XRC target share; any other queue pair has its own core. */
struct core {
	unsigned int openings;
	bool ended;		 /* the context of an opening has been closed */
	unsigned int possible;	 /* set of states, 1 << enum ibv_qp_state */
	struct ibv_qp_attr attr; /* as set */
	int set;		 /* mask of attributes whose value is known */
};

struct pair {
	struct ibv_qp *verbs;
	struct context *context;
	enum ibv_qp_type type;
	struct core *core;
	struct domain *domain; /* these may be NULL */
	struct queue *send_queue, *recv_queue;
	struct shared *shared;
	struct xrc_domain *xrc_domain;
	struct ibv_qp_cap cap;
	bool signal_all;
	bool has_functions; /* of ibv_wr_*() */
	bool attached[MAX_GROUPS];
	uint32_t number;
	uint32_t epoch;	       /* incremented when earlier errors end: RESET, SQE to RTS */
	uint32_t failed_epoch; /* last epoch in which a send has completed in error */
	struct fifo sends, recvs;
};

enum work_kind {
	WORK_SEND,
	WORK_RECV,
	WORK_SHARED,
};

/* A request that was accepted; its wr_id is its place plus world.first_id. */
struct work {
	enum work_kind kind;
	bool outstanding; /* neither completed nor dropped by RESET or destruction */
	bool signaled;
	enum ibv_wr_opcode opcode;
	uint32_t next;
	uint32_t epoch;
	uint64_t length; /* of a receive */
	struct pair *pair;
	struct shared *shared;
};

struct clean;

struct world {
	struct sim_random random;
	uint64_t seed;
	bool verbose;
	struct ibv_device **list;
	struct ibv_device *device;
	struct ibv_device_attr limits;
	int gids;	       /* entries of the GID table that are in use, from 0 on */
	union ibv_gid gid[16]; /* the table */

	struct context contexts[MAX_CONTEXTS];
	struct domain domains[MAX_DOMAINS];
	struct channel channels[MAX_CHANNELS];
	struct queue queues[MAX_QUEUES];
	struct shared shared[MAX_SHARED];
	struct xrc_domain xrc_domains[MAX_XRC_DOMAINS];
	struct region regions[MAX_REGIONS];
	struct window windows[MAX_WINDOWS];
	struct device_memory memories[MAX_DEVICE_MEMORY];
	struct handle handles[MAX_HANDLES];
	struct pair pairs[MAX_PAIRS];
	struct core cores[MAX_PAIRS];

	struct work works[MAX_WORKS];
	uint32_t work_count;
	uint64_t first_id;
	int xrc_file;

	uint8_t *arena;
	uint8_t *before;	    /* expected bytes of the arena where no region allows writes */
	uint8_t cover[ARENA_BYTES]; /* number of regions that let a byte be written */
	struct clean *clean;

	char trace[64][200];
	unsigned int traced;
};

/* ---- world.c ---- */

/* Reports a finding and ends the process with an error. */
void finding(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)))
__attribute__((noreturn));
/* Keeps a line for the report of a finding; with --verbose prints it at once. */
void note(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define MUST(world, condition, ...)                  \
	do {                                         \
		if (!(condition))                    \
			finding(world, __VA_ARGS__); \
	} while (0)

static inline uint32_t below(struct world *world, uint32_t n)
{
	return random_below(&world->random, n);
}

static inline bool chance(struct world *world, uint32_t percent)
{
	return random_chance(&world->random, percent * 10);
}

#define COUNT_OF(array) ((uint32_t)(sizeof(array) / sizeof((array)[0])))

/* A random object of the table that is in use, or one that is not; NULL if there is none. */
#define PICK(world, table)                                                                     \
	((__typeof__(&(world)->table[0]))pick(world, (world)->table, COUNT_OF((world)->table), \
					      sizeof((world)->table[0]), true))
#define UNUSED(world, table)                                                                   \
	((__typeof__(&(world)->table[0]))pick(world, (world)->table, COUNT_OF((world)->table), \
					      sizeof((world)->table[0]), false))
void *pick(struct world *world, void *table, uint32_t count, size_t bytes, bool used);

/* Requires that the context has been closed, and that errno is that of a call after a close. */
void must_be_closed(struct world *world, const struct context *context, const char *call);

void world_run(struct world *world);

/* ---- objects.c: contexts, domains, channels, XRC domains, handles, windows, device memory ---- */

void do_open_context(struct world *world);
void do_close_context(struct world *world);
void do_alloc_domain(struct world *world);
void do_alloc_parent(struct world *world);
void do_create_channel(struct world *world);
void do_open_xrc_domain(struct world *world);
void do_create_handle(struct world *world);
void do_alloc_window(struct world *world);
void do_alloc_memory(struct world *world);
void do_copy_memory(struct world *world);
/*
 * Fills attr; returns true if the device must accept it, false if the device must refuse it.
 * *odd: the device may do either.
 */
bool draw_address(struct world *world, struct ibv_ah_attr *attr, bool *odd);
/* Returns a context that is open, or NULL. */
struct context *pick_context(struct world *world);

/* ---- destroy.c ---- */

void do_destroy(struct world *world);
/* Destroys all objects that are left, in random order. */
void destroy_all(struct world *world);

/* ---- memory.c: regions and the bytes of the arena ---- */

void memory_open(struct world *world);
void do_register(struct world *world);
void do_register_special(struct world *world);
void do_reregister(struct world *world);
void do_advise(struct world *world);
/* Counts the region (1), or no longer (-1), as one that lets its bytes of the arena change. */
void memory_cover(struct world *world, const struct region *region, int change);
/* Checks that no byte has changed that no region allowed to be written. */
void memory_check(struct world *world);

/* ---- queues.c: completion queues and shared receive queues ---- */

void do_create_queue(struct world *world);
void do_create_queue_ex(struct world *world);
void do_resize(struct world *world);
void do_moderate(struct world *world);
void do_create_shared(struct world *world);
void do_modify_shared(struct world *world);
/* Returns true if the queue may have overrun by now. */
bool may_be_dead(const struct queue *queue);

/* ---- pairs.c: creating queue pairs ---- */

void do_create_pair(struct world *world);
void do_open_target(struct world *world);
void do_group(struct world *world);
union ibv_gid group_gid(unsigned int group);

/* ---- states.c: modifying and querying queue pairs ---- */

void do_modify(struct world *world);
void do_connect(struct world *world);
void do_query(struct world *world);
/* The states that a queue pair may be in by now. */
unsigned int states_now(const struct pair *pair);
/* Calls ibv_modify_qp() and checks its result; bad: the attributes must be refused; odd: may be. */
int modify(struct world *world, struct pair *pair, struct ibv_qp_attr *attr, int mask, bool bad,
	   bool odd);

/* ---- posts.c, extended.c ---- */

void do_post_send(struct world *world);
void do_post_extended(struct world *world);
void do_post_recv(struct world *world);
void do_post_shared(struct world *world);
void do_bind(struct world *world);
/* Posts a signaled send of no bytes to a queue pair in ERR; returns false if it cannot. */
bool post_beacon(struct world *world, struct pair *pair);

/* Predicted result of a post. */
enum expect {
	EXPECT_ACCEPTED,
	EXPECT_REFUSED, /* EINVAL */
	EXPECT_EITHER,
};

/* A random gather list of bytes in total. */
struct list {
	struct ibv_sge sge[4];
	int count;
	uint64_t bytes;
};
enum list_kind {
	LIST_READ,    /* by the device */
	LIST_WRITTEN, /* by the device */
	LIST_WORD,    /* written, eight bytes */
	LIST_INLINE,
};
void draw_list(struct world *world, const struct pair *pair, struct list *list,
	       enum list_kind kind);
/* A key and an address at the other end, mostly good ones. */
void draw_remote(struct world *world, const struct pair *pair, uint64_t *addr, uint32_t *key);
/* A region that mostly belongs to the domain and has these rights; NULL if there is none. */
struct region *draw_region(struct world *world, const struct domain *domain, int access);
/* A queue pair that most probably is in one of these states; NULL if there is none. */
struct pair *pick_in(struct world *world, unsigned int states);
/* Fills info; returns the predicted result of the bind of window, whose type may be wrong. */
enum expect draw_bind(struct world *world, struct window *window, struct ibv_mw_bind_info *info);
/* Return true if one of the states that the queue pair may be in refuses, or accepts, a request. */
bool state_refuses(const struct pair *pair, bool receive);
bool state_accepts(const struct pair *pair, bool receive);

/* ---- works.c: requests and their completions ---- */

/* Returns the place of the next request; that there is no room for it is a finding. */
uint32_t next_work(struct world *world);
static inline uint64_t id_of(const struct world *world, uint32_t place)
{
	return world->first_id + place;
}
void accept_send(struct world *world, struct pair *pair, uint32_t place, enum ibv_wr_opcode opcode,
		 unsigned int flags);
void accept_recv(struct world *world, struct pair *pair, struct shared *shared, uint32_t place,
		 uint64_t bytes);
/* Drop the requests of a queue pair or a shared queue, which will never complete. */
void forget_works(struct world *world, struct pair *pair);
void forget_shared(struct world *world, struct shared *shared);
void do_poll(struct world *world);
void do_settle(struct world *world);
void poll_all(struct world *world);
/* Moves all queue pairs to ERR: all requests that were accepted must complete. */
void drain_all(struct world *world);

/* ---- events.c ---- */

void do_notify(struct world *world);
void do_events(struct world *world);

/* ---- clean.c: pairs whose every byte is known ---- */

void do_clean(struct world *world);
void clean_close(struct world *world);

#endif
