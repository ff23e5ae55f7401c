#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes corpus/engine: scripts for fuzz_engine with typical exchanges of the protocol.

The format is that of fuzz_engine.c: after the first byte five bytes of configuration for each side,
then steps.  Inputs that the fuzzer has found are in the same directory.
"""
import corpus_files

SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, SWAP, ADD = range(8)
ATOMIC_WRITE, FLUSH, LOCAL_INV, BIND = range(8, 12)
SIGNALED, FENCE, SOLICITED = 1, 2, 4
BOTH, SOURCE, PRIVATE, TARGET, FOLDED = range(5)
RC, UC, UD = 0, 3, 7
A, B = 0, 1
TRANSMIT_ALL = 0x8f | 0x10


def step(number, side, *arguments):
    return bytes([number << 1 | side, *arguments])


def element_byte(kind):
    """A byte whose remainder by REGIONS (5) is kind, with bit 6 set and bit 7 clear."""
    return next(value for value in range(0x40, 0x80) if value % 5 == kind)


def sges(*pairs):
    out = bytes([len(pairs)])
    for kind, length in pairs:
        out += bytes([element_byte(kind)]) + length.to_bytes(4, "little") + b"\0"
    return out


def post(side, op, length, kind=BOTH, rkey=BOTH, flags=SIGNALED):
    head = step(0, side, op, rkey, flags)
    if op in (LOCAL_INV, BIND):
        return head
    return head + b"\0" + sges((kind, length))


def recv(side, length, kind=PRIVATE):
    return step(2, side) + sges((kind, length))


def transmit(side, how=TRANSMIT_ALL):
    return step(3, side, how)


def deliver(how=0, which=None):
    return step(5, 0, how) + (bytes([which]) if how & 0x40 else b"")


DELIVER_ALL = step(7, 0)
TO_DEADLINE = step(11, 0, 1)


def exchange(rounds=3):
    return (transmit(A) + DELIVER_ALL + transmit(B) + DELIVER_ALL) * rounds


def script(kind, mtu_index, *steps, counts=0x3f, depths=0x44, timeout=8, rnr=1, flags=0):
    side = bytes([flags, counts, depths, timeout, rnr])
    first = next(v for v in range(256) if v & 7 == kind and (v >> 3) % 5 == mtu_index)
    return bytes([first]) + side + side + b"".join(steps)


def scripts():
    yield "sends", script(RC, 0, *[recv(B, 2000)] * 4, exchange(1), post(A, SEND, 1000),
                          post(A, SEND_IMM, 0), post(A, SEND_INV, 300), exchange())
    yield "limited", script(RC, 0, post(A, SEND, 2000), exchange(1), TO_DEADLINE, recv(B, 2000),
                            exchange())
    yield "writes", script(RC, 1, recv(B, 0), post(A, WRITE, 2500, SOURCE, TARGET),
                           post(A, WRITE_IMM, 700, SOURCE, TARGET), exchange())
    yield "reads", script(RC, 0, post(A, READ, 1500, PRIVATE, SOURCE), post(A, READ, 10),
                          post(A, WRITE, 10, flags=FENCE), exchange())
    yield "atomics", script(RC, 0, post(A, SWAP, 8), post(A, ADD, 8), exchange(), post(B, ADD, 8),
                            exchange())
    yield "lost_read", script(RC, 0, post(A, READ, 1500, PRIVATE, SOURCE), transmit(A),
                              DELIVER_ALL, transmit(B), deliver(), deliver(0x20), DELIVER_ALL,
                              exchange(), TO_DEADLINE, exchange())
    yield "lost_send", script(RC, 0, recv(B, 2000), exchange(1), post(A, SEND, 1500), transmit(A),
                              deliver(), deliver(0x20), DELIVER_ALL, exchange())
    yield "twice", script(RC, 0, recv(B, 2000), post(A, ADD, 8), transmit(A), deliver(0x10),
                          DELIVER_ALL, exchange(1), post(A, SEND, 600), transmit(A),
                          deliver(0x10), deliver(0x10), DELIVER_ALL, exchange())
    yield "retries", script(RC, 0, post(A, WRITE, 600), *[transmit(A), TO_DEADLINE] * 9, exchange(),
                            counts=0x12)
    yield "bad_rkey", script(RC, 0, post(A, WRITE, 600, rkey=PRIVATE), exchange(), post(B, SEND, 4))
    yield "bad_lkey", script(RC, 0, recv(B, 500, SOURCE), exchange(1), post(A, SEND, 400),
                             exchange())
    yield "too_long", script(RC, 0, recv(B, 500), exchange(1), post(A, SEND, 600), exchange())
    yield "drain", script(RC, 0, post(A, WRITE, 600), transmit(A), step(15, A, 0), post(A, SEND, 4),
                          exchange(), step(15, A, 1), exchange(), counts=0x7f)
    yield "unsent", script(RC, 0, post(A, READ, 900), transmit(A, 0x10), step(13, A), transmit(A),
                           DELIVER_ALL, transmit(B, 0x10), step(13, B), exchange())
    yield "shared", script(RC, 0, recv(B, 900), post(A, SEND, 900), exchange(), flags=3)
    yield "local", script(RC, 0, recv(B, 9), post(A, LOCAL_INV, 0, rkey=1), post(A, SEND, 5),
                          post(A, BIND, 0, rkey=1), exchange(), post(A, BIND, 0, rkey=2))
    yield "again", script(RC, 2, post(A, WRITE, 2500), transmit(A), step(15, A, 2),
                          step(15, A, 4), step(15, B, 4), post(A, WRITE, 99), exchange())
    yield "uc", script(UC, 0, recv(B, 900), recv(B, 900), post(A, SEND, 800), post(A, SEND, 800),
                       transmit(A), deliver(), deliver(0x20), DELIVER_ALL, exchange())
    yield "ud", script(UD, 1, recv(B, 900), recv(B, 100), post(A, SEND, 400), post(A, SEND, 400),
                       exchange())


corpus_files.write("engine", dict(scripts()))
