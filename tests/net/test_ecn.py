# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""ECN marks: CNPs and ACKs that report them, as decoded by tshark, and the sender's reaction."""
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

import bottleneck
import flows
import harness

CNP, ACK, WRITES = 0x81, 0x11, (0x06, 0x07, 0x08)
CNP_INTERVAL = 50e-6
NOT_ECT, ECT, CE = 0, 2, 3
FIELDS = ["frame.time_epoch", "ip.src", "ipv6.src", "ip.dsfield.dscp", "ip.dsfield.ecn",
          "ipv6.tclass.dscp", "ipv6.tclass.ecn", "udp.payload"]


class Wire:
    """Packets that pass b's interface while the context is active, as tshark decodes them."""

    def __init__(self, lab):
        if not shutil.which("dumpcap") or not shutil.which("tshark"):
            pytest.skip("tshark is not installed")
        self.lab, self.path, self.packets = lab, lab.scratch.file("pcapng"), []

    def __enter__(self):
        self.dumpcap = self.lab.b.start("dumpcap", "-q", "-i", "b0", "-w", self.path, "-s", 120,
                                        "-f", "udp port 4791")
        until = time.monotonic() + harness.PATIENCE
        while not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            assert self.dumpcap.running() and time.monotonic() < until, self.dumpcap
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.dumpcap.kill(signal.SIGINT)
        shown = subprocess.run(["tshark", "-r", self.path, "-T", "fields", "-d",
                                "udp.port==4791,data",
                                *(word for field in FIELDS for word in ("-e", field))],
                               check=True, capture_output=True, text=True).stdout
        for line in shown.splitlines():
            when, source4, source6, dscp4, ecn4, dscp6, ecn6, payload = line.split("\t")
            self.packets.append((float(when), source4 or source6, int(dscp4 or dscp6),
                                 int(ecn4 or ecn6), bytes.fromhex(payload)))


def check_cnps(wire, source, qpn):
    """Check that CNPs are those of annex A17, byte for byte, and far enough apart; their number."""
    times = []
    for when, address, dscp, ecn, payload in wire.packets:
        if payload[0] != CNP:
            continue
        assert (address, dscp, ecn) == (source, 48, NOT_ECT)
        head = bytes([CNP, 0, 0xFF, 0xFF, 0x40]) + qpn.to_bytes(3, "big")
        assert payload[:28] == head + bytes(20)
        assert len(payload) == 32
        times.append(when)
    gaps = sorted(after - before for before, after in zip(times, times[1:]))
    # The gap after a CNP that was sent late is shorter, but only a tenth of the gaps may be.
    assert not gaps or gaps[len(gaps) // 10] >= CNP_INTERVAL * 0.8, gaps[:10]
    return len(times)


def check_marks_are_told(wire, sender, receiver):
    """Check that a marked WRITE causes a CNP before its ACK, unless a CNP was sent just before.

    This holds on a busy host, too: a marked packet that is received more than CNP_INTERVAL after
    the last CNP makes one pending, and a pending CNP goes before all other packets.  Twice the
    interval leaves room for the clock of the capture.  A few packets may be missing in the capture,
    or lost at the receiver's socket.
    """
    due, untold, told_at, waiting = 0, 0, 0, []
    for when, address, _, ecn, payload in wire.packets:
        psn = int.from_bytes(payload[9:12], "big")
        if address == sender and payload[0] in WRITES and ecn == CE:
            if when - told_at > 2 * CNP_INTERVAL:
                due += 1
                waiting.append(psn)
        elif address == receiver and payload[0] == CNP:
            told_at, waiting = when, []
        elif address == receiver and payload[0] == ACK and payload[12] >> 5 == 0:
            later = [other for other in waiting if psn - other & flows.PSN_MASK >= 1 << 23]
            untold += len(waiting) - len(later)
            waiting = later
    assert due > 0 and untold <= due / 10, f"no CNP for {untold} of {due} marked packets"


def captured(lab, make):
    """The Wire and the Run of one flow, or None if the flow was not sampled."""
    with Wire(lab) as wire:
        run = flows.try_run(lab, (0, make))
    return run and (wire, run)


@pytest.mark.parametrize("version, setting", [(4, False), (6, True)])
def test_marks_are_told_and_obeyed(lab, version, setting):
    """ECN is enabled by perftest's --tclass (IPv4) and by UROCE_TOS (IPv6)."""
    lab.set(marks=True)
    env = {"UROCE_TOS": hex(flows.ECT_CLASS)} if setting else None
    wire, run = harness.tries(lambda: captured(lab, lambda at: flows.RoceFlow(
        at, "write", 1, ect=not setting, env=env, version=version)))[0]
    sender, receiver = run.flows[0].last
    here, there = ((lab.b.address, lab.a.address) if version == 4 else
                   (lab.b.address6, lab.a.address6))
    assert check_cnps(wire, here, sender["qpn"]) > 0
    check_marks_are_told(wire, there, here)
    assert receiver["counters"]["np_cnp_sent"] > 0
    assert 0 < receiver["counters"]["np_ecn_marked_roce_packets"]
    assert sender["counters"]["rp_cnp_handled"] > 0
    assert {(dscp, ecn) for _, address, dscp, ecn, payload in wire.packets
            if address == there and payload[0] in WRITES} == {(26, ECT), (26, CE)}
    # ACKs echo marks by BECN.
    assert any(payload[0] == ACK and payload[4] & 0x40 for *_, payload in wire.packets)
    assert run.queue.samples[-1][2] == run.queue.samples[0][2], "packets were dropped"


def test_read_responses(lab):
    """READ responses are marked: the requester sends CNPs, and the responder reacts to them."""
    lab.set(marks=True)
    wire, run = harness.tries(lambda: captured(
        lab, lambda at: flows.RoceFlow(at, "read", 1, ect=True)))[0]
    asking, answering = run.flows[0].last
    assert check_cnps(wire, lab.b.address, answering["qpn"]) > 0
    assert asking["counters"]["np_cnp_sent"] > 0
    assert answering["counters"]["rp_cnp_handled"] > 0


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
