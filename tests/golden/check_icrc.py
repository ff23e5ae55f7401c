#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Checks the invariant CRC (ICRC) of every RoCEv2 packet in capture files.

  check_icrc.py [-v] FILE.pcap...

Prints, for each file, how many packets have a right and how many a wrong ICRC.
Exit code 0: all right; 1: some wrong, or a packet cut short; 2: no RoCEv2
packet in a file.  Written from the RoCEv2 annex (A17) of the InfiniBand
specification; uses nothing but the standard library.  Reads pcap and pcapng
(Ethernet, VLAN tags, Linux cooked v1/v2, raw IP; IPv4 and IPv6).
"""
import argparse
import struct
import sys
import zlib

ROCE_PORT = 4791


def read_capture(path):
    """Yield (seconds, linktype, bytes, original length)."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 24:
        return
    magic = data[:4]
    if magic == b"\x0a\x0d\x0d\x0a":
        yield from read_pcapng(data)
        return
    try:
        order, frac = {b"\xd4\xc3\xb2\xa1": ("<", 1e6), b"\xa1\xb2\xc3\xd4": (">", 1e6),
                       b"\x4d\x3c\xb2\xa1": ("<", 1e9), b"\xa1\xb2\x3c\x4d": (">", 1e9)}[magic]
    except KeyError:
        raise SystemExit(f"{path}: not a capture file")
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    at = 24
    while at + 16 <= len(data):
        sec, sub, cap, orig = struct.unpack_from(order + "IIII", data, at)
        yield sec + sub / frac, link, data[at + 16:at + 16 + cap], orig
        at += 16 + cap


def read_pcapng(data):
    at, order, links = 0, "<", []
    while at + 12 <= len(data):
        kind = struct.unpack_from("<I", data, at)[0]
        if kind == 0x0A0D0D0A:
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, length = struct.unpack_from(order + "II", data, at)
        body = data[at + 8:at + length - 4]
        if kind == 1:
            link = struct.unpack_from(order + "H", body, 0)[0]
            resol, o = 6, 8
            while o + 4 <= len(body):
                code, n = struct.unpack_from(order + "HH", body, o)
                if code == 0:
                    break
                if code == 9:
                    resol = body[o + 4]
                o += 4 + (n + 3) // 4 * 4
            links.append((link, 2.0 ** (resol & 127) if resol & 128 else 10.0 ** resol))
        elif kind == 6:
            iface, hi, lo, cap, orig = struct.unpack_from(order + "IIIII", body, 0)
            link, per_s = links[iface]
            yield ((hi << 32) | lo) / per_s, link, body[20:20 + cap], orig
        at += max(length, 12)


def ip_offset(link, frame):
    """Offset of the IP header in the frame, or None."""
    if link == 1:
        at = 12
    elif link == 113:
        at = 14
    elif link == 276:
        return 20 if frame[:2] in (b"\x08\x00", b"\x86\xdd") else None
    elif link in (101, 12, 14, 228, 229):
        return 0
    else:
        return None
    while frame[at:at + 2] in (b"\x81\x00", b"\x88\xa8"):
        at += 4
    return at + 2 if frame[at:at + 2] in (b"\x08\x00", b"\x86\xdd") else None


class Packet:
    """A RoCEv2 packet: ip and udp are offsets, end is where the ICRC ends."""

    def __init__(self, link, frame):
        self.ok = False
        self.cut = False
        ip = ip_offset(link, frame)
        if ip is None or len(frame) < ip + 20:
            return
        self.version = frame[ip] >> 4
        if self.version == 4:
            ihl = (frame[ip] & 15) * 4
            proto, udp = frame[ip + 9], ip + ihl
            total = struct.unpack_from(">H", frame, ip + 2)[0]
            if struct.unpack_from(">H", frame, ip + 6)[0] & 0x3FFF:
                return                                   # a fragment
        elif self.version == 6:
            proto, udp = frame[ip + 6], ip + 40
            total = 40 + struct.unpack_from(">H", frame, ip + 4)[0]
        else:
            return
        if proto != 17 or len(frame) < udp + 8:
            return
        self.sport, self.dport, ulen = struct.unpack_from(">HHH", frame, udp)
        if self.dport != ROCE_PORT:
            return
        self.ok = True
        self.frame, self.ip, self.udp, self.total, self.ulen = frame, ip, udp, total, ulen
        self.end = udp + ulen
        # whatever follows (Ethernet padding) is not part of the packet
        self.cut = len(frame) < self.end or ulen < 8 + 12 + 4 or self.end > ip + total

    def icrc_in_packet(self):
        return self.frame[self.end - 4:self.end]

    def icrc_computed(self):
        ip, udp = self.ip, self.udp
        b = bytearray(self.frame[ip:self.end - 4])
        u = udp - ip
        if self.version == 4:
            b[1] = 0xFF                  # type of service
            b[8] = 0xFF                  # time to live
            b[10] = b[11] = 0xFF         # header checksum
        else:
            b[0] = (b[0] & 0xF0) | 0x0F  # traffic class
            b[1] = b[2] = b[3] = 0xFF    # traffic class, flow label
            b[7] = 0xFF                  # hop limit
        b[u + 6] = b[u + 7] = 0xFF       # UDP checksum
        b[u + 8 + 4] = 0xFF              # BTH: FECN, BECN, reserved (resv8a)
        # eight bytes of ones stand for the LRH; sent like an Ethernet FCS:
        # least significant byte first
        return struct.pack("<I", zlib.crc32(b"\xff" * 8 + bytes(b)) & 0xFFFFFFFF)


def check(path, verbose=False):
    right = wrong = cut = other = 0
    for number, (_, link, frame, orig) in enumerate(read_capture(path), 1):
        p = Packet(link, frame)
        if not p.ok:
            other += 1
        elif p.cut:
            cut += 1
            if verbose:
                print(f"{path}: packet {number}: cut short or lengths disagree")
        elif p.icrc_in_packet() == p.icrc_computed():
            right += 1
        else:
            wrong += 1
            if verbose:
                print(f"{path}: packet {number}: ICRC {p.icrc_in_packet().hex()}, "
                      f"should be {p.icrc_computed().hex()}")
    return right, wrong, cut, other


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("-v", "--verbose", action="store_true", help="name each wrong packet")
    ap.add_argument("files", nargs="+", metavar="FILE")
    a = ap.parse_args()
    rc = 0
    for path in a.files:
        right, wrong, cut, other = check(path, a.verbose)
        print(f"{path}: {right} right, {wrong} wrong"
              + (f", {cut} cut short" if cut else "") + (f", {other} not RoCEv2" if other else ""))
        if wrong or cut:
            rc = 1
        elif not right and rc == 0:
            rc = 2
    return rc


if __name__ == "__main__":
    sys.exit(main())
