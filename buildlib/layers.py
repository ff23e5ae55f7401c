# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The layers of providers/uroce, one row each: what check-layers holds includes and calls against.

A new layer is a row here; `buildlib/check-layers --write` then draws it into architecture.md.
"""
from typing import NamedTuple


class Layer(NamedTuple):
    about: str
    includes: frozenset  # layers that may be included as "directory/file.h"
    pure: bool = False  # only computes: no system call, allocation or errno
    # The files of the layer in groups, lowest first: a file includes no file of a group above its
    # own.  A name without an extension is NAME.c and NAME.h; a name with one takes precedence.
    # NAME/ is all files of a directory, and / all files in none.  Files that are not named belong
    # to the highest group.  Without groups the order within the layer is not checked.
    groups: tuple = ()


class Group(NamedTuple):
    about: str
    files: frozenset
    apart: bool = False  # its files do not include each other


def layer(about, includes="", **more):
    return Layer(about, frozenset(includes.split()), **more)


def group(about, files, apart=False):
    return Group(about, frozenset(files.split()), apart)


# Lowest first.
LAYERS = {
    "util": layer("GIDs, heap, hash table", pure=True),
    "wire": layer("bytes to host-order structures and back, ICRC", pure=True, groups=(
        group("bytes", "bytes"),
        group("opcodes", "opcode.h opcode_table.h"),
        group("packets", "packet icrc opcode"),
    )),
    "broker": layer("which worker has which slot, socket and port of the host", "util wire"),
    "engine": layer("the transport of one queue pair", "wire", pure=True, groups=(
        group("contract and terms", "engine.h types aeth psn burst wqe "
              "ordered_copy rtt qp_priv.h qp_state pacing.h"),
        group("messages and accounts", "op sge pkt_hdr credit cwnd cc pacing resp_res ooo_rx"),
        group("packets into a burst", "tx_build"),
        group("send queue", "sq"),
        group("state of loss recovery", "loss_state"),
        group("responder, actions of loss recovery", "responder response resp_check "
              "resp_atomic uc_ud ecn ack_req retransmit read_retry"),
        group("probes", "probe"),
        group("events and timers of loss recovery", "loss"),
        group("requester beside completer", "requester completer", apart=True),
        group("when beside states", "tx_sched qp_transition", apart=True),
        group("entry", "engine"),
    )),
    "link": layer("datagrams in and out in batches: sockets, shared memory, netlink",
                  "broker util",
                  groups=(
        group("contract and terms", "link.h link_priv shm.h ring sockaddr "
              "client.h port.h netdev thread memfd scm_rights fd.h slot_set.h"),
        group("descriptors, the host", "fd.c userns slot_set.c netdev_watch neighbour "
              "port_owner path_mtu"),
        group("one exchange with the broker", "start exchange"),
        group("return to a broker", "return"),
        group("the broker's client", "client.c"),
        group("requests", "requests guest slot_fd"),
        group("shared memory", "region channel client_conns.c"),
        group("data path", "connected_tx udp delivery"),
        group("addresses, peers, opening", "addr peer peer_table mcast link.c"),
    )),
    "brokerd": layer("uroce-broker, the program that owns the port and queue pair 1",
                     "broker link util wire", groups=(
        group("contract and helpers", "brokerd"),
        group("sockets, connections of other users", "socket closer"),
        group("clients, groups", "client address"),
        group("probes", "probe"),
        group("members", "member"),
        group("last messages, queue pair 1", "last_mads gsi"),
        group("requests", "request"),
        group("connections", "connection"),
        group("entry", "main"),
    )),
    "capture": layer("packets of this process into pcapng files", "util wire link", groups=(
        group("contract and settings", "capture.h config"),
        group("blocks, frames, the buffer", "pcapng frame buffer"),
        group("files", "file"),
        group("writer", "writer"),
        group("entry", "capture"),
    )),
    "progress": layer("time, and the threads that work on queue pairs",
                      "broker capture engine link util wire",
                      groups=(
        group("contract and leaves", "progress.h clock helgrind ip_id poll_yield "
              "fault_config gsi.h"),
        group("sets of queue pairs, faults", "work deadline budget_queue qpn_table "
              "fault_inject thread.h wakeup.h"),
        group("instance, capture", "progress_priv gsi_progress.h capture_hook"),
        group("wake-ups, transmit", "wakeup tx ud_path.h qp_connect.h"),
        group("locked queue pairs", "visit loop.h"),
        group("receive", "demux"),
        group("progress cycle", "loop.c"),
        group("threads and control calls", "thread exit_flush qp_connect mcast ud_path"),
        group("queue pair 1", "gsi gsi_priv gsi_last gsi_qp_event gsi_port gsi_rxq gsi_tx"),
        group("entry", "progress"),
    )),
    "verbs": layer("the objects of libibverbs", "progress capture engine wire link util",
                   groups=(
        group("terms and private ABI", "/ abi/ context.h device.h import.h"),
        group("memory", "mr/"),
        group("completion", "cq/"),
        group("qp", "qp/ xrc/ mw"),
        group("contexts and devices", "context/ stats/ ops.c"),
    )),
    "cm": layer("the connection manager: messages, states, timers", "util wire", pure=True, groups=(
        group("messages, limit of requests", "mad ip_header req_limit"),
        group("contract, states, times", "cm.h cm_priv.h fsm_table timing names mad_build"),
        group("connections", "cm"),
        group("steps of connections", "fsm"),
        group("calls and received messages", "api listen receive sidr"),
    )),
    "ucm": layer("the kernel's rdma_cm interface, for librdmacm",
                 "cm verbs progress engine wire link util", groups=(
        group("addresses, devices, routes", "addr/ table"),
        group("terms", "id.h channel.h event.h ucm_core.h connection.h resolve_neigh.h "
              "connect_retry.h command.h"),
        group("requests to repeat, orphans", "connect_retry orphan"),
        group("the lock", "ucm_core"),
        group("ids and events", "channel event id"),
        group("connections, groups", "conn/ multicast resolve_neigh"),
        group("end of ids", "end_id"),
        group("start, addresses", "start listen_addrs"),
        group("handlers of the process", "handlers"),
        group("commands", "cmd/"),
        group("entry", "dropin stat"),
    )),
    "trace": layer("captures, read and judged by the rules", "cm engine util wire", groups=(
        group("contract and terms", "array packet.h rules range_set stream_stats.h"),
        group("frames", "frame capture_file pcapng_meta"),
        group("packets", "burst"),
        group("flows, messages of the connection manager", "flow cm_log"),
        group("pairs", "flow_pair"),
        group("one direction of a connection", "stream/"),
        group("a whole capture", "trace analyze dedup"),
        group("reports", "report/"),
    )),
    "tools": layer("uroce-stat, uroce-trace", "trace verbs progress capture engine wire link "
                   "broker", groups=(
        group("snapshots", "snapshot"),
        group("reports, requests for a capture", "uroce_stat.h report capture_control"),
        group("entry", "uroce_stat.c uroce_trace"),
    )),
}
# Calls from a group to one above it: layer, file and file, without endings, and why.
CALLS_UPWARDS = {
    ("progress", "demux", "gsi_rxq"): "datagrams of queue pair 1",
}
# The one fact about packets that sockets need is their port number.
SINGLE_FILES = {"link": {"wire/packet.h": {"WIRE_UDP_PORT"}}}


def level(name):
    """The length of the longest chain of layers below."""
    return max((level(below) + 1 for below in LAYERS[name].includes), default=0)


def direct(name):
    """The layers that are included, but for those that one of them may include as well."""
    includes = LAYERS[name].includes
    beyond = frozenset().union(*(LAYERS[below].includes for below in includes))
    return sorted(includes - beyond, key=list(LAYERS).index, reverse=True)


def picture():
    """The lines that architecture.md shows, highest layer first."""
    names = sorted(LAYERS, key=lambda name: (-level(name), name))
    yield "```"
    for name in names:
        row = LAYERS[name]
        arrows = "-> " + ", ".join(direct(name)) if row.includes else ""
        about = row.about + ("; pure" if row.pure else "")
        yield f"{level(name)}  {name:9} {arrows:21} {about}"
    yield "```"
    yield ""
    yield ("| layer | its groups of files, highest first (files: `buildlib/layers.py`): none "
           "includes one above it; calls upwards are only those in `CALLS_UPWARDS` |")
    yield "| --- | --- |"
    for name in names:
        groups = " &rarr; ".join(g.about for g in reversed(LAYERS[name].groups))
        if groups:
            yield f"| {name} | {groups} |"
