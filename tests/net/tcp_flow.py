#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""usage: tcp_flow.py receive PORT
       tcp_flow.py send ADDRESS PORT CONGESTION SECONDS

One TCP flow, for comparison.  The receiver accepts one connection and prints a line "time bytes"
every 50 ms (monotonic seconds; bytes since the start), the sender its number of retransmissions.
"""
import socket
import sys
import time

INTERVAL = 0.05
CHUNK = 1 << 16
TCP_INFO_TOTAL_RETRANS = 100  # offset of tcpi_total_retrans in struct tcp_info


def receive(port):
    with socket.create_server(("", port)) as listener:
        print("ready", flush=True)
        connection, _ = listener.accept()
    space, total, due = bytearray(CHUNK), 0, 0
    while True:
        count = connection.recv_into(space)
        total += count
        now = time.monotonic()
        if now >= due or not count:
            print(now, total, flush=True)
            due = now + INTERVAL
        if not count:
            return


def send(address, port, congestion, seconds):
    data = bytes(CHUNK)
    with socket.socket() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        connection.connect((address, port))
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            connection.send(data)
        info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        again = info[TCP_INFO_TOTAL_RETRANS:TCP_INFO_TOTAL_RETRANS + 4]
        print(int.from_bytes(again, sys.byteorder), flush=True)


if sys.argv[1] == "receive":
    receive(int(sys.argv[2]))
else:
    send(sys.argv[2], int(sys.argv[3]), sys.argv[4], float(sys.argv[5]))
