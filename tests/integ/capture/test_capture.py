# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Packets on the wire, captured and checked by independent programs: ICRCs, tshark, and the
fields that a peer's kernel checks."""
import os
import re
import shutil
import signal
import struct
import sys
import time

import pytest

import harness
import perftest

sys.path.insert(0, os.path.join(os.path.dirname(harness.HERE), "golden"))
import check_icrc  # noqa: E402
import judge_capture  # noqa: E402

# A capture file without packets is smaller, with those of any test here it is larger.
HEADER_BYTES = 1000
SEND_OPCODES, ACK = range(0x00, 0x06), 0x11


class Capture:
    """Captures all RoCEv2 packets of one interface of a place during the with block."""

    def __init__(self, place, interface):
        if not shutil.which("dumpcap"):
            pytest.skip("dumpcap is not installed")
        self.place, self.interface = place, interface
        self.path = place.scratch.file("pcapng")

    def __enter__(self):
        self.dumpcap = self.place.start("dumpcap", "-q", "-i", self.interface, "-f",
                                        "udp port 4791", "-B", 64, "-w", self.path)
        until = time.monotonic() + harness.PATIENCE
        while "File: " not in self.dumpcap.errors:
            if not self.dumpcap.running():
                pytest.skip(f"capturing is not permitted: {self.dumpcap.errors.strip()}")
            assert time.monotonic() < until, self.dumpcap
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.settle()
        self.dumpcap.popen.send_signal(signal.SIGINT)
        self.dumpcap.wait()

    def settle(self):
        """Waits until the file contains packets and grows no more: packets arrive there late."""
        until, sizes = time.monotonic() + harness.PATIENCE, []
        while time.monotonic() < until:
            sizes.append(os.path.getsize(self.path))
            # Several equal sizes: dumpcap may have had no processor between two of them.
            if sizes[-1] >= HEADER_BYTES and sizes[-4:] == 4 * sizes[-1:]:
                break
            time.sleep(0.25)

    def judge(self):
        """Checks the packets; returns their number by opcode."""
        assert re.search(r"received/dropped on interface .*: \d+/0 ", self.dumpcap.errors), \
            self.dumpcap.errors
        try:
            opcodes, complaints = judge_capture.judge(self.path)
        except judge_capture.NoTshark:
            pytest.skip("tshark is not installed")
        assert complaints == []
        return opcodes

    def headers(self):
        """(source port, destination port, bytes of the BTH) of each datagram, or GSO run."""
        for _, link, frame, _ in check_icrc.read_capture(self.path):
            packet = check_icrc.Packet(link, frame)
            if packet.ok:
                yield (*struct.unpack_from(">HH", frame, packet.udp),
                       frame[packet.udp + 8:packet.udp + 20])


def rxe_source_port(qpn, dest_qpn):
    """The source port of a connected queue pair that was set up without the connection manager."""
    value = qpn * dest_qpn
    value ^= value >> 20
    value ^= value >> 40
    label = value & 0xFFFFF
    return 0xC000 | ((label & 0x3FFF) ^ (label >> 14))


def check_fields(capture):
    """rule S15 test: transport version 0, MigReq 1, the default P_Key."""
    count = 0
    for _, dest_port, bth in capture.headers():
        count += 1
        assert dest_port == 4791
        assert bth[1] & 0x0F == 0, bth
        assert bth[1] & 0x40, bth
        assert bth[2:4] == b"\xff\xff", bth
    assert count > 0


def interface_of(place):
    return place.device[len("uroce_"):]


def pingpong(place, version, *arguments, env=None):
    server, client = harness.start_pair(
        place, ["ibv_rc_pingpong", "-d", "{device}", "-g", place.gid_index(version), "-c",
                *arguments], env=env)
    for process in client, server:
        process.done()
    return client


SHORT, PADDED, LONG, EVENTS = ("-s 1", "-s 5001 -m 256", "-s 65536 -m 4096",
                               "-s 4096 -m 1024 -e")


@pytest.mark.parametrize("where, version, arguments", [
    ("loopback", 4, SHORT), ("loopback", 4, PADDED), ("loopback", 4, LONG), ("loopback", 4, EVENTS),
    ("loopback", 6, PADDED), ("loopback", 6, LONG), ("veth", 4, PADDED), ("veth", 4, EVENTS),
    ("veth", 6, SHORT), ("veth", 6, LONG)])
def test_sends(request, where, version, arguments):
    place = request.getfixturevalue(where)
    with Capture(place, interface_of(place)) as capture:
        pingpong(place, version, "-n", 20, *arguments.split())
    opcodes = capture.judge()
    assert set(opcodes) <= {*SEND_OPCODES, ACK} and opcodes[ACK] > 0
    check_fields(capture)


def test_source_port(veth):
    """The source port is the one that kernel rxe would use, the same in both directions."""
    with Capture(veth, interface_of(veth)) as capture:
        client = pingpong(veth, 4, "-n", 5)
    qpns = [int(word, 16) for word in re.findall(r"QPN (0x[0-9a-f]+)", client.output)]
    ports = {source for source, _, _ in capture.headers()}
    assert ports == {rxe_source_port(*qpns)}


def test_source_ports_differ(loopback):
    """Connections have different source ports, so that a network can use several paths."""
    with Capture(loopback, "lo") as capture:
        perftest.finish(*perftest.start(loopback, "ib_write_bw", "-q", 16, "-n", 10, "-s", 4096))
    capture.judge()
    ports = {}
    for source, _, bth in capture.headers():
        ports.setdefault(bth[5:8], set()).add(source)
    assert len(ports) == 32
    assert all(len(of_qp) == 1 and min(of_qp) >= 0xC000 for of_qp in ports.values()), ports
    # Kernel rxe hashes the queue pair numbers to 14 bits: two of 16 connections have the same port
    # in one of 140 cases.
    assert len(set.union(*ports.values())) >= 12
