# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Names that may exceed a limit of check-style, by reason: {reason: {file: names}}.

check-style also complains about a name here that is within the limit.
"""

PARAMETERS = {
    "hot path: arguments in registers": {
        "providers/uroce/capture/capture.c": "put_packet_block",
        "providers/uroce/engine/base/sge.c": "sge_piece sge_scatter",
        "providers/uroce/engine/recovery/ack_req.c": "ack_req_is_set",
        "providers/uroce/engine/tx/pkt_hdr.c": "message_request put_bth",
        "providers/uroce/link/shm/channel.c": "link_channel_send",
        "providers/uroce/progress/rx/demux.c": "icrc_is_ok",
        "providers/uroce/progress/tx/capture_hook.c": "tx_send_captured",
        "providers/uroce/progress/tx/capture_hook.h": "tx_send",
        "providers/uroce/progress/tx/tx.c": "tx_run",
        "providers/uroce/progress/tx/tx.h": "tx_ctx",
        "providers/uroce/verbs/mr/mkey_table.c": "map_slow mkey_table_map",
        "providers/uroce/verbs/qp/engine_ops.c": "map_xrc_target",
        "providers/uroce/wire/icrc.c": "begin_blocks write_front",
        "providers/uroce/wire/packet.h": "wire_put_bth",
    },
    "given by libibverbs": {
        "libibverbs/gids.c": "_ibv_query_gid_ex",
        "providers/uroce/verbs/mr/dmabuf.c": "uroce_reg_dmabuf_mr",
        "providers/uroce/verbs/mr/mr.c": "uroce_rereg_mr",
        "providers/uroce/verbs/qp/wr_api.c": "begin_atomic wr_flush",
    },
    "replaces a function of the product": {
        "tests/unit/ucm/world.c": "gsi_port_bind",
    },
    "fields of one message": {
        "providers/uroce/cm/msg/mad_build.c": "cm_build_rej_of_reply",
        "providers/uroce/verbs/mr/mw.c": "uroce_mw_init_wqe",
        "tests/conformance/dut/dut_script.c": "dut_expect_ack dut_give_atomic dut_give_response",
        "tests/integ/support/verbs_pair.c": "post_rdma post_sge",
        "tests/unit/common/demux_peer.c": "demux_peer_make",
        "tests/unit/trace/test_trace_parts.c": "packet_to",
        "tests/unit/ucm/caller.c": "join_id option_id",
    },
    "set-up, called once": {
        "providers/uroce/progress/gsi/gsi_port.c": "gsi_port_bind",
        "providers/uroce/verbs/abi/abi.c": "abi_probe",
        "providers/uroce/verbs/mr/parent_domain.c": "uroce_ring_alloc",
        "tests/unit/gsi/gsi_child.c": "gsi_child_bind",
    },
    "ranges of memory, choices of a test": {
        "tests/sim/area.c": "area_expect_at",
        "tests/sim/ops.c": "map",
        "tests/sim/plan/script_parts.c": "script_land",
        "tests/verbsfuzz/states.c": "modify",
    },
}

BOOLEANS = {
    "input structure of a test": {
        "tests/cmsim/world.h": "plan",
        "tests/conformance/dut/dut.h": "dut_config",
        "tests/sim/main.c": "options",
        "tests/sim/mutant/mutant.h": "mutant",
        "tests/sim/plan/plan.h": "end_plan plan",
        "tests/sim/plan/script.h": "message",
        "tests/unit/engine/test_engine_gather.c": "situation",
    },
    "independent facts of a model": {
        "providers/uroce/trace/stream/stream.h": "stream",
        "tests/cmsim/world.h": "app",
        "tests/integ/cm/cm_end.h": "connection",
        "tests/sim/oracle/oracle.h": "answering asking oracle",
        "tests/sim/world.h": "sim_end",
    },
    "independent facts of an object": {
        "providers/uroce/cm/cm_priv.h": "cm_conn",
        "providers/uroce/progress/progress.h": "progress_qp",
        "providers/uroce/ucm/id.h": "ucm_id",
    },
}
