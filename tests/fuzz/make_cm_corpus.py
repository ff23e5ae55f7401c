#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes corpus/cm: scripts for fuzz_cm (its format is described there) that replay what the passive
and the active side of the captures received, and that connect the manager with itself."""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "golden"))
sys.dont_write_bytecode = True
import check_icrc  # noqa: E402
import corpus_files  # noqa: E402

MAD_AT, MAD_BYTES = 20, 256
CONNECT, RAW, FORGE, ITSELF, TIME, ANSWER, REJECT, ESTABLISHED, DESTROY, DISCONNECT = (
    0, 1, 2, 4, 6, 8, 11, 12, 13, 14)
PARAMETERS = bytes([17, 20, 15, 16, 17])


def step(what, which=0, *arguments):
    return bytes([which << 4 | what, *arguments])


def raw(mad):
    return step(RAW, 0, 1) + mad


def mads_of(path):
    for _, _, frame, _ in check_icrc.read_capture(path):
        packet = check_icrc.Packet(1, frame)
        payload = frame[packet.udp + 8:packet.end]
        if payload[5:8] == b"\0\0\1":
            yield payload[MAD_AT:MAD_AT + MAD_BYTES]


def scripts():
    for path in sorted((FOLDER.parent / "golden" / "captures").glob("cm_*.pcap")):
        mads = list(mads_of(path))
        if not mads:
            continue
        yield path.stem, b"".join(map(raw, mads))
        yield path.stem + "_answered", b"".join(raw(mad) + step(ANSWER, 0, 9) for mad in mads)
    deliver = step(ITSELF)
    connect = step(CONNECT) + PARAMETERS + deliver + step(ANSWER, 1, 9) + deliver
    ready = connect + step(ANSWER, 0) + deliver
    late = step(TIME, 1)
    yield "itself", ready + step(DISCONNECT, 0) + deliver + step(DISCONNECT, 1) + deliver + late
    yield "destroyed", ready + step(DESTROY, 0) + deliver + step(DESTROY, 1) + deliver + late * 4
    yield "rejected", connect + step(REJECT, 0) + deliver + late * 3
    yield "established", connect + step(ESTABLISHED, 1) + late * 3
    yield "lost", step(CONNECT) + PARAMETERS + late * 20
    yield "datagram", step(CONNECT, 7) + PARAMETERS + deliver + step(ANSWER, 1, 9) + deliver + late
    for kind in range(9):
        yield f"forged_{kind}", ready + step(FORGE, 0, kind, 0x4f, 1, 2, 3, 4, 5, 6, 7, 8) + late


corpus_files.write("cm", dict(scripts()))
