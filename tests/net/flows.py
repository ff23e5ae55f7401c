# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Flows over a Bottleneck and samples of their progress.

Times are those of time.monotonic(), bytes are payload that has arrived and been acknowledged.
"""
import bisect
import contextlib
import json
import os
import statistics
import sys
import threading
import time

import bottleneck
import harness

INTERVAL = 0.05
PSN_MASK = (1 << 24) - 1
# DSCP 26, as is usual for RoCE, and ECT(0).
ECT_CLASS = 106
# With the usual Local ACK Timeout a connection breaks if this host is busy with other things for
# half a second; 18 is a second, times seven retries.
TIMEOUT_CODE = 18


class Series:
    """Samples of the number of bytes delivered until a time."""

    def __init__(self):
        self.times, self.totals = [], []

    def add(self, when, total):
        self.times.append(when)
        self.totals.append(total)

    def at(self, when):
        """Bytes delivered until that time, interpolated linearly between samples."""
        index = bisect.bisect_right(self.times, when)
        if index == 0:
            return 0
        if index == len(self.times):
            return self.totals[-1]
        before, after = self.times[index - 1], self.times[index]
        share = (when - before) / (after - before)
        return self.totals[index - 1] + share * (self.totals[index] - self.totals[index - 1])

    def rate(self, start, end):
        """Bytes per second between two times."""
        return (self.at(end) - self.at(start)) / (end - start)

    def started(self):
        """Time of the first sample with delivered bytes, or None."""
        return next((t for t, total in zip(self.times, self.totals) if total), None)

    def rates(self, start, end, step=0.2):
        """A list of (end of the step, bytes per second) for each step."""
        count = int((end - start) / step + 1e-9)
        return [(start + (i + 1) * step,
                 self.rate(start + i * step, start + (i + 1) * step)) for i in range(count)]


class Reader(threading.Thread):
    """Reads the lines of a program with their times of arrival; done() kills the program."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.lines = process, []
        self.start()

    def run(self):
        for line in self.process.popen.stdout:
            self.lines.append((time.monotonic(), line))

    def done(self):
        self.process.kill()
        self.join()
        return self.lines


