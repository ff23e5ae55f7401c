/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The operations that uroce implements, with exactly the types of libibverbs' table.  A new
 * operation needs a line here and its function; ops.c builds the table from this list.  For all
 * other operations libibverbs returns EOPNOTSUPP.
 *
 * Functions return 0 or a positive errno, or NULL with errno.  X: used as it is.  Y: returns an
 * error number, to which ops.c sets errno as well (api_call.h).  W: as Y, for functions that may
 * wait or make system calls, during which the thread cannot be cancelled.  Z: creates an object; as
 * W, but refused if the context (last column) has been closed.
 *
 * libibverbs sets the common fields of a pd, mr, cq, srq and ah after the provider's function has
 * returned, but not those of a qp.
 */
#ifndef UROCE_VERBS_ABI_OPS_H
#define UROCE_VERBS_ABI_OPS_H

#include "abi.h"

/* clang-format off */
#define UROCE_OPS(X, Y, W, Z)                                                                      \
	/* context.c, query.c */                                                                   \
	X(free_context)                                                                            \
	W(query_device_ex,                                                                         \
	  (struct ibv_context *context, const struct ibv_query_device_ex_input *input,             \
	   struct ibv_device_attr_ex *attr, size_t bytes),                                         \
	  (context, input, attr, bytes))                                                           \
	W(query_port,                                                                              \
	  (struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr),                 \
	  (context, port, attr))                                                                   \
	W(query_port_speed,                                                                        \
	  (struct ibv_context *context, uint32_t port, uint64_t *speed),                           \
	  (context, port, speed))                                                                  \
	W(query_rt_values,                                                                         \
	  (struct ibv_context *context, struct ibv_values_ex *values),                             \
	  (context, values))                                                                       \
	/* pd.c */                                                                                 \
	Z(struct ibv_pd *, alloc_pd,                                                               \
	  (struct ibv_context *context),                                                           \
	  (context), context)                                                                      \
	W(dealloc_pd, (struct ibv_pd *pd), (pd))                                                   \
	Z(struct ibv_pd *, import_pd,                                                              \
	  (struct ibv_context *context, uint32_t handle),                                          \
	  (context, handle), context)                                                              \
	X(unimport_pd)                                                                             \
	/* parent_domain.c */                                                                      \
	Z(struct ibv_td *, alloc_td,                                                               \
	  (struct ibv_context *context, struct ibv_td_init_attr *attr),                            \
	  (context, attr), context)                                                                \
	W(dealloc_td, (struct ibv_td *td), (td))                                                   \
	Z(struct ibv_pd *, alloc_parent_domain,                                                    \
	  (struct ibv_context *context, struct ibv_parent_domain_init_attr *attr),                 \
	  (context, attr), context)                                                                \
	/* mr.c */                                                                                 \
	Z(struct ibv_mr *, reg_mr,                                                                 \
	  (struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access),               \
	  (pd, addr, length, iova, access), pd->context)                                           \
	/* dmabuf.c */                                                                             \
	Z(struct ibv_mr *, reg_dmabuf_mr,                                                          \
	  (struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access),  \
	  (pd, offset, length, iova, fd, access), pd->context)                                     \
	/* mr_ex.c */                                                                              \
	Z(struct ibv_mr *, reg_mr_ex,                                                              \
	  (struct ibv_pd *pd, struct ibv_mr_init_attr *attr),                                      \
	  (pd, attr), pd->context)                                                                 \
	/* mr.c */                                                                                 \
	W(rereg_mr,                                                                                \
	  (struct verbs_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,           \
	   int access),                                                                            \
	  (mr, flags, pd, addr, length, access))                                                   \
	W(dereg_mr, (struct verbs_mr *mr), (mr))                                                   \
	Z(struct ibv_mr *, import_mr,                                                              \
	  (struct ibv_pd *pd, uint32_t handle),                                                    \
	  (pd, handle), pd->context)                                                               \
	X(unimport_mr)                                                                             \
	Z(struct ibv_mr *, alloc_null_mr,                                                          \
	  (struct ibv_pd *pd),                                                                     \
	  (pd), pd->context)                                                                       \
	W(advise_mr,                                                                               \
	  (struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,                    \
	   struct ibv_sge *list, uint32_t count),                                                  \
	  (pd, advice, flags, list, count))                                                        \
	/* mw.c */                                                                                 \
	Z(struct ibv_mw *, alloc_mw,                                                               \
	  (struct ibv_pd *pd, enum ibv_mw_type type),                                              \
	  (pd, type), pd->context)                                                                 \
	W(dealloc_mw, (struct ibv_mw *mw), (mw))                                                   \
	/* dm.c */                                                                                 \
	Z(struct ibv_dm *, alloc_dm,                                                               \
	  (struct ibv_context *context, struct ibv_alloc_dm_attr *attr),                           \
	  (context, attr), context)                                                                \
	W(free_dm, (struct ibv_dm *dm), (dm))                                                      \
	Z(struct ibv_mr *, reg_dm_mr,                                                              \
	  (struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,                   \
	   unsigned int access),                                                                   \
	  (pd, dm, offset, length, access), pd->context)                                           \
	Z(struct ibv_dm *, import_dm,                                                              \
	  (struct ibv_context *context, uint32_t handle),                                          \
	  (context, handle), context)                                                              \
	X(unimport_dm)                                                                             \
	/* cq.c, cq_ex.c */                                                                        \
	Z(struct ibv_cq *, create_cq,                                                              \
	  (struct ibv_context *context, int cqe, struct ibv_comp_channel *channel, int vector),    \
	  (context, cqe, channel, vector), context)                                                \
	Z(struct ibv_cq_ex *, create_cq_ex,                                                        \
	  (struct ibv_context *context, struct ibv_cq_init_attr_ex *attr),                         \
	  (context, attr), context)                                                                \
	X(poll_cq)                                                                                 \
	Y(req_notify_cq, (struct ibv_cq *cq, int solicited_only), (cq, solicited_only))            \
	X(cq_event)                                                                                \
	W(resize_cq, (struct ibv_cq *cq, int cqe), (cq, cqe))                                      \
	W(modify_cq,                                                                               \
	  (struct ibv_cq *cq, struct ibv_modify_cq_attr *attr),                                    \
	  (cq, attr))                                                                              \
	W(destroy_cq, (struct ibv_cq *cq), (cq))                                                   \
	/* qp_handle.c, qp_modify.c, post.c */                                                     \
	Z(struct ibv_qp *, create_qp,                                                              \
	  (struct ibv_pd *pd, struct ibv_qp_init_attr *attr),                                      \
	  (pd, attr), pd->context)                                                                 \
	Z(struct ibv_qp *, create_qp_ex,                                                           \
	  (struct ibv_context *context, struct ibv_qp_init_attr_ex *attr),                         \
	  (context, attr), context)                                                                \
	W(modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))    \
	Y(query_qp,                                                                                \
	  (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,                                  \
	   struct ibv_qp_init_attr *init),                                                         \
	  (qp, attr, mask, init))                                                                  \
	W(destroy_qp, (struct ibv_qp *qp), (qp))                                                   \
	Y(bind_mw,                                                                                 \
	  (struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind),                        \
	  (qp, mw, bind))                                                                          \
	/* post.c, which sets errno itself */                                                      \
	X(post_send)                                                                               \
	X(post_recv)                                                                               \
	/* xrc_qp.c */                                                                             \
	Z(struct ibv_qp *, open_qp,                                                                \
	  (struct ibv_context *context, struct ibv_qp_open_attr *attr),                            \
	  (context, attr), context)                                                                \
	/* ah.c */                                                                                 \
	Z(struct ibv_ah *, create_ah,                                                              \
	  (struct ibv_pd *pd, struct ibv_ah_attr *attr),                                           \
	  (pd, attr), pd->context)                                                                 \
	W(destroy_ah, (struct ibv_ah *ah), (ah))                                                   \
	/* srq.c */                                                                                \
	Z(struct ibv_srq *, create_srq,                                                            \
	  (struct ibv_pd *pd, struct ibv_srq_init_attr *attr),                                     \
	  (pd, attr), pd->context)                                                                 \
	Z(struct ibv_srq *, create_srq_ex,                                                         \
	  (struct ibv_context *context, struct ibv_srq_init_attr_ex *attr),                        \
	  (context, attr), context)                                                                \
	W(modify_srq,                                                                              \
	  (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),                              \
	  (srq, attr, mask))                                                                       \
	Y(query_srq, (struct ibv_srq *srq, struct ibv_srq_attr *attr), (srq, attr))                \
	W(destroy_srq, (struct ibv_srq *srq), (srq))                                               \
	Y(post_srq_recv,                                                                           \
	  (struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad),                 \
	  (srq, wr, bad))                                                                          \
	Y(get_srq_num, (struct ibv_srq *srq, uint32_t *number), (srq, number))                     \
	/* xrc.c */                                                                                \
	Z(struct ibv_xrcd *, open_xrcd,                                                            \
	  (struct ibv_context *context, struct ibv_xrcd_init_attr *attr),                          \
	  (context, attr), context)                                                                \
	W(close_xrcd, (struct ibv_xrcd *xrcd), (xrcd))                                             \
	/* mcast.c */                                                                              \
	W(attach_mcast,                                                                            \
	  (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),                             \
	  (qp, gid, lid))                                                                          \
	W(detach_mcast,                                                                            \
	  (struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid),                             \
	  (qp, gid, lid))
/* clang-format on */

/*
 * Declares uroce_alloc_pd, uroce_poll_cq ...; uroce_alloc_pd() has the type of the field alloc_pd
 * of struct abi_ops.
 */
#define UROCE_OP_DECLARE(name, ...) extern __typeof__(*((struct abi_ops *)0)->name) uroce_##name;
#define UROCE_OP_DECLARE_CREATE(result, name, ...) UROCE_OP_DECLARE(name)
UROCE_OPS(UROCE_OP_DECLARE, UROCE_OP_DECLARE, UROCE_OP_DECLARE, UROCE_OP_DECLARE_CREATE)
#undef UROCE_OP_DECLARE_CREATE
#undef UROCE_OP_DECLARE

/* The table for libibverbs. */
extern const struct abi_ops uroce_ops;

/*
 * The async_event operation: counts an event that the application has read.  uroce_async_event(),
 * on the other hand, raises events.
 */
void uroce_async_event_op(struct ibv_context *context, struct ibv_async_event *event);

#endif
