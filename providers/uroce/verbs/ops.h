/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The operations that uroce serves, declared with exactly the types of libibverbs' table.  A new
 * one needs a line here and nothing else: context.c makes the table from this list.  To all others
 * libibverbs answers EOPNOTSUPP by itself.
 *
 * Functions return 0 or a positive errno, or NULL with errno.  libibverbs fills the common fields
 * of pd, mr, cq, srq and ah after the provider's function has returned; those of a qp it does not.
 */
#ifndef UROCE_VERBS_OPS_H
#define UROCE_VERBS_OPS_H

#include "abi.h"

/* clang-format off */
#define UROCE_OPS(X)                                                                               \
	/* context.c, query.c */                                                                   \
	X(free_context)                                                                            \
	X(query_device_ex)                                                                         \
	X(query_port)                                                                              \
	X(query_rt_values)                                                                         \
	/* pd.c */                                                                                 \
	X(alloc_pd)                                                                                \
	X(dealloc_pd)                                                                              \
	X(import_pd)                                                                               \
	X(unimport_pd)                                                                             \
	/* parent_domain.c */                                                                      \
	X(alloc_td)                                                                                \
	X(dealloc_td)                                                                              \
	X(alloc_parent_domain)                                                                     \
	/* mr.c */                                                                                 \
	X(reg_mr)                                                                                  \
	X(rereg_mr)                                                                                \
	X(dereg_mr)                                                                                \
	X(import_mr)                                                                               \
	X(unimport_mr)                                                                             \
	X(alloc_null_mr)                                                                           \
	X(advise_mr) /* advise.c */                                                                \
	/* mw.c */                                                                                 \
	X(alloc_mw)                                                                                \
	X(bind_mw)                                                                                 \
	X(dealloc_mw)                                                                              \
	/* dm.c */                                                                                 \
	X(alloc_dm)                                                                                \
	X(free_dm)                                                                                 \
	X(reg_dm_mr)                                                                               \
	X(import_dm)                                                                               \
	X(unimport_dm)                                                                             \
	/* cq.c, cq_ex.c */                                                                        \
	X(create_cq)                                                                               \
	X(create_cq_ex)                                                                            \
	X(poll_cq)                                                                                 \
	X(req_notify_cq)                                                                           \
	X(cq_event)                                                                                \
	X(resize_cq)                                                                               \
	X(modify_cq) /* cq_moderate.c */                                                           \
	X(destroy_cq)                                                                              \
	/* qp.c, qp_modify.c, post.c */                                                            \
	X(create_qp)                                                                               \
	X(create_qp_ex)                                                                            \
	X(modify_qp)                                                                               \
	X(query_qp)                                                                                \
	X(destroy_qp)                                                                              \
	X(post_send)                                                                               \
	X(post_recv)                                                                               \
	/* xrc_qp.c */                                                                             \
	X(open_qp)                                                                                 \
	/* ah.c */                                                                                 \
	X(create_ah)                                                                               \
	X(destroy_ah)                                                                              \
	/* srq.c */                                                                                \
	X(create_srq)                                                                              \
	X(create_srq_ex)                                                                           \
	X(modify_srq)                                                                              \
	X(query_srq)                                                                               \
	X(destroy_srq)                                                                             \
	X(post_srq_recv)                                                                           \
	X(get_srq_num)                                                                             \
	/* xrc.c */                                                                                \
	X(open_xrcd)                                                                               \
	X(close_xrcd)                                                                              \
	/* mcast.c */                                                                              \
	X(attach_mcast)                                                                            \
	X(detach_mcast)
/* clang-format on */

/*
 * uroce_alloc_pd, uroce_poll_cq ... : the function of operation alloc_pd has the type of the field
 * alloc_pd of struct abi_ops.
 */
#define UROCE_OP_DECLARE(name) extern __typeof__(*((struct abi_ops *)0)->name) uroce_##name;
UROCE_OPS(UROCE_OP_DECLARE)
#undef UROCE_OP_DECLARE

/*
 * The operation async_event: count what the application has been told of.  (uroce_async_event() is
 * the other end, which raises an event.)
 */
void uroce_async_event_op(struct ibv_context *context, struct ibv_async_event *event);

#endif
