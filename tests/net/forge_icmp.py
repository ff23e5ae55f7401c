#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""usage: forge_icmp.py SENDER SENDER_PORT RECEIVER MTU

Reports to SENDER by ICMP that its RoCEv2 packets to RECEIVER are too big, as anybody on the path
could who guesses the port.  Must run as root; IPv4 only.
"""
import socket
import struct
import sys

UNREACHABLE, FRAGMENTATION_NEEDED = 3, 4
ROCEV2_PORT = 4791


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


sender, port, receiver, mtu = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
udp = struct.pack("!HHHH", port, ROCEV2_PORT, 4104, 0)
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 4124, 0, 0x4000, 64, socket.IPPROTO_UDP, 0,
                 socket.inet_aton(sender), socket.inet_aton(receiver))
ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
message = struct.pack("!BBHHH", UNREACHABLE, FRAGMENTATION_NEEDED, 0, 0, mtu) + ip + udp
message = message[:2] + struct.pack("!H", checksum(message)) + message[4:]
with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as raw:
    raw.sendto(message, (sender, 0))
