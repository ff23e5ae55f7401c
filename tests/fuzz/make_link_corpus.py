#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes corpus/link and corpus/ring: messages between processes, and what may be in a ring.

Run it again whenever UROCE_ABI_VERSION has been raised or the ring has another size: of another
version every message is the same to the parser, and what lies at the ring's end moves with it.  The
steps of a ring are those of fuzz_ring.c.  What corpus/ring has besides, the fuzzer found.
"""
import pathlib
import re
import struct

import corpus_files

HERE = pathlib.Path(__file__).parent
ABI = (HERE.parent.parent / "kernel-headers/rdma/uroce-abi.h").read_text()


def constant(name):
    return int(re.search(rf"#define UROCE_ABI_{name} (\d+)", ABI)[1])


VERSION = constant("VERSION")
(FORWARD, DOORBELL, POOL_REQUEST, POOL_REPLY, POOL_UNKNOWN, SHM_REQUEST, SHM_REPLY, SHM_REFUSED,
 STAT_REQUEST, STAT_REPLY, GSI_HELLO, GSI_LISTEN, GSI_UNLISTEN, GSI_MAD, GSI_BELL, GSI_ASK,
 GSI_HERE) = range(1, 18)
LOOPBACK = bytes(10) + b"\xff\xff\x7f\0\0\1"
SLOTS = 64

UNIT, ROOM = constant("RING_ALIGN"), constant("RING_BYTES")
UNITS = ROOM // UNIT
MAX_BYTES = 65507
# So many of the largest frames are more than the ring holds.
TOO_MANY = ROOM // MAX_BYTES + 1
HEAD, WRITTEN, READ, NEXT, RELEASE, DRAIN, WRITE, REOPEN = range(8)
FROM_READER = 0x8000


def header(kind, version=VERSION):
    return struct.pack("<IIQ", kind, version, 0x1234567890)


def forward(length):
    return (header(FORWARD) + LOOPBACK * 2 + struct.pack("<IHH", 0, 0xc000, length)
            + bytes(range(40)))


def pool(kind, slots=SLOTS, version=VERSION):
    return header(kind, version) + LOOPBACK + struct.pack("<IIQ", 0, slots, 0x1234567890)


def channel(kind, slot, version=VERSION):
    return header(kind, version) + LOOPBACK + struct.pack("<II", 0, slot)


def hello(slot):
    return header(GSI_HELLO) + struct.pack("<II", slot, 0)


def service(kind):
    return header(kind) + struct.pack("<Q", 0x1061b58) + LOOPBACK + struct.pack("<II", 0, 0)


def mad():
    return header(GSI_MAD) + LOOPBACK + struct.pack("<QII", 12345, 0, 0) + bytes([1, 7, 2, 3] * 64)


MESSAGES = {
    "forward": forward(40),
    "forward_short": forward(41),
    "request": pool(POOL_REQUEST),
    "reply": pool(POOL_REPLY),
    "unknown": pool(POOL_UNKNOWN),
    "pool_few": pool(POOL_REPLY, 1),
    "pool_size": pool(POOL_REPLY, SLOTS + 1),
    "version": pool(POOL_REQUEST, version=VERSION + 1),
    "shm_request": channel(SHM_REQUEST, SLOTS - 1),
    "shm_reply": channel(SHM_REPLY, 0),
    "shm_refused": channel(SHM_REFUSED, 0),
    "shm_slot": channel(SHM_REPLY, SLOTS),
    "shm_short": channel(SHM_REQUEST, 1)[:-1],
    "shm_version": channel(SHM_REQUEST, 1, VERSION - 1),
    "doorbell": header(DOORBELL),
    "doorbell_long": header(DOORBELL) + b"\0",
    "stat_request": header(STAT_REQUEST),
    "gsi_hello": hello(SLOTS - 1),
    "gsi_hello_slot": hello(SLOTS),
    "gsi_listen": service(GSI_LISTEN),
    "gsi_unlisten": service(GSI_UNLISTEN),
    "gsi_service_long": service(GSI_LISTEN) + b"\0",
    "gsi_mad": mad(),
    "gsi_mad_short": mad()[:-1],
    "gsi_bell": header(GSI_BELL),
    "gsi_ask": header(GSI_ASK),
    "gsi_here": header(GSI_HERE),
}


def start(unit, written, rounds=0):
    return struct.pack("<HBxi", unit, rounds, written)


def step(number, where=0, value=0, shift=0):
    return struct.pack("<BBHi", number, shift, where, value)


def head(where, length):
    return step(HEAD, where, length)


def write(length):
    return step(WRITE, 0, length - 1)


RINGS = {
    "frames": start(0, 3 * UNIT) + head(0, 8) + head(1, 48) + head(2, 1) + step(NEXT)
    + step(RELEASE) + step(DRAIN),
    "skip": start(UNITS - 1, 2 * UNIT, 3) + head(UNITS - 1, 0) + head(0, 48),
    "skip_ahead": start(1, UNIT) + head(1, 0),
    "skip_at_start": start(0, ROOM) + head(0, 0),
    "largest": start(1, 65536) + head(1, MAX_BYTES) + step(NEXT) + step(RELEASE),
    "too_large": start(1, ROOM) + head(1, MAX_BYTES + 1),
    "beyond_end": start(UNITS - 1, 2 * UNIT) + head(UNITS - 1, 49),
    "beyond_written": start(0, UNIT) + head(0, 49),
    "too_far": start(0, ROOM + UNIT) + head(0, 8),
    "unaligned": start(0, 96) + head(0, 8),
    "turned_back": start(0, 2 * UNIT) + head(0, 8) + head(1, 8) + step(NEXT) + step(RELEASE)
    + step(WRITTEN, 0, -UNIT) + step(NEXT) + step(RELEASE) + step(NEXT),
    "far": start(5, 0, 200) + step(WRITTEN, 0, 1, 32) + step(NEXT) + step(NEXT),
    "grows": start(0, UNIT) + head(0, 8) + step(NEXT) + head(FROM_READER | 1, 8)
    + step(WRITTEN, 0, UNIT) + step(RELEASE) + step(NEXT) + head(FROM_READER, 70000)
    + step(NEXT),
    "honest": start(UNITS - 40, 0) + write(40) + write(1500) + write(MAX_BYTES) + step(DRAIN)
    + write(60000) * TOO_MANY + step(DRAIN) + write(1) + step(REOPEN) + write(48),
    "full": start(0, 0) + write(MAX_BYTES) * TOO_MANY + step(NEXT) + step(RELEASE)
    + write(MAX_BYTES),
    "reader_ahead": start(0, 0) + step(READ, 0, UNIT) + step(REOPEN) + write(100)
    + write(MAX_BYTES) * TOO_MANY,
    "reader_unaligned": start(0, 0) + write(MAX_BYTES) * (TOO_MANY - 1) + step(READ, 0, 1)
    + write(1) * 2,
    # No writer comes so far; one that puts a position there may.
    "position_wraps": start(0, -4 * UNIT) + step(READ, 0, -ROOM // 2) + step(REOPEN) + write(785),
    "writer_unaligned": start(0, 0) + step(WRITTEN, 0, 33) + step(REOPEN) + write(1),
}


def main():
    for name, files in (("link", MESSAGES), ("ring", RINGS)):
        corpus_files.write(name, files)


if __name__ == "__main__":
    main()
