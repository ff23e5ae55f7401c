# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A peer that builds its own IPv4 headers, for test_foreign_peer.py.  It runs as a process in the
namespace whose interface it sends from.

Each line on standard input is a JSON list of packets [opcode, queue pair number, PSN,
identification]; they are sent at once, as frames, and their number is printed.
"""
import argparse
import ipaddress
import json
import socket
import struct
import sys
import zlib

UDP_PORT, SOURCE_PORT = 4791, 0xC123
DONT_FRAGMENT = 0x4000
PAYLOAD = b"raw peer payload"


def checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def headers(options, length, identification):
    """IPv4 and UDP; as with kernel rxe there is no UDP checksum."""
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + length, identification, DONT_FRAGMENT, 64,
                     socket.IPPROTO_UDP, 0, options.source.packed, options.destination.packed)
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    return ip, struct.pack(">HHHH", SOURCE_PORT, UDP_PORT, 8 + length, 0)


def packet(options, opcode, qpn, psn, identification):
    bth = struct.pack(">BBHII", opcode, 0x40, 0xFFFF, qpn, psn & 0xFFFFFF)
    ip, udp = headers(options, len(bth) + len(PAYLOAD) + 4, identification)
    # The ICRC treats the fields that routers change as all ones: TOS, TTL, checksums, BTH byte 4.
    masked = (b"\xff" * 8 + ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" +
              ip[12:] + udp[:6] + b"\xff\xff" + bth[:4] + b"\xff" + bth[5:] + PAYLOAD)
    return ip + udp + bth + PAYLOAD + struct.pack("<I", zlib.crc32(masked))


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("interface")
    parser.add_argument("own_mac", type=mac)
    parser.add_argument("peer_mac", type=mac)
    parser.add_argument("source", type=ipaddress.IPv4Address)
    parser.add_argument("destination", type=ipaddress.IPv4Address)
    options = parser.parse_args()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock:
        sock.bind((options.interface, socket.htons(0x0800)))
        ethernet = options.peer_mac + options.own_mac + b"\x08\x00"
        for line in sys.stdin:
            frames = [ethernet + packet(options, *one) for one in json.loads(line)]
            for frame in frames:
                sock.send(frame)
            print(len(frames), flush=True)


main()
