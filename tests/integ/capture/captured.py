# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Reads the files that UROCE_CAPTURE writes, as the specification of pcapng describes them."""
import collections
import struct

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
LOCAL_TYPES = 0x80000000  # flag of block types that readers must skip
IN, OUT = 1, 2

Packet = collections.namedtuple("Packet", "time direction frame length comment")


def options(body):
    found, at = {}, 0
    while at + 4 <= len(body):
        code, length = struct.unpack_from("<HH", body, at)
        if code == 0:
            break
        found[code] = body[at + 4:at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return found


class File:
    """The packets of a file, its statistics (received, lost), and the number of skipped blocks."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        self.packets, self.statistics, self.passed_over, at = [], [], 0, 0
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            assert length >= 12 and length % 4 == 0 and at + length <= len(data), (path, at)
            assert struct.unpack_from("<I", data, at + length - 4)[0] == length, (path, at)
            self.block(kind, data[at + 8:at + length - 4])
            at += length

    def block(self, kind, body):
        if kind == PACKET:
            _, high, low, captured, length = struct.unpack_from("<IIIII", body)
            more = options(body[20 + (captured + 3) // 4 * 4:])
            flags, = struct.unpack("<I", more[2])
            self.packets.append(Packet(high << 32 | low, flags & 3, body[20:20 + captured], length,
                                       more.get(1, b"").decode()))
        elif kind == STATISTICS:
            more = options(body[12:])
            self.statistics.append(struct.unpack("<QQ", more[4] + more[5]))
        elif kind & LOCAL_TYPES:
            self.passed_over += 1

    def went(self, direction):
        """The packets that were sent, or received, without a comment, such as a refusal."""
        return [p for p in self.packets if p.direction == direction and not p.comment]


def udp_payload(packet):
    return packet.frame[14 + (20 if packet.frame[12:14] == b"\x08\x00" else 40) + 8:]


def opcode(packet):
    return udp_payload(packet)[0]


def psn(packet):
    return int.from_bytes(udp_payload(packet)[9:12], "big")


def check_arrivals(files):
    """In the order of the files' times, no packet is received before it was sent."""
    sent = collections.defaultdict(collections.deque)
    for when, direction, frame, _, comment in sorted(
            (p for file in files for p in file.packets), key=lambda p: p.time):
        if direction == OUT and not comment.startswith("not sent"):
            sent[frame[-28:]].append(when)
        elif direction == IN:
            assert sent[frame[-28:]], (when, frame.hex())
            sent[frame[-28:]].popleft()
