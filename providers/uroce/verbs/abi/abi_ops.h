/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * All operations that a provider may implement, in the order of libibverbs' table (by name), each
 * with the release that added it.  The table of a library has exactly the rows that are not newer
 * than the library, so slot numbers differ between releases and no row may be reordered.
 *
 * X(release, result, name, parameters)
 */
#ifndef UROCE_VERBS_ABI_ABI_OPS_H
#define UROCE_VERBS_ABI_ABI_OPS_H

#include <infiniband/verbs.h>

struct verbs_mr;
/* Missing in the oldest public header with which this compiles. */
struct ibv_buf;
struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* clang-format off */
#define ABI_OPS(X)                                                                                 \
	X(36, int, advise_mr, (struct ibv_pd *, enum ibv_advise_mr_advice, uint32_t,               \
			       struct ibv_sge *, uint32_t))                                        \
	X(64, void *, alloc_buf, (struct ibv_pd *, size_t, struct ibv_buf **))                     \
	X(36, struct ibv_dm *, alloc_dm, (struct ibv_context *, struct ibv_alloc_dm_attr *))       \
	X(59, struct ibv_dmah *, alloc_dmah, (struct ibv_context *, struct ibv_dmah_init_attr *))  \
	X(36, struct ibv_mw *, alloc_mw, (struct ibv_pd *, enum ibv_mw_type))                      \
	X(36, struct ibv_mr *, alloc_null_mr, (struct ibv_pd *))                                   \
	X(36, struct ibv_pd *, alloc_parent_domain, (struct ibv_context *,                         \
						     struct ibv_parent_domain_init_attr *))        \
	X(36, struct ibv_pd *, alloc_pd, (struct ibv_context *))                                   \
	X(36, struct ibv_td *, alloc_td, (struct ibv_context *, struct ibv_td_init_attr *))        \
	X(36, void, async_event, (struct ibv_context *, struct ibv_async_event *))                 \
	X(36, int, attach_counters_point_flow, (struct ibv_counters *,                             \
						struct ibv_counter_attach_attr *,                  \
						struct ibv_flow *))                                \
	X(36, int, attach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t))               \
	X(36, int, bind_mw, (struct ibv_qp *, struct ibv_mw *, struct ibv_mw_bind *))              \
	X(36, int, close_xrcd, (struct ibv_xrcd *))                                                \
	X(36, void, cq_event, (struct ibv_cq *))                                                   \
	X(36, struct ibv_ah *, create_ah, (struct ibv_pd *, struct ibv_ah_attr *))                 \
	X(65, struct ibv_comp_cntr *, create_comp_cntr, (struct ibv_context *,                     \
							 struct ibv_comp_cntr_init_attr *))        \
	X(36, struct ibv_counters *, create_counters, (struct ibv_context *,                       \
						       struct ibv_counters_init_attr *))           \
	X(36, struct ibv_cq *, create_cq, (struct ibv_context *, int, struct ibv_comp_channel *,   \
					   int))                                                   \
	X(36, struct ibv_cq_ex *, create_cq_ex, (struct ibv_context *,                             \
						 struct ibv_cq_init_attr_ex *))                    \
	X(36, struct ibv_flow *, create_flow, (struct ibv_qp *, struct ibv_flow_attr *))           \
	X(36, struct ibv_flow_action *, create_flow_action_esp,                                    \
	  (struct ibv_context *, struct ibv_flow_action_esp_attr *))                               \
	X(36, struct ibv_qp *, create_qp, (struct ibv_pd *, struct ibv_qp_init_attr *))            \
	X(36, struct ibv_qp *, create_qp_ex, (struct ibv_context *, struct ibv_qp_init_attr_ex *)) \
	X(36, struct ibv_rwq_ind_table *, create_rwq_ind_table,                                    \
	  (struct ibv_context *, struct ibv_rwq_ind_table_init_attr *))                            \
	X(36, struct ibv_srq *, create_srq, (struct ibv_pd *, struct ibv_srq_init_attr *))         \
	X(36, struct ibv_srq *, create_srq_ex, (struct ibv_context *,                              \
						struct ibv_srq_init_attr_ex *))                    \
	X(36, struct ibv_wq *, create_wq, (struct ibv_context *, struct ibv_wq_init_attr *))       \
	X(59, int, dealloc_dmah, (struct ibv_dmah *))                                              \
	X(36, int, dealloc_mw, (struct ibv_mw *))                                                  \
	X(36, int, dealloc_pd, (struct ibv_pd *))                                                  \
	X(36, int, dealloc_td, (struct ibv_td *))                                                  \
	X(36, int, dereg_mr, (struct verbs_mr *))                                                  \
	X(36, int, destroy_ah, (struct ibv_ah *))                                                  \
	X(65, int, destroy_comp_cntr, (struct ibv_comp_cntr *))                                    \
	X(36, int, destroy_counters, (struct ibv_counters *))                                      \
	X(36, int, destroy_cq, (struct ibv_cq *))                                                  \
	X(36, int, destroy_flow, (struct ibv_flow *))                                              \
	X(36, int, destroy_flow_action, (struct ibv_flow_action *))                                \
	X(36, int, destroy_qp, (struct ibv_qp *))                                                  \
	X(36, int, destroy_rwq_ind_table, (struct ibv_rwq_ind_table *))                            \
	X(36, int, destroy_srq, (struct ibv_srq *))                                                \
	X(36, int, destroy_wq, (struct ibv_wq *))                                                  \
	X(36, int, detach_mcast, (struct ibv_qp *, const union ibv_gid *, uint16_t))               \
	X(62, int, dm_export_dmabuf_fd, (struct ibv_dm *))                                         \
	X(64, void, free_buf, (struct ibv_buf *))                                                  \
	X(36, void, free_context, (struct ibv_context *))                                          \
	X(36, int, free_dm, (struct ibv_dm *))                                                     \
	X(36, int, get_srq_num, (struct ibv_srq *, uint32_t *))                                    \
	X(36, struct ibv_dm *, import_dm, (struct ibv_context *, uint32_t))                        \
	X(36, struct ibv_mr *, import_mr, (struct ibv_pd *, uint32_t))                             \
	X(36, struct ibv_pd *, import_pd, (struct ibv_context *, uint32_t))                        \
	X(65, int, inc_comp_cntr, (struct ibv_comp_cntr *, uint64_t))                              \
	X(65, int, inc_err_comp_cntr, (struct ibv_comp_cntr *, uint64_t))                          \
	X(36, int, modify_cq, (struct ibv_cq *, struct ibv_modify_cq_attr *))                      \
	X(36, int, modify_flow_action_esp, (struct ibv_flow_action *,                              \
					    struct ibv_flow_action_esp_attr *))                    \
	X(36, int, modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))                        \
	X(36, int, modify_qp_rate_limit, (struct ibv_qp *, struct ibv_qp_rate_limit_attr *))       \
	X(36, int, modify_srq, (struct ibv_srq *, struct ibv_srq_attr *, int))                     \
	X(36, int, modify_wq, (struct ibv_wq *, struct ibv_wq_attr *))                             \
	X(36, struct ibv_qp *, open_qp, (struct ibv_context *, struct ibv_qp_open_attr *))         \
	X(36, struct ibv_xrcd *, open_xrcd, (struct ibv_context *, struct ibv_xrcd_init_attr *))   \
	X(36, int, poll_cq, (struct ibv_cq *, int, struct ibv_wc *))                               \
	X(36, int, post_recv, (struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **))      \
	X(36, int, post_send, (struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **))      \
	X(36, int, post_srq_ops, (struct ibv_srq *, struct ibv_ops_wr *, struct ibv_ops_wr **))    \
	X(36, int, post_srq_recv, (struct ibv_srq *, struct ibv_recv_wr *,                         \
				   struct ibv_recv_wr **))                                         \
	X(65, int, qp_attach_comp_cntr, (struct ibv_qp *, struct ibv_comp_cntr *,                  \
					 struct ibv_qp_attach_comp_cntr_attr *))                   \
	X(65, int, query_comp_cntr_caps, (struct ibv_context *, struct ibv_comp_cntr_caps *,       \
					  size_t))                                                 \
	X(36, int, query_device_ex, (struct ibv_context *,                                         \
				     const struct ibv_query_device_ex_input *,                     \
				     struct ibv_device_attr_ex *, size_t))                         \
	X(36, int, query_ece, (struct ibv_qp *, struct ibv_ece *))                                 \
	X(36, int, query_port, (struct ibv_context *, uint8_t, struct ibv_port_attr *))            \
	X(62, int, query_port_speed, (struct ibv_context *, uint32_t, uint64_t *))                 \
	X(36, int, query_qp, (struct ibv_qp *, struct ibv_qp_attr *, int,                          \
			      struct ibv_qp_init_attr *))                                          \
	X(36, int, query_qp_data_in_order, (struct ibv_qp *, enum ibv_wr_opcode, uint32_t))        \
	X(36, int, query_rt_values, (struct ibv_context *, struct ibv_values_ex *))                \
	X(36, int, query_srq, (struct ibv_srq *, struct ibv_srq_attr *))                           \
	X(65, int, read_comp_cntr, (struct ibv_comp_cntr *, uint64_t *))                           \
	X(36, int, read_counters, (struct ibv_counters *, uint64_t *, uint32_t, uint32_t))         \
	X(65, int, read_err_comp_cntr, (struct ibv_comp_cntr *, uint64_t *))                       \
	X(36, struct ibv_mr *, reg_dm_mr, (struct ibv_pd *, struct ibv_dm *, uint64_t, size_t,     \
					   unsigned int))                                          \
	X(36, struct ibv_mr *, reg_dmabuf_mr, (struct ibv_pd *, uint64_t, size_t, uint64_t, int,   \
					       int))                                               \
	X(36, struct ibv_mr *, reg_mr, (struct ibv_pd *, void *, size_t, uint64_t, int))           \
	X(59, struct ibv_mr *, reg_mr_ex, (struct ibv_pd *, struct ibv_mr_init_attr *))            \
	X(36, int, req_notify_cq, (struct ibv_cq *, int))                                          \
	X(36, int, rereg_mr, (struct verbs_mr *, int, struct ibv_pd *, void *, size_t, int))       \
	X(36, int, resize_cq, (struct ibv_cq *, int))                                              \
	X(65, int, set_comp_cntr, (struct ibv_comp_cntr *, uint64_t))                              \
	X(36, int, set_ece, (struct ibv_qp *, struct ibv_ece *))                                   \
	X(65, int, set_err_comp_cntr, (struct ibv_comp_cntr *, uint64_t))                          \
	X(36, void, unimport_dm, (struct ibv_dm *))                                                \
	X(36, void, unimport_mr, (struct ibv_mr *))                                                \
	X(36, void, unimport_pd, (struct ibv_pd *))
/* clang-format on */

/* The operations that a provider implements, by name; abi_set_ops() sorts them into slots. */
struct abi_ops {
#define ABI_OP_FIELD(release, result, name, parameters) result(*name) parameters;
	ABI_OPS(ABI_OP_FIELD)
#undef ABI_OP_FIELD
};

enum abi_op {
#define ABI_OP_ENUM(release, result, name, parameters) ABI_OP_##name,
	ABI_OPS(ABI_OP_ENUM)
#undef ABI_OP_ENUM
		ABI_OP_COUNT,
};

#endif