class QueueWatch:
    """Samples of the router's queue."""

    def __init__(self, lab):
        script = os.path.join(bottleneck.HERE, "queue_samples.py")
        self.reader = Reader(lab.r.start(harness.PYTHON, script, "rb", INTERVAL, interactive=True))
        self.samples = []

    def done(self):
        lines = [line.split() for _, line in self.reader.done() if line.endswith("\n")]
        self.samples = [(float(t), int(backlog), int(drops)) for t, backlog, drops in lines]
        return self

    def between(self, start, end):
        return [sample for sample in self.samples if start <= sample[0] <= end]

    def p95(self, start, end):
        found = sorted(backlog for _, backlog, _ in self.between(start, end))
        return found[(len(found) - 1) * 95 // 100]

    def drops(self, start, end):
        found = self.between(start, end)
        return found[-1][2] - found[0][2]


class NotSampled(AssertionError):
    """uroce-stat got no processor time while a flow ran."""


class StatWatch:
    """Samples of the queue pairs of a place, by process id and queue pair number."""

    def __init__(self, place):
        stat = os.path.join(place.scratch.bin, "uroce-stat")
        self.reader = Reader(place.start(stat, "--json", f"--watch={INTERVAL}", interactive=True))
        self.pairs = {}

    def done(self):
        for when, line in self.reader.done():
            if not line.endswith("\n"):
                continue
            for process in json.loads(line):
                for pair in process["qps"]:
                    found = self.pairs.setdefault((process["pid"], pair["qpn"]), [])
                    found.append((when, pair))
        return self

    def of(self, pid):
        """The samples of a process's only queue pair."""
        found = [samples for (owner, _), samples in self.pairs.items() if owner == pid]
        if not found:
            raise NotSampled(f"process {pid} has not been seen")
        assert len(found) == 1, f"process {pid} has {len(found)} queue pairs"
        return found[0]


class RoceFlow:
    """A stock perftest program that moves data from a to b."""

    def __init__(self, lab, kind="write", seconds=5, size=65536, ect=False, env=None,
                 version=4):
        self.kind = kind
        # The requester of READs receives the data, so it runs at b.
        server_at = lab.a if kind == "read" else lab.b
        self.asking_at = server_at.peer
        command = [f"ib_{kind}_bw", "-d", "{device}", "-F", "-D", seconds, "--margin", 0, "-s",
                   size, "-u", TIMEOUT_CODE, "-x", f"{{gid{version}}}", "--report_gbits"]
        if ect:
            command.append(f"--tclass={ECT_CLASS}")
        self.server, self.client = harness.start_pair(server_at, command, env=env)
        self.series, self.mtu = Series(), 0
        self.sent = []  # (time, packets of data sent)

    def done(self):
        for process in self.client, self.server:
            process.done()

    def read(self, watches):
        """Take this flow's samples from the StatWatches of both places."""
        asking = [sample for sample in watches[self.asking_at].of(self.client.pid)
                  if sample[1]["state"] == "RTS"]
        if not asking:
            raise NotSampled(f"process {self.client.pid} has not been seen at work")
        total, last = 0, None
        for when, pair in asking:
            psn = pair["unacked_psn"]
            self.mtu = pair["mtu"]
            step = (psn - last & PSN_MASK) if last is not None else 0
            total += step if step < 1 << 23 else 0
            last = psn
            self.series.add(when, total * self.mtu)
        answering = watches[self.asking_at.peer].of(self.server.pid)
        sender = answering if self.kind == "read" else asking
        self.sent = [(when, pair["counters"]["sent_pkts"]) for when, pair in sender]
        self.last = asking[-1][1], answering[-1][1]

    def repeats(self):
        """Number of retransmitted packets per packet of payload."""
        needed = self.series.totals[-1] / self.mtu
        return max(0, self.sent[-1][1] - needed) / needed


class TcpFlow:
    """A TCP connection from a to b."""

    def __init__(self, lab, congestion="cubic", seconds=5):
        script = os.path.join(bottleneck.HERE, "tcp_flow.py")
        server = lab.b.serve(bottleneck.TCP_PORT, harness.PYTHON, script, "receive",
                             bottleneck.TCP_PORT)
        self.server = server
        self.client = lab.a.start(harness.PYTHON, script, "send", lab.b.address,
                                  bottleneck.TCP_PORT, congestion, seconds)
        self.series = Series()

    def done(self):
        for process in self.client, self.server:
            process.done()

    def read(self, _):
        for line in self.server.output.splitlines()[1:]:
            when, total = line.split()
            self.series.add(float(when), int(total))


class Run:
    """Flows that start one after the other, sampled until all have ended."""

    def __init__(self, lab, *flows):
        """flows: (seconds to wait before the start, function that starts the flow in a lab)."""
        queue = QueueWatch(lab)
        watches = {place: StatWatch(place) for place in (lab.a, lab.b)}
        before = lab.dropped(), lab.marked()
        self.flows = []
        for delay, make in flows:
            time.sleep(delay)
            self.flows.append(make(lab))
        for flow in self.flows:
            flow.done()
        self.queue = queue.done()
        for watch in watches.values():
            watch.done()
        for flow in self.flows:
            flow.read(watches)
        self.dropped, self.marked = lab.dropped() - before[0], lab.marked() - before[1]

    def started(self):
        return [flow.series.started() for flow in self.flows]


def try_run(lab, *flows):
    """A Run of these flows, or None if one of them was not sampled."""
    with contextlib.suppress(NotSampled):
        return Run(lab, *flows)
    return None


def run(lab, make):
    """A Run of one short flow."""
    return harness.tries(lambda: try_run(lab, (0, make)))[0]


def jain(rates):
    """Jain's fairness index: 1 if all n rates are equal, 1/n if one flow gets everything."""
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def main():
    """A look: one flow or more over the bottleneck, by hand."""
    import argparse
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("kinds", nargs="+", help="write, send, read, cubic, bbr, reno")
    parser.add_argument("--queue", type=int, default=bottleneck.DEEP, help="bytes")
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--loss", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--size", type=int, default=65536)
    parser.add_argument("--stagger", type=float, default=1, help="seconds between two flows")
    parser.add_argument("--fault", help="UROCE_FAULT of all ends")
    asked = parser.parse_args()

    def make(kind):
        if kind in ("write", "send", "read"):
            env = {"UROCE_FAULT": asked.fault} if asked.fault else None
            return lambda lab: RoceFlow(lab, kind, int(asked.seconds), asked.size, asked.marks, env)
        return lambda lab: TcpFlow(lab, kind, asked.seconds)

    scratch = harness.Scratch()
    try:
        with bottleneck.bottleneck(scratch) as lab:
            lab.set(asked.queue, asked.marks, asked.loss)
            first, *others = map(make, asked.kinds)
            show(Run(lab, (0, first), *((asked.stagger, other) for other in others)), asked)
    finally:
        scratch.remove()


def show(run, asked):
    starts = run.started()
    first, last = min(starts), max(starts) + asked.seconds - 0.5
    for when in (first + 0.5 * i for i in range(int((last - first) / 0.5))):
        rates = [flow.series.rate(when, when + 0.5) * 8e-6 for flow in run.flows]
        seen = run.queue.between(when, when + 0.5)
        backlog = statistics.median(b for _, b, _ in seen) if seen else 0
        print(f"{when - first:5.1f} s ", *(f"{rate:7.1f}" for rate in rates),
              f" Mb/s   queue {backlog:7.0f} B")
    shared = max(starts) + 1, max(starts) + asked.seconds - 1
    rates = [flow.series.rate(*shared) for flow in run.flows]
    print(f"Jain {jain(rates):.3f}, queue p95 {run.queue.p95(*shared)} B, "
          f"drops {run.queue.drops(first, last)}, lost on purpose {run.dropped}, "
          f"marked {run.marked}")
    for flow in run.flows:
        if isinstance(flow, RoceFlow):
            print(f"repeats per packet {flow.repeats():.3f}",
                  {k: v for k, v in flow.last[0]["counters"].items() if v},
                  {k: v for k, v in flow.last[1]["counters"].items() if v})


if __name__ == "__main__":
    sys.exit(main())
