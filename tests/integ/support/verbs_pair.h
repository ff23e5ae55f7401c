/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Two connected queue pairs in one process, over the loopback device.  A failing call fails the
 * current test, unless the function returns an error.
 */
#ifndef UROCE_TESTS_VERBS_PAIR_H
#define UROCE_TESTS_VERBS_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>

#include <infiniband/verbs.h>

#define END_BUFFER (1 << 20)

/* Time limit for an event, on a host with much other work. */
enum { PATIENCE_MS = 10000 };

/* All access rights of a region that is not on-demand and has no memory windows. */
enum {
	ALL_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_ATOMIC,
};

/* One end, which shares no object with the other one. */
struct verbs_end {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer; /* END_BUFFER bytes */
};

struct pair {
	struct verbs_end a, b;
};

/* Options of pair_open(); 0: default. */
struct pair_options {
	int cqe;		   /* 64 */
	uint32_t send_wr, recv_wr; /* 16 */
	uint32_t sge;		   /* 4 */
	uint32_t inline_data;	   /* 64 */
	int no_remote_access;	   /* of the regions and of the queue pairs */
	int sq_sig_all;
	enum ibv_mtu mtu;  /* 1024 */
	uint8_t timeout;   /* 10: 4 ms */
	uint8_t rnr_retry; /* 7 */
	int rnr_retry_zero;
	uint64_t send_ops; /* send_ops_flags of ibv_create_qp_ex() */
};

/* The context of the test's device: UROCE_TEST_DEVICE or uroce_lo.  Opened once. */
struct ibv_context *the_context(void);
uint8_t the_gid_index(void);

void pair_open(struct pair *pair, const struct pair_options *options);
void pair_close(struct pair *pair);

/*
 * Setup and teardown for cmocka: a pair with default options for each test, in the struct pair that
 * *state points to.
 */
int pair_set_up(void **state);
int pair_tear_down(void **state);
#define PAIR_TEST(test, pair) \
	cmocka_unit_test_prestate_setup_teardown(test, pair_set_up, pair_tear_down, pair)

/* Steps of pair_open(), for tests that take them one by one.  Return 0 or errno. */
int to_init(struct ibv_qp *qp, unsigned int access);
int to_rtr(struct ibv_qp *qp, uint32_t dest_qpn, const struct pair_options *options);
int to_rts(struct ibv_qp *qp, const struct pair_options *options);
int to_state(struct ibv_qp *qp, enum ibv_qp_state state);

/*
 * Post one request with 0 or 1 SGE in the end's buffer.  post_rdma() posts any opcode but a SEND,
 * to the buffer of another end.  They return 0 or errno like ibv_post_*().
 */
int post_recv(struct verbs_end *end, uint64_t wr_id, size_t offset, uint32_t length);
int post_send(struct verbs_end *end, uint64_t wr_id, size_t offset, uint32_t length, int flags);
int post_rdma(struct verbs_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id, size_t offset,
	      uint32_t length, int flags, const struct verbs_end *remote, size_t remote_offset);

/*
 * Post one request with one SGE in any memory, to any remote memory; posting must succeed.  A
 * fetch-and-add adds 3.
 */
void post_sge(struct verbs_end *end, enum ibv_wr_opcode opcode, uint64_t wr_id, struct ibv_sge sge,
	      uint32_t rkey, uint64_t remote);
void receive_sge(struct verbs_end *end, uint64_t wr_id, struct ibv_sge sge);
/* SGE in the end's buffer. */
struct ibv_sge sge_of(const struct verbs_end *end, size_t offset, uint32_t length);

/* Poll until a completion comes; the test fails after PATIENCE_MS. */
struct ibv_wc wait_wc(struct verbs_end *end);
/* Like wait_wc(), and checks wr_id and status of the completion. */
struct ibv_wc expect_wc(struct verbs_end *end, uint64_t wr_id, enum ibv_wc_status status);
/* Checks that two polls return no completion. */
void expect_no_wc(struct verbs_end *end);

#endif
