# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Targets: measures, and the bounds that they must keep."""
import dataclasses
from typing import Optional

import measures
from measures import AT_ONCE, HANDLES, MANY, MORE_AT_ONCE, MOST, PAIRS

UDP_SPIN = "UDP half round trip, spinning"
UDP_BLOCK = "UDP half round trip, blocking"
UDP_STREAM = "UDP stream, 15 x 4128 B"
# With the work that RoCEv2 requires for each packet.
UDP_ICRC = "UDP stream with ICRC and copy, 15 x 4128 B"
TCP_SPIN = "TCP half round trip, spinning"
TCP_STREAM = "TCP stream, 1 MiB"
WRITE = "ib_write_bw, 64 KiB"


@dataclasses.dataclass(frozen=True)
class Target:
    """measure <= bound, or >= if more is better; with a reference, bound is a factor to it."""
    measure: str
    sense: str
    bound: float
    reference: Optional[str] = None
    # 2 if the measure is a whole round trip and the reference half of one.
    scale: float = 1.0
    quick: bool = False

    def ratio(self, measured, reference):
        """The value to compare with the bound."""
        return measured / (self.scale * reference) if self.reference else measured

    def met(self, ratio):
        return ratio <= self.bound if self.sense == "<=" else ratio >= self.bound

    def measures(self):
        return [self.measure] + ([self.reference] if self.reference else [])

    def wanted(self):
        if not self.reference:
            return f"{self.sense} {self.bound:g}"
        scale = f"{self.scale:g} x " if self.scale != 1 else ""
        return f"{self.sense} {self.bound:g} x {scale}{self.reference}"


def _latencies():
    for verb in ("send", "write"):
        yield Target(f"ib_{verb}_lat, 2 B", "<=", 1.3, UDP_SPIN, quick=True)
        yield Target(f"ib_{verb}_lat, 2 B", "<=", 1.0, TCP_SPIN)
    yield Target("ib_read_lat, 2 B", "<=", 1.3, UDP_SPIN, scale=2, quick=True)
    yield Target("ib_atomic_lat", "<=", 1.3, UDP_SPIN, scale=2)
    yield Target("ibv_rc_pingpong -e, 2 B", "<=", 1.2, UDP_BLOCK)
    yield Target("ib_send_lat -e, 2 B", "<=", 1.2, UDP_BLOCK)


def _bandwidths():
    for size in ("64 KiB", "1 MiB"):
        yield Target(f"ib_write_bw, {size}", ">=", 1.2, TCP_STREAM, quick=size == "64 KiB")
        yield Target(f"ib_write_bw, {size}", ">=", 0.8, UDP_STREAM)
    for verb in ("send", "read"):
        yield Target(f"ib_{verb}_bw, 64 KiB", ">=", 1.1, TCP_STREAM, quick=verb == "send")
    yield Target("ib_send_bw, 64 KiB", ">=", 0.85, UDP_ICRC)
    yield Target("ib_write_bw over veth, MTU 1024", ">=", 1.0, "TCP stream over veth, 1 MiB")
    yield Target("ib_write_bw -q 64, 64 KiB", ">=", 0.8, WRITE)
    yield Target("ib_write_bw -q 1024, 64 KiB", ">=", 0.8, WRITE)
    yield Target("ib_write_bw, 64 KiB, 1 % loss", ">=", 0.4, WRITE)
    yield Target("ib_write_bw, 64 KiB, default buffers", ">=", 0.9, WRITE)


def _rates():
    yield Target("ib_write_bw, 8 B", ">=", 8, quick=True)
    yield Target("ib_write_bw -l 64, 8 B", ">=", 12)
    yield Target("ib_send_bw, 8 B", ">=", 5)
    yield Target("ib_send_bw, 64 B", ">=", 0.95, "ib_send_bw, 64 B, no credits")
    for what in ("ib_write_bw, 8 B", "ib_send_bw, 64 B"):
        yield Target(f"{what}, captured", ">=", 0.5, what)


def _the_rest():
    # A clock tick each second would be 0.001 %; a process that exceeds the bound does work.
    for what in ("device open", "waiting for an event"):
        yield Target(f"idle, {what}", "<=", 0.1, quick=what != "device open")
    yield Target("memory of a queue pair", "<=", 8)
    yield Target(f"{MANY} queue pairs to RTS", "<=", 2, quick=True)
    yield Target(f"{MOST} queue pairs destroyed", "<=", 0.5)
    yield Target(f"{HANDLES} address handles made and destroyed", "<=", 1)
    for what in ("ib_send_bw, 64 KiB", "ib_send_lat, 2 B"):
        yield Target(f"{what}, pairs: {PAIRS}", ">=", 0.5, f"{what}, pairs: 1")


def _threads():
    """For machines with as many processors as threads of both sides; else other bounds apply."""
    for name in measures.THREAD_WORKLOADS:
        for units in measures.THREAD_UNITS:
            yield Target(measures.threads_name(name, units, "threads"), ">=", 0.8,
                         measures.threads_name(name, units, "processes"),
                         quick=units == 2 and name.startswith("WRITE, 8"))


def _connects():
    yield Target("connect, less 3 one-way trips", "<=", 200)
    yield Target(f"connect, {AT_ONCE} at once", "<=", 2, quick=True)
    yield Target(f"connect, {MORE_AT_ONCE} at once", "<=", 1)


def _instructions():
    yield Target("instructions of ib_write_bw, 8 B", "<=", 1000)
    yield Target("instructions of ib_send_lat, 2 B", "<=", 3500)
    yield Target("instructions of ib_send_lat, 2 B, server", "<=", 3500)


def _through_memory(target):
    """The same target with shared memory; None if the measure has no such variant."""
    if target.measure + measures.SHM not in measures.ALL:
        return None
    reference = target.reference
    if reference and reference + measures.SHM in measures.ALL:
        reference += measures.SHM
    return dataclasses.replace(target, measure=target.measure + measures.SHM, reference=reference)


_SOCKETS = [*_latencies(), *_bandwidths(), *_rates(), *_the_rest(), *_threads(), *_connects(),
            *_instructions()]
ALL = _SOCKETS + [twin for twin in map(_through_memory, _SOCKETS) if twin]
# Measured for information, without a bound.
BESIDE = ["TCP half round trip, blocking", "UDP stream from 64 MiB",
          "UDP stream with ICRC and copy, 8 x 4128 B", "UDP stream, 128 x 40 B", "TCP stream, 8 B",
          "connect", "TCP connect",
          f"TCP connect, {AT_ONCE} at once", "instructions of an empty poll",
          "instructions of the least round trip",
          "empty polls in ib_write_bw, 8 B", "empty polls in ib_send_lat, 2 B",
          "empty polls in ib_send_lat, 2 B, server",
          "helper thread in ib_write_bw, 8 B", "helper thread in ib_send_lat, 2 B",
          "helper thread in ib_send_lat, 2 B, server",
          *measures.HABITS, *(name + measures.SHM for name in measures.HABITS)]
