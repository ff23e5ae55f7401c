/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Functions for the commands of rdma_ucm, which return 0 or an errno, and helpers. */
#ifndef UROCE_TESTS_UNIT_UCM_CALLER_H
#define UROCE_TESTS_UNIT_UCM_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_user_cm.h>

#define QP_RC 2
#define QP_UD 4

int create_id(int fd, uint16_t space, uint64_t uid, uint32_t *id);
/* Creates an id in RDMA_PS_IB, where the QP type is a parameter. */
int create_ib_id(int fd, uint8_t qp_type, uint32_t *id);
int destroy_id(int fd, uint32_t id, uint32_t *reported);
/* address: "a.b.c.d", or NULL for any. */
int bind_id(int fd, uint32_t id, const char *address, uint16_t port);
/* Binds to any address of IPv6, and of IPv4 if the option allows it. */
int bind_ipv6_id(int fd, uint32_t id, uint16_t port);
int listen_id(int fd, uint32_t id, uint32_t backlog);
int resolve_id(int fd, uint32_t id, const char *address, uint16_t port);
/* resolve_id() with an address of family AF_IB. */
int resolve_ib_id(int fd, uint32_t id, const char *address, uint16_t port);
int resolve_route_id(int fd, uint32_t id);
int query_route_id(int fd, uint32_t id, struct rdma_ucm_query_route_resp *answer);
/* Returns the port that the id is bound to. */
uint16_t port_of(int fd, uint32_t id);
/* Queue pair number that connect_id() and accept_id() pass. */
uint32_t qpn_of(uint32_t id);
/* RNR retry count that both pass; 5 unless a test changes it. */
extern uint8_t said_rnr_retry;
int connect_id(int fd, uint32_t id, const void *data, uint8_t length);
int accept_id(int fd, uint32_t id, uint64_t uid, const void *data, uint8_t length);
int establish_id(int fd, uint32_t id);
int reject_id(int fd, uint32_t id, uint8_t reason, const void *data, uint8_t length);
int disconnect_id(int fd, uint32_t id);
int notify_id(int fd, uint32_t id, uint32_t event);
int option_id(int fd, uint32_t id, uint32_t level, uint32_t name, const void *value,
	      uint32_t bytes);
int init_qp_attr_id(int fd, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr);
int migrate_id(int to, int from, uint32_t id, uint32_t *reported);
int write_event_id(int fd, uint32_t id, uint32_t event, uint32_t status, uint64_t argument);
int join_id(int fd, uint32_t id, uint64_t uid, const char *group, uint16_t flags, uint32_t *handle);
int leave_group(int fd, uint32_t handle, uint32_t *reported);
/* Reads an event.  Does not wait if the descriptor is non-blocking. */
int get_event(int fd, struct rdma_ucm_event_resp *event);

/* Opens a non-blocking channel. */
int open_channel(void);
/* Reads the next event, which must have this type, status and id.  event may be NULL. */
void expect_event(int fd, uint32_t type, int status, uint32_t id,
		  struct rdma_ucm_event_resp *event);
void expect_no_event(int fd);

#endif
