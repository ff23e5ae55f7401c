/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The operations that uroce serves, declared with exactly the types of libibverbs' table.  A new
 * one needs a line here and nothing else: ops.c makes the table from this list.  To all others
 * libibverbs answers EOPNOTSUPP by itself.
 *
 * Functions return 0 or a positive errno, or NULL with errno.  Y is for those that return a number:
 * ops.c sets errno to it as well (answer.h).  libibverbs fills the common fields of pd, mr, cq, srq
 * and ah after the provider's function has returned; those of a qp it does not.
 */
#ifndef UROCE_VERBS_OPS_H
#define UROCE_VERBS_OPS_H

#include "abi.h"

/* clang-format off */
#define UROCE_OPS(X, Y)                                                                            \
	/* context.c, query.c */                                                                   \
	X(free_context)                                                                            \
	Y(query_device_ex,                                                                         \
	  (struct ibv_context *context, const struct ibv_query_device_ex_input *input,             \
	   struct ibv_device_attr_ex *attr, size_t bytes),                                         \
	  (context, input, attr, bytes))                                                           \
	Y(query_port,                                                                              \
	  (struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr),                 \
	  (context, port, attr))                                                                   \
	Y(query_rt_values,                                                                         \
	  (struct ibv_context *context, struct ibv_values_ex *values),                             \
	  (context, values))                                                                       \
	/* pd.c */                                                                                 \
	X(alloc_pd)                                                                                \
	Y(dealloc_pd, (struct ibv_pd *pd), (pd))                                                   \
	X(import_pd)                                                                               \
	X(unimport_pd)                                                                             \
	/* parent_domain.c */                                                                      \
	X(alloc_td)                                                                                \
	Y(dealloc_td, (struct ibv_td *td), (td))                                                   \
	X(alloc_parent_domain)                                                                     \
	/* mr.c */                                                                                 \
	X(reg_mr)                                                                                  \
	Y(rereg_mr,                                                                                \
	  (struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,           \
	   int access),                                                                            \
	  (mr, flags, pd, addr, length, access))                                                   \
	Y(dereg_mr, (struct verbs_mr *mr), (mr))                                                   \
	X(import_mr)                                                                               \
	X(unimport_mr)                                                                             \
	X(alloc_null_mr)                                                                           \
	Y(advise_mr, /* advise.c */                                                                \
	  (struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,                    \
	   struct ibv_sge *list, uint32_t count),                                                  \
	  (pd, advice, flags, list, count))                                                        \
	/* mw.c */                                                                                 \
	X(alloc_mw)                                                                                \
	Y(bind_mw,                                                                                 \
	  (struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind),                        \
	  (qp, mw, bind))                                                                          \
	Y(dealloc_mw, (struct ibv_mw *mw), (mw))                                                   \
	/* dm.c */                                                                                 \
	X(alloc_dm)                                                                                \
	Y(free_dm, (struct ibv_dm *dm), (dm))                                                      \
	X(reg_dm_mr)                                                                               \
	X(import_dm)                                                                               \
	X(unimport_dm)                                                                             \
	/* cq.c, cq_ex.c */                                                                        \
	X(create_cq)                                                                               \
	X(create_cq_ex)                                                                            \
	X(poll_cq)                                                                                 \
	Y(req_notify_cq, (struct ibv_cq *cq, int solicited_only), (cq, solicited_only))            \
	X(cq_event)                                                                                \
	Y(resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe))                                      \
	Y(modify_cq, /* cq_moderate.c */                                                           \
	  (struct ibv_cq *cq, struct ibv_modify_cq_attr *attr),                                    \
	  (cq, attr))                                                                              \
	Y(destroy_cq, (struct ibv_cq *cq), (cq))                                                   \
	/* qp.c, qp_modify.c, post.c */                                                            \
	X(create_qp)                                                                               \
	X(create_qp_ex)                                                                            \
	Y(modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))    \
	Y(query_qp,                                                                                \
	  (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,                                  \
	   struct ibv_qp_init_attr *init),                                                         \
	  (qp, attr, mask, init))                                                                  \
	Y(destroy_qp, (struct ibv_qp *qp), (qp))                                                   \
	Y(post_send,                                                                               \
	  (struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad),                   \
	  (qp, wr, bad))                                                                           \
	Y(post_recv,                                                                               \
	  (struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),                   \
	  (qp, wr, bad))                                                                           \
	/* xrc_qp.c */                                                                             \
	X(open_qp)                                                                                 \
	/* ah.c */                                                                                 \
	X(create_ah)                                                                               \
	Y(destroy_ah, (struct ibv_ah *ah), (ah))                                                   \
	/* srq.c */                                                                                \
	X(create_srq)                                                                              \
	X(create_srq_ex)                                                                           \
	Y(modify_srq,                                                                              \
	  (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),                              \
	  (srq, attr, mask))                                                                       \
	Y(query_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr))                \
	Y(destroy_srq, (struct ibv_srq *srq), (srq))                                               \
	Y(post_srq_recv,                                                                           \
	  (struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),                 \
	  (srq, wr, bad))                                                                          \
	Y(get_srq_num, (struct ibv_srq *srq, uint32_t *number), (srq, number))                     \
	/* xrc.c */                                                                                \
	X(open_xrcd)                                                                               \
	Y(close_xrcd, (struct ibv_xrcd *xrcd), (xrcd))                                             \
	/* mcast.c */                                                                              \
	Y(attach_mcast,                                                                            \
	  (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),                             \
	  (qp, gid, lid))                                                                          \
	Y(detach_mcast,                                                                            \
	  (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),                             \
	  (qp, gid, lid))
/* clang-format on */

/*
 * uroce_alloc_pd, uroce_poll_cq ... : the function of operation alloc_pd has the type of the field
 * alloc_pd of struct abi_ops.
 */
#define UROCE_OP_DECLARE(name, ...) extern __typeof__(*((struct abi_ops *)0)->name) uroce_##name;
UROCE_OPS(UROCE_OP_DECLARE, UROCE_OP_DECLARE)
#undef UROCE_OP_DECLARE

/* The table for libibverbs. */
extern const struct abi_ops uroce_ops;

/*
 * The operation async_event: count what the application has been told of.  (uroce_async_event() is
 * the other end, which raises an event.)
 */
void uroce_async_event_op(struct ibv_context *context, struct ibv_async_event *event);

#endif
