# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests of the judges of captures: they accept valid captures and detect each kind of damage; and
tshark decodes packets that our own code builds to the values that were encoded.
UROCE_EVERY_OPCODE names the program every_opcode."""
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

import check_icrc
import judge_capture

CAPTURES = pathlib.Path(__file__).parent / "captures"
needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")

# tshark 4.0 decodes no more than the BTH of these.
BTH_ONLY = {0x1C, 0x1D, 0x81} | set(range(0xA0, 0xC0))


def frames_of(name):
    return [(when, frame) for when, _, frame, _ in check_icrc.read_capture(CAPTURES / name)]


def write(path, frames):
    with open(path, "wb") as out:
        judge_capture.write_capture(out, 1, frames)
    return str(path)


def roce(frame):
    return check_icrc.Packet(1, frame)


def with_right_icrc(frame):
    return frame[:-4] + roce(frame).icrc_computed()


@needs_tshark
@pytest.mark.parametrize("name, packets, opcodes", [
    ("rc_send.pcap", 100, {0x00, 0x01, 0x02, 0x11}),
    ("rc_atomic_cs.pcap", 20, {0x13, 0x12}),
    ("cm_ipv6.pcap", 17, {0x04, 0x64, 0x0A, 0x0C, 0x10, 0x11}),
])
def test_accepts_captures(name, packets, opcodes):
    seen, complaints = judge_capture.judge(str(CAPTURES / name))
    assert complaints == []
    assert sum(seen.values()) == packets
    assert set(seen) == opcodes


@needs_tshark
def test_sees_a_wrong_icrc(tmp_path):
    frames = frames_of("rc_atomic_cs.pcap")
    when, frame = frames[3]
    frames[3] = when, frame[:-1] + bytes([frame[-1] ^ 1])
    _, complaints = judge_capture.judge(write(tmp_path / "wrong.pcap", frames))
    assert len(complaints) == 1 and complaints[0].startswith("packet 4: ICRC")


@needs_tshark
def test_sees_what_is_cut_short(tmp_path):
    frames = frames_of("rc_atomic_cs.pcap")
    frames[3] = frames[3][0], frames[3][1][:-6]
    _, complaints = judge_capture.judge(write(tmp_path / "short.pcap", frames))
    assert any("packet 4: cut short" in c for c in complaints)


@needs_tshark
def test_sees_what_is_malformed(tmp_path):
    """An Atomic request that ends within its AtomicETH, with matching lengths and ICRC."""
    frames = frames_of("rc_atomic_cs.pcap")
    when, frame = frames[0]
    p = roce(frame)
    assert frame[p.udp + 8] == 0x13
    short = bytearray(frame[:p.end - 16] + b"\0\0\0\0")
    struct.pack_into(">H", short, p.ip + 2, p.total - 12)
    struct.pack_into(">H", short, p.udp + 4, p.ulen - 12)
    frames[0] = when, with_right_icrc(bytes(short))
    assert roce(frames[0][1]).icrc_in_packet() == roce(frames[0][1]).icrc_computed()
    _, complaints = judge_capture.judge(write(tmp_path / "malformed.pcap", frames))
    assert complaints and complaints[0].startswith("packet 1: tshark")


@needs_tshark
def test_cuts_bursts(tmp_path):
    """Five packets of one size and a shorter one, captured as one long datagram."""
    base = frames_of("rc_send_pad.pcap")[0][1]
    p = roce(base)
    payload = b""
    for i, size in enumerate((60, 60, 60, 60, 60, 24)):
        head = bytearray(base[p.udp + 8:p.udp + 20])
        head[0], head[1] = 0x04, 0x40
        struct.pack_into(">I", head, 8, i)
        part = bytearray(base[:p.udp + 8]) + head + bytes(size - 12)
        struct.pack_into(">HH", part, p.ip + 2, 28 + size, i)
        struct.pack_into(">H", part, p.udp + 4, 8 + size)
        payload += with_right_icrc(bytes(part))[p.udp + 8:]
    burst = bytearray(base[:p.udp + 8]) + payload
    struct.pack_into(">HH", burst, p.ip + 2, 28 + len(payload), 0)
    struct.pack_into(">H", burst, p.udp + 4, 8 + len(payload))
    seen, complaints = judge_capture.judge(write(tmp_path / "burst.pcap", [(1.5, bytes(burst))]))
    assert complaints == []
    assert seen == {0x04: 6}
    burst[-30] ^= 1
    _, complaints = judge_capture.judge(write(tmp_path / "bad.pcap", [(1.5, bytes(burst))]))
    assert len(complaints) >= 1 and "ICRC" in complaints[0]


def test_program_counts_packets(tmp_path):
    """An empty capture is not accepted."""
    program = [judge_capture.__file__, "-q", write(tmp_path / "empty.pcap", [])]
    assert subprocess.run(["/usr/bin/python3", "-B"] + program).returncode == 2


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """(capture, [{field: value}, ...]) of packets that our own code builds."""
    path = str(tmp_path_factory.mktemp("built") / "every_opcode.pcap")
    text = subprocess.run([os.environ["UROCE_EVERY_OPCODE"], path], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    packets = [dict(word.split("=") for word in line.split()) for line in text.splitlines()]
    return path, packets


def test_own_packets_have_right_icrcs(built):
    """rule S14 test: of every opcode, IPv4 and IPv6."""
    path, packets = built
    assert check_icrc.check(path) == (len(packets), 0, 0, 0)
    assert len({p["infiniband.bth.opcode"] for p in packets}) == 63


def value(text):
    """The value of a field that tshark has printed, perhaps twice: decimal, 0x..., or a Boolean."""
    text = text.split(",")[0]
    if text in ("True", "False"):
        return text == "True"
    return int(text, 0)


@needs_tshark
def test_tshark_reads_what_we_wrote(built):
    path, packets = built
    byte_fields = {"infiniband.immdt", "infiniband.ieth"}
    names = sorted({n for p in packets for n in p if n not in ("payload", "name")})
    lines = judge_capture.run_tshark(path, names + ["_ws.malformed", "data.len"])
    assert len(lines) == len(packets)
    for packet, line in zip(packets, lines):
        said = dict(zip(names + ["_ws.malformed", "data.len"], line))
        opcode = int(packet["infiniband.bth.opcode"])
        assert said["_ws.malformed"] == ""
        for name in names:
            if opcode in BTH_ONLY and ".bth." not in name and name != "udp.length":
                continue
            where = f"{packet} {name}: {said[name]!r}"
            if name not in packet:
                assert said[name] == "", where
                continue
            text = "0x" + said[name] if name in byte_fields else said[name]
            assert value(text) == int(packet[name]), where
        if opcode not in BTH_ONLY:
            assert int(said["data.len"] or 0) == int(packet["payload"]), packet
