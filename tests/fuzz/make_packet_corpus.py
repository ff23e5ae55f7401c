#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes corpus/packet from captures: the smallest packet of each opcode, with and without pad.

  make_packet_corpus.py CAPTURE...

Captures to take: those in tests/golden/captures, and one that the program every_opcode writes.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "golden"))
sys.dont_write_bytecode = True
import check_icrc  # noqa: E402
import corpus_files  # noqa: E402


def main():
    smallest = {}
    for path in sys.argv[1:]:
        for _, link, frame, _ in check_icrc.read_capture(path):
            packet = check_icrc.Packet(link, frame)
            if packet.ok and not packet.cut:
                data = frame[packet.udp + 8:packet.end]
                key = f"op{data[0]:02x}" + ("_pad" if data[1] >> 4 & 3 else "")
                smallest[key] = min(smallest.get(key, data), data, key=len)
    corpus_files.write("packet", smallest)


if __name__ == "__main__":
    main()
