#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Lets others judge a capture of RoCEv2 traffic: check_icrc.py and tshark.

  judge_capture.py [-q] [--at-least N] FILE...

Fails on a wrong ICRC, on a packet cut short, on one that tshark calls malformed or has any other
complaint about, and on one that tshark does not take for RoCEv2.  As a program: exit code 0 when
all is right, 1 when something is wrong (each thing named), 2 when a file has fewer packets than
--at-least (1 if not given), 77 when all that could be judged is right but tshark is missing.
As a module: judge(path) returns (packets by opcode, list of complaints).

A burst of packets sent in one call (UDP_SEGMENT) can be captured before the kernel cuts it, as on
the loopback interface: such a long datagram is cut here, at the one length that makes every ICRC
right.
"""
import argparse
import collections
import concurrent.futures
import os
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import check_icrc  # noqa: E402

MIN_PACKET = 16
MAX_PACKET = 64 + 4096 + 4
# Dissectors that could take one of our payloads for theirs, and then call it malformed.
UPPER_PROTOCOLS = ("smc", "smb_direct", "rpcordma", "nvme-rdma", "lnet", "iser",
                   "infiniband.eoib", "infiniband_sdp", "fcoib")
# RoCEv2 over IPv6 may leave the UDP checksum out (the kernel's rxe does).
FORGIVEN = {"Illegal checksum value (0)"}
FIELDS = ("frame.number", "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.message")
SEPARATOR = "|"


class NoTshark(Exception):
    pass


def segment(packet, index, start, end):
    """The frame that carries bytes start..end of a long datagram's payload as segment index."""
    header = bytearray(packet.frame[:packet.udp + 8])
    payload = packet.frame[packet.udp + 8:packet.end]
    part = payload[start:end]
    ip = packet.ip
    if packet.version == 4:
        ip_id = struct.unpack_from(">H", header, ip + 4)[0] + index & 0xFFFF
        struct.pack_into(">HH", header, ip + 2, packet.udp - ip + 8 + len(part), ip_id)
        struct.pack_into(">H", header, ip + 10, 0)
        total = sum(struct.unpack_from(f">{(packet.udp - ip) // 2}H", header, ip))
        total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into(">H", header, ip + 10, ~(total + (total >> 16)) & 0xFFFF)
    else:
        struct.pack_into(">H", header, ip + 4, packet.udp - ip - 40 + 8 + len(part))
    struct.pack_into(">HH", header, packet.udp + 4, 8 + len(part), 0)
    return bytes(header) + part


def is_right(packet):
    return packet.ok and not packet.cut and packet.icrc_in_packet() == packet.icrc_computed()


def cut_burst(link, packet):
    """The frames of a burst that was captured whole, or None."""
    length = packet.end - packet.udp - 8
    for size in range(MIN_PACKET, min(MAX_PACKET, length - MIN_PACKET) + 1, 4):
        if not is_right(check_icrc.Packet(link, segment(packet, 0, 0, size))):
            continue
        frames = [segment(packet, i, at, min(at + size, length))
                  for i, at in enumerate(range(0, length, size))]
        if all(is_right(check_icrc.Packet(link, frame)) for frame in frames):
            return frames
    return None


def check_icrcs(path):
    """(RoCEv2 packets, frames with bursts cut, link type, complaints, whether anything was cut)."""
    packets, complaints, frames, links, cut = 0, [], [], set(), False
    for number, (when, link, frame, _) in enumerate(check_icrc.read_capture(path), 1):
        links.add(link)
        packet = check_icrc.Packet(link, frame)
        if not packet.ok:
            continue
        parts = [frame]
        if packet.cut:
            complaints.append(f"packet {number}: cut short, or its lengths disagree")
        elif not is_right(packet):
            burst = cut_burst(link, packet)
            if burst:
                parts, cut = burst, True
            else:
                complaints.append(f"packet {number}: ICRC {packet.icrc_in_packet().hex()}, "
                                  f"should be {packet.icrc_computed().hex()}")
        packets += len(parts)
        frames += [(when, part) for part in parts]
    if cut and len(links) > 1:
        raise SystemExit(f"{path}: runs on interfaces of several link types")
    return packets, frames, links.pop() if links else 1, complaints, cut


def write_capture(out, link, frames):
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, link))
    for when, frame in frames:
        out.write(struct.pack("<IIII", int(when), int(when % 1 * 1e6), len(frame), len(frame)))
        out.write(frame)
    out.flush()


def run_tshark(path, fields, extra=()):
    """Values of the fields as tshark decodes them, a list for each packet to UDP port 4791."""
    if not shutil.which("tshark"):
        raise NoTshark
    command = ["tshark", "-n", "-r", path, "-Y", "udp.dstport == 4791", "-T", "fields",
               "-E", "separator=" + SEPARATOR, "--disable-heuristic", "eth_over_ib", *extra]
    for protocol in UPPER_PROTOCOLS:
        command += ["--disable-protocol", protocol]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"tshark {path}: {done.stderr.strip()}")
    return [line.split(SEPARATOR, len(fields) - 1) for line in done.stdout.splitlines()]


def ask_tshark(path):
    """(packets by opcode, complaints)."""
    opcodes, complaints = collections.Counter(), []
    for number, opcode, malformed, messages in run_tshark(path, FIELDS):
        if opcode:
            opcodes[int(opcode, 0)] += 1
        else:
            complaints.append(f"packet {number}: tshark does not see RoCEv2")
        said = {m for m in messages.split(",") if m} - FORGIVEN
        if malformed or said:
            complaints.append(f"packet {number}: tshark: {', '.join(sorted(said)) or 'malformed'}")
    return opcodes, complaints


def judge(path):
    """({opcode: packets}, [complaint, ...]) of a capture file.  Raises NoTshark."""
    packets, frames, link, complaints, cut = check_icrcs(path)
    if not packets:
        return collections.Counter(), complaints
    if cut:
        with tempfile.NamedTemporaryFile(suffix=".pcap") as parts:
            write_capture(parts, link, frames)
            opcodes, more = ask_tshark(parts.name)
    else:
        opcodes, more = ask_tshark(path)
    if sum(opcodes.values()) != packets:
        more.append(f"check_icrc.py sees {packets} packets, tshark {sum(opcodes.values())}")
    return opcodes, complaints + more


def judge_or_check(path):
    """(opcodes or None, packets, complaints); without tshark there are no opcodes."""
    try:
        opcodes, complaints = judge(path)
        return opcodes, sum(opcodes.values()), complaints
    except NoTshark:
        packets, _, _, complaints, _ = check_icrcs(path)
        return None, packets, complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-q", "--quiet", action="store_true", help="print complaints only")
    parser.add_argument("--at-least", type=int, default=1, metavar="N",
                        help="packets that each file must have")
    parser.add_argument("files", nargs="+", metavar="FILE")
    args = parser.parse_args()
    result = 0
    # A tshark takes most of a second to start.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        judged = list(pool.map(judge_or_check, args.files))
    for path, (opcodes, packets, complaints) in zip(args.files, judged):
        if opcodes is None and result == 0:
            result = 77
        for complaint in complaints:
            print(f"{path}: {complaint}")
        if complaints:
            result = 1
        elif packets < args.at_least:
            print(f"{path}: {packets} packets, at least {args.at_least} expected")
            if result in (0, 77):
                result = 2
        if not args.quiet:
            seen = " ".join(f"0x{op:02x}:{n}" for op, n in sorted((opcodes or {}).items()))
            print(f"{path}: {packets} packets, {len(complaints)} complaints {seen}")
    return result


if __name__ == "__main__":
    sys.exit(main())
