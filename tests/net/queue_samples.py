#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""usage: queue_samples.py INTERFACE SECONDS

Prints a line "time backlog drops" of the interface's root queueing discipline every SECONDS, until
standard input ends: monotonic seconds, bytes, packets.  It uses netlink, because starting tc for
each sample would take as much processor time as the flows that are measured.
"""
import select
import socket
import struct
import sys
import time

RTM_GETQDISC = 38
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
TC_H_ROOT = 0xffffffff
TCA_STATS2, TCA_STATS_QUEUE = 7, 3
HEADER = struct.Struct("=IHHII")      # struct nlmsghdr
TRAFFIC = struct.Struct("=BxxxiIII")  # struct tcmsg
QUEUE = struct.Struct("=IIIII")       # struct gnet_stats_queue


def attributes(data):
    """Type and bytes of each attribute."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind & 0x3fff, data[4:length]
        data = data[(length + 3) & ~3:]


def messages(netlink):
    """Type and bytes of each message of a dump."""
    while True:
        data = netlink.recv(1 << 16)
        while data:
            length, kind, *_ = HEADER.unpack_from(data)
            if kind in (NLMSG_ERROR, NLMSG_DONE):
                return
            yield kind, data[HEADER.size:length]
            data = data[(length + 3) & ~3:]


def ask(netlink, index):
    """Returns backlog and drops of the root queueing discipline of the interface."""
    body = TRAFFIC.pack(socket.AF_UNSPEC, index, 0, 0, 0)
    netlink.send(HEADER.pack(HEADER.size + len(body), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1,
                             0) + body)
    found = 0, 0
    for _, data in messages(netlink):
        _, interface, _, parent, _ = TRAFFIC.unpack_from(data)
        if interface != index or parent != TC_H_ROOT:
            continue
        statistics = dict(attributes(dict(attributes(data[TRAFFIC.size:]))[TCA_STATS2]))
        _, backlog, drops, _, _ = QUEUE.unpack_from(statistics[TCA_STATS_QUEUE])
        found = backlog, drops
    return found


def main():
    index, interval = socket.if_nametoindex(sys.argv[1]), float(sys.argv[2])
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as netlink:
        due = time.monotonic()
        while not select.select([sys.stdin], [], [], max(0, due - time.monotonic()))[0]:
            print(time.monotonic(), *ask(netlink, index), flush=True)
            due += interval


main()
